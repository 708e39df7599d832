"""What a store moves that a loop moves in one way for one of its users and in another, or not at all, for another.

A store above a split may hold a tensor for several Einsums. Mostly a loop above it iterates the same rank of the tensor
for each of them, and what is moved is a product over ranks (`accesses`). Where it does not, ranks depend on each other:
here every combination of pieces is looked at, and the box that the Einsums with work need together is taken as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from ..formulas.windows import RankUse
from .paths import Path

Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Shared:
    """A tensor that several Einsums need below one place of the tree.

    users: their paths, with one `RankUse` for each rank. shape: of the tensor. place: of the store on the paths.
    """

    users: tuple[tuple[Path, tuple[RankUse, ...]], ...]
    shape: tuple[int, ...]
    place: int

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Places of the loops above that any rank of any user depends on, or in which some user may have no work."""
        ranks = {at for _, uses in self.users for use in uses for _, _, chain in use.terms for at, _ in chain}
        uneven = {loop.place for path, _ in self.users if not path.busy for loop in path.loops}
        return tuple(sorted(at for at in ranks | uneven if at < self.place))

    def box(self, choice: Table[int, int]) -> Box | None:
        """What is needed in one iteration, as [low, high) per rank, cut at the shape; None if nobody has work.

        choice: iteration of each loop of `places`; all others are in their first.
        """
        busy = [(path, uses) for path, uses in self.users if path.busy or not path.idle(dict(choice), self.place)]
        if not busy:
            return None
        full = {loop.place: 0 for path, _ in busy for loop in path.loops} | dict(choice)
        boxes = [box for _, uses in busy if (box := self._needed(uses, full)) is not None]
        if not boxes:
            return ((0, 0),) * len(self.shape)
        sides = zip(*boxes, strict=True)
        return tuple((min(low for low, _ in side), max(high for _, high in side)) for side in sides)

    def _needed(self, uses: Sequence[RankUse], choice: dict[int, int]) -> Box | None:
        """The box of one user; None if it needs nothing inside the shape."""
        sides = []
        for use, size in zip(uses, self.shape, strict=True):
            found = use.interval(choice)
            low, high = (0, 0) if found is None else (max(found[0], 0), min(found[1], size))
            if low >= high:
                return None
            sides.append((low, high))
        return tuple(sides)

    def moved(self, ranges: Table[int, range], keeping: Collection[int]) -> int:
        """Elements that all visits bring in: the box of each, less what was there the visit before.

        ranges: the pieces to look at for every loop above. keeping: places of the loops from one iteration to the next
        of which the store keeps what is needed again; they stand inside of all others that are temporal.
        """
        looked = [at for at in self.places if at in ranges]
        outer = [at for at in looked if at not in keeping]
        inner = [at for at in looked if at in keeping]
        total = 0
        for combination in product(*(ranges[at] for at in outer)):
            choice = dict(zip(outer, combination, strict=True))
            before: Box | None = None
            for steps in product(*(ranges[at] for at in inner)):
                now = self.box({**choice, **dict(zip(inner, steps, strict=True))})
                if now is not None:
                    total += volume(now) - (overlap(before, now) if before is not None else 0)
                    before = now
        others = (len(pieces) for at, pieces in ranges.items() if at not in looked and at not in keeping)
        return total * prod(others)

    def overlaps(self, sliding: int) -> bool:
        """True if some step of the loop at `sliding` keeps an element."""
        loops = {loop.place: loop for path, _ in self.users for loop in path.loops if loop.place < self.place}
        ranges = {at: range(loop.trips) for at, loop in loops.items()}
        return self.moved(ranges, {sliding}) < self.moved(ranges, ())


def volume(box: Box) -> int:
    """Elements of a box."""
    return prod(high - low for low, high in box)


def overlap(first: Box, second: Box) -> int:
    """Elements that two boxes have in common."""
    return prod(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in zip(first, second, strict=True))

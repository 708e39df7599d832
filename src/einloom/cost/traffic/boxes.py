"""What a store moves that a loop moves in one way for one of its users and in another, or not at all, for another.

A store above a split may hold a tensor for several Einsums. Mostly a loop above it iterates the same rank of the tensor
for each of them, and what is moved is a product over ranks (`accesses`). Where it does not, ranks depend on each other:
here every combination of pieces is looked at, all together, and the box that the Einsums with work need is taken as it
is.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping as Table
from math import prod

import numpy as np

from ...dataclass import dataclass
from ...once import cached_property
from ..formulas.terms import Number, maximum, minimum
from ..formulas.windows import MOST, Choice, RankUse, choose, grid, previous
from .paths import Path

Sides = list[tuple[Number, Number]]


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

    def box(self, choice: Choice) -> tuple[Sides, Number]:
        """(what is needed for a choice, as [low, high) per rank, cut at the shape; has anybody work?)."""
        sides: Sides = [(0, 0)] * len(self.shape)
        wanted: Number = False
        busy: Number = False
        for path, uses in self.users:
            works = path.works(choice, self.place)
            mine, whole = [], works
            for use, size in zip(uses, self.shape, strict=True):
                low, high, there = use.interval(choice)
                low, high = maximum(low, 0), minimum(high, size)
                whole = whole & there & (low < high)
                mine.append((low, high))
            sides = [
                (
                    choose(whole, choose(wanted, minimum(a[0], b[0]), b[0]), a[0]),
                    choose(whole, choose(wanted, maximum(a[1], b[1]), b[1]), a[1]),
                )
                for a, b in zip(sides, mine, strict=True)
            ]
            busy, wanted = busy | works, wanted | whole
        return sides, busy

    def moved(
        self, trips: Table[int, int], keeping: Collection[int], chosen: Choice | None = None, ndim: int = 0
    ) -> Number:
        """Elements that all visits bring in: the box of each, less what was there the visit before.

        trips: of every loop above all of whose pieces count. keeping: places of the loops from one iteration to the
        next of which the store keeps what is needed again; they stand inside of all others that are temporal. chosen:
        the one piece that counts of each other loop; arrays of `ndim` axes for some.
        """
        looked = [at for at in self.places if at in trips]
        outer = {at: trips[at] for at in looked if at not in keeping}
        inner = {at: trips[at] for at in looked if at in keeping}
        others = prod(n for at, n in trips.items() if at not in looked and at not in keeping)
        return others * self._sum(outer, inner, chosen or {}, ndim)

    def _sum(self, outer: dict[int, int], inner: dict[int, int], chosen: Choice, ndim: int) -> Number:
        if outer and prod(outer.values()) * prod(inner.values()) > MOST:
            first, *rest = outer
            left = {at: outer[at] for at in rest}
            return sum(self._sum(left, inner, {**chosen, first: i}, ndim) for i in range(outer[first]))
        sides, busy = self.box(grid(chosen, {**outer, **inner}, ndim))
        flat = [one for side in sides for one in side]
        picked = np.broadcast_shapes(*(np.shape(one) for one in (busy, *flat)), (1,) * (ndim + len(outer) + len(inner)))
        shape = (*picked[:ndim], *outer.values(), *inner.values())
        visits = (*picked[:ndim], *outer.values(), prod(inner.values()))
        busy, *flat = (np.broadcast_to(one, shape).reshape(visits) for one in (busy, *flat))
        there, before = previous(busy, flat)
        new = np.ones(visits, np.int64)
        kept = np.where(there, 1, 0)
        for low, high, start, end in zip(flat[::2], flat[1::2], before[::2], before[1::2], strict=True):
            new = new * (high - low)
            kept = kept * np.maximum(np.minimum(high, end) - np.maximum(low, start), 0)
        total = np.where(busy, new - kept, 0).sum(axis=tuple(range(ndim, len(visits))))
        return total.astype(object) if ndim else int(total)

    def overlaps(self, sliding: int) -> bool:
        """True if some step of the loop at `sliding` keeps an element."""
        trips = {loop.place: loop.trips for path, _ in self.users for loop in path.loops if loop.place < self.place}
        return bool(self.moved(trips, {sliding}) < self.moved(trips, ()))

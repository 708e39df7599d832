"""Spatial choices whose tiles divide, on runs of neighbouring like axes: how many there are, all, or those of use.

Comes in: the rows that each axis may have by itself. Goes out: choices on all axes, one run after the other. Runs know
nothing of prices: what is of use, a `Keep` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ....mapspace.divisors import divisors
from ....once import once_each
from ...resources import growth_left
from ..numerics.pareto import IntArray

Row = tuple[int, ...]
SpatialChoice = tuple[Row, ...]
OFTEN = 1 << 8  # choices between two questions whether to stop
PAIRED = 1 << 19  # pairs of rows of like axes that are looked at together
TOGETHER = 1 << 14  # beginnings of spatial choices that are looked at together
HELD = 800  # bytes that a spatial choice takes at least, with its prices for one choice of stores

T = TypeVar("T")


class TooManyChoices(MemoryError):
    """An Einsum has more spatial choices than memory is left for: none is listed."""


Keep = Callable[[IntArray, IntArray], NDArray[np.bool_]]
"""(instances on the first axes [choices, axes, classes], what is left of each class [choices, classes]) -> which of
them may begin a choice that is of use."""


def watched(every: Iterable[T], checkpoint: Callable[[], None]) -> Iterator[T]:
    """All of them, with a question now and then whether to go on."""
    for n, one in enumerate(every):
        if n % OFTEN == 0:
            checkpoint()
        yield one


class Runs:
    """Even choices on runs of neighbouring like axes, one run after the other, with the most instances that count.

    runs: numbers of the axes of each. rows: on an axis, of whole extents. counts: do instances of the axis count?
    reach: of a run whose axes partners tell apart by the fewest instances of a class on one of them, per class the
    numbers of instances at which something changes (rule 11); else none.
    """

    def __init__(
        self,
        runs: list[tuple[int, ...]],
        rows: Callable[[int], list[Row]],
        counts: Callable[[int], bool],
        reach: Callable[[int], tuple[tuple[int, ...], ...]],
        checkpoint: Callable[[], None],
    ) -> None:
        self.runs, self.rows, self.counts, self.reach, self.checkpoint = runs, rows, counts, reach, checkpoint
        self._every: dict[int, tuple[list[SpatialChoice], IntArray, IntArray]] = {}

    def listed(self, extents: Row) -> list[SpatialChoice]:
        """All of them. Raises TooManyChoices, before any is listed, if memory is not left for so many."""
        number = self.number(extents)
        if number * HELD > growth_left():
            raise TooManyChoices(f"{number:,} spatial choices of an Einsum")
        found: list[tuple[SpatialChoice, Row]] = [((), extents)]
        for r in range(len(self.runs)):
            rows, together, _ = self._every[r]
            longer: list[tuple[SpatialChoice, Row]] = []
            for before, left in watched(found, self.checkpoint):
                best = self.most(r, left)[2]
                after = map(tuple, (np.array(left) // together[best]).tolist())
                longer += [((*before, *rows[i]), rest) for i, rest in zip(best.tolist(), after, strict=True)]
            found = longer
        return [spread for spread, _ in found]

    def number(self, extents: Row) -> int:
        """How many there are."""
        for r in range(len(self.runs)):
            if r not in self._every:
                self._every[r] = self._on(r, extents)
        return self.most(0, extents)[1]

    def within(self, extents: Row, keep: Keep, most: float) -> list[SpatialChoice]:
        """Those of which no beginning is left out: on each run only what follows the beginnings that are kept. Raises
        TooManyChoices if more than `most` are kept, or memory is not left for so many."""
        self.number(extents)
        most = min(most, growth_left() / HELD)
        rows, left = np.ones((1, 0, len(extents)), np.int64), np.array([extents], np.int64)
        for r in range(len(self.runs)):
            choices, together, _ = self._every[r]
            table = np.array(choices, np.int64).reshape(len(choices), len(self.runs[r]), len(extents))
            width = rows.shape[1] + table.shape[1]
            parts, kept = [(np.zeros((0, width, len(extents)), np.int64), left[:0])], 0
            for begins, best in self._batches(r, left):
                longer = np.concatenate([rows[begins], table[best]], axis=1)
                rest = left[begins] // together[best]
                good = np.flatnonzero(keep(longer, rest))
                parts.append((longer[good], rest[good]))
                kept += len(good)
                if kept > most:
                    raise TooManyChoices(f"more than {int(most):,} spatial choices of an Einsum")
            rows = np.concatenate([some for some, _ in parts])
            left = np.concatenate([rest for _, rest in parts])
        found = list[SpatialChoice]()
        for start in range(0, len(rows), TOGETHER):
            self.checkpoint()
            found += [tuple(map(tuple, one)) for one in rows[start : start + TOGETHER].tolist()]
        return found

    def _batches(self, r: int, left: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
        """(places in `left`, numbers of choices on run `r` that may follow there), many at a time."""
        places, numbers, size = list[IntArray](), list[IntArray](), 0
        for i, one in enumerate(map(tuple, left.tolist())):
            best = self.most(r, one)[2]
            places.append(np.full(len(best), i))
            numbers.append(best)
            size += len(best)
            if size > TOGETHER:
                yield np.concatenate(places), np.concatenate(numbers)
                places, numbers, size = [], [], 0
        if size:
            yield np.concatenate(places), np.concatenate(numbers)

    @once_each
    def most(self, r: int, left: Row) -> tuple[int, int, IntArray]:
        """(the most instances that count on run number `r` and those after it, how many choices have so many, the
        numbers of those on the run that begin them), of what is left."""
        if r == len(self.runs):
            return 1, 1, np.zeros(0, np.int64)
        self.checkpoint()
        _, together, counted = self._every[r]
        which = np.flatnonzero((np.array(left, np.int64) % together == 0).all(axis=1))
        total, ways = counted[which], np.ones(len(which), np.int64)
        if r + 1 < len(self.runs):
            after = map(tuple, (np.array(left, np.int64) // together[which]).tolist())
            rest = np.array([self.most(r + 1, one)[:2] for one in after], np.int64).reshape(-1, 2)
            total, ways = total * rest[:, 0], rest[:, 1]
        most = int(total.max(initial=0))
        full = total == most
        return most, int(ways[full].sum()), which[full]

    def _on(self, r: int, extents: Row) -> tuple[list[SpatialChoice], IntArray, IntArray]:
        """The choices on a run, what its axes take together, and the instances that count; of those that take the same
        together, and the fewest of each class in the same step of `reach`, the first: the same whatever else is left.
        """
        sizes = [np.array(divisors(n), np.int64) for n in extents]
        found, together = np.zeros((1, 0), np.int64), np.ones((1, len(extents)), np.int64)
        counted, tables = np.ones(1, np.int64), []
        reach = self.reach(r) or ((),) * len(extents)
        most = np.array([len(one) for one in reach], np.int64)
        steps = most[None]
        for i in self.runs[r]:
            table = self.rows(i)
            rows = np.array(table, np.int64).reshape(len(table), len(extents))
            per = rows.prod(axis=1) if self.counts(i) else np.ones(len(rows), np.int64)
            tables.append(table)
            least = np.tile(most, (len(rows), 1))
            for d, one in enumerate(reach):
                least[:, d] = np.where(rows[:, d] > 1, np.searchsorted(one, rows[:, d]), most[d])
            at, row = self._pairs((together, steps), (rows, least), sizes, most + 1)
            steps = np.minimum(steps[at], least[row])
            found = np.concatenate([found[at], row[:, None]], axis=1)
            together, counted = together[at] * rows[row], counted[at] * per[row]
        choices = [tuple(table[n] for table, n in zip(tables, one, strict=True)) for one in found.tolist()]
        return choices, together, counted

    def _pairs(
        self,
        first: tuple[IntArray, IntArray],
        second: tuple[IntArray, IntArray],
        sizes: list[IntArray],
        steps: IntArray,
    ) -> tuple[IntArray, IntArray]:
        """Places of the rows of both whose products divide the extents, the first pair of each product and least steps.
        first, second: instances and steps of each class. sizes: the divisors of each extent; steps: how many it has.
        """
        extents, step = np.array([n[-1] for n in sizes]), max(1, PAIRED // max(1, len(second[0])))
        parts, known = [], np.zeros(0, np.int64)
        for start in range(0, len(first[0]), step):
            self.checkpoint()
            both = first[0][start : start + step, None] * second[0][None]
            at, row = np.nonzero((extents % both == 0).all(axis=2))
            least = np.minimum(first[1][at + start], second[1][row])
            number = np.zeros(len(at), np.int64)
            for d, each in enumerate(sizes):
                number = number * len(each) + np.searchsorted(each, both[at, row, d])
                number = number * steps[d] + least[:, d]
            number, once = np.unique(number, return_index=True)
            new = ~np.isin(number, known)
            known, once = np.concatenate([known, number[new]]), np.sort(once[new])
            parts.append((at[once] + start, row[once]))
        none = [np.zeros(0, np.int64)]
        return np.concatenate([a for a, _ in parts] or none), np.concatenate([b for _, b in parts] or none)

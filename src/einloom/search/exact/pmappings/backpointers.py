"""Histories cut down to the rows that are still of use.

Comes in: the blocks of one Einsum, whose rows were made from many others. Goes out: the same blocks with only those
others that they were made from, so that the tables' memory is free again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..numerics.pareto import IntArray
from .rows import Backpointers, Rows, wrapped

SHORT = 1 << 15  # rows that others were made from which are not worth leaving out


class Compactor:
    """Cuts trails down. used: (trail, its rows that are of use), any number for each trail, whose sources keep their
    numbers: those say which links a row has (`Origin`). whole: trails that stay as they are, with what they were made
    from."""

    def __init__(self, used: Iterable[tuple[Backpointers, IntArray]], whole: Collection[Backpointers] = ()) -> None:
        self._used: dict[int, NDArray[np.bool_]] = {}
        self._order: list[Backpointers] = []  # sources before what was made from them
        self._kept: dict[int, tuple[IntArray | None, Backpointers]] = {id(trail): (None, trail) for trail in whole}
        self._numbered: set[int] = set()
        for trail, rows in used:
            self._visit(trail)
            self._numbered.add(id(trail))
            self._used[id(trail)][rows] = True
        for trail in reversed(self._order):
            self._mark(trail)
        for trail in self._order:
            self._kept[id(trail)] = self._cut(trail)

    def _visit(self, trail: Backpointers) -> None:
        if id(trail) not in self._used and id(trail) not in self._kept:
            self._used[id(trail)] = np.zeros(len(trail.x), bool)
            for source in trail.sources:
                self._visit(source)
            self._order.append(trail)

    def _mark(self, trail: Backpointers) -> None:
        """What the rows of use were made from is of use."""
        rows = np.flatnonzero(self._used[id(trail)])
        for number, mine in _by_source(trail, rows):
            source = trail.sources[number]
            if id(source) not in self._kept:
                self._used[id(source)][trail.row[rows[mine]]] = True

    def _cut(self, trail: Backpointers) -> tuple[IntArray, Backpointers]:
        rows = np.flatnonzero(self._used[id(trail)])
        source, row = trail.source.take(rows), trail.row.take(rows)
        numbered = id(trail) in self._numbered
        sources = [self._kept[id(before)][1] for before in trail.sources] if numbered else []
        for number, mine in _by_source(trail, rows):
            kept, before = self._kept[id(trail.sources[number])]
            if kept is not None:
                row[mine] = np.searchsorted(kept, row[mine])
            if not numbered:
                source[mine] = len(sources)
                sources.append(before)
        x, marks = trail.x.take(rows, axis=0), trail.marks.take(rows, axis=0)
        return rows, Backpointers(x, marks, trail.action, tuple(sources), source, row)

    def trail(self, trail: Backpointers) -> Backpointers:
        """What is left of a trail."""
        return self._kept[id(trail)][1]

    def rows(self, trail: Backpointers, rows: IntArray) -> IntArray:
        """The new numbers of rows of use."""
        kept = self._kept[id(trail)][0]
        return rows if kept is None else np.searchsorted(kept, rows)


def shed(rows: Rows, since: Rows) -> Rows:
    """The same rows, with no more of their history since others than what they were made from; a short one stays."""
    if sum(len(source.x) for source in rows.trail.sources) < SHORT:
        return rows
    whole = (since.trail, *since.trail.sources)
    above = wrapped(rows).trail
    trail = Compactor([(above, np.arange(len(rows)))], whole).trail(above).sources[0]
    return Rows(rows.cost, rows.occupied, trail)


def _by_source(trail: Backpointers, rows: IntArray) -> Iterator[tuple[int, IntArray]]:
    """The sources that some of the rows were made from, by number, each with the places of its own among the rows."""
    if len(trail.sources) == 1 and len(rows):
        yield 0, np.arange(len(rows))
        return
    numbers = trail.source[rows]
    order, counts = np.argsort(numbers, kind="stable"), np.bincount(numbers, minlength=1)
    ends = np.cumsum(counts)
    for n in np.flatnonzero(counts).tolist() if trail.sources else ():
        yield n, order[ends[n] - counts[n] : ends[n]]

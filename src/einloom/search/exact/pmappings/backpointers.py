"""Histories cut down to the rows that are still of use.

Comes in: the blocks of one Einsum, whose rows were made from many others. Goes out: the same blocks with only those
others that they were made from, so that the tables' memory is free again."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..numerics.pareto import IntArray
from .rows import Backpointers


class Compactor:
    """Cuts trails down. used: (trail, its rows that are of use), any number for each trail."""

    def __init__(self, used: Iterable[tuple[Backpointers, IntArray]]) -> None:
        self._used: dict[int, NDArray[np.bool_]] = {}
        self._order: list[Backpointers] = []  # sources before what was made from them
        self._kept: dict[int, tuple[IntArray, Backpointers]] = {}
        for trail, rows in used:
            self._visit(trail)
            self._used[id(trail)][rows] = True
        for trail in reversed(self._order):
            self._mark(trail)
        for trail in self._order:
            self._kept[id(trail)] = self._cut(trail)

    def _visit(self, trail: Backpointers) -> None:
        if id(trail) not in self._used:
            self._used[id(trail)] = np.zeros(len(trail.x), bool)
            for source in trail.sources:
                self._visit(source)
            self._order.append(trail)

    def _mark(self, trail: Backpointers) -> None:
        """What the rows of use were made from is of use."""
        rows = np.flatnonzero(self._used[id(trail)])
        for number, source in enumerate(trail.sources):
            self._used[id(source)][trail.row[rows[trail.source[rows] == number]]] = True

    def _cut(self, trail: Backpointers) -> tuple[IntArray, Backpointers]:
        rows = np.flatnonzero(self._used[id(trail)])
        source, row = trail.source[rows], trail.row[rows]
        for number, before in enumerate(trail.sources):
            mine = np.flatnonzero(source == number)
            row[mine] = np.searchsorted(self._kept[id(before)][0], row[mine])
        sources = tuple(self._kept[id(before)][1] for before in trail.sources)
        return rows, Backpointers(trail.x[rows], trail.marks[rows], trail.action, sources, source, row)

    def trail(self, trail: Backpointers) -> Backpointers:
        """What is left of a trail."""
        return self._kept[id(trail)][1]

    def rows(self, trail: Backpointers, rows: IntArray) -> IntArray:
        """The new numbers of rows of use."""
        return np.searchsorted(self._kept[id(trail)][0], rows)

"""Loops above rows: every trip count that divides what is left, for whole arrays of rows at once.

Comes in: extents per class and, for each row, the classes that may have a loop and the spatial choice. Goes out: the
extents above the loops and the row that each was made from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....mapspace.divisors import divisors
from .pareto import IntArray
from .uneven import ceil, filled, multiples, smallest_tiles


def ragged_ranges(counts: IntArray) -> tuple[IntArray, IntArray]:
    """For every entry its number repeated `counts` times, and the place among its own.

    >>> [list(map(int, found)) for found in ragged_ranges(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    repeat = np.repeat(np.arange(len(counts)), counts)
    return repeat, np.arange(len(repeat)) - np.repeat(np.cumsum(counts) - counts, counts)


class Multiples:
    """Every multiple of an extent of one class that is still possible at a place, as flat lists.

    room: per spatial choice the largest extent there, a multiple of all. least: smallest number of trips.
    """

    def __init__(self, extent: int, room: IntArray, least: int) -> None:
        rooms, self.kind = np.unique(room, return_inverse=True)
        every = {size for whole in (extent, *rooms.tolist()) for size in divisors(whole)}
        self.values = np.array(sorted(every), np.int64)
        self.kind = self.kind.reshape(-1)
        fits = (rooms[:, None] % self.values == 0)[:, None, :]
        above = (self.values % self.values[:, None] == 0) & (self.values >= least * self.values[:, None])
        table = fits & fits.transpose(0, 2, 1) & above
        self.sizes = table.sum(axis=2).reshape(-1)
        self.flat = self.values[np.nonzero(table)[2]]
        self.offsets = np.cumsum(self.sizes) - self.sizes

    def at(self, x: IntArray, choice: IntArray) -> IntArray:
        """Place of each extent in the lists."""
        return np.asarray(self.kind[choice] * len(self.values) + np.searchsorted(self.values, x))

    def grow(
        self, x: IntArray, index: IntArray, d: int, choice: IntArray, may: NDArray[np.bool_] | None = None
    ) -> tuple[IntArray, IntArray]:
        """Rows with every loop over class d: (extents, index). Rows that may not have one stay as they are."""
        at = self.at(x[:, d], choice)
        counts = self.sizes[at] if may is None else np.where(may, self.sizes[at], 1)
        repeat, within = ragged_ranges(counts)
        grown = x.take(repeat, axis=0)
        if may is None:
            grown[:, d] = self.flat[self.offsets[at[repeat]] + within]
        else:
            chosen = np.flatnonzero(may[repeat])
            grown[chosen, d] = self.flat[self.offsets[at[repeat[chosen]]] + within[chosen]]
        return grown, index[repeat]


class UnevenMultiples(Multiples):
    """As `Multiples`, of a class whose outermost loop need not divide its extent.

    instances: per spatial choice those that share the class further out. among: multiples of this list only; None: the
    smallest for each number of trips.
    """

    def __init__(self, extent: int, instances: IntArray, least: int, among: tuple[int, ...] | None) -> None:
        self.extent, self.least, self.among = extent, least, among
        self.spread, self.kind = np.unique(instances, return_inverse=True)
        self.kind = self.kind.reshape(-1)
        self._places: dict[int, int] = {}
        self.sizes = self.offsets = self.flat = np.zeros(0, np.int64)

    def at(self, x: IntArray, choice: IntArray) -> IntArray:
        """Place of each extent in the lists, which grow as new extents come."""
        codes, inverse = np.unique(self.kind[choice] * (self.extent + 1) + x, return_inverse=True)
        new = [code for code in codes.tolist() if code not in self._places]
        if new:
            lists = [self._above(*divmod(code, self.extent + 1)) for code in new]
            self._places.update(zip(new, range(len(self.sizes), len(self.sizes) + len(new)), strict=True))
            self.sizes = np.append(self.sizes, [len(found) for found in lists])
            self.offsets = np.cumsum(self.sizes) - self.sizes
            self.flat = np.concatenate([self.flat, *lists]).astype(np.int64)
        places = np.array([self._places[code] for code in codes.tolist()], np.int64)
        return np.asarray(places[inverse.reshape(-1)])

    def _above(self, kind: int, x: int) -> IntArray:
        """What a loop above tiles of `x` may have: `x` itself where one trip is enough."""
        instances = int(self.spread[kind])
        room = int(ceil(self.extent, instances))
        found = (
            multiples(self.extent, x) if self.among is None else [x, *(y for y in self.among if y > x and y % x == 0)]
        )
        below = [y for y in found if y <= room and y < self.extent and (y > x or self.least == 1)]
        whole = instances == 1 and (x < self.extent or self.least == 1)
        return np.array([*below, self.extent] if whole else below, np.int64)


class IntegerMultiples(UnevenMultiples):
    """As `UnevenMultiples`, with tiles that need not be multiples of what stands below: of each number of trips the
    smallest.

    most: per spatial choice the largest tile that there can be; lanes, idle: as `filled` wants them.
    """

    def __init__(self, extent: int, most: IntArray, lanes: IntArray, idle: IntArray, least: int) -> None:
        self.kinds, kind = np.unique(np.stack([most, lanes, idle], axis=1), axis=0, return_inverse=True)
        super().__init__(extent, kind.reshape(-1), least, None)

    def _above(self, kind: int, x: int) -> IntArray:
        most, lanes, idle = self.kinds[kind]
        tiles = np.array(smallest_tiles(self.extent), np.int64)
        found = filled(self.extent, tiles[tiles > x], lanes, idle)
        own = [x] if self.least == 1 else []
        return np.array([*own, *found[found <= most].tolist()], np.int64)

"""The arrays that rows are looked up in: for every memory, by context and spatial choice, what its links cost and what
all that is still to come costs at least.

Comes in: prices and choices of held tensors. Goes out: `Levels`, data that expansion and pruning share.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....dataclass import dataclass
from ....once import once_each
from ..einsums.holds import Placement
from ..einsums.placement import StoreContexts
from ..numerics.multiples import IntegerMultiples, Multiples, UnevenMultiples
from ..numerics.pareto import FloatArray, IntArray
from ..numerics.uneven import ceil
from ..prices.traffic import Prices
from .rows import NEXT, RIMS

MOST_LINKS = 61  # that may be deferred: one bit each of a 64-bit integer, below its sign and two spare ones


@dataclass(frozen=True)
class Room:
    """Memory sizes as the tables use them: capacities per memory (None: no limit), those whose room other Einsums
    share."""

    capacities: tuple[int | None, ...]
    tracked: tuple[int, ...]


@dataclass(frozen=True)
class LevelArrays:
    """The levels of one memory. mine [levels]: own stores as bits; parent [levels, tensors]; outside, inside [levels]:
    bases; onward [levels]: complete rows go on outwards; later [levels, missing stores as bits, choices, columns]: the
    least cost of those and all further out; grows [levels, missing stores as bits, columns]: whether they add to the
    column at all.
    """

    mine: IntArray
    parent: IntArray
    outside: IntArray
    inside: IntArray
    onward: NDArray[np.bool_]
    later: FloatArray
    grows: NDArray[np.bool_]


class Levels:
    """Contexts of one Einsum on one unit for all spatial choices of `prices` and all `helds`.

    fused: rows end where the fused part begins. deferral: charges may be put off. Raises OverflowError if the links of
    the choices do not fit 61 bits: then take fewer choices at a time.
    """

    def __init__(
        self, prices: Prices, helds: tuple[Placement, ...], room: Room, fused: bool, deferral: bool = True
    ) -> None:
        self.prices = prices
        self.room = room
        self.tensors = len(prices.classes.signature.tensors)
        self.memories = len(prices.links.above)
        self.limited = tuple(m for m, c in enumerate(room.capacities) if c is not None)
        self.contexts = StoreContexts(helds, self.tensors, fused)
        self.into = [self._linked(m) for m in range(self.memories)]
        self._number_links(deferral)
        self._plan()

    def _linked(self, memory: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(price, skipped, least cost) of every link into `memory`, by parent * tensors + tensor."""
        links = self.prices.links
        shape = (max(memory, 1) * self.tensors, len(links.spreads), len(links.columns))
        price, skipped, least = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        if memory:
            for parent, t in {(level.parents[t], t) for level in self.contexts.levels[memory] for t in level.own}:
                at = parent * self.tensors + t
                price[at], skipped[at] = self.prices.together(t, parent, memory)
                least[at] = self.prices.least(t, parent, memory)
        return price, skipped, least

    def _number_links(self, deferral: bool) -> None:
        """Give every link whose charge may be deferred a bit, memory by memory."""
        self.deferred: list[tuple[int, int, int]] = []
        self.bit = [np.zeros(max(m, 1) * self.tensors, np.int64) for m in range(self.memories)]
        self.inner = [0] * self.memories
        classes = self.prices.classes
        lacks = [not all(row) for row in classes.relevance]
        for m in range(2, self.memories):
            self.inner[m - 1] = len(self.deferred)
            for at in range(m * self.tensors):
                parent, t = divmod(at, self.tensors)
                matters = self.into[m][0][at].any() or (m, t) in classes.signature.once
                if deferral and lacks[t] and matters:
                    self.bit[m][at] = 1 << len(self.deferred) if len(self.deferred) < MOST_LINKS else 0
                    self.deferred.append((t, parent, m))
        self.inner[self.memories - 1] = len(self.deferred)
        if len(self.deferred) > MOST_LINKS:
            raise OverflowError("too many links")

    def _plan(self) -> None:
        """The arrays of each memory, and the least cost of what stands above each base."""
        choices, columns = len(self.prices.links.spreads), len(self.prices.links.columns)
        self.above = [np.zeros((len(self.contexts.bases[0]), choices, columns))]
        self.growing = [np.zeros((len(self.contexts.bases[0]), columns), bool)]
        self._arrays: list[LevelArrays | None] = [None]
        subsets = np.arange(1 << self.tensors)
        for m in range(1, self.memories):
            levels = self.contexts.levels[m]
            parent = np.array([level.parents for level in levels], np.int64)
            outside = np.array([level.outside for level in levels], np.int64)
            inside = np.array([level.inside for level in levels], np.int64)
            mine = np.array([sum(1 << t for t in level.own) for level in levels], np.int64)
            later = np.repeat(self.above[m - 1][outside][:, None], len(subsets), axis=1)
            grows = np.repeat(self.growing[m - 1][outside][:, None], len(subsets), axis=1)
            least = self.into[m][2]
            for t in range(self.tensors):
                owners = np.flatnonzero(mine >> t & 1)
                link = parent[owners, t] * self.tensors + t
                missing = np.flatnonzero(subsets >> t & 1)
                later[np.ix_(owners, missing)] += least[link][:, None]
                grows[np.ix_(owners, missing)] |= self._charging(m, link)[:, None]
            every = np.arange(len(levels))
            above = np.full((len(self.contexts.bases[m]), choices, columns), np.inf)
            np.minimum.at(above, inside, later[every, mine])
            growing = np.zeros((len(self.contexts.bases[m]), columns), bool)
            np.logical_or.at(growing, inside, grows[every, mine])
            onward = np.array([self.contexts.passes(m, i) for i in range(len(levels))], bool)
            self._arrays.append(LevelArrays(mine, parent, outside, inside, onward, later, grows))
            self.above.append(above)
            self.growing.append(growing)

    def _charging(self, memory: int, link: IntArray | int) -> NDArray[np.bool_]:
        """Mask [..., columns] of what the links into `memory` may add to under any spatial choice."""
        price, skipped, _ = self.into[memory]
        return np.asarray((price[link] != 0).any(axis=-2) | (skipped[link] != 0).any(axis=-2))

    @cached_property
    def size(self) -> int:
        """Numbers in the arrays."""
        into = sum(array.size for arrays in self.into for array in arrays)
        return into + sum(one.later.size + one.grows.size for one in self._arrays if one is not None)

    @once_each
    def loops(self, d: int, at: int, least: int) -> Multiples:
        """The loops over a class at a memory, of so many trips at least."""
        classes, links = self.prices.classes, self.prices.links
        extent, instances = classes.extents[d], links.instances[at][:, d]
        if not classes.uneven[d] or classes.windows[d]:
            return Multiples(extent, ceil(extent, instances), least)
        if classes.integer:
            lanes, idle = (one[:, d] for one in links.idle[at])
            return IntegerMultiples(extent, links.widest[at][:, d], lanes, idle, least)
        return UnevenMultiples(extent, instances, least, classes.listed(d))

    @cached_property
    def held_back(self) -> list[NDArray[np.bool_]]:
        """Per deferred link the columns that it may add to."""
        return [self._charging(memory, parent * self.tensors + t) for t, parent, memory in self.deferred]

    @cached_property
    def width(self) -> int:
        """Columns of the marks of rows."""
        if self.deferred and self.prices.uneven.any() and not self.prices.classes.integer:
            return RIMS + self.memories * len(self.prices.whole)
        return NEXT if self.prices.sliding is None else RIMS

    def rim(self, memory: int, d: int) -> int:
        """The column of the marks with the tile of class d below the spatial loops directly under a memory's: of rows
        with charges put off, because in the last pass of these loops some instances may have nothing."""
        return RIMS + memory * len(self.prices.whole) + d

    def rims(self, marks: IntArray) -> IntArray | None:
        """The tiles of `rim` [rows, memories, classes]; None where there are none."""
        if self.width <= RIMS:
            return None
        return marks[:, RIMS:].reshape(len(marks), self.memories, len(self.prices.whole))

    def at(self, memory: int) -> LevelArrays:
        """The levels of a memory that is not the outermost."""
        arrays = self._arrays[memory]
        assert arrays is not None
        return arrays

    def capacity(self, memory: int) -> int:
        """Bits of a limited memory."""
        capacity = self.room.capacities[memory]
        assert capacity is not None
        return capacity

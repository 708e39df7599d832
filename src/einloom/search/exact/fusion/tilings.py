"""Trips of the fused loops of one structure, with all that depends on them alone: extents, tiles, moves.

Comes in: loops in order and, for spatial ones, the spatial choice. Goes out: arrays with one entry per choice of trips.
Structures with the same loops share a grid, whatever stores stand between."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..einsums.classes import EinsumClass
from ..einsums.spatial import RankClasses, SpatialChoice
from ..numerics.divisibility import divisors
from ..numerics.pareto import FloatArray, IntArray
from ..prices.traffic import Prices
from .templates import FusedLoop, OwnStore

KEPT = 1 << 20  # choices of trips that are remembered at a time
LARGE = 1 << 14  # a grid of more is filtered before anything is worked out


class Tilings:
    """Choices of trips [n, loops] of some fused loops; everything is worked out once."""

    def __init__(self, classes: RankClasses, loops: tuple[FusedLoop, ...], trips: IntArray) -> None:
        self.classes = classes
        self.loops = loops
        self.trips = trips
        self._known: dict[object, NDArray[np.generic]] = {}

    def __len__(self) -> int:
        return len(self.trips)

    def take(self, index: IntArray) -> Tilings:
        """Some of the choices."""
        return Tilings(self.classes, self.loops, self.trips[index])

    def once(self, key: object, make: Callable[[], NDArray[np.generic]]) -> NDArray[np.generic]:
        """What `make` gives, remembered by `key`."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def below(self, depth: int) -> IntArray:
        """Extents per class below the first `depth` loops."""
        return np.asarray(self.once(("x", depth), lambda: self._below(depth)), np.int64)

    def _below(self, depth: int) -> IntArray:
        if depth == 0:
            return np.tile(np.array(self.classes.extents, np.int64), (len(self), 1))
        x = self.below(depth - 1).copy()
        x[:, self.classes.of[self.loops[depth - 1].variable]] //= self.trips[:, depth - 1]
        return x

    def bits(self, prices: Prices, tensor: int, memory: int, depth: int, backing: bool) -> IntArray:
        """Bits of a tile of the tensor in the memory below the first `depth` loops."""
        make = lambda: prices.tile_bits(tensor, self.below(depth), memory, backing)  # noqa: E731
        return np.asarray(self.once(("bits", tensor, memory, depth, backing), make), np.int64)

    def moves(self, prices: Prices, choice: int, store: OwnStore, parent: int) -> FloatArray:
        """Cost of an own store under the spatial choice of `prices`."""
        links = prices.links
        key = ("moves", links.unit, store, parent, links.upper(choice, links.above[store.memory]))
        return np.asarray(self.once(key, lambda: self._moves(prices, choice, store, parent)), np.float64)

    def _moves(self, prices: Prices, choice: int, store: OwnStore, parent: int) -> FloatArray:
        spread = np.full(len(self), choice, np.int64)
        price, skipped = prices.link(store.tensor, parent, store.memory)
        moved = prices.moved(store.tensor, self.below(store.depth), spread, store.memory) // self._kept(store)
        return np.asarray(moved[:, None] * price[choice] - prices.elements(store.tensor) * skipped[choice])

    def again(self, prices: Prices, choice: int, store: OwnStore) -> NDArray[np.bool_]:
        """Mask of choices in which an own store's tile comes again though the mapspace forbids it."""
        spread = np.full(len(self), choice, np.int64)
        again = prices.again(store.memory, store.tensor, self.below(store.depth), spread)
        if not again.any() or not store.over:
            return again
        visits = prices.visits(store.tensor, self.below(store.depth), spread, store.memory)
        return np.asarray(again & (visits > self._kept(store)))

    def _kept(self, store: OwnStore) -> IntArray:
        """Visits over which an own store's tile stays."""
        return np.asarray(self.trips[:, list(store.over)].prod(axis=1, initial=1))


class TilingsByLoops:
    """The grids of one Einsum."""

    def __init__(self, classes: RankClasses) -> None:
        self.classes = classes
        self._grids: dict[object, Tilings] = {}
        self._size = 0

    def of(self, loops: tuple[FusedLoop, ...], spread: SpatialChoice) -> Tilings:
        """All trips of the loops: divisors above one for temporal ones, the spatial choice for the others."""
        fixed = tuple(self._instances(x, spread) for x in loops)
        key = (loops, fixed)
        if key not in self._grids:
            grid = Tilings(self.classes, loops, self._trips(self.classes.signature, loops, fixed))
            if len(grid) > LARGE:
                return grid
            if self._size > KEPT:
                self._grids.clear()
                self._size = 0
            self._grids[key] = grid
            self._size += len(grid)
        return self._grids[key]

    def _instances(self, loop: FusedLoop, spread: SpatialChoice) -> int:
        return 0 if loop.axis is None else spread[loop.axis][self.classes.of[loop.variable]]

    @staticmethod
    def _trips(signature: EinsumClass, loops: tuple[FusedLoop, ...], fixed: tuple[int, ...]) -> IntArray:
        options = [
            np.array([n] if n else divisors(signature.extents[loop.variable])[1:], np.int64)
            for loop, n in zip(loops, fixed, strict=True)
        ]
        if not options:
            return np.zeros((1, 0), np.int64)
        grid = np.meshgrid(*options, indexing="ij")
        trips = np.stack([g.reshape(-1) for g in grid], axis=1)
        return trips[_divide(signature, loops, trips)] if any(fixed) else trips


def _divide(signature: EinsumClass, loops: tuple[FusedLoop, ...], trips: IntArray) -> NDArray[np.bool_]:
    """Mask of trips that divide what is left of each variable: a temporal and a spatial loop may share one."""
    good = np.ones(len(trips), bool)
    x = np.tile(np.array(signature.extents, np.int64), (len(trips), 1))
    for i, loop in enumerate(loops):
        good &= x[:, loop.variable] % trips[:, i] == 0
        x[:, loop.variable] //= trips[:, i]
    return good

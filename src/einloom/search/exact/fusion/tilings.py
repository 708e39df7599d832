"""Tiles of the fused loops of one structure, with all that depends on them alone: extents, tiles, moves.

Comes in: loops in order and, for spatial ones, the spatial choice. Goes out: arrays with one entry per choice of tiles.
Structures with the same loops share a grid, whatever stores stand between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from ....cost.formulas import terms
from ....mapspace.divisors import divisors
from ....once import once_each
from ..einsums.classes import EinsumClass
from ..einsums.runs import SpatialChoice
from ..einsums.spatial import RankClasses
from ..numerics.pareto import FloatArray, IntArray
from ..numerics.uneven import balanced, met, tile_list
from ..prices.traffic import Prices
from .templates import FusedLoop, OwnStore

KEPT = 1 << 16  # choices of tiles that are remembered at a time
LARGE = 1 << 14  # a grid of more is filtered before anything is worked out
Suited = Callable[[int, IntArray], NDArray[np.bool_]]  # class, extents -> mask


class Tilings:
    """Choices of the tiles below some fused loops [n, loops]; everything is worked out once."""

    def __init__(self, classes: RankClasses, loops: tuple[FusedLoop, ...], tiles: IntArray) -> None:
        self.classes = classes
        self.loops = loops
        self.tiles = tiles
        self._known: dict[object, NDArray[np.generic]] = {}

    def __len__(self) -> int:
        return len(self.tiles)

    def take(self, index: IntArray) -> Tilings:
        """Some of the choices."""
        return Tilings(self.classes, self.loops, self.tiles[index])

    def once(self, key: object, make: Callable[[], NDArray[np.generic]]) -> NDArray[np.generic]:
        """What `make` gives, remembered by `key`."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    @cached_property
    def trips(self) -> IntArray:
        """Trips of the loops [n, loops]."""
        return trips_of_loops(self.classes.signature.extents, self.loops, self.tiles)

    @once_each
    def below(self, depth: int) -> IntArray:
        """Extents per class below the first `depth` loops."""
        if depth == 0:
            return np.tile(np.array(self.classes.extents, np.int64), (len(self), 1))
        x = self.below(depth - 1).copy()
        d = self.classes.of[self.loops[depth - 1].variable]
        if self.classes.uneven[d]:
            x[:, d] = self.tiles[:, depth - 1]
        else:
            x[:, d] //= self.trips[:, depth - 1]
        return x

    def bits(self, prices: Prices, tensor: int, memory: int, depth: int, backing: bool) -> IntArray:
        """Bits of a tile of the tensor in the memory below the first `depth` loops."""
        make = lambda: prices.tile_bits(tensor, self.below(depth), memory, backing)  # noqa: E731
        return np.asarray(self.once(("bits", tensor, memory, depth, backing), make), np.int64)

    def moves(self, prices: Prices, choice: int, store: OwnStore, parent: int) -> FloatArray:
        """Cost of an own store under the spatial choice of `prices`."""
        links = prices.links
        key = ("moves", links.unit, store, parent, links.upper(choice, links.above[store.memory]))
        make = self._moves_uneven if prices.uneven.any() else self._moves
        return np.asarray(self.once(key, lambda: make(prices, choice, store, parent)), np.float64)

    def _moves(self, prices: Prices, choice: int, store: OwnStore, parent: int) -> FloatArray:
        spread = np.full(len(self), choice, np.int64)
        price, skipped = prices.links.link(store.tensor, parent, store.memory)
        place = store.tensor, self.below(store.depth), spread, store.memory
        moved, more = prices.moved(*place)[:, None], prices.more(*place)
        moved = (moved if more is None else moved + more) // self._kept(store)[:, None]
        return np.asarray(moved * price[choice] - prices.elements(store.tensor) * skipped[choice])

    def _moves_uneven(self, prices: Prices, choice: int, store: OwnStore, parent: int) -> FloatArray:
        """The same where tiles need not divide: side by side, each loop counted as it is."""
        parts, skipped = prices.links.parts(store.tensor, parent, store.memory)
        pieces = prices.pieces(store.tensor, self.below(store.depth))
        cost = np.tile(-prices.elements(store.tensor) * skipped[choice], (len(self), 1))
        spread = np.full(len(self), choice, np.int64)
        for part in parts:
            mine = prices.of_busiest(part, store.tensor, pieces, self.below(store.depth), spread, None)
            moved = mine * self._entered(prices, store, part.counts_once)
            cost += part.amount(moved, prices.elements(store.tensor), choice)[:, None] * part.price[choice]
        return cost

    def _entered(self, prices: Prices, store: OwnStore, once: Callable[[int, frozenset[int]], bool]) -> IntArray:
        """How often loops over classes that the tensor lacks enter an own store's tile. once: axes (their fanout, the
        tensors that they join) of which the instances count once."""
        axes, total = self.classes.signature.axes, np.ones(len(self), np.int64)
        for d in np.flatnonzero(~prices.relevant[store.tensor]).tolist():
            cuts = []
            for i, loop in enumerate(self.loops[: store.depth]):
                if self.classes.of[loop.variable] == d:
                    axis = None if loop.axis is None else axes[loop.axis]
                    kept = i in store.over if axis is None else once(axis.fanout, axis.joined)
                    cuts.append(terms.LoopCut(self.below(i + 1)[:, d], once=int(kept)))
            if self.classes.loose[d]:  # tiles need not divide: at least one entry for each of the last that counts
                last = [cut.tile for cut in cuts if not cut.once]
                total = total * (terms.trips_of(self.below(0)[:, d], last[-1]) if last else 1)
            elif cuts:
                total = total * terms.visits(self.below(0)[:, d], tuple(cuts))
        return np.asarray(total)

    def again(self, prices: Prices, choice: int, store: OwnStore) -> NDArray[np.bool_]:
        """Mask of choices in which an own store's tile comes again though the mapspace forbids it."""
        spread = np.full(len(self), choice, np.int64)
        again = prices.again(store.memory, store.tensor, self.below(store.depth), spread)
        if not again.any() or not store.over:
            return again
        if prices.uneven.any():
            return np.asarray(again & (self._entered(prices, store, lambda *_: True) > 1))
        visits = prices.visits(store.tensor, self.below(store.depth), spread, store.memory)
        return np.asarray(again & (visits > self._kept(store)))

    def _kept(self, store: OwnStore) -> IntArray:
        """Visits over which an own store's tile stays."""
        return np.asarray(self.trips[:, list(store.over)].prod(axis=1, initial=1))


def trips_of_loops(extents: Sequence[int], loops: tuple[FusedLoop, ...], tiles: IntArray) -> IntArray:
    """Trips of fused loops with these tiles [n, loops]. extents: per variable."""
    trips, above = np.empty_like(tiles), dict[int, IntArray | int](enumerate(extents))
    for i, loop in enumerate(loops):
        trips[:, i] = terms.trips_of(above[loop.variable], tiles[:, i])
        above[loop.variable] = tiles[:, i]
    return trips


class TilingsByLoops:
    """The grids of one Einsum."""

    def __init__(self, classes: RankClasses) -> None:
        self.classes = classes
        self._grids: dict[object, Tilings] = {}
        self._keys: dict[object, tuple[tuple[FusedLoop, ...], tuple[int, ...], tuple[bool, ...]]] = {}
        self._size = 0

    def of(self, loops: tuple[FusedLoop, ...], spread: SpatialChoice, suited: Suited) -> Tilings:
        """All tiles of the loops: perfect ones or, of uneven ranks, those of the candidates; spatial loops have the
        instances of the spatial choice. Of many only those that are `suited` below the loops."""
        if (loops, spread) not in self._keys:
            fixed = tuple(self._instances(x, spread) for x in loops)
            self._keys[loops, spread] = (loops, fixed, tuple(self._alone(x, spread) for x in loops))
        key = self._keys[loops, spread]
        if key not in self._grids:
            options = self._options(loops, key[1])
            if prod(map(len, options)) > LARGE:
                options = self._suited(loops, options, suited)
                return Tilings(self.classes, loops, self._tiles(*key, options))
            if self._size > KEPT:
                self._grids.clear()
                self._size = 0
            grid = Tilings(self.classes, loops, self._tiles(*key, options))
            self._grids[key] = grid
            self._size += len(grid)
        return self._grids[key]

    def _options(self, loops: tuple[FusedLoop, ...], fixed: tuple[int, ...]) -> list[IntArray]:
        """The tiles of each loop; 0 of a spatial one, whose tiles follow from the others."""
        signature = self.classes.signature
        return [
            np.zeros(1, np.int64) if n else np.array(tiles_of(signature, loop.variable), np.int64)
            for loop, n in zip(loops, fixed, strict=True)
        ]

    def _suited(self, loops: tuple[FusedLoop, ...], options: list[IntArray], suited: Suited) -> list[IntArray]:
        """The tiles of each loop without those that leave a class an extent which is not suited: what other loops over
        the class leave of it divides that, or has as many trips."""
        found = list(options)
        for i, loop in enumerate(loops):
            if loop.axis is None:
                d = self.classes.of[loop.variable]
                trips = trips_of_loops(self.classes.signature.extents, loops[i : i + 1], options[i][:, None])[:, 0]
                left = options[i] if self.classes.uneven[d] else self.classes.extents[d] // trips
                found[i] = options[i][suited(d, left)]
        return found

    def _instances(self, loop: FusedLoop, spread: SpatialChoice) -> int:
        return 0 if loop.axis is None else spread[loop.axis][self.classes.of[loop.variable]]

    def _alone(self, loop: FusedLoop, spread: SpatialChoice) -> bool:
        """True if no other axis spreads the variable of a spatial loop."""
        d = self.classes.of[loop.variable]
        return loop.axis is not None and sum(row[d] > 1 for row in spread) == 1

    def _tiles(
        self,
        loops: tuple[FusedLoop, ...],
        fixed: tuple[int, ...],
        whole: tuple[bool, ...],
        options: list[IntArray],
    ) -> IntArray:
        if not options:
            return np.zeros((1, 0), np.int64)
        grid = np.meshgrid(*options, indexing="ij")
        tiles = np.stack([g.reshape(-1) for g in grid], axis=1)
        again = len({loop.variable for loop in loops}) < len(loops)
        return _spread(self.classes.signature, loops, tiles, fixed, whole) if again or any(fixed) else tiles


def tiles_of(signature: EinsumClass, variable: int) -> tuple[int, ...]:
    """The tiles that a fused temporal loop over a variable may have, largest first."""
    extent = signature.extents[variable]
    if variable not in signature.uneven:
        return tuple(extent // n for n in divisors(extent)[1:])
    return tuple(t for t in reversed(tile_list(extent, signature.tiling)) if t < extent)


def _spread(
    signature: EinsumClass,
    loops: tuple[FusedLoop, ...],
    tiles: IntArray,
    fixed: tuple[int, ...],
    whole: tuple[bool, ...],
) -> IntArray:
    """The choices that a temporal and a spatial loop on one variable leave, with the tiles of the spatial ones."""
    good, tiles = np.ones(len(tiles), bool), tiles.copy()
    above = {loop.variable: np.full(len(tiles), signature.extents[loop.variable]) for loop in loops}
    outer: dict[int, list[IntArray]] = {loop.variable: [] for loop in loops}
    for i, (loop, n) in enumerate(zip(loops, fixed, strict=True)):
        v, extent, mine = loop.variable, above[loop.variable], signature.extents[loop.variable]
        first = (extent == mine) & (v in signature.uneven)
        if n:
            tiles[:, i] = terms.trips_of(extent, n)
        tile = np.maximum(tiles[:, i], 1)
        even = extent % tile == 0
        good &= (tile < extent) & (even | first)
        if n:
            good &= (terms.trips_of(extent, tile) == n) & (even | whole[i])
            if v in signature.uneven:
                for share in met(mine, outer[v], len(tiles)):
                    good &= balanced(share, np.full(len(tiles), n), tile)
                outer[v].append(np.full(len(tiles), n))
        above[v] = tiles[:, i]
    return tiles[good]

"""What a store moves and holds when it is placed at given extents, for whole arrays of rows.

Comes in: link prices and extents per class. Goes out: elements moved, bits occupied. Plain ranks are products of
`cost.terms`; windows are listed by `cost.windows`, once for each distinct tile.
"""

from __future__ import annotations

import numpy as np

from ...cost import terms, windows
from .pricing import Pricing
from .skyline import FloatArray, IntArray
from .spatial import Classes


class Tiles:
    """Moves and tile sizes of one Einsum under one spatial choice. shares: tiles' room per memory (2 if
    double-buffered)."""

    def __init__(self, pricing: Pricing, shares: tuple[int, ...]) -> None:
        self.pricing = pricing
        self.classes: Classes = pricing.classes
        self.shares = shares
        self._windows: dict[object, int] = {}
        self._links: dict[tuple[int, int, int], tuple[FloatArray, FloatArray]] = {}

    def visits(self, tensor: int, x: IntArray, memory: int | None) -> IntArray:
        """Temporal visits that re-read the tensor: product over the classes that it lacks.

        x: extents where the first loop that counts stands, at `memory` (None: the leaf).
        """
        spread = self.pricing.instances[self.pricing.place(memory)]
        total = np.ones(len(x), np.int64)
        for d, extent in enumerate(self.classes.extents):
            if not self.classes.relevant(tensor, d):
                total = total * terms.perfect_trips(extent, x[:, d], spread[d])
        return total

    def moved(
        self,
        tensor: int,
        x: IntArray,
        memory: int | None,
        slide: tuple[int, int, int] | None = None,
        at: int | None = None,
    ) -> IntArray:
        """Elements of the tensor that its visits move, over all instances of its own classes.

        at: the memory at which the first loop that counts stands, if the store keeps its tile up to there.
        """
        signature = self.classes.signature.tensors[tensor]
        total = self.visits(tensor, x, memory if at is None else at)
        for rank, expression in enumerate(signature.ranks):
            if signature.simple(rank):
                total = total * self.classes.signature.extents[expression[0][0]]
            else:
                total = total * self._listed(tensor, rank, self._at_store(x, memory, at), memory, slide)
        return total

    def _at_store(self, x: IntArray, memory: int | None, at: int | None) -> IntArray:
        """Extents at the store, given those at `at` with only spatial loops and loops it lacks in between."""
        if at is None or at == memory:
            return x
        here, there = self.pricing.instances[self.pricing.place(memory)], self.pricing.instances[at]
        return x // np.array([a // b for a, b in zip(here, there, strict=True)], np.int64)

    def _listed(
        self, tensor: int, rank: int, x: IntArray, memory: int | None, slide: tuple[int, int, int] | None
    ) -> IntArray:
        """Elements of a window rank over all tiles, for every row (equal extents are computed once)."""
        expression = self.classes.signature.tensors[tensor].ranks[rank]
        dims = [self.classes.of[v] for v, _ in expression]
        unique, inverse = np.unique(x[:, dims], axis=0, return_inverse=True)
        values = np.array([self._window_sum(tensor, rank, tuple(map(int, row)), memory, slide) for row in unique])
        return np.asarray(values[inverse.reshape(-1)])

    def _window_sum(
        self, tensor: int, rank: int, tiles: tuple[int, ...], memory: int | None, slide: tuple[int, int, int] | None
    ) -> int:
        signature = self.classes.signature.tensors[tensor]
        chains = []
        sliding_place = None
        for k, ((v, coefficient), tile) in enumerate(zip(signature.ranks[rank], tiles, strict=True)):
            d, extent = self.classes.of[v], self.classes.signature.extents[v]
            chain = []
            if slide is not None and d == slide[0]:
                step = tile * slide[2]
                chain.append((2 * k, terms.Cut(step * slide[1], trips=-(-extent // (step * slide[1])))))
                chain.append((100, terms.Cut(step, trips=slide[1])))
                sliding_place = 100
                chain.append((101 + k, terms.Cut(tile, trips=-(-step // tile))))
            else:
                chain.append((2 * k, terms.Cut(tile, trips=-(-extent // tile))))
            chains.append((coefficient, extent, tuple(chain)))
        use = windows.RankUse(tuple(chains), signature.constants[rank])
        return windows.moved((use,), signature.shape[rank], sliding_place)

    def _inside(self, d: int, memory: int | None) -> int:
        """Instances along class d between the store and the nearest temporal loop above: those of the fanouts above
        it."""
        assert memory is not None
        here = self.pricing.above[memory]
        outer = max((self.pricing.above[m] for m in range(memory) if self.pricing.above[m] < here), default=here)
        if outer == here:
            return 1
        m = next(i for i, a in enumerate(self.pricing.above) if a == outer)
        return self.pricing.instances[memory][d] // self.pricing.instances[m][d]

    def tile_bits(self, tensor: int, x: IntArray, memory: int) -> IntArray:
        """Bits that a tile occupies in one instance of the memory."""
        signature = self.classes.signature.tensors[tensor]
        total = np.full(len(x), signature.bits[memory] * self.shares[memory], np.int64)
        for rank, expression in enumerate(signature.ranks):
            if signature.simple(rank) and len(self.classes.members[self.classes.of[expression[0][0]]]) == 1:
                total = total * x[:, self.classes.of[expression[0][0]]]
            elif not signature.simple(rank):
                total = total * self._widest(tensor, rank, x)
        merged = {
            self.classes.of[e[0][0]]
            for r, e in enumerate(signature.ranks)
            if signature.simple(r) and len(self.classes.members[self.classes.of[e[0][0]]]) > 1
        }
        for d in sorted(merged):
            total = total * x[:, d]
        return total

    def _widest(self, tensor: int, rank: int, x: IntArray) -> IntArray:
        expression = self.classes.signature.tensors[tensor].ranks[rank]
        dims = [self.classes.of[v] for v, _ in expression]
        unique, inverse = np.unique(x[:, dims], axis=0, return_inverse=True)
        values = []
        for row in unique:
            key = ("widest", tensor, rank, tuple(map(int, row)))
            if key not in self._windows:
                self._windows[key] = self._widest_window(tensor, rank, tuple(map(int, row)))
            values.append(self._windows[key])
        return np.asarray(np.array(values, np.int64)[inverse.reshape(-1)])

    def _widest_window(self, tensor: int, rank: int, tiles: tuple[int, ...]) -> int:
        signature = self.classes.signature.tensors[tensor]
        starts = [signature.constants[rank]]
        reach = 1
        for (v, coefficient), tile in zip(signature.ranks[rank], tiles, strict=True):
            reach += coefficient * (tile - 1)
            extent = self.classes.signature.extents[v]
            starts = [s + coefficient * p for s in starts for p in range(0, extent, tile)]
        size = signature.shape[rank]
        return max(max(0, min(s + reach, size) - max(s, 0)) for s in starts)

    def link(self, tensor: int, parent: int, child: int | None) -> tuple[FloatArray, FloatArray]:
        """As `Pricing.link`, remembered."""
        key = (tensor, parent, -1 if child is None else child)
        if key not in self._links:
            self._links[key] = self.pricing.link(tensor, parent, child)
        return self._links[key]

"""What can be said of a fused part before its tiles are listed: a temporal loop has two trips at least, and leaves one
element at least.

Comes in: the loops and stores of a fused part, and the spatial choice above. Goes out: whether any tiles may fit the
memories and cost no more than is left. The argument: docs/model/pruning.md, "Screening fused parts".
"""

from __future__ import annotations

import numpy as np

from ..einsums.holds import Placement
from ..einsums.spatial import RankClasses
from ..numerics.pareto import FloatArray
from ..pmappings.levels import Levels
from .templates import FusedTemplate, OwnStore

Bits = dict[tuple[int, int, tuple[int, ...], bool], int]  # tensor, memory, extents, backing -> bits of the tile


def in_any_order(structure: FusedTemplate, own: tuple[OwnStore, ...]) -> tuple[object, ...]:
    """What a fused part is but for the order of temporal loops between which no store stands and no tile is kept: they
    leave the same tiles in any order."""
    ends = {d for _, _, d in structure.backings}.union(*((s.depth, *s.over, *(i + 1 for i in s.over)) for s in own))
    parts: list[object] = []
    run: list[int] = []
    for i, loop in enumerate(structure.loops):
        if run and (i in ends or loop.axis is not None):
            parts.append(tuple(sorted(run)))
            run = []
        if loop.axis is None:
            run.append(loop.variable)
        else:
            parts.append(loop)
    return tuple(parts), tuple(sorted(run)), structure.backings, own


class Screen:
    """Screens the fused parts above one set of rows. bits: what is known of tiles, whatever the spatial choice."""

    def __init__(self, classes: RankClasses, levels: Levels, choice: int, held: Placement, bits: Bits) -> None:
        self.classes = classes
        self.levels = levels
        self.choice = choice
        self.held = held
        self.spread = levels.prices.links.spreads[choice]
        self._bits = bits
        self._moves: dict[tuple[int, int, int, int], FloatArray] = {}

    def may_fit(self, structure: FusedTemplate, own: tuple[OwnStore, ...]) -> bool:
        """False if there are no tiles, or all need more than some memory has."""
        of, uneven, spread = self.classes.of, self.classes.uneven, self.spread
        left, tile, tiles = list(self.classes.extents), list(self.classes.extents), [self.classes.extents]
        for loop in structure.loops:
            d = of[loop.variable]
            if loop.axis is not None:
                left[d] //= spread[loop.axis][d]
                tile[d] = max(1, tile[d] // spread[loop.axis][d])
            else:
                left[d] = left[d] if uneven[d] else left[d] // 2
                tile[d] = 1
            tiles.append(tuple(tile))
        if not all(left):
            return False
        filled = dict.fromkeys(self.levels.limited, 0)
        for t, m, depth in structure.backings:
            if m in filled:
                filled[m] += self._least_bits(t, m, tiles[depth], True)
        for s in own:
            if s.memory in filled and not s.joins:
                filled[s.memory] += self._least_bits(s.tensor, s.memory, tiles[s.depth], False)
        return all(bits <= self.levels.capacity(m) for m, bits in filled.items())

    def _least_bits(self, tensor: int, memory: int, tile: tuple[int, ...], backing: bool) -> int:
        """Bits of a tile, no more than any needs with at least these extents: windows have one element."""
        key = tensor, memory, tile, backing
        if key not in self._bits:
            windows = self.classes.signature.tensors[tensor].complex_variables
            sliding = {self.classes.of[v] for v in windows}
            least = np.array([[1 if d in sliding else n for d, n in enumerate(tile)]], np.int64)
            self._bits[key] = int(self.levels.prices.tile_bits(tensor, least, memory, backing)[0])
        return self._bits[key]

    def within(self, spare: FloatArray, structure: FusedTemplate, own: tuple[OwnStore, ...]) -> bool:
        """False if the own stores cost more than is left [columns], whatever the tiles."""
        prices = self.levels.prices
        if not own or prices.uneven.any():
            return True
        for s in own:
            if not s.joins and s.tensor not in prices.compound:
                parent = max((m for m in range(s.memory) if s.tensor in self.held[m]), default=None)
                if parent is not None:
                    spare = spare - self._least_moves(structure, s, parent)
        return bool((spare >= 0).all())

    def _least_moves(self, structure: FusedTemplate, store: OwnStore, parent: int) -> FloatArray:
        """Least cost of an own store: its tensor once, and again for each trip of loops that move other tiles."""
        prices, of = self.levels.prices, self.classes.of
        again = sum(
            loop.axis is None and i not in store.over and not prices.relevant[store.tensor][of[loop.variable]]
            for i, loop in enumerate(structure.loops[: store.depth])
        )
        key = store.tensor, store.memory, parent, again
        if key not in self._moves:
            price, skipped = prices.links.link(store.tensor, parent, store.memory)
            once = prices.elements(store.tensor)
            self._moves[key] = once * 2**again * price[self.choice] - once * skipped[self.choice]
        return self._moves[key]

"""The arrays that the tables look rows up in, and the pruning of rows.

Comes in: prices, choices of held tensors, limits. Goes out: for every memory, by context and spatial choice, what links
cost and what all that is still to come costs at least; rows that are within the limits and undominated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..einsums.holds import Placement
from ..einsums.placement import Contexts
from ..numerics.pareto import FloatArray, IntArray, skyline
from ..prices.columns import Pricing
from ..prices.traffic import Tiles
from .cost_to_go import CostToGo
from .rows import CONTEXT, FRESH, MARKS, OPEN, PENDING, PLACED, SPREAD, TARGET, TOP, Rows

DENSE = 1 << 16  # numbers below this are ranked by a table, whatever their number


@dataclass(frozen=True)
class Rules:
    """Pruning rules of the tables; each can be switched off.

    deferral, sliding: rows in which a store keeps its tile, or part of it, over loops further out. Off, the space is
    smaller.
    settled: times that nothing can be added to any more count once, as the least latency that the row can have. Not for
    rows whose busy seconds are added to those of other Einsums.
    dive: compare rows by one weighted sum of their columns instead of every column. Quick, not exact: what comes out is
    a feasible mapping, an upper bound.
    """

    stationary: bool = True
    lowering: bool = True
    deferral: bool = True
    sliding: bool = True
    dominance: bool = True
    limits: bool = True
    settled: bool = True
    heuristic: bool = False


@dataclass(frozen=True)
class Room:
    """Memory sizes as the tables use them: capacities per memory (None: no limit), those whose room other Einsums
    share, and how many tiles' room a tile takes (2 if double-buffered)."""

    capacities: tuple[int | None, ...]
    tracked: tuple[int, ...]
    shares: tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """The levels of one memory as arrays. mine [levels]: own stores as bits; parent [levels, tensors]; outside, inside
    [levels]: bases; later [levels, missing stores as bits, choices, columns]: least cost of those and all further out;
    grows [levels, missing stores as bits, columns]: whether they add to the column at all.
    """

    mine: IntArray
    parent: IntArray
    outside: IntArray
    inside: IntArray
    onward: NDArray[np.bool_]
    later: FloatArray
    grows: NDArray[np.bool_]


def _strides(extents: tuple[int, ...]) -> tuple[IntArray, int]:
    """Weights that give every vector of tile extents its own integer, and how many there are (0: more than 62 bits)."""
    weights, product = [], 1
    for extent in extents:
        weights.append(product)
        product *= extent + 1
    if product >= 1 << 62:
        return np.zeros(len(extents), np.int64), 0
    return np.array(weights, np.int64), product


class Stages(Tiles):
    """Contexts of one Einsum on one unit for all spatial choices of `pricing` and all `helds`.

    limits: largest useful value of each column. fused: rows end where the fused part begins. Raises OverflowError if
    the links of the choices do not fit 61 bits: then take fewer choices at a time.
    """

    def __init__(
        self,
        pricing: Pricing,
        helds: tuple[Placement, ...],
        room: Room,
        limits: FloatArray,
        rules: Rules,
        counts: dict[str, int],
        fused: bool,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(pricing, room.shares)
        self.checkpoint = checkpoint
        self.room = room
        self.limits = limits
        self.rules = rules
        self.counts = counts
        signature = self.classes.signature
        self.tensors = len(signature.tensors)
        self.memories = len(pricing.above)
        self.limited = tuple(m for m, c in enumerate(room.capacities) if c is not None)
        self.sliding = next((t for t, tensor in enumerate(signature.tensors) if tensor.slides), None)
        self.contexts = Contexts(helds, self.tensors, fused)
        self._strides, self._shapes = _strides(self.classes.extents)
        self._times = [i for i, column in enumerate(pricing.columns) if column.kind == "time"]
        self._prices = [self._linked(m) for m in range(self.memories)]
        self._number_links()
        self._plan()

    # ---- arrays of the contexts -------------------------------------------------------------------------------

    def _linked(self, memory: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(price, skipped, least cost) of every link into `memory`, by parent * tensors + tensor."""
        shape = (max(memory, 1) * self.tensors, len(self.pricing.spreads), len(self.pricing.columns))
        price, skipped, least = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        if memory:
            for parent, t in {(level.parents[t], t) for level in self.contexts.levels[memory] for t in level.own}:
                at = parent * self.tensors + t
                price[at], skipped[at] = self.together(t, parent, memory)
                least[at] = self.least(t, parent, memory)
        return price, skipped, least

    def _number_links(self) -> None:
        """Give every link whose charge may be deferred a bit, memory by memory."""
        self._deferred: list[tuple[int, int, int]] = []
        self._bit = [np.zeros(max(m, 1) * self.tensors, np.int64) for m in range(self.memories)]
        self._inner = [0] * self.memories
        for m in range(2, self.memories):
            self._inner[m - 1] = len(self._deferred)
            lacks = [not all(row) for row in self.classes.relevance]
            for at in range(m * self.tensors):
                parent, t = divmod(at, self.tensors)
                matters = self._prices[m][0][at].any() or (m, t) in self.classes.signature.once
                if self.rules.deferral and lacks[t] and matters:
                    self._bit[m][at] = 1 << len(self._deferred) if len(self._deferred) < 61 else 0
                    self._deferred.append((t, parent, m))
        self._inner[self.memories - 1] = len(self._deferred)
        if len(self._deferred) > 61:
            raise OverflowError("too many links")

    def _plan(self) -> None:
        """The stages, and the least cost of what stands above each base."""
        choices, columns = len(self.pricing.spreads), len(self.pricing.columns)
        self._above = [np.zeros((len(self.contexts.bases[0]), choices, columns))]
        self._growing = [np.zeros((len(self.contexts.bases[0]), columns), bool)]
        self._stages: list[Stage | None] = [None]
        subsets = np.arange(1 << self.tensors)
        for m in range(1, self.memories):
            levels = self.contexts.levels[m]
            parent = np.array([level.parents for level in levels], np.int64)
            outside = np.array([level.outside for level in levels], np.int64)
            inside = np.array([level.inside for level in levels], np.int64)
            mine = np.array([sum(1 << t for t in level.own) for level in levels], np.int64)
            later = np.repeat(self._above[m - 1][outside][:, None], len(subsets), axis=1)
            grows = np.repeat(self._growing[m - 1][outside][:, None], len(subsets), axis=1)
            least = self._prices[m][2]
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
            self._stages.append(Stage(mine, parent, outside, inside, onward, later, grows))
            self._above.append(above)
            self._growing.append(growing)

    def _charging(self, memory: int, link: IntArray | int) -> NDArray[np.bool_]:
        """Mask [..., columns] of what the links into `memory` may add to under any spatial choice."""
        price, skipped, _ = self._prices[memory]
        return np.asarray((price[link] != 0).any(axis=-2) | (skipped[link] != 0).any(axis=-2))

    @cached_property
    def width(self) -> int:
        """Columns of the marks."""
        rims = self.memories * len(self.whole) if self._deferred and self.uneven.any() else 0
        return MARKS + rims

    def rim(self, memory: int, d: int) -> int:
        """The column of the marks with the tile of class d below the spatial loops directly under a memory's: of rows
        with charges put off, because in the last pass of these loops some instances may have nothing."""
        return MARKS + memory * len(self.whole) + d

    def _rims(self, marks: IntArray) -> IntArray:
        """The tiles of `rim` [rows, memories, classes]; 0 where there is none."""
        if self.width == MARKS:
            return np.zeros((len(marks), self.memories, len(self.whole)), np.int64)
        return marks[:, MARKS:].reshape(len(marks), self.memories, len(self.whole))

    def stage(self, memory: int) -> Stage:
        """The levels of a memory that is not the outermost."""
        stage = self._stages[memory]
        assert stage is not None
        return stage

    # ---- pruning ----------------------------------------------------------------------------------------------

    @property
    def _bounded(self) -> bool:
        return self.rules.limits and bool(np.isfinite(self.limits).any())

    def _within(
        self, cost: FloatArray, later: FloatArray, context: IntArray, spread: IntArray, mine: IntArray, placed: IntArray
    ) -> IntArray:
        """Rows whose cost so far, with the least cost of all that is still to come, is within the limits."""
        if not self._bounded or not len(cost):
            return np.arange(len(cost))
        total = cost + later[context, mine[context] & ~placed, spread]
        kept = np.flatnonzero((total <= self.limits).all(axis=1))
        self.counts["slack"] = self.counts.get("slack", 0) + len(cost) - len(kept)
        return kept

    def _hopeful(self, rows: Rows, memory: int, boundary: bool) -> NDArray[np.bool_]:
        """Mask of rows at `memory` within the limits. boundary: rows of the outermost memory's base are meant too."""
        good = np.zeros(len(rows), bool)
        marks = rows.marks
        if memory == 0 and boundary:
            good[self._promising(rows, 0)] = True
            return good
        stage = self.stage(memory)
        good[
            self._within(rows.cost, stage.later, marks[:, CONTEXT], marks[:, SPREAD], stage.mine, marks[:, PLACED])
        ] = True
        return good

    def _promising(self, rows: Rows, memory: int) -> IntArray:
        """Rows of a base within the limits."""
        if not self._bounded or not len(rows):
            return np.arange(len(rows))
        total = rows.cost + self._above[memory][rows.marks[:, CONTEXT], rows.marks[:, SPREAD]]
        kept = np.flatnonzero((total <= self.limits).all(axis=1))
        self.counts["slack"] = self.counts.get("slack", 0) + len(rows) - len(kept)
        return kept

    def front(self, rows: Rows, marks: tuple[int, ...], coming: CostToGo | None) -> Rows:
        """Rows that no other row with the same extents, promises and `marks` beats in every cost and occupancy.

        coming: what may still be added to the costs, the same for all rows that compete.
        """
        if not self.rules.dominance or len(rows) < 2:
            return rows
        kept = skyline(self.key(rows, marks), self.values(rows, coming))
        self.counts["dominated"] = self.counts.get("dominated", 0) + len(rows) - len(kept)
        return rows if len(kept) == len(rows) else rows.take(kept)

    def coming(self, rows: Rows, memory: int, base: bool = False) -> CostToGo | None:
        """What can still be added to rows at `memory`, where time counts. base: CONTEXT numbers its bases."""
        if not self.rules.settled or not self._times or not len(rows):
            return None
        context, spread = rows.marks[:, CONTEXT], rows.marks[:, SPREAD]
        if base or memory == 0:
            grows, least = self._growing[memory][context], self._above[memory][context, spread]
        else:
            stage = self.stage(memory)
            missing = stage.mine[context] & ~rows.marks[:, PLACED]
            grows, least = stage.grows[context, missing], stage.later[context, missing, spread]
        held = rows.marks[:, OPEN] | rows.marks[:, FRESH]
        for bit in range(len(self._deferred) if held.any() else 0):
            grows[np.flatnonzero(held >> bit & 1)] |= self._held_back[bit]
        return CostToGo(grows, least)

    @cached_property
    def _held_back(self) -> list[NDArray[np.bool_]]:
        """Per deferred link, as `_charging`."""
        return [self._charging(memory, parent * self.tensors + t) for t, parent, memory in self._deferred]

    def values(self, rows: Rows, coming: CostToGo | None) -> FloatArray:
        """What rows are compared by: every column that differs, or in a dive one weighted sum."""
        cost, limits = rows.cost, self.limits
        if coming is not None:
            cost, limits = coming.settled(cost, self._times), np.append(limits, limits[self._times].max())
        if self.rules.heuristic:
            cost = weighed(cost, limits)
        values = np.concatenate([cost, rows.occupied.astype(np.float64)], axis=1)
        used = values.max(axis=0) > values.min(axis=0)
        return np.ascontiguousarray(values[:, used]) if used.any() else values[:, :1]

    def key(self, rows: Rows, marks: tuple[int, ...]) -> IntArray:
        """One integer per distinct (extents, promises, marks)."""
        contexts = 1 + max(len(numbers) for group in (self.contexts.bases, self.contexts.levels) for numbers in group)
        sizes = {
            CONTEXT: contexts,
            SPREAD: len(self.pricing.spreads),
            PLACED: 1 << self.tensors,
            TOP: self.tensors + 1,
            TARGET: self.tensors,
        }
        if self._shapes:
            total, radix = rows.x @ self._strides, self._shapes
        else:
            total, radix = _numbered([rows.x[:, d] for d in range(rows.x.shape[1])])
        for mark in marks:
            total, radix = _joined(total, radix, rows.marks[:, mark] + (mark == TOP), sizes[mark])
        for mark in (PENDING, OPEN, FRESH, *range(MARKS, self.width)):
            if rows.marks[:, mark].any():
                total, radix = _joined(total, radix, *_dense(rows.marks[:, mark]))
        return total


def weighed(cost: FloatArray, limits: FloatArray) -> FloatArray:
    """One column: each cost as a share of its limit, added; the larger shares count more."""
    top = np.where(np.isfinite(limits), limits, cost.max(axis=0, initial=0.0))
    shares = cost / np.where(top > 0, top, 1.0)
    return np.asarray((shares + shares**4).sum(axis=1, keepdims=True))


def _joined(total: IntArray, radix: int, column: IntArray, count: int) -> tuple[IntArray, int]:
    """One integer for two: `total` below `radix`, `column` below `count`; and what it is below."""
    if radix * count >= 1 << 62:
        total, radix = _dense(total)
    return total * count + column, radix * count


def _numbered(columns: list[IntArray]) -> tuple[IntArray, int]:
    """One integer per distinct row of several columns, and what it is below."""
    total, radix = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        total, radix = _joined(total, radix, *_dense(column))
    return total, radix


def _dense(values: IntArray) -> tuple[IntArray, int]:
    """The rank of every value among the distinct ones, and how many these are."""
    low = values.min(initial=0)
    span = int(values.max(initial=0) - low) + 1
    if span > max(DENSE, 4 * len(values)):
        unique, found = np.unique(values, return_inverse=True)
        return found.reshape(-1), len(unique)
    known = np.zeros(span, np.int64)
    known[values - low] = 1
    ranks = np.cumsum(known)
    return np.asarray(ranks[values - low] - 1), int(ranks[-1])

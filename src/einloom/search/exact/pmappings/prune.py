"""The pruning of rows: what is beyond the limits or dominated goes (docs/model/pruning.md).

Comes in: rows, the arrays of their levels, and the largest useful value of each column. Goes out: the rows that some
optimal mapping may need.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....dataclass import dataclass
from ..numerics.divisibility import distinct
from ..numerics.narrow import every
from ..numerics.pareto import FloatArray, IntArray, compared, skyline
from .cost_to_go import CostToGo
from .levels import Levels
from .room_to_go import RoomToGo
from .rows import ABSORBED, CONTEXT, FRESH, NEXT, OPEN, PLACED, RIMS, SIDE, SPREAD, TARGET, TOP, TRIPS, Rows

PRIMES = (2, 3, 5, 7)
WORTH = 1 << 13  # rows of which it is worth asking what room leaves to their missing stores


@dataclass(frozen=True)
class Rules:
    """Pruning rules of the tables; each can be switched off.

    deferral, sliding: rows in which a store keeps its tile, or part of it, over loops further out. Off, the space is
    smaller.
    room: stores that are missing cost at least what the room that is left for them allows.
    relaxed: what the rows of a relaxation of uneven tiles do not leave goes before the tiles themselves are explored.
    smaller: rows also go for rows of smaller extents (`Pruner.extended`), where any loop may stand between any two
    stores: without *stationary* and *lowering*, and where all tiles divide.
    checked: *lowering* not where charges are put off, nor in fused parts; and each store that is placed is priced once
    more with one of the loops that the rule left out below it (`Expansion`).
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
    smaller: bool = False
    checked: bool = False
    settled: bool = True
    room: bool = True
    relaxed: bool = True
    heuristic: bool = False


def _strides(extents: tuple[int, ...]) -> tuple[IntArray, int]:
    """Weights that give every vector of tile extents its own integer, and how many there are (0: more than 62 bits)."""
    weights, product = [], 1
    for extent in extents:
        weights.append(product)
        product *= extent + 1
    if product >= 1 << 62:
        return np.zeros(len(extents), np.int64), 0
    return np.array(weights, np.int64), product


class Pruner:
    """Which rows stay. limits: largest useful value of each column. counts: what went, by rule."""

    def __init__(self, levels: Levels, limits: FloatArray, rules: Rules, counts: dict[str, int]) -> None:
        self.levels = levels
        self.limits = limits
        self.rules = rules
        self.counts = counts
        self._bounded = rules.limits and bool(np.isfinite(limits).any())
        self._strides, self._shapes = _strides(levels.prices.classes.extents)
        self._times = [i for i, column in enumerate(levels.prices.links.columns) if column.kind == "time"]
        self.pause = levels.prices.classes.checkpoint

    def count(self, rule: str, number: int) -> None:
        """So many more rows were looked at or went by `rule`."""
        self.counts[rule] = self.counts.get(rule, 0) + number

    def overfull(self, number: int) -> None:
        """So many rows were looked at before they had a store more, and leave too little room."""
        self.count("evaluated", number)
        self.count("capacity", number)

    def within(
        self, cost: FloatArray, marks: IntArray, memory: int, placed: IntArray, x: IntArray, occupied: IntArray
    ) -> IntArray:
        """Rows at `memory` whose cost so far, with the least cost of all that is still to come, is within the limits.

        marks, x, occupied: of the rows, with `placed` instead of the stores placed.
        """
        if not self._bounded or not len(cost):
            return np.arange(len(cost))
        arrays, context = self.levels.at(memory), marks[:, CONTEXT]
        missing = arrays.mine[context] & ~placed
        total = cost + arrays.later[context, missing, marks[:, SPREAD]]
        kept = np.flatnonzero(every(total <= self.limits))
        if self.rules.room and len(kept) >= WORTH and memory in self._rooms:
            kept = kept[self._fitting(total[kept], marks[kept], memory, missing[kept], x[kept], occupied[kept])]
        self.count("slack", len(cost) - len(kept))
        return kept

    def _fitting(
        self, total: FloatArray, marks: IntArray, memory: int, missing: IntArray, x: IntArray, occupied: IntArray
    ) -> NDArray[np.bool_]:
        """Mask of the rows within the limits if what is missing also has to fit into the memory together."""
        good = np.ones(len(total), bool)
        groups = (marks[:, CONTEXT] << self.levels.tensors) | missing
        left = self.levels.capacity(memory) - occupied[:, self.levels.limited.index(memory)]
        for group in np.flatnonzero(np.bincount(groups)).tolist():
            context, stores = divmod(group, 1 << self.levels.tensors)
            if stores.bit_count() > 1:
                mine = np.flatnonzero(groups == group)
                more = self._rooms[memory].of(x[mine], left[mine], context, stores, marks[mine, SPREAD])
                if more is not None:
                    good[mine] = every(total[mine] + more <= self.limits)
        return good

    @cached_property
    def _rooms(self) -> dict[int, RoomToGo]:
        """By memory that is limited and not the outermost."""
        return {memory: RoomToGo(self.levels, memory) for memory in self.levels.limited if memory > 0}

    def roomy(
        self, x: IntArray, occupied: IntArray, context: IntArray, placed: IntArray, memory: int
    ) -> NDArray[np.bool_]:
        """Mask of rows at extents x of `memory` that leave room for what is not placed there yet: at least the tiles
        that these stores would have now, because loops only make them larger."""
        if not memory or memory not in self.levels.limited:
            return np.ones(len(x), bool)
        taken = occupied[:, self.levels.limited.index(memory)].copy()
        missing = self.levels.at(memory).mine[context] & ~placed
        for t in range(self.levels.tensors):
            mine = np.flatnonzero(missing >> t & 1)
            if len(mine) == len(x):
                taken += self.levels.prices.tile_bits(t, x, memory)
            elif len(mine):
                taken[mine] += self.levels.prices.tile_bits(t, x.take(mine, axis=0), memory)
        return np.asarray(taken <= self.levels.capacity(memory))

    def hopeful(self, rows: Rows, memory: int, boundary: bool) -> NDArray[np.bool_]:
        """Mask of rows at `memory` within the limits. boundary: rows of the outermost memory's base are meant too."""
        good = np.zeros(len(rows), bool)
        if memory == 0 and boundary:
            good[self.promising(rows, 0)] = True
        else:
            placed = rows.marks[:, PLACED]
            good[self.within(rows.cost, rows.marks, memory, placed, rows.x, rows.occupied)] = True
        return good

    def promising(self, rows: Rows, memory: int) -> IntArray:
        """Rows of a base within the limits."""
        if not self._bounded or not len(rows):
            return np.arange(len(rows))
        total = rows.cost + self.levels.above[memory][rows.marks[:, CONTEXT], rows.marks[:, SPREAD]]
        kept = np.flatnonzero(every(total <= self.limits))
        self.count("slack", len(rows) - len(kept))
        return kept

    def front(self, rows: Rows, marks: tuple[int, ...], coming: CostToGo | None) -> Rows:
        """Rows that no other row with the same extents, promises and `marks` beats in every cost and occupancy.

        coming: what may still be added to the costs, the same for all rows that compete.
        """
        if not self.rules.dominance or len(rows) < 2:
            return rows
        key = self.key(rows, marks)
        self.pause()
        values = self.values(rows, coming)
        self.pause()
        kept = skyline(key, values, checkpoint=self.pause)
        self.pause()
        self.count("dominated", len(rows) - len(kept))
        return rows if len(kept) == len(rows) else rows.take(kept)

    def coming(self, rows: Rows, memory: int, base: bool = False) -> CostToGo | None:
        """What can still be added to rows at `memory`, where time counts. base: CONTEXT numbers its bases."""
        if not self.rules.settled or not self._times or not len(rows):
            return None
        context, spread = rows.marks[:, CONTEXT], rows.marks[:, SPREAD]
        if base or memory == 0:
            grows, least = self.levels.growing[memory][context], self.levels.above[memory][context, spread]
        else:
            arrays = self.levels.at(memory)
            missing = arrays.mine[context] & ~rows.marks[:, PLACED]
            grows, least = arrays.grows[context, missing], arrays.later[context, missing, spread]
        held = rows.marks[:, OPEN] | rows.marks[:, FRESH]
        for bit in range(len(self.levels.deferred) if held.any() else 0):
            grows[np.flatnonzero(held >> bit & 1)] |= self.levels.held_back[bit]
        return CostToGo(grows, least)

    def values(self, rows: Rows, coming: CostToGo | None) -> FloatArray:
        """What rows are compared by: every column that differs, or in a dive one weighted sum."""
        cost, limits = rows.cost, self.limits
        if coming is not None:
            cost, limits = coming.settled(cost, self._times), np.append(limits, limits[self._times].max())
        if self.rules.heuristic:
            cost = weighed(cost, limits)
        return compared(cost, rows.occupied)

    def extended(self, rows: Rows, coming: CostToGo | None) -> Rows:
        """The rows that get another store: without those that one of smaller extents, from which loops lead to theirs,
        equals or beats in every cost and occupancy."""
        marks = rows.marks
        plain = (marks[:, [OPEN, FRESH, ABSORBED, *range(NEXT, min(RIMS, marks.shape[1]))]] == 0).all(axis=1)
        stays = np.ones(len(rows), bool)
        for d in (d for d in range(rows.x.shape[1]) if d not in self.levels.prices.classes.pinned):
            some = np.flatnonzero(plain & stays)
            if len(some) < 2:
                continue
            self.pause()
            mine = rows.take(some)
            x = mine.x.copy()
            x[:, d], powers = _factored(mine.x[:, d])
            values = self.values(mine, None if coming is None else coming.take(some))
            key = self.key(mine, (CONTEXT, SPREAD, PLACED, TOP), x)
            stays[some] = False
            stays[some[skyline(key, np.column_stack([values, powers]), checkpoint=self.pause)]] = True
        self.count("dominated", int((~stays).sum()))
        return rows.take(np.flatnonzero(stays))

    def key(self, rows: Rows, marks: tuple[int, ...], x: IntArray | None = None) -> IntArray:
        """One integer per distinct (extents, promises, marks). x: instead of the rows' extents."""
        x = rows.x if x is None else x
        contexts, tensors = self.levels.contexts, self.levels.tensors
        most = max(len(numbers) for group in (contexts.bases, contexts.levels) for numbers in group)
        sizes = {
            CONTEXT: 1 + most,
            SPREAD: len(self.levels.prices.links.spreads),
            PLACED: 1 << tensors,
            TOP: tensors + 1,
            TARGET: tensors,
        }
        if self._shapes:
            total, radix = x @ self._strides, self._shapes
        else:
            total, radix = _numbered([x[:, d] for d in range(x.shape[1])])
        for mark in marks:
            total, radix = _joined(total, radix, rows.marks[:, mark] + (mark == TOP), sizes[mark])
        promise = (SIDE, NEXT, TRIPS) if rows.marks.shape[1] > NEXT else ()
        some = np.bitwise_or.reduce(rows.marks, axis=0)
        for mark in (*promise, ABSORBED, OPEN, FRESH, *range(RIMS, rows.marks.shape[1])):
            if some[mark]:
                total, radix = _joined(total, radix, *_dense(rows.marks[:, mark]))
        return total


def weighed(cost: FloatArray, limits: FloatArray) -> FloatArray:
    """One column: each cost as a share of its limit, added; the larger shares count more."""
    top = np.where(np.isfinite(limits), limits, cost.max(axis=0, initial=0.0))
    shares = cost / np.where(top > 0, top, 1.0)
    return np.asarray((shares + shares**4).sum(axis=1, keepdims=True))


def _factored(x: IntArray) -> tuple[IntArray, IntArray]:
    """What is left of numbers without their factors 2, 3, 5 and 7, and the powers of these, a column each."""
    rest, powers = x.copy(), np.zeros((len(x), len(PRIMES)), np.int64)
    for column, prime in enumerate(PRIMES):
        some = np.flatnonzero(rest % prime == 0)
        while len(some):
            rest[some] //= prime
            powers[some, column] += 1
            some = some[rest[some] % prime == 0]
    return rest, powers[:, powers.any(axis=0)]


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
    unique, place = distinct(values - values.min(initial=0))
    return place, len(unique)

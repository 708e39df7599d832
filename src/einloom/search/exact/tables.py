"""Everything below a boundary, from the leaf outwards: Pareto rows by boundary tile.

Comes in: an Einsum's signature, one unit, one spatial choice, one choice of held tensors. Goes out: for each memory and
each subset of its stores, the undominated ways to place those stores and everything below, as rows (extents at the top,
costs, occupancy). Costs are totals over the whole run, so a loop changes nothing but the extents: a store's cost
depends only on the extents where it is placed. Levels nest, and levels below are shared by all choices above that
look alike.

Which loops may stand between two neighbouring stores is cut down by two rules (docs/model/pruning.md): a loop directly
above a store that lacks its variable moves below it (``stationary``), a loop directly below a store that its variable
indexes alone moves above it (``lowering``). Neither is used for the variables of tensors with sliding windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from .pricing import Pricing
from .rows import ABSORBED, FAR, LEAF, NEAR, PEND, Rows, union, wrapped
from .signature import Held
from .skyline import FloatArray, IntArray, skyline
from .spatial import divisors
from .tiles import Tiles


@dataclass(frozen=True)
class Rules:
    """Pruning rules of the tables; each can be switched off.

    dive: compare rows by one weighted sum of their columns instead of every column. Quick, not exact: what comes out is
    a feasible mapping, an upper bound.
    """

    stationary: bool = True
    lowering: bool = True
    deferral: bool = True
    dominance: bool = True
    limits: bool = True
    dive: bool = False


State = tuple[frozenset[int], int]


def _strides(extents: tuple[int, ...]) -> IntArray | None:
    """Weights that give every vector of tile extents its own integer; None if that does not fit 62 bits."""
    weights, product = [], 1
    for extent in extents:
        weights.append(product)
        product *= extent + 1
    return np.array(weights, np.int64) if product < 1 << 62 else None


class Tables(Tiles):
    """The tables of one Einsum for one unit and spatial choice; `level(m, held)` answers per choice of held tensors."""

    def __init__(
        self,
        pricing: Pricing,
        capacities: tuple[int | None, ...],
        tracked: tuple[int, ...],
        shares: tuple[int, ...],
        limits: FloatArray,
        rules: Rules,
        counts: dict[str, int],
    ) -> None:
        super().__init__(pricing, shares)
        self.capacities = capacities
        self.tracked = tracked
        self.limits = limits
        self.rules = rules
        self.counts = counts
        self._bases: dict[object, list[tuple[Rows, int]]] = {}
        self._levels: dict[object, dict[State, Rows]] = {}
        s = self.classes.signature
        self.sliding = next((t for t, tensor in enumerate(s.tensors) if tensor.slides), None)
        self.limited = tuple(m for m, c in enumerate(capacities) if c is not None)
        self._strides = _strides(self.classes.extents)
        self._options: dict[tuple[int, int, int], tuple[IntArray, IntArray, IntArray, IntArray]] = {}

    # ---- steps ------------------------------------------------------------------------------------------------

    def leaf(self, held: Held) -> Rows:
        """The single row of the leaf: extents one, operations and the traffic of the innermost stores."""
        dims = len(self.classes.members)
        x = np.ones((1, dims), np.int64)
        cost = self.pricing.compute[None, :].copy()
        signature = self.classes.signature
        inner = [max(m for m, h in enumerate(held) if t in h) for t in range(len(signature.tensors))]
        if signature.copy:
            read, write = self.pricing.copied(inner[1], inner[0])
            cost = cost + read * self.moved(1, x, None)[0] + write * self.moved(0, x, None)[0]
        else:
            for t in range(len(signature.tensors)):
                price, skipped = self.link(t, inner[t], None)
                cost = cost + price * self.moved(t, x, None)[0] - skipped * self.elements(t)
        zero = np.zeros(1, np.int64)
        return Rows(
            x,
            cost,
            np.zeros((1, len(self.limited)), np.int64),
            zero,
            zero,
            zero,
            ("leaf",),
            (),
            np.zeros(1, np.int32),
            zero,
        )

    def elements(self, tensor: int) -> int:
        """Elements of an output: each of its ranks is one plain variable."""
        signature = self.classes.signature
        return prod(signature.extents[v] for rank in signature.tensors[tensor].ranks for v, _ in rank)

    def loops(self, rows: Rows, dims: list[int], fanouts_above: int) -> Rows:
        """Every choice of one loop per class in `dims` above `rows` (trips 1 included)."""
        index = np.arange(len(rows))
        x = rows.x
        for d in dims:
            x, index = self._multiples(x, index, d, fanouts_above, 1)
        pending = rows.pending[index]
        if self.sliding is not None and pending.any():
            keep, pending = self._resolve(rows.x[index], x, pending)
            x, index, pending = x[keep], index[keep], pending[keep]
        return rows.derived(index, ("loops", None), x=x, pending=pending)

    def _multiples(
        self, x: IntArray, index: IntArray, d: int, fanouts_above: int, least: int
    ) -> tuple[IntArray, IntArray]:
        """Rows with every loop of at least `least` trips over class d; rows that no trip count fits are dropped."""
        key = (d, fanouts_above, least)
        if key not in self._options:
            room = self.classes.extents[d] // self._still_spread(d, fanouts_above)
            values = np.array(divisors(room), np.int64)
            options = [np.flatnonzero((values % v == 0) & (values >= least * v)) for v in values]
            sizes = np.array([len(o) for o in options])
            self._options[key] = (values, sizes, np.concatenate(options), np.cumsum(sizes) - sizes)
        values, sizes, flat, offsets = self._options[key]
        at = np.searchsorted(values, x[:, d])
        fits = (at < len(values)) & (values[np.minimum(at, len(values) - 1)] == x[:, d])
        if not fits.all():
            x, index, at = x[fits], index[fits], at[fits]
        counts = sizes[at]
        repeat = np.repeat(np.arange(len(at)), counts)
        within = np.arange(len(repeat)) - np.repeat(np.cumsum(counts) - counts, counts)
        x = x[repeat]
        x[:, d] = values[flat[offsets[at[repeat]] + within]]
        return x, index[repeat]

    def ordered_loops(
        self, rows: Rows, dims: list[int], at: int, held: Held, rest: list[int] | None, first: bool = True
    ) -> list[Rows]:
        """Loops above rows with open stores, innermost first, in every order that decides what those stores keep.

        A store keeps its tile over loops that its tensor lacks until the first loop that it has: then it is charged.
        dims: classes still without a loop here. rest: classes that may follow once all are charged; None stops there.
        The first loop must be one that every open tensor lacks, unless such a loop stands further in already: otherwise
        charging at once is the same.
        """
        found = []
        fanouts_above = self.pricing.above[at]
        for d in dims:
            start = rows
            if first:
                kept_so_far = (rows.open & ABSORBED) > 0
                start = rows.take(np.flatnonzero(kept_so_far | ((rows.open & self._bits_of(d)) == 0)))
            x, index = self._multiples(start.x, np.arange(len(start)), d, fanouts_above, 2)
            if not len(index):
                continue
            charged = self.charge(start, d, at, held)
            pending = start.pending[index]
            if self.sliding is not None and pending.any():
                keep, pending = self._resolve(start.x[index], x, pending)
                x, index, pending = x[keep], index[keep], pending[keep]
            opened = charged.open[index]
            opened = np.where(opened & ~np.int64(ABSORBED), opened | np.int64(ABSORBED), 0)
            step = charged.derived(index, ("loops", d), x=x, pending=pending, open=opened)
            step = step.take(np.flatnonzero(self._hopeful(step.cost, np.ones(len(step), bool))))
            others = [e for e in dims if e != d]
            done = np.flatnonzero(step.open == 0)
            if len(done) and rest is None:
                found.append(step.take(done))
            elif len(done) and rest is not None:
                found.append(self.loops(step.take(done), [e for e in rest if e != d], fanouts_above))
            left = np.flatnonzero(step.open != 0)
            if len(left):
                kept = self.front(step.take(left))
                found.append(kept)
                found.extend(self.ordered_loops(kept, others, at, held, rest, False))
        return found

    def _bits_of(self, d: int) -> np.int64:
        """Bits of all stores whose tensor has class d."""
        tensors = len(self.classes.signature.tensors)
        bits = 0
        for m in range(len(self.pricing.above)):
            for t in range(tensors):
                if self.classes.relevant(t, d):
                    bits |= 1 << (m * tensors + t)
        return np.int64(bits)

    def charge(self, rows: Rows, d: int | None, at: int, held: Held) -> Rows:
        """Charge the open stores whose tensor has class d (all if None) at the extents at memory `at`."""
        bits = int(np.bitwise_or.reduce(rows.open)) % ABSORBED if len(rows) else 0
        tensors = len(self.classes.signature.tensors)
        cost, still = rows.cost, rows.open
        for bit in range(bits.bit_length()):
            memory, tensor = divmod(bit, tensors)
            if not bits >> bit & 1 or (d is not None and not self.classes.relevant(tensor, d)):
                continue
            mine = np.flatnonzero(still >> bit & 1)
            cost = cost.copy()
            for code in np.unique(rows.pending[mine]) if tensor == self.sliding else [None]:
                chosen = mine if code is None else mine[rows.pending[mine] == code]
                cost[chosen] += self._moves_cost(tensor, memory, rows.x[chosen], code, at, held)
            still = still & ~np.int64(1 << bit)
        still = np.where(still & ~np.int64(ABSORBED), still, 0)
        return rows.derived(np.arange(len(rows)), ("same",), cost=cost, open=still)

    def _moves_cost(self, tensor: int, memory: int, x: IntArray, code: int | None, at: int, held: Held) -> FloatArray:
        """Cost of an open store's moves when the next loop is one that its tensor has."""
        slide = None
        if code:
            d = int(code % FAR // PEND)
            inside = self.pricing.instances[memory][d] // self.pricing.instances[at][d]
            slide = (d, int(code % PEND), inside)
        parent = max(m for m in range(memory) if tensor in held[m])
        price, skipped = self.link(tensor, parent, memory)
        moved = self.moved(tensor, x, memory, slide, at)
        return np.asarray(moved[:, None] * price - self.elements(tensor) * skipped)

    def _resolve(self, before: IntArray, after: IntArray, pending: IntArray) -> tuple[NDArray[np.bool_], IntArray]:
        """Which rows keep the promise of a sliding loop, and what is still pending."""
        assert self.sliding is not None
        trips = after // before
        mine = [d for d in range(trips.shape[1]) if self.classes.relevant(self.sliding, d)]
        touched = (trips[:, mine] > 1).any(axis=1)
        code = pending % FAR
        promised = trips[np.arange(len(trips)), code // PEND]
        far = (pending & FAR) > 0
        keep = (pending == 0) | ~touched | ((promised == code % PEND) & ~far)
        return keep, np.where(touched, 0, pending)

    def _still_spread(self, d: int, fanouts_above: int) -> int:
        axes = [a for a in self.classes.signature.axes if a.fanout < self.pricing.fanouts]
        return prod(row[d] for a, row in zip(axes, self.pricing.spread, strict=True) if a.fanout < fanouts_above)

    def store(self, rows: Rows, tensor: int, memory: int, parent: int, later: FloatArray) -> Rows:
        """Place a store of `tensor` in `memory` on top of `rows`; over-full and hopeless rows are dropped.

        later: what the stores still to come in this memory cost at least.
        """
        parts = []
        for slide in self._slides(tensor, memory):
            for deferred in (False, True) if self._may_defer(tensor, memory, parent) else (False,):
                part = self._store_one(rows, tensor, memory, parent, slide, deferred, later)
                if len(part):
                    parts.append(part)
        if not parts:
            return rows.take(np.zeros(0, np.int64))
        return union(parts)

    def _may_defer(self, tensor: int, memory: int, parent: int) -> bool:
        """True if stores of a memory further out may come between this store and the first loop that its tensor has."""
        price, _ = self.link(tensor, parent, memory)
        lacks = any(not self.classes.relevant(tensor, d) for d in range(len(self.classes.members)))
        return self.rules.deferral and memory > 1 and lacks and bool(price.any())

    def _slides(self, tensor: int, memory: int) -> list[tuple[int, int, int] | None]:
        """The choices of the next loop on the sliding tensor: none in particular, or a class, its trips and FAR or
        NEAR."""
        found: list[tuple[int, int, int] | None] = [None]
        if tensor != self.sliding:
            return found
        signature = self.classes.signature.tensors[tensor]
        dims = {self.classes.of[v] for rank in signature.ranks if len(rank) > 1 for v, _ in rank}
        for d in sorted(dims):
            sides = (0,) if self._inside(d, memory) == 1 else (NEAR, FAR)
            found.extend((d, n, side) for n in divisors(self.classes.extents[d]) if n > 1 for side in sides)
        return found

    def _store_one(
        self,
        rows: Rows,
        tensor: int,
        memory: int,
        parent: int,
        choice: tuple[int, int, int] | None,
        deferred: bool,
        later: FloatArray,
    ) -> Rows:
        index = np.arange(len(rows))
        code, slide = 0, None
        if choice is not None:
            d, n, side = choice
            code = d * PEND + n + side
            slide = (d, n, 1 if side == NEAR else self._inside(d, memory))
        if tensor == self.sliding:
            keep = (rows.pending == 0) | (rows.pending == code)
            if slide is not None:
                spread = self.pricing.instances[memory][slide[0]]
                keep = keep & (self.classes.extents[slide[0]] % (rows.x[:, slide[0]] * slide[1] * spread) == 0)
            index = index[keep]
        x = rows.x[index]
        cost = rows.cost[index]
        bit = np.int64(1 << (memory * len(self.classes.signature.tensors) + tensor))
        crossing = self._outside(memory)
        opened, fresh = rows.open[index] | (rows.fresh[index] & crossing), rows.fresh[index] & ~crossing
        if deferred:
            fresh = fresh | bit
        else:
            price, skipped = self.link(tensor, parent, memory)
            moved = self.moved(tensor, x, memory, slide)
            cost = cost + moved[:, None] * price - self.elements(tensor) * skipped
        occupied = rows.occupied[index]
        good = np.ones(len(index), bool)
        if memory in self.limited:
            at = self.limited.index(memory)
            occupied = occupied.copy()
            occupied[:, at] += self.tile_bits(tensor, x, memory)
            capacity = self.capacities[memory]
            assert capacity is not None
            good = occupied[:, at] <= capacity
            self.counts["capacity"] = self.counts.get("capacity", 0) + int((~good).sum())
        good &= self._hopeful(cost + later, good)
        pending = rows.pending[index] if choice is None else np.full(len(index), code, np.int64)
        kept = np.flatnonzero(good)
        self.counts["evaluated"] = self.counts.get("evaluated", 0) + len(index)
        return rows.derived(
            index[kept],
            ("store", memory, tensor),
            cost=cost[kept],
            occupied=occupied[kept],
            pending=pending[kept],
            open=opened[kept],
            fresh=fresh[kept],
        )

    def _outside(self, memory: int) -> np.int64:
        """Bits of the stores in memories further in than `memory`."""
        return np.int64(-1) << np.int64((memory + 1) * len(self.classes.signature.tensors))

    def _hopeful(self, cost: FloatArray, good: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows whose cost so far is within the limits."""
        if not self.rules.limits:
            return np.ones(len(cost), bool)
        hopeful = np.asarray((cost <= self.limits).all(axis=1))
        self.counts["slack"] = self.counts.get("slack", 0) + int((good & ~hopeful).sum())
        return hopeful

    def front(self, rows: Rows) -> Rows:
        """Rows that no other row with the same extents and promise beats in every cost and occupancy."""
        if not self.rules.dominance or len(rows) < 2:
            return rows
        keys = self.key(rows)
        cost = self.weighed(rows.cost) if self.rules.dive else rows.cost
        values = np.concatenate([cost, rows.occupied.astype(np.float64)], axis=1)
        used = values.max(axis=0) > values.min(axis=0)
        kept = skyline(keys, np.ascontiguousarray(values[:, used]) if used.any() else values[:, :1])
        self.counts["dominated"] = self.counts.get("dominated", 0) + len(rows) - len(kept)
        return rows.take(kept)

    def weighed(self, cost: FloatArray) -> FloatArray:
        """One column: each cost as a share of its limit, added; the larger shares count more."""
        top = np.where(np.isfinite(self.limits), self.limits, cost.max(axis=0, initial=0.0))
        shares = cost / np.where(top > 0, top, 1.0)
        return np.asarray((shares + shares**4).sum(axis=1, keepdims=True))

    def key(self, rows: Rows) -> IntArray:
        """One integer per distinct (extents, promises)."""
        if self._strides is None:
            columns = [rows.x[:, d] for d in range(rows.x.shape[1])]
        else:
            columns = [rows.x @ self._strides]
        for promise in (rows.pending, rows.open, rows.fresh):
            if promise.any():
                columns.append(promise)
        total = columns[0]
        for column in columns[1:]:
            _, low = np.unique(total, return_inverse=True)
            second, high = np.unique(column, return_inverse=True)
            total = low.reshape(-1) * len(second) + high.reshape(-1)
        return total

    # ---- levels -----------------------------------------------------------------------------------------------

    def base(self, memory: int, held: Held, own: Held | None = None) -> list[tuple[Rows, int]]:
        """Complete rows of everything below `memory`'s own stores, with the topmost store (LEAF if none) of each
        block."""
        placing = held if own is None else own
        above = any(self._placeable(placing, held, m) for m in range(1, memory + 1))
        key = (memory, held[memory + 1 :], placing[memory + 1 :], self._parents(held, memory + 1), above)
        if key not in self._bases:
            if memory == len(self.pricing.above) - 1:
                blocks = [(self.leaf(held), LEAF)]
                below = self.pricing.fanouts
            else:
                states = self.level(memory + 1, held, own)
                full = self._placeable(placing, held, memory + 1)
                blocks = [(rows, top) for (placed, top), rows in states.items() if placed == full]
                blocks = [(self._forget(rows, memory + 1), top) for rows, top in blocks]
                if not above:
                    blocks = [(rows.take(np.flatnonzero(rows.fresh == 0)), top) for rows, top in blocks]
                below = self.pricing.above[memory + 1]
            self._bases[key] = [(self._cross(rows, memory, below), top) for rows, top in blocks]
        return self._bases[key]

    def compulsory(self, held: Held, stores: list[tuple[int, int]]) -> FloatArray:
        """The least cost of (tensor, memory) stores: every element of a plain tensor moves once."""
        total = np.zeros(len(self.pricing.columns))
        for t, m in stores:
            signature = self.classes.signature.tensors[t]
            if all(signature.simple(r) for r in range(len(signature.ranks))):
                parent = max(p for p in range(m) if t in held[p])
                price, skipped = self.link(t, parent, m)
                total = total + self.elements(t) * (price - skipped)
        return total

    def floor(self, held: Held) -> FloatArray:
        """The least cost of a choice of stores: the leaf, and every own store filled once."""
        stores = [(t, m) for m in range(1, len(held)) for t in self._placeable(held, held, m)]
        return np.asarray(self.leaf(held).cost[0] + self.compulsory(held, stores))

    def _placeable(self, placing: Held, held: Held, memory: int) -> frozenset[int]:
        """The tensors that have a store of their own, not a backing one, in `memory`."""
        return frozenset(t for t in placing[memory] if any(t in h for h in held[:memory]))

    def _forget(self, rows: Rows, memory: int) -> Rows:
        """Drop the occupancy of a memory that no other Einsum shares; it has been checked."""
        if memory not in self.limited or memory in self.tracked:
            return rows
        at = self.limited.index(memory)
        if not rows.occupied[:, at].any():
            return rows
        occupied = rows.occupied.copy()
        occupied[:, at] = 0
        again = rows.take(np.arange(len(rows)))
        again.occupied = occupied
        return self.front(again)

    def _cross(self, rows: Rows, memory: int, below: int) -> Rows:
        """Spread the rows over the fanouts between `memory` and what is below it."""
        axes = [a for a in self.classes.signature.axes if a.fanout < self.pricing.fanouts]
        factor = np.ones(len(self.classes.members), np.int64)
        for axis, row in zip(axes, self.pricing.spread, strict=True):
            if self.pricing.above[memory] <= axis.fanout < below:
                factor = factor * np.array(row, np.int64)
        if self.pricing.above[memory] == below:
            return rows
        near = (rows.pending & NEAR) > 0
        index = np.flatnonzero(~near)
        return rows.derived(
            index, ("cross", memory), x=rows.x[index] * factor, pending=rows.pending[index] & ~np.int64(FAR)
        )

    def level(self, memory: int, held: Held, own: Held | None = None) -> dict[State, Rows]:
        """Rows for every subset of `memory`'s stores placed, by (subset, topmost store)."""
        placing = held if own is None else own
        above = any(self._placeable(placing, held, m) for m in range(1, memory))
        key = (memory, held[memory:], placing[memory:], self._parents(held, memory), above)
        if key in self._levels:
            return self._levels[key]
        states: dict[State, list[Rows]] = {}
        for rows, top in self.base(memory, held, own):
            states.setdefault((frozenset(), top), []).append(rows)
        done: dict[State, Rows] = {}
        mine = sorted(self._placeable(placing, held, memory))
        set_mine = frozenset(mine)
        for count in range(len(mine) + 1):
            for subset in combinations(mine, count):
                placed = frozenset(subset)
                for state in [s for s in states if s[0] == placed]:
                    done[state] = self._merge(states[state])
                    for tensor in sorted(set(mine) - placed):
                        grown = self._grow(done[state], state[1], tensor, memory, held, set_mine - placed - {tensor})
                        if len(grown):
                            states.setdefault((placed | {tensor}, tensor), []).append(grown)
        self._levels[key] = done
        return done

    def _merge(self, parts: list[Rows]) -> Rows:
        return parts[0] if len(parts) == 1 else self.front(union(parts))

    def _grow(self, rows: Rows, top: int, tensor: int, memory: int, held: Held, missing: frozenset[int]) -> Rows:
        """Rows with one more store; `missing`: the stores of this memory that still come after it."""
        later = self.compulsory(held, [(t, memory) for t in missing])
        parent = max(m for m in range(memory) if tensor in held[m])
        dims = [d for d in range(len(self.classes.members)) if self._may_stand(d, top, tensor)]
        free = np.flatnonzero((rows.open == 0) & (rows.fresh == 0))
        waiting = np.flatnonzero(rows.fresh != 0)
        open_rows = np.flatnonzero((rows.open != 0) & (rows.fresh == 0))
        parts = [rows.take(waiting)] if len(waiting) else []
        if len(free):
            parts.append(self.loops(rows.take(free), dims, self.pricing.above[memory]))
        if len(open_rows):
            every = list(range(len(self.classes.members)))
            chosen = rows.take(open_rows)
            rest = (
                [d for d in every if not (self.classes.relevant(tensor, d) and self.classes.plain(tensor, d))]
                if self.rules.lowering
                else every
            )
            parts.append(chosen)
            parts.extend(self.ordered_loops(chosen, every, memory, held, rest))
        placed = [p for part in parts if len(part) and len(p := self.store(part, tensor, memory, parent, later))]
        return self.front(union(placed)) if placed else rows.take(np.zeros(0, np.int64))

    def closed(self, rows: Rows, memory: int, held: Held) -> Rows:
        """Complete rows as a boundary at `memory` sees them: open stores are charged, over loops inside the boundary.

        Rows with fresh stores go: charging those at once, or lowering the loops below them, is as good.
        """
        done = np.flatnonzero((rows.open == 0) & (rows.fresh == 0))
        parts = [wrapped(rows.take(done))]
        open_rows = np.flatnonzero((rows.open != 0) & (rows.fresh == 0))
        if len(open_rows):
            every = list(range(len(self.classes.members)))
            chosen = rows.take(open_rows)
            absorbed = chosen.take(np.flatnonzero((chosen.open & ABSORBED) > 0))
            for part in (absorbed, *self.ordered_loops(chosen, every, memory, held, None)):
                charged = self.charge(part, None, memory, held)
                hopeful = np.flatnonzero(self._hopeful(charged.cost, np.ones(len(charged), bool)))
                if len(hopeful):
                    parts.append(charged.take(hopeful))
        return self.front(union([p for p in parts if len(p)])) if any(len(p) for p in parts) else parts[0]

    def _may_stand(self, d: int, top: int, tensor: int) -> bool:
        """True if a loop of class d is worth considering between store `top` (below) and a store of `tensor`."""
        if self.sliding is not None and self.classes.relevant(self.sliding, d):
            return True
        if self.rules.stationary and top != LEAF and not self.classes.relevant(top, d):
            return False
        return not (self.rules.lowering and self.classes.relevant(tensor, d) and self.classes.plain(tensor, d))

    def _parents(self, held: Held, memory: int) -> tuple[int, ...]:
        """For each tensor the innermost memory above `memory` that holds it (its parent from there on), else -1."""
        return tuple(
            max((m for m in range(memory) if t in held[m]), default=-1)
            for t in range(len(self.classes.signature.tensors))
        )

    def relaxed(self, held: Held, own: tuple[frozenset[int], ...], whole: IntArray) -> list[Rows]:
        """Rows with every own store of `held` placed and no backing store below the outermost memory, unfused."""
        found = []
        for rows, _ in self.base(0, held, own):
            done = self.closed(rows, 0, held)
            fits = (whole % done.x == 0).all(axis=1)
            found.append(done.take(np.flatnonzero(fits)))
        return found

"""The steps of the tables: loops above rows, stores on top of them, and charges that were put off.

Comes in: rows. Goes out: rows with one loop per class or one store more; over-full and hopeless ones are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.divisibility import divisors
from ..numerics.multiples import Multiples, UnevenMultiples
from ..numerics.pareto import FloatArray, IntArray
from ..prices.traffic import Slide
from .prune import Stages
from .rows import ABSORBED, CONTEXT, FAR, FRESH, MARKS, NEAR, OPEN, PEND, PENDING, PLACED, SPREAD, TARGET, Rows

CHUNK = 1 << 18  # rows that are grown at a time


class Steps(Stages):
    """Rows from rows, for all contexts at once."""

    # ---- loops ------------------------------------------------------------------------------------------------

    def _loop(self, d: int, at: int, least: int) -> Multiples:
        key = (d, at, least)
        if key not in self._multiples:
            extent, instances = int(self.whole[d]), self.pricing.instances[at][:, d]
            self._multiples[key] = (
                UnevenMultiples(extent, instances, least, d in self.classes.pinned)
                if self.uneven[d]
                else Multiples(extent, self.whole[d] // instances, least)
            )
        return self._multiples[key]

    @cached_property
    def _multiples(self) -> dict[tuple[int, int, int], Multiples]:
        return {}

    def _loops(
        self, x: IntArray, spread: IntArray, may: NDArray[np.bool_], at: int
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Every choice of one loop per class that a row may have (trips 1 included): (extents, row), in chunks."""
        dims = [d for d in range(len(self.whole)) if may[:, d].any()]
        counts = np.ones(len(x), np.int64)
        for d in dims:
            multiples = self._loop(d, at, 1)
            places = multiples.at(x[:, d], spread)
            counts *= np.where(may[:, d], multiples.sizes[places], 1)
        ends = np.cumsum(counts)
        start = 0
        while start < len(x):
            done = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
            index = np.arange(start, stop)
            grown = x[start:stop]
            for d in dims:
                grown, index, _ = self._loop(d, at, 1).grow(grown, index, d, spread[index], may[index, d])
            yield grown, index
            start = stop

    def _ordered(self, rows: Rows, dims: list[int], at: int, closing: bool, first: bool = True) -> list[Rows]:
        """Loops above rows with open stores, innermost first, in every order that decides what those stores keep.

        A store keeps its tile over loops that its tensor lacks until the first loop that it has: then it is charged.
        dims: classes still without a loop here. closing: nothing follows once all are charged; else loops that may
        stand below a store of TARGET do. The first loop must be one that every open tensor lacks, unless such a loop
        stands further in already: otherwise charging at once is the same.
        """
        found = []
        for d in dims:
            start = rows
            if first:
                opened = rows.marks[:, OPEN]
                start = rows.take(np.flatnonzero(((opened & ABSORBED) > 0) | ((opened & self._bits_of(d)) == 0)))
            x, index, _ = self._loop(d, at, 2).grow(start.x, np.arange(len(start)), d, start.marks[:, SPREAD])
            if not len(index):
                continue
            step, sound = self._charge(start, d, at)
            index, x = index[sound[index]], x[sound[index]]
            step = step.take(index)
            pending = step.marks[:, PENDING]
            kept = self._resolve(start.x[index], x, pending)
            opened = step.marks[:, OPEN]
            opened = np.where(opened & ~np.int64(ABSORBED), opened | np.int64(ABSORBED), 0)
            step = step.derived(np.arange(len(step)), ("loops", d), x=x, pending=kept[1], open=opened)
            step = step.take(np.flatnonzero(kept[0] & self._hopeful(step, at, closing)))
            found += self._after(step, [e for e in dims if e != d], d, at, closing)
        return found

    def _after(self, step: Rows, others: list[int], d: int, at: int, closing: bool) -> list[Rows]:
        """`_ordered` after its loop over class d."""
        found: list[Rows] = []
        done = np.flatnonzero(step.marks[:, OPEN] == 0)
        if len(done) and closing:
            found.append(step.take(done))
        elif len(done):
            ready = step.take(done)
            may = self._rest[ready.marks[:, TARGET]].copy()
            may[:, [e for e in range(len(self.whole)) if e not in others]] = False
            for x, index in self._loops(ready.x, ready.marks[:, SPREAD], may, at):
                keep, pending = self._resolve(ready.x[index], x, ready.marks[index, PENDING])
                found.append(ready.derived(index[keep], ("loops", None), x=x[keep], pending=pending[keep]))
        left = np.flatnonzero(step.marks[:, OPEN] != 0)
        if len(left):
            step = step.take(left)
            kept = self.front(step, (CONTEXT, SPREAD, PLACED, TARGET), self.coming(step, at))
            found.append(kept)
            found += self._ordered(kept, others, at, closing, False)
        return found

    @cached_property
    def _rest(self) -> NDArray[np.bool_]:
        """[tensors, classes]: may a loop stand directly below a store of the tensor?"""
        if not self.rules.lowering:
            return np.ones_like(self._relevant)
        moves = [d not in self.classes.pinned for d in range(len(self.whole))]
        plain = [[self.classes.plain(t, d) and moves[d] for d in range(len(self.whole))] for t in range(self.tensors)]
        return np.asarray(~(self._relevant & np.array(plain, bool).reshape(self._relevant.shape)))

    @cached_property
    def _may_stand(self) -> NDArray[np.bool_]:
        """[top + 1, tensors, classes]: is a loop worth considering between store `top` below and a store of the
        tensor?"""
        below = np.ones((self.tensors + 1, 1, len(self.whole)), bool)
        if self.rules.stationary:
            below[1:, 0] = self._relevant
        may = below & self._rest
        if self.sliding is not None:
            may |= self._relevant[self.sliding]
        return np.asarray(may)

    def _bits_of(self, d: int) -> np.int64:
        """Bits of all links whose tensor has class d."""
        return np.int64(sum(1 << i for i, (t, _, _) in enumerate(self._deferred) if self._relevant[t, d]))

    def _charge(self, rows: Rows, d: int | None, at: int) -> tuple[Rows, NDArray[np.bool_]]:
        """Charge the open stores whose tensor has class d (all if None) at the extents at memory `at`.

        Also a mask of the rows in which nothing comes again that may come once only.
        """
        sound = np.ones(len(rows), bool)
        opened, spread = rows.marks[:, OPEN], rows.marks[:, SPREAD]
        bits = int(np.bitwise_or.reduce(opened)) % ABSORBED if len(rows) else 0
        cost, still = rows.cost.copy(), opened
        for bit, (tensor, parent, memory) in enumerate(self._deferred):
            if not bits >> bit & 1 or (d is not None and not self._relevant[tensor, d]):
                continue
            mine = np.flatnonzero(still >> bit & 1)
            sound[mine] &= ~self.again(memory, tensor, rows.x[mine], spread[mine], at)
            pending = rows.marks[mine, PENDING]
            for code in np.unique(pending).tolist() if tensor == self.sliding else [0]:
                chosen = mine if tensor != self.sliding else mine[pending == code]
                rims = self._rims(rows.marks[chosen])
                place = (tensor, parent, memory)
                slide = self._slide(code, memory, at)
                cost[chosen] += self.charged(place, rows.x[chosen], spread[chosen], slide, at, rims)
            still = still & ~np.int64(1 << bit)
        still = np.where(still & ~np.int64(ABSORBED), still, 0)
        alike = np.where(still == 0, self.pricing.alike[at][spread], spread)
        charged = rows.derived(np.arange(len(rows)), ("same",), cost=cost, open=still, spread=alike)
        if self.width > MARKS:
            charged.marks[still == 0, MARKS:] = 0
        return charged, sound

    def _slide(self, code: int, memory: int, at: int) -> Slide | None:
        """The sliding loop that a promise names, for a store of `memory` seen from `at`."""
        if not code:
            return None
        d = code % FAR // PEND
        inside = self.pricing.instances[memory][0, d] // self.pricing.instances[at][0, d]
        return d, code % PEND, int(inside)

    def _resolve(self, before: IntArray, after: IntArray, pending: IntArray) -> tuple[NDArray[np.bool_], IntArray]:
        """Which rows keep the promise of a sliding loop, and what is still pending."""
        if self.sliding is None or not pending.any():
            return np.ones(len(after), bool), pending
        trips = after // before
        touched = (after > before)[:, self._relevant[self.sliding]].any(axis=1)
        code = pending % FAR
        promised = trips[np.arange(len(trips)), code // PEND]
        far = (pending & FAR) > 0
        keep = (pending == 0) | ~touched | ((promised == code % PEND) & ~far)
        return keep, np.where(touched, 0, pending)

    # ---- stores -----------------------------------------------------------------------------------------------

    def _slides(self, memory: int) -> list[tuple[int, int, int]]:
        """The choices of the next loop on the sliding tensor: a class, its trips and FAR or NEAR."""
        if self.sliding is None or not self.rules.sliding:
            return []
        signature = self.classes.signature.tensors[self.sliding]
        dims = {self.classes.of[v] for rank in signature.ranks if len(rank) > 1 for v, _ in rank}
        found: list[tuple[int, int, int]] = []
        for d in sorted(dims):
            sides = (0,) if self.inside(d, memory) == 1 else (NEAR, FAR)
            found.extend((d, n, side) for n in divisors(self.classes.extents[d]) if n > 1 for side in sides)
        return found

    def _store(
        self, rows: Rows, index: IntArray, target: IntArray, x: IntArray, pending: IntArray, memory: int
    ) -> list[Rows]:
        """Place stores of the targets in `memory` on top of `rows[index]` with loops up to `x`; over-full and hopeless
        rows are dropped. Every choice of the next sliding loop and of deferring the charge is a row."""
        stage, context = self.stage(memory), rows.marks[index, CONTEXT]
        link = stage.parent[context, target] * self.tensors + target
        parts = []
        choices: list[tuple[int, int, int] | None] = [None, *self._slides(memory)]
        for choice in choices:
            mine = np.arange(len(index))
            if choice is not None or self.sliding is not None:
                slides = target == self.sliding
                code = 0 if choice is None else choice[0] * PEND + choice[1] + choice[2]
                good = slides & ((pending == 0) | (pending == code)) if code else ~slides | (pending == 0)
                mine = np.flatnonzero(good)
            if choice is not None:
                mine = mine[self._cuts(choice, x[mine], memory)]
            for deferred in (False, True):
                if deferred:
                    mine = mine[self._bit[memory][link[mine]] != 0]
                if len(mine):
                    steps = (index[mine], target[mine], x[mine], pending[mine])
                    parts.append(self._place(rows, *steps, memory, choice, deferred))
        return [part for part in parts if len(part)]

    def _cuts(self, choice: tuple[int, int, int], x: IntArray, memory: int) -> NDArray[np.bool_]:
        """Rows whose extent the sliding loop divides."""
        d, n, _ = choice
        return np.asarray(self.whole[d] % (x[:, d] * n * self.pricing.instances[memory][0, d]) == 0)

    def _place(
        self,
        rows: Rows,
        index: IntArray,
        target: IntArray,
        x: IntArray,
        pending: IntArray,
        memory: int,
        choice: tuple[int, int, int] | None,
        deferred: bool,
    ) -> Rows:
        """One choice of `_store`."""
        self.counts["evaluated"] = self.counts.get("evaluated", 0) + len(index)
        if self.classes.pinned:
            asked = np.flatnonzero(self.allowed(memory, target, x))
            self.counts["mapspace limits"] = self.counts.get("mapspace limits", 0) + len(index) - len(asked)
            index, x, pending, target = index[asked], x[asked], pending[asked], target[asked]
        occupied = rows.occupied.take(index, axis=0)
        if memory in self.limited:
            at = self.limited.index(memory)
            occupied[:, at] += self.tile_bits(target, x, memory)
            fits = np.flatnonzero(occupied[:, at] <= self._capacity(memory))
            if len(fits) < len(index):
                self.counts["capacity"] = self.counts.get("capacity", 0) + len(index) - len(fits)
                index, x, pending, target, occupied = index[fits], x[fits], pending[fits], target[fits], occupied[fits]
        marks = rows.marks.take(index, axis=0)
        stage = self.stage(memory)
        link = stage.parent[marks[:, CONTEXT], target] * self.tensors + target
        crossing = np.int64(-1) << np.int64(self._inner[memory])
        opened, fresh = marks[:, OPEN] | (marks[:, FRESH] & crossing), marks[:, FRESH] & ~crossing
        cost = rows.cost.take(index, axis=0)
        if deferred:
            fresh = fresh | self._bit[memory][link]
        else:
            slide = None
            if choice is not None:
                slide = (choice[0], choice[1], 1 if choice[2] == NEAR else self.inside(choice[0], memory))
            self._price(cost, link, target, x, marks[:, SPREAD], memory, slide)
        if choice is not None:
            pending = np.full(len(index), choice[0] * PEND + choice[1] + choice[2], np.int64)
        placed = marks[:, PLACED] | (1 << target)
        good = self._within(cost, stage.later, marks[:, CONTEXT], marks[:, SPREAD], stage.mine, placed)
        if not deferred:
            good = good[~self.again(memory, target, x, marks[:, SPREAD])[good]]
        return rows.derived(
            index[good],
            ("store", memory),
            x=x[good],
            cost=cost[good],
            occupied=occupied[good],
            pending=pending[good],
            open=opened[good],
            fresh=fresh[good],
            placed=placed[good],
            top=target[good],
        )

    def _price(
        self,
        cost: FloatArray,
        link: IntArray,
        target: IntArray,
        x: IntArray,
        spread: IntArray,
        memory: int,
        slide: Slide | None,
    ) -> None:
        """Add what stores of the targets move to the costs."""
        if self.uneven.any():
            for at in np.unique(link).tolist():
                mine = np.flatnonzero(link == at)
                parent, tensor = divmod(at, self.tensors)
                cost[mine] += self.charged((tensor, parent, memory), x[mine], spread[mine], slide)
            return
        price, skipped, _ = self._prices[memory]
        moved = self.moved(target, x, spread, memory, slide)
        cost += moved[:, None] * price[link, spread]
        if skipped.any():
            cost -= self.every_elements[target][:, None] * skipped[link, spread]

    def _capacity(self, memory: int) -> int:
        capacity = self.room.capacities[memory]
        assert capacity is not None
        return capacity

"""Everything below a boundary, from the leaf outwards: Pareto rows by boundary tile.

Comes in: an Einsum's signature, one unit, its spatial choices and choices of held tensors. Goes out: for each memory
the undominated ways to place its stores and everything below, as rows (extents at the top, costs, occupancy). Costs are
totals over the whole run, so a loop changes nothing but the extents: a store's cost depends only on the extents where
it is placed. All choices are rows of the same arrays: what they are is a mark of the row (`contexts.py`), prices are
looked up by it, and rows that look alike from above compete whatever stands below.

Which loops may stand between two neighbouring stores is cut down by two rules (docs/model/pruning.md): a loop directly
above a store that lacks its variable moves below it (``stationary``), a loop directly below a store that its variable
indexes alone moves above it (``lowering``). Neither is used for the variables of tensors with sliding windows.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..numerics.pareto import IntArray
from .expand import CHUNK, Steps
from .prune import Room, Rules
from .rows import (
    ABSORBED,
    CONTEXT,
    FAR,
    FRESH,
    LEAF,
    MARKS,
    NEAR,
    OPEN,
    PENDING,
    PLACED,
    SPREAD,
    TARGET,
    TOP,
    Backpointers,
    Rows,
    union,
    wrapped,
)

PART = 1 << 15  # rows with open stores that are looked at together

__all__ = ["Room", "Rules", "Tables"]


class Tables(Steps):
    """All rows of one Einsum on one unit; `base`, `level` and `closed` answer for one memory."""

    @cached_property
    def _bases(self) -> dict[int, Rows]:
        return {}

    @cached_property
    def _levels(self) -> dict[int, list[Rows]]:
        return {}

    def _leaf(self) -> Rows:
        """The rows of the leaf: extents one, for every choice of stores and of spatial loops."""
        bases = self.contexts.bases[-1]
        chosen = [b for b in range(len(bases)) if self.contexts.wanted(self.memories - 1, b)]
        choices = len(self.pricing.spreads)
        n = len(chosen) * choices
        marks = np.zeros((n, self.width), np.int64)
        marks[:, CONTEXT] = np.repeat(np.array(chosen, np.int64), choices)
        marks[:, SPREAD] = np.tile(np.arange(choices), len(chosen))
        marks[:, TOP] = LEAF
        cost = np.zeros((0, len(self.pricing.columns)))
        if chosen:
            cost = np.concatenate([self.leaf_cost(bases[b].parents) for b in chosen])
        x = np.ones((n, len(self.whole)), np.int64)
        none = np.zeros(n, np.int32)
        return Rows(cost, np.zeros((n, len(self.limited)), np.int64), Backpointers(x, marks, ("leaf",), (), none, none))

    def base(self, memory: int) -> Rows:
        """Complete rows of everything below `memory`'s own stores; CONTEXT numbers the bases of the memory."""
        if memory in self._bases:
            return self._bases[memory]
        if memory == self.memories - 1:
            rows, below = self._leaf(), self.pricing.fanouts
        else:
            rows, below = self._below(memory), self.pricing.above[memory + 1]
        rows = self._cross(rows, memory, below)
        rows = rows.take(self._promising(rows, memory))
        if memory < self.memories - 1:
            rows = self.front(rows, (CONTEXT, SPREAD, TOP), self.coming(rows, memory, base=True))
        self._bases[memory] = rows
        return rows

    def _below(self, memory: int) -> Rows:
        """The complete rows of the next level further in, numbered by their bases at `memory`."""
        stage = self.stage(memory + 1)
        busy = np.array(self.contexts.busy[memory], bool)
        wanted = np.array([self.contexts.wanted(memory, b) for b in range(len(self.contexts.bases[memory]))], bool)
        parts = []
        for rows in self.level(memory + 1):
            context = rows.marks[:, CONTEXT]
            outside = stage.outside[context]
            good = (rows.marks[:, PLACED] == stage.mine[context]) & stage.onward[context] & wanted[outside]
            good &= busy[outside] | (rows.marks[:, FRESH] == 0)
            index = np.flatnonzero(good)
            part = rows.take(index)
            part.marks[:, CONTEXT] = outside[index]
            part.marks[:, PLACED] = 0
            if memory + 1 in self.limited and memory + 1 not in self.room.tracked:
                part.occupied[:, self.limited.index(memory + 1)] = 0  # checked, and no other Einsum shares it
            parts.append(part)
        return union(parts)

    def _cross(self, rows: Rows, memory: int, below: int) -> Rows:
        """Spread the rows over the fanouts between `memory` and what is below it."""
        if self.pricing.above[memory] == below:
            return rows
        index = np.flatnonzero((rows.marks[:, PENDING] & NEAR) == 0)
        spread = rows.marks[index, SPREAD]
        x = rows.x[index] * self.pricing.between(self.pricing.above[memory], below)[spread]
        even = np.flatnonzero(~self.uneven)
        fits = (self.whole[even] // self.pricing.instances[memory][spread][:, even] % x[:, even] == 0).all(axis=1)
        for d in np.flatnonzero(self.uneven).tolist():
            x[:, d], fair = self.shared_out(rows.x[index, d], spread, d, memory, below)
            fits &= fair
        index, x, spread = index[fits], x[fits], spread[fits]
        settled = (rows.marks[index, OPEN] == 0) & (rows.marks[index, FRESH] == 0)
        crossed = rows.derived(
            index,
            ("cross", memory),
            x=x,
            pending=rows.marks[index, PENDING] & ~np.int64(FAR),
            spread=np.where(settled, self.pricing.alike[memory][spread], spread),
        )
        if self.width > MARKS:
            self._remember(crossed, rows.x[index], memory)
        return crossed

    def _remember(self, rows: Rows, inner: IntArray, memory: int) -> None:
        """Note the tiles below the spatial loops that rows with charges put off have crossed."""
        held = np.flatnonzero((rows.marks[:, OPEN] != 0) | (rows.marks[:, FRESH] != 0))
        for d in np.flatnonzero(self.uneven).tolist():
            rows.marks[held, self.rim(memory, d)] = inner[held, d]

    def level(self, memory: int) -> list[Rows]:
        """Rows with every subset of `memory`'s stores placed, by how many; CONTEXT numbers the memory's levels."""
        if memory in self._levels:
            return self._levels[memory]
        stage = self.stage(memory)
        base = self.base(memory)
        order = np.argsort(stage.inside, kind="stable")
        counts = np.bincount(stage.inside, minlength=len(self.contexts.bases[memory]))
        first = np.cumsum(counts) - counts
        context = base.marks[:, CONTEXT]
        repeat = np.repeat(np.arange(len(base)), counts[context])
        within = np.arange(len(repeat)) - np.repeat(np.cumsum(counts[context]) - counts[context], counts[context])
        rows = base.take(repeat)
        rows.marks[:, CONTEXT] = order[first[context[repeat]] + within]
        rows = rows.take(np.flatnonzero(self._hopeful(rows, memory, False)))
        done = [rows]
        while len(rows):
            rows = self._grow(rows, memory)
            if len(rows):
                done.append(rows)
        self._levels[memory] = done
        return done

    def _grow(self, rows: Rows, memory: int) -> Rows:
        """Rows with one more store."""
        marks = rows.marks
        missing = self.stage(memory).mine[marks[:, CONTEXT]] & ~marks[:, PLACED]
        pairs = [(np.flatnonzero(missing >> t & 1), t) for t in range(self.tensors)]
        index = np.concatenate([i for i, _ in pairs])
        target = np.concatenate([np.full(len(i), t, np.int64) for i, t in pairs])
        waiting = (marks[:, OPEN] != 0)[index] | (marks[:, FRESH] != 0)[index]
        parts: list[Rows] = []
        mine, goal = index[~waiting], target[~waiting]
        may = self._may_stand[marks[mine, TOP] + 1, goal]
        for x, i in self._loops(rows.x[mine], marks[mine, SPREAD], may, memory):
            self.checkpoint()
            keep, pending = self._resolve(rows.x[mine[i]], x, marks[mine[i], PENDING])
            i = i[keep]
            parts += self._store(rows, mine[i], goal[i], x[keep], pending[keep], memory)
            parts = self._thinned(parts, memory)
        mine, goal = index[waiting], target[waiting]
        if len(mine):
            parts += self._store(rows, mine, goal, rows.x[mine], marks[mine, PENDING], memory)
            unfresh = np.flatnonzero(marks[mine, FRESH] == 0)
            for some in (unfresh[i : i + PART] for i in range(0, len(unfresh), PART)):
                self.checkpoint()
                parts = self._thinned(parts + self._put_off(rows, mine[some], goal[some], memory), memory)
        if not parts:
            return rows.take(np.zeros(0, np.int64))
        return self._undominated(union(parts), memory, TOP)

    def _undominated(self, rows: Rows, memory: int, *marks: int) -> Rows:
        """The rows of a memory's levels that no other beats."""
        return self.front(rows, (CONTEXT, SPREAD, PLACED, *marks), self.coming(rows, memory))

    def _put_off(self, rows: Rows, index: IntArray, target: IntArray, memory: int) -> list[Rows]:
        """Stores above loops on which the charges of open stores depend."""
        loose = rows.take(index)
        loose.marks[:, TARGET] = target
        ordered = self._ordered(loose, list(range(len(self.whole))), memory, False)
        if not ordered:
            return []
        held = union(ordered)
        every = np.arange(len(held))
        return self._store(held, every, held.marks[:, TARGET], held.x, held.marks[:, PENDING], memory)

    def _thinned(self, parts: list[Rows], memory: int) -> list[Rows]:
        """The rows so far, reduced once they are many more than after the last time."""
        if sum(len(part) for part in parts) < CHUNK + 2 * max((len(part) for part in parts[:1]), default=0):
            return parts
        return [self._undominated(union(parts), memory, TOP)]

    def closed(self, rows: Rows, memory: int) -> Rows:
        """Complete rows as a boundary at `memory` sees them: open stores are charged, over loops inside the boundary.

        Rows with fresh stores go: charging those at once, or lowering the loops below them, is as good.
        """
        ready = rows.marks[:, FRESH] == 0
        parts = [wrapped(rows.take(np.flatnonzero(ready & (rows.marks[:, OPEN] == 0))))]
        opened = np.flatnonzero(ready & (rows.marks[:, OPEN] != 0))
        for some in (opened[i : i + PART] for i in range(0, len(opened), PART)):
            self.checkpoint()
            chosen, charged = rows.take(some), []
            absorbed = chosen.take(np.flatnonzero((chosen.marks[:, OPEN] & ABSORBED) > 0))
            for part in (absorbed, *self._ordered(chosen, list(range(len(self.whole))), memory, True)):
                whole, sound = self._charge(part, None, memory)
                charged.append(whole.take(np.flatnonzero(sound & self._hopeful(whole, memory, True))))
            parts.append(self._undominated(union(charged), memory))
        return self._undominated(union(parts), memory)

    def relaxed(self) -> Rows:
        """Rows with every own store placed and no backing store below the outermost memory, unfused."""
        done = self.closed(self.base(0), 0)
        even = ~self.uneven
        return done.take(np.flatnonzero((self.whole[even] % done.x[:, even] == 0).all(axis=1)))

"""Everything below a boundary, from the leaf outwards: Pareto rows by boundary tile.

Comes in: an `Expansion` of one Einsum on one unit, for its spatial choices and choices of held tensors. Goes out: for
each memory the undominated ways to place its stores and everything below, as rows (extents at the top, costs,
occupancy). Costs are totals over the whole run, so a loop changes nothing but the extents: a store's cost depends only
on the extents where it is placed. All choices are rows of the same arrays: what they are is a mark of the row
(`Contexts`), prices are looked up by it, and rows that look alike from above compete whatever stands below.

Which loops may stand between two neighbouring stores is cut down by two rules (docs/model/pruning.md): a loop directly
above a store that lacks its variable moves below it (``stationary``), a loop directly below a store that its variable
indexes alone moves above it (``lowering``). Neither is used for the variables of tensors with sliding windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ....dataclass import dataclass
from ..numerics.multiples import ragged_ranges
from ..numerics.pareto import IntArray
from ..numerics.uneven import ceil
from .backpointers import shed
from .expand import CHUNK, GROWN, Expansion
from .rows import (
    ABSORBED,
    ANYWHERE,
    CONTEXT,
    FRESH,
    LEAF,
    NEAR,
    OPEN,
    PLACED,
    PROMISE,
    RIMS,
    SIDE,
    SPREAD,
    TARGET,
    TOP,
    Backpointers,
    Rows,
    union,
    wrapped,
)

PART = 1 << 15  # rows with open stores that are looked at together


@dataclass(frozen=True)
class PmappingTable:
    """Rows per memory. bases: complete rows of everything below its own stores. levels: rows with every subset of its
    stores placed, by how many."""

    bases: dict[int, Rows]
    levels: dict[int, list[Rows]]


def sweep(expansion: Expansion, outermost: int = 0) -> PmappingTable:
    """The rows of all memories from the leaf out to `outermost`."""
    return _Sweep(expansion).out_to(outermost)


def relaxed(expansion: Expansion) -> Rows:
    """Rows with every own store placed and no backing store below the outermost memory, unfused."""
    done = closed(expansion, sweep(expansion).bases[0], 0)
    even = ~expansion.prices.uneven | np.array(expansion.prices.classes.windows, bool)
    return done.take(np.flatnonzero((expansion.prices.whole[even] % done.x[:, even] == 0).all(axis=1)))


def closed(expansion: Expansion, rows: Rows, memory: int) -> Rows:
    """Complete rows as a boundary at `memory` sees them: open stores are charged, over loops inside the boundary.

    Rows with fresh stores go: charging those at once, or lowering the loops below them, is as good.
    """
    every = list(range(len(expansion.prices.whole)))
    ready = rows.marks[:, FRESH] == 0
    parts = [wrapped(rows.take(np.flatnonzero(ready & (rows.marks[:, OPEN] == 0))))]
    opened = np.flatnonzero(ready & (rows.marks[:, OPEN] != 0))
    for some in (opened[i : i + PART] for i in range(0, len(opened), PART)):
        expansion.classes.checkpoint()
        chosen, charged = rows.take(some), list[Rows]()
        absorbed = chosen.take(np.flatnonzero(chosen.marks[:, ABSORBED] > 0))
        for part in chain((absorbed,), (part for part, _ in expansion.ordered(chosen, every, memory, True))):
            whole, sound = expansion.charge(part, None, memory)
            charged.append(whole.take(np.flatnonzero(sound & expansion.pruner.hopeful(whole, memory, True))))
            if many(charged):
                charged = [shed(_undominated(expansion, union(charged), memory), rows)]
        parts.append(shed(_undominated(expansion, union(charged), memory), rows))
    return _undominated(expansion, union(parts), memory)


def _undominated(expansion: Expansion, rows: Rows, memory: int, *marks: int) -> Rows:
    """The rows of a memory's levels that no other beats."""
    pruner = expansion.pruner
    pruner.pause()
    coming = pruner.coming(rows, memory)
    pruner.pause()
    return pruner.front(rows, (CONTEXT, SPREAD, PLACED, *marks), coming)


def many(parts: list[Rows]) -> bool:
    """True if the parts have many more rows than the first of them, which is what was left the last time."""
    return sum(map(len, parts)) >= CHUNK + 2 * max(map(len, parts[:1]), default=0)


def gathered(parts: Iterable[tuple[Rows, bool]]) -> Iterator[tuple[Rows, bool]]:
    """The same rows in fewer parts, those of each kind apart."""
    waiting: dict[bool, list[Rows]] = {False: [], True: []}
    for part, kind in parts:
        waiting[kind].append(part)
        if sum(map(len, waiting[kind])) >= GROWN:
            yield union(waiting[kind]), kind
            waiting[kind] = []
    yield from ((union(some), kind) for kind, some in waiting.items() if some)


class _Sweep:
    """One way from the leaf outwards."""

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion
        self.checkpoint = expansion.classes.checkpoint
        self.levels = expansion.levels
        self.prices = expansion.prices
        self.pruner = expansion.pruner

    def _asked(self, rows: int) -> None:
        """Ask whether to go on, before work on many rows."""
        if rows > PART:
            self.checkpoint()

    def out_to(self, outermost: int) -> PmappingTable:
        table = PmappingTable({}, {})
        for memory in range(self.levels.memories - 1, outermost - 1, -1):
            if memory == self.levels.memories - 1:
                rows, below = self._leaf(), self.prices.links.fanouts
            else:
                rows, below = self._below(table.levels[memory + 1], memory), self.prices.links.above[memory + 1]
            table.bases[memory] = self._base(rows, memory, below)
            if memory:
                table.levels[memory] = self._level(table.bases[memory], memory)
        return table

    def _leaf(self) -> Rows:
        """The rows of the leaf, for every choice of stores and of spatial loops."""
        contexts, links = self.levels.contexts, self.prices.links
        bases, last = contexts.bases[-1], self.levels.memories - 1
        chosen = [b for b in range(len(bases)) if contexts.wanted(last, b)]
        x, spread = self._leaf_extents()
        x, n = np.tile(x, (len(chosen), 1)), len(chosen) * len(x)
        marks = np.zeros((n, self.levels.width), np.int64)
        marks[:, CONTEXT] = np.repeat(np.array(chosen, np.int64), len(spread))
        marks[:, SPREAD] = np.tile(spread, len(chosen))
        marks[:, TOP] = LEAF
        cost = np.zeros((0, len(links.columns)))
        if chosen:
            cost = np.concatenate([self.prices.leaf_cost(bases[b].parents)[spread] for b in chosen])
        none = np.zeros(n, np.int32)
        occupied = np.zeros((n, len(self.levels.limited)), np.int64)
        return Rows(cost, occupied, Backpointers(x, marks, ("leaf",), (), none, none))

    def _leaf_extents(self) -> tuple[IntArray, IntArray]:
        """Extents directly below the innermost store or spatial loop, and the spatial choices: one, or for windows that
        the choice spreads unevenly all that an instance does."""
        whole, instances = self.prices.whole, self.prices.links.instances[-1]
        spread = np.arange(len(instances))
        x = np.ones((len(spread), len(whole)), np.int64)
        windows = self.prices.uneven & np.array(self.prices.classes.windows, bool)
        for d in np.flatnonzero(windows).tolist():
            uneven = np.flatnonzero(whole[d] % instances[spread, d] > 0)
            more = x[uneven]
            more[:, d] = ceil(whole[d], instances[spread[uneven], d])
            x, spread = np.concatenate([x, more]), np.concatenate([spread, spread[uneven]])
        return x, spread

    def _base(self, rows: Rows, memory: int, below: int) -> Rows:
        """Complete rows of everything below `memory`'s own stores; CONTEXT numbers the bases of the memory."""
        rows = self._cross(rows, memory, below)
        rows = rows.take(self.pruner.promising(rows, memory))
        if memory < self.levels.memories - 1:
            self._asked(len(rows))
            rows = self.pruner.front(rows, (CONTEXT, SPREAD, TOP), self.pruner.coming(rows, memory, base=True))
        return rows

    def _below(self, inner: list[Rows], memory: int) -> Rows:
        """The complete rows of the next level further in, numbered by their bases at `memory`."""
        arrays, contexts = self.levels.at(memory + 1), self.levels.contexts
        busy = np.array(contexts.busy[memory], bool)
        wanted = np.array([contexts.wanted(memory, b) for b in range(len(contexts.bases[memory]))], bool)
        limited = self.levels.limited
        parts = []
        for rows in inner:
            context = rows.marks[:, CONTEXT]
            outside = arrays.outside[context]
            good = (rows.marks[:, PLACED] == arrays.mine[context]) & arrays.onward[context] & wanted[outside]
            good &= busy[outside] | (rows.marks[:, FRESH] == 0)
            index = np.flatnonzero(good)
            self._asked(len(index))
            part = rows.take(index)
            part.marks[:, CONTEXT] = outside[index]
            part.marks[:, PLACED] = 0
            if memory + 1 in limited and memory + 1 not in self.levels.room.tracked:
                part.occupied[:, limited.index(memory + 1)] = 0  # checked, and no other Einsum shares it
            parts.append(part)
        return union(parts)

    def _cross(self, rows: Rows, memory: int, below: int) -> Rows:
        """Spread the rows over the fanouts between `memory` and what is below it."""
        links = self.prices.links
        if links.above[memory] == below:
            return rows
        index = np.flatnonzero((rows.marks[:, SIDE:RIMS] != NEAR).all(axis=1))
        spread = rows.marks[index, SPREAD]
        x = rows.x[index] * links.between(links.above[memory], below)[spread]
        even = ~self.prices.uneven
        room = self.prices.whole[even] // links.instances[memory][spread][:, even]
        fits = (room % x[:, even] == 0).all(axis=1)
        integer = self.prices.classes.integer
        for d in np.flatnonzero(~even).tolist() if not integer else ():
            x[:, d], fair = self.prices.shared_out(rows.x[index, d], spread, d, memory, below)
            fits &= fair
        index, x, spread = index[fits], x[fits], spread[fits]
        for d in np.flatnonzero(~even).tolist() if integer else ():
            above, row = self.prices.spanned(rows.x[index, d], spread, d, memory, below)
            index, x, spread = index[row], x[row], spread[row]
            x[:, d] = above
        settled = (rows.marks[index, OPEN] == 0) & (rows.marks[index, FRESH] == 0)
        crossed = rows.derived(
            index, ("cross", memory), x=x, spread=np.where(settled, links.alike[memory][spread], spread)
        )
        crossed.marks[:, SIDE:RIMS] = ANYWHERE
        if self.levels.width > RIMS:
            self._remember(crossed, rows.x[index], memory)
        return crossed

    def _remember(self, rows: Rows, inner: IntArray, memory: int) -> None:
        """Note the tiles below the spatial loops that rows with charges put off have crossed."""
        held = np.flatnonzero((rows.marks[:, OPEN] != 0) | (rows.marks[:, FRESH] != 0))
        for d in np.flatnonzero(self.prices.uneven).tolist():
            rows.marks[held, self.levels.rim(memory, d)] = inner[held, d]

    def _level(self, base: Rows, memory: int) -> list[Rows]:
        """Rows with every subset of `memory`'s stores placed, by how many; CONTEXT numbers the memory's levels."""
        arrays = self.levels.at(memory)
        order = np.argsort(arrays.inside, kind="stable")
        counts = np.bincount(arrays.inside, minlength=len(self.levels.contexts.bases[memory]))
        first = np.cumsum(counts) - counts
        context = base.marks[:, CONTEXT]
        repeat, within = ragged_ranges(counts[context])
        rows = base.take(repeat)
        rows.marks[:, CONTEXT] = order[first[context[repeat]] + within]
        self._asked(len(rows))
        rows = rows.take(np.flatnonzero(self.pruner.hopeful(rows, memory, False)))
        marks = rows.marks
        fits = self.pruner.roomy(rows.x, rows.occupied, marks[:, CONTEXT], marks[:, PLACED], memory)
        rows = rows.take(np.flatnonzero(fits))
        done = [rows]
        while len(rows):
            rows = self._grow(self._extended(rows, memory), memory)
            if len(rows):
                done.append(rows)
        return done

    def _extended(self, rows: Rows, memory: int) -> Rows:
        """The rows from which those with one more store are made."""
        rules = self.pruner.rules
        if not (rules.smaller and rules.dominance) or rules.stationary or rules.lowering or self.prices.uneven.any():
            return rows
        return self.pruner.extended(rows, self.pruner.coming(rows, memory))

    def _grow(self, rows: Rows, memory: int) -> Rows:
        """Rows with one more store."""
        marks, expansion = rows.marks, self.expansion
        missing = self.levels.at(memory).mine[marks[:, CONTEXT]] & ~marks[:, PLACED]
        pairs = [(np.flatnonzero(missing >> t & 1), t) for t in range(self.levels.tensors)]
        index = np.concatenate([i for i, _ in pairs])
        target = np.concatenate([np.full(len(i), t, np.int64) for i, t in pairs])
        waiting = (marks[:, OPEN] != 0)[index] | (marks[:, FRESH] != 0)[index]
        parts: list[Rows] = []
        kept = expansion.below_kept(memory)
        mine, goal = index[~waiting], target[~waiting]
        parts = self._above_loops(parts, rows, mine, goal, memory, None)
        if kept is not None:
            parts = self._above_loops(parts, rows, mine, goal, memory, kept)
        mine, goal = index[waiting], target[waiting]
        if len(mine):
            parts += expansion.store(rows, mine, goal, rows.x[mine], marks[mine, PROMISE], memory)
            unfresh = np.flatnonzero(marks[mine, FRESH] == 0)
            for some in (unfresh[i : i + PART] for i in range(0, len(unfresh), PART)):
                self.checkpoint()
                parts = self._put_off(parts, rows, mine[some], goal[some], memory, kept)
        if not parts:
            return rows.take(np.zeros(0, np.int64))
        self._asked(sum(map(len, parts)))
        return shed(_undominated(expansion, union(parts, self.checkpoint), memory, TOP), rows)

    def _above_loops(
        self,
        parts: list[Rows],
        rows: Rows,
        index: IntArray,
        target: IntArray,
        memory: int,
        kept: NDArray[np.bool_] | None,
    ) -> list[Rows]:
        """The parts, and stores above loops that may stand directly below them. kept: as `Expansion.below_kept`: then
        of stores whose charge is put off those above a loop that stands there for them only."""
        expansion, marks = self.expansion, rows.marks
        rest = expansion.rest[target]
        wide = rest if kept is None else kept[marks[index, CONTEXT], target]
        if kept is not None:
            some = np.flatnonzero((wide != rest).any(axis=1))
            index, target, rest, wide = index[some], target[some], rest[some], wide[some]
        may = expansion.may_stand(marks[index, TOP], wide)
        fits = expansion.fits(marks[index, CONTEXT], marks[index, PLACED], rows.occupied[index], memory)
        for x, i in expansion.loops(rows.x[index], marks[index, SPREAD], may, memory, fits):
            self.checkpoint()
            keep, promise = expansion.resolve(rows.x[index[i]], x, marks[index[i], PROMISE])
            if kept is not None:
                keep = keep & ((x != rows.x[index[i]]) & wide[i] & ~rest[i]).any(axis=1)
            i = i[keep]
            charges = (False, True) if kept is None else (True,)
            parts += expansion.store(rows, index[i], target[i], x[keep], promise[keep], memory, charges)
            parts = self._thinned(parts, rows, memory)
        return parts

    def _put_off(
        self,
        parts: list[Rows],
        rows: Rows,
        index: IntArray,
        target: IntArray,
        memory: int,
        kept: NDArray[np.bool_] | None,
    ) -> list[Rows]:
        """The parts, and stores above loops on which the charges of open stores depend. kept: as
        `Expansion.below_kept`, for stores whose own charge is put off."""
        loose = rows.take(index)
        loose.marks[:, TARGET] = target
        ordered = self.expansion.ordered(loose, list(range(len(self.prices.whole))), memory, False, True, kept)
        for held, for_kept in gathered(ordered):
            every, goal = np.arange(len(held)), held.marks[:, TARGET]
            charges = (True,) if for_kept else (False, True)
            found = self.expansion.store(held, every, goal, held.x, held.marks[:, PROMISE], memory, charges)
            parts = self._thinned([*parts, *(shed(part, rows) for part in found)], rows, memory)
        return parts

    def _thinned(self, parts: list[Rows], rows: Rows, memory: int) -> list[Rows]:
        """The rows made from others so far, reduced once they are many more than after the last time."""
        if not many(parts):
            return parts
        self.checkpoint()
        return [shed(_undominated(self.expansion, union(parts, self.checkpoint), memory, TOP), rows)]

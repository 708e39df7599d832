"""The expansion of rows: loops above them, stores on top of them, and charges that were put off.

Comes in: rows, and a pruner. Goes out: rows with one loop per class or one store more; over-full and hopeless ones are
dropped before they are built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....errors import Defect
from ....mapspace.divisors import divisors
from ..numerics.pareto import FloatArray, IntArray
from ..numerics.uneven import ceil
from ..prices.traffic import Slide
from .levels import Levels
from .prune import Pruner
from .rows import (
    ABSORBED,
    ANYWHERE,
    CONTEXT,
    FAR,
    FRESH,
    LEAF,
    NEAR,
    OPEN,
    PLACED,
    PROMISE,
    RIMS,
    SPREAD,
    TARGET,
    Rows,
    promises,
)

CHUNK = 1 << 15  # rows of which the dominated ones go together
ROUNDING = 1e-12  # of a price
GROWN = 1 << 15  # rows that get loops between two questions whether to stop


Fits = Callable[[IntArray, IntArray], NDArray[np.bool_]]  # extents, row -> mask
Sliding = tuple[int, int, int]  # class of the next loop on the sliding tensor, its trips, its side


def portions(counts: IntArray, most: int) -> Iterator[slice]:
    """Neighbouring entries whose counts sum to at most so many, or one entry with more."""
    ends, start = np.cumsum(counts), 0
    while start < len(counts):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield slice(start, stop)
        start = stop


class Expansion:
    """Rows from rows, for all contexts at once. pruner: asked before rows are built."""

    def __init__(self, levels: Levels, pruner: Pruner) -> None:
        self.levels = levels
        self.pruner = pruner
        self.prices = levels.prices
        self.classes = levels.prices.classes

    # ---- loops ------------------------------------------------------------------------------------------------

    def loops(
        self,
        x: IntArray,
        spread: IntArray,
        may: NDArray[np.bool_],
        at: int,
        fits: Fits | None = None,
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Every choice of one loop per class that a row may have (trips 1 included): (extents, row), in chunks.

        fits: asked of (extents, row) after every class; what it refuses, no larger extents make right."""
        dims = [d for d in range(len(self.prices.whole)) if may[:, d].any()]
        counts = np.ones(len(x), np.int64)
        for d in dims:
            multiples = self.levels.loops(d, at, 1)
            places = multiples.at(x[:, d], spread)
            counts *= np.where(may[:, d], multiples.sizes[places], 1)
        for some in portions(counts, GROWN):
            index, grown = np.arange(some.start, some.stop), x[some]
            for d in dims:
                grown, index = self.levels.loops(d, at, 1).grow(grown, index, d, spread[index], may[index, d])
                if fits is not None:
                    kept = np.flatnonzero(fits(grown, index))
                    if len(kept) < len(index):
                        self.pruner.overfull(len(index) - len(kept))
                        grown, index = grown.take(kept, axis=0), index[kept]
            yield grown, index

    def ordered(
        self,
        rows: Rows,
        dims: list[int],
        at: int,
        closing: bool,
        first: bool = True,
        below: NDArray[np.bool_] | None = None,
    ) -> Iterator[tuple[Rows, bool]]:
        """Loops above rows with open stores, innermost first, in every order that decides what those stores keep. With
        each rows whether some loop stands there that `rest` does not allow.

        A store keeps its tile over loops that its tensor lacks until the first loop that it has: then it is charged.
        dims: classes still without a loop here. closing: nothing follows once all are charged; else loops that may
        stand below a store of TARGET do: those of `below` [levels, tensors, classes], or of `rest`. The first loop must
        be one that every open tensor lacks, unless such a loop stands further in already: otherwise charging at once is
        the same.
        """
        for d in dims:
            start = rows
            if first:
                lacking = (rows.marks[:, OPEN] & self._bits_of(d)) == 0
                start = rows.take(np.flatnonzero((rows.marks[:, ABSORBED] > 0) | lacking))
            charged, sound = self.charge(start, d, at)
            others = [e for e in dims if e != d]
            for step in self._looped(start, charged, sound, d, at, closing):
                yield from self._after(step, others, d, at, closing, below)

    def _looped(
        self, start: Rows, charged: Rows, sound: NDArray[np.bool_], d: int, at: int, closing: bool
    ) -> Iterator[Rows]:
        """Rows with a loop over class d, in chunks. charged: the rows with the stores charged that the loop ends."""
        multiples = self.levels.loops(d, at, 2)
        places = multiples.at(start.x[:, d], start.marks[:, SPREAD])
        for some in portions(multiples.sizes[places], GROWN):
            self.classes.checkpoint()
            x, index = multiples.grow(start.x[some], np.arange(some.start, some.stop), d, start.marks[some, SPREAD])
            index, x = index[sound[index]], x[sound[index]]
            if not closing:
                context, placed = start.marks[index, CONTEXT], start.marks[index, PLACED]
                fits = self.pruner.roomy(x, start.occupied[index], context, placed, at)
                self.pruner.overfull(int((~fits).sum()))
                index, x = index[fits], x[fits]
            keep, promise = self.resolve(start.x[index], x, charged.marks[index, PROMISE])
            index, x, promise = index[keep], x[keep], promise[keep]
            step = charged.take(index)
            good = np.flatnonzero(self.pruner.hopeful(step, at, closing))
            step, absorbed = step.take(good), step.marks[good, OPEN] != 0
            if len(step):
                every = np.arange(len(step))
                yield step.derived(every, ("loops", d), x=x[good], promise=promise[good], absorbed=absorbed)

    def _after(
        self, step: Rows, others: list[int], d: int, at: int, closing: bool, below: NDArray[np.bool_] | None
    ) -> Iterator[tuple[Rows, bool]]:
        """`ordered` after its loop over class d."""
        done = np.flatnonzero(step.marks[:, OPEN] == 0)
        if len(done) and closing:
            yield step.take(done), False
        elif len(done):
            ready = step.take(done)
            target = ready.marks[:, TARGET]
            rest = self.rest[target]
            may = rest if below is None else below[ready.marks[:, CONTEXT], target]
            may = may & np.isin(np.arange(len(self.prices.whole)), others)
            fits = self.fits(ready.marks[:, CONTEXT], ready.marks[:, PLACED], ready.occupied, at)
            for x, index in self.loops(ready.x, ready.marks[:, SPREAD], may, at, fits):
                keep, promise = self.resolve(ready.x[index], x, ready.marks[index, PROMISE])
                further = ((x != ready.x[index]) & may[index] & ~rest[index]).any(axis=1)
                for wide in (False,) if below is None else (False, True):
                    some = np.flatnonzero(keep & (further == wide))
                    yield ready.derived(index[some], ("loops", None), x=x[some], promise=promise[some]), wide
        left = np.flatnonzero(step.marks[:, OPEN] != 0)
        if len(left):
            step = step.take(left)
            kept = self.pruner.front(step, (CONTEXT, SPREAD, PLACED, TARGET), self.pruner.coming(step, at))
            yield kept, False
            yield from self.ordered(kept, others, at, closing, False, below)

    def fits(self, context: IntArray, placed: IntArray, occupied: IntArray, at: int) -> Fits:
        """Tells at which extents at a memory rows of these marks leave room for what they have still to place there."""
        return lambda x, index: self.pruner.roomy(x, occupied[index], context[index], placed[index], at)

    @cached_property
    def rest(self) -> NDArray[np.bool_]:
        """[tensors, classes]: may a loop stand directly below a store of the tensor?"""
        if not self.pruner.rules.lowering:
            return np.ones_like(self.prices.relevant)
        dims, tensors = range(len(self.prices.whole)), range(self.levels.tensors)
        moves = [d not in self.classes.pinned and not self.classes.windows[d] for d in dims]
        plain = [[self.classes.plain[t][d] and moves[d] for d in dims] for t in tensors]
        return np.asarray(~(self.prices.relevant & np.array(plain, bool).reshape(self.prices.relevant.shape)))

    def below_kept(self, memory: int) -> NDArray[np.bool_] | None:
        """[levels, tensors, classes]: may a loop be wanted directly below a store of `memory` whose charge is put off,
        though `rest` does not allow it? So it is where a store that lacks its variable stands between the store and
        the loops over which it keeps its tile. With what `rest` allows; None if that is all."""
        if not self.pruner.rules.lowering:
            return None
        found = np.zeros((len(self.levels.contexts.levels[memory]), *self.rest.shape), bool)
        if self.pruner.rules.checked:
            return ~found
        deferred = {(t, parent) for t, parent, m in self.levels.deferred if m == memory}
        for at, level in enumerate(self.levels.contexts.levels[memory]):
            for t in (t for t in level.own if (t, level.parents[t]) in deferred):
                between = [u for u, m in enumerate(level.parents) if u != t and m >= max(level.parents[t], 1)]
                found[at, t] = ~self.prices.relevant[between].all(axis=0) & ~self.rest[t]
        return found | self.rest if found.any() else None

    def may_stand(self, top: IntArray, rest: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """[rows, classes]: is a loop worth considering between store `top` below and a store below which those of
        `rest` [rows, classes] are?"""
        may = rest
        if self.pruner.rules.stationary:
            may = may & ((top == LEAF)[:, None] | self.prices.relevant[top])
        if self.prices.sliding is not None:
            may = may | self.prices.relevant[self.prices.sliding]
        return may

    def _bits_of(self, d: int) -> np.int64:
        """Bits of all links whose tensor has class d."""
        return np.int64(sum(1 << i for i, (t, _, _) in enumerate(self.levels.deferred) if self.prices.relevant[t, d]))

    def charge(self, rows: Rows, d: int | None, at: int) -> tuple[Rows, NDArray[np.bool_]]:
        """Charge the open stores whose tensor has class d (all if None) at the extents at memory `at`.

        Also a mask of the rows in which nothing comes again that may come once only.
        """
        sound = np.ones(len(rows), bool)
        opened, spread = rows.marks[:, OPEN], rows.marks[:, SPREAD]
        bits = int(np.bitwise_or.reduce(opened)) if len(rows) else 0
        cost, still = rows.cost.copy(), opened
        for bit, (tensor, parent, memory) in enumerate(self.levels.deferred):
            if not bits >> bit & 1 or (d is not None and not self.prices.relevant[tensor, d]):
                continue
            mine = np.flatnonzero(still >> bit & 1)
            sound[mine] &= ~self.prices.again(memory, tensor, rows.x[mine], spread[mine], at)
            for chosen, slide in self._by_slide(rows, mine, tensor, memory, at):
                place, rims = (tensor, parent, memory), self.levels.rims(rows.marks[chosen])
                cost[chosen] += self.prices.charged(place, rows.x[chosen], spread[chosen], slide, at, rims)
            still = still & ~np.int64(1 << bit)
        absorbed = np.where(still == 0, 0, rows.marks[:, ABSORBED])
        alike = np.where(still == 0, self.prices.links.alike[at][spread], spread)
        every = np.arange(len(rows))
        charged = rows.derived(every, ("same",), cost=cost, open=still, absorbed=absorbed, spread=alike)
        charged.marks[still == 0, RIMS:] = 0
        return charged, sound

    def _by_slide(
        self, rows: Rows, mine: IntArray, tensor: int, memory: int, at: int
    ) -> Iterator[tuple[IntArray, Slide | None]]:
        """Some rows by the sliding loop that they promise, for a store of `memory` seen from `at`."""
        if tensor != self.prices.sliding:
            yield mine, None
            return
        promise = rows.marks[mine, PROMISE][:, :2]
        for d, trips in np.unique(promise, axis=0).tolist():
            chosen = mine[(promise == (d, trips)).all(axis=1)]
            if not d:
                yield chosen, None
                continue
            instances = self.prices.links.instances
            inside = instances[memory][0, d - 1] // instances[at][0, d - 1]
            yield chosen, (d - 1, trips, int(inside))

    def resolve(self, before: IntArray, after: IntArray, promise: IntArray) -> tuple[NDArray[np.bool_], IntArray]:
        """Which rows keep the promise of a sliding loop, and what is still promised."""
        if self.prices.sliding is None or not promise.any():
            return np.ones(len(after), bool), promise
        free, touched, first = promises(promise, ceil(after, before), self.prices.relevant[self.prices.sliding])
        return free | ~touched | first, np.where(touched[:, None], 0, promise)

    # ---- stores -----------------------------------------------------------------------------------------------

    def _slides(self, memory: int) -> list[Sliding]:
        """The choices of the next loop on the sliding tensor."""
        if self.prices.sliding is None or not self.pruner.rules.sliding:
            return []
        signature = self.classes.signature.tensors[self.prices.sliding]
        dims = {self.classes.of[v] for rank in signature.ranks if len(rank) > 1 for v, _ in rank}
        found: list[Sliding] = []
        for d in sorted(dims):
            sides = (ANYWHERE,) if self.prices.inside(d, memory) == 1 else (NEAR, FAR)
            every = {*divisors(self.classes.extents[d]), *divisors(self._room(d, memory))}
            found.extend((d, n, side) for n in sorted(every) if n > 1 for side in sides)
        return found

    def _room(self, d: int, memory: int) -> int:
        """The largest extent of a class at a memory under the first spatial choice."""
        return int(ceil(self.classes.extents[d], self.prices.links.instances[memory][0, d]))

    def store(
        self,
        rows: Rows,
        index: IntArray,
        target: IntArray,
        x: IntArray,
        promise: IntArray,
        memory: int,
        charges: tuple[bool, ...] = (False, True),
    ) -> list[Rows]:
        """Place stores of the targets in `memory` on top of `rows[index]` with loops up to `x`; over-full and hopeless
        rows are dropped. Every choice of the next sliding loop and of deferring the charge is a row."""
        link = self.levels.at(memory).parent[rows.marks[index, CONTEXT], target] * self.levels.tensors + target
        parts = []
        choices: list[Sliding | None] = [None, *self._slides(memory)]
        for choice in choices:
            mine = np.arange(len(index))
            if choice is not None or self.prices.sliding is not None:
                slides = target == self.prices.sliding
                free = promise[:, 0] == 0
                if choice is None:
                    good = ~slides | free
                else:
                    good = slides & (free | (promise == _promise(choice)).all(axis=1))
                mine = np.flatnonzero(good)
            if choice is not None:
                mine = mine[self._cuts(choice, x[mine], memory)]
            for deferred in charges:
                if deferred:
                    mine = mine[self.levels.bit[memory][link[mine]] != 0]
                if len(mine):
                    steps = (index[mine], target[mine], x[mine], promise[mine])
                    parts.append(self._place(rows, *steps, memory, choice, deferred))
        return [part for part in parts if len(part)]

    def _cuts(self, choice: Sliding, x: IntArray, memory: int) -> NDArray[np.bool_]:
        """Rows whose extent the sliding loop divides."""
        d, n, side = choice
        if side != FAR:
            return np.asarray(self._room(d, memory) % (x[:, d] * n) == 0)
        return np.asarray(self.prices.whole[d] % (x[:, d] * n * self.prices.links.instances[memory][0, d]) == 0)

    def _place(
        self,
        rows: Rows,
        index: IntArray,
        target: IntArray,
        x: IntArray,
        promise: IntArray,
        memory: int,
        choice: Sliding | None,
        deferred: bool,
    ) -> Rows:
        """One choice of `store`."""
        self.pruner.count("evaluated", len(index))
        if self.classes.pinned:
            asked = np.flatnonzero(self.prices.allowed(memory, target, x))
            self.pruner.count("mapspace limits", len(index) - len(asked))
            index, x, promise, target = index[asked], x[asked], promise[asked], target[asked]
        occupied = rows.occupied.take(index, axis=0)
        if memory in self.levels.limited:
            at = self.levels.limited.index(memory)
            occupied[:, at] += self.prices.tile_bits(target, x, memory)
            context, placed = rows.marks[index, CONTEXT], rows.marks[index, PLACED] | (1 << target)
            fits = np.flatnonzero(self.pruner.roomy(x, occupied, context, placed, memory))
            if len(fits) < len(index):
                self.pruner.count("capacity", len(index) - len(fits))
                index, x, promise, target, occupied = index[fits], x[fits], promise[fits], target[fits], occupied[fits]
        marks = rows.marks.take(index, axis=0)
        link = self.levels.at(memory).parent[marks[:, CONTEXT], target] * self.levels.tensors + target
        crossing = np.int64(-1) << np.int64(self.levels.inner[memory])
        opened, fresh = marks[:, OPEN] | (marks[:, FRESH] & crossing), marks[:, FRESH] & ~crossing
        cost = rows.cost.take(index, axis=0)
        if deferred:
            fresh = fresh | self.levels.bit[memory][link]
        else:
            slide = None
            if choice is not None:
                slide = (choice[0], choice[1], 1 if choice[2] == NEAR else self.prices.inside(choice[0], memory))
            if self.pruner.rules.checked:
                cost += self._checked(link, target, x, marks[:, SPREAD], memory, slide)
            else:
                self._price(cost, link, target, x, marks[:, SPREAD], memory, slide)
        if choice is not None:
            promise = np.tile(_promise(choice), (len(index), 1))
        placed = marks[:, PLACED] | (1 << target)
        good = self.pruner.within(cost, marks, memory, placed, x, occupied)
        if not deferred:
            good = good[~self.prices.again(memory, target, x, marks[:, SPREAD])[good]]
        return rows.derived(
            index[good],
            ("store", memory),
            x=x[good],
            cost=cost[good],
            occupied=occupied[good],
            promise=promise[good],
            open=opened[good],
            fresh=fresh[good],
            placed=placed[good],
            top=target[good],
        )

    def _checked(
        self, link: IntArray, target: IntArray, x: IntArray, spread: IntArray, memory: int, slide: Slide | None
    ) -> FloatArray:
        """What stores of the targets move; each compared with one below which a loop more stands, any that *lowering*
        leaves out. Raises Defect where that store is cheaper or smaller, or may come where the other may not."""
        cost = np.zeros((len(x), self.prices.width))
        self._price(cost, link, target, x, spread, memory, slide)
        left = ~self.rest[target]
        if not left.any():
            return cost
        which = (self._draws.random(len(left)) * left.sum(axis=1)).astype(np.int64)
        classes = np.where(left.any(axis=1), (left.cumsum(axis=1) > which[:, None]).argmax(axis=1), -1)
        for d in range(left.shape[1]):
            mine = np.flatnonzero(classes == d)
            if not len(mine):
                continue
            multiples = self.levels.loops(d, memory, 2)
            places = multiples.at(x[mine, d], spread[mine])
            longer = np.flatnonzero(multiples.sizes[places])
            mine, places = mine[longer], places[longer]
            if not len(mine):
                continue
            larger, any_of = x[mine], (self._draws.random(len(mine)) * multiples.sizes[places]).astype(np.int64)
            larger[:, d] = multiples.flat[multiples.offsets[places] + any_of]
            t, choice, dearer = target[mine], spread[mine], np.zeros((len(mine), self.prices.width))
            self._price(dearer, link[mine], t, larger, choice, memory, slide)
            few, many = (self.prices.tile_bits(t, extents, memory) for extents in (x[mine], larger))
            comes = ~self.prices.again(memory, t, x[mine], choice) | self.prices.again(memory, t, larger, choice)
            cheap = cost[mine] - dearer <= ROUNDING * np.abs(cost[mine])
            if not (cheap.all() and (few <= many).all() and comes.all()):
                raise Defect("a store is cheaper with a loop below it that the rule lowering leaves out")
        return cost

    @cached_property
    def _draws(self) -> np.random.Generator:
        """Which loops `_checked` tries: the same in every run."""
        return np.random.default_rng(0)

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
        if self.prices.uneven.any():
            for at in np.unique(link).tolist():
                mine = np.flatnonzero(link == at)
                parent, tensor = divmod(at, self.levels.tensors)
                cost[mine] += self.prices.charged((tensor, parent, memory), x[mine], spread[mine], slide)
            return
        price, skipped, _ = self.levels.into[memory]
        moved = self.prices.moved(target, x, spread, memory, slide)
        cost += moved[:, None] * price[link, spread]
        for t in self.prices.padded:
            mine = np.flatnonzero(target == t)
            more = self.prices.more(t, x[mine], spread[mine], memory, slide)
            if more is not None:
                cost[mine] += more * price[link[mine], spread[mine]]
        if skipped.any():
            cost -= self.prices.every_elements[target][:, None] * skipped[link, spread]


def _promise(choice: Sliding) -> IntArray:
    """The marks of a promise."""
    d, trips, side = choice
    return np.array((d + 1, trips, side), np.int64)

"""Joining Einsums in program order: partial cascades with equal live tensors and shared loops compete.

Comes in: the blocks of every Einsum. Goes out: the undominated complete cascades. A partial cascade knows its open
loops (those shared with the next Einsum), its live tensors, its cost, and for each tracked memory M how full it is:

* ``alive[d]``: bits of the stores below d open temporal loops that stay alive while the loop below them is open, d <
  depth;
* ``peak[d]``: the worst moment so far among finished items under d open loops, without what is alive further out.

The peak of everything is ``max(peak[0], alive[0] + max(peak[1], alive[1] + ...))``; ``peak[0]`` is checked and dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from typing import Literal

import numpy as np

from ...workload.einsum import Workload
from .aim import settled
from .fused import Block
from .setting import Setting
from .skyline import FloatArray, IntArray, pack, skyline
from .structures import Between, FusedLoop

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Live:
    """A tensor that a later Einsum still needs: its memory, the loops above it, and the rank that each open loop
    iterates.

    ranks: one entry per open loop since its producer; None where the loop does not iterate a rank of it alone.
    """

    tensor: str
    memory: int
    depth: int
    ranks: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Einsums that run at the same time, while more may come.

    first: position of the first one. outer: loops that it shares with the Einsum before the group. units: the members'
    compute units, where these must differ. made: (tensor, its slots) written by the members so far, slots None where
    loops stand between its store and the split. cut: the axis that they share out, by number, and its instances left.
    """

    first: int
    outer: int
    units: tuple[str, ...] = ()
    made: tuple[tuple[str, int | None], ...] = ()
    cut: tuple[int, int] | None = None


Opened = Group | Literal[False] | None  # the group after an Einsum; None: there is none; False: it may not run here
Axes = tuple[str | None, ...]  # of the open loops; None: temporal


@dataclass(frozen=True, slots=True)
class Frontier:
    """What the next Einsum must match: the open loops' axes (None: temporal), the live tensors, and the group of
    Einsums that is open, if some run at the same time.

    splits: how many loops stand above each split that the next Einsum is below. asked: what the Einsums so far ask of
    the splits to come. Both are known only if some Einsum asks for anything.
    """

    axes: tuple[str | None, ...]
    live: tuple[Live, ...]
    group: Group | None = None
    splits: frozenset[int] = frozenset()
    asked: frozenset[Between] = frozenset()

    def temporal(self, depth: int) -> int:
        return sum(axis is None for axis in self.axes[:depth])

    @property
    def depth(self) -> int:
        return self.temporal(len(self.axes))


@dataclass(eq=False)
class Partial:
    """Partial cascades with one frontier. trips [n, open loops]; cost [n, c]; alive [n, memories, depth]; peak likewise
    (entries 1..depth). `left` and `right` point at the rows that were joined: previous partials and a block's rows.
    opened [n, g]: what an open group has gathered (g = 0 without one)."""

    frontier: Frontier
    trips: IntArray
    cost: FloatArray
    alive: IntArray
    peak: IntArray
    parents: tuple[tuple[Partial | None, Block], ...]
    parent: IntArray
    left: IntArray
    right: IntArray
    opened: FloatArray

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, index: IntArray) -> Partial:
        return Partial(
            self.frontier,
            self.trips[index],
            self.cost[index],
            self.alive[index],
            self.peak[index],
            self.parents,
            self.parent[index],
            self.left[index],
            self.right[index],
            self.opened[index],
        )


@dataclass
class Joiner:
    """Joins the Einsums of a workload one by one.

    hopeless: rows -> mask of partial costs that cannot lead to anything better than the incumbent, given the Einsum
    index and the number of the Einsum's own row, counted over all its blocks. asking: some block asks for splits."""

    workload: Workload
    setting: Setting
    axis_names: tuple[str, ...]
    hopeless: Callable[[int, FloatArray, IntArray], np.ndarray]
    counts: dict[str, int] = field(default_factory=dict)
    checkpoint: Callable[[], None] = lambda: None
    asking: bool = False

    @cached_property
    def _last_use(self) -> dict[str, int]:
        """Tensor -> position of the last Einsum that reads it."""
        return {a.tensor: i for i, e in enumerate(self.workload.einsums) for a in e.inputs}

    def start(self) -> list[Partial]:
        memories = len(self.setting.tracked)
        width = len(settled(self.setting.objective))
        zero = np.zeros(1, np.int64)
        empty = np.zeros((1, memories, 0), np.int64)
        return [
            Partial(
                Frontier((), ()),
                np.zeros((1, 0), np.int64),
                np.zeros((1, width)),
                empty,
                empty,
                (),
                zero,
                zero,
                zero,
                np.zeros((1, 0)),
            )
        ]

    def step(self, position: int, partials: list[Partial], blocks: list[Block]) -> list[Partial]:
        """All undominated joins of `partials` with the Einsum at `position`."""
        found: dict[Frontier, list[Partial]] = {}
        alike: dict[Key, list[int]] = {}
        for number, partial in enumerate(partials):
            alike.setdefault(self._asks(position, partial.frontier), []).append(number)
        for start, block in zip(accumulate(map(len, blocks), initial=0), blocks, strict=False):
            self.checkpoint()
            mine = self._accesses(position, block)
            suited = (
                some for some in alike.values() if self._compatible(position, partials[some[0]].frontier, block, mine)
            )
            for partial in (partials[number] for number in sorted(chain.from_iterable(suited))):
                left, right = _pairs(partial.trips, block.trips[:, : len(partial.frontier.axes)])
                if not len(left):
                    continue
                joined = self._join(position, partial, block, mine, left, right, start)
                if joined is not None and len(joined):
                    found.setdefault(joined.frontier, []).append(joined)
        return [self._reduce(parts) for parts in found.values()]

    # ---- matching -------------------------------------------------------------------------------------------------

    def _accesses(self, position: int, block: Block) -> dict[str, Live]:
        """The shared tensors that the Einsum accesses, as this block stores them, with the rank of every fused loop."""
        einsum = self.workload.einsums[position]
        variables = einsum.variables
        placed = {t: (memory, depth) for t, memory, depth in block.structure.backings}
        table = {}
        for i, access in enumerate(einsum.accesses):
            if len(self.workload.consumers[access.tensor]) + (access.tensor in self.workload.producers) < 2:
                continue
            memory, depth = placed.get(i, (0, 0))
            ranks = []
            for loop in block.structure.loops:
                v = variables[loop.variable]
                rank = access.rank_of(v)
                ranks.append(rank if rank is not None and access.indices[rank].simple else None)
            table[access.tensor] = Live(access.tensor, memory, depth, tuple(ranks))
        return table

    def _axes(self, loops: tuple[FusedLoop, ...]) -> tuple[str | None, ...]:
        return tuple(None if loop.axis is None else self.axis_names[loop.axis] for loop in loops)

    def _asks(self, position: int, frontier: Frontier) -> Key:
        """What decides which blocks of an Einsum are `_compatible`."""
        tensors = self.workload.einsums[position].tensors
        met = tuple(live for live in frontier.live if live.tensor in tensors)
        return frontier.axes, frontier.group, frozenset(live.memory for live in frontier.live), met

    def _compatible(self, position: int, frontier: Frontier, block: Block, mine: dict[str, Live]) -> bool:
        shared = len(frontier.axes)
        if shared > len(block.structure.loops) or self._axes(block.structure.loops)[:shared] != frontier.axes:
            return False
        for live in frontier.live:
            own = mine.get(live.tensor)
            if own is None:
                continue
            if (own.memory, own.depth) != (live.memory, live.depth):
                return False
            tied = min(len(live.ranks), shared)
            known = max(tied, live.depth) if live.tensor in self.workload.producers else live.depth
            if own.ranks[:known] != live.ranks[:known] or None in live.ranks[:known]:
                return False
        return True

    # ---- joining --------------------------------------------------------------------------------------------------

    def _still_needed(self, position: int, tensor: str) -> bool:
        return self._last_use.get(tensor, -1) > position

    def _join(
        self,
        position: int,
        partial: Partial,
        block: Block,
        mine: dict[str, Live],
        left: IntArray,
        right: IntArray,
        start: int,
    ) -> Partial | None:
        """The rows that these pairs make; None if they may not follow one another at all."""
        before = partial.frontier
        now = {live.tensor: live for live in before.live}
        fresh = {name: live for name, live in mine.items() if name not in now}
        after = [live for live in (*before.live, *fresh.values()) if self._still_needed(position, live.tensor)]
        open_loops = max((live.depth for live in after), default=0)
        axes = self._axes(block.structure.loops)[:open_loops]
        live_after = tuple(
            sorted(
                (Live(x.tensor, x.memory, x.depth, self._tied(x, fresh, before, open_loops)) for x in after),
                key=lambda x: x.tensor,
            )
        )
        group = self._group(position, before, block, mine, axes)
        if group is False:
            return None
        asked = self._asked(before, block, open_loops)
        if asked is None:
            return None
        splits = frozenset({*(d for d in before.splits if d < open_loops), open_loops} if self.asking else ())
        frontier = Frontier(axes, live_after, group, splits, asked)
        trips = block.trips[right]
        cost = partial.cost[left] + block.cost[right]
        keep = ~self.hopeless(position, cost, start + right)
        self.counts["bound"] = self.counts.get("bound", 0) + int((~keep).sum())
        alive, peak, fits = self._occupy(partial, block, fresh, frontier, left, right, trips)
        self.counts["joint capacity"] = self.counts.get("joint capacity", 0) + int((keep & ~fits).sum())
        self.counts["joined"] = self.counts.get("joined", 0) + len(left)
        index = np.flatnonzero(keep & fits)
        return Partial(
            frontier,
            trips[index, :open_loops],
            cost[index],
            alive[index],
            peak[index],
            ((partial, block),),
            np.zeros(len(index), np.int64),
            left[index],
            right[index],
            np.zeros((len(index), 0)),
        )

    def _group(self, position: int, before: Frontier, block: Block, mine: dict[str, Live], axes: Axes) -> Opened:
        """The group that is open after the Einsum, if any; False if the Einsum may not run here with this block."""
        return None

    def _asked(self, before: Frontier, block: Block, split: int) -> frozenset[Between] | None:
        """What is asked of the splits after the one below `split` loops; None if that is not as it was asked."""
        waiting = set(before.asked)
        for x in block.structure.asked:
            if not any(x.least <= d <= x.most for d in before.splits):
                waiting.add(x)
            elif not x.some:
                return None
        if any(x.some if split < x.least else split <= x.most and not x.some for x in waiting):
            return None
        return frozenset(x for x in waiting if split > x.most)

    def _tied(self, live: Live, fresh: dict[str, Live], before: Frontier, open_loops: int) -> tuple[int | None, ...]:
        """Ranks of the open loops that the producer stood under; loops opened later concern a finished tensor."""
        if live.tensor in fresh:
            return live.ranks[:open_loops]
        return live.ranks[: min(len(before.axes), open_loops)]

    def _occupy(
        self,
        partial: Partial,
        block: Block,
        fresh: dict[str, Live],
        frontier: Frontier,
        left: IntArray,
        right: IntArray,
        trips: IntArray,
    ) -> tuple[IntArray, IntArray, np.ndarray]:
        """(alive, peak, fits) after the Einsum has run inside the open loops."""
        setting = self.setting
        before = partial.frontier
        structure = block.structure
        memories = len(setting.tracked)
        shared_depth, next_depth = before.depth, frontier.depth
        deepest = max(shared_depth, next_depth)
        n = len(left)
        alive = np.zeros((n, memories, deepest), np.int64)
        alive[:, :, :shared_depth] = partial.alive[left]
        peak = np.zeros((n, memories, deepest + 1), np.int64)
        peak[:, :, 1 : shared_depth + 1] = partial.peak[left]
        item = np.zeros((n, memories), np.int64)
        for i, m in enumerate(setting.tracked):
            for live in before.live:
                if live.memory == m:
                    depth = structure.temporal(live.depth)
                    bits = self._tile(live, trips)
                    if depth >= deepest:
                        item[:, i] += self._standing(bits, live, block, False)
                    elif depth >= shared_depth:
                        alive[:, i, depth] += bits
            for live in fresh.values():
                if live.memory == m:
                    depth = structure.temporal(live.depth)
                    bits = self._tile(live, trips)
                    if depth >= deepest:
                        item[:, i] += self._standing(bits, live, block, True)
                    else:
                        alive[:, i, depth] += bits
            own = block.own[right][:, i, :]
            for depth in range(own.shape[1]):
                if depth < deepest:
                    alive[:, i, depth] += own[:, depth]
                else:
                    item[:, i] += own[:, depth]
        peak[:, :, deepest] = self._moment(peak[:, :, deepest], item, block)
        for depth in range(deepest - 1, next_depth - 1, -1):
            peak[:, :, depth] = np.maximum(peak[:, :, depth], alive[:, :, depth] + peak[:, :, depth + 1])
        worst = peak[:, :, next_depth]
        for depth in range(next_depth - 1, -1, -1):
            worst = np.maximum(peak[:, :, depth], alive[:, :, depth] + worst)
        fits = np.ones(n, bool)
        for i, m in enumerate(setting.tracked):
            capacity = setting.capacities[m]
            assert capacity is not None
            fits &= worst[:, i] <= capacity
        return alive[:, :, :next_depth], peak[:, :, 1 : next_depth + 1], fits

    def _standing(self, bits: IntArray, live: Live, block: Block, fresh: bool) -> IntArray:
        """Bits that a tile directly above the Einsum's split adds to its moment. fresh: no Einsum before had it."""
        return bits

    def _moment(self, before: IntArray, item: IntArray, block: Block) -> IntArray:
        """The worst moment of the Einsums below a split, from those before and the next one's."""
        return np.maximum(before, item)

    def _tile(self, live: Live, trips: IntArray) -> IntArray:
        """Bits of the tensor's tile below the loops above its store; none if `Pass` set its room aside for good."""
        if live.memory == 0 and self.workload.tensor(live.tensor).persistent:
            return np.zeros(len(trips), np.int64)
        memory = self.setting.machine.memories[live.memory]
        user = self.workload.producers.get(live.tensor) or self.workload.consumers[live.tensor][0]
        width = memory.bits(self.workload, user, live.tensor) * memory.capacity_share()
        whole = self.workload.tensor(live.tensor).size * width
        return np.asarray(whole // trips[:, : live.depth].prod(axis=1, initial=1))

    def _compared(self, partial: Partial) -> FloatArray:
        """The columns by which partial cascades of one frontier compete, besides the room that they take."""
        return partial.cost

    def _reduce(self, parts: list[Partial]) -> Partial:
        if len(parts) > 1:
            parents: list[tuple[Partial | None, Block]] = []
            shifted = []
            for part in parts:
                shifted.append(part.parent + len(parents))
                parents.extend(part.parents)
            whole = Partial(
                parts[0].frontier,
                np.concatenate([p.trips for p in parts]),
                np.concatenate([p.cost for p in parts]),
                np.concatenate([p.alive for p in parts]),
                np.concatenate([p.peak for p in parts]),
                tuple(parents),
                np.concatenate(shifted),
                np.concatenate([p.left for p in parts]),
                np.concatenate([p.right for p in parts]),
                np.concatenate([p.opened for p in parts]),
            )
        else:
            whole = parts[0]
        if not self.setting.rules.dominance or len(whole) < 2:
            return whole
        n = len(whole)
        values = np.concatenate(
            [self._compared(whole), whole.alive.reshape(n, -1).astype(float), whole.peak.reshape(n, -1).astype(float)],
            axis=1,
        )
        used = values.max(axis=0) > values.min(axis=0)
        chosen = np.ascontiguousarray(values[:, used]) if used.any() else np.ascontiguousarray(values[:, :1])
        kept = skyline(pack(whole.trips), chosen)
        self.counts["dominated joins"] = self.counts.get("dominated joins", 0) + n - len(kept)
        return whole.take(kept)


def _pairs(left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """Every pair of rows with equal trips, as two index arrays: a sorted merge."""
    n = len(left)
    keys = pack(np.concatenate([left, right]))
    a, b = keys[:n], keys[n:]
    order = np.argsort(b, kind="stable")
    sorted_b = b[order]
    first = np.searchsorted(sorted_b, a, side="left")
    counts = np.searchsorted(sorted_b, a, side="right") - first
    repeat = np.repeat(np.arange(n), counts)
    within = np.arange(len(repeat)) - np.repeat(np.cumsum(counts) - counts, counts)
    return repeat, order[first[repeat] + within]

"""Joining Einsums of which some run at the same time.

While a group is open, a partial cascade carries the sums so far, the busy seconds of every component, the time of every
stage, and from which loop on tokens flow; when its last Einsum is joined they become one latency, by the same formula
as `cost.time.schedule`. All of it grows with each of these numbers, so dominance in all of them is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import reduce

import numpy as np

from ....cost.formulas.pipeline import Edge, drain_time, full_tokens
from ....dataclass import dataclass
from ..einsums.orders import JoinStep
from ..fusion.explore import PmappingGroup
from ..joining.compatibility import Axes, Compatibility, LiveTensor, Opened, OpenGroup
from ..joining.join import Joiner, Partial
from ..numerics.pareto import FloatArray, IntArray
from ..numerics.uneven import ceil
from .candidates import Candidates
from .rows import MemberPmappings
from .shares import AxisShare


@dataclass(frozen=True)
class Sums:
    """Where energy and latency stand among the settled columns (None: not there), and the watts of all leakage."""

    energy: int | None
    latency: int | None
    watts: float


@dataclass
class GroupJoiner(Joiner):
    """A joiner for blocks of which some are members of groups. opened: sums, busy seconds, start, stage times."""

    candidates: Candidates = field(kw_only=True)
    sums: Sums = field(kw_only=True)
    components: int = field(kw_only=True)

    # ---- matching -------------------------------------------------------------------------------------------------

    def follows(self, position: int, compatibility: Compatibility, block: PmappingGroup) -> bool:
        group, depth = compatibility.group, block.structure.depth
        if not isinstance(block, MemberPmappings):
            return group is None
        if block.share is not None and self._inside(compatibility, block.share):
            return False
        if group is None:
            return depth > len(compatibility.axes) and self.candidates.grows((position,))
        return depth == len(compatibility.axes) and self._apart(group, block) and self._continues(group, block.share)

    def _inside(self, compatibility: Compatibility, share: AxisShare) -> bool:
        """True if a store in use stands in a memory behind the axis that members have shares of."""
        places = (*(x.memory for x in compatibility.live), *(x.memory for x in compatibility.loans))
        return any(memory in share.inside for memory in places)

    def _apart(self, group: OpenGroup, block: MemberPmappings) -> bool:
        return block.unit is None or block.unit not in group.units

    def _continues(self, group: OpenGroup, share: AxisShare | None) -> bool:
        """True if a member may have this share of what those before it leave."""
        if group.cut is None or share is None:
            return group.cut is None and share is None
        axis, left = group.cut
        return axis == share.axis and left >= share.count

    def _group(
        self, position: int, before: Compatibility, block: PmappingGroup, mine: dict[str, LiveTensor], axes: Axes
    ) -> Opened:
        if not isinstance(block, MemberPmappings):
            return None
        depth = len(block.structure.loops)
        group = before.group or OpenGroup((), len(before.axes))
        group = replace(group, members=(*group.members, position))
        if len(axes) < depth:
            return self._left(group, block.share, None if before.group is not None else False)
        if len(axes) > depth or not self.candidates.grows(group.members):
            return False
        written = mine.get(self.workload.einsums[position].output.tensor)
        made: tuple[tuple[str, int | None], ...] = ()
        if written is not None:
            made = ((written.tensor, written.memory if written.depth == depth else None),)
        units = group.units if block.unit is None else (*group.units, block.unit)
        return self._left(group, block.share, replace(group, units=units, made=(*group.made, *made)))

    def _left(self, before: OpenGroup, share: AxisShare | None, group: Opened) -> Opened:
        """The group with what a member leaves of the axis: something as long as it is open, nothing when it ends."""
        if share is None or group is False:
            return group
        left = (share.size if before.cut is None else before.cut[1]) - share.count
        if (left > 0) != (group is not None):
            return False
        return group and replace(group, cut=(share.axis, left))

    def _grouped(self, position: int, before: Compatibility, group: Opened) -> tuple[tuple[int, ...], int, bool]:
        if before.group is not None:
            return (*before.group.members, position), before.group.outer, not group
        return (group.members, group.outer, False) if group else super()._grouped(position, before, group)

    def _slots(self, memory: int, distance: int) -> int:
        """Tiles that a store holds in turns of what one stage hands to another that stands so far behind it."""
        return max(self.setting.slots[memory], 1 + distance)

    # ---- room -----------------------------------------------------------------------------------------------------

    def _standing(self, bits: IntArray, live: LiveTensor, block: PmappingGroup, group: OpenGroup | None) -> IntArray:
        """What a member writes, and one slot more for each stage that its last reader stands further behind."""
        if group is None or not isinstance(block, MemberPmappings):
            return bits
        distance = len(group.members) - self._stage(group, live.tensor)
        more = self._slots(live.memory, distance) - self._slots(live.memory, distance - 1)
        return np.asarray(bits // self.setting.slots[live.memory] * more)

    def _stage(self, group: OpenGroup, tensor: str) -> int:
        """The stage of the member that writes the tensor."""
        return group.members.index(self.workload.position[self.workload.producers[tensor]])

    def _lent_standing(self, bits: IntArray, block: PmappingGroup, fresh: bool) -> IntArray:
        return bits if fresh or not isinstance(block, MemberPmappings) else np.zeros_like(bits)

    def _at_once(self, block: PmappingGroup) -> bool:
        return isinstance(block, MemberPmappings)

    # ---- time -----------------------------------------------------------------------------------------------------

    def _timed(self, step: JoinStep, partial: Partial, block: PmappingGroup, joined: Partial, start: int) -> Partial:
        if not isinstance(block, MemberPmappings):
            return joined
        opened = self._gathered(partial, block, joined.left, joined.right)
        if joined.compatibility.group is not None:
            joined.opened = opened
            return joined
        group = partial.compatibility.group
        assert group is not None
        outer = max(group.outer, len(joined.compatibility.axes))
        extents = [self.workload.extents[v] for v in self.workload.einsums[step.position].variables]
        variables = [loop.variable for loop in block.structure.loops[: len(partial.compatibility.axes)]]
        chains = [(extents[v], [i for i, x in enumerate(variables) if x == v]) for v in dict.fromkeys(variables)]
        tiles = block.tiles[joined.right]
        tokens = full_tokens(_counted(chains, tiles, np.maximum(self._parts(opened)[2], outer)))
        joined.cost = self._closed(step.position, group, opened, tokens)
        keep = ~self.hopeless(step, joined.cost, start + joined.right)
        self.counts["bound"] = self.counts.get("bound", 0) + int((~keep).sum())
        return joined.take(np.flatnonzero(keep))

    def _gathered(self, partial: Partial, block: MemberPmappings, left: IntArray, right: IntArray) -> FloatArray:
        """What the group has gathered with one more member."""
        width, components = partial.cost.shape[1], block.busy.shape[1]
        if partial.compatibility.group is None:
            before = np.concatenate([partial.cost[left], np.zeros((len(left), components + 1))], axis=1)
        else:
            before = partial.opened[left]
        opened = np.concatenate([before, block.stage[right][:, None]], axis=1)
        if self.sums.energy is not None:
            opened[:, self.sums.energy] += block.energy[right]
        opened[:, width : width + components] += block.busy[right]
        opened[:, width + components] = np.maximum(opened[:, width + components], block.start[right])
        return opened

    def _parts(self, opened: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Sums, busy seconds, start and stage times."""
        width = sum(at is not None for at in (self.sums.energy, self.sums.latency))
        stop = width + self.components
        return opened[:, :width], opened[:, width:stop], opened[:, stop], opened[:, stop + 1 :]

    def _closed(self, position: int, group: OpenGroup, opened: FloatArray, tokens: FloatArray) -> FloatArray:
        """The sums with the whole group. tokens [n]: between two drains."""
        sums, busy, _, stages = self._parts(opened)
        busiest = busy.max(axis=1, initial=0.0)
        times = list(stages.T)
        drain = drain_time(times, self._edges(position, group), tokens, busiest)
        latency = reduce(np.maximum, (drain / tokens, busiest, *times))
        sums = sums.copy()
        if self.sums.latency is not None:
            sums[:, self.sums.latency] += latency
        if self.sums.energy is not None:
            sums[:, self.sums.energy] += self.sums.watts * latency
        return sums

    def _edges(self, last: int, group: OpenGroup) -> tuple[Edge, ...]:
        """Who hands a tile to whom between the stages of a group that ends with the Einsum at `last`."""
        stages = {position: stage for stage, position in enumerate((*group.members, last))}
        found = []
        for tensor, memory in group.made:
            producer = self._stage(group, tensor)
            readers = [self.workload.position[user] for user in self.workload.consumers[tensor]]
            behind = [stages[reader] for reader in readers if reader in stages]
            slots = None if memory is None or not behind else self._slots(memory, max(behind) - producer)
            found += [Edge(producer, stage, slots) for stage in behind]
        return tuple(found)

    def _compared(self, partial: Partial) -> FloatArray:
        """Where every member reads what the one before it writes, only the sum and the longest of the stages count."""
        if partial.compatibility.group is None:
            return partial.cost
        sums, busy, start, stages = self._parts(partial.opened)
        if self.candidates.chained(partial.compatibility.group.members[0]):
            stages = np.stack([stages.sum(axis=1), stages.max(axis=1)], axis=1)
        return np.concatenate([sums, busy, start[:, None], stages], axis=1)


def _counted(
    chains: list[tuple[int, list[int]]], tiles: IntArray, start: FloatArray
) -> Iterator[tuple[int, IntArray, IntArray]]:
    """(extent, token [n], drains [n]) of every rank that loops cut. chains: extents and the numbers of the loops, from
    the outermost in; tiles [n, loops]; those before number `start` [n] drain the pipeline."""
    for extent, loops in chains:
        drained = np.full(len(tiles), extent)
        for i in loops:
            drained = np.where(i < start, tiles[:, i], drained)
        yield extent, tiles[:, loops[-1]], ceil(extent, drained)

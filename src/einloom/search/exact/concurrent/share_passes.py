"""One pass of the search where the members of a group may share out the instances of an axis.

Members are explored once for each share. While a group is open, a partial cascade knows the axis and the instances
left; a group ends when none are. Bounds: a group that shares out an axis takes as long as each member keeps what is its
own busy, so also as long as the mean of these, every member weighed by its share: seconds of such components, times the
share, add up like those of components that all use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ....problem import Problem
from ...method import Watcher
from ..attempt import ExactOptions
from ..bounds.relaxation import einsum_bound
from ..einsums.classes import EinsumClass, UnitOption
from ..einsums.holds import Placement
from ..einsums.spatial import RankClasses
from ..fusion.explore import PmappingGroup
from ..fusion.floors import Floors
from ..joining.join import Axes, Compatibility, LiveTensor, Opened, OpenGroup
from ..model import Setting
from ..numerics.pareto import FloatArray
from ..traceback import Where
from .candidates import Candidate, Candidates
from .joins import GroupJoiner
from .passes import ConcurrentAttempt, Met
from .rows import MemberPmappings
from .shares import AxisShare, ShareExplorer, ShareMemberPmappings, every_cut, narrowed, private


@dataclass(frozen=True)
class ShareCandidates(Candidates):
    """Windows whose members may have shares of an axis.

    insides: memories behind each axis. whole: members may run on all instances, too.
    """

    insides: frozenset[frozenset[int]] = field(kw_only=True)
    whole: bool = field(kw_only=True)

    def _fit(self, members: range, choices: list[list[tuple[UnitOption, Placement]]]) -> bool:
        """True if every memory has room, behind an axis for one member at a time."""
        limited = [(m, capacity) for m, capacity in enumerate(self.capacities) if m and capacity is not None]
        return (self.whole and super()._fit(members, choices)) or any(
            all((max if m in inside else sum)(self._needs(m, members, choices)) <= room for m, room in limited)
            for inside in self.insides
        )


@dataclass
class ShareJoiner(GroupJoiner):
    """A joiner for blocks of which some are members with a share of an axis."""

    def follows(self, position: int, compatibility: Compatibility, block: PmappingGroup) -> bool:
        cut = block.cut if isinstance(block, ShareMemberPmappings) else None
        if cut is not None and any(live.memory in cut.inside for live in compatibility.live):
            return False
        if compatibility.group is not None and not self._continues(compatibility.group, cut):
            return False
        return super().follows(position, compatibility, block)

    def _continues(self, group: OpenGroup, cut: AxisShare | None) -> bool:
        if group.cut is None or cut is None:
            return group.cut is None and cut is None
        axis, left = group.cut
        return axis == cut.axis and left >= cut.share

    def _group(
        self, position: int, before: Compatibility, block: PmappingGroup, mine: dict[str, LiveTensor], axes: Axes
    ) -> Opened:
        group = super()._group(position, before, block, mine, axes)
        if group is False or not isinstance(block, ShareMemberPmappings):
            return group
        have = block.cut.size if before.group is None or before.group.cut is None else before.group.cut[1]
        left = have - block.cut.share
        if group is None:
            return None if left == 0 else False
        return replace(group, cut=(block.cut.axis, left)) if left > 0 else False


class ShareAttempt(ConcurrentAttempt):
    """Complete solutions of a problem whose groups may share out an axis."""

    joiner = ShareJoiner

    def __init__(
        self,
        problem: Problem,
        options: ExactOptions,
        watcher: Watcher,
        counts: dict[str, int],
        checkpoint: Callable[[], None],
    ) -> None:
        super().__init__(problem, options, watcher, counts, checkpoint)
        self.together = problem.mapspace.concurrent != "axis" and (self.timed or self.users.any_contested)
        self.cuts = every_cut(problem.machine, self.signatures)
        every = ((s, cut) for s in set(self.signatures) for cut in self.cuts)
        self.narrow = {(s, cut): RankClasses(narrowed(s, cut), checkpoint) for s, cut in every}
        candidates = self.candidates
        self.candidates = ShareCandidates(
            candidates.workload,
            candidates.signatures,
            candidates.most,
            candidates.apart,
            candidates.slots,
            candidates.capacities,
            candidates.least,
            insides=frozenset(cut.inside for cut in self.cuts),
            whole=self.together,
        )
        self._quick: dict[tuple[int, AxisShare], float] = {}
        self._sharers: dict[tuple[int, AxisShare], ShareExplorer] = {}  # asked for floors only

    # ---- bounds ---------------------------------------------------------------------------------------------------

    def _least_of(self, setting: Setting, sig: EinsumClass) -> float:
        """With a share of an axis that must be used in full, fewer instances may cost less."""
        least = super()._least_of(setting, sig)
        for cut in self.cuts if sig in self._joining else ():
            classes = self.narrow[sig, cut]
            if not self._fewer(sig, classes) and Floors(setting, classes, self.checkpoint).least() < least:
                least = min(least, einsum_bound(setting, classes, self.checkpoint))
        return least

    @cached_property
    def _joining(self) -> frozenset[EinsumClass]:
        """What Einsums that may be members look like."""
        return frozenset(self.signatures[i] for i in self.candidates.members)

    def _fewer(self, sig: EinsumClass, classes: RankClasses) -> bool:
        """True if all spatial choices of a share are choices of the whole axis too."""
        whole = {option.unit: set(self.classes[sig].spreads(option)) for option in sig.units}
        return all(whole[option.unit] >= set(classes.spreads(option)) for option in classes.signature.units)

    def _least_busy(self, position: int, option: UnitOption, held: Placement) -> FloatArray:
        """Per component the least seconds in any place; of those that a member has for itself, times its share."""
        key = (self.alike[position], option.unit, held)
        if key not in self._floors:
            endless = np.full(len(self.components), np.inf)
            found = super()._least_busy(position, option, held) if self.together else endless
            for cut in self.cuts:
                explorer = self._endless(position, cut)
                weights = np.where(explorer.private, cut.share / cut.size, 1.0)
                found = np.minimum(found, explorer.least_busy(option, held) * weights)
            self._floors[key] = found
        return self._floors[key]

    def _endless(self, position: int, cut: AxisShare) -> ShareExplorer:
        """An explorer without limits, to be asked for floors only."""
        first = self.alike[position]
        if (first, cut) not in self._sharers:
            endless = np.full(len(self.setting.columns), np.inf)
            self._sharers[first, cut] = self._sharer(self.signatures[first], cut, endless, frozenset(), [])
        return self._sharers[first, cut]

    def _sharer(
        self,
        signature: EinsumClass,
        cut: AxisShare,
        limits: FloatArray,
        inner: frozenset[int],
        bounds: list[tuple[int, float]],
    ) -> ShareExplorer:
        classes, watch = self.narrow[signature, cut], (self.counts, self.checkpoint)
        return ShareExplorer(self.whole, classes, limits, *watch, self.components, inner, bounds, cut)

    def _quickest(self, position: int, cut: AxisShare) -> float:
        """Seconds that a member with this share takes at least; infinite if it may not have it."""
        first = self.alike[position]
        if (first, cut) not in self._quick:
            explorer = self._endless(first, cut)
            units = explorer.signature.units
            each = [explorer.least_busy(option, held).max() for option in units for held in option.held]
            self._quick[first, cut] = min(each, default=float("inf"))
        return self._quick[first, cut]

    def _useful(self, position: int, cut: AxisShare) -> float:
        """The most seconds that a stage with this share may take; below zero if no group can make use of it."""
        _, latency = self._left(position)
        found = -1.0
        for candidate in self.candidates.around(position):
            most = latency - (self.seconds.sum() - self.seconds[list(candidate.members)].sum())
            if self._shared_out(candidate, position, cut, most):
                found = max(found, most)
        return found

    def _shared_out(self, candidate: Candidate, position: int, cut: AxisShare, most: float) -> bool:
        """True if the other members can have what is left and take at most so many seconds each."""
        need = cut.share
        for i in candidate.members:
            mine = [c for c in self.cuts if c.axis == cut.axis and self._quickest(i, c) <= most]
            if i == position and cut not in mine:
                return False
            if i != position:
                need += min((c.share for c in mine), default=cut.size)
        return need <= cut.size

    # ---- rows -----------------------------------------------------------------------------------------------------

    def _explored(
        self, positions: list[int], inner: frozenset[int], bounds: list[tuple[int, float]], met: Met
    ) -> list[MemberPmappings]:
        """The blocks of members that look alike, and those for every share that some group can use."""
        found = super()._explored(positions, inner, bounds, met) if self.together else []
        for cut in self.cuts:
            useful = [(i, most) for i in positions if (most := self._useful(i, cut)) >= 0]
            if useful:
                limits = np.max([self._share_limits(i, cut, most) for i, most in useful], axis=0)
                explorer = self._sharer(self.signatures[positions[0]], cut, limits, inner, bounds)
                explorer.allowed, explorer.stacks = met.allowed, met.stacks
                found += explorer.members()
            else:
                self.counts["useless shares"] = self.counts.get("useless shares", 0) + 1
        return found

    def _share_limits(self, position: int, cut: AxisShare, most: float) -> FloatArray:
        """The largest useful value of each column of a member with this share."""
        width = len(self.setting.columns)
        if not self.aim.finite:
            return np.full(width, np.inf)
        energy, latency = self._left(position)
        busy = self.candidates.limits(position, latency, self.seconds)
        alone = private(self.problem.machine, self.setting.columns, self.components, cut)
        busy = np.minimum(np.where(alone, busy * (cut.size / cut.share), busy), most)
        return self.components.columns(busy, energy, width)

    # ---- joins and trees ------------------------------------------------------------------------------------------

    def _where(self, members: list[tuple[PmappingGroup, int]]) -> Where:
        cuts = [block.cut for block, _ in members if isinstance(block, ShareMemberPmappings)]
        return (cuts[0].name, tuple(cut.share for cut in cuts)) if cuts else super()._where(members)

"""What may run at the same time in one problem: which Einsums, on what part of the machine, and for how long at least.

Comes in: an attempt's signatures and setting. Goes out: `Groups`, with the candidates, and explorers of members. This
is all that says how Einsums are concurrent: members that share the whole machine are explored once (share None), and
once for each share that they may have of an axis.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from ....once import once_each
from ..attempt import Attempt
from ..bounds.relaxation import einsum_bound
from ..einsums.classes import EinsumClass, UnitOption
from ..einsums.holds import Placement
from ..einsums.spatial import RankClasses
from ..fusion.floors import Floors
from ..model import Setting
from ..numerics.pareto import FloatArray
from .candidates import Candidates, TimedComponents
from .rows import GroupExplorer, MemberKind
from .shares import AxisShare, every_share, narrowed


class Groups:
    """The groups that a problem's mapspace allows.

    whole: the setting with every memory that branches of one split may fill together. components: what keeps time.
    shares: the parts of the machine that members may have, None for all of it. classes: of an Einsum with each share.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.problem, self.signatures = attempt.problem, attempt.signatures
        self.counts = attempt.counts
        space, machine = self.problem.mapspace, self.problem.machine
        self.whole = whole = self._crowded(attempt)
        self.components = TimedComponents.of(machine, whole.columns)
        self.timed = any(column.kind == "time" for column in whole.columns)
        cuts = every_share(machine, self.signatures) if "axis" in space.places else ()
        together = space.concurrent != "axis" and (self.timed or attempt.users.any_contested)
        self.shares: tuple[AxisShare | None, ...] = (None, *cuts) if together else cuts
        self.classes: dict[tuple[EinsumClass, AxisShare | None], RankClasses] = {
            (s, cut): RankClasses(narrowed(s, cut), attempt.checkpoint) for s in set(self.signatures) for cut in cuts
        }
        self.classes.update({(signature, None): found for signature, found in attempt.classes.items()})
        self.apart = space.places == ("unit",)
        self.candidates = Candidates(
            self.problem.workload,
            self.signatures,
            1 if space.max_fused_loops == 0 else space.max_group,
            self.apart,
            whole.slots,
            whole.capacities,
            frozenset(frozenset[int]() if share is None else share.inside for share in self.shares),
            self.least_busy,
            space.order == "free",
        )

    def _crowded(self, attempt: Attempt) -> Setting:
        """As its setting, with every memory that branches of one split may fill together."""
        workload, setting = self.problem.workload, attempt.setting
        capacities = list(setting.capacities)
        for i, memory in enumerate(self.problem.machine.memories[1:], 1):
            slots = max(memory.capacity_share(), self.problem.mapspace.max_group)
            tiles = sum(
                workload.tensor(name).size * tensor.bits[i]
                for einsum, signature in zip(workload.einsums, self.signatures, strict=True)
                for name, tensor in zip(einsum.tensors, signature.tensors, strict=True)
            )
            room = None if memory.size is None else memory.size - attempt.set_aside.get(i, 0)
            capacities[i] = None if room is None or slots * tiles <= room else room
        finite = (i for i, capacity in enumerate(capacities) if i and capacity is not None)
        tracked = tuple(sorted({*setting.tracked, *finite}))
        return replace(setting, tracked=tracked, capacities=tuple(capacities))

    def kind(
        self,
        share: AxisShare | None,
        inner: frozenset[int] = frozenset(),
        bounds: tuple[tuple[int, float], ...] = (),
    ) -> MemberKind:
        """Members with this part of the machine."""
        return MemberKind(self.components, self.apart, inner, bounds, share)

    def explorer(self, signature: EinsumClass, limits: FloatArray, kind: MemberKind) -> GroupExplorer:
        """What explores such members."""
        return GroupExplorer(self.whole, self.classes[signature, kind.share], limits, self.counts, kind)

    # ---- bounds ---------------------------------------------------------------------------------------------------

    @once_each
    def least_busy(self, signature: EinsumClass, option: UnitOption, held: Placement) -> FloatArray:
        """Per component the least seconds in any place; of those that a member has for itself, times its share.

        A group that shares out an axis takes as long as each member keeps what is its own busy, so also as long as the
        mean of these, every member weighed by its share: such seconds add up like those of components that all use.
        """
        found = np.full(len(self.components), np.inf)
        for share in self.shares:
            explorer = self._endless(signature, share)
            weights = 1.0 if share is None else np.where(explorer.private, share.count / share.size, 1.0)
            found = np.minimum(found, explorer.least_busy(option, held) * weights)
        return found

    @once_each
    def _endless(self, signature: EinsumClass, share: AxisShare | None) -> GroupExplorer:
        """An explorer without limits, asked for floors only."""
        return self.explorer(signature, np.full(len(self.whole.columns), np.inf), self.kind(share))

    @once_each
    def quickest(self, signature: EinsumClass, share: AxisShare) -> float:
        """Seconds that a member with this share takes at least; infinite if it may not have it."""
        explorer = self._endless(signature, share)
        units = explorer.signature.units
        each = [explorer.least_busy(option, held).max() for option in units for held in option.held]
        return min(each, default=float("inf"))

    def least_of(self, setting: Setting, signature: EinsumClass, whole: float) -> float:
        """What an Einsum costs at least, given what it does on the whole machine: with a share of an axis that must be
        used in full, fewer instances may cost less."""
        least = whole
        for share in self.shares if signature in self._joining else ():
            classes = self.classes[signature, share]
            if share is None or self.fewer(signature, classes):
                continue
            if Floors(setting, classes).least() < least:
                least = min(least, einsum_bound(setting, classes))
        return least

    @cached_property
    def _joining(self) -> frozenset[EinsumClass]:
        """What Einsums that may be members look like."""
        return frozenset(self.signatures[i] for i in self.candidates.members)

    def fewer(self, signature: EinsumClass, classes: RankClasses) -> bool:
        """True if all spatial choices of a share are choices of the whole axis too."""
        whole = {option.unit: set(self.classes[signature, None].spreads(option)) for option in signature.units}
        return all(whole[option.unit] >= set(classes.spreads(option)) for option in classes.signature.units)

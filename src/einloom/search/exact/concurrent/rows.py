"""Rows of an Einsum that runs at the same time as its neighbours: energy and busy seconds of every component.

Comes in: a signature and its tables. Goes out: `MemberPmappings`. What such an Einsum adds to the latency is known only
when its group is complete, so its pmappings compete by every component until then.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....dataclass import dataclass
from ..einsums.classes import UnitOption
from ..einsums.holds import Placement, backing
from ..einsums.spatial import RankClasses
from ..fusion.explore import Explorer, Origin, PmappingGroup, Remainder
from ..fusion.templates import FusedTemplate, OwnStore
from ..model import Setting
from ..numerics.pareto import FloatArray, IntArray
from .candidates import TimedComponents, drains, kept_apart, may_be_apart
from .shares import AxisShare, private


@dataclass(eq=False)
class MemberPmappings(PmappingGroup):
    """Rows of a member on one unit. cost: lower bounds of what they add. energy [n]: joules without leakage.

    busy [n, components]: seconds, of what the branches share. alone [n]: seconds of what the member has for itself.
    start [n]: the first fused loop from which on its stores let tokens flow. share: of an axis, if members have one.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (*PmappingGroup.COLUMNS, "energy", "busy", "alone", "start")

    energy: FloatArray = field(kw_only=True)
    busy: FloatArray = field(kw_only=True)
    alone: FloatArray = field(kw_only=True)
    start: IntArray = field(kw_only=True)
    unit: str | None = field(kw_only=True)
    share: AxisShare | None = field(kw_only=True)

    @property
    def stage(self) -> FloatArray:
        """Seconds that each row takes as a stage."""
        return np.asarray(np.maximum(self.busy.max(axis=1, initial=0.0), self.alone))


@dataclass(frozen=True)
class MemberKind:
    """What members of groups that are explored together have in common.

    inner: tensors that may stand directly above the split. bounds: (component, seconds): a row adds at least the least
    sum of its seconds on the component and these. apart: rows on different units do not compete. share: the part of an
    axis that members have while the others have the rest; None: branches share all of the machine.
    """

    components: TimedComponents
    apart: bool = False
    inner: frozenset[int] = frozenset()
    bounds: tuple[tuple[int, float], ...] = ()
    share: AxisShare | None = None


class GroupExplorer(Explorer):
    """All rows of one signature, narrowed to the members' share, that may be part of a group.

    Seconds of members add up component by component, so no time is settled before its group is complete (rule
    ``settled`` is off).
    """

    def __init__(
        self, setting: Setting, classes: RankClasses, limits: FloatArray, counts: dict[str, int], kind: MemberKind
    ) -> None:
        setting = replace(setting, rules=replace(setting.rules, settled=False))
        super().__init__(setting, classes, limits, counts)
        self.kind = kind
        self.components = kind.components
        self.private = private(setting.machine, setting.columns, kind.components, kind.share)
        self.wanted = {option.unit: self._joinable(option) for option in self.signature.units}
        self._units = {option.unit: i for i, option in enumerate(self.signature.units)}
        self._numbers = {(o.unit, held): i for o in self.signature.units for i, held in enumerate(o.held)}

    def _joinable(self, option: UnitOption) -> NDArray[np.bool_]:
        """The choices [stores, spatial] with which an Einsum can be a member: it backs something on chip, with no
        spatial loop above, and in a place where branches can be kept apart (`kept_apart`)."""
        deepest = [max((backing(held, t) for t in self.signature.fusable), default=0) for held in option.held]
        flat = {m: self.classes.undivided(option, m) for m in set(deepest)}
        good = [m > 0 and may_be_apart(self.signature, option, h) for m, h in zip(deepest, option.held, strict=True)]
        return np.array([flat[m] & one for m, one in zip(deepest, good, strict=True)], bool)

    def members(self) -> list[MemberPmappings]:
        """The blocks, each of one unit where units matter."""
        found = []
        for block in self.blocks():
            if not self.kind.apart:
                found.append(self._member(block, None))
                continue
            units = np.array([self._units[variant.option.unit] for variant in block.variants])[block.variant]
            for number in np.unique(units):
                chosen = block.take(np.flatnonzero(units == number))
                found.append(self._member(chosen, self.signature.units[number].unit))
        return found

    def least_busy(self, option: UnitOption, held: Placement) -> FloatArray:
        """Seconds per component that every member with this choice of held tensors takes; infinite if there is none."""
        number = self._numbers.get((option.unit, held))
        chosen = np.flatnonzero(self.wanted[option.unit][number]) if number is not None else ()
        if not len(chosen):
            return np.full(len(self.components), np.inf)
        mine = self.signature.units[self._units[option.unit]]
        return np.asarray(self.components.busy(self.floors.of(mine, held)[chosen], mine.unit).min(axis=0))

    @property
    def _lowering(self) -> frozenset[int]:
        """Below the loop, a store with one slot would make it drain the pipeline."""
        return frozenset(m for m, slots in enumerate(self.setting.slots) if slots > 1)

    def _member(self, block: PmappingGroup, unit: str | None) -> MemberPmappings:
        width, share = len(self.components), self.kind.share
        energy, busy = block.cost[:, 0], np.ascontiguousarray(block.cost[:, 1 : 1 + width])
        alone = np.zeros(len(block)) if share is None else block.cost[:, -1]
        seconds = np.min([self._weighed(busy, alone, component) + more for component, more in self.kind.bounds], axis=0)
        total = energy + self.setting.machine.leakage * seconds
        settled = {"energy": total[:, None], "latency": seconds[:, None], "traffic": energy[:, None]}
        return MemberPmappings(
            block.structure,
            block.tiles,
            settled.get(self.setting.objective.name, np.stack([total, seconds], axis=1)),
            block.own,
            block.variant,
            block.remainder,
            block.variants,
            energy=energy,
            busy=busy,
            alone=alone,
            start=block.cost[:, 1 + width].astype(np.int64),
            unit=unit,
            share=share,
        )

    def _weighed(self, busy: FloatArray, alone: FloatArray, component: int) -> FloatArray:
        """Seconds on a component that add up over the members of a group: of what a member has for itself they count as
        much as its share."""
        share = self.kind.share
        if share is not None and self.private[component]:
            return np.asarray(alone * (share.count / share.size))
        return busy[:, component]

    def _fill(
        self,
        structure: FusedTemplate,
        own: tuple[OwnStore, ...],
        option: UnitOption,
        held: Placement,
        remainder: Remainder,
    ) -> bool:
        depth = len(structure.loops)
        inside = all(t in self.kind.inner for t, _, place in structure.backings if place == depth)
        odd = any(s.over or s.asked or self._in_turns(s) for s in own)
        if not inside or odd or not kept_apart(self.signature, option, structure, own):
            return True
        return super()._fill(self._lowered(structure, own), own, option, held, remainder)

    def _in_turns(self, store: OwnStore) -> bool:
        """True for a store for several readers that holds several tiles: no number of them is argued for stages."""
        return store.part is not None and self.setting.slots[store.memory] > 1

    def _lowered(self, structure: FusedTemplate, own: tuple[OwnStore, ...]) -> FusedTemplate:
        """The structure with a note of the own stores that mostly stand below the split: there they serve one Einsum
        whatever the others access."""
        if not structure.alone:
            return structure
        _, lowered = drains(self.signature, structure, own, self.setting.slots)
        late = {(s.tensor, s.depth) for s in lowered} - {(s.tensor, s.depth) for s in own if s not in lowered}
        alone = (replace(x, late=True) if (x.tensor, x.loops) in late else x for x in structure.alone)
        return replace(structure, alone=frozenset(alone))

    def _settled(self, cost: FloatArray, structure: FusedTemplate, variant: Origin) -> FloatArray:
        """Energy, seconds of each component that branches share, where tokens begin to flow, then (twice) the unit if
        units must differ, and the seconds of what a member with a share has for itself."""
        start, _ = drains(self.signature, structure, variant.own, self.setting.slots)
        busy = self.components.busy(cost, variant.option.unit)
        unit = self._units[variant.option.unit]
        marks = np.tile(np.array([start, unit, -unit] if self.kind.apart else [start], float), (len(cost), 1))
        columns = [self.components.dynamic(cost)[:, None], np.where(self.private, 0.0, busy), marks]
        if self.kind.share is not None:
            columns.append(busy[:, self.private].max(axis=1, initial=0.0)[:, None])
        return np.concatenate(columns, axis=1)

    def _reserved(self, *parts: Any) -> IntArray:
        """As for others; in a memory behind an axis of which members have shares nothing: nobody else is there."""
        reserved = super()._reserved(*parts)
        if self.kind.share is not None:
            reserved[:, [i for i, m in enumerate(self.setting.tracked) if m in self.kind.share.inside]] = 0
        return reserved

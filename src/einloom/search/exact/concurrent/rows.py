"""Rows of an Einsum that runs at the same time as its neighbours: energy and busy seconds of every component.

Comes in: a signature and its tables. Goes out: `MemberPmappings`. What such an Einsum adds to the latency is known only
when its group is complete, so its pmappings compete by every component until then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..einsums.classes import UnitOption
from ..einsums.holds import Placement, backing
from ..einsums.spatial import RankClasses
from ..fusion.explore import Explorer, Origin, PmappingGroup, Remainder
from ..fusion.templates import FusedTemplate, OwnStore
from ..model import Setting
from ..numerics.pareto import FloatArray, IntArray
from ..prices.columns import leakage
from .candidates import TimedComponents, drains, kept_apart, may_be_apart


@dataclass(eq=False)
class MemberPmappings(PmappingGroup):
    """Rows of a member on one unit. cost: lower bounds of what they add. energy [n]: joules without leakage.

    busy [n, components]: seconds. start [n]: the first fused loop from which on its stores let tokens flow.
    """

    energy: FloatArray = field(default_factory=lambda: np.zeros(0))
    busy: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    start: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    unit: str | None = None

    @property
    def stage(self) -> FloatArray:
        """Seconds that each row takes as a stage."""
        return np.asarray(self.busy.max(axis=1, initial=0.0))

    def take(self, index: IntArray) -> MemberPmappings:
        return replace(
            self,
            tiles=self.tiles[index],
            cost=self.cost[index],
            own=self.own[index],
            variant=self.variant[index],
            remainder=self.remainder[index],
            energy=self.energy[index],
            busy=self.busy[index],
            start=self.start[index],
        )


class GroupExplorer(Explorer):
    """All rows of one signature that may be part of a group.

    Seconds of members add up component by component, so no time is settled before its group is complete (rule
    ``settled`` is off).

    inner: tensors that may stand directly above the split. bounds: (component, seconds): a row adds at least the least
    sum of its seconds on the component and these. apart: rows on different units do not compete.
    """

    def __init__(
        self,
        setting: Setting,
        classes: RankClasses,
        limits: FloatArray,
        counts: dict[str, int],
        checkpoint: Callable[[], None],
        components: TimedComponents,
        inner: frozenset[int],
        bounds: list[tuple[int, float]],
        apart: bool,
    ) -> None:
        setting = replace(setting, rules=replace(setting.rules, settled=False))
        super().__init__(setting, classes, limits, counts, checkpoint)
        self.components = components
        self.inner = inner
        self.bounds = bounds
        self.apart = apart
        self.wanted = {option.unit: self._joinable(option) for option in self.signature.units}
        self._numbers = {
            option.unit: {held: i for i, held in enumerate(option.held)} for option in self.signature.units
        }

    def _joinable(self, option: UnitOption) -> NDArray[np.bool_]:
        """The choices [stores, spatial] with which an Einsum can be a member: it backs something on chip, with no
        spatial loop above, and in a place where branches can be kept apart (`kept_apart`)."""
        deepest = [max((backing(held, t) for t in self.fusable), default=0) for held in option.held]
        flat = {m: self.classes.undivided(option, m) for m in set(deepest)}
        good = [m > 0 and may_be_apart(self.signature, option, h) for m, h in zip(deepest, option.held, strict=True)]
        return np.array([flat[m] & one for m, one in zip(deepest, good, strict=True)], bool)

    def members(self) -> list[MemberPmappings]:
        """The blocks, each of one unit."""
        found = []
        for block in self.blocks():
            units = np.array([self._unit(variant) for variant in block.variants])[block.variant]
            for number in np.unique(units) if self.apart else [-1]:
                chosen = block.take(np.flatnonzero((units == number) | (number < 0)))
                found.append(self._member(chosen, None if number < 0 else self._names[int(number)]))
        return found

    def least_busy(self, option: UnitOption, held: Placement) -> FloatArray:
        """Seconds per component that every member with this choice of held tensors takes; infinite if there is none."""
        chosen = np.flatnonzero(self.wanted[option.unit][self._numbers[option.unit][held]])
        if not len(chosen):
            return np.full(len(self.components), np.inf)
        return np.asarray(self.components.busy(self.floors.of(option, held)[chosen], option.unit).min(axis=0))

    @property
    def _lowering(self) -> frozenset[int]:
        """Below the loop, a store with one slot would make it drain the pipeline."""
        return frozenset(m for m, slots in enumerate(self.setting.slots) if slots > 1)

    @property
    def _names(self) -> list[str | None]:
        return [option.unit for option in self.signature.units]

    def _unit(self, variant: Origin) -> int:
        return self._names.index(variant.option.unit)

    def _member(self, block: PmappingGroup, unit: str | None) -> MemberPmappings:
        width = len(self.components)
        energy, busy = block.cost[:, 0], np.ascontiguousarray(block.cost[:, 1 : 1 + width])
        seconds = np.min([self._weighed(block, component) + more for component, more in self.bounds], axis=0)
        total = energy + leakage(self.setting.machine) * seconds
        alone = {"energy": total[:, None], "latency": seconds[:, None], "traffic": energy[:, None]}
        cost = alone.get(self.setting.objective.name, np.stack([total, seconds], axis=1))
        return MemberPmappings(
            block.structure,
            block.tiles,
            cost,
            block.own,
            block.variant,
            block.remainder,
            block.variants,
            energy,
            busy,
            block.cost[:, 1 + width].astype(np.int64),
            unit,
        )

    def _weighed(self, block: PmappingGroup, component: int) -> FloatArray:
        """Seconds on a component that add up over the members of a group."""
        return block.cost[:, 1 + component]

    def _fill(
        self,
        structure: FusedTemplate,
        own: tuple[OwnStore, ...],
        option: UnitOption,
        held: Placement,
        memory: int,
        remainder: Remainder,
    ) -> None:
        depth = len(structure.loops)
        inside = all(t in self.inner for t, _, place in structure.backings if place == depth)
        if inside and not any(s.over or s.asked for s in own) and kept_apart(self.signature, option, structure, own):
            super()._fill(self._lowered(structure, own), own, option, held, memory, remainder)

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
        """Energy, seconds of each component, where tokens begin to flow, and (twice) the unit if units must differ."""
        start, _ = drains(self.signature, structure, variant.own, self.setting.slots)
        columns = [self.components.dynamic(cost)[:, None], self.components.busy(cost, variant.option.unit)]
        marks = [start, *((n, -n)[i] for n in [self._unit(variant)] for i in (0, 1) if self.apart)]
        columns.append(np.tile(np.array(marks, float), (len(cost), 1)))
        return np.concatenate(columns, axis=1)

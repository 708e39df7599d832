"""Rows of an Einsum that has a share of an axis while its neighbours have the rest.

Comes in: a signature, and an `AxisShare`: an axis with so many of its instances. Goes out: `ShareMemberPmappings`,
those of a machine whose axis is that small. What stands behind the axis is the branch's own: its memories hold nothing
of other branches, and its seconds, and those of the compute units, add to nobody's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import numpy as np

from ....machine.levels import Machine
from ....mapspace.ffm.shares import least_share
from ..einsums.classes import EinsumClass, UnitOption
from ..einsums.holds import Placement, backing
from ..einsums.spatial import RankClasses
from ..fusion.explore import Origin, PmappingGroup
from ..fusion.match import Below
from ..fusion.templates import FusedTemplate, OwnStore
from ..fusion.tilings import Tilings
from ..model import Setting
from ..numerics.pareto import FloatArray, IntArray
from ..pmappings.levels import Levels
from ..prices.columns import Column
from .candidates import TimedComponents, drains
from .rows import GroupExplorer, MemberPmappings


@dataclass(frozen=True, slots=True)
class AxisShare:
    """So many of an axis's instances. axis: its number; fanout: that of its fanout; inside: memories behind it."""

    axis: int
    name: str
    fanout: int
    share: int
    size: int
    inside: frozenset[int]

    @property
    def unit(self) -> int:
        """Shares are multiples of it."""
        return least_share(self.size)


def every_cut(machine: Machine, signatures: list[EinsumClass]) -> tuple[AxisShare, ...]:
    """Every share that leaves something to others, of one of all axes that no Einsum can tell apart."""
    found: list[AxisShare] = []
    seen: set[tuple[object, ...]] = set()
    for i, (f, axis) in enumerate((f, axis) for f, fanout in enumerate(machine.fanouts) for axis in fanout.axes):
        look = tuple(signature.axes[i] for signature in signatures)
        if look not in seen:
            seen.add(look)
            place = machine.position[axis.name]
            inside = frozenset(m for m, memory in enumerate(machine.memories) if machine.position[memory.name] > place)
            unit = least_share(axis.size)
            found += [AxisShare(i, axis.name, f, n, axis.size, inside) for n in range(unit, axis.size, unit)]
    return tuple(found)


def narrowed(signature: EinsumClass, cut: AxisShare) -> EinsumClass:
    """The Einsum with this share of the axis, on units that have one and with stores that may stand above a split of
    it. It has no units where nothing of it may.

    No spatial loop stands above such a split: axes above every memory that may hold what stands there are left alone,
    unless they must be used in full, which then says that no row will do.
    """
    links = [t for t, tensor in enumerate(signature.tensors) if tensor.intermediate]
    units = []
    for option in signature.units:
        held = tuple(
            choice
            for choice in option.held
            if not any(backing(choice, t) in cut.inside for t in links) and any(backing(choice, t) for t in links)
        )
        if held and (option.unit is None or option.fanouts > cut.fanout):
            units.append(replace(option, held=held))
    places = (option.above[max(backing(h, t) for t in links)] for option in units for h in option.held)
    above = min(places, default=0)
    axes = tuple(
        replace(axis, size=cut.share if i == cut.axis else 1 if axis.fanout < above and not axis.full else axis.size)
        for i, axis in enumerate(signature.axes)
    )
    return replace(signature, axes=axes, units=tuple(units))


def private(machine: Machine, columns: tuple[Column, ...], components: TimedComponents, cut: AxisShare) -> np.ndarray:
    """Mask of the components that every branch has for itself."""
    place = machine.position[cut.name]
    mask = np.zeros(len(components), bool)
    names = [*(memory.name for memory in machine.memories), *(toll.name for toll in machine.tolls)]
    for i, ports in enumerate(components.memories):
        mask[i] = machine.position[names[columns[ports[0]].memory]] > place
    for i, unit in enumerate(components.units):
        mask[len(components.memories) + i] = machine.position[unit] > place
    return mask


@dataclass(eq=False)
class ShareMemberPmappings(MemberPmappings):
    """Rows of a member with a share of an axis. busy: of what the branches share. alone [n]: seconds of the rest."""

    cut: AxisShare = field(kw_only=True)
    alone: FloatArray = field(kw_only=True)

    @property
    def stage(self) -> FloatArray:
        """Seconds that each row takes as a stage."""
        return np.asarray(np.maximum(self.busy.max(axis=1, initial=0.0), self.alone))

    def take(self, index: IntArray) -> ShareMemberPmappings:
        found = super().take(index)
        assert isinstance(found, ShareMemberPmappings)
        return replace(found, alone=self.alone[index])


class ShareExplorer(GroupExplorer):
    """All rows of one narrowed signature."""

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
        cut: AxisShare,
    ) -> None:
        super().__init__(setting, classes, limits, counts, checkpoint, components, inner, bounds, False)
        self.cut = cut
        self.private = private(setting.machine, setting.columns, components, cut)

    def least_busy(self, option: UnitOption, held: Placement) -> FloatArray:
        """Seconds per component that every row with this choice of held tensors takes."""
        mine = next((one for one in self.signature.units if one.unit == option.unit and held in one.held), None)
        return np.full(len(self.components), np.inf) if mine is None else super().least_busy(mine, held)

    def _member(self, block: PmappingGroup, unit: str | None) -> ShareMemberPmappings:
        found = super()._member(block, unit)
        known = {name.name: getattr(found, name.name) for name in fields(found)}
        return ShareMemberPmappings(**known, cut=self.cut, alone=block.cost[:, -1])

    def _weighed(self, block: PmappingGroup, component: int) -> FloatArray:
        """Seconds of what the member has for itself count as much as its share."""
        if self.private[component]:
            return np.asarray(block.cost[:, -1] * (self.cut.share / self.cut.size))
        return super()._weighed(block, component)

    def _settled(self, cost: FloatArray, structure: FusedTemplate, variant: Origin) -> FloatArray:
        """Energy, seconds of what branches share, where tokens begin to flow, seconds of all that they do not."""
        start, _ = drains(self.signature, structure, variant.own, self.setting.slots)
        busy = self.components.busy(cost, variant.option.unit)
        alone = busy[:, self.private].max(axis=1, initial=0.0)
        shared = np.where(self.private, 0.0, busy)
        return np.column_stack([self.components.dynamic(cost), shared, np.full(len(cost), float(start)), alone])

    def _reserved(
        self,
        levels: Levels,
        structure: FusedTemplate,
        own: tuple[OwnStore, ...],
        grid: Tilings,
        below: Below,
        which: IntArray,
        rows: IntArray,
    ) -> IntArray:
        """As for others; in a memory behind the axis nothing, because nobody else is there."""
        reserved = super()._reserved(levels, structure, own, grid, below, which, rows)
        reserved[:, [i for i, m in enumerate(self.setting.tracked) if m in self.cut.inside]] = 0
        return reserved

"""Shares of an axis: an Einsum may have so many of its instances while its neighbours have the rest.

Comes in: a machine and signatures. Goes out: every `AxisShare`, and the signature of an Einsum that has one: on a
machine whose axis is that small. What stands behind the axis is the branch's own: its memories hold nothing of other
branches, and its seconds, and those of the compute units, add to nobody's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....dataclass import dataclass
from ....machine.levels import Machine
from ....mapspace.ffm.shares import least_share
from ..einsums.classes import EinsumClass
from ..einsums.holds import backing
from ..prices.columns import Column
from .candidates import TimedComponents


@dataclass(frozen=True, slots=True)
class AxisShare:
    """So many of an axis's instances. axis: its number; fanout: that of its fanout; inside: memories behind it."""

    axis: int
    name: str
    fanout: int
    count: int
    size: int
    inside: frozenset[int]


def every_share(machine: Machine, signatures: list[EinsumClass]) -> tuple[AxisShare, ...]:
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


def narrowed(signature: EinsumClass, share: AxisShare) -> EinsumClass:
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
            if not any(backing(choice, t) in share.inside for t in links) and any(backing(choice, t) for t in links)
        )
        if held and (option.unit is None or option.fanouts > share.fanout):
            units.append(replace(option, held=held))
    places = (option.above[max(backing(h, t) for t in links)] for option in units for h in option.held)
    above = min(places, default=0)
    axes = tuple(
        replace(
            axis, size=share.count if i == share.axis else 1 if axis.fanout < above and not axis.full else axis.size
        )
        for i, axis in enumerate(signature.axes)
    )
    return replace(signature, axes=axes, units=tuple(units))


def private(
    machine: Machine, columns: tuple[Column, ...], components: TimedComponents, share: AxisShare | None
) -> np.ndarray:
    """Mask of the components that every branch has for itself."""
    mask = np.zeros(len(components), bool)
    if share is None:
        return mask
    place = machine.position[share.name]
    names = [*(memory.name for memory in machine.memories), *(toll.name for toll in machine.tolls)]
    for i, ports in enumerate(components.memories):
        mask[i] = machine.position[names[columns[ports[0]].memory]] > place
    for i, unit in enumerate(components.units):
        mask[len(components.memories) + i] = machine.position[unit] > place
    return mask

"""What limits say to no effect of the workload at hand: selectors that select nothing, tiles that no store has.

Comes in: workload, machine and mapspace. Goes out: one `Unused` for each such selector or limit. Nothing here is an
error: a machine serves many workloads. The verbs warn of them at the door, and a result carries them as its notes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dataclass import dataclass
from ..machine.levels import ComputeUnit, Fanout, Level, Machine, Memory
from ..mapspace.limits.data import AxisLimit, BackLimit, Limit, Limits, LoopLimit, TileLimit, concerns
from ..workload.einsum import Workload
from ..workload.selectors import Selector, select

UNEVEN = {"ffm": False, "ragged": True}  # spaces, and whether their tiles need not divide


@dataclass(frozen=True, slots=True)
class Unused:
    """A selector that selects no tensor, or a limit of tiles that no tile has.

    message: a sentence without a place. key: ``GLB.must``, for a machine's. limit: for a mapspace's.
    """

    message: str
    key: str | None = None
    limit: Limit | None = None


def unused_selectors(workload: Workload, machine: Machine, limits: Limits, space: str = "") -> tuple[Unused, ...]:
    """The selectors of the machine and of the limits that select no tensor of any Einsum that they speak of; and the
    limits of tiles that speak of no tile in the space of that name.

    The word ``nothing`` alone is meant. ``unheld`` may select whatever it can in some mapping.
    """
    found = [
        Unused(f"machine {machine.name}, {key}: {str(which)!r} selects no tensor of {workload.name}", key=key)
        for key, which in machine_selectors(machine)
        if not _selects(which, workload)
    ]
    for limit in limits.all:
        if isinstance(limit, AxisLimit):
            continue
        # backing and fused loops speak of the intermediates alone
        among = frozenset(workload.intermediates) if isinstance(limit, BackLimit | LoopLimit) else None
        einsums = None if isinstance(limit, BackLimit) else limit.einsums
        if not _selects(limit.tensors, workload, einsums, among):
            what = "tensor" if among is None else "intermediate"
            whose = workload.name if einsums is None else f"{', '.join(einsums)} of {workload.name}"
            message = f"limit '{limit}': {str(limit.tensors)!r} selects no {what} of {whose}"
            found.append(Unused(message, limit=limit))
        elif isinstance(limit, TileLimit):
            found += [Unused(f"limit '{limit}': {why}", limit=limit) for why in _of_no_tile(limit, workload, space)]
    return tuple(dict.fromkeys(found))


def _of_no_tile(limit: TileLimit, workload: Workload, space: str) -> Iterator[str]:
    """Why a limit of tiles says nothing of some variable, or lets its memory hold nothing."""
    for variable in limit.variables:
        chosen = set[str]()
        for einsum in workload.einsums:
            if concerns(limit.einsums, einsum.name):
                named = select(limit.tensors, workload, einsum.name, einsum.tensors)
                chosen |= {t for t in named if variable in einsum.access(t).variables}
        extent = workload.extents.get(variable, 1)
        if not chosen:
            whose = workload.name if limit.einsums is None else f"{', '.join(limit.einsums)} of {workload.name}"
            yield f"{variable!r} indexes none of the tensors {str(limit.tensors)!r} of {whose}"
        elif space in UNEVEN and not limit.sizes.any_tile(extent, UNEVEN[space]):
            what = "number up to it" if UNEVEN[space] else "divisor of it"
            held = ", ".join(sorted(chosen))
            yield f"{variable} is {extent}, and no such size is a {what}, so {limit.memory} cannot hold {held}"


def _selects(
    which: Selector, workload: Workload, einsums: tuple[str, ...] | None = None, among: frozenset[str] | None = None
) -> bool:
    """True if the selector selects a tensor (`among` these) of an Einsum, or says that it means none."""
    if which.tree == ("name", "nothing"):
        return True
    for einsum in workload.einsums:
        if concerns(einsums, einsum.name):
            for held in ((), einsum.tensors):
                chosen = select(which, workload, einsum.name, held)
                if chosen if among is None else chosen & among:
                    return True
    return False


def machine_selectors(machine: Machine) -> list[tuple[str, Selector]]:
    """Every selector of a machine with its key: ``GLB.must``, ``PE.rows.multicast``."""
    return [(f"{level.name}.{key}", which) for level in machine.levels for key, which in _of_level(level)]


def _of_level(level: Level) -> Iterator[tuple[str, Selector]]:
    if isinstance(level, Fanout):
        keys = ("multicast", "reduce", "only_irrelevant_to")
        yield from ((f"{axis.name}.{key}", getattr(axis, key)) for axis in level.axes for key in keys)
        return
    if isinstance(level, ComputeUnit):
        yield "stationary", level.stationary
        return
    for key in ("must", "may", "backs") if isinstance(level, Memory) else ("down", "up"):
        yield key, getattr(level, key)
    yield from (("widths", which) for which, _ in level.widths)

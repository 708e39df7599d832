"""A machine for tools that know one kind of compute unit, and neither tolls nor links; what else they do not know."""

from __future__ import annotations

from dataclasses import replace

from ..errors import SpecError
from ..machine.levels import ComputeUnit, Machine, Memory
from ..workload.einsum import Workload


def left_out(machine: Machine, tool: str) -> list[str]:
    """Notes on what no tool of Timeloop's family has a word for, of the machine as a whole."""
    notes = []
    if machine.partial_sums == "once":
        notes.append(
            f"{machine.name}: partial_sums: once is left out; {tool} reads a partial sum back before it writes it again"
        )
    if machine.startup:
        notes.append(f"{machine.name}: startup is left out")
    return notes


def with_one_unit(workload: Workload, machine: Machine, tool: str, notes: list[str]) -> Machine:
    """The machine down to the one unit that executes all Einsums; the others are left out with a note.

    Raises SpecError where no unit, or more than one, executes them all, and for tolls and links.
    """
    if machine.tolls or any(type(memory) is not Memory for memory in machine.memories):
        raise SpecError(f"{tool} has no word for tolls and links")
    able = [unit for unit in machine.units if all(unit.accepts(einsum) for einsum in workload.einsums)]
    if len(able) != 1:
        names = ", ".join(unit.name for unit in machine.units)
        raise SpecError(f"{tool} has one kind of compute unit; of {names}, {len(able)} execute all of {workload.name}")
    (unit,) = able
    notes += left_out(machine, tool)
    others = [level.name for level in machine.units if level is not unit]
    if others:
        are = "is" if len(others) == 1 else "are"
        notes.append(f"{tool} has one kind of compute unit; {', '.join(others)} {are} left out")
    stop = machine.position[unit.name]
    seen = tuple(level for level in machine.levels[:stop] if not isinstance(level, ComputeUnit))
    return replace(machine, levels=(*seen, unit))

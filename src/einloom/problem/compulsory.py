"""What every mapping costs, known before any is looked at: every operation, each input read, each output written.

The argument: docs/model/pruning.md, "Compulsory costs".
"""

from __future__ import annotations

from math import inf

import numpy as np

from ..cost.formulas.components import component_time
from ..cost.formulas.places import inside
from ..dataclass import dataclass
from ..machine.levels import Memory
from ..mapping.legality.placement import outermost_home
from ..workload.einsum import Access, Einsum
from . import Problem


@dataclass
class _Moved:
    """Bits that leave a memory and bits that enter it, at least, over all its instances."""

    read: int = 0
    written: int = 0


def compulsory(problem: Problem) -> float:
    """A lower bound on the objective of all repeats, in any order of Einsums, at the same time or not.

    Energy: of all operations on the cheapest units, of the compulsory reads and writes of the memories where inputs
    start and outputs end, and leakage for as long as the latency. Latency: the busiest of these memories, or all
    operations on all units that may do them.
    """
    workload, machine, goal = problem.workload, problem.machine, problem.objective
    moved = _moved(problem)
    if goal.name == "traffic":
        mine = moved.get(goal.memory or "", _Moved())
        return float((mine.read + mine.written) * workload.repeat)
    energy = sum(_operations(problem, einsum)[0] for einsum in workload.einsums)
    computing = sum(_operations(problem, einsum)[1] for einsum in workload.einsums) / max(len(machine.units), 1)
    latency = max([computing, *(_seconds(problem, machine.memory(name), one) for name, one in moved.items())])
    for name, one in moved.items():
        memory = machine.memory(name)
        energy += (one.read * memory.read_energy + one.written * memory.write_energy) / memory.bits_per_access
    latency *= workload.repeat
    leaking = sum(level.leakage * machine.instances(level.name) for level in machine.components)
    energy = energy * workload.repeat + leaking * latency
    if goal.name in ("energy", "latency"):
        return energy if goal.name == "energy" else latency
    return float(energy ** goal.powers[0] * latency ** goal.powers[1])


def _operations(problem: Problem, einsum: Einsum) -> tuple[float, float]:
    """(joules, seconds on all instances of a unit) of an Einsum's operations, each on the unit that is best for it."""
    if einsum.kind == "copy":
        return 0.0, 0.0
    machine, points = problem.machine, problem.workload.operations(einsum.name)
    units = machine.units_for(einsum)
    rates = [inf if u.throughput is None else u.throughput * machine.instances(u.name) for u in units]
    return points * min((u.energy for u in units), default=0.0), points / max(rates, default=inf)


def _seconds(problem: Problem, memory: Memory, one: _Moved) -> float:
    share = 1.0 / problem.machine.instances(memory.name)
    return float(component_time(memory, one.read * share, one.written * share) or 0.0)


def _moved(problem: Problem) -> dict[str, _Moved]:
    """The compulsory bits of every memory where something starts or ends."""
    workload, machine = problem.workload, problem.machine
    found: dict[str, _Moved] = {}
    read: set[str] = set()
    inner = set(workload.intermediates)
    for einsum in workload.einsums:
        if einsum.kind == "copy":
            continue
        for access in einsum.accesses:
            name = access.tensor
            home = outermost_home(workload, machine, einsum.name, name)
            if name in inner or name in read or home is None or workload.tensor(name).persistent:
                continue
            bits = _elements(problem, access) * machine.memory(home).bits(workload, einsum.name, name)
            one = found.setdefault(home, _Moved())
            if name == einsum.output.tensor:
                one.written += bits
            else:
                one.read += bits
                read.add(name)
    return found


def _elements(problem: Problem, access: Access) -> int:
    """The elements of the tensor inside its shape that the access meets; ranks are apart, so they multiply."""
    workload, total = problem.workload, 1
    for index, size in zip(access.indices, workload.shape(access), strict=True):
        steps = tuple((coefficient, workload.extents[variable]) for variable, coefficient in index.terms)
        total *= inside(steps, np.array([index.constant]), size)
    return total

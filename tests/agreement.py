"""Where the closed-form analysis and the oracle differ on a tree: nowhere, or a defect in one of them.

Both say what they know about one mapping as a table `key -> exact number`; `differences` compares the tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum

from einloom.cost.accesses import instance_choices, links, operations
from einloom.cost.evaluate import instance_traffic, price
from einloom.cost.occupancy import occupancy
from einloom.cost.paths import paths
from einloom.machine.levels import Link, Machine, Memory
from einloom.mapping.wellformed import problems
from einloom.oracle import Simulation, simulate
from trees import Case, random_case

Table = dict[tuple[str, ...], float]


@dataclass(frozen=True)
class Subject:
    """A case with energies, its structural reasons, and what the oracle saw."""

    seed: int
    case: Case
    reasons: tuple[str, ...]
    simulation: Simulation

    @property
    def legal(self) -> bool:
        return not self.reasons and not self.simulation.reasons


def subject(seed: int) -> Subject:
    """The random case of `seed`, executed by the oracle."""
    case = random_case(seed)
    case = replace(case, machine=priced(case.machine))
    reasons = problems(case.workload, case.machine, case.mapping)
    return Subject(seed, case, reasons, simulate(case.workload, case.machine, case.mapping))


def priced(machine: Machine) -> Machine:
    """The machine with energies and access widths that floats hold exactly."""
    levels = tuple(
        replace(level, read_energy=1.0 + i, write_energy=2.0 + i, bits_per_access=2 ** (i % 3))
        if isinstance(level, Memory)
        else level
        for i, level in enumerate(machine.levels)
    )
    return replace(machine, levels=levels)


def differences(subject: Subject) -> tuple[str, ...]:
    """Every number that the analysis and the oracle do not agree on."""
    if bool(subject.reasons) != bool(subject.simulation.reasons):
        return (f"legality: {subject.reasons[:1]} against {subject.simulation.reasons[:1]}",)
    if subject.reasons:
        return ()
    mine, theirs = analysed(subject.case), simulated(subject.case, subject.simulation)
    keys = sorted(mine.keys() | theirs.keys())
    return tuple(f"{key}: {mine.get(key)} not {theirs.get(key)}" for key in keys if mine.get(key) != theirs.get(key))


def analysed(case: Case) -> Table:
    """What the analysis says: counts, operations, peaks, loads of the busiest instances, energy and latency.

    An action's own `busiest` is compared where one action decides which instance is the busiest: reads (the machines
    limit no writes) and operations.
    """
    workload, machine = case.workload, case.machine
    all_paths = paths(workload, case.mapping)
    occupied = occupancy(workload, machine, all_paths)
    cost = price(workload, machine, all_paths, "einsum", occupied)
    table: Table = {("occupancy", o.memory): o.bits for o in occupied}
    table["energy",] = cost.energy
    table["latency",] = cost.latency
    for action in cost.actions:
        if action.count and action.action == "compute":
            table["operations", action.einsum] = action.count
            table["busiest", action.einsum, action.component, "compute"] = action.busiest
        elif action.count:
            table["count", action.einsum, action.component, str(action.tensor), action.action] = action.count
            if action.action == "read":
                key = ("reported", action.einsum, action.component)
                table[key] = table.get(key, 0) + action.busiest
    all_links = links(workload, machine, all_paths)
    for path in all_paths:
        mine = tuple(link for link in all_links if link.path is path)
        for picks in instance_choices(path):
            assert operations(path, picks) <= operations(path)
            for memory, loads in instance_traffic(machine, mine, picks).items():
                for name, bits in zip(("read", "write"), loads, strict=True):
                    if bits:
                        key = ("busiest", path.einsum.name, memory, name)
                        table[key] = max(table.get(key, 0), bits * workload.repeat)
    return table


def simulated(case: Case, seen: Simulation) -> Table:
    """What the oracle saw, with energy and latency added up from its counts and loads."""
    workload, machine = case.workload, case.machine
    table: Table = {("occupancy", memory): bits for memory, bits in seen.occupancy.items()}
    table.update({("count", *key): count for key, count in seen.counts.items() if count})
    table.update({("operations", einsum): count for einsum, count in seen.operations.items() if count})
    table.update({("busiest", *key): load for key, load in seen.busiest.items() if load})
    for (einsum, memory, action), load in seen.busiest.items():
        if action == "read" and load:
            table["reported", einsum, memory] = load
    energies = [float(sum(seen.operations.values()))]
    for (einsum, name, tensor, action), count in seen.counts.items():
        memory = machine.memory(name)
        joules = memory.read_energy if action == "read" else memory.write_energy
        joules *= memory.hops if isinstance(memory, Link) else 1
        energies.append(count * memory.bits(workload, einsum, tensor) * joules / memory.bits_per_access)
    table["energy",] = fsum(energies)
    slowest = {einsum.name: 0.0 for einsum in workload.einsums}
    for (einsum, _, action), load in seen.busiest.items():
        if action != "write":
            slowest[einsum] = max(slowest[einsum], float(load))
    table["latency",] = fsum(slowest.values())
    return table

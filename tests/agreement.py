"""Where the closed-form analysis and the oracle differ on a tree: nowhere, or a defect in one of them.

Both say what they know about one mapping as a table `key -> exact number`; `differences` compares the tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum

from einloom.cost.evaluate import instance_traffic, price
from einloom.cost.room.occupancy import occupancy
from einloom.cost.traffic.accesses import StoreLink as Crossing
from einloom.cost.traffic.accesses import links, moves, operations
from einloom.cost.traffic.paths import Path, paths
from einloom.machine.levels import Link, Machine, Memory, Toll
from einloom.mapping.legality.structure import problems
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
        for picks in every_instance(path):
            assert operations(path, picks) <= operations(path)
            for key, bits in passed(machine, mine, picks).items():
                table["busiest", path.einsum.name, *key] = max(
                    table.get(("busiest", path.einsum.name, *key), 0), bits * workload.repeat
                )
            for memory, loads in instance_traffic(mine, picks).items():
                if isinstance(machine.way(memory), Toll):
                    continue
                for name, bits in zip(("read", "write"), loads, strict=True):
                    if bits:
                        key = ("busiest", path.einsum.name, memory, name)
                        table[key] = max(table.get(key, 0), bits * workload.repeat)
    return table


def every_instance(path: Path) -> list[dict[int, int]]:
    """One after the other the instances that may be the busiest: the first, or each along axes whose windows differ."""
    choices: list[dict[int, int]] = [{}]
    for loop in path.complex_axes:
        choices = [{**choice, loop.place: i} for choice in choices for i in range(loop.trips)]
    return choices


def passed(machine: Machine, mine: tuple[Crossing, ...], picks: dict[int, int]) -> dict[tuple[str, str], int]:
    """(toll, way) -> bits that pass the picked instance."""
    table: dict[tuple[str, str], int] = {}
    for link in mine:
        for move in moves(link, picks):
            way = machine.way(move.memory)
            if isinstance(way, Toll) and move.count:
                key = (move.memory, move.action)
                table[key] = table.get(key, 0) + move.count * way.bits(link.workload, move.einsum, move.tensor)
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
        way = machine.way(name)
        if isinstance(way, Toll):
            joules = way.energy
        else:
            joules = way.read_energy if action == "read" else way.write_energy
            joules *= way.hops if isinstance(way, Link) else 1
        energies.append(count * way.bits(workload, einsum, tensor) * joules / way.bits_per_access)
    table["energy",] = fsum(energies)
    slowest = {einsum.name: 0.0 for einsum in workload.einsums}
    free = {toll.name for toll in machine.tolls if toll.throughput is None}
    for (einsum, name, action), load in seen.busiest.items():
        if action != "write" and name not in free:
            slowest[einsum] = max(slowest[einsum], float(load))
    table["latency",] = fsum(slowest.values())
    return table

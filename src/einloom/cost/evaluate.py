"""PRICE: what a mapping costs, and whether it is legal.

Comes in: workload, machine, mapping. Goes out: a `Cost` with every action, or the reasons why the mapping is illegal.
"""

from __future__ import annotations

from ..errors import IllegalMapping, SpecError
from ..machine.levels import ComputeUnit, Machine, Memory
from ..mapping.tree import Mapping
from ..mapping.wellformed import problems
from ..workload.einsum import Workload
from . import terms
from .accesses import Link, Move, instance_choices, links, moves, operations
from .fits import overflows
from .latency import component_time
from .occupancy import occupancy
from .paths import Path, paths
from .record import Action, Cost

LATENCY_RULES = ("einsum",)


def legality(workload: Workload, machine: Machine, mapping: Mapping) -> tuple[str, ...]:
    """Every reason why the mapping is illegal: structure first; capacity only if the structure holds."""
    reasons = problems(workload, machine, mapping)
    if reasons:
        return reasons
    return overflows(occupancy(workload, machine, paths(workload, mapping)))


def evaluate(workload: Workload, machine: Machine, mapping: Mapping, latency_rule: str = "einsum") -> Cost:
    """The cost of a legal mapping, in joules, seconds and bits.

    Raises IllegalMapping with every reason, and SpecError for a latency rule that does not exist (yet).
    """
    if latency_rule not in LATENCY_RULES:
        raise SpecError(f"latency rule {latency_rule!r} is not available; known: {', '.join(LATENCY_RULES)}")
    reasons = problems(workload, machine, mapping)
    if reasons:
        raise IllegalMapping(reasons)
    all_paths = paths(workload, mapping)
    occupied = occupancy(workload, machine, all_paths)
    reasons = overflows(occupied)
    if reasons:
        raise IllegalMapping(reasons)
    return price(workload, machine, all_paths, latency_rule, occupied)


def price(workload, machine, all_paths, latency_rule, occupied) -> Cost:  # type: ignore[no-untyped-def]
    """The cost of well-formed paths; capacity is not checked."""
    all_links = links(workload, machine, all_paths)
    actions: list[Action] = []
    busy: list[tuple[str, str, float]] = []
    latencies: list[tuple[str, float]] = []
    for path in all_paths:
        name = path.einsum.name
        mine = [link for link in all_links if link.path is path]
        instance, times = busiest(machine, path, mine)
        actions.extend(_memory_actions(workload, machine, mine, instance))
        unit = _unit(machine, path)
        if unit is not None:
            count = operations(path) * workload.repeat
            own = operations(path, {}) * workload.repeat
            actions.append(Action(name, unit.name, None, "compute", count, count, own, count * unit.energy))
        total = max(times.values(), default=0.0) * workload.repeat
        latencies.append((name, total))
        busy.extend((name, component, t * workload.repeat) for component, t in times.items())
        actions.extend(_leaks(machine, name, total))
    components = dict.fromkeys(component for _, component, _ in busy)
    roofline = max((sum(t for _, c, t in busy if c == component) for component in components), default=0.0)
    return Cost(
        energy=sum(a.energy for a in actions),
        latency=sum(t for _, t in latencies),
        roofline=roofline,
        latency_rule=latency_rule,
        actions=tuple(actions),
        busy=tuple(busy),
        einsum_latency=tuple(latencies),
        occupancy=occupied,
    )


def _unit(machine: Machine, path: Path) -> ComputeUnit | None:
    return None if path.leaf.unit is None or path.einsum.kind == "copy" else machine.unit(path.leaf.unit)


def busiest(machine: Machine, path: Path, mine: list[Link]) -> tuple[dict[int, int], dict[str, float]]:
    """(instance, seconds per component of one run): every component's busiest instance, and the one that is latest."""
    worst: dict[str, float] = {}
    chosen: dict[int, int] = {}
    unit = _unit(machine, path)
    for picks in instance_choices(path):
        traffic = instance_traffic(machine, mine, picks)
        times = {m.name: component_time(m, *traffic[m.name]) for m in machine.memories if m.name in traffic}
        if unit is not None and unit.throughput is not None:
            times[unit.name] = terms.transfer_time(operations(path, picks), unit.throughput)
        for component, seconds in times.items():
            if seconds is not None and seconds > worst.get(component, -1.0):
                worst[component] = seconds
                chosen = picks
    return chosen, worst


def instance_traffic(machine: Machine, mine: list[Link], picks: dict[int, int]) -> dict[str, tuple[int, int]]:
    """Memory -> (bits read, bits written) of the picked instance."""
    table: dict[str, tuple[int, int]] = {}
    for link in mine:
        for move in moves(link, picks):
            bits = move.count * _width(machine.memory(move.memory), link, move)
            read, written = table.get(move.memory, (0, 0))
            table[move.memory] = (read + bits, written) if move.action == "read" else (read, written + bits)
    return table


def _width(memory: Memory, link: Link, move: Move) -> int:
    return memory.bits(link.workload, move.einsum, move.tensor)


def _memory_actions(workload: Workload, machine: Machine, mine: list[Link], picks: dict[int, int]) -> list[Action]:
    table: dict[tuple[str, str, str], list[int]] = {}
    for link in mine:
        for total, one in zip(moves(link), moves(link, picks), strict=True):
            width = _width(machine.memory(total.memory), link, total)
            entry = table.setdefault((total.memory, total.tensor, total.action), [0, 0, 0])
            entry[0] += total.count * workload.repeat
            entry[1] += total.count * width * workload.repeat
            entry[2] += one.count * width * workload.repeat
    einsum = mine[0].path.einsum.name if mine else ""
    found = []
    for (name, tensor, action), (count, bits, own) in table.items():
        memory = machine.memory(name)
        per_access = memory.read_energy if action == "read" else memory.write_energy
        joules = terms.energy(bits, per_access, memory.bits_per_access)
        found.append(Action(einsum, name, tensor, "read" if action == "read" else "write", count, bits, own, joules))
    return found


def _leaks(machine: Machine, einsum: str, seconds: float) -> list[Action]:
    found = []
    levels: tuple[Memory | ComputeUnit, ...] = (*machine.memories, *machine.units)
    for level in levels:
        if level.leakage:
            joules = level.leakage * machine.instances(level.name) * seconds
            found.append(Action(einsum, level.name, None, "leak", 0, 0, 0, joules))
    return found

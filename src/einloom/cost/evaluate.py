"""PRICE: what a mapping costs, and whether it is legal.

Comes in: workload, machine, mapping. Goes out: a `Cost` with every action, or the reasons why the mapping is illegal.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from ..errors import IllegalMapping, SpecError, nearest
from ..machine.levels import ComputeUnit, Link, Machine, Memory, Toll
from ..mapping.analysed import Analysed
from ..mapping.legality.reason import Reason
from ..mapping.legality.structure import reasons_against
from ..mapping.tree import Mapping, Store, every_node
from ..workload.einsum import Workload
from .breakdown import Action, ActionName, Cost, Latencies, Occupancy
from .formulas import terms
from .formulas.components import component_time
from .formulas.terms import Number
from .room.occupancy import occupancy
from .time.schedule import Schedule
from .traffic.accesses import Picks, StoreLink, counts, instance_choices, links, moves, operations
from .traffic.paths import Path, paths, paths_of

LATENCY_RULES = ("einsum", "tile")


def legality(workload: Workload, machine: Machine, mapping: Mapping) -> tuple[Reason, ...]:
    """Every reason why the mapping is illegal: structure first; capacity only if the structure holds."""
    return _legal(machine, Analysed(workload, mapping))[0]


def _legal(machine: Machine, tree: Analysed) -> tuple[tuple[Reason, ...], tuple[Path, ...], tuple[Occupancy, ...]]:
    """(reasons against the tree, its paths, what its memories hold); no paths and no memories without structure."""
    reasons = reasons_against(machine, tree)
    if reasons:
        return reasons, (), ()
    found = paths_of(tree)
    occupied = occupancy(tree.workload, machine, found)
    return _overflows(tree.mapping, occupied), found, occupied


def _overflows(mapping: Mapping, occupied: tuple[Occupancy, ...]) -> tuple[Reason, ...]:
    """One reason for each memory that is too small, with the tensors that were alive at the worst moment.

    It is about the first store of the tensor that takes the most.
    """
    reasons = []
    for o in occupied:
        if o.size is not None and o.bits > o.size:
            parts = ", ".join(f"{tensor} {bits}" for tensor, bits in o.tensors)
            largest = max(o.tensors, key=lambda entry: entry[1], default=("", 0))[0]
            stores = [node for node in every_node(mapping.nest) if isinstance(node, Store) and node.memory == o.memory]
            node = next((store for store in stores if largest in store.tensors), stores[0] if stores else None)
            reasons.append(Reason(f"capacity: {o.memory} holds {o.size} bits, needs {o.bits} ({parts})", node))
    return tuple(reasons)


def evaluate(workload: Workload, machine: Machine, mapping: Mapping, latency_rule: str = "einsum") -> Cost:
    """The cost of a legal mapping, in joules, seconds and bits.

    Raises IllegalMapping with every reason, and SpecError for a latency rule that does not exist.
    """
    if latency_rule not in LATENCY_RULES:
        raise SpecError(
            f"unknown latency rule {latency_rule!r}; known: {', '.join(LATENCY_RULES)}",
            suggestion=nearest(latency_rule, LATENCY_RULES),
        )
    reasons, all_paths, occupied = _legal(machine, Analysed(workload, mapping))
    if reasons:
        raise IllegalMapping(reasons)
    return price(workload, machine, all_paths, latency_rule, occupied)


def latencies(workload: Workload, machine: Machine, mapping: Mapping) -> Latencies:
    """The steady-state views of a mapping's latency. Raises IllegalMapping with every reason."""
    return views(workload, machine, mapping, evaluate(workload, machine, mapping))


def views(workload: Workload, machine: Machine, mapping: Mapping, cost: Cost) -> Latencies:
    """The steady-state views of the latency of a mapping that was priced as `cost`, under whatever rule."""
    schedule = Schedule.of(machine, paths(workload, mapping), cost.busy)
    return Latencies(schedule.roofline, *(float(schedule.latency(rule)) for rule in ("floor", "tile", "einsum")))


def price(
    workload: Workload,
    machine: Machine,
    all_paths: tuple[Path, ...],
    latency_rule: str,
    occupied: tuple[Occupancy, ...],
) -> Cost:
    """The cost of well-formed paths; capacity is not checked. Numbers are arrays where the paths' tiles are."""
    charged: dict[int, list[StoreLink]] = {path.order: [] for path in all_paths}
    for link in links(workload, machine, all_paths):
        charged[link.path.order].append(link)
    actions: list[Action] = []
    busy: list[tuple[str, str, Number]] = []
    latencies: list[tuple[str, Number]] = []
    adding = latency_rule == "einsum" and not any(path.forks for path in all_paths)
    for path in all_paths:
        name = path.einsum.name
        mine = tuple(charged[path.order])
        instances, times = busiest(machine, path, mine)
        actions.extend(_memory_actions(workload, machine, mine, instances))
        unit = _unit(machine, path)
        if unit is not None:
            count = operations(path) * workload.repeat
            own = operations(path, instances[unit.name]) * workload.repeat
            actions.append(Action(name, unit.name, None, "compute", count, count, own, count * unit.energy))
        total = reduce(terms.maximum, times.values(), 0.0) * workload.repeat
        latencies.append((name, total))
        busy.extend((name, component, t * workload.repeat) for component, t in times.items())
        if adding:
            actions.extend(_leaks(machine, name, total))
    if adding:
        loads: dict[str, Number] = {}
        for _, component, t in busy:
            loads[component] = loads.get(component, 0) + t
        roofline = reduce(terms.maximum, loads.values(), 0.0)
        latency = sum(t for _, t in latencies)
    else:
        schedule = Schedule.of(machine, all_paths, busy)
        roofline, latency = schedule.roofline, schedule.latency(latency_rule)
        scale = latency / sum(t for _, t in latencies) if latency else 0.0
        for name, total in latencies:  # leakage lasts as long as the whole, shared out by the Einsums' own latencies
            actions.extend(_leaks(machine, name, total * scale))
    return Cost(
        energy=sum(a.energy for a in actions),
        latency=latency,
        roofline=roofline,
        latency_rule=latency_rule,
        actions=tuple(actions),
        busy=tuple(busy),
        einsum_latency=tuple(latencies),
        occupancy=occupied,
    )


def _unit(machine: Machine, path: Path) -> ComputeUnit | None:
    return None if path.leaf.unit is None or path.einsum.kind == "copy" else machine.unit(path.leaf.unit)


def busiest(machine: Machine, path: Path, mine: tuple[StoreLink, ...]) -> tuple[dict[str, Picks], dict[str, Number]]:
    """(busiest instance of each component, seconds of one run of each whose throughput is finite).

    The busiest instance takes longest; where nothing takes time, it moves most bits.
    """
    found: dict[str, tuple[Number, Number | None]] = {}
    picks = instance_choices(path, mine)
    for name, (read, written) in instance_traffic(mine, picks).items():
        found[name] = (read + written, component_time(machine.way(name), read, written))
    unit = _unit(machine, path)
    if unit is not None:
        done = operations(path, picks)
        found[unit.name] = (done, None if unit.throughput is None else terms.transfer_time(done, unit.throughput))
    chosen: dict[str, Picks] = {}
    times: dict[str, Number] = {}
    for name, (load, seconds) in found.items():
        chosen[name], most = _longest(picks, load if seconds is None else seconds)
        if seconds is not None:
            times[name] = most
    return chosen, times


def _longest(picks: Picks, lengths: Number) -> tuple[Picks, Number]:
    """(the first of many picks for which a length is the largest, that length)."""
    if not picks:
        return {}, lengths
    many = np.asarray(lengths, dtype=object).reshape(np.shape(lengths) or (1,) * len(picks))
    where = np.unravel_index(int(np.argmax(many)), many.shape)
    return {place: int(one.flat[i]) for (place, one), i in zip(picks.items(), where, strict=True)}, many[where]


def instance_traffic(mine: tuple[StoreLink, ...], picks: Picks) -> dict[str, tuple[Number, Number]]:
    """Memory or toll -> (bits read or passed, bits written) of the picked instance, or of each of many."""
    table: dict[str, tuple[Number, Number]] = {}
    for link in mine:
        for (_, name, _, action, _, width), count in zip(moves(link), counts(link, picks), strict=True):
            read, written = table.get(name, (0, 0))
            bits = count * width
            table[name] = (read, written + bits) if action == "write" else (read + bits, written)
    return table


def _memory_actions(
    workload: Workload, machine: Machine, mine: tuple[StoreLink, ...], instances: dict[str, Picks]
) -> list[Action]:
    table: dict[tuple[str, str, ActionName], tuple[Number, Number, Number]] = {}
    repeat = workload.repeat
    for link in mine:
        for i, (_, name, tensor, action, every, width) in enumerate(moves(link)):
            key, more, one = (name, tensor, action), every * repeat, counts(link, instances[name])[i]
            count, bits, own = table.get(key, (0, 0, 0))
            table[key] = (count + more, bits + more * width, own + one * width * repeat)
    einsum = mine[0].path.einsum.name if mine else ""
    found = []
    for (name, tensor, action), (count, bits, own) in table.items():
        way = machine.way(name)
        joules = terms.energy(bits, _per_access(way, action), way.bits_per_access)
        found.append(Action(einsum, name, tensor, action, count, bits, own, joules))
    return found


def _per_access(way: Memory | Toll, action: ActionName) -> float:
    if isinstance(way, Link):
        return way.energy * way.hops
    if isinstance(way, Memory):
        return way.read_energy if action == "read" else way.write_energy
    return way.energy


def _leaks(machine: Machine, einsum: str, seconds: Number) -> list[Action]:
    found = []
    for level in machine.components:
        if level.leakage:
            joules = level.leakage * machine.instances(level.name) * seconds
            found.append(Action(einsum, level.name, None, "leak", 0, 0, 0, joules))
    return found

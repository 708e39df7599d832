"""Random small mapping trees, mostly legal, and the features that each has.

`random_case` draws a workload (`small_workloads`), a machine and a tree from one seed; everything is a function of
the seed. The trees obey the structural rules (zones between fanouts, outer memories before inner ones, no loop above a
split that leaves an Einsum below it unbound), the rest is left to chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.extents import addressed_paths
from einloom.mapping.tree import Loop, Mapping, Node, Split, Store
from einloom.testing.trees import TreeGrower
from einloom.workload.einsum import Workload
from einloom.workload.selectors import select, selector
from small_workloads import random_workload

FEATURES = (
    "overlapping_window",
    "ragged_two_ranks",
    "partial_sum_readback",
    "bypass_under_fanout",
    "non_reducing_axis",
    "split_under_loop",
)
SELECTORS = ("all", "nothing", "all", "nothing", "input", "weight", "output", "input | output")


@dataclass(frozen=True)
class Case:
    """One random case; `features` is a subset of FEATURES."""

    workload: Workload
    machine: Machine
    mapping: Mapping
    features: frozenset[str]


def random_machine(rng: Random) -> Machine:
    """One to four memories, up to two fanouts of one or two axes, one compute unit."""
    memories = rng.choice((1, 2, 2, 3, 3, 3, 4))
    places = sorted(rng.sample(range(memories), min(memories, rng.choice((0, 1, 1, 1, 2)))))
    levels: list[Level] = []
    axes = 0
    for i in range(memories):
        widths = ((selector(rng.choice(("output", "weight"))), rng.choice((2, 5))),) if rng.random() < 0.15 else ()
        double = i > 0 and rng.random() < 0.15
        levels.append(Memory(f"M{i}", widths=widths, double_buffer=double, read_throughput=1.0))
        if i in places:
            own = []
            for _ in range(rng.choice((1, 1, 2))):
                multicast, reduce = (selector(rng.choice(SELECTORS)) for _ in range(2))
                own.append(Axis(f"X{axes}", rng.choice((2, 3, 4)), multicast, reduce))
                axes += 1
            levels.append(Fanout(f"F{i}", tuple(own)))
    levels.append(ComputeUnit("MAC", 1.0, 1.0))
    return Machine("random", tuple(levels), rng.choice(("read-modify-write",) * 4 + ("once",)))  # type: ignore[arg-type]


def random_case(seed: int) -> Case:
    """The case of one seed."""
    rng = Random(seed)
    workload, machine = random_workload(rng), random_machine(rng)
    grower = TreeGrower(rng, workload, machine)
    mapping = grower.mapping()
    first = machine.memories[0]
    if any(tensor.persistent and grower.backing[tensor.name] != first.name for tensor in workload.tensors):
        machine = replace(machine, levels=(replace(first, backs=selector("~persistent")), *machine.levels[1:]))
    return Case(workload, machine, mapping, classify(workload, machine, mapping))


# -- features --------------------------------------------------------------------------------------------------


def classify(workload: Workload, machine: Machine, mapping: Mapping) -> frozenset[str]:
    """Which of FEATURES a tree has, judged Einsum by Einsum along its path."""
    found: set[str] = set()
    for einsum in workload.einsums:
        steps = tuple(node for _, node in addressed_paths(mapping.nest)[einsum.name])
        found |= _loop_features(workload, machine, einsum.name, steps)
        found |= _store_features(workload, einsum.name, steps)
    return frozenset(found)


def _loop_features(workload: Workload, machine: Machine, name: str, steps: tuple[Node, ...]) -> set[str]:
    found: set[str] = set()
    einsum = workload.einsum(name)
    extents = {v: workload.extents[v] for v in einsum.variables}
    ragged: set[str] = set()
    looped = False
    for at, node in enumerate(steps):
        if isinstance(node, Split) and looped:
            found.add("split_under_loop")
        if not isinstance(node, Loop):
            continue
        looped = looped or (node.axis is None and node.trips > 1)
        variable = node.variable(name)
        if variable is not None:
            tile = node.tile or -(-extents[variable] // node.trips)
            if extents[variable] % tile and extents[variable] > tile:
                ragged.add(variable)
            extents[variable] = min(tile, extents[variable])
        if node.axis is not None and node.trips > 1:
            axis = machine.axes[node.axis]
            output = einsum.output.tensor
            if variable in einsum.reduced and output not in select(axis.reduce, workload, name):
                found.add("non_reducing_axis")
            below = {tensor for step in steps[at:] if isinstance(step, Store) for tensor in step.tensors}
            if set(einsum.tensors) - below and below & set(einsum.tensors):
                found.add("bypass_under_fanout")
    if len(ragged) >= 2:
        found.add("ragged_two_ranks")
    return found


def _store_features(workload: Workload, name: str, steps: tuple[Node, ...]) -> set[str]:
    found: set[str] = set()
    einsum = workload.einsum(name)
    held: set[str] = set()
    extents = {v: workload.extents[v] for v in einsum.variables}
    loops: list[tuple[str | None, int]] = []
    for node in steps:
        if isinstance(node, Loop):
            variable = node.variable(name)
            if variable is not None:
                extents[variable] = min(node.tile or -(-extents[variable] // node.trips), extents[variable])
            if node.axis is None and node.trips > 1:
                loops.append((variable, extents[variable] if variable is not None else 0))
        if not isinstance(node, Store):
            continue
        for tensor in node.tensors:
            if tensor in held and tensor in einsum.tensors:
                access = einsum.access(tensor)
                at = [i for i, (variable, _) in enumerate(loops) if variable in access.variables]
                outer = loops[: at[-1]] if at else []
                if tensor == einsum.output.tensor and any(v in einsum.reduced for v, _ in outer):
                    found.add("partial_sum_readback")
                if at:
                    variable, tile = loops[at[-1]]
                    index = access.indices[access.rank_of(str(variable)) or 0]
                    if index.extent(extents) > dict(index.terms)[str(variable)] * tile:
                        found.add("overlapping_window")
            held.add(tensor)
    return found

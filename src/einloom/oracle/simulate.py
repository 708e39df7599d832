"""The oracle's door: executes one mapping with integers and says what it counted and whether the numbers are right."""

from __future__ import annotations

from dataclasses import field
from math import prod

from ..dataclass import dataclass
from ..errors import SpecError
from ..machine.levels import Machine
from ..mapping.tree import Mapping
from ..workload.einsum import Workload
from .compile import Compiler
from .execute import Execution
from .plan import Coords
from .reference import evaluate_cascade, random_inputs, written_elements
from .time.journal import Journal


@dataclass(frozen=True)
class Simulation:
    """What a mapping did. Additive numbers are for one run of the cascade times `repeat`.

    counts: (Einsum, memory, tensor, ``read`` or ``write``) -> values moved, all instances. busiest: (Einsum, component,
    ``read``, ``write`` or ``compute``) -> bits (or operations) of the instance that has most. operations: per Einsum.
    occupancy: memory -> largest number of bits alive in one instance. correct: the cascade's outputs equal NumPy's.
    reasons: why the tree is illegal, empty if it is legal. A tree without meaning is not run: all counts are empty.

    cycles: seconds of the discrete-event execution, if it was asked for. exact: nothing waited for a component that was
    busy elsewhere and all tokens were alike, so that closed forms of its pipelines are exact; else they are bounds.
    """

    counts: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    busiest: dict[tuple[str, str, str], int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    occupancy: dict[str, int] = field(default_factory=dict)
    correct: bool = False
    reasons: tuple[str, ...] = ()
    cycles: float | None = None
    exact: bool = False

    def count(self, component: str, tensor: str, action: str, einsum: str | None = None) -> int:
        """Values of `tensor` read from or written to `component`, by one Einsum or by all."""
        return sum(
            n
            for (e, c, t, a), n in self.counts.items()
            if (c, t, a) == (component, tensor, action) and einsum in (None, e)
        )


def simulate(workload: Workload, machine: Machine, mapping: Mapping, seed: int = 0, timed: bool = False) -> Simulation:
    """Execute `mapping` element by element on random integers (`seed`) and count everything that moves.

    timed: say also when everything happens, as a discrete-event execution of what was seen. Raises SpecError if it
    would take a memory that lets parts through.
    """
    through = [memory.name for memory in machine.memories if memory.through]
    if timed and through:
        raise SpecError(f"time is not simulated where parts pass through a memory ({', '.join(through)}: through)")
    plan = Compiler(workload, machine, mapping).plan()
    if plan.reasons:
        return Simulation(reasons=tuple(dict.fromkeys(plan.reasons)))
    inputs = random_inputs(workload, seed)
    execution = Execution(workload, plan, inputs, machine.partial_sums == "once")
    journal = Journal(workload, machine, plan, execution) if timed else None
    execution.run()
    timeline, uniform = journal.timeline() if journal is not None else (None, False)
    expected = evaluate_cascade(workload, inputs)
    reasons = list(execution.stores.reasons)
    correct = True
    for leaf in plan.leaves:
        tensor = leaf.output.tensor
        if tensor not in workload.outputs:
            continue
        points = prod(workload.extents[v] for v in workload.einsum(leaf.einsum).variables)
        if len(leaf.done) != points:
            reasons.append(f"missing: {leaf.einsum} performs {len(leaf.done)} of {points} operations")
        found = {element: cell[0] or 0 for element, cell in execution.stores.results[tensor].items()}
        covered = all(int(expected[tensor][element]) == value for element, value in found.items())
        if workload.tensor(tensor).initial:  # what no Einsum touches is not moved and has no result
            rest = all(written_elements(workload, name) <= found.keys() for name in workload.writers[tensor])
        else:
            rest = int(abs(expected[tensor]).sum()) == sum(abs(value) for value in found.values())
        correct = correct and covered and rest and len(leaf.done) == points
    counts, busiest, operations = _totals(workload, machine, execution)
    for leaf in plan.leaves:
        done = execution.operations[leaf.einsum]
        if leaf.unit is not None and done:
            operations[leaf.einsum] = sum(done.values()) * workload.repeat
            busiest[leaf.einsum, leaf.unit, "compute"] = _most(leaf.spatial, done) * workload.repeat
    return Simulation(
        counts=counts,
        busiest=busiest,
        operations=operations,
        occupancy=execution.peaks.totals(workload.repeat),
        correct=correct,
        reasons=tuple(reasons),
        cycles=None if timeline is None else (machine.startup + timeline.end) * workload.repeat,
        exact=timeline is not None and uniform and not timeline.contended,
    )


def _totals(
    workload: Workload, machine: Machine, execution: Execution
) -> tuple[dict[tuple[str, str, str, str], int], dict[tuple[str, str, str], int], dict[str, int]]:
    counts: dict[tuple[str, str, str, str], int] = {}
    load: dict[tuple[str, str, str], dict[tuple[object, ...], int]] = {}
    for (einsum, site, action), counter in execution.stores.counters.items():
        if not counter:
            continue
        key = (einsum, site.memory, site.tensor, action)
        counts[key] = counts.get(key, 0) + sum(counter.values()) * workload.repeat
        bits = machine.way(site.memory).bits(workload, einsum, site.tensor)
        table = load.setdefault((einsum, site.memory, action), {})
        for coords, count in counter.items():
            instance = _instance(site.spatial, coords)
            table[instance] = table.get(instance, 0) + count * bits * workload.repeat
    busiest = {key: max(table.values()) for key, table in load.items()}
    return counts, busiest, {einsum.name: 0 for einsum in workload.einsums}


def _instance(spatial: tuple[tuple[str, int], ...], coords: Coords) -> tuple[object, ...]:
    """The physical instance that loop coordinates lead to: a position along every axis that is not at its start."""
    along: dict[str, int] = {}
    for (axis, trips), i in zip(spatial, coords, strict=False):
        along[axis] = along.get(axis, 0) * trips + i
    return tuple(sorted((axis, i) for axis, i in along.items() if i))


def _most(spatial: tuple[tuple[str, int], ...], counter: dict[Coords, int]) -> int:
    table: dict[tuple[object, ...], int] = {}
    for coords, count in counter.items():
        instance = _instance(spatial, coords)
        table[instance] = table.get(instance, 0) + count
    return max(table.values())

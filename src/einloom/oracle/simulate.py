"""The oracle's door: executes one mapping with integers and says what it counted and whether the numbers are right."""

from __future__ import annotations

from collections import Counter
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

Instance = tuple[tuple[str, int], ...]  # its position along every axis, where that is not at its start


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
    counts, load = _totals(workload, machine, execution)
    for leaf in plan.leaves:
        if leaf.unit is not None and (done := execution.operations[leaf.einsum]):
            load[leaf.einsum, leaf.unit, "compute"] = _by_instance(leaf.spatial, done, workload.repeat)
    return Simulation(
        counts=counts,
        busiest={key: max(table.values()) for key, table in load.items()},
        operations={name: sum(done.values()) * workload.repeat for name, done in execution.operations.items()},
        occupancy=execution.peaks.totals(workload.repeat),
        correct=correct,
        reasons=tuple(reasons),
        cycles=None if timeline is None else (machine.startup + timeline.end) * workload.repeat,
        exact=timeline is not None and uniform and not timeline.contended,
    )


def _totals(
    workload: Workload, machine: Machine, execution: Execution
) -> tuple[dict[tuple[str, str, str, str], int], dict[tuple[str, str, str], Counter[Instance]]]:
    """(values moved, bits moved in every instance), by Einsum, component and action."""
    counts: dict[tuple[str, str, str, str], int] = {}
    load: dict[tuple[str, str, str], Counter[Instance]] = {}
    for (einsum, site, action), counter in execution.stores.counters.items():
        if not counter:
            continue
        key = (einsum, site.memory, site.tensor, action)
        counts[key] = counts.get(key, 0) + sum(counter.values()) * workload.repeat
        bits = machine.way(site.memory).bits(workload, einsum, site.tensor)
        table = load.setdefault((einsum, site.memory, action), Counter())
        table.update(_by_instance(site.spatial, counter, bits * workload.repeat))
    return counts, load


def _by_instance(spatial: tuple[tuple[str, int], ...], counter: dict[Coords, int], each: int) -> Counter[Instance]:
    """`each` times what is counted, by the physical instance that loop coordinates lead to."""
    table: Counter[Instance] = Counter()
    for coords, count in counter.items():
        along: Counter[str] = Counter()
        for (axis, trips), i in zip(spatial, coords, strict=False):
            along[axis] = along[axis] * trips + i
        table[tuple(sorted((axis, i) for axis, i in along.items() if i))] += count * each
    return table

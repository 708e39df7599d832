"""TileFlow's comparison of dataflows (MICRO'23, section 7.3), legal and with proofs, cell by cell.

Comes in: names of workloads, machines and dataflows, an objective, CPU seconds per cell. Goes out: cells, each with the
optimum of the dataflow's mapspace (or the bound, or why there is none), and beside it the same tree with one split made
concurrent; and mean speed-ups beside the printed ones. Every cell keeps to one rule of parallelism (``spread-…``), so
that dataflows differ in what they restrict and in nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf

from ..cost.breakdown import Cost
from ..cost.evaluate import evaluate
from ..dataflows.concurrent_forms import concurrent_forms
from ..dataflows.files import dataflow
from ..dataflows.rules import Dataflow, together
from ..errors import BudgetExhausted, IllegalMapping, Infeasible, SpecError
from ..machine.levels import Machine
from ..mapping.text import parse_mapping
from ..mapping.tree import Mapping
from ..mapspace.limits.data import concerns
from ..mapspace.space import Mapspace
from ..problem import Budget, Objective, Problem
from ..search.method import Recorder
from ..search.resources import resident_bytes
from ..search.several import Labelled, best_of
from ..search.starts import fitting
from ..workload.einsum import Workload
from ..workload.selectors import select
from ..zoo.machine_by_name import load_machine
from ..zoo.workload_by_name import load_workload
from .cells import ATTENTIONS, COMPARED, CONVOLUTIONS, FREE, MACHINES, Cell, family_of

MEMORY = 6 << 30  # bytes that one search may take
COMMON = {  # the rule of parallelism of each family
    "attention": "spread-attention",
    "online-attention": "spread-online-attention",
    "convolution-chain": "spread-convolution",
    "tiled-convolution-chain": "spread-tiled-convolution",
}
WHOLE = {  # the families that the last column is the best of
    "attention": ("attention",),
    "convolution-chain": ("convolution-chain", "tiled-convolution-chain"),
}


def cells(
    workloads: Sequence[str] = (*ATTENTIONS, *CONVOLUTIONS),
    machines: Sequence[str] = MACHINES,
    dataflows: Sequence[str] | None = None,
    objective: str = "latency",
    seconds: float | None = None,
    wanted: Callable[[str, str, str], bool] = lambda workload, machine, flow: True,
    groups: bool = False,
    lenders: Callable[[str, str, str], Sequence[str]] = lambda workload, machine, flow: (),
) -> Iterator[Cell]:
    """Every cell, one by one. dataflows: None for all of the family, ending with ``unrestricted``. seconds: of CPU time
    per search. wanted: asked with workload, machine and dataflow before a cell is solved. groups: search groups too.

    A search starts from the mappings found before for the same workload and machine, those that are in its space.
    lenders: asked, before a cell is solved, for dataflows that are solved first, if they were not, for their mappings.
    """
    for machine in machines:
        for workload in workloads:
            kind = family_of(workload)
            known: dict[str, str] = {}
            for name in (*COMPARED[kind], FREE) if dataflows is None else dataflows:
                if not wanted(workload, machine, name):
                    continue
                for lender in lenders(workload, machine, name):
                    if lender not in known:
                        lent = cell(workload, machine, lender, objective, seconds, starts=[*known.values()])
                        known[lender] = lent.mapping
                found = cell(workload, machine, name, objective, seconds, groups, [*known.values()])
                known[name] = found.mapping
                yield found


def cell(
    workload: str,
    machine: str,
    name: str,
    objective: str = "latency",
    seconds: float | None = None,
    groups: bool = False,
    starts: Sequence[str] = (),
) -> Cell:
    """One cell; `name` is a dataflow or ``unrestricted``. groups: search groups at the same time, too.

    starts: texts of mappings that are known; those outside the dataflow's space are left out.
    """
    cascade, hardware = load_workload(workload), load_machine(machine).in_full_use()
    flows = [dataflow(COMMON[kind]) for kind in WHOLE[family_of(workload)]] if name == FREE else [dataflow(name)]
    started = time.process_time()
    known = Cell(workload, machine, name, objective, "refused")
    try:
        every = [(flow, one) for flow in flows for one in problems(flow, cascade, hardware, Objective(objective))]
    except SpecError as error:
        return replace(known, why=error.message)
    full = [crowded(one.problem.workload, hardware, one.problem.mapspace) for _, one in every]
    every = [each for each, why in zip(every, full, strict=True) if not why]
    asked = tuple(one for _, one in every)
    if not asked:
        return replace(known, status="infeasible", why=full[-1])
    try:
        begun = _known_ones(starts, asked, hardware)
        found = best_of(asked, "exact", _budget(), _watch(seconds), begun)
    except Infeasible as error:
        return replace(known, status="infeasible", why=error.witness, seconds=time.process_time() - started)
    except BudgetExhausted as error:
        why, spent = "nothing found in the CPU seconds given", time.process_time() - started
        return replace(known, status="open", bound=error.bound, why=why, seconds=spent)
    assert found.certificate is not None
    flow, chosen = next((flow, one) for flow, one in every if one.problem is found.problem)
    beside = best_concurrent(found.workload, hardware, found.mapping, flow)
    known = replace(
        known,
        status=found.certificate.guarantee.value,
        cycles=cycles(hardware, found.cost),
        energy=found.cost.energy,
        bound=found.certificate.bound,
        gap=found.certificate.gap,
        concurrent=None if beside is None else cycles(hardware, beside[0]),
        concurrent_split="" if beside is None else beside[1],
        tiles=chosen.label,
        mapping=found.mapping_text,
    )
    if groups:
        known = _with_groups(known, asked, hardware, seconds, found.mapping)
    return replace(known, seconds=time.process_time() - started)


def _known_ones(texts: Sequence[str], asked: Sequence[Labelled], machine: Machine) -> tuple[Mapping, ...]:
    """The mappings among `texts` that are in the space of one of the problems."""
    found: dict[Mapping, None] = {}
    for text in filter(None, texts):
        for one in asked:
            try:
                mapping = parse_mapping(text, one.problem.workload, machine)
            except SpecError:
                continue  # it speaks of another cascade
            found.update(dict.fromkeys(fitting(one.problem, (mapping,))))
    return tuple(found)


def _with_groups(
    known: Cell, asked: Sequence[Labelled], machine: Machine, seconds: float | None, start: Mapping
) -> Cell:
    """The cell with what groups of Einsums at the same time reach. start: what is best without groups."""
    wider = (replace(one.problem, mapspace=replace(one.problem.mapspace, concurrent="everywhere")) for one in asked)
    labelled = tuple(replace(one, problem=problem) for one, problem in zip(asked, wider, strict=True))
    found = best_of(labelled, "exact", _budget(), _watch(seconds), (start,))
    assert found.certificate is not None
    return replace(
        known,
        grouped=cycles(machine, found.cost),
        grouped_bound=found.certificate.bound,
        grouped_status=found.certificate.guarantee.value,
    )


def _budget() -> Budget:
    """What one search may take; memory that searches before it have left to the process is not counted."""
    return Budget(memory=MEMORY + resident_bytes())


def _watch(seconds: float | None) -> Recorder:
    """A watcher that stops a search after so much CPU time from now on."""
    started = time.process_time()
    return Recorder(stop=lambda: seconds is not None and time.process_time() - started > seconds)


def problems(flow: Dataflow, workload: Workload, machine: Machine, objective: Objective) -> Iterator[Labelled]:
    """What a cell asks: the best of a dataflow's choices of cascades, each within the common rule of parallelism."""
    common = dataflow(COMMON[flow.family.name])
    for choice in flow.choices(workload):
        cascade = choice.workload
        limits = together((flow,) if flow is common else (flow, common), cascade, machine)
        yield Labelled(choice.label, Problem(cascade, machine, limits, objective))


def crowded(workload: Workload, machine: Machine, space: Mapspace) -> str:
    """Why a dataflow cannot fit, where counting says so at once; empty where a search has to.

    What is backed on chip and may have no fused loop above it is there as a whole, and while an Einsum is executed all
    of that which it accesses is alive: together at most what the instances of those memories hold.
    """
    outer = machine.memories[0].name
    room = {m.name: inf if m.size is None else m.size * machine.instances(m.name) for m in machine.memories}
    for einsum in workload.einsums:
        untiled: dict[str, tuple[str, ...]] = {}
        for back in space.limits.backs:
            for tensor in select(back.tensors, workload, einsum.name) & frozenset(workload.intermediates):
                loops = (x for x in space.limits.loops if tensor in select(x.tensors, workload, einsum.name))
                mine = [x for x in loops if concerns(x.einsums, einsum.name) and x.trips.bounds[1] == 1]
                still = {v for x in mine for v in x.variables}
                free = {v for v in einsum.access(tensor).variables if workload.extents[v] > 1} - still
                if outer not in back.memories and not free:
                    untiled[tensor] = back.memories
        memories = {memory for among in untiled.values() for memory in among}
        most = sum(room[memory] for memory in memories)
        bits = sum(
            workload.tensor(t).size * min(m.bits(workload, einsum.name, t) for m in machine.memories if m.name in among)
            for t, among in untiled.items()
        )
        if bits > most:
            return f"{', '.join(sorted(untiled))} of {einsum.name} take {bits} bits as a whole, on chip are {most:g}"
    return ""


def cycles(machine: Machine, cost: Cost) -> float:
    """Latency in cycles of the first compute unit, which performs one operation in each."""
    rate = machine.units[0].throughput
    assert rate is not None
    return cost.latency * rate


def best_concurrent(workload: Workload, machine: Machine, mapping: Mapping, flow: Dataflow) -> tuple[Cost, str] | None:
    """The fastest legal tree that differs from `mapping` in one split, pipelined as the dataflow binds it; or None.

    A dataflow that binds nothing may pipeline every Einsum of its own. Nothing is searched: tiles stay as they are.
    """
    stages = flow.stages(workload) or tuple((einsum.name,) for einsum in workload.einsums)
    best: tuple[Cost, str] | None = None
    for tree in concurrent_forms(mapping, machine, stages):
        try:
            cost = evaluate(workload, machine, tree.mapping)
        except IllegalMapping:
            continue
        if best is None or cost.latency < best[0].latency:
            best = cost, f"{tree.branches} stages {tree.place}"
    return best

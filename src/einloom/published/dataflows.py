"""TileFlow's comparison of dataflows (MICRO'23, section 7.3), legal and with proofs, cell by cell.

Comes in: names of workloads, machines and dataflows, an objective, CPU seconds per cell. Goes out: cells, each with the
optimum of the dataflow's mapspace (or the bound, or why there is none), and beside it the same tree with one split made
concurrent; and mean speed-ups beside the printed ones. Every cell keeps to one rule of parallelism (``spread-…``), so
that dataflows differ in what they restrict and in nothing else.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log, prod
from pathlib import Path

from ..constraints import select
from ..cost.evaluate import evaluate
from ..cost.record import Cost
from ..errors import BudgetExhausted, IllegalMapping, Infeasible, SpecError
from ..machine.levels import Fanout, Machine, Memory
from ..machine.load import load_machine
from ..mapping.text import parse_mapping
from ..mapping.tree import Mapping
from ..mapspace.concurrency import concurrent_forms
from ..mapspace.dataflow_files import dataflow
from ..mapspace.dataflows import Dataflow
from ..mapspace.limits import concerns
from ..mapspace.space import Mapspace
from ..problem import Budget, Objective, Problem
from ..search.protocol import Recorder
from ..search.resources import resident_bytes
from ..search.several import Labelled, best_of
from ..search.starts import fitting
from ..workload.einsum import Workload
from ..workload.load import load_workload

DATA = Path(__file__).parent / "data"
ATTENTIONS = tuple(
    f"tileflow-{name}"
    for name in "bert-s bert-b bert-l vit-14-b vit-14-l vit-14-h vit-16-b vit-16-l vit-16-h t5 xlm".split()
)
CONVOLUTIONS = tuple(f"tileflow-cc{i}" for i in range(1, 6))
MACHINES = ("tileflow-edge", "tileflow-cloud")
FREE = "unrestricted"
MEMORY = 6 << 30  # bytes that one search may take
COMMON = {
    "attention": "spread-attention",
    "online-attention": "spread-online-attention",
    "convolution-chain": "spread-convolution",
    "tiled-convolution-chain": "spread-tiled-convolution",
}
COMPARED = {  # what contains others comes after them, so that a search has their mappings to start from
    "attention": (
        "layerwise uni-pipe flat-m flat-b flat-h flat-r chimera transfusion tileflow-attention flash-attention "
        "chimera-online"
    ).split(),
    "convolution-chain": "layerwise-convolution fused-layer isos tileflow-convolution".split(),
}
BASELINE = {"attention": "layerwise", "convolution-chain": "layerwise-convolution"}


@dataclass(frozen=True, slots=True)
class Cell:
    """What one dataflow reaches on one workload and machine.

    status: ``optimal``, ``bounded`` (the CPU seconds ended first; nothing is below `bound`), ``infeasible``,
    ``refused`` (the workload is none of the dataflow's) or ``open`` (nothing was found in the CPU seconds). cycles: of
    the machine's unit. concurrent: cycles of the same tree with a concurrent split, the best legal one, and which;
    None where no such tree is legal. grouped: cycles where groups of up to four Einsums may run at the same time, tiles
    searched again (`grouped_bound`: nothing of that space is below). why: where there are no numbers. tiles: the best
    number of tiles, of those that a rewrite was tried with; the mapping is one of that workload.
    """

    workload: str
    machine: str
    dataflow: str
    objective: str
    status: str
    cycles: float | None = None
    energy: float | None = None
    bound: float | None = None
    gap: float | None = None
    concurrent: float | None = None
    concurrent_split: str = ""
    grouped: float | None = None
    grouped_bound: float | None = None
    grouped_status: str = ""
    seconds: float = 0.0
    why: str = ""
    tiles: str = ""
    mapping: str = ""


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


def family_of(workload: str) -> str:
    """The family of a workload of the table."""
    return "convolution-chain" if workload.partition(":")[0] in CONVOLUTIONS else "attention"


def crowd(name: str) -> Machine:
    """A machine of the table: every Einsum is spread over as many instances as the rule of parallelism allows."""
    machine = load_machine(name)
    levels = (
        replace(level, axes=tuple(replace(axis, use="full") for axis in level.axes))
        if isinstance(level, Fanout)
        else level
        for level in machine.levels
    )
    return replace(machine, levels=tuple(levels))


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
    cascade, hardware = load_workload(workload), crowd(machine)
    flow = dataflow(COMMON[family_of(workload)] if name == FREE else name)
    started = time.process_time()
    known = Cell(workload, machine, name, objective, "refused")
    try:
        asked = tuple(problems(flow, cascade, hardware, Objective(objective)))
    except SpecError as error:
        return replace(known, why=error.message)
    full = [crowded(each.problem.workload, hardware, each.problem.mapspace) for each in asked]
    asked = tuple(each for each, why in zip(asked, full, strict=True) if not why)
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
        tiles=next(each.label for each in asked if each.problem is found.problem),
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


def upgraded(before: Cell, after: Cell) -> Cell:
    """What two runs know of one cell: the better mapping and the larger bound, without groups and with groups each."""
    rate = load_machine(after.machine).units[0].throughput
    scale = rate if after.objective == "latency" and rate is not None else 1.0
    best, other = sorted((after, before), key=_rank)
    value = best.cycles if best.objective == "latency" else best.energy
    if value is not None and best.bound is not None:
        bound = min(value / scale, max(best.bound, other.bound or 0.0))
        status = "optimal" if bound * scale >= value * (1 - 1e-9) else best.status
        best = replace(best, bound=bound, gap=max(0.0, 1 - bound * scale / value), status=status)
    elif best.status == "open":
        best = replace(best, bound=max(best.bound or 0.0, other.bound or 0.0))
    best = replace(best, seconds=after.seconds)
    groups, others = sorted((after, before), key=_grouped_rank)
    bound = max(groups.grouped_bound or 0.0, others.grouped_bound or 0.0)
    status = groups.grouped_status
    if groups.grouped is not None and groups.objective == "latency":
        bound = min(bound, groups.grouped / scale)
        status = "optimal" if bound * scale >= groups.grouped * (1 - 1e-9) else status
    return replace(best, grouped=groups.grouped, grouped_bound=bound if status else None, grouped_status=status)


def _rank(known: Cell) -> tuple[int, float]:
    """Smaller for the cell that knows more without groups."""
    value = known.cycles if known.objective == "latency" else known.energy
    order = ("optimal", "infeasible", "refused", "bounded", "open")
    return order.index(known.status), float("inf") if value is None else value


def _grouped_rank(known: Cell) -> tuple[int, float]:
    """Smaller for the cell that knows more with groups."""
    order = ("optimal", "bounded", "open", "")
    return order.index(known.grouped_status), float("inf") if known.grouped is None else known.grouped


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
        limits = flow.mapspace(cascade, machine) if flow is common else flow.within(common, cascade, machine)
        yield Labelled(choice.label, Problem(cascade, machine, limits, objective))


def crowded(workload: Workload, machine: Machine, space: Mapspace) -> str:
    """Why a dataflow cannot fit, where counting says so at once; empty where a search has to.

    What is backed on chip and may have no fused loop above it is there as a whole, and while an Einsum is executed all
    of that which it accesses is alive: together at most what the instances of those memories hold.
    """
    outer = machine.memories[0].name
    room = {memory.name: _room(machine, memory) for memory in machine.memories}
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


def _room(machine: Machine, memory: Memory) -> float:
    """Bits of all instances of a memory."""
    above = (f for f in machine.fanouts if machine.position[f.axes[0].name] < machine.position[memory.name])
    instances = prod(axis.size for fanout in above for axis in fanout.axes)
    return float("inf") if memory.size is None else memory.size * instances


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


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """Geometric mean of the speed-ups of a dataflow over Layerwise, on the `shapes` for which both are known.

    printed: TileFlow's mean, if its text has one. concurrent: the same with concurrent trees where those are faster.
    """

    family: str
    machine: str
    dataflow: str
    shapes: int
    mean: float
    concurrent: float
    printed: float | None


def speed_ups(found: Iterable[Cell]) -> tuple[SpeedUp, ...]:
    """How much faster each dataflow is than Layerwise, beside what TileFlow prints. Only cells for latency count."""
    timed = [c for c in found if c.objective == "latency" and c.cycles is not None]
    base = {(c.workload, c.machine): c.cycles for c in timed if c.dataflow == BASELINE[family_of(c.workload)]}
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for c in timed:
        one = base.get((c.workload, c.machine))
        if one is not None and c.cycles is not None:
            faster = quickest(c)
            key = family_of(c.workload), c.machine, c.dataflow
            groups.setdefault(key, []).append((one / c.cycles, one / faster))
    return tuple(
        SpeedUp(*key, len(ratios), _mean(a for a, _ in ratios), _mean(b for _, b in ratios), printed().get(key))
        for key, ratios in groups.items()
    )


def quickest(found: Cell) -> float:
    """Cycles of the fastest mapping known for a cell that has one, whatever runs at the same time."""
    return min(x for x in (found.cycles, found.concurrent, found.grouped) if x is not None)


def _mean(ratios: Iterable[float]) -> float:
    logs = [log(ratio) for ratio in ratios]
    return exp(sum(logs) / len(logs))


@cache
def printed() -> dict[tuple[str, str, str], float]:
    """TileFlow's mean speed-ups over Layerwise by family, machine and dataflow, as its text prints them."""
    with (DATA / "tileflow_speedups.csv").open(encoding="utf-8") as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("#"))
        return {(r["family"], r["machine"], r["dataflow"]): float(r["speedup"]) for r in rows}


def table(found: Iterable[Cell]) -> str:
    """Cells as text: one block per machine and objective, one line per workload, a column per dataflow.

    Cycles, or joules where energy is minimised; ``~`` before what is not proven optimal. With Einsums at the same time,
    ``*`` before what is only the same tree made concurrent, or that tree itself: groups were not searched.
    """
    blocks: dict[tuple[str, str, str], dict[str, dict[str, Cell]]] = {}
    for c in implied(found):
        key = family_of(c.workload), c.machine, c.objective
        blocks.setdefault(key, {}).setdefault(c.workload, {})[c.dataflow] = c
    parts = []
    for (kind, machine, objective), rows in blocks.items():
        names = [n for n in (*COMPARED[kind], FREE) if any(n in row for row in rows.values())]
        title = f"{kind} on {machine}, {objective} ({'cycles' if objective == 'latency' else 'J'})"
        parts.append(_block(title, names, rows, _shown))
        if any(c.grouped_status for row in rows.values() for c in row.values()):
            parts.append(_block(f"{title}, Einsums at the same time", names, rows, _shown_concurrent))
    means = [
        f"{s.family:<18} {s.machine:<15} {s.dataflow:<22} {s.shapes:>2} shapes {s.mean:6.2f}x"
        f" {s.concurrent:6.2f}x concurrent" + ("" if s.printed is None else f", printed {s.printed:.2f}x")
        for s in speed_ups(found)
    ]
    return "\n\n".join((*parts, *(["speed-ups over Layerwise\n" + "\n".join(means)] if means else []))) + "\n"


def implied(found: Iterable[Cell]) -> list[Cell]:
    """The cells, with what the last column proves of others: its space contains theirs, with groups too, so a cell that
    is as fast as the proven optimum there has no faster mapping either. Rewritten cascades are left as they are."""
    cells = list(found)
    free = {(c.workload, c.machine, c.objective): c for c in cells if c.dataflow == FREE}
    return [_implied(c, free.get((c.workload, c.machine, c.objective))) for c in cells]


def _implied(known: Cell, free: Cell | None) -> Cell:
    if free is None or free.grouped_status != "optimal" or known.cycles is None or known.objective != "latency":
        return known
    same = dataflow(known.dataflow if known.dataflow != FREE else COMMON[family_of(known.workload)])
    if same.family.name != family_of(known.workload) or known.cycles > quickest(free) * (1 + 1e-9):
        return known
    return replace(known, grouped=known.cycles, grouped_bound=free.grouped_bound, grouped_status="optimal")


def _block(
    title: str, names: Sequence[str], rows: dict[str, dict[str, Cell]], show: Callable[[Cell | None], str]
) -> str:
    lines = [title, " ".join((f"{'':<18}", *(f"{n[:13]:>13}" for n in names)))]
    lines += (" ".join((f"{w:<18}", *(f"{show(row.get(n)):>13}" for n in names))) for w, row in rows.items())
    return "\n".join(lines)


def _shown_concurrent(found: Cell | None) -> str:
    """As `_shown`, of the fastest mapping whatever runs at the same time; ``*`` where groups were not searched."""
    if found is None or found.cycles is None:
        return _shown(found)
    value = quickest(found)
    best = found.grouped_status == "optimal" and found.grouped is not None and found.grouped <= value * (1 + 1e-9)
    return f"{'' if best else '~' if found.grouped_status else '*'}{value:,.0f}"


def _shown(found: Cell | None) -> str:
    if found is None:
        return "not run"
    value = found.cycles if found.objective == "latency" else found.energy
    if value is None:
        return found.status
    return f"{'' if found.status == 'optimal' else '~'}{value:,.0f}" if value < 1e8 else f"{value:.4g}"

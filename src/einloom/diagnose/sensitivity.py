"""What binds a mapping: shares of it by its price alone, and by solving again what a larger machine would bring, or a
wider space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from ..dataclass import dataclass
from ..errors import Infeasible, SpecError
from ..machine.levels import ComputeUnit, Fanout, Memory
from ..mapping.tree import Mapping
from ..mapspace.ffm.rules import most_fused_loops
from ..problem import Problem
from ..reading.units import format as with_unit
from ..result import Result
from ..search.exact.answer import refuse_uncarried
from ..workload.orders import several_orders
from .constraints import bits, with_axis, with_level
from .feasibility import UNDECIDED, Asker, Undecided
from .record import Gain, Share

MORE = 10  # percent
FEW_EINSUMS = 20  # up to which wider spaces are asked about: they take long for more
FEW_LOOPS = 2  # fused loops where ranks are cut twice, for the same reason; else one more than the known mapping has
SAME = 1e-9


def shares(result: Result) -> tuple[Share, ...]:
    """How full the memories are, how long each component is the slowest, and where the energy goes; no search."""
    cost = result.cost
    found = []
    for o in cost.occupancy:
        if o.size is not None:
            held = ", ".join(f"{tensor} {bits(n)}" for tensor, n in o.tensors)
            share = o.bits / o.size if o.size else float(o.bits > 0)  # a size of 0 is in damaged answers alone
            found.append(Share(o.memory, "capacity", share, f"{bits(o.bits)} of {bits(o.size)}: {held}"))
    total = sum(seconds for _, seconds in cost.einsum_latency)
    slowest: dict[str, float] = {}
    einsums: dict[str, list[str]] = {}
    for einsum, seconds in cost.einsum_latency:
        mine = [(busy, component) for name, component, busy in cost.busy if name == einsum]
        if mine and seconds > 0:
            component = max(mine)[1]
            slowest[component] = slowest.get(component, 0.0) + seconds
            einsums.setdefault(component, []).append(einsum)
    for component, seconds in sorted(slowest.items(), key=lambda item: -item[1]):
        detail = f"{with_unit(seconds, 'time', 4)}, in {', '.join(einsums[component])}"
        found.append(Share(component, "time", seconds / total, detail))
    energy = cost.energy_by("component")
    spent = sum(joules for joules in energy.values() if joules > 0)
    for (name, *_), joules in sorted(energy.items(), key=lambda item: -item[1]):
        if joules > 0 and name is not None:
            found.append(Share(name, "energy", joules / spent, with_unit(float(joules), "energy", 4)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Larger:
    """One thing of which the machine has more: where, how much before and after, and the problem with it."""

    place: str
    before: str
    after: str
    problem: Problem
    again: Larger | None = None
    """Asked too if this one brings nothing."""


def larger(problem: Problem) -> Iterator[Larger]:
    """Every machine with 10 % more of one thing, or twice as much where that makes no sense."""
    for memory in problem.machine.memories:
        if memory.size:
            twice, more = _sized(problem, memory, 2 * memory.size), memory.size * (100 + MORE) // 100
            yield twice if more == memory.size else replace(_sized(problem, memory, more), again=twice)
    if times_matter(problem):
        yield from _faster(problem)
    for axis in problem.machine.axes.values():
        after = replace(axis, size=2 * axis.size)
        yield Larger(f"{axis.name} (axis)", str(axis.size), str(after.size), with_axis(problem, after))


def wider(problem: Problem, known: Mapping) -> Iterator[Larger]:
    """Every wider space that `exact` searches and that has more mappings, of cascades that are not long: any order of
    the Einsums, stores for several readers, fused loops that cut a rank twice. Each has the mapping `known`."""
    space, workload = problem.mapspace, problem.workload
    found = []
    if space.order == "program" and several_orders(workload):
        found.append(("order", "program", "free", replace(space, order="free")))
    if space.stores == "own" and any(len(readers) > 1 for readers in workload.consumers.values()):
        found.append(("stores", "own", "shared", replace(space, stores="shared")))
    most = max(FEW_LOOPS, most_fused_loops(workload, problem.machine, space, known) + 1)
    most = most if space.max_fused_loops is None else min(most, space.max_fused_loops)
    if space.max_fused_loops_per_rank_variable == 1 and len(workload.intermediates) > 1 and most > 1:
        again = replace(space, max_fused_loops=most, max_fused_loops_per_rank_variable=2)
        found.append(("fused loops per rank", "1", f"2, with at most {most} fused loops", again))
    for place, before, after, mapspace in found if len(workload.einsums) <= FEW_EINSUMS else ():
        asked = replace(problem, mapspace=mapspace)
        if _carried(asked):
            yield Larger(place, before, after, asked)


def _carried(problem: Problem) -> bool:
    """True if `exact` searches the space of the problem."""
    try:
        refuse_uncarried(problem)
    except SpecError:
        return False
    return True


def times_matter(problem: Problem) -> bool:
    """True if the objective depends on how long anything takes."""
    machine = problem.machine
    leaks = any(component.leakage > 0 for component in machine.components)
    return problem.objective.name not in ("energy", "traffic") or (problem.objective.name == "energy" and leaks)


def _sized(problem: Problem, memory: Memory, size: int) -> Larger:
    assert memory.size is not None
    changed = with_level(problem, replace(memory, size=size))
    return Larger(f"{memory.name}.size", bits(memory.size), bits(size), changed)


def _faster(problem: Problem) -> Iterator[Larger]:
    for level in problem.machine.levels:
        keys = ("read_throughput", "write_throughput") if isinstance(level, Memory) else ("throughput",)
        if isinstance(level, Fanout):
            continue
        now = {key: getattr(level, key) for key in keys if getattr(level, key) is not None}
        if now:
            more = {key: value * (100 + MORE) / 100 for key, value in now.items()}
            unit = "rate" if isinstance(level, ComputeUnit) else "throughput"
            before, after = (
                " / ".join(dict.fromkeys(with_unit(v, unit, 4) for v in some.values()))  # type: ignore[arg-type]
                for some in (now, more)
            )
            changed = with_level(problem, replace(level, **more))
            yield Larger(f"{level.name}.throughput", before, after, changed)


def gains(asker: Asker, problem: Problem, value: float, known: Mapping) -> Iterator[Gain]:
    """What each larger machine and each wider space brings over the optimum `value`, each searched from a known mapping
    of the problem. Raises Unfinished when the budget ends.
    """
    for more in larger(problem):
        gain = _gain(asker, more, value, starts=(known,))
        yield gain
        if more.again is not None and gain.gain is not None and abs(gain.gain) <= SAME:
            yield _gain(asker, more.again, value, starts=(known,))
    for more in wider(problem, known):
        yield _gain(asker, more, value, value, (known,))
    if not times_matter(problem):
        yield Gain("throughputs", None, None, None, note=f"{problem.objective} does not depend on how fast anything is")


def _gain(asker: Asker, more: Larger, value: float, known: float = inf, starts: Sequence[Mapping] = ()) -> Gain:
    """known: the value of a mapping that is there before anything is asked. starts: the search begins from them."""
    try:
        solved = asker.optimum(more.problem, f"optimum with {more.place} {more.after}", starts=starts)
    except Undecided:
        return Gain(more.place, None, None, len(asker.runs), more.before, more.after, UNDECIDED)
    run = len(asker.runs)
    if isinstance(solved, Infeasible) and known == inf:
        return Gain(more.place, None, None, run, more.before, more.after, f"no mapping: {solved.witness}")
    best = known if isinstance(solved, Infeasible) else min(known, solved.value)
    gained = 0.0 if value == 0 else (value - best) / value
    return Gain(more.place, best, 0.0 if abs(gained) <= SAME else gained, run, more.before, more.after)

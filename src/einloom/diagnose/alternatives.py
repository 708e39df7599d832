"""Why each intermediate is fused or not: the best mapping with it on the other side, or what forbids that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import Infeasible
from ..mapping.extents import outermost_stores
from ..mapspace.limits.data import BackLimit
from ..problem import Problem
from ..result import Result
from ..workload.selectors import selector
from .conflict import Blame
from .constraints import constraints
from .feasibility import UNDECIDED, Asker, Undecided, Unfinished
from .record import Conflict, FusionAlternative, Side
from .sensitivity import SAME


def forced(problem: Problem, tensor: str, side: Side) -> tuple[Problem, BackLimit]:
    """The problem in which the intermediate must be fused, or must not, and the limit that says so."""
    names = tuple(memory.name for memory in problem.machine.memories)
    limit = BackLimit(selector(tensor), names[1:] if side == "fused" else names[:1])
    space = problem.mapspace
    limits = replace(space.limits, backs=(*space.limits.backs, limit))
    return replace(problem, mapspace=replace(space, limits=limits)), limit


def alternatives(asker: Asker, result: Result, value: float) -> Iterator[FusionAlternative]:
    """For every intermediate the best mapping on its other side, against `value`. Raises Unfinished."""
    outermost = result.machine.memories[0].name
    if len(result.machine.memories) < 2:
        return
    stores = outermost_stores(result.mapping.nest)
    for tensor in result.workload.intermediates:
        memory, _ = stores[tensor]
        side: Side = "fused" if memory == outermost else "unfused"
        problem, limit = forced(result.problem, tensor, side)
        try:
            solved = asker.optimum(problem, f"optimum with {tensor} {side}")
        except Undecided:
            yield FusionAlternative(tensor, memory, side, run=len(asker.runs), note=UNDECIDED)
            continue
        run = len(asker.runs)
        if isinstance(solved, Infeasible):
            yield FusionAlternative(tensor, memory, side, run=run, blame=_blame(asker, problem, limit))
            continue
        loss = 0.0 if value == 0 else (solved.value - value) / value
        if abs(loss) <= SAME:
            loss = 0.0
        moved = solved.cost.traffic(outermost)
        yield FusionAlternative(tensor, memory, side, solved.value, solved.energy, solved.latency, moved, loss, run)


def _blame(asker: Asker, problem: Problem, limit: BackLimit) -> Conflict | None:
    """What forbids it, the wish itself aside; None if the budget ends before that is known."""
    blame = Blame(asker, problem, constraints(problem, granted=(limit,)))
    try:
        first = blame.first()
        return None if first is None else blame.conflict(first)
    except Unfinished:
        return None

"""The brute-force oracle: prices every tree of a tiny mapspace and returns the best. It shares nothing with `exact`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from time import monotonic

from ..cost.evaluate import evaluate, legality
from ..dataclass import dataclass
from ..errors import BudgetExhausted, Ended, Infeasible
from ..mapping.tree import Mapping
from ..mapspace.ffm.space import Ffm
from ..mapspace.registry import space_for
from ..problem import Budget, Guarantee, Problem
from ..result import FrontPoint
from .resources import resident_bytes
from .watcher import Watcher

OFTEN = 64  # steps of the grammar and candidates between two looks at the budget
SAME = 1 + 1e-12  # sums of equal parts may differ in the last place


@dataclass(frozen=True, slots=True)
class Found:
    """The best mapping and its value; trees: how many the space has; legal: how many of them fit the memories.

    ended: what ended the search before it had seen all, so that `value` is only the best so far. front: for objective
    ``pareto`` every tree that none beats in energy and latency, ascending in energy; of equal ones the first.
    """

    value: float
    mapping: Mapping
    legal: int
    trees: int
    ended: Ended | None = None
    front: tuple[FrontPoint, ...] = ()

    @property
    def complete(self) -> bool:
        """True if every tree was seen."""
        return self.ended is None


class Exhaustive:
    """Looks at every tree of the space, in the order of the grammar."""

    name = "exhaustive"
    guarantee = Guarantee.OPTIMAL

    def search(self, problem: Problem, budget: Budget | None = None, watch: Watcher | None = None) -> Found:
        """The best legal tree; of several that are equally good, the first.

        Raises Infeasible if no tree of the space is legal, BudgetExhausted if the budget ends before a legal one was
        seen.
        """
        budget, watch = budget or Budget(), watch or Watcher()
        started = monotonic()
        workload, machine = problem.workload, problem.machine
        best: Found | None = None
        front: list[FrontPoint] = []
        trees = legal = 0
        ended: Ended | None = None
        reasons: tuple[str, ...] = ("no tree keeps the limits of the machine and the rules of the space",)
        try:
            for mapping in _trees(problem, lambda: _check(budget, 0, started, watch)):
                trees += 1
                over = legality(workload, machine, mapping)
                if over:
                    reasons = over
                else:
                    legal += 1
                    cost = evaluate(workload, machine, mapping, problem.latency_rule)
                    value = problem.objective.value(cost)
                    if problem.objective.name == "pareto":
                        _enter(front, FrontPoint(cost.energy, cost.latency, mapping))
                    if best is None or value < best.value:
                        best = Found(value, mapping, legal, trees)
                        watch.incumbent(value, mapping)
                watch.count("capacity" if over else "evaluated")
                _check(budget, trees, started, watch)
        except _Over as over_budget:
            ended = over_budget.ended
        if best is None:
            if ended is None:
                raise Infeasible(f"none of {trees} trees is legal; the last one: {'; '.join(reasons)}")
            raise BudgetExhausted(0.0, ended=ended)
        return Found(best.value, best.mapping, legal, trees, ended, tuple(sorted(front, key=lambda p: p.energy)))


def _trees(problem: Problem, check: Callable[[], None]) -> Iterator[Mapping]:
    """Every tree; `check` is called now and then while the next tree is being looked for."""

    def ask() -> None:
        if next(calls) % OFTEN == 0:
            check()

    calls = count()
    space = space_for(problem.workload, problem.machine, problem.mapspace)
    return (replace(space, checkpoint=ask) if isinstance(space, Ffm) else space).trees()


class _Over(Exception):
    """The budget ended."""

    def __init__(self, ended: Ended) -> None:
        self.ended = ended


def _enter(front: list[FrontPoint], point: FrontPoint) -> None:
    """Put `point` on the front unless a point there is as good; what it beats leaves."""
    if any(p.energy <= point.energy * SAME and p.latency <= point.latency * SAME for p in front):
        return
    front[:] = [p for p in front if p.energy < point.energy or p.latency < point.latency]
    front.append(point)


def _check(budget: Budget, steps: int, started: float, watch: Watcher) -> None:
    """Raise _Over if anything ends the search now."""
    if budget.seconds is not None and monotonic() - started >= budget.seconds:
        raise _Over(Ended.SECONDS)
    if budget.steps is not None and steps >= budget.steps:
        raise _Over(Ended.STEPS)
    if budget.memory is not None and resident_bytes() > budget.memory:
        raise _Over(Ended.MEMORY)
    if watch.stopped():
        raise _Over(Ended.STOPPED)

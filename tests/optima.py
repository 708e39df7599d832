"""What two searches say of one problem: a value, or None where there is no mapping."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import islice

import pytest

from einloom.cost.breakdown import Cost
from einloom.cost.evaluate import evaluate, legality
from einloom.errors import Defect, Infeasible
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.problem import Budget, Objective, Problem
from einloom.result import Result
from einloom.search.exact import Exact, ExactOptions
from einloom.search.exhaustive import Exhaustive


def searched(problem: Problem, options: ExactOptions | None = None, budget: Budget | None = None) -> Result | None:
    """What `exact` finds; its tree is legal and belongs to the space."""
    try:
        found = Exact(options).search(problem, budget)
    except Infeasible:
        return None
    assert outside(problem.workload, problem.machine, problem.mapspace, found.mapping) == ()
    return found


def optimum(problem: Problem, options: ExactOptions | None = None) -> float | None:
    """The value of what `exact` finds."""
    found = searched(problem, options)
    return None if found is None else found.value


def enumerated(problem: Problem) -> float | None:
    """The least value of all legal trees."""
    try:
        return Exhaustive().search(problem).value
    except Infeasible:
        return None


def at_most(trees: Iterable[object], most: int) -> bool:
    """True if there are no more trees than that."""
    return sum(1 for _ in islice(trees, most + 1)) <= most


@cache
def every_cost(problem: Problem) -> tuple[Cost, ...]:
    """The cost of every legal tree of the problem's space, whatever the objective."""
    workload, machine = problem.workload, problem.machine
    trees = enumerate_trees(workload, machine, problem.mapspace)
    return tuple(evaluate(workload, machine, tree) for tree in trees if not legality(workload, machine, tree))


def best_of_all(problem: Problem) -> float | None:
    """The least value of all legal trees; trees of one space are priced once for all objectives."""
    costs = every_cost(replace(problem, objective=Objective("energy")))
    return min((problem.objective.value(cost) for cost in costs), default=None)


def staircase(costs: Iterable[Cost]) -> list[tuple[float, float]]:
    """(energy, latency) of the costs that no other beats, ascending in energy."""
    found: list[tuple[float, float]] = []
    for energy, latency in sorted((cost.energy, cost.latency) for cost in costs):
        if not found or latency < found[-1][1]:
            found.append((energy, latency))
    return found


def same(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else a == pytest.approx(b, rel=1e-9, abs=0)


def optimum_or_defect(problem: Problem) -> float | None:
    """As `optimum`; -1, which no mapping costs, where the search notices its own mistake.

    Under a budget of steps nothing is drawn, and no ranks are rounded up for as long as the search has taken: either
    may meet the optimum, now and then, and hide a mistake.
    """
    try:
        found = searched(problem, budget=Budget(steps=10**9))
    except Defect:
        return -1.0
    return None if found is None else found.value

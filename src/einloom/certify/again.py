"""The second solution: the optimum of a result's problem by a route that does not share the pruning under test."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..errors import BudgetExhausted
from ..problem import Budget, Guarantee, Problem
from ..result import Result
from ..search.protocol import Optimizer, Watcher, optimizer

TINY_POINTS = 16
TINY_EINSUMS = 2
TINY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The optimum that was found, and by which route."""

    value: float
    method: str


def solve_again(result: Result) -> Answer:
    """The optimum of the result's problem: by enumeration if it is tiny, else by `exact` without optional pruning.

    Raises Infeasible, or BudgetExhausted if the solution is not proven.
    """
    if _tiny(result.problem):
        try:
            return _solved(result.problem, optimizer("exhaustive"), Budget(seconds=TINY_SECONDS), "exhaustive")
        except BudgetExhausted:
            pass
    return _solved(result.problem, _unpruned(), Budget(), "exact without optional pruning")


def _tiny(problem: Problem) -> bool:
    workload = problem.workload
    points = max(prod(workload.extents[v] for v in einsum.variables) for einsum in workload.einsums)
    return len(workload.einsums) <= TINY_EINSUMS and points <= TINY_POINTS and len(problem.machine.levels) <= 4


def _solved(problem: Problem, method: Optimizer, budget: Budget, name: str) -> Answer:
    again = method.search(problem, budget, Watcher())
    if again.certificate is None or again.certificate.guarantee is not Guarantee.OPTIMAL:
        raise BudgetExhausted(0.0 if again.certificate is None else again.certificate.bound)
    return Answer(again.value, name)


def _unpruned() -> Optimizer:
    """The exact search with every pruning rule off that the second solution can afford to miss."""
    return optimizer("exact")

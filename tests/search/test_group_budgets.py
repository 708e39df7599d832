"""A search for groups that ends early keeps the best so far and a bound that is true, with a budget or interrupted."""

from __future__ import annotations

from functools import cache

import pytest

from einloom.certify.verify import verify
from einloom.errors import BudgetExhausted
from einloom.mapping.legality.concurrency import has_concurrent
from einloom.mapspace.ffm.rules import outside
from einloom.problem import Budget, Guarantee, Problem
from einloom.result import Result
from einloom.search.exact import Exact
from einloom.search.method import Recorder
from pipeline_problems import pipeline_problem

CASES = (("chain", 11), ("fork", 59), ("fork", 80))


@cache
def best(family: str, seed: int) -> Result:
    found = Exact().search(pipeline_problem(family, seed))
    assert has_concurrent(found.mapping.nest)
    return found


def true(problem: Problem, value: float, found: Result) -> None:
    """The mapping is legal and in the space, and the optimum stands between bound and value."""
    assert outside(problem.workload, problem.machine, problem.mapspace, found.mapping) == ()
    assert found.certificate is not None
    assert 0 < found.certificate.bound <= value * (1 + 1e-9)
    assert value <= found.value * (1 + 1e-9)
    assert verify(found, quick=True).ok


def within(problem: Problem, steps: int) -> tuple[float | None, Result | None]:
    """The bound, and what is found by then."""
    try:
        found = Exact().search(problem, Budget(steps=steps))
    except BudgetExhausted as error:
        return error.bound, None
    assert found.certificate is not None
    return found.certificate.bound, found


@pytest.mark.parametrize(("family", "seed"), CASES)
def test_a_budget_of_steps(family: str, seed: int) -> None:
    problem, value = pipeline_problem(family, seed), best(family, seed).value
    guarantees: list[Guarantee] = []
    for steps in (0, 10, 25, 50, 100, 10**7):
        bound, found = within(problem, steps)
        assert bound is not None
        assert bound <= value * (1 + 1e-9)
        if found is not None:
            true(problem, value, found)
            assert found.certificate is not None
            guarantees.append(found.certificate.guarantee)
            if guarantees[-1] is Guarantee.OPTIMAL:
                assert found.value == pytest.approx(value, rel=1e-9)
    assert Guarantee.BOUNDED in guarantees
    assert guarantees[-1] is Guarantee.OPTIMAL


class Impatient(Recorder):
    """Asks to stop when the first mapping has been found."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def incumbent(self, value: float, mapping: object) -> None:
        self.seen = True

    def stopped(self) -> bool:
        return self.seen


def test_interrupted_after_the_first_mapping() -> None:
    """EDP: the dive through the sequential space finds one before any group is looked at."""
    problem, value = pipeline_problem("chain", 11), best("chain", 11).value
    found = Exact().search(problem, watch=Impatient())
    assert found.certificate is not None
    assert found.certificate.guarantee is Guarantee.BOUNDED
    assert not has_concurrent(found.mapping.nest)
    true(problem, value, found)

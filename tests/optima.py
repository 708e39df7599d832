"""What two searches say of one problem: a value, or None where there is no mapping."""

from __future__ import annotations

import pytest

from einloom.errors import Infeasible
from einloom.mapspace.ffm import outside
from einloom.problem import Problem
from einloom.result import Result
from einloom.search.exact import Exact, ExactOptions
from einloom.search.exhaustive import Exhaustive


def searched(problem: Problem, options: ExactOptions | None = None) -> Result | None:
    """What `exact` finds; its tree is legal and belongs to the space."""
    try:
        found = Exact(options).search(problem)
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


def same(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else a == pytest.approx(b, rel=1e-9, abs=0)

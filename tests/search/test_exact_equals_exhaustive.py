"""`exact` finds what looking at every tree finds: random tiny problems over random machines and all objectives.

The exhaustive search shares no code with `exact` but the cost of a given tree and the definition of the space.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from einloom.errors import Infeasible
from einloom.mapspace.ffm import outside
from einloom.problem import Budget, Problem
from einloom.search.exact import Exact, ExactOptions, Rules
from einloom.search.exhaustive import Exhaustive
from tiny_problems import tiny_problem

MOST_SECONDS = 20.0
SEEDS = json.loads((Path(__file__).parent / "tiny_seeds.json").read_text())


def enumerated(problem: Problem) -> float | None:
    """The optimum by enumeration; None if no tree is legal."""
    try:
        found = Exhaustive().search(problem, Budget(seconds=MOST_SECONDS))
    except Infeasible:
        return None
    assert found.complete, "choose smaller problems"
    return found.value


def optimum(problem: Problem, options: ExactOptions | None = None) -> float | None:
    """The optimum by the exact search; its tree is legal and belongs to the space."""
    try:
        result = Exact(options).search(problem)
    except Infeasible:
        return None
    assert outside(problem.workload, problem.machine, problem.mapspace, result.mapping) == ()
    return result.value


def same(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else a == pytest.approx(b, rel=1e-9, abs=0)


@pytest.mark.parametrize("first", range(0, len(SEEDS), 30))
def test_exact_equals_exhaustive(first: int) -> None:
    for seed in SEEDS[first : first + 30]:
        problem = tiny_problem(seed)
        assert same(optimum(problem), enumerated(problem)), f"seed {seed}"


def test_the_seeds_are_many_and_varied() -> None:
    problems = [tiny_problem(seed) for seed in SEEDS]
    assert len(problems) >= 300
    assert len({problem.machine for problem in problems}) >= 200
    assert {problem.objective.name for problem in problems} == {"energy", "latency", "edp", "traffic"}
    assert sum(len(problem.workload.einsums) > 1 for problem in problems) >= 60
    assert sum(len(problem.machine.memories) > 2 for problem in problems) >= 60
    assert sum(bool(problem.machine.fanouts) for problem in problems) >= 60
    infeasible = sum(optimum(problem) is None for problem in problems)
    assert 10 <= infeasible <= len(problems) // 2


RULES = ("stationary", "lowering", "dominance", "limits")


@pytest.mark.parametrize("rule", RULES)
def test_each_pruning_rule_off_gives_the_same_optimum(rule: str) -> None:
    off = Rules(**{rule: False})
    for seed in SEEDS[:60]:
        problem = tiny_problem(seed)
        assert same(optimum(problem, ExactOptions(off)), optimum(problem)), f"seed {seed}"


def test_without_bounds_the_optimum_is_the_same() -> None:
    for seed in SEEDS[:90]:
        problem = tiny_problem(seed)
        assert same(optimum(problem, ExactOptions(incumbent=False)), optimum(problem)), f"seed {seed}"

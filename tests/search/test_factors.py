"""A search for a product under a budget of seconds looks for the least energy, too: what it finds is priced by the
product and kept, and what is proven stays the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from einloom.cost.evaluate import evaluate
from einloom.errors import Infeasible
from einloom.problem import Budget, Guarantee, Objective, Problem
from einloom.questions import problem
from einloom.search.exact import Exact, branch_and_bound, factors, least_costs
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.factors import by_energy, due
from einloom.search.exact.options import ExactOptions
from einloom.search.method import Watcher
from einloom.search.starts import fitting
from optima import same
from tiny_problems import tiny_problem

SEEDS: list[int] = json.loads((Path(__file__).parent / "tiny_seeds.json").read_text())
LONG = Budget(seconds=1e6)
SMALL = "simple:dram_energy=10,glb_bits=512"


def run_of(goal: str, budget: Budget = LONG) -> Run:
    return Run(problem("residual-diamond", SMALL, goal), ExactOptions(), budget, Watcher(), None)


def optimum(asked: Problem, budget: Budget) -> float | None:
    """A proven value; None where there is no mapping."""
    try:
        found = Exact().search(asked, budget)
    except Infeasible:
        return None
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    return found.value


def edp_of(asked: Problem, found: Problem) -> float:
    """The EDP of what is best for another problem."""
    best = Exact().search(found)
    return asked.objective.value(evaluate(asked.workload, asked.machine, best.mapping))


@pytest.mark.parametrize("goal", ["edp", "energy^2*latency"])
def test_what_costs_the_least_energy_is_kept_with_its_price_as_a_product(goal: str) -> None:
    run = run_of(goal)
    by_energy(run)
    best = run.incumbent.best
    assert best is not None and run.incumbent.provisional, "drawing goes on"
    assert fitting(run.problem, (best.mapping,)) == (best.mapping,)
    cost = evaluate(run.problem.workload, run.problem.machine, best.mapping)
    value = best.value * run.incumbent.repeats
    assert value == pytest.approx(run.problem.objective.value(cost), rel=1e-12)
    assert value <= edp_of(run.problem, run_of("energy").problem) * (1 + 1e-9)


def test_a_share_that_is_over_ends_the_look_and_not_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "SHARE", 0.0)
    run = run_of("edp")
    by_energy(run)
    assert run.incumbent.best is None and run.stops.until == float("inf")
    run.stops.check()


@pytest.mark.parametrize(
    ("goal", "budget", "share", "expected"),
    [
        ("edp", LONG, 1.2, True),
        ("energy^2*latency", LONG, 1.2, True),
        ("edp", LONG, 1.05, False),
        ("energy", LONG, 1.2, False),
        ("pareto", LONG, 1.2, False),
        ("edp", Budget(), 1.2, False),
        ("edp", Budget(steps=10**9), 1.2, False),
        ("edp", Budget(seconds=1e6, steps=10**9), 1.2, False),
    ],
)
def test_only_products_under_seconds_that_are_far_from_their_bound_do_so(
    goal: str, budget: Budget, share: float, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(goal, budget)
    assert not due(run), "too early"
    monkeypatch.setattr(factors, "AFTER", -1.0)
    known = run.incumbent.solution(Exact().search(run_of("energy").problem).mapping)
    run.incumbent.found(known)
    run.incumbent.bound = known.value * run.incumbent.repeats / share
    assert due(run) == expected


@pytest.mark.parametrize("space", ["ffm", "ragged"])
@pytest.mark.parametrize(
    "seeds", [SEEDS[:30], pytest.param(SEEDS[30:240], marks=pytest.mark.slow)], ids=["few", "more"]
)
def test_proofs_are_the_same(seeds: list[int], space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On random cascades, wherever limits are raised: the look for energy stands before the first of them."""
    looked: list[float] = []

    def counted(search: Run) -> None:
        by_energy(search)
        looked.append(search.incumbent.value)

    monkeypatch.setattr(factors, "AFTER", -1.0)
    monkeypatch.setattr(factors, "GAP", 0.0)
    monkeypatch.setattr(branch_and_bound, "by_energy", counted)
    monkeypatch.setattr(least_costs, "MANY", -1)
    for seed in seeds:
        tiny = tiny_problem(seed)
        asked = replace(tiny, objective=Objective("edp"), mapspace=replace(tiny.mapspace, name=space))
        assert same(optimum(asked, LONG), optimum(asked, Budget())), seed
    assert len(looked) >= len(seeds) // 4

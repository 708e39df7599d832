"""Stores for several readers in the space `ragged`, and in free order: what all trees say."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from bench.ragged_problems import shared_problem

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.ffm.enumerate import candidates
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Guarantee, Objective, Problem
from einloom.search.exact import Exact, ExactOptions
from einloom.search.exact.joining import lending
from einloom.workload.build import build_workload
from einloom.workload.orders import orders
from einloom.workload.selectors import selector
from optima import best_of_all, every_cost, optimum, optimum_or_defect, same, searched, staircase
from sharing import ordered_problem

SEEDS: list[tuple[int, float | None, bool]] = json.loads(
    (Path(__file__).parent / "ragged_reader_seeds.json").read_text()
)
"""Small problems by seed that have an uneven tree with a store for several readers, the least value of all their trees,
and whether only such a tree has it: of ``bench.uneven --readers``."""
QUICK, MOST = (0, 2, 4, 6), 400


def wrong(some: list[tuple[int, float | None, bool]]) -> list[int]:
    return [seed for seed, value, _ in some if not same(optimum(shared_problem(seed)), value)]


def test_exact_finds_what_all_trees_say() -> None:
    assert wrong([one for one in SEEDS if one[2]] + SEEDS[::12]) == []


@pytest.mark.slow
def test_exact_finds_what_all_trees_of_every_problem_say() -> None:
    assert wrong(SEEDS) == []


def asked(size: int, goal: str, m: int = 5) -> Problem:
    """A residual of m values through a small buffer, where both Einsums may meet one tile of E; three lanes behind."""
    workload = build_workload("w", ["T[m] = exp(E[m])", "Z[m] = add(T[m], E[m])"], {"m": m}, bits=1)
    outer = Memory("DRAM", None, 10.0, 10.0, 1, 32.0, 32.0)
    buffer = Memory("GLB", size, 0.5, 0.5, 1, 64.0, 64.0, may=selector("T | E"), must=selector("T | E"))
    lanes = Fanout("F", (Axis("x", 3, selector("all"), selector("all")),))
    machine = Machine("m", (outer, buffer, lanes, ComputeUnit("MAC", 1.0, 1.0)))
    return Problem(workload, machine, Mapspace("ragged", stores="shared"), Objective(goal))


SMALL = {(size, goal): asked(size, goal) for size in (4, 6) for goal in ("energy", "latency", "edp")}


@pytest.mark.parametrize("size", [pytest.param(4, marks=pytest.mark.slow), 6])
def test_what_all_trees_say(size: int) -> None:
    for goal in ("energy", "latency", "edp"):
        assert same(optimum(SMALL[size, goal]), best_of_all(SMALL[size, goal])), goal
    whole = replace(SMALL[size, "edp"], objective=Objective("pareto"))
    found = searched(whole)
    assert found is not None
    points = [(point.energy, point.latency) for point in found.front]
    every = every_cost(replace(whole, objective=Objective("energy")))
    assert points == [pytest.approx(point) for point in staircase(every)]


def test_starts_limits_and_budgets() -> None:
    problem = SMALL[6, "edp"]
    found = searched(problem)
    assert found is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert "serve several readers" in found.certificate.mapspace and "ragged" in found.certificate.mapspace
    assert same(optimum(problem, ExactOptions(start=(found.mapping,))), found.value)
    assert optimum(problem, ExactOptions(limit=found.value * 0.999)) is None
    assert same(optimum(problem, ExactOptions(incumbent=False)), found.value)
    assert same(optimum(problem, ExactOptions(consistency=False)), found.value)
    stopped = Exact().search(problem, Budget(steps=60))
    assert stopped.certificate.bound <= found.value * (1 + 1e-9) <= stopped.value * (1 + 2e-9)


def few(problem: Problem) -> bool:
    every = (t for one in orders(problem.workload) for t in candidates(one, problem.machine, stores="shared"))
    return sum(1 for _ in islice(every, MOST + 1)) <= MOST


def test_exact_is_what_all_trees_in_every_order_say() -> None:
    for seed in QUICK:
        if few(problem := ordered_problem(seed)):
            assert same(optimum(problem), best_of_all(problem)), seed


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 900, 50))
def test_exact_is_what_all_trees_in_every_order_say_of_many(first: int) -> None:
    for seed in range(first, first + 50):
        if few(problem := ordered_problem(seed)):
            assert same(optimum(problem), best_of_all(problem)), seed


def between(size: int | None = 4) -> Problem:
    """Two readers of E in a row, which share its store only if what the program has between them runs elsewhere."""
    texts = ["T[m] = X[m] * E[]", "Y[m] = exp(W[m])", "Z[m] = T[m] * E[]"]
    outer = Memory("DRAM", None, 5.0, 5.0, read_throughput=1.0, write_throughput=1.0)
    buffer = Memory("GLB", size, 0.5, 0.5, may=selector("T | E"), must=selector("T | E"))
    machine = Machine("m", (outer, buffer, ComputeUnit("MAC", throughput=1.0, energy=1.0)))
    space = Mapspace(order="free", stores="shared")
    return Problem(build_workload("w", texts, {"m": 4}, bits=1), machine, space, Objective("energy"))


def test_what_free_order_is_worth_to_readers() -> None:
    problem = between(2)
    values = [optimum(replace(problem, mapspace=s)) for s in (problem.mapspace, Mapspace(stores="shared"), Mapspace())]
    assert same(values[0], best_of_all(problem))
    assert values[0] is not None and all(other is None or values[0] < other for other in values[1:])
    found = searched(problem)
    assert found is not None
    own = replace(problem.mapspace, stores="own")
    assert outside(problem.workload, problem.machine, own, found.mapping)


def _unknown(*_: object) -> lending.Lent:
    """Nobody knows of stores that are in use."""
    return lending.Lent()


OVER = ("S[m] = add(X[m], E[m])", "T[m] = exp(S[m])", "Z[m] = add(T[m], E[m])")


def over(size: int) -> Problem:
    """Three Einsums, of which the outer two share E, and three lanes: S, T and E have no room for tokens of three."""
    small = asked(size, "edp")
    levels = (
        replace(x, may=selector("S | T | E"), must=selector("S | T")) if x.name == "GLB" else x
        for x in small.machine.levels
    )
    machine = replace(small.machine, levels=tuple(levels))
    return replace(small, workload=build_workload("w", OVER, {"m": 5}, bits=1), machine=machine)


def apart() -> Problem:
    """The same in free order, value by value: with an Einsum between them that has nothing to do with them."""
    texts = (OVER[0], "Y[m] = exp(W[m])", *OVER[1:])
    outer = Memory("DRAM", None, 5.0, 5.0, read_throughput=1.0, write_throughput=1.0)
    machine = Machine("m", (outer, Memory("GLB", 2, 0.5, 0.5, may=selector("S | T | E")), ComputeUnit("MAC", 1.0, 1.0)))
    space = Mapspace(order="free", stores="shared")
    return Problem(build_workload("w", texts, {"m": 4}, bits=1), machine, space, Objective("energy"))


MISTAKES: dict[str, object] = {
    "fusion.templates.OwnStore.joins": False,  # charged to every reader
    "joining.lending.Loan.tile": lambda self, tiles: 0 * tiles[:, :1].sum(axis=1),  # takes no room
    "joining.join.lend": _unknown,  # a key without the reader
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uneven = [*SMALL.values(), over(8)]
    problems = [*uneven, between(2), apart()]
    best = [optimum(problem) for problem in problems]
    monkeypatch.setattr(f"einloom.search.exact.{name}", MISTAKES[name])
    wrongs = [not same(optimum_or_defect(p), value) for p, value in zip(problems, best, strict=True)]
    assert any(wrongs[: len(uneven)]) and any(wrongs[len(uneven) :])

"""Stores for several readers in `exact`: what all trees say, and with which mistakes it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.ffm.enumerate import candidates
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import ExactOptions, attempt
from einloom.search.exact.joining import lending
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from optima import at_most, best_of_all, optimum, optimum_or_defect, same
from sharing import sharing_problem

SHARED = Mapspace(stores="shared")
QUICK = (3, 17, 42, 45, 54, 83, 99, 115, 118, 136, 150, 154, 158, 162, 174, 181, 193, 201)
MOST = 1800  # candidates of the slow ones


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (6, 12))])
def test_exact_is_what_all_trees_say(first: int) -> None:
    for seed in QUICK[first : first + 6]:
        problem = sharing_problem(seed)
        assert same(optimum(problem), best_of_all(problem)), seed


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 900, 50))
def test_exact_is_what_all_trees_say_of_many(first: int) -> None:
    for seed in range(first, first + 50):
        problem = sharing_problem(seed)
        trees = candidates(problem.workload, problem.machine, stores="shared")
        if at_most(trees, MOST):
            assert same(optimum(problem), best_of_all(problem)), seed


def asked(einsums: tuple[str, ...], sizes: dict[str, int], inner: Memory, goal: str = "energy") -> Problem:
    outer = Memory("DRAM", None, 5.0, 5.0, read_throughput=1.0, write_throughput=1.0)
    machine = Machine("m", (outer, inner, ComputeUnit("MAC", throughput=1.0, energy=1.0)))
    return Problem(build_workload("w", einsums, sizes, bits=1), machine, SHARED, Objective(goal))


TWICE = ("T[m] = X[m] * E[k]", "Z[m] = T[m] * E[k]")
THRICE = ("S[m] = X[m] * E[]", "T[m] = S[m] * E[]", "Z[m] = T[m] * E[]")
RESIDUAL = ("T[m] = exp(E[m])", "Z[m] = add(T[m], E[m])")
OVER = ("S[m] = add(X[m], E[m])", "T[m] = exp(S[m])", "Z[m] = add(T[m], E[m])")
FOUR = ("R[m] = E[m]", "S[m] = add(R[m], E[m])", "T[m] = add(S[m], E[m])", "Z[m] = add(T[m], E[m])")


def glb(size: int) -> Memory:
    return Memory("GLB", size, 0.5, 0.5, may=selector("~(X | Z)"))


SMALL = {
    "kept": asked(TWICE, {"m": 2, "k": 2}, glb(3)),  # E and one value of T
    "moved": asked(RESIDUAL, {"m": 4}, glb(2)),
    "over": asked(OVER, {"m": 4}, glb(3)),
    "too small": asked(OVER, {"m": 4}, glb(2)),  # for S, T and E, when T is computed
    "three": asked(THRICE, {"m": 4}, glb(3)),
    "three, latency": asked(THRICE, {"m": 4}, glb(3), goal="latency"),
    "four, edp": asked(FOUR, {"m": 4}, glb(3), goal="edp"),
}


def test_what_it_is_worth() -> None:
    """Own stores fetch E once for every reader; of three that share one, one does."""
    worth = {"kept": (78.0, 89.0), "moved": (58.0, 72.0), "three": (71.5, 120.0), "four, edp": (1248.0, 2560.0)}
    for name, (shared, own) in worth.items():
        assert same(optimum(SMALL[name]), shared)
        assert same(optimum(replace(SMALL[name], mapspace=Mapspace())), own)


def test_every_route_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without consistency, without limits, and with what every state costs at least to complete."""
    for name in ("three", "four, edp", "moved"):
        problem = SMALL[name]
        best = optimum(problem)
        for rule in ("consistency", "completions", "incumbent"):
            assert same(optimum(problem, replace(ExactOptions(), **{rule: False})), best), rule
        with monkeypatch.context() as patch:
            patch.setattr(attempt, "WORTH", 0)
            assert same(optimum(problem), best)


def _unknown(*_: object) -> lending.Lent:
    """Nobody knows of stores that are in use."""
    return lending.Lent()


MISTAKES: dict[str, tuple[object, str]] = {
    "fusion.templates.OwnStore.joins": (False, "kept"),  # charged to every reader
    "joining.lending.Loan.tile": (lambda self, tiles: 0 * tiles[:, :1].sum(axis=1), "too small"),  # takes no room
    "joining.join.lend": (_unknown, "kept"),  # a key without the reader
    "einsums.classes.TensorSignature.joins": (False, "three, latency"),  # bounds as if every reader filled its own
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake, which = MISTAKES[name]
    problem = SMALL[which]
    best = optimum(problem)
    monkeypatch.setattr(f"einloom.search.exact.{name}", mistake)
    assert not same(optimum_or_defect(problem), best)

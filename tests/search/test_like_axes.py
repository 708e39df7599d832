"""Axes of one fanout that are alike: of choices that differ only in which of them takes what, one is looked at."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from einloom.errors import BudgetExhausted, Infeasible
from einloom.machine.levels import ALL, NOTHING, Axis, Fanout, Machine
from einloom.problem import Budget, Problem
from einloom.search.exact import Exact
from einloom.search.exact.einsums.classes import signature
from einloom.search.exact.einsums.spatial import RankClasses
from einloom.search.exact.einsums.users import Users
from einloom.search.exhaustive import Exhaustive
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from tiny_problems import tiny_machine, tiny_problem


def like(seed: int) -> Problem:
    """A tiny problem whose fanouts have two axes that differ in name and size alone."""
    rng = Random(f"like {seed}")
    found = tiny_problem(seed)
    levels = []
    for i, level in enumerate(found.machine.levels):
        if isinstance(level, Fanout):
            joins = {"multicast": rng.choice((ALL, NOTHING, selector("input"))), "reduce": rng.choice((ALL, NOTHING))}
            level = replace(level, axes=(Axis(f"a{i}", 2, **joins), Axis(f"b{i}", rng.choice((2, 3)), **joins)))
        levels.append(level)
    return replace(found, machine=Machine("like", tuple(levels)))


SEEDS = [seed for seed in range(60) if like(seed).machine.fanouts and len(like(seed).workload.einsums) < 3]


QUICK = (0, 7, 12, 14, 15, 18)  # few trees


def agree(seed: int) -> None:
    problem = like(seed)
    try:
        best = Exhaustive().search(problem, Budget(steps=3000))
    except Infeasible:
        with pytest.raises(Infeasible):
            Exact().search(problem, Budget())
        return
    except BudgetExhausted:
        pytest.skip("3000 trees and none of them legal")
    if not best.complete:
        pytest.skip("more than 3000 trees")
    assert Exact().search(problem, Budget()).value == pytest.approx(best.value, rel=1e-9)


@pytest.mark.parametrize("seed", QUICK)
def test_exact_equals_brute_force(seed: int) -> None:
    agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [seed for seed in SEEDS if seed not in QUICK])
def test_exact_equals_brute_force_more(seed: int) -> None:
    agree(seed)


def test_alike_means_joining_the_same() -> None:
    """8 x 8 on two axes of 4: ten choices of (1, 2, 4) each twice and once; unlike axes or a fused store keep all."""
    matmul = build_workload("m", ["Z[m,n] = A[m] * B[n]"], {"m": 4, "n": 4}, bits=1)
    counts = {}
    for name, second in (("like", Axis("b", 4)), ("unlike", Axis("b", 4, multicast=NOTHING))):
        levels = tiny_machine(Random(0), 8).levels
        machine = Machine(name, (levels[0], Fanout("F", (Axis("a", 4), second)), levels[-1]))
        sig = signature(Users(matmul, machine), 0, merge=True)
        counts[name] = len(RankClasses(sig).spreads(sig.units[0]))
    assert counts["like"] < counts["unlike"]

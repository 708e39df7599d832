"""Fused loops that cut a rank more than once: the optimum is that of all trees, and mistakes are caught."""

from __future__ import annotations

from dataclasses import replace

import pytest

from einloom.cost.evaluate import evaluate, legality
from einloom.errors import BudgetExhausted, Defect, Infeasible
from einloom.mapping.text import parse_mapping
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.door import ask
from einloom.search.exact import Exact
from einloom.search.exact.fusion.templates import Stack
from einloom.search.registry import method
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from fused_again import levelled
from optima import best_of_all, optimum, same

PAYS = (6, 9, 16, 17, 23, 33, 57)
"""Small problems whose optimum cuts a rank twice."""

TWICE = """store DRAM: X W Z
for m in 16
store GLB: X U
split sequential:
  - for m in 4
    store GLB: T
    split sequential:
      - compute T @ MAC
      - compute U @ MAC
  - for k in 32
    store GLB: W
    for m in 4
    compute Z @ MAC
"""

ONCE = """store DRAM: X W Z
for m in 64
store GLB: T U
split sequential:
  - compute T @ MAC
  - compute U @ MAC
  - for k in 32
    compute Z @ MAC
"""


def once(problem: Problem) -> Problem:
    return replace(problem, mapspace=replace(problem.mapspace, max_fused_loops_per_rank_variable=1))


def wide_and_narrow() -> Problem:
    """A wide tensor of which one value fits, and behind it a narrow one of which four are worth keeping."""
    texts = ("T[m] = relu(X[m])", "U[m] = relu(T[m])", "Z[m,k] = U[m] * W[k]")
    workload = build_workload("w", texts, {"m": 64, "k": 32}, bits={"default": 1, "T": 16})
    machine = load_machine("simple:dram_energy=100,glb_bits=25")
    dram = replace(machine.memories[0], may=selector("~intermediate"))
    machine = replace(machine, levels=(dram, *machine.levels[1:]))
    return Problem(workload, machine, Mapspace(max_fused_loops_per_rank_variable=2), Objective("energy"))


def test_a_tree_that_cuts_a_rank_twice_is_the_optimum_where_it_may() -> None:
    """What `exact` called proven before rule 4 spoke of fused loops: 422336."""
    asked = wide_and_narrow()
    workload, machine = asked.workload, asked.machine
    tree = parse_mapping(TWICE, workload, machine)
    assert legality(workload, machine, tree) == () and outside(workload, machine, asked.mapspace, tree) == ()
    assert outside(workload, machine, once(asked).mapspace, tree) == (
        "rule 4: T has 2 fused loops of m, at most 1 are allowed",
        "rule 4: U has 2 fused loops of m, at most 1 are allowed",
    )
    assert optimum(asked) == evaluate(workload, machine, tree).energy == 271424
    single = parse_mapping(ONCE, workload, machine)
    assert optimum(once(asked)) == evaluate(workload, machine, single).energy == 422336


@pytest.mark.parametrize("seed", [PAYS[0], *(pytest.param(seed, marks=pytest.mark.slow) for seed in PAYS[1:3])])
def test_the_optimum_is_that_of_all_trees(seed: int) -> None:
    asked = levelled(seed, small=True)
    least, less = best_of_all(once(asked)), best_of_all(asked)
    assert least is not None and less is not None and less < least
    assert same(optimum(asked), less) and same(optimum(once(asked)), least)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 160, 10))
def test_the_optimum_of_many_is_that_of_all_trees(first: int) -> None:
    for seed in range(first, first + 10):
        for asked in (levelled(seed, small=True), once(levelled(seed, small=True))):
            assert same(optimum(asked), best_of_all(asked)), seed


def wrong(seed: int, steps: int = 300) -> str | None:
    """What is wrong with the optimum in the wider space: it is above that in the narrower one, or of another method."""
    asked = levelled(seed)
    wide, narrow = optimum(asked), optimum(once(asked))
    if narrow is not None and (wide is None or wide > narrow * (1 + 1e-9)):
        return f"{seed}: {wide}, though {narrow} is possible"
    try:
        other = ask(method(("anneal", "genetic", "local")[seed % 3]), asked, Budget(steps=steps)).value
    except (BudgetExhausted, Infeasible):
        return None
    return f"{seed}: {wide} and {other}" if wide is None or other < wide * (1 - 1e-9) else None


def test_nothing_is_below() -> None:
    assert [said for seed in range(6) if (said := wrong(seed))] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 400, 50))
def test_nothing_of_many_is_below(first: int) -> None:
    assert [said for seed in range(first, first + 50) if (said := wrong(seed, 1000))] == []


def never_again(patch: pytest.MonkeyPatch) -> None:
    """Fused loops cut a rank once, whatever the space says."""
    patch.setattr(Stack, "stored", lambda self, loop: 0)


def always_lowered(patch: pytest.MonkeyPatch) -> None:
    """An own store is never followed by a loop that moves its tile, though it alone stands between two loops."""
    patch.setattr(Stack, "stored", lambda self, loop: 2)


MISTAKES = {f.__name__: f for f in (never_again, always_lowered)}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_caught(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = {seed: optimum(levelled(seed, small=True)) for seed in PAYS}
    MISTAKES[mistake](monkeypatch)

    def caught(seed: int) -> bool:
        try:
            return not same(optimum(levelled(seed, small=True)), right[seed])
        except (AssertionError, Defect, Infeasible):
            return True

    assert any(caught(seed) for seed in PAYS)


def test_fewer_loops_make_the_spaces_equal() -> None:
    for seed in PAYS:
        asked = levelled(seed, small=True)
        asked = replace(asked, mapspace=replace(asked.mapspace, max_fused_loops=1))
        assert same(Exact().search(asked).value, Exact().search(once(asked)).value)

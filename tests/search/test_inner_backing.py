"""A shared tensor backed by an inner memory, below own stores of an outer one at the same depth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases import tree
from einloom.cost.evaluate import evaluate
from einloom.errors import BudgetExhausted
from einloom.machine.levels import Machine, Memory
from einloom.mapping.normal import normal_form
from einloom.mapspace.ffm.rules import outside
from einloom.problem import Guarantee, Problem
from einloom.search.exact import Exact, ExactOptions
from einloom.workload.selectors import selector
from tiny_problems import tiny_problem


def anywhere(seed: int) -> Problem:
    """A tiny problem in which every memory backs what it may hold."""
    problem = tiny_problem(seed)
    levels = problem.machine.levels
    backing = (replace(level, backs=selector("all")) if isinstance(level, Memory) else level for level in levels)
    return replace(problem, machine=Machine("backing", tuple(backing), problem.machine.partial_sums))


def test_the_own_store_stands_above_the_split() -> None:
    problem = anywhere(1148)
    found = Exact().search(problem)
    assert not outside(problem.workload, problem.machine, problem.mapspace, found.mapping)
    assert found.value == evaluate(problem.workload, problem.machine, found.mapping).latency
    lines = found.mapping_text.splitlines()
    assert lines[1].startswith("store M0:") and lines[2].startswith("store M1:") and lines[3] == "split sequential:"


def test_where_it_cannot_the_value_is_a_bound() -> None:
    """M0 must hold S for its readers and may not for its producer, so no store of it stands above all three."""
    problem = anywhere(1157)
    with pytest.raises(BudgetExhausted, match="M0 may not hold S") as caught:
        Exact().search(problem)
    legal = tree("DRAM[X S T Z] { S.m:2 M0[X] !S@MAC } { T.m:2 M0[S] !T@MAC } { Z.m:2 M0[S] !Z@MAC }")
    best = evaluate(problem.workload, problem.machine, legal).energy
    assert caught.value.bound is not None and 0 < caught.value.bound < best


def test_where_it_cannot_a_start_is_kept() -> None:
    """Of a value that no tree has nothing but the bound is left; the start is what there is to show."""
    problem = anywhere(1157)
    with pytest.raises(BudgetExhausted) as caught:
        Exact().search(problem)
    legal = tree("DRAM[X S T Z] { S.m:2 M0[X] !S@MAC } { T.m:2 M0[S] !T@MAC } { Z.m:2 M0[S] !Z@MAC }")
    found = Exact(ExactOptions(start=(legal,))).search(problem)
    assert found.mapping == normal_form(legal, problem.workload)
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.BOUNDED
    assert found.certificate.bound == pytest.approx(caught.value.bound, rel=1e-9)
    assert found.certificate.bound < found.value

"""A shared tensor backed by an inner memory, below own stores of an outer one at the same depth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases import tree
from einloom.cost.evaluate import evaluate
from einloom.machine.levels import Machine, Memory
from einloom.mapspace.ffm.rules import outside
from einloom.problem import Guarantee, Problem
from einloom.search.exact import Exact, ExactOptions
from einloom.workload.selectors import selector
from optima import enumerated, optimum, searched
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


@pytest.mark.slow
def test_where_no_store_can_stand_above_all_users() -> None:
    """M0 must hold S for its readers and may not for its producer: each reader has a store of its own (rule 8)."""
    problem = anywhere(1157)
    found = searched(problem)
    legal = tree("DRAM[X S T Z] { S.m:2 M0[X] !S@MAC } { T.m:2 M0[S] !T@MAC } { Z.m:2 M0[S] !Z@MAC }")
    best = evaluate(problem.workload, problem.machine, legal).energy
    assert found is not None and found.value == enumerated(problem) <= best
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL


def test_there_a_start_changes_nothing() -> None:
    problem = anywhere(1157)
    legal = tree("DRAM[X S T Z] { S.m:2 M0[X] !S@MAC } { T.m:2 M0[S] !T@MAC } { Z.m:2 M0[S] !Z@MAC }")
    found = searched(problem, ExactOptions(start=(legal,)))
    assert found is not None and found.value == optimum(problem)
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL

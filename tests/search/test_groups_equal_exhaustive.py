"""`exact` finds what looking at every tree finds where Einsums may run at the same time (rule 13).

Every tree is enumerated, each sequential one with every choice of splits that may be pipelined, and priced by
`evaluate`. Of the pinned problems more than a third have an optimum in which Einsums do run at the same time.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from textwrap import dedent

import pytest

from einloom.certify.verify import verify
from einloom.errors import Infeasible
from einloom.machine.levels import ComputeUnit, Machine, Memory, Toll
from einloom.mapping.legality.concurrency import has_concurrent
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Mapping, Split
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Concurrent, Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.search.exhaustive import Exhaustive
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector
from optima import enumerated, searched
from tiny_groups import group_problem

SEEDS = json.loads((Path(__file__).parent / "group_seeds.json").read_text())
CHUNK = 30
# a twelfth of the seeds every time, the others with the slow tests
CHUNKS = [pytest.param(f, marks=() if f % (24 * CHUNK) == 0 else pytest.mark.slow) for f in range(0, len(SEEDS), CHUNK)]


def largest(mapping: Mapping) -> int:
    """Einsums of the largest group."""

    def below(nest: tuple[object, ...]) -> int:
        last = nest[-1]
        if not isinstance(last, Split):
            return 0
        here = len(last.branches) if last.kind == "pipelined" else 0
        return max(here, *(below(branch) for branch in last.branches))

    return below(mapping.nest)


@pytest.mark.parametrize("first", CHUNKS)
def test_groups_equal_exhaustive(first: int) -> None:
    concurrent = 0
    for seed in SEEDS[first : first + CHUNK]:
        problem = group_problem(seed)
        result, least = searched(problem), enumerated(problem)
        assert (None if result is None else result.value) == (
            least if least is None else pytest.approx(least, rel=1e-9, abs=0)
        ), f"seed {seed}"
        if result is not None and has_concurrent(result.mapping.nest):
            concurrent += 1
            assert verify(result, quick=True).ok, f"seed {seed}"
    assert concurrent >= 5


def test_the_seeds_are_many_and_varied() -> None:
    problems = [group_problem(seed) for seed in SEEDS]
    assert len(problems) >= 300
    assert {problem.objective.name for problem in problems} == {"energy", "latency", "edp"}
    assert {problem.mapspace.concurrent for problem in problems} == {"unit", "shared", "any"}
    assert {len(problem.workload.einsums) for problem in problems} == {2, 3, 4}
    memories = [memory for problem in problems for memory in problem.machine.memories]
    assert sum(memory.double_buffer for memory in memories) >= 30
    assert sum(memory.leakage > 0 for memory in memories) >= 30
    assert sum(len(problem.machine.units) > 1 for problem in problems) >= 150
    assert sum(len(problem.machine.memories) > 2 for problem in problems) >= 40
    assert sum(bool(problem.machine.fanouts) for problem in problems) >= 5
    assert sum(problem.workload.repeat > 1 for problem in problems) >= 50


def test_whole_pareto_sets() -> None:
    concurrent = 0
    for seed in SEEDS[:24:3]:
        problem = replace(group_problem(seed), objective=Objective("pareto"))
        try:
            least = Exhaustive().search(problem).front
        except Infeasible:
            continue
        front = Exact().search(problem).front
        assert [(p.energy, p.latency) for p in front] == [pytest.approx((p.energy, p.latency), rel=1e-9) for p in least]
        concurrent += any(has_concurrent(point.mapping.nest) for point in front)
    assert concurrent >= 2


def test_tolls_keep_groups_busy() -> None:
    concurrent = 0
    for seed in SEEDS[:40:4]:
        rng, problem = Random(seed), group_problem(seed)
        levels = list(problem.machine.levels)
        toll = Toll("toll", energy=1.0, throughput=float(rng.randint(1, 6)), leakage=rng.choice((0.0, 1.0)))
        levels.insert(rng.randint(1, len(levels) - 1), toll)
        problem = replace(problem, machine=Machine("tolled", tuple(levels)))
        result, least = searched(problem), enumerated(problem)
        assert (result is None) == (least is None)
        if result is not None:
            assert result.value == pytest.approx(least, rel=1e-9, abs=0), f"seed {seed}"
            concurrent += has_concurrent(result.mapping.nest)
    assert concurrent >= 2


def four_in_a_row(concurrent: Concurrent, most: int, size: int | None = None) -> Problem:
    """Four maps of two values: the first reads for 2 s, computing takes each half a second."""
    texts = ("R[m] = exp(X[m])", "S[m] = exp(R[m])", "T[m] = exp(S[m])", "Z[m] = exp(T[m])")
    workload = build_workload("row", [parse_einsum(text) for text in texts], {"m": 2}, bits={"default": 1})
    levels = (
        Memory("DRAM", read_throughput=1.0),
        Memory("GLB", size, must=selector("intermediate"), may=selector("nothing")),
        ComputeUnit("V", throughput=4.0),
    )
    space = Mapspace(concurrent=concurrent, max_group=most)
    return Problem(workload, Machine("row", levels), space, Objective("latency"))


@pytest.mark.parametrize(("most", "value"), [(2, 3.25), (3, 3.0), (4, 2.75)])
def test_groups_of_two_three_and_four(most: int, value: float) -> None:
    """Two tokens: half of (all stages and the longest again), and half a second for each Einsum outside the group."""
    problem = four_in_a_row("shared", most)
    result = searched(problem)
    assert result is not None
    assert largest(result.mapping) == most
    assert result.value == enumerated(problem) == value
    assert verify(result).ok


def test_on_units_of_their_own_one_unit_runs_nothing_at_once() -> None:
    problem = four_in_a_row("unit", 4)
    result = searched(problem)
    assert result is not None
    assert not has_concurrent(result.mapping.nest)
    assert result.value == enumerated(problem) == 3.5


@pytest.mark.parametrize(
    ("size", "value"), [(3, 3.5), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((4, 3.25), (6, 2.75)))]
)
def test_exchanged_tiles_need_their_slots(size: int, value: float) -> None:
    """Two of every tile that neighbours exchange: 4 bits with the whole of S, which T reads later; 6 for all four."""
    problem = four_in_a_row("shared", 4, size)
    result = searched(problem)
    assert result is not None
    assert result.value == enumerated(problem) == value


def test_a_group_directly_below_another_split_is_outside() -> None:
    problem = four_in_a_row("shared", 4)
    text = """
        store DRAM: X Z
        for m in 2
        store GLB: R S T
        split sequential:
          - split pipelined shared:
              - compute R @ V
              - compute S @ V
          - compute T @ V
          - compute Z @ V
    """
    nested = parse_mapping(dedent(text).strip(), problem.workload, problem.machine)
    reasons = outside(problem.workload, problem.machine, problem.mapspace, nested)
    assert reasons == ("rule 13: no loop stands between 'split pipelined shared' and the split above it",)

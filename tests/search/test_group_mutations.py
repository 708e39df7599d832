"""Planted mistakes in the search for groups are found: each makes the answer wrong on at least one problem.

Without a mistake every answer is a mapping of the space at the price that `evaluate` gives it, and the enumeration of
all trees agrees (tests/search/test_groups_equal_exhaustive.py): a larger answer missed that mapping.
"""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from einloom.cost.formulas.pipeline import Edge, drain_time
from einloom.errors import Defect, Infeasible
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.limits.data import Limits, LoopLimit, Numbers, TileLimit
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector
from group_mutations import MUTATIONS
from pipeline_problems import pipeline_problem
from tiny_groups import group_problem


def weighted(size: int | None, energy: float, objective: str) -> Problem:
    """T = X W, Z = exp(T): W stays in the buffer, for 4 bits and 12 accesses, or is read again."""
    workload = build_workload(
        "w",
        [parse_einsum("T[m] = X[m,k] * W[k]"), parse_einsum("Z[m] = exp(T[m])")],
        {"m": 2, "k": 4},
        bits={"default": 1},
    )
    levels = (
        Memory("DRAM", read_energy=1.0, read_throughput=100.0),
        Memory("GLB", size, energy, energy, must=selector("intermediate | Z"), may=selector("W")),
        ComputeUnit("V", throughput=0.25, kinds=("map",)),
        ComputeUnit("MAC", throughput=1.0, kinds=("multiply",)),
    )
    return Problem(workload, Machine("m", levels), Mapspace(concurrent="any"), Objective(objective))


def crowded() -> Problem:
    """With T twice and Z there is no room for W."""
    return weighted(6, 0.0, "latency")


def costly() -> Problem:
    """W in the buffer costs more energy than reading it again, and main memory is busy for less time."""
    return weighted(None, 10.0, "edp")


def two_buffers(outer: str, may: str, inner: str) -> tuple[Memory, ...]:
    """A main memory and two buffers; what each must hold, and what the outer one may."""
    return (
        Memory("DRAM", read_throughput=100.0),
        Memory("GLB", must=selector(outer), may=selector(may)),
        Memory("LB", must=selector(inner), may=selector("nothing")),
    )


def units(throughput: float) -> tuple[ComputeUnit, ...]:
    """One for maps and one for products."""
    names = (("V", "map"), ("MAC", "multiply"))
    return tuple(ComputeUnit(name, throughput=throughput, kinds=(kind,)) for name, kind in names)


def drained() -> Problem:
    """W passes through the buffer once, and its tile of one slot drains the pipeline; or it is read for every r."""
    workload = build_workload(
        "w",
        [parse_einsum("T[n,r] = X[n,r] * W[n]"), parse_einsum("Z[n,r] = exp(T[n,r])")],
        {"n": 2, "r": 2},
        bits={"default": 1},
    )
    levels = (*two_buffers(outer="nothing", may="W", inner="intermediate"), *units(2.0))
    limits = Limits(
        tiles=(TileLimit("GLB", selector("W"), ("n",), Numbers(most=1)),),
        loops=(LoopLimit(selector("T"), ("r",), Numbers(most=1)),),
    )
    space = Mapspace(concurrent="any", limits=limits)
    return Problem(workload, Machine("m", levels), space, Objective("latency"))


def outer() -> Problem:
    """T is exchanged in the outer of two buffers, token by token: all tensors have n."""
    workload = build_workload(
        "w", [parse_einsum("T[n] = X[n] * W[n]"), parse_einsum("Z[n] = exp(T[n])")], {"n": 4}, bits={"default": 1}
    )
    levels = (*two_buffers(outer="intermediate", may="nothing", inner="nothing"), *units(1.0))
    return Problem(workload, Machine("m", levels), Mapspace(concurrent="any"), Objective("latency"))


CASES: dict[str, tuple[tuple[str, int], ...]] = {
    "dominance_without_the_sum_of_stages": (("chain", 37), ("chain", 70)),
    "dominance_without_the_stages_of_a_fork": (("fork", 59), ("fork", 80)),
    "dominance_without_busy_components": (("chain", 31), ("chain", 70)),
    "dominance_without_sums": (("costly", 0),),
    "dominance_without_where_tokens_begin_to_flow": (("drained", 0),),
    "dominance_of_open_groups_without_room": (("crowded", 0),),
    "rows_of_members_compete_by_energy_and_longest_component": (("tiny", 59), ("tiny", 125)),
    "stages_on_one_component_do_not_add": (("tiny", 59), ("tiny", 125)),
    "pipelines_need_no_filling": (("drained", 0), ("crowded", 0)),
    "every_loop_feeds_the_pipeline": (("drained", 0), ("deep", 1)),
    "groups_take_at_least_what_their_members_take_alone": (("tiny", 59), ("tiny", 125)),
    "exchanged_tiles_have_one_slot": (("drained", 0), ("crowded", 0)),
    "members_take_room_one_after_the_other": (("crowded", 0),),
    "stores_stand_below_loops_that_they_drain": (("deep", 1), ("tiny", 127)),
    "members_may_share_a_unit": (("tiny", 503),),
    "members_stand_on_the_innermost_memory": (("outer", 0),),
    "members_need_a_loop_of_all_their_tensors": (("crowded", 0), ("tiny", 125)),
    "partial_cascades_are_matched_whatever_group_is_open": (("outer", 0), ("chain", 30)),
}


def problem_of(family: str, seed: int) -> Problem:
    made = {"crowded": crowded, "costly": costly, "drained": drained, "outer": outer}
    if family in made:
        return made[family]()
    return group_problem(seed) if family == "tiny" else pipeline_problem(family, seed)


def answer(problem: Problem) -> float | None:
    """The value found; None where the search ends without a mapping of the space at the price that it believes in."""
    try:
        result = Exact().search(problem)
    except (Defect, Infeasible):
        return None
    inside = not outside(problem.workload, problem.machine, problem.mapspace, result.mapping)
    return result.value if inside else None


@cache
def right(family: str, seed: int) -> float:
    value = answer(problem_of(family, seed))
    assert value is not None
    return value


def test_every_mistake_has_a_case() -> None:
    assert CASES.keys() == MUTATIONS.keys()
    assert right("crowded", 0) == 12
    assert right("drained", 0) == 3
    assert right("outer", 0) == 5


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_mistake_is_found(name: str) -> None:
    for family, seed in CASES[name]:
        best = right(family, seed)
        with pytest.MonkeyPatch.context() as patch:
            MUTATIONS[name](patch)
            wrong = answer(problem_of(family, seed))
        assert wrong is None or wrong > best * (1 + 1e-6), (family, seed)


@pytest.mark.parametrize("seed", range(50))
def test_the_longest_stage_decides_nothing_where_all_components_are_shared(seed: int) -> None:
    """Then the sum of the stages and the busiest component are enough: docs/model/pruning.md, groups."""
    rng = Random(seed)
    count, components, tokens = rng.randint(2, 4), rng.randint(1, 4), rng.randint(1, 8)
    busy = [[rng.randint(0, 9) for _ in range(components)] for _ in range(count)]
    times = [max(seconds) for seconds in busy]
    busiest = max(map(sum, zip(*busy, strict=True)))
    edges = tuple(
        Edge(i, j, 1 + j - i) for i in range(count) for j in range(i + 1, count) if j == i + 1 or rng.random() < 0.5
    )
    assert drain_time(times, edges, tokens, busiest) == sum(times) + (tokens - 1) * busiest
    assert busiest >= max(times)

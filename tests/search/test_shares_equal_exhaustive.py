"""Groups that share out an axis: `exact` finds what looking at every tree finds, and not by luck.

The seeds are those of random problems whose trees are few; in a good part of them the optimum runs `@ AXIS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from einloom.certify.verify import verify
from einloom.errors import EinloomError
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.legality.concurrency import axis_of, concurrent
from einloom.mapping.tree import Mapping, Nest, Split
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.result import Result
from einloom.search.exact.concurrent import groups
from einloom.search.exact.concurrent.groups import Groups
from einloom.search.exact.concurrent.joins import GroupJoiner
from einloom.search.exact.concurrent.rows import GroupExplorer
from einloom.search.exact.fusion.explore import Explorer
from einloom.search.exact.joining.join import Joiner
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector
from optima import enumerated, same, searched
from tiny_shares import share_problem

FOUND = json.loads((Path(__file__).parent / "share_seeds.json").read_text())
SEEDS: list[int] = FOUND["seeds"]
# a quarter of the seeds every time, the others with the slow tests
CHUNKS = [pytest.param(f, marks=() if f % 120 == 0 else pytest.mark.slow) for f in range(0, len(SEEDS), 20)]
Patch = Callable[[pytest.MonkeyPatch], None]


@cache
def answered(seed: int) -> Result | None:
    return searched(share_problem(seed))


def axes(mapping: Mapping) -> list[Split]:
    """The splits that share out an axis."""

    def below(nest: Nest) -> list[Split]:
        split = nest[-1]
        if not isinstance(split, Split):
            return []
        mine = [split] if concurrent(split) and axis_of(split) is not None else []
        return mine + [found for branch in split.branches for found in below(branch)]

    return below(mapping.nest)


@pytest.mark.parametrize("first", CHUNKS)
def test_exact_equals_exhaustive(first: int) -> None:
    for seed in SEEDS[first : first + 20]:
        problem, result = share_problem(seed), answered(seed)
        assert same(None if result is None else result.value, enumerated(problem)), f"seed {seed}"


@pytest.mark.slow
def test_the_seeds_are_many_and_varied() -> None:
    problems = [share_problem(seed) for seed in SEEDS]
    results = [answered(seed) for seed in SEEDS]
    splits = [split for result in results if result is not None for split in axes(result.mapping)]
    assert len(problems) == len(set(SEEDS)) >= 150
    assert sum(result is not None and bool(axes(result.mapping)) for result in results) >= 50
    assert len({problem.machine for problem in problems}) >= 140
    assert {problem.objective.name for problem in problems} == {"energy", "latency", "edp", "traffic"}
    assert {len(problem.workload.einsums) for problem in problems} == {2, 3, 4}
    assert {len(split.branches) for split in splits} >= {2, 3}
    assert len({split.shares for split in splits}) >= 6
    sizes = {axis.size for problem in problems for axis in problem.machine.axes.values()}
    assert sizes == {2, 3, 4, 6, 8}
    assert sum(any(axis.use == "full" for axis in p.machine.axes.values()) for p in problems) >= 30
    assert sum(len(p.machine.memories) > 2 for p in problems) >= 15
    assert sum(result is None for result in results) <= 40


def test_verify_accepts() -> None:
    for seed in FOUND["verified"]:
        result = answered(seed)
        assert result is not None and axes(result.mapping)
        assert verify(result).ok, f"seed {seed}"


# ---- planted mistakes ------------------------------------------------------------------------------------------------


def shares_have_no_end(patch: pytest.MonkeyPatch) -> None:
    """A group ends whatever its shares sum to."""
    patch.setattr(GroupJoiner, "_left", lambda self, before, share, group: group)
    patch.setattr(GroupJoiner, "_continues", lambda self, group, share: True)


def shares_may_leave_some(patch: pytest.MonkeyPatch) -> None:
    """A group may end before its shares are all instances."""
    right = GroupJoiner._left

    def early(self: GroupJoiner, before: Any, share: Any, group: Any) -> Any:
        return group if group is None else right(self, before, share, group)

    patch.setattr(GroupJoiner, "_left", early)


def private_memories_add(patch: pytest.MonkeyPatch) -> None:
    """Branches fill the memories behind the axis together."""
    patch.setattr(GroupExplorer, "_reserved", Explorer._reserved)


def shared_memories_take_the_largest(patch: pytest.MonkeyPatch) -> None:
    """Branches fill the memories that they share one at a time."""
    patch.setattr(GroupJoiner, "_at_once", Joiner._at_once)


def private_components_add(patch: pytest.MonkeyPatch) -> None:
    """Branches keep each other's units and memories behind the axis busy."""
    made = GroupExplorer.__init__

    def shared(self: GroupExplorer, *args: Any) -> None:
        made(self, *args)
        self.private = np.zeros_like(self.private)

    patch.setattr(GroupExplorer, "__init__", shared)


def shared_components_do_not(patch: pytest.MonkeyPatch) -> None:
    """Nothing that one branch does keeps another one waiting."""
    made = GroupExplorer.__init__

    def alone(self: GroupExplorer, *args: Any) -> None:
        made(self, *args)
        self.private = np.ones_like(self.private)

    patch.setattr(GroupExplorer, "__init__", alone)


def shares_are_not_weighed(patch: pytest.MonkeyPatch) -> None:
    """The least seconds of what a branch has for itself add up as if all branches waited for it."""

    def floors(self: Groups, signature: Any, option: Any, held: Any) -> Any:
        every = [self._endless(signature, share).least_busy(option, held) for share in self.shares if share is not None]
        return np.min([np.full(len(self.components), np.inf), *every], axis=0)

    patch.setattr(Groups, "least_busy", floors)


def the_whole_axis_is_asked_for(patch: pytest.MonkeyPatch) -> None:
    """`use: full` means all instances in every branch: no spatial choice of a share will do."""
    right = groups.narrowed
    patch.setattr(groups, "narrowed", lambda signature, cut: _without_full(right(signature, cut), cut))


def _without_full(signature: Any, cut: Any) -> Any:
    return replace(signature, units=()) if signature.axes[cut.axis].full else signature


def least_energy_of_all_instances(patch: pytest.MonkeyPatch) -> None:
    """An Einsum is taken to cost what it costs at least on the whole axis."""
    patch.setattr(Groups, "fewer", lambda self, sig, classes: True)


MISTAKES: tuple[Patch, ...] = (
    shares_have_no_end,
    shares_may_leave_some,
    private_memories_add,
    shared_memories_take_the_largest,
    private_components_add,
    shared_components_do_not,
    shares_are_not_weighed,
    the_whole_axis_is_asked_for,
    least_energy_of_all_instances,
)


def tight(size: int = 1) -> Problem:
    """Five values through two units, one register of one bit behind each: one branch's value fits, not two."""
    everything, nothing = selector("all"), selector("nothing")
    outer = Memory("DRAM", None, must=selector("~intermediate"))
    levels = (
        outer,
        Memory("GLB", None, must=selector("intermediate"), may=nothing),
        Fanout("F", (Axis("x", 2, multicast=everything, reduce=everything),)),
        Memory("Reg", size, must=selector("input"), may=nothing, backs=nothing),
        ComputeUnit("MAC", throughput=1.0),
    )
    einsums = [parse_einsum("T[m] = exp(X[m])"), parse_einsum("Z[m] = exp(T[m])")]
    workload = build_workload("five", einsums, {"m": 5}, bits={"default": 1})
    return Problem(workload, Machine("tight", levels), Mapspace(concurrent="axis"), Objective("latency"))


def test_what_is_behind_the_axis_is_the_branch_s_own() -> None:
    """Sequential 5 + 5; as a pipeline on one unit each 5 tokens and one to fill, if each has room for its own value."""
    for problem in (tight(), tight(size=8)):
        result = searched(problem)
        assert result is not None and result.value == enumerated(problem) == 6
        assert [split.shares for split in axes(result.mapping)] == [(1, 1)]


def test_a_rank_that_does_not_divide() -> None:
    """Seven rows of two values on four units: 14 steps in turns, 8 as two stages on two units each (docs/exact.md)."""
    levels = (
        Memory("DRAM", None, must=selector("~intermediate")),
        Memory("GLB", None, must=selector("intermediate")),
        Fanout("F", (Axis("x", 4),)),
        ComputeUnit("MAC", throughput=1.0),
    )
    einsums = [parse_einsum("T[m,k] = A[m,k] * W[k]"), parse_einsum("Z[m] = T[m,k] * V[k]")]
    workload = build_workload("seven", einsums, {"m": 7, "k": 2}, bits={"default": 1})
    values = {}
    for place in ("none", "any", "axis"):
        space = Mapspace(concurrent=place)  # type: ignore[arg-type]
        result = searched(Problem(workload, Machine("quads", levels), space, Objective("latency")))
        assert result is not None
        values[place] = result.value
        assert [split.shares for split in axes(result.mapping)] == ([(2, 2)] if place == "axis" else [])
    assert values == {"none": 14, "any": 14, "axis": 8}


def wrong(problem: Problem, right: float | None) -> bool:
    """True if the search, as patched, answers anything but the optimum and a tree of the space."""
    try:
        result = searched(problem)
    except EinloomError:
        return True
    if result is None or right is None:
        return (result is None) != (right is None)
    out = outside(problem.workload, problem.machine, problem.mapspace, result.mapping)
    return bool(out) or not same(result.value, right)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda f: f.__name__)
def test_a_planted_mistake_is_caught(mistake: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [share_problem(seed) for seed in FOUND["caught"].get(mistake.__name__, ())]
    problems += [tight()] if mistake is private_memories_add else []
    right = [None if (result := searched(problem)) is None else result.value for problem in problems]
    assert problems
    mistake(monkeypatch)
    assert all(wrong(problem, value) for problem, value in zip(problems, right, strict=True))

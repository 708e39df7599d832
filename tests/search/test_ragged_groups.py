"""Groups of Einsums in the space `ragged`: `exact` finds the best of all trees, and planted mistakes are caught."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from bench.ragged_problems import grouped_problem

from einloom.certify.verify import verify
from einloom.mapping.legality.concurrency import has_concurrent
from einloom.mapspace.ffm.rules import outside
from einloom.problem import Budget, Guarantee, Objective
from einloom.search.exact import Exact, ExactOptions
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.concurrent import joins
from einloom.search.exact.concurrent.passes import ConcurrentAttempt
from einloom.search.exact.numerics.pareto import FloatArray, IntArray
from einloom.search.exact.numerics.uneven import Tiling
from optima import best_of_all, every_cost, optimum, optimum_or_defect, same, searched, staircase

SEEDS: list[tuple[int, float | None, bool]] = json.loads(
    (Path(__file__).parent / "ragged_group_seeds.json").read_text()
)
"""Small problems by seed that have an uneven tree with a group, the least value of all their trees, and whether only
such a tree has it: of ``bench.uneven --groups``."""
PAYS = [seed for seed, _, pays in SEEDS if pays]


def wrong(some: list[tuple[int, float | None, bool]]) -> list[int]:
    return [seed for seed, value, _ in some if not same(optimum(grouped_problem(seed)), value)]


def test_exact_finds_what_all_trees_say() -> None:
    paying = [one for one in SEEDS if one[2]]
    assert wrong(paying[::6] + [one for one in SEEDS if not one[2]][::40]) == []


@pytest.mark.slow
def test_exact_finds_what_all_trees_of_every_problem_say() -> None:
    assert wrong(SEEDS) == []


def test_the_problems_are_many_and_varied() -> None:
    problems = [grouped_problem(seed) for seed, _, _ in SEEDS]
    assert len(problems) >= 600 and len(PAYS) >= 100
    assert {p.objective.name for p in problems} == {"energy", "latency", "edp", "traffic"}
    assert {p.mapspace.concurrent for p in problems} == {"unit", "any", "shared", "axis", "everywhere"}
    assert {len(p.workload.einsums) for p in problems} == {2, 3}


@pytest.mark.parametrize("seed", PAYS[:4])
def test_what_all_trees_say(seed: int) -> None:
    problem = grouped_problem(seed)
    found = searched(problem)
    assert found is not None and same(found.value, best_of_all(problem))
    assert has_concurrent(found.mapping.nest) and found.certificate.guarantee is Guarantee.OPTIMAL
    perfect = replace(problem.mapspace, name="ffm")
    assert any("rule 2" in said for said in outside(problem.workload, problem.machine, perfect, found.mapping))
    assert verify(found, quick=True).ok


@pytest.mark.parametrize("seeds", [PAYS[:4:2], pytest.param(PAYS[4:8:2], marks=pytest.mark.slow)], ids=["few", "more"])
def test_whole_fronts_of_all_trees(seeds: list[int]) -> None:
    grouped = 0
    for seed in seeds:
        asked = replace(grouped_problem(seed), objective=Objective("pareto"))
        found = searched(asked)
        assert found is not None
        points = [(point.energy, point.latency) for point in found.front]
        every = every_cost(replace(asked, objective=Objective("energy")))
        assert points == [pytest.approx(point) for point in staircase(every)], seed
        grouped += any(has_concurrent(point.mapping.nest) for point in found.front)
    assert grouped >= 1


@pytest.mark.parametrize("seed", [PAYS[0], pytest.param(PAYS[1], marks=pytest.mark.slow)])
def test_starts_limits_and_budgets(seed: int) -> None:
    asked = grouped_problem(seed)
    found = searched(asked)
    assert found is not None
    assert same(optimum(asked, ExactOptions(start=(found.mapping,))), found.value)
    assert same(optimum(asked, ExactOptions(limit=found.value)), found.value)
    assert optimum(asked, ExactOptions(limit=found.value * 0.999)) is None
    assert same(optimum(asked, ExactOptions(incumbent=False)), found.value)
    assert same(optimum(asked, ExactOptions(consistency=False)), found.value)
    stopped = Exact().search(asked, Budget(steps=100))
    assert stopped.certificate.bound <= found.value * (1 + 1e-9) <= stopped.value * (1 + 2e-9)
    timed = Exact().search(asked, Budget(seconds=60))
    assert same(timed.value, found.value)


def alone_narrows(patch: pytest.MonkeyPatch) -> None:
    """Rows that no row alone goes along with are dropped, whatever members there may be."""
    patch.setattr(ConcurrentAttempt, "narrows", Attempt.narrows)


def alone_bounds(patch: pytest.MonkeyPatch) -> None:
    """Members cost no less than alone."""
    patch.setattr(ConcurrentAttempt, "sharpen", Attempt.sharpen)


def other_tiles_without_groups(patch: pytest.MonkeyPatch) -> None:
    def tiled(self: ConcurrentAttempt, tiling: Tiling) -> Attempt:
        return self.sequential.tiled(tiling) if self.tied else self

    patch.setattr(ConcurrentAttempt, "tiled", tiled)


def what_members_add_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConcurrentAttempt, "tiled", Attempt.tiled)


def tokens_of_mean_size(patch: pytest.MonkeyPatch) -> None:
    """A token for every execution of the split, the smaller ones too."""
    right = joins._counted

    def counted(
        chains: list[tuple[int, list[int]]], tiles: IntArray, start: FloatArray
    ) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        for extent, token, drains in right(chains, tiles, start):
            yield np.asarray(-(-extent // token)), np.ones_like(token), drains

    patch.setattr(joins, "_counted", counted)


MISTAKES = (alone_narrows, alone_bounds, other_tiles_without_groups, what_members_add_is_forgotten, tokens_of_mean_size)
CAUGHT = (38, 44, 46, 62, 86, 105, 115, 200)


@cache
def right() -> dict[int, float | None]:
    known = {seed: value for seed, value, _ in SEEDS}
    return {seed: known[seed] for seed in CAUGHT}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda f: f.__name__)
def test_planted_mistakes_are_caught(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    assert any(not same(optimum_or_defect(grouped_problem(seed)), value) for seed, value in right().items())

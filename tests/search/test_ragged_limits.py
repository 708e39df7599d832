"""`exact` in the space `ragged` below a limit or from a start: the same optimum, and a poor one does no harm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from bench.ragged_problems import ragged_problem

from einloom.mapspace.registry import space_for
from einloom.problem import Budget, Guarantee, Problem
from einloom.questions import problems
from einloom.search.exact import Exact, ExactOptions, head_starts
from einloom.search.exact.branch_and_bound import Run
from optima import optimum, same

SEEDS: list[tuple[int, float | None, bool]] = json.loads((Path(__file__).parent / "ragged_seeds.json").read_text())
UNEVEN = [(seed, value) for seed, value, pays in SEEDS if pays and value is not None]
ABOVE = (1 + 5e-5, 1.03, 1.4, 6.0)
STEPS = 1_000_000


@pytest.mark.parametrize("chunk", [pytest.param(n, marks=pytest.mark.slow if n > 1 else ()) for n in range(8)])
def test_below_any_limit_the_optimum_is_found(chunk: int) -> None:
    """And nothing where the limit is lower, whether limits below it are tried or not."""
    for seed, value in UNEVEN[chunk::8]:
        problem = ragged_problem(seed)
        for at_once in (False, True):
            for share in ABOVE:
                options = ExactOptions(limit=value * share, at_once=at_once)
                assert same(optimum(problem, options), value), (seed, share, at_once)
            assert optimum(problem, ExactOptions(limit=value * 0.9999, at_once=at_once)) is None, seed


@pytest.mark.parametrize("chunk", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_from_any_start_the_optimum_is_found(chunk: int) -> None:
    rng, poor = Random(3), 0
    for seed, value in UNEVEN[chunk::2]:
        problem = ragged_problem(seed)
        space = space_for(problem.workload, problem.machine, problem.mapspace)
        start = space.sample(rng)
        if start is not None:
            poor += Exact(ExactOptions(start=(start,))).search(problem, Budget(steps=0)).value > 1.2 * value
            for limit in (None, value * 1.2):
                assert same(optimum(problem, ExactOptions(start=(start,), limit=limit)), value), seed
    assert poor > 2


@pytest.mark.parametrize("first", [0, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("brief", [0.0, 60.0])
def test_perfect_tiles_before_are_no_harm(brief: float, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a budget, and where Einsums have very many choices, uneven tiles are looked for below the best perfect
    ones, or below what was known of these after so many seconds."""
    kept: list[float] = []
    keep = head_starts._keep_perfect

    def heard(search: Run, seconds: float, anew: bool) -> bool:
        done = keep(search, seconds, anew)
        kept.append(search.incumbent.value)
        return done

    monkeypatch.setattr(head_starts, "CROWDED", 0)
    monkeypatch.setattr(head_starts, "LONGEST", brief)
    monkeypatch.setattr(head_starts, "_keep_perfect", heard)
    for seed, value in UNEVEN[first : first + 12]:
        assert same(optimum(ragged_problem(seed)), value), seed
    known = [value for value in kept if value < float("inf")]
    assert len(kept) == 12 and (len(known) > 6 if brief else len(known) < len(kept))


def convolutions(height: int, width: int) -> Problem:
    """Two convolutions on TileFlow's edge machine, for latency: uneven tiles take three quarters of perfect ones."""
    asked = problems(
        "tileflow-cc2", "tileflow-edge", "latency", dataflow="spread-tiled-convolution", space="ragged", full_use=True
    )
    return next(each.problem for each in asked if each.label == f"height={height}, width={width}")


def test_a_poor_start_and_a_near_limit_are_no_harm() -> None:
    """With the best perfect tiles as start, or a limit 0.7 % above the bound, tables of millions of rows were made."""
    problem = convolutions(1, 3)
    perfect = Exact().search(replace(problem, mapspace=replace(problem.mapspace, name="ffm")))
    for options in (ExactOptions(start=(perfect.mapping,)), ExactOptions(limit=perfect.value * (1 - 4e-9))):
        found = Exact(options).search(problem, Budget(steps=STEPS))
        assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
        assert found.value < 0.8 * perfect.value
    near = Exact(ExactOptions(limit=found.value)).search(convolutions(1, 1), Budget(steps=STEPS))
    assert near.certificate is not None and near.certificate.guarantee is Guarantee.OPTIMAL
    assert 0.99 * found.value < near.value < found.value

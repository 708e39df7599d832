"""What the rows of the relaxation leave to the tiles themselves loses no optimum, and planted mistakes are caught."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench.ragged_problems import ragged_problem

from einloom.errors import EinloomError
from einloom.problem import Objective, Problem
from einloom.search.exact import ExactOptions
from einloom.search.exact.bounds.relaxed_rows import Left
from einloom.search.exact.fusion.explore import Explorer, numbered
from einloom.search.exact.numerics import uneven
from einloom.search.exact.pmappings.prune import Rules
from optima import best_of_all, optimum, same, searched
from uneven_pairs import halves

GOALS = (Objective("energy"), Objective("latency"), Objective("edp"))
SEEDS: list[tuple[int, float | None, bool]] = json.loads((Path(__file__).parent / "ragged_seeds.json").read_text())
HALVES = {(size, m): halves(size, m) for size, m in ((12, 17), (16, 19), (15, 13))}
OFF = ExactOptions(rules=Rules(relaxed=False))


def of(problem: Problem, goal: Objective) -> Problem:
    return replace(problem, objective=goal)


@pytest.fixture(autouse=True)
def hardly_rounded(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Rounded tiles find less, so that every tile has to be tried."""
    monkeypatch.setattr(uneven, "ROUND", 1)
    uneven.tile_list.cache_clear()
    yield
    uneven.tile_list.cache_clear()


def test_the_optimum_stays() -> None:
    gone = 0
    for problem in HALVES.values():
        for goal in GOALS:
            found = searched(of(problem, goal))
            assert found is not None and found.certificate is not None
            gone += found.certificate.counts.get("relaxed rows", 0)
            assert same(found.value, optimum(of(problem, goal), OFF))
    assert gone


@pytest.mark.parametrize("seed", [seed for seed, _, pays in SEEDS if pays][5:9])
def test_the_optimum_of_all_trees_stays(seed: int) -> None:
    assert same(optimum(ragged_problem(seed)), best_of_all(ragged_problem(seed)))


@pytest.mark.slow
def test_the_optimum_of_random_cascades_stays() -> None:
    differ = [
        seed
        for seed, value, _ in SEEDS
        for options in (OFF, ExactOptions())
        if not same(optimum(ragged_problem(seed), options), value)
    ]
    assert differ == []


def sizes_as_trips(patch: pytest.MonkeyPatch) -> None:
    """A tile is taken for the smallest one of as many trips."""

    def represented(self, grid, structure, tensor, shape, known):  # type: ignore[no-untyped-def]
        numbers = numbered(grid.tiles[:, : len(shape[1])], shape, self.signature.tensors[tensor].shape)
        return np.isin(numbers, known)

    patch.setattr(Explorer, "_represented", represented)


def dear(patch: pytest.MonkeyPatch) -> None:
    """An Einsum is taken to cost at least a quarter more than its cheapest row."""
    real = Left.__init__

    def init(self, workload, rows, least, most):  # type: ignore[no-untyped-def]
        real(self, workload, rows, least * 1.25, most)

    patch.setattr(Left, "__init__", init)


def strict(patch: pytest.MonkeyPatch) -> None:
    """An Einsum may cost three quarters of what is of use."""
    real = Left.__init__

    def init(self, workload, rows, least, most):  # type: ignore[no-untyped-def]
        real(self, workload, rows, least, most * 0.75)

    patch.setattr(Left, "__init__", init)


@pytest.mark.parametrize("mistake", [sizes_as_trips, dear, strict], ids=lambda f: f.__name__)
def test_planted_mistakes_are_caught(mistake, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    known = {(key, goal): optimum(of(HALVES[key], goal)) for key in HALVES for goal in GOALS}
    mistake(monkeypatch)
    caught = 0
    for (key, goal), value in known.items():
        try:
            caught += not same(optimum(of(HALVES[key], goal)), value)
        except EinloomError:
            caught += 1
    assert caught

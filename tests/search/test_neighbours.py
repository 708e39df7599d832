"""What neighbouring Einsums cost at least together bounds the cascade, and planted mistakes are caught."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bench.ragged_problems import ragged_problem

from einloom.problem import Budget, Problem
from einloom.search.exact import ExactOptions, branch_and_bound, neighbours
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.bounds.cutoff import Cutoff
from einloom.search.exact.bounds.neighbour_bounds import NeighbourBounds
from einloom.search.exact.bounds.weighted_sums import Lines
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.neighbours import look
from einloom.search.exact.segments.neighbour_attempt import NeighbourAttempt
from einloom.search.method import Watcher
from einloom.workload.einsum import Workload
from optima import optimum, same

SEEDS: list[tuple[int, float | None, bool]] = json.loads((Path(__file__).parent / "ragged_seeds.json").read_text())
SOME = [(seed, value) for seed, value, _ in SEEDS if value is not None][:30]


def every(workload: Workload) -> list[tuple[int, int]]:
    """All windows of a cascade, itself among them."""
    n = len(workload.einsums)
    return [(first, end) for first in range(n) for end in range(first + 2, n + 1)]


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """All windows, to the end, also in small searches."""
    monkeypatch.setattr(neighbours, "WORTH", 0)
    monkeypatch.setattr(neighbours, "neighbours", every)
    monkeypatch.setattr(neighbours.time, "monotonic", lambda: 0.0)


def bounds(asked: Problem) -> tuple[float, float]:
    """The bound of a cascade before and after its windows."""
    run = Run(asked, ExactOptions(), Budget(), Watcher())
    attempt = Attempt(asked, ExactOptions(), Watcher(), {}, lambda: None)
    before = attempt.lower_bound()
    look(attempt, run.stops)
    return before, attempt.bound


@pytest.mark.usefixtures("everywhere")
def test_no_bound_is_above_the_optimum() -> None:
    raised = 0
    for seed, value in SOME:
        before, after = bounds(ragged_problem(seed))
        assert before <= after <= value * (1 + 1e-9), seed
        raised += after > before * (1 + 1e-9)
    assert raised > len(SOME) / 4


@pytest.mark.usefixtures("everywhere")
def test_the_optimum_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_and_bound, "SOONER_THAN", 1.0)
    assert [seed for seed, value in SOME[:20] if not same(optimum(ragged_problem(seed)), value)] == []


@pytest.mark.slow
@pytest.mark.usefixtures("everywhere")
def test_the_optimum_of_all_trees_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_and_bound, "SOONER_THAN", 1.0)
    assert [seed for seed, value, _ in SEEDS if not same(optimum(ragged_problem(seed)), value)] == []


def test_a_place_is_bounded_by_the_best_row_of_windows() -> None:
    """One column: what stands before a place is the largest sum of windows and Einsums that do not overlap."""
    least = np.array([[1.0], [2.0], [3.0], [4.0]])
    lines = Lines.of(Cutoff((1.0,)), least)
    known = NeighbourBounds((1.0,), {(0, 2): 4.0, (1, 4): 12.0, (2, 4): 8.5})
    assert known.before(lines, least)[:, 0].tolist() == [0.0, 1.0, 4.0, 7.0, 13.0]
    assert known.after(lines, least)[:, 0].tolist() == [13.0, 12.0, 8.5, 4.0, 0.0]


def test_lines_of_other_weights_take_the_columns_from_the_einsums_alone() -> None:
    least = np.array([[1.0, 2.0], [2.0, 2.0]])
    lines = Lines(Cutoff((1.0, 1.0)), (0.5, 1.0, 3.0))
    found = NeighbourBounds((1.0, 1.0), {(0, 2): 10.0}).before(lines, least)[-1]
    assert found.tolist() == [3.0, 4.0, 0.5 * 10 + 0.5 * 3, 10.0, 10 + 2 * 4.0]


def overlapping(patch: pytest.MonkeyPatch) -> None:
    """NeighbourBounds that overlap are added up."""

    def before(self, lines, least):  # type: ignore[no-untyped-def]
        found = [np.zeros(lines.extend(least[:1]).shape[1])]
        for end in range(1, len(least) + 1):
            ways = [found[end - 1] + lines.extend(least[end - 1 : end])[0]]
            ways += [found[end - 1] + self._of((a, b), lines, least) for a, b in self.least if b == end]
            found.append(np.max(ways, axis=0))
        return np.array(found)

    patch.setattr(NeighbourBounds, "before", before)


def alone_as_well(patch: pytest.MonkeyPatch) -> None:
    """What the Einsums cost alone is added to what their window costs."""
    real = NeighbourBounds._of

    def of(self, window, lines, least):  # type: ignore[no-untyped-def]
        return real(self, window, lines, least) + lines.extend(least[slice(*window)].sum(axis=0)[None])[0]

    patch.setattr(NeighbourBounds, "_of", of)


def limits_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """A limit is taken for proven before anything is looked for below it."""
    real = NeighbourAttempt.towards_least

    def towards_least(self, limit, bounded=()):  # type: ignore[no-untyped-def]
        return 1.3 * real(self, limit, bounded)

    patch.setattr(NeighbourAttempt, "towards_least", towards_least)


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("mistake", [overlapping, alone_as_well, limits_not_looked_at], ids=lambda f: f.__name__)
def test_planted_mistakes_are_caught(mistake, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    mistake(monkeypatch)
    assert any(bounds(ragged_problem(seed))[1] > value * (1 + 1e-9) for seed, value in SOME)

"""Segments that occur often bound a product of sums: never above the optimum, which stays, and mistakes are caught."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from einloom.errors import Defect, Infeasible
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact import Exact, ExactOptions, Rules, branch_and_bound, neighbours
from einloom.search.exact.bounds import weighted_sums
from einloom.search.exact.bounds.cutoff import Cutoff
from einloom.search.exact.bounds.neighbour_bounds import NeighbourBounds
from einloom.search.exact.bounds.weighted_sums import Lines
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.neighbours import alike, look_at_segments
from einloom.search.exact.segments.cuts import cuts
from einloom.search.exact.segments.segment import Segment
from einloom.search.method import Watcher
from optima import best_of_all, optimum, same, searched
from stacked_layers import LAYERS, stacked
from tiny_problems import tiny_problem

RAISED = (3523, 4033, 4352, 6101, 6179, 6288, 6797, 7173, 7276)
"""Seeds of small problems whose segments raise the bound, most of three Einsums."""


TIMED = ",glb_throughput=2"
WITHOUT = ExactOptions(segments=False)
EVERY_LOOP = ExactOptions(Rules(stationary=False, lowering=False, settled=False), at_once=True)
PROBLEMS = [
    *(stacked(layer, 4, bits, "edp", more=TIMED) for layer in sorted(LAYERS)[1:] for bits in (40, 60, 200)),
    *(stacked("feed forward", count, bits, "edp", more=TIMED) for count, bits in ((2, 100), (3, 200), (3, 60))),
]
EVEN, ODD = range(0, len(PROBLEMS), 2), range(1, len(PROBLEMS), 2)


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cascades of any length, cut wherever they can be, all segments looked at; dives that find nothing at once."""
    monkeypatch.setattr(neighbours, "SHORT", 1)
    monkeypatch.setattr(neighbours, "OFTEN", 1)
    monkeypatch.setattr(neighbours, "cuts", lambda workload: cuts(workload, 1))
    monkeypatch.setattr(branch_and_bound, "nearest", lambda incumbent, attempt: None)


def bounds(asked: Problem) -> tuple[float, float]:
    """The bound of a cascade before and after its segments; twice the same if it has none."""
    run = Run(asked, ExactOptions(), Budget(), Watcher())
    attempt = run.attempt()
    before = attempt.lower_bound()
    every = alike(attempt)
    if every:
        look_at_segments(attempt, every, run.stops)
    return before * attempt.repeats, attempt.bound * attempt.repeats


@cache
def best_of(number: int) -> float:
    """The optimum of a problem by a search that looks at no segments."""
    best = optimum(PROBLEMS[number], WITHOUT)
    assert best is not None
    return best


@pytest.mark.parametrize("numbers", [EVEN, pytest.param(ODD, marks=pytest.mark.slow)], ids=["even", "odd"])
def test_no_bound_is_above_the_optimum_which_stays(numbers: range) -> None:
    raised = 0
    for number in numbers:
        asked, best = PROBLEMS[number], best_of(number)
        before, after = bounds(asked)
        assert before <= after <= best * (1 + 1e-9), asked.workload.name
        assert same(optimum(asked), best), asked.workload.name
        assert same(Exact(replace(EVERY_LOOP, limit=best)).search(asked).value, best)
        raised += after > before * (1 + 1e-9)
    assert raised > len(numbers) / 3


@pytest.mark.parametrize("seeds", [RAISED[:4], pytest.param(RAISED[4:], marks=pytest.mark.slow)], ids=["few", "more"])
def test_the_optimum_is_that_of_all_trees(seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        asked = replace(tiny_problem(seed), objective=Objective("edp"))
        before, after = bounds(asked)
        least = best_of_all(asked)
        assert least is not None
        assert before < after <= least * (1 + 1e-9), f"seed {seed}"
        result = searched(asked)
        assert same(None if result is None else result.value, least), f"seed {seed}"


def test_a_cascade_whose_layers_are_alike_is_bounded_by_a_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only kinds that occur often are searched, each once."""
    monkeypatch.setattr(neighbours, "OFTEN", 3)
    learnt: list[Segment] = []
    learn = Segment.learn
    monkeypatch.setattr(Segment, "learn", lambda self: (learnt.append(self), learn(self)))
    asked = stacked("residual", 6, 60, "edp", more=TIMED)
    before, after = bounds(asked)
    assert 0 < len(learnt) < 6 and len(set(learnt)) == len(learnt)
    assert before < after <= (optimum(asked, WITHOUT) or 0) * (1 + 1e-9)


def test_segments_whose_least_costs_differ_are_not_alike() -> None:
    """Users outside of a segment may bar a memory from holding what passes, and so raise what is inside."""
    asked = stacked("residual", 6, 60, "edp", more=TIMED)
    attempt = Run(asked, ExactOptions(), Budget(), Watcher()).attempt()
    attempt.lower_bound()
    before = len(set(alike(attempt)))
    place = len(attempt.signatures) // 2
    attempt.least[place] *= 1.5
    assert len(set(alike(attempt))) == before + 1


# ---- lines that follow others ----------------------------------------------------------------------------------------


def least_of_region(lines: Lines, bounds: np.ndarray) -> float:
    """The least energy times latency above all lines, from every point where two of them meet."""
    sides = [(1.0, 0.0, bounds[0]), (0.0, 1.0, bounds[1])]
    sides += [(1.0, weight, bound) for weight, bound in zip(lines.weights, bounds[2:], strict=True)]
    found = np.inf
    for (a, b, c), (d, e, f) in combinations(sides, 2):
        point = np.linalg.solve([[a, b], [d, e]], [c, f])
        if all(p * point[0] + q * point[1] >= r * (1 - 1e-9) for p, q, r in sides):
            found = min(found, float(point.prod()))
    return found


def test_lines_that_others_raise_are_followed() -> None:
    """Bounds of random points, some of them raised: the least product is that of the region between the lines."""
    random, higher = np.random.default_rng(7), 0
    for _ in range(200):
        points = random.uniform(1, 5, (random.integers(1, 6), 2))
        lines = Lines(Cutoff((1.0, 1.0)), tuple(np.cumsum(random.uniform(0.2, 1, 4)).tolist()), raised=True)
        known = lines.extend(points).min(axis=0) * random.choice([1.0, 1.0, 1.1, 1.3], 6)
        value = float(lines.value(known[None])[0])
        assert value == pytest.approx(least_of_region(lines, known), rel=1e-9)
        plain = float(replace(lines, raised=False).value(known[None])[0])
        assert plain <= value * (1 + 1e-9)
        higher += plain < value * (1 - 1e-9)
    assert higher > 50


# ---- mistakes --------------------------------------------------------------------------------------------------------


def dearest_ends(patch: pytest.MonkeyPatch) -> None:
    """A segment costs what it does with the ends that cost most."""
    patch.setattr(Segment, "at_least", property(lambda self: max(self.known.values(), default=self.limit)))


def next_limit(patch: pytest.MonkeyPatch) -> None:
    """A limit counts before anything was looked for below it."""
    patch.setattr(Segment, "at_least", property(lambda self: 1.02 * self.limit))


def both_sides(patch: pytest.MonkeyPatch) -> None:
    """What stands before a place counts as what comes after it, too."""
    patch.setattr(NeighbourBounds, "after", lambda self, lines, least: self.before(lines, least))


def beyond_both(patch: pytest.MonkeyPatch) -> None:
    """A line follows the straight line through two others on one side of it."""
    real = weighted_sums._implied

    def implied(weights):  # type: ignore[no-untyped-def]
        found, starts = real(weights)
        return found * 1.05, starts

    patch.setattr(weighted_sums, "_implied", implied)


def wrong(asked: Problem, best: float) -> bool:
    """True if the search misses the optimum or contradicts itself, or the bound is above it."""
    try:
        at_most = Exact(replace(EVERY_LOOP, limit=best)).search(asked).value
        return bounds(asked)[1] > best * (1 + 1e-9) or not same(optimum(asked), best) or not same(at_most, best)
    except (Defect, Infeasible):
        return True


@pytest.mark.parametrize("mistake", [dearest_ends, next_limit, both_sides, beyond_both], ids=lambda f: f.__name__)
def test_planted_mistakes_are_caught(mistake, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    every = [(asked, best_of(number)) for number, asked in enumerate(PROBLEMS)]
    mistake(monkeypatch)
    assert any(wrong(asked, best) for asked, best in every)

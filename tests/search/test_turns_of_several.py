"""Several problems under a budget of seconds take turns; with enough of them the best is proven as without a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from random import Random
from typing import Any

import pytest

from einloom.errors import BudgetExhausted, Ended, Infeasible
from einloom.problem import Budget, Guarantee
from einloom.questions import problems
from einloom.search import first, several
from einloom.search.exact import Exact, least_value
from einloom.search.method import Recorder
from einloom.search.several import Labelled, best_of
from einloom.workload.build import build_workload
from einloom.zoo.machine_by_name import load_machine
from tiny_groups import group_problem


def chain(seed: int) -> tuple[Labelled, ...]:
    """Two convolutions in a row, cut into tiles of rows in every way, with perfect or uneven tiles."""
    rng = Random(seed)
    kernel, rows = rng.choice((1, 2)), rng.choice((4, 6))
    workload = build_workload(
        "chain",
        ["T[y,x,l] = I[y+r,x+s,c] * A[l,r,s,c]", "Z[h,w,k] = T[h+u,w+v,l] * B[k,u,v,l]"],
        {**dict.fromkeys("xrscwv", 1), "l": rng.choice((1, 2)), "k": 1, "y": rows + kernel - 1, "h": rows, "u": kernel},
        bits=1,
    )
    machine = load_machine(f"simple:glb_bits={rng.choice((8, 12, 24))},dram_energy=10,glb_throughput=1")
    goal, space = rng.choice(("energy", "latency", "edp")), rng.choice(("ffm", "ragged"))
    return problems(workload, machine, goal, dataflow="fused-layer", space=space)


def alone(asked: Labelled) -> float:
    """The optimum of one of the problems, which no bound of it exceeds."""
    try:
        found = Exact().search(asked.problem).value
    except Infeasible:
        found = inf
    for brief in (False, True):
        assert least_value(asked.problem, Budget(), Recorder(), brief)[0] <= found * (1 + 1e-9)
    return found


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first turns end before anything is proven."""
    monkeypatch.setattr(several, "TURN", 1e-9)
    monkeypatch.setattr(several, "SHORTEST", 1e-4)


@pytest.mark.parametrize(
    "seed", [*range(1, 4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, *range(4, 18)))]
)
def test_the_best_is_that_without_a_budget(seed: int, short: None) -> None:
    asked = chain(seed)
    try:
        best = best_of(asked, "exact", Budget(), Recorder())
    except Infeasible:
        with pytest.raises(Infeasible):
            best_of(asked, "exact", Budget(seconds=1000), Recorder())
        return
    assert best.value == pytest.approx(min(map(alone, asked)), rel=1e-9)
    found = best_of(asked, "exact", Budget(seconds=1000), Recorder())
    assert found.value == pytest.approx(best.value, rel=1e-9)
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert found.ended is None


@pytest.mark.parametrize("seed", [3, 11, 26, 39, 59, 80])
def test_a_bound_holds_for_einsums_that_run_at_the_same_time(seed: int) -> None:
    problem = group_problem(seed)
    bound, whole = least_value(problem, Budget(), Recorder())
    assert whole and 0 < bound <= Exact().search(problem).value * (1 + 1e-9)


def test_what_is_cut_off_has_a_bound_of_all(short: None) -> None:
    """At every moment the bound is one of the optimum, and the value is that of a mapping."""
    asked = chain(3)
    best = best_of(asked, "exact", Budget(), Recorder())
    gaps, bounds = [], []
    for looks in (4, 16, 64, 256):
        left = iter(range(looks))
        stopped: Callable[[], bool] = lambda left=left: next(left, None) is None  # type: ignore[misc] # noqa: E731
        try:
            found = best_of(asked, "exact", Budget(seconds=1000), Recorder(stop=stopped))
        except BudgetExhausted as error:
            bounds.append(error.bound)
            continue
        assert found.certificate is not None
        assert best.value <= found.value * (1 + 1e-12)
        bounds.append(found.certificate.bound)
        gaps.append(found.value - found.certificate.bound)
    assert max(bounds) <= best.value * (1 + 1e-12)
    assert gaps and gaps[-1] <= gaps[0]


def test_each_has_a_turn_before_any_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only searches move; the last problem has no mapping and is not asked again."""
    asked, clock, turns = chain(3)[:3], [0.0], list[tuple[str, float]]()
    one, other, last = (each.label for each in asked)
    bounds = {one: 5e9, other: 1e9}
    labels = {each.problem: each.label for each in asked}

    def ask(method: Any, problem: Any, budget: Budget, *rest: Any) -> Iterator[None]:
        label, seconds = labels[problem], budget.seconds or 0.0
        turns.append((label, seconds))
        clock[0] += seconds
        if label == last:
            raise Infeasible("nothing fits")
        raise BudgetExhausted(bounds[label], ended=Ended.SECONDS)

    monkeypatch.setattr(several, "ask", ask)
    monkeypatch.setattr(several.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(several._Several, "begin_evenly", lambda self: None)
    monkeypatch.setattr(several._Several, "look_around", lambda self: None)
    monkeypatch.setattr(several._Several, "draw", lambda self, until: setattr(self, "drew", True))
    with pytest.raises(BudgetExhausted) as error:
        best_of(asked, "exact", Budget(seconds=64.0), Recorder())
    assert turns == [(one, 32.0), (other, 16.0), (last, 8.0), (one, 6.0), (other, 2.0)]
    assert error.value.bound == 1e9


def test_a_mapping_is_drawn_within_the_budget_and_of_the_most_promising(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only searches and draws move: no draw begins after the budget."""
    asked, clock, drawn = chain(3)[:3], [0.0], list[tuple[str, float]]()
    labels = {each.problem: each.label for each in asked}

    class Slow:
        def __init__(self, problem: Any, watch: Any) -> None:
            self.label = labels[problem]

        def draw(self, until: float) -> None:
            drawn.append((self.label, until))
            clock[0] = until

    def ask(method: Any, problem: Any, budget: Budget, *rest: Any) -> Iterator[None]:
        clock[0] += budget.seconds or 0.0
        raise BudgetExhausted(1.0, ended=Ended.SECONDS)

    monkeypatch.setattr(several, "ask", ask)
    monkeypatch.setattr(several.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(several, "FirstMappings", Slow)
    search = several._Several(asked, several.chosen("exact"), Budget(seconds=1.0), Recorder(), [()] * 3)
    search.least, search.sure = {0: 3.0, 1: 2.0, 2: 1.0}, {0, 1, 2}
    monkeypatch.setattr(several._Several, "begin_evenly", lambda self: None)
    with pytest.raises(BudgetExhausted):
        search.solve()
    assert [label for label, _ in drawn[:3]] == [asked[i].label for i in (2, 1, 0)]
    assert drawn[0][1] == pytest.approx(0.9375) and clock[0] <= 1.0 + 1e-9


def test_a_draw_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """One at least, and no other after the moment."""
    asked, draws = group_problem(3), list[int]()
    monkeypatch.setattr(first.FirstMappings, "_drawn", lambda self, *rest: draws.append(1))
    assert first.FirstMappings(asked, Recorder()).draw(0.0) is None
    assert len(draws) == 1
    assert first.FirstMappings(asked, Recorder()).draw() is None
    assert len(draws) == 1 + 2 * first.PLAIN


def test_cuts_are_dismissed_by_bounds_of_uneven_tiles() -> None:
    """Of an image of a prime number of rows: whole it takes half of what perfect tiles do, and no cut can."""
    cuts = ("tileflow-cc5", "tileflow-edge", "latency")
    asked = problems(*cuts, dataflow="spread-tiled-convolution", space="ragged", full_use=True)
    found = best_of(asked, "exact", Budget(seconds=1000), Recorder())
    even = problems(*cuts, dataflow="spread-tiled-convolution", full_use=True)
    assert found.value < 0.51 * best_of(even, "exact", Budget(), Recorder()).value
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    others = [each for each in found.certificate.alternatives if each.value is None]
    assert len(others) == 3

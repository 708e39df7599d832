"""Methods by turns beside a proof: whose turn it is, where it begins, and when it ends."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest

from einloom.mapspace.registry import space_for
from einloom.problem import Budget
from einloom.questions import problem
from einloom.search.evaluator import Evaluator, Stop
from einloom.search.first import FirstMappings
from einloom.search.heuristics import turns as turns_module
from einloom.search.heuristics.anneal import Anneal
from einloom.search.heuristics.dat import Dat
from einloom.search.heuristics.genetic import Genetic
from einloom.search.heuristics.points import Points
from einloom.search.heuristics.turns import SELDOM, WALKS, Turns
from einloom.search.method import Recorder, Watcher
from einloom.workload.build import build_workload


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled: machine code counts as there, and no burst is large enough for it."""
    monkeypatch.setattr(FirstMappings, "_loaded", lambda self, points: True)
    monkeypatch.setattr(FirstMappings, "_fast", lambda self, points: False)
    monkeypatch.setattr(Points, "burst_size", lambda self, points: 1)


def test_methods_take_turns_from_the_best_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy")
    begun: list[tuple[str, float]] = []
    for kind in (Dat, Anneal, Genetic):

        def counted(self: Any, points: Points, rng: Random, watch: Watcher, run: Any = kind.run) -> None:
            begun.append((self.name, min(points.apart(state) for state in points.begin())))
            run(self, points, rng, watch)

        monkeypatch.setattr(kind, "run", counted)
    turns = Turns(asked, Recorder(), True, seed=1)
    values = []
    while len(begun) < 5:
        turns.work(0.0)
        values.append(turns.value)
    assert [name for name, _ in begun] == ["dat", "anneal", "genetic", "anneal", "dat"]
    assert values == sorted(values, reverse=True) and values[-1] < values[0]
    starts = [start for _, start in begun]
    assert all(any(start == pytest.approx(value) for value in values) for start in starts)
    assert starts == sorted(starts, reverse=True) and starts[-1] < starts[0]
    assert turns.counts["evaluated"] > 100


def test_a_turn_ends_when_the_search_is_to_stop() -> None:
    asked = problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy")
    stopped: list[bool] = []
    turns = Turns(asked, Recorder(stop=lambda: bool(stopped)), True)
    while turns.best is None:
        turns.work(0.0)
    known = turns.counts["evaluated"]
    stopped.append(True)
    turns.work(0.0)
    assert turns.counts["evaluated"] <= known + 1  # else the turn goes on for its 0.2 s
    assert turns.draw() == turns.best  # what is known is there after the stop, too


def test_no_turn_begins_after_the_seconds_of_the_search() -> None:
    asked = problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy")
    turns = Turns(asked, Recorder(), True, seconds=0.0)
    for _ in range(5):
        turns.work(0.0)
    assert turns.best is not None and turns.counts["evaluated"] < 20


def test_where_a_point_costs_a_walk_of_windows_the_proof_has_nearly_all_seconds() -> None:
    """Windows are walked where what is written is strided; those of a convolution are priced in closed form."""
    strided = build_workload("strided", ["O[2*p+q,m] = I[p+r,q] * W[r,m]"], {"p": 4, "q": 2, "r": 2, "m": 4}, bits=8)
    for asked, walks in (
        (problem(strided, "two-level", "energy"), True),
        (problem("mobilenet-block", "two-level", "energy"), False),
    ):
        turns = Turns(asked, Recorder(), True)
        while turns.best is None:
            turns.work(0.0)
        turns.work(0.0)
        assert ((turns.early, turns.hurried) == (WALKS, SELDOM)) == walks


def test_where_a_point_costs_a_walk_of_windows_there_are_turns_within_seconds() -> None:
    """The proof may not end by then, and drawing alone prices a handful of points."""
    strided = build_workload("strided", ["O[2*p+q,m] = I[p+r,q] * W[r,m]"], {"p": 4, "q": 2, "r": 2, "m": 4}, bits=8)
    turns = Turns(problem(strided, "two-level", "energy"), Recorder(), True, seconds=60.0)
    while turns.best is None:
        turns.work(0.0)
    before = turns.counts["evaluated"]
    for _ in range(3):
        turns.work(0.0)
    assert turns.counts["evaluated"] > before + 20
    assert (turns.early, turns.hurried) != (WALKS, SELDOM)


@pytest.mark.parametrize(
    ("slow", "seconds", "turned"), [(0.0, 60.0, False), (float("inf"), 60.0, True), (0.0, None, True)]
)
def test_einsums_get_better_one_by_one_first_where_a_mapping_takes_long_to_price(
    slow: float, seconds: float | None, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a part of the seconds of drawing, which never ends here; without a budget of seconds there are turns."""
    taken: list[str] = []
    monkeypatch.setattr(turns_module, "SLOW", slow)
    monkeypatch.setattr(turns_module, "APART", float("inf"))
    monkeypatch.setattr(Turns, "_take", lambda self, method, *_: taken.append(method.name))
    turns = Turns(problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy"), Recorder(), True, 0, seconds)
    while turns.best is None:
        turns.work(0.0)
    first = turns.promised
    for _ in range(20):
        turns.work(0.0)
    assert bool(taken) == turned
    assert turned or turns.promised < first  # by moves of single Einsums


def test_turns_go_on_near_a_known_mapping() -> None:
    asked = problem("matmuls:n=3,m=16,kn=16", "simple:glb_bits=2048", "energy")
    first, turns = FirstMappings(asked, Watcher()), Turns(asked, Recorder(), True)
    known = first.draw()
    assert known is not None
    turns.go_on_near(known)
    assert turns.promised == first.value
    for _ in range(2):
        turns.work(0.0)
    assert turns.best is not None and turns.value <= first.value and turns.counts["evaluated"] > 1


def test_a_search_within_another_ends_alone() -> None:
    asked = problem("matmuls:n=2,m=16,kn=16", "simple:glb_bits=2048", "energy")
    price = Evaluator(asked, space_for(asked.workload, asked.machine, asked.mapspace), Budget(steps=10))
    outer = price.watch
    with price.turn(Budget(seconds=0.0), Watcher()):
        time.sleep(0.001)
        price.checkpoint()
        raise AssertionError("the turn has no seconds left")
    assert price.ended is None and price.budget == Budget(steps=10) and price.watch is outer
    price.checkpoint()
    price.evaluated = 10
    with pytest.raises(Stop):
        price.checkpoint()


class Idle(Anneal):
    """Visits nothing."""

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        """Nothing."""


def test_turns_go_on_with_the_proof_while_they_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy"), Recorder(), True, seconds=3.0)
    while turns.best is None:
        turns.work(0.0)
    for values, seconds in (((10.0, 9.0), 1.0), ((9.0, 8.95), 0.5), ((8.0, 7.0), 1.0), ((7.0, 7.0), 0.5)):
        promised = iter(values)
        monkeypatch.setattr(Turns, "promised", property(lambda _, promised=promised: next(promised)))
        turns._take(Idle(), 1.0, Random(0))
        assert turns.early == pytest.approx(seconds)

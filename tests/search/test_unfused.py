"""First mappings of a search: each Einsum alone, and of uneven tiles the perfect ones. Proofs do not depend on them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bench.ragged_problems import ragged_problem

from einloom.errors import Ended, Infeasible
from einloom.mapping.text import print_mapping
from einloom.mapspace.ffm.encoding import Encoding, sample
from einloom.mapspace.ffm.encoding.alike import alike
from einloom.problem import Budget, Guarantee, Objective
from einloom.questions import problem
from einloom.search.checked import priced
from einloom.search.exact import Exact, head_starts, least_costs
from einloom.search.exact import branch_and_bound as engine
from einloom.search.exact.stops import Stopped
from einloom.search.exact.unfused import unfused
from einloom.search.method import Watcher
from einloom.search.starts import fitting
from optima import optimum, same
from tiny_problems import tiny_problem

GOALS = ("energy", "latency", "edp")
SEEDS: list[tuple[int, float | None, bool]] = json.loads((Path(__file__).parent / "ragged_seeds.json").read_text())


def attempt_of(asked: engine.Problem) -> engine.Attempt:
    attempt = engine.Run(asked, engine.ExactOptions(), Budget(), Watcher(), None).attempt()
    attempt.begin()
    return attempt


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_it_is_a_mapping_and_no_better_than_the_best(first: int) -> None:
    found = 0
    for seed in range(first, first + 10):
        asked = replace(tiny_problem(seed), objective=Objective(GOALS[seed % 3]))
        best = optimum(asked)
        try:
            solution = unfused(attempt_of(asked))
        except Infeasible:
            continue
        found += 1
        said = solution.value * asked.workload.repeat**asked.objective.degree
        priced(asked, solution.mapping, said)
        assert best is not None and said >= best * (1 - 1e-9)
        top = print_mapping(solution.mapping, asked.workload).splitlines()[0]
        assert set(asked.workload.intermediates) <= set(top.split(": ")[1].split())
    assert found >= 5


def test_it_is_not_looked_for_where_it_cannot_be_better_than_what_is_known() -> None:
    """Its least cost is a bound: just above its value it is found, and far below it nothing is explored."""
    looked = 0
    for seed in range(12):
        try:
            attempt = attempt_of(replace(tiny_problem(seed), objective=Objective(GOALS[seed % 3])))
            value = unfused(attempt).value
        except Infeasible:
            continue
        looked += 1
        assert unfused(attempt, value * 1.0001).value == value
        before = attempt.counts.get("evaluated", 0)
        with pytest.raises(Infeasible, match="no less than what is known"):
            unfused(attempt, value / 1000)
        assert attempt.counts.get("evaluated", 0) == before
    assert looked >= 5


def test_it_is_the_same_where_choices_are_listed_within_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    def values() -> list[float | None]:
        found: list[float | None] = []
        for seed in range(12):
            try:
                found.append(
                    unfused(attempt_of(replace(tiny_problem(seed), objective=Objective(GOALS[seed % 3])))).value
                )
            except Infeasible:
                found.append(None)
        return found

    before = values()
    monkeypatch.setattr(least_costs, "LISTED", -1)
    assert values() == before and len({*before}) > 6


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 40), marks=pytest.mark.slow)], ids=["few", "more"])
def test_an_earlier_cutoff_does_not_matter(seeds: range) -> None:
    """An attempt that found nothing below one, or had it met, says nothing of rows that it has not explored."""
    looked = 0
    for seed in seeds:
        asked = replace(tiny_problem(seed), objective=Objective(GOALS[seed % 3]))
        try:
            attempt = attempt_of(asked)
            fresh = unfused(attempt).value
            bound = attempt.lower_bound()
        except Infeasible:
            continue
        for share in (0.0, 1e-6, 0.2):
            with suppress(Infeasible):
                attempt.run(bound * (1 + share))
            looked += attempt.consistency is not None
            assert unfused(attempt).value == fresh
    assert looked >= 30


@pytest.mark.parametrize(
    "seeds", [range(40, 52), pytest.param(range(52, 64), marks=pytest.mark.slow)], ids=["few", "more"]
)
def test_optima_do_not_depend_on_it(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [replace(tiny_problem(seed), objective=Objective(GOALS[seed % 3])) for seed in seeds]
    without = [optimum(asked) for asked in problems]
    used: list[float] = []

    def seen(attempt: engine.Attempt, known: float) -> engine.Solution:
        used.append(known)
        return unfused(attempt, known)

    monkeypatch.setattr(head_starts, "SHORT", 1)
    monkeypatch.setattr(head_starts, "unfused", seen)
    assert [within_seconds(asked) for asked in problems] == without and len(used) > 5


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 60), marks=pytest.mark.slow)], ids=["few", "more"])
def test_optima_do_not_depend_on_looking_below_it(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """What quick passes find below it is a mapping of the space, and the proof that follows is the same."""
    looked: list[tuple[float, float]] = []
    below = engine.quick_below

    def seen(search: engine.Run, attempt: engine.Attempt) -> bool:
        before = search.incumbent.value
        whole = below(search, attempt)
        best = search.incumbent.best
        assert best is not None and fitting(asked, (best.mapping,)) == (best.mapping,)
        priced(asked, best.mapping, best.value * attempt.repeats, or_less=True)
        looked.append((before, best.value))
        return whole

    monkeypatch.setattr(engine, "quick_below", seen)
    monkeypatch.setattr(engine, "FAR", 0.5)
    monkeypatch.setattr(engine.Run, "_soonest", lambda *_: None)
    for seed in seeds:
        asked = replace(tiny_problem(seed), objective=Objective(GOALS[seed % 3]))
        assert same(within_seconds(asked), optimum(asked)), seed
    assert len(looked) >= 5 and sum(after < before for before, after in looked) >= 2


def test_looking_below_that_ends_early_leaves_the_proof_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem("residual-diamond", "nvdla", "edp")
    alone, whole = Exact().search(asked).value, list[bool]()
    below = engine.quick_below

    def seen(search: engine.Run, attempt: engine.Attempt) -> bool:
        whole.append(below(search, attempt))
        return whole[-1]

    monkeypatch.setattr(engine, "quick_below", seen)
    monkeypatch.setattr(head_starts, "WIDE", -(10**9))
    monkeypatch.setattr(engine.Run, "_soonest", lambda *_: None)
    assert within_seconds(asked) == alone and whole == [False]


@pytest.mark.parametrize(
    ("machine", "steps", "most"),
    [pytest.param("nvdla", 100_000, 1.05, marks=pytest.mark.slow), ("ffm-edge-vector", 100_000, 1.01)],
)
def test_a_layer_has_a_good_mapping_soon(machine: str, steps: int, most: float) -> None:
    """By counted steps, beside the optimum that a search without a budget proves, which begins in another way."""
    asked = problem("gpt3-6.7b", machine, "edp")
    best = Exact().search(asked)
    assert best.certificate is not None and best.certificate.guarantee is Guarantee.OPTIMAL
    found = Exact().search(asked, Budget(seconds=1e6, steps=steps))
    assert found.ended is Ended.STEPS and found.value <= most * best.value


def within_seconds(asked: engine.Problem) -> float | None:
    try:
        return Exact().search(asked, Budget(seconds=head_starts.HASTE - 1)).value
    except Infeasible:
        return None


def test_a_network_is_drawn_once_for_einsums_that_are_alike() -> None:
    asked = problem("resnet18", "nvdla", "energy")
    encoding = Encoding(asked.workload, asked.machine, asked.mapspace)
    state = encoding.unfused(Random(0))
    assert state is not None and encoding.fault(state) is None
    groups = alike(encoding.facts)
    assert any(len(group) > 1 for group in groups)
    for group in groups:
        mine = {tuple(m for m, _ in state.owns[i].stores) for i in group}
        assert len(mine) == 1


def test_few_tensors_of_a_network_are_fused_in_a_draw() -> None:
    """Drawn states of 643 Einsums are legal; each took nine seconds when all tensors were tried."""
    asked = problem("llama3-8b-net", "tpu-v4i-free", "energy")
    encoding = Encoding(asked.workload, asked.machine, asked.mapspace)
    drawn = [encoding.sample(Random(seed)) for seed in range(4)]
    states = [state for state in drawn if state is not None]
    assert len(states) >= 3 and any(any(state.homes) for state in states)
    assert all(encoding.fault(state) is None for state in states)
    assert all(sum(map(bool, state.homes)) <= sample.TRIED for state in states)


def uneven(first: int, last: int) -> list[tuple[engine.Problem, float | None]]:
    """Small problems of `ragged` and their optima, most of which have uneven tiles."""
    some = [(seed, value) for i, (seed, value, pays) in enumerate(SEEDS) if pays or i % 15 == 0]
    return [(ragged_problem(seed), value) for seed, value in some[first:last]]


def test_optima_of_ragged_do_not_depend_on_what_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces: list[str] = []
    solve = engine.Run.solve

    def seen(run: engine.Run) -> engine.Solution:
        spaces.append(run.problem.mapspace.name)
        return solve(run)

    monkeypatch.setattr(engine.Run, "solve", seen)
    for asked, value in uneven(0, 20):
        assert same(within_seconds(asked), value)
    assert spaces.count("ffm") > 10


def test_ragged_that_ends_early_has_the_perfect_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [replace(asked, objective=Objective(goal)) for asked, _ in uneven(20, 27) for goal in GOALS]
    perfect = [optimum(replace(asked, mapspace=replace(asked.mapspace, name="ffm"))) for asked in problems]
    bounded = engine.Attempt.lower_bound

    def short(attempt: engine.Attempt, *told: Any, **named: Any) -> float:
        if attempt.problem.mapspace.name == "ragged":
            raise Stopped(Ended.SECONDS)
        return bounded(attempt, *told, **named)

    monkeypatch.setattr(engine.Attempt, "lower_bound", short)
    found = 0
    for asked, least in zip(problems, perfect, strict=True):
        if least is not None:
            early = within_seconds(asked)
            assert early is not None and early <= least * (1 + 1e-9), asked
            found += 1
    assert found > 10

"""Dives into few choices: what they look at is part of the space, what they find is a mapping of it, and a search that
begins with them proves what it proves without."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from einloom.cost.evaluate import evaluate
from einloom.errors import Infeasible
from einloom.problem import Budget, Guarantee, Objective, Problem
from einloom.questions import problem
from einloom.search.exact import Exact, drawing, head_starts, least_costs
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.einsums.spatial import like_axes, together
from einloom.search.exact.few_choices import Few, FewSpreads, among_few, crowd
from einloom.search.exact.fusion.floors import Floors
from einloom.search.exact.options import ExactOptions
from einloom.search.first import HURRIED
from einloom.search.method import Watcher
from einloom.search.starts import fitting
from einloom.testing.problems import draw
from optima import enumerated, same
from tiny_problems import tiny_problem

SEEDS: list[int] = json.loads((Path(__file__).parent / "tiny_seeds.json").read_text())
SMALL = "simple:dram_energy=10,glb_bits=512"
CASES = (
    ("residual-diamond", "tileflow-edge"),
    ("conv-chain:c=4,h=8,w=8,l=4,k=4", "tileflow-edge"),
    ("matmuls", "tpu-v4i"),
    ("residual-diamond", SMALL),
)


def optimum(asked: Problem, seconds: float | None) -> float | None:
    """What `exact` finds within a budget of seconds, or without one; None where there is no mapping."""
    try:
        return Exact().search(asked, Budget(seconds=seconds)).value
    except Infeasible:
        return None


def begun(asked: Problem) -> Attempt:
    attempt = Attempt(asked, ExactOptions(), Watcher(), {}, lambda: None)
    attempt.begin()
    return attempt


@pytest.mark.parametrize(("workload", "machine"), CASES)
def test_few_choices_are_choices(workload: str, machine: str) -> None:
    """Of spatial loops, whichever of several like axes takes what, and of stores; no more than asked for."""
    attempt = begun(problem(workload, machine, "edp"))
    quick = among_few(attempt, Few(60, 4, 60, 1))
    for mine, signature in zip(quick.signatures, attempt.signatures, strict=True):
        options = {option.unit: option for option in signature.units}
        classes = quick.classes[mine]
        assert isinstance(classes, FewSpreads)
        for option in mine.units:
            whole = options[option.unit]
            assert set(option.held) <= set(whole.held)
            alike = like_axes(signature, whole, [axis for axis in signature.axes if axis.fanout < whole.fanouts])
            every = {together(spread, alike) for spread in attempt.classes[signature].spreads(whole)}
            assert {together(spread, alike) for spread in classes.spreads(option)} <= every
        assert sum(map(len, quick._choices[quick.signatures.index(mine)])) <= 60


@pytest.mark.parametrize(("workload", "machine"), CASES)
def test_what_a_dive_finds_is_a_mapping_of_the_space(workload: str, machine: str) -> None:
    asked = problem(workload, machine, "edp")
    quick = among_few(begun(asked), Few(60, 4, 60, 1))
    for step in (0.5, 4.0, 100.0):
        try:
            found = quick.run(quick.bound * (1 + step))
        except Infeasible:
            continue
        assert fitting(asked, (found.mapping,)) == (found.mapping,)
        cost = evaluate(asked.workload, asked.machine, found.mapping)
        assert asked.objective.value(cost) <= found.value * asked.workload.repeat**2 * (1 + 1e-9)
        return
    raise AssertionError("nothing within a hundred times the least")


@pytest.mark.parametrize("budget", [Budget(seconds=1e6), Budget(), Budget(steps=10**12)], ids=["s", "none", "steps"])
@pytest.mark.parametrize(("workload", "machine"), [("residual-diamond", SMALL), ("matmuls", "tpu-v4i")])
def test_a_proof_is_the_same_after_dives(
    workload: str, machine: str, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a budget of seconds and without any; under one of steps, where no clock decides, there are none."""
    asked = problem(workload, machine, "edp")
    alone = Exact().search(asked)
    dived: list[float] = []
    first = head_starts.first_among_few

    def counted(search: Run, attempt: Attempt, size: int) -> None:
        first(search, attempt, size)
        dived.append(search.incumbent.value)

    monkeypatch.setattr(head_starts, "CROWDED", 0)
    monkeypatch.setattr(head_starts, "LONGEST", 1.0)
    monkeypatch.setattr(head_starts, "first_among_few", counted)
    found = Exact().search(asked, budget)
    assert len(dived) == (budget.steps is None) and all(value < np.inf for value in dived)
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert found.value == pytest.approx(alone.value, rel=1e-9)


@pytest.mark.parametrize(
    "seeds", [SEEDS[:50], pytest.param(SEEDS[50:240], marks=pytest.mark.slow)], ids=["few", "more"]
)
def test_exact_is_what_all_trees_say_after_dives(seeds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Random cascades, with so few choices that dives miss most optima."""
    few, dives = Few(2, 1, 3, 1), list[float]()
    right = head_starts.first_among_few

    def counted(search: Run, attempt: Attempt, size: int) -> None:
        right(search, attempt, size)
        dives.append(search.incumbent.value)

    monkeypatch.setattr(head_starts, "CROWDED", -1)
    monkeypatch.setattr(head_starts, "_ladder", lambda attempt, size: (few,))
    monkeypatch.setattr(head_starts, "first_among_few", counted)
    for seed in seeds:
        asked = tiny_problem(seed)
        if len(asked.workload.einsums) > 1:
            assert same(optimum(asked, seconds=1e6 if seed % 2 else None), enumerated(asked)), seed
    assert sum(value < np.inf for value in dives) >= 3


@pytest.mark.parametrize("length", [4, 5])
def test_a_network_begins_with_each_einsum_alone(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(head_starts, "_keep_unfused", lambda *_: told.append("apart"))
    monkeypatch.setattr(head_starts, "crowd", lambda _: head_starts.CROWDED + 1)
    monkeypatch.setattr(head_starts, "SHORT", 5)
    found = Exact().search(
        problem(f"matmuls:n={length},m=16,kn=16", "simple:glb_bits=2048", "energy"), Budget(seconds=100)
    )
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert told == ["apart"] * (length >= 5)


def test_the_crowd_is_counted_without_listing() -> None:
    """No axis is in full use: the measure is no less than the number of choices, and not a hundred times as large."""
    attempt = begun(problem("residual-diamond", "tileflow-edge", "edp"))
    listed = sum(
        len(option.held) * len(attempt.classes[signature].spreads(option))
        for signature in dict.fromkeys(attempt.signatures)
        for option in signature.units
    )
    assert listed <= crowd(attempt) <= 100 * listed


def test_remembered_fills_are_those_that_are_asked_for() -> None:
    """Floors of a choice of stores do not depend on which were asked before."""
    attempt = begun(problem("residual-diamond", "tileflow-edge", "edp"))
    quick = among_few(attempt, Few(60, 4, 60, 1))
    rng = Random(0)
    for signature in dict.fromkeys(quick.signatures):
        classes, option = quick.classes[signature], signature.units[0]
        known = Floors(quick.setting, classes)
        order = list(option.held)
        rng.shuffle(order)
        for held in order:
            alone = Floors(quick.setting, FewSpreads(signature, lambda: None, dict(classes.few)))
            assert np.array_equal(known.of(option, held), alone.of(option, held))


@pytest.mark.parametrize(("took", "better", "looked"), [(0.0, True, 4), (1.0, False, 4), (1.0, True, 1)])
def test_slow_looks_end_where_what_is_drawn_is_better(
    took: float, better: bool, looked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at few choices takes so much of the time for all of them and finds nothing."""
    run = Run(problem("conv-chain", "tileflow-edge", "edp"), ExactOptions(), Budget(seconds=1000), Watcher())
    seen, now = list[Few](), [0.0]

    def nothing(attempt: Attempt, few: Few) -> Attempt:
        seen.append(few)
        now[0] += took * head_starts.SLOW * head_starts.LONGEST * 1.01
        raise Infeasible("nothing is among them")

    monkeypatch.setattr(head_starts, "FEW", head_starts.FEW[:4])
    monkeypatch.setattr(head_starts, "SLIDING", head_starts.FEW[0])
    monkeypatch.setattr(head_starts, "_ladder", lambda attempt, size: head_starts.FEW)
    monkeypatch.setattr(head_starts, "among_few", nothing)
    monkeypatch.setattr(head_starts.time, "process_time", lambda: now[0])
    monkeypatch.setattr(type(run.drawing), "leads", property(lambda self: better))
    head_starts.first_among_few(run, run.attempt(), head_starts.CROWDED + 1)
    assert len(seen) == looked


def test_drawing_leads_where_it_has_the_better_mapping() -> None:
    run = Run(problem("conv-chain", "tileflow-edge", "edp"), ExactOptions(), Budget(seconds=1000), Watcher())
    assert not run.drawing.leads and run.drawing.first is not None
    drawn = run.drawing.first.draw()
    assert drawn is not None and run.drawing.leads
    run.incumbent.found(run.incumbent.solution(drawn))
    assert not run.drawing.leads


def test_drawing_goes_on_at_once_and_has_most_of_the_time_where_choices_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(head_starts, "_ladder", lambda attempt, size: ())
    for name, size, turns in (
        ("tileflow-bert-s", head_starts.CROWDED + 1, head_starts.SEARCHING),
        ("tileflow-bert-s", head_starts.CROWDED, 1.0),
        ("conv-chain", head_starts.PACKED - 1, 1.0),  # so are two convolutions
        ("conv-chain", head_starts.PACKED, head_starts.SEARCHING),
        ("matmuls", head_starts.CROWDED + 1, 1.0),  # two Einsums, which the search may prove soon
    ):
        run = Run(problem(name, "tileflow-edge", "edp"), ExactOptions(), Budget(seconds=1000), Watcher())
        run.drawing._again = float("inf")
        head_starts.first_among_few(run, run.attempt(), size)
        assert run.drawing.first is not None and run.drawing.first.hurried == turns
        assert run.drawing._again == 0.0 and run.drawing._turns(run.drawing.first) == turns
        run.drawing._drawn = drawing.FAVOURED + 1
        assert run.drawing._turns(run.drawing.first) == 1.0


def test_drawing_without_a_budget_has_a_share_as_long_as_nothing_near_the_bound_is_known() -> None:
    run = Run(problem("conv-chain", "tileflow-edge", "edp"), ExactOptions(), Budget(), Watcher())
    first, found = run.drawing.first, run.drawing
    assert first is not None and found._unhurried(first) == first.hurried < drawing.PROVING
    found._drawn = drawing.SHARED
    assert found._unhurried(first) == max(first.hurried, drawing.FURTHER) < drawing.PROVING
    first.draw()
    for share, turns in ((1.01, drawing.PROVING), (0.99, max(first.hurried, drawing.FURTHER))):
        run.incumbent.bound = first.value / drawing.FAR * share
        assert found._unhurried(first) == turns


@pytest.mark.parametrize(
    ("workload", "goal", "seconds", "turns"),
    [
        ("conv-chain", "edp", None, HURRIED),
        ("matmuls:n=24,m=64,kn=64", "energy", None, drawing.PROVING),
        ("matmuls:n=24,m=64,kn=64", "energy", 1000.0, drawing.PROVING),
        ("matmuls:n=24,m=64,kn=64", "energy", 20.0, 1.0),
        ("matmuls:n=24,m=64,kn=64", "edp", None, HURRIED),
    ],
)
def test_a_dive_into_segments_that_is_soon_done_leaves_little_to_drawing(
    workload: str, goal: str, seconds: float | None, turns: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing takes a second; so many later it has its next turn."""
    now = [0.0]
    monkeypatch.setattr(drawing.time, "process_time", lambda: now[0])
    run = Run(problem(workload, "tileflow-edge", goal), ExactOptions(), Budget(seconds), Watcher())

    def work(until: float) -> None:
        now[0] += 1.0

    monkeypatch.setattr(run.drawing.first, "work", work)
    run.drawing._at = -np.inf
    run.drawing.checkpoint()
    assert run.drawing._again == 1.0 + turns


def test_an_einsum_may_have_none_of_the_few_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """This was a ValueError."""
    workload, machine, mapspace = draw(2_000_787).files.read
    asked = Problem(workload, machine, mapspace, Objective("edp"))
    alone = Exact().search(asked).value
    monkeypatch.setattr(head_starts, "CROWDED", -1)
    assert Exact().search(asked).value == pytest.approx(alone, rel=1e-9)


def test_drawing_has_all_of_a_budget_where_an_einsum_has_too_many_spatial_choices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is searched but few choices; without seconds the search goes on."""
    asked = problem("residual-diamond", SMALL, "edp")
    proven = Exact().search(asked)
    for module, name, value in (
        (head_starts, "CROWDED", -1),
        (head_starts, "LISTED", -1),
        (head_starts, "LONGEST", 0.2),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(least_costs, "LISTED", -1)
    monkeypatch.setattr(Run, "_climb", lambda self, *known: pytest.fail("the search went on"))
    found = Exact().search(asked, Budget(seconds=1.0))
    assert found.certificate is not None
    assert found.certificate.guarantee is Guarantee.BOUNDED
    assert 0 < found.certificate.bound <= proven.value * (1 + 1e-9) <= found.value * (1 + 2e-9)
    monkeypatch.undo()
    for module, name, value in ((head_starts, "CROWDED", -1), (head_starts, "LISTED", -1), (drawing, "ALONE", 0.1)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(least_costs, "LISTED", -1)
    assert same(Exact().search(asked).value, proven.value)

"""Spatial choices within a limit, found axis by axis: none that is of use is left out (`unlisted/beginnings.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from einloom.errors import Defect, Infeasible
from einloom.problem import Problem
from einloom.questions import problems
from einloom.search.exact import ExactOptions, least_costs
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.einsums.classes import UnitOption
from einloom.search.exact.einsums.holds import chains_of
from einloom.search.exact.einsums.spatial import RankClasses
from einloom.search.exact.fusion.floors import Floors
from einloom.search.exact.model import Setting
from einloom.search.exact.numerics.pareto import FloatArray, IntArray
from einloom.search.exact.spatial_lists import Beside
from einloom.search.exact.unlisted import beginnings
from einloom.search.exact.unlisted.beginnings import Beginnings
from einloom.search.method import Watcher
from varied_problems import SOURCES, answer, same

EVEN = ("anything", "axes", "forks", "layers", "readers", "windows")
SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 60))]


def attempt(problem: Problem) -> Attempt:
    return Attempt(problem, ExactOptions(), Watcher(), {}, lambda: None)


def units(problem: Problem) -> Iterator[tuple[Setting, RankClasses, UnitOption]]:
    """Every unit of every Einsum whose spatial choices are found axis by axis, for each settled objective."""
    for asked in least_costs.settled(problem.objective):
        try:
            mine = attempt(replace(problem, objective=asked))
        except Infeasible:
            return
        for signature in dict.fromkeys(mine.signatures):
            for option in signature.units:
                classes = mine.classes[signature]
                if not any(classes.uneven):  # else all are listed
                    yield mine.setting, classes, option


def first_axes(classes: RankClasses, option: UnitOption, axes: int) -> tuple[IntArray, IntArray]:
    """What every spatial choice takes of the first axes, and what it leaves of each class."""
    rows = classes.instances(option)[:, :axes]
    return rows, np.array(classes.extents, np.int64) // rows.prod(axis=1)


@pytest.mark.parametrize("source", EVEN)
@pytest.mark.parametrize("seed", SEEDS)
def test_beginnings_cost_no_more_than_what_follows(source: str, seed: int) -> None:
    """Of every choice of stores, for every number of axes that are known."""
    for setting, classes, option in units(SOURCES[source](seed)):
        floors, count = Floors(setting, classes), len(classes.signature.tensors)
        bounds = Beginnings(setting, classes, option, lambda cost: np.ones(len(cost), bool))
        for axes in range(classes.instances(option).shape[1] + 1):
            known = beginnings._Known(bounds, *first_axes(classes, option, axes))
            for held, chains in zip(option.held, chains_of(option.held, count), strict=True):
                least = (known.operations() + sum(known.moves(t, chain) for t, chain in enumerate(chains))).T
                assert (least * (1 - beginnings.ROUNDED) <= floors.of(option, held) * (1 + 1e-12)).all()


@pytest.mark.parametrize("source", EVEN)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_within_a_limit_is_listed(source: str, seed: int) -> None:
    """All choices where all are useful; else at least those of which some choice of stores is, in the same order."""
    for setting, classes, option in units(SOURCES[source](seed)):
        every, floors = classes.spreads(option), Floors(setting, classes)
        costs = [floors.settled(option, held) for held in option.held]
        if not every or not costs:
            continue
        assert classes.number(option) == RankClasses(classes.signature).number(option) == len(every)
        for share in (1.0, 1.3, np.inf):
            most = min(cost.min() for cost in costs) * share if np.isfinite(share) else np.inf
            useful = partial(at_most, most)
            found = classes.within(option, Beginnings(setting, classes, option, useful).keep)
            needed = [spread for i, spread in enumerate(every) if any(cost[i, 0] <= most for cost in costs)]
            assert set(needed) <= set(found)
            assert list(found) == [spread for spread in every if spread in set(found)]
            assert share < 2 or len(found) == len(every)


def at_most(most: float, cost: FloatArray) -> np.ndarray:
    return np.asarray(cost[:, 0] <= most)


@pytest.mark.parametrize("source", sorted(SOURCES))
@pytest.mark.parametrize("seed", SEEDS)
def test_the_answer_is_the_same(source: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every Einsum's choices listed within limits alone."""
    problem = SOURCES[source](seed)
    before = answer(problem)
    monkeypatch.setattr(least_costs, "LISTED", 0)
    assert same(before, answer(problem))


@pytest.mark.slow
def test_choices_are_left_out() -> None:
    """Of more than a million spatial choices fewer than a hundredth are listed next to the bound, and fewer with less;
    where they are too many none is."""
    mine = attempt(problems("bert-attention", "tileflow-cloud", "edp")[0].problem)
    mine.lower_bound()
    counts = []
    for share in (0.01, 0.001, 0.004):
        within = mine._within(replace(mine.cutoff, limit=mine.bound * (1 + share)))
        counts.append([sum(map(len, classes._spreads.values())) for classes in within.values()])
    for signature, (first, least, other) in zip(mine.many, zip(*counts, strict=True), strict=True):
        every = sum(mine.many[signature].every.number(option) for option in signature.units)
        assert 0 < least <= other <= first and 100 * first < every > 1_000_000
    assert mine.listed(0.01, 100_000) < np.inf == mine.listed(0.02, 100)
    assert mine.next_limit(1e-6, 0.005) == 0.005 < mine.next_limit(0.005, 0.01) < 0.009


def unknown_take_one(
    right: Callable[..., tuple[FloatArray, FloatArray]],
) -> Callable[..., tuple[FloatArray, FloatArray]]:
    """As if axes that are not known yet took one instance each."""
    return lambda *asked, **more: (right(*asked, **more)[0],) * 2


def first_alone(right: object) -> object:
    """As if only the first choice of stores counted."""
    chosen: Callable[[Beginnings], list[object]] = right.func  # type: ignore[attr-defined]
    return property(lambda self: chosen(self)[:1])


def turned(right: Callable[[Beside, Beside], bool]) -> Callable[[Beside, Beside], bool]:
    """As if what is within a limit told what is within a higher one."""
    return lambda one, other: right(other, one)


@pytest.mark.parametrize(
    ("owner", "name", "mistake", "source", "seeds"),
    [
        (beginnings._Known, "taken", unknown_take_one, "anything", (6, 19)),
        (Beginnings, "_stores", first_alone, "axes", (0, 4, 5)),
        (Beside, "admits", turned, "axes", (4, 5, 6)),
    ],
)
def test_mistakes_lose_optima(
    owner: type,
    name: str,
    mistake: Callable[[object], object],
    source: str,
    seeds: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of forty problems of each source these show the mistake."""
    known = {seed: answer(SOURCES[source](seed)) for seed in seeds}
    monkeypatch.setattr(least_costs, "LISTED", 0)
    monkeypatch.setattr(owner, name, mistake(vars(owner)[name]))
    wrong = 0
    for seed, before in known.items():
        try:
            wrong += not same(before, answer(SOURCES[source](seed)))
        except Defect:
            wrong += 1
    assert wrong

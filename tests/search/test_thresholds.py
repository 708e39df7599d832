"""What `exact` answers does not depend on the numbers by which it goes one way or another (`thresholds.py`)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from einloom.errors import BudgetExhausted, Defect, Infeasible, SpecError
from einloom.problem import Budget, Objective
from einloom.search.exact import Exact
from einloom.search.exact.joining.completions import Completions
from einloom.search.exact.numerics import pareto
from einloom.search.exact.pmappings import expand
from einloom.search.exact.segments.chain import Chain
from einloom.search.exact.segments.neighbour_attempt import NeighbourAttempt
from einloom.search.exact.segments.segment import Segment
from thresholds import OTHERS, THRESHOLDS, changed, numbers, users
from varied_problems import SOURCES, Answer, answer, same


def differs(source: str, seed: int) -> str | None:
    """How an answer differs when thresholds do; None: it does not, or the problem is refused by name."""
    try:
        plain = answer(SOURCES[source](seed))
    except SpecError:
        return None
    return differs_from(plain, source, seed)


def differs_from(plain: Answer, source: str, seed: int) -> str | None:
    """How the answer with other thresholds differs from a known one."""
    problem, rng = SOURCES[source](seed), Random(f"thresholds {source} {seed}")
    with changed(rng, rng.choice((0.15, 0.4, 0.7, 1.0))) as chosen:
        found = answer(problem)
    return None if same(plain, found) else f"{source} {seed}: {plain} and {found} with {chosen}"


def wrongly_bounded(source: str, seed: int) -> str | None:
    """What is wrong with a search that ends after some steps: a bound above the optimum, or a value below it."""
    problem, rng = SOURCES[source](seed), Random(f"stops {source} {seed}")
    if problem.objective.name == "pareto":
        problem = replace(problem, objective=Objective("edp"))
    try:
        optimum = answer(problem)
    except SpecError:
        return None
    steps = rng.choice((1, 2, 5, 20, 50, 100, 300, 1000))
    with changed(rng, rng.choice((0.0, 0.4, 1.0))) as chosen:
        try:
            found = Exact().search(problem, Budget(steps=steps))
        except Infeasible:
            return None if optimum is None else f"{source} {seed}: none with {chosen}"
        except BudgetExhausted as ended:
            bound, value = float(ended.bound or 0.0), float("inf")
        else:
            assert found.certificate is not None
            bound, value = found.certificate.bound, found.value
    if optimum is None:
        return None if value == float("inf") else f"{source} {seed}: {value} with {chosen}"
    assert isinstance(optimum, float | int)
    right = bound <= optimum * (1 + 1e-8) and value >= optimum * (1 - 1e-8)
    return None if right else f"{source} {seed}: {bound} to {value}, not {optimum}, with {chosen}"


def test_every_number_is_a_threshold_or_something_else() -> None:
    others = {f"{place}.{name}" for place, names in OTHERS.items() for name in names}
    assert not others & {*THRESHOLDS}
    assert numbers() == others | {*THRESHOLDS}
    assert len(users()["segments.chain.SHORT"]) == 3 and len(users()["attempt.WORTH"]) == 1


ONE = [pytest.param(range(1), id="one"), pytest.param(range(1, 4), id="three more", marks=pytest.mark.slow)]
TWO = [pytest.param(range(2), id="two"), pytest.param(range(2, 4), id="two more", marks=pytest.mark.slow)]


@pytest.mark.parametrize("seeds", ONE)
@pytest.mark.parametrize("source", SOURCES)
def test_the_answer_is_the_same(source: str, seeds: range) -> None:
    assert [said for seed in seeds if (said := differs(source, seed))] == []


@pytest.mark.parametrize("seeds", TWO)
@pytest.mark.parametrize("source", SOURCES)
def test_no_bound_is_wrong(source: str, seeds: range) -> None:
    assert [said for seed in seeds if (said := wrongly_bounded(source, seed))] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 200, 25))
@pytest.mark.parametrize("source", SOURCES)
def test_the_answer_to_many_is_the_same(source: str, first: int) -> None:
    assert [said for seed in range(first, first + 25) if (said := differs(source, seed))] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 200, 50))
@pytest.mark.parametrize("source", SOURCES)
def test_no_bound_of_many_is_wrong(source: str, first: int) -> None:
    assert [said for seed in range(first, first + 50) if (said := wrongly_bounded(source, seed))] == []


def dear_segments(patch: pytest.MonkeyPatch) -> None:
    """What a segment costs at least is a tenth too much."""
    real = Segment.at_least.fget
    patch.setattr(Segment, "at_least", property(lambda self: 1.1 * real(self)))


def dear_chains(patch: pytest.MonkeyPatch) -> None:
    """What a chain of segments costs at least is a tenth too much."""
    real = Chain.bound.fget
    patch.setattr(Chain, "bound", property(lambda self: 1.1 * real(self)))


def dear_neighbours(patch: pytest.MonkeyPatch) -> None:
    """What neighbours cost at least together is a tenth too much."""
    real = NeighbourAttempt.proven
    patch.setattr(NeighbourAttempt, "proven", lambda self, known: (1.1 * bound for bound in real(self, known)))


def dear_completions(patch: pytest.MonkeyPatch) -> None:
    """What completes a cascade costs a tenth too much."""
    real = Completions._walk

    def walk(self):  # type: ignore[no-untyped-def]
        real(self)
        self.ahead = {done: 1.1 * least for done, least in self.ahead.items()}

    patch.setattr(Completions, "_walk", walk)


def last_piece(patch: pytest.MonkeyPatch) -> None:
    """Of rows that get loops piece by piece the last piece is left out."""
    real = expand.portions
    patch.setattr(expand, "portions", lambda counts, most: (lambda all: all[:-1] or all)([*real(counts, most)]))


def last_point(patch: pytest.MonkeyPatch) -> None:
    """The kernel of fronts leaves out the last row."""
    real = pareto._by_kernel

    def kernel(starts, ranked, checkpoint):  # type: ignore[no-untyped-def]
        keep = real(starts, ranked, checkpoint)
        keep[-1:] = False
        return keep

    pareto._compiled()  # loaded, whatever ran before
    patch.setattr(pareto, "_by_kernel", kernel)


MISTAKES = {
    dear_segments: ("layers", 4),
    dear_chains: ("layers", 2),
    dear_neighbours: ("ragged", 88),
    dear_completions: ("layers", 4),
    last_piece: ("groups", 6),
    last_point: ("ragged", 10),
}
"""Mistakes in ways that tiny problems do not go by themselves, each with a seed that shows it."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_far_from_tiny_problems_are_caught(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, seed = MISTAKES[mistake]
    right = answer(SOURCES[source](seed))
    mistake(monkeypatch)
    plain = answer(SOURCES[source](seed))
    assert same(plain, right)  # as it is, the problem does not notice
    with suppress(Defect):
        assert differs_from(plain, source, seed) is not None

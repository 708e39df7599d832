"""What `exact` answers does not depend on the numbers by which it goes one way or another (`thresholds.py`)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import isclose
from random import Random

import pytest

from einloom.errors import BudgetExhausted, Defect, Infeasible, SpecError
from einloom.problem import Budget, Guarantee, Objective, Problem, keeps_time
from einloom.search.exact import Exact
from einloom.search.exact.joining.completions import Completions
from einloom.search.exact.numerics import pareto
from einloom.search.exact.pmappings import expand
from einloom.search.exact.segments.chain import Chain
from einloom.search.exact.segments.neighbour_attempt import NeighbourAttempt
from einloom.search.exact.segments.segment import Segment
from einloom.testing.problems import draw
from einloom.testing.ragged import grouped_problem, ragged_problem, shared_problem, window_problem
from forked_cascades import forked
from stacked_layers import LAYERS, stacked
from thresholds import OTHERS, THRESHOLDS, changed, numbers, users

Answer = float | list[tuple[float, float]] | None


def anything(seed: int) -> Problem:
    """What files can say, of any objective."""
    workload, machine, mapspace = draw(seed).files.read
    goals = ("energy", "latency", "edp", "pareto") if keeps_time(machine) else ("energy",)
    return Problem(workload, machine, mapspace, Objective(Random(f"goal {seed}").choice(goals)))


def layers(seed: int) -> Problem:
    """Equal layers on one buffer, in any space."""
    rng = Random(f"layers {seed}")
    layer, more = rng.choice(sorted(LAYERS)), rng.choice(("", ",glb_throughput=2", ",glb_throughput=16"))
    goals = ("energy", "traffic", "edp", "edp", "latency") if more else ("energy", "traffic")
    bits, size = rng.choice((64, 128, 200, 256, 512, 1024)), rng.choice((2, 2, 3, 4))
    asked = stacked(layer, rng.choice((2, 3, 4, 5)), bits, rng.choice(goals), size, more)
    changes: dict[str, object] = {}
    for key, value in {"name": "ragged", "order": "free", "stores": "shared"}.items():
        if rng.random() < 0.2:
            changes[key] = value
    return replace(asked, mapspace=replace(asked.mapspace, max_fused_loops=rng.choice((None, None, 1, 2)), **changes))  # type: ignore[arg-type]


SOURCES: dict[str, Callable[[int], Problem]] = {
    "anything": anything,
    "forks": forked,
    "groups": grouped_problem,
    "layers": layers,
    "ragged": ragged_problem,
    "readers": shared_problem,
    "windows": window_problem,
}


def answer(problem: Problem, budget: Budget | None = None) -> Answer:
    """The optimum or the front; None: there is none."""
    try:
        found = Exact().search(problem, budget or Budget())
    except Infeasible:
        return None
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    if problem.objective.name == "pareto":
        return sorted((point.energy, point.latency) for point in found.front)
    return found.value


def same(one: Answer, other: Answer) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        pairs = [*zip(one, other, strict=False)]
        return len(one) == len(other) and all(
            isclose(a, b, rel_tol=1e-8) for p, q in pairs for a, b in zip(p, q, strict=True)
        )
    if isinstance(one, float | int) and isinstance(other, float | int):
        return isclose(one, other, rel_tol=1e-8)
    return one is other


def differs(source: str, seed: int) -> str | None:
    """How an answer differs when thresholds do; None: it does not, or the problem is refused by name."""
    problem, rng = SOURCES[source](seed), Random(f"thresholds {source} {seed}")
    try:
        plain = answer(problem)
    except SpecError:
        return None
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


@pytest.mark.parametrize("source", SOURCES)
def test_the_answer_is_the_same(source: str) -> None:
    assert [said for seed in range(4) if (said := differs(source, seed))] == []


@pytest.mark.parametrize("source", SOURCES)
def test_no_bound_is_wrong(source: str) -> None:
    assert [said for seed in range(4) if (said := wrongly_bounded(source, seed))] == []


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

    patch.setattr(pareto, "_by_kernel", kernel)


MISTAKES = {
    dear_segments: ("layers", 12),
    dear_chains: ("layers", 2),
    dear_neighbours: ("ragged", 1),
    dear_completions: ("layers", 8),
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
    assert same(answer(SOURCES[source](seed)), right)  # as it is, the problem does not notice
    with suppress(Defect):
        assert differs(source, seed) is not None

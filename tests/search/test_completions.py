"""Rule ``completions``: the join without rooms bounds what each partial cascade costs to complete."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from einloom.errors import Defect
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import ExactOptions, attempt
from einloom.search.exact.concurrent.first_attempt import attempt_for
from einloom.search.exact.drawing import Drawing
from einloom.search.exact.einsums.orders import JoinStep
from einloom.search.exact.joining import completions
from einloom.search.exact.joining.completions import Completions
from einloom.search.exact.numerics.pareto import FloatArray, IntArray
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.zoo.machine_by_name import load_machine
from optima import enumerated, optimum, same, searched
from tiny_problems import tiny_problem

SEEDS = json.loads((Path(__file__).parent / "tiny_seeds.json").read_text())[:40:4]
LAYER = (
    "A{i}[m,n] = {x}[m,d] * U{i}[d,n]",
    "B{i}[m,d] = A{i}[m,n] * V{i}[n,d]",
    "Y{i}[m,d] = add(B{i}[m,d], {x}[m,d])",
)
BRANCHES = (
    "H[m,d] = relu(X[m,d])",
    "A[m,n] = H[m,d] * U[d,n]",
    "B[m,n] = H[m,d] * V[d,n]",
    "Y[m,n] = add(A[m,n], B[m,n])",
)
RELUS = ["{}[m] = relu({}[m])".format(*pair) for pair in ("AX", "BA", "CB", "DC", "ED", "FE", "GF")]
RETURNING = (*RELUS, "Y[m] = add(G[m], D[m])")
OBJECTIVES = ("energy", "latency", "edp")


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "WORTH", 0)


LEAST, AHEAD = completions._least, Completions._ahead_of


def layers(count: int, bits: int, objective: str, sizes: dict[str, int] | None = None) -> Problem:
    """Equal layers of two products and an addition on one buffer of so many bits."""
    einsums = [text.format(i=i, x=f"Y{i - 1}" if i else "X") for i in range(count) for text in LAYER]
    workload = build_workload("layers", einsums, sizes or {"m": 4, "n": 2, "d": 2}, bits=8)
    machine = load_machine(f"simple:dram_energy=50,glb_bits={bits},glb_throughput=100")
    return Problem(workload, machine, Mapspace("ffm"), Objective(objective))


def branches(bits: int, objective: str) -> Problem:
    workload = build_workload("branches", BRANCHES, {"m": 4, "n": 2, "d": 2}, bits=8)
    machine = load_machine(f"simple:dram_energy=50,glb_bits={bits},glb_throughput=100")
    return Problem(workload, machine, Mapspace("ffm"), Objective(objective))


PROBLEMS = [
    *(layers(count, bits, objective) for count, bits in ((1, 100), (2, 200)) for objective in OBJECTIVES),
    *(branches(bits, objective) for bits in (100,) for objective in OBJECTIVES),
]


def test_it_asks_whether_to_go_on_before_every_match_of_a_state_and_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of many states with many blocks takes seconds: a budget ends it, and a drawn mapping at the bound."""
    asked, matched, since = [0], completions.matching_pairs, []

    def once(left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
        since.append(asked[0])
        return matched(left, right)

    def checkpoint(drawing: Drawing) -> None:
        asked[0] += 1

    monkeypatch.setattr(completions, "matching_pairs", once)
    monkeypatch.setattr(Drawing, "checkpoint", checkpoint)
    optimum(layers(2, 200, "energy"))
    assert len(since) > 10 and all(before < after for before, after in pairwise(since))


def test_more_joins_than_can_be_kept_are_given_up_within_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, gathered, made = layers(1, 100, "energy"), completions._gathered, list[int]()

    def counted(parts: Any, checkpoint: Callable[[], None]) -> Any:
        made.append(sum(len(left) for some in parts.values() for left, _, _ in some))
        return gathered(parts, checkpoint)

    monkeypatch.setattr(completions, "_gathered", counted)
    best = optimum(asked)
    most = max(made)
    made.clear()
    monkeypatch.setattr(completions, "MOST_EDGES", most - 1)
    assert same(optimum(asked), best) and made and max(made) < most


def test_without_the_rule_the_optimum_is_the_same() -> None:
    off = ExactOptions(completions=False)
    assert [asked for asked in PROBLEMS if not same(optimum(asked), optimum(asked, off))] == []


def test_the_optimum_is_that_of_all_trees() -> None:
    for seed in SEEDS:
        asked = tiny_problem(seed)
        found = searched(asked)
        assert same(None if found is None else found.value, enumerated(asked)), f"seed {seed}"


def test_repeated_layers_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve layers take hardly more joins than five: the first ones, one in the middle and the last."""
    steps: list[int] = []
    right = Completions._step

    def counted(self: Completions, step: JoinStep, states: completions._States, most: int) -> completions._Joins:
        steps.append(step.position)
        return right(self, step, states, most)

    monkeypatch.setattr(Completions, "_step", counted)
    many = []
    for count in (5, 12):
        steps.clear()
        assert searched(layers(count, 10**6, "energy"), ExactOptions(segments=False)) is not None
        many.append(len(set(steps)))
    assert many[1] <= many[0] + 3


def least(asked: Problem, share: float, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float]:
    """(the least that completions know of with a limit so far above the optimum, the optimum)."""
    seen = []
    right = Completions._walk

    def noted(self: Completions) -> None:
        right(self)
        seen.append(float(self.ahead[0][0, 0]))

    best = optimum(asked, ExactOptions(completions=False))
    assert best is not None
    with monkeypatch.context() as patch:
        patch.setattr(Completions, "_walk", noted)
        optimum(asked, ExactOptions(limit=best * share))
    return seen[-1], best


@pytest.mark.parametrize(("count", "bits"), [(1, 100), (2, 200), (2, 300)])
def test_without_rooms_they_are_exact(count: int, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least of all completions is the optimum where the buffer holds everything, and below it elsewhere."""
    known, best = least(layers(count, bits, "energy"), 1.2, monkeypatch)
    assert known <= best * (1 + 1e-9)
    known, best = least(layers(count, 10**6, "energy"), 1.2, monkeypatch)
    assert known == pytest.approx(best, rel=1e-12)


def proven(asked: Problem, best: float) -> tuple[list[float], float]:
    """(what a pass below four times the optimum says that everything costs at least, the value that it finds)."""
    heard, one = list[float](), attempt_for(asked, ExactOptions(), Watcher(), {}, lambda: None)
    one.lower_bound()
    return heard, one.run(best * 4, heard.append).value


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_limits_of_joins_that_find_nothing_are_bounds(half: int) -> None:
    """Ascending and at most the optimum, which is what the next limit admits."""
    seeds, sizes, goals = SEEDS[half::2], ((1, 80), (2, 80), (2, 100), (2, 150)), ("energy", "edp")
    tiny = [one for one in map(tiny_problem, seeds) if one.objective.name != "pareto" and one.workload.repeat == 1]
    tight = [layers(n, bits, goals[(i + half) % 2]) for i, (n, bits) in enumerate(sizes)]
    asked = [(one, optimum(one, ExactOptions(completions=False))) for one in (*PROBLEMS[half::2], *tight)]
    asked += [(one, enumerated(one)) for one in tiny if not one.mapspace.places]
    several = 0
    for one, best in asked:
        if best is not None:
            heard, found = proven(one, best)
            assert found == pytest.approx(best, rel=1e-9)
            assert heard == sorted(heard) and all(bound <= best * (1 + 1e-9) for bound in heard)
            several += len(heard) > 3
    assert several == len(tight)


def _most(groups: IntArray, values: FloatArray, known: FloatArray) -> FloatArray:
    return -LEAST(groups, -values, -np.where(np.isinf(known), -known, known))


def _before(self: Completions, done: int, *rest: Any) -> FloatArray:
    """What follows the Einsum before, instead of what follows this one."""
    return AHEAD(self, done, *rest) + self._rows[done.bit_length() - 1].cost.max(axis=0)


MISTAKES: dict[str, tuple[Callable[..., Any], float]] = {
    "_least": (_most, 9.0),
    "Completions._ahead_of": (_before, 1.2),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistakes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake, share = MISTAKES[name]
    workload = build_workload("returning", RETURNING, {"m": 4}, bits=8)
    asked = replace(layers(1, 10**6, "energy"), workload=workload)
    best = optimum(asked)
    assert best is not None
    monkeypatch.setattr(f"{completions.__name__}.{name}", mistake)
    assert wrong(asked, best, share, monkeypatch)


def wrong(asked: Problem, best: float, share: float, monkeypatch: pytest.MonkeyPatch) -> bool:
    """True if the search misses the optimum, contradicts itself, or is told that there is nothing so good."""
    try:
        found = optimum(asked, ExactOptions(limit=best * share))
        known, _ = least(asked, share, monkeypatch)
    except Defect:
        return True
    return found is None or known > best * (1 + 1e-6) or found > best * (1 + 1e-6)

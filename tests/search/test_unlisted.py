"""What every Einsum costs at least, before its spatial choices are listed: no tree is below, and mistakes are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from einloom.errors import Infeasible, SpecError
from einloom.problem import Budget, Objective, Problem
from einloom.questions import problem
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.bounds.relaxation import einsum_bound
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.fusion.floors import Floors
from einloom.search.exact.options import ExactOptions
from einloom.search.exact.unlisted import points as unlisted
from einloom.search.exact.unlisted import reuse
from einloom.search.exact.unlisted.points import unlisted_points
from einloom.search.method import Watcher
from einloom.testing.problems.claims import ProblemTrees
from einloom.testing.problems.drawing import draw

SEEDS = (*range(30), 178, 202, 225, 246)  # these: fewer instances work than the machine has; a window slides


def attempt(asked: Problem) -> Attempt:
    return Run(asked, ExactOptions(), Budget(), Watcher(), None).attempt()


@cache
def cases() -> tuple[tuple[Attempt, float], ...]:
    """Random problems that have everything that files can say, each with the least value of all its trees."""
    found = []
    for seed in SEEDS:
        subject = ProblemTrees(*draw(seed).files.read, seed)
        memory = subject.machine.memories[-1].name
        for goal in (Objective("latency"), Objective("edp"), Objective("traffic", memory)):
            best = subject.best(goal)
            if best is not None and not subject.mapspace.places:
                with suppress(Infeasible, SpecError):  # what `exact` refuses
                    found.append((attempt(subject.problem(goal)), best))
    return tuple(found)


def places() -> Counter[str]:
    """Where bounds are, as seen from the best tree."""
    found: Counter[str] = Counter()
    for once, best in cases():
        bound = once.begin() * once.repeats
        found["above" if bound > best * (1 + 1e-9) else "below" if bound < best * (1 - 1e-9) else "at it"] += 1
    return found


def test_no_tree_is_below() -> None:
    found = places()
    assert not found["above"] and found["at it"] > 10, found


_met: Callable[[Any, int], tuple[int, int]] = unlisted.OnUnit.met

MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "each instance reads for itself": ("_instances", lambda mine, t, top, bottom, joined=None: 1),
    "one instance works": ("_used", lambda mine, fanouts: 1),
    "no sum begins anew": ("_sums", lambda mine, t, memory, bottom: 0),
    "elements move with each iteration": (
        "met",
        lambda mine, t: (_met(mine, t)[1], _met(mine, t)[1]),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, wrong = MISTAKES[mistake]
    monkeypatch.setattr(unlisted.OnUnit, name, wrong)
    assert places()["above"] > 0


def test_that_nothing_slides_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    served = reuse._served
    reuse.by_room.cache_clear()
    monkeypatch.setattr(reuse, "_served", lambda einsum, tensor, box, slides: served(einsum, tensor, box, False))
    assert places()["above"] > 0
    reuse.by_room.cache_clear()


ZOO = (
    ("gpt3-6.7b:tokens=64", "tpu-v4i"),
    ("mobilenet-block", "nvdla"),
    ("conv-chain", "ffm-edge-vector"),
    ("tileflow-bert-s", "simple"),
)


@pytest.mark.parametrize(("workload", "machine"), ZOO)
def test_no_listed_choice_is_below(workload: str, machine: str) -> None:
    for goal in (Objective("energy"), Objective("latency")):
        once = attempt(problem(workload, machine, goal.name))
        assert once.begin() > 0
        for sig in set(once.signatures):
            quick = float(unlisted_points(once.problem.machine, sig, (goal,)).min())
            assert quick >= 0.2 * Floors(once.setting, once.classes[sig]).least()
            if goal.name == "energy":  # of the latency the search itself has no more than `Floors`
                assert quick <= einsum_bound(once.setting, once.classes[sig]) * (1 + 1e-9)


# -- choices of stores ------------------------------------------------------------------------------------------------


def over() -> tuple[int, int]:
    """Choices of stores that promise less than they keep, in some column of some spatial choice; and all."""
    wrong = number = 0
    for once, _ in cases():
        for sig in set(once.signatures):
            floors = Floors(once.setting, once.classes[sig])
            for option in sig.units if once.classes[sig] else ():
                promised = unlisted.OnUnit(once.problem.machine, sig, option).promised(once.setting.columns)
                for held, least in zip(option.held, promised, strict=True):
                    wrong += bool((floors.of(option, held) < least).any())
                    number += 1
    return wrong, number


PROMISES = ["each instance reads for itself", "one instance works", "elements move with each iteration"]


def test_no_choice_of_stores_costs_less_than_it_promises() -> None:
    wrong, number = over()
    assert not wrong and number > 300


@pytest.mark.parametrize(
    "mistake", ["each instance reads for itself", "one instance works", "elements move with each iteration"]
)
def test_promises_that_are_not_kept_are_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, wrong = MISTAKES[mistake]
    monkeypatch.setattr(unlisted.OnUnit, name, wrong)
    assert over()[0] > 0

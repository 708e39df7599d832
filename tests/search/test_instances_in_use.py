"""How many instances an Einsum can have in use at most, before its spatial choices are listed.

A variable counts once, however many axes it could be on: random Einsums on arrays of two and three axes, with windows
that reach outside, variables that an axis bars, and uneven tiles, beside all trees and beside all spatial choices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from math import prod
from random import Random

import pytest

from einloom.errors import Infeasible
from einloom.machine.files import parse_machine
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.einsums.classes import AxisSignature
from einloom.search.exact.integer import integer_bound
from einloom.search.exact.options import ExactOptions
from einloom.search.exact.unlisted import points as unlisted
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload

PADDED = "Z[a,p] = A[a,p+r-1] * W[a,r]"
EINSUMS = {
    "Z[a,b] = A[a,c] * B[c,b]": "abc",
    PADDED: "apr",
    "Z[a,p] = A[a,p+r] * W[a,r]": "apr",
    "Z[a,b] = mul(A[a], B[b])": "ab",
    "Z[a] = exp(A[a])": "a",
}
EXTENTS, KERNELS = (1, 2, 2, 3, 4, 5, 6), (2, 3)
MOST = 40  # iterations


def workload(rng: Random) -> Workload:
    text, variables = rng.choice(list(EINSUMS.items()))
    ranks = {"a": MOST + 1}
    while prod(ranks.values()) > MOST:
        ranks = {v: rng.choice(KERNELS if v == "r" else EXTENTS) for v in variables}
    shapes = {"A": [ranks["a"], ranks["p"]]} if text == PADDED else {}
    return build_workload("one", [text], ranks, bits=8, shapes=shapes)


def drawn(seed: int, goal: str = "latency") -> Problem:
    rng = Random(seed)
    axes = []
    for name in ("x", "y", "z")[: rng.choice((2, 2, 3))]:
        barred = ", only_irrelevant_to: A" if rng.random() < 0.2 else ""
        axes.append(f"{{axis: {name}, size: {rng.choice((2, 3, 4))}{barred}}}")
    text = "\n".join(
        (
            "schema: machine/1",
            "name: array",
            "levels:",
            "  - {memory: D, read_energy: 5, write_energy: 5, read_throughput: 90, write_throughput: 90}",
            f"  - {{fanout: F, axes: [{', '.join(axes)}]}}",
            "  - {compute: MAC, energy: 1, throughput: 1}",
        )
    )
    space = Mapspace("ragged" if rng.random() < 0.4 else "ffm")
    return Problem(workload(rng), parse_machine(text), space, Objective(goal))


def first(asked: Problem, best: float) -> float:
    return Run(asked, ExactOptions(), Budget(), Watcher(), None).attempt().begin()


@cache
def solved(seeds: range) -> tuple[tuple[Problem, float], ...]:
    """The problems that have a tree, each with the least value of all."""
    found = []
    for seed in seeds:
        for goal in ("latency", "edp"):
            asked = drawn(seed, goal)
            try:
                found.append((asked, Exhaustive().search(asked).value))
            except Infeasible:
                continue
    return tuple(found)


def places(seeds: range = range(60), of: Callable[[Problem, float], float] = first) -> Counter[str]:
    """Where bounds are, as seen from the best tree. of: a bound of a problem whose least value is known."""
    found: Counter[str] = Counter()
    for asked, best in solved(seeds):
        bound = of(asked, best)
        found["above" if bound > best * (1 + 1e-9) else "below" if bound < best * (1 - 1e-9) else "at it"] += 1
    return found


def test_no_tree_is_below() -> None:
    found = places()
    assert not found["above"] and found["at it"] > 0.5 * found.total(), found


@pytest.mark.slow
def test_no_tree_is_below_of_many() -> None:
    found = places(range(1000, 1800))
    assert not found["above"] and found["at it"] > 0.5 * found.total(), found


def test_what_is_missed_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each axis for itself: the bound is at the best tree less often."""
    right = places(range(170, 180))
    monkeypatch.setattr(unlisted.OnUnit, "_taken_by", lambda mine, axes, v: mine.einsum.extents[v])
    assert places(range(170, 180))["at it"] < right["at it"]


def test_no_bound_of_any_integers_is_above() -> None:
    """The relaxation to any integer tiles begins with these bounds, too."""
    found = places(of=lambda asked, best: integer_bound(asked, best, Budget())[0])
    assert not found["above"] and found["at it"] > 0.5 * found.total(), found


def one_axis(mine: unlisted.OnUnit, axes: tuple[AxisSignature, ...], v: int) -> int:
    """The instances of one axis alone."""
    return max((n for axis in axes for n in mine._takes(axis, v)), default=1)


def evenly(mine: unlisted.OnUnit, axes: tuple[AxisSignature, ...], v: int) -> int:
    """On all of the axes, but of a variable that may be cut unevenly, too, what divides it."""
    found, extent = {1}, mine.einsum.extents[v]
    for axis in axes:
        found |= {n * take for n in found for take in mine._takes(axis, v) if extent % (n * take) == 0}
    return max(found)


@pytest.mark.parametrize("mistake", [one_axis, evenly])
def test_mistakes_are_seen(mistake: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unlisted.OnUnit, "_taken_by", mistake)
    assert places()["above"] > 0


def test_it_is_what_some_spatial_choice_uses() -> None:
    """Never less than any, and in most problems with even tiles as much as one."""
    found: Counter[str] = Counter()
    for seed in range(150):
        asked = drawn(seed)
        if asked.mapspace.name == "ffm":
            attempt = Run(asked, ExactOptions(), Budget(), Watcher(), None).attempt()
            (sig,) = attempt.signatures
            (option,) = sig.units
            spreads = attempt.classes[sig].spreads(option)
            most = max(prod(n for taken in upper for n in taken) for upper in spreads)
            known = unlisted.OnUnit(asked.machine, sig, option)._used(option.fanouts)
            found["less" if known < most else "more" if known > most else "equal"] += 1
    assert not found["less"] and found["equal"] > 5 * found["more"], found

"""How many instances an Einsum can have in use at most, before its spatial choices are listed.

A variable counts once, however many axes it could be on: random Einsums on arrays of two and three axes, with windows
that reach outside, variables that an axis bars, and uneven tiles, beside all trees and beside all spatial choices.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import prod
from random import Random

import pytest

from einloom.errors import Infeasible
from einloom.machine.files import parse_machine
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact.bounds import unlisted
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.einsums.classes import AxisSignature
from einloom.search.exact.options import ExactOptions
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload

EINSUMS = (
    "Z[a,b] = A[a,c] * B[c,b]",
    "Z[a,p] = A[a,p+r-1] * W[a,r]",
    "Z[a,p] = A[a,p+r] * W[a,r]",
    "Z[a,b] = mul(A[a], B[b])",
    "Z[a] = exp(A[a])",
)
EXTENTS = (1, 2, 2, 3, 4, 5, 6)
MOST = 40  # iterations


def workload(rng: Random) -> Workload:
    text = rng.choice(EINSUMS)
    while True:
        ranks = {v: rng.choice(EXTENTS) for v in "abcp" if f"{v}" in text.replace("exp", "")}
        ranks |= {"r": rng.choice((2, 3))} if "W[" in text else {}
        if prod(ranks.values()) <= MOST:
            break
    shapes = {"A": [ranks["a"], ranks["p"]]} if "r-1" in text else {}
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


def bound(asked: Problem) -> float:
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


def places(seeds: range = range(60)) -> Counter[str]:
    """Where first bounds are, as seen from the best tree."""
    found: Counter[str] = Counter()
    for asked, best in solved(seeds):
        first = bound(asked)
        found["above" if first > best * (1 + 1e-9) else "below" if first < best * (1 - 1e-9) else "at it"] += 1
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
    right = places()
    monkeypatch.setattr(unlisted._OnUnit, "_along_one", lambda mine, axes, v: mine.einsum.extents[v])
    assert places()["at it"] < right["at it"]


def one_axis(mine: unlisted._OnUnit, axes: tuple[AxisSignature, ...], v: int) -> int:
    """The instances of one axis alone."""
    return max((n for axis in axes for n in mine._takes(axis, v)), default=1)


def evenly(mine: unlisted._OnUnit, axes: tuple[AxisSignature, ...], v: int) -> int:
    """Of a variable that may be cut unevenly, what divides it."""
    takes = [n for axis in axes for n in mine._takes(axis, v) if mine.einsum.extents[v] % n == 0]
    return max(takes, default=1)


@pytest.mark.parametrize("mistake", [one_axis, evenly])
def test_mistakes_are_seen(mistake: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unlisted._OnUnit, "_along_one", mistake)
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
            known = unlisted._OnUnit(asked.machine, sig, option)._used(option.fanouts)
            found["less" if known < most else "more" if known > most else "equal"] += 1
    assert not found["less"] and found["equal"] > 5 * found["more"], found

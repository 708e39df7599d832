"""What the room and the instances of a memory leave of reuse, before spatial choices are listed: no tree of small
problems with crowded memories is below, the rules act there, and mistakes are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest

from crowded import UNBOUNDED, crowded_machine, workload
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact, ExactOptions, least_costs
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.bounds.weighted_sums import Lines
from einloom.search.exact.einsums.classes import EinsumClass
from einloom.search.exact.numerics.pareto import FloatArray
from einloom.search.exact.unlisted import backings, reuse
from einloom.search.exact.unlisted import points as unlisted
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Watcher

WORKLOADS = (
    ("Z[m,n] = A[m,k] * B[k,n]", "m=4 n=4 k=4"),
    ("Z[m,n] = A[m,k] * B[k,n]", "m=2 n=6 k=4"),
    ("O[p,k] = I[p+r,c] * W[k,r,c]", "p=4 r=3 k=2 c=2"),
    ("O[p] = I[2*p+r-1] * W[r]", "p=4 r=3"),
    ("O[p,q] = I[p+r,q+s] * W[r,s]", "p=4 q=2 r=2 s=2"),
    ("Y[p,k] = X[p+r] * W[r,k]; Z[q] = Y[q+s,k] * V[s,k]", "p=5 q=4 r=2 s=2 k=2"),
    ("A[m,l] = Q[m,k] * K[l,k]; B[m] = A[m,l]; C[m,l] = A[m,l] * B[m]", "m=4 l=4 k=2"),
    ("Y[m,n] = A[m,k] * B[k,n]; Z[m,j] = Y[m,n] * C[n,j]", "m=4 n=2 k=2 j=4"),
)
UNEVEN = (
    ("Z[m,n] = A[m,k] * B[k,n]", "m=5 n=3 k=4"),
    ("Z[m,n] = A[m,k] * B[k,n]", "m=7 n=3 k=3"),
    ("O[p,k] = I[p+r,c] * W[k,r,c]", "p=5 r=2 k=3 c=3"),
    ("A[m,l] = Q[m,k] * K[l,k]; B[m] = A[m,l]; C[m,l] = A[m,l] * B[m]", "m=5 l=3 k=3"),
    ("Y[m,n] = A[m,k] * B[k,n]; Z[m,j] = Y[m,n] * C[n,j]", "m=5 n=3 k=2 j=3"),
    ("Y[p,k] = X[p+r] * W[r,k]; Z[q] = Y[q+s,k] * V[s,k]", "p=5 q=4 r=2 s=2 k=3"),
    ("Y[m,n] = A[m,k] * B[k,n]; Z[m,j] = Y[m,n] * C[n,j]", "m=3 n=5 k=3 j=2"),
)
TINY = (
    ("Z[m,n] = A[m,k] * B[k,n]", "m=2 n=2 k=2"),
    ("Z[n] = A[k] * B[k,n]", "n=3 k=2"),
    ("O[p] = I[p+r] * W[r]", "p=4 r=2"),
    ("O[p] = I[2*p+r-1] * W[r]", "p=2 r=3"),
)


def asked(seed: int, among: Sequence[tuple[str, str]] = WORKLOADS, space: str = "ffm") -> Problem:
    rng = Random(seed)
    text, sizes = among[seed % len(among)]
    goal = rng.choice((Objective("energy"), Objective("latency"), Objective("edp"), Objective("traffic", "MM")))
    return Problem(workload(text, sizes), crowded_machine(rng), Mapspace(name=space), goal)


RAGGED = (0, 1, 2, 7, 8, 14, 15, 16, 21, 29, 30, 35, 43, 53, 54, 63, 64, 67, 71, 84, 85, 90, 99, 113, 155, 160, 223)
SEEDS = (0, 3, 8, 12, 16, 23, 31, 36, 42, 45, 59, 189, 205)
MORE = range(300)


def case(problem: Problem, value: float) -> tuple[Attempt, float]:
    return Attempt(problem, ExactOptions(), Watcher(), {}, lambda: None), value


@cache
def cases(
    seeds: Sequence[int] = SEEDS, among: Sequence[tuple[str, str]] = WORKLOADS, space: str = "ffm"
) -> tuple[tuple[Attempt, float], ...]:
    """Problems with their optima, by a search that uses no bound."""
    problems = (asked(seed, among, space) for seed in seeds)
    return tuple(case(problem, Exact(UNBOUNDED).search(problem).value) for problem in problems)


def places(some: Sequence[tuple[Attempt, float]]) -> Counter[str]:
    """Where bounds are that are known before spatial choices are listed, as seen from the optimum."""
    reuse.by_room.cache_clear()
    reuse.by_instances.cache_clear()
    found: Counter[str] = Counter()
    for attempt, value in some:
        attempt.agreed = 0.0
        bound = attempt.begin()
        found["above" if bound > value * (1 + 1e-9) else "below" if bound < value * (1 - 1e-9) else "at it"] += 1
    return found


def test_no_mapping_is_below() -> None:
    found = places(cases())
    assert not found["above"] and found["at it"] >= 5, found


@pytest.mark.slow
def test_no_mapping_of_many_is_below() -> None:
    found = places(cases(MORE))
    assert not found["above"] and found["at it"] > 100, found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_no_tree_is_below(seed: int) -> None:
    problem = asked(seed, TINY)
    assert not places([case(problem, Exhaustive().search(problem).value)])["above"]


def unlimited(einsum: EinsumClass, tensors: tuple[int, ...], *_: object) -> FloatArray:
    return np.full((1, len(tensors)), inf)


RULES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "room": (unlisted, "by_room", unlimited),
    "instances": (unlisted, "by_instances", unlimited),
    "backings": (least_costs, "barred", lambda workload, signatures, room: [frozenset()] * len(signatures)),
    "points": (least_costs, "MANY_RATIOS", ()),
}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_raises_some_bound(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [attempt for attempt, _ in cases()]

    def bounds() -> list[float]:
        for attempt in mine:
            attempt.agreed = 0.0
        return [attempt.begin() for attempt in mine]

    before = bounds()
    monkeypatch.setattr(*RULES[rule])
    after = bounds()
    assert any(b < a * (1 - 1e-9) for a, b in zip(before, after, strict=True))
    assert all(b <= a * (1 + 1e-9) for a, b in zip(before, after, strict=True))


_held, _meets, _served = reuse._held, reuse._meets, reuse._served
_room, _instances = unlisted.by_room, unlisted.by_instances

MISTAKES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "an element less of room": (unlisted, "by_room", lambda *one: _room(*one[:-1], one[-1] - 1)),
    "half of the instances": (unlisted, "by_instances", lambda e, t, v, most: _instances(e, t, v, max(1, most // 2))),
    "tiles one larger": (reuse, "_held", lambda *one: _held(*one) + 1),
    "windows serve once": (reuse, "_meets", lambda e, box, window, slides: np.ones(len(box))),
    "twice at most": (reuse, "_served", lambda *one: np.minimum(_served(*one), 2)),
    "every result is waited for": (backings, "_needed", lambda workload, names: frozenset(names)),
    "no loop above what is shared": (backings, "whole", lambda workload, signatures, t: workload.tensor(t).size),
    "the largest corner": (
        Lines,
        "value",
        lambda mine, bounds: (
            mine.cutoff.value(mine._corners(bounds)[0]).max(keepdims=True)
            if mine.weights
            else mine.cutoff.value(bounds)
        ),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = cases()
    monkeypatch.setattr(*MISTAKES[mistake])
    above = places(known)["above"]
    reuse.by_room.cache_clear()
    reuse.by_instances.cache_clear()
    assert above > 0


# ---- uneven tiles ---------------------------------------------------------------------------------------------------

FEW_BOXES = 24  # so few that extents of these sizes fall into cells


@pytest.mark.parametrize("boxes", [FEW_BOXES, reuse.BOXES])
def test_no_uneven_mapping_is_below(boxes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    known = cases(RAGGED, UNEVEN, "ragged")
    monkeypatch.setattr(reuse, "BOXES", boxes)
    found = places(known)
    assert not found["above"] and found["at it"] >= 5, found


@pytest.mark.slow
def test_no_uneven_mapping_of_many_is_below(monkeypatch: pytest.MonkeyPatch) -> None:
    known = cases(range(400), UNEVEN, "ragged")
    assert not places(known)["above"]
    monkeypatch.setattr(reuse, "BOXES", FEW_BOXES)
    assert not places(known)["above"]


UNEVEN_MISTAKES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "all loops below what is backed": (reuse, "_below", lambda einsum, tensor: frozenset(range(len(einsum.extents)))),
    "lower corners": (reuse, "_tightened", lambda e, stores, room, cut, low, high: low.astype(float)),
    "an element less of room": MISTAKES["an element less of room"],
    "half of the instances": MISTAKES["half of the instances"],
}


@pytest.mark.parametrize("mistake", UNEVEN_MISTAKES)
def test_uneven_mistakes_are_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = cases(RAGGED, UNEVEN, "ragged")
    monkeypatch.setattr(reuse, "BOXES", FEW_BOXES)
    monkeypatch.setattr(*UNEVEN_MISTAKES[mistake])
    above = places(known)["above"]
    reuse.by_room.cache_clear()
    reuse.by_instances.cache_clear()
    assert above > 0

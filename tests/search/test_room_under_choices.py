"""What the room of memories leaves of reuse under one spatial choice (`fusion/room_floors.py`): no row of a choice
costs less than is said of it, the search finds what it finds without, and mistakes are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

from crowded import UNBOUNDED, workload
from einloom.errors import Defect, Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact, ExactOptions, least_costs
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.einsums.classes import UnitOption
from einloom.search.exact.einsums.holds import Placement
from einloom.search.exact.fusion import room_floors
from einloom.search.exact.fusion.explore import Explorer
from einloom.search.exact.fusion.floors import Floors
from einloom.search.exact.fusion.room_floors import RoomFloors
from einloom.search.exact.unlisted import reuse
from einloom.search.method import Watcher
from varied_problems import SOURCES, answer, same

WORKLOADS = (
    ("O[p,k] = I[p+r,c] * W[k,r,c]", "p=4 r=3 k=2 c=2"),
    ("O[p,q] = I[p+r,q+s] * W[r,s]", "p=4 q=2 r=2 s=2"),
    ("O[p] = I[2*p+r-1] * W[r]", "p=4 r=3"),
    ("O[p,k] = I[2*p+r-1] * W[k,r]", "p=4 r=3 k=2"),
    ("Y[p,k] = X[p+r] * W[r,k]; Z[q] = Y[q+s,k] * V[s,k]", "p=5 q=4 r=2 s=2 k=2"),
    ("Y[p,k] = X[p+r] * W[r,k]; Z[p,j] = Y[p,k] * V[k,j]", "p=4 r=2 k=2 j=4"),
    ("Z[m,n] = A[m,k] * B[k,n]", "m=4 n=6 k=4"),
    ("Y[m,n] = A[m,k] * B[k,n]; Z[m,j] = Y[m,n] * C[n,j]", "m=4 n=2 k=2 j=4"),
    ("A[m,l] = Q[m,k] * K[l,k]; B[m] = A[m,l]; C[m,l] = A[m,l] * B[m]", "m=4 l=4 k=2"),
)
SEEDS = [*range(9), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(9, 400))]
FEW = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))]


def array(rng: Random) -> Machine:
    """A memory with everything, an array of one or two axes, and a buffer of a few elements in each instance; perhaps
    one for all of them, too, behind another fanout."""

    def memory(name: str, size: int | None, cost: int) -> Memory:
        rate, writes = rng.choice((None, 1.0, 2.0, 8.0)), rng.choice((cost, cost + 1))
        return Memory(name, size, cost, writes, 1, rate, rate, ports=rng.choice(("shared", "separate")))

    levels: list[Any] = [memory("MM", None, rng.choice((5, 20)))]
    if rng.random() < 0.4:
        levels += [Fanout("g", (Axis("z", 2),))] if rng.random() < 0.5 else []
        levels.append(memory("GLB", rng.choice((12, 30, 100)), rng.choice((2, 4))))
    axes = [Axis("x", rng.choice((2, 3, 4))), Axis("y", 2)][: rng.choice((1, 2))]
    levels += [Fanout("f", tuple(axes)), memory("RF", rng.randint(2, 7), rng.choice((0, 1)))]
    if rng.random() < 0.3:
        levels.append(Fanout("e", (Axis("w", 2),)))
    return Machine("m", (*levels, ComputeUnit("MAC", 1.0, rng.choice((0.0, 1.0)))))


def asked(seed: int) -> Problem:
    rng = Random(f"room under choices {seed}")
    goal = rng.choice((Objective("energy"), Objective("latency"), Objective("edp"), Objective("traffic", "MM")))
    return Problem(workload(*WORKLOADS[seed % len(WORKLOADS)]), array(rng), Mapspace(), goal)


def choices(problem: Problem) -> Iterator[tuple[Attempt, Floors, UnitOption, Placement]]:
    """Every choice of stores of every Einsum."""
    attempt = Attempt(problem, ExactOptions(), Watcher(), {}, lambda: None)
    for signature in dict.fromkeys(attempt.signatures):
        floors = Floors(attempt.setting, attempt.classes[signature])
        for option in signature.units:
            yield from ((attempt, floors, option, held) for held in option.held)


def rows_of(attempt: Attempt, floors: Floors, option: UnitOption, held: Placement, spread: int) -> np.ndarray:
    """What the complete rows of one choice cost, whatever that is [rows, settled columns]."""
    rules = replace(attempt.setting.rules, limits=False)
    limits = np.full(len(attempt.setting.columns), np.inf)
    explorer = Explorer(replace(attempt.setting, rules=rules), floors.classes, limits, {})
    good = np.zeros((len(option.held), len(floors.classes.spreads(option))), bool)
    good[option.held.index(held), spread] = True
    sizes = {one.unit: (len(one.held), len(floors.classes.spreads(one))) for one in floors.classes.signature.units}
    explorer.wanted = {**{unit: np.zeros(size, bool) for unit, size in sizes.items()}, option.unit: good}
    blocks = [block.cost for block in explorer.blocks()]
    return np.concatenate(blocks) if blocks else np.zeros((0, len(limits)))


def backs_inside(floors: Floors, held: Placement) -> bool:
    """True if an intermediate lives in an inner memory: a row does not show whether its tile fits beside others."""
    tensors = floors.classes.signature.tensors
    return any(tensor.intermediate and t not in held[0] for t, tensor in enumerate(tensors))


def compared(seed: int, rng: Random, most: int = 60) -> Counter[str]:
    """How the least rows of some choices of a problem lie to what is said of them."""
    found: Counter[str] = Counter()
    apart = (one for one in choices(asked(seed)) if not backs_inside(one[1], one[3]))
    every = [(*one, spread) for one in apart for spread in range(len(one[1].classes.spreads(one[2])))]
    for attempt, floors, option, held, spread in rng.sample(every, min(most, len(every))):
        close = floors.settled_close(option, held, np.array([spread]))[0]
        found["raised"] += bool((close > floors.settled(option, held)[spread] * (1 + 1e-9)).any())
        rows = rows_of(attempt, floors, option, held, spread)
        if len(rows):
            least = rows.min(axis=0)
            found["below"] += bool((least < close * (1 - 1e-9)).any())
            found["at it"] += bool((least <= close * (1 + 1e-9)).all())
        elif np.isinf(close).any():
            found["nothing fits"] += 1
    return found


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room is asked for all Einsums."""
    monkeypatch.setattr(room_floors, "MANY", 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_costs_less(seed: int) -> None:
    assert not compared(seed, Random(seed))["below"]


def test_it_says_something() -> None:
    """Of some choices it is the exact cost, of others it says that nothing fits, and it raises many."""
    found = sum((compared(seed, Random(seed), 30) for seed in range(12)), Counter())
    assert found["raised"] > 30 and found["at it"] > 40 and not found["below"], found


@cache
def optimum(seed: int) -> float | None:
    """By a search that uses no bound."""
    try:
        return Exact(UNBOUNDED).search(asked(seed)).value
    except Infeasible:
        return None


@pytest.mark.parametrize("seed", SEEDS)
def test_the_optimum_is_the_same(seed: int) -> None:
    try:
        value = Exact().search(asked(seed)).value
    except Infeasible:
        assert optimum(seed) is None
    else:
        assert value == pytest.approx(optimum(seed), rel=1e-9)


@pytest.mark.parametrize("source", sorted(SOURCES))
@pytest.mark.parametrize("seed", FEW)
def test_the_answer_is_the_same(source: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it is asked of no Einsum, with all lists or with lists within limits."""
    problem = SOURCES[source](seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("einloom.search.exact.fusion.floors.has_room_floors", lambda classes: False)
        before = answer(problem)
    assert same(before, answer(problem))
    monkeypatch.setattr(least_costs, "LISTED", 0)
    assert same(before, answer(problem))


_fits, _served = reuse._fitting, reuse._served
_uses, _left = RoomFloors._of_shares, RoomFloors._left


def _halved(uses: np.ndarray | None) -> np.ndarray | None:
    return None if uses is None else uses / 2


MISTAKES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "an element less of room": (reuse, "_fitting", lambda *one: _fits(*one[:-1], one[-1] - 1)),
    "windows serve once": (reuse, "_meets", lambda left, box, window, slides: np.ones(len(box))),
    "nothing slides": (reuse, "_served", lambda left, tensor, box, slides: _served(left, tensor, box, False)),
    "half of the uses": (RoomFloors, "_of_shares", lambda *one: _halved(_uses(*one))),
    "instances have less": (RoomFloors, "_left", lambda *one: np.maximum(_left(*one) // 2, 1)),
    "the dearest way": (room_floors, "_best", lambda total: total.max(axis=1)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MISTAKES[mistake])
    assert any(compared(seed, Random(seed), 200)["below"] for seed in range(5, 18))


def test_a_mistake_loses_an_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MISTAKES["half of the uses"])

    def lost(seed: int) -> bool:
        try:
            return bool(Exact().search(asked(seed)).value > optimum(seed) * (1 + 1e-9))
        except (Infeasible, Defect):
            return optimum(seed) is not None

    assert any(lost(seed) for seed in range(27))


def test_where_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where windows slide, of fewer choices than elsewhere; not of uneven tiles, copies, or stores that another Einsum
    may fill."""
    monkeypatch.setattr(room_floors, "MANY", 200_000)
    assert not any(floors.closer for seed in range(9) for _, floors, *_ in choices(asked(seed)))
    monkeypatch.setattr(room_floors, "SLIDING", 0)
    asks = [any(floors.closer for _, floors, *_ in choices(asked(seed))) for seed in range(len(WORKLOADS))]
    assert asks == [True] * 6 + [False] * 3
    uneven = replace(asked(1), mapspace=Mapspace(name="ragged"))
    assert not any(floors.closer for _, floors, *_ in choices(uneven) if any(floors.classes.uneven))

"""`exact` in the space `ragged` finds the best of all trees of cascades, and planted mistakes are caught."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from bench.ragged_problems import ragged_problem

from cases import cascade, machine
from einloom.errors import Defect, EinloomError, Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Guarantee, Objective, Problem
from einloom.search.exact import Exact, ExactOptions, explored_rows
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.bounds import arc_consistency
from einloom.search.exact.einsums import spatial
from einloom.search.exact.fusion import explore, tilings
from einloom.search.exact.fusion.explore import Explorer
from einloom.search.exact.joining import completions, join
from einloom.search.exact.numerics import uneven
from einloom.search.exact.prices import traffic
from einloom.workload.selectors import selector
from optima import best_of_all, every_cost, optimum, same, searched, staircase
from uneven_pairs import halves

RAGGED = Mapspace("ragged")
GOALS = (Objective("energy"), Objective("latency"), Objective("edp"))
SEEDS: list[tuple[int, float | None, bool]] = json.loads((Path(__file__).parent / "ragged_seeds.json").read_text())
"""Small problems by seed, the least value of all their trees, and whether that is uneven: of ``bench.uneven``."""

KEPT = (2833, 3057)
"""Seeds of which the optimum keeps a tile further in than every backing store, with perfect tiles as well."""


def pair(size: int, lanes: int, m: int = 5) -> Problem:
    """Two Einsums that hand over m values through a buffer; the second one's lanes are behind it, and its weight is
    fetched again for every tile."""
    workload = cascade("E0: T[m] = exp(A[m])\nE1: Z[m,q] = T[m] * C[q]", {"m": m, "q": 2})
    buffer = Memory("GLB", size, 1.0, 1.0, 1, 32.0, 32.0, may=selector("T | C"), must=selector("T | C"))
    axis = Axis("X", lanes, multicast=selector("all"), reduce=selector("all"), use="full")
    outer = Memory("DRAM", None, 10.0, 10.0, 1, 64.0, 64.0)
    return Problem(
        workload, machine(outer, buffer, Fanout("F", (axis,)), ComputeUnit("MAC", 1.0, 1.0)), RAGGED, GOALS[2]
    )


def of(problem: Problem, goal: Objective) -> Problem:
    return replace(problem, objective=goal)


PAIRS = {f"{size} bits, {lanes} lanes": pair(size, lanes) for size, lanes in ((5, 2), (6, 2), (5, 3))}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "5 bits, 2 lanes" else ()) for name in PAIRS]
)
def test_exact_equals_all_trees(name: str) -> None:
    for goal in GOALS:
        asked = of(PAIRS[name], goal)
        assert same(optimum(asked), best_of_all(asked)), goal


def test_whole_fronts_of_all_trees() -> None:
    asked = of(PAIRS["6 bits, 2 lanes"], Objective("pareto"))
    found = searched(asked)
    assert found is not None
    points = [(point.energy, point.latency) for point in found.front]
    assert points == [pytest.approx(p) for p in staircase(every_cost(replace(asked, objective=Objective("energy"))))]


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_exact_finds_what_all_trees_say(half: int) -> None:
    some = [(seed, value) for i, (seed, value, pays) in enumerate(SEEDS) if pays or i % 4 == 0][half::2]
    found = {seed: (optimum(ragged_problem(seed)), value) for seed, value in some}
    assert [seed for seed, (exact, every) in found.items() if not same(exact, every)] == []


@pytest.mark.parametrize("seed", KEPT)
@pytest.mark.parametrize("space", ["ffm", "ragged"])
def test_tiles_kept_further_in_than_every_backing_store(seed: int, space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ragged_problem(seed)
    problem = replace(found, mapspace=replace(found.mapspace, name=space))
    least = best_of_all(problem)
    assert same(optimum(problem), least)
    monkeypatch.setattr(Explorer, "_may_keep", lambda *_: False)
    try:
        missed = not same(optimum(problem), least)
    except Defect as defect:  # a mapping that was drawn meanwhile is below what was proven
        missed = "is above the value" in str(defect)
    assert missed


def two_weights(size: int) -> Problem:
    """Two Einsums that hand over a value at a time; the weights of both pay in a memory further in of so many bits."""
    workload = cascade("E0: T[m] = A[m,n] * B[n]\nE1: Z[m,n] = T[m] * C[n]", {"m": 3, "n": 2})
    outer = Memory("DRAM", None, 100.0, 100.0, 1, 8.0, 8.0)
    buffer = Memory("GLB", 2, 10.0, 10.0, 1, 8.0, 8.0, may=selector("T"), must=selector("T"))
    inner = Memory("LB", size, 0.1, 0.1, 1, 8.0, 8.0, may=selector("B | C"))
    return Problem(workload, machine(outer, buffer, inner, ComputeUnit("MAC", 1.0, 1.0)), Mapspace("ffm"), GOALS[0])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_room_of_tiles_that_two_einsums_keep(size: int) -> None:
    """Below four bits the memory holds the weights of one Einsum, while the other one's pass."""
    assert same(optimum(two_weights(size)), best_of_all(two_weights(size)))


def test_room_that_is_not_followed_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explored_rows, "keeps", lambda *_: False)
    with pytest.raises(Defect, match="LB holds 2 bits"):
        searched(two_weights(2))


@pytest.mark.parametrize("seed", [seed for seed, _, pays in SEEDS if pays][:5])
def test_what_all_trees_say(seed: int) -> None:
    problem = ragged_problem(seed)
    perfect = optimum(replace(problem, mapspace=replace(problem.mapspace, name="ffm")))
    least = best_of_all(problem)
    assert least is not None and (perfect is None or least < perfect * (1 - 1e-9))
    assert same(optimum(problem), least)


def apart(*inner: Fanout | Memory, m: int, n: int) -> Problem:
    """An outer product, and a second Einsum that takes it from DRAM."""
    workload = cascade("E0: T[m,n] = A[m] * B[n]\nE1: Z[m,n] = exp(T[m,n])", {"m": m, "n": n})
    outer = Memory("DRAM", None, 10.0, 10.0, 1, 2.0, 2.0)
    return Problem(workload, machine(outer, *inner, ComputeUnit("MAC", 1.0, 1.0)), RAGGED, GOALS[0])


def lanes(size: int, joins: str) -> Fanout:
    return Fanout("F", (Axis("X", size, multicast=selector(joins), reduce=selector(joins), use="full"),))


def store(name: str, size: int, energy: float, speed: float) -> Memory:
    return Memory(name, size, energy, energy, 1, speed, speed, backs=selector("nothing"))


LARGER = {
    "halves": halves(16),
    "tight": halves(12),
    "local": halves(15, 17, True),
    "small": pair(6, 5, 7),
    "apart": apart(store("GLB", 7, 1.0, 4.0), lanes(3, "all"), m=10, n=7),
    "passes": apart(lanes(2, "nothing"), store("LB", 3, 0.5, 8.0), m=10, n=3),
}


def trips_as_key(patch: pytest.MonkeyPatch) -> None:
    """Loops agree if they have as many trips."""
    pairs, numbered = join.matching_pairs, explore.numbered

    def trips(tiles):  # type: ignore[no-untyped-def]
        return -(-17 // np.maximum(tiles, 1))

    for module in (join, completions):
        patch.setattr(module, "matching_pairs", lambda left, right: pairs(trips(left), trips(right)))
    for module in (explore, arc_consistency):
        patch.setattr(module, "numbered", lambda tiles, *known: numbered(trips(tiles), *known))


def without_multiples(patch: pytest.MonkeyPatch) -> None:
    """Tied variables have the smallest tile of every number of trips only."""

    def smallest(extent, tiling):  # type: ignore[no-untyped-def]
        return uneven.smallest_tiles(extent)

    patch.setattr(tilings, "tile_list", smallest)
    patch.setattr(spatial, "tile_list", smallest)


def empty_relaxation(patch: pytest.MonkeyPatch) -> None:
    """The relaxation never finds anything, so that rounded tiles are taken for all; tiles are hardly rounded."""

    def nothing(self, limit, bounded):  # type: ignore[no-untyped-def]
        raise Infeasible("nothing")

    patch.setattr(uneven, "ROUND", 1)
    uneven.tile_list.cache_clear()
    patch.setattr(Attempt, "towards_least", nothing)


def unbalanced_as_balanced(patch: pytest.MonkeyPatch) -> None:
    """Every spatial loop is taken for balanced."""
    every = lambda extent, n, tile: np.ones(np.broadcast(extent, n, tile).shape, bool)  # noqa: E731
    patch.setattr(traffic, "balanced", every)
    patch.setattr(tilings, "balanced", every)


def edge_as_occupancy(patch: pytest.MonkeyPatch) -> None:
    """The last tile is taken for the room that a store takes."""
    real = traffic.Prices.tile_bits

    def bits(self, tensor, x, memory, backing=False):  # type: ignore[no-untyped-def]
        return real(self, tensor, np.where(self.uneven & (self.whole % x > 0), self.whole % x, x), memory, backing)

    whole = join.Joiner._tile

    def tile(self, live, tiles):  # type: ignore[no-untyped-def]
        return whole(self, live, np.where(17 % tiles > 0, 17 % tiles, tiles))

    patch.setattr(traffic.Prices, "tile_bits", bits)
    patch.setattr(join.Joiner, "_tile", tile)


def trips_rounded_down(patch: pytest.MonkeyPatch) -> None:
    """The last, smaller tile is not counted."""
    real = traffic.Prices._entries

    def entries(self, part, d, x, spread, child, at, rims):  # type: ignore[no-untyped-def]
        return np.maximum(real(self, part, d, x, spread, child, at, rims) - (self.whole[d] % x > 0), 1)

    patch.setattr(traffic.Prices, "_entries", entries)


MISTAKES = (
    trips_as_key,
    without_multiples,
    empty_relaxation,
    unbalanced_as_balanced,
    edge_as_occupancy,
    trips_rounded_down,
)


@cache
def right() -> dict[tuple[str, Objective], float | None]:
    return {(name, goal): optimum(of(LARGER[name], goal)) for name in LARGER for goal in GOALS}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda f: f.__name__)
def test_planted_mistakes_are_caught(mistake, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    known = right()
    mistake(monkeypatch)
    caught = 0
    for (name, goal), value in known.items():
        try:
            caught += not same(optimum(of(LARGER[name], goal)), value)
        except (EinloomError, AssertionError):
            caught += 1
    uneven.tile_list.cache_clear()
    assert caught


def test_starts_limits_and_budgets() -> None:
    asked = of(LARGER["halves"], GOALS[2])
    found = searched(asked)
    assert found is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert "ragged" in found.certificate.mapspace
    assert same(optimum(asked, ExactOptions(start=(found.mapping,))), found.value)
    assert same(optimum(asked, ExactOptions(limit=found.value)), found.value)
    assert optimum(asked, ExactOptions(limit=found.value * 0.999)) is None
    assert same(optimum(asked, ExactOptions(incumbent=False)), found.value)
    stopped = Exact().search(asked, Budget(steps=60))
    assert stopped.certificate.bound <= found.value <= stopped.value


def test_ragged_is_never_worse_than_perfect() -> None:
    for name in LARGER:
        for goal in GOALS:
            perfect = optimum(replace(of(LARGER[name], goal), mapspace=Mapspace()))
            value = right()[name, goal]
            assert value is not None and (perfect is None or value <= perfect * (1 + 1e-9))

"""`exact` in the space `ragged` finds the best of all its trees, and planted mistakes are caught."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cases import cascade, machine
from einloom.errors import EinloomError
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact.numerics import multiples, uneven
from einloom.search.exact.prices import traffic
from einloom.workload.selectors import selector
from optima import best_of_all, optimum, same

RAGGED = Mapspace("ragged")
GOALS = (Objective("energy"), Objective("latency"), Objective("edp"))


def buffered(size: int, *inner: Fanout | Memory) -> Machine:
    """A machine whose buffer, and what is behind it, can be the bottleneck."""
    unit = ComputeUnit("MAC", 1.0, 1.0)
    return machine(
        Memory("DRAM", None, 10.0, 10.0, 1, 2.0, 2.0), Memory("GLB", size, 1.0, 1.0, 1, 4.0, 4.0), *inner, unit
    )


def spread(size: int, multicast: str = "all", reduce: str = "all", use: str = "any") -> Fanout:
    axis = Axis("X", size, multicast=selector(multicast), reduce=selector(reduce), use=use)  # type: ignore[arg-type]
    return Fanout("F", (axis,))


LOCAL = Memory("LB", 3, 0.5, 0.5, 1, 8.0, 8.0)
PROBLEMS = {
    "outer product": (cascade("E: Z[m,n] = A[m] * B[n]", {"m": 3, "n": 3}), buffered(3)),
    "reduction": (cascade("E: Z[m] = A[m,k] * B[k]", {"m": 1, "k": 5}), buffered(4)),
    "spatial": (cascade("E: Z[m] = A[m] * B[m]", {"m": 5}), buffered(6, spread(3))),
    "sums apart": (cascade("E: Z[m] = A[m,k] * B[k]", {"m": 1, "k": 5}), buffered(4, spread(3, "nothing", "nothing"))),
    "in full": (cascade("E: Z[m] = A[m,k] * B[k]", {"m": 5, "k": 1}), buffered(7, spread(4, use="full"))),
    "put off": (cascade("E: Z[m] = A[m,k] * B[k]", {"m": 3, "k": 1}), buffered(4, spread(2), LOCAL)),
}
LARGER = {  # for mistakes: compared with the search as it is
    "tight": (cascade("E: Z[m,n] = A[m] * B[n]", {"m": 11, "n": 2}), buffered(9, spread(4), LOCAL)),
    # tiles of four take less time and energy than any that fit, and their last tile of three would fit
    "room": (cascade("E: Z[m,n] = A[m] * B[n]", {"m": 7, "n": 5}), buffered(4)),
    "lanes": (cascade("E: Z[m,n] = A[m] * B[n]", {"m": 10, "n": 7}), buffered(7, spread(3, use="full"))),
    "passes": (
        cascade("E: Z[m,n] = A[m] * B[n]", {"m": 10, "n": 3}),
        machine(Memory("DRAM", None, 10.0, 10.0), spread(2, "nothing", "nothing", "full"), LOCAL, ComputeUnit("MAC")),
    ),
}


@cache
def problem(name: str, goal: Objective) -> Problem:
    workload, on = {**PROBLEMS, **LARGER}[name]
    return Problem(workload, on, RAGGED, goal)


@pytest.mark.parametrize("name", PROBLEMS)
def test_exact_equals_all_trees(name: str) -> None:
    for goal in GOALS:
        asked = problem(name, goal)
        assert same(optimum(asked), best_of_all(asked)), goal


def gains() -> list[tuple[str, Objective]]:
    """The problems of which an uneven mapping is the optimum."""
    found = []
    for name in PROBLEMS:
        for goal in GOALS:
            perfect = optimum(replace(problem(name, goal), mapspace=Mapspace()))
            ragged = optimum(problem(name, goal))
            assert ragged is not None and perfect is not None and ragged <= perfect * (1 + 1e-9)
            found += [(name, goal)] if ragged < perfect * (1 - 1e-9) else []
    return found


def test_uneven_tiles_pay_in_several_problems() -> None:
    assert len({name for name, _ in gains()}) >= 3


def divisors_only(patch: pytest.MonkeyPatch) -> None:
    """Tiles must divide after all."""
    patch.setattr(multiples, "multiples", lambda n, x: tuple(y for y in range(x, n + 1, x) if n % y == 0) or (n,))


def without_multiples(patch: pytest.MonkeyPatch) -> None:
    """Of the smallest tiles of numbers of trips only those that what stands below happens to divide."""

    def found(n: int, x: int) -> tuple[int, ...]:
        return tuple(y for y in uneven.smallest_tiles(n) if y % x == 0 or y == n)

    patch.setattr(multiples, "multiples", found)


def unbalanced_as_balanced(patch: pytest.MonkeyPatch) -> None:
    """Every spatial loop is taken for balanced."""
    patch.setattr(traffic, "balanced", lambda extent, n, tile: np.ones(np.broadcast(extent, n, tile).shape, bool))


def edge_as_occupancy(patch: pytest.MonkeyPatch) -> None:
    """The last tile is taken for the room that a store takes."""
    real = traffic.Prices.tile_bits

    def bits(self, tensor, x, memory, backing=False):  # type: ignore[no-untyped-def]
        return real(self, tensor, np.where(self.uneven & (self.whole % x > 0), self.whole % x, x), memory, backing)

    patch.setattr(traffic.Prices, "tile_bits", bits)


def trips_rounded_down(patch: pytest.MonkeyPatch) -> None:
    """The last, smaller tile is not counted."""
    real = traffic.Prices._entries

    def entries(self, part, d, x, spread, child, at, rims):  # type: ignore[no-untyped-def]
        return np.maximum(real(self, part, d, x, spread, child, at, rims) - (self.whole[d] % x > 0), 1)

    patch.setattr(traffic.Prices, "_entries", entries)


MISTAKES = (divisors_only, without_multiples, unbalanced_as_balanced, edge_as_occupancy, trips_rounded_down)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda f: f.__name__)
def test_planted_mistakes_are_caught(mistake, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    right = {(name, goal): optimum(problem(name, goal)) for name in LARGER for goal in GOALS}
    mistake(monkeypatch)
    caught = 0
    for (name, goal), value in right.items():
        try:
            caught += not same(optimum(problem(name, goal)), value)
        except (EinloomError, AssertionError):
            caught += 1
    assert caught

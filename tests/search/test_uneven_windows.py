"""Windows that spatial loops cut unevenly: `exact` finds the best of all trees of `ragged`, and mistakes are caught."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from bench.ragged_problems import window_problem
from numpy.typing import NDArray

from einloom.cost.evaluate import evaluate
from einloom.errors import EinloomError
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.mapspace.ffm.ragged import spread_windows
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import ExactOptions, Rules
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.einsums import spatial
from einloom.search.exact.einsums.spatial import RankClasses
from einloom.search.exact.fusion.floors import Floors
from einloom.search.exact.pmappings.expand import Expansion
from einloom.search.exact.pmappings.sweep import _Sweep
from einloom.search.exact.prices.traffic import Prices
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from optima import best_of_all, optimum, same

PAYING = (0, 26, 36, 49, 110, 126, 177, 218, 274, 281, 284, 293, 309, 325, 371, 418, 457, 475, 482, 483, 490)
OTHERS = (214, 219, 221, 223, 226)
BARE = (17, 39, 48, 91, 110, 149, 158, 200, 202, 226, 229, 242, 246, 284, 370)  # an array without a store
FILLED = 39  # rule 9 asks more of uneven windows than of even ones


@cache
def known(seed: int) -> float | None:
    return best_of_all(window_problem(seed))


@pytest.mark.parametrize(
    "seed", [*PAYING[::2], *OTHERS, *(pytest.param(seed, marks=pytest.mark.slow) for seed in PAYING[1::2])]
)
def test_exact_equals_all_trees(seed: int) -> None:
    assert same(optimum(window_problem(seed)), known(seed))


@pytest.mark.parametrize(
    "seeds", [PAYING[::2], pytest.param(PAYING[1::2], marks=pytest.mark.slow)], ids=["few", "more"]
)
def test_windows_cut_unevenly_pay(seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        problem, value = window_problem(seed), known(seed)
        even = optimum(replace(problem, mapspace=replace(problem.mapspace, name="ffm")))
        assert value is not None
        assert even is None or value < even * (1 - 1e-9)


def test_spatial_choices_that_cut_windows_evenly_and_unevenly_meet() -> None:
    """Rows of the first remember fewer tiles than those of the second: this was a ValueError."""
    rules = Rules(stationary=False, lowering=False, settled=False)
    assert same(optimum(window_problem(1104)), optimum(window_problem(1104), ExactOptions(rules)))


def test_windows_that_no_shared_loop_iterates() -> None:
    chain = ("T[h] = A[h+u] * G[u]", "Z[p] = T[p+r] * F[r]", "Y[p] = exp(Z[p])")
    workload = build_workload("w", chain, {"h": 6, "u": 2, "p": 5, "r": 2}, bits=1)
    first, second, third = (spread_windows(workload, einsum.name) for einsum in workload.einsums)
    assert first == {"h", "u"}, "no loop above T iterates h, which its reader sees through a window"
    assert second == {"r"}, "a loop above Z may iterate p"
    assert third == frozenset()


@pytest.mark.parametrize("behind", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["no store", "a register"])
def test_windows_cut_unevenly_above_an_array_without_a_store(behind: bool) -> None:
    """The loop over the window stands below the array, as the page says: 9 s, and 15 s without such trees."""
    workload = build_workload("w", ("Z[p] = A[p+r] * F[r]",), {"p": 5, "r": 3}, bits=1)
    memory = {"read_throughput": 100.0, "write_throughput": 100.0}
    array, unit = Fanout("F", (Axis("X", 2),)), ComputeUnit("MAC", throughput=1.0)
    inner = (Memory("Reg", **memory),) if behind else ()
    machine = Machine("m", (Memory("DRAM", **memory), array, *inner, unit))
    problem = Problem(workload, machine, Mapspace("ragged"), Objective("latency"))
    store = "store Reg: F" if inner else ""
    text = f"store DRAM: A F Z\nfor r in 3\npar p in 2 @ X\n{store}\nfor p in 3\ncompute Z @ MAC"
    tree = parse_mapping(text, workload, machine)
    assert evaluate(workload, machine, tree).latency == 9.0
    assert space_for(workload, machine, problem.mapspace).outside(tree) == ()
    assert optimum(problem) == best_of_all(problem) == 9.0


def one_alone(patch: pytest.MonkeyPatch) -> None:
    """Rows begin at the leaf with extents of one alone."""
    patch.setattr(_Sweep, "_leaf_extents", begins_with_one)


def begins_with_one(self: _Sweep) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    choices = len(self.prices.links.instances[-1])
    return np.ones((choices, len(self.prices.whole)), np.int64), np.arange(choices)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if i % 2 else ()) for i, seed in enumerate(BARE)]
)
def test_loops_below_such_an_array_pay(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    value = optimum(window_problem(seed))
    assert same(value, known(seed))
    one_alone(monkeypatch)
    without = optimum(window_problem(seed))
    assert value is not None and without is not None and value < without * (1 - 1e-9)


def test_uneven_choices_are_counted_as_they_are_listed() -> None:
    """Those of a rank of seven on four instances: more than its divisors."""
    workload = build_workload("w", ("Z[m] = A[m,k]",), {"m": 7, "k": 6}, bits=1)
    levels = Memory("DRAM"), Fanout("F", (Axis("X", 4),)), Memory("GLB"), ComputeUnit("MAC")
    problem = Problem(workload, Machine("m", levels), Mapspace("ragged"), Objective("energy"))
    attempt = Attempt(problem, ExactOptions(), Watcher(), {}, lambda: None)
    classes = attempt.classes[attempt.signatures[0]]
    option = classes.signature.units[0]
    assert classes.number(option) == len(classes.spreads(option)) == 7


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_what_instances_access(stride: int, dilation: int) -> None:
    """Of a spatial loop that cuts unevenly: the places of each instance, which are neighbours."""
    text = f"Z[p] = A[{stride}*p+{dilation}*r] * F[r]".replace("1*", "")
    workload = build_workload("w", (text,), {"p": 11, "r": 3}, bits=1)
    levels = Memory("DRAM"), Fanout("F", (Axis("X", 9),)), Memory("GLB"), ComputeUnit("MAC")
    problem = Problem(workload, Machine("m", levels), Mapspace("ragged"), Objective("energy"))
    attempt = Attempt(problem, ExactOptions(), Watcher(), {}, lambda: None)
    classes = attempt.classes[attempt.signatures[0]]
    option = classes.signature.units[0]
    links = Floors(attempt.setting, classes).links(option, classes.spreads(option))
    found = dict(zip(links.spreads, Prices(links, attempt.setting.slots).accessed(1, 1).tolist(), strict=True))
    uneven = [((n, 1),) for n in (2, 3, 4, 6)]
    assert {spread for spread in found if 11 % spread[0][0]} >= set(uneven)
    for spread in uneven:
        (n, _), tile = spread[0], -(-11 // spread[0][0])
        mine = [range(i * tile, min((i + 1) * tile, 11)) for i in range(n)]
        assert found[spread] == sum(len({stride * p + dilation * r for p, r in product(ps, range(3))}) for ps in mine)


def busiest_has_the_mean(patch: pytest.MonkeyPatch) -> None:
    """The busiest instance is taken for no busier than the mean of those that have work."""
    patch.setattr(Prices, "of_busiest", lambda self, part, tensor, pieces, *_: pieces)


def lowered(patch: pytest.MonkeyPatch) -> None:
    """Loops below an uneven spatial loop are lowered, as if they could stand above it."""

    def rest(self):  # type: ignore[no-untyped-def]
        dims, tensors = range(len(self.prices.whole)), range(self.levels.tensors)
        plain = [[self.classes.plain[t][d] and d not in self.classes.pinned for d in dims] for t in tensors]
        return ~(self.prices.relevant & np.array(plain, bool).reshape(self.prices.relevant.shape))

    patch.setattr(Expansion, "rest", property(rest))


def full_as_even(patch: pytest.MonkeyPatch) -> None:
    """Rule 9 asks no more of uneven windows than of even ones."""
    patch.setattr(spatial, "_least_work", lambda classes, *_: 10**9)


def uneven_temporal(patch: pytest.MonkeyPatch) -> None:
    """The outermost loop may cut windows unevenly though it is temporal."""
    patch.setattr(RankClasses, "windows", property(lambda self: (False,) * len(self.members)))


MISTAKES = (one_alone, busiest_has_the_mean, lowered, full_as_even, uneven_temporal)


@cache
def right() -> dict[int, float | None]:
    return {seed: optimum(window_problem(seed)) for seed in (*PAYING, FILLED)}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda f: f.__name__)
def test_planted_mistakes_are_caught(mistake, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    values = right()
    spatial._every_spread.cache_clear()
    mistake(monkeypatch)
    for seed, value in values.items():
        try:
            if not same(optimum(window_problem(seed)), value):
                return
        except (EinloomError, AssertionError):
            return
        finally:
            spatial._every_spread.cache_clear()
    pytest.fail("no problem shows the mistake")

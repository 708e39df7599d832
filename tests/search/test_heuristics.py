"""Methods without a proof: no faults, the same answer twice, the optimum of tiny problems, never below a bound."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from random import Random

import numpy as np
import pytest

import einloom as el
from einloom.errors import BudgetExhausted, Ended, Infeasible
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.questions import problem
from einloom.search.door import ask
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics.dat import solved
from einloom.search.heuristics.gradient import Descent
from einloom.search.heuristics.points import Points
from einloom.search.heuristics.tile_model import TileModel
from einloom.search.registry import method
from einloom.testing.methods import method_faults
from einloom.workload.build import build_workload
from tiny_problems import tiny_problem

QUICK = {"gradient": {"steps": "15"}, "dat": {"population": "3"}, "auto": {"points": "50"}}
METHODS = ("random", "anneal", "genetic", "local", "tileflow", "dat", "gradient", "bayes", "auto")


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Libraries are loaded before anybody waits for a search to stop."""
    import_module("numba")
    pytest.importorskip("scipy.optimize")


@pytest.mark.parametrize("name", METHODS)
def test_the_kit_finds_no_fault(name: str) -> None:
    assert method_faults(lambda: method(name, QUICK.get(name)), steps=20) == ()


@cache
def proven(seed: int) -> float | None:
    """The optimum of a tiny problem; None if no mapping is legal."""
    try:
        return ask(method("exact"), tiny_problem(seed)).value
    except Infeasible:
        return None


@pytest.mark.parametrize("first", [0, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", METHODS)
def test_none_is_below_the_bound_of_exact(name: str, first: int) -> None:
    compared = 0
    for seed in range(first, 36, 10):
        asked, best = tiny_problem(seed), proven(seed)
        if best is None:
            with pytest.raises((BudgetExhausted, Infeasible)):
                ask(method(name, QUICK.get(name)), asked, Budget(steps=30))
            continue
        try:
            found = ask(method(name, QUICK.get(name)), asked, Budget(steps=30))
        except BudgetExhausted:
            continue
        assert found.value >= best * (1 - 1e-12)
        compared += 1
    assert compared > 1


def test_the_tile_model_prices_a_state_and_its_slopes_are_differences() -> None:
    asked = problem("matmuls:n=2,m=64,kn=64", "simple:glb_bits=16384,dram_energy=10", "edp")
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points, rng = Points(asked, space, Evaluator(asked, space)), Random(3)
    for _ in range(6):
        value, state = points.draw(rng) or (0.0, None)
        assert state is not None
        model = TileModel(points, state)
        x = model.coordinates()
        assert model.rounded(x) == state
        at = np.append(x, 1.0)
        assert all(sum(f * 2 ** float(row @ at) for f, row in tiles) <= size * 1.0001 for size, tiles in model.rooms)
        joules = sum(f * 2 ** float(row @ at) for f, row in model.energy)
        assert joules == pytest.approx(sum(points.cost(state, i)[0] for i in range(2)), rel=0.3)  # refills of firsts
        descent = Descent(model, state)
        gates = np.full(len(descent.gates), 0.7)
        aside = x + np.array([0.05 + 0.1 * rng.random() for _ in x])
        slopes = descent._loss(aside, gates, 3.0)[1]
        for n, step in enumerate(1e-6 * np.eye(len(x))):
            ends = [descent._loss(aside + way * step, gates, 3.0)[0] for way in (1, -1)]
            assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(slopes[n], abs=1e-3)
        tiles = solved(model, 20)
        assert tiles is not None
        better = model.rounded(tiles)
        assert better is None or points.encoding.fault(better) in (None, "capacity")
        assert better is None or not points.encoding.fits(better) or points.value(better) <= value * 1.2


def test_options_are_checked_and_starts_are_kept() -> None:
    tiny = ("matmuls:n=2,m=16,kn=16", "simple:glb_bits=2048")
    best = el.map(*tiny)
    assert el.map(*tiny, method="anneal", start=best, steps=20).energy == best.energy
    for options in ({"points": 0}, {"rounds": 0}, {"cold": "1"}):
        with pytest.raises(el.SpecError):
            el.map(*tiny, method="anneal", method_options=options)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "auto"])
def test_seconds_alone_are_used_up_and_points_are_a_limit_where_they_are_asked_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seconds went unused after the points that a method has without any budget."""
    maker = type(method(name))
    monkeypatch.setattr(maker, "usual", 10)

    def ended(options: dict[str, object], seconds: float | None) -> Ended | None:
        tiny = ("matmuls:n=2,m=16,kn=16", "simple:glb_bits=2048")
        return el.map(*tiny, method=name, method_options=options, seconds=seconds).ended

    quick = QUICK.get(name, {})
    assert ended(quick, 0.4) is Ended.SECONDS
    assert ended(quick, None) is None
    assert ended({**quick, "points": "10"}, 60.0) is None


def test_points_are_an_integer() -> None:
    with pytest.raises(el.SpecError, match="option points: 'many' is not an integer"):
        el.map("matmul:m=2,n=2,k=2", "simple", method="anneal", method_options={"points": "many"})


@pytest.mark.parametrize("value", [-0.25, 1.5])
@pytest.mark.parametrize(
    ("name", "option"), [("tileflow", "mutation"), ("anneal", "shared"), ("genetic", "crossover"), ("gradient", "fuse")]
)
def test_an_option_that_is_a_share_lies_between_nothing_and_all(name: str, option: str, value: float) -> None:
    with pytest.raises(el.SpecError, match=f"{option}: from 0 to 1"):
        el.map("matmuls:n=2,m=16,kn=16", "two-level", method=name, method_options={option: value}, steps=2)


@pytest.mark.parametrize("name", METHODS)
def test_an_einsum_without_a_unit_is_named(name: str) -> None:
    with pytest.raises(Infeasible, match=r"no compute unit of tpu-v4i executes Einsum N0 \(map with 3 inputs;"):
        el.map("bert-base:layers=1", "tpu-v4i", method=name, seconds=0.5)


@pytest.mark.parametrize("free", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", METHODS)
def test_einsums_without_loops(name: str, free: bool) -> None:
    """Nothing to tile, and on a machine without prices nothing to pay: a mapping all the same."""
    workload = build_workload("scalars", ("T[] = A[] * B[]", "Z[] = T[] * C[]"), {}, bits=1)
    price = 0.0 if free else 2.0
    levels = (Memory("DRAM", None, price, price), Memory("GLB", 2, price / 2, price / 2), ComputeUnit("MAC"))
    asked = Problem(workload, Machine("m", levels), Mapspace(), Objective("energy"))
    found = ask(method(name, QUICK.get(name)), asked, Budget(steps=200))
    assert found.value == ask(method("exhaustive"), asked).value

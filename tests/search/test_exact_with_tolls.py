"""`exact` finds what looking at every tree finds where tolls stand in random places."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from einloom.certify.verify import verify
from einloom.errors import Defect
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory, Toll
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.search.exact.prices.columns import LinkPrices
from einloom.search.exhaustive import Exhaustive
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from tiny_groups import group_problem
from tiny_problems import tiny_problem

SEEDS = json.loads((Path(__file__).parent / "quick_seeds.json").read_text())[:64]
SETS = ("all", "all", "nothing", "input", "output", "weight")


def tolled(problem: Problem, rng: Random) -> Problem:
    """The problem with one or two tolls behind the outermost memory."""
    levels = list(problem.machine.levels)
    for i in range(rng.choice((1, 1, 2))):
        toll = Toll(
            f"T{i}",
            float(rng.randint(0, 9)),
            rng.choice((1, 2)),
            rng.choice((None, None, 0.5, 2.0)),
            selector(rng.choice(SETS)),
            selector(rng.choice(SETS)),
            ((selector("all"), 1),) if rng.random() < 0.2 else (),
            rng.choice((0.0, 0.0, 1.0)),
        )
        levels.insert(rng.randint(1, len(levels) - 1), toll)
    return replace(problem, machine=replace(problem.machine, levels=tuple(levels)))


@pytest.mark.parametrize("seeds", [SEEDS[:32], pytest.param(SEEDS[32:], marks=pytest.mark.slow)], ids=["few", "more"])
def test_exact_equals_exhaustive_with_tolls(seeds: list[int]) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        problem = tolled(tiny_problem(seed), Random(seed))
        result, every = Exact().search(problem), Exhaustive().search(problem)
        assert every.complete and result.value == pytest.approx(every.value, rel=1e-9, abs=0), seed
        paid = {a.component for a in result.cost.actions if a.action in ("down", "up") and a.count}
        slowest = max((t, name) for _, name, t in result.cost.busy)[1] if result.cost.busy else ""
        seen["paid"] += bool(paid)
        seen["behind a fanout"] += bool(paid and problem.machine.fanouts)
        seen["binding"] += slowest in {toll.name for toll in problem.machine.tolls}
    assert seen["paid"] >= 20 and seen["behind a fanout"] >= 7 and seen["binding"] >= 2, seen


@pytest.mark.parametrize(
    ("name", "goal", "after"),
    [("ffm", "edp", 2), pytest.param("ragged", "energy", 1, marks=pytest.mark.slow), ("ragged", "latency", 2)],
)
def test_copies_pay_tolls_also_with_uneven_tiles(name: str, goal: str, after: int) -> None:
    """Five values over two instances, in front of the axis and behind it."""
    workload = build_workload("copies", ("B[m] = copy(A[m])", "C[m] = exp(B[m])"), {"m": 5}, bits=1)
    toll = Toll("T", 3.0, 1, 0.5, selector("all"), selector("all"))
    levels: list[Level] = [
        Memory("DRAM", None, 10.0, 10.0, read_throughput=1.0, write_throughput=1.0),
        Fanout("PE", (Axis("X", 2),)),
        Memory("GLB", 3, 1.0, 1.0, read_throughput=2.0, write_throughput=2.0, leakage=0.5),
        ComputeUnit("MAC", 1.0, 0.5),
    ]
    levels.insert(after, toll)
    problem = Problem(workload, Machine("m", tuple(levels)), Mapspace(name), Objective(goal))
    result, every = Exact().search(problem), Exhaustive().search(problem)
    assert every.complete and result.value == pytest.approx(every.value, rel=1e-9, abs=0)
    assert any(a.component == "T" and a.count for a in result.cost.actions)


def test_a_toll_priced_in_front_of_its_fanout_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables then say something else than the tree that they are read back into costs."""
    monkeypatch.setattr(LinkPrices, "_over", lambda pricing, toll: 0)
    noticed = 0
    for seed in SEEDS:
        try:
            Exact().search(tolled(tiny_problem(seed), Random(seed)))
        except Defect as error:
            noticed += error.difference.startswith("the search says")
    assert noticed


@pytest.mark.parametrize("seed", [3, 26, 39, 59])
def test_groups_at_the_same_time_pay_tolls(seed: int) -> None:
    problem = tolled(group_problem(seed), Random(seed))
    result, every = Exact().search(problem), Exhaustive().search(problem)
    assert every.complete and result.value == pytest.approx(every.value, rel=1e-9)
    assert "pipelined" in result.mapping_text or "parallel" in result.mapping_text


def test_results_with_tolls_are_verified_and_edits_are_found() -> None:
    result = Exact().search(tolled(tiny_problem(SEEDS[0]), Random(SEEDS[0])))
    assert verify(result).ok
    levels = tuple(
        replace(level, energy=level.energy + 1, up=selector("all"), down=selector("all"))
        if isinstance(level, Toll)
        else level
        for level in result.machine.levels
    )
    machine = replace(result.machine, levels=levels)
    edited = replace(result, problem=replace(result.problem, machine=machine))
    assert not verify(edited, quick=True).ok

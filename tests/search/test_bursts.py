"""Machine code for the privates of one Einsum: it prices as `even` does, keeps the rules, and stays within room."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.ffm.encoding import Encoding, NoProposal, State
from einloom.mapspace.ffm.encoding.state import word
from einloom.mapspace.limits.data import AxisLimit, HoldLimit, Limits, Numbers
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.questions import problem, problems
from einloom.search.door import ask
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics import kernel
from einloom.search.heuristics.bursts import Bursts
from einloom.search.heuristics.points import Points
from einloom.search.registry import method
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from kernels import interpret, kernel_price
from tiny_problems import tiny_problem

LARGE = [
    ("matmuls:n=4,m=128,kn=64,bits=8", "simple:dram_energy=100,glb_bits=65536", "energy", None),
    ("tileflow-bert-s", "tileflow-edge", "latency", "spread-attention"),
    *(
        pytest.param(*one, marks=pytest.mark.slow)
        for one in (
            ("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "edp", None),
            ("matmuls:n=4,m=8192,kn=4096,bits=8", "simple:dram_energy=100,glb_bits=8388608", "energy", None),
        )
    ),
]


def walked(encoding: Encoding, rng: Random) -> State | None:
    """A state some moves away from a draw."""
    state = encoding.sample(rng)
    for _ in range(12 if state else 0):
        try:
            found = encoding.propose(state, rng)
        except NoProposal:
            continue
        state = found if encoding.fits(found) else state
    return state


def compared(problem: Problem, rounds: int, rng: Random) -> int:
    """Bursts that kept the rules, fitted and were priced as `even` prices them."""
    space = space_for(problem.workload, problem.machine, problem.mapspace)
    points = Points(problem, space, Evaluator(problem, space))
    encoding, bursts, done = points.encoding, Bursts(problem, points.facts), 0
    for _ in range(rounds):
        state = walked(encoding, rng)
        for i in range(points.facts.count):
            if state is None or not bursts.able(state, i):
                continue
            mine, exact = word(points.facts, state, i), not points.facts.ragged
            price = kernel_price(bursts, i, mine)
            assert price == (points.cost(state, i) if exact else pytest.approx(points.cost(state, i)))
            costs = [points.cost(state, j) for j in range(points.facts.count) if j != i]
            rest = tuple(float(sum(cost[n] for cost in costs)) for n in range(3))
            burst = bursts.run(state, i, rest, 200, 1000, 0.3, rng)  # type: ignore[arg-type]
            assert burst.best_value <= burst.value and burst.legal + burst.overfull + burst.refused == 200
            for found, value in ((burst.state, burst.value), (burst.best, burst.best_value)):
                assert encoding.fault(found) is None
                assert points._value(found) == pytest.approx(value, rel=1e-13)
            done += 1
            state = burst.state
    return done


@pytest.mark.parametrize(("workload", "machine", "goal", "flow"), LARGE)
def test_bursts_keep_the_rules_and_price_alike(workload: str, machine: str, goal: str, flow: str | None) -> None:
    asked = problems(workload, machine, goal, None, None, flow, flow is not None)[0].problem
    assert compared(asked, 3, Random(1)) >= 12


def test_bursts_on_problems_with_every_feature_of_the_files() -> None:
    assert sum(compared(tiny_problem(seed), 2, Random(seed)) for seed in range(60)) > 60


def test_bursts_keep_the_rules_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler, on a few of these problems."""
    assert interpret(monkeypatch) > 10
    assert sum(compared(tiny_problem(seed), 1, Random(seed)) for seed in range(60, 80)) > 10
    nothing = np.zeros((0, 2), np.int64)
    loops = np.ones((2, 3), np.int64)
    assert kernel.toggled(1, nothing, loops, loops, nothing) == -1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "able"),
    [
        (Limits(axes=(AxisLimit("X", Numbers(most=2), ("m",)),)), True),
        (Limits(axes=(AxisLimit("X", Numbers(most=2)),)), False),
        (Limits(holds=(HoldLimit("once", "GLB", selector("all")),)), False),
    ],
)
def test_limits_that_the_kernel_lacks(limits: Limits, able: bool) -> None:
    """How many instances all loops of an axis take together it does not count, nor what comes to a memory once."""
    workload = build_workload("one", ("Z[m,n] = A[m,k] * B[k,n]",), {"m": 4, "n": 4, "k": 2}, bits=8)
    levels = (
        Memory("DRAM", None, 9.0, 9.0),
        Memory("GLB", 128, 1.0, 1.0),
        Fanout("PE", (Axis("X", 8),)),
        ComputeUnit("MAC"),
    )
    asked = Problem(workload, Machine("m", levels), Mapspace(limits=limits), Objective("energy"))
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points = Points(asked, space, Evaluator(asked, space))
    state = points.encoding.sample(Random(1))
    assert state is not None and Bursts(asked, points.facts).able(state, 0) is able


def test_a_burst_ends_with_the_budget_and_counts_its_points() -> None:
    asked = problem("matmuls:n=4,m=8192,kn=4096,bits=8", "simple:dram_energy=100,glb_bits=8388608", "energy")
    found = ask(method("anneal", {"seed": "1"}), asked, Budget(steps=10_000))
    assert found.certificate is not None
    counts = dict(found.certificate.counts)
    assert counts["evaluated"] + counts["illegal"] == 10_000
    assert counts["proposal: machine code"] > 100

"""`exact` finds what looking at every tree finds: random tiny problems over random machines and all objectives.

The exhaustive search shares no code with `exact` but the cost of a given tree and the definition of the space.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

import pytest

from einloom.errors import Infeasible
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.result import Result
from einloom.search.exact import Exact, ExactOptions, Rules
from einloom.search.exhaustive import Exhaustive
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector
from optima import optimum, same
from tiny_problems import tiny_machine, tiny_problem

MOST_SECONDS = 600.0
SEEDS = json.loads((Path(__file__).parent / "tiny_seeds.json").read_text())


# a seventh of the seeds every time, the others with the slow tests
CHUNKS = [pytest.param(f, marks=() if f % 300 == 0 else pytest.mark.slow) for f in range(0, len(SEEDS), 15)]


def enumerated(problem: Problem) -> float | None:
    """The optimum by enumeration; None if no tree is legal."""
    try:
        found = Exhaustive().search(problem, Budget(seconds=MOST_SECONDS))
    except Infeasible:
        return None
    assert found.complete, "choose smaller problems"
    return found.value


@pytest.mark.parametrize("first", CHUNKS)
def test_exact_equals_exhaustive(first: int) -> None:
    for seed in SEEDS[first : first + 15]:
        problem = tiny_problem(seed)
        assert same(optimum(problem), enumerated(problem)), f"seed {seed}"


@pytest.mark.slow
def test_the_seeds_are_many_and_varied() -> None:
    problems = [tiny_problem(seed) for seed in SEEDS]
    assert len(problems) >= 300
    assert len({problem.machine for problem in problems}) >= 200
    assert {problem.objective.name for problem in problems} == {"energy", "latency", "edp", "traffic"}
    assert sum(len(problem.workload.einsums) > 1 for problem in problems) >= 60
    assert sum(len(problem.machine.memories) > 2 for problem in problems) >= 50
    assert sum(bool(problem.machine.fanouts) for problem in problems) >= 60
    infeasible = sum(optimum(problem) is None for problem in problems)
    assert 5 <= infeasible <= len(problems) // 2


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.slow if n % 2 else ()) for n in range(40, 60)])
def test_a_padded_convolution(seed: int) -> None:
    """Windows that reach outside the input: O[p] = I[p+r-1] * F[r] with as many inputs as outputs."""
    rng = Random(seed)
    einsum = parse_einsum("O[p] = I[p+r-1] * F[r]")
    sizes = {"p": rng.choice((2, 3, 4)), "r": rng.choice((1, 2, 3))}
    workload = build_workload("padded", [einsum], sizes, bits={"default": 1}, shapes={"I": (sizes["p"],)})
    machine = tiny_machine(rng, 8)
    while len(machine.memories) > 2:
        machine = tiny_machine(rng, 8)
    problem = Problem(workload, machine, Mapspace(), Objective(rng.choice(("energy", "latency", "edp"))))
    assert same(optimum(problem), enumerated(problem))


RULES = ("stationary", "lowering", "dominance", "limits", "settled")
PRUNED = (*SEEDS[:30], 72, 248, 321, 1542, 1615, 2016, 2186)
FURTHER = SEEDS[30:60]


@cache
def searched(seed: int, rule: str | None) -> Result | None:
    """The answer to a tiny problem without one of the rules; None if nothing is feasible."""
    try:
        return Exact(ExactOptions(Rules(**{rule: False} if rule else {}))).search(tiny_problem(seed))
    except Infeasible:
        return None


@pytest.mark.parametrize("seeds", [PRUNED, pytest.param(FURTHER, marks=pytest.mark.slow)], ids=["few", "more"])
@pytest.mark.parametrize("rule", RULES)
def test_each_pruning_rule_off_gives_the_same_optimum(rule: str, seeds: Sequence[int]) -> None:
    for seed in seeds:
        off, on = searched(seed, rule), searched(seed, None)
        assert same(off and off.value, on and on.value), f"seed {seed}"


@pytest.mark.parametrize("rule", RULES)
def test_each_pruning_rule_drops_something(rule: str) -> None:
    """Switched off, a rule leaves more rows to look at on at least one problem."""
    assert any(_work(searched(seed, rule)) > _work(searched(seed, None)) for seed in PRUNED)


def _work(found: Result | None) -> int:
    """Rows that were priced or joined."""
    if found is None:
        return 0
    assert found.certificate is not None
    counts = found.certificate.counts
    return counts.get("evaluated", 0) + counts.get("joined", 0)


def test_without_soft_arc_consistency_the_optimum_is_the_same() -> None:
    dropped = 0
    for seed in SEEDS[:120]:
        problem = tiny_problem(seed)
        if len(problem.workload.einsums) == 1:
            continue
        assert same(optimum(problem, ExactOptions(consistency=False)), optimum(problem)), f"seed {seed}"
        try:
            certificate = Exact().search(problem).certificate
        except Infeasible:
            continue
        assert certificate is not None
        dropped += certificate.counts.get("agreement", 0) + certificate.counts.get("arc consistency", 0)
    assert dropped


def test_stores_that_keep_their_tile_across_other_memories_can_win() -> None:
    """B stays in LB over m while A and Z move through GLB: 984 J. Without such rows the tables end at 1006 J."""
    workload = build_workload(
        "w", [parse_einsum("Z[m,n] = A[m,k] * B[k,n]")], {"m": 2, "k": 1, "n": 2}, bits={"default": 1}
    )
    levels = (
        Memory("DRAM", None, 100.0, 100.0),
        Memory("GLB", 6, 10.0, 10.0, must=selector("all")),
        Memory("LB", 4, 1.0, 1.0, must=selector("all")),
        ComputeUnit("MAC", 1.0, 1.0),
    )
    problem = Problem(workload, Machine("m", levels), Mapspace(), Objective("energy"))
    assert optimum(problem) == enumerated(problem) == 984
    assert optimum(problem, ExactOptions(Rules(deferral=False))) == 1006


@pytest.mark.parametrize("seeds", [SEEDS[:45], pytest.param(SEEDS[45:90], marks=pytest.mark.slow)], ids=["few", "more"])
def test_without_bounds_the_optimum_is_the_same(seeds: list[int]) -> None:
    for seed in seeds:
        problem = tiny_problem(seed)
        assert same(optimum(problem, ExactOptions(incumbent=False)), optimum(problem)), f"seed {seed}"

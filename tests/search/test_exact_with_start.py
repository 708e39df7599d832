"""A search that starts from known mappings proves what it proves without them, and has them when it is stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from einloom.certify.verify import verify
from einloom.cost.evaluate import evaluate, legality
from einloom.errors import Infeasible, SpecError
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Guarantee, Objective, Problem
from einloom.questions import problems
from einloom.result import Result
from einloom.search.exact import Exact, ExactOptions
from einloom.search.method import Recorder
from einloom.search.several import Labelled, best_of
from einloom.search.starts import fitting
from einloom.workload.build import build_workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload
from pipeline_problems import pipeline_problem
from tiny_problems import tiny_problem

SEEDS = json.loads((Path(__file__).parent / "tiny_seeds.json").read_text())[:38]
GROUPS = (("chain", 11), ("fork", 59), ("deep", 3), ("room", 5))


@cache
def legal_trees(seed: int) -> tuple[Mapping, ...]:
    """At most 60 legal trees of a tiny problem, from all over the space."""
    problem = tiny_problem(seed)
    trees = list(enumerate_trees(problem.workload, problem.machine, problem.mapspace))
    Random(seed).shuffle(trees)
    legal = (tree for tree in trees if not legality(problem.workload, problem.machine, tree))
    return tuple(tree for _, tree in zip(range(60), legal, strict=False))


def value(problem: Problem, mapping: Mapping) -> float:
    return problem.objective.value(evaluate(problem.workload, problem.machine, mapping))


def started(problem: Problem, *starts: Mapping, budget: Budget | None = None) -> Result:
    return Exact(ExactOptions(start=starts)).search(problem, budget)


def proven(found: Result, best: float) -> None:
    """The certificate says that `best` is optimal; the tree is legal, inside the space and has that value."""
    problem = found.problem
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert found.value == pytest.approx(best, rel=1e-9, abs=0)
    assert found.certificate.value == found.certificate.bound == found.value == value(problem, found.mapping)
    assert outside(problem.workload, problem.machine, problem.mapspace, found.mapping) == ()


HALVES = pytest.mark.parametrize(
    "seeds", [SEEDS[:19], pytest.param(SEEDS[19:], marks=pytest.mark.slow)], ids=["few", "more"]
)


@HALVES
def test_the_optimum_does_not_depend_on_the_start(seeds: list[int]) -> None:
    worse = repeated = 0
    for seed in seeds:
        problem, rng = tiny_problem(seed), Random(seed)
        trees = legal_trees(seed)
        if not trees:
            continue
        plain = Exact().search(problem)
        ordered = sorted(trees, key=lambda tree: value(problem, tree))
        worse += value(problem, ordered[-1]) > 1.5 * plain.value
        repeated += problem.workload.repeat > 1
        for starts in ((plain.mapping,), (ordered[-1],), tuple(rng.choices(trees, k=3))):
            proven(started(problem, *starts), plain.value)
    assert worse > len(seeds) // 4
    assert repeated > 2


@HALVES
def test_a_stopped_search_has_the_start(seeds: list[int]) -> None:
    """With nothing evaluated yet, and at any other time, what comes back is at least as good, with a true bound."""
    bounded = 0
    for seed in seeds:
        problem, trees = tiny_problem(seed), legal_trees(seed)
        if not trees:
            continue
        start, best = trees[-1], Exact().search(problem).value
        for steps in (0, 40):
            found = started(problem, start, budget=Budget(steps=steps))
            assert found.certificate is not None
            assert found.certificate.bound <= best * (1 + 1e-9)
            assert best * (1 - 1e-9) <= found.value <= value(problem, start) * (1 + 1e-9)
            bounded += found.certificate.guarantee is Guarantee.BOUNDED
    assert bounded > 5


def test_a_search_stopped_at_once_returns_the_start() -> None:
    problem = tiny_problem(SEEDS[0])
    start = legal_trees(SEEDS[0])[-1]
    found = Exact(ExactOptions(start=(start,))).search(problem, None, Recorder(stop=lambda: True))
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.BOUNDED
    assert found.value == value(problem, start)
    assert verify(found, quick=True).ok


def test_a_start_at_the_bound_needs_no_tables() -> None:
    """Latency of one Einsum that keeps the unit busy: its bound is attained."""
    workload, machine = load_workload("matmul:m=4,n=4,k=4"), load_machine("simple:glb_throughput=1024")
    problem = Problem(workload, machine, Mapspace(max_fused_loops=1), Objective("latency"))
    plain = Exact().search(problem)
    assert plain.certificate is not None and plain.certificate.counts["evaluated"] > 0
    found = started(problem, plain.mapping)
    proven(found, plain.value)
    assert found.certificate is not None and dict(found.certificate.counts) == {}


@pytest.mark.parametrize(("family", "seed"), GROUPS)
def test_groups_from_the_sequential_optimum(family: str, seed: int) -> None:
    problem = pipeline_problem(family, seed)
    alone = replace(problem, mapspace=replace(problem.mapspace, concurrent=Mapspace().concurrent))
    sequential, best = Exact().search(alone), Exact().search(problem)
    for start in (sequential.mapping, best.mapping):
        proven(started(problem, start), best.value)
    stopped = started(problem, sequential.mapping, budget=Budget(steps=0))
    assert stopped.certificate is not None
    assert stopped.certificate.bound <= best.value * (1 + 1e-9) <= stopped.value * (1 + 2e-9)


@pytest.mark.parametrize("seed", SEEDS[:8])
def test_a_pareto_set_with_starts(seed: int) -> None:
    problem = replace(tiny_problem(seed), objective=Objective("pareto"))
    try:
        plain = Exact().search(problem)
    except Infeasible:
        assert not legal_trees(seed)
        return
    found = started(problem, *legal_trees(seed)[:3])
    numbers = [[n for point in one.front for n in (point.energy, point.latency)] for one in (plain, found)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, abs=0)
    stopped = started(problem, legal_trees(seed)[0], budget=Budget(steps=0))
    assert stopped.certificate is not None and stopped.certificate.bound <= plain.value * (1 + 1e-9)


def test_what_is_no_mapping_of_the_problem_is_refused() -> None:
    workload, machine = load_workload("matmuls:n=2,m=4,kn=4"), load_machine("simple:dram_energy=10")
    unfused, fused = (
        Problem(workload, machine, Mapspace(max_fused_loops=loops), Objective("energy")) for loops in (0, 2)
    )
    only_fused = Exact().search(fused).mapping
    with pytest.raises(SpecError, match="cannot start from this mapping: it is outside the space"):
        started(unfused, only_fused)
    tight = replace(fused, machine=load_machine("simple:glb_bits=8,dram_energy=10"))
    with pytest.raises(SpecError, match="it is illegal"):
        started(tight, only_fused)
    other = replace(fused, workload=load_workload("matmul:m=4,n=4,k=4"))
    with pytest.raises(SpecError, match="it is no mapping of matmul"):
        started(other, only_fused)
    assert fitting(unfused, [only_fused]) == fitting(tight, [only_fused]) == fitting(other, [only_fused]) == ()
    assert fitting(fused, [only_fused, only_fused]) == (only_fused,)
    with pytest.raises(SpecError, match="'exhaustive' cannot start"):
        best_of((Labelled("", fused),), "exhaustive", Budget(), Recorder(), [only_fused])


def tiled() -> tuple[Labelled, ...]:
    """A chain of convolutions with one, two and four tiles of rows."""
    chain = build_workload(
        "tiny",
        ["T[y,x,l] = I[y+r,x+s,c] * A[l,r,s,c]", "Z[h,w,k] = T[h+u,w+v,l] * B[k,u,v,l]"],
        {**dict.fromkeys("xlrsckwv", 1), "y": 5, "h": 4, "u": 2},
        bits=1,
    )
    machine = load_machine("simple:glb_bits=12,dram_energy=10,glb_throughput=1")
    return problems(chain, machine, "energy", dataflow="fused-layer")


def test_the_best_of_several_from_a_start_of_one_of_them() -> None:
    asked = tiled()
    best = best_of(asked, "exact", Budget(), Recorder())
    for one in asked:
        start = Exact().search(one.problem).mapping
        assert [bool(fitting(each.problem, [start])) for each in asked] == [each is one for each in asked]
        found = best_of(asked, "exact", Budget(), Recorder(), [start])
        assert found.value == pytest.approx(best.value, rel=1e-12) and found.workload == best.workload
        assert found.certificate is not None and best.certificate is not None
        assert found.certificate.guarantee is Guarantee.OPTIMAL
        assert [a.label for a in found.certificate.alternatives] == [one.label for one in asked]
        assert verify(found, quick=True).ok
        stopped = best_of(asked, "exact", Budget(), Recorder(stop=lambda: True), [start])
        assert stopped.value == value(one.problem, start) and verify(stopped, quick=True).ok
        assert stopped.certificate is not None and stopped.certificate.guarantee is Guarantee.BOUNDED

"""States carry the order of the Einsums: every tree of `order: free` has one, and moves reach all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.normal import normal_form
from einloom.mapspace.ffm.encoding import Encoding, State
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.door import ask
from einloom.search.registry import method
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from state_checks import agrees, crossed, look, random_reads, reached

Case = tuple[tuple[str, ...], int, str]
APART = ("T[m] = exp(A[m])", "Y[m] = exp(B[m])", "Z[m] = exp(T[m])")
CASES: dict[str, Case] = {
    "fork": (("Q[m] = exp(A[m])", "K[m] = exp(B[m])", "Z[m] = Q[m] * K[m]"), 2, "intermediate"),
    "apart": (APART, 4, "intermediate"),
    "nothing shared": (APART[:2], 2, "all"),
    "two readers": (("T[m] = exp(A[m])", "U[m] = exp(T[m])", "V[m] = exp(T[m])"), 2, "intermediate"),
}
CHAINS = ((*APART, "W[m] = exp(Y[m])"), 2, "intermediate")


def asked(case: Case, space: Mapspace | None = None, size: int | None = None) -> Problem:
    einsums, extent, may = case
    workload = build_workload("tiny", einsums, {"m": extent}, bits=8)
    outer = Memory("DRAM", None, 10.0, 12.0, read_throughput=2.0, write_throughput=2.0)
    levels = outer, Memory("GLB", size, 1.0, 1.0, may=selector(may)), ComputeUnit("MAC", 1.0, 0.5)
    return Problem(workload, Machine("tiny", levels), space or Mapspace(order="free"), Objective("energy"))


def encoding_of(problem: Problem) -> Encoding:
    return Encoding(problem.workload, problem.machine, problem.mapspace)


@pytest.mark.parametrize(
    "case",
    [*(pytest.param(one, id=name) for name, one in CASES.items()), pytest.param(CHAINS, marks=pytest.mark.slow)],
)
def test_every_tree_of_every_order_has_a_state_that_moves_reach(case: Case) -> None:
    problem = asked(case)
    encoding = encoding_of(problem)
    trees = list(enumerate_trees(problem.workload, problem.machine, problem.mapspace))
    states = [state for tree in trees if (state := encoding.encode(tree)) is not None]
    assert len(set(states)) == len(trees) > 30 and len({state.sequence for state in states}) > 1
    for tree, state in zip(trees, states, strict=True):
        assert encoding.decode(state) == normal_form(tree, problem.workload)
        assert encoding.fault(state) is None
        assert tree.einsums == tuple(e.name for e in encoding.of(state).einsums)
    assert reached(encoding, len(trees), 400_000) == set(states)


def test_an_order_that_the_space_or_data_forbid_is_a_fault() -> None:
    free, program = encoding_of(asked(CASES["apart"])), encoding_of(asked(CASES["apart"], Mapspace()))
    state = free.unfused(Random(7))
    assert state is not None
    for places, faults in (((0, 1, 2), (None, None)), ((1, 0, 2), (None, "order")), ((2, 0, 1), ("order", "order"))):
        owns = tuple(state.owns[i] for i in places)
        turned = State(state.homes, state.depths, state.shared, owns, free.facts.named(places))
        assert (free.fault(turned), program.fault(replace(turned, known={}))) == faults


def test_crossover_of_two_orders_keeps_the_rules() -> None:
    problem = asked(CHAINS)
    encoding, rng, seen = encoding_of(problem), Random(2), Counter[str]()
    for one, other, child in crossed(encoding, rng, 150):
        agrees(encoding, child)
        seen["children"] += child not in (one, other)
        seen["of two orders"] += one.sequence != other.sequence and child not in (one, other)
    assert seen["children"] > 20 and seen["of two orders"] > 5, seen


@pytest.mark.parametrize("name", ["random", "anneal", "genetic", "local", "tileflow"])
def test_methods_find_the_best_order(name: str) -> None:
    """With room for one tile only, T passes through the buffer where Z follows it, and nowhere else."""
    free = asked(CASES["apart"], size=8)
    best, program = (ask(method("exhaustive"), asked(CASES["apart"], space, 8)).value for space in (None, Mapspace()))
    found = ask(method(name), free, Budget(steps=400))
    assert found.value == pytest.approx(best, rel=1e-12) and best < program


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 100), marks=pytest.mark.slow)])
def test_states_of_random_problems_in_free_order(seeds: range) -> None:
    seen = Counter[str]()
    for seed, read in random_reads("free order", seeds, seen):
        look(seed, read, seen)
    assert seen["problems"] > len(seeds) / 2 and seen["in another order"] and seen["refused"], seen

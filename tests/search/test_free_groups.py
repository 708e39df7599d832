"""Groups of Einsums in free order: what all trees of all orders say, and with which mistakes it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from einloom.cost.formulas.pipeline import Edge
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.legality.concurrency import has_concurrent
from einloom.mapping.tree import Split
from einloom.mapspace.ffm.enumerate import candidates, ordered
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact.concurrent.candidates import Candidates
from einloom.search.exact.concurrent.joins import GroupJoiner
from einloom.search.exact.fusion.explore import PmappingGroup
from einloom.search.exact.joining.compatibility import LiveTensor, OpenGroup
from einloom.search.exact.numerics.pareto import IntArray
from einloom.workload.build import build_workload
from einloom.workload.orders import orders
from einloom.workload.selectors import selector
from optima import at_most, enumerated, optimum, optimum_or_defect, same, searched
from tiny_groups import ordered_group_problem

QUICK = (0, 8, 13, 18, 32)  # whose optimum has a group, in another order than that of the program
MOST = 450  # candidates of the slow ones


@pytest.mark.parametrize("seed", QUICK)
def test_exact_is_what_all_trees_of_all_orders_say(seed: int) -> None:
    problem = ordered_group_problem(seed)
    found = searched(problem)
    assert found is not None and same(found.value, enumerated(problem))
    assert has_concurrent(found.mapping.nest) and found.mapping.einsums != tuple(problem.workload.names)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 600, 50))
def test_exact_is_what_all_trees_say_of_many(first: int) -> None:
    for seed in range(first, first + 50):
        problem = ordered_group_problem(seed)
        trees = (t for w in ordered(problem.workload, problem.mapspace) for t in candidates(w, problem.machine))
        if at_most(trees, MOST):
            assert same(optimum(problem), enumerated(problem)), seed


def asked(einsums: tuple[str, ...], size: int | None, units: tuple[ComputeUnit, ...], **bits: int) -> Problem:
    """Two tokens, each stage a second or more for one, on units of their own."""
    workload = build_workload("w", einsums, {"m": 2}, bits={"default": 1, **bits})
    outer = Memory("DRAM", None, 9.0, 9.0, read_throughput=64.0, write_throughput=64.0, may=selector("~intermediate"))
    inner = Memory("GLB", size, must=selector("intermediate"), may=selector("nothing"))
    space = Mapspace(concurrent="unit", order="free")
    return Problem(workload, Machine("m", (outer, inner, *units)), space, Objective("latency"))


def meeting(size: int) -> Problem:
    """Z reads S of two bits and T of one. The tile of the first stage has three slots, that of the second two."""
    texts = ("S[m] = exp(X[m])", "T[m] = exp(Y[m])", "Z[m] = add(S[m], T[m])")
    return asked(texts, size, tuple(ComputeUnit(name, throughput=1.0) for name in "ABC"), S=2)


def crossing() -> Problem:
    """A and C meet in Z, C waits for B, which takes three seconds a token."""
    texts = ("A[m] = exp(X[m])", "B[m] = Y[m] * W[m]", "C[m] = exp(B[m])", "Z[m] = add(A[m], C[m])")
    units = tuple(ComputeUnit(name, throughput=1.0, kinds=("map",)) for name in "UVW")
    return asked(texts, None, (*units, ComputeUnit("MAC", throughput=1 / 3, kinds=("multiply",))))


def test_two_chains_that_interleave_are_a_group() -> None:
    """S and T, P and Z exchange a tile each, and no tile passes between the two chains."""
    problem = ordered_group_problem(580)
    found = searched(problem)
    assert found is not None and same(found.value, enumerated(problem))
    assert same(optimum(replace(problem, mapspace=replace(problem.mapspace, order="program"))), found.value)
    (split,) = (node for node in found.mapping.nest if isinstance(node, Split))
    assert len(split.branches) == 4


def test_the_order_decides_how_many_slots_a_tile_takes() -> None:
    """With room for seven bits T runs before S: 2 + 1 s. In the order of the program that takes eight."""
    for size, free, program in ((8, 3.0, 3.0), (7, 3.0, 5.0), (6, 5.0, 5.0)):
        problem = meeting(size)
        assert same(optimum(problem), free) and same(enumerated(problem), free)
        assert same(optimum(replace(problem, mapspace=Mapspace(concurrent="unit"))), program)


def test_the_optimum_is_that_of_the_best_order() -> None:
    problem = crossing()
    alone = Mapspace(concurrent="unit")
    values = [optimum(replace(problem, workload=one, mapspace=alone)) for one in orders(problem.workload)]
    assert len(values) == 3 and same(optimum(problem), min(value for value in values if value is not None))
    assert same(optimum(problem), 8.0)  # 3 + 1 + 1 s for the first token, three more for the second


@pytest.mark.parametrize(
    ("texts", "most", "sets"),
    [
        (
            ("S[m] = exp(X[m])", "T[m] = exp(S[m])", "V[m] = exp(Y[m])", "Z[m] = add(S[m], T[m])", "R[m] = exp(V[m])"),
            5,
            [(0, 1, 2, 3, 4), (0, 1, 3), (1, 2, 3, 4), (1, 3), (2, 4)],
        ),
        # U passes from the first to the second and the last, and the third has to run in between
        (
            ("U[m] = exp(X[m])", "V[m] = exp(U[m])", "W[m] = exp(V[m])", "Z[m] = add(W[m], U[m])"),
            3,
            [(1, 2), (1, 2, 3), (2, 3)],
        ),
    ],
)
def test_sets_that_hang_together_or_interleave_and_have_nobody_in_between(
    texts: tuple[str, ...], most: int, sets: list[tuple[int, ...]]
) -> None:
    workload = build_workload("w", texts, {"m": 2}, bits=1)
    nothing: dict[str, Any] = dict.fromkeys(("signatures", "slots", "capacities", "insides", "least"), ())
    assert Candidates(workload, most=most, apart=False, free=True, **nothing)._linked() == sets


def _as_in_the_program(
    self: GroupJoiner, bits: IntArray, live: LiveTensor, block: PmappingGroup, group: OpenGroup | None
) -> IntArray:
    """Slots for the stages between writer and last reader in the program, whoever runs when."""
    position = self.workload.position
    last = max(position[user] for user in self.workload.consumers[live.tensor])
    return bits * (last - position[self.workload.producers[live.tensor]] + 1) if group is None else bits * 0


def _numbered_by_place(self: GroupJoiner, last: int, group: OpenGroup) -> tuple[Edge, ...]:
    """Stages in program order, though their times are in the order in which they run."""
    stages = {place: stage for stage, place in enumerate(sorted((*group.members, last)))}
    position = self.workload.position
    pairs = [(tensor, user) for tensor, _ in group.made for user in self.workload.consumers[tensor]]
    return tuple(
        Edge(stages[position[self.workload.producers[tensor]]], stages[position[user]], None) for tensor, user in pairs
    )


MISTAKES: dict[str, tuple[object, str, object, Problem]] = {
    "only what hangs together": (Candidates, "_interleave", lambda *_: False, ordered_group_problem(580)),
    "neighbours of the program": (Candidates, "_linked", Candidates._neighbours, ordered_group_problem(0)),
    "one slot": (GroupJoiner, "_slots", lambda self, memory, distance: 1, meeting(6)),
    "slots of the program": (GroupJoiner, "_standing", _as_in_the_program, meeting(7)),
    "stages by place": (GroupJoiner, "_edges", _numbered_by_place, crossing()),
    "only those that begin": (Candidates, "grows", lambda self, members: len(members) < 2, meeting(8)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, what, mistake, problem = MISTAKES[name]
    best = optimum(problem)
    monkeypatch.setattr(place, what, mistake)
    assert not same(optimum_or_defect(problem), best)

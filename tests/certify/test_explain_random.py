"""Random tiny infeasible problems: what `explain` blames is held against every tree of the space, one by one.

The trees come from the grammar, and whether one keeps to a choice of constraints is asked of legality and the
definition of the space; the exact search has no part in that.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache
from itertools import combinations
from random import Random

import pytest

from einloom.diagnose import Explanation, explain_problem
from einloom.diagnose.constraints import Constraint, constraints, demands_full_use, only, said, where
from einloom.diagnose.feasibility import objections
from einloom.diagnose.record import Conflict, Relaxation
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.limits.data import AxisLimit, BackLimit, HoldLimit, Limits, Numbers, TileLimit
from einloom.problem import Problem
from einloom.workload.selectors import selector
from tiny_problems import tiny_problem

SEEDS = (1006, 1036, 1100, 1112, 1167, 1180, 1186, 1199, 1220, 1235, 1237, 1244, 1303, 1320)


def limited(seed: int) -> Problem:
    """A random problem under one to three random limits."""
    problem, rng = tiny_problem(seed), Random(seed)
    workload, machine = problem.workload, problem.machine
    inner = [memory.name for memory in machine.memories[1:]]
    variables = sorted({v for e in workload.einsums for v in e.variables})
    holds, backs, tiles, axes = [], [], [], []
    for _ in range(rng.choice((1, 2, 3))):
        which = selector(rng.choice((*(t.name for t in workload.tensors), "output", "all")))
        few = rng.choice((Numbers(values=(1,)), Numbers(values=(2,)), Numbers(2), Numbers(values=(1, 3))))
        kind = rng.choice(("hold", "hold", "back", "tile", "axis"))
        if kind == "hold":
            holds.append(HoldLimit(rng.choice(("keep", "may_keep", "bypass")), rng.choice(inner), which))
        elif kind == "back":
            backs.append(BackLimit(which, tuple(inner) if rng.random() < 0.7 else (machine.memories[0].name,)))
        elif kind == "tile":
            tiles.append(TileLimit(rng.choice(inner), which, (rng.choice(variables),), few))
        elif machine.axes:
            axes.append(AxisLimit(rng.choice(sorted(machine.axes)), few, rng.choice(((), (rng.choice(variables),)))))
    limits = Limits(tuple(holds), tuple(backs), (), tuple(tiles), tuple(axes))
    return replace(problem, mapspace=replace(problem.mapspace, limits=limits))


@cache
def explained(seed: int) -> Explanation:
    return explain_problem(limited(seed), quick=True)


class Trees:
    """All trees that some choice of the constraints allows, and which choices leave any of them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.all_of: tuple[Constraint, ...] = constraints(problem)
        free = only(problem, self.all_of, ())
        self.trees: list[Mapping] = list(enumerate_trees(free.workload, free.machine, free.mapspace))

    def some(self, problem: Problem) -> bool:
        """True if some tree answers `problem`, which has only constraints of the first one, or weaker ones."""
        for i, tree in enumerate(self.trees):
            if not objections(problem, tree):
                self.trees.insert(0, self.trees.pop(i))  # it may answer the next question too
                return True
        return False

    def left(self, active: Collection[int]) -> bool:
        """True if some tree keeps to the active constraints, or to these and more limits of spatial choices."""
        if self.some(only(self.problem, self.all_of, active)):
            return True
        if not any(demands_full_use(self.all_of[i]) for i in active):
            return False
        others = [i for i in range(len(self.all_of)) if i not in active]
        wider = (extra for n in range(1, len(others) + 1) for extra in combinations(others, n))
        return any(self.some(only(self.problem, self.all_of, {*active, *extra})) for extra in wider)

    def numbers(self, conflict: Conflict) -> frozenset[int]:
        """The members by their numbers."""
        wanted = {(member.place, member.text) for member in conflict.members}
        found = [i for i, c in enumerate(self.all_of) if (where(c), said(self.problem, c)) in wanted]
        return frozenset(found)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if i % 2 else ()) for i, seed in enumerate(SEEDS)]
)
def test_conflicts_and_relaxations_are_what_they_claim(seed: int) -> None:
    problem = limited(seed)
    found = explained(seed)
    assert found.status == "infeasible"
    assert found.complete
    trees = Trees(problem)
    for conflict in found.conflicts:
        check_conflict(trees, conflict)
    check_smallest(trees, found)
    assert found.relaxations
    for relaxation in found.relaxations:
        assert relaxation.problem is not None
        assert trees.some(relaxation.problem)
        check_least(trees, relaxation)


def check_conflict(trees: Trees, conflict: Conflict) -> None:
    """The members leave no tree, and all but any one of them leave some."""
    members = trees.numbers(conflict)
    assert len(members) == len(conflict.members)
    assert not trees.some(only(trees.problem, trees.all_of, members))
    assert conflict.minimal
    for i in members:
        assert trees.left(members - {i}), said(trees.problem, trees.all_of[i])


def check_smallest(trees: Trees, found: Explanation) -> None:
    first = found.conflicts[0]
    assert first.smallest
    for size in range(len(first.members)):
        for choice in combinations(range(len(trees.all_of)), size):
            assert trees.left(choice)


def check_least(trees: Trees, relaxation: Relaxation) -> None:
    """The smallest sufficient size: with a bit less there is no tree."""
    assert relaxation.problem is not None
    last = relaxation.changes[-1]
    for memory in relaxation.problem.machine.memories:
        if f"{memory.name}.size" == last.place and memory.size is not None:
            smaller = replace(memory, size=memory.size - 1)
            levels = tuple(smaller if x.name == memory.name else x for x in relaxation.problem.machine.levels)
            machine = replace(relaxation.problem.machine, levels=levels)
            assert not trees.some(replace(relaxation.problem, machine=machine))


def test_the_seeds_are_varied() -> None:
    conflicts = [explained(seed) for seed in SEEDS]
    sizes = {len(found.conflicts[0].members) for found in conflicts}
    assert {1, 2, 3} <= sizes
    assert any(len(found.conflicts) > 1 for found in conflicts)
    assert any(len(one.changes) > 1 for found in conflicts for one in found.relaxations)
    places = {m.place.rpartition(".")[2] for found in conflicts for c in found.conflicts for m in c.members}
    assert {"mapspace", "size", "must", "may", "backs", "only_irrelevant_to"} <= places, places

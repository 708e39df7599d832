"""Stores for several readers together with groups of Einsums: what all trees say, and with which mistakes it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from textwrap import dedent

import pytest

from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.legality.concurrency import has_concurrent
from einloom.mapping.text import parse_mapping
from einloom.mapspace.ffm.enumerate import candidates as written
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact.concurrent import candidates, passes, rows
from einloom.search.exact.concurrent.candidates import Candidates, drains
from einloom.search.exact.concurrent.joins import GroupJoiner
from einloom.search.exact.einsums.classes import EinsumClass, UnitOption
from einloom.search.exact.einsums.holds import Placement, backing
from einloom.search.exact.fusion.templates import FusedTemplate, OwnStore
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from optima import at_most, enumerated, optimum, optimum_or_defect, same, searched
from sharing import grouped_sharing_problem

QUICK = (27, 38, 63, 69, 78, 79, 88)  # whose optimum has both
MOST = 400  # candidates of the slow ones


def has_both(problem: Problem) -> bool:
    """True if the optimum has a group, and a store that serves several Einsums."""
    found = searched(problem)
    assert found is not None
    own = replace(problem.mapspace, stores="own")
    shares = outside(problem.workload, problem.machine, own, found.mapping)
    return bool(shares) and has_concurrent(found.mapping.nest)


@pytest.mark.parametrize("seed", QUICK)
def test_exact_is_what_all_trees_say(seed: int) -> None:
    problem = grouped_sharing_problem(seed)
    assert same(optimum(problem), enumerated(problem)) and has_both(problem)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 600, 50))
def test_exact_is_what_all_trees_say_of_many(first: int) -> None:
    for seed in range(first, first + 50):
        problem = grouped_sharing_problem(seed)
        trees = written(problem.workload, problem.machine, stores="shared")
        if at_most(trees, MOST):
            assert same(optimum(problem), enumerated(problem)), seed


def tokens(size: int, double_buffer: bool = False) -> Problem:
    """Two stages of a second for each of eight tokens; a value of E has 4 bits and serves two tokens."""
    einsums = ("T[m,n] = exp(E[m])", "Z[m,n] = add(T[m,n], E[m])")
    workload = build_workload("tokens", einsums, {"m": 4, "n": 2}, bits={"default": 1, "E": 4})
    outer = Memory("DRAM", None, 9.0, 9.0, read_throughput=16.0, write_throughput=16.0, may=selector("~T"))
    inner = Memory("GLB", size, must=selector("T | E"), may=selector("nothing"), double_buffer=double_buffer)
    units = (ComputeUnit("A", throughput=1.0), ComputeUnit("B", throughput=1.0))
    space = Mapspace(concurrent="unit", stores="shared")
    return Problem(workload, Machine("tokens", (outer, inner, *units)), space, Objective("latency"))


def test_what_it_is_worth() -> None:
    """A tile of E drains the pipeline: four times three seconds for two tokens. All of E does not: one second more than
    eight. Own stores of E leave no room for two slots of T, and one after the other takes sixteen."""
    assert same(optimum(tokens(6)), 12.0) and same(optimum(tokens(18)), 9.0)
    for places, stores in (("unit", "own"), ("none", "shared")):
        space = Mapspace(concurrent=places, stores=stores)
        assert same(optimum(replace(tokens(6), mapspace=space)), 16.0)


def test_tiles_in_turns_serve_no_stages() -> None:
    text = """
        store DRAM: E Z
        for m in 4
        store GLB: E
        for n in 2
        store GLB: T
        split pipelined @ unit:
          - compute T @ A
          - compute Z @ B
    """

    def reasons(problem: Problem) -> tuple[str, ...]:
        tree = parse_mapping(dedent(text).strip(), problem.workload, problem.machine)
        return outside(problem.workload, problem.machine, problem.mapspace, tree)

    assert reasons(tokens(6)) == ()
    found = reasons(tokens(20, double_buffer=True))
    assert found and all("it holds tiles in turns" in reason for reason in found)


Lowered = tuple[int, frozenset[OwnStore]]


def _lowered(
    signature: EinsumClass, structure: FusedTemplate, own: tuple[OwnStore, ...], slots: tuple[int, ...]
) -> Lowered:
    """Below the split, as if it served one Einsum."""
    return drains(signature, structure, tuple(replace(s, part=None) for s in own), slots)


def _drains_nothing(
    signature: EinsumClass, structure: FusedTemplate, own: tuple[OwnStore, ...], slots: tuple[int, ...]
) -> Lowered:
    return drains(signature, structure, tuple(s for s in own if not s.part), slots)


def _each_for_itself(
    self: Candidates, memory: int, members: tuple[int, ...], choices: list[list[tuple[UnitOption, Placement]]]
) -> Iterator[int]:
    """Room as if every member kept a store of its own."""
    for i, some in zip(members, choices, strict=True):
        bits = [tensor.bits[memory] * self.slots[memory] for tensor in self.signatures[i].tensors]
        yield min(sum(bits[t] for t in held[memory] if backing(held, t) < memory) for _, held in some)


MISTAKES: dict[str, tuple[tuple[tuple[object, str, object], ...], Problem]] = {
    "below the split": (((rows, "drains", _lowered), (passes, "drains", _lowered)), grouped_sharing_problem(17)),
    "drains nothing": (
        ((rows, "drains", _drains_nothing), (passes, "drains", _drains_nothing)),
        grouped_sharing_problem(44),
    ),
    "each for itself": (((candidates.Candidates, "_needs", _each_for_itself),), tokens(6)),
    "in turns": (((rows.GroupExplorer, "_in_turns", lambda self, store: False),), grouped_sharing_problem(51)),
    "takes no room": (((GroupJoiner, "_lent_standing", lambda self, bits, *_: bits * 0),), grouped_sharing_problem(14)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, problem = MISTAKES[name]
    best = optimum(problem)
    for place, what, mistake in wrong:
        monkeypatch.setattr(place, what, mistake)
    assert not same(optimum_or_defect(problem), best)

"""States carry groups of Einsums that run at the same time: every tree of rule 13 has one, and moves reach all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import islice

import pytest

from einloom.cost.evaluate import evaluate, legality
from einloom.errors import BudgetExhausted, Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.legality.concurrency import has_concurrent
from einloom.mapping.normal import normal_form
from einloom.mapping.tree import Mapping, Split
from einloom.mapspace.ffm.encoding import Encoding
from einloom.mapspace.ffm.encoding.state import Frame
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.door import ask
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics.points import Points
from einloom.search.registry import method
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from state_checks import look, reached
from tiny_groups import group_problem
from tiny_shares import share_problem

DRAM = Memory("DRAM", None, 10.0, 12.0, read_throughput=2.0, write_throughput=2.0)
SLOW, MAC = ComputeUnit("SLOW", 0.5, 0.5, kinds=("map",)), ComputeUnit("MAC", 1.0, 0.5)
PAIR = ("T[m] = exp(X[m])", "Z[m] = exp(T[m])")
FLAT = ("T[m,n] = exp(X[m,n])", "Z[m,n] = exp(T[m,n])")
THREE = ("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = exp(T[m])")
CHAINS = ("S[m] = exp(X[m])", "P[m] = exp(Y[m])", "T[m] = exp(S[m])", "Z[m] = exp(P[m])")
COPIED = ("S[m] = exp(X[m])", "I[m] = copy S[m]", "Z[m] = exp(I[m])")
FAN, FULL = Fanout("PE", (Axis("X", 2),)), Fanout("PE", (Axis("X", 4, use="full"),))


def buffer(may: str) -> Memory:
    return Memory("GLB", None, 1.0, 1.0, may=selector(may))


def problem(einsums: tuple[str, ...], extents: dict[str, int], space: Mapspace, *levels: Level) -> Problem:
    workload = build_workload("tiny", einsums, extents, bits=8)
    return Problem(workload, Machine("tiny", (DRAM, *levels, MAC)), space, Objective("latency"))


ANY_ORDER = Mapspace(concurrent="shared", order="free")
CASES = {
    "unit": problem(PAIR, {"m": 2}, Mapspace(concurrent="unit"), buffer("T"), SLOW),
    "shared": problem(PAIR, {"m": 4}, Mapspace(concurrent="shared"), buffer("T")),
    "any": problem(FLAT, {"m": 2, "n": 1}, Mapspace(concurrent="any"), buffer("T"), SLOW),
    "three": problem(THREE, {"m": 2}, Mapspace(concurrent="shared"), buffer("S | T")),
    "at most two": problem(THREE, {"m": 2}, Mapspace(concurrent="shared", max_group=2), buffer("S | T")),
    "axis": problem(PAIR, {"m": 2}, Mapspace(concurrent="axis"), buffer("T"), FAN),
    "axis in full use": problem(FLAT, {"m": 2, "n": 3}, Mapspace(concurrent="axis"), buffer("T"), FULL),
    "everywhere": problem(PAIR, {"m": 2}, Mapspace(concurrent="everywhere"), buffer("T"), FAN, SLOW),
    "uneven": problem(PAIR, {"m": 3}, Mapspace("ragged", concurrent="shared"), buffer("T")),
    "copy": problem(COPIED, {"m": 2}, Mapspace(concurrent="shared"), buffer("S | I")),
    "free": problem((PAIR[0], "Y[m] = exp(W[m])", PAIR[1]), {"m": 2}, ANY_ORDER, buffer("T")),
    "two chains": problem(CHAINS, {"m": 2}, replace(ANY_ORDER, max_fused_loops=1), buffer("S | P")),
    "shared stores": problem(
        ("T[m] = exp(E[m])", "Z[m] = add(T[m], E[m])"),
        {"m": 2},
        Mapspace(concurrent="shared", stores="shared"),
        buffer("T | E"),
    ),
}


def encoding_of(asked: Problem) -> Encoding:
    return Encoding(asked.workload, asked.machine, asked.mapspace)


DEAR = ("two chains",)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in DEAR else ()) for n in CASES])
def test_every_tree_has_a_state_that_moves_reach(name: str) -> None:
    """Room, rules and value of each are those of the tree."""
    asked = CASES[name]
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points = Points(asked, space, Evaluator(asked, space))
    encoding, states = points.encoding, []
    for tree in enumerate_trees(asked.workload, asked.machine, asked.mapspace):
        state = encoding.encode(tree)
        assert state is not None and bool(state.groups) == has_concurrent(tree.nest)
        assert encoding.decode(state) == normal_form(tree, asked.workload)
        assert encoding.fault(state) is None
        value = evaluate(asked.workload, asked.machine, tree).latency
        assert points.apart(state) == pytest.approx(value, rel=1e-12)
        states.append(state)
    assert len(set(states)) == len(states) > 10 and any(state.groups for state in states)
    assert reached(encoding, len(states)) == set(states)


def test_branches_of_several_einsums_have_no_state() -> None:
    asked = CASES["three"]
    encoding = encoding_of(asked)
    trees = enumerate_trees(asked.workload, asked.machine, asked.mapspace)
    tree = next(tree for tree in trees if has_concurrent(tree.nest))
    split = tree.nest[-1]
    assert isinstance(split, Split) and encoding.encode(tree) is not None
    parallel = Mapping((*tree.nest[:-1], replace(split, kind="parallel")))
    assert encoding.encode(parallel) is None


def test_a_group_is_a_fault_where_there_are_none() -> None:
    asked = CASES["three"]
    encoding = encoding_of(asked)
    two = encoding_of(CASES["at most two"])
    alone = encoding_of(replace(asked, mapspace=Mapspace()))
    units = encoding_of(replace(asked, mapspace=Mapspace(concurrent="unit")))
    seen = Counter[tuple[int, str | None, str | None, str | None]]()
    for tree in enumerate_trees(asked.workload, asked.machine, asked.mapspace):
        state = encoding.encode(tree)
        assert state is not None
        most = max((last - first + 1 for first, last, *_ in state.groups), default=0)
        others = (other.fault(replace(state, known={})) for other in (alone, units, two))
        seen[(most, *others)] += 1
    assert set(seen) == {(0, None, None, None), (2, "group", "group", None), (3, "group", "group", "group")}


def test_a_share_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every branch had the whole axis, and had to use it."""
    asked = CASES["axis in full use"]
    monkeypatch.setattr(Frame, "left_of", lambda frame, i: ())
    encoding = encoding_of(asked)
    trees = enumerate_trees(asked.workload, asked.machine, asked.mapspace)
    states = [state for tree in trees if (state := encoding.encode(tree)) is not None]
    assert {(bool(state.groups), encoding.fault(state)) for state in states} == {(False, None), (True, "full use")}


@cache
def least(case: str) -> float:
    return ask(method("exhaustive"), CASES[case]).value


@pytest.mark.parametrize("name", ["random", "anneal", "genetic", "local"])
@pytest.mark.parametrize("case", ["any", "axis in full use", "three"])
def test_methods_run_einsums_at_the_same_time(name: str, case: str) -> None:
    asked = CASES[case]
    assert ask(method(name), asked, Budget(steps=400)).value == least(case)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 12), marks=pytest.mark.slow)])
def test_states_of_random_problems_with_groups(seeds: range) -> None:
    seen = Counter[str]()
    for seed, asked in ((seed, make(seed)) for seed in seeds for make in (group_problem, share_problem)):
        read, encoding = (asked.workload, asked.machine, asked.mapspace), encoding_of(asked)
        grouped = (tree for tree in islice(enumerate_trees(*read), 400) if has_concurrent(tree.nest))
        for tree in islice(grouped, 30):
            state = encoding.encode(tree)
            assert state is not None and state.groups and encoding.decode(state) == normal_form(tree, asked.workload)
            assert encoding.fault(state) == ("capacity" if legality(*read[:2], tree) else None)
            seen["grouped"] += 1
        look(seed, read, seen)
    assert seen["grouped"] > 20 * len(seeds) and seen["states"], seen


@pytest.mark.slow
@pytest.mark.parametrize("make", [group_problem, share_problem])
def test_no_method_is_below_the_optimum_of_random_problems_with_groups(make: object) -> None:
    compared = Counter[str]()
    for asked in map(make, range(6)):  # type: ignore[call-overload]
        if len(list(islice(enumerate_trees(asked.workload, asked.machine, asked.mapspace), 1500))) == 1500:
            continue
        try:
            best = ask(method("exhaustive"), asked).value
        except Infeasible:
            continue
        for name in ("random", "anneal", "genetic", "tileflow", "dat", "gradient", "bayes", "auto"):
            try:
                found = ask(method(name), asked, Budget(steps=200)).value
            except BudgetExhausted:
                continue
            assert found >= best * (1 - 1e-12)
            compared[name] += 1
    assert min(compared.values()) > 1 and len(compared) == 8

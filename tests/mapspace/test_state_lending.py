"""States carry stores for several readers: every tree of `stores: shared` has one, and moves reach all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from einloom.cost.evaluate import legality
from einloom.errors import Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory, Toll
from einloom.mapping.normal import normal_form
from einloom.mapspace.ffm.encoding import Encoding
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.door import ask
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics.points import Points
from einloom.search.registry import method
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from sharing import ordered_problem, sharing_problem, sharing_trees
from state_checks import agrees, look, reached

MAC = ComputeUnit("MAC", 1.0, 0.5)
FAN = Fanout("PE", (Axis("X", 2),))
SHARED, FREE = Mapspace(stores="shared"), Mapspace(stores="shared", order="free")


def buffer(may: str, must: str = "nothing", size: int | None = None) -> Memory:
    return Memory("GLB", size, 1.0, 1.0, may=selector(may), must=selector(must))


def problem(
    einsums: tuple[str, ...], extents: dict[str, int], *levels: Level, space: Mapspace = SHARED, outer: float = 10.0
) -> Problem:
    workload = build_workload("tiny", einsums, extents, bits=8)
    memory = Memory("DRAM", None, outer, outer, read_throughput=2.0, write_throughput=2.0)
    return Problem(workload, Machine("tiny", (memory, *levels, MAC)), space, Objective("energy"))


def encoding_of(asked: Problem) -> Encoding:
    return Encoding(asked.workload, asked.machine, asked.mapspace)


RESIDUAL = ("T[m] = exp(E[m])", "Z[m] = add(T[m], E[m])")
WEIGHT = ("T[m] = X[m] * E[]", "Z[m] = T[m] * E[]")
THREE = ("S[m] = X[m] * E[]", "T[m] = S[m] * E[]", "Z[m] = T[m] * E[]")
BETWEEN = (WEIGHT[0], "Y[m] = exp(W[m])", WEIGHT[1])
MIDDLE = ("U[m] = exp(X[m])", "S[m] = exp(U[m])", "Z[m] = add(S[m], U[m])")
KEYS = ("T[m,n] = A[m] * E[n]", "Z[m] = T[m,n] * E[n]")
LB = Memory("LB", None, 0.1, 0.1, may=selector("T | E"))
CASES = {
    "residual": problem(RESIDUAL, {"m": 2}, buffer("T | E")),
    "keys are values": problem(KEYS, {"m": 2, "n": 1}, buffer("T | E")),
    "weights": problem(("T[m] = X[m] * E[k]", "Z[m] = T[m] * E[k]"), {"m": 2, "k": 2}, buffer("T | E", "T")),
    "three": problem(THREE, {"m": 2}, buffer("T | E", "T | E")),
    "an intermediate": problem(MIDDLE, {"m": 2}, buffer("S | U")),
    "uneven": problem(RESIDUAL, {"m": 3}, buffer("T | E"), space=Mapspace("ragged", stores="shared")),
    "two memories": problem(WEIGHT, {"m": 2}, buffer("E"), LB),
    "free": problem(BETWEEN, {"m": 2}, buffer("T | E"), space=FREE),
    "below a fanout": problem(RESIDUAL, {"m": 2}, FAN, buffer("T | E")),
}


DEAR = ("two memories", "weights")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in DEAR else ()) for n in CASES])
def test_every_tree_has_a_state_that_moves_reach(name: str) -> None:
    asked = CASES[name]
    encoding = encoding_of(asked)
    trees = list(enumerate_trees(asked.workload, asked.machine, asked.mapspace))
    states = [state for tree in trees if (state := encoding.encode(tree)) is not None]
    assert len(set(states)) == len(trees) > 30 and sum(bool(state.lent) for state in states) > 1
    for tree, state in zip(trees, states, strict=True):
        assert encoding.decode(state) == normal_form(tree, asked.workload)
        assert encoding.fault(state) is None
        if state.lent:
            agrees(encoding, state)
    assert reached(encoding, len(trees), 100_000) == set(states)


@pytest.mark.parametrize("rule", ["_beside", "_fused"])
def test_a_rule_left_out_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule moves come to states outside the space."""
    asked = problem(WEIGHT, {"m": 2}, buffer("T | E"), LB)

    def beyond() -> bool:
        encoding = encoding_of(asked)
        found = (encoding.decode(state) for state in reached(encoding, 10**6, 4000))
        return any(outside(asked.workload, asked.machine, asked.mapspace, tree) for tree in found)

    assert not beyond()
    monkeypatch.setattr(f"einloom.mapspace.ffm.encoding.lent_stores.{rule}", lambda *_: rule == "_fused")
    assert beyond()


def test_a_shared_store_is_a_fault_where_stores_are_own() -> None:
    asked = CASES["weights"]
    encoding = encoding_of(asked)
    own = encoding_of(replace(asked, mapspace=Mapspace()))
    trees = enumerate_trees(asked.workload, asked.machine, asked.mapspace)
    states = [state for tree in trees if (state := encoding.encode(tree)) is not None]
    faults = {(bool(state.lent), own.fault(replace(state, known={}))) for state in states}
    assert faults == {(False, None), (True, "store of several Einsums")}


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("genetic", "dat", "gradient")]


@pytest.mark.parametrize("name", ["random", "anneal", "local", *SLOW])
def test_methods_share_a_store(name: str) -> None:
    """The best mapping fetches E once for both Einsums."""
    asked = problem(RESIDUAL, {"m": 4}, buffer("T | E", size=16), outer=100.0)
    best, own = (ask(method("exhaustive"), replace(asked, mapspace=one)).value for one in (SHARED, Mapspace()))
    assert best < own and ask(method(name), asked, Budget(steps=600)).value == pytest.approx(best, rel=1e-12)


def test_what_closed_forms_do_not_speak_of_is_priced_in_its_tree() -> None:
    """On the way past a toll, too, E is paid for once."""
    asked = problem(RESIDUAL, {"m": 4}, Toll("BUS", 3.0), buffer("T | E"))
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points, lent = Points(asked, space, Evaluator(asked, space)), 0
    for tree in enumerate_trees(asked.workload, asked.machine, asked.mapspace):
        state = points.encoding.encode(tree)
        assert state is not None
        assert points.apart(state) == pytest.approx(points.evaluator.of(tree).value, rel=1e-12)
        lent += bool(state.lent)
    assert lent > 2


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 30), marks=pytest.mark.slow)])
def test_states_of_random_problems_with_shared_stores(seeds: range) -> None:
    seen = Counter[str]()
    for seed in seeds:
        asked = sharing_problem(seed)
        encoding = encoding_of(asked)
        for tree in islice(sharing_trees(asked, 100), 20):
            state = encoding.encode(tree)
            assert state is not None and state.lent
            assert encoding.fault(state) == ("capacity" if legality(asked.workload, asked.machine, tree) else None)
            agrees(encoding, state)
            seen["sharing"] += 1
        for one in (asked, ordered_problem(seed)):
            look(seed, (one.workload, one.machine, one.mapspace), seen)
    assert seen["sharing"] > len(seeds) and seen["states"] and seen["shared"], seen


@pytest.mark.slow
def test_methods_find_the_optimum_of_random_problems_in_free_order_with_shared_stores() -> None:
    compared = 0
    for seed in range(8):
        asked = ordered_problem(seed)
        try:
            best = ask(method("exhaustive"), asked).value
        except Infeasible:
            continue
        for name in ("random", "anneal", "genetic"):
            assert ask(method(name), asked, Budget(steps=1000)).value == pytest.approx(best, rel=1e-12), (name, seed)
            compared += 1
    assert compared > 8

"""States carry uneven tiles: every tree of `ragged` has one, moves reach all of them, prices are `evaluate`'s."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from einloom.cost.evaluate import evaluate
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.normal import normal_form
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.encoding import Encoding, NoProposal
from einloom.mapspace.ffm.encoding.checks import chains_of, path_fault
from einloom.mapspace.ffm.encoding.state import State, word
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.limits.data import AxisLimit, BackLimit, HoldLimit, Limits, LoopLimit, Numbers, TileLimit
from einloom.mapspace.space import Mapspace
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload
from state_checks import agrees, look, random_reads, reached

DRAM = Memory("DRAM", None, 10.0, 12.0, read_throughput=2.0, write_throughput=2.0)
MAC = ComputeUnit("MAC", 1.0, 0.5)
LB = Memory("LB", None, 0.1, 0.1)
OUTPUTS = Memory("LB", None, 0.1, 0.1, may=selector("output"))
PASS = ("Z[m] = A[m]",)
PAIR = ("B[m] = A[m]", "C[m] = B[m]")
FLAT = ("B[m,n] = A[m,n]", "C[m,n] = B[m,n]")
MATMUL = ("Z[m,n] = A[m,k] * B[k,n]",)
CHAIN = ("B[m,n] = A[m,k] * W[k,n]", "C[m,p] = B[m,n] * V[n,p]")
Case = tuple[Workload, Machine, Mapspace]


def buffer(may: str = "all", size: int | None = None) -> Memory:
    return Memory("GLB", size, 1.0, 1.0, may=selector(may))


def fan(size: int = 2, use: str = "any", *more: Axis) -> Fanout:
    return Fanout("PE", (Axis("X", size, use=use), *more))  # type: ignore[arg-type]


def case(
    einsums: tuple[str, ...],
    extents: dict[str, int],
    *levels: Level,
    limits: Limits | None = None,
    most: int | None = None,
) -> Case:
    workload = build_workload("tiny", einsums, extents, bits=8)
    space = Mapspace("ragged", limits=limits or Limits(), max_fused_loops=most)
    return workload, Machine("tiny", (DRAM, *levels, MAC)), space


THIRDS = Limits(axes=(AxisLimit("X", Numbers(values=(1, 3)), ("m",)),))
BACKED = Limits(backs=(BackLimit(selector("B"), ("GLB",)),))
TILED = Limits(tiles=(TileLimit("GLB", selector("A"), ("m",), Numbers(most=3)),))
LOOPED = Limits(loops=(LoopLimit(selector("B"), ("m",), Numbers(values=(1, 3))),))
KEPT = Limits(holds=(HoldLimit("keep", "GLB", selector("A")), HoldLimit("once", "GLB", selector("A"))))
UNFUSED = Limits(backs=(BackLimit(selector("B"), ("DRAM",)),))
BYPASSED = Limits(holds=(HoldLimit("bypass", "GLB", selector("Z")), HoldLimit("may_keep", "GLB", selector("A | Z"))))
QUICK = {
    "five": case(PASS, {"m": 5}, buffer()),
    "fused": case(PAIR, {"m": 5}, buffer("intermediate")),
    "two ranks": case(FLAT, {"m": 3, "n": 2}, buffer("intermediate")),
    "full": case(MATMUL, {"m": 3, "n": 3, "k": 1}, buffer("input"), fan(use="full")),
    "wide": case(PASS, {"m": 7}, buffer(), fan(3)),
    "two axes": case(PASS, {"m": 7}, buffer(), fan(2, "full", Axis("Y", 2, use="full"))),
    "spread window": case(("O[p] = I[p+r] * F[r]",), {"p": 5, "r": 1}, fan(use="full"), OUTPUTS),
    "bare array": case(("O[p] = I[p+r] * F[r]",), {"p": 5, "r": 2}, fan(3), OUTPUTS),
    "two loops below": case(("O[p,q] = I[p+r,q+s]",), {"p": 5, "q": 3, "r": 2, "s": 1}, fan(2, "any", Axis("Y", 2))),
    "share": case(PASS, {"m": 7}, buffer(), fan(3), limits=THIRDS),
    "backed": case(FLAT, {"m": 3, "n": 2}, buffer("intermediate"), limits=BACKED),
    "tiled": case(PASS, {"m": 7}, buffer(), limits=TILED),
    "looped": case(PAIR, {"m": 5}, buffer("intermediate"), limits=LOOPED),
    "unfused": case(PAIR, {"m": 5}, buffer("intermediate"), limits=UNFUSED),
    "bypassed": case(MATMUL, {"m": 3, "n": 1, "k": 1}, buffer(), limits=BYPASSED),
    "kept": case(PASS, {"m": 7}, buffer(), limits=KEPT),
}
LONG = {
    "one fused loop": case(FLAT, {"m": 3, "n": 3}, buffer("intermediate"), most=1),
    "axis": case(PASS, {"m": 5}, buffer(), fan(), LB),
    "inner": case(PAIR, {"m": 3}, fan(), Memory("LB", None, 0.1, 0.1, may=selector("intermediate"))),
    "three": case((*PAIR, "E[m] = C[m]"), {"m": 3}, buffer("intermediate")),
    "chain": case(CHAIN, {"m": 3, "k": 1, "n": 1, "p": 1}, buffer("intermediate | weight")),
}
CASES = [
    *(pytest.param(one, id=name) for name, one in QUICK.items()),
    *(pytest.param(one, id=name, marks=pytest.mark.slow) for name, one in LONG.items()),
]


def below_an_array(tree: Mapping) -> bool:
    """True if a loop over a window stands directly below the spatial loop that cuts it unevenly."""
    lines = [line.split() for line in str(tree).splitlines()]
    last = max((n for n, words in enumerate(lines) if words[0] == "par"), default=len(lines))
    spread = {words[1] for words in lines if words[0] == "par"} & {"p", "q"}
    inside = lines[last:]
    return any(words[0] == "for" and words[1] in spread for words in inside) and ["store"] not in [
        w[:1] for w in inside
    ]


@pytest.mark.parametrize("problem", CASES)
def test_every_tree_has_a_state_that_moves_reach(problem: Case) -> None:
    """Below an array the enumeration writes loops in every order, and above it, too, where they may; states once."""
    encoding, states, written = Encoding(*problem), set[State](), 0
    for tree in enumerate_trees(*problem):
        state = encoding.encode(tree)
        assert state is not None and encoding.fault(state) is None
        again, normal = encoding.decode(state), normal_form(tree, problem[0])
        if again == normal:
            written += 1
            agrees(encoding, state)
        else:
            assert below_an_array(tree) and below_an_array(again)
            assert evaluate(*problem[:2], again).actions == evaluate(*problem[:2], normal).actions
        states.add(state)
    assert len(states) == written > 3
    assert any(own.covers for state in states for own in state.owns)
    assert reached(encoding, written) == states


def test_windows_are_cut_unevenly_by_spatial_loops_alone() -> None:
    encoding, axes = Encoding(*QUICK["spread window"]), set[str | None]()
    trees = list(enumerate_trees(*QUICK["spread window"]))
    assert {below_an_array(tree) for tree in trees} == {True, False}
    for tree in trees:
        state = encoding.encode(tree)
        assert state is not None and below_an_array(encoding.decode(state)) == below_an_array(tree)
        if state.owns[0].covers:
            axes.add(chains_of(word(encoding.facts, state, 0))["p"][0][0])
    assert axes == {"X"}


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 260), marks=pytest.mark.slow)])
def test_states_of_random_problems(seeds: range) -> None:
    seen = Counter[str]()
    for seed, read in random_reads("uneven tiles", seeds, seen):
        look(seed, read, seen)
    assert seen["problems"] > len(seeds) / 2 and seen["trees"] and seen["states"] and seen["refused"], seen


@pytest.mark.parametrize(
    ("workload", "machine"), [("tileflow-bert-s", "tileflow-edge"), ("mobilenet-block", "two-level")]
)
def test_draws_and_moves_of_the_zoo(workload: str, machine: str) -> None:
    encoding, rng = Encoding(load_workload(workload), load_machine(machine), Mapspace("ragged")), Random(5)
    state, uneven = encoding.sample(rng), 0
    for step in range(60):
        assert state is not None
        try:
            found = encoding.propose(state, rng)
        except NoProposal:
            continue
        state = found if encoding.fits(found) else state
        uneven += any(own.covers for own in state.owns)
        if step % 10 == 9:
            agrees(encoding, state)
    assert uneven


WINDOW = case(("O[p] = I[p+r] * F[r]",), {"p": 5, "r": 2}, buffer("input"), fan(3))
BALANCED = case(PASS, {"m": 13}, fan(4), OUTPUTS)


@pytest.mark.parametrize(
    ("problem", "rule"),
    [
        (BALANCED, "einloom.mapspace.ffm.encoding.covers.balanced"),
        (WINDOW, "einloom.mapspace.ffm.encoding.facts.Facts.may_be_uneven"),
    ],
)
def test_a_rule_left_out_is_noticed(problem: Case, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without balance, or with windows that may be cut anyhow, moves come to states outside the space."""

    def beyond() -> bool:
        encoding = Encoding(*problem)
        return any(outside(*problem, encoding.decode(state)) for state in reached(encoding, 10**6, 4000))

    assert not beyond()
    monkeypatch.setattr(rule, lambda *_: True)
    assert beyond()


def test_uneven_tiles_are_a_fault_in_ffm() -> None:
    workload, machine, _ = QUICK["five"]
    encoding, perfect = Encoding(*QUICK["five"]), Encoding(workload, machine, Mapspace())
    states = [encoding.encode(tree) for tree in enumerate_trees(*QUICK["five"])]
    faults = {perfect.fault(state) for state in states if state is not None}
    assert faults == {None, "uneven tile"}
    assert path_fault(perfect.facts, next(s for s in states if s and s.owns[0].covers), 0) == "uneven tile"

"""One planted tree per reason: the reason is found, and it is the only one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases import arrayed, cascade, machine, simple
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.legality.dependence import _overlap
from einloom.mapping.legality.reason import lines_of
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import parse_located, parse_mapping
from einloom.mapping.tree import Compute, Loop, Mapping, Split, Store
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

MATMUL = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 4, "n": 4, "k": 4})
TWO = cascade("E0: T[m,n] = A[m,k] * B[k,n]\nE1: Z[m,q] = T[m,n] * C[n,q]", {"m": 4, "n": 4, "k": 4, "q": 4})
CONVS = cascade("E0: T[u] = exp(A[u])\nE1: Z[p] = T[p+r] * W[r]", {"u": 10, "p": 8, "r": 3})
COPY = cascade("E: B[m] = copy(A[m])", {"m": 4})
LOOPS = "for m in 4\nfor n in 4\nfor k in 4\n"


def reasons(workload: Workload, on: Machine, text: str) -> tuple[str, ...]:
    return problems(workload, on, parse_mapping(text, workload, on))


def two(head: str, first: str = "", second: str = "", split: str = "split sequential:") -> str:
    """Text of a tree of two Einsums: shared nodes, then the nodes of each branch, in one line each with ``;``."""
    lines = [*filter(None, head.split("; ")), split]
    for body, leaf in ((first, "compute E0 @ MAC"), (second, "compute E1 @ MAC")):
        nodes = [*filter(None, body.split("; ")), leaf]
        lines += [f"  {'- ' if i == 0 else '  '}{node}" for i, node in enumerate(nodes)]
    return "\n".join(lines)


def reserved(memory: str, **limits: str) -> Machine:
    """`simple` with limits on one of its memories."""
    chosen = {key: selector(value) for key, value in limits.items()}
    levels = tuple(replace(x, **chosen) if isinstance(x, Memory) and x.name == memory else x for x in simple().levels)
    return Machine("case", levels)


SPREAD = machine(
    Memory("DRAM"),
    Memory("GLB"),
    Fanout("F", (Axis("X", 4, only_irrelevant_to=selector("input")), Axis("Y", 2))),
    Memory("Reg"),
    ComputeUnit("MAC"),
)
TWO_UNITS = machine(
    Memory("DRAM"),
    ComputeUnit("ADD", kinds=("map",)),
    Fanout("F", (Axis("X", 4),)),
    Memory("Reg"),
    ComputeUnit("MAC", kinds=("multiply",)),
)


@pytest.mark.parametrize(
    ("workload", "on", "text"),
    [
        (MATMUL, simple(), f"store DRAM: A B Z\nstore GLB: A\n{LOOPS}compute E @ MAC"),
        (MATMUL, simple(), "store DRAM: A B Z\nfor m in 2 tile 3\nfor m in 3\nfor n in 4\nfor k in 4\ncompute E @ MAC"),
        (MATMUL, arrayed(), "store DRAM: A B Z\npar n in 4 @ X\nstore Reg: A\nfor m in 4\nfor k in 4\ncompute E @ MAC"),
        (COPY, simple(), "store DRAM: A B\nstore GLB: B\nfor m in 4\ncompute E"),
        (
            TWO,
            simple(),
            two(
                "store DRAM: A B C Z; for m in 2; store GLB: T",
                "for m in 2; for n in 4; for k in 4",
                "for m in 2; for n in 4; for q in 4",
            ),
        ),
        (TWO, simple(), two("store DRAM: A B C Z; store GLB: T; for m in 4; for n in 4", "for k in 4", "for q in 4")),
        (
            CONVS,
            simple(),
            two("store DRAM: A W Z; for E0.u, E1.p in 4; store GLB: T", "for u in 4", "for p in 2; for r in 3"),
        ),
        (
            CONVS,
            simple(),
            two(
                "store DRAM: A W Z; store GLB: T; for E0.u, E1.p in 2; for E0.u, E1.p in 2",
                "for u in 4",
                "for p in 2; for r in 3",
            ),
        ),
    ],
)
def test_legal_trees_have_no_reason(workload: Workload, on: Machine, text: str) -> None:
    assert reasons(workload, on, text) == ()


UNFUSED0, UNFUSED1 = "for m in 4; for n in 4; for k in 4", "for m in 4; for n in 4; for q in 4"


@pytest.mark.parametrize(
    ("workload", "on", "text", "reason"),
    [
        # units and levels
        (MATMUL, simple(), f"store DRAM: A B Z\n{LOOPS}compute E", "Einsum E names no compute unit; it may run on MAC"),
        (COPY, simple(), "store DRAM: A B\nfor m in 4\ncompute E @ MAC", "Einsum E is a copy and runs on no unit"),
        (
            CONVS,
            TWO_UNITS,
            two("store DRAM: A T W Z", "for u in 10", "for p in 8; for r in 3"),
            "MAC does not execute Einsum E0 (map, 1 operands); it may run on ADD",
        ),
        (
            CONVS,
            TWO_UNITS,
            two("store DRAM: A T W Z", "store Reg: A; for u in 10", "for p in 8; for r in 3").replace(
                "E0 @ MAC", "E0 @ ADD"
            ),
            "E0: A is stored in Reg, which ADD cannot see",
        ),
        (
            CONVS,
            TWO_UNITS,
            two("store DRAM: A T W Z", "par u in 4 tile 3 @ X; for u in 3", "for p in 8; for r in 3").replace(
                "E0 @ MAC", "E0 @ ADD"
            ),
            "spreads over X, which is listed after ADD",
        ),
        # stores
        (MATMUL, simple(), f"store DRAM: A Z\n{LOOPS}compute E @ MAC", "E: B has no store on its path"),
        (
            MATMUL,
            simple(),
            "store DRAM: A B Z\nstore GLB: A\nfor m in 4\nstore GLB: A\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            "E: A is stored twice in GLB",
        ),
        (
            MATMUL,
            arrayed(),
            f"store DRAM: A B Z\nstore Reg: A\nstore GLB: A\n{LOOPS}compute E @ MAC",
            "E: A is stored in GLB below its store in Reg, which is further in",
        ),
        (
            MATMUL,
            arrayed(),
            "store DRAM: A B Z\nstore Reg: A\npar m in 4 @ X\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            "E: store Reg stands above 'par m in 4 @ X' but is listed after X",
        ),
        (
            MATMUL,
            arrayed(),
            "store DRAM: A B Z\npar m in 4 @ X\nstore GLB: A\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            "E: store GLB stands below 'par m in 4 @ X' but is listed before X",
        ),
        (
            MATMUL,
            SPREAD,
            "store DRAM: A B Z\npar n in 4 @ Y\nfor m in 4\nfor k in 4\ncompute E @ MAC",
            "E uses 4 instances along Y, which has 2",
        ),
        (
            MATMUL,
            SPREAD,
            "store DRAM: A B Z\npar m in 4 @ X\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            "X takes only rank variables that A lacks, and A has m",
        ),
        (
            MATMUL,
            reserved("GLB", must="A"),
            f"store DRAM: A B Z\n{LOOPS}compute E @ MAC",
            "E: GLB must hold A (must: A)",
        ),
        (
            MATMUL,
            reserved("GLB", may="~A"),
            f"store DRAM: A B Z\nstore GLB: A\n{LOOPS}compute E @ MAC",
            "E: GLB may not hold A (may: ~A)",
        ),
        (
            TWO,
            reserved("GLB", must="unheld", backs="~T"),
            two("store DRAM: A B C Z; store GLB: T", UNFUSED0, UNFUSED1),
            "GLB may not be the backing memory of T (backs: ~T)",
        ),
        (
            MATMUL,
            simple(),
            f"store DRAM: A Z\nstore GLB: B\n{LOOPS}compute E @ MAC",
            "B is an input of the cascade and must be backed by DRAM, not by GLB",
        ),
        (
            MATMUL,
            simple(),
            f"store DRAM: A B\nstore GLB: Z\n{LOOPS}compute E @ MAC",
            "Z is an output of the cascade and must be backed by DRAM, not by GLB",
        ),
        (
            TWO,
            simple(),
            two("store DRAM: A B C Z", f"store GLB: T; {UNFUSED0}", f"store GLB: T; {UNFUSED1}"),
            "T has no common backing store: GLB for E0, GLB for E1",
        ),
        (
            replace(MATMUL, tensors=tuple(replace(t, persistent=t.name == "B") for t in MATMUL.tensors)),
            simple(),
            "store DRAM: A Z\nfor m in 4\nstore DRAM: B\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            "B is persistent, but 'for m in 4' stands above its backing store in DRAM",
        ),
        # extents
        (
            MATMUL,
            simple(),
            "store DRAM: A B Z\nfor m in 4\nfor n in 4\nfor k in 2\ncompute E @ MAC",
            "E: k still has extent 2 at the leaf",
        ),
        (
            MATMUL,
            simple(),
            "store DRAM: A B Z\nfor m in 3\nfor m in 2\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            "m has extent 4 here, so tiles of 2 need 2 trips, not 3",
        ),
        # fusion
        (
            TWO,
            simple(),
            two("store DRAM: A B C Z; for E0.m in 4; store GLB: T", "for n in 4; for k in 4", UNFUSED1),
            "recomputation: Einsum E1 runs 4 times under 'for m in 4', which does not bind it",
        ),
        (
            TWO,
            simple(),
            two("store DRAM: A B C T Z; for E0.k, E1.m in 4", "for m in 4; for n in 4", "for n in 4; for q in 4"),
            "unfinished reduction: 'for E0.k, E1.m in 4' stands above E0 and E1, which reads T, but E0 still reduces k",
        ),
        (
            TWO,
            simple(),
            two("store DRAM: A B C T Z; for E0.m, E1.q in 4", "for n in 4; for k in 4", "for m in 4; for n in 4"),
            "E0.m indexes its rank 0, E1.q no rank of it",
        ),
        (
            TWO,
            simple(),
            two("store DRAM: A B C T Z; for E0.m, E1.n in 4", "for n in 4; for k in 4", "for m in 4; for q in 4"),
            "E0.m indexes its rank 0, E1.n rank 1 of it",
        ),
        (
            MATMUL,
            simple(),
            "store DRAM: A B\nfor k in 4\nfor m in 4\nstore DRAM: Z\nfor n in 4\ncompute E @ MAC",
            "unfinished reduction: 'for k in 4' stands above the backing store of Z in DRAM, but E reduces k",
        ),
        # sliding windows: T[p+r], only the innermost temporal loop above its store keeps the overlap
        (
            CONVS,
            simple(),
            two(
                "store DRAM: A W Z; for E0.u, E1.p in 2; for E0.u, E1.p in 2; store GLB: T",
                "for u in 4",
                "for p in 2; for r in 3",
            ),
            "recomputation: E1 needs 2 positions of T again that were dropped between iterations of 'for E0.u, E1.p",
        ),
        (
            CONVS,
            simple(),
            two(
                "store DRAM: A W Z; for E0.u, E1.r in 3; for E0.u, E1.p in 4; store GLB: T", "for u in 2", "for p in 2"
            ),
            "recomputation: E1 needs 7 positions of T again that were dropped between iterations of 'for E0.u, E1.r",
        ),
        (
            CONVS,
            arrayed(),
            two("store DRAM: A W Z; par E0.u, E1.p in 4 @ X; store Reg: T", "for u in 4", "for p in 2; for r in 3"),
            "recomputation: E1 needs 2 positions of T again that were held by other instances of",
        ),
        (
            CONVS,
            arrayed(),
            two("store DRAM: A T W Z; par E0.u, E1.p in 4 @ X; store Reg: T", "for u in 4", "for p in 2; for r in 3"),
            "recomputation: E1 needs 2 positions of T again that were held by other instances of",
        ),
        (
            CONVS,
            arrayed(),
            two(
                "store DRAM: A W Z; store GLB: T; par E0.u, E1.p in 2 @ X; for E0.u, E1.p in 2",
                "for u in 4",
                "for p in 2; for r in 3",
            ),
            "recomputation: E1 needs 2 positions of T again that were computed in later steps by other instances of",
        ),
        (
            CONVS,
            arrayed(),
            two(
                "store DRAM: A W Z; store GLB: T; for E0.u, E1.p in 2; par E0.u, E1.p in 2 @ X; for E0.u, E1.p in 2",
                "for u in 3",
                "for r in 3",
            ),
            "recomputation: E1 needs 2 positions of T again that were computed in later steps by other instances of",
        ),
        # branches at the same time
        (
            TWO,
            simple(),
            two("store DRAM: A B C T Z", UNFUSED0, UNFUSED1, "split pipelined @ unit:"),
            "'split pipelined @ unit': branches 1 and 2 both run on MAC; each needs units of its own",
        ),
        (
            TWO,
            simple(),
            two("store DRAM: A B C T Z", UNFUSED0, UNFUSED1, "split parallel shared:"),
            "'split parallel shared': E1 reads T, which E0 in another branch writes",
        ),
        (
            TWO,
            arrayed(),
            two("store DRAM: A B C T Z", UNFUSED0, UNFUSED1, "split pipelined @ X shares 4 1:"),
            "'split pipelined @ X': 2 branches need >= 5 instances of X, 4 available",
        ),
        (
            TWO,
            arrayed(),
            two("store DRAM: A B C T Z", UNFUSED0, UNFUSED1, "split pipelined @ X shares 4:"),
            "'split pipelined @ X' has 1 shares for 2 branches",
        ),
        (
            TWO,
            arrayed(),
            two("store DRAM: A B C T Z; store Reg: C", UNFUSED0, UNFUSED1, "split pipelined @ X:"),
            "store Reg stands above 'split pipelined @ X' but is private to the instances of X",
        ),
        # layout that text can write
        (
            TWO,
            simple(),
            two("store DRAM: A B C T Z", f"store GLB: C; {UNFUSED0}", UNFUSED1),
            "store GLB holds C, which no Einsum below it accesses",
        ),
        (MATMUL, simple(), f"store DRAM: A B B Z\n{LOOPS}compute E @ MAC", "store DRAM names B 2 times"),
        (
            MATMUL,
            simple(),
            f"store DRAM: A B Z\nfor m in 9\n{LOOPS}compute E @ MAC",
            "'for m in 9' has more trips than its variables have values (4)",
        ),
        (
            MATMUL,
            simple(),
            f"store DRAM: A B Z\nfor E.m, E.n in 4\n{LOOPS}compute E @ MAC",
            "'for E.m, E.n in 4' binds 2 variables of E (m, n)",
        ),
    ],
)
def test_each_reason_is_found_alone(workload: Workload, on: Machine, text: str, reason: str) -> None:
    located = parse_located(text, workload, on)
    found = problems(workload, on, located.mapping)
    assert any(reason in one for one in found), found
    assert len(found) == 1, found
    assert None not in lines_of(located, found)


BODY = (Loop((("E", "m"),), 4), Loop((("E", "n"),), 4), Loop((("E", "k"),), 4))
LEAF = Compute("E", "MAC")


@pytest.mark.parametrize(
    ("nest", "reason"),
    [
        ((), "a nest is empty"),
        ((*BODY,), "a nest ends with 'for k in 4'; its last node must be a split or a compute"),
        ((Store("DRAM", ("A",)),), "a nest ends with store DRAM"),
        ((LEAF, *BODY, LEAF), "compute E is not the last node of its nest"),
        ((LEAF, LEAF), "Einsum E has 2 leaves instead of one"),
        ((Compute("F", "MAC"),), "the workload has no Einsum F"),
        ((Compute("F", "MAC"),), "Einsum E has 0 leaves instead of one"),
        ((Compute("E", "ALU"),), "the machine has no compute unit ALU"),
        ((Store("L2", ("A",)), LEAF), "the machine has no memory L2"),
        ((Store("DRAM", ()), LEAF), "store DRAM names no tensor"),
        ((Store("DRAM", ("Q",)), LEAF), "the workload has no tensor Q"),
        ((Loop((("E", "m"),), 4, None, "X"), LEAF), "the machine has no axis X"),
        ((Loop((("E", "m"),), 0), LEAF), "0 trips"),
        ((Loop((("E", "m"),), 2, 0), LEAF), "tile 0"),
        ((Loop((("E", "q"),), 2), LEAF), "Einsum E has no rank variable q"),
        ((Loop((("F", "m"),), 2), LEAF), "the workload has no Einsum F"),
        ((Loop((), 2), LEAF), "binds no Einsum"),
        ((Split("sequential", ()),), "a split has no branches"),
        ((Split("sequential", ((Loop((("E", "m"),), 4), LEAF), ())),), "a nest is empty"),
    ],
)
def test_broken_layouts_are_answered_without_an_exception(nest: tuple[object, ...], reason: str) -> None:
    found = problems(MATMUL, simple(), Mapping(nest))  # type: ignore[arg-type]
    assert any(reason in one for one in found), found


def test_instances_may_share_a_window_of_which_each_part_is_computed_at_once() -> None:
    head = "store DRAM: A W Z; store GLB: T; par E0.u, E1.p in 4 @ X"
    assert reasons(CONVS, arrayed(), two(head, "for u in 4", "for p in 2; for r in 3")) == ()


def test_consumer_before_producer() -> None:
    text = two("store DRAM: A B C T Z", UNFUSED0, UNFUSED1)
    mapping = parse_mapping(text, TWO, simple())
    split = mapping.nest[-1]
    assert isinstance(split, Split)
    turned = Mapping((*mapping.nest[:-1], Split("sequential", split.branches[::-1])))
    assert problems(TWO, simple(), turned) == ("E1 reads T but stands before its producer E0",)


def test_loops_must_stand_above_what_they_bind() -> None:
    loop = Loop((("E1", "m"),), 4)
    split = Split("sequential", ((loop, Compute("E0", "MAC")), (Compute("E1", "MAC"),)))
    assert "'for m in 4' binds E1, which is not below it" in problems(TWO, simple(), Mapping((split,)))


def test_monstrous_trips_are_refused_quickly() -> None:
    big = cascade("E: Z[m] = exp(A[m])", {"m": 2**40})
    loops = tuple(Loop((("E", "m"),), 2**39) for _ in range(4))
    nest = (Store("DRAM", ("A", "Z")), *loops, LEAF)
    assert problems(big, simple(), Mapping(nest))


def test_a_step_that_reads_nothing_reads_nothing_again() -> None:
    """Two positions computed before it: of 1 and 2 one is read again; an empty window between them reads none."""
    assert _overlap((2, 4), ((0, 2), (1, 3)), 3) == 1
    assert _overlap((2, 4), ((0, 2), (1, 1)), 3) == 0

"""One legal tree outside the space for each of its rules."""

from __future__ import annotations

import pytest

from cases import cascade, machine, simple
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import parse_mapping
from einloom.mapspace.ffm.rules import full_use, outside
from einloom.mapspace.space import Mapspace
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

MATMUL = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 4, "n": 4, "k": 4})
TWO = cascade("E0: T[m,n] = A[m,k] * B[k,n]\nE1: Z[m,q] = T[m,n] * C[n,q]", {"m": 4, "n": 4, "k": 4, "q": 4})
CONVS = cascade("E0: T[u] = exp(A[u])\nE1: Z[p] = T[p+r] * W[r]", {"u": 10, "p": 8, "r": 3})
SHARED = cascade("E0: X[m] = exp(A[m])\nE1: Z[m] = exp(A[m])", {"m": 4})
COPY = cascade("E: B[m] = copy(A[m])", {"m": 4})
LOOPS = "for m in 4\nfor n in 4\nfor k in 4\n"


def array(use: str = "any") -> Machine:
    return machine(
        Memory("DRAM"),
        Memory("GLB"),
        Fanout("F", (Axis("X", 4, use=use),)),  # type: ignore[arg-type]
        Memory("LB"),
        Fanout("G", (Axis("Y", 2),)),
        ComputeUnit("MAC"),
        Memory("Far"),
    )


def two(head: str, first: str, second: str, names: str = "E0 E1") -> str:
    lines = [*head.split("; "), "split sequential:"]
    for body, name in zip((first, second), names.split(), strict=True):
        nodes = [*filter(None, body.split("; ")), f"compute {name} @ MAC"]
        lines += [f"  {'- ' if i == 0 else '  '}{node}" for i, node in enumerate(nodes)]
    return "\n".join(lines)


INNER = "store DRAM: A B Z\n"


@pytest.mark.parametrize(
    ("workload", "on", "text"),
    [
        (MATMUL, simple(), f"{INNER}store GLB: A\n{LOOPS}compute E @ MAC"),
        (
            MATMUL,
            array(),
            f"{INNER}par m in 4 @ X\nstore LB: A\nfor n in 2\nstore LB: B\n"
            "par k in 2 @ Y\nfor n in 2\nfor k in 2\ncompute E @ MAC",
        ),
        (
            TWO,
            simple(),
            two("store DRAM: A B C Z; for m in 4; store GLB: T", "for n in 4; for k in 4", "for n in 4; for q in 4"),
        ),
        (
            TWO,
            array(),
            two("store DRAM: A B C Z; par m in 4 @ X; store LB: T", "for n in 4; for k in 4", "for n in 4; for q in 4"),
        ),
    ],
)
def test_trees_in_the_space(workload: Workload, on: Machine, text: str) -> None:
    tree = parse_mapping(text, workload, on)
    assert problems(workload, on, tree) == ()
    assert outside(workload, on, Mapspace(), tree) == ()


@pytest.mark.parametrize(
    ("workload", "on", "text", "reasons"),
    [
        (
            SHARED,
            simple(),
            two("store DRAM: A X Z", "for m in 4", "for m in 4", "E1 E0"),
            ["rule 1: the leaves stand in the order E1, E0"],
        ),
        (
            MATMUL,
            simple(),
            f"{INNER}for m in 2 tile 3\nfor m in 3\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            ["rule 2: 'for m in 2 tile 3' cuts E.m of extent 4 unevenly", "rule 4"],
        ),
        (MATMUL, simple(), f"{INNER}for m in 1\n{LOOPS}compute E @ MAC", ["rule 2: 'for m in 1' has fewer", "rule 4"]),
        (
            MATMUL,
            array(),
            f"{INNER}store LB: A\nfor m in 4\nstore GLB: B\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            ["rule 3: on the path of E, store GLB stands below store LB"],
        ),
        (
            MATMUL,
            simple(),
            "store DRAM: A B\nfor m in 4\nstore DRAM: Z\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            ["rule 3: a store of DRAM stands below a loop"],
        ),
        (
            MATMUL,
            array(),
            f"{INNER}par m in 4 @ X\nfor n in 4\nstore LB: A\nfor k in 4\ncompute E @ MAC",
            ["rule 3: 'for n in 4' stands between 'par m in 4 @ X' and store LB"],
        ),
        (
            MATMUL,
            array(),
            f"{INNER}par m in 4 @ X\nfor n in 4\npar k in 2 @ Y\nfor k in 2\ncompute E @ MAC",
            ["rule 3: 'for n in 4' stands between 'par m in 4 @ X' and 'par k in 2 @ Y'"],
        ),
        (
            MATMUL,
            array(),
            f"{INNER}par k in 2 @ Y\npar m in 4 @ X\nfor n in 4\nfor k in 2\ncompute E @ MAC",
            ["rule 3: 'par m in 4 @ X' stands below 'par k in 2 @ Y'"],
        ),
        (
            MATMUL,
            simple(),
            f"{INNER}for m in 2\nfor n in 4\nfor m in 2\nfor k in 4\ncompute E @ MAC",
            ["rule 4: E has two temporal loops of m between two stores"],
        ),
        (
            MATMUL,
            array(),
            f"{INNER}par m in 2 @ X\npar m in 2 @ X\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            ["rule 4: E has two spatial loops of m on X"],
        ),
        (
            TWO,
            simple(),
            two("store DRAM: A B C T Z; for m in 4; store GLB: T", "for n in 4; for k in 4", "for n in 4; for q in 4"),
            [
                "rule 8: the store of T in GLB serves E0, E1",
                "rule 7: E0 under",
                "rule 7: E1 under",
                "rule 7: 'for m in 4'",
            ],
        ),
        (
            CONVS,
            simple(),
            two("store DRAM: A W Z; for E0.u, E1.p in 4; store GLB: T", "for u in 4", "for p in 2; for r in 3"),
            [
                "rule 2: 'for E0.u, E1.p in 4' cuts E0.u unevenly",
                "rule 2: 'for u in 4' cuts E0.u unevenly",
                "rule 6: 'for E0.u, E1.p in 4' stands above the backing store of T, which E1.p does not index alone",
            ],
        ),
        (
            TWO,
            simple(),
            two("store DRAM: A B C Z; store GLB: T; for m in 4", "for n in 4; for k in 4", "for n in 4; for q in 4"),
            ["rule 7: E0 under", "rule 7: E1 under", "rule 7: 'for m in 4' fuses E0 and E1, but no intermediate"],
        ),
        (
            MATMUL,
            array("full"),
            f"{INNER}par m in 2 @ X\nfor m in 2\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            ["rule 9: E uses 2 instances of the full-use axes on MAC, it could use 4"],
        ),
        (
            COPY,
            array(),
            "store DRAM: A B\npar m in 4 @ X\ncompute E",
            ["rule 10: 'par m in 4 @ X' on the path of the copy E stands above no backing store"],
        ),
        (
            COPY,
            array(),
            "store DRAM: A B\nstore Far: A\nfor m in 4\ncompute E",
            ["rule 10: the copy E stores in Far, which is listed after the first compute unit"],
        ),
    ],
)
def test_each_rule(workload: Workload, on: Machine, text: str, reasons: list[str]) -> None:
    tree = parse_mapping(text, workload, on)
    assert problems(workload, on, tree) == ()
    found = outside(workload, on, Mapspace(), tree)
    assert len(found) == len(reasons), found
    for reason in reasons:
        assert any(one.startswith(reason) for one in found), (reason, found)


def test_limit_of_fused_loops() -> None:
    text = two("store DRAM: A B C Z; for m in 4; for n in 4; store GLB: T", "for k in 4", "for q in 4")
    tree = parse_mapping(text, TWO, simple())
    assert outside(TWO, simple(), Mapspace(max_fused_loops=2), tree) == ()
    assert outside(TWO, simple(), Mapspace(max_fused_loops=1), tree) == (
        "rule 9: E0 has 2 fused loops, at most 1 are allowed",
        "rule 9: E1 has 2 fused loops, at most 1 are allowed",
    )


@pytest.mark.parametrize(
    ("sizes", "axes", "most"),
    [
        ((4, 4, 4), (("X", 4, ""), ("Y", 8, "")), 32),
        ((3, 5, 1), (("X", 4, ""), ("Y", 8, "")), 15),
        ((4, 4, 4), (("X", 8, "A"), ("Y", 4, "A")), 4),  # only n lacks A
        ((4, 4, 4), (("X", 8, "A"), ("Y", 64, "B")), 16),  # n here, m there
        ((6, 1, 1), (("X", 4, ""), ("Y", 4, "")), 6),  # 3 x 2 or 2 x 3
        ((7, 7, 7), (("X", 4, ""),), 1),
    ],
)
def test_full_use(sizes: tuple[int, int, int], axes: tuple[tuple[str, int, str], ...], most: int) -> None:
    workload = cascade("E: Z[m,n] = A[m,k] * B[k,n]", dict(zip("mnk", sizes, strict=True)))
    made = tuple(Axis(n, s, only_irrelevant_to=selector(t or "nothing"), use="full") for n, s, t in axes)
    unused = Fanout("G", (Axis("W", 2),))
    on = machine(Memory("DRAM"), Fanout("F", made), unused, ComputeUnit("MAC"))
    assert full_use(workload, on, "E", "MAC") == most

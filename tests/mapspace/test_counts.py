"""The counts of docs/counting.md, and what the enumerated trees have in common."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cases import cascade, machine
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.legality.structure import problems
from einloom.mapping.normal import normal_form
from einloom.mapping.text import parse_mapping, print_mapping
from einloom.mapspace.ffm import enumerate as enumeration
from einloom.mapspace.ffm.enumerate import candidates, enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

FFM = Mapspace()
TWO_LEVELS = machine(Memory("DRAM"), Memory("GLB"), ComputeUnit("MAC"))
SIMPLE = machine(
    Memory("DRAM", must=selector("~intermediate")), Memory("GLB", must=selector("unheld")), ComputeUnit("MAC")
)
COPY = cascade("C: B[m] = copy(A[m])", {"m": 2})
ONE = cascade("E: Z[m] = exp(A[m])", {"m": 2})
FOUR = cascade("E: Z[m] = exp(A[m])", {"m": 4})
MATMUL = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 2, "n": 2, "k": 1})
CHAIN = cascade("E0: T[m] = exp(A[m])\nE1: Z[m] = exp(T[m])", {"m": 2})
CHAIN3 = cascade("E0: T[m] = exp(A[m])\nE1: U[m] = exp(T[m])\nE2: Z[m] = exp(U[m])", {"m": 2})


def fanned(use: str) -> Machine:
    axis = Axis("X", 2, use=use)  # type: ignore[arg-type]
    return machine(Memory("DRAM"), Memory("GLB"), Fanout("F", (axis,)), ComputeUnit("MAC"))


@pytest.mark.parametrize(
    ("workload", "on", "space", "count"),
    [
        (COPY, TWO_LEVELS, FFM, 9),
        (ONE, TWO_LEVELS, FFM, 9),
        (FOUR, TWO_LEVELS, FFM, 16),
        (MATMUL, TWO_LEVELS, FFM, 120),
        (CHAIN, TWO_LEVELS, FFM, 176),
        (CHAIN, SIMPLE, FFM, 176),
        (CHAIN3, SIMPLE, FFM, 2136),
        (CHAIN, TWO_LEVELS, Mapspace(max_fused_loops=0), 160),
        (ONE, fanned("any"), FFM, 13),
        (ONE, fanned("full"), FFM, 4),
        (COPY, fanned("full"), FFM, 9),
    ],
)
def test_counts_derived_by_hand(workload: Workload, on: Machine, space: Mapspace, count: int) -> None:
    assert len(list(enumerate_trees(workload, on, space))) == count


@pytest.mark.parametrize(("workload", "on"), [(MATMUL, TWO_LEVELS), (CHAIN, SIMPLE)])
def test_trees_are_different_legal_and_in_the_space(workload: Workload, on: Machine) -> None:
    trees = list(enumerate_trees(workload, on, FFM))
    assert len(set(trees)) == len(trees)
    for tree in trees:
        assert problems(workload, on, tree) == ()
        assert outside(workload, on, FFM, tree) == ()
    for tree in trees[:: max(1, len(trees) // 50)]:
        assert normal_form(tree, workload) == tree
        assert parse_mapping(print_mapping(tree, workload), workload, on) == tree


def test_early_refusals_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks at splits and leaves, the rules applied to whole trees keep the same set."""
    always: Callable[..., bool] = lambda *_: True  # noqa: E731
    kept = set(enumerate_trees(CHAIN, SIMPLE, FFM))
    seen = len(list(candidates(CHAIN, SIMPLE)))
    monkeypatch.setattr(enumeration._Grammar, "sensible", always)
    monkeypatch.setattr(enumeration._Grammar, "limits_kept", always)
    assert set(enumerate_trees(CHAIN, SIMPLE, FFM)) == kept
    assert len(list(candidates(CHAIN, SIMPLE))) > seen

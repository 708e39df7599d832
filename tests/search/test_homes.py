"""Inputs and outputs whose home is an inner memory, and tensors that persist: exact finds what all trees say.

Every case is small enough to be followed by hand, and to look at all of its trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from einloom.errors import Defect, Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.einsums import classes as signature
from einloom.search.exact.einsums.spatial import RankClasses
from einloom.search.exact.einsums.users import Users
from einloom.search.exact.fusion.templates import Stacker
from einloom.search.exact.joining.join import Joiner
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from optima import best_of_all, optimum

FAST, CORES = 8.0, Fanout("F", (Axis("x", 2),))
SQUARE = ("T[m] = exp(X[m])", "Z[m] = exp(T[m])")
PRODUCTS = ("T[m] = X[m] * V[m]", "Z[m] = T[m] * V[m]")
APART = ("T[m] = X[m] * V[m]", "Z[n] = C[n] * V[n]")


def dram(may: str = "all", rate: float = 1.0, size: int | None = None) -> Memory:
    return Memory("D", size, 5.0, 5.0, read_throughput=rate, write_throughput=rate, may=selector(may))


def inner(name: str, size: int | None, may: str = "all", must: str = "nothing", rate: float | None = None) -> Memory:
    return Memory(name, size, read_throughput=rate, write_throughput=rate, may=selector(may), must=selector(must))


def problem(
    texts: tuple[str, ...], sizes: dict[str, int], *levels: Level, goal: str = "energy", **more: object
) -> Problem:
    workload = build_workload("w", list(texts), sizes, bits=1, **more)  # type: ignore[arg-type]
    machine = Machine("m", (*levels, ComputeUnit("MAC", 1.0, 1.0)))
    return Problem(workload, machine, Mapspace(), Objective(goal))


M = {"m": 2}
CASES: dict[str, tuple[float, Problem]] = {
    # an input starts at home, in tiles of one value
    "cut": (44, problem(("Z[m] = X[m] * V[m]",), {"m": 4}, dram("~V"), inner("B", 1, "V"))),
    "windows": (
        34,
        problem(("O[p] = I[p+r] * F[r]",), {"p": 2, "r": 2}, dram("~I"), inner("B", 3, "I"), inner("C", 2)),
    ),
    # Z may not leave home before its sum is complete: V cannot be kept over m
    "sum": (
        44,
        problem(
            ("Z[m] = X[m,k] * V[k]",),
            {"m": 2, "k": 2},
            dram("~cascade_output"),
            inner("B", 1, "Z"),
            inner("C", 1, "V"),
        ),
    ),
    # nor be summed up in two cores
    "spread sum": (
        2,
        problem(
            ("Z[m] = X[m,k] * V[k]",),
            {"m": 1, "k": 2},
            dram("~cascade_output", FAST),
            CORES,
            inner("B", 2, "Z"),
            goal="latency",
        ),
    ),
    # V persists: no loop stands above it, and nobody else has its room
    "persistent": (22, problem(("Z[m] = X[m] * V[m]",), M, dram("~persistent"), inner("B", 4), persistent=["V"])),
    "no room beside it": (
        54,
        problem(
            ("Z[m] = X[m] * V[m]", "W[m] = A[m] * C[]"),
            M,
            dram("~persistent"),
            inner("B", 2, "V | C"),
            persistent=["V"],
        ),
    ),
    "room beside it": (
        49,
        problem(
            ("Z[m] = X[m] * V[m]", "W[m] = A[m] * C[]"),
            M,
            dram("~persistent"),
            inner("B", 3, "V | C"),
            persistent=["V"],
        ),
    ),
    # several read an input at home: they have its store in common
    "two readers": (44, problem(APART, {"m": 2, "n": 2}, dram("~V"), inner("B", 8))),
    "two readers of windows": (
        39,
        problem(
            ("O[p] = I[p+r] * F[r]", "Z[h] = exp(I[h])"),
            {"p": 1, "r": 2, "h": 2},
            dram("~I"),
            inner("B", 2, "I"),
        ),
    ),
    "fused readers": (24, problem(PRODUCTS, M, dram("~V"), inner("B", 2, "V | T"))),
    "spread readers": (
        4,
        problem(APART, {"m": 2, "n": 2}, dram("~V", FAST), CORES, inner("B", 8, "V"), goal="latency"),
    ),
    "fused and spread": (2, problem(PRODUCTS, M, dram("~V", FAST), CORES, inner("B", 4, "V | T"), goal="latency")),
    "part of a shape": (
        54,
        problem(("Z[m] = X[m] * V[m]", "Y[m] = X[m]"), M, dram(size=6), inner("B", 1), shapes={"X": (4,)}),
    ),
    # outputs, of which one is read
    "read output": (14, problem(SQUARE, M, dram("~cascade_output"), inner("B", 3), outputs=["T", "Z"])),
    # an intermediate that persists takes its room for the whole run, once per repeat, wherever it is backed
    "spread state": (
        4,
        problem(SQUARE, M, dram(rate=2.0), CORES, inner("B", 8, "T"), goal="latency", persistent=["T"]),
    ),
    "state and what comes after": (
        56,
        problem((*SQUARE, "W[m] = A[m] * C[]"), M, dram(), inner("B", 2, "T | C"), persistent=["T"]),
    ),
    "state and what came before": (
        56,
        problem(("W[m] = A[m] * C[]", *SQUARE), M, dram(), inner("B", 2, "T | C"), persistent=["T"]),
    ),
    "state, three times": (132, problem(SQUARE, M, dram(), inner("B", 5, "T"), persistent=["T"], repeat=3)),
    # a copy is spread above a backing store only
    "spread copy": (
        6,
        problem(
            ("I[m] = copy X[m]", "Z[m] = exp(I[m])"),
            M,
            dram(rate=FAST),
            CORES,
            inner("B", None, "output", "output", 1.0),
            goal="latency",
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_exact_finds_what_all_trees_say(name: str) -> None:
    right, asked = CASES[name]
    for goal in ("energy", "latency", "edp"):
        p = replace(asked, objective=Objective(goal))
        assert optimum(p) == pytest.approx(best_of_all(p), rel=1e-12)
    assert optimum(asked) == right


def answer(p: Problem) -> float | str | None:
    try:
        return optimum(p)
    except Defect as defect:
        return defect.difference
    except Infeasible:
        return None


Mistake = Callable[[pytest.MonkeyPatch], None]


def tensors(**changes: object) -> Mistake:
    """Signatures of tensors that are wrong about themselves."""
    right = signature._tensor
    return lambda patch: patch.setattr(signature, "_tensor", lambda *given: replace(right(*given), **changes))


def own_widths(patch: pytest.MonkeyPatch) -> None:
    """Nothing is set aside in the tables, so what persists is counted twice."""
    right = signature._tensor
    patch.setattr(signature, "_tensor", lambda *given: replace(found := right(*given), backed=found.bits))


def everywhere(self: RankClasses, option: signature.UnitOption, held: object) -> object:
    return np.ones(len(self.spreads(option)), bool)


MISTAKES: dict[str, tuple[tuple[str, ...], Mistake]] = {
    "sums leave home": (("sum",), lambda patch: patch.setattr(signature, "_once", lambda *given: frozenset())),
    "loops above what persists": (
        ("persistent",),
        lambda patch: patch.setattr(signature, "_whole", lambda *given: ()),
    ),
    "states as any intermediate": (("spread state",), tensors(persistent=False)),
    "nothing is set aside": (("no room beside it",), lambda patch: patch.setattr(Attempt, "set_aside", {})),
    "set aside twice": (("no room beside it", "room beside it"), own_widths),
    "states make room": (
        ("state and what comes after", "state and what came before", "state, three times"),
        lambda patch: patch.setattr(Joiner, "_stays", frozenset()),
    ),
    "any spatial choice with any stores": (
        ("spread copy", "spread sum"),
        lambda patch: patch.setattr(RankClasses, "suited", everywhere),
    ),
    "declared shapes": (
        ("part of a shape",),
        lambda patch: patch.setattr(Users, "span", lambda self, tensor: self.workload.tensor(tensor).size),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_caught(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases, plant = MISTAKES[mistake]
    plant(monkeypatch)
    for name in cases:
        right, p = CASES[name]
        assert answer(p) != right, name


def test_loops_above_what_several_read_need_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """No intermediate passes between the two readers of V, so they share no loop (rule 7): asked twice on the way."""
    right, p = CASES["spread readers"]
    monkeypatch.setattr(Stacker, "_linking", lambda self, waiting: True)
    assert answer(p) == right
    monkeypatch.setattr(Joiner, "_reasoned", lambda self, after: max((live.depth for live in after), default=0))
    assert answer(p) != right

"""Rows that have no room beside what a fused part stores are left out before the fused part is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import isclose

import numpy as np
import pytest
from bench.ragged_problems import grouped_problem, ragged_problem, shared_problem, window_problem

from axis_problems import drawn
from einloom.errors import Infeasible, SpecError
from einloom.problem import Problem
from einloom.search.exact.fusion.explore import Explorer
from fused_again import levelled
from varied_problems import Answer, answer, anything, layers

Source = Callable[[int], Problem]
SOURCES: tuple[Source, ...] = (
    anything,
    drawn,
    grouped_problem,
    layers,
    levelled,
    ragged_problem,
    shared_problem,
    window_problem,
)
LEAVING_OUT = (drawn, levelled, ragged_problem)


def equal(one: Answer, other: Answer) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-9)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and bool(np.allclose(one, other, rtol=1e-9))
    return one == other


def compared(source: Source, seeds: Sequence[int], patch: pytest.MonkeyPatch) -> tuple[int, list[int]]:
    """How many rows are left out in searches of these problems, and the problems with another answer when none is."""
    gone, wrong = 0, []
    real = Explorer._beside

    def counted(self, levels, rows, place):  # type: ignore[no-untyped-def]
        nonlocal gone
        left = real(self, levels, rows, place)
        gone += len(rows) - len(left)
        return left

    def solved(problem: Problem) -> Answer:
        with suppress(Infeasible):
            return answer(problem)
        return None

    for seed in seeds:
        with suppress(SpecError):
            problem = source(seed)
            with patch.context() as patched:
                patched.setattr(Explorer, "_beside", counted)
                one = solved(problem)
            with patch.context() as patched:
                patched.setattr(Explorer, "_beside", lambda self, levels, rows, place: rows)
                other = solved(problem)
            if not equal(one, other):
                wrong.append(seed)
    return gone, wrong


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_is_lost(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, wrong = compared(source, range(7), monkeypatch)
    assert not wrong
    assert gone or source not in LEAVING_OUT


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 100))
@pytest.mark.parametrize("source", SOURCES)
def test_nothing_of_many_is_lost(source: Source, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not compared(source, range(first, first + 100), monkeypatch)[1]


# -- planted mistakes -------------------------------------------------------------------------------------------------


def whole_extents(patch: pytest.MonkeyPatch) -> None:
    """No loops are taken to pass."""
    real = Explorer._least_extents

    def extents(self, x, held, upper):  # type: ignore[no-untyped-def]
        whole = [n // int(np.prod([row[d] for row in upper])) for d, n in enumerate(self.classes.extents)]
        return np.maximum(real(self, x, held, upper), whole)

    patch.setattr(Explorer, "_least_extents", extents)


def wide_tiles(patch: pytest.MonkeyPatch) -> None:
    """Every tile is taken to be one element longer along each rank."""
    real = Explorer._least_extents
    patch.setattr(Explorer, "_least_extents", lambda self, x, held, upper: real(self, x, held, upper) + 1)


@pytest.mark.parametrize("mistake", [whole_extents, wide_tiles])
def test_mistakes_are_noticed(mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    assert any(compared(source, range(12), monkeypatch)[1] for source in (levelled, layers, drawn))

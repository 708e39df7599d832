"""What `exact` proves of larger problems holds for what it finds in others like them (`crossed_problems.py`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crossed_problems import crossed
from einloom.errors import Defect
from einloom.search.exact.fusion import explore, tilings
from einloom.search.exact.fusion.match import Below
from einloom.search.exact.fusion.templates import Stacker
from einloom.search.exact.pmappings.prune import Pruner


@pytest.mark.parametrize(
    "first", [pytest.param(first, marks=pytest.mark.slow if first not in (0, 4) else ()) for first in range(0, 12, 2)]
)
def test_no_tree_of_another_problem_is_below_what_is_proven(first: int) -> None:
    found = [crossed(seed) for seed in range(first, first + 2)]
    assert [wrong for one in found for wrong in one.wrong] == []
    assert sum(one.priced for one in found) > 50


def test_an_einsum_without_ranks_shares_no_loop() -> None:
    """In free order it may come to stand between two that do; methods ended with an IndexError there."""
    assert crossed(139).wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 400, 20))
def test_no_tree_of_many_is_below_what_is_proven(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (explore, tilings) if first % 40 else ():
        monkeypatch.setattr(module, "LARGE", 0)
    assert [wrong for seed in range(first, first + 20) for wrong in crossed(seed).wrong] == []


def one_fused_loop(patch: pytest.MonkeyPatch) -> None:
    """A fused part has one loop at most."""
    real = Stacker._deepen
    patch.setattr(Stacker, "_deepen", lambda self, at: iter(()) if at.loops else real(self, at))


def close_limits(patch: pytest.MonkeyPatch) -> None:
    """What is still to come of a large table is said to cost a tenth of its limits more."""
    real = Pruner.within

    def within(self, cost, *marks):  # type: ignore[no-untyped-def]
        return real(self, cost + 0.1 * self.limits if len(cost) > 100 else cost, *marks)

    patch.setattr(Pruner, "within", within)


def one_row_a_boundary(patch: pytest.MonkeyPatch) -> None:
    """Below a boundary of the fused part stands one row only."""
    real = Below._some

    def some(self, x, offset):  # type: ignore[no-untyped-def]
        which, rows = real(self, x, offset)
        first = [i == 0 or which[i] != which[i - 1] for i in range(len(which))]
        return which[first], rows[first]

    patch.setattr(Below, "_some", some)


MISTAKES: dict[Callable[[pytest.MonkeyPatch], None], int] = {
    one_fused_loop: 45,
    close_limits: 8,
    one_row_a_boundary: 16,
}
"""Mistakes that large problems notice, each with a seed that shows it."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_caught(mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    try:
        found = crossed(MISTAKES[mistake])
    except Defect:
        return
    assert found.wrong

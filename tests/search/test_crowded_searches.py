"""Where choices are very many a search takes another way to the same answer.

Limits rise from the bound, Einsums come in another order, and each is explored for what its own neighbours leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from einloom.errors import EinloomError, SpecError
from einloom.problem import Problem
from einloom.search.exact import least_costs
from einloom.search.exact.explored_rows import ExploredRows
from varied_problems import SOURCES, Answer, answer, same


def crowded(problem: Problem, patch: pytest.MonkeyPatch) -> Answer:
    """What the search answers that takes every problem for one of very many choices."""
    with patch.context() as patched:
        patched.setattr(least_costs, "MANY", 0)
        return answer(problem)


def different(source: str, seeds: Sequence[int], patch: pytest.MonkeyPatch) -> list[int]:
    """The problems to which the two ways give different answers."""
    found = []
    for seed in seeds:
        with suppress(SpecError):
            plain = answer(SOURCES[source](seed))
            try:
                found += [] if same(plain, crowded(SOURCES[source](seed), patch)) else [seed]
            except EinloomError:
                found.append(seed)
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_the_answer_is_the_same(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert different(source, range(1000, 1006), monkeypatch) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1100, 1700, 100))
@pytest.mark.parametrize("source", SOURCES)
def test_the_answer_to_many_is_the_same(source: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert different(source, range(first, first + 100), monkeypatch) == []


def test_einsums_that_share_least_with_unknown_ones_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chain of three the middle, which shares two tensors, comes once one end is known."""
    orders = []
    real = ExploredRows._fewest_first

    def fewest_first(self, choices):  # type: ignore[no-untyped-def]
        orders.append((real(self, choices), choices))
        return orders[-1][0]

    monkeypatch.setattr(ExploredRows, "_fewest_first", fewest_first)
    for seed in range(12):
        with suppress(SpecError):
            crowded(SOURCES["axes"](seed), monkeypatch)
    assert any(len(order) == 3 for order, _ in orders)
    assert all(sorted(order) == list(range(len(order))) for order, _ in orders)
    assert all(order[0] != 1 for order, choices in orders if len(order) == 3 and all(choices))
    assert all(choices[order[0]] == 0 for order, choices in orders if 0 in choices)


def test_of_several_einsums_all_that_any_may_have_is_explored() -> None:
    """A key that one of them may have stays; a tensor of which one knows nothing is free."""
    one = {0: {("GLB", 1): np.array([1, 2])}, 1: {("GLB", 1): np.array([5])}}
    other = {0: {("GLB", 1): np.array([2, 3]), ("GLB", 2): np.array([7])}}
    known = SimpleNamespace(_allowed=lambda i, found: (one, other)[i])
    both = ExploredRows._allowed_anywhere(known, [0, 1], [])  # type: ignore[arg-type]
    assert {t: {k: v.tolist() for k, v in keys.items()} for t, keys in both.items()} == {
        0: {("GLB", 1): [1, 2, 3], ("GLB", 2): [7]}
    }

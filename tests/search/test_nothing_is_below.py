"""Cascades too large for all their trees: methods without a proof find nothing below what `exact` proves.

They move among states (`mapspace/ffm/encoding`), of which every tree has one, and know nothing of the candidates, the
orders and the bounds of `exact`. So a tree that it leaves out may come up.
"""

from __future__ import annotations

import pytest

from einloom.errors import BudgetExhausted, Infeasible
from einloom.problem import Budget
from einloom.search.door import ask
from einloom.search.registry import method
from forked_cascades import forked


def below(seed: int, steps: int) -> str | None:
    """What is below the bound that `exact` proves, in words."""
    asked = forked(seed)
    name = ("anneal", "genetic", "local")[seed % 3]
    try:
        found = ask(method("exact"), asked, Budget(steps=300_000))
    except Infeasible:
        return None
    except BudgetExhausted:
        return f"{seed}: exact ended without a mapping"
    try:
        other = ask(method(name), asked, Budget(steps=steps))
    except BudgetExhausted:
        return None
    assert found.certificate is not None
    return f"{seed}: {name}" if other.value < found.certificate.bound * (1 - 1e-9) else None


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 8))])
def test_nothing_is_below(seed: int) -> None:
    assert below(seed, 400) is None


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 400, 20))
def test_nothing_of_many_is_below(first: int) -> None:
    assert [said for seed in range(first, first + 20) if (said := below(seed, 1500))] == []

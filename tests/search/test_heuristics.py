"""Methods without a proof: no faults, the same answer twice, the optimum of tiny problems, never below a bound."""

from __future__ import annotations

import pytest

import einloom as el
from einloom.errors import BudgetExhausted, Infeasible
from einloom.problem import Budget
from einloom.search.door import ask
from einloom.search.registry import method
from einloom.testing.methods import method_faults
from tiny_problems import tiny_problem

METHODS = ("random", "anneal", "genetic", "local", "tileflow")


@pytest.mark.parametrize("name", METHODS)
def test_the_kit_finds_no_fault(name: str) -> None:
    assert method_faults(lambda: method(name), steps=60) == ()


@pytest.mark.parametrize("name", METHODS)
def test_none_is_below_the_bound_of_exact(name: str) -> None:
    compared = 0
    for seed in range(0, 36, 3):
        problem = tiny_problem(seed)
        try:
            best = ask(method("exact"), problem)
        except Infeasible:
            with pytest.raises((BudgetExhausted, Infeasible)):
                ask(method(name), problem, Budget(steps=60))
            continue
        try:
            found = ask(method(name), problem, Budget(steps=60))
        except BudgetExhausted:
            continue
        assert found.value >= best.value * (1 - 1e-12)
        compared += 1
    assert compared > 5


def test_options_are_checked_and_starts_are_kept() -> None:
    tiny = ("matmuls:n=2,m=16,kn=16", "simple:glb_bits=2048")
    best = el.map(*tiny)
    assert el.map(*tiny, method="anneal", start=best, steps=20).energy == best.energy
    for options in ({"points": 0}, {"rounds": 0}, {"cold": "1"}):
        with pytest.raises(el.SpecError):
            el.map(*tiny, method="anneal", method_options=options)

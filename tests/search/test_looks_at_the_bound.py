"""A look at the bound is given up after some rows, and goes on for longer where the bounds have taken long."""

from __future__ import annotations

import pytest

from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact import Exact, branch_and_bound
from einloom.search.exact.stops import Enough, Stops
from einloom.search.method import Watcher
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A look is given up after one row; what happens instead, in order."""
    happened: list[str] = []
    monkeypatch.setattr(branch_and_bound, "LOOKED", 1)
    within, dive = Stops.within, branch_and_bound.heuristic

    def longer(self: Stops, seconds: float):  # type: ignore[no-untyped-def]
        happened.append("longer")
        return within(self, seconds)

    def dived(*given):  # type: ignore[no-untyped-def]
        happened.append("dive")
        return dive(*given)

    monkeypatch.setattr(Stops, "within", longer)
    monkeypatch.setattr(branch_and_bound, "heuristic", dived)
    return happened


def asked(budget: Budget | None = None) -> float:
    problem = Problem(
        load_workload("matmuls:n=3,m=64,kn=64,bits=8"), load_machine("tpu-v4i"), Mapspace("ffm"), Objective("edp")
    )
    return Exact().search(problem, budget).value


def test_a_look_goes_on_where_bounds_have_taken_long(looks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    value = asked()
    assert looks == ["dive"]
    monkeypatch.setattr(branch_and_bound, "SECONDS", 0.0)
    monkeypatch.setattr(branch_and_bound, "LONGER", 1e6)
    assert asked() == value
    assert looks == ["dive", "longer"]


def test_no_look_goes_on_under_a_budget_of_steps_or_for_most_of_a_budget(
    looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_and_bound, "SECONDS", 0.0)
    monkeypatch.setattr(branch_and_bound, "LONGER", 1e6)
    value = asked()
    assert asked(Budget(steps=10**9)) == value == asked(Budget(seconds=3600.0))
    assert looks.count("longer") == 1


def test_seconds_end_with_their_block() -> None:
    stops = Stops(Budget(), Watcher())
    with stops.within(3600.0):
        stops.check()
        with pytest.raises(Enough), stops.within(-1.0):
            stops.check()
        stops.check()
    assert stops.until == float("inf")

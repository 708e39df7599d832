"""Few fused loops in between under a budget of seconds: looks change no proof, and find what is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from einloom.errors import Infeasible, SpecError
from einloom.mapping.tree import Mapping
from einloom.problem import Budget, Objective, Problem, keeps_time
from einloom.questions import problem
from einloom.search.door import ask
from einloom.search.exact import least_costs, narrower
from einloom.search.first import FirstMappings
from einloom.search.method import Recorder, Watcher
from einloom.search.registry import method
from einloom.testing.problems.drawing import draw

LONG = Budget(seconds=600)


class Stages(Recorder):
    """Keeps the names of stages."""

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[str] = []

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        self.stages.append(name)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The looks come at the first checks of a search, whatever is known."""
    monkeypatch.setattr(narrower, "AFTER", 0.0)
    monkeypatch.setattr(narrower, "GAP", -1.0)


def looked(asked: Problem, budget: Budget, *starts: Mapping) -> list[str]:
    heard = Stages()
    ask(method("exact"), asked, budget, heard, starts)
    return [name for name in dict.fromkeys(heard.stages) if name.startswith("at most")]


@pytest.mark.usefixtures("at_once")
def test_smaller_spaces_are_looked_at_under_seconds_alone() -> None:
    asked = problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy")
    assert looked(asked, LONG) == ["at most 1 fused loop", "at most 2 fused loops"]
    assert looked(asked, Budget()) == looked(asked, Budget(steps=10**9)) == looked(asked, Budget(seconds=1.9)) == []
    limited = problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy", max_fused_loops=2)
    assert looked(limited, LONG) == ["at most 1 fused loop"]
    ragged = problem("matmuls:n=2,m=6,kn=7", "simple:glb_bits=1024", "energy", space="ragged")
    assert looked(ragged, LONG) == []


@pytest.mark.usefixtures("at_once")
def test_nothing_is_looked_at_where_choices_are_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_costs, "MANY", 0)
    assert looked(problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy"), LONG) == []


def test_nothing_is_looked_at_where_what_is_known_is_near_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrower, "AFTER", 0.0)
    monkeypatch.setattr(narrower, "GAP", 1e9)
    asked = problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy")
    known = FirstMappings(asked, Watcher()).draw()
    assert known is not None and looked(asked, LONG, known) == []


def test_a_search_that_is_cut_off_has_the_best_of_a_smaller_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search stops as soon as its looks are over: what it has is at most the optimum with two fused loops."""
    monkeypatch.setattr(narrower, "AFTER", 0.0)
    monkeypatch.setattr(narrower, "GAP", -1.0)
    asked = problem("matmuls:n=4,m=64,kn=64", "simple:glb_bits=16384", "edp")
    inside = problem("matmuls:n=4,m=64,kn=64", "simple:glb_bits=16384", "edp", max_fused_loops=2)
    over, look = list[bool](), narrower.SmallerSpaces.look

    def last(self: narrower.SmallerSpaces) -> None:
        many = len(self._left)
        look(self)
        over.extend([True] * (many == 1 and not self._left))

    monkeypatch.setattr(narrower.SmallerSpaces, "look", last)
    found = ask(method("exact"), asked, LONG, Recorder(stop=lambda: bool(over)))
    monkeypatch.undo()
    least = ask(method("exact"), inside, Budget())
    assert over and least.optimal and found.value <= least.value * (1 + 1e-9)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("first", [0, 20, *(pytest.param(n, marks=pytest.mark.slow) for n in range(40, 120, 20))])
def test_a_proof_is_the_same_with_looks_at_smaller_spaces(first: int) -> None:
    proven = 0
    for seed in range(first, first + 20):
        workload, machine, space = draw(seed).files.read
        goal = Objective("edp" if keeps_time(machine) and seed % 2 else "energy")
        asked = Problem(workload, machine, replace(space, name="ffm"), goal)
        values = list[float]()
        for budget in (Budget(), LONG):
            try:
                found = ask(method("exact"), asked, budget)
            except (Infeasible, SpecError):  # none is legal, or a limit of docs/exact.md
                values.append(float("inf"))
            else:
                assert found.optimal
                values.append(found.value)
                proven += 1
        assert values[0] == pytest.approx(values[1], rel=1e-9), seed
    assert proven > 20

"""Bounds from one machine for another: on random problems and machines never above the other's optimum."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

import pytest

from einloom.errors import Infeasible
from einloom.exploration import scaling
from einloom.exploration.record import points_of
from einloom.exploration.regions import Region, below, scaled
from einloom.exploration.scaling import Profile, factors, holds_more
from einloom.machine.levels import Machine, Memory
from einloom.problem import Budget, Objective, Problem, keeps_time
from einloom.search.door import ask
from einloom.search.registry import method
from einloom.testing.problems.drawing import draw
from varied_machines import GOALS, PARETO, searched, varied


def optimum(problem: Problem) -> float:
    """What `exact` proves; infinite where no mapping is legal."""
    try:
        found = ask(method("exact"), problem, Budget())
    except Infeasible:
        return inf
    assert found.certificate is not None and found.certificate.gap < 1e-9
    return found.value


def wrong(seed: int) -> str | None:
    """What a bound says of a random machine that is not true, in words; the looser of the two machines is known."""
    rng = Random(f"two machines {seed}")
    workload, machine, space = draw(seed).files.read
    space = searched(workload, machine, replace(space, concurrent="none") if seed % 3 else space)
    other = varied(machine, rng)
    goal = GOALS[seed % len(GOALS)] if seed % 7 else Objective("traffic", machine.memories[0].name)
    goal = goal if keeps_time(machine) and keeps_time(other) else GOALS[0]
    known, here = (Problem(workload, one, space, goal) for one in (machine, other))
    times, _ = factors(Profile.of(machine), Profile.of(other), goal)
    if not holds_more(Profile.of(machine), Profile.of(other)):
        return f"{seed}: no smaller machine"
    least, value = optimum(known), optimum(here)
    if least == inf:
        return None if value == inf else f"{seed}: has a mapping where more room has none"
    return f"{seed}: {times * least!r} above {value!r}" if times * least > value * (1 + 1e-9) else None


def front(problem: Problem) -> Region:
    """The Pareto set that `exact` proves; empty where no mapping is legal."""
    try:
        found = ask(method("exact"), problem, Budget())
    except Infeasible:
        return ()
    assert found.optimal
    return points_of(found)


def wrong_front(seed: int) -> str | None:
    """The same of Pareto sets: each point of the other machine is above some point of the known one, times factors."""
    rng = Random(f"two fronts {seed}")
    workload, machine, space = draw(seed).files.read
    space = searched(workload, machine, replace(space, concurrent="none"))
    other = varied(machine, rng)
    if not (keeps_time(machine) and keeps_time(other)):
        return None
    known, here = (Profile.of(one) for one in (machine, other))
    region = scaled(front(Problem(workload, machine, space, PARETO)), factors(known, here, PARETO))
    found = front(Problem(workload, other, space, PARETO))
    above = [p for p in found if not below(region, ((p[0] * (1 + 1e-9), p[1] * (1 + 1e-9)),))]
    return f"{seed}: {above} not above {region}" if above else None


@pytest.mark.parametrize("first", [0, 10, pytest.param(20, marks=pytest.mark.slow)])
def test_no_front_lies_outside_its_region(first: int) -> None:
    assert [said for seed in range(first, first + 10) if (said := wrong_front(seed))] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 600, 50))
def test_no_front_of_many_lies_outside_its_region(first: int) -> None:
    assert [said for seed in range(first, first + 50) if (said := wrong_front(seed))] == []


@pytest.mark.parametrize("first", [0, 10, *(pytest.param(n, marks=pytest.mark.slow) for n in (20, 30))])
def test_no_bound_is_above_the_optimum(first: int) -> None:
    assert [said for seed in range(first, first + 10) if (said := wrong(seed))] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 1100, 50))
def test_no_bound_of_many_is_above_the_optimum(first: int) -> None:
    assert [said for seed in range(first, first + 50) if (said := wrong(seed))] == []


def _largest(known: tuple[float, ...], other: tuple[float, ...]) -> float:
    return max((b / a for a, b in zip(known, other, strict=True) if a > 0), default=inf)


def test_a_mistake_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest ratio in place of the least is seen on the same problems."""
    monkeypatch.setattr(scaling, "_least", _largest)
    assert any(wrong(seed) for seed in range(40))
    assert any(wrong_front(seed) for seed in range(30))


def test_bounds_follow_what_changes() -> None:
    memory = Memory("M", 64, 1.0, 2.0, read_throughput=4.0, write_throughput=8.0, leakage=1.0)
    known = Machine("a", (Memory("D", None, 3.0, 3.0, read_throughput=2.0), memory))

    def against(**changed: object) -> tuple[float, ...]:
        other = replace(known, levels=(known.levels[0], replace(memory, **changed)))  # type: ignore[arg-type]
        profiles = Profile.of(known), Profile.of(other)
        return tuple(round(factors(*profiles, goal)[0], 9) for goal in GOALS[:3])

    assert against() == (1, 1, 1)
    assert against(size=32) == (1, 1, 1) and against(size=65) == (0, 0, 0) and against(size=None) == (0, 0, 0)
    assert against(read_energy=0.5) == (0.5, 1, 0.5) and against(read_energy=4.0) == (1, 1, 1)
    assert against(read_throughput=8.0) == (0.5, 0.5, 0.25) and against(read_throughput=None) == (0, 0, 0)
    assert against(leakage=0.25) == (0.25, 1, 0.25)
    assert against(double_buffer=True) == (0, 0, 0) and against(area=3.0) == (1, 1, 1)

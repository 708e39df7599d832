"""Families of random machines, with whatever a file can say: every value, bound and front as searches one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from einloom.errors import Infeasible
from einloom.exploration import study
from einloom.exploration.family import FamilyMember, MachineFamily
from einloom.exploration.record import ExploredFamily, points_of
from einloom.exploration.regions import Point, Region, below, distance
from einloom.exploration.study import explore_family
from einloom.problem import Budget, Objective, Problem, keeps_time
from einloom.search.door import ask
from einloom.search.registry import method
from einloom.search.several import Labelled
from einloom.testing.problems.drawing import draw
from varied_machines import GOALS, PARETO, searched, varied

SLACK = 1 + 1e-9
MEMBERS = 7


def family(seed: int) -> MachineFamily:
    """Machines like one of a random problem, each with a random cost; now and then two workloads with weights."""
    rng = Random(f"family {seed}")
    workload, machine, space = draw(seed).files.read
    space = searched(workload, machine, replace(space, concurrent="none") if seed % 3 else space)
    machines = [machine]
    while len(machines) < MEMBERS:
        machines.append(varied(rng.choice(machines), rng))
    goal = (*GOALS, PARETO, Objective("traffic", machine.memories[0].name))[seed % 7]
    goal = goal if all(map(keeps_time, machines)) else GOALS[0]
    space = replace(space, concurrent="none") if goal == PARETO else space
    works = [workload, replace(workload, repeat=workload.repeat + 1)][: 1 + (seed % 4 == 0)]
    members = tuple(
        FamilyMember(
            (("n", str(n)),),
            one,
            float(rng.randrange(4)),
            tuple((Labelled("", Problem(work, one, space, goal)),) for work in works),
        )
        for n, one in enumerate(machines)
    )
    weights = tuple(float(rng.choice((1, 2.5))) for _ in works)
    return MachineFamily("random", tuple(one.name for one in works), weights, members, "cost")


def alone(member: FamilyMember, w: int) -> Region:
    """What `exact` proves of one machine and workload; empty where no mapping is legal."""
    try:
        found = ask(method("exact"), member.asked[w][0].problem, Budget())
    except Infeasible:
        return ()
    assert found.optimal
    return points_of(found)


def sums(weights: tuple[float, ...], parts: list[Region]) -> list[Point]:
    """All weighted sums of one point of each."""
    found = [(0.0, 0.0)]
    for weight, part in zip(weights, parts, strict=True):
        found = [(a + weight * c, b + weight * d) for a, b in found for c, d in part]
    return found


def wrong(seed: int, folder: Path, tolerance: float = 0.0) -> str | None:
    """What an exploration says that is not true, in words."""
    asked = family(seed)
    done = explore_family(asked, folder, tolerance=tolerance)
    every = [sums(asked.weights, [alone(one, w) for w in range(len(asked.workloads))]) for one in asked.members]
    for known, points in zip(done.machines, every, strict=True):
        where = f"{seed}, machine {known.member.label}, {done.objective}"
        if known.legal != bool(points) and (known.how != "beaten" or not known.legal):
            return f"{where}: legal {known.legal}, {points}"
        if any(not below(known.region, ((a * SLACK, b * SLACK),)) for a, b in points):
            return f"{where}: region {known.region}, {points}"
        if points and known.how == "open":
            return f"{where}: open"
        if known.points and known.how != "beaten" and distance(known.points, tuple(points)) > tolerance + 1e-9:
            return f"{where}: {known.points} not {points}"
        if any(not below(points, ((a * SLACK, b * SLACK),)) for a, b in known.points):
            return f"{where}: {known.points} below {points}"
    return wrong_front(done, every) if tolerance == 0 else None


def wrong_front(done: ExploredFamily, every: list[list[Point]]) -> str | None:
    """The front's costs and points are those of all machines' points of which no other one is better."""
    costs = [one.member.cost or 0.0 for one in done.machines]
    found = {(costs[i], f"{a:.7g}", f"{b:.7g}") for i, (a, b) in done.front_points}
    pairs = [(costs[i], a, b) for i, points in enumerate(every) for a, b in points]

    def beaten(cost: float, a: float, b: float) -> bool:
        no_dearer = [(c, x, y) for c, x, y in pairs if c <= cost and x <= a * SLACK and y <= b * SLACK]
        return any(c < cost or x < a / SLACK or y < b / SLACK for c, x, y in no_dearer)

    best = {(c, f"{a:.7g}", f"{b:.7g}") for c, a, b in pairs if not beaten(c, a, b)}
    return None if found == best else f"{done.objective}: front {sorted(found ^ best)}"


@pytest.mark.parametrize("seed", range(28))
def test_a_family_is_explored_as_if_every_machine_were_searched(seed: int, tmp_path: Path) -> None:
    assert wrong(seed, tmp_path) is None


@pytest.mark.parametrize("seed", range(28, 42))
def test_a_tolerance_is_kept(seed: int, tmp_path: Path) -> None:
    assert wrong(seed, tmp_path, 0.2) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 500))
def test_many_families_are_explored_as_if_every_machine_were_searched(seed: int, tmp_path: Path) -> None:
    assert wrong(seed, tmp_path) is None


def test_a_bound_that_is_none_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "factors", lambda *_: (1.0, 1.0))
    assert any(wrong(seed, tmp_path / str(seed)) for seed in range(28))

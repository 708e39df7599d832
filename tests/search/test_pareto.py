"""The Pareto set of `exact` is the one of all trees; so are products of powers; and `verify` looks at every point."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from einloom.certify.verify import verify
from einloom.errors import Ended, Infeasible, SpecError
from einloom.machine.levels import Machine, Memory
from einloom.problem import Budget, Guarantee, Objective, Problem, objective
from einloom.report.text.results import summary
from einloom.result import FrontPoint, Result
from einloom.result.document import digest
from einloom.search.exact import Exact, ExactOptions
from einloom.search.exact.attempt import Solution
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.stops import Stopped
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Watcher
from einloom.zoo.machine_by_name import load_machine
from tiny_problems import tiny_problem

SEVERAL = (7, 18, 21, 43, 60, 77, 79, 80, 86, 91, 98, 113, 123, 127)
ONE = (0, 1, 3, 4, 5, 12, 14, 15, 19, 23, 25, 30, 31, 36)


def traded(seed: int) -> Problem:
    """A tiny problem whose memories are as likely to be slow and cheap as fast and dear."""
    problem, rng = tiny_problem(seed), Random(seed)

    def other(memory: Memory) -> Memory:
        return replace(
            memory,
            read_energy=float(rng.randint(0, 20)),
            write_energy=float(rng.randint(0, 20)),
            read_throughput=float(rng.randint(1, 8)),
            write_throughput=float(rng.randint(1, 8)),
        )

    machine = problem.machine
    levels = tuple(other(level) if isinstance(level, Memory) else level for level in machine.levels)
    return replace(problem, objective=Objective("pareto"), machine=Machine(machine.name, levels, machine.partial_sums))


def numbers(points: tuple[FrontPoint, ...]) -> list[float]:
    return [number for p in points for number in (p.energy, p.latency)]


def found(problem: Problem) -> tuple[list[float] | None, list[float] | None]:
    """Energies and latencies of the front, by looking at every tree and by the exact search."""
    try:
        mine = numbers(Exhaustive().search(problem).front)
    except Infeasible:
        with pytest.raises(Infeasible):
            Exact().search(problem)
        return None, None
    return mine, numbers(Exact().search(problem).front)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if i % 2 else ()) for i, seed in enumerate((*SEVERAL, *ONE))]
)
def test_the_front_is_that_of_all_trees(seed: int) -> None:
    mine, theirs = found(traded(seed))
    assert (mine is None) == (theirs is None)
    if mine is not None:
        assert theirs == pytest.approx(mine, rel=1e-9)
        assert (len(mine) > 2) == (seed in SEVERAL)


@pytest.mark.parametrize("seed", SEVERAL)
def test_products_of_powers(seed: int) -> None:
    """The optimum of E^a L^b lies on the front, and is the least there."""
    problem, rng = traded(seed), Random(seed)
    front = Exhaustive().search(problem).front
    for powers in ((1.0, 1.0), (2.0, 1.0), (rng.choice((0.25, 3.0)), rng.choice((0.5, 4.0)))):
        asked = replace(problem, objective=Objective("product", powers=powers))
        least = min(p.energy ** powers[0] * p.latency ** powers[1] for p in front)
        assert Exact().search(asked).value == pytest.approx(least, rel=1e-9)


def test_verify_looks_at_every_point() -> None:
    result = Exact().search(traded(SEVERAL[0]))
    assert len(result.front) > 1
    again = Result.from_json(result.to_json())
    assert again.front == result.front
    assert verify(again).ok
    for edit in (_dearer, _shorter, _dominated, _gone):
        data = json.loads(result.to_json())
        edit(data)
        data["digest"] = digest(data)
        assert not verify(Result.from_json(json.dumps(data))).ok, edit.__name__


def _dearer(data: dict) -> None:
    data["front"][0]["energy"] *= 1.001


def _shorter(data: dict) -> None:
    del data["front"][-1]


def _dominated(data: dict) -> None:
    data["front"].append(data["front"][0])


def _gone(data: dict) -> None:
    del data["front"]


def test_repeats_multiply_the_front() -> None:
    problem = traded(SEVERAL[1])
    thrice = replace(problem, workload=replace(problem.workload, repeat=3))
    assert numbers(Exact().search(thrice).front) == pytest.approx(
        [3 * x for x in numbers(Exact().search(problem).front)]
    )


@pytest.mark.parametrize("steps", [1, 30, 200, 1000])
def test_a_budget_bounds_the_front(steps: int) -> None:
    problem = traded(SEVERAL[0])
    best = Exact().search(problem).value
    result = Exact().search(problem, Budget(steps=steps))
    assert result.certificate is not None
    assert result.front and min(p.energy * p.latency for p in result.front) == pytest.approx(result.value, rel=1e-9)
    assert result.certificate.bound * (1 - 1e-9) <= best <= result.value * (1 + 1e-9)


def test_a_budget_of_memory_ends_the_search() -> None:
    found = Exact().search(traded(SEVERAL[0]), Budget(memory=1))
    assert found.ended is Ended.MEMORY and len(found.front) == 1


def test_objectives_as_text() -> None:
    simple = load_machine("simple")
    assert objective("energy^2*latency", simple) == Objective("product", powers=(2.0, 1.0))
    assert objective("latency^0.5 * energy", simple).powers == (1.0, 0.5)
    assert str(objective("latency^0.5*energy", simple)) == "energy*latency^0.5"
    assert objective("energy^2*latency", simple).unit == "J^2 s"
    for wrong in (
        "energy^2",
        "energy*energy",
        "energy^0*latency",
        "energy**latency",
        "area*energy",
        "energy^99*latency",
    ):
        with pytest.raises(SpecError, match=r"energy\^2\*latency"):
            objective(wrong, simple)
    with pytest.raises(SpecError, match="pareto"):
        objective("paretto", simple)


class Until(Watcher):
    """Asks to stop from a stage on."""

    def __init__(self, last: str) -> None:
        self.last, self.reached = last, False

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        self.reached = self.reached or name == self.last

    def stopped(self) -> bool:
        return self.reached


@pytest.mark.parametrize("seed", SEVERAL[:4])
def test_under_a_budget_of_seconds_the_point_of_least_edp_comes_first(seed: int) -> None:
    problem = traded(seed)
    least = Exact().search(replace(problem, objective=Objective("edp")))
    found = Exact().search(problem, Budget(seconds=600.0), Until("the point of least latency"))
    assert found.ended is Ended.STOPPED
    assert found.certificate is not None and least.certificate is not None
    assert found.certificate.value == pytest.approx(least.certificate.value, rel=1e-12)


@pytest.mark.parametrize("stage", ["the point of least energy", "everything that no known point dominates"])
def test_what_is_known_of_a_front_is_there_after_the_end(stage: str) -> None:
    """No point beats another one, all are legal and priced, the mapping is the one of least EDP, and it is not said to
    be all."""
    sizes = list[int]()
    for seed in SEVERAL:
        problem = traded(seed)
        found = Exact().search(problem, Budget(seconds=600.0), Until(stage))
        assert found.ended is Ended.STOPPED and found.certificate is not None
        assert found.certificate.guarantee is Guarantee.BOUNDED
        assert min(p.energy * p.latency for p in found.front) == pytest.approx(found.value, rel=1e-9)
        assert verify(Result.from_json(found.to_json()), quick=True).ok
        assert "Part of the Pareto front" in summary(found)
        sizes.append(len(found.front))
    assert max(sizes) > 1


def test_a_search_for_one_point_that_is_cut_off_leaves_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Run.solve

    def cut_off(self: Run) -> Solution:
        whole(self)
        raise Stopped(Ended.STOPPED)

    monkeypatch.setattr(Run, "solve", cut_off)
    run = Run(traded(SEVERAL[0]), ExactOptions(), Budget(), Watcher(), None)
    with pytest.raises(Stopped):
        run.solve_front()
    assert run.incumbent.best is not None

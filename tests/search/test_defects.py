"""Problems on which the search was wrong once, each at its smallest: exact finds what all trees say.

`defects/` has a folder with workload and machine for each family: false optima, a false "infeasible", crashes, and
trees outside the space. The values were worked out from all trees, which are looked at again here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from einloom.cost.evaluate import legality
from einloom.errors import SpecError
from einloom.machine.files import parse_machine
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Guarantee, Objective, Problem
from einloom.result import Result
from einloom.search.exact import Exact
from einloom.workload.files import parse_workload
from optima import best_of_all, every_cost, staircase

HERE = Path(__file__).parent / "defects"
RIGHT = {  # joules and seconds of the best of all trees
    "constant-index": (242, 48),
    "copy-spread": (160, 32),
    "free-front": (0, 0),
    "home-inside": (81, 16),
    "no-ranks": (81, 16),
    "persistent-intermediate": (324, 64),
    "read-output": (162, 32),
    "read-output-three-memories": (162, 32),
    "role-widths": (82, 16),
    "scalar": (283, 56),
    "shared-reader": (324, 64),
    "shared-reader-silent": (320, 232),
    "stores-behind-a-fanout": (0, 4),
}
GOALS = ("energy", "latency", "edp", "pareto", "traffic")


def problem(name: str, goal: str = "energy") -> Problem:
    workload = parse_workload((HERE / name / "workload.yaml").read_text(encoding="utf-8"))
    machine = parse_machine((HERE / name / "machine.yaml").read_text(encoding="utf-8"))
    return Problem(workload, machine, Mapspace(), asked(goal, machine.memories[0].name))


def asked(goal: str, memory: str) -> Objective:
    return Objective(goal, memory if goal == "traffic" else None)


def proven(p: Problem) -> Result:
    """What exact finds: proven, legal and in the space."""
    found = Exact().search(p)
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert not legality(p.workload, p.machine, found.mapping)
    assert not outside(p.workload, p.machine, p.mapspace, found.mapping)
    return found


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", RIGHT)
def test_exact_finds_what_all_trees_say(name: str, goal: str) -> None:
    p, costs = problem(name, goal), every_cost(problem(name))
    found = proven(p)
    assert found.value == pytest.approx(best_of_all(p), rel=1e-12)
    if goal in ("energy", "latency"):
        assert found.value == RIGHT[name][goal == "latency"]
    if goal == "pareto":
        points = [(point.energy, point.latency) for point in found.front]
        assert points == [pytest.approx(point, rel=1e-12) for point in staircase(costs)]


def test_every_folder_is_tested() -> None:
    folders = {folder.name for folder in HERE.iterdir() if folder.is_dir()}
    assert folders == {*RIGHT, "small-beside-large", "no-time"}


def test_a_small_einsum_beside_a_large_one() -> None:
    """A set of one point, though Y costs 1e-8 of the whole; it is the optimum of energy, of latency and of EDP."""
    points = proven(problem("small-beside-large", "pareto")).front
    energy, latency = (proven(problem("small-beside-large", goal)).value for goal in ("energy", "latency"))
    assert [(point.energy, point.latency) for point in points] == [(energy, latency)]
    assert energy == pytest.approx(105398130305.4, rel=1e-12)


@pytest.mark.parametrize("goal", ["latency", "edp", "pareto"])
def test_where_nothing_takes_time_objectives_that_need_it_are_refused(goal: str) -> None:
    assert proven(problem("no-time")).value == 40
    with pytest.raises(SpecError, match="nothing of m has a throughput"):
        Exact().search(problem("no-time", goal))

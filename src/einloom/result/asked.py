"""The question that a result file repeats, as plain data both ways: objective, latency rule, mapspace, inputs."""

from __future__ import annotations

from typing import Any, cast

from ..located import Located
from ..machine.files import machine_from
from ..machine.write import machine_data
from ..mapspace.space import Mapspace
from ..problem import LatencyRule, Problem, objective
from ..workload.files import workload_data, workload_from


def goal_data(problem: Problem) -> dict[str, Any]:
    """What is minimised, by which rule, in which space."""
    space = problem.mapspace
    return {
        "objective": str(problem.objective),
        "latency_rule": problem.latency_rule,
        "mapspace": {"name": space.name, "max_fused_loops": space.max_fused_loops},
    }


def input_data(problem: Problem) -> dict[str, Any]:
    """Workload and machine."""
    return {"workload": workload_data(problem.workload), "machine": machine_data(problem.machine)}


def problem_from(view: Located) -> Problem:
    """The problem in a result file. Raises SpecError with the place of whatever is wrong."""
    workload = workload_from(view.require("workload"))
    machine = machine_from(view.require("machine"))
    with (aim := view.require("objective")).placed():
        goal = objective(aim.text(), machine)
    rule = view.require("latency_rule").choice(("einsum", "tile"))
    return Problem(workload, machine, _mapspace(view.require("mapspace")), goal, cast(LatencyRule, rule))


def _mapspace(view: Located) -> Mapspace:
    limit = view.get("max_fused_loops")
    name = view.require("name").choice(("ffm",))
    view.finish()
    return Mapspace(name, None if limit is None else limit.integer(minimum=0))

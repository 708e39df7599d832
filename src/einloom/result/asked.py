"""The question that a result file repeats, as plain data both ways: objective, latency rule, mapspace, inputs."""

from __future__ import annotations

from typing import Any, cast

from ..machine.files import machine_from
from ..machine.levels import Machine
from ..machine.write import machine_data
from ..mapspace.files import Sections, limits_data, space_of, splits_data
from ..mapspace.limits.data import UNLIMITED
from ..mapspace.space import Mapspace
from ..problem import LatencyRule, Problem, objective
from ..reading.fields import STATED, read_record
from ..reading.located import Located
from ..workload.einsum import Workload
from ..workload.files import workload_data, workload_from
from .tables import space_record


def goal_data(problem: Problem) -> dict[str, Any]:
    """What is minimised, by which rule, in which space."""
    space = problem.mapspace
    mapspace: dict[str, Any] = {"name": space.name, "max_fused_loops": space.max_fused_loops, **splits_data(space)}
    if space.title is not None:
        mapspace["title"] = space.title
    if space.limits:
        mapspace["limits"] = limits_data(space.limits)
    return {
        "objective": str(problem.objective),
        "latency_rule": problem.latency_rule,
        "mapspace": mapspace,
    }


def input_data(problem: Problem) -> dict[str, Any]:
    """Workload and machine."""
    return {"workload": workload_data(problem.workload), "machine": machine_data(problem.machine)}


def notes_data(notes: tuple[str, ...]) -> dict[str, Any]:
    """The notes of an answer, for whoever reads the file; nothing where there are none."""
    return {"notes": list(notes)} if notes else {}


def problem_from(view: Located) -> Problem:
    """The problem in a result file. Raises SpecError with the place of whatever is wrong."""
    workload = workload_from(view.require("workload"))
    machine = machine_from(view.require("machine"))
    with (aim := view.require("objective")).placed():
        goal = objective(aim.text(), machine)
    rule = view.require("latency_rule").choice(("einsum", "tile"))
    return Problem(
        workload, machine, _mapspace(view.require("mapspace"), workload, machine), goal, cast(LatencyRule, rule)
    )


def _mapspace(view: Located, workload: Workload, machine: Machine) -> Mapspace:
    sections = Sections(machine, workload)
    found = read_record(view, space_record(sections), STATED)
    view.raise_gathered()
    limits = sections.limits(*found["limits"]) if "limits" in found else UNLIMITED
    return space_of(found, found.get("title"), found["name"], limits)

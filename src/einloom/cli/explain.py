"""`einloom explain`: why a problem has no mapping and what would help, or what binds a mapping."""

from __future__ import annotations

import time
from typing import Any

import click

from .. import questions, stops
from ..diagnose import Explanation, explain_best, explain_problem, explain_result, parse_explanation
from ..errors import SpecError
from ..problem import OBJECTIVES, Budget, Problem
from ..reading.located import file_text
from ..report.text.live import display
from ..result import Result, document
from ..result.unmapped import parse_answer
from ..search.method import Recorder
from ..search.principles.told import Told, told
from ..search.several import Labelled
from . import completion, output
from .arguments import machine_or_none, objective_option
from .commands import limited
from .guard import guarded, stopped

Answer = Problem | Result | Explanation | tuple[Labelled, ...]


@click.command("explain")
@click.argument("workload", shell_complete=completion.workloads, metavar="WORKLOAD|ANSWER.json")
@machine_or_none
@objective_option(f"What a mapping is best in: one of {', '.join(OBJECTIVES)}; default energy.", default=None)
@limited
@click.option("--principles", is_flag=True, help="Say instead which of FuseCU's principles holds, and its cost.")
@click.option("--quick", is_flag=True, help="Search for no optima; of a result show only what it takes.")
@click.option("--budget-seconds", type=click.FloatRange(0, min_open=True), help="Stop then, with what is known.")
@output.json_option
@guarded
def explain_verb(
    workload: str,
    machine: str | None,
    objective: str | None,
    principles: bool,
    quick: bool,
    budget_seconds: float | None,
    json_path: str | None,
    **limits: Any,
) -> None:
    """Say why WORKLOAD has no mapping onto MACHINE and what would help, or what binds its best mapping.

    ANSWER.json alone is what `einloom map --json` saved: a result, or why there is none. An explanation that was
    saved is printed again. Every claim names the run that shows it. Ctrl-C and SIGTERM keep what is known.
    """
    begun = stops.begun()
    output.refuse(json_path)
    if principles:
        ruled = _ruled(workload, machine, objective, {"--quick": quick, "--budget-seconds": budget_seconds}, limits)
        output.answer(ruled.data, json_path, str(ruled))
        return
    asked: Answer
    if machine is not None:
        several = questions.problems(workload, machine, objective or "energy", **limits)
        asked = several if len(several) > 1 else several[0].problem
    elif any(value not in (None, ()) and value is not False for value in (objective, *limits.values())):
        raise SpecError("a saved answer brings its own objective and mapspace; give a workload and a machine")
    else:
        questions.refuse_alone(workload, "MACHINE is")
        asked = _saved(workload)
    with stops.politely() as stop:
        budget = Budget(budget_seconds).after(time.monotonic() - begun)
        found = asked if isinstance(asked, Explanation) else _explained(asked, quick, budget.seconds, stop)
        output.deliver(str(found), (json_path, found.to_json))
    if stop and not found.complete:
        stopped(stop, "this is what was known by then")


def _ruled(
    workload: str, machine: str | None, objective: str | None, searching: dict[str, Any], limits: dict[str, Any]
) -> Told:
    """What the principles say. Raises SpecError for options that would change nothing of it."""
    if machine is None:
        raise SpecError("--principles needs a workload and a machine")
    for option, given in searching.items():
        if given:
            raise SpecError(f"--principles searches nothing, so {option} has no meaning there")
    if limits["full_use"]:
        raise SpecError("--principles speaks of machines without axes, so --full-use has no meaning there")
    return told(questions.problem_or_traffic(workload, machine, objective, **limits))


def _saved(path: str) -> Answer:
    """What a file of a search or of this verb holds: a result, the problem that had none, or an explanation."""
    content = file_text(path)
    with document.shallow(path):
        schema = str(document.parse(content, path).get("schema", "")).partition("/")[0]
    if schema == "explanation":
        return parse_explanation(content, path)
    answer = parse_answer(content, path)
    return answer if isinstance(answer, Result) else answer.problem


def _explained(
    asked: Problem | Result | tuple[Labelled, ...], quick: bool, seconds: float | None, stop: list[int]
) -> Explanation:
    objective = asked[0].problem.objective if isinstance(asked, tuple) else asked.objective
    with display(objective) as shown:
        recorder = Recorder(on_change=shown, stop=lambda: bool(stop))
        if isinstance(asked, Result):
            return explain_result(asked, quick, seconds, recorder)
        if isinstance(asked, tuple):
            return explain_best(asked, quick, seconds, recorder)
        return explain_problem(asked, quick, seconds, recorder)

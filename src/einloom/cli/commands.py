"""The main verbs of the command line: read arguments, call the verb, print what `report` makes of the answer."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from collections.abc import Mapping as Table
from dataclasses import replace
from functools import partial
from typing import Any

import click

from .. import api as verbs
from .. import questions, stops
from ..certify.verdict import Check, Verdict
from ..errors import Ended, SpecError
from ..mapping.tree import Mapping
from ..mapspace.space import ORDERS, STORES
from ..problem import OBJECTIVES, Budget
from ..problem.budgets import read_budget
from ..report.text import answers
from ..report.text.live import display
from ..report.text.overview import By, overview
from ..result import Result
from ..result.unmapped import Unmapped
from ..search.answer import answer
from ..search.door import chosen
from ..search.method import Method, Recorder
from ..search.registry import SHIPPED, tell_unused_methods
from ..search.several import Labelled
from . import completion, output
from .arguments import machine_argument, machine_or_none, objective_option, workload_argument
from .guard import FAILED, fail, guarded, stopped

_LIMITS = (
    click.option("--max-fused-loops", type=click.IntRange(0), help="At most so many loops above a fused tensor."),
    click.option("--mapspace", metavar="FILE", help="Limits of the space: keep, bypass, fusion, loops, tiles, axes."),
    click.option(
        "--dataflow",
        shell_complete=completion.dataflows,
        multiple=True,
        metavar="NAME|FILE",
        help="Limits of a published dataflow (`einloom zoo` lists them); of several together.",
    ),
    click.option(
        "--space",
        metavar="NAME",
        shell_complete=completion.spaces,
        help="ffm, perfect tiles (the default), or ragged: tiles that need not divide.",
    ),
    click.option("--order", type=click.Choice(tuple(ORDERS)), help="Of the Einsums; free: any that their data allows."),
    click.option(
        "--stores", type=click.Choice(STORES), help="shared: one may serve several Einsums that read its tensor."
    ),
    click.option(
        "--max-fused-loops-per-rank-variable",
        type=click.IntRange(1),
        help="How often the fused loops of an Einsum may cut one rank (1).",
    ),
    click.option("--full-use", is_flag=True, help="Every Einsum uses as many instances of the axes as it can."),
)


def limited(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb with every option that limits the mapspace: keyword arguments as `questions.problem` takes them."""
    for option in reversed(_LIMITS):
        verb = option(verb)
    return verb


@click.command("map")
@workload_argument
@machine_argument
@objective_option(f"What is minimised: {', '.join(OBJECTIVES[:-1])} or traffic:MEMORY.")
@limited
@click.option("--relax", metavar="NAME", help="integer: say, too, how near this is to mappings with any integer tiles.")
@click.option(
    "--method",
    shell_complete=completion.methods,
    default="exact",
    show_default=True,
    help=f"{', '.join(SHIPPED)}, or one of a package.",
)
@click.option("--method-option", "options", multiple=True, metavar="KEY=VALUE", help="Of the method; repeatable.")
@click.option("--budget-seconds", type=click.FloatRange(0, min_open=True), help="Stop then, with the best so far.")
@click.option("--budget-steps", type=click.IntRange(1), help="The same after so many evaluated points.")
@click.option("--budget-memory", metavar="SIZE", help="The same when the process holds so much, as in '2 GiB'.")
@click.option("--start", multiple=True, metavar="FILE", help="A known mapping or result to look below; repeatable.")
@output.by_option
@click.option("-o", "--output", "text_path", metavar="FILE", help="Write the mapping as text, as `evaluate` reads it.")
@output.json_option
@guarded
def map_verb(
    workload: str,
    machine: str,
    objective: str,
    relax: str | None,
    method: str,
    options: tuple[str, ...],
    budget_seconds: float | None,
    budget_steps: int | None,
    budget_memory: str | None,
    start: tuple[str, ...],
    by: By | None,
    text_path: str | None,
    json_path: str | None,
    **limits: Any,
) -> None:
    """Find the best mapping of WORKLOAD onto MACHINE.

    Both are names of the zoo (`einloom zoo` lists them), as in gpt3-6.7b:batch=1,tokens=2048, or YAML files. Ctrl-C
    and SIGTERM keep the best so far, and --start takes its result up.
    """
    begun = stops.begun()
    output.refuse(text_path, json_path)
    budget = read_budget(budget_seconds, budget_steps, budget_memory)
    how = _method(method, options)
    with stops.politely() as stop:
        asked = questions.problems(workload, machine, objective, **limits)
        known = questions.starts(asked, start)
        verbs.refuse_relaxation(asked, relax)
        budget = budget.after(time.monotonic() - begun)
        found = _search(asked, how, budget, known, stop, relax)
        if isinstance(found, Unmapped) and found.status == "infeasible":
            reason = verbs.why_infeasible(asked, found.reason, budget, found.seconds, lambda: bool(stop))
            found = replace(found, reason=reason)
        if isinstance(found, Result):
            tree = found.mapping_text
            output.deliver(overview(found, by), (json_path, found.to_json), (text_path, lambda: tree))
        else:
            output.deliver("", (json_path, found.to_json))
    if found.ended is Ended.STOPPED:
        best = "this is the best so far, with the bound that was proven"
        stopped(stop, best if isinstance(found, Result) else found.reason)
    if isinstance(found, Unmapped):
        legal = "no mapping of the space is legal: " if found.status == "infeasible" else ""
        fail(legal + found.reason, FAILED)


def _method(name: str, options: tuple[str, ...]) -> Method:
    """The method of that name; where the user names one, unused methods of packages are told of."""
    if click.get_current_context().get_parameter_source("method") is click.core.ParameterSource.COMMANDLINE:
        tell_unused_methods()
    return chosen(name, _options(options))


def _options(texts: tuple[str, ...]) -> dict[str, object]:
    """Options of a method, from texts such as seed=3."""
    found: dict[str, object] = {}
    for one in texts:
        key, equals, value = one.partition("=")
        if not equals or not key:
            raise SpecError(f"--method-option: {one!r:.80} is not KEY=VALUE", suggestion="seed=1")
        if key in found:
            raise SpecError(f"--method-option: {key!r:.80} is given twice")
        found[key] = value
    return found


def _search(
    asked: tuple[Labelled, ...],
    method: Method,
    budget: Budget,
    known: tuple[Mapping, ...],
    stop: list[int],
    relax: str | None,
) -> Result | Unmapped:
    """The answer, shown while it comes; `stop` is not empty once it should end."""
    with display(asked[-1].problem.objective) as shown:
        recorder = Recorder(on_change=shown, stop=lambda: bool(stop))
        found = answer(asked, method, budget, recorder, known)
        return verbs.relaxed(found, relax, budget, recorder) if isinstance(found, Result) else found


@click.command("evaluate")
@workload_argument
@machine_or_none
@click.argument("mapping", required=False)
@objective_option("By default that of the result, or energy.", default=None)
@click.option("--latency", metavar="RULE", help="Of the total: einsum (default) or tile; every view is shown anyway.")
@output.by_option
@output.json_option
@guarded
def evaluate_verb(
    workload: str,
    machine: str | None,
    mapping: str | None,
    objective: str | None,
    latency: str | None,
    by: By | None,
    json_path: str | None,
) -> None:
    """Price a mapping: WORKLOAD MACHINE MAPPING (a text file or a result), or one RESULT.json alone."""
    output.refuse(json_path)
    found = verbs.evaluate(workload, machine, mapping, objective, latency)
    output.deliver(overview(found, by), (json_path, found.to_json))


def _counted(counts: Table[tuple[str, str, str, str], int]) -> list[dict[str, object]]:
    """Executed moves as JSON."""
    keys = ("einsum", "component", "tensor", "action")
    return [{**dict(zip(keys, key, strict=True)), "count": n} for key, n in sorted(counts.items())]


@click.command("simulate")
@workload_argument
@machine_or_none
@click.argument("mapping", required=False)
@click.option("--seed", default=0, show_default=True, help="Of the random integers that are computed with.")
@output.json_option
@guarded
def simulate_verb(workload: str, machine: str | None, mapping: str | None, seed: int, json_path: str | None) -> None:
    """Execute a mapping of small size with real integers, and compare the counts with those of `evaluate`.

    Arguments as for `evaluate`.
    """
    output.refuse(json_path)
    done = verbs.simulate(workload, machine, mapping, seed)
    data = {
        "correct": done.simulation.correct,
        "agrees": done.ok,
        "reasons": list(done.simulation.reasons),
        "differences": list(done.differences),
        "counts": _counted(done.simulation.counts),
        "operations": done.simulation.operations,
        "occupancy": done.simulation.occupancy,
    }
    output.answer(data, json_path, answers.simulation(done.problem, done.simulation, done.differences))
    if not done.ok:
        raise SystemExit(FAILED)


@click.command("run")
@workload_argument
@machine_or_none
@click.argument("mapping", required=False)
@click.option("--seed", default=0, show_default=True, help="Of the random numbers that are computed with.")
@click.option("--keep", metavar="FOLDER", type=click.Path(), help="Keep the program, its inputs and its results there.")
@output.json_option
@guarded
def run_verb(
    workload: str, machine: str | None, mapping: str | None, seed: int, keep: str | None, json_path: str | None
) -> None:
    """Write a mapping as a C program, compile and run it, and compare: its results with those of NumPy, what it moved
    with what `evaluate` says.

    Arguments as for `evaluate`.
    """
    output.refuse(json_path)
    done = verbs.run(workload, machine, mapping, seed, keep, partial(click.echo, err=True))
    data = {
        "correct": done.run.correct,
        "agrees": done.ok,
        "reasons": list(done.run.reasons),
        "differences": list(done.differences),
        "errors": {name: None if error == float("inf") else error for name, error in done.run.errors.items()},
        "infinite": done.run.infinite,
        "stand_ins": list(done.run.stand_ins),
        "counts": _counted(done.run.counts),
        "operations": done.run.operations,
        "seconds": done.run.seconds,
    }
    output.answer(data, json_path, answers.program(done.problem, done.run, done.differences))
    if not done.ok:
        raise SystemExit(FAILED)


@click.command("verify")
@click.argument("result", metavar="RESULT.json")
@click.option("--quick", is_flag=True, help="Do not solve the problem a second time.")
@click.option("--budget-seconds", type=click.FloatRange(0, min_open=True), help="Stop solving it then, and say so.")
@output.json_option
@guarded
def verify_verb(result: str, quick: bool, budget_seconds: float | None, json_path: str | None) -> None:
    """Check everything that a result file claims, and solve its problem again by another route."""
    begun = stops.begun()
    output.refuse(json_path)
    budget = Budget(budget_seconds).after(time.monotonic() - begun)
    found: list[Check] = []
    number = None
    try:
        for check in verbs.checks(result, quick, budget):
            found.append(check)  # one by one: what is known stays
    except KeyboardInterrupt as stop:
        number = getattr(stop, "number", signal.SIGINT)
    verdict = Verdict(tuple(found), stopped=number is not None)
    data = {
        "ok": verdict.ok,
        "stopped": verdict.stopped,
        "reasons": list(verdict.reasons),
        "remarks": list(verdict.remarks),
        "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in verdict.checks],
    }
    output.answer(data, json_path, answers.verdict(verdict))
    if number is not None:
        stopped([number], "these are the claims that were checked by then")
    if not verdict.ok:
        raise SystemExit(FAILED)

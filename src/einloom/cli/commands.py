"""The command line: reads arguments, calls the verbs, prints what `report` makes of the answer.

Exit codes: 0 fine, 1 nothing found, illegal or rejected, 2 bad input.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import click

from .. import verbs, zoo
from ..errors import BudgetExhausted, EinloomError, IllegalMapping, Infeasible, SpecError
from ..machine.write import machine_data, machine_text
from ..mapping.tree import Mapping
from ..mapspace.dataflow_files import dataflow_data, dataflow_text
from ..mapspace.dataflows import Dataflow
from ..problem import OBJECTIVES, Budget
from ..report import answers, nests, text
from ..report.live import display
from ..result import Result
from ..result.unmapped import Unmapped, read_answer
from ..search.protocol import Recorder, optimizers
from ..search.several import Labelled
from ..units import parse
from ..version import VERSION
from ..workload.einsum import Workload
from ..workload.files import workload_data, workload_text
from . import compare, explain, figures, interop, rewrite, schema

FAILED, BAD_INPUT = 1, 2
Verb = TypeVar("Verb", bound=Callable[..., None])

json_option = click.option(
    "--json", "json_path", metavar="FILE", help="Write the answer as JSON; - for standard output."
)
objective_option = click.option(
    "--objective",
    default="energy",
    show_default=True,
    help=f"What is minimised: {', '.join(OBJECTIVES[:-1])} or traffic:MEMORY.",
)


def guarded(verb: Verb) -> Verb:
    """Turn the project's own errors into a message and an exit code."""

    @functools.wraps(verb)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            verb(*args, **kwargs)
        except SpecError as error:
            _fail(str(error), BAD_INPUT)
        except IllegalMapping as error:
            _fail("\n".join(("the mapping is illegal:", *(f"  {reason}" for reason in error.reasons))), FAILED)
        except Infeasible as error:
            _fail(f"no mapping of the space is legal: {error.witness}", FAILED)
        except BudgetExhausted as error:
            _fail(str(error), FAILED)
        except EinloomError as error:
            _fail(str(error), BAD_INPUT)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return run  # type: ignore[return-value]


def _fail(message: str, code: int) -> None:
    click.echo(f"einloom: {message}", err=True)
    raise SystemExit(code)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="einloom")
def main() -> None:
    """Optimal fused mappings of Einsum cascades onto accelerators, each with a certificate."""


@main.command("map")
@click.argument("workload")
@click.argument("machine")
@objective_option
@click.option("--max-fused-loops", type=click.IntRange(0), help="At most so many loops above a fused tensor.")
@click.option("--mapspace", metavar="FILE", help="Limits of the space: keep, bypass, fusion, loops, tiles, axes.")
@click.option(
    "--dataflow",
    multiple=True,
    metavar="NAME|FILE",
    help="Limits of a published dataflow (`einloom zoo` lists them); of several together.",
)
@click.option("--full-use", is_flag=True, help="Every Einsum uses as many instances of the axes as it can.")
@click.option("--method", default="exact", show_default=True, help=f"How to search: {', '.join(optimizers())}.")
@click.option("--budget-seconds", type=click.FloatRange(0, min_open=True), help="Stop then, with the best so far.")
@click.option("--budget-steps", type=click.IntRange(1), help="The same after so many evaluated points.")
@click.option("--budget-memory", metavar="SIZE", help="The same when the process holds so much, as in '2 GiB'.")
@click.option("--start", multiple=True, metavar="FILE", help="A known mapping or result to look below; repeatable.")
@click.option("-o", "--output", metavar="FILE", help="Write the mapping as text, as `evaluate` reads it.")
@json_option
@guarded
def map_verb(
    workload: str,
    machine: str,
    objective: str,
    max_fused_loops: int | None,
    mapspace: str | None,
    dataflow: tuple[str, ...],
    full_use: bool,
    method: str,
    budget_seconds: float | None,
    budget_steps: int | None,
    budget_memory: str | None,
    start: tuple[str, ...],
    output: str | None,
    json_path: str | None,
) -> None:
    """Find the best mapping of WORKLOAD onto MACHINE.

    Both are names of the zoo (`einloom zoo` lists them), as in gpt3-6.7b:batch=1,tokens=2048, or YAML files. Ctrl-C
    keeps the best so far, and --start takes its result up.
    """
    for path in (output, json_path):
        _writable(path)
    asked = verbs.problems(workload, machine, objective, max_fused_loops, mapspace, dataflow, full_use)
    budget = Budget(budget_seconds, budget_steps, _bytes(budget_memory))
    known = verbs.starts(asked, start)
    found, interrupted = _search(asked, method, budget, json_path, known)
    if output:
        _write(output, found.mapping_text)
    _answer(found, json_path, text.summary(found))
    if interrupted:
        click.echo("interrupted: this is the best so far, with the bound that was proven", err=True)


def _bytes(text: str | None) -> int | None:
    """Bytes of a size such as '2 GiB', which units count in bits."""
    if text is None:
        return None
    try:
        bits = parse(text, "size")
    except SpecError as error:
        raise SpecError(f"--budget-memory: {error.message}", suggestion=error.suggestion) from None
    if bits < 8:
        raise SpecError(f"--budget-memory: {text!r:.40} is less than a byte", suggestion="2 GiB")
    return int(bits) // 8


def _search(
    asked: tuple[Labelled, ...], method: str, budget: Budget, json_path: str | None, known: tuple[Mapping, ...]
) -> tuple[Result, bool]:
    """The result, and whether Ctrl-C ended the search early. Where nothing is found, why goes to `json_path`."""
    last = asked[-1].problem
    with display(last.objective) as shown, _interruptible() as presses:
        recorder = Recorder(on_change=shown, stop=lambda: bool(presses))
        try:
            found = verbs.solve(asked, method, budget, recorder, known)
        except KeyboardInterrupt:
            return verbs.best_so_far(last, recorder, method), True
        except (Infeasible, BudgetExhausted) as error:
            _answer(verbs.nothing_found(last, recorder, method, error), json_path, "")
            raise
        return found, bool(presses)


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """A list that grows with every Ctrl-C; the second one raises KeyboardInterrupt at once."""
    presses: list[int] = []

    def pressed(number: int, frame: FrameType | None) -> None:
        presses.append(number)
        if len(presses) > 1:
            raise KeyboardInterrupt
        click.echo("stopping; press Ctrl-C again to stop at once", err=True)

    before = signal.signal(signal.SIGINT, pressed)
    try:
        yield presses
    finally:
        signal.signal(signal.SIGINT, before)


@main.command("evaluate")
@click.argument("workload")
@click.argument("machine", required=False)
@click.argument("mapping", required=False)
@objective_option
@click.option("--latency", metavar="RULE", help="Of the total: einsum (default) or tile; every view is shown anyway.")
@json_option
@guarded
def evaluate_verb(
    workload: str, machine: str | None, mapping: str | None, objective: str, latency: str | None, json_path: str | None
) -> None:
    """Price a mapping: WORKLOAD MACHINE MAPPING (a text file or a result), or one RESULT.json alone."""
    _writable(json_path)
    found = verbs.evaluate(workload, machine, mapping, objective, latency)
    _answer(found, json_path, text.summary(found))


@main.command("simulate")
@click.argument("workload")
@click.argument("machine", required=False)
@click.argument("mapping", required=False)
@click.option("--seed", default=0, show_default=True, help="Of the random integers that are computed with.")
@json_option
@guarded
def simulate_verb(workload: str, machine: str | None, mapping: str | None, seed: int, json_path: str | None) -> None:
    """Execute a mapping of small size with real integers, and compare the counts with those of `evaluate`.

    Arguments as for `evaluate`.
    """
    _writable(json_path)
    done = verbs.simulate(workload, machine, mapping, seed)
    data = {
        "correct": done.simulation.correct,
        "agrees": done.ok,
        "reasons": list(done.simulation.reasons),
        "differences": list(done.differences),
        "counts": [
            {"einsum": e, "component": c, "tensor": t, "action": a, "count": n}
            for (e, c, t, a), n in sorted(done.simulation.counts.items())
        ],
        "operations": done.simulation.operations,
        "occupancy": done.simulation.occupancy,
    }
    _answer(data, json_path, answers.simulation(done.problem, done.simulation, done.differences))
    if not done.ok:
        raise SystemExit(FAILED)


@main.command("verify")
@click.argument("result", metavar="RESULT.json")
@click.option("--quick", is_flag=True, help="Do not solve the problem a second time.")
@json_option
@guarded
def verify_verb(result: str, quick: bool, json_path: str | None) -> None:
    """Check everything that a result file claims, and solve its problem again by another route."""
    _writable(json_path)
    verdict = verbs.verify(result, quick)
    data = {
        "ok": verdict.ok,
        "reasons": list(verdict.reasons),
        "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in verdict.checks],
    }
    _answer(data, json_path, answers.verdict(verdict))
    if not verdict.ok:
        raise SystemExit(FAILED)


@main.command("show")
@click.argument("result", metavar="RESULT.json")
@click.option("--tree", "parts", flag_value="tree", help="The mapping.")
@click.option("--loops", "parts", flag_value="loops", help="One loop nest per Einsum.")
@click.option("--breakdown", "parts", flag_value="breakdown", help="Energy and traffic of every action.")
@click.option("--occupancy", "parts", flag_value="occupancy", help="What fills the memories.")
@json_option
@guarded
def show_verb(result: str, parts: str | None, json_path: str | None) -> None:
    """Print a saved result, or one side of it. Nothing is computed again."""
    _writable(json_path)
    found = read_answer(result)
    if isinstance(found, Unmapped):
        _answer(found, json_path, text.nothing(found))
        return
    views = {
        None: nests.everything,
        "tree": text.tree,
        "loops": nests.loops,
        "breakdown": text.breakdown,
        "occupancy": text.occupancy,
    }
    _answer(found, json_path, views[parts](found).rstrip("\n") + "\n")


@main.command("report")
@click.argument("result", metavar="RESULT.json")
@click.option("-o", "--output", metavar="FILE", help="The HTML file; by default RESULT.html beside the result.")
@click.option("--explanation", metavar="FILE", help="What `einloom explain --json` saved of it, shown as a part.")
@guarded
def report_verb(result: str, output: str | None, explanation: str | None) -> None:
    """Draw a saved result as one HTML file that needs no network. Nothing is searched."""
    from ..certify.explain import read_explanation
    from ..report.html import write_page

    target = str(Path(result).with_suffix(".html")) if output is None else output
    _writable(target)
    write_page(read_answer(result), target, None if explanation is None else read_explanation(explanation))
    click.echo(f"wrote {target}")


@main.command("zoo")
@click.argument("name", required=False)
@json_option
@guarded
def zoo_verb(name: str | None, json_path: str | None) -> None:
    """List the workloads, machines and dataflows that ship, or print NAME (with parameters, if you like) as YAML."""
    _writable(json_path)
    if name is None:
        kinds = (("workloads", zoo.workloads()), ("machines", zoo.machines()), ("dataflows", zoo.dataflows()))
        listed = {kind: [{"name": e.name, "description": e.description} for e in entries] for kind, entries in kinds}
        _answer(listed, json_path, answers.catalogue(kinds))
        return
    found = zoo.load(name)
    if isinstance(found, Workload):
        _answer(workload_data(found), json_path, workload_text(found))
    elif isinstance(found, Dataflow):
        _answer(dataflow_data(found.name), json_path, dataflow_text(found.name))
    else:
        _answer(machine_data(found), json_path, machine_text(found))


interop.register(main, guarded)
schema.register(main, guarded)
rewrite.register(main, guarded)
compare.register(main, guarded)
figures.register(main, guarded)


def _writable(path: str | None) -> None:
    """Refuse a place that cannot be written to before a long search, not after it."""
    if path is None or path == "-":
        return
    folder = Path(path).absolute().parent
    if Path(path).is_dir():
        raise SpecError("cannot write the file: it is a folder", file=path)
    if not folder.is_dir():
        raise SpecError(f"cannot write the file: there is no folder {folder.name!r}", file=path)
    if not os.access(folder, os.W_OK):
        raise SpecError("cannot write the file: its folder is read-only", file=path)


def _answer(answer: Result | Unmapped | object, json_path: str | None, printed: str) -> None:
    """Print the text, and write the JSON where it is wanted; JSON on standard output replaces the text."""
    if json_path == "-":
        click.echo(_json(answer), nl=False)
        return
    if json_path is not None:
        if isinstance(answer, Result | Unmapped):
            answer.write(json_path)
        else:
            _write(json_path, _json(answer))
    click.echo(printed, nl=False)


def _json(answer: Result | Unmapped | object) -> str:
    return answer.to_json() if isinstance(answer, Result | Unmapped) else json.dumps(answer, indent=1) + "\n"


def _write(path: str, content: str) -> None:
    try:
        Path(path).write_text(content, encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot write the file: {error.strerror}", file=path) from None


explain.register(main, guarded, _interruptible, _writable)


if __name__ == "__main__":
    main()

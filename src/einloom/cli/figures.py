"""`einloom figure` draws saved results for papers; `einloom sweep` makes what figures over capacities draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .. import stops
from ..api import problem
from ..errors import Ended, SpecError, unknown
from ..problem import Problem
from ..reading.units import parse
from ..report.text.results import bits, objective_value
from ..report.text.table import columns
from ..result import Result
from ..result.sweep import CapacityPoint, Sweep, read_sweep
from .guard import stopped
from .output import deliver, tell

KEYS = click.Choice(["einsum", "component", "tensor", "action"])
Guard = Callable[[Callable[..., None]], Callable[..., None]]


def register(group: click.Group, guarded: Guard) -> None:
    """Add the verbs to the command line."""
    figure = click.Command("figure", callback=guarded(figure_verb), help=figure_verb.__doc__, params=_figure_options())
    sweep = click.Command("sweep", callback=guarded(sweep_verb), help=sweep_verb.__doc__, params=_sweep_options())
    group.add_command(figure)
    group.add_command(sweep)


def _figure_options() -> list[click.Parameter]:
    return [
        click.Argument(["kind"], metavar="KIND"),
        click.Argument(["files"], nargs=-1, required=True, metavar="FILE..."),
        click.Option(["-o", "--output"], required=True, metavar="FILE", help="A name that ends in .pdf, .svg or .png."),
        click.Option(["--rows"], type=KEYS, help="energy, traffic: what has a bar."),
        click.Option(["--parts"], type=KEYS, help="energy, traffic: what bars are stacked of."),
        click.Option(["--memory"], metavar="NAME", help="occupancy: this memory alone."),
        click.Option(["--first"], type=click.IntRange(1), help="looptree, cascade, bars: the first Einsum to draw."),
        click.Option(["--count"], type=click.IntRange(1), help="looptree, cascade, bars: how many."),
    ]


def figure_verb(kind: str, files: tuple[str, ...], output: str, **options: Any) -> None:
    """Draw saved results as KIND: energy, traffic, latency, roofline, looptree, occupancy, cascade, search, pareto, or
    ski-slope (of the files that `einloom sweep` wrote), or a picture that an installed package brings. Nothing is
    searched."""
    from ..report.figures import SKI_SLOPE, kinds, picture, save, ski_slope
    from ..report.pictures import options_of

    if kind not in kinds():
        raise unknown("kind of figure", kind, kinds())
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if kind == SKI_SLOPE or name not in options_of(kind):
            raise SpecError(f"--{name} means nothing for a figure of kind {kind}")
    if "first" in given:
        given["first"] -= 1
    if kind == SKI_SLOPE:
        drawn = ski_slope(*(read_sweep(file) for file in files))
    else:
        labels = [Path(file).stem for file in files]
        drawn = picture(kind, *(Result.read(file) for file in files), labels=labels, **given)
    save(drawn, output)
    click.echo(f"wrote {output}")


def _sweep_options() -> list[click.Parameter]:
    return [
        click.Argument(["workload"]),
        click.Argument(["machine"]),
        click.Option(["--memory"], required=True, metavar="NAME", help="The memory whose capacity varies."),
        click.Option(["--capacities"], required=True, metavar="LIST", help='Such as "64 KiB, 128 KiB, 1 MiB".'),
        click.Option(["--fused/--unfused"], default=True, help="Unfused: intermediates stay in the outermost memory."),
        click.Option(["--objective"], metavar="NAME", help="By default the traffic of the outermost memory."),
        click.Option(["--max-fused-loops"], type=click.IntRange(0), help="At most so many loops above a fused tensor."),
        click.Option(["--method"], default="exact", show_default=True, help="How to search."),
        click.Option(["--budget-seconds"], type=click.FloatRange(0, min_open=True), help="For each capacity."),
        click.Option(["--jobs"], type=click.IntRange(1), default=1, show_default=True, help="Processes."),
        click.Option(
            ["-o", "--output"], required=True, metavar="FOLDER", help="What is there already is not repeated."
        ),
    ]


def sweep_verb(
    workload: str,
    machine: str,
    memory: str,
    capacities: str,
    fused: bool,
    objective: str | None,
    max_fused_loops: int | None,
    method: str,
    budget_seconds: float | None,
    jobs: int,
    output: str,
) -> None:
    """Search once for each capacity of a memory, and save every answer in a folder as soon as it is known.

    Run again, it goes on where it was stopped, as by Ctrl-C. `einloom figure ski-slope` draws fused.json and
    unfused.json there.
    """
    from ..sweep import sweep_capacity

    asked = _asked(workload, machine, objective, max_fused_loops)
    listed = [int(parse(text.strip(), "size")) for text in capacities.split(",") if text.strip()]

    def told(point: CapacityPoint, kept: bool) -> None:
        tell(f"{bits(point.capacity):>12}  {_answer(point)}{'  (kept)' if kept else ''}")

    how: dict[str, Any] = {"fused": fused, "method": method, "seconds": budget_seconds, "jobs": jobs}
    with stops.politely() as stop:
        done = sweep_capacity(asked, memory, listed, output, **how, on_point=told, stop=lambda: bool(stop))
        deliver(f"{_table(done, asked)}\nwrote {Path(output) / ('fused.json' if fused else 'unfused.json')}\n")
    missing = len(set(listed)) - sum(point.answer.ended is not Ended.STOPPED for point in done.points)
    if stop and missing:
        stopped(stop, f"{missing} of {len(set(listed))} capacities are not done; the same command goes on there")


def _asked(workload: str, machine: str, objective: str | None, max_fused_loops: int | None) -> Problem:
    asked = problem(workload, machine, objective or "energy", max_fused_loops)
    if objective is not None:
        return asked
    outer = asked.machine.memories[0].name
    return problem(asked.workload, asked.machine, f"traffic:{outer}", max_fused_loops)


def _answer(point: CapacityPoint) -> str:
    answer = point.answer
    if not isinstance(answer, Result):
        return answer.status
    gap = answer.certificate.gap if answer.certificate else None
    return f"{objective_value(answer.objective, answer.value)}" + (f"  gap {gap:.3%}" if gap else "")


def _table(done: Sweep, asked: Problem) -> str:
    heads = (done.memory, str(asked.objective), "seconds")
    rows = [(bits(point.capacity), _answer(point), f"{point.answer.seconds:.3g}") for point in done.points]
    return columns(done.title, heads, rows, left=())

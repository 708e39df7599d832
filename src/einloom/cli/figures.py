"""`einloom figure` draws saved results for papers; `einloom sweep` makes what figures over capacities draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .. import stops
from ..errors import Ended, SpecError, unknown
from ..problem import Objective
from ..questions import problems_or_traffic
from ..reading.plugins import tell_unused
from ..report.text.names import file_labels
from ..report.text.results import bits, objective_value
from ..report.text.table import columns
from ..result import Result
from ..result.sweep import CapacityPoint, Sweep, read_sweep
from . import completion
from .arguments import machine_argument, objective_option, workload_argument
from .commands import limited
from .guard import guarded, stopped
from .output import deliver, refuse, tell

KEYS = click.Choice(["einsum", "component", "tensor", "action"])


@click.command("figure")
@click.argument("kind", metavar="KIND")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", required=True, metavar="FILE", help="A name that ends in .pdf, .svg or .png.")
@click.option("--rows", type=KEYS, help="energy, traffic: what has a bar.")
@click.option("--parts", type=KEYS, help="energy, traffic: what bars are stacked of.")
@click.option("--memory", metavar="NAME", help="occupancy: this memory alone.")
@click.option("--first", type=click.IntRange(1), help="looptree, cascade, bars: the first Einsum to draw.")
@click.option("--count", type=click.IntRange(1), help="looptree, cascade, bars: how many.")
@guarded
def figure_verb(kind: str, files: tuple[str, ...], output: str, **options: Any) -> None:
    """Draw saved results as KIND: energy, traffic, latency, roofline, looptree, occupancy, cascade, search, pareto, or
    ski-slope (of the files that `einloom sweep` wrote), or a picture that an installed package brings. Nothing is
    searched."""
    from ..report.figures import SKI_SLOPE, kinds, picture, save, ski_slope
    from ..report.pictures import GROUP, SHIPPED, options_of

    tell_unused(GROUP, "picture", SHIPPED)
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
        labels = file_labels(files)
        drawn = picture(kind, *(Result.read(file) for file in files), labels=labels, **given)
    save(drawn, output)
    click.echo(f"wrote {output}")


@click.command("sweep")
@workload_argument
@machine_argument
@click.option("--memory", required=True, metavar="NAME", help="The memory whose capacity varies.")
@click.option("--capacities", required=True, metavar="LIST", help='Such as "64 KiB, 128 KiB, 1 MiB".')
@click.option("--fused/--unfused", default=True, help="Unfused: intermediates stay in the outermost memory.")
@objective_option("By default the traffic of the outermost memory.", default=None)
@limited
@click.option("--method", shell_complete=completion.methods, default="exact", show_default=True, help="How to search.")
@click.option("--budget-seconds", type=click.FloatRange(0, min_open=True), help="For each capacity.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="What is there already is not repeated.")
@click.option("--csv", "csv_path", metavar="FILE", help="Write a line per capacity as CSV; - for standard output.")
@guarded
def sweep_verb(
    workload: str,
    machine: str,
    memory: str,
    capacities: str,
    fused: bool,
    objective: str | None,
    method: str,
    budget_seconds: float | None,
    jobs: int,
    output: str,
    csv_path: str | None,
    **limits: Any,
) -> None:
    """Search once for each capacity of a memory, and save every answer in a folder as soon as it is known.

    Run again, it goes on where it was stopped, as by Ctrl-C. `einloom figure ski-slope` draws fused.json and
    unfused.json there.
    """
    from ..sweep import sizes, sweep_capacity

    refuse(csv_path)
    asked = problems_or_traffic(workload, machine, objective, **limits)
    listed = sizes(capacities)

    def told(point: CapacityPoint, kept: bool) -> None:
        tell(f"{bits(point.capacity):>12}  {_answer(point)}{'  (kept)' if kept else ''}")

    how: dict[str, Any] = {"fused": fused, "method": method, "seconds": budget_seconds, "jobs": jobs}
    with stops.politely() as stop:
        done = sweep_capacity(asked, memory, listed, output, **how, on_point=told, stop=lambda: bool(stop))
        wrote = f"wrote {Path(output) / ('fused.json' if fused else 'unfused.json')}\n"
        deliver(f"{_table(done, asked[0].problem.objective)}\n{wrote}", (csv_path, done.to_csv))
    missing = len(set(listed)) - sum(point.answer.ended is not Ended.STOPPED for point in done.points)
    if stop and missing:
        stopped(stop, f"{missing} of {len(set(listed))} capacities are not done; the same command goes on there")


def _answer(point: CapacityPoint) -> str:
    answer = point.answer
    if not isinstance(answer, Result):
        return answer.status
    gap = answer.certificate.gap if answer.certificate else None
    return f"{objective_value(answer.objective, answer.value)}" + (f"  gap {gap:.3%}" if gap else "")


def _table(done: Sweep, objective: Objective) -> str:
    heads = (done.memory, objective.measured, "seconds")
    rows = [(bits(point.capacity), _answer(point), f"{point.answer.seconds:.3g}") for point in done.points]
    return columns(done.title, heads, rows, left=())

"""`einloom explore`: every machine of a family, and those that no other beats."""

from __future__ import annotations

import sys
from itertools import count
from math import isnan
from pathlib import Path
from typing import Any

import click

from .. import stops
from ..errors import SpecError
from ..report.text.results import objective_value
from ..result import Result
from . import completion
from .guard import guarded, stopped
from .output import deliver, keep_apart, refuse, tell


def _share(text: str | None) -> tuple[int, int]:
    """(k, n) of a text K/N. Raises SpecError for anything else."""
    parts = (text or "1/1").split("/")
    if len(parts) == 2 and all(part.strip().isdigit() for part in parts):
        k, n = (int(part) for part in parts)
        if 1 <= k <= n:
            return k, n
    raise SpecError(f"--share is K/N with K from 1 to N, such as 3/16, not {text!r:.80}")


@click.command("explore")
@click.argument("family", metavar="FAMILY")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="Of the answers; what is there is kept.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="How far a machine's mapping may be above what is proven: 0.01 is one per cent.",
)
@click.option("--method", shell_complete=completion.methods, default="exact", show_default=True, help="How to search.")
@click.option("--budget-seconds", type=click.FloatRange(0, min_open=True), help="For each search.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; 1 unless stated.")
@click.option("--share", metavar="K/N", help="Settle the K-th of N parts alone, as one job of an array does.")
@click.option("--dask", "cluster", metavar="ADDRESS", help="Search on the workers of this Dask scheduler.")
@click.option("--every", is_flag=True, help="Settle machines that others beat, too.")
@click.option("--csv", "csv_path", metavar="FILE", help="A line per machine and workload; - for standard output.")
@click.option("--report", "report_path", metavar="FILE", help="One HTML page.")
@guarded
def explore_verb(
    family: str,
    output: str,
    share: str | None,
    csv_path: str | None,
    report_path: str | None,
    **how: Any,
) -> None:
    """Find the best mapping on every machine of a FAMILY file, and the machines that no other beats.

    A machine is searched only where the mappings and proofs of others do not settle it. Every answer is saved at
    once in the folder, so that the same command goes on after a stop, and several may work in one folder.
    """
    from ..exploration.family import FamilyMember, read_family
    from ..exploration.page import exploration_page
    from ..exploration.study import answer_files, explore_family
    from ..sweep.tasks import Answer

    refuse(csv_path, report_path)
    part = _share(share)
    if isnan(how["tolerance"]):
        raise SpecError("--tolerance is a number from 0 to 1, not nan")
    if how["jobs"] is not None and how["cluster"] is not None:
        raise SpecError("either --jobs, processes here, or --dask, the workers of a scheduler")
    how["jobs"] = how["jobs"] or 1
    asked = read_family(family)
    answers = answer_files(asked, output)
    for place in (csv_path, report_path):
        if place is not None and Path(place).resolve() in answers:
            raise SpecError(f"{place!r} is a file of the answers; give another place")
    keep_apart(csv_path, report_path, read=asked.files)

    most, so_far = len(asked.members) * len(asked.workloads), count(1)

    def told(member: FamilyMember, one: Answer, way: str) -> None:
        points = len(one.front) if isinstance(one, Result) else 0
        found = objective_value(one.objective, one.value) if isinstance(one, Result) else one.status
        found = f"{points} point{'s' * (points > 1)}, least EDP {found}" if points else found
        several = f"  {one.workload.name}" if len(asked.workloads) > 1 else ""
        known = "  (known from other machines)" if way == "neighbour" else ""
        tell(f"{next(so_far)} of at most {most}  {member.label}{several}  {found}{known}")

    seconds = how.pop("budget_seconds")
    with stops.politely() as stop:
        done = explore_family(asked, output, seconds=seconds, share=part, heard=told, stop=lambda: bool(stop), **how)
        page = (report_path, lambda: exploration_page(done))
        deliver(f"{done}wrote {output}\n", (csv_path, done.to_csv), page)
    if done.counts["no mapping"] == len(done.machines):
        sys.exit(1)
    if stop and done.unsettled:
        stopped(stop, f"{done.unsettled} machines are not settled; the same command goes on there")

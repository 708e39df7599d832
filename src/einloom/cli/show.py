"""Verbs that show a saved answer, `einloom show` and `einloom report`: nothing that searches is imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from ..errors import SpecError
from ..report.data.modules import einsums_of
from ..report.text import nests
from ..report.text import results as text
from ..report.text.overview import By, overview
from ..result import Result
from ..result.unmapped import Unmapped, read_answer
from . import output
from .guard import guarded


@click.command("show")
@click.argument("result", metavar="RESULT.json")
@click.option("--tree", "parts", flag_value="tree", help="The mapping.")
@click.option("--loops", "parts", flag_value="loops", help="One loop nest per Einsum.")
@click.option("--breakdown", "parts", flag_value="breakdown", help="Energy and traffic of every action.")
@click.option("--occupancy", "parts", flag_value="occupancy", help="What fills the memories.")
@click.option("--group", metavar="MODULE", help="With --tree: only the branches of a module, as in layers.0.attention.")
@output.by_option
@output.json_option
@guarded
def show_verb(result: str, parts: str | None, group: str | None, by: By | None, json_path: str | None) -> None:
    """Print a saved result, or one side of it. Nothing is computed again."""
    output.refuse(json_path)
    if group is not None and parts != "tree":
        raise SpecError("--group chooses branches of the mapping; write --tree too")
    if by is not None and parts is not None:
        raise SpecError(f"--by prints a table by modules or Einsums; --{parts} prints something else")
    found = read_answer(result)
    if isinstance(found, Unmapped):
        output.deliver(text.nothing(found), (json_path, found.to_json))
        return
    views: dict[str | None, Callable[[Result], str]] = {
        None: nests.everything if by is None else lambda one: overview(one, by),
        "tree": text.tree if group is None else lambda one: text.tree(one, einsums_of(one, group)),
        "loops": nests.loops,
        "breakdown": text.breakdown,
        "occupancy": text.occupancy,
    }
    output.deliver(views[parts](found).rstrip("\n") + "\n", (json_path, found.to_json))


@click.command("report")
@click.argument("result", metavar="RESULT.json")
@click.option("-o", "--output", "page_path", metavar="FILE", help="The HTML file; by default RESULT.html.")
@click.option("--explanation", metavar="FILE", help="What `einloom explain --json` saved of it, shown as a part.")
@guarded
def report_verb(result: str, page_path: str | None, explanation: str | None) -> None:
    """Draw a saved result as one HTML file that needs no network. Nothing is searched."""
    from ..diagnose import read_explanation
    from ..report.page import any_page

    target = str(Path(result).with_suffix(".html")) if page_path is None else page_path
    output.refuse(target)
    page = any_page(read_answer(result), None if explanation is None else read_explanation(explanation))
    output.deliver(f"wrote {target}\n", (target, lambda: page))

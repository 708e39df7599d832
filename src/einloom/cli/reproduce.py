"""`einloom reproduce`: a paper's numbers beside einloom's."""

from __future__ import annotations

import click

from ..errors import unknown
from . import output as out
from .guard import guarded

PAPERS = ("fusecu",)


@click.command("reproduce")
@click.argument("paper", metavar="PAPER")
@click.option("-o", "--output", metavar="FILE", help="Write the same as one HTML file that needs no network.")
@click.option(
    "--area/--no-area", default=True, help="Synthesise the areas with yosys (the default), or leave them out."
)
@guarded
def reproduce_verb(paper: str, output: str | None, area: bool) -> None:
    """Print what PAPER prints, what einloom says, and why they differ; papers: fusecu."""
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)
    from ..published import fusecu_tables

    out.refuse(output)
    found = []
    for table in fusecu_tables.tables(area):
        found.append(table)
        click.echo(table.text() + "\n")
    out.deliver("" if output is None else f"wrote {output}\n", (output, lambda: fusecu_tables.page(found)))

"""`einloom compare`: several saved results side by side, as a table, a page, JSON or CSV."""

from __future__ import annotations

from collections.abc import Callable

import click

from . import output


def register(group: click.Group, guarded: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
    """Add the verb to the command line."""

    @group.command("compare")
    @click.argument("results", nargs=-1, required=True, metavar="RESULT.json...")
    @click.option("-o", "--output", "page_path", metavar="FILE", help="Write one HTML page that needs no network.")
    @click.option("--json", "json_path", metavar="FILE", help="Write the numbers as JSON; - for standard output.")
    @click.option("--csv", "csv_path", metavar="FILE", help="Write a line per result as CSV; - for standard output.")
    @guarded
    def compare_verb(
        results: tuple[str, ...], page_path: str | None, json_path: str | None, csv_path: str | None
    ) -> None:
        """Compare saved results of any methods, spaces, machines or workloads. Nothing is searched.

        Results that do not answer the same question are compared all the same, and the difference is said.
        """
        from ..report.compare import compare

        output.refuse(json_path, csv_path, page_path)
        compared = compare(results)
        printed = str(compared) + (f"wrote {page_path}\n" if page_path else "")
        outputs = (json_path, compared.to_json), (csv_path, compared.to_csv), (page_path, compared.to_html)
        output.deliver(printed, *outputs)

"""`einloom compare`: several saved results side by side, as a table, a page, JSON or CSV."""

from __future__ import annotations

from collections.abc import Callable

import click

from ..result import document


def register(group: click.Group, guarded: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
    """Add the verb to the command line."""

    @group.command("compare")
    @click.argument("results", nargs=-1, required=True, metavar="RESULT.json...")
    @click.option("-o", "--output", metavar="FILE", help="Write one HTML page that needs no network.")
    @click.option("--json", "json_path", metavar="FILE", help="Write the numbers as JSON; - for standard output.")
    @click.option("--csv", "csv_path", metavar="FILE", help="Write a line per result as CSV; - for standard output.")
    @guarded
    def compare_verb(results: tuple[str, ...], output: str | None, json_path: str | None, csv_path: str | None) -> None:
        """Compare saved results of any methods, spaces, machines or workloads. Nothing is searched.

        Results that do not answer the same question are compared all the same, and the difference is said.
        """
        from ..report.compare import compare

        compared = compare(results)
        for path, content in ((json_path, compared.to_json), (csv_path, compared.to_csv), (output, compared.to_html)):
            if path == "-":
                click.echo(content(), nl=False)
            elif path is not None:
                document.write(content(), path)
        if "-" not in (json_path, csv_path, output):
            click.echo(str(compared) + (f"wrote {output}\n" if output else ""), nl=False)

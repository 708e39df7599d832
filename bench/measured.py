"""What a measured table of a page is: its CSV, the command that measures it, and what its columns show of a row.

Comes in: rows of CSVs in `bench/results`. Goes out: Markdown. `tables.py` lists the tables, `pages.py` writes them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
Row = dict[str, str]


@dataclass(frozen=True)
class Column:
    """A column of a page's table: its head, and what it shows of a row of the CSV. A name shows that field as it is."""

    head: str
    shown: str | Callable[[Row], str]

    def of(self, row: Row) -> str:
        return row[self.shown] if isinstance(self.shown, str) else self.shown(row)


@dataclass(frozen=True)
class MeasuredTable:
    """A table of one page. render: makes it of the CSV's rows; the columns' Markdown where it is not given."""

    name: str
    page: str
    source: str
    command: str
    columns: tuple[Column, ...] = ()
    render: Callable[[list[Row]], str] | None = None

    def rows(self) -> list[Row]:
        """The rows of the CSV, lines of comments left out."""
        with (RESULTS / self.source).open(newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(line for line in stream if not line.startswith("#")))

    def text(self, rows: list[Row]) -> str:
        """What stands between the marks."""
        body = self.render(rows) if self.render is not None else markdown(self.columns, rows)
        return f"{stamp(self.command, rows)}\n\n{body.rstrip()}\n"


def stamp(command: str, rows: Iterable[Row]) -> str:
    """By what, of which commit and when the rows were measured; several commits or days are all named."""
    rows = list(rows)
    commits = list(dict.fromkeys(row.get("commit") or "unknown" for row in rows))
    days = sorted({row["time"][:10] for row in rows})
    written = [f"{datetime.fromisoformat(day):%d %B %Y}".lstrip("0") for day in (days[0], days[-1])]
    when = written[0] if len(days) == 1 else " to ".join(written)
    versions = ", ".join(dict.fromkeys(row["einloom_version"] for row in rows))
    return f"Measured by `{command}`: einloom {versions}, commit {', '.join(commits)}, {when}."


def markdown(columns: Sequence[Column], rows: Iterable[Row]) -> str:
    """A Markdown table with a line per row."""
    lines = [[c.head for c in columns], ["---" for _ in columns], *([c.of(row) for c in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

"""Measured tables, written into their pages from their CSVs: ``python -m bench.pages`` (``make pages``).

A table stands in its page between two marks, ``<!-- table NAME -->`` and ``<!-- end of table NAME -->``. Its first line
says what measured it: the command, the commit, the version and the date, as the rows of the CSV say. ``--check`` writes
nothing and exits with 1 where a page and its CSV differ, or where a CSV is of another version than the engine.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence

from einloom.version import VERSION

from .measured import ROOT, MeasuredTable
from .tables import TABLES


def marks(name: str) -> tuple[str, str]:
    """What stands before and after a table."""
    return f"<!-- table {name} -->", f"<!-- end of table {name} -->"


def written(text: str, table: MeasuredTable) -> str:
    """The page's text with the table as its CSV has it. Raises ValueError where a mark is missing or stands twice."""
    start, end = marks(table.name)
    if text.count(start) != 1 or text.count(end) != 1 or text.index(start) > text.index(end):
        raise ValueError(f"{table.page}: expected '{start}' and then '{end}', each once")
    before, rest = text.split(start)
    return f"{before}{start}\n{table.text(table.rows())}{end}{rest.split(end)[1]}"


def stale(table: MeasuredTable) -> str | None:
    """Why the table's CSV is not of this engine, or None."""
    others = sorted({row["einloom_version"] for row in table.rows()} - {VERSION})
    return f"bench/results/{table.source} has rows of version {', '.join(others)}, not {VERSION}" if others else None


def main(words: Sequence[str] | None = None) -> int:
    """Write every table, or with ``--check`` say which differ; 1 if one differs under ``--check`` or a CSV is old."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where page and CSV differ")
    parser.add_argument("--only", metavar="NAME", choices=[t.name for t in TABLES], help="only this table")
    options = parser.parse_args(words)
    problems = 0
    for table in (t for t in TABLES if options.only in (None, t.name)):
        path = ROOT / table.page
        old = path.read_text(encoding="utf-8")
        new = written(old, table)
        if why := stale(table):
            print(f"{table.name}: {why}: run `{table.command}` again")
            problems += 1
        if new == old:
            continue
        if options.check:
            print("\n".join(difflib.unified_diff(old.split("\n"), new.split("\n"), table.page, table.source, n=0)))
            problems += 1
        else:
            path.write_text(new, encoding="utf-8")
            print(f"{table.page}: {table.name} written")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

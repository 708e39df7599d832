"""A CSV that grows by a row at a time, each with the version, the commit and the time of its measurement."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from einloom.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
STAMP = ("einloom_version", "commit", "time")


def stamp() -> dict[str, str]:
    """Version, commit and time of day: the columns that every measured row ends with.

    The commit is that of the checkout, with ``+`` where `src` differs from it; empty outside a checkout.
    """
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    return dict(zip(STAMP, (VERSION, commit(), when), strict=True))


@cache
def commit() -> str:
    """The short name of the checkout's commit, as it was when the process first asked: its code is of that time."""
    found = _git("rev-parse", "--short", "HEAD")
    return f"{found}+" if found and _git("status", "--porcelain", "--", "src") else found


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def append(path: Path, row: Mapping[str, object]) -> None:
    """Add a row to the file, with a header if it is new.

    Raises ValueError where the file has other columns: nothing is written then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    if not fresh:
        with path.open(newline="", encoding="utf-8") as stream:
            columns = next(csv.reader(stream), list(row))
        if columns != list(row):
            raise ValueError(f"{path} has other columns ({', '.join(columns)}); move it away or name another file")
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(row))
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def read(path: Path) -> list[dict[str, str]]:
    """The rows of the file; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def had(path: Path, *columns: str) -> set[tuple[str, ...]]:
    """What the rows of the file have in these columns."""
    return {tuple(row[column] for column in columns) for row in read(path)}


def replace(path: Path, made: list[dict[str, object]], keys: tuple[str, ...], order: Sequence[tuple[str, ...]]) -> None:
    """Write these rows instead of those with equal keys, and leave all others, in the order of the keys."""
    rows: dict[tuple[object, ...], Mapping[str, object]] = {tuple(row[key] for key in keys): row for row in read(path)}
    rows |= {tuple(row[key] for key in keys): row for row in made}
    path.unlink(missing_ok=True)
    for place in order:
        if place in rows:
            append(path, rows[place])

"""A CSV that grows by a row at a time, each with the version, the commit and the time of its measurement."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Mapping
from datetime import datetime
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


def commit() -> str:
    """The short name of the checkout's commit."""
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

"""A CSV that grows by a row at a time."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path


def append(path: Path, row: Mapping[str, object]) -> None:
    """Add a row to the file, with a header if it is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(row))
        if fresh:
            writer.writeheader()
        writer.writerow(row)

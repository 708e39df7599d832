"""The cases of `interop/tileflow_cases` for the tests: their files as texts, and what TileFlow says of them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from einloom.interop.tileflow import Imported, read, read_statistics, read_texts

FOLDER = Path(__file__).parent / "interop" / "tileflow_cases"
_DATA = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
FILED = ("08-test-2mm", "attention-edge")
NAMES = (*_DATA["cases"], *FILED)


def texts(name: str) -> dict[str, str]:
    """File name -> text."""
    if name in FILED:
        return {p.name: p.read_text(encoding="utf-8") for p in sorted((FOLDER / name).glob("*.yaml"))}
    return {f"{file}.yaml": _DATA["texts"][file] for file in _DATA["cases"][name]["files"]}


@lru_cache(maxsize=128)
def case(name: str) -> Imported:
    return read([*sorted((FOLDER / name).glob("*.yaml"))]) if name in FILED else read_texts(texts(name))


def statistics(name: str) -> dict[str, float] | None:
    """What TileFlow says of the case, None where it aborts."""
    if name in FILED:
        return read_statistics(FOLDER / name / "out.csv")
    found: dict[str, float] | None = _DATA["cases"][name]["out"]
    return found

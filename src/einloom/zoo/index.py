"""What ships, as a list that is read before any of it is built: ``data/index.json``.

The list repeats what the files of machines and dataflows and the recipes of workloads say of themselves; that it says
the same is a test (tests/workload/test_zoo_index.py).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache
from pathlib import Path

from ..errors import SpecError, nearest
from .catalogue import Entry, Parameter

INDEX = Path(__file__).parent / "data" / "index.json"


def listed(kind: str) -> tuple[Entry, ...]:
    """The entries of a kind, workloads, machines or dataflows, in the order of the list.

    >>> listed("machines")[0].name
    'simple'
    """
    return _index()[kind]


def check_entry(name: str, what: str, known: Collection[str]) -> None:
    """Refuse a name that no entry of a kind, such as ``workload``, has; say so if one of another kind has it."""
    if name in known:
        return
    for kind in _index():
        if name in [entry.name for entry in listed(kind)]:
            raise SpecError(f"{name!r} is a {kind[:-1]}, not a {what}; a workload comes first, then a machine")
    message = f"unknown {what} {name[:100]!r}; known are {', '.join(known)}, or the path of a file"
    raise SpecError(message, suggestion=nearest(name, known))


@cache
def _index() -> dict[str, tuple[Entry, ...]]:
    kinds = json.loads(INDEX.read_text(encoding="utf-8"))
    return {
        kind: tuple(Entry(name, about, tuple(Parameter(*one) for one in given)) for name, about, given in rows)
        for kind, rows in kinds.items()
    }

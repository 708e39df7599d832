"""The files of machines as they are parsed: ``data/machines.json``, which takes no reader of YAML to read.

Each value stands there with its line and column, so that errors point into the YAML file. That the list says what the
files say is a test (tests/workload/test_zoo_index.py).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from ..reading.yamltree import Node

PARSED = Path(__file__).parent / "data" / "machines.json"


def parsed(machine: str) -> Node:
    """The file of a machine that ships, as `parse_yaml` reads it."""
    return _node(_machines()[machine])


@cache
def _machines() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads(PARSED.read_text(encoding="utf-8"))
    return found


def _node(row: list[Any]) -> Node:
    """[line, column, scalar], [line, column, "list", value, ...] or [line, column, "mapping", key, value, ...]."""
    line, column, what, *below = row
    nodes = tuple(map(_node, below))
    if not nodes:
        return Node("scalar", line, column, what)
    if what == "list":
        return Node("list", line, column, items=nodes)
    return Node("mapping", line, column, pairs=tuple(zip(nodes[::2], nodes[1::2], strict=True)))

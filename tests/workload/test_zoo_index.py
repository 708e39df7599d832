"""The list of what ships says what the files and recipes say of themselves, and is read without any of them."""

from __future__ import annotations

import json
from typing import Any

from einloom.dataflows.files import NAMES, dataflow
from einloom.reading.yamltree import Node, parse_yaml
from einloom.zoo import machine_entries, workload_entries
from einloom.zoo.catalogue import Entry
from einloom.zoo.index import INDEX, listed
from einloom.zoo.parsed import PARSED, parsed


def _built() -> dict[str, tuple[Entry, ...]]:
    """What the list should hold, from the things themselves."""
    flows = [dataflow(name) for name in NAMES]
    described = tuple(Entry(d.name, f"{d.title}, for {d.family.name}: {d.description}") for d in flows)
    made = {"workloads": workload_entries.entries(), "machines": machine_entries.entries()}
    return {**{kind: tuple(entries.values()) for kind, entries in made.items()}, "dataflows": described}


def _text(kinds: dict[str, tuple[Entry, ...]]) -> str:
    """The list as the file that ships, one entry a line."""
    parts = []
    for kind, entries in kinds.items():
        rows = [[e.name, e.description, [[p.name, p.default, p.meaning] for p in e.parameters]] for e in entries]
        parts.append(f'"{kind}": [\n' + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def test_the_list_is_what_ships() -> None:
    """Where it differs, the file should be what this shows."""
    built = _built()
    assert {kind: listed(kind) for kind in built} == built
    assert INDEX.read_text(encoding="utf-8") == _text(built)


def _row(node: Node) -> list[Any]:
    """A parsed value as `parsed.py` reads it."""
    if node.kind == "scalar":
        return [node.line, node.column, node.scalar]
    below = node.items or [part for pair in node.pairs for part in pair]
    assert below, "an empty list or mapping would read as a scalar"
    return [node.line, node.column, node.kind, *map(_row, below)]


def test_parsed_machines_are_their_files() -> None:
    """Where they differ, the file should be what this shows."""
    files = {name: (machine_entries.DATA / f"{name}.yaml").read_text() for name in machine_entries.NAMES}
    nodes = {name: parse_yaml(text, f"{name}.yaml") for name, text in files.items()}
    lines = (f"{json.dumps(name)}: {json.dumps(_row(node), ensure_ascii=False)}" for name, node in nodes.items())
    assert PARSED.read_text(encoding="utf-8") == "{" + ",\n".join(lines) + "}\n"
    assert {name: parsed(name) for name in nodes} == nodes

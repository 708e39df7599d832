"""Names in the tables of a result are those of its workload and machine, or the file is refused at their place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import einloom as el
from commands import run
from einloom.result import Result
from einloom.result.document import digest, text

FORGERIES = Path(__file__).parent / "forgeries"
Data = dict[str, Any]


@cache
def honest() -> str:
    return el.map("matmuls:n=2,m=4,kn=8", "simple:glb_bits=512,dram_energy=10").to_json()


@pytest.mark.parametrize("name", ["show-keyerror", "report-keyerror-a", "report-keyerror-b", "report-keyerror-c"])
def test_files_that_once_ended_in_a_key_error(name: str, tmp_path: Path) -> None:
    file = FORGERIES / f"{name}.json"
    for words in (("show", file), ("report", file, "-o", tmp_path / "x.html"), ("compare", file), ("verify", file)):
        code, said = run(*words)
        assert code == 2 and re.search(rf"{name}\.json:1:\d+: .*\(at breakdown\[\d+\]\.", said), said
    assert not list(tmp_path.iterdir())


def put(*path: str | int, value: Any) -> Callable[[Data], None]:
    def edit(data: Data) -> None:
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return edit


def row(which: str, /, **changes: Any) -> Callable[[Data], None]:
    """Change the first line of the breakdown with that action."""

    def edit(data: Data) -> None:
        next(line for line in data["breakdown"] if line["action"] == which).update(changes)

    return edit


def lines(change: Callable[[str], str]) -> Callable[[Data], None]:
    def edit(data: Data) -> None:
        data["mapping"] = change(data["mapping"])

    return edit


def branch_twice(mapping: str) -> str:
    """The mapping computes E0 twice."""
    return f"{mapping[: mapping.index('  - ')]}{_branch(mapping)}{mapping[mapping.index('  - ') :]}"


def _branch(mapping: str) -> str:
    first = mapping.index("  - ")
    return mapping[first : mapping.index("  - ", first + 1)]


EDITS: dict[str, tuple[Callable[[Data], None], str]] = {
    "breakdown einsum": (row("read", einsum="E9"), r"'E9' is not an Einsum .*breakdown\[\d+\]\.einsum"),
    "breakdown component": (row("read", component="GBL"), "'GBL' is not a component .*did you mean 'GLB'"),
    "breakdown tensor": (row("read", tensor="T9"), "'T9' is not a tensor that E0 accesses"),
    "breakdown tensor of another Einsum": (row("read", tensor="W1"), "'W1' is not a tensor that E0 accesses"),
    "breakdown without a tensor": (row("read", tensor=None), "'read' without a tensor"),
    "breakdown with a tensor": (row("compute", tensor="T0"), "'compute' is an action on no tensor"),
    "breakdown action": (row("read", action="fly"), "'fly' is none of"),
    "breakdown read of a unit": (row("read", component="MAC"), "'read' is what a memory does, and 'MAC' is none"),
    "breakdown compute in a memory": (row("compute", component="GLB"), "'compute' is what a compute unit does"),
    "breakdown toll": (row("read", action="down"), "'down' is what a toll does"),
    "busy einsum": (put("busy", 0, "einsum", value="MAC"), r"'MAC' is not an Einsum .*busy\[0\]\.einsum"),
    "busy component": (put("busy", 0, "component", value="E0"), "'E0' is not a component"),
    "latency einsum": (put("einsum_latency", 0, "einsum", value=""), "expected a name"),
    "latency another einsum": (put("einsum_latency", 0, "einsum", value="e0"), "did you mean 'E0'"),
    "occupancy memory": (put("occupancy", 0, "memory", value="MAC"), "'MAC' is not a memory"),
    "occupancy tensor": (put("occupancy", 0, "tensors", value=[{"tensor": "X", "bits": 8}]), "'X' is not a tensor"),
    "a negative count": (put("certificate", "counts", "evaluated", value=-5), "may not be negative"),
    "a mapping without an Einsum": (lines(lambda old: old.replace(_branch(old), "")), "does not compute E0"),
    "a mapping with one twice": (lines(branch_twice), "computes E0 more than once"),
}


@pytest.mark.parametrize("name", EDITS)
def test_every_table_is_checked(name: str, tmp_path: Path) -> None:
    edit, words = EDITS[name]
    data = json.loads(honest())
    edit(data)
    data["digest"] = digest(data)
    file = tmp_path / "r.json"
    file.write_text(text(data), encoding="utf-8")
    for verb in ("show", "report", "verify"):
        code, said = run(verb, file)
        assert code == 2 and re.search(words, said), said
        assert re.search(r"r\.json:\d+:\d+: ", said), said


def test_honest_results_are_read() -> None:
    """Tolls, links, leakage, copies and shares of an axis are names, too."""
    machine = (
        "schema: machine/1\nname: m\nlevels:\n"
        "  - {memory: DRAM, read_energy: 10, write_energy: 10, leakage: 1, must: ~intermediate}\n"
        "  - {toll: bus, energy: 2}\n"
        "  - {memory: GLB, size: 4 KiB, read_energy: 1, write_energy: 1}\n"
        "  - {compute: MAC, throughput: 1, energy: 1, leakage: 3}\n"
    )
    from einloom.machine.files import parse_machine

    found = el.map("residual-diamond:m=2,k=2,d=2,n=2", parse_machine(machine))
    assert {"down", "up", "leak"} <= {action.action for action in found.cost.actions}
    assert Result.from_json(found.to_json()).cost == found.cost

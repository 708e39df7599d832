"""JSON Schemas: everything that ships validates, planted mistakes do not, and readers ask for exactly these keys."""

from __future__ import annotations

import collections
import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from einloom import api as verbs
from einloom.cli import main
from einloom.errors import SpecError
from einloom.machine.files import machine_from_data, parse_machine
from einloom.machine.write import machine_data, machine_text
from einloom.mapspace.files import mapspace_from_data
from einloom.reading.keys import Each, Either, Record, Shape, Table
from einloom.reading.located import Located
from einloom.reading.yamltree import Node, parse_yaml
from einloom.result import Result
from einloom.schema import KINDS, json_schema
from einloom.workload.files import parse_workload, workload_data, workload_from_data, workload_text
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.machine_by_name import names as machines
from einloom.zoo.workload_by_name import load_workload
from einloom.zoo.workload_by_name import names as workloads

jsonschema = pytest.importorskip("jsonschema")  # an extra; CI has it
SAVED = sorted((Path(__file__).parents[1] / "report" / "results").glob("*.json"))
WORKLOAD: dict[str, Any] = {
    "schema": "workload/1",
    "name": "all keys",
    "description": "for tests",
    "source": "a table",
    "kind": "printed",
    "parameters": {"tokens": 8, "wide": "2 * tokens"},
    "ranks": {"m": "tokens", "k": 4, "n": {"value": "wide", "source": "measured", "kind": "derived"}, "r": 3},
    "bits": {"default": 16, "W": "1 B"},
    "einsums": [
        "T[m,n] = X[m,k] * W[k,n]",
        {"name": "S", "einsum": "Y[m] = T[m,n]", "reduction": "max"},
        {"name": "P", "einsum": "m,m->m", "inputs": ["Y", "V"], "output": "Q"},
        "C[m] = Q[m+r-1] * F[r]",
    ],
    "shapes": {"Q": [8]},
    "outputs": ["C"],
    "persistent": "W",
    "repeat": "2 * 16",
}
MACHINE: dict[str, Any] = {
    "schema": "machine/1",
    "name": "small",
    "parameters": {"lanes": 16, "room": "unlimited"},
    "levels": [
        {"memory": "DRAM", "size": "room", "read_energy": "7 pJ", "must": "~intermediate"},
        {"memory": "GLB", "size": {"value": "4 * KiB", "source": "x"}, "widths": {"output": 32}, "ports": "separate"},
        {"fanout": "PE", "axes": [{"axis": "rows", "size": "2 * lanes", "reduce": "nothing"}]},
        {"compute": "MAC", "throughput": "1.05 GHz", "energy": 1e-13, "operands": [2]},
    ],
}
SPACE: dict[str, Any] = {
    "schema": "mapspace/1",
    "name": "mine",
    "description": "for tests",
    "space": "ffm",
    "max_fused_loops": 2,
    "memories": {"GLB": [{"keep": "T1", "einsums": ["E0"]}, {"bypass": "W0", "may_keep": "all"}]},
    "fusion": {
        "fused": "T1",
        "unfused": "T2",
        "backed": {"GLB": "T1"},
        "within": [{"tensors": "T1", "memories": ["GLB"]}],
    },
    "loops": [{"tensors": "T1", "variables": ["m"], "trips": [1, 2], "einsums": "E0"}],
    "tiles": [{"memory": "GLB", "tensors": "T1", "variables": ["m"], "sizes": {"most": 2}, "einsums": ["E0"]}],
    "axes": [{"axis": "rows", "variables": ["m"], "instances": 2, "einsums": ["E0"]}],
}
MAPPING = """\
store DRAM: T0 W0 W1 T2
store GLB: T1
split sequential:
  - for m in 4
    for n0 in 8
    for n1 in 8
    compute E0 @ MAC
  - for m in 4
    for n1 in 8
    for n2 in 8
    compute E1 @ MAC
"""


def result_data() -> dict[str, Any]:
    """A result file's content with every optional part."""
    workload = load_workload("matmuls:n=2,m=4,kn=8")
    machine = machine_from_data(
        {**MACHINE, "levels": [*MACHINE["levels"][:1], {"memory": "GLB"}, *MACHINE["levels"][2:]]}
    )
    data: dict[str, Any] = json.loads(verbs.evaluate(workload, machine, MAPPING).to_json())
    limits = {key: SPACE[key] for key in ("memories", "fusion", "loops", "tiles", "axes")}
    data["mapspace"] = {"name": "ffm", "max_fused_loops": 2, "title": "mine", "limits": limits}
    value = data["energy"]
    proof = {"guarantee": "optimal", "value": value, "bound": value, "gap": 0.0, "mapspace": "x", "counts": {"a": 1}}
    data["certificate"] = proof
    data["certificate"]["alternatives"] = [{"label": "tiles=1", "bound": value, "value": None}]
    data["front"] = [{"energy": value, "latency": data["latency"], "mapping": data["mapping"]}]
    data["trace"] = [{"seconds": 0.1, "best": value, "bound": None}]
    return data


def plain(node: Node) -> Any:
    if node.kind == "mapping":
        return {str(key.scalar): plain(value) for key, value in node.pairs}
    return [plain(item) for item in node.items] if node.kind == "list" else node.scalar


def validator(kind: str) -> Any:
    schema = json_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(json.loads(json.dumps(schema)))


VALIDATORS = {kind: validator(kind) for kind in KINDS}


@pytest.mark.parametrize("name", [entry.name for entry in workloads()])
def test_every_workload_of_the_zoo(name: str) -> None:
    workload = load_workload(name)
    VALIDATORS["workload"].validate(workload_data(workload))
    VALIDATORS["workload"].validate(plain(parse_yaml(workload_text(workload), "w.yaml")))


@pytest.mark.parametrize("name", [entry.name for entry in machines()])
def test_every_machine_of_the_zoo(name: str) -> None:
    machine = load_machine(name)
    VALIDATORS["machine"].validate(machine_data(machine))
    VALIDATORS["machine"].validate(plain(parse_yaml(machine_text(machine), "m.yaml")))


def test_the_files_that_ship() -> None:
    import einloom.zoo

    files = sorted((Path(einloom.zoo.__file__).parent / "data").glob("*.yaml"))
    assert len(files) >= 6
    for file in files:
        VALIDATORS["machine"].validate(plain(parse_yaml(file.read_text(encoding="utf-8"), file.name)))


def test_saved_results() -> None:
    results = [file for file in SAVED if '"result/1"' in file.read_text(encoding="utf-8")]
    assert results
    for file in results:
        VALIDATORS["result"].validate(json.loads(file.read_text(encoding="utf-8")))


def test_files_with_every_key() -> None:
    for kind, data in (("workload", WORKLOAD), ("machine", MACHINE), ("mapspace", SPACE), ("result", result_data())):
        VALIDATORS[kind].validate(data)


def changed(data: dict[str, Any], path: tuple[Any, ...], value: object) -> dict[str, Any]:
    """The data with the value at `path` replaced; None as value deletes it."""
    new = copy.deepcopy(data)
    at: Any = new
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return new


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("workload", ("repaet",), 3),
        ("workload", ("schema",), "workload/9"),
        ("workload", ("bits",), None),
        ("workload", ("bits", "W"), "1 pJ"),
        ("workload", ("bits", "W"), 0),
        ("workload", ("ranks", "m"), [3]),
        ("workload", ("ranks", "m"), 0),
        ("workload", ("ranks", "n", "kind"), "guessed"),
        ("workload", ("einsums", 0), "T[m,n]"),
        ("workload", ("einsums", 1, "nmae"), "x"),
        ("workload", ("outputs",), {"C": 1}),
        ("workload", ("shapes", "Q"), 8),
        ("machine", ("levels", 1, "sise"), 3),
        ("machine", ("levels", 1, "ports"), "shred"),
        ("machine", ("levels", 1, "size"), "4 KB"),
        ("machine", ("levels", 1, "size"), "4 GB/s"),
        ("machine", ("levels", 1, "size"), 0),
        ("machine", ("levels", 0, "read_energy"), "-7 pJ"),
        ("machine", ("levels", 0, "must"), "a ? b"),
        ("machine", ("levels", 0, "double_buffer"), "yes"),
        ("machine", ("levels", 2, "axes"), []),
        ("machine", ("levels", 2, "axes", 0, "size"), None),
        ("machine", ("levels", 2, "axes", 0, "use"), "most"),
        ("machine", ("levels", 3, "compute"), "a b"),
        ("machine", ("levels", 3, "throughput"), "1 GB/s"),
        ("machine", ("levels", 3), {"unit": "MAC"}),
        ("machine", ("levels",), None),
        ("mapspace", ("fusion", "fusde"), "x"),
        ("mapspace", ("loops", 0, "trips"), {"at_most": 3}),
        ("mapspace", ("loops", 0, "variables"), None),
        ("mapspace", ("space",), "fmm"),
        ("result", ("energy",), "3 J"),
        ("result", ("certificate", "guarantee"), "sure"),
        ("result", ("breakdown", 0, "action"), "erase"),
        ("result", ("breakdown", 0, "count"), 1.5),
        ("result", ("digest",), None),
        ("result", ("extra",), 1),
    ],
)
def test_planted_mistakes(kind: str, path: tuple[Any, ...], value: object) -> None:
    """What the schema refuses is what the reader refuses too."""
    data = changed(
        {"workload": WORKLOAD, "machine": MACHINE, "mapspace": SPACE, "result": result_data()}[kind], path, value
    )
    assert list(VALIDATORS[kind].iter_errors(data)), "the schema"
    with pytest.raises(SpecError):
        read(kind, data)


SMALL = machine_from_data(MACHINE)


def read(kind: str, data: dict[str, Any]) -> object:
    readers = {
        "workload": workload_from_data,
        "machine": machine_from_data,
        "mapspace": lambda space: mapspace_from_data(space, SMALL),
        "result": lambda result: Result.from_json(json.dumps(result)),
    }
    return readers[kind](data)


def asked_keys(monkeypatch: pytest.MonkeyPatch, kind: str, data: dict[str, Any]) -> dict[str, set[str]]:
    """The keys that the reader asks for, by the place of the mapping that holds them."""
    found: dict[str, set[str]] = collections.defaultdict(set)
    get = Located.get

    def heard(view: Located, key: str) -> Located | None:
        path = re.sub(r"\[\d+\]", "[]", view.path)
        found[re.sub(r"\.(GLB)\b", ".*", path)].add(key)
        return get(view, key)

    monkeypatch.setattr(Located, "get", heard)
    read(kind, data)
    return found


def named_keys(shape: Shape, path: str, found: dict[str, set[str]]) -> None:
    """The keys of every record of a table, by the place where it stands."""
    if isinstance(shape, Record):
        found[path] |= set(shape.names)
        for key in shape.keys:
            named_keys(key.shape, f"{path}.{key.name}" if path else key.name, found)
    elif isinstance(shape, Each):
        named_keys(shape.item, f"{path}[]", found)
    elif isinstance(shape, Table):
        named_keys(shape.value, f"{path}.*", found)
    elif isinstance(shape, Either):
        for inner in shape.shapes:
            named_keys(inner, path, found)


@pytest.mark.parametrize("kind", ["mapspace", "result"])
def test_readers_by_hand_ask_for_the_keys_of_the_table(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = SPACE if kind == "mapspace" else result_data()
    asked = asked_keys(monkeypatch, kind, data)
    named: dict[str, set[str]] = collections.defaultdict(set)
    named_keys(KINDS[kind][0], "", named)
    compared = 0
    for path, keys in asked.items():
        if path.startswith(("workload", "machine.")) or path == "machine":
            continue  # these are read by their tables
        assert keys == named[path], path
        compared += 1
    assert compared >= 8
    unread = {path for path in named if path not in asked and not path.startswith(("workload", "machine"))}
    assert unread <= {"memories.*", "loops[].trips", "axes[].instances"} | {
        f"mapspace.limits.{path}" for path in ("memories.*", "loops[].trips", "axes[].instances")
    }, "shapes that this example writes in their other form"


def test_tables_are_read_as_they_stand() -> None:
    """Workload and machine files have no reader beside the tables; all keys together are read."""
    assert parse_workload(json.dumps(WORKLOAD)).repeat == 32
    assert parse_machine(json.dumps(MACHINE)).axes["rows"].size == 32


def test_the_verb() -> None:
    for kind in KINDS:
        done = CliRunner().invoke(main, ["schema", kind])
        assert done.exit_code == 0
        assert json.loads(done.output) == json_schema(kind)
    done = CliRunner().invoke(main, ["schema", "workloda"])
    assert done.exit_code == 2
    assert "did you mean 'workload'" in done.output

"""JSON Schemas: everything that ships validates, planted mistakes do not, and readers ask for exactly these keys."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from einloom import api as verbs
from einloom.cli import main
from einloom.dataflows.files import NAMES, dataflow_data, parse_dataflow
from einloom.errors import SpecError
from einloom.machine.files import machine_from_data, parse_machine
from einloom.machine.write import machine_data, machine_text
from einloom.mapspace.files import mapspace_from_data
from einloom.reading.yamltree import Node, parse_yaml
from einloom.result import Result
from einloom.schema import KINDS, json_schema
from einloom.workload.files import parse_workload, workload_data, workload_from_data, workload_text
from einloom.zoo import machines, workloads
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

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
DATAFLOW: dict[str, Any] = {
    "schema": "dataflow/1",
    "name": "mine",
    "title": "Mine",
    "family": "online-attention",
    "source": "a table",
    "kind": "assumed",
    "description": "for tests",
    "fusion": [{"tensors": "intermediate", "at": "buffers"}],
    "loops": [{"tensors": "intermediate", "over": ["b", "h"]}],
    "memories": [{"at": "on_chip", "keep": "all", "einsums": "QK"}],
    "tiles": [{"at": "buffers", "variables": "k", "sizes": "whole"}, {"at": "first", "variables": ["k"], "sizes": [2]}],
    "axes": [{"at": "outer", "over": ["b"]}, {"axis": "rows", "variables": "k", "instances": {"most": 4}}],
    "binding": {"kind": "sequential"},
    "rewrite": {"online_softmax": {"tiles": "divisors"}},
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


def files() -> dict[str, dict[str, Any]]:
    """A file of each kind with every optional part."""
    plain = {"workload": WORKLOAD, "machine": MACHINE, "mapspace": SPACE, "dataflow": DATAFLOW}
    return {**plain, "result": result_data()}


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


def test_saved_answers() -> None:
    kinds = [json.loads(file.read_text(encoding="utf-8"))["schema"].partition("/")[0] for file in SAVED]
    assert {"result", "unmapped"} <= set(kinds)
    for kind, file in zip(kinds, SAVED, strict=True):
        if kind in VALIDATORS:
            VALIDATORS[kind].validate(json.loads(file.read_text(encoding="utf-8")))


def test_dataflows_that_ship() -> None:
    for name in NAMES:
        VALIDATORS["dataflow"].validate(dataflow_data(name))


def test_files_with_every_key() -> None:
    for kind, data in (
        ("workload", WORKLOAD),
        ("machine", MACHINE),
        ("mapspace", SPACE),
        ("dataflow", DATAFLOW),
        ("result", result_data()),
    ):
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
        ("dataflow", ("fusion", 0, "at"), "everywhere"),
        ("dataflow", ("tiles", 0, "sizes"), {"at_most": 2}),
        ("dataflow", ("axes", 0, "ovre"), "b"),
        ("dataflow", ("binding", "kind"), None),
        ("dataflow", ("rewrite", "online_softmax", "tiles"), 0),
        ("dataflow", ("source",), None),
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
    data = changed(files()[kind], path, value)
    assert list(VALIDATORS[kind].iter_errors(data)), "the schema"
    with pytest.raises(SpecError):
        read(kind, data)


SMALL = machine_from_data(MACHINE)


def read(kind: str, data: dict[str, Any]) -> object:
    readers = {
        "workload": workload_from_data,
        "machine": machine_from_data,
        "mapspace": lambda space: mapspace_from_data(space, SMALL),
        "dataflow": lambda flow: parse_dataflow(json.dumps(flow)),
        "result": lambda result: Result.from_json(json.dumps(result)),
    }
    return readers[kind](data)


def test_tables_are_read_as_they_stand() -> None:
    """All keys of a file together are read, and no reader asks for one that its table does not have."""
    for kind, data in (("mapspace", SPACE), ("result", result_data()), ("dataflow", DATAFLOW)):
        assert read(kind, data)
        with pytest.raises(SpecError, match="unknown key 'nmae'"):
            read(kind, {**data, "nmae": 1})
    assert parse_workload(json.dumps(WORKLOAD)).repeat == 32
    assert parse_machine(json.dumps(MACHINE)).axes["rows"].size == 32


def test_a_schema_says_what_an_absent_key_means() -> None:
    axis = json_schema("machine")["$defs"]["an-axis"]["properties"]  # type: ignore[index]
    assert {name: axis[name].get("default") for name in ("multicast", "reduce", "use", "size")} == {
        "multicast": "all",
        "reduce": "all",
        "use": "any",
        "size": None,
    }


def test_the_verb() -> None:
    for kind in KINDS:
        done = CliRunner().invoke(main, ["schema", kind])
        assert done.exit_code == 0
        assert json.loads(done.output) == json_schema(kind)
    done = CliRunner().invoke(main, ["schema", "workloda"])
    assert done.exit_code == 2
    assert "did you mean 'workload'" in done.output

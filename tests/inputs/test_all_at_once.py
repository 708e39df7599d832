"""A file with several mistakes names all of them, each with its line, and a result file has lines too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from einloom.errors import SpecError, SpecErrors
from einloom.machine.files import parse_machine
from einloom.mapping.text import parse_mapping
from einloom.mapspace.files import read_mapspace
from einloom.reading.jsonplaces import JsonPlaces, refuse_oddities
from einloom.reading.located import from_data
from einloom.workload.files import parse_workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

MACHINE = """\
schema: machine/1
nmae: small
kind: guessed
levels:
  - {memory: DRAM, read_enregy: 7 pJ, write_energy: 3 bit}
  - {memory: 3D, size: 2 KB, widths: {"input &": 3, output: 0}}
  - {fanout: PE, axes: [{axis: X}, {axis: Y, size: 0, use: most}]}
  - {computer: MAC}
  - {compute: MAC, kinds: [multiply, div]}
"""
WORKLOAD = """\
schema: workload/1
name: two
parameters: {s: 3, tokens: 2 x}
ranks: {m: tokns, k: -4, n: 4 * 64}
bits: {default: 1.5, W: 8}
repaet: 2
einsums:
  - T[m,n] = X[m,k * W[k,n]
  - {nmae: S, einsum: "Y[m] = T[m,n]"}
outputs: 3.5
"""
UNFIT = """\
schema: workload/1
name: two
ranks: {m: 4, kk: 4, n: 4}
bits: {default: 8, U: 8}
einsums:
  - T[m,n] = X[m,k] * W[k,n]
  - Y[m] = T[m,n]
outputs: [X]
persistent: [V]
"""


def mistakes(text: str, reader: object) -> list[tuple[int | None, str]]:
    assert callable(reader)
    with pytest.raises(SpecErrors) as caught:
        reader(text, "f.yaml")
    assert all(error.file == "f.yaml" for error in caught.value.problems)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.problems) == len(set(lines))
    return [(error.line, error.suggestion or "") for error in caught.value.problems]


def test_machines() -> None:
    found = mistakes(MACHINE, parse_machine)
    assert [line for line, _ in found] == [1, 2, 3, 5, 5, 6, 6, 6, 6, 7, 7, 7, 8, 9]
    assert {"name", "read_energy", "KiB", "compute"} <= {suggestion for _, suggestion in found}


def test_workloads() -> None:
    found = mistakes(WORKLOAD, parse_workload)
    assert [line for line, _ in found] == [3, 3, 4, 4, 5, 6, 8, 9, 10]


MAPSPACE = """\
schema: mapspace/1
memories: {GLB: {keep: AA | weigth, einsums: [Q]}}
fusion: {fused: C}
loops: [{tensors: A, variables: [m], tripps: 4}]
tiles: [{memory: GLB, tensors: A, variables: [q, m], sizes: 2}]
axes: [{axis: row, variables: [m], instances: 4}]
"""


def test_mapspaces_and_what_they_do_not_share_with_the_workload(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(MAPSPACE)
    with pytest.raises(SpecErrors) as caught:
        read_mapspace(path, load_machine("nvdla"), load_workload("matmul"))
    found = [(error.line, error.suggestion) for error in caught.value.problems]
    assert found[:4] == [(2, None), (2, "A"), (2, "weight"), (3, None)]
    assert [line for line, _ in found[4:]] == [4, 4, 5, 6] and (4, "trips") in found


def test_what_does_not_fit_together() -> None:
    assert mistakes(UNFIT, parse_workload) == [(3, "k"), (4, ""), (6, ""), (8, ""), (8, ""), (9, "")]


def test_an_unreadable_parameter_is_blamed_once() -> None:
    text = "schema: machine/1\nname: x\nparameters: {a: 2 x}\nlevels: [{memory: M, size: a}, {compute: C}]\n"
    with pytest.raises(SpecError, match="'2 x'") as caught:
        parse_machine(text, "f.yaml")
    assert not isinstance(caught.value, SpecErrors) and caught.value.line == 3


def test_mappings() -> None:
    workload, machine = load_workload("matmul:m=4,n=4,k=4"), load_machine("simple")
    text = "stroe DRAM: A B Z\nstore DRM: A\nfor m im 4\nfor q in 4\nfor n in 4\ncompute Z @ MAC\n"
    found = mistakes(text, lambda t, f: parse_mapping(t, workload, machine, f))
    assert found == [(1, "store"), (2, "DRAM"), (3, ""), (4, "")]
    leafless = text.replace("compute Z @ MAC", "compute Y @ MAC")  # what loops bind cannot be told without the leaf
    assert [line for line, _ in mistakes(leafless, lambda t, f: parse_mapping(t, workload, machine, f))] == [1, 2, 6]


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
).filter(lambda data: "Infinity" not in json.dumps(data))


@given(DATA, st.sampled_from((None, 1)))
def test_places_in_json(data: object, indent: int | None) -> None:
    text = json.dumps(data, indent=indent)
    refuse_oddities(text, "f.json")
    places = JsonPlaces(text)

    def rest(place: tuple[int, int]) -> str:
        line, column = place
        return "\n".join(text.split("\n")[line - 1 :])[column - 1 :]

    def check(value: object, trail: tuple[int, ...]) -> None:
        assert json.JSONDecoder().raw_decode(rest(places.value(trail)))[0] == value
        if isinstance(value, dict):
            for i, (key, inner) in enumerate(value.items()):
                assert json.JSONDecoder().raw_decode(rest(places.key((*trail, i))))[0] == key
                check(inner, (*trail, i))
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                check(inner, (*trail, i))

    check(data, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b": {"a": 2, "c": 3},\n "a": 4}', "f:3:2: key 'a' stands twice in one object, first in line 1"),
        ('{"a": "NaN \\" NaN",\n "b": NaN}', "f:2:7: NaN is not a number"),
        ("[1,\n -Infinity]", "f:2:2: -Infinity is not a number"),
    ],
)
def test_what_python_reads_and_einloom_does_not(text: str, message: str) -> None:
    json.loads(text)
    with pytest.raises(SpecError) as caught:
        refuse_oddities(text, "f")
    assert str(caught.value) == message


def test_plain_data_with_its_text_has_lines() -> None:
    text = '{"a": {"b": [1,\n  "x y"]},\n "c": {"d": 3}}'
    view = from_data(json.loads(text), "f.json", text=text)
    assert str(view.require("a").require("b").items()[1].error("bad")) == "f.json:2:3: bad (at a.b[1])"
    with pytest.raises(SpecError, match=r"f\.json:3:8: unknown key 'd'; known here are none"):
        view.require("c").finish()

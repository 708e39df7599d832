"""Selectors that select nothing: found wherever one stands, warned of once with a place, kept as notes of results."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main
from einloom.errors import EinloomWarning, Infeasible, SpecErrors
from einloom.machine.files import parse_machine
from einloom.mapspace.files import parse_mapspace
from einloom.mapspace.limits.data import UNLIMITED, HoldLimit, Limits
from einloom.mapspace.space import Mapspace
from einloom.problem.selections import machine_selectors, unused_selectors
from einloom.questions import check_names, problems
from einloom.result import Result
from einloom.result.unmapped import Unmapped, read_answer
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from einloom.zoo import machines, workloads
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

PRODUCT = build_workload(
    "product", ["T[m,n] = X[m,k] * W[k,n]", "Y[m,n] = relu(T[m,n])"], dict.fromkeys("mnk", 4), bits=8
)
MACHINE = """\
schema: machine/1
name: odd
levels:
  - {memory: DRAM, must: ~intermediate, may: all, backs: all, widths: {output: 8}}
  - {toll: bus, down: all, up: all, widths: {output: 8}}
  - {memory: SRAM, must: unheld, read_energy: 1}
  - fanout: array
    axes: [{axis: rows, size: 2, multicast: input, reduce: nothing, only_irrelevant_to: nothing}]
  - {compute: MAC, stationary: weight}
"""


@pytest.mark.parametrize(
    ("old", "key"),
    [
        ("must: ~intermediate", "DRAM.must"),
        ("may: all", "DRAM.may"),
        ("backs: all", "DRAM.backs"),
        ("widths: {output: 8}}\n  - {toll", "DRAM.widths"),
        ("down: all", "bus.down"),
        ("up: all", "bus.up"),
        ("widths: {output: 8}}\n  - {memory", "bus.widths"),
        ("must: unheld", "SRAM.must"),
        ("multicast: input", "array.rows.multicast"),
        ("reduce: nothing", "array.rows.reduce"),
        ("only_irrelevant_to: nothing", "array.rows.only_irrelevant_to"),
        ("stationary: weight", "MAC.stationary"),
    ],
)
def test_every_selector_of_a_machine_is_looked_at(old: str, key: str) -> None:
    assert unused_selectors(PRODUCT, parse_machine(MACHINE), UNLIMITED) == ()
    word, colon, rest = old.partition(": ")
    new = rest.replace("output:", "persistent & T:") if "{output" in old else "persistent & T"
    (found,) = unused_selectors(PRODUCT, parse_machine(MACHINE.replace(old, word + colon + new)), UNLIMITED)
    assert found.key == key
    assert found.message == f"machine odd, {key}: 'persistent & T' selects no tensor of product"
    assert key in [name for name, _ in machine_selectors(parse_machine(MACHINE))]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("memories: {GLB: {keep: persistent}}", "'persistent' selects no tensor of product"),
        ("memories: {GLB: {bypass: W, einsums: [Y]}}", "'W' selects no tensor of Y of product"),
        ("fusion: {fused: X | W}", "'X | W' selects no intermediate of product"),
        ("loops: [{tensors: Y, variables: [m], trips: 1}]", "'Y' selects no intermediate of product"),
        ("tiles: [{memory: GLB, tensors: copy, variables: [m], sizes: 1}]", "'copy' selects no tensor of product"),
    ],
)
def test_every_limit_is_looked_at(line: str, message: str) -> None:
    machine = load_machine("simple")
    limits = parse_mapspace(f"schema: mapspace/1\n{line}\n", machine).limits
    (found,) = unused_selectors(PRODUCT, machine, limits)
    assert found.limit == limits.all[0] and found.message == f"limit '{limits.all[0]}': {message}"


def test_words_are_suggested_as_tensors_are() -> None:
    machine = parse_machine(MACHINE.replace("must: unheld", "must: weigth").replace("input,", "Xs,"))
    with pytest.raises(SpecErrors) as caught:
        check_names(PRODUCT, machine)
    assert [one.suggestion for one in caught.value.problems] == ["weight", "X"]


@pytest.mark.parametrize(
    ("row", "space", "message"),
    [
        ("tensors: X, variables: [m, n], sizes: 2", "ffm", "'n' indexes none of the tensors 'X' of product"),
        (
            "variables: [m], sizes: 8",
            "ragged",
            "m is 4, and no such size is a number up to it, so GLB cannot hold T, X, Y",
        ),
        (
            "tensors: X, variables: [m], sizes: 3",
            "ffm",
            "m is 4, and no such size is a divisor of it, so GLB cannot hold X",
        ),
        ("tensors: X, variables: [m], sizes: 3", "ragged", None),
        ("tensors: X, variables: [m], sizes: [3, 4]", "ffm", None),
        ("variables: [k], sizes: 2", "ffm", None),
    ],
)
def test_a_limit_of_tiles_that_no_tile_has_is_said(row: str, space: str, message: str | None) -> None:
    machine = load_machine("simple")
    limits = parse_mapspace(f"schema: mapspace/1\ntiles: [{{memory: GLB, {row}}}]\n", machine).limits
    found = [one.message for one in unused_selectors(PRODUCT, machine, limits, space)]
    assert found == ([] if message is None else [f"limit '{limits.all[0]}': {message}"])


def test_what_selects_something_is_no_matter() -> None:
    """``nothing`` alone is meant, and `unheld` or its complement select what they can in some mapping."""
    machine = load_machine("simple")
    for text in ("nothing", "unheld", "~unheld", "W", "weight", "~weight", "intermediate & input"):
        assert not unused_selectors(PRODUCT, machine, Limits(holds=(HoldLimit("may_keep", "GLB", selector(text)),)))
    for text in ("nothing | copy", "~all", "weight & output"):
        assert unused_selectors(PRODUCT, machine, Limits(holds=(HoldLimit("may_keep", "GLB", selector(text)),)))


def test_machines_of_the_zoo_select_something_of_its_workloads() -> None:
    for entry in workloads():
        workload = load_workload(entry.name)
        for machine in machines():
            assert not unused_selectors(workload, load_machine(machine.name), UNLIMITED), (entry.name, machine.name)


SPACE = Mapspace(
    limits=Limits(holds=(HoldLimit("may_keep", "GLB", selector("~copy")), HoldLimit("bypass", "GLB", selector("copy"))))
)


def test_python_warns_where_the_verb_is_called() -> None:
    with pytest.warns(EinloomWarning, match="'copy' selects no tensor") as caught:
        found = el.map(PRODUCT, "simple", mapspace=SPACE)
    assert len(caught) == 1 and caught[0].filename == __file__
    note = "limit 'GLB is bypassed by copy': 'copy' selects no tensor of product"
    assert found.notes == (note,) and str(caught[0].message) == note
    data = json.loads(found.to_json())
    assert data["notes"] == [note]
    again = Result.from_json(found.to_json())
    assert again.notes == (note,) and again.found_digest == again.recorded_digest
    data["notes"] = ["all is well"]
    assert Result.from_json(json.dumps(data)).notes == (note,), "notes follow from the problem"
    data["notes"] = [{}]
    with pytest.raises(el.SpecError, match="notes"):
        Result.from_json(json.dumps(data))
    assert "notes" not in json.loads(el.map(PRODUCT, "simple").to_json())


def test_one_warning_for_all_choices_of_a_rewrite() -> None:
    scores = load_workload("tileflow-vit-14-b")
    machine = parse_machine(MACHINE.replace("stationary: weight", "stationary: copy & input & persistent"))
    with pytest.warns(EinloomWarning, match=r"MAC\.stationary") as caught:
        assert len(problems(scores, machine, dataflow="flash-attention")) > 3
    assert len(caught) == 1


@pytest.mark.parametrize("kind", [str, Path])
def test_such_a_warning_has_its_place_in_the_machine_file(kind: type[str] | type[Path], tmp_path: Path) -> None:
    path = tmp_path / "machine.yaml"
    path.write_text(MACHINE.replace("stationary: weight", "stationary: copy & input & persistent"), "utf-8")
    with pytest.warns(EinloomWarning, match=r"machine\.yaml:\d+:\d+: .*MAC\.stationary"):
        problems("tileflow-vit-14-b", kind(path), dataflow="flash-attention")


def test_the_command_line_warns_once_with_a_place(tmp_path: Path) -> None:
    machine, space = tmp_path / "machine.yaml", tmp_path / "space.yaml"
    machine.write_text(MACHINE.replace("stationary: weight", "stationary: persistent"), "utf-8")
    space.write_text("schema: mapspace/1\nmemories:\n  SRAM: [{keep: T1}, {bypass: persistent}]\n", "utf-8")
    call = ["map", "matmuls:n=2,m=4,kn=4", str(machine), "--mapspace", str(space), "--json", "-"]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0
    first, second = done.stderr.splitlines()
    selects = "'persistent' selects no tensor of matmuls"
    assert (
        first == f"einloom: warning: {machine}:9:32: machine odd, MAC.stationary: {selects} (at levels[4].stationary)"
    )
    limit = "limit 'SRAM is bypassed by persistent'"
    assert second == f"einloom: warning: {space}:3:31: {limit}: {selects} (at memories.SRAM[1].bypass)"
    assert len(json.loads(done.stdout)["notes"]) == 2
    saved = tmp_path / "r.json"
    saved.write_text(done.stdout, encoding="utf-8")
    shown = CliRunner().invoke(main, ["show", str(saved)])
    assert "  note        machine odd, MAC.stationary" in shown.stdout and shown.stderr == ""


def test_a_search_that_finds_nothing_has_notes_too(tmp_path: Path) -> None:
    saved = tmp_path / "none.json"
    space = tmp_path / "space.yaml"
    space.write_text("schema: mapspace/1\nmemories: {GLB: [{keep: copy}, {keep: A}]}\n", "utf-8")
    call = ["map", "matmul:m=4,n=4,k=4", "simple:glb_bits=1", "--mapspace", str(space), "--json", str(saved)]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 1 and "warning" in done.stderr
    found = read_answer(saved)
    assert isinstance(found, Unmapped) and found.notes == (
        "limit 'GLB keeps copy': 'copy' selects no tensor of matmul",
    )
    with pytest.warns(EinloomWarning), pytest.raises(Infeasible):
        el.map("matmul:m=4,n=4,k=4", "simple:glb_bits=1", mapspace=str(space))


def test_other_warnings_on_the_command_line_are_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def noisy(*_: object, **__: object) -> None:
        warnings.warn("something else", DeprecationWarning, stacklevel=1)

    monkeypatch.setattr("einloom.zoo.load", noisy)
    done = CliRunner().invoke(main, ["zoo", "matmul"])
    assert isinstance(done.exception, DeprecationWarning), "the tests make an error of it"

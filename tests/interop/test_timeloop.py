"""Timeloop's files: counts that it printed, machines and workloads, what is refused and where, damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import einloom as el
import timeloop_files as files
from einloom.cli import main
from einloom.cost.evaluate import evaluate, legality
from einloom.errors import SpecError
from einloom.interop.timeloop import counts, export, read_texts
from einloom.interop.timeloop.importer import TimeloopImporter
from einloom.machine.levels import Axis, Fanout, Memory
from einloom.mapping.text import parse_mapping
from einloom.testing.importers import importer_faults
from einloom.workload.build import build_workload
from einloom.workload.notation import einsum_text
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload


def texts(name: str) -> dict[str, str]:
    return dict(zip(("arch.yaml", "problem.yaml", "map.yaml"), files.CASES[name], strict=True))


@pytest.mark.parametrize(
    ("machine", "said"), [("tpu-v4i", "Scalar is left out"), ("tpu-v4i-vector", "Scalar, Reduce are left out")]
)
def test_units_that_are_left_out_are_named(machine: str, said: str) -> None:
    notes = export(load_workload("matmul"), load_machine(machine), None, 0.0).notes
    assert f"Timeloop has one kind of compute unit; {said}" in notes


@pytest.mark.parametrize("name", files.CASES)
def test_counts_are_those_that_timeloop_printed(name: str) -> None:
    found = read_texts(texts(name), {"energy": "none"})
    workload, machine, mapping = found.workload, found.machine, found.mapping
    assert workload is not None and machine is not None and mapping is not None
    assert legality(workload, machine, mapping) == ()
    table = counts(workload, machine, mapping)
    pairs = dict.fromkeys((memory, tensor) for memory, tensor, _ in table)
    printed = {
        f"{memory} {tensor}": tuple(table.get((memory, tensor, what), 0) for what in ("reads", "fills", "updates"))
        for memory, tensor in pairs
    }
    assert printed == files.PRINTED[name]


def test_reads_differ_by_what_is_written_up() -> None:
    found = read_texts(texts("three levels"), {"energy": "none"})
    workload, machine, mapping = found.workload, found.machine, found.mapping
    assert workload is not None and machine is not None and mapping is not None
    cost = evaluate(workload, machine, mapping)
    reads = {(a.component, a.tensor): a.count for a in cost.actions if a.action == "read"}
    assert reads["RegisterFile", "Outputs"] == 1024 + 512 and reads["GlobalBuffer", "Outputs"] == 512


def test_an_architecture_is_a_machine() -> None:
    found = read_texts({"arch.yaml": files.SPREAD, "ERT.yaml": files.ENERGIES}).machine
    assert found is not None
    assert found.levels[1] == Fanout("PE", (Axis("PE_X", 16),))
    assert found.memory("GlobalBuffer") == Memory(
        "GlobalBuffer",
        size=32768 * 64,
        read_energy=40e-12,
        write_energy=30e-12,
        bits_per_access=64,
        ports="separate",
        widths=((selector("all"), 8),),
        leakage=0.0005,
    )
    assert found.unit("MACC").energy == 0.8e-12 and found.unit("MACC").throughput == 1e9
    assert found.memory("MainMemory").size is None


def test_a_problem_is_an_einsum_with_coefficients() -> None:
    workload = read_texts({"problem.yaml": files.CONV2D}, {"bits": "16"}).workload
    assert workload is not None
    text = "Outputs[n,m,q,p] = Inputs[n,c,r+2*p,s+2*q] * Weights[c,m,r,s]"
    assert einsum_text(workload.einsums[0]) == text
    assert workload.tensor("Inputs").shape == (1, 3, 225, 225) and workload.tensor("Inputs").bits == 16


def limited(*lines: str) -> str:
    """The architecture of the weight registers, with constraints on its mesh."""
    spread = f"    constraints: {{spatial: {{{', '.join(lines)}}}}}\n"
    return files.STATIONARY.replace("meshY: 16}\n", "meshY: 16}\n" + spread)


def test_constraints_on_a_mesh_limit_the_mapspace(folder: Path) -> None:
    text = limited("permutation: [C, M]", "split: 1", "factors: [R=1, S=1, P=1, Q=1, M<=8]")
    found = read_texts({"a.yaml": text, "p.yaml": files.CONV2D}, {"energy": "none"})
    assert found.mapspace is not None
    assert [str(limit) for limit in found.mapspace.limits.axes] == [
        "axis PE_X: m, r, s, n, p, q: 1 instances",
        "axis PE_Y: c, r, s, p, q: 1 instances",
        "axis PE_Y: m: at most 8 instances",
    ]
    (folder / "limited.yaml").write_text(text)
    (folder / "conv.yaml").write_text(files.CONV2D)
    ran = CliRunner().invoke(
        main, ["import", "timeloop", "limited.yaml", "conv.yaml", "--set", "energy=none", "-o", "o"]
    )
    assert ran.exit_code == 0 and "mapspace.yaml" in ran.output, ran.output


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["factors: [R>=2]"], "cannot read 'R>=2'"),
        (["factors: [X=1]"], "unknown dimension 'X'"),
        (["permutation: [C, X]"], "unknown dimension 'X'"),
        (["splt: 1"], "unknown key 'splt'"),
    ],
)
def test_a_wrong_constraint(lines: list[str], says: str) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        read_texts({"a.yaml": limited(*lines), "p.yaml": files.CONV2D}, {"energy": "none"})
    assert caught.value.file == "a.yaml" and caught.value.line is not None


@pytest.mark.parametrize("name", files.CASES)
def test_what_is_written_says_the_same(name: str) -> None:
    given = read_texts(texts(name), {"energy": "none"})
    assert given.workload is not None and given.machine is not None and given.mapping is not None
    made = export(given.workload, given.machine, given.mapping)
    again = read_texts(made.files)
    assert (again.workload, again.mapping, made.notes) == (given.workload, given.mapping, ())
    assert again.machine is not None and again.workload is not None and again.mapping is not None
    assert evaluate(again.workload, again.machine, again.mapping) == evaluate(
        given.workload, given.machine, given.mapping
    )
    assert export(again.workload, again.machine, again.mapping).files == made.files


@pytest.mark.parametrize("machine", ["simple", "nvdla", "ffm-edge"])
def test_an_optimum_keeps_its_price(machine: str) -> None:
    workload, where = load_workload("matmul:m=16,k=16,n=16"), load_machine(machine)
    best = el.map(workload, where)
    again = read_texts(export(workload, where, best.mapping).files)
    assert again.workload is not None and again.machine is not None and again.mapping is not None
    cost = evaluate(again.workload, again.machine, again.mapping)
    assert (cost.energy, cost.latency) == (pytest.approx(best.energy), pytest.approx(best.latency))


@pytest.mark.parametrize(
    ("einsums", "says"),
    [
        (["Z[m] = exp(A[m])"], "multiplies and sums; Z does something else"),
        (["Z[m] = A[m] * B[m]", "Y[m] = Z[m] * C[m]"], "one Einsum, run once; w has 2"),
        (["Z[m] = A[m+1] * B[m]"], "no word for the constants"),
    ],
)
def test_what_cannot_be_written(einsums: list[str], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        export(build_workload("w", einsums, {"m": 4}, bits=8, shapes={"A": [5]}), load_machine("simple"))


def test_a_mapping_without_a_place_is_refused() -> None:
    workload, where = load_workload("matmul:m=4,k=4,n=4"), load_machine("simple")
    text = "store DRAM: A B Z\nfor m in 4\nstore GLB: A\nfor n in 4\nstore GLB: B Z\nfor k in 4\ncompute Z @ MAC\n"
    with pytest.raises(SpecError, match="no place for this mapping"):
        export(workload, where, parse_mapping(text, workload, where))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for file, text in (*texts("three levels").items(), ("ERT.yaml", files.ENERGIES)):
        (tmp_path / file).write_text(text)
    return tmp_path


def test_two_files_are_a_problem(folder: Path) -> None:
    ran = CliRunner().invoke(main, ["map", "problem.yaml", "arch.yaml:ert=ERT.yaml"])
    assert ran.exit_code == 0 and "optimal" in ran.output, ran.output
    best = el.map("problem.yaml", "arch.yaml:ert=ERT.yaml")
    given = ["import", "timeloop", "arch.yaml", "problem.yaml", "map.yaml", "ERT.yaml", "-o", "out", "--counts"]
    ran = CliRunner().invoke(main, given)
    assert ran.exit_code == 0 and "GlobalBuffer Inputs" in ran.output, ran.output
    theirs = el.evaluate("out/workload.yaml", "out/machine.yaml", "out/mapping.txt")
    assert best.energy <= theirs.energy


def test_without_energies_the_file_to_write_is_said(folder: Path) -> None:
    ran = CliRunner().invoke(main, ["map", "problem.yaml", "arch.yaml"])
    assert ran.exit_code == 2 and "- {name: MACC, actions: [{name: compute, energy: FILL}]}" in ran.output
    start = ran.output.index("ERT:\n")
    (folder / "mine.yaml").write_text(ran.output[start:].split(" (at")[0].replace("FILL", "3"))
    assert el.map("problem.yaml", "arch.yaml:ert=mine.yaml").energy > 0
    assert el.map("problem.yaml", "arch.yaml:energy=none", objective="latency").energy == 0


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("- !Component", "- !Componet", "Componet", "unknown kind of node 'Componet'.*did you mean 'Component'"),
        ("!Component\n", "!!python/object:os.system\n", "python", "tag .* is not accepted"),
        ("name: Buffer", "name: Buffer\n    sparse_optimizations: {a: 1}", "sparse", "no counterpart"),
        ("depth: 64", "depth: 0", "depth: 0", "must be at least 1"),
        ("depth: 64", "depth: 64, multiple_buffering: 3", "multiple_buffering", "1 or 2 here, not 3"),
        ("name: Buffer", "name: MainMemory", "name: MainMemory", "the name MainMemory is taken"),
        ("name: Buffer", "nme: Buffer", "Component", "is 'nme' meant"),
        ("architecture:", "architecture:\n  subtree: []", "subtree", "unknown key 'subtree'"),
        ("  version: 0.4\n  nodes", "  version: 0.3\n  nodes", "0.3", "version 0.3; 0.4 is read"),
        ("mapping:", "mappings:", "mappings", "did you mean 'mapping'"),
        ("factors: R=3", "factors: R=2", "- target", "factors of R multiply to 2, its size is 3"),
        ("factors: R=3", "factors: R=3,2", "R=3,2", "one whole number"),
        ("factors: R=3", "factors: X=3", "X=3", "unknown dimension 'X'"),
        ("target: Buffer", "target: Bufer", "Bufer", "did you mean 'Buffer'"),
        ("permutation: RP", "permutation: RX", "RX", "unknown dimension 'X'"),
        ("type: temporal", "type: temprl", "temprl", "did you mean 'temporal'"),
        ("[[[R], [P]]]", "[[[R], [P, stride]]]", "stride", "unknown dimension or coefficient 'stride'"),
        ("read_write: True", "read_write: False", "- name: Weights", "one data space is written"),
        ("    P: 16", "    P: 16\n    densities: {Weights: 0.5}", "densities", "no counterpart"),
        ("    R: 3\n", "    R: 3.5\n", "R: 3.5", "whole number"),
        ("problem:", "x: {{include('a.yaml')}}\nproblem:", "include", "a template .jinja. is not executed"),
    ],
)
def test_a_mistake_has_its_place(old: str, new: str, at: str, says: str) -> None:
    whole = "".join(texts("weight stationary").values())
    text = whole.replace(old, new, 1)
    assert text != whole
    with pytest.raises(SpecError, match=says) as caught:
        read_texts({"all.yaml": text}, {"energy": "none"})
    first = getattr(caught.value, "problems", (caught.value,))[0]
    assert first.file == "all.yaml" and first.line is not None
    assert at in text.splitlines()[first.line - 1], str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [({"clok": "1GHz"}, "did you mean 'clock'"), ({"bits": "0"}, "from 1 to 4096"), ({"energy": "all"}, "energy=none")],
)
def test_a_wrong_parameter(parameters: dict[str, str], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        read_texts({"problem.yaml": files.CONV1D}, parameters)


def test_the_importer_has_no_faults(folder: Path) -> None:
    names = [folder / name for name in ("arch.yaml", "problem.yaml", "map.yaml")]
    assert importer_faults(TimeloopImporter, names, {"energy": "none"}, damaged=20) == ()

"""ZigZag's accelerators and layers: what is read, what is refused and where, damaged files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

import einloom as el
import zigzag_files as files
from einloom.cli import main
from einloom.errors import SpecError
from einloom.interop.zigzag import export, read, read_texts
from einloom.interop.zigzag.importer import ZigzagImporter
from einloom.machine.levels import Axis, Fanout, Memory
from einloom.testing.importers import importer_faults
from einloom.workload.build import build_workload
from einloom.workload.notation import einsum_text
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("ACCELERATOR", "LAYERS", "GEMM"):
        (tmp_path / f"{name.lower()}.yaml").write_text(getattr(files, name))
    return tmp_path


def test_an_accelerator_is_a_machine() -> None:
    machine = read_texts({"a.yaml": files.ACCELERATOR}, 1e9).machine
    assert machine is not None
    assert [level.name for level in machine.levels] == ["dram", "sram", "D1", "rf_O", "D2", "rf_W", "MAC"]
    assert machine.levels[2] == Fanout("D1", (Axis("D1", 4),))
    assert machine.memory("sram") == Memory(
        "sram",
        size=262144,
        read_energy=5e-12,
        write_energy=6e-12,
        bits_per_access=64,
        read_throughput=64e9,
        write_throughput=64e9,
        ports="separate",
        must=selector("input | output"),
        may=selector("input | output"),
    )
    assert machine.instances("rf_O") == 4 and machine.instances("rf_W") == machine.instances("MAC") == 8
    assert machine.unit("MAC").energy == 0.5e-12 and machine.unit("MAC").throughput == 1e9


def test_unequal_ports_count_by_the_least() -> None:
    text = files.ACCELERATOR.replace(
        "type: write, bandwidth_min: 8, bandwidth_max: 32", "type: write, bandwidth_max: 8"
    )
    machine = read_texts({"a.yaml": text}).machine
    assert machine is not None
    dram = machine.memory("dram")
    assert (dram.bits_per_access, dram.read_throughput, dram.write_throughput) == (32, 32, 8)
    assert dram.write_energy == pytest.approx(4 * 75e-12)  # per access of 8 bits there, of 32 here


def test_layers_are_a_cascade() -> None:
    bundle = read_texts({"l.yaml": files.LAYERS})
    assert bundle.workload is not None
    found = [einsum_text(einsum) for einsum in bundle.workload.einsums]
    assert found == [
        "O0[b,k_0,oy,ox] = I0[b,c_0,2*oy+fy_0-1,2*ox+fx_0-1] * W0[k_0,c_0,fy_0,fx_0]",
        "O1[b,k_1,oy,ox] = O0[b,c_1,oy+fy_1,ox+fx_1] * W1[k_1,c_1]",
        "O2[b,g,oy,ox] = add(O1[b,g,oy,ox], W2[b,g,oy,ox])",
    ]
    assert bundle.workload.tensor("I0").shape == (1, 3, 16, 16)
    assert bundle.workload.names == {"conv", "layer1", "both"}
    assert bundle.notes == ("conv: partial sums of 24 bits are counted as 8 bits, O_final",)


def test_ranks_of_one_element_may_be_missing() -> None:
    second = files.GEMM.replace("id: 0", "id: 1").replace("I[m][k]", "I[g][m][k]").replace("[M, N, K]", "[G, M, N, K]")
    second = second.replace("[16, 8, 32]", "[1, 16, 4, 8]") + "  operand_source: {I: 0}\n"
    workload = read_texts({"l.yaml": files.GEMM + second}).workload
    assert workload is not None
    assert einsum_text(workload.einsum("layer1")) == "O1[m,n_1] = O0[m,k_1] * W1[k_1,n_1]"


def test_two_files_are_a_problem(folder: Path) -> None:
    ran = CliRunner().invoke(main, ["map", "gemm.yaml", "accelerator.yaml:clock=1GHz"])
    assert ran.exit_code == 0 and "optimal" in ran.output, ran.output
    asked = ["import", "zigzag", "accelerator.yaml", "layers.yaml", "--set", "clock=1GHz", "-o", "out"]
    ran = CliRunner().invoke(main, asked)
    assert ran.exit_code == 0 and "note: conv: partial sums" in ran.output, ran.output
    apart = el.map("out/workload.yaml", "out/machine.yaml").energy
    assert apart == pytest.approx(el.map("layers.yaml", "accelerator.yaml:clock=1GHz").energy)


def check_place(text: str, says: str, at: str, more: Mapping[str, str] | None = None) -> None:
    """The text is refused with these words, in a line that holds `at`."""
    with pytest.raises(SpecError, match=says) as caught:
        read_texts({"a.yaml": text, **(more or {})})
    assert caught.value.file == "a.yaml" and caught.value.line is not None
    assert at in text.splitlines()[caught.value.line - 1], str(caught.value)


MEMORY = files.memory("sram_W", 4096, (1, 1), 8, "I2", "D1")


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("sizes: [4, 2]", "sizes: [4]", "sizes: [4]", "1 sizes for 2 dimensions"),
        ("unit_energy", "is_imc: True\n  unit_energy", "is_imc", "computes in memory"),
        ("r_cost: 0.3", "r_cst: 0.3", "size: 64", "'r_cost' is missing; is 'r_cst' meant"),
        ("    r_cost: 5\n", "    auto_cost_extraction: True\n", "auto_cost", "write r_cost and w_cost"),
        ("operands: [I2]", "operands: [I3]", "[I3]", "known are I1, I2, O"),
        (
            'allocation: ["I2, tl"]',
            'allocation: ["I2, fh"]',
            "r_port_1",
            "a read port 'fh'; known are tl, th",
        ),
        ("operands: [I1, I2, O]", "operands: [I1, O]", "r_port_1", "unknown operand of this memory 'I2'"),
        ("  dram:", MEMORY + "  dram:", "served_dimensions: [D1]", "do not nest"),
        ("r_cost: 70", "r_cost: [70]", "r_cost: [70]", "expected a number"),
        ("name: little", "name: little\ntype: zigzag.offchip", "type: z", "zigzag.compute are read"),
        ("latency: 1", "latency: 1\n    colour: red", "colour", "unknown key 'colour'"),
        ("  rf_W:", "  D1:", "size: 512", "the name D1 is taken"),
    ],
)
def test_a_mistake_in_an_accelerator_has_its_place(old: str, new: str, at: str, says: str) -> None:
    text = files.ACCELERATOR.replace(old, new, 1)
    assert text != files.ACCELERATOR
    check_place(text, says, at)


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("ix=2*ox+1*fx", "ix=2*oz+1*fx", "2*oz", "unknown loop dimension 'oz'"),
        ("ix=2*ox+1*fx", "ix=sx*ox+1*fx", "sx*ox", "'sx' is no whole number"),
        (
            "[B, K, C, OY, OX, FY, FX]",
            "[B, K, C, OY, OX, FY, FZ]",
            "dimension_relations",
            "unknown loop dimension 'fx'",
        ),
        ("loop_sizes: [1, 8, 3", "loop_sizes: [1, 8, 0", "[1, 8, 0", "must be at least 1"),
        (
            "loop_sizes: [1, 8, 3",
            "loop_sizes: [1, 9, 3",
            "operand_source: {W: 1, I: 0}",
            "size 8 along c_1; layer 0 writes 9",
        ),
        ("operand_source: {W: 2, I: 1}", "operand_source: {W: 2, I: 7}", "I: 7", "known are 0, 1, 2"),
        ("O[b][g][oy][ox]=W", "O[b][g][oy][ox]=W[b]+W", "W[b]+W", "operand W stands here twice"),
        ("padding: [[1, 1], [1, 1]]", "padding: [[1, 1]]", "padding", "1 entries for 2 pr_loop_dims"),
        ("- id: 2", "- id: 1", "- id: 1", "two layers have the id 1"),
        ("O_final: 8}", "O_finale: 8}", "O_finale", "unknown operand 'O_finale'"),
        ("name: both", "name: conv", "name: conv", "two layers are called conv"),
        ("[b][g][oy][ox]=W[b][g][oy][ox]+I[b][g]", "[b][oy][ox]=W[b][oy][ox]+I[b]", "W[b][oy]", "loops over g"),
    ],
)
def test_a_mistake_in_layers_has_its_place(old: str, new: str, at: str, says: str) -> None:
    text = files.LAYERS.replace(old, new, 1)
    assert text != files.LAYERS
    check_place(text, says, at)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: soc\ncores: {0: a.yaml, 1: b.yaml}\n", "a system of Stream"),
        ("- name: default\n  spatial_mapping: {D1: ['K, 4']}\n", "together with its layers and its accelerator"),
        ("name: x\n", "neither an accelerator nor a workload"),
        ("[]\n", "lists no layer"),
    ],
)
def test_what_is_not_read(text: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        read_texts({"x.yaml": text})


def test_the_importer_has_no_faults(folder: Path) -> None:
    assert importer_faults(ZigzagImporter, [folder / "accelerator.yaml", folder / "layers.yaml"], damaged=20) == ()


def test_a_mapping_limits_what_is_spread() -> None:
    bundle = read_texts({"m.yaml": files.SPREAD, "l.yaml": files.LAYERS, "a.yaml": files.ACCELERATOR})
    assert bundle.mapspace is not None and bundle.workload is not None and bundle.machine is not None
    said = [str(limit) for limit in bundle.mapspace.limits.axes]
    assert said[:4] == [
        "axis D1: k_0: at most 4 instances (in conv)",
        "axis D1: b, oy, ox, c_0, fy_0, fx_0: 1 instances (in conv)",
        "axis D2: c_0: at most 2 instances (in conv)",
        "axis D2: ox: at most 2 instances (in conv)",
    ]
    assert said[-2:] == [
        "axis D1: b, oy, ox: 1 instances (in both)",
        "axis D2: b, g, oy, ox: 1 instances (in both)",
    ]


def test_a_mapping_is_kept_to(folder: Path) -> None:
    (folder / "mapping.yaml").write_text('- name: default\n  spatial_mapping: {D1: ["N, 2"], D2: ["M, 2"]}\n')
    asked = ["import", "zigzag", "accelerator.yaml", "gemm.yaml", "mapping.yaml", "--set", "clock=1GHz", "-o", "out"]
    ran = CliRunner().invoke(main, asked)
    assert ran.exit_code == 0 and "mapspace.yaml" in ran.output, ran.output
    best = el.map("out/workload.yaml", "out/machine.yaml", mapspace="out/mapspace.yaml", objective="latency")
    spread = {(loop.axis, loop.binds[0][1], loop.trips) for loop in best.mapping.nest if getattr(loop, "axis", None)}
    assert spread == {("D1", "n", 2), ("D2", "m", 2)}


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("D1: [", "D3: [", "D3", "unknown dimension of the array 'D3'; known are D1, D2"),
        ("K, 4", "K 4", "K 4", "spread over as in 'K, 32'"),
        ("W: I2", "W: I1", "W: I1", "only the links I: I1, W: I2, O: O"),
        ("- name: Add", "- name: default", "default", "two entries are called default"),
        ("name: default", "name: Gemm", "- name: Gemm", "no entry for layer conv .Conv., and none called default"),
        ("  spatial_mapping: {", "  temporal_ordering: [[G, 4]]\n  spatial_mapping: {", "temporal", "leave it out"),
    ],
)
def test_a_mistake_in_a_mapping_has_its_place(old: str, new: str, at: str, says: str) -> None:
    text = files.SPREAD.replace(old, new, 1)
    assert text != files.SPREAD
    check_place(text, says, at, {"l.yaml": files.LAYERS, "b.yaml": files.ACCELERATOR})


def test_what_is_written_says_the_same_problem() -> None:
    given = read_texts({"a.yaml": files.ACCELERATOR, "l.yaml": files.LAYERS}, 1e9)
    assert given.workload is not None and given.machine is not None
    made = export(given.workload, given.machine)
    again = read_texts(made.files, 1e9)
    assert (again.workload, again.machine) == (given.workload, given.machine) and made.notes == ()
    assert again.machine is not None and again.workload is not None
    assert export(again.workload, again.machine).files == made.files


def test_a_problem_of_the_zoo_is_written(folder: Path) -> None:
    ran = CliRunner().invoke(main, ["export", "zigzag", "matmuls:n=2,m=16,kn=16", "nvdla", "-o", "out"])
    assert ran.exit_code == 0 and "note: DRAM: without a limit of size" in ran.output, ran.output
    workload, machine = load_workload("out/layers.yaml"), load_machine("out/accelerator.yaml:clock=1GHz")
    assert [einsum_text(einsum) for einsum in workload.einsums] == [
        "O0[m,n1] = I0[m,n0] * W0[n0,n1]",
        "O1[m,n2] = O0[m,n1] * W1[n1,n2]",
    ]
    theirs = load_machine("nvdla")
    assert [level.name for level in machine.memories] == [level.name for level in theirs.memories]
    assert [axis.size for axis in machine.axes.values()] == [axis.size for axis in theirs.axes.values()]
    for mine, other in zip(machine.memories, theirs.memories, strict=True):
        per_bit = other.read_energy / other.bits_per_access
        assert mine.read_energy / mine.bits_per_access == pytest.approx(per_bit)


@pytest.mark.parametrize(
    ("einsum", "says"),
    [
        ("Z[m] = exp(A[m])", "two operands; Z does something else"),
        ("Z[m] = A[m,k] * B[k] * C[k]", "two operands; Z does something else"),
        ("Z[m] = A[2*m] * B[m]", "a sum of two dimensions, not 2\\*m"),
        ("Z[m] = max[k] A[m,k] * B[k]", "two operands; Z does something else"),
    ],
)
def test_what_cannot_be_written(einsum: str, says: str) -> None:
    workload = build_workload("w", [einsum], {"m": 4, **({"k": 3} if "k" in einsum else {})}, bits=8)
    with pytest.raises(SpecError, match=says):
        export(workload, load_machine("simple"))


def test_a_key_twice_counts_as_in_zigzag() -> None:
    bundle = read_texts({"a.yaml": files.ACCELERATOR.replace("size: 512", "size: 1\n    size: 512")})
    assert bundle.machine == read_texts({"a.yaml": files.ACCELERATOR}).machine
    assert "a.yaml:5:5: key 'size' stands here twice" in bundle.notes[0]


@pytest.mark.skipif(find_spec("zigzag") is None, reason="zigzag-dse is not installed")
def test_the_accelerators_that_zigzag_ships() -> None:
    shipped = next(Path(str(place)) for place in find_spec("zigzag").submodule_search_locations)  # type: ignore[union-attr]
    said = {}
    for file in sorted((shipped / "inputs" / "hardware").glob("*.yaml")):
        try:
            said[file.stem] = "read" if read([file]).machine is not None else "nothing"
        except SpecError as error:
            said[file.stem] = error.message
    assert len(said) == 11
    refused = {name: words for name, words in said.items() if words != "read"}
    assert refused.keys() == {"aimc", "dimc", "ascend_like", "edge_tpu_like", "meta_prototype"}
    for name, words in refused.items():
        assert ("computes in memory" if name in ("aimc", "dimc") else "do not nest") in words


@pytest.mark.skipif(find_spec("zigzag") is None, reason="zigzag-dse is not installed")
@pytest.mark.parametrize(
    ("name", "einsums", "multiplications"),
    [("alexnet", 22, 654_560_384), ("resnet18", 31, 1_814_073_344), ("mobilenetv2", 65, 300_774_272)],
)
def test_the_networks_that_zigzag_ships(name: str, einsums: int, multiplications: int) -> None:
    """All multiplications of the graph, and no cut."""
    onnx = pytest.importorskip("einloom.interop.onnx")
    shipped = next(Path(str(place)) for place in find_spec("zigzag").submodule_search_locations)  # type: ignore[union-attr]
    found = onnx.from_onnx(shipped / "inputs" / "workload" / f"{name}.onnx")
    assert found.multiplications == (multiplications, multiplications)
    assert len(found.workload.einsums) == einsums and not found.cuts

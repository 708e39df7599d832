"""Included files, variables in any order, factors, and the numbers that component models would have given."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from einloom import map as search
from einloom.cli import main
from einloom.errors import SpecError
from einloom.interop.accelforge.includes import MAX_DEPTH, MAX_FILES
from einloom.interop.accelforge.read import read, read_texts
from einloom.interop.bundle import Bundle

LENT = """\
counted: &counted
  actions_scale: n_slices
  values_per_action: {All: 1}

shared_variables: &shared_variables
  n_slices: ceil(weight_bits / cell_bits)
  weight_bits: round(weight.bits_per_value)
  rows: rows_of_the_array(spec)
  picture: average(spec)
"""
ARCH = """\
{{include_text('_lent.yaml')}}
{{add_to_path('./cells')}}
arch:
  variables:
    <<: *shared_variables
    cell_bits: 2
    cell_file: "{{find_path('cell.txt')}}"
  nodes:
  - !Memory
    name: Buffer
    component_class: SRAM
    size: Array.get_fanout() * rows * 64
    tensors: {keep: All}
    energy_scale: 0.5
    n_parallel_instances: 4
    leak_power: 3
    area_scale: 2
  - !Container
    name: Array
    spatial:
    - {name: columns, fanout: 16, may_reuse: input, usage_scale: n_slices}
    - {name: rows, fanout: 8, reuse: output}
  - !Memory
    name: Cell
    <<: [*counted]
    component_class: Resistor
    size: 8
    tensors: {keep: weight}
    leak_power: 1
    area_scale: 2
  - !Compute
    name: MAC
    component_class: Dummy
"""
WORKLOAD = """\
workload:
  rank_sizes: {M: 4, K: 8, N: 4}
  bits_per_value: {All: 8}
  einsums:
  - "Z[m, n] = A[m, k] * W[k, n]"
renames:
  einsums:
  - name: default
    tensor_accesses:
    - {name: input, source: A, expected_count: 1}
    - {name: output, source: Outputs, expected_count: 1}
    - {name: weight, source: W, expected_count: 1}
"""
GIVEN = """\
einloom:
  models:
    Buffer: {read: {energy: 4 pJ, throughput: 1 GHz}, write: 6 pJ, area: 1 mm2}
    Cell: {read: {energy: 1 pJ, throughput: 1 GHz}, write: 2 pJ, area: 1 mm2}
  values: {rows: 32}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path, "_lent.yaml", LENT)
    put(tmp_path, "cells/cell.txt", "not: YAML: at all {{ nor a template")
    put(tmp_path, "arch.yaml", ARCH)
    put(tmp_path, "workload.yaml", WORKLOAD)
    put(tmp_path, "given.yaml", GIVEN)
    return tmp_path


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def load(folder: Path, arch: str | None = None, given: str | None = None, **asked: list[Path]) -> Bundle:
    for name, text in (("arch.yaml", arch), ("given.yaml", given)):
        if text is not None:
            put(folder, name, text)
    return read([folder / name for name in ("arch.yaml", "workload.yaml", "given.yaml")], **asked)  # type: ignore[arg-type]


def refused(folder: Path, arch: str | None = None, given: str | None = None, **asked: list[Path]) -> str:
    with pytest.raises(SpecError) as caught:
        load(folder, arch, given, **asked)
    return str(caught.value).replace(str(folder), "HERE")


def test_included_fields_factors_and_values(folder: Path) -> None:
    found = load(folder)
    assert found.machine is not None
    buffer, cell = found.machine.memories
    assert buffer.size == 16 * 8 * 32 * 64
    assert (buffer.read_energy, buffer.write_energy) == (2e-12, 3e-12)
    assert buffer.read_throughput == 4e9, "four instances work at the same time"
    assert (buffer.leakage, buffer.area) == (12.0, pytest.approx(8e-6))
    columns, rows = found.machine.axes.values()
    assert (columns.size, rows.size) == (4, 8), "a weight takes 8 / 2 = 4 of 16 columns"
    assert (cell.read_energy, cell.bits_per_access) == (4e-12, 8), "four actions a value, one value of 8 bits an access"
    assert cell.read_throughput == pytest.approx(8e9 / 4), "which take four times as long"
    assert found.machine.instances("Cell") * cell.leakage == 16 * 8 * 1.0, "leakage is that of the physical instances"
    assert cell.area == pytest.approx(4 * 2e-6)
    notes = "\n".join(found.notes)
    assert "counted, shared_variables" in notes and "no value: cell_file, picture" in notes


def test_factors_count_as_numbers_that_are_multiplied_by_hand(folder: Path) -> None:
    arch = ARCH.replace("    energy_scale: 0.5\n    n_parallel_instances: 4\n", "").replace(
        "    area_scale: 2\n", "", 1
    )
    arch = arch.replace("leak_power: 3", "leak_power: 12")
    given = GIVEN.replace("4 pJ, throughput: 1 GHz", "2 pJ, throughput: 4 GHz").replace(
        "6 pJ, area: 1", "3 pJ, area: 8"
    )
    scaled, plain = load(folder).machine, load(folder, arch, given).machine
    assert scaled is not None and plain is not None
    assert scaled.memories[0] == plain.memories[0]


def test_an_error_in_an_included_file_points_there(folder: Path) -> None:
    put(folder, "_lent.yaml", LENT.replace("/ cell_bits", "/ cel_bits"))
    message = refused(folder)
    assert re.search(r"HERE/_lent\.yaml:6:.*unknown name 'cel_bits'.*did you mean 'cell_bits'", message), message
    put(folder, "_lent.yaml", LENT.replace("{All: 1}", "{All: 1"))
    assert "HERE/_lent.yaml:" in refused(folder)
    put(folder, "_lent.yaml", "{% if %}")
    assert refused(folder).startswith("HERE/_lent.yaml:1: ")


def test_lines_after_an_include_are_those_of_the_file(folder: Path) -> None:
    line = ARCH[: ARCH.index("size: 8")].count("\n") + 1
    assert f"HERE/arch.yaml:{line}:" in refused(folder, ARCH.replace("size: 8", "size: 8.5"))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("include_text('/etc/hostname')", "by a plain name without '..'"),
        ("include_text('../outside.yaml')", "by a plain name without '..'"),
        ("include_text('cells/../../outside.yaml')", "by a plain name without '..'"),
        ("include_text('~/x.yaml')", "by a plain name"),
        ("include_text('*.yaml')", "by a plain name"),
        ("include_text('link.yaml')", "leads out of the folders"),
        ("include_text('linked/outside.yaml')", "leads out of the folders"),
        ("add_to_path('linked')", "leads out of the folders"),
        ("find_path('link.yaml')", "leads out of the folders"),
        ("add_to_path('..')", "by a plain name without '..'"),
        ("include_text('_lend.yaml')", r"no file '_lend.yaml' .*did you mean '_lent.yaml'"),
        ("include_text('cells')", "no file 'cells'"),
        ("include_text('pipe')", "no file 'pipe'"),
        ("add_to_path('_lent.yaml')", "no folder '_lent.yaml'"),
        ("include_text(3)", "by a text in quotes"),
        ("include_text(open('x'))", "'open' is no function"),
        ("include_text('" + 300 * "a" + "')", "at most 200 characters"),
        ("include_text('arch.yaml')", "'arch.yaml' includes itself"),
        ("include_text('bytes.yaml')", "bytes.yaml:1: not a text file"),
        ("include('_lent.yaml')", "'include' is not read"),
        ("setenv('A', 'b')", "'setenv' is not read"),
    ],
)
def test_what_may_not_be_included(tmp_path: Path, folder: Path, asked: str, message: str) -> None:
    here = folder / "here"
    for name in ("_lent.yaml", "cells/cell.txt", "workload.yaml", "given.yaml"):
        put(here, name, (folder / name).read_text(encoding="utf-8"))
    outside = folder / "outside"
    put(outside, "outside.yaml", "secret: 1")
    put(folder, "outside.yaml", "secret: 1")
    (here / "link.yaml").symlink_to(outside / "outside.yaml")
    (here / "linked").symlink_to(outside)
    (here / "bytes.yaml").write_bytes(b"\xff\xfe")
    os.mkfifo(here / "pipe")
    found = refused(here, ARCH.replace("include_text('_lent.yaml')", asked))
    assert re.search(message, found) and "secret" not in found, found
    assert found.startswith("HERE/"), found


def test_folders_that_the_user_names(tmp_path: Path, folder: Path) -> None:
    here = folder / "here"
    for name in ("workload.yaml", "given.yaml", "cells/cell.txt"):
        put(here, name, (folder / name).read_text(encoding="utf-8"))
    put(folder, "library/_lent.yaml", LENT)
    assert "no file '_lent.yaml'" in refused(here, ARCH)
    assert load(here, ARCH, folders=[folder / "library"]).machine is not None
    assert "no such folder" in refused(here, ARCH, folders=[folder / "missing"])
    files = [str(here / name) for name in ("arch.yaml", "workload.yaml", "given.yaml")]
    words = ["import", "accelforge", *files, "-o", str(folder / "out")]
    assert CliRunner().invoke(main, words).exit_code != 0
    done = CliRunner().invoke(main, [*words, "--include", str(folder / "library")])
    assert done.exit_code == 0, done.output
    assert (folder / "out" / "machine.yaml").exists()


def test_a_text_has_no_folder_to_include_from() -> None:
    with pytest.raises(SpecError, match=r"arch\.yaml:1: 'include_text' needs files on disk"):
        read_texts({"arch.yaml": ARCH})


def test_chains_of_files_are_bounded(folder: Path) -> None:
    for i in range(MAX_DEPTH + 2):
        put(folder, f"deep{i}.yaml", f"{{{{include_text('deep{i + 1}.yaml')}}}}")
    assert "deeper than" in refused(folder, ARCH.replace("_lent.yaml", "deep0.yaml"))
    put(folder, "a.yaml", "{{include_text('b.yaml')}}")
    put(folder, "b.yaml", "{{include_text('a.yaml')}}")
    assert "HERE/b.yaml:1: 'a.yaml' includes itself" in refused(folder, ARCH.replace("_lent.yaml", "a.yaml"))
    put(folder, "many.yaml", "{% for i in range(1000) %}{{include_text('one.yaml')}}{% endfor %}")
    put(folder, "one.yaml", "# nothing\n")
    assert f"more than {MAX_FILES} files" in refused(folder, ARCH.replace("_lent.yaml", "many.yaml"))
    put(folder, "many.yaml", "{% for i in range(1000) %}{{find_path('one.yaml')}}{% endfor %}")
    assert "names of files are looked up" in refused(folder, ARCH.replace("_lent.yaml", "many.yaml"))


def test_included_templates_see_the_values_and_keep_their_own(folder: Path) -> None:
    put(folder, "_lent.yaml", "{% set inner = 3 %}" + LENT.replace("round(weight.bits_per_value)", "{{ bits }}"))
    found = load(folder, "{% set bits = 16 %}" + ARCH)
    assert found.machine is not None and found.machine.axes["columns"].size == 2
    assert "unknown name 'inner'" in refused(
        folder, "{% set bits = 16 %}" + ARCH + "# {{ 1 }}\nvariables: {x: {{ inner }}}\n"
    )


def test_variables_that_have_no_value(folder: Path) -> None:
    message = refused(folder, given=GIVEN.replace("rows: 32", "row: 32"))
    assert re.search(r"_lent\.yaml:8:.*'rows_of_the_array' is no function.*values: \{rows: \.\.\.\}", message), message
    circle = LENT.replace("round(weight.bits_per_value)", "n_slices * cell_bits")
    put(folder, "_lent.yaml", circle)
    assert "depends on itself: n_slices -> weight_bits -> n_slices" in refused(folder)


def test_variables_that_differ_from_einsum_to_einsum(folder: Path) -> None:
    second = '  - "Y[m, l] = Z[m, n] * V[n, l]"\n'
    two = WORKLOAD.replace("renames:", second + "renames:").replace("source: A,", "source: (A | Z) & Inputs,")
    two = two.replace("source: W,", "source: W | V,").replace("N: 4}", "N: 4, L: 4}")
    put(folder, "workload.yaml", two)
    machine = load(folder).machine
    assert machine is not None and machine.axes["columns"].size == 4
    put(folder, "workload.yaml", two.replace("{All: 8}", "{V: 16, ~V: 8}"))
    assert "variable n_slices differs from Einsum to Einsum" in refused(folder)


def test_the_numbers_that_are_missing_come_as_a_file_to_fill_in(folder: Path) -> None:
    message = refused(folder, given="einloom: {models: {Cell: {read: 1 pJ}}}")
    assert "3 energies" in message and "Buffer (SRAM): read, write; Cell (Resistor): write." in message
    template = message[message.index("einloom:\n") :]
    template = template[: template.index("# energies per action")]
    assert "rows: FILL" in template
    unfilled = refused(folder, given=template)
    assert "given.yaml:3" in unfilled and "cannot read 'FILL pJ'" in unfilled, unfilled
    filled = template.replace("FILL", "5").replace("Cell: {", "Cell: {read: 1 pJ, ")
    found = load(folder, given=filled).machine
    assert found is not None and found.memories[1].write_energy == 4 * 5e-12


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{keep: weight}", "{keep: weight | input}", "says nothing of A"),
        ("energy_scale: 0.5", "energy_scale: -1", "energy_scale must be a finite number"),
        ("energy_scale: 0.5", "throughput_scale: 0", "throughput_scale must be positive"),
        ("energy_scale: 0.5", "latency_scale: 2", "say throughput_scale"),
        ("usage_scale: n_slices", "usage_scale: 17", "at most the fanout"),
        ("usage_scale: n_slices", "power_gateable: True", "power_gateable has no counterpart"),
    ],
)
def test_factors_that_cannot_be_carried_over(folder: Path, old: str, new: str, message: str) -> None:
    put(folder, "_lent.yaml", LENT.replace("{All: 1}", "{weight: 1}"))
    assert message in refused(folder, ARCH.replace(old, new))


def test_values_of_different_widths_share_no_access(folder: Path) -> None:
    put(folder, "workload.yaml", WORKLOAD.replace("{All: 8}", "{W: 8, ~W: 16}"))
    assert "no common whole width" in refused(folder, ARCH.replace("{keep: weight}", "{keep: weight | input}"))


def test_all_nodes_without_a_counterpart_are_named_at_once(folder: Path) -> None:
    nodes = "  - !Network {name: Bus}\n  - !Network {name: Ring}\n  - !Fork {name: Side}\n"
    message = refused(folder, ARCH.replace("  - !Compute", nodes + "  - !Compute"), given="einloom: {}")
    assert "2 nodes are of the kind Network" in message and "(Bus, Ring)" in message
    assert "a node is of the kind Fork" in message and "(Side)" in message
    assert "energies" not in message, "nothing else is asked for"


def test_lists_and_logarithms(folder: Path) -> None:
    values = GIVEN.replace("{rows: 32}", "{rows: 'sum([1] * 8 + [0] * 7) * ceil(log2(16))'}")
    found = load(folder, given=values).machine
    assert found is not None and found.memories[0].size == 16 * 8 * 32 * 64
    assert "repeated too often" in refused(folder, ARCH.replace("cell_bits: 2", "cell_bits: sum([1] * 100000)"))


FACTORS = """\
arch:
  nodes:
  - !Memory
    name: MainMemory
    component_class: Dummy
    size: inf
    tensors: {keep: All}
    energy_scale: 0.5
    actions_scale: 3
    throughput_scale: 2
    n_parallel_instances: 4
    leak_power: 0.25
    leak_power_scale: 3
    actions:
    - {name: read, energy: 5, throughput: 16}
    - {name: write, energy: 7, throughput: 8}
  - !Container
    name: Array
    spatial:
    - {name: columns, fanout: FANOUT, may_reuse: input, usage_scale: 2}
  - !Memory
    name: Cell
    component_class: Dummy
    size: 1024
    tensors: {keep: weight}
    values_per_action: {All: 2}
    actions_scale: 5
    leak_power: 0.125
    actions:
    - {name: read, energy: 11, throughput: 4}
    - {name: write, energy: 13, throughput: 2}
  - !Compute
    name: MAC
    component_class: Dummy
    actions_scale: 2
    energy_scale: 3
    throughput_scale: 0.5
    leak_power: 0.0625
    n_parallel_instances: 2
    actions:
    - {name: compute, energy: 1, throughput: 1}
"""


@pytest.mark.parametrize(
    ("fanout", "energy", "latency"), [(7, 29168.0, 128.0), (8, 27045.0, 81.0), (9, 27065.25, 81.0)]
)
def test_factors_cost_what_accelforge_says(fanout: int, energy: float, latency: float) -> None:
    """Joules and seconds of the best mapping, for energy and for latency, that AccelForge 1.0.467 finds."""
    found = read_texts({"arch.yaml": FACTORS.replace("FANOUT", str(fanout)), "workload.yaml": WORKLOAD})
    assert found.workload is not None and found.machine is not None
    for objective in ("energy", "latency"):
        best = search(found.workload, found.machine, objective=objective)
        assert (best.latency if objective == "latency" else best.energy) == {"energy": energy, "latency": latency}[
            objective
        ]

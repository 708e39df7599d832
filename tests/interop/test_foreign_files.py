"""AccelForge files as its users write them: they load with the meaning that they have there, or the reason is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from einloom import questions
from einloom.cli import main
from einloom.cost.evaluate import evaluate
from einloom.errors import SpecError
from einloom.interop.accelforge.read import read_texts
from einloom.interop.bundle import Bundle
from einloom.machine.levels import Fanout, Machine, Memory
from einloom.mapping.text import print_mapping
from einloom.workload.einsum import Workload

ARCH = """
arch:
  nodes:
  - !Memory
    name: MainMemory
    size: inf
    tensors: {keep: ~Intermediates, may_keep: All}
    actions:
    - {name: read, energy: {{ E | default(1) }}, throughput: 8 * 0.25}
    - {name: write, energy: 1, throughput: inf}
  - !Memory
    name: GlobalBuffer
    size: 1024 # bits
    total_latency: max(a.n_calls / a.throughput for a in actions)
    tensors: {keep: ~MainMemory.tensors, may_keep: All}
    actions:
    - {name: read, energy: 1, throughput: 16}
    - {name: write, energy: 1, throughput: 8}
  - !Container
    name: PEs
    spatial:
    - {name: reuse_input, fanout: 4, reuse: input, min_usage: 1}
    - {name: X, fanout: 2, may_reuse: Nothing}
  - !Memory
    name: Register
    size: weight.bits_per_value if weight else 0
    component_class: Dummy
    tensors: {keep: weight}
  - !Compute
    name: MAC
    actions: [{name: compute, energy: 1, throughput: 1}]
    enabled: len(All) == 3
"""
WORKLOAD = """
workload:
  rank_sizes: {B: 1, M: {{ M | default(4) }}, K: 4, N: 4, L: 4}
  bits_per_value: {All: 8, weight: 8}
  persistent_tensors: weight - Intermediates
  einsums:
  - {einsum: "I[b, m, k] = I_in[b, m, k]", is_copy_operation: True}
  - "T[b, m, n] = W[k, n] * I[b, m, k]"
  - einsum: "U[b, m, l] = T[b, m, K: k] * V[k, l]"
    iteration_space_shape: [0 <= k < 4]
renames:
  einsums:
  - name: default
    tensor_accesses:
    - {name: input, source: Inputs & Intermediates if len(All) == 3 else Inputs, expected_count: 1}
    - {name: output, source: Outputs, expected_count: 1}
    - {name: weight, source: ~(input | output), expected_count: 1 if len(All) == 3 else 0}
"""


def load(*texts: str, **parameters: str) -> Bundle:
    return read_texts({f"file{i}.yaml": text for i, text in enumerate(texts)}, parameters)


def machine_of(found: Bundle) -> Machine:
    assert found.machine is not None
    return found.machine


def test_an_architecture() -> None:
    found = machine_of(load(ARCH, E="10"))
    main_memory, buffer, fanout, register, unit = found.levels
    assert isinstance(main_memory, Memory)
    assert isinstance(buffer, Memory)
    assert isinstance(fanout, Fanout)
    assert isinstance(register, Memory)
    assert (main_memory.read_energy, main_memory.read_throughput, main_memory.write_throughput) == (10.0, 2.0, None)
    assert (main_memory.must.text, main_memory.may.text, main_memory.ports) == ("~intermediate", "all", "shared")
    assert (buffer.size, buffer.must.text, buffer.ports) == (1024, "unheld", "separate")
    first, second = fanout.axes
    assert (first.only_irrelevant_to.text, first.multicast.text, first.reduce.text) == ("input", "input", "nothing")
    assert (first.use, second.use, second.multicast.text, second.reduce.text) == ("full", "any", "nothing", "nothing")
    assert (register.size, register.backs.text, unit.name) == (64, "nothing", "MAC")
    assert found.units[0].operands == (2,)


def test_a_workload() -> None:
    text = WORKLOAD.replace(", K: k]", ", k]").replace("rank_sizes: {B: 1", "rank_sizes: {K2: 4, B: 1")
    text = text.replace("T[b, m, k]", "T[b, m, N: k]")
    found = load(text).workload
    assert isinstance(found, Workload)
    assert [e.kind for e in found.einsums] == ["copy", "multiply", "multiply"]
    assert [found.role("T", t) for t in ("I", "W", "T")] == ["input", "weight", "output"]
    assert [t.name for t in found.tensors if t.persistent] == ["W", "V"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("!Container", "!Network", "file0.yaml:.*Network"),
        ("!Container", "!Contaner", "did you mean 'Container'"),
        ("keep: weight", "keep: weight, tile_shape: [1]", "tile_shape has no counterpart"),
        ("keep: weight", "kep: weight", "did you mean 'keep'"),
        ("keep: weight", "keep: weight.pop()", "no set expression"),
        ("component_class: Dummy", "component_class: SRAM", r"come from component models, .*\(SRAM\)"),
        ("len(All) == 3", "len(weight) == 1", "unknown name 'weight'"),
        ("len(All) == 3", "len(All) == 3 and len(Product) > 0 or len(All) == 2", "no condition on the number"),
        ("min_usage: 1", "min_usage: 0.5", "full use"),
        ("fanout: 4", "fanout: 4, usage_scale: 5", "usage_scale must be at least 1 and at most the fanout"),
        ("max(a.n_calls / a.throughput for a in actions)", "3 * max(1, 2)", "no latency"),
        ("size: 1024", "size: __import__('os').getpid()", "no function that is known"),
        ("size: 1024", "leak_power_scale: -2\n    size: 1024", "leak_power_scale must be a finite"),
        ("size: 1024", "size: 1024 + missing", "unknown name 'missing'"),
        ("size: 1024", "size: 10.5", "whole number of bits"),
        ("{{ E | default(1) }}", "{{ E }}", "unknown name 'E'"),
        ("energy: 1, throughput: 16", "energy: 1, thruput: 16", "did you mean 'throughput'"),
        ("keep: ~MainMemory.tensors", "keep: ~MainMemory.tensors | (", "as a set expression"),
    ],
)
def test_what_an_architecture_cannot_say_here_is_named(old: str, new: str, message: str) -> None:
    assert old in ARCH
    with pytest.raises(SpecError, match=message):
        load(ARCH.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"T[b, m, n] = W[k, n] * I[b, m, k]"', '"T[b, m, n] = W[k, n] @ I[b, m, k]"', "is not read here"),
        ("0 <= k < 4", "0 <= k + m < 4", "no bound"),
        ("bits_per_value: {All: 8, weight: 8}", "bits_per_value: {weight: 8}", "says nothing about"),
        ("bits_per_value: {All: 8, weight: 8}", "bits_per_value: {All: 8, weight: 4}", "8 and 4 bits"),
        ("persistent_tensors: weight", "persistent_tensors: wight", "did you mean 'weight'"),
        ("einsums:\n  - {einsum", "einsum:\n  - {einsum", "is missing"),
        ("source: Inputs & Intermediates if len(All) == 3 else Inputs", "source: Outputs", "is called input"),
    ],
)
def test_what_a_workload_cannot_say_here_is_named(old: str, new: str, message: str) -> None:
    text = WORKLOAD.replace("T[b, m, K: k]", "T[b, m, N: k]")
    assert old in text
    with pytest.raises(SpecError, match=message):
        load(text.replace(old, new, 1))


SIMPLE = """
arch:
  nodes:
  - !Memory
    name: MM
    size: inf
    tensors: {keep: ~Intermediates, may_keep: All}
    actions: [{name: read, energy: 1, throughput: inf}, {name: write, energy: 1, throughput: inf}]
  - !Memory
    name: GLB
    size: inf
    tensors: {keep: ~MM, may_keep: All}
    actions: [{name: read, energy: 1, throughput: inf}, {name: write, energy: 1, throughput: inf}]
  - !Compute {name: MAC, actions: [{name: compute, energy: 1, throughput: 1}]}
"""
MATMUL = """
workload:
  iteration_space_shape: {m: 0 <= m < 4, n: 0 <= n < 4, k: 0 <= k < 4}
  bits_per_value: {All: 1}
  einsums: ["Z[m, n] = A[m, k] * B[k, n]"]
"""
MATVECS = """
workload:
  iteration_space_shape: {na: 0 <= na < 4, ny: 0 <= ny < 3, nz: 0 <= nz < 4}
  bits_per_value: {All: 8}
  einsums: ["Y[ny] = A[na]*B[na,ny]", "Z[nz] = Y[ny]*C[ny,nz]"]
"""


def nodes(text: str) -> str:
    """A mapping in one line per node: ``S GLB A B`` stores, ``T m 2`` is a loop to tile 2, ``C Z`` computes."""
    lines = ["mapping:", "  nodes:"]
    for word, *rest in (part.split() for part in text.split(";")):
        if word == "S":
            lines.append(f"  - !Storage {{component: {rest[0]}, tensors: [{', '.join(rest[1:])}]}}")
        elif word == "T":
            lines.append(f"  - !Temporal {{rank_variable: {rest[0]}, tile_shape: {rest[1]}}}")
        else:
            lines.append(f"  - !Compute {{einsum: {rest[0]}, component: MAC}}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("schedule", "energy", "bits"),
    [
        ("S MM A B Z; T m 1; T n 1; T k 1; C Z", 304, 0),
        ("S MM A B Z; S GLB A B Z; T m 1; T n 1; T k 1; C Z", 400, 33),
        ("S MM A B Z; T k 2; S GLB Z; T m 1; T n 1; T k 1; C Z", 400, 1),
        ("S MM A B Z; T m 1; T n 1; S GLB Z; T k 1; C Z", 336, 1),
        ("S MM A B Z; T m 2; T n 2; T k 2; S GLB A B Z; T m 1; T n 1; T k 1; C Z", 528, 9),
        ("S MM A B Z; S GLB A; T m 1; T n 1; T k 1; C Z", 336, 4),
        ("S MM A B Z; S GLB A; T n 1; T m 1; T k 1; C Z", 336, 16),
    ],
)
def test_schedules_cost_what_they_cost_there(schedule: str, energy: float, bits: int) -> None:
    found = load(SIMPLE, MATMUL, nodes(schedule))
    assert found.workload is not None
    assert found.mapping is not None
    cost = evaluate(found.workload, machine_of(found), found.mapping)
    assert cost.energy == energy
    assert {o.memory: o.bits for o in cost.occupancy}.get("GLB", 0) == bits


def test_a_store_above_a_split_serves_each_einsum_anew() -> None:
    mapping = """
mapping:
  nodes:
  - !Storage {tensors: [A, B, C, Y, Z], component: MM}
  - !Temporal {rank_variable: ny, tile_shape: 1}
  - !Storage {tensors: [Y], component: GLB}
  - !Sequential
    nodes:
    - !Nested
      nodes:
      - !Storage {tensors: [A, B], component: GLB}
      - !Temporal {rank_variable: na, tile_shape: 1}
      - !Compute {einsum: Y, component: MAC}
    - !Nested
      nodes:
      - !Storage {tensors: [C, Z], component: GLB}
      - !Temporal {rank_variable: nz, tile_shape: 1}
      - !Compute {einsum: Z, component: MAC}
"""
    found = load(SIMPLE, MATVECS, mapping)
    assert found.workload is not None
    assert found.mapping is not None
    assert evaluate(found.workload, machine_of(found), found.mapping).energy == 1728
    shared = mapping.replace("A, B, C, Y, Z]", "A, B, C, Z]")
    found = load(SIMPLE, MATVECS, shared)
    assert found.workload is not None
    assert found.mapping is not None
    assert evaluate(found.workload, machine_of(found), found.mapping).energy == 1632
    assert print_mapping(found.mapping, found.workload).count("store GLB: Y") == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rank_variable: m", "rank_variable: q", "rank variable q"),
        ("component: GLB", "component: GBL", "did you mean 'GLB'"),
        ("!Temporal", "!Temporl", "did you mean 'Temporal'"),
        ("tile_shape: 1", "tile_shape: 0", "at least 1"),
        ("tile_shape: 1", "tile_shape: 1, initial_tile_shape: 2", "initial_tile_shape"),
        ("einsum: Z", "einsum: Q", "no Einsum 'Q'"),
    ],
)
def test_what_a_schedule_cannot_say_is_named(old: str, new: str, message: str) -> None:
    text = nodes("S MM A B Z; S GLB A; T m 1; T n 1; T k 1; C Z")
    assert old in text
    with pytest.raises(SpecError, match=message):
        load(SIMPLE, MATMUL, text.replace(old, new, 1))


def test_command_line(tmp_path: Path) -> None:
    runner = CliRunner()
    there, back = tmp_path / "there", tmp_path / "back"
    words = ["export", "accelforge", "matmuls:n=2", "tpu-v4i", "-o", str(there), "--objective", "edp"]
    made = runner.invoke(main, words)
    assert made.exit_code == 0, made.output
    files = sorted(str(path) for path in there.iterdir())
    assert [Path(file).name for file in files] == ["arch.yaml", "einloom.yaml", "mapper.yaml", "workload.yaml"]
    read = runner.invoke(main, ["import", "accelforge", *files, "-o", str(back)])
    assert read.exit_code == 0, read.output
    assert "--objective edp" in read.output
    asked = questions.problem(str(back / "workload.yaml"), str(back / "machine.yaml"))
    assert asked.machine == questions.problem("matmuls:n=2", "tpu-v4i").machine


def test_command_line_names_the_place(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(SIMPLE.replace("size: inf", "sise: inf", 1), encoding="utf-8")
    done = CliRunner().invoke(main, ["import", "accelforge", str(bad), "-o", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "bad.yaml:" in done.output

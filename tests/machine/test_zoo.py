"""The machines that ship: their numbers, their constraints, and how they are called."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import einloom.zoo.machine_by_name
import einloom.zoo.machine_entries
from einloom.errors import SpecError
from einloom.machine.files import parse_machine
from einloom.machine.levels import Machine
from einloom.machine.write import machine_text, write_machine
from einloom.workload.selectors import select
from einloom.zoo.index import listed
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

GPT3 = load_workload("gpt3-6.7b:tokens=256")


@pytest.mark.parametrize("module", [einloom.zoo.machine_by_name, einloom.zoo.machine_entries])
def test_doctests(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [entry.name for entry in listed("machines")])
def test_every_entry_builds_has_sources_and_round_trips(name: str) -> None:
    machine = load_machine(name)
    again = parse_machine(machine_text(machine))
    assert again == machine and again.facts == machine.facts
    sourced = {fact.path for fact in machine.facts}
    for memory in machine.memories:
        for key in ("size", "read_energy", "write_energy", "read_throughput", "write_throughput"):
            assert not getattr(memory, key) or f"{memory.name}.{key}" in sourced
    assert {f"{axis}.size" for axis in machine.axes} <= sourced


def test_tpu_v4i() -> None:
    machine = load_machine("tpu-v4i")
    assert [level.name for level in machine.levels] == "DRAM GLB Z LB Scalar PE Reg MAC".split()
    assert list(machine.axes) == ["Z", "reuse_input", "reuse_output"]
    assert (machine.instances("LB"), machine.instances("Scalar"), machine.instances("MAC")) == (4, 4, 4 * 128 * 128)
    glb = machine.memory("GLB")
    assert (glb.size, glb.read_energy, glb.write_energy, glb.ports) == (2**30, 1.88e-12, 2.36e-12, "separate")
    assert (glb.read_throughput, glb.write_throughput) == (2048e9 * 8, 1024e9 * 8)
    assert machine.unit("Scalar").throughput == pytest.approx(128 * 1.05e9, rel=1e-15)
    assert machine.unit("MAC").throughput == 1.05e9
    reg = machine.memory("Reg")
    assert reg.size == reg.bits(GPT3, "V", "WV")  # exactly one weight value, whatever its width


def held(machine: Machine, einsum: str) -> list[set[str]]:
    """What each memory must hold when intermediates are not held in DRAM."""
    above: set[str] = set()
    found = []
    for memory in machine.memories:
        found.append(set(machine.must_hold(memory, GPT3, einsum, above)))
        above |= found[-1]
    return found


def test_tpu_v4i_constraints() -> None:
    machine = load_machine("tpu-v4i")
    assert held(machine, "V") == [{"WV"}, {"I", "V"}, {"I", "V"}, {"WV"}]
    assert held(machine, "I") == [{"I_in"}, {"I"}, set(), set()]
    assert held(machine, "QK") == [set(), {"Q", "K", "QK"}, {"Q", "QK"}, {"K"}]
    assert held(machine, "FFB") == [{"WFFB", "FFB"}, {"FFA"}, {"FFA", "FFB"}, {"WFFB"}]
    assert not select(machine.memory("LB").backs, GPT3, "V")
    assert [unit.name for unit in machine.units_for(GPT3.einsum("QK_softmax"))] == ["Scalar"]
    assert [unit.name for unit in machine.units_for(GPT3.einsum("QK"))] == ["MAC"]
    assert machine.units_for(GPT3.einsum("I")) == ()


def test_tpu_v4i_free_drops_two_constraints_and_nothing_else() -> None:
    tied, free = load_machine("tpu-v4i"), load_machine("tpu-v4i-free")
    changed = [(a.name) for a, b in zip(tied.levels, free.levels, strict=True) if a != b]
    assert changed == ["GLB", "LB"]
    assert held(free, "V") == [{"WV"}, set(), {"I", "V"}, {"WV"}]
    assert select(free.memory("LB").backs, GPT3, "V") == {"I", "V", "WV"}


def test_simple_takes_parameters() -> None:
    machine = load_machine("simple:dram_energy=100,glb_bits=8388608,glb_throughput=8")
    glb = machine.memory("GLB")
    assert machine.memory("DRAM").read_energy == 100 and glb.size == 8388608
    assert (glb.read_throughput, glb.write_throughput, glb.read_energy) == (8, 8, 1)
    assert load_machine("simple:glb_bits=2**20").memory("GLB").size == 2**20
    assert load_machine("simple").memory("GLB").size is None
    assert (machine.unit("MAC").energy, machine.unit("MAC").throughput) == (1, 1)


def test_two_level_nvdla_and_edge() -> None:
    assert load_machine("two-level").memory("GLB").size == 10**15
    assert load_machine("two-level").unit("MAC").throughput is None
    assert load_machine("nvdla").instances("MAC") == 32 * 192
    edge = load_machine("ffm-edge")
    assert 2 * edge.instances("MAC") * (edge.unit("MAC").throughput or 0) == pytest.approx(33e12, rel=0.01)
    assert {fact.path for fact in edge.facts if fact.kind == "assumed"} >= {"Reg.size", "MAC.energy", "Vector.energy"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpu-v4", "did you mean 'tpu-v4i'"),
        ("simple:dram_enregy=3", "did you mean 'dram_energy'"),
        ("simple:dram_energy=-3", "may not be negative"),
        ("simple:dram_energy=unlimited", "not a finite number"),
        ("simple:dram_energy=x", "unknown name 'x'"),
        ("simple:dram_energy=__import__('os')", "is not arithmetic"),
        ("simple:glb_bits=0", "greater than zero"),
        ("simple:glb_throughput=-8", "greater than zero"),
        ("two-level:glb_bits=1.5", "not a whole number"),
        ("nvdla:x=3", "it has none"),
        ("none.yaml", "cannot read the file"),
        ("/tmp", "cannot read the file"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_machine(text)
    assert message in str(caught.value)


def test_files_load_too(tmp_path: Path) -> None:
    machine = load_machine("nvdla")
    write_machine(machine, tmp_path / "mine.yaml")
    assert load_machine(str(tmp_path / "mine.yaml")) == machine

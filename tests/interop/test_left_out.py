"""What other tools have no word for is named when a problem is exported, and what is no mapping is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import run
from einloom.interop import tileflow
from einloom.machine.files import parse_machine

MACHINE = """schema: machine/1
name: my chip
partial_sums: once
startup: 1 us
levels:
  - {memory: DRAM, read_energy: 64 pJ, write_energy: 64 pJ, bits_per_access: 8, read_throughput: 8 Gbit/s,
     write_throughput: 8 Gbit/s, ports: separate}
  - {memory: GLB, size: 4 KiB, read_energy: 2 pJ, write_energy: 2 pJ, bits_per_access: 8, must: input,
     double_buffer: true, read_throughput: 64 Gbit/s, write_throughput: 64 Gbit/s, ports: separate}
  - {compute: MAC, energy: 0.5 pJ, throughput: 1 Gop/s, leakage: 1 mW}
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "machine.yaml").write_text(MACHINE)
    return tmp_path / "machine.yaml"


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("timeloop", ()),
        ("zigzag", ("MAC: leakage is left out",)),
        ("tileflow", ("GLB: double_buffer, must are left out",)),
    ],
)
def test_what_has_no_word_is_named(tool: str, said: tuple[str, ...], machine: Path, tmp_path: Path) -> None:
    code, told = run(
        "export", tool, "matmul:m=16,n=16,k=16,bits=8", machine, "-o", tmp_path / "out", "--clock", "1 GHz"
    )
    assert code == 0
    for words in (*said, "my chip: partial_sums: once is left out", "my chip: startup is left out"):
        assert words in " ".join(told.split()), told


def test_what_tileflow_reads_has_words_of_some_bits(machine: Path, tmp_path: Path) -> None:
    """Energies of picojoules were words of no bits, and the name of the chip one that its reader refuses."""
    out = tmp_path / "out"
    assert run("export", "tileflow", "matmul:m=16,n=16,k=16,bits=8", machine, "-o", out, "--clock", "1 GHz")[0] == 0
    assert "word-bits: 0" not in (out / "arch.yaml").read_text()
    found = tileflow.read([str(out / name) for name in ("arch.yaml", "prob.yaml")], {}, 1e9)
    assert found.machine is not None and found.machine.name == "my_chip"
    assert found.machine.memory("GLB").size == parse_machine(MACHINE).memory("GLB").size


@pytest.mark.parametrize("tool", ["timeloop", "tileflow"])
def test_a_mapping_that_does_not_fit_is_refused(tool: str, machine: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    small = tmp_path / "small.yaml"
    small.write_text(MACHINE.replace("4 KiB", "8 B"))
    workload = "matmul:m=16,n=16,k=16,bits=8"
    assert run("map", workload, machine, "--json", saved)[0] == 0
    words = ["export", tool, workload, small, saved, "-o", tmp_path / "out", "--clock", "1 GHz"]
    code, told = run(*words)
    assert code == 1 and "GLB" in told and "bits" in told and not (tmp_path / "out").exists()

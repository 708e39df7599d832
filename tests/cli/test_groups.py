"""Groups of Einsums from the command line, in an empty folder: found, verified, shown, reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from einloom.cli import main

ATTENTION = """\
schema: workload/1
name: attention
einsums:
  - QK[m,p] = Q[m,e] * K[p,e]
  - SM[m,p] = exp(QK[m,p])
  - AV[m,f] = SM[m,p] * V[p,f]
ranks: {m: 16, p: 16, e: 4, f: 4}
bits: {default: 8}
"""
MACHINE = """\
schema: machine/1
name: two-units
levels:
  - {memory: DRAM, read_energy: 10, write_energy: 10, read_throughput: 64, write_throughput: 64}
  - {memory: GLB, size: 4 * KiB, read_energy: 1, write_energy: 1}
  - {compute: V, throughput: 1, kinds: [map]}
  - {compute: MAC, throughput: 4, kinds: [multiply]}
"""
SPACE = "schema: mapspace/1\nspace: ffm\nconcurrent: any\n"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("attention", ATTENTION), ("machine", MACHINE), ("space", SPACE)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("objective", ["latency", "edp"])
def test_a_small_attention(folder: Path, objective: str) -> None:
    given = ("map", "attention.yaml", "machine.yaml", "--objective", objective, "--json")
    run(*given, "alone.json")
    printed = run(*given, "groups.json", "--mapspace", "space.yaml")
    assert "split pipelined @ unit:" in printed
    assert "groups of at most 4" in printed
    alone, found = (json.loads((folder / f"{n}.json").read_text(encoding="utf-8")) for n in ("alone", "groups"))
    assert found["certificate"]["guarantee"] == "optimal"
    assert found[objective] == found["certificate"]["bound"] < alone[objective]
    assert "verified" in run("verify", "groups.json")
    assert "split pipelined @ unit" in run("show", "groups.json")
    run("report", "groups.json", "-o", "page.html")
    assert "split pipelined @ unit" in (folder / "page.html").read_text(encoding="utf-8")

"""`--order free` from the command line to the verdict: found, saved, verified and priced in its own order."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from einloom.cli import main
from einloom.result import Result

WORKLOAD = """schema: workload/1
name: between
einsums: ["T[m] = exp(A[m])", "V[m] = exp(B[m])", "Z[m] = exp(T[m])"]
ranks: {m: 4}
bits: 8
"""
MACHINE = "simple:glb_bits=16,dram_energy=10"


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_a_free_order_is_found_saved_verified_and_priced(tmp_path: Path) -> None:
    workload, saved, tree = tmp_path / "w.yaml", tmp_path / "r.json", tmp_path / "t.txt"
    workload.write_text(WORKLOAD)
    said = run("map", workload, MACHINE, "--order", "free", "--json", saved, "-o", tree)
    assert "sequential splits in any order of the Einsums that their data allows" in said
    found = Result.read(saved)
    assert found.mapspace.order == "free" and found.mapping.einsums in (("T", "Z", "V"), ("V", "T", "Z"))
    assert "verified" in run("verify", saved)
    assert f"{found.value:.6g} J" in run("evaluate", workload, MACHINE, tree)
    assert "rule 1" in run("map", workload, MACHINE, "--start", tree, code=2)


def test_an_unknown_order_is_refused(tmp_path: Path) -> None:
    workload, space = tmp_path / "w.yaml", tmp_path / "s.yaml"
    workload.write_text(WORKLOAD)
    assert "'program', 'free'" in run("map", workload, MACHINE, "--order", "fre", code=2)
    space.write_text("schema: mapspace/1\norder: any\n")
    assert "s.yaml:2" in run("map", workload, MACHINE, "--mapspace", space, code=2)

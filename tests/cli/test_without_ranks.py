"""Workloads without rank variables, or with constants in their place: the verbs price, execute and draw them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from einloom.cli import main

MACHINE = """
schema: machine/1
name: m
levels:
  - {memory: D, read_energy: 5, write_energy: 5, read_throughput: 1, write_throughput: 1}
  - {compute: MAC, throughput: 1, energy: 1}
"""
HEAD = "schema: workload/1\nname: w\nbits: 8\n"
WORKLOADS = {  # with the least energy
    "a sum": ('ranks: {k: 2}\neinsums: ["S[] = X[k]", "Y[] = sqrt(S[])"]\n', 283),
    "no ranks": ('einsums: ["Y[] = sqrt(S[])"]\n', 81),
    "a constant": ('ranks: {m: 2}\neinsums: ["Z[m] = A[m,0] * B[m]"]\n', 242),
    "a square": ('ranks: {m: 2}\neinsums: ["Z[m] = A[m] * A[m]"]\n', 162),
    "one row": ('ranks: {m: 2, n: 2}\neinsums: ["T[m] = relu(X[m])", "Y[n] = T[0] * W[n]"]\n', 404),
}
FIGURES = ("energy", "traffic", "latency", "roofline", "looptree", "occupancy", "cascade", "search", "pareto")


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_verbs_work(name: str, tmp_path: Path) -> None:
    text, energy = WORKLOADS[name]
    workload, machine, mapping, saved = (tmp_path / end for end in ("w.yaml", "m.yaml", "t.txt", "r.json"))
    workload.write_text(HEAD + text)
    machine.write_text(MACHINE)
    run("map", workload, machine, "--method", "exhaustive", "--json", saved, "-o", mapping)
    assert f"{energy} J" in run("evaluate", workload, machine, mapping)
    assert "counts agree" in run("simulate", workload, machine, mapping)
    assert f"{energy} J" in run("show", saved)
    run("report", saved, "-o", tmp_path / "r.html")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name != "no ranks" else ()) for name in WORKLOADS]
)
def test_every_figure_is_drawn(name: str, tmp_path: Path) -> None:
    workload, machine, saved = (tmp_path / end for end in ("w.yaml", "m.yaml", "r.json"))
    workload.write_text(HEAD + WORKLOADS[name][0])
    machine.write_text(MACHINE)
    run("map", workload, machine, "--method", "exhaustive", "--json", saved)
    for kind in FIGURES:
        run("figure", kind, saved, "-o", tmp_path / f"{kind}.svg")
        assert (tmp_path / f"{kind}.svg").stat().st_size > 0


def test_what_tileflow_cannot_say_is_refused(tmp_path: Path) -> None:
    workload, machine, mapping = (tmp_path / end for end in ("w.yaml", "m.yaml", "t.txt"))
    workload.write_text(HEAD + WORKLOADS["no ranks"][0])
    machine.write_text(MACHINE)
    mapping.write_text("store D: S Y\ncompute Y @ MAC\n")
    out = tmp_path / "out"
    assert "Y has no rank variable" in run("export", "tileflow", workload, machine, mapping, "-o", out, code=2)

"""Cells of the table of dataflows, asked for as a user does: two dataflows together, every axis in full use."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main

TABLE = Path(__file__).resolve().parents[2] / "bench" / "results" / "dataflows.csv"
CLOCK = 1.2e9  # of both machines, in cycles per second


def printed(workload: str, machine: str, dataflow: str) -> float:
    """Cycles of a cell of the table."""
    with TABLE.open(newline="", encoding="utf-8") as stream:
        asked = (workload, machine, dataflow, "latency")
        rows = [row for row in csv.DictReader(stream) if tuple(row[name] for name in list(row)[:4]) == asked]
    return float(rows[-1]["cycles"])


@pytest.mark.parametrize(
    ("workload", "machine", "dataflow", "common"),
    [
        ("tileflow-vit-16-b", "tileflow-edge", "flat-h", "spread-attention"),
        ("tileflow-cc5", "tileflow-edge", "tileflow-convolution", "spread-convolution"),
    ],
)
def test_both_limits_hold_at_once(workload: str, machine: str, dataflow: str, common: str) -> None:
    found = el.map(workload, machine, "latency", dataflow=(dataflow, common), full_use=True)
    assert found.certificate is not None
    assert found.certificate.gap == 0
    assert found.cost.latency * CLOCK == pytest.approx(printed(workload, machine, dataflow))
    assert {axis.use for axis in found.machine.axes.values()} == {"full"}


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    asked = ["tileflow-vit-16-b", "tileflow-edge", "--objective", "latency", "--full-use"]
    both = ["--dataflow", "flat-h", "--dataflow", "spread-attention"]
    done = CliRunner().invoke(main, ["map", *asked, *both, "--json", str(tmp_path / "r.json")])
    assert done.exit_code == 0, done.output
    value = json.loads((tmp_path / "r.json").read_text())["certificate"]["value"]
    assert value * CLOCK == pytest.approx(printed("tileflow-vit-16-b", "tileflow-edge", "flat-h"))


def test_dataflows_of_two_families_do_not_fit_together() -> None:
    with pytest.raises(el.SpecError, match="no convolution-chain"):
        el.map("tileflow-vit-16-b", "tileflow-edge", dataflow=("flat-h", "spread-convolution"))

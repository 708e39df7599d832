"""A softmax in one Einsum: a result says where its mapping keeps no whole rows on chip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main
from einloom.machine.files import parse_machine
from einloom.mapping.text import parse_mapping
from einloom.problem.whole_rows import cut_rows, normalized
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload

QK, SOFTMAX, AV = "QK[m,p] = Q[m,e] * K[p,e]", "S[m,p] = softmax(QK[m,p])", "AV[m,f] = S[m,p] * V[p,f]"
EXTENTS = {"m": 8, "p": 8, "e": 4, "f": 4}
MACHINE = """\
schema: machine/1
name: tiny
levels:
  - {memory: DRAM, read_energy: 8 pJ, write_energy: 8 pJ, must: ~intermediate}
  - {memory: SRAM, size: 20 B, read_energy: 1 pJ, write_energy: 1 pJ, must: intermediate}
  - {compute: MAC, throughput: 1 GHz, energy: 0.1 pJ}
"""
WHOLE = "schema: mapspace/1\nloops: [{tensors: QK | S, variables: [p], trips: 1}]\n"
TREE = """\
store DRAM: Q K V AV
{above}
store SRAM: QK S
split sequential:
  - for e in 4
    {within}
    compute QK @ MAC
  - {within}
    compute S @ MAC
  - for f in 4
    {within}
    compute AV @ MAC
"""


def attention(softmax: str = SOFTMAX, *more: str) -> Workload:
    return build_workload("attention", [QK, softmax, *(more or (AV,))], EXTENTS, bits=8)


def test_the_best_mapping_cuts_rows_and_says_so_unless_they_are_kept_whole(tmp_path: Path) -> None:
    machine = parse_machine(MACHINE)
    (tmp_path / "rows.yaml").write_text(WHOLE)
    cut = el.map(attention(), machine)
    assert len(cut.notes) == 1 and cut.notes[0].startswith("softmax S is cut along the rank that it normalizes over")
    assert json.loads(cut.to_json())["notes"] == list(cut.notes)
    assert el.map(attention(), machine, mapspace=tmp_path / "rows.yaml").notes == ()
    cut.write(tmp_path / "cut.json")
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "cut.json")], catch_exceptions=False)
    assert cut.notes[0] in " ".join(shown.output.split())


@pytest.mark.parametrize(
    ("above", "within", "noted"),
    [
        ("for m in 8\nfor p in 8", "for p in 1", True),
        ("for m in 8", "for p in 8", False),  # below the tile, which has whole rows
        ("for m in 8\nfor p in 1", "for p in 8", False),
    ],
)
def test_loops_above_the_tile_of_scores_cut_rows(above: str, within: str, noted: bool) -> None:
    workload, machine = attention(), parse_machine(MACHINE.replace("20 B", "1 KiB"))
    mapping = parse_mapping(TREE.format(above=above, within=within), workload, machine)
    assert bool(cut_rows(workload, machine, mapping)) == noted


def test_other_functions_may_be_cut() -> None:
    result = el.map(attention("S[m,p] = exp(QK[m,p])"), parse_machine(MACHINE))
    assert result.notes == ()


def test_a_row_runs_along_what_a_reader_sums_over_and_else_along_the_last_rank() -> None:
    workload = attention("S[p,m] = softmax(QK[m,p])", "AV[m,f] = S[p,m] * V[p,f]")
    assert normalized(workload, workload.einsum("S")) == {"p"}
    unread = build_workload("scores", [QK, SOFTMAX], {"m": 8, "p": 8, "e": 4}, bits=8)
    assert normalized(unread, unread.einsum("S")) == {"p"}

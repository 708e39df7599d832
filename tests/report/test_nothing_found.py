"""A search that finds nothing saves why, and every verb that reads results says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands import run
from einloom import Result, SpecError
from einloom.cli import main
from einloom.report.text import results as text
from einloom.report.text.limits import limits
from einloom.report.text.table import WIDTH
from einloom.result.unmapped import Unmapped, parse_answer, read_answer

FORCED = """\
schema: machine/1
name: forced
levels:
- memory: DRAM
  read_energy: 2 pJ
  write_energy: 2 pJ
  must: ~intermediate
  may: ~intermediate
- memory: GLB
  size: 64
- compute: MAC
  throughput: 1 GHz
"""
SHOWN = """\
matmuls on small buffer, fusion forced
  answer      infeasible: no mapping of the space is legal
  reason      Einsum E0 has no mapping on its own: GLB holds 32768 bits and what must stay there is
              larger
  space       ffm: perfect tiles, one loop per rank variable between two stores and among fused
              loops, sequential splits in program order, stores in the order of the machine's
              memories, no recomputation, at most 0 fused loops
  objective   energy
  searched    method 'exact', 0.208 s
  more        `einloom explain` finds the smallest set of limits to blame, and what would help

what the memories can and must hold
  memory       size  of these  must hold       may hold        largest of them
  ------  ---------  --------  --------------  --------------  ---------------
  DRAM    unlimited         1  T0 W0 W1 W2 T3  -               T0 8 KiB
  GLB         4 KiB         1  T1 T2           T0 W0 W1 W2 T3  T1 8 KiB
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The file that a fruitless search wrote."""
    machine, path = tmp_path / "forced.yaml", tmp_path / "r.json"
    machine.write_text(FORCED, encoding="utf-8")
    code, output = run("map", "matmuls:n=2,m=8,kn=8", machine, "--max-fused-loops", "0", "--json", path)
    assert code == 1 and "no mapping of the space is legal" in output
    return path


def test_a_fruitless_search_saves_why(saved: Path, tmp_path: Path) -> None:
    found = read_answer(saved)
    assert isinstance(found, Unmapped)
    assert (found.status, found.method, found.bound) == ("infeasible", "exact", None)
    assert "but GLB holds 64" in found.reason
    assert found.recorded_digest == found.found_digest
    assert parse_answer(found.to_json()) == found
    code, shown = run("show", saved)
    assert code == 0 and found.reason[:60] in " ".join(shown.split())
    assert run("report", saved, "-o", tmp_path / "r.html")[0] == 0
    assert "but GLB holds 64" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_budget_that_ends_too_early_is_not_a_proof(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    code, output = run(
        "map",
        "matmul:m=4,n=4,k=4",
        "two-level:glb_bits=32",
        "--method",
        "exhaustive",
        "--budget-memory",
        "1 B",
        "--json",
        path,
    )
    assert code == 1 and "budget" in output
    found = read_answer(path)
    assert isinstance(found, Unmapped) and found.status == "unfinished"
    assert "unfinished" in text.nothing(found)


def test_json_on_standard_output(tmp_path: Path) -> None:
    machine = tmp_path / "forced.yaml"
    machine.write_text(FORCED, encoding="utf-8")
    runner = CliRunner()
    arguments = ["map", "matmuls:n=2,m=8,kn=8", str(machine), "--max-fused-loops", "0", "--json", "-"]
    answered = runner.invoke(main, arguments)
    assert answered.exit_code == 1
    assert json.loads(answered.stdout)["status"] == "infeasible"


@pytest.mark.parametrize("verb", ["evaluate", "verify", "simulate"])
def test_verbs_that_need_a_mapping_say_that_there_is_none(saved: Path, verb: str) -> None:
    code, output = run(verb, saved)
    assert code == 2
    assert "holds no mapping" in output and "but GLB holds 64" in output


def test_shown_as_text(infeasible: Unmapped) -> None:
    assert text.nothing(infeasible) == SHOWN
    assert max(map(len, SHOWN.splitlines())) <= WIDTH


def test_what_can_and_must_be_held(infeasible: Unmapped) -> None:
    outer, inner = limits(infeasible.problem)
    assert set(outer.must) == set(infeasible.workload.inputs) | set(infeasible.workload.outputs)
    assert set(outer.may) == set()
    assert set(inner.must) == {"T1", "T2"}  # nothing else may hold them
    assert set(inner.may) == set(outer.must)
    assert inner.size == 4 * 1024 * 8


def test_the_page_says_why(infeasible: Unmapped, pages: Callable[[str], Path]) -> None:
    page = pages("infeasible").read_text(encoding="utf-8")
    assert "no mapping of the space is legal" in page
    assert "its digest does not match" not in page
    for tensor in infeasible.workload.tensors:
        assert f">{tensor.name}</span>" in page


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("status", "fine", "infeasible, unfinished"),
        ("reason", 3, "reason"),
        ("counts", {"seen": -1}, "may not be negative"),
        ("trace", [{}], "seconds"),
        ("surplus", 1, "unknown key 'surplus'"),
    ],
)
def test_what_is_wrong_is_refused(infeasible: Unmapped, key: str, value: object, said: str) -> None:
    data = {**infeasible.to_data(), key: value}
    with pytest.raises(SpecError, match=said):
        parse_answer(json.dumps(data), "r.json")


def test_an_edited_reason_is_noticed(infeasible: Unmapped) -> None:
    data = {**infeasible.to_data(), "reason": "no reason"}
    found = parse_answer(json.dumps(data))
    assert found.recorded_digest != found.found_digest


def test_a_result_is_no_place_for_it(infeasible: Unmapped) -> None:
    with pytest.raises(SpecError, match="holds no mapping"):
        Result.from_json(infeasible.to_json())

"""What explain says of dataflows that rewrite: the best number of tiles is explained, and the runs say that they keep
it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main
from einloom.diagnose import Explanation, explain_result, parse_explanation
from einloom.report.page import any_page
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload

MACHINE = "two-level:glb_bits={}"
FLOW = {"dataflow": "flash-attention"}
ROOM = 160


@pytest.fixture(scope="module")
def attention() -> Workload:
    texts = ("A[m,l] = Q[m,k] * K[l,k]", "S[m,l] = softmax(A[m,l])", "Z[m,n] = S[m,l] * V[l,n]")
    return build_workload("attention", texts, {"m": 2, "l": 4, "k": 2, "n": 2}, bits={"default": 8})


@pytest.fixture(scope="module")
def best(attention: Workload) -> el.Result:
    return el.map(attention, MACHINE.format(ROOM), "traffic:DRAM", **FLOW)


@pytest.fixture(scope="module")
def found(best: el.Result) -> Explanation:
    return explain_result(best)


def test_the_runs_say_that_they_keep_the_number_of_tiles(best: el.Result, found: Explanation, tmp_path: Path) -> None:
    assert best.certificate is not None and len(best.certificate.alternatives) == 3
    (kept,) = (one.label for one in best.certificate.alternatives if one.value == best.value)
    text = " ".join(str(found).split())
    assert found.held == kept
    assert f"what follows holds with {kept}; it was not asked with other numbers of tiles" in text
    assert f"what more would bring with {kept} " in text and f"why not with {kept}:" in text
    best.write(tmp_path / "best.json")
    explain_result(el.Result.read(tmp_path / "best.json")).write(str(tmp_path / "why.json"))
    back = parse_explanation((tmp_path / "why.json").read_text())
    assert back.held == kept and str(back).splitlines()[:4] == str(found).splitlines()[:4]
    page = any_page(el.Result.read(tmp_path / "best.json"), back)
    assert f"What more would bring with {kept}" in page and "not asked with other numbers of tiles" in page


def test_a_workload_and_a_dataflow_are_mapped_first(attention: Workload, best: el.Result) -> None:
    found = el.explain(attention, MACHINE.format(ROOM), "traffic:DRAM", quick=True, **FLOW)
    assert (found.value, found.held, found.complete) == (best.value, explain_result(best, quick=True).held, True)
    assert found.base == 1 and found.run(1).question == "optimum over all numbers of tiles"
    assert found.reason.endswith(", optimal")


def test_a_dataflow_with_one_number_holds_none(attention: Workload) -> None:
    one = el.rewrite(attention, "online_softmax", tiles=2)
    found = el.explain(one, MACHINE.format(ROOM), "traffic:DRAM", quick=True, **FLOW)
    assert found.held is None and "numbers of tiles" not in str(found)


def test_no_number_of_tiles_has_a_mapping(attention: Workload) -> None:
    found = el.explain(attention, MACHINE.format(20), "traffic:DRAM", quick=True, **FLOW)
    assert found.status == "infeasible" and found.held is not None
    assert found.reason.startswith(f"with {found.held}, as with the others: ")
    assert found.runs[0].outcome == "infeasible"


def test_a_budget_that_ends_at_once_is_said(attention: Workload) -> None:
    found = el.explain(attention, MACHINE.format(ROOM), "traffic:DRAM", seconds=1e-6, **FLOW)
    assert not found.complete and found.left is not None and "budget of seconds" in found.left


def test_the_command_line_maps_first(tmp_path: Path, attention: Workload) -> None:
    from einloom.workload.files import workload_text

    (tmp_path / "w.yaml").write_text(workload_text(attention))
    asked = ["explain", str(tmp_path / "w.yaml"), MACHINE.format(ROOM), "--objective", "traffic:DRAM", "--quick"]
    done = CliRunner().invoke(main, [*asked, "--dataflow", "flash-attention"])
    assert done.exit_code == 0 and "optimal" in done.output


@pytest.mark.parametrize("limits", [{"space": "ragged"}, {"order": "free"}, {"stores": "shared"}])
def test_explain_takes_the_spaces_of_map(limits: dict[str, str]) -> None:
    asked = el.explain("matmul:m=4,n=6,k=5", "simple:glb_bits=100", "energy", quick=True, **limits).problem.mapspace  # type: ignore[arg-type]
    (name, value) = next(iter(limits.items()))
    assert {"space": asked.name, "order": asked.order, "stores": asked.stores}[name] == value

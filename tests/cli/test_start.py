"""`einloom map --start`: what is known already is taken up, and what cannot be is refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import einloom as el
from commands import run
from einloom.certify.verify import verify
from einloom.workload.build import build_workload

CHAIN = ("matmuls:n=3,m=8,kn=8", "simple:glb_bits=256,dram_energy=50", "--objective", "edp")


def solved(*arguments: str | Path) -> dict[str, Any]:
    code, output = run("map", *arguments, "--json", "-")
    assert code == 0, output
    found: dict[str, Any] = json.loads(output)
    return found


@pytest.fixture
def unfused(tmp_path: Path) -> Path:
    path = tmp_path / "unfused.json"
    text = tmp_path / "unfused.txt"
    code, output = run("map", *CHAIN, "--max-fused-loops", "0", "--json", path, "-o", text)
    assert code == 0, output
    return path


def test_a_mapping_or_a_result_is_taken_up(unfused: Path) -> None:
    best = solved(*CHAIN)["edp"]
    assert best < json.loads(unfused.read_text(encoding="utf-8"))["edp"]
    for starts in ((unfused,), (unfused.with_suffix(".txt"),), (unfused, unfused.with_suffix(".txt"))):
        found = solved(*CHAIN, *(word for start in starts for word in ("--start", start)))
        assert found["edp"] == pytest.approx(best, rel=1e-9) and found["certificate"]["guarantee"] == "optimal"


def test_a_search_that_was_stopped_goes_on(unfused: Path, tmp_path: Path) -> None:
    stopped = tmp_path / "stopped.json"
    code, output = run("map", *CHAIN, "--start", unfused, "--budget-steps", "1", "--json", stopped)
    assert code == 0, output
    data = json.loads(stopped.read_text(encoding="utf-8"))
    assert data["certificate"]["guarantee"] == "bounded" and "verified" in run("verify", "--quick", stopped)[1]
    assert data["edp"] <= json.loads(unfused.read_text(encoding="utf-8"))["edp"]
    assert solved(*CHAIN, "--start", stopped)["edp"] == pytest.approx(solved(*CHAIN)["edp"], rel=1e-9)


def test_python_takes_objects_and_texts(unfused: Path) -> None:
    known = el.Result.read(unfused)
    best = el.map(*CHAIN[:2], "edp").value
    for start in (known, known.mapping, known.mapping_text, str(unfused), [known, known.mapping]):
        assert el.map(*CHAIN[:2], "edp", start=start).value == pytest.approx(best, rel=1e-9)
    front = el.map(*CHAIN[:2], "pareto")
    assert len(front.front) > 0
    assert el.map(*CHAIN[:2], "energy", start=front).value == pytest.approx(el.map(*CHAIN[:2]).value, rel=1e-9)


def test_a_start_of_a_rewritten_workload(tmp_path: Path) -> None:
    """Its text is read for each number of tiles, and taken for the one that it fits."""
    einsums = [
        *("A[h,m,l] = Q[h,m,k] * K[h,k,l]", "B[h,m] = max[l] A[h,m,l]", "C[h,m,l] = sub(A[h,m,l], B[h,m])"),
        *("D[h,m,l] = exp(C[h,m,l])", "E[h,m] = D[h,m,l]", "F[h,m,l] = div(D[h,m,l], E[h,m])"),
        "G[h,m,n] = F[h,m,l] * V[h,l,n]",
    ]
    rows = build_workload("rows", einsums, {"h": 1, "m": 4, "l": 8, "k": 2, "n": 2}, bits=8)
    asked = rows, el.load_machine("simple:glb_bits=240,dram_energy=100"), "traffic:DRAM"
    best = el.map(*asked, dataflow="flash-attention")
    text = tmp_path / "tiles.txt"
    text.write_text(best.mapping_text, encoding="utf-8")
    stopped = el.map(*asked, dataflow="flash-attention", start=str(text), seconds=1e-6)
    assert stopped.value == best.value == 608 and stopped.workload == best.workload
    assert stopped.certificate is not None and stopped.certificate.guarantee is el.Guarantee.BOUNDED
    assert verify(stopped, quick=True).ok


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read the file"),
        ("", "the mapping is empty"),
        ("{", "not JSON"),
        ("{}", "schema"),
        ("store DRAM: T0\ncompute E0 @ MAC\n", "start.txt: a search cannot start from this mapping: it is no mapping"),
        ("store DRAN: T0\n", "start.txt:1:7: "),
        ("\x00\x01", "start.txt"),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "start.txt"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    code, output = run("map", *CHAIN, "--start", path)
    assert code == 2 and says in output, output


def test_what_does_not_fit_is_refused(unfused: Path, tmp_path: Path) -> None:
    free, nothing = tmp_path / "free.json", tmp_path / "nothing.json"
    assert run("map", *CHAIN, "--json", free)[0] == 0
    workload, machine = CHAIN[:2]
    code, output = run("map", *CHAIN, "--max-fused-loops", "0", "--start", free)
    assert code == 2 and "free.json: a search cannot start from this mapping: it is outside the space" in output
    code, output = run("map", "matmuls:n=3,m=16,kn=8", machine, "--start", unfused)
    assert code == 2 and "it is illegal: E0: m still has extent 2" in output
    code, output = run("map", workload, "simple:glb_bits=16,dram_energy=50", "--start", free)
    assert code == 2 and "it is illegal" in output and "GLB" in output
    code, output = run("map", "matmuls:n=2,m=8,kn=8", machine, "--start", unfused)
    assert code == 2 and "it is no mapping of matmuls: it has E2" in output
    code, output = run("map", *CHAIN, "--start", unfused, "--method", "exhaustive")
    assert code == 2 and "'exhaustive' cannot start from a known mapping; did you mean 'exact'?" in output
    unable = ("--method", "exhaustive", "--budget-memory", "1 B")
    assert run("map", "matmul:m=4,n=4,k=4", "two-level:glb_bits=32", *unable, "--json", nothing)[0] == 1
    code, output = run("map", workload, machine, "--start", nothing)
    assert code == 2 and "nothing.json: that search found no mapping, so none can start from it" in output

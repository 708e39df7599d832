"""Sweeps over capacities: saved as they go, taken up again, never worse with more room or with fusion."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import einloom as el
from commands import run
from einloom.questions import problem
from einloom.result.sweep import CapacityPoint, read_sweep
from einloom.result.unmapped import Unmapped
from einloom.sweep import sweep_capacity
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.files import workload_text

SIZES = [2**power * 8 for power in (5, 6, 7, 8, 9, 10, 11)]
KIB = "1024 bit, 2 KiB, 4 KiB"


def asked() -> el.Problem:
    return problem("matmuls:n=2,m=16,kn=16", "two-level", "traffic:DRAM", 1)


def values(points: tuple[CapacityPoint, ...]) -> list[float]:
    return [point.answer.value for point in points if isinstance(point.answer, el.Result)]


def test_more_room_never_costs_more_and_fusion_never_loses(tmp_path: Path) -> None:
    fused = sweep_capacity(asked(), "GLB", SIZES, tmp_path)
    unfused = sweep_capacity(asked(), "GLB", SIZES, tmp_path, fused=False)
    for swept in (fused, unfused):
        found = values(swept.points)
        assert [point.capacity for point in swept.points] == SIZES and len(found) == len(SIZES)
        assert found == sorted(found, reverse=True)
    assert all(one <= other for one, other in zip(values(fused.points), values(unfused.points), strict=True))
    assert values(fused.points)[-1] < values(unfused.points)[-1]
    tensors = {t.name: t.size * t.bits for t in asked().workload.tensors}
    assert values(fused.points)[-1] == sum(tensors.values()) - tensors["T1"]
    assert values(unfused.points)[-1] == sum(tensors.values()) + tensors["T1"]
    for point in unfused.points:
        assert isinstance(point.answer, el.Result)
        assert el.verify(point.answer, quick=True).ok


def test_what_is_there_is_not_asked_again(tmp_path: Path) -> None:
    heard: list[tuple[int, bool]] = []

    def hear(point: CapacityPoint, kept: bool) -> None:
        heard.append((point.capacity, kept))

    sweep_capacity(asked(), "GLB", SIZES[3:5], tmp_path, on_point=hear)
    path = tmp_path / "fused" / f"{SIZES[3]}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**data, "seconds": 99.0}), encoding="utf-8")  # edited: its digest is wrong
    sweep_capacity(asked(), "GLB", SIZES[3:6], tmp_path, on_point=hear)
    assert sorted(heard[:2]) == [(SIZES[3], False), (SIZES[4], False)]
    assert heard[2] == (SIZES[4], True) and sorted(heard[3:]) == [(SIZES[3], False), (SIZES[5], False)]
    assert [point.capacity for point in read_sweep(tmp_path).points] == SIZES[3:6]
    other = problem("matmuls:n=2,m=8,kn=16", "two-level", "traffic:DRAM", 1)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.json")}
    with pytest.raises(el.SpecError, match="for 2,048, 4,096, 8,192 bits are to another question; choose another"):
        sweep_capacity(other, "GLB", SIZES[4:5], tmp_path, on_point=hear)
    (tmp_path / "fused.json").unlink()
    with pytest.raises(el.SpecError, match="for 4,096 bits are to another question"):
        sweep_capacity(other, "GLB", [*SIZES[4:5], SIZES[0]], tmp_path, on_point=hear)
    (tmp_path / "fused.json").write_bytes(before[tmp_path / "fused.json"])
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.json")} == before and len(heard) == 5


@pytest.fixture(scope="module")
def attention() -> Workload:
    texts = ("A[m,l] = Q[m,k] * K[l,k]", "S[m,l] = softmax(A[m,l])", "Z[m,n] = S[m,l] * V[l,n]")
    return build_workload("attention", texts, {"m": 2, "l": 4, "k": 2, "n": 2}, bits={"default": 8})


def test_every_capacity_has_its_best_number_of_tiles(attention: Workload, tmp_path: Path) -> None:
    limits: dict[str, Any] = {"dataflow": "flash-attention"}
    done = el.sweep_capacities(attention, "two-level", "GLB", [20, 160, 200], tmp_path / "a", **limits)
    assert done.title == "attention (online softmax, 1 tile) and 2 other numbers of tiles on two-level, fused"
    nothing, *found = (point.answer for point in done.points)
    assert isinstance(nothing, Unmapped) and nothing.status == "infeasible"
    for answer in found:
        assert isinstance(answer, el.Result) and answer.certificate is not None
        size = answer.machine.memories[1].size
        alone = el.map(attention, f"two-level:glb_bits={size}", "traffic:DRAM", **limits)
        assert answer.value == alone.value and len(answer.certificate.alternatives) == 3
    (tmp_path / "w.yaml").write_text(workload_text(attention), encoding="utf-8")
    words = ("sweep", tmp_path / "w.yaml", "two-level", "--memory", "GLB", "--dataflow", "flash-attention")
    code, output = run(*words, "--capacities", "20 bit, 160 bit, 200 bit", "-o", tmp_path / "a")
    assert code == 0 and output.count("(kept)") == 3
    kept = [point.answer for point in read_sweep(tmp_path / "a").points]
    assert [one.value for one in kept if isinstance(one, el.Result)] == values(done.points)
    one = el.rewrite(attention, "online_softmax", tiles=1)
    with pytest.raises(el.SpecError, match="holds another sweep"):
        el.sweep_capacities(one, "two-level", "GLB", [160], tmp_path / "a", **limits)


def test_where_one_number_of_tiles_is_asked_about_the_commands_are_told(attention: Workload, tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(workload_text(attention), encoding="utf-8")
    machine = "simple:glb_throughput=1,glb_bits=200"
    limits = (file, machine, "--dataflow", "flash-attention")
    said = f"`einloom rewrite {file} online_softmax:tiles=2 > one.yaml`, then the same command with one.yaml"
    for words in (
        ("compare", *limits, "--methods", "exact,random"),
        ("map", *limits, "--objective", "pareto"),
        ("sweep", *limits, "--objective", "pareto", "--memory", "GLB", "--capacities", "1 KiB", "-o", tmp_path / "s"),
        ("explain", *limits, "--principles"),
    ):
        code, output = run(*words)
        assert code == 2 and said in " ".join(output.split()), words
    code, rewritten = run("rewrite", file, "online_softmax:tiles=2")
    assert code == 0
    (tmp_path / "one.yaml").write_text(rewritten, encoding="utf-8")
    again = ("map", tmp_path / "one.yaml", *limits[1:], "--objective", "pareto", "--max-fused-loops", "1")
    code, output = run(*again)
    assert code == 0, output


def test_a_sweep_of_pareto_sets_says_what_its_value_is(tmp_path: Path) -> None:
    words = ("sweep", "matmul:m=4,n=4,k=4", "simple:glb_throughput=1", "--memory", "GLB", "--capacities", "256 bit")
    code, output = run(*words, "--objective", "pareto", "-o", tmp_path / "s", "--csv", tmp_path / "s.csv")
    assert code == 0 and "pareto: least EDP" in output
    (row,) = csv.DictReader((tmp_path / "s.csv").read_text(encoding="utf-8").splitlines())
    assert row["objective"] == "pareto: least EDP"
    (point,) = read_sweep(tmp_path / "s").points
    assert isinstance(point.answer, el.Result)
    assert float(row["value"]) == min(one.energy * one.latency for one in point.answer.front)


def test_processes_find_the_same(tmp_path: Path) -> None:
    one = sweep_capacity(asked(), "GLB", SIZES[4:6], tmp_path / "one")
    two = sweep_capacity(asked(), "GLB", SIZES[4:6], tmp_path / "two", jobs=2)
    assert values(one.points) == values(two.points)


def test_capacities_for_which_nothing_is_legal_are_kept_too(tmp_path: Path) -> None:
    machine = tmp_path / "m.yaml"
    machine.write_text(
        "schema: machine/1\nname: forced\nlevels:\n- memory: DRAM\n  must: ~intermediate\n  may: ~intermediate\n"
        "- memory: GLB\n  size: 1 KiB\n- compute: MAC\n",
        encoding="utf-8",
    )
    forced = problem("matmuls:n=2,m=8,kn=8", str(machine), "traffic:DRAM", 0)
    swept = sweep_capacity(forced, "GLB", [64, 4096], tmp_path / "s")
    assert [type(point.answer) for point in swept.points] == [Unmapped, el.Result]
    heard: list[bool] = []
    sweep_capacity(forced, "GLB", [64], tmp_path / "s", on_point=lambda point, kept: heard.append(kept))
    assert heard == [True]


def test_the_verbs(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    for how in ("--fused", "--unfused"):
        code, output = run(
            *("sweep", "matmuls:n=2,m=16,kn=16", "two-level", "--memory", "GLB", "--capacities", KIB),
            *("--max-fused-loops", "1", how, "-o", folder),
        )
        assert code == 0 and "4 KiB" in output and "traffic:DRAM" in output
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'einloom[figures]'")
    target = tmp_path / "ski.svg"
    code, output = run("figure", "ski-slope", folder / "fused.json", folder / "unfused.json", "-o", target)
    assert code == 0, output
    assert "matmuls on two-level, unfused" in target.read_text(encoding="utf-8")
    (axes,) = el.figures.ski_slope(*(read_sweep(folder / f"{name}.json") for name in ("fused", "unfused"))).axes
    wanted = values(read_sweep(folder / "fused.json").points)
    assert [marks.get_offsets()[0][1] for marks in axes.collections[: len(wanted)]] == wanted


def test_python_and_the_verb_sweep_alike_with_limits_of_the_space(tmp_path: Path) -> None:
    table, space = tmp_path / "t.csv", tmp_path / "space.yaml"
    space.write_text("schema: mapspace/1\nfusion: {unfused: T1}\n", encoding="utf-8")
    words = ("sweep", "matmuls:n=2,m=6,kn=4", "two-level", "--memory", "GLB", "--capacities", "128 bit, 1 KiB, 8 bit")
    limits = ("--space", "ragged", "--mapspace", space, "--max-fused-loops", "1")
    code, output = run(*words, *limits, "-o", tmp_path / "a", "--csv", table)
    assert code == 0, output
    swept = el.sweep_capacities(
        *("matmuls:n=2,m=6,kn=4", "two-level", "GLB", [128, "1 KiB", 8], tmp_path / "b"),
        space="ragged",
        mapspace=str(space),
        max_fused_loops=1,
    )
    assert {point.answer.problem.mapspace.name for point in swept.points} == {"ragged"}
    assert all(point.answer.problem.mapspace.limits.backs for point in swept.points)
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [row["capacity"] for row in rows] == ["8", "128", "8192"]
    assert [row["value"] for row in rows] == [str(record["value"] or "") for record in swept.records]
    assert [row["status"] for row in rows] == ["infeasible", "found", "found"]
    assert rows[0]["objective"] == "traffic:DRAM" and rows[0]["gap"] == "" and rows[2]["gap"] == "0.0"
    assert run(*words, *limits, "-o", tmp_path / "a", "--csv", "-")[1].count("\n128,traffic:DRAM,found,") == 1
    with pytest.raises(el.SpecError, match="did you mean 'GLB'"):
        el.sweep_capacities("matmul", "two-level", "GBL", "1 KiB", tmp_path / "c")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--memory", "GBL", "--capacities", "1 KiB"], "did you mean 'GLB'"),
        (["--memory", "GLB", "--capacities", "1 KB"], "1 KB"),
        (["--memory", "GLB", "--capacities", "0 bit"], "at least one bit"),
        (["--memory", "GLB", "--capacities", ","], "at least one bit"),
    ],
)
def test_nonsense(arguments: list[str], said: str, tmp_path: Path) -> None:
    code, output = run("sweep", "matmul", "two-level", *arguments, "-o", tmp_path / "s")
    assert code == 2 and said in output


def test_an_index_leads_nowhere_else(tmp_path: Path) -> None:
    index = {"schema": "sweep/1", "memory": "GLB", "title": "t", "points": [{"capacity": 8, "file": "../x.json"}]}
    for name in ("../x.json", "/etc/passwd", "a/../../x.json"):
        index["points"] = [{"capacity": 8, "file": name}]
        (tmp_path / "i.json").write_text(json.dumps(index), encoding="utf-8")
        with pytest.raises(el.SpecError, match="outside the folder"):
            read_sweep(tmp_path / "i.json")
    code, output = run("figure", "ski-slope", tmp_path / "none.json", "-o", tmp_path / "f.pdf")
    assert code == 2 and "none.json" in output


def test_a_script_without_a_guard_is_told_what_it_lacks(tmp_path: Path) -> None:
    """Every process of the sweep imports the script, which would begin the sweep once more."""
    call = "el.sweep_capacities('matmul:m=4,n=4,k=4', 'simple', 'GLB', '512 bit, 1 KiB', 'swept', jobs=2)"
    script = tmp_path / "script.py"
    script.write_text(f"import einloom as el\nprint(len({call}.points))\n", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 1 and ended.stdout == ""
    said = "einloom.errors.EinloomError: a process of the sweep ended before its work was done"
    lines = ended.stderr.strip().splitlines()  # Python may remark on what ended processes left, behind that
    last = next((line for line in reversed(lines) if line.startswith(said)), ended.stderr)
    assert last.endswith("so put what it does below if __name__ == '__main__':")
    guarded = f"import einloom as el\nif __name__ == '__main__':\n    print(len({call}.points))\n"
    script.write_text(guarded, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "2\n"), ended.stderr


def test_a_proof_is_searched_where_another_method_or_a_budget_left_a_gap(tmp_path: Path) -> None:
    poor = sweep_capacity(asked(), "GLB", SIZES[:2], tmp_path, method="random", seconds=0.05)
    assert not any(point.answer.optimal for point in poor.points if isinstance(point.answer, el.Result))
    done = sweep_capacity(asked(), "GLB", SIZES[:2], tmp_path)
    assert all(isinstance(point.answer, el.Result) and point.answer.optimal for point in done.points)
    kept: list[bool] = []
    sweep_capacity(asked(), "GLB", SIZES[:2], tmp_path, on_point=lambda point, there: kept.append(there))
    sweep_capacity(asked(), "GLB", SIZES[:2], tmp_path, method="random", on_point=lambda _, there: kept.append(there))
    assert kept == [True] * 4


def test_broken_files_of_a_folder_are_made_again(tmp_path: Path) -> None:
    first = sweep_capacity(asked(), "GLB", SIZES[:2], tmp_path)
    for name in ("fused.json", f"fused/{SIZES[0]}.json"):
        for text in ("", "{", "{}"):
            (tmp_path / name).write_text(text)
            with pytest.warns(el.EinloomWarning, match="again"):
                again = sweep_capacity(asked(), "GLB", SIZES[:2], tmp_path)
            assert values(again.points) == values(first.points)
            assert values(read_sweep(tmp_path / "fused.json").points) == values(first.points)


def test_two_calls_in_one_folder_name_all_their_answers(tmp_path: Path) -> None:
    """The second call begins before the first has written anything."""
    begun: list[bool] = []

    def other(point: CapacityPoint, kept: bool) -> None:
        if not begun:
            begun.append(kept)
            sweep_capacity(asked(), "GLB", SIZES[2:4], tmp_path)

    sweep_capacity(asked(), "GLB", SIZES[:2], tmp_path, on_point=other)
    assert [point.capacity for point in read_sweep(tmp_path / "fused.json").points] == SIZES[:4]

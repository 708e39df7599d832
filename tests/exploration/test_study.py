"""Explorations: every machine as `map` answers it alone, resumed, shared out, in processes, and stopped."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import einloom as el
from commands import run
from einloom.errors import EinloomError
from einloom.exploration import study
from einloom.exploration.family import read_family
from einloom.exploration.page import exploration_page
from einloom.exploration.record import ExploredFamily, ExploredMachine, points_of
from einloom.exploration.regions import Region, below, distance, staircase
from einloom.exploration.study import explore_family
from einloom.result import Result
from einloom.result.unmapped import Unmapped
from einloom.sweep import tasks

EDGE = """schema: machine/1
name: edge
parameters: {glb: 8 KiB, bw: 8 GB/s, side: 1}
levels:
  - {memory: DRAM, read_energy: 100 pJ, write_energy: 100 pJ, bits_per_access: 8, read_throughput: bw,
     write_throughput: bw}
  - {memory: GLB, size: glb, read_energy: 4 pJ, write_energy: 5 pJ, bits_per_access: 8, must: all,
     area: 0.01 mm2 * glb / KiB}
  - fanout: array
    axes: [{axis: row, size: side}]
  - {compute: MAC, energy: 0.5 pJ, throughput: 64 Gop/s, leakage: 1 mW, area: 0.02 mm2}
"""
FAMILY = """schema: family/1
machine: edge.yaml
workloads: ["matmuls:n=2,m=16,kn=16"]
parameters:
  glb: [16 bit, 128 B, 256 B, 512 B, 8 KiB]
  bw: [8 GB/s, 32 GB/s]
  side: [1, 4]
objective: edp
max_fused_loops: 1
"""


PROVEN: dict[tuple[object, ...], float | None] = {}
"""What `map` said of each machine that it was asked of."""


@pytest.fixture
def family(tmp_path: Path) -> Path:
    (tmp_path / "edge.yaml").write_text(EDGE)
    (tmp_path / "family.yaml").write_text(FAMILY)
    return tmp_path / "family.yaml"


def alone(known: ExploredMachine, w: int = 0) -> float | None:
    """What `map` proves of a machine; None if it has no mapping."""
    asked = known.member.asked[w][0].problem
    key = known.member.label, asked.workload.name, asked.workload.extents["m"], str(asked.objective)
    if key not in PROVEN:
        try:
            found = el.map(asked.workload, asked.machine, objective=asked.objective, mapspace=asked.mapspace)
        except el.Infeasible:
            PROVEN[key] = None
        else:
            assert found.optimal
            PROVEN[key] = found.value
    return PROVEN[key]


def same(done: ExploredFamily, tolerance: float = 0.0) -> None:
    """Every value is the optimum, up to the tolerance, and every bound below it."""
    for known in done.machines:
        value, found = alone(known), done.value(known)
        if value is None:
            assert not known.legal
        elif known.how == "beaten":
            assert done.bound(known) <= value * (1 + 1e-9)
        else:
            assert found is not None and value * (1 - 1e-9) <= found <= value * (1 + 1e-9) / (1 - tolerance)
            assert done.bound(known) <= value * (1 + 1e-9)


def test_every_machine_is_as_if_it_were_mapped_alone(family: Path, tmp_path: Path) -> None:
    done = el.explore(family, tmp_path / "answers")
    same(done)
    for known in done.front:
        one = known.answers[0]
        assert isinstance(one, Result) and known.reasons[1].split()[0] in ("MAC", "DRAM", "GLB")
        table = {str(name): joules for (name,), joules in one.cost.energy_by("component").items()}
        largest = max(table, key=lambda name: table[name])
        assert known.reasons[0] == f"{largest} {table[largest] / one.energy:.0%}" and known.reasons[0] in str(done)
    counts = done.counts
    assert counts["open"] == 0 and counts["no mapping"] == 4 and counts["neighbour"] > 0
    assert counts["searched"] + counts["neighbour"] + counts["beaten"] + counts["no mapping"] == 20
    assert done.worst_gap is not None and done.worst_gap < 1e-9
    for name in {name for one in done.machines for name in one.files}:
        path = tmp_path / "answers" / name
        if path.exists() and "16bit" not in name:
            assert el.verify(str(path), quick=True).ok
            assert "claimed" not in run("show", path)[1]


def test_the_front_is_that_of_all_machines(family: Path, tmp_path: Path) -> None:
    done = el.explore(family, tmp_path / "answers")
    every = {(one.member.cost, value): one.member.label for one in done.machines if (value := alone(one)) is not None}
    best = {
        pair for pair in every if not any((a <= pair[0] and b < pair[1] * (1 - 1e-9)) or (a < pair[0] and b <= pair[1])
        for a, b in every)
    }  # fmt: skip
    found = {one.member.cost for one in done.front}
    assert found == {cost for cost, _ in best} and len(found) > 2


def test_every_machine_is_settled_where_that_is_asked(family: Path, tmp_path: Path) -> None:
    some = el.explore(family, tmp_path / "answers")
    every = el.explore(family, tmp_path / "answers", every=True)
    assert some.counts["beaten"] > 0 == every.counts["beaten"] == every.counts["open"]
    assert all(every.value(one) is not None for one in every.machines if one.legal)
    same(every)


def test_a_search_that_finds_less_than_other_machines_tell_is_not_kept(family: Path, tmp_path: Path) -> None:
    family.write_text(FAMILY.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[512 B, 8 KiB]"))
    real, asked = tasks.solve, list[tasks.Task[study.Key]]()

    def poor(task: tasks.Task[study.Key], *words: object, **named: object) -> tasks.Answer:
        asked.append(task)
        found = real(task, "exact", None, lambda: False)
        if not task[2]:
            return found
        assert isinstance(found, Result)
        return Unmapped.of(task[1][0].problem, el.BudgetExhausted(0.9 * found.value), "exact", 0.0, {}, (), None)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tasks, "solve", poor)
        done = el.explore(family, tmp_path / "answers", every=True)
    assert any(task[2] for task in asked)
    assert all(done.value(one) is not None for one in done.machines)
    for known in done.machines:
        least, found = alone(known), Result.read(tmp_path / "answers" / known.files[0])
        assert least is not None and found.certificate is not None
        assert found.certificate.bound >= 0.9 * least * (1 - 1e-9)  # what the poor search proves is kept


def test_a_tolerance_saves_searches_and_is_kept(family: Path, tmp_path: Path) -> None:
    text = FAMILY.replace("[8 GB/s, 32 GB/s]", "[1 GB/s, 1.1 GB/s, 1.2 GB/s]").replace("[1, 4]", "[4]")
    family.write_text(text.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[128 B, 8 KiB]"))
    exact = el.explore(family, tmp_path / "exact")
    near = el.explore(family, tmp_path / "near", tolerance=0.4)
    same(near, 0.4)
    assert near.counts["searched"] < exact.counts["searched"]
    assert near.worst_gap is not None and 0 < near.worst_gap <= 0.4
    again = el.explore(family, tmp_path / "near")
    same(again)
    assert again.worst_gap is not None and again.worst_gap < 1e-9


def test_what_is_known_is_not_searched_again(family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = el.explore(family, tmp_path / "answers")
    monkeypatch.setattr(tasks, "solve", lambda *_, **__: pytest.fail("searched again"))
    again = el.explore(family, tmp_path / "answers")
    assert again.to_csv() == first.to_csv()


def test_broken_answers_are_searched_again(family: Path, tmp_path: Path) -> None:
    first = el.explore(family, tmp_path / "answers")
    file = next(one.files[0] for one in first.machines if one.how == "searched")
    for text in ("", "{", "{}", "[1]"):
        (tmp_path / "answers" / file).write_text(text)
        with pytest.warns(el.EinloomWarning, match="searched again"):
            again = el.explore(family, tmp_path / "answers")
        assert [again.value(one) for one in again.machines] == [first.value(one) for one in first.machines]
        assert (tmp_path / "answers" / file).read_text() != text


def test_a_folder_of_another_question_is_refused(family: Path, tmp_path: Path) -> None:
    el.explore(family, tmp_path / "answers")
    for old, new, said in (
        ("edp", "energy", r"objective: edp in the file and energy in this one"),
        ("m=16", "m=8", r"workload: .* is 16 in the file and 8 in this one"),
    ):
        family.write_text(FAMILY.replace(old, new))
        with pytest.raises(el.SpecError, match=rf"another question \({said}.*\); choose another folder"):
            el.explore(family, tmp_path / "answers")


def test_shares_make_one_exploration(family: Path, tmp_path: Path) -> None:
    whole = el.explore(family, tmp_path / "whole")
    first = el.explore(family, tmp_path / "shared", share=(1, 2))
    assert first.counts["open"] > 0
    second = el.explore(family, tmp_path / "shared", share=(2, 2))
    assert second.counts["open"] == 0
    for one, other in zip(whole.machines, second.machines, strict=True):
        value, shared = whole.value(one), second.value(other)
        assert value is None or shared is None or shared == pytest.approx(value, rel=1e-9)
    assert [one.member.label for one in whole.front] == [one.member.label for one in second.front]
    same(second)


def test_two_processes_find_the_same(family: Path, tmp_path: Path) -> None:
    same(el.explore(family, tmp_path / "answers", jobs=2))


def test_a_stop_keeps_what_is_known(family: Path, tmp_path: Path) -> None:
    heard: list[str] = []
    made = read_family(family)
    done = explore_family(
        made, tmp_path / "answers", heard=lambda member, *_: heard.append(member.label), stop=lambda: len(heard) >= 3
    )
    assert len(heard) >= 3 and done.unsettled >= done.counts["open"] > 0
    rest: list[str] = []
    done = explore_family(made, tmp_path / "answers", heard=lambda member, *_: rest.append(member.label))
    assert done.counts["open"] == 0 and not set(heard) & set(rest)
    same(done)


def test_values_of_several_workloads_are_added(family: Path, tmp_path: Path) -> None:
    several = '["matmul:m=8,n=8,k=8", {workload: "matmul:m=16,n=4,k=4", weight: 2.5}]'
    text = FAMILY.replace('["matmuls:n=2,m=16,kn=16"]', several)
    text = text.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[128 B, 1 KiB]")
    family.write_text(text)
    done = el.explore(family, tmp_path / "answers")
    for known in done.machines:
        values = [alone(known, w) for w in (0, 1)]
        assert values[0] is not None and values[1] is not None
        least = values[0] + 2.5 * values[1]
        found = done.value(known)
        assert known.how == "beaten" or (found is not None and found == pytest.approx(least, rel=1e-9))


def test_methods_without_a_proof_settle_every_machine_once(family: Path, tmp_path: Path) -> None:
    done = el.explore(family, tmp_path / "answers", method="random", seconds=0.1)
    assert done.counts["open"] == 0
    methods = {one.answers[0].method for one in done.machines if isinstance(one.answers[0], Result)}
    assert "random" in methods and methods <= {"random", study.METHOD}  # the other's where a machine told more


def test_an_unfinished_search_is_asked_again(family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family.write_text(FAMILY.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[512 B]"))
    real = tasks.solve

    def unfinished(task: tasks.Task[study.Key], *words: object, **named: object) -> Unmapped:
        problem = task[1][0].problem
        return Unmapped.of(problem, el.BudgetExhausted(0.0), "exact", 0.0, {}, (), None)

    monkeypatch.setattr(tasks, "solve", unfinished)
    done = el.explore(family, tmp_path / "answers")
    assert all(isinstance(one.answers[0], Unmapped) and one.legal for one in done.machines)
    monkeypatch.setattr(tasks, "solve", real)
    same(el.explore(family, tmp_path / "answers"))


def test_the_command(family: Path, tmp_path: Path) -> None:
    folder, page, table = tmp_path / "answers", tmp_path / "page.html", tmp_path / "all.csv"
    code, said = run("explore", family, "-o", folder, "--csv", table, "--report", page, "--jobs", 1)
    assert code == 0 and "20 machines, 1 workload, edp" in said and "no other machine has a smaller edp" in said
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert len(rows) == 20 and {row["glb"] for row in rows} == {"16 bit", "128 B", "256 B", "512 B", "8 KiB"}
    best = [row for row in rows if row["front"] == "True"]
    assert best and all(json.loads((folder / row["file"]).read_text())["schema"] == "result/1" for row in best)
    text = page.read_text()
    assert "edp against area of" in text and "glb" in text and "http-equiv" in text
    assert all(one in text for one in ("What was asked", "edge.yaml", "16 bit to 8 KiB (5 values)", "at most 1 fused"))
    code, said = run("explore", family, "-o", folder, "--share", "3/2")
    assert code == 2 and "--share is K/N" in said
    code, said = run("explore", family, "-o", folder, "--dask", "tcp://127.0.0.1:1", "--jobs", 2)
    assert code == 2 and "either --jobs" in said
    code, said = run("explore", family, "-o", folder, "--tolerance", "nan")
    assert code == 2 and "--tolerance is a number from 0 to 1" in said


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """The file of a scheduler, and its process; it and a worker are processes of their own, as on a cluster."""
    pytest.importorskip("distributed")
    address = tmp_path / "scheduler.json"
    words = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    running = [
        subprocess.Popen(
            [*words, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
             "--scheduler-file", str(address)], **quiet
        ),
        subprocess.Popen(
            [*words, "distributed.cli.dask_worker", "--scheduler-file", str(address), "--nthreads", "1",
             "--no-dashboard", "--death-timeout", "60"], **quiet
        ),
    ]  # fmt: skip
    try:
        begun = time.monotonic()
        while not address.exists() and time.monotonic() - begun < 60:
            time.sleep(0.1)
        yield address, running[0]
    finally:
        for one in reversed(running):
            one.terminate()
        for one in running:
            one.wait(30)


def test_the_workers_of_a_dask_scheduler_find_the_same(
    family: Path, tmp_path: Path, scheduler: tuple[Path, subprocess.Popen[bytes]]
) -> None:
    code, said = run("explore", family, "-o", tmp_path / "answers", "--dask", scheduler[0])
    assert code == 0 and " open" not in said
    same(el.explore(family, tmp_path / "answers"))


@pytest.mark.slow
def test_an_address_where_nobody_answers_is_told(family: Path, tmp_path: Path) -> None:
    """After ten seconds."""
    pytest.importorskip("distributed")
    code, said = run("explore", family, "-o", tmp_path / "answers", "--dask", "tcp://127.0.0.1:1")
    assert code == 2 and "no Dask scheduler answers at 'tcp://127.0.0.1:1'" in said


@pytest.mark.slow
def test_a_scheduler_that_is_gone_is_told_and_nothing_lost(
    family: Path, tmp_path: Path, scheduler: tuple[Path, subprocess.Popen[bytes]]
) -> None:
    """The client waits ten seconds for it."""
    address, process = scheduler
    asked, kept = read_family(family), list[Path]()

    def heard(*_: object) -> None:
        kept.extend((tmp_path / "answers").rglob("*.json"))
        process.kill()

    with pytest.raises(EinloomError, match=r"scheduler at .* or its workers, are gone"):
        explore_family(asked, tmp_path / "answers", cluster=str(address), heard=heard, every=True)
    assert kept and all(path.is_file() for path in kept)
    same(el.explore(family, tmp_path / "answers", every=True))


def test_machines_as_good_as_one_of_the_front_are_named(family: Path, tmp_path: Path) -> None:
    """512 B and 0.5 KiB are the same memory."""
    text = FAMILY.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[512 B, 0.5 KiB]")
    family.write_text(text.replace("[1, 4]", "[4]").replace("[8 GB/s, 32 GB/s]", "[32 GB/s, 8 GB/s]"))
    done = el.explore(family, tmp_path / "answers", every=True)
    (best,), twin = done.front, {"512 B": "0.5 KiB"}[done.front[0].member.values[0][1]]
    assert [one.member.values[0][1] for one in done.ties] == [twin] and done.ties[0].gap == best.gap == 0
    assert f"as good as one of these: glb={twin}, bw=32 GB/s, side=4" in str(done)
    assert done.alike in exploration_page(done)
    narrow = el.explore(family, tmp_path / "answers", every=True)
    assert narrow.ties == done.ties


def test_what_has_no_area_is_named(family: Path) -> None:
    """It would be free; the outermost memory is none of the chip."""
    (family.parent / "edge.yaml").write_text(EDGE.replace(", area: 0.02 mm2", ""))
    with pytest.warns(el.EinloomWarning, match=r"MAC has no area, so it costs nothing; state it in edge\.yaml"):
        read_family(family)
    family.write_text(FAMILY.replace("objective", "cost: glb / KiB\nobjective"))
    assert read_family(family).costs == "cost"  # nothing to warn of


def test_workloads_of_one_name_go_by_what_the_file_says(family: Path, tmp_path: Path) -> None:
    several = '[{workload: "matmuls:n=2,m=16,kn=16", weight: 2}, "matmuls:n=1,m=8,kn=8"]'
    text = FAMILY.replace('["matmuls:n=2,m=16,kn=16"]', several)
    family.write_text(text.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[512 B]"))
    done = el.explore(family, tmp_path / "answers", every=True)
    assert done.family.workloads == ("matmuls:n=2,m=16,kn=16", "matmuls:n=1,m=8,kn=8")
    assert "2 workloads, with weights 2, 1, edp" in str(done)
    assert "2 x matmuls:n=2,m=16,kn=16 + matmuls:n=1,m=8,kn=8" in exploration_page(done)
    for one in done.machines:
        values = [alone(one, w) for w in range(2)]
        assert None not in values and done.value(one) == pytest.approx(2 * values[0] + values[1], rel=1e-9)


def test_a_scheduler_file_that_is_missing_is_told(family: Path, tmp_path: Path) -> None:
    """The client of Dask waits for it, without end."""
    pytest.importorskip("distributed")
    code, said = run("explore", family, "-o", tmp_path / "answers", "--dask", tmp_path / "none.json")
    assert code == 2 and "there is no scheduler file" in said


def test_machines_of_like_names_have_files_of_their_own(family: Path, tmp_path: Path) -> None:
    text = FAMILY.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[64 B * 4, 64 B / 4, 512 B, 512B]")
    family.write_text(text.replace("[8 GB/s, 32 GB/s]", "[8 GB/s]"))
    done = el.explore(family, tmp_path / "answers", every=True)
    files = [one.files[0] for one in done.machines]
    assert len(set(files)) == len(files) == 8
    same(done)


def test_a_proof_is_searched_after_a_method_without_one(family: Path, tmp_path: Path) -> None:
    family.write_text(FAMILY.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[512 B]"))
    first = el.explore(family, tmp_path / "answers", method="random", seconds=0.05, every=True)
    assert first.worst_gap is not None and first.worst_gap > 0.01
    done = el.explore(family, tmp_path / "answers", every=True)
    same(done)
    assert done.worst_gap is not None and done.worst_gap < 1e-9


FRONTS = FAMILY.replace("edp", "pareto").replace(
    "[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[16 bit, 128 B, 512 B, 8 KiB]"
)


def fronts(done: ExploredFamily) -> list[Region]:
    """What `map` proves of every machine."""
    found = list[Region]()
    for known in done.machines:
        asked = known.member.asked[0][0].problem
        try:
            one = el.map(asked.workload, asked.machine, objective="pareto", mapspace=asked.mapspace)
        except el.Infeasible:
            found.append(())
        else:
            assert one.optimal
            found.append(staircase((p.energy, p.latency) for p in one.front))
    return found


def test_the_fronts_of_all_machines_are_those_that_map_finds(family: Path, tmp_path: Path) -> None:
    family.write_text(FRONTS)
    done = el.explore(family, tmp_path / "answers")
    every = fronts(done)
    assert done.counts["open"] == 0 and done.counts["neighbour"] > 0 and done.counts["beaten"] > 0
    for known, points in zip(done.machines, every, strict=True):
        assert known.legal == bool(points)
        if known.how != "beaten":
            assert np.allclose(known.points, points, rtol=1e-9) and (known.gap or 0.0) < 1e-9
        assert all(below(known.region, ((a * (1 + 1e-9), b * (1 + 1e-9)),)) for a, b in points)
    costs = [known.member.cost or 0.0 for known in done.machines]
    best = [
        (i, a, b)
        for i, points in enumerate(every)
        for a, b in points
        if not any(
            (costs[j] <= costs[i] and c <= a * (1 + 1e-9) and d <= b * (1 + 1e-9))
            and (costs[j], c, d) < (costs[i], a * (1 - 1e-9), b)
            for j, others in enumerate(every)
            for c, d in others
        )
    ]
    assert {(costs[i], round(a, 18), round(b, 18)) for i, (a, b) in done.front_points} == {
        (costs[i], round(a, 18), round(b, 18)) for i, a, b in best
    }
    again = el.explore(family, tmp_path / "answers")
    assert again.to_csv() == done.to_csv()


def test_fronts_of_several_workloads_are_added(family: Path, tmp_path: Path) -> None:
    several = '["matmul:m=8,n=8,k=8", {workload: "matmul:m=16,n=4,k=4", weight: 2.5}]'
    text = FRONTS.replace('["matmuls:n=2,m=16,kn=16"]', several)
    family.write_text(text.replace("[16 bit, 128 B, 512 B, 8 KiB]", "[128 B]"))
    done = el.explore(family, tmp_path / "answers", every=True)
    for known in done.machines:
        parts = [points_of(one) for one in known.answers if isinstance(one, Result)]
        sums = {(a + 2.5 * c, b + 2.5 * d) for a, b in parts[0] for c, d in parts[1]}
        assert known.points == staircase(sums) and done.value(known) == min(a * b for a, b in sums)


def test_a_tolerance_keeps_fronts_near(family: Path, tmp_path: Path) -> None:
    text = FRONTS.replace("[8 GB/s, 32 GB/s]", "[1 GB/s, 1.1 GB/s, 1.2 GB/s]").replace("[1, 4]", "[4]")
    family.write_text(text.replace("[16 bit, 128 B, 512 B, 8 KiB]", "[128 B, 8 KiB]"))
    exact = el.explore(family, tmp_path / "exact", every=True)
    near = el.explore(family, tmp_path / "near", tolerance=0.4, every=True)
    assert near.counts["searched"] < exact.counts["searched"]
    for known, points in zip(near.machines, fronts(near), strict=True):
        assert known.gap is not None and distance(known.points, points) <= known.gap + 1e-9 <= 0.4 + 2e-9
    assert near.worst_gap is not None and near.worst_gap > 0


def test_fronts_are_printed_and_drawn(family: Path, tmp_path: Path) -> None:
    family.write_text(FRONTS)
    page, table = tmp_path / "page.html", tmp_path / "all.csv"
    code, said = run("explore", family, "-o", tmp_path / "answers", "--csv", table, "--report", page)
    assert code == 0 and "no other machine has a mapping with less energy and latency and costs no more" in said
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert sum(row["front"] == "True" for row in rows) > 3 and {row["status"] for row in rows} == {
        "found",
        "infeasible",
        "unknown",
    }
    assert "latency against energy of" in page.read_text()
    kept = next(row["file"] for row in rows if row["how"] == "neighbour")
    assert el.verify(str(tmp_path / "answers" / kept), quick=True).ok


def test_what_is_read_is_not_replaced(family: Path, tmp_path: Path) -> None:
    family.write_text(FAMILY.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[512 B]"))
    folder, machine = tmp_path / "answers", tmp_path / "edge.yaml"
    before = machine.read_text()
    for option in ("--csv", "--report"):
        code, said = run("explore", family, "-o", folder, option, machine)
        assert code == 2 and "which is read here" in said and machine.read_text() == before
    answer = folder / "1-matmuls" / "glb=512B_bw=8GB_s_side=1.json"
    run("explore", family, "-o", folder)
    kept = answer.read_text()
    code, said = run("explore", family, "-o", folder, "--csv", answer)
    assert code == 2 and "is a file of the answers" in said and answer.read_text() == kept


def test_an_unfinished_front_says_so(family: Path, tmp_path: Path) -> None:
    made, heard = read_family(family), list[str]()
    done = explore_family(
        made, tmp_path / "answers", heard=lambda member, *_: heard.append(member.label), stop=lambda: len(heard) >= 3
    )
    assert "so far no other machine" in str(done) and "may have better mappings than any that is known" in str(done)
    assert "so far" in exploration_page(done)
    assert done.doubt and not explore_family(made, tmp_path / "answers").doubt


def test_a_tolerance_that_may_change_the_front_says_so(family: Path, tmp_path: Path) -> None:
    """Machines off the front with a value and a gap count, too: one of them belongs to the true front."""
    text = FAMILY.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "{from: 96 B, to: 512 B, step: 16 B}")
    family.write_text(text.replace("edp", "energy").replace("[8 GB/s, 32 GB/s]", "[8 GB/s]"))
    near = el.explore(family, tmp_path / "near", tolerance=0.3)
    true = el.explore(family, tmp_path / "true")
    assert all((one.gap or 0.0) < 1e-9 for one in near.front)
    assert {one.member.label for one in near.front} != {one.member.label for one in true.front}
    assert near.doubt and "so far" in str(near)
    assert not true.doubt and "so far" not in str(true)


def test_where_nothing_can_be_mapped_the_exit_code_says_so(family: Path, tmp_path: Path) -> None:
    family.write_text(FAMILY.replace("[16 bit, 128 B, 256 B, 512 B, 8 KiB]", "[16 bit]"))
    table = tmp_path / "all.csv"
    code, said = run("explore", family, "-o", tmp_path / "answers", "--csv", table)
    assert code == 1 and "no machine has a mapping\n" in said
    assert {row["how"] for row in csv.DictReader(io.StringIO(table.read_text()))} == {"no mapping"}


def test_a_cost_beyond_all_measure_is_refused(family: Path) -> None:
    family.write_text(FAMILY + "cost: 1e300 * side * 10\n")
    with pytest.raises(el.SpecError, match=r"family.yaml:10:.*a cost is at most 1e\+30"):
        read_family(family)

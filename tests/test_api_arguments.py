"""The functions of Python refuse arguments as the command line refuses options: before a search, with a reason."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import einloom as el
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.machine.write import write_machine
from einloom.mapspace.space import Mapspace
from einloom.problem.budgets import read_budget
from einloom.questions import LIMITS, problem
from einloom.search.answer import answer
from einloom.search.method import Recorder as Watch
from einloom.search.several import Labelled
from einloom.workload.files import write_workload

TINY = "matmul:m=2,n=2,k=2"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_fused_loops": -1}, "-1 may not be negative (at max_fused_loops)"),
        ({"max_fused_loops": 1.5}, "1.5 is not a whole number (at max_fused_loops)"),
        ({"max_fused_loops": True}, "expected a number, found True (at max_fused_loops)"),
        ({"max_fused_loops": "x"}, "unknown name 'x'"),
        ({"max_fused_loops_per_rank_variable": 0}, "0 must be at least 1 (at max_fused_loops_per_rank_variable)"),
        ({"max_fused_loops_per_rank_variable": 2.5}, "2.5 is not a whole number"),
        ({"order": "fre"}, "'fre' is none of program, free (at order); did you mean 'free'?"),
        ({"order": 3}, "expected one of program, free, found 3"),
        ({"stores": "Shared"}, "'Shared' is none of own, shared (at stores); did you mean 'shared'?"),
        ({"stores": object()}, "data of type object"),
        ({"mapspace": Mapspace(stores="foo")}, "'foo' is none of own, shared"),  # type: ignore[arg-type]
        ({"mapspace": 3}, "a mapspace is an object of that class, or a file, not 3"),
        ({"space": 3}, "unknown mapspace 3; known are ffm, ragged"),
        ({"full_use": "no"}, "full_use is True or False, not 'no'"),
        ({"objective": None}, "unknown objective None; known are energy"),
        ({"dataflow": 3}, "dataflow: 3 is none of Dataflow, or a text"),
        ({"start": 3}, "start: 3 is none of Mapping, Result, or a text"),
        ({"seconds": "x"}, "unknown name 'x'"),
        ({"seconds": -1}, "-1 must be greater than zero (at seconds)"),
        ({"steps": 0}, "0 must be at least 1 (at steps)"),
        ({"memory": -1}, "memory budget: '-1' is less than a byte; did you mean '2 GiB'?"),
        ({"memory": "2 GX"}, "memory budget: "),
    ],
)
def test_map_refuses_what_no_file_could_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(el.SpecError) as caught:
        el.map(TINY, "simple", **given)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == [], "no defect is saved"


def test_whole_numbers_of_numpy_and_sizes_in_words() -> None:
    found = el.map(TINY, "simple", max_fused_loops=np.int64(2), memory="64 GiB")
    assert found.problem.mapspace.max_fused_loops == 2
    assert found.to_json()
    assert found.certificate is not None and found.certificate.gap == 0


def test_workload_and_machine_must_be_such() -> None:
    matmul, simple = el.zoo.matmul(m=2), el.zoo.simple()
    with pytest.raises(el.SpecError, match="not a machine, which comes second"):
        el.map(simple, matmul)
    with pytest.raises(el.SpecError, match="the second argument is a machine, its name or its file, not a workload"):
        el.map(matmul, matmul)
    with pytest.raises(el.SpecError, match="the first argument is a workload, its name or its file, not None"):
        el.map(None, None)  # type: ignore[arg-type]
    with pytest.raises(el.SpecError, match="-1 must be greater than zero"):
        el.explain(matmul, simple, seconds=-1)


def chip(
    size: Any = None, energy: Any = 1.0, throughput: Any = 1.0, axis: Any = 4, name: Any = "chip", must: Any = None
) -> Machine:
    """A machine put together in Python."""
    outer = Memory("D", None, energy, 1.0, read_throughput=throughput, **({} if must is None else {"must": must}))
    levels = (outer, Memory("S", size, 0.1, 0.1), Fanout("F", (Axis("x", axis),)), ComputeUnit("M", 1.0, 1.0))
    return Machine(name, levels)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"size": 100.5}, "machine chip: 100.5 is not a whole number of bits (at levels[1].size)"),
        ({"size": 0}, "machine chip: 0 must be greater than zero (at levels[1].size)"),
        ({"size": "1 KiB"}, "machine chip: '1 KiB' is no value of it; from Python it would be 8192 (at S.size)"),
        ({"size": True}, "machine chip: expected a number, found True (at levels[1].size)"),
        ({"energy": -1.0}, "machine chip: -1.0 may not be negative (at levels[0].read_energy)"),
        ({"energy": float("nan")}, "machine chip: nan is not a finite number"),
        ({"energy": float("inf")}, "machine chip: inf is not a finite number"),
        ({"throughput": 0.0}, "machine chip: 0.0 must be greater than zero (at levels[0].read_throughput)"),
        ({"axis": 0}, "machine chip: 0 must be at least 1 (at levels[2].axes[0].size)"),
        ({"name": ""}, "a machine: expected a name, found ''"),
        ({"name": 3}, "machine 3: 3 is no value of it; from Python it would be '3'"),
        ({"must": "all"}, "machine chip: 'all' is no value of it; from Python it would be Selector("),
    ],
)
def test_a_machine_from_python_is_checked_as_a_file_is(given: dict[str, Any], words: str) -> None:
    with pytest.raises(el.SpecError) as caught:
        el.map(TINY, chip(**given))
    assert words in str(caught.value)


def test_a_machine_of_numpy_s_numbers_is_taken_as_one_of_plain_numbers() -> None:
    odd = chip(np.int64(1024), np.float32(2.0), np.float64(1.0), np.int16(4))
    found = el.map(TINY, odd, objective="edp")
    assert el.Result.from_json(found.to_json()) == found
    assert {type(level.size) for level in found.machine.memories} == {int, type(None)}
    assert found == replace(el.map(TINY, chip(1024, 2.0), objective="edp"), seconds=found.seconds, trace=found.trace)
    listed = Machine("chip", [*odd.levels])  # type: ignore[arg-type]
    assert el.map(TINY, listed, objective="edp").value == found.value


def test_a_workload_changed_in_python_is_checked_as_a_file_is() -> None:
    matmul = el.zoo.matmul(m=8, n=8, k=8)
    assert isinstance(matmul, el.Workload)
    with pytest.raises(el.SpecError, match=r"^workload matmul: rank of unequal size: tensor A has size 8"):
        el.map(replace(matmul, sizes=(("m", 16), ("n", 8), ("k", 8))), "simple")
    with pytest.raises(el.SpecError, match="expected a name, found ''"):
        el.evaluate(replace(matmul, name=""), "simple", "compute Z @ M")
    with pytest.raises(el.SpecError, match="not put together as build_workload does it"):
        el.map(replace(matmul, tensors=()), "simple")
    two = el.load_workload("matmuls:n=2,m=4,kn=4")
    with pytest.raises(el.SpecError, match=r"einsums is .* and the rest of it says .*; build_workload makes one"):
        el.map(replace(two, einsums=two.einsums[::-1]), "simple")
    assert el.map(replace(two, sizes=two.sizes[::-1]), "simple").workload == two
    counted = replace(matmul, sizes=tuple((name, np.int64(size)) for name, size in matmul.sizes))
    found = el.map(counted, "simple", max_fused_loops=1)
    assert el.Result.from_json(found.to_json()) == found and el.verify(found)


def test_a_mapping_of_one_line_is_text_and_not_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(el.SpecError, match=r"^1:1: the nest before this point has no leaf"):
        el.evaluate(TINY, "simple", "store DRAM: A")
    with pytest.raises(el.SpecError, match=r"^1:1: the nest before this point has no leaf"):
        el.map(TINY, "simple", start="store DRAM: A")
    with pytest.raises(el.IllegalMapping, match="Z"):
        el.evaluate(TINY, "simple", "compute Z @ MAC")
    (tmp_path / "for me").write_text("compute Z @ MAC\n", encoding="utf-8")
    with pytest.raises(el.IllegalMapping, match="Z"):
        el.evaluate(TINY, "simple", "for me")
    with pytest.raises(el.SpecError, match=r"mapping\.txt: cannot read the file"):
        el.evaluate(TINY, "simple", "mapping.txt")
    with pytest.raises(el.SpecError, match="a mapping is an object of that class, its text or its file, not 3"):
        el.evaluate(TINY, "simple", 3)  # type: ignore[arg-type]


def test_more_doors_say_what_they_take(tmp_path: Path) -> None:
    asked = ("matmul:m=8,n=8,k=8", "simple")
    with pytest.raises(el.SpecError, match="capacities are numbers of bits or sizes"):
        el.sweep_capacities(*asked, "GLB", 5, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(el.SpecError, match="capacities are numbers of bits or sizes"):
        el.sweep_capacities(*asked, "GLB", [None], tmp_path)  # type: ignore[list-item]
    with pytest.raises(el.SpecError, match="a memory is named by a text"):
        el.sweep_capacities(*asked, 3, "1 KiB", tmp_path)  # type: ignore[arg-type]
    with pytest.raises(el.SpecError, match="jobs a number of processes"):
        el.sweep_capacities(*asked, "GLB", "1 KiB", tmp_path, jobs=0)
    with pytest.raises(el.SpecError, match="nope"):
        el.sweep_capacities(*asked, "GLB", "1 KiB", tmp_path, method="nope")
    for options in (3, {3: 4}):
        with pytest.raises(el.SpecError, match="options of a method are values by their names"):
            el.map(*asked, method="anneal", method_options=options)  # type: ignore[arg-type]
    with pytest.raises(el.SpecError, match="seconds"):
        el.verify(el.map(*asked), seconds=-1)
    long = "store DRAM: A B Z\n".strip() + " " * 400
    with pytest.raises(el.EinloomError) as found:
        el.evaluate(*asked, long)
    assert "File name" not in str(found.value)


def test_paths_are_taken_where_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = el.load_workload(TINY), el.load_machine("simple")
    write_workload(asked[0], tmp_path / "w.yaml")
    write_machine(asked[1], tmp_path / "m.yaml")
    assert (el.load_workload(Path("w.yaml")), el.load_machine(Path("m.yaml"))) == asked
    found = el.map(Path("w.yaml"), Path("m.yaml"))
    saved = Path("r.json")
    found.write(saved)
    assert el.map(*asked, start=saved).value == el.map(*asked, start=[saved]).value == found.value
    assert el.evaluate(saved).value == el.evaluate(*asked, saved).value == found.value
    assert el.simulate(saved) and str(el.explain(saved, quick=True))
    with pytest.raises(el.SpecError, match=r"x\.yaml: cannot read the file"):
        el.map(*asked, mapspace=Path("x.yaml"))


def test_one_result_is_compared_and_names_are_no_workloads_to_rewrite() -> None:
    found = el.map(TINY, "simple")
    assert len(el.compare(found).rows) == len(el.compare([found]).rows)
    with pytest.raises(el.SpecError, match="a workload is rewritten, not 'resnet18'; load_workload gives"):
        el.rewrite("resnet18", "stored_padding")  # type: ignore[arg-type]


def test_results_and_certificates_may_be_in_sets() -> None:
    found = el.map(TINY, "simple")
    again = el.Result.from_json(found.to_json())
    assert found == again and hash(found) == hash(again) and len({found, again}) == 1
    assert len({found.certificate, again.certificate}) == 1


def test_unknown_keywords_of_a_sweep_are_told_with_the_nearest(tmp_path: Path) -> None:
    for given, meant in (("spce", "space"), ("objctive", "objective"), ("max_fused_loop", "max_fused_loops")):
        with pytest.raises(el.SpecError, match=f"unknown keyword of sweep_capacities '{given}'.*mean '{meant}'"):
            el.sweep_capacities(TINY, "simple", "GLB", "1 KiB", tmp_path / "sweep", **{given: "ragged"})
    with pytest.raises(el.SpecError, match="unknown keyword of sweep_capacities 'quiet'"):
        el.sweep_capacities(TINY, "simple", "GLB", "1 KiB", tmp_path / "sweep", quiet=True)
    assert list(tmp_path.iterdir()) == []


def test_what_a_problem_takes_is_what_a_sweep_takes() -> None:
    taken = [*signature(problem).parameters][3:]
    assert [*LIMITS] == [name for name in taken if name not in ("quiet", "named")]


def test_the_objective_of_a_result_is_taken_as_its_name(tmp_path: Path) -> None:
    for goal in ("edp", "traffic:DRAM", "energy^1.234567*latency^12.5"):
        found = el.map(TINY, "simple", goal)
        assert str(found.objective) == goal
        assert el.map(TINY, "simple", found.objective).objective == found.objective
        assert el.evaluate(TINY, "simple", found.mapping, found.objective).value == found.value
        assert el.evaluate(found, objective=found.objective).value == found.value
        assert el.explain(TINY, "simple", found.objective, quick=True).problem == found.problem
        assert el.Result.from_json(found.to_json()) == found
    swept = el.sweep_capacities(TINY, "simple", "GLB", "1 KiB", tmp_path, found.objective)
    assert [point.answer.objective for point in swept.points] == [found.objective]
    here = el.map(TINY, "simple", "traffic:GLB").objective
    with pytest.raises(el.SpecError, match="'traffic:GLB' names no memory of chip"):
        el.map(TINY, chip(), here)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seconds": -1}, "a budget's seconds: a number of at least 0 or None, not -1"),
        ({"seconds": float("nan")}, "not nan"),
        ({"seconds": float("inf")}, "not inf"),
        ({"seconds": "5"}, "not '5'"),
        ({"seconds": True}, "not True"),
        ({"steps": 1.5}, "a budget's steps: a whole number of points or None, not 1.5"),
        ({"steps": "3"}, "not '3'"),
        ({"steps": -1}, "not -1"),
        ({"memory": -1}, "a budget's memory: a whole number of bytes or None, not -1"),
        ({"memory": "2 GiB"}, "not '2 GiB'"),
    ],
)
def test_a_budget_has_numbers(given: dict[str, Any], words: str) -> None:
    with pytest.raises(el.SpecError) as caught:
        el.Budget(**given)
    assert words in str(caught.value)


def test_budgets_of_numpy_s_numbers_and_of_texts() -> None:
    assert el.Budget(np.float64(2.0), np.int64(3), np.int64(4)) == el.Budget(2.0, 3, 4)
    assert read_budget("5 ms", "2 * 3", "1 KiB") == el.Budget(0.005, 6, 1024)  # type: ignore[arg-type]
    with pytest.raises(el.SpecError, match=r"memory budget: '1.5' is not a whole number of bytes"):
        el.map(TINY, "simple", memory=1.5)  # type: ignore[arg-type]
    assert el.map(TINY, "simple", max_fused_loops="1").mapspace.max_fused_loops == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [1.5, True, float("nan"), None])
def test_seeds_are_whole_numbers(seed: Any) -> None:
    found = el.map(TINY, "simple")
    for verb in (el.simulate, el.run):
        with pytest.raises(el.SpecError, match=f"^seed: a whole number, not {seed}"):
            verb(found, seed=seed)
    with pytest.raises(el.SpecError, match=f"method 'anneal', option seed: {seed} is not an integer"):
        el.map(TINY, "simple", method="anneal", method_options={"seed": seed}, steps=3)


def test_seeds_and_options_of_numpy_s_numbers() -> None:
    assert el.simulate(el.map(TINY, "simple"), seed=np.int64(1))  # type: ignore[arg-type]
    values = [
        el.map(TINY, "simple", method="anneal", method_options={"seed": seed, "points": None}, steps=3).value
        for seed in (1, "1", np.int64(1))
    ]
    assert len(set(values)) == 1


def test_energy_on_a_machine_without_energies_is_warned_of() -> None:
    bare = Machine("bare", (Memory("D", read_throughput=1.0), ComputeUnit("M")))
    words = r"nothing of bare has an energy, so every mapping costs 0 J; give a memory a read_energy .* ask for latency"
    for goal in ("energy", "edp", "pareto", "energy^2*latency"):
        with pytest.warns(el.EinloomWarning, match=words):
            assert el.map(TINY, bare, goal).energy == 0
    for goal in ("latency", "traffic:D"):
        el.map(TINY, bare, goal)  # warnings are errors here
    timeless = Machine("bare", (Memory("D"), ComputeUnit("M")))
    with pytest.warns(el.EinloomWarning, match="or ask for traffic:D"):
        el.map(TINY, timeless)
    leaking = Machine("bare", (Memory("D", leakage=1.0, read_throughput=1.0), ComputeUnit("M")))
    assert el.map(TINY, leaking).energy > 0


def test_nobody_is_warned_of_an_objective_that_he_did_not_name(tmp_path: Path) -> None:
    bare = Machine("bare", (Memory("D"), Memory("S", 1024), ComputeUnit("M")))
    found = el.map(TINY, bare, "traffic:D")
    assert el.evaluate(TINY, bare, found.mapping).energy == 0
    assert el.simulate(TINY, bare, found.mapping)
    assert el.sweep_capacities(TINY, bare, "S", "1 KiB", tmp_path).points[0].answer.value == found.value


def test_answers_may_be_copied_and_taken_apart() -> None:
    front = el.map(TINY, "simple", "pareto")
    nothing = answer((Labelled("", problem(TINY, "two-level:glb_bits=4")),), "exhaustive", el.Budget(steps=0), Watch())
    for found in (front, nothing):
        plain = asdict(found)
        assert plain["problem"]["workload"]["name"] == "matmul"
        assert copy.deepcopy(found) == copy.copy(found) == pickle.loads(pickle.dumps(found)) == found
        assert hash(copy.deepcopy(found)) == hash(found)
    assert front.certificate is not None
    counts = front.certificate.counts
    assert counts == asdict(front)["certificate"]["counts"] == dict(counts) and str(counts) == str(dict(counts))
    with pytest.raises(TypeError):
        front.certificate.counts["evaluated"] = 0  # type: ignore[index]

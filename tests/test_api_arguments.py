"""The functions of Python refuse arguments as the command line refuses options: before a search, with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import einloom as el
from einloom.mapspace.space import Mapspace

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

"""What the terminal prints, compared with files that were read and found right; live progress; silence elsewhere.

`python tests/report/test_terminal.py` writes the files again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main
from einloom.report.text import nests
from einloom.report.text import results as text
from einloom.report.text.live import display, line, obstacle
from einloom.report.text.table import WIDTH
from einloom.search.method import Recorder

HERE = Path(__file__).parent
VIEWS: dict[str, Callable[[el.Result], str]] = {
    "tree": text.tree,
    "loops": nests.loops,
    "occupancy": text.occupancy,
    "breakdown": text.breakdown,
    "fusion": text.fusion,
}
SAVED = ("matmul", "conv-chain", "chain-loops1", "gpt3")


def read(name: str) -> el.Result:
    return el.Result.read(HERE / "results" / f"{name}.json")


def golden(name: str, view: str) -> Path:
    return HERE / "golden" / f"{name}-{view}.txt"


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("view", VIEWS)
def test_views_as_they_were_read(name: str, view: str) -> None:
    shown = VIEWS[view](read(name)) + "\n"
    assert shown == golden(name, view).read_text(encoding="utf-8")
    assert max(map(len, shown.splitlines()), default=0) <= WIDTH


@pytest.mark.parametrize("name", SAVED)
def test_show_prints_it_all(name: str) -> None:
    shown = CliRunner().invoke(main, ["show", str(HERE / "results" / f"{name}.json")], catch_exceptions=False).output
    result = read(name)
    for view in ("loops", "occupancy", "breakdown", "fusion"):
        assert VIEWS[view](result) in shown
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert "\x1b" not in shown


def test_many_and_hostile_einsums_fit(results: dict[str, el.Result]) -> None:
    shown = nests.everything(results["large"])
    assert "304 more Einsums; --loops prints all" in shown
    assert nests.loops(results["large"]).count(">>") == 320
    for one in (shown, nests.everything(results["hostile"]), nests.everything(results["pipeline"])):
        assert max(map(len, one.splitlines())) <= WIDTH


def test_loops_multiply_to_the_extents(results: dict[str, el.Result]) -> None:
    for block in nests.loops(results["gpt3"]).split("\n\n"):
        name = block.partition(":")[0]
        trips = 1
        for row in block.splitlines():
            if "[0:" in row:
                trips *= int(row.partition("[0:")[2].partition(")")[0])
        assert trips == results["gpt3"].workload.operations(name) or "copy" in block


def test_a_mapping_prints_as_text(results: dict[str, el.Result]) -> None:
    result = results["gpt3"]
    assert str(result.mapping) + "\n" == result.mapping_text
    assert f"{result.mapping}".startswith("store DRAM: ")


def test_progress_says_what_is_in_the_way() -> None:
    clock = iter(range(100))
    recorder = Recorder(clock=lambda: float(next(clock)))
    recorder.stage("exploring Einsums", 1, 3)
    recorder.count("evaluated", 500)
    recorder.count("capacity", 40)
    recorder.count("joint capacity", 41)
    goal = read("matmul").objective
    assert line(recorder, goal) == (
        "   1.0 s  exploring Einsums 1/3  illegal mostly by joint capacity 41  evaluated 500  capacity 40"
    )
    recorder.incumbent(200.0)
    recorder.bound(150.0)
    shown = line(recorder, goal)
    assert "best 200 J  bound 150 J  gap 25.00%" in shown
    assert obstacle({"evaluated": 3, "capacity": 0}) is None


def test_quiet_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    with display(read("matmul").objective) as shown:
        assert shown is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with display(read("matmul").objective) as shown:
        assert shown is not None


if __name__ == "__main__":
    for saved in SAVED:
        for which, made in VIEWS.items():
            golden(saved, which).write_text(made(read(saved)) + "\n", encoding="utf-8")

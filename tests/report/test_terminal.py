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
from einloom.problem import Alternative, Certificate, Guarantee, Objective
from einloom.report.draw.drawing import Box
from einloom.report.draw.looptree import LoopTree
from einloom.report.text import nests
from einloom.report.text import results as text
from einloom.report.text.live import display, line, obstacle
from einloom.report.text.table import WIDTH
from einloom.search.method import Recorder
from einloom.workload.files import parse_workload

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


def test_a_smaller_last_tile_is_told() -> None:
    """In the text, where it is a comment, and in the picture; tiles that divide their extent say nothing."""
    workload = parse_workload(
        "schema: workload/1\nname: odd\neinsums: ['C[m,n] = A[m,k] * B[k,n]']\nranks: {m: 197, n: 6, k: 4}\nbits: 8"
    )
    loops = ("for m in 2 tile 99", "for n in 2 tile 4", "for k in 2")
    below = ("store GLB: A B C", "for m in 99", "for n in 4", "for k in 2", "compute C @ MAC")
    result = el.evaluate(workload, "two-level", "\n".join(("store DRAM: A B C", *loops, *below)))
    printed = text.tree(result)
    assert f"{loops[0]}  # the last tile: 98" in printed and f"{loops[1]}  # the last tile: 2" in printed
    assert printed.count("last tile") == 2
    assert el.evaluate(workload, "two-level", printed).cost == result.cost
    drawn = LoopTree().draw(LoopTree().data([result], []))
    tips = [shape.tip for shape in drawn.shapes if isinstance(shape, Box)]
    assert sum("the last of 98" in tip for tip in tips) == 1 and sum("the last of" in tip for tip in tips) == 2


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


@pytest.mark.parametrize(
    ("guarantee", "bound", "value", "said"),
    [
        (Guarantee.NONE, 0.0, None, "nothing better was found"),
        (Guarantee.NONE, 0.0, 7.0, "7 J was reached"),
        (Guarantee.BOUNDED, 0.0, None, "nothing is known"),
        (Guarantee.BOUNDED, 3.0, None, "not below 3 J"),
        (Guarantee.OPTIMAL, None, None, "nothing legal"),
        (Guarantee.OPTIMAL, 6.0, 6.0, "6 J"),
    ],
)
def test_what_is_known_of_the_other_numbers_of_tiles(
    guarantee: Guarantee, bound: float | None, value: float | None, said: str
) -> None:
    """That nothing is below 0 J is known of every problem."""
    both = (Alternative("tiles=1", bound, value), Alternative("tiles=2", 5.0, 5.0))
    certificate = Certificate(guarantee, 5.0, 0.0, "ffm", alternatives=both)
    assert text.choices(Objective("energy"), certificate) == f"the best has tiles=2; tiles=1: {said}"


if __name__ == "__main__":
    for saved in SAVED:
        for which, made in VIEWS.items():
            golden(saved, which).write_text(made(read(saved)) + "\n", encoding="utf-8")

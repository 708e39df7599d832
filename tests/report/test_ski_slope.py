"""Curves over capacities: what shares an axis, and capacities without a mapping that do not read as values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import einloom as el
from commands import run
from einloom.problem import Objective
from einloom.questions import problem
from einloom.report.draw.ski_slope import ski_slope, titles
from einloom.result.sweep import CapacityPoint, Sweep, read_sweep
from einloom.result.unmapped import Unmapped
from einloom.sweep import sweep_capacity

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'einloom[figures]'")

KIB = 8192


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sweeps of traffic and of energy, and one of another memory."""
    found = tmp_path_factory.mktemp("swept")
    machines = {"traffic:DRAM": "two-level", "energy": "simple"}
    asked = {goal: problem("matmul:m=8,n=8,k=8", machine, goal, 1) for goal, machine in machines.items()}
    for name, goal, memory in (("a", "traffic:DRAM", "GLB"), ("b", "energy", "GLB"), ("c", "traffic:DRAM", "DRAM")):
        sweep_capacity(asked[goal], memory, [8, 16 * KIB, 32 * KIB], found / name)
    return found


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def swept(folder: Path) -> Sweep:
    return read_sweep(folder / "a" / "fused.json")


def unfinished(sweep: Sweep) -> Sweep:
    """The sweep with a search for 8 bits that ended too early."""
    first = sweep.points[0].answer
    assert isinstance(first, Unmapped)
    return replace(sweep, points=(CapacityPoint(8, replace(first, status="unfinished")), *sweep.points[1:]))


@pytest.mark.parametrize(
    ("other", "said"),
    [("b", "the objective is energy, in"), ("c", "the capacity of DRAM varies, in")],
)
def test_what_differs_shares_no_axis(folder: Path, tmp_path: Path, other: str, said: str) -> None:
    files = [folder / name / "fused.json" for name in ("a", other)]
    code, output = run("figure", "ski-slope", *files, "-o", tmp_path / "f.svg")
    assert code == 2 and str(files[1]) in output and said in " ".join(output.split())


@pytest.mark.parametrize(("end", "role", "said"), [(False, "nothing", "no mapping"), (True, "unfinished", "search un")])
def test_a_capacity_without_a_mapping_is_no_value(swept: Sweep, end: bool, role: str, said: str) -> None:
    one = unfinished(swept) if end else swept
    plot = ski_slope([one], ["x"])
    (mark,) = [mark for mark in plot.marks if mark.role == role]
    values = [point.answer.value for point in one.points if isinstance(point.answer, el.Result)]
    assert plot.up.ticks is not None
    assert plot.up.low < mark.at[1] < min([*values, *(at for at, _ in plot.up.ticks)])
    assert mark.label.startswith(said) and ("search ended" in mark.tip) == end
    legend = el.figures.ski_slope(one).axes[0].get_legend()
    assert any(text.get_text().startswith(said) for text in legend.get_texts())


def test_rows_of_several_sweeps_are_apart(swept: Sweep) -> None:
    plot = ski_slope([swept, unfinished(swept)], ["x", "y"])
    marks = [mark for mark in plot.marks if mark.role in ("nothing", "unfinished")]
    assert len({mark.at[1] for mark in marks}) == 2
    assert [mark.label for mark in marks] == ["x, no mapping", "y, search unfinished"]


def test_searches_that_ended_are_not_called_infeasible(swept: Sweep) -> None:
    with pytest.raises(el.SpecError, match="no capacity of these sweeps has a legal mapping"):
        ski_slope([replace(swept, points=swept.points[:1])], ["x"])
    with pytest.raises(el.SpecError, match="the searches for 1 of 1 capacities ended before they found a mapping"):
        ski_slope([replace(swept, points=unfinished(swept).points[:1])], ["x"])


def test_axes_have_units_and_bounds_a_name(folder: Path) -> None:
    sweep = read_sweep(folder / "b" / "fused.json")
    plot = ski_slope([sweep], ["x"])
    assert plot.up.ticks and all(text.endswith("J") for _, text in plot.up.ticks)
    last = sweep.points[-1].answer
    assert isinstance(last, el.Result) and last.certificate is not None
    open_ = replace(last, certificate=replace(last.certificate, bound=last.value / 2))
    plot = ski_slope([replace(sweep, points=(CapacityPoint(KIB, open_),))], ["x"])
    assert [line.label for line in plot.lines] == ["x", "bound"]
    edp = replace(last, problem=replace(last.problem, objective=Objective("edp")))
    plot = ski_slope([replace(sweep, points=(CapacityPoint(KIB, edp),))], ["x"])
    assert plot.up.name == "least EDP [J s]"


def test_sweeps_of_one_title_have_labels_of_their_own(swept: Sweep) -> None:
    assert titles([swept, replace(swept, title="other")]) == [swept.title, "other"]
    found = titles([replace(swept, file="p/fused.json"), replace(swept, file="q/fused.json")])
    assert found == [f"{swept.title} (p/fused)", f"{swept.title} (q/fused)"]
    assert len(set(titles([swept, swept]))) == 2


def test_capacities_along_the_axis_do_not_touch(swept: Sweep) -> None:
    answer = swept.points[-1].answer
    points = tuple(CapacityPoint(KIB * kib, answer) for kib in (2, 4, 8, 16, 32, 2**25))
    figure = el.figures.ski_slope(replace(swept, points=points))
    figure.draw_without_rendering()
    labels = figure.axes[0].get_xticklabels()
    assert labels[0].get_text() == "2 KiB"
    edges = [label.get_window_extent().x1 for label in labels]
    upright = [label for label in labels if not label.get_rotation()]
    assert not upright or all(one.get_window_extent().x1 < two.get_window_extent().x0 for one, two in pairwise(labels))
    assert all(two - one > 12 for one, two in pairwise(edges))

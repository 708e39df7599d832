"""Whatever the names and however many bars: no number is cut, no two words touch, and what is left out is said."""

from __future__ import annotations

import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import einloom as el
from einloom.report.draw.bars import Stacked, Traffic
from einloom.report.draw.drawing import Ruler, Words
from einloom.report.draw.looptree import LoopTree
from einloom.report.draw.plot import marked
from einloom.report.draw.scene import in_one_unit
from einloom.report.draw.svg import html_of
from einloom.report.pictures import drawn

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'einloom[figures]'")
from einloom import figures

RESULTS = Path(__file__).parent / "results"
LONG = "a_very_long_name_of_a_result_with_many_words_for_seed_number_"


@pytest.fixture(autouse=True)
def _no_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(scope="module")
def hundred() -> el.Result:
    """A hundred Einsums and 201 tensors."""
    tree = el.map("matmuls:n=100,m=16,kn=16", "simple", objective="energy", method="random", steps=2)
    assert isinstance(tree, el.Result)
    return tree


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> el.Result:
    """Two matrix multiplications in which everything has a name of sixty letters and more."""
    names = {name: f"{LONG}{name}" for name in ("A", "B", "C", "D", "E")}
    text = "schema: workload/1\nname: long\nranks: {LONGm: 16, k: 16, n: 16, p: 16}\nbits: 8\neinsums:\n"
    text += "  - {C}[LONGm,n] = {A}[LONGm,k] * {B}[k,n]\n  - {E}[LONGm,p] = {C}[LONGm,n] * {D}[n,p]\n"
    for name, long in names.items():
        text = text.replace(f"{{{name}}}", long)
    path = tmp_path_factory.mktemp("long") / "long.yaml"
    path.write_text(text.replace("LONG", LONG), encoding="utf-8")
    found = el.map(path, "simple", objective="energy", method="random", steps=5)
    assert isinstance(found, el.Result)
    return found


def words_of(axes: Any) -> list[Any]:
    """Every text of a plot that is seen."""
    legend = axes.get_legend()
    found = [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts, axes.xaxis.label]
    return [text for text in [*found, *(legend.get_texts() if legend else ())] if text.get_text()]


def check_words(figure: Any) -> None:
    """All words lie inside the figure, and none of those that are level touches another."""
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    for axes in figure.axes:
        level = [text for text in words_of(axes) if not text.get_rotation()]
        for text in words_of(axes):
            box = text.get_window_extent()
            inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
            assert inside, text.get_text()
        for one, other in combinations(level, 2):
            apart = not one.get_window_extent().overlaps(other.get_window_extent())
            assert apart, (one.get_text(), other.get_text())


def test_a_hundred_einsums_and_what_is_left_out(hundred: el.Result) -> None:
    traffic, energy, filling = (figures.picture(name, hundred) for name in ("traffic", "energy", "occupancy"))
    check_words(traffic)
    (axes,) = traffic.axes
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(names) == 41 and names[-1] == f"and {len(hundred.workload.tensors) - 40} more"
    assert "of more than 40 Einsums, so tensors have no legend" in filling.axes[0].get_title(loc="left")
    (axes,) = energy.axes
    energy.draw_without_rendering()
    above = energy.bbox.height - axes.get_window_extent().y1
    assert above < 0.3 * energy.dpi


def test_long_names_of_einsums_and_tensors(long_names: el.Result) -> None:
    for name in ("occupancy", "energy", "traffic", "latency"):
        check_words(figures.picture(name, long_names))
    shown = [text.get_text() for text in figures.occupancy(long_names).axes[-1].get_xticklabels()]
    assert len(set(shown)) == len(long_names.workload.einsums)


def test_long_names_of_results() -> None:
    results = [el.Result.read(RESULTS / f"chain-{name}.json") for name in ("loops0", "loops1", "edp")]
    labels = [f"{LONG}{i}" for i in range(4)]
    several = [*results, results[0]]
    for name in ("energy", "pareto", "search", "latency"):
        figure = figures.picture(name, *several, labels=labels)
        check_words(figure)
        (axes,) = figure.axes
        assert axes.get_position().width * figure.get_size_inches()[0] > 3
    bars = figures.picture("energy", *several, labels=labels).axes[0]
    assert [text.get_text()[-1] for text in bars.get_yticklabels()] == ["0", "1", "2", "3"]
    told = [text.get_text() for text in figures.picture("pareto", *several, labels=labels).axes[0].texts]
    assert any("and 1 more" in text for text in told)
    page = html_of(drawn(Stacked(), several, labels))
    assert all(f'title="{label}"' in page for label in labels)


def test_points_in_one_place_have_one_label() -> None:
    result = el.Result.read(RESULTS / "chain-loops0.json")
    figure = figures.picture("pareto", result, result, labels=["p", "q"])
    check_words(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == ["p, q"]


def test_the_trips_of_a_loop_are_never_cut(long_names: el.Result) -> None:
    for result, first, count in ((long_names, 0, 2), (long_names, 0, 1), (el.Result.read(RESULTS / "gpt3.json"), 4, 1)):
        canvas = LoopTree(first, count).draw(LoopTree().data([result], [""]))
        loops = [s.text for s in canvas.shapes if isinstance(s, Words) and s.text.startswith(("for ", "par "))]
        assert loops and all(text.partition(" × ")[2][:1].isdigit() for text in loops)
        assert not any("…" in text.partition(" × ")[2] for text in loops)
    assert any(text.endswith("… × 16") for text in told_on(long_names))


def told_on(result: el.Result) -> list[str]:
    canvas = LoopTree().draw(LoopTree().data([result], [""]))
    return [shape.text for shape in canvas.shapes if isinstance(shape, Words)]


@pytest.mark.parametrize(
    ("what", "largest", "said"),
    [("size", 1.137 * 8 * 2**40, "TiB"), ("size", 7500.0, "bit"), ("energy", 2.4e-6, "µJ"), ("time", 0.0067, "ms")],
)
def test_an_axis_has_one_unit_and_round_numbers(what: Any, largest: float, said: str) -> None:
    unit, shown = in_one_unit(what, largest)
    texts = [text for value, text in marked(Ruler("", 0.0, 1.16 * largest, shown, unit=unit)) if value]
    assert len(texts) >= 2 and {text.split()[1] for text in texts} == {said}
    assert all(len(text.split()[0].strip("0.")) <= 2 for text in texts)


def test_ticks_near_each_other_have_digits_enough() -> None:
    unit, shown = in_one_unit("time", 6.76513e-3)
    texts = [text for _, text in marked(Ruler("", 6.76512e-3, 6.76513e-3, shown, unit=unit))]
    assert len(set(texts)) == len(texts) > 2


def test_traffic_is_marked_in_one_unit(results: dict[str, el.Result]) -> None:
    plot = drawn(Traffic(), [results["gpt3"]])
    texts = [text for value, text in marked(plot.across) if value]  # type: ignore[union-attr]
    assert len({text.split()[1] for text in texts}) == 1

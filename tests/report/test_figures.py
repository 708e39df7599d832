"""Figures draw the numbers of saved results, the same bytes every time, and say what they cannot draw."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import einloom as el
from commands import run
from einloom.report.compare import labels_of
from einloom.report.draw.roofline import points

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'einloom[figures]'")
figures = el.figures
RESULTS = Path(__file__).parent / "results"
ONE = ("energy", "traffic", "latency", "roofline", "looptree", "occupancy", "cascade", "search", "pareto")


def lengths(axes: Any) -> float:
    """Sum of all bars."""
    return float(sum(bar.get_width() for bar in axes.patches))


@pytest.mark.parametrize("kind", ONE)
def test_every_kind_is_drawn(kind: str, tmp_path: Path) -> None:
    name = "gpt3" if kind in ("looptree", "cascade") else "pareto" if kind == "pareto" else "chain-loops1"
    target = tmp_path / f"{kind}.svg"
    code, output = run("figure", kind, RESULTS / f"{name}.json", "-o", target)
    assert (code, output) == (0, f"wrote {target}\n")
    drawn = target.read_text(encoding="utf-8")
    assert drawn.count("<path") > 3
    told = {"energy": "DRAM", "looptree": "QK_softmax", "cascade": "FFB", "occupancy": "T2", "roofline": "unfused"}
    assert f">{told.get(kind, '')}" in drawn
    run("figure", kind, RESULTS / f"{name}.json", "-o", target)
    assert target.read_text(encoding="utf-8") == drawn


def test_formats(results: dict[str, el.Result], tmp_path: Path) -> None:
    drawn = figures.energy_bars(results["matmul"])
    starts = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}
    for kind, start in starts.items():
        paths = [tmp_path / f"{i}.{kind}" for i in range(2)]
        for path in paths:
            figures.save(drawn, path)
        assert paths[0].read_bytes().startswith(start)
        assert paths[0].read_bytes() == paths[1].read_bytes()
    with pytest.raises(el.SpecError, match=r"pdf, svg, png.*did you mean '.*x\.png'"):
        figures.save(drawn, tmp_path / "x.pgn")


@pytest.mark.parametrize(
    ("rows", "parts"),
    [("einsum", "component"), ("component", "tensor"), ("tensor", "action"), ("action", "einsum")],
)
def test_bars_add_up(results: dict[str, el.Result], rows: str, parts: str) -> None:
    result = results["gpt3"]
    (axes,) = figures.energy_bars(result, rows=rows, parts=parts).axes
    assert lengths(axes) == pytest.approx(result.energy)
    (axes,) = figures.traffic_bars(result, rows=rows, parts=parts).axes
    assert lengths(axes) == sum(result.cost.traffic(memory.name) for memory in result.machine.memories)


def test_a_bar_per_result() -> None:
    several = [el.Result.read(RESULTS / f"chain-{name}.json") for name in ("loops0", "loops1", "edp")]
    (axes,) = figures.energy_bars(*several, labels=["none", "one", "edp"]).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["none", "one", "edp"]
    assert lengths(axes) == pytest.approx(sum(result.energy for result in several))
    with pytest.raises(el.SpecError, match="1 labels for 3 results"):
        figures.energy_bars(*several, labels=["none"])
    assert labels_of(several) == [
        "energy, ffm with at most 0 fused loops",
        "energy, ffm with at most 1 fused loop",
        "edp, ffm",
    ]


def test_busy_time_and_latency(results: dict[str, el.Result]) -> None:
    result = results["gpt3"]
    (axes,) = figures.latency_breakdown(result).axes
    assert lengths(axes) == pytest.approx(sum(seconds for *_, seconds in result.cost.busy))
    marks = [line.get_xdata()[0] for line in axes.lines]
    assert marks == pytest.approx([seconds for _, seconds in result.cost.einsum_latency if seconds])


def test_the_roofline_shows_both_sides(results: dict[str, el.Result]) -> None:
    (axes,) = figures.roofline(results["gpt3"]).axes
    shown = {tuple(map(float, group.get_offsets()[0])) for group in axes.collections}
    for unfused in (False, True):
        whole = points(results["gpt3"], unfused)[-1]
        assert (whole.intensity, whole.attainable) in shown


def test_bands_fill_the_occupancy(results: dict[str, el.Result]) -> None:
    result = results["gpt3"]
    for axes in figures.occupancy(result).axes:
        name = axes.get_title(loc="left").partition(":")[0]
        assert max(patch.get_y() + patch.get_height() for patch in axes.patches) == result.cost.occupancy_of(name)
    with pytest.raises(el.SpecError, match="holds nothing here"):
        figures.occupancy(result, memory="nowhere")


def test_large_and_hostile_results_are_drawn(results: dict[str, el.Result]) -> None:
    for name in ("large", "hostile", "pipeline"):
        for draw in (figures.looptree, figures.cascade, figures.occupancy):
            assert draw(results[name]).axes
    assert {text.get_text() for text in figures.looptree(results["large"], first=300, count=4).axes[0].texts} >= {
        f"E{i}" for i in range(300, 304)
    }


def test_what_cannot_be_drawn_is_said(results: dict[str, el.Result], tmp_path: Path) -> None:
    with pytest.raises(el.SpecError, match="none of these results was searched for"):
        figures.progress(results["pipeline"])
    code, output = run("figure", "enrgy", RESULTS / "matmul.json", "-o", tmp_path / "f.pdf")
    assert code == 2 and "did you mean 'energy'" in output
    code, output = run("figure", "cascade", RESULTS / "matmul.json", "--rows", "tensor", "-o", tmp_path / "f.pdf")
    assert code == 2 and "--rows means nothing" in output
    code, output = run("figure", "energy", RESULTS / "infeasible.json", "-o", tmp_path / "f.pdf")
    assert code == 2 and "holds no mapping" in output
    code, output = run("figure", "energy", RESULTS / "matmul.json", "-o", tmp_path / "no" / "f.pdf")
    assert code == 2 and "there is no folder" in output


def test_without_matplotlib_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import einloom as el\n"
        f"r = el.Result.read({str(RESULTS / 'matmul.json')!r})\n"
        "try: el.figures.energy_bars(r)\n"
        "except el.EinloomError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'einloom[figures]'" in done.stdout
    listed = "import einloom, einloom.cli, sys; print([m for m in ('matplotlib', 'pandas') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout == "[]\n"

"""Objects draw themselves in notebooks, safely and without scripts; results become DataFrames; the tutorial runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_names import IMAGE, SCRIPT
from test_page import Outline

import einloom as el
from einloom.report.frames import FRAMES
from einloom.report.page.snippet import _scoped_style
from einloom.result.unmapped import Unmapped

TUTORIAL = Path(__file__).resolve().parents[2] / "examples" / "tutorial.ipynb"
EXTRA = "is not installed: pip install 'einloom[notebook]'"


@pytest.mark.parametrize("name", ["matmul", "gpt3", "large", "pareto", "pipeline", "hostile"])
def test_everything_draws_itself(results: dict[str, el.Result], name: str) -> None:
    result = results[name]
    for thing in (result, result.workload, result.machine, result.mapping):
        text = thing._repr_html_()
        outline = Outline(text)
        assert text.startswith('<div class="einloom">') and text.endswith("</div>")
        assert not outline.outside
        assert {"script", "img", "iframe"}.isdisjoint(outline.tags)
        assert IMAGE not in text and SCRIPT not in text
        assert len(text) < 400_000


def test_drawings_hold_what_they_are_of(results: dict[str, el.Result], infeasible: Unmapped) -> None:
    result = results["gpt3"]
    for einsum in result.mapping.einsums:
        for thing in (result, result.workload, result.mapping):
            assert f">{einsum}<" in thing._repr_html_()
    for level in result.machine.levels:
        assert f">{level.name}</th>" in result.machine._repr_html_()
    assert "GLB holds 32768 bits" in infeasible._repr_html_()


def test_no_style_leaves_the_box() -> None:
    for selectors in re.findall(r"([^{}]+)\{", _scoped_style()):
        assert all(selector.startswith(".einloom") for selector in selectors.split(","))


def test_data_does_not_import_its_drawing() -> None:
    shown = "print([m for m in sys.modules if 'einloom.report.' in m])"
    code = f"import einloom.zoo.workload_by_name, einloom.result, sys; {shown}"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_result_writes_its_report(results: dict[str, el.Result], tmp_path: Path) -> None:
    results["matmul"].report(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_frames_hold_the_numbers(results: dict[str, el.Result]) -> None:
    pytest.importorskip("pandas", reason=f"pandas {EXTRA}")
    result = results["gpt3"]
    assert result.to_frame()["energy"].sum() == pytest.approx(result.energy)
    energy = result.to_frame("energy")
    assert list(energy.index) == list(result.mapping.einsums)
    assert energy.to_numpy().sum() == pytest.approx(result.energy)
    traffic = result.to_frame("traffic")
    assert traffic.loc["DRAM"].to_numpy().sum() == result.cost.traffic("DRAM")
    occupancy = result.to_frame("occupancy")
    assert occupancy[occupancy["memory"] == "GLB"]["bits"].sum() == result.cost.occupancy_of("GLB")
    assert len(result.to_frame("trace")) == len(result.trace)
    assert len(result.to_frame("latency")) == len(result.cost.busy)
    assert list(result.to_frame("front").columns) == ["energy", "latency", "edp", "mapping"]
    assert len(results["pareto"].to_frame("front")) == 15
    with pytest.raises(el.SpecError, match="did you mean 'energy'"):
        result.to_frame("enrgy")


def test_counts_beyond_64_bits_are_read_back_and_framed() -> None:
    size = 2**20
    mapping = f"store DRAM: A B Z\nfor m in {size}\nfor n in {size}\nfor k in {size}\ncompute Z @ MAC"
    result = el.evaluate(f"matmul:m={size},n={size},k={size}", "simple", mapping)
    assert result.cost.traffic("DRAM") > 2**63
    assert el.Result.from_json(result.to_json()) == result
    pytest.importorskip("pandas", reason=f"pandas {EXTRA}")
    assert sum(int(bits) for bits in result.to_frame("traffic").to_numpy().ravel()) == result.cost.traffic("DRAM")
    with pytest.raises(el.SpecError, match="must be a whole number from 1 to"):
        el.load_workload(f"matmul:m={2**63},n=1,k=1")


@pytest.mark.parametrize("what", FRAMES)
def test_without_pandas_the_extra_is_named(
    results: dict[str, el.Result], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(el.EinloomError, match=r"pip install 'einloom\[notebook\]'"):
        results["pareto"].to_frame(what)


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    """Every cell, in a kernel of its own, in an empty folder; cells say what they expect by asserting it."""
    nbformat = pytest.importorskip("nbformat", reason=f"nbformat {EXTRA}")
    for library in ("ipykernel", "nbclient", "pandas", "matplotlib"):
        pytest.importorskip(library, reason=f"{library} is not installed: pip install 'einloom[notebook,figures]'")
    notebook = nbformat.read(TUTORIAL, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    code = (
        "import sys, nbformat, nbclient\n"
        "book = nbformat.read(sys.argv[1], as_version=4)\n"
        "place = {'metadata': {'path': sys.argv[2]}}\n"
        "nbclient.NotebookClient(book, timeout=120, kernel_name='python3', resources=place).execute()\n"
        "nbformat.write(book, sys.argv[3])\n"
    )
    done = tmp_path / "done.ipynb"
    folder = tmp_path / "empty"
    folder.mkdir()
    source = str(Path(el.__file__).parents[1])
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython"), "PYTHONPATH": source}
    arguments = [sys.executable, "-c", code, str(TUTORIAL), str(folder), str(done)]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=300, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    book = nbformat.read(done, as_version=4)
    shown = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    drawn = [out for out in shown if "text/html" in out.get("data", {})]
    assert sum('class="einloom"' in out["data"]["text/html"] for out in drawn) >= 4
    assert not [out for out in shown if out.output_type == "error"]
    assert (folder / "r.html").exists() and (folder / "r.json").exists()

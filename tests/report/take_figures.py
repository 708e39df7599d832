"""Takes the pictures of docs/report.md: `python tests/report/take_figures.py` writes them to docs/figures."""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from chromium import chrome, resize
from large_network import chain

from einloom import Result, figures
from einloom.questions import problem
from einloom.report.compare import compare
from einloom.report.page import write_page
from einloom.result.unmapped import Unmapped, read_answer
from einloom.sweep import sweep_capacity

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "docs" / "figures"
DESK, PHONE = 1280, 390
FRAME = """const box = document.querySelector(arguments[0]).getBoundingClientRect();
return [box.top + scrollY, box.bottom + scrollY]"""


def take(driver: Any, name: str, width: int, top: float, bottom: float) -> None:
    """Save the part of the page between two heights."""
    clip = {"x": 0, "y": top, "width": width, "height": bottom - top, "scale": 1}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (FIGURES / f"report-{name}.png").write_bytes(base64.b64decode(shot["data"]))


def sections(driver: Any, name: str, first: str, last: str, width: int = DESK) -> None:
    """Save everything from the top of one part to the end of another."""
    top, bottom = (driver.execute_script(FRAME, f"#{part}")[i] for i, part in enumerate((first, last)))
    take(driver, name, width, max(0.0, top - 10), bottom + 10)


def main() -> None:
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        sys.exit("Chromium is missing: apt-get install chromium chromium-driver")
    FIGURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        driver = chrome(chromium, chromedriver, Path(folder) / "profile")
        try:
            _figures(driver, Path(folder))
        finally:
            driver.quit()


def _figures(driver: Any, folder: Path) -> None:
    def show(name: str, result: Result | Unmapped, width: int) -> None:
        write_page(result, folder / f"{name}.html")
        resize(driver, width, 900)
        driver.get((folder / f"{name}.html").as_uri())

    gpt3, conv = (Result.read(HERE / "results" / f"{name}.json") for name in ("gpt3", "conv-chain"))
    show("gpt3", gpt3, DESK)
    sections(driver, "summary", "top", "summary")
    sections(driver, "mapping", "mapping", "mapping")
    sections(driver, "occupancy", "cascade", "occupancy")
    sections(driver, "roofline", "breakdown", "search")
    driver.execute_script("document.querySelector('#chips button[data-t=\"4\"]').click()")
    driver.execute_script("document.getAnimations().forEach(a => a.finish())")
    sections(driver, "highlight", "mapping", "cascade")
    show("conv", conv, PHONE)
    sections(driver, "phone", "top", "cascade", PHONE)
    show("large", chain(), DESK)
    sections(driver, "large", "mapping", "occupancy")
    show("infeasible", read_answer(HERE / "results" / "infeasible.json"), DESK)
    sections(driver, "infeasible", "top", "limits")
    show("pareto", Result.read(HERE / "results" / "pareto.json"), DESK)
    sections(driver, "front", "front", "front")
    compare([HERE / "results" / f"chain-{name}.json" for name in ("loops0", "loops1", "edp")]).write(folder / "c.html")
    driver.get((folder / "c.html").as_uri())
    sections(driver, "compare", "table", "search")
    _notebook(driver, folder, gpt3)
    _papers(gpt3, folder)


def _notebook(driver: Any, folder: Path, result: Result) -> None:
    """What a notebook shows of a result, on an empty page."""
    page = f"<!doctype html><meta charset=utf-8><body style='margin:12px;width:1100px'>{result._repr_html_()}</body>"
    (folder / "n.html").write_text(page, encoding="utf-8")
    driver.get((folder / "n.html").as_uri())
    take(driver, "notebook", 1124, 0, driver.execute_script("return document.documentElement.scrollHeight"))
    (FIGURES / "report-notebook.png").rename(FIGURES / "notebook.png")


def _papers(result: Result, folder: Path) -> None:
    """Figures as they go into papers; the one over capacities is of a chain that is swept here."""
    figures.save(figures.looptree(result), FIGURES / "figure-looptree.png")
    figures.save(figures.cascade(result), FIGURES / "figure-cascade.png")
    figures.save(figures.energy_bars(result), FIGURES / "figure-energy.png")
    figures.save(figures.roofline(result), FIGURES / "figure-roofline.png")
    figures.save(figures.occupancy(result, memory="GLB"), FIGURES / "figure-occupancy.png")
    asked = problem("matmuls:n=3,m=128,kn=128", "two-level", "traffic:DRAM", 2)
    sizes = [kib * 8192 for kib in (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)]
    sweeps = [sweep_capacity(asked, "GLB", sizes, folder / "sweep", fused=fused) for fused in (True, False)]
    figures.save(figures.ski_slope(*sweeps), FIGURES / "figure-ski-slope.png")


if __name__ == "__main__":
    main()

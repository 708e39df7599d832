"""Takes the screenshots of docs/report.md: `python tests/report/take_figures.py` writes docs/figures/report-*.png."""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from chromium import chrome, resize
from large_network import chain

from einloom import Result
from einloom.report.html import write_page

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
    def show(name: str, result: Result, width: int) -> None:
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


if __name__ == "__main__":
    main()

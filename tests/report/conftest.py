"""Saved results, and a headless Chromium where there is one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chromium import chrome
from hostile_names import hostile
from large_network import chain
from pipeline import pipelined

from einloom import Result
from einloom.report.compare import compare
from einloom.report.page import write_page
from einloom.result.unmapped import Unmapped, read_answer

RESULTS = Path(__file__).parent / "results"
COMPARED = ("loops0", "loops1", "edp")
SAVED = ("matmul", "conv-chain", "gpt3", "pareto")


@pytest.fixture(scope="session")
def results() -> dict[str, Result]:
    """The saved results by name, a large network, one with hostile names, and a pipeline."""
    found = {name: Result.read(RESULTS / f"{name}.json") for name in SAVED}
    return {**found, "large": chain(), "hostile": hostile(), "pipeline": pipelined("pipelined, shared")}


@pytest.fixture(scope="session")
def infeasible() -> Unmapped:
    """Three matrix multiplications that must be fused in a buffer too small for it."""
    found = read_answer(RESULTS / "infeasible.json")
    assert isinstance(found, Unmapped)
    return found


@pytest.fixture(scope="session")
def pages(
    results: dict[str, Result], infeasible: Unmapped, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Name of a result (or ``infeasible``, ``compare``) -> its page as a file, made once."""
    folder = tmp_path_factory.mktemp("reports")

    def made(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            if name == "compare":
                compare([RESULTS / f"chain-{which}.json" for which in COMPARED]).write(path)
            else:
                write_page(infeasible if name == "infeasible" else results[name], path)
        return path

    return made


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium that selenium drives; skips where either is missing."""
    pytest.importorskip("selenium.webdriver", reason="selenium is not installed: `make test-browser`")
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("Chromium is missing: apt-get install chromium chromium-driver")
    driver = chrome(chromium, chromedriver, tmp_path_factory.mktemp("profile"))
    try:
        yield driver
    finally:
        driver.quit()

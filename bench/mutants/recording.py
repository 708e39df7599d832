"""A plugin of pytest that records which lines each test executes: ``pytest -p bench.mutants.recording``.

`EINLOOM_REACH` names the folder for ``coverage`` (contexts are test ids) and ``tests.json`` (CPU seconds and outcome).
What the parts under test remember is forgotten before every test, or only the first test of a kind would execute it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

FORGOTTEN = ("mapping", "cost", "oracle", "mapspace", "search", "certify")


class Recorder:
    """Switches coverage.py's context from test to test."""

    def __init__(self, folder: Path, package: Path) -> None:
        import coverage

        self.folder = folder
        self.tests: dict[str, tuple[float, str]] = {}
        self.outcomes: dict[str, str] = {}
        self.coverage = coverage.Coverage(str(folder / "coverage"), source=[str(package)], config_file=False)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        forget()
        self.coverage.switch_context(item.nodeid)
        started = time.process_time()
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")
            seconds = round(time.process_time() - started, 3)
            self.tests[item.nodeid] = (seconds, self.outcomes.get(item.nodeid, "passed"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tests make errors of warnings, and an hour of recording would be lost
            self.coverage.stop()
            self.coverage.save()
        (self.folder / "tests.json").write_text(json.dumps(self.tests, indent=0), encoding="utf-8")


def forget() -> None:
    """Empty every cache of the parts under test."""
    for name, module in list(sys.modules.items()):
        if name.startswith("einloom.") and name.split(".")[1] in FORGOTTEN:
            for thing in list(vars(module).values()):
                if callable(clear := getattr(thing, "cache_clear", None)):
                    clear()


def steady() -> None:
    """The same examples of Hypothesis every time, however long they take: a busy machine decides nothing."""
    import hypothesis

    hypothesis.settings.register_profile("steady", deadline=None, derandomize=True, database=None)
    hypothesis.settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    steady()
    folder = Path(os.environ["EINLOOM_REACH"])
    config.pluginmanager.register(Recorder(folder, config.rootpath / "src" / "einloom"))

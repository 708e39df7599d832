"""A plugin of pytest that runs the tests of a list, in its order: ``pytest -p bench.mutants.choosing FILES``.

`EINLOOM_CHOSEN` names a JSON file with their ids; `EINLOOM_FAILED` a file for the id of the first that fails.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench.mutants.recording import steady


def pytest_configure() -> None:
    steady()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = json.loads(Path(os.environ["EINLOOM_CHOSEN"]).read_text("utf-8"))
    place = {name: i for i, name in enumerate(chosen)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in place])
    items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


def _note(name: str) -> None:
    path = Path(os.environ["EINLOOM_FAILED"])
    if not path.exists():
        path.write_text(name, encoding="utf-8")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _note(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _note(report.nodeid)

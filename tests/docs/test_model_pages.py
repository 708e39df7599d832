"""Every page of docs/model shows at least one worked example, and `evaluate` agrees with all of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from worked import DOCS, check, load_cases

NOT_ASSUMPTIONS = ("README.md", "integer-tiles.md", "pruning.md", "trust.md")
PAGES = sorted(page for page in (DOCS / "model").glob("*.md") if page.name not in NOT_ASSUMPTIONS)
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def cases(page: Path) -> list[dict[str, Any]]:
    return [case for block in BLOCK.findall(page.read_text(encoding="utf-8")) for case in load_cases(block)]


ALL = [(page.stem, case) for page in PAGES for case in cases(page)]


@pytest.mark.parametrize(("page", "case"), ALL, ids=[f"{page}: {case['case']}" for page, case in ALL])
def test_worked_example(page: str, case: dict[str, Any]) -> None:
    check(case)


def test_every_page_has_an_example_and_is_listed() -> None:
    index = (DOCS / "model" / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert cases(page), f"{page.name} has no worked example"
        assert f"({page.name})" in index, f"{page.name} is not in the list"

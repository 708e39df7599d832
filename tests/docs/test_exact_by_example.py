"""docs/exact-by-example.md: every block is run, every number is what the stages give."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exact-by-example.md"


def test_the_example_is_what_the_search_does() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 40
    assert found.failed == 0

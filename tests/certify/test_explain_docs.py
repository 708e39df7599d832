"""The page of `explain` does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import DOCS, play


def test_the_page_prints_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert play((DOCS / "explain.md").read_text(encoding="utf-8"), tmp_path) == 7
    assert 'id="explanation"' in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert max(map(len, (DOCS / "explain.md").read_text(encoding="utf-8").splitlines())) <= 132

"""Every measured table of the pages is its CSV, of this version; and a page that differs is told so."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def test_the_pages_show_their_csvs(capsys: pytest.CaptureFixture[str]) -> None:
    from bench.pages import main

    assert main(["--check"]) == 0, capsys.readouterr().out


def test_every_mark_of_a_page_is_a_table() -> None:
    """No page has a mark that nothing writes."""
    from bench.tables import TABLES

    known = {(table.page, table.name) for table in TABLES}
    pages = [path for path in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md") if "_build" not in path.parts]
    marked = {
        (str(path.relative_to(ROOT)), line.removeprefix("<!-- table ").removesuffix(" -->"))
        for path in pages
        for line in path.read_text(encoding="utf-8").split("\n")
        if line.startswith("<!-- table ")
    }
    assert marked == known


MEASURED = re.compile(r"\d (?:CPU )?(?:s|ms|min|[kMG]i?B)\b|\d [mµ]?J s\b|\b(?:CPU|peak)\b")
"""Seconds and bytes of a run, EDP, or a head that speaks of CPU time or a peak. Energies of a model may be a peer's."""


def hand_written(text: str) -> list[str]:
    """The lines of tables outside the marks that look measured."""
    found, inside = [], False
    for line in text.split("\n"):
        inside = line.startswith("<!-- table ") or (inside and not line.startswith("<!-- end of table "))
        if line.startswith("|") and not inside and any(MEASURED.search(cell.strip()) for cell in line.split("|")):
            found.append(line)
    return found


def test_no_page_has_a_measured_table_that_nothing_writes() -> None:
    pages = [path for path in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md") if "_build" not in path.parts]
    found = {str(path.relative_to(ROOT)): hand_written(path.read_text(encoding="utf-8")) for path in pages}
    assert not {page: lines for page, lines in found.items() if lines}


def test_a_table_by_hand_is_found() -> None:
    marked = "<!-- table x -->\n| a | CPU s |\n| --- | --- |\n| b | 3 s |\n<!-- end of table x -->\n"
    named = "| key | what |\n| --- | --- |\n| `setup` | seconds before a transfer |\n"
    assert not hand_written(marked + named)
    assert hand_written(marked + named + "| b | 433.0 ms, 8.5 s |\n") == ["| b | 433.0 ms, 8.5 s |"]
    assert hand_written("| problem | peak |\n") and hand_written("| a | 1.08 mJ s |\n") and hand_written("| 419 MiB |")


def _written(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> Path:
    from bench import measured, pages
    from bench.measured import Column, MeasuredTable

    table = MeasuredTable("small", "page.md", "small.csv", "python -m bench.small", (Column("value", "value"),))
    (folder / "page.md").write_text("Before.\n\n<!-- table small -->\n<!-- end of table small -->\n\nAfter.\n")
    with (folder / "small.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["value", "einloom_version", "commit", "time"])
        writer.writerow(["7", version, "abc1234", "2026-11-22T10:00:00+00:00"])
    monkeypatch.setattr(pages, "ROOT", folder)
    monkeypatch.setattr(measured, "RESULTS", folder)
    monkeypatch.setattr(pages, "TABLES", (table,))
    return folder / "page.md"


def test_a_page_is_written_once_and_then_as_its_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.pages import main

    from einloom.version import VERSION

    page = _written(tmp_path, monkeypatch, VERSION)
    assert main(["--check"]) == 1
    assert main([]) == 0 and main(["--check"]) == 0
    assert page.read_text() == (
        "Before.\n\n<!-- table small -->\n"
        f"Measured by `python -m bench.small`: einloom {VERSION}, commit abc1234, 22 November 2026.\n\n"
        "| value |\n| --- |\n| 7 |\n<!-- end of table small -->\n\nAfter.\n"
    )
    page.write_text(page.read_text().replace("| 7 |", "| 8 |"))
    assert main(["--check"]) == 1


def test_rows_of_another_version_are_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench.pages import main

    _written(tmp_path, monkeypatch, "0.0.1")
    assert main([]) == 1 and "python -m bench.small" in capsys.readouterr().out


def test_a_row_with_other_columns_is_refused(tmp_path: Path) -> None:
    from bench.rows import append

    append(tmp_path / "a.csv", {"x": 1})
    with pytest.raises(ValueError, match="other columns"):
        append(tmp_path / "a.csv", {"y": 1})
    assert (tmp_path / "a.csv").read_text() == "x\n1\n"

"""What the README shows of the main job is what the main job prints."""

from __future__ import annotations

import re
from pathlib import Path

from pages import run

README = Path(__file__).resolve().parents[2] / "README.md"
SECONDS = re.compile(r"[\d.]+ s;")


def words(line: str) -> str:
    """Words of some lines; how long the search took, and so where lines break, is another matter each time."""
    return SECONDS.sub("so many s;", " ".join(line.split()))


def test_the_main_job_prints_what_the_readme_shows() -> None:
    """Between the parts that the README leaves out (``...``), word for word."""
    text = README.read_text(encoding="utf-8")
    command = next(line for line in text.splitlines() if line.startswith("einloom map "))
    code, printed = run(command.partition(" --json")[0])
    assert code == 0
    shown = text.split("and prints (mapping shortened)\n\n```\n")[1].split("\n```")[0]
    place = 0
    for part in re.split(r"^ *\.\.\.$", shown, flags=re.MULTILINE):
        found = words(printed).find(words(part), place)
        assert found >= 0, f"not printed: {part}"
        place = found + len(words(part))

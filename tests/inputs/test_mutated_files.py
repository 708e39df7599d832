"""Damaged files of every kind: read, or refused by name; nothing hangs, nothing is executed (bench/fuzz.py)."""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)
    from bench import fuzz

    return fuzz


def check(fuzz: Any, files: int, seed: int, folder: Path) -> None:
    before = fuzz.peak_megabytes()
    outcome = fuzz.run(files, seed, folder)
    assert outcome.broken == []
    assert outcome.read + outcome.refused == files
    assert outcome.read > files / 50, "the damage leaves some files intact enough to be read"
    assert outcome.without_line.total() < files / 50, outcome.without_line
    assert fuzz.peak_megabytes() - before < 500


def test_some_files(fuzz: Any, tmp_path: Path) -> None:
    check(fuzz, 250, 7, tmp_path)


@pytest.mark.slow
def test_ten_thousand_files(fuzz: Any, tmp_path: Path) -> None:
    check(fuzz, 10_000, 0, tmp_path)


def test_the_same_seed_damages_the_same_way(fuzz: Any) -> None:
    from bench.mutate import KINDS, WEIGHTS, mutated

    original = fuzz.WORKLOAD.encode()
    assert mutated(original, "1/a") == mutated(original, "1/a") != mutated(original, "2/a")
    assert len(KINDS) == len(WEIGHTS)
    assert len({mutated(original, str(i)) for i in range(50)}) > 45


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda path: open(path.with_name("other.txt"), "w").close(), "open"),
        (lambda path: os.system("true"), "os.system"),
        (lambda path: exec("1"), "exec"),  # noqa: S102
        (lambda path: {}["a"], "KeyError"),
        (lambda path: sum(0 for _ in count()), "CPU seconds"),
    ],
)
def test_the_guard_notices(fuzz: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: object, words: str) -> None:
    """A reader that does what it must not do is found out, or the rest of this file would prove nothing."""
    monkeypatch.setattr(fuzz, "SECONDS", 0.3)
    guard, outcome = fuzz.Guard(allowed=str(tmp_path / "f.yaml")), fuzz.Outcome()
    sys.addaudithook(guard.heard)
    fuzz._one(bad, tmp_path / "f.yaml", "label", guard, outcome)
    assert any(words in what for what in outcome.broken), outcome.broken


def test_an_error_that_does_not_name_its_file_is_noticed(fuzz: Any, tmp_path: Path) -> None:
    from einloom.errors import SpecError

    def read(path: Path) -> None:
        raise SpecError("bad")

    outcome = fuzz.Outcome()
    fuzz._one(read, tmp_path / "f.yaml", "label", fuzz.Guard(), outcome)
    assert "without its file" in outcome.broken[0] and outcome.refused == 1

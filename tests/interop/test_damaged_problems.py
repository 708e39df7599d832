"""Damaged files of Timeloop and ZigZag: read, or refused with file and line; never anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

import timeloop_files
import zigzag_files
from einloom.errors import SpecError
from einloom.interop import timeloop, zigzag

FILES = 200
TIMELOOP = {
    **dict(zip(("arch.yaml", "problem.yaml", "map.yaml"), timeloop_files.CASES["bypassed"], strict=True)),
    "ERT.yaml": timeloop_files.ENERGIES,
}
ZIGZAG = {
    "accelerator.yaml": zigzag_files.ACCELERATOR,
    "layers.yaml": zigzag_files.LAYERS,
    "mapping.yaml": zigzag_files.SPREAD,
}


def test_damaged_files_are_read_or_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    monkeypatch.chdir(tmp_path)
    from bench.mutate import mutated

    said = {"read": 0, "refused": 0}
    for number in range(FILES):
        texts, tool = ((TIMELOOP, timeloop), (ZIGZAG, zigzag))[number % 2]
        victim = list(texts)[number // 2 % len(texts)]
        bad = mutated(texts[victim].encode(), f"{number}/{victim}").decode("utf-8", "replace")
        if len(bad) > 100_000:
            continue
        try:
            tool.read_texts({**texts, victim: bad})
            said["read"] += 1
        except SpecError as error:
            first = getattr(error, "problems", (error,))[0]
            if first.file not in texts or (first.line is None and "the file" not in first.message):
                pytest.fail(f"no place: {error}")
            said["refused"] += 1
    assert said["read"] > 5 and said["refused"] > FILES / 2, said
    assert list(tmp_path.iterdir()) == []

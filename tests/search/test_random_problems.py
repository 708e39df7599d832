"""Random problems of all that files can say: `exact` is what all trees say, the analysis what the oracle sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from einloom.testing.problems.claims import check
from einloom.testing.problems.dimensions import (
    COMBINED,
    DIMENSIONS,
    LATER,
    PARTED,
    impossible,
    impossible_pairs,
    pairs,
    possible_pairs,
)
from einloom.testing.problems.drawing import draw
from einloom.testing.problems.files import read_folder

FOUND = Path(__file__).parent / "found"
PROBLEMS, TOGETHER = 300, 10
CHUNKS = [
    pytest.param(first, marks=pytest.mark.slow if first % 100 != 0 else ()) for first in range(0, PROBLEMS, TOGETHER)
]


@pytest.mark.parametrize("first", CHUNKS)
def test_every_claim_holds(first: int) -> None:
    failed = {
        seed: said for seed in range(first, first + TOGETHER) if (said := check(draw(seed).files.read, seed).failed)
    }
    assert failed == {}


def folders() -> list[Path]:
    return sorted(path for path in FOUND.glob("*") if path.is_dir())


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_what_was_found_once_holds_now(folder: Path) -> None:
    """`python -m bench.truth` writes the problems that it finds here."""
    seed = json.loads((folder / "note.json").read_text())["seed"]
    assert check(read_folder(folder), seed).failed == {}


def test_pairs_that_cannot_be_have_a_reason() -> None:
    names = [name for name in DIMENSIONS if name not in LATER]
    all_pairs = len(names) * (len(names) - 1) // 2
    never = sum(impossible(one, other) is not None for i, one in enumerate(names) for other in names[:i])
    later = sum(bool({*pair} & {*LATER}) for pair in PARTED)
    assert len(pairs()) == all_pairs - never - len(COMBINED) - (len(PARTED) - later)
    assert all(impossible(*pair) is None for pair in (*COMBINED, *PARTED))
    assert {*pairs(), *COMBINED} <= {*possible_pairs()} and not {*possible_pairs()} & {*impossible_pairs()}
    assert len(DIMENSIONS) >= 20

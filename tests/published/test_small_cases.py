"""Small cases with numbers that were executed with AccelForge 1c1929c, or derived by hand where the two differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from worked import check, load_cases

CASES = load_cases((Path(__file__).parent / "small_cases.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_small_case(case: dict[str, Any]) -> None:
    check(case)


def test_no_case_is_missing() -> None:
    names = " ".join(case["case"] for case in CASES).split()
    rows = [
        "A0 A1 A2 A3 A4 A5 A6",
        "B1 B2 B3 B4 B5 B6 B7",
        "V0 V1 V2 V3",
        "R1 R2 R3 R4 R5",
        "C1 C2 C3",
        "Sliding Nested",
    ]
    assert set(" ".join(rows).split()) <= set(names)

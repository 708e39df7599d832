"""What docs/model/latency.md says of a schedule read off TileFlow's cycles is what its command finds."""

from __future__ import annotations

from bench.rtl_parts import found, tall

from einloom.published.rtl import published


def test_the_page_says_what_the_schedule_gives() -> None:
    low = [row for row in published("fused") if row["micro_M"] < 64]
    count, exact, mean, worst = found(low)
    assert (exact, count) == (63, 66) and mean < 5e-5 and worst < 1e-3


def test_the_page_says_what_the_sum_gives() -> None:
    high = [row for row in published("fused") if row["micro_M"] == 64]
    narrow = [row for row in high if row["micro_L"] <= 32]
    assert found(narrow, tall)[:2] == (10, 10)
    assert found(high, tall)[:2] == (19, 10)  # of wider tiles it is too fast

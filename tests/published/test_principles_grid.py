"""385 multiplications and 231 pairs of the models of the FuseCU paper's Table II, measured once without einloom.

`principles_grid.csv` and `principles_grid_pairs.csv` hold exact optima, the picks of the principles as printed, and
their regrets, from a program that shares nothing with this one.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from einloom.search.principles.matmul import Matmul, best_schedule, lower_bound, traffic
from einloom.search.principles.pairs import Pair, compared
from einloom.search.principles.rules import chosen_class, judged, pick, picks, predicted

HERE = Path(__file__).parent
Row = dict[str, str]


def rows(name: str) -> list[Row]:
    with (HERE / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def same(row: Row, key: str, value: float) -> bool:
    """True if the row says so; fractions are printed with five digits."""
    return float(row[key]) == pytest.approx(value, abs=6e-5 if abs(value) < 100 else 0.06)


def test_every_multiplication() -> None:
    for row in rows("principles_grid.csv"):
        matmul, buffer = Matmul(*(int(row[d]) for d in "MKL")), int(row["BS"])
        anything = best_schedule(matmul, buffer)
        divided = best_schedule(matmul, buffer, cutting="divisors")
        read_back = best_schedule(matmul, buffer, "read-modify-write")
        found, whole = judged(matmul, buffer), pick(matmul, buffer, "divisors")
        assert anything and divided and read_back and found and whole
        assert same(row, "exact_any", anything.traffic), row
        assert same(row, "exact_div", divided.traffic), row
        assert same(row, "exact_rmw", read_back.traffic), row
        assert same(row, "exact_div_over_any", divided.traffic / anything.traffic - 1), row
        assert same(row, "lower_bound", lower_bound(matmul, buffer)), row
        assert chosen_class(matmul, buffer) == row["principle_class"], row
        assert same(row, "principle_closed_form", predicted(matmul, buffer)), row
        assert same(row, "principle_int", found.pick.schedule.traffic), row
        assert same(row, "gap_int_vs_any", found.regret), row
        assert same(row, "principle_div", whole.schedule.traffic), row
        assert found.pick.feasible == bool(int(row["principle_feasible"])), row
        # where two picks tie, the row may have priced the other one
        tied = {
            traffic(matmul, p.schedule.stationary, p.schedule.trips, "read-modify-write") for p in picks(matmul, buffer)
        }
        assert float(row["principle_pick_in_rmw"]) in tied, row


@pytest.mark.parametrize("start", range(3))
def test_every_pair(start: int) -> None:
    for row in rows("principles_grid_pairs.csv")[start::3]:
        found = compared(Pair(*(int(row[d]) for d in "MKLN")), int(row["BS"]))
        assert found is not None and found.fused is not None
        assert same(row, "unfused_exact", found.apart), row
        assert same(row, "fused_exact_sound", found.fused.traffic), row
        assert found.profitable == bool(int(row["fusion_profitable"])), row
        assert found.principle("exact") == bool(int(row["P4_fuse_exactclass"])), row
        assert found.principle() == bool(int(row["P4_fuse_thresholdclass"])), row
        assert same(row, "P4_regret_exactclass", found.regret("exact")), row
        assert same(row, "P4_regret_thresholdclass", found.regret()), row

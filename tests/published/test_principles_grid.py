"""385 multiplications and 231 pairs of the models of the FuseCU paper's Table II, measured once without einloom.

`principles_grid.csv` and `principles_grid_pairs.csv` hold exact optima, the picks of the principles as printed, and
their regrets, from a program that shares nothing with this one.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from einloom.search.principles import pairs
from einloom.search.principles.matmul import OPERANDS, Matmul, best_schedule, ceil_div, lower_bound, room_of, traffic
from einloom.search.principles.pairs import Pair, compared
from einloom.search.principles.rules import buffer_class, chosen_class, judged, pick, picks, predicted

HERE = Path(__file__).parent
optimum = cache(best_schedule)
CLASSES = {"single": 1.0, "single/two": 1.5, "two": 2.0, "three": 3.0}
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
        anything = optimum(matmul, buffer)
        divided = optimum(matmul, buffer, cutting="divisors")
        read_back = optimum(matmul, buffer, "read-modify-write")
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


def test_every_choice() -> None:
    """Stationary operand, tiles and how many operands move once: where optima tie, the row's own choice is priced."""
    for row in rows("principles_grid.csv"):
        matmul, buffer = Matmul(*(int(row[d]) for d in "MKL")), int(row["BS"])
        tiles = [int(t) for t in row["exact_tiles_MxKxL"].split("x")]
        tile = dict(zip("MKL", tiles, strict=True))
        trips = {d: ceil_div(matmul.extent(d), tile[d]) for d in "MKL"}
        stationary = next(x for x in OPERANDS if x == row["exact_X"])
        assert same(row, "exact_any", traffic(matmul, stationary, (trips["M"], trips["K"], trips["L"]), "once")), row
        first, second = OPERANDS[stationary]
        assert room_of(tile[first], tile[second], "together") <= buffer, row
        assert 1 + (trips[first] == 1) + (trips[second] == 1) == int(row["exact_NRA"]), row
        back = next(x for x in OPERANDS if x == row["rmw_X"])
        stays = optimum(matmul, buffer, "read-modify-write", operands=(back,))
        assert stays and same(row, "exact_rmw", stays.traffic), row
        assert stays.non_redundant == int(row["rmw_NRA"]), row
        picked = {
            f"{p.schedule.stationary}:{'x'.join(str(t) for t in p.schedule.tiles)}" for p in picks(matmul, buffer)
        }
        assert row["principle_pick"] in picked, row


def test_every_ratio() -> None:
    for row in rows("principles_grid.csv"):
        matmul, buffer = Matmul(*(int(row[d]) for d in "MKL")), int(row["BS"])
        anything, divided = optimum(matmul, buffer), optimum(matmul, buffer, cutting="divisors")
        read_back, whole = optimum(matmul, buffer, "read-modify-write"), pick(matmul, buffer, "divisors")
        assert anything and divided and read_back and whole
        assert whole.feasible == bool(int(row["principle_div_feasible"])), row
        assert same(row, "gap_div_vs_div", whole.schedule.traffic / divided.traffic - 1), row
        assert same(row, "gap_rmw", float(row["principle_pick_in_rmw"]) / read_back.traffic - 1), row
        assert same(row, "closed_form_vs_exact", predicted(matmul, buffer) / anything.traffic - 1), row
        assert same(row, "exact_over_lb", anything.traffic / lower_bound(matmul, buffer)), row


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
        assert found.unfused[0].non_redundant == int(row["NRA1_exact"]), row
        assert found.unfused[1].non_redundant == int(row["NRA2_exact"]), row
        assert same(row, "fusion_saving", 1 - found.fused.traffic / found.apart), row
        assert same(row, "compulsory", found.pair.compulsory), row
        for single, key in ((found.pair.first, "NRA1_threshold"), (found.pair.second, "NRA2_threshold")):
            assert CLASSES[buffer_class(single, found.buffer)] == float(row[key]), row


def test_every_pair_where_what_is_kept_takes_room_in_its_own_phase_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """DAT's accounting of the buffer, which no execution can keep: never more traffic than the sound one says."""
    right = pairs._room_in

    def in_its_phase(pair: Pair, order: pairs.Order, kept: str, block: tuple[Any, Any], phase: str) -> Any:
        elsewhere = "".join(x for x in kept if x not in phase)
        tile = dict(zip("ML", block, strict=True))
        spared = sum(pairs._kept_elements(pair, order, x, tile) for x in elsewhere)
        return right(pair, order, kept, block, phase) - spared

    for row in rows("principles_grid_pairs.csv"):
        pair, buffer = Pair(*(int(row[d]) for d in "MKLN")), int(row["BS"])
        sound = pairs.best_fused(pair, buffer)
        with monkeypatch.context() as patch:
            patch.setattr(pairs, "_room_in", in_its_phase)
            unsound = pairs.best_fused(pair, buffer)
        assert sound is not None and unsound is not None
        assert same(row, "fused_exact_DATlike_liveness", unsound.traffic), row
        assert same(row, "sound_over_DATlike", sound.traffic / unsound.traffic - 1), row

"""Event time against RTL cycles: TileFlow's two validation accelerators, mapping by mapping."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from einloom.cost.evaluate import evaluate
from einloom.machine.levels import Level, Machine
from einloom.published import rtl
from einloom.published.rtl import ComparedMapping, compare, published, summary
from einloom.zoo.machine_entries import zoo_machine


@cache
def compared(design: str) -> tuple[ComparedMapping, ...]:
    return compare(published(design))


def test_every_gemm_row_is_exact() -> None:
    rows = compared("gemm")
    assert len(rows) == 748
    assert [row.published for row in rows if not row.exact] == []
    found = {tuple(size for _, size in row.published.sizes): round(row.event) for row in rows}
    assert found[128, 256, 32, 64, 64, 16] == 12531
    assert found[128, 64, 16, 32, 64, 16] == 2652
    assert found[512, 256, 64, 128, 128, 32] == 53804


def test_the_other_numbers_beside_it() -> None:
    """The roofline alone is 10.7 % off on these rows (all too fast), TileFlow and Timeloop 11.6 % (on all 1152)."""
    rows = compared("gemm")
    assert summary(rows, "roofline").mean == pytest.approx(0.107, abs=0.0005)
    assert all(row.roofline < row.event for row in rows)
    assert summary(rows, "tileflow").mean == pytest.approx(0.115, abs=0.0005)


def test_fused_rows_are_within_a_percent_also_where_nothing_was_chosen() -> None:
    rows = compared("fused")
    chosen = [row for row in rows if row.published.chosen]
    held_out = [row for row in rows if not row.published.chosen]
    assert (len(chosen), len(held_out)) == (46, 39)
    assert summary(chosen).mean == pytest.approx(0.0042, abs=0.0001)
    assert summary(held_out).mean == pytest.approx(0.0095, abs=0.0001)
    assert summary(rows).mean == pytest.approx(0.0066, abs=0.0001)
    assert summary(rows).worst == pytest.approx(0.0537, abs=0.0001)
    assert summary(rows).exact == 50
    assert summary(rows, "roofline").mean == pytest.approx(0.0477, abs=0.0001)
    assert summary(rows, "tileflow").mean == pytest.approx(0.0523, abs=0.0001)  # 5.43 % on all 131


def test_which_fused_rows_are_off() -> None:
    """The table of docs/model/latency.md: (rows, rows that are off, worst) by the tile of m, and is that of l 16."""
    found: dict[tuple[int, bool], list[ComparedMapping]] = {}
    for row in compared("fused"):
        found.setdefault((row.published["micro_M"], row.published["micro_L"] == 16), []).append(row)
    said = {
        key: (len(rows), sum(not row.exact for row in rows), round(summary(rows).worst, 3))
        for key, rows in found.items()
    }
    assert said == {
        (16, True): (5, 4, 0.009),
        (16, False): (31, 1, 0.001),
        (32, True): (3, 3, 0.033),
        (32, False): (27, 8, 0.029),
        (64, True): (5, 5, 0.054),
        (64, False): (14, 14, 0.052),
    }


def test_the_fused_trees_move_the_bits_that_the_hardware_moved() -> None:
    with (rtl.DATA / "tileflow_fused.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    for row, given in zip(published("fused"), rows, strict=True):
        cost = evaluate(*rtl.scheduled(row))
        moved = {
            action: sum(a.bits for a in cost.actions if (a.component, a.action) == ("DRAM", action))
            for action in ("read", "write")
        }
        assert moved == {"read": int(given["rtl_bits_read"]), "write": int(given["rtl_bits_written"])}


def changed(level: str, **fields: object) -> Callable[[Machine], Machine]:
    def change(machine: Machine) -> Machine:
        def one(found: Level) -> Level:
            return replace(found, **fields) if found.name == level else found  # type: ignore[arg-type]

        return replace(machine, levels=tuple(map(one, machine.levels)))

    return change


CYCLE = 1 / rtl.FREQUENCY
MISTAKES: dict[str, Callable[[Machine], Machine]] = {
    "a cycle more per transfer": changed("DRAM", setup=7 * CYCLE),
    "a cycle less per tile": changed("PE", setup=54 * CYCLE),
    "no start": lambda machine: replace(machine, startup=0.0),
    "one place for inputs": changed("In", prefetch=1),
    "three places for outputs": changed("Out", prefetch=3),
    "places free when the work ends": changed("In", release="end"),
    "whole tiles only": changed("Accumulators", through=False),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_every_attribute_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = published("gemm")[::7]
    wrong = MISTAKES[name](zoo_machine("tileflow-gemm"))
    monkeypatch.setattr(rtl, "zoo_machine", lambda _: wrong)
    assert not all(row.exact for row in compare(rows))


def test_the_report_says_what_was_held_out() -> None:
    text = rtl.report("gemm", compare(published("gemm")[::60]))
    assert "odd hash (held out)" in text and "0.000%" in text

"""The saved table of dataflows: its cells are in order, and the page shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from einloom.published.cells import FREE, Cell, quickest

ROOT = Path(__file__).resolve().parents[2]
NESTED = (  # (what restricts more, what restricts less)
    *(("flat-m", "flat-b"), ("flat-b", "flat-h"), ("flat-h", "flat-r"), ("flat-r", "chimera")),
    *((flow, FREE) for flow in ("layerwise", "uni-pipe", "chimera", "tileflow-attention", "transfusion")),
    *((flow, FREE) for flow in ("layerwise-convolution", "tileflow-convolution", "fused-layer")),
    *(("flash-attention", "chimera-online"), ("isos", "fused-layer")),
)


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells of the saved table."""
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.dataflows import RESULTS, read

    return read(RESULTS)


def test_more_freedom_is_never_slower(saved: list[Cell]) -> None:
    """Where both are proven; and groups of Einsums at the same time are never slower than none."""
    by = {(c.workload, c.machine, c.dataflow): c for c in saved}
    compared = 0
    for (workload, machine, name), one in by.items():
        if one.status != "optimal":
            continue
        assert one.cycles is not None and one.gap == 0 and quickest(one) <= one.cycles
        if one.grouped_status == "optimal":
            assert one.grouped is not None and one.grouped <= one.cycles * (1 + 1e-9)
        for wider in (b for a, b in NESTED if a == name):
            other = by.get((workload, machine, wider))
            if other is not None and other.status == "optimal":
                assert other.cycles is not None and other.cycles <= one.cycles * (1 + 1e-9)
                compared += 1
    assert compared > 50


def test_lenders_are_proven_and_smaller(saved: list[Cell]) -> None:
    """The first of those with the least cycles, of the same cascade."""
    from bench.dataflows import lenders

    def lender(machine: str, flow: str) -> list[str]:
        return lenders(saved, "tileflow-bert-s", machine, flow, "latency")

    assert lender("tileflow-cloud", "tileflow-attention") == ["flat-m"]
    assert lender("tileflow-edge", "unrestricted") == ["tileflow-attention"]
    assert lender("tileflow-edge", "chimera-online") == ["flash-attention"]
    assert lender("tileflow-edge", "flash-attention") == lender("tileflow-edge", "layerwise") == []
    assert lenders(saved, "tileflow-bert-s", "tileflow-edge", "flat-r", "energy") == []


def test_what_is_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.dataflows import settled

    def one(status: str, cycles: float | None = 1.0, grouped: str = "") -> Cell:
        return Cell("tileflow-t5", "tileflow-edge", "flat-r", "latency", status, cycles, grouped_status=grouped)

    assert settled(one("infeasible", None), True, ["bounded", "open"])
    assert not settled(one("open", None), False, [])
    assert settled(one("bounded"), False, []) and not settled(one("bounded"), False, ["bounded"])
    assert settled(one("optimal"), False, ["bounded", "open"]) and not settled(one("optimal"), True, [])
    assert settled(one("optimal", 1.0, "bounded"), True, ["open"])
    assert not settled(one("optimal", 1.0, "bounded"), True, ["bounded"])
    assert settled(one("optimal", 1.0, "optimal"), True, ["bounded", "open"])

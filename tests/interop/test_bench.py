"""The bench refuses to run without its peer, and measures what whole process trees use."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BURN = "sum(i * i for i in range(2_000_000))"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}]); print('done')"


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def test_no_peer_no_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench import peer

    monkeypatch.setattr(peer, "PEER_PYTHON", tmp_path / "nothing")
    stored = tmp_path / "peer.csv"
    with stored.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, peer.COLUMNS)
        writer.writeheader()
        writer.writerow(dict.fromkeys(peer.COLUMNS, "12345"))
    assert peer.main(["--quick", "-o", str(stored)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "not installed" in printed.err
    assert "12345" not in printed.err


def test_measured_trees(tmp_path: Path) -> None:
    from bench.measure import measure

    done = measure([sys.executable, "-c", CHILD], tmp_path, 60)
    assert (done.outcome, done.out) == ("finished", "done\n")
    assert done.cpu > 0.05
    assert done.rss > 10**6


def test_time_outs_and_failures(tmp_path: Path) -> None:
    from bench.measure import TIMED_OUT, measure

    assert measure([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, 0.5).outcome == TIMED_OUT
    assert measure([sys.executable, "-c", "raise SystemExit(3)"], tmp_path, 30).outcome == "failed with exit code 3"


def test_bench_problems_are_problems_that_the_peer_can_be_asked() -> None:
    from bench.problems import PROBLEMS

    from einloom import questions
    from einloom.interop.accelforge import export

    assert len({p.name for p in PROBLEMS}) == len(PROBLEMS)
    for p in PROBLEMS:
        asked = questions.problem(p.workload, p.machine, p.objective, p.max_fused_loops)
        assert export(asked.workload, asked.machine, asked.objective, asked.mapspace).files

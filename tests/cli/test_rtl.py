"""`einloom rtl` and `einloom reproduce`: what is missing on a machine is one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from einloom.cli import main
from einloom.fabric import tools

PRINCIPLES = ["explain", "matmul:m=7,n=16,k=16", "two-level:glb_bits=200", "--principles"]
SAID = (
    (["rtl", "fusecuu", "-o", "x"], "did you mean 'fusecu'"),
    (["rtl", "fusecu"], "say what to do with fusecu"),
    (["rtl", "fusecu", "--simulate", "1"], "too many to simulate"),
    (["reproduce", "fusecuu"], "did you mean 'fusecu'"),
    (["explain", "matmul", "--principles"], "needs a workload and a machine"),
    (["explain", "matmul", "gpt3-6.7b", "--principles"], "machine"),
    ([*PRINCIPLES, "--quick"], "--quick has no meaning"),
    ([*PRINCIPLES, "--budget-seconds", "3"], "--budget-seconds has no meaning"),
    ([*PRINCIPLES, "--full-use"], "--full-use has no meaning"),
    ([*PRINCIPLES, "--max-fused-loops", "0"], "know nothing of max_fused_loops: 0"),
    ([*PRINCIPLES, "--max-fused-loops-per-rank-variable", "2"], "per_rank_variable: 2"),
    ([*PRINCIPLES, "--order", "free"], "know nothing of order: free"),
    ([*PRINCIPLES, "--stores", "shared"], "stores: shared"),
    ([*PRINCIPLES, "--dataflow", "flat-h"], "is no attention"),
)


@pytest.mark.parametrize(("words", "said"), SAID)
def test_bad_input(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2 and said in done.output


def test_principles_are_told_in_the_space_that_is_asked_for() -> None:
    """The optimum with tiles of any size is lower, so the regret is another one."""
    plain, ragged = (CliRunner().invoke(main, [*PRINCIPLES, *more]) for more in ([], ["--space", "ragged"]))
    assert "perfect tiles" in plain.output and "optimum      Z stays, tiles m 7 x k 1 x n 2: 1264" in plain.output
    assert "any size" in ragged.output and "optimum      Z stays, tiles m 4 x k 1 x n 4: 1072" in ragged.output


def test_programs_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Debian package is named; simulation goes on in Amaranth's simulator."""
    pytest.importorskip("amaranth", reason="the extra rtl (amaranth) is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(main, ["rtl", "fusecu", "--rows", "2", "--columns", "2", "-o", str(tmp_path / "out")])
    assert done.exit_code == 2 and "install Debian's package yosys" in done.output
    done = CliRunner().invoke(main, ["rtl", "unfcu", "--rows", "2", "--columns", "2", "--simulate", "3"])
    assert done.exit_code == 0 and "Amaranth's simulator is used" in done.output
    assert "verilator and yosys" in done.output


def test_cells_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "CELLS", tmp_path / "none.lib")
    with pytest.raises(Exception, match="qflow-tech-osu018"):
        tools.cells()

"""`einloom rtl` and `einloom reproduce`: what is missing on a machine is one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from einloom.cli import main
from einloom.fabric import tools

SAID = (
    (["rtl", "fusecuu", "-o", "x"], "did you mean 'fusecu'"),
    (["rtl", "fusecu"], "say what to do with fusecu"),
    (["rtl", "fusecu", "--simulate", "1"], "too many to simulate"),
    (["reproduce", "fusecuu"], "did you mean 'fusecu'"),
    (["explain", "matmul", "--principles"], "needs a workload and a machine"),
    (["explain", "matmul", "gpt3-6.7b", "--principles"], "machine"),
)


@pytest.mark.parametrize(("words", "said"), SAID)
def test_bad_input(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2 and said in done.output


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

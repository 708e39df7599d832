"""Python leaves out asserts under -O: the verbs must answer all the same, and as they do with them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from einloom.cli import main

ROOT = Path(__file__).resolve().parents[2]
PLAIN = "store DRAM: A B Z\nfor m in 4\nfor n in 4\nfor k in 4\ncompute Z @ MAC\n"
SCRIPT = """\
import sys
from click.testing import CliRunner
from einloom.cli import main
assert False, "asserts are left out"
for line in sys.stdin.read().splitlines():
    done = CliRunner().invoke(main, line.split())
    print(done.exit_code, repr(done.exception), done.output)
"""
COMMANDS = """\
map matmuls:n=2,m=4,kn=8 simple:glb_bits=512,dram_energy=10 --objective edp -o best.txt
map matmul:m=2,n=2,k=2 simple:glb_bits=16,dram_energy=10 --method exhaustive -o all.txt
map matmul:m=4,n=4,k=4 simple:glb_bits=128,dram_energy=10 --objective pareto -o front.txt
map matmul:m=4,n=4,k=4 two-level:glb_bits=8
evaluate matmul:m=4,n=4,k=4 simple m.txt
evaluate matmul:m=4,n=4,k=8 simple m.txt
simulate matmul:m=4,n=4,k=4 simple m.txt
verify bad.json
show r.json --breakdown
verify --quick r.json
report r.json -o r.html
compare r.json r.json --csv -
explain r.json --quick
explain matmul:m=4,n=4,k=4 two-level:glb_bits=8 --quick
zoo simple
export accelforge matmul:m=4,n=4,k=4 simple -o accelforge
export tileflow matmul:m=4,n=4,k=4 simple m.txt -o tileflow
"""


def answered(script: str, folder: Path, *options: str) -> str:
    """What the commands print, without seconds."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, *options, "-c", script],
        input=COMMANDS,
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return re.sub(r"\S+ s([;,])", r"\1", done.stdout)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.txt").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    words = ["evaluate", "matmul:m=4,n=4,k=4", "simple", "m.txt", "--json", "r.json"]
    assert CliRunner().invoke(main, words).exit_code == 0
    return tmp_path


def test_the_same_answers(folder: Path) -> None:
    optimised = answered(SCRIPT, folder, "-O")
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    plain = answered(SCRIPT.replace("assert False", "assert True"), folder)
    assert optimised.split() == plain.split()  # lines break where the seconds have room for it
    assert files == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    lines = [line for line in optimised.splitlines() if line[:2] in ("0 ", "1 ", "2 ")]
    assert [int(line[0]) for line in lines] == [0, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert "Traceback" not in optimised and "AssertionError" not in optimised

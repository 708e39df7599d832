"""Compiled code: not even imported for small problems, and compiled once for all processes.

Every test runs fresh processes; Numba itself reports whether it compiled something (its event `numba:compile`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    ("matmul:m=16,n=16,k=16", "simple", "edp"),
    ("matmuls:n=3,m=64,kn=64,bits=8", "simple:dram_energy=10,glb_bits=16384", "energy"),
    ("residual-diamond", "simple:dram_energy=10,glb_bits=512", "latency"),
)
MAPPED = """
import json, sys
from einloom.cli import main
main(["map", *sys.argv[1:], "--json", "r.json"], standalone_mode=False)
value = json.load(open("r.json"))["certificate"]["value"]
print(json.dumps({"numba": "numba" in sys.modules, "value": value}))
"""
FILTERED = """
import json, time
import numpy as np
from einloom.search.exact.numerics.pareto import skyline
random = np.random.default_rng(0)
keys, values = random.integers(0, 5, 4000), random.integers(0, 9, (4000, 3)).astype(float)
import numba
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    kept = skyline(keys, values, compiled=True)
print(json.dumps({"compiled": len(recorder.buffer), "kept": kept.tolist()}))
"""


def run(code: str, *words: str, folder: Path, **environment: str) -> dict[str, object]:
    """The last line that the code prints, as JSON, from a process of its own."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.parametrize(("workload", "machine", "objective"), SMALL, ids=[row[0] for row in SMALL])
def test_small_problems_never_import_numba(workload: str, machine: str, objective: str, tmp_path: Path) -> None:
    found = run(MAPPED, workload, machine, "--objective", objective, folder=tmp_path, NUMBA_CACHE_DIR=str(tmp_path))
    assert found["value"]
    assert found["numba"] is False
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_importing_the_package_imports_no_numba(tmp_path: Path) -> None:
    code = "import sys, json, einloom, einloom.cli; print(json.dumps({'numba': 'numba' in sys.modules}))"
    assert run(code, folder=tmp_path) == {"numba": False}


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = run(FILTERED, folder=tmp_path, NUMBA_CACHE_DIR=str(cache))
    written = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    assert first["compiled"]
    assert {path.suffix for path in written} == {".nbi", ".nbc"}
    second = run(FILTERED, folder=tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert second == {"compiled": 0, "kept": first["kept"]}
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()} == written


PRICED = """
import json
import numpy as np
from numba.core import event
from cases import cascade, simple, tree
from einloom.cost.batch.arrays import price_many
workload = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 7, "n": 6, "k": 5})
template = tree("DRAM[A B Z] E.m:2 GLB[A B Z] E.m:7/1 E.n:6/1 E.k:5/1 !E@MAC")
with event.install_recorder("numba:compile") as recorder:
    found = price_many(workload, simple(), template, {(1,): np.array([1, 3, 7])}, compiled=True)
print(json.dumps({"compiled": len(recorder.buffer), "energy": found.energy.tolist()}))
"""


@pytest.mark.slow
def test_a_second_process_prices_many_with_the_same_machine_code(tmp_path: Path) -> None:
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))
    first = run(PRICED, folder=tmp_path, NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=path)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert first["compiled"]
    assert {path.suffix for path in written} == {".py", ".nbi", ".nbc"}
    second = run(PRICED, folder=tmp_path, NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=path)
    assert second == {"compiled": 0, "energy": first["energy"]}
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == written

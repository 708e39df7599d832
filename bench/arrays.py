"""Microseconds per choice of tiles: as arrays in NumPy, as machine code, and one by one: ``python -m bench.arrays``.

One matmul on `simple`, with the three tiles in the global buffer to choose. All three price the same choices in one run
and must agree to the last place. Machine code is compiled into an empty cache first (cold), then loaded by a second
process (warm). CPU seconds, the fastest of some runs; one CSV row per run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from einloom.cost.batch.arrays import Arrays, price_many, retile
from einloom.cost.evaluate import evaluate
from einloom.machine.levels import Machine
from einloom.mapping.extents import addressed_paths
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Loop, Mapping
from einloom.version import VERSION
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

from .rows import append, commit

SIZE = 2**12
HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "arrays.csv"
Tiles = dict[tuple[int, ...], np.ndarray]
COLUMNS = (
    "time einloom_version commit command choices numpy_us compiled_us single_us first_cold_s first_warm_s "
    "legal least_energy agree"
).split()
FIRST = """
import json, time
import numpy as np
from bench.arrays import problem
from einloom.cost.batch.arrays import price_many
*asked, tiles = problem(1000)
started = time.process_time()
price_many(*asked, tiles, compiled=True)
print(json.dumps(time.process_time() - started))
"""


def main(words: Sequence[str] | None = None) -> int:
    """Print microseconds per choice and write a CSV row; 1 if the three ways disagree."""
    parser = argparse.ArgumentParser(prog="python -m bench.arrays", description=__doc__.split("\n")[0])
    parser.add_argument("--choices", type=int, default=1_000_000, help="choices per run (default 1,000,000)")
    parser.add_argument("--repeat", type=int, default=5, help="runs, of which the fastest counts (default 5)")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    workload, machine, mapping, tiles = problem(options.choices)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        cold, warm = first_call(cache), first_call(cache)
        plain, numpy_seconds = fastest(lambda: price_many(workload, machine, mapping, tiles), options.repeat)
        code, code_seconds = fastest(
            lambda: price_many(workload, machine, mapping, tiles, compiled=True), options.repeat + 1
        )
    single, agree = one_by_one(workload, machine, mapping, tiles, plain)
    agree = agree and all(
        np.array_equal(getattr(plain, name), getattr(code, name)) for name in ("energy", "latency", "legal")
    )
    each = 1e6 / options.choices
    least = float(plain.energy[plain.legal].min())
    print(f"NumPy:       {numpy_seconds * each:8.3f} us per choice ({options.choices:,} choices)")
    print(f"compiled:    {code_seconds * each:8.3f} us per choice; first call {cold:.2f} s cold, {warm:.2f} s warm")
    print(f"one by one:  {single * 1e6:8.1f} us per choice")
    print(f"legal: {plain.legal.mean():.1%}; least energy {least:.6g} J; agree: {agree}")
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    shown = (
        f"{numpy_seconds * each:.4f}",
        f"{code_seconds * each:.4f}",
        f"{single * 1e6:.1f}",
        f"{cold:.2f}",
        f"{warm:.2f}",
    )
    command = f"python -m bench.arrays --choices {options.choices} --repeat {options.repeat}"
    found = (f"{plain.legal.mean():.4f}", repr(least), agree)
    row = (started, VERSION, commit(), command, options.choices, *shown, *found)
    append(options.output, dict(zip(COLUMNS, row, strict=True)))
    return 0 if agree else 1


def problem(count: int) -> tuple[Workload, Machine, Mapping, Tiles]:
    """The matmul, `simple`, a template with three loops to a tile in the buffer, and random tiles for them."""
    workload = load_workload(f"matmuls:n=1,m={SIZE},kn={SIZE},bits=8")
    machine = load_machine("simple:dram_energy=100,glb_bits=8388608")
    einsum = workload.einsums[0]
    mapping = parse_mapping(_template(einsum.variables, einsum.name), workload, machine)
    loops = [address for address, node in addressed_paths(mapping.nest)[einsum.name] if isinstance(node, Loop)]
    return workload, machine, mapping, _choices(loops[: len(einsum.variables)], count)


def fastest(run: Callable[[], Arrays], times: int) -> tuple[Arrays, float]:
    """The answer, and the CPU seconds of the fastest run."""
    best = float("inf")
    for _ in range(times):
        started = time.process_time()
        found = run()
        best = min(best, time.process_time() - started)
    return found, best


def first_call(cache: str) -> float:
    """CPU seconds of the first compiled call of a new process: importing Numba, and compiling or loading."""
    path = os.pathsep.join((str(HERE.parent), str(HERE.parent / "src")))
    settings = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", FIRST], env=settings, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def one_by_one(
    workload: Workload, machine: Machine, mapping: Mapping, tiles: Tiles, priced: Arrays
) -> tuple[float, bool]:
    """(CPU seconds of `evaluate` per choice, does it agree) on some legal choices."""
    legal = np.flatnonzero(priced.legal)[:500]
    started = time.process_time()
    singles = [
        evaluate(workload, machine, retile(workload, mapping, {a: int(t[i]) for a, t in tiles.items()})) for i in legal
    ]
    seconds = (time.process_time() - started) / len(legal)
    pairs = zip(legal, singles, strict=True)
    return seconds, all((cost.energy, cost.latency) == (priced.energy[i], priced.latency[i]) for i, cost in pairs)


def _template(variables: Sequence[str], einsum: str) -> str:
    """Three loops to a tile in the buffer, three loops inside it."""
    above = "".join(f"for {v} in 1 tile {SIZE}\n" for v in variables)
    below = "".join(f"for {v} in {SIZE} tile 1\n" for v in variables)
    return f"store DRAM: T0 W0 T1\n{above}store GLB: T0 W0 T1\n{below}compute {einsum} @ MAC\n"


def _choices(addresses: Sequence[tuple[int, ...]], count: int) -> Tiles:
    """So many random powers of two for each loop's tile."""
    random = np.random.default_rng(0)
    powers = SIZE.bit_length()
    return {address: 2 ** random.integers(0, powers, size=count, dtype=np.int64) for address in addresses}


if __name__ == "__main__":
    sys.exit(main())

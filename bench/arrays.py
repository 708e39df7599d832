"""Microseconds per choice of tiles, many at once and one by one: ``python -m bench.arrays``.

One matmul on `simple`, with the three tiles in the global buffer to choose; `cost.arrays.price_many` prices the choices
as arrays, `cost.evaluate` some of them one by one, and the two must agree.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

from einloom.cost.arrays import price_many, retile
from einloom.cost.evaluate import evaluate
from einloom.machine.load import load_machine
from einloom.mapping.extents import addressed_paths
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Loop
from einloom.workload.load import load_workload

SIZE = 2**12


def main(words: Sequence[str] | None = None) -> int:
    """Print microseconds per choice; 1 if arrays and single prices disagree."""
    parser = argparse.ArgumentParser(prog="python -m bench.arrays", description=__doc__.split("\n")[0])
    parser.add_argument("--choices", type=int, default=1_000_000, help="choices per run (default 1,000,000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs, of which the fastest counts (default 3)")
    options = parser.parse_args(words)
    workload = load_workload(f"matmuls:n=1,m={SIZE},kn={SIZE},bits=8")
    machine = load_machine("simple:dram_energy=100,glb_bits=8388608")
    name = workload.einsums[0].name
    text = _template(workload.einsums[0].variables, name)
    mapping = parse_mapping(text, workload, machine)
    outer = [address for address, node in addressed_paths(mapping.nest)[name] if isinstance(node, Loop)]
    tiles = _choices(outer[: len(workload.einsums[0].variables)], options.choices)
    best = float("inf")
    for _ in range(options.repeat):
        started = time.perf_counter()
        priced = price_many(workload, machine, mapping, tiles)
        best = min(best, time.perf_counter() - started)
    legal = np.flatnonzero(priced.legal)[:200]
    started = time.perf_counter()
    singles = [
        evaluate(workload, machine, retile(workload, mapping, {a: int(t[i]) for a, t in tiles.items()})) for i in legal
    ]
    one = (time.perf_counter() - started) / len(legal)
    agree = all(np.isclose(c.energy, priced.energy[i], rtol=1e-12) for i, c in zip(legal, singles, strict=True))
    print(f"arrays:     {best / options.choices * 1e6:9.3f} us per choice ({options.choices:,} choices, {best:.3f} s)")
    print(f"one by one: {one * 1e6:9.1f} us per choice ({len(legal)} choices)")
    print(f"legal: {priced.legal.mean():.1%}; least energy {priced.energy[priced.legal].min():.6g} J; agree: {agree}")
    return 0 if agree else 1


def _template(variables: Sequence[str], einsum: str) -> str:
    """Three loops to a tile in the buffer, three loops inside it."""
    above = "".join(f"for {v} in 1 tile {SIZE}\n" for v in variables)
    below = "".join(f"for {v} in {SIZE} tile 1\n" for v in variables)
    return f"store DRAM: T0 W0 T1\n{above}store GLB: T0 W0 T1\n{below}compute {einsum} @ MAC\n"


def _choices(addresses: Sequence[tuple[int, ...]], count: int) -> dict[tuple[int, ...], np.ndarray]:
    """So many random powers of two for each loop's tile."""
    random = np.random.default_rng(0)
    powers = SIZE.bit_length()
    return {address: 2 ** random.integers(0, powers, size=count, dtype=np.int64) for address in addresses}


if __name__ == "__main__":
    sys.exit(main())

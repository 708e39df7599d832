"""The closed form beside `exact`, and principle 4 on random pairs: ``python -m bench.principles [exact|pairs]``.

``exact``: every operator and buffer of the FuseCU paper's grid whose best integer tiles are perfect, solved by `exact`
in the space `ffm`; exits with 1 if one differs. ``pairs``: regret of principle 4 over 2,500 random pairs, in both
accountings.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import mean, quantiles
from time import process_time

from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.published.fusecu import BUFFERS, grid
from einloom.search.exact import Exact
from einloom.search.method import Watcher
from einloom.search.principles.matmul import Matmul, best_schedule
from einloom.search.principles.pairs import Pair, compared
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector

from .rows import ROOT, append, stamp

RESULTS = ROOT / "bench" / "results"


def solved(matmul: Matmul, buffer: int) -> float:
    """Elements that `exact` moves; sums counted once."""
    workload = build_workload(
        "one", ["C[m,l] = A[m,k] * B[k,l]"], {"m": matmul.m, "k": matmul.k, "l": matmul.l}, bits=8
    )
    outer = Memory("DRAM", must=selector("~intermediate"))
    inner = Memory("Buffer", size=8 * buffer, must=selector("all"))
    machine = Machine("one-buffer", (outer, inner, ComputeUnit("MAC", throughput=1.0)), partial_sums="once")
    problem = Problem(workload, machine, Mapspace(), Objective("traffic", "DRAM"))
    return Exact().search(problem, Budget(), Watcher()).value / 8


def exact(output: Path) -> int:
    """One row per distinct shape and buffer with perfect tiles; the number of differences."""
    bad = 0
    shapes = sorted({(m.m, m.k, m.l, buffer) for m in grid() for buffer in BUFFERS})
    for *sizes, buffer in shapes:
        matmul = Matmul(*sizes)
        anything = best_schedule(matmul, buffer, room="apart")
        divided = best_schedule(matmul, buffer, cutting="divisors", room="apart")
        assert anything is not None and divided is not None
        if anything.traffic != divided.traffic:
            continue
        started = process_time()
        found = solved(matmul, buffer)
        bad += found != anything.traffic
        row = {
            "m": matmul.m,
            "k": matmul.k,
            "l": matmul.l,
            "buffer": buffer,
            "closed_form": anything.traffic,
            "exact": int(found),
        }
        append(output, {**row, "cpu_seconds": f"{process_time() - started:.2f}", **stamp()})
        print(row, flush=True)
    return bad


def pairs(output: Path, number: int) -> int:
    """A row per accounting and kind of classes."""
    for rule in ("once", "read-modify-write"):
        rng = Random(4)
        sizes = (64, 128, 200, 256, 512, 768, 1024, 2048, 4096, 8192, 16384)
        found = []
        while len(found) < number:
            one = compared(Pair(*(rng.choice(sizes) for _ in range(4))), 1 << rng.randint(15, 25), rule)
            if one is not None:
                found.append(one)
        for classes in ("exact", "threshold"):
            regrets = [c.regret(classes) for c in found]
            row = {"accounting": rule, "classes": classes, "pairs": number}
            row["profitable"] = sum(c.profitable for c in found)
            row["missed"] = sum(c.profitable and not c.principle(classes) for c in found)
            row["wrongly_fused"] = sum(not c.profitable and c.principle(classes) for c in found)
            row["mean_regret"] = f"{mean(regrets):.4f}"
            row["p95_regret"] = f"{quantiles(regrets, n=20)[-1]:.4f}"
            row["max_regret"] = f"{max(regrets):.4f}"
            append(output, {**row, **stamp()})
            print(row, flush=True)
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Measure what is asked; 1 if a closed form and `exact` differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.principles", description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("exact", "pairs"))
    parser.add_argument("--pairs", type=int, default=2500)
    options = parser.parse_args(words)
    if options.what == "exact":
        return 1 if exact(RESULTS / "principles_exact.csv") else 0
    return pairs(RESULTS / "principles_pairs.csv", options.pairs)


if __name__ == "__main__":
    sys.exit(main())

"""The RTL against NumPy and the cycle model on more than a thousand random operations: ``python -m bench.rtl``.

One fabric per size of its arrays is compiled by Verilator and fed its operations in one run. A row per fabric goes to
``bench/results/rtl.csv``; exits with 1 if a value or a cycle count differs, or where `verilator -Wall` warns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from einloom.fabric.describe import OPERATIONS, fabric
from einloom.fabric.simulate import Compiled, warnings
from einloom.fabric.trials import random_job

from .rows import ROOT, append, stamp

FABRICS = (
    *(("fusecu", rows, columns) for rows, columns in ((2, 2), (2, 5), (3, 3), (4, 4), (5, 3), (7, 6), (8, 2), (8, 8))),
    ("gemmini-like", 3, 4),
    ("unfcu", 4, 3),
    ("tpu-v4i-like", 4, 4),
    ("planaria-like", 2, 2),
)


def main(words: Sequence[str] | None = None) -> int:
    """Run all operations; 1 if one is wrong or late."""
    parser = argparse.ArgumentParser(prog="python -m bench.rtl", description=__doc__.split("\n")[0])
    parser.add_argument("--operations", type=int, default=120, help="per fabric")
    parser.add_argument("--output", type=Path, default=ROOT / "bench" / "results" / "rtl.csv")
    options = parser.parse_args(words)
    bad = 0
    for number, (name, rows, columns) in enumerate(FABRICS):
        one, rng = fabric(name).with_arrays(rows, columns), Random(number)
        jobs = [random_job(one, rng) for _ in range(options.operations)]
        with tempfile.TemporaryDirectory() as folder:
            ran = Compiled(one, Path(folder)).run(jobs)
            warned = warnings(Path(folder) / "fabric.v")
        kinds = Counter(job.operation for job in jobs)
        right, timely = sum(r.right for r in ran), sum(r.on_time for r in ran)
        bad += 2 * len(ran) - right - timely + warned
        row = {"fabric": name, "rows": rows, "columns": columns, "operations": len(ran), "right": right}
        row |= {"cycles_equal": timely, **{kind: kinds[kind] for kind in OPERATIONS}}
        row["configurations"] = len({job.configuration.name for job in jobs})
        row["warnings"] = warned
        append(options.output, {**row, **stamp()})
        said = f"{right} right, {timely} on time, of {len(ran)}; {warned} warnings"
        print(f"{name} {rows} x {columns}: {said}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

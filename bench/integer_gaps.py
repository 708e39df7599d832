"""How near the optima of `ragged` are to any integer tiles: ``python -m bench.integer_gaps``. One CSV row each.

Problems and machines are those of `bench.sizes`, the objective is EDP. A search, or a relaxation, that the budget of
wall time ends is written with what it has proven; where it ends before there is a mapping a line says so, and there is
no row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time

from einloom.errors import BudgetExhausted
from einloom.problem import Budget
from einloom.search.exact.integer import integer_bound
from einloom.workload.einsum import Workload

from .rows import ROOT, append, stamp
from .sizes import MACHINES, WORKLOADS, solved

RESULTS = ROOT / "bench" / "results" / "integer_gaps.csv"


def measured(workload: Workload, machine: str, seconds: float) -> dict[str, object]:
    """One row."""
    found, search = solved(workload, machine, "ragged", seconds)
    started = process_time()
    bound, ended = integer_bound(found.problem, found.value, Budget(seconds=seconds))
    assert found.certificate is not None
    return {
        "problem": workload.name,
        "machine": machine,
        "ragged_edp": f"{found.value:.5e}",
        "ragged_gap": f"{found.certificate.gap:.2%}",
        "bound_edp": f"{bound:.5e}",
        "gap": f"{max(0.0, 1 - bound / found.value):.3%}",
        "ended": ended.value if ended else "",
        "search_cpu_s": f"{search:.2f}",
        "bound_cpu_s": f"{process_time() - started:.2f}",
        **stamp(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="budget of one search, and of one relaxation")
    parser.add_argument("--only", default="", help="problems with this in their names")
    parser.add_argument("--machine", action="append", help="instead of all three; repeatable")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    for workload in WORKLOADS:
        for machine in (asked.machine or MACHINES) if asked.only in workload.name else ():
            try:
                row = measured(workload, machine, asked.seconds)
            except BudgetExhausted as error:
                print(f"{workload.name}, {machine}: {error}", flush=True)
                continue
            append(asked.output, row)
            print(", ".join(str(value) for value in row.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

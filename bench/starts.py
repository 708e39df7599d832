"""The search for a layer of GPT-3 from known mappings: ``python -m bench.starts``. See docs/exact.md.

For each objective: from no mapping, from the best one that fuses nothing, and from the optimum. Every search ends with
the proof of the same value; a row each with its CPU seconds in the CSV, in one process that has compiled everything
before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from einloom.mapspace.limits.data import BackLimit, Limits
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.registry import method
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

from .cpu_time import proving
from .measured import Column
from .rows import ROOT, append, stamp

RESULTS = ROOT / "bench" / "results" / "starts.csv"
COLUMNS = (
    Column("objective", "objective"),
    Column("start", "start"),
    Column("start worse by", lambda row: f"{float(row['worse']):.1%}" if row["worse"] else "-"),
    Column("CPU s", "cpu_s"),
)


def measured(workload: str, machine: str, objective: str) -> Iterator[dict[str, object]]:
    """A row for each start."""
    problem = Problem(load_workload(workload), load_machine(machine), Mapspace(), Objective(objective))
    outermost = BackLimit(selector("all"), (problem.machine.memories[0].name,))
    apart = replace(problem, mapspace=Mapspace(limits=Limits(backs=(outermost,))))
    optimum, unfused = proving(method("exact"), problem), proving(method("exact"), apart)
    assert optimum.found is not None and unfused.found is not None
    yield _row(objective, "none", "", optimum.seconds)
    for name, start in (("the best without fusion", unfused), ("the optimum", optimum)):
        assert start.found is not None
        again = proving(method("exact"), problem, starts=(start.found.mapping,))
        if abs(again.value / optimum.value - 1) > 1e-9:
            raise RuntimeError(f"from {name} {objective} is {again.value}, from no mapping {optimum.value}")
        yield _row(objective, name, f"{start.value / optimum.value - 1:.6f}", again.seconds)


def _row(objective: str, start: str, worse: str, seconds: float) -> dict[str, object]:
    return {"objective": objective, "start": start, "worse": worse, "cpu_s": f"{seconds:.2f}", **stamp()}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write the CSV."""
    parser = argparse.ArgumentParser(prog="python -m bench.starts", description=__doc__.split("\n")[0])
    parser.add_argument("--workload", default="gpt3-6.7b:batch=1,tokens=2048")
    parser.add_argument("--machine", default="tpu-v4i")
    parser.add_argument("--objective", action="append", help="default: edp, energy and latency")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    goals = options.objective or ("edp", "energy", "latency")
    for goal in goals:
        list(measured("gpt3-6.7b:batch=1,tokens=64", options.machine, goal))  # compiles
    for goal in goals:
        for row in measured(options.workload, options.machine, goal):
            append(options.output, row)
            print(", ".join(str(value) for value in row.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

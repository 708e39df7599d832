"""What it brings, and costs, to let Einsums run at the same time: ``python -m bench.groups``. See bench/README.md.

Each problem is solved in the sequential space and in one with groups, in one process that has compiled everything
before, with both optima proven. Rows are added to the CSV; the table of all rows of the run is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import einloom as el
from einloom.mapping.legality.concurrency import concurrent
from einloom.mapping.tree import Nest, Split, einsums_below
from einloom.mapspace.space import CONCURRENT, Mapspace
from einloom.result import Result
from einloom.version import VERSION

from .rows import append, commit

RESULTS = Path(__file__).parent / "results" / "groups.csv"
PROBLEMS = (
    ("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i"),
    ("gpt3-6.7b:batch=64,tokens=2048", "tpu-v4i"),
    ("llama3-8b:tokens=2048", "tpu-v4i"),
)
WARM = ("gpt3-6.7b:batch=1,tokens=64", "tpu-v4i")
COLUMNS = (
    "workload machine objective concurrent einloom_version commit time sequential sequential_cpu_s value bound "
    "guarantee cpu_s gain_percent cpu_ratio groups"
).split()


def groups(nest: Nest) -> Iterator[str]:
    """The Einsums of every split that runs at the same time, and where."""
    last = nest[-1]
    if isinstance(last, Split):
        if concurrent(last):
            place = last.where if last.where == "shared" else f"@ {last.where}"
            yield f"{' '.join(einsums_below((last,)))} {place}"
        for branch in last.branches:
            yield from groups(branch)


def timed(workload: str, machine: str, objective: str, space: Mapspace) -> tuple[Result, float]:
    """A proven optimum and the CPU seconds of its search."""
    started = time.process_time()
    found = el.map(workload, machine, objective, mapspace=space)
    return found, time.process_time() - started


def row(workload: str, machine: str, objective: str, where: str) -> dict[str, object]:
    """One problem in both spaces."""
    alone, alone_seconds = timed(workload, machine, objective, Mapspace())
    space = Mapspace(concurrent=where)  # type: ignore[arg-type]
    found, seconds = timed(workload, machine, objective, space)
    assert found.certificate is not None
    numbers = {
        "sequential": repr(alone.value),
        "sequential_cpu_s": f"{alone_seconds:.2f}",
        "value": repr(found.value),
        "bound": repr(found.certificate.bound),
        "guarantee": found.certificate.guarantee.name,
        "cpu_s": f"{seconds:.2f}",
        "gain_percent": f"{100 * (1 - found.value / alone.value):.2f}",
        "cpu_ratio": f"{seconds / alone_seconds:.2f}",
        "groups": "; ".join(groups(found.mapping.nest)),
    }
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    asked = (workload, machine, objective, where, VERSION, commit(), when)
    return {**dict(zip(COLUMNS, asked, strict=False)), **numbers}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write the CSV; 1 if an optimum is not proven."""
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__.split("\n")[0])
    parser.add_argument("--workload", help="only this one, with --machine")
    parser.add_argument("--machine", default="tpu-v4i")
    parser.add_argument("--objective", action="append", help="default: latency and edp")
    parser.add_argument("--concurrent", default="any", choices=CONCURRENT[1:])
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    problems = ((options.workload, options.machine),) if options.workload else PROBLEMS
    goals = options.objective or ("latency", "edp")
    workload, machine = problems[0] if options.workload else WARM
    for goal in goals:
        row(workload, machine, goal, options.concurrent)
    rows = []
    for workload, machine in problems:
        for goal in goals:
            rows.append(row(workload, machine, goal, options.concurrent))
            append(options.output, rows[-1])
            _print(rows[-1])
    return int(any(found["guarantee"] != "OPTIMAL" for found in rows))


def _print(found: dict[str, object]) -> None:
    print(f"{found['workload']} on {found['machine']}, {found['objective']}, {found['concurrent']}")
    print(f"  one after the other  {float(str(found['sequential'])):.8g}  {found['sequential_cpu_s']} CPU s")
    print(f"  at the same time     {float(str(found['value'])):.8g}  {found['cpu_s']} CPU s  ({found['guarantee']})")
    print(f"  gain {found['gain_percent']} %, CPU ratio {found['cpu_ratio']}, groups: {found['groups'] or 'none'}")


if __name__ == "__main__":
    sys.exit(main())

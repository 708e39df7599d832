"""What one `legality` and one `evaluate` of a tree take: ``python -m bench.analysis``.

The trees of `bench/trees`, named WORKLOAD@MACHINE: the optimum of a GPT-3 layer, and fused convolutions whose windows
slide over hundreds of thousands of moments and instances, on machines without limits of capacity. Then one matrix
multiplication under 500 and 5,000 loops. Each is asked once and then `--runs` times, or for one second; the
median in milliseconds of the process. A row each in `bench/results/analysis.csv`. The clock of a busy machine is no
measure of another one: ``--sources OTHER/src`` asks an earlier einloom in the same run (of no more than 500 loops).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from einloom import load_machine, load_workload
from einloom.cost.evaluate import evaluate, legality
from einloom.machine.levels import Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Compute, Loop, Mapping, Store
from einloom.workload.einsum import Workload

from .rows import ROOT, append, stamp

TREES = Path(__file__).parent / "trees"
RESULTS = Path(__file__).parent / "results" / "analysis.csv"
Question = tuple[Workload, Machine, Mapping]


def roomy(machine: Machine) -> Machine:
    """The machine with memories of any size."""
    return replace(machine, levels=tuple(replace(n, size=None) if isinstance(n, Memory) else n for n in machine.levels))


def looped(count: int) -> Question:
    """A matrix multiplication under `count` loops of one trip."""
    workload, machine = load_workload("matmul"), load_machine("simple")
    (einsum,) = workload.einsums
    outer, inner = machine.memories[:2]
    loops = [Loop(((einsum.name, einsum.variables[i % 3]),), 1) for i in range(count)]
    below = [Loop(((einsum.name, v),), workload.extents[v]) for v in einsum.variables]
    stores = Store(outer.name, einsum.tensors), Store(inner.name, einsum.tensors)
    leaf = Compute(einsum.name, machine.units[0].name)
    return workload, machine, Mapping((stores[0], *loops, stores[1], *below, leaf))


def questions(loops: int) -> Iterator[tuple[str, Question]]:
    """(name, what is asked about)."""
    for file in sorted(TREES.glob("*.txt")):
        workload, machine = load_workload(file.stem.split("@")[0]), roomy(load_machine(file.stem.split("@")[1]))
        yield file.stem, (workload, machine, parse_mapping(file.read_text(encoding="utf-8"), workload, machine))
    for count in (n for n in (500, 5000) if n <= loops):
        yield f"matmul under {count} loops", looped(count)


def milliseconds(ask: Callable[[], object], runs: int) -> float:
    """Median of `runs`, after one that is not counted; slow ones are asked fewer times."""
    found: list[float] = []
    begin = time.process_time()
    while len(found) <= runs and (len(found) < 2 or time.process_time() - begin < 1):
        start = time.process_time_ns()
        ask()
        found.append((time.process_time_ns() - start) / 1e6)
    return statistics.median(found[1:])


def measure(runs: int, loops: int, only: str) -> dict[str, tuple[float, float]]:
    """Name -> (milliseconds of `legality`, of `evaluate`), of the trees whose names begin with `only`."""
    return {
        name: (milliseconds(lambda q=q: legality(*q), runs), milliseconds(lambda q=q: evaluate(*q), runs))  # type: ignore[misc]
        for name, q in questions(loops)
        if name.startswith(only)
    }


def elsewhere(sources: str, runs: int, loops: int, only: str) -> dict[str, tuple[float, float]]:
    """As `measure`, with the einloom that stands in `sources`."""
    command = [sys.executable, "-m", "bench.analysis", "--print", str(loops), "--runs", str(runs), "--only", only]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": sources}, capture_output=True, text=True, check=True
    )
    return {name: (a, b) for name, (a, b) in json.loads(done.stdout).items()}


def main() -> None:
    """Measure, print and append rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--sources", help="the sources of an earlier einloom, measured by turns with this one")
    parser.add_argument("--only", default="", metavar="NAME", help="only the trees whose names begin so")
    parser.add_argument("--print", type=int, metavar="LOOPS", help="print JSON, up to so many loops, and write nothing")
    arguments = parser.parse_args()
    if arguments.print:
        print(json.dumps(measure(arguments.runs, arguments.print, arguments.only)))
        return
    before = elsewhere(arguments.sources, arguments.runs, 500, arguments.only) if arguments.sources else {}
    now = elsewhere(str(ROOT / "src"), arguments.runs, 5000, arguments.only)
    for name, (legal, evaluated) in now.items():
        old = before.get(name)
        row = {"tree": name, "legality_ms": f"{legal:.2f}", "evaluate_ms": f"{evaluated:.2f}"}
        row |= {
            "legality_ms_before": f"{old[0]:.2f}" if old else "",
            "evaluate_ms_before": f"{old[1]:.2f}" if old else "",
        }
        print(row)
        append(RESULTS, {**row, **stamp()})


if __name__ == "__main__":
    main()

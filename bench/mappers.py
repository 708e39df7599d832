"""How far methods without a proof end from the optimum: ``python -m bench.mappers``. See docs/mappers.md.

Every run is saved in a folder, so an interrupted command is taken up; the CSV is made of all runs at its end. The same
seeds give the same values; only times differ.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from einloom.api import problems
from einloom.problem import Budget
from einloom.search.registry import SHIPPED, takes
from einloom.sweep.methods import MethodRuns, compare_methods, value_at

from .rows import append, stamp

RESULTS = Path(__file__).parent / "results" / "mappers.csv"
PROBLEMS = {  # name -> workload, machine, objective, dataflow, full use
    "GPT-3 6.7B, EDP": ("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "edp", None, False),
    "16 matmuls, energy": (
        "matmuls:n=16,m=8192,kn=4096,bits=8",
        "simple:dram_energy=100,glb_bits=8388608",
        "energy",
        None,
        False,
    ),
    "BERT attention, latency": ("tileflow-bert-s", "tileflow-edge", "latency", "spread-attention", True),
    "GPT-3 6.7B, energy": ("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "energy", None, False),
}
MARKS = (100, 1000)


def heuristics() -> tuple[str, ...]:
    """The methods that ship and take a seed."""
    return tuple(name for name in SHIPPED if takes(name, "seed"))


def rows(name: str, found: MethodRuns, points: int) -> list[dict[str, object]]:
    """A row per method: gaps of the median and the worst run at each mark, points and CPU seconds."""
    made = []
    for record in found.to_data()["methods"]:  # type: ignore[attr-defined]
        row: dict[str, object] = {"problem": name, "method": record["method"], "runs": record["runs"]}
        for mark in sorted({*MARKS, points}):
            gaps = [found.gap(value_at(run, mark)) for run in found.of(record["method"])]
            known = sorted(gap for gap in gaps if gap is not None)
            whole = len(known) == len(gaps)
            row[f"median_gap_{mark}"] = f"{known[len(known) // 2]:.6f}" if whole else ""
            row[f"worst_gap_{mark}"] = f"{known[-1]:.6f}" if whole else ""
        row["points"] = record["points"]
        row["cpu_seconds"] = f"{record['cpu_seconds']:.2f}"
        row["reference"] = repr(found.reference)
        row["proven"] = found.proven
        made.append({**row, **stamp()})
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=Path("mappers-runs"))
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS))
    asked = parser.parse_args(arguments)
    made: list[dict[str, object]] = []
    for number, (name, (workload, machine, goal, flow, full)) in enumerate(PROBLEMS.items()):
        if asked.problem and name not in asked.problem:
            continue
        problem = problems(workload, machine, goal, None, None, flow, full)[0].problem
        names = ("exact", *heuristics())
        budget = Budget(steps=asked.points)
        found = compare_methods(problem, names, asked.seeds, budget, asked.folder / str(number), said=print)
        print(found)
        made += rows(name, found, asked.points)
    RESULTS.unlink(missing_ok=True)
    for row in made:
        append(RESULTS, row)


if __name__ == "__main__":
    main()

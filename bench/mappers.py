"""How far methods without a proof end from the optimum: ``python -m bench.mappers``. See docs/mappers.md.

A cell is one method on one problem with one number of points; its row is written when its last seed ends. A run ends
before its last point where it has the proven optimum. Runs are saved in a folder, so an interrupted command is taken
up, and more seeds of a cell run only those that it lacks. The same seeds give the same values; only times differ.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from einloom.problem import Budget, Problem
from einloom.questions import problems
from einloom.search.registry import SHIPPED, takes
from einloom.sweep.methods import MethodRun, MethodRuns, compare_methods, value_at

from . import known_optima
from .measured import Row
from .rows import read, replace, stamp

RESULTS = Path(__file__).parent / "results" / "mappers.csv"
PUBLISHED = Path(__file__).parent / "published"
PROBLEMS = {  # name -> workload, machine, objective, dataflow, full use
    "GPT-3 6.7B, EDP": ("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "edp", None, False),
    "GPT-3 6.7B, energy": ("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "energy", None, False),
    "16 matmuls, energy": (
        "matmuls:n=16,m=8192,kn=4096,bits=8",
        "simple:dram_energy=100,glb_bits=8388608",
        "energy",
        None,
        False,
    ),
    "BERT attention, latency": ("tileflow-bert-s", "tileflow-edge", "latency", "spread-attention", True),
    "MobileNet block, energy": ("mobilenet-block", "two-level", "energy", None, False),
    "ResNet-18, EDP": ("resnet18", "tpu-v4i", "edp", None, False),
    "GPT-3 6.7B, 64 sequences, EDP": ("gpt3-6.7b:batch=64,tokens=4096", "tpu-v4i", "edp", None, False),
    "DAT's BERT, traffic": (f"{PUBLISHED}/dat-bert.yaml", f"{PUBLISHED}/dat-buffer.yaml", "traffic:DRAM", None, False),
    "GPT-3 6.7B on Gemmini, EDP": (
        "gpt3-6.7b:batch=1,tokens=512,bits=8",
        f"{PUBLISHED}/gemmini-large.yaml",
        "edp",
        None,
        True,
    ),
}
MARKS = (100, 1000, 10_000, 100_000)
BEFORE_THE_PROOF = 1000  # points that `auto` searches before its proof, which needs no more of them
KEYS = ("problem", "method", "points")


def heuristics() -> tuple[str, ...]:
    """The methods that ship and take a seed."""
    return tuple(name for name in SHIPPED if takes(name, "seed"))


def reached(run: MethodRun, points: int) -> float | None:
    """The value of a run that was asked for so many points; of `auto` at that point, since its proof goes on."""
    return value_at(run, points) if run.method == "auto" else run.value


def cell(name: str, problem: Problem, one: str, points: int, seeds: int, folder: Path) -> dict[str, object]:
    """The row of a method with so many points: the gap of each seed to the optimum that `exact` proves."""
    proof = compare_methods(problem, ("exact",), 1, Budget(), folder, said=print).runs
    steps = min(points, BEFORE_THE_PROOF) if one == "auto" else points
    known = MethodRuns(problem, proof)
    optimum = known.reference if known.proven and one != "auto" else None
    until = float("-inf") if optimum is None else optimum * (1 + known_optima.EQUAL)
    runs = compare_methods(problem, (one,), seeds, Budget(steps=steps), folder, said=print, until=until).runs
    found = MethodRuns(problem, (*proof, *runs))
    gaps = [found.gap(reached(run, points)) for run in runs]
    return {
        "problem": name,
        "method": one,
        "points": points,
        "seeds": len(runs),
        "gaps": " ".join("-" if gap is None else f"{gap:.6f}" for gap in gaps),
        "cpu_seconds": f"{median(run.seconds for run in runs):.2f}",
        "reference": repr(found.reference),
        "proven": found.proven,
        **stamp(),
    }


def measure(name: str, methods: Sequence[str], marks: Sequence[int], seeds: int, folder: Path) -> None:
    """The cells of a problem that have fewer seeds than asked for, each written as it ends."""
    workload, machine, goal, flow, full = PROBLEMS[name]
    problem = problems(workload, machine, goal, None, None, flow, full)[0].problem
    order = [(one, other, str(points)) for one in PROBLEMS for other in heuristics() for points in MARKS]
    for points in marks:
        for one in methods:
            known = {tuple(row[key] for key in KEYS): int(row["seeds"]) for row in read(RESULTS)}
            if known.get((name, one, str(points)), 0) < seeds:
                made = cell(name, problem, one, points, seeds, folder)
                print(*list(made.values())[:-5], sep=", ", flush=True)
                replace(RESULTS, [{key: str(value) for key, value in made.items()}], KEYS, order)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and write the CSV."""
    parser = argparse.ArgumentParser(prog="python -m bench.mappers", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--points", type=int, action="append", help=f"of each run; {MARKS} where not given")
    parser.add_argument("--folder", type=Path, default=Path("mappers-runs"))
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS))
    parser.add_argument("--method", action="append", choices=heuristics())
    parser.add_argument("--tiny", type=int, metavar="PROBLEMS", help="of so many tiny problems, how many are solved")
    parser.add_argument("--below", type=int, metavar="PROBLEMS", help="on so many others, is any below the proof?")
    parser.add_argument("--again", action="store_true", help="with --tiny or --below: drop the rows of these methods")
    asked = parser.parse_args(arguments)
    names = asked.method or heuristics()
    if asked.tiny or asked.below:
        if asked.again:
            known_optima.forget(bool(asked.tiny), names)
        points = (asked.points or [1000])[-1]
        known_optima.measure(bool(asked.tiny), asked.tiny or asked.below, points, names)
        return
    for number, name in enumerate(PROBLEMS):
        if not asked.problem or name in asked.problem:
            measure(name, names, asked.points or MARKS, asked.seeds, asked.folder / str(number))


def shown(row: Row) -> str:
    """The median and the worst of the seeds, and how many these are."""
    gaps = sorted(float("inf") if one == "-" else float(one) for one in row["gaps"].split())
    middle, worst = (f"{one:.1%}" if one < float("inf") else "nothing" for one in (median(gaps), gaps[-1]))
    return f"{middle}, {worst} ({row['seeds']})" if len(gaps) > 1 else f"{middle} (1)"


def table(rows: Sequence[Row]) -> str:
    """A line per problem and method, and below it how many cells have how many seeds."""
    at = {tuple(row[key] for key in KEYS): row for row in rows}
    heads = ("problem", "method", *(f"{points:,} points" for points in MARKS), "CPU s of the longest")
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for name in PROBLEMS:
        for one in heuristics():
            mine = [at.get((name, one, str(points))) for points in MARKS]
            known = [row for row in mine if row is not None]
            if known:
                cells = [shown(row) if row is not None else "-" for row in mine]
                lines.append(f"| {' | '.join((name, one, *cells, known[-1]['cpu_seconds']))} |")
    return "\n".join([*lines, "", counted(rows)])


def counted(rows: Sequence[Row]) -> str:
    """How many cells of the table have how many seeds, number of points by number of points."""
    every, said = len(PROBLEMS) * len(heuristics()), []
    for points in MARKS:
        seeds = Counter(int(row["seeds"]) for row in rows if row["points"] == str(points))
        parts = [f"{cells} with {n} seed{'s' if n > 1 else ''}" for n, cells in sorted(seeds.items(), reverse=True)]
        none = every - seeds.total()
        said.append(f"{points:,} points: {', '.join([*parts, *([f'{none} not measured'] if none else [])])}")
    return f"Of {every} cells in each column: {'; '.join(said)}."


if __name__ == "__main__":
    main()

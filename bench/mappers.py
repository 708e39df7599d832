"""How far methods without a proof end from the optimum: ``python -m bench.mappers``. See docs/mappers.md.

Every run is saved in a folder, so an interrupted command is taken up; the rows of a problem are written when its last
run ends, and those of problems and methods that are not asked for stay. The same seeds give the same values; only times
differ.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

from einloom.api import problems
from einloom.errors import BudgetExhausted, Defect, Infeasible
from einloom.mapping.tree import Mapping
from einloom.problem import Budget, Problem, objective
from einloom.search.door import ask
from einloom.search.registry import SHIPPED, method, takes
from einloom.search.watcher import Watcher
from einloom.sweep.methods import MethodRuns, compare_methods, value_at
from einloom.testing.problems.drawing import draw

from .rows import replace, stamp

RESULTS = Path(__file__).parent / "results" / "mappers.csv"
TINY = RESULTS.with_name("mappers-tiny.csv")
BELOW = RESULTS.with_name("mappers-below.csv")
OTHERS = 1000  # the first seed of the problems of `--below`
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
FEW = {"random": 1000, "tileflow": 1000, "gradient": 1000, "bayes": 1000, "dat": 100}  # points, for the sake of time


def heuristics() -> tuple[str, ...]:
    """The methods that ship and take a seed."""
    return tuple(name for name in SHIPPED if takes(name, "seed"))


def compared(problem: Problem, names: Sequence[str], seeds: int, points: int, folder: Path) -> MethodRuns:
    """`exact` to its proof, and each of these methods with its points."""
    runs = list(compare_methods(problem, ("exact",), 1, Budget(), folder, said=print).runs)
    for name in names:
        budget = Budget(steps=min(points, FEW.get(name, points)))
        runs += compare_methods(problem, (name,), seeds, budget, folder, said=print).runs
    return MethodRuns(problem, tuple(runs))


def rows(name: str, found: MethodRuns, points: int) -> list[dict[str, object]]:
    """A row per method with a seed: gaps of the median and the worst run at each mark, points and CPU seconds."""
    made = []
    for record in found.to_data()["methods"]:  # type: ignore[attr-defined]
        if record["method"] not in heuristics():
            continue
        row: dict[str, object] = {"problem": name, "method": record["method"], "runs": record["runs"]}
        for mark in MARKS:
            asked = min(points, FEW.get(record["method"], points))
            seen = mark <= max(asked, record["points"] if record["method"] == "auto" else 0)  # its proof goes on
            gaps = [found.gap(value_at(run, mark)) if seen else None for run in found.of(record["method"])]
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


class Until(Watcher):
    """Asks a search to stop when it has a mapping of this value."""

    def __init__(self, value: float) -> None:
        self.value, self.least = value * (1 + 1e-12), float("inf")

    def incumbent(self, value: float, mapping: Mapping | None = None) -> None:
        self.least = min(self.least, value)

    def stopped(self) -> bool:
        return self.least <= self.value


def beside(
    known: Iterable[tuple[int, Problem, float]], points: int, names: Sequence[str], ends: bool
) -> list[dict[str, object]]:
    """A row per method: on how many problems of known optimum it reaches that. ends: it stops there. Raises Defect
    where one is below it."""
    reached = dict.fromkeys(names, 0)
    nothing, worst = dict.fromkeys(reached, 0), dict.fromkeys(reached, 0.0)
    missed: dict[str, list[int]] = {name: [] for name in names}
    asked = 0
    for seed, problem, best in known:
        asked += 1
        for name in reached:
            try:
                value = ask(method(name), problem, Budget(steps=points), Until(best) if ends else None).value
            except BudgetExhausted:
                nothing[name] += 1
                missed[name].append(seed)
                continue
            if value < best * (1 - 1e-12):
                raise Defect(f"{name} finds {value!r} on problem {seed}, the optimum is {best!r}")
            if value <= best * (1 + 1e-12):
                reached[name] += 1
            else:
                missed[name].append(seed)
            worst[name] = max(worst[name], value / best - 1 if best else 0.0)
    return [
        {
            "method": name,
            "problems": asked,
            "points": points,
            "optimum": reached[name],
            "nothing": nothing[name],
            "worst_gap": f"{worst[name]:.6f}",
            "missed": " ".join(map(str, missed[name])),
            **stamp(),
        }
        for name in reached
    ]


def solved(reference: str, first: int = 0) -> Iterator[tuple[int, Problem, float]]:
    """Random tiny problems with all that files can say, groups and uneven tiles among it: seed, problem, and the least
    energy by the reference, a method that proves it."""
    for seed in count(first):
        workload, machine, mapspace = draw(seed).files.read
        problem = Problem(workload, machine, mapspace, objective("energy", machine))
        try:
            yield seed, problem, ask(method(reference), problem).value
        except Infeasible:
            continue


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=Path("mappers-runs"))
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS))
    parser.add_argument("--method", action="append", choices=heuristics())
    parser.add_argument("--tiny", type=int, metavar="PROBLEMS", help="of so many tiny problems, how many are solved")
    parser.add_argument("--below", type=int, metavar="PROBLEMS", help="on so many others, is any below the proof?")
    asked = parser.parse_args(arguments)
    names = asked.method or heuristics()
    if asked.tiny or asked.below:
        known = islice(solved("exhaustive") if asked.tiny else solved("exact", OTHERS), asked.tiny or asked.below)
        found_tiny = beside(known, asked.points, names, bool(asked.tiny))
        replace(TINY if asked.tiny else BELOW, found_tiny, ("method",), [(name,) for name in heuristics()])
        return
    for number, (name, (workload, machine, goal, flow, full)) in enumerate(PROBLEMS.items()):
        if asked.problem and name not in asked.problem:
            continue
        problem = problems(workload, machine, goal, None, None, flow, full)[0].problem
        found = compared(problem, names, asked.seeds, asked.points, asked.folder / str(number))
        print(found)
        places = [(one, other) for one in PROBLEMS for other in heuristics()]
        replace(RESULTS, rows(name, found, asked.points), ("problem", "method"), places)


if __name__ == "__main__":
    main()

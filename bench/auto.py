"""`auto` beside every single method in the same CPU seconds: ``python -m bench.auto``. See docs/mappers.md.

Each single method gets the seconds that `auto` took to its proof on a problem of `bench.mappers`, or three where that
is more. A problem that the CSV has is measured again if it is asked for by ``--problem``, and with ``--again``; its new
rows stand in place of the old ones. ``--starts``: `exact` from what `auto` starts it with, beside `exact` alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from einloom.errors import BudgetExhausted
from einloom.mapspace.registry import space_for
from einloom.problem import Budget, Problem
from einloom.questions import problems
from einloom.search.evaluator import Evaluator, Stop
from einloom.search.registry import method

from .cpu_time import budgeted, heuristic, proving
from .mappers import PROBLEMS, heuristics
from .measured import Column, Row
from .rows import had, replace, stamp

RESULTS = Path(__file__).parent / "results" / "auto.csv"
STARTS = RESULTS.with_name("auto-starts.csv")
SECONDS = 3.0
WORSE = 1 + 1e-9  # values that differ by less are equal


def named(name: str) -> Problem:
    workload, machine, goal, flow, full = PROBLEMS[name]
    return problems(workload, machine, goal, None, None, flow, full)[0].problem


def rows(name: str, seeds: range) -> list[dict[str, object]]:
    """A row per single method: how far the median of the seeds ends above that of `auto`."""
    problem = named(name)
    autos = [budgeted(method("auto", {"seed": seed}), problem, SECONDS) for seed in seeds]
    seconds, best = median(run.seconds for run in autos), median(run.value for run in autos)
    proven = sum(run.found is not None and run.found.ended is None for run in autos)
    singles = [proving(method("exact"), problem, seconds)]
    made = [("exact", singles[0].value, float("nan"))]
    for one in (one for one in heuristics() if one != "auto"):
        values = sorted(heuristic(one, problem, seconds, {"seed": seed}).value for seed in seeds)
        made.append((one, median(values), values[0]))
    return [
        {
            "problem": name,
            "method": one,
            "seeds": 1 if one == "exact" else len(seeds),
            "cpu_seconds": f"{seconds:.2f}",
            "auto_proven": proven,
            "auto": repr(best),
            "value": repr(value),
            "best_seed": repr(least),
            "auto_not_worse": best <= value * WORSE,
            **stamp(),
        }
        for one, value, least in made
    ]


def started(name: str, times: int) -> dict[str, object]:
    """CPU seconds of `exact` alone and from the start that `auto` gives it, by turns; the least of each."""
    problem = named(name)
    space = space_for(problem.workload, problem.machine, problem.mapspace)
    price = Evaluator(problem, space, Budget(steps=1000))
    with suppress(Stop, BudgetExhausted):
        method("genetic", {"points": 1000}).search(problem, space, price, price.budget, price.watch)
    price.settle()
    known = () if price.best is None else (price.best,)
    alone, after, values = [], [], set()
    for _ in range(times):
        for taken, starts in ((alone, ()), (after, known)):
            run = proving(method("exact"), problem, starts=starts)
            taken.append(run.seconds)
            values.add(run.value)
    optimum = min(values)
    return {
        "problem": name,
        "start_gap": f"{price.value / optimum - 1:.6f}",
        "times": times,
        "alone_cpu_s": f"{min(alone):.2f}",
        "started_cpu_s": f"{min(after):.2f}",
        "change": f"{min(after) / min(alone) - 1:.4f}",
        "same_value": max(values) <= optimum * WORSE,
        **stamp(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the CSV lacks."""
    parser = argparse.ArgumentParser(prog="python -m bench.auto", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, metavar="SEED")
    parser.add_argument("--starts", type=int, metavar="TIMES", help="exact from auto's start, so many times")
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS))
    parser.add_argument("--again", action="store_true", help="measure what the CSV has, too")
    asked = parser.parse_args(arguments)
    path = STARTS if asked.starts else RESULTS
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    keys = ("problem",) if asked.starts else ("problem", "method")
    places = [(one,) if asked.starts else (one, other) for one in PROBLEMS for other in ("exact", *heuristics())]
    known = had(path, "problem")
    for name in asked.problem or PROBLEMS:
        if (name,) not in known or asked.problem or asked.again:
            made = [started(name, asked.starts)] if asked.starts else rows(name, seeds)
            replace(path, made, keys, places)
            for row in made:
                print(*list(row.values())[:-3], sep=", ", flush=True)


def table(rows: list[Row]) -> str:
    """Of each problem, and of all together, against how many single methods `auto` is not worse."""
    lines = [
        "| problem | CPU s | `auto` proven | `auto` not worse | better than `auto` |",
        "| --- | --- | --- | --- | --- |",
    ]
    won = 0
    for name in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == name]
        good = [row for row in mine if row["auto_not_worse"] == "True"]
        won += len(good)
        better = ", ".join(
            f"{row['method']} {1 - float(row['value']) / float(row['auto']):.1%}" for row in mine if row not in good
        )
        lines.append(
            f"| {name} | {mine[0]['cpu_seconds']} | {mine[0]['auto_proven']} of {mine[1]['seeds']} seeds"
            f" | {len(good)} of {len(mine)} methods | {better or '-'} |"
        )
    lines.append(f"| all | | | {won} of {len(rows)}, {won / len(rows):.0%} | |")
    return "\n".join(lines)


START_COLUMNS = (
    Column("problem", "problem"),
    Column("the start is off by", lambda row: f"{float(row['start_gap']):.1%}"),
    Column("`exact` alone, CPU s", "alone_cpu_s"),
    Column("from the start", "started_cpu_s"),
    Column("change", lambda row: f"{float(row['change']):+.0%}"),
)

if __name__ == "__main__":
    main()

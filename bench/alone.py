"""Problems that only einloom solves, with what they took: ``python -m bench.alone``. See bench/README.md.

Whole networks and Pareto sets, which the peer has no form for or would need days for. Every problem is solved twice,
with an empty and with a filled compile cache. One CSV row per problem.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from einloom.version import VERSION

from .measure import Measured
from .peer import HERE, Side, arguments, run_einloom
from .problems import ALONE, BenchProblem
from .rows import append, commit, had

RESULTS = HERE / "results" / "alone.csv"
COLUMNS = (
    "problem time einloom_version commit objective command cold_cpu_s cold_wall_s cold_rss_mb warm_cpu_s warm_wall_s "
    "warm_rss_mb einsums guarantee value gap pareto_points outcome"
).split()


def solved(problem: BenchProblem, timeout: float) -> dict[str, object]:
    """One problem, cold and warm, as a row of the CSV."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        folders = {name: root / name for name in ("cold", "warm", "cache")}
        for folder in folders.values():
            folder.mkdir()
        started = datetime.now().astimezone().isoformat(timespec="seconds")
        cold = run_einloom(problem, folders["cold"], folders["cache"], timeout)
        warm = run_einloom(problem, folders["warm"], folders["cache"], timeout)
        facts = _facts(folders["warm"] / "result.json", warm)
    command = " ".join(["einloom", *arguments(problem)])
    numbers = (*_numbers(cold.measured), *_numbers(warm.measured), *facts, warm.measured.outcome)
    asked = (problem.name, started, VERSION, commit(), problem.objective, command)
    return dict(zip(COLUMNS, (*asked, *numbers), strict=True))


def _facts(path: Path, side: Side) -> tuple[object, ...]:
    """Einsums, guarantee, value, gap and points of the Pareto set, from the written result; empty without one."""
    if side.optimum is None:
        return ("",) * 5
    result = json.loads(path.read_text())
    certificate = result["certificate"]
    points = len(result["front"]) if result.get("front") else ""
    value, gap = repr(certificate["value"]), f"{certificate['gap']:.2e}"
    return len(result["workload"]["einsums"]), certificate["guarantee"], value, gap, points


def _numbers(m: Measured) -> tuple[str, str, str]:
    return f"{m.cpu:.2f}", f"{m.wall:.2f}", f"{m.rss / 10**6:.0f}"


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write the CSV; 1 if a run failed or ended without proof."""
    parser = argparse.ArgumentParser(prog="python -m bench.alone", description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="only this problem (may be given again)")
    parser.add_argument("--timeout", type=float, default=1800, metavar="SECONDS", help="for each run (default 1800)")
    parser.add_argument("--again", action="store_true", help="measure also what the CSV has already")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    known = [p.name for p in ALONE]
    for name in options.only or ():
        if name not in known:
            parser.error(f"unknown problem {name!r}; known are {', '.join(known)}")
    before = set() if options.again else had(options.output, "problem", "einloom_version")
    failures = 0
    for problem in ALONE:
        if options.only and problem.name not in options.only:
            continue
        if (problem.name, VERSION) in before:
            print(f"{problem.name}: measured before (--again repeats it)")
            continue
        row = solved(problem, options.timeout)
        append(options.output, row)
        print(
            f"{problem.name:<26} {row['warm_cpu_s']:>8} s ({row['cold_cpu_s']} s cold)  {row['warm_rss_mb']:>5} MB  "
            f"{row['guarantee'] or row['outcome']}  {row['value']}",
            flush=True,
        )
        failures += row["guarantee"] != "optimal"
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""einloom beside an earlier state of itself, by turns: ``python -m bench.before --sources OTHER/src``.

Both states run the same command as whole processes, one after the other and the other way round in turn, each with
compiled sources and machine code of its own from a run before. A row per problem: medians of CPU seconds and memory,
their ratios, and whether the values agree.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from .measure import Measured, measure
from .measured import Column, Row, markdown
from .peer import HERE, arguments
from .problems import ALONE, PROBLEMS, BenchProblem
from .rows import had, replace, stamp

RESULTS = HERE / "results" / "before.csv"
OURS = HERE.parent / "src"
PAIRS, FEW, LONG = 7, 3, 30.0
"""Paired runs of a problem, and of one that takes so many CPU seconds."""


@dataclass(frozen=True)
class Timed:
    """A command of both states. cpu, mb: what it is to take at most, where a goal was set."""

    name: str
    words: tuple[str, ...]
    cpu: float | None = None
    mb: float | None = None


def _search(problem: BenchProblem, cpu: float | None = None, mb: float | None = None) -> Timed:
    return Timed(problem.name, (*arguments(problem), "--json", "result.json"), cpu, mb)


CHAIN = "matmuls:n=1000,m=8192,kn=4096"
SMALL = "simple:dram_energy=100,glb_bits=8388608"
GOALS = {
    "gpt3-b1-energy": (0.35, None),
    "gpt3-b1-edp": (0.5, None),
    "gpt3-b64-edp": (3.0, 150.0),
    "mobilenet-two-level": (0.5, None),
    "gpt3-b1-32-layers-edp": (1.5, None),
}
FURTHER = (
    _search(BenchProblem("decode-edp", "gpt3-6.7b:decode=true,cached=2047", "tpu-v4i", "edp"), 0.4),
    _search(BenchProblem("chain1000-simple", CHAIN, SMALL), 3.0, 100.0),
    _search(BenchProblem("gpt3-b4-simple", "gpt3-6.7b:batch=4,tokens=256", "simple"), 3.0),
    Timed("einloom zoo", ("zoo",), 0.15),
)
_BOTH = {problem.name: problem for problem in (*PROBLEMS, *ALONE)}
TIMED = (*(_search(problem, *GOALS.get(name, ())) for name, problem in _BOTH.items()), *FURTHER)


def paired(timed: Timed, sources: Path, pairs: int | None, timeout: float) -> dict[str, object]:
    """Both states on one command, as a row of the CSV."""
    with tempfile.TemporaryDirectory() as scratch:
        sides = {"before": (sources, Path(scratch) / "before"), "now": (OURS, Path(scratch) / "now")}
        for _, folder in sides.values():
            folder.mkdir()
        runs: dict[str, list[Measured]] = {side: [] for side in sides}
        warm = {side: _run(timed, *place, timeout) for side, place in sides.items()}
        longest = max(run.cpu for run in warm.values())
        count = pairs if pairs is not None else PAIRS if longest < LONG else FEW
        for turn in range(count):
            for side in sorted(sides, reverse=turn % 2 == 1):
                runs[side].append(_run(timed, *sides[side], timeout))
        values = {side: _value(folder) for side, (_, folder) in sides.items()}
    for side, found in runs.items():
        if wrong := [run.outcome for run in (warm[side], *found) if run.outcome != "finished"]:
            raise RuntimeError(f"{timed.name}, {side}: {wrong[0]}: {found[-1].err.strip()[-300:]}")
    seconds = {side: median(run.cpu for run in found) for side, found in runs.items()}
    memory = {side: median(run.rss for run in found) / 1e6 for side, found in runs.items()}
    ratios = [now.cpu / before.cpu for now, before in zip(runs["now"], runs["before"], strict=True)]
    return {
        "problem": timed.name,
        "command": " ".join(["einloom", *timed.words]),
        "pairs": count,
        "before_cpu_s": f"{seconds['before']:.2f}",
        "now_cpu_s": f"{seconds['now']:.2f}",
        "ratio": f"{median(ratios):.3f}",
        "goal_cpu_s": "" if timed.cpu is None else timed.cpu,
        "before_mb": f"{memory['before']:.0f}",
        "now_mb": f"{memory['now']:.0f}",
        "goal_mb": "" if timed.mb is None else f"{timed.mb:.0f}",
        "before_value": values["before"],
        "now_value": values["now"],
        **stamp(),
    }


def _run(timed: Timed, sources: Path, folder: Path, timeout: float) -> Measured:
    command = [sys.executable, "-m", "einloom", *timed.words]
    places = {"PYTHONPATH": str(sources), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    return measure(command, folder, timeout, {**places, "NUMBA_CACHE_DIR": str(folder / "machine-code")})


def _value(folder: Path) -> str:
    path = folder / "result.json"
    return repr(json.loads(path.read_text())["certificate"]["value"]) if path.exists() else ""


def _times(row: Row, what: str, unit: str) -> str:
    goal = row[f"goal_{unit}"]
    return f"{row[f'{what}_{unit}']}{f' (goal {goal})' if goal and what == 'now' else ''}"


def _same(row: Row) -> str:
    before, now = row["before_value"], row["now_value"]
    if not before or before == now:
        return "the same"
    return f"{float(now) / float(before) - 1:+.1e}"


COLUMNS = (
    Column("problem", lambda row: f"`{row['command'].removesuffix(' --json result.json')}`"),
    Column("pairs", "pairs"),
    Column("CPU s before", lambda row: _times(row, "before", "cpu_s")),
    Column("now", lambda row: _times(row, "now", "cpu_s")),
    Column("now / before", "ratio"),
    Column("MB before", lambda row: _times(row, "before", "mb")),
    Column("now, MB", lambda row: _times(row, "now", "mb")),
    Column("value", _same),
)


def table(rows: list[Row]) -> str:
    """The page's table, in the order of `TIMED`."""
    place = {timed.name: i for i, timed in enumerate(TIMED)}
    return markdown(COLUMNS, sorted(rows, key=lambda row: place[row["problem"]]))


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write the CSV; 1 if a problem is slower by more than a twentieth."""
    parser = argparse.ArgumentParser(prog="python -m bench.before", description=__doc__.split("\n")[0])
    parser.add_argument("--sources", type=Path, required=True, help="the folder src of the earlier state")
    parser.add_argument("--only", action="append", metavar="NAME", choices=[t.name for t in TIMED])
    parser.add_argument("--pairs", type=int, help=f"paired runs ({PAIRS}; {FEW} from {LONG:.0f} CPU s on)")
    parser.add_argument("--timeout", type=float, default=1800, metavar="SECONDS", help="for each run (1800)")
    parser.add_argument("--again", action="store_true", help="measure also what the CSV has already")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    done = set() if options.again else had(options.output, "problem")
    slower = 0
    for timed in TIMED:
        if (timed.name,) in done or (options.only and timed.name not in options.only):
            continue
        row = paired(timed, options.sources.resolve(), options.pairs, options.timeout)
        replace(options.output, [row], ("problem",), [(one.name,) for one in TIMED])
        print(
            f"{timed.name:<26} {row['before_cpu_s']:>8} -> {row['now_cpu_s']:>8} CPU s  x {row['ratio']}  "
            f"{row['before_mb']:>5} -> {row['now_mb']:>5} MB  {row['before_value']} {row['now_value']}",
            flush=True,
        )
        slower += float(str(row["ratio"])) > 1.05
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())

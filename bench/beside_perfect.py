"""The space `ragged` beside `ffm`, on known problems and on chains: ``python -m bench.beside_perfect``.

The problems are those of the other benches; the chains are of convolutions. Whole processes with the same budget, one
after the other; a mapping of `ffm` is in `ragged`, so that with time enough no value of `ragged` is higher. One CSV row
per problem.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .measure import measure
from .measured import Column
from .peer import HERE, arguments
from .problems import ALONE, PROBLEMS, BenchProblem
from .rows import append, had, stamp

RESULTS = HERE / "results" / "beside-perfect.csv"
SPACES = ("ffm", "ragged")
FLOW = "spread-convolution"
MEMORY = "3 GiB"
CHAINS = tuple(
    BenchProblem(f"{chain}-{machine}-{goal}", f"tileflow-{chain}", f"tileflow-{machine}", goal, dataflow=FLOW)
    for chain in ("cc1", "cc2", "cc3", "cc4", "cc5")
    for machine in ("edge", "cloud")
    for goal in ("latency", "edp")
)
"""TileFlow's chains of convolutions, whose images have rows of 28 to 229 pixels, with channels on the array."""
BRIEF = 10.0
"""Seconds of each run of a chain."""
TIED = 1e-9
"""Values that differ by less are equal."""


def solved(problem: BenchProblem, seconds: float) -> dict[str, object]:
    """The problem in both spaces, as a row of the CSV."""
    row: dict[str, object] = {"problem": problem.name, "objective": problem.objective, "seconds": f"{seconds:g}"}
    command = [sys.executable, "-m", "einloom", *arguments(problem), "--budget-seconds", f"{seconds:g}"]
    for space in SPACES:
        with tempfile.TemporaryDirectory() as scratch:
            words = [*command, "--budget-memory", MEMORY, "--space", space, "--json", "result.json"]
            environment = {"PYTHONPATH": str(HERE.parent / "src"), "NUMBA_CACHE_DIR": os.path.join(scratch, "cache")}
            run = measure(words, Path(scratch), 3 * seconds + 60, environment)
            if run.outcome != "finished":
                raise RuntimeError(f"{problem.name} in {space}: {run.outcome}: {run.err.strip()[-300:]}")
            certificate = json.loads((Path(scratch) / "result.json").read_text())["certificate"]
        row |= {f"{space}_value": repr(certificate["value"]), f"{space}_gap": f"{certificate['gap']:.3e}"}
        row |= {f"{space}_cpu_s": f"{run.cpu:.2f}", f"{space}_mb": f"{run.rss / 1e6:.0f}"}
    return {**row, **stamp()}


def ratio(row: dict[str, str]) -> float:
    """The value of `ragged` as a multiple of that of `ffm`."""
    return float(row["ragged_value"]) / float(row["ffm_value"])


def _beside(row: dict[str, str]) -> str:
    share = ratio(row)
    return "equal" if abs(share - 1) < TIED else f"{share:.6f}"


def _proof(space: str) -> Column:
    def shown(row: dict[str, str]) -> str:
        gap = float(row[f"{space}_gap"])
        return "proven" if gap == 0 else f"gap {100 * gap:.2g} %"

    return Column(f"`{space}`", shown)


COLUMNS = (
    Column("problem", "problem"),
    Column("objective", "objective"),
    Column("budget, s", "seconds"),
    Column("value of `ffm`", lambda row: f"{float(row['ffm_value']):.8g}"),
    Column("`ragged` / `ffm`", _beside),
    *map(_proof, SPACES),
    Column("CPU s", lambda row: f"{row['ffm_cpu_s']}, {row['ragged_cpu_s']}"),
    Column("MB", lambda row: f"{row['ffm_mb']}, {row['ragged_mb']}"),
)
"""Of the page's table."""


def main(words: Sequence[str] | None = None) -> int:
    """Measure what the CSV does not have, print, write; 1 if `ragged` ends above `ffm` somewhere."""
    parser = argparse.ArgumentParser(prog="python -m bench.beside_perfect", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="the budget of each run (30)")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this problem (may be given again)")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    known = had(options.output, "problem")
    above = 0
    for name, problem in {one.name: one for one in (*PROBLEMS, *ALONE, *CHAINS)}.items():
        if (name,) in known or (options.only and name not in options.only):
            continue
        row = solved(problem, min(BRIEF, options.seconds) if problem in CHAINS else options.seconds)
        append(options.output, row)
        texts = {key: str(value) for key, value in row.items()}
        print(f"{name:<26} {' '.join(column.of(texts) for column in COLUMNS[2:])}", flush=True)
        above += ratio(texts) > 1 + TIED
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())

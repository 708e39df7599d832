"""What it brings, and costs, to let Einsums run at the same time: ``python -m bench.groups``. See bench/README.md.

Each problem is solved in the sequential space and in one with groups, in one process that has compiled everything
before. A search that takes more than `--seconds` of CPU time or 3 GB is stopped, and its row says `BOUNDED` with the
bound that it has proven. Rows are added to the CSV; the table of all rows of the run is printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from einloom.mapping.legality.concurrency import concurrent
from einloom.mapping.tree import Nest, Split, einsums_below
from einloom.mapspace.space import CONCURRENT, Concurrent, Mapspace
from einloom.problem import Objective, Problem
from einloom.search.registry import method
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

from .cpu_time import Run, proving
from .measured import Column, Row, markdown
from .rows import ROOT, append, stamp

RESULTS = ROOT / "bench" / "results" / "groups.csv"
SECONDS, MEMORY = 240.0, 3e9
LAYER = "gpt3-6.7b:batch=1,tokens=2048"
PROBLEMS: tuple[tuple[str, str, Concurrent], ...] = (
    (LAYER, "tpu-v4i", "any"),
    ("gpt3-6.7b:batch=64,tokens=2048", "tpu-v4i", "any"),
    ("llama3-8b:tokens=2048", "tpu-v4i", "any"),
    (LAYER, "tpu-v4i", "axis"),
    (LAYER, "tpu-v4i", "everywhere"),
)
WARM = "gpt3-6.7b:batch=1,tokens=64"
COLUMNS = (
    Column("layer, objective", lambda row: f"`{row['workload']}`, {row['objective']}"),
    Column("one after the other", lambda row: _cost(row, "sequential")),
    Column("with groups", lambda row: _cost(row, "value")),
    Column("gain", lambda row: f"{row['gain_percent']} %"),
    Column("proof", lambda row: "optimal" if row["guarantee"] == "OPTIMAL" else f"at least {float(row['bound']):.7g}"),
    Column("CPU s one after the other", "sequential_cpu_s"),
    Column("CPU s with groups", "cpu_s"),
    Column("groups", lambda row: row["groups"] or "none"),
)
SHARES = (
    Column("objective", "objective"),
    Column("places", lambda row: f"`{row['concurrent']}`"),
    *COLUMNS[2:5],
    *COLUMNS[6:],
)


def table(rows: list[Row]) -> str:
    """The page's table of groups anywhere but on shares of an axis."""
    return markdown(COLUMNS, (row for row in rows if row["concurrent"] == "any"))


def shares(rows: list[Row]) -> str:
    """The page's table of one layer with shares of an axis, and without."""
    mine = (row for row in rows if row["workload"] == LAYER)
    return markdown(SHARES, sorted(mine, key=lambda row: (row["objective"], CONCURRENT.index(row["concurrent"]))))


def _cost(row: Row, which: str) -> str:
    return f"{float(row[which]):.7g} {'s' if row['objective'] == 'latency' else 'J s'}"


def groups(nest: Nest) -> Iterator[str]:
    """The Einsums of every split that runs at the same time, and where."""
    last = nest[-1]
    if isinstance(last, Split):
        if concurrent(last):
            place = last.where if last.where == "shared" else f"@ {last.where}"
            yield f"{' '.join(einsums_below((last,)))} {place}"
        for branch in last.branches:
            yield from groups(branch)


def solved(workload: str, machine: str, objective: str, where: Concurrent, seconds: float) -> Run:
    """The search for the optimum, in the space with groups there."""
    space = Mapspace(concurrent=where)
    problem = Problem(load_workload(workload), load_machine(machine), space, Objective(objective))
    return proving(method("exact"), problem, seconds, memory=MEMORY)


def row(workload: str, machine: str, objective: str, where: Concurrent, seconds: float = SECONDS) -> dict[str, object]:
    """One problem in both spaces. Raises RuntimeError where a search was stopped before it had a mapping."""
    alone, grouped = (solved(workload, machine, objective, place, seconds) for place in ("none", where))
    if alone.found is None or grouped.found is None or grouped.found.certificate is None:
        raise RuntimeError(f"{workload} on {machine}, {objective}, {where}: no mapping in {seconds:g} CPU s")
    certificate = grouped.found.certificate
    return {
        "workload": workload,
        "machine": machine,
        "objective": objective,
        "concurrent": where,
        "sequential": repr(alone.value),
        "sequential_cpu_s": f"{alone.seconds:.2f}",
        "value": repr(grouped.value),
        "bound": repr(certificate.bound),
        "guarantee": certificate.guarantee.name,
        "cpu_s": f"{grouped.seconds:.2f}",
        "gain_percent": f"{100 * (1 - grouped.value / alone.value):.2f}",
        "cpu_ratio": f"{grouped.seconds / alone.seconds:.2f}",
        "groups": "; ".join(groups(grouped.found.mapping.nest)),
        **stamp(),
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write the CSV; 1 if an optimum is not proven."""
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__.split("\n")[0])
    parser.add_argument("--workload", help="only this one, with --machine")
    parser.add_argument("--machine", default="tpu-v4i")
    parser.add_argument("--objective", action="append", help="default: latency and edp")
    parser.add_argument("--concurrent", default="any", choices=CONCURRENT[1:], help="with --workload")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time of one search (%(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    asked = ((options.workload, options.machine, options.concurrent),) if options.workload else PROBLEMS
    goals = options.objective or ("latency", "edp")
    for goal in goals:
        solved(options.workload or WARM, asked[0][1], goal, options.concurrent, options.seconds)  # compiles
    rows = []
    for workload, machine, where in asked:
        for goal in goals:
            rows.append(row(workload, machine, goal, where, options.seconds))
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

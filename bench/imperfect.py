"""AccelForge's imperfect loops beside `ragged`: ``python -m bench.imperfect``. One CSV row per problem and machine.

The problems are the rows of `bench.sizes`, whose values stand beside AccelForge's. It solves each twice, without and
with imperfect loops in time and space, for EDP, from the YAML that einloom exports. A value below the bound over any
integer tiles cannot be right. Rows that the file has are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from einloom.interop.accelforge import export
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine

from .measured import Column, Row
from .peer import NoPeer, Side, peer_version, run_peer
from .rows import ROOT, append, had, stamp
from .sizes import RESULTS as SIZES
from .sizes import WORKLOADS

RESULTS = ROOT / "bench" / "results" / "imperfect.csv"
LEAST = 1 - 1e-5  # of the bound, which the file has with six digits
COLUMNS = (
    Column("problem", "problem"),
    Column("machine", "machine"),
    Column("perfect, J s: einloom", "perfect_edp"),
    Column("AccelForge", lambda row: row["peer_perfect_edp"] or row["peer_perfect_outcome"]),
    Column("uneven, J s: einloom (`ragged`)", "ragged_edp"),
    Column("AccelForge (imperfect)", lambda row: row["peer_imperfect_edp"] or row["peer_imperfect_outcome"]),
    Column("any integers at least", "integer_bound"),
    Column("below that", lambda row: "**yes**" if impossible(row) else "no" if row["peer_imperfect_edp"] else "-"),
    Column("CPU s einloom (`ragged`)", "ragged_cpu_s"),
    Column("AccelForge (imperfect)", "peer_imperfect_cpu_s"),
)


def impossible(row: Row) -> bool:
    """True if AccelForge's value is below what any integer tiles can have."""
    value, bound = row["peer_imperfect_edp"], row["integer_bound"]
    return bool(value and bound) and float(value) < LEAST * float(bound)


def answers(workload: Workload, machine: str, seconds: float) -> dict[str, Side]:
    """AccelForge without and with imperfect loops."""
    options: dict[str, tuple[str, ...]] = {"perfect": (), "imperfect": ("--imperfect",)}
    found = {}
    for name, words in options.items():
        with tempfile.TemporaryDirectory() as folder:
            export(workload, load_machine(machine), Objective("edp"), Mapspace()).write(Path(folder))
            found[name] = run_peer("edp", Path(folder), seconds, *words)
    return found


def measured(workload: Workload, ours: Row, seconds: float, version: str) -> dict[str, object]:
    """One row. ours: that of `bench.sizes`."""
    kept = ("problem", "machine", "perfect_edp", "ragged_edp", "integer_bound", "ragged_cpu_s")
    row: dict[str, object] = {name: ours[name] for name in kept}
    for name, side in answers(workload, ours["machine"], seconds).items():
        row[f"peer_{name}_edp"] = "" if side.optimum is None else f"{side.optimum:.5e}"
        row[f"peer_{name}_cpu_s"] = f"{side.measured.cpu:.2f}"
        row[f"peer_{name}_outcome"] = side.measured.outcome
    return {**row, "peer_version": version, **stamp()}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where AccelForge is not installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="wall time of one search of AccelForge")
    parser.add_argument("--only", default="", help="problems with this in their names")
    parser.add_argument("--machine", default="", help="instead of all three")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    try:
        version = peer_version()
    except NoPeer as error:
        print(error, file=sys.stderr)
        return 2
    done = had(asked.output, "problem", "machine")
    workloads = {workload.name: workload for workload in WORKLOADS}
    with SIZES.open(newline="", encoding="utf-8") as stream:
        ours = list(csv.DictReader(stream))
    for one in ours:
        here = asked.only in one["problem"] and asked.machine in one["machine"]
        if not here or (one["problem"], one["machine"]) in done:
            continue
        row = measured(workloads[one["problem"]], one, asked.seconds, version)
        append(asked.output, row)
        print(", ".join(str(value) for value in row.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Families of machines explored, beside every machine searched alone: ``python -m bench.explore``. docs/explore.md.

Both are CPU seconds of one process after its imports, one after the other in the same run. The values of the one are
held against those of the other: the largest part by which an explored machine is above its optimum is the last column.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence

from einloom.exploration.family import MachineFamily, read_family
from einloom.exploration.study import explore_family
from einloom.problem import Budget
from einloom.result import Result
from einloom.search.answer import answer
from einloom.search.method import Recorder

from .measured import Column
from .rows import ROOT, read, replace, stamp

RESULTS = ROOT / "bench" / "results" / "explore.csv"
FAMILIES = ("tpu-family", "edge-family")
TOLERANCES = (0.0, 0.01, 0.05)
KEYS = ("family", "tolerance")


def alone(family: MachineFamily) -> tuple[list[float], float]:
    """The weighted optimum of every machine, infinite where none exists, and the CPU seconds of all searches."""
    begun, values = time.process_time(), list[float]()
    for member in family.members:
        total = 0.0
        for weight, asked in zip(family.weights, member.asked, strict=True):
            found = answer(asked, "exact", Budget(), Recorder())
            total += weight * (found.value if isinstance(found, Result) else float("inf"))
        values.append(total)
    return values, time.process_time() - begun


def explored(family: MachineFamily, tolerance: float, optima: Sequence[float]) -> dict[str, object]:
    """How many machines were known how, the CPU seconds, and how far the values are from the optima."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        done = explore_family(family, folder, tolerance=tolerance)
        seconds = time.process_time() - begun
    above = [1 - best / value for one, best in zip(done.machines, optima, strict=True) if (value := done.value(one))]
    below = [one for one, best in zip(done.machines, optima, strict=True) if done.bound(one) > best * (1 + 1e-9)]
    assert not below and min(above, default=0.0) > -1e-9
    return {**done.counts, "explored": f"{seconds:.1f}", "above": f"{max(above, default=0.0):.5f}"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the families that the CSV lacks, and write it."""
    parser = argparse.ArgumentParser(prog="python -m bench.explore", description=__doc__.split("\n")[0])
    parser.add_argument("--again", action="store_true", help="measure every row anew")
    asked = parser.parse_args(arguments)
    order = [(name, str(tolerance)) for name in FAMILIES for tolerance in TOLERANCES]
    for name in FAMILIES:
        known = {row["family"] for row in read(RESULTS)} if RESULTS.exists() else set()
        if name in known and not asked.again:
            continue
        family = read_family(ROOT / "examples" / "explore" / f"{name}.yaml")
        optima, seconds = alone(family)
        for tolerance in TOLERANCES:
            row = {
                "family": name,
                "machines": len(family.members),
                "tolerance": tolerance,
                **explored(family, tolerance, optima),
                "alone": f"{seconds:.1f}",
                **stamp(),
            }
            print(*list(row.values())[:-3], sep=", ", flush=True)
            replace(RESULTS, [{key: str(value) for key, value in row.items()}], KEYS, order)


COLUMNS = (
    Column("family", "family"),
    Column("machines", "machines"),
    Column("tolerance", lambda row: f"{float(row['tolerance']):.0%}"),
    Column("searched", "searched"),
    Column("known from others", "neighbour"),
    Column("beaten", "beaten"),
    Column("CPU s", "explored"),
    Column("one by one", "alone"),
    Column("times faster", lambda row: f"{float(row['alone']) / float(row['explored']):.1f}"),
    Column("largest part above the optimum", lambda row: f"{float(row['above']):.2%}"),
)


if __name__ == "__main__":
    main()

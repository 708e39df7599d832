"""A layer of GPT-3 in two orders of its Einsums, and in all of them: ``python -m bench.orders``. See docs/exact.md.

For each order that a file might give: the proven optimum in that order, the one in free order, and the CPU seconds of
both searches, in one process that has compiled everything before. A row each in the CSV.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from einloom.machine.levels import Machine
from einloom.mapspace.space import Mapspace, Order
from einloom.problem import Objective, Problem
from einloom.search.registry import method
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

from .cpu_time import Run, proving
from .measured import Column
from .rows import ROOT, append, stamp

RESULTS = ROOT / "bench" / "results" / "orders.csv"
ORDERS = {
    "as shipped": "I V K Q QK QK_softmax AV Z FFA FFB",
    "V between QK and softmax": "I K Q QK V QK_softmax AV Z FFA FFB",
}
COLUMNS = (
    Column("order given", lambda row: f"{row['order']}: {row['einsums']}"),
    Column("EDP in that order, J s", "given_edp"),
    Column("CPU s", "given_cpu_s"),
    Column("EDP in free order, J s", "free_edp"),
    Column("CPU s in free order", "free_cpu_s"),
)


def ordered(workload: Workload, names: str) -> Workload:
    """The workload with its Einsums in this order. Raises KeyError for a name that it lacks."""
    return replace(workload, einsums=tuple(workload.einsum(name) for name in names.split()))


def solved(workload: Workload, machine: Machine, order: Order) -> Run:
    """The search for the optimum of EDP."""
    return proving(method("exact"), Problem(workload, machine, Mapspace(order=order), Objective("edp")))


def row(workload: Workload, machine: Machine, order: str, names: str) -> dict[str, object]:
    """One order of the file."""
    asked = ordered(workload, names)
    given, free = solved(asked, machine, "program"), solved(asked, machine, "free")
    return {
        "order": order,
        "einsums": names.replace(" ", ", "),
        "given_edp": f"{given.value:.6e}",
        "given_cpu_s": f"{given.seconds:.1f}",
        "free_edp": f"{free.value:.6e}",
        "free_cpu_s": f"{free.seconds:.1f}",
        **stamp(),
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write the CSV."""
    parser = argparse.ArgumentParser(prog="python -m bench.orders", description=__doc__.split("\n")[0])
    parser.add_argument("--workload", default="gpt3-6.7b:batch=1,tokens=2048")
    parser.add_argument("--machine", default="ffm-edge")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    workload, machine = load_workload(options.workload), load_machine(options.machine)
    small = load_workload("gpt3-6.7b:batch=1,tokens=64")
    solved(small, machine, "free")  # compiles
    for order, names in ORDERS.items():
        found = row(workload, machine, order, names)
        append(options.output, found)
        print(", ".join(str(value) for value in found.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

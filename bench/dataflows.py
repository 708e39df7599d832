"""All dataflows on TileFlow's shapes and machines, with proofs: ``python -m bench.dataflows``. See docs/dataflows.md.

Cells are added to the CSV one by one, so an interrupted run can be taken up; the table is made from the CSV. What is
known of a cell is only replaced by what is better.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from einloom.dataflows.files import dataflow
from einloom.published.cells import (
    ATTENTIONS,
    COMPARED,
    CONVOLUTIONS,
    FREE,
    MACHINES,
    Cell,
    family_of,
)
from einloom.published.dataflow_table import table
from einloom.published.dataflows import cells
from einloom.version import VERSION
from einloom.zoo.machine_by_name import load_machine

from .rows import STAMP, append, stamp

RESULTS = Path(__file__).parent / "results" / "dataflows.csv"
NUMBERS = ("cycles", "energy", "bound", "gap", "concurrent", "grouped", "grouped_bound")
TEXTS = "workload machine dataflow objective status why tiles concurrent_split grouped_status".split()
COLUMNS = (*(field.name for field in fields(Cell) if field.name != "mapping"), *STAMP, "source")
SOURCE = "zoo (TileFlow, MICRO'23, Tables 2 to 4); exact"


def upgraded(before: Cell, after: Cell) -> Cell:
    """What two runs know of one cell: the better mapping and the larger bound, without groups and with groups each."""
    rate = load_machine(after.machine).units[0].throughput
    scale = rate if after.objective == "latency" and rate is not None else 1.0
    best, other = sorted((after, before), key=_rank)
    value = best.cycles if best.objective == "latency" else best.energy
    if value is not None and best.bound is not None:
        bound = min(value / scale, max(best.bound, other.bound or 0.0))
        status = "optimal" if bound * scale >= value * (1 - 1e-9) else best.status
        best = replace(best, bound=bound, gap=max(0.0, 1 - bound * scale / value), status=status)
    elif best.status == "open":
        best = replace(best, bound=max(best.bound or 0.0, other.bound or 0.0))
    best = replace(best, seconds=after.seconds)
    groups, others = sorted((after, before), key=_grouped_rank)
    bound = max(groups.grouped_bound or 0.0, others.grouped_bound or 0.0)
    status = groups.grouped_status
    if groups.grouped is not None and groups.objective == "latency":
        bound = min(bound, groups.grouped / scale)
        status = "optimal" if bound * scale >= groups.grouped * (1 - 1e-9) else status
    return replace(best, grouped=groups.grouped, grouped_bound=bound if status else None, grouped_status=status)


def _rank(known: Cell) -> tuple[int, float]:
    """Smaller for the cell that knows more without groups."""
    value = known.cycles if known.objective == "latency" else known.energy
    order = ("optimal", "infeasible", "refused", "bounded", "open")
    return order.index(known.status), float("inf") if value is None else value


def _grouped_rank(known: Cell) -> tuple[int, float]:
    """Smaller for the cell that knows more with groups."""
    order = ("optimal", "bounded", "open", "")
    return order.index(known.grouped_status), float("inf") if known.grouped is None else known.grouped


def read(path: Path) -> list[Cell]:
    """The cells of a CSV, of this version, the last of each name; none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return cells_of(csv.DictReader(stream))


def cells_of(rows: Iterable[dict[str, str]]) -> list[Cell]:
    """The cells of rows of this version, the last of each name."""
    found: dict[tuple[str, ...], Cell] = {}
    for row in rows:
        if row["einloom_version"] != VERSION:
            continue
        texts = {name: row[name] for name in TEXTS}
        numbers = {name: float(row[name]) if row[name] else None for name in NUMBERS}
        cell = Cell(**texts, **numbers, seconds=float(row["seconds"]))  # type: ignore[arg-type]
        found[_key(cell)] = cell
    return list(found.values())


def _key(cell: Cell) -> tuple[str, ...]:
    return cell.workload, cell.machine, cell.dataflow, cell.objective


def row_of(cell: Cell) -> dict[str, object]:
    """The row of a cell, in the order of the columns."""
    told = {**asdict(cell), "seconds": f"{cell.seconds:.2f}", **stamp(), "source": SOURCE}
    return {name: "" if told[name] is None else told[name] for name in COLUMNS}


def settled(cell: Cell, groups: bool, redo: Sequence[str]) -> bool:
    """True if there is nothing to solve: proven, or known and not to be solved again."""
    if cell.status in ("infeasible", "refused"):
        return True
    if cell.cycles is None or cell.status in redo:
        return False
    return not groups or (cell.grouped_status != "" and cell.grouped_status not in redo)


def lenders(known: Iterable[Cell], workload: str, machine: str, flow: str, objective: str) -> list[str]:
    """The first of the smaller dataflows of the same cascade that has the least cycles of those, if any is proven; for
    the last column of any cascade."""
    order = [*COMPARED[family_of(workload)], FREE]
    smaller = order[: order.index(flow)] if flow in order else []
    asked = [c for c in known if (c.workload, c.machine, c.objective) == (workload, machine, objective)]
    mine = [c for c in asked if c.dataflow in smaller and (flow == FREE or _cascade(c.dataflow) == _cascade(flow))]
    proven = [c for c in mine if c.status == "optimal" and c.cycles is not None]
    least = min((c.cycles for c in proven if c.cycles is not None), default=0.0) * (1 + 1e-9)
    names = [c.dataflow for c in proven if c.cycles is not None and c.cycles <= least]
    return sorted(names, key=order.index)[:1]


def _cascade(flow: str) -> str:
    """The family of what a dataflow schedules."""
    return dataflow(flow).family.name


def main(words: Sequence[str] | None = None) -> int:
    """Solve what the CSV lacks, cell by cell; print the table of all that it has."""
    parser = argparse.ArgumentParser(prog="python -m bench.dataflows", description=__doc__.split("\n")[0])
    parser.add_argument("--workload", action="append", choices=(*ATTENTIONS, *CONVOLUTIONS), help="only this one")
    parser.add_argument("--machine", action="append", choices=MACHINES, help="only this one")
    parser.add_argument("--dataflow", action="append", metavar="NAME", help="only this one, or 'unrestricted'")
    parser.add_argument("--objective", default="latency", choices=("latency", "energy"))
    parser.add_argument("--seconds", type=float, default=300, help="of CPU time for each search (default 300)")
    parser.add_argument("--groups", action="store_true", help="search groups of Einsums at the same time, too")
    parser.add_argument(
        "--redo", action="append", choices=("bounded", "open"), default=[], help="solve again what is only this"
    )
    parser.add_argument("--print", action="store_true", dest="printing", help="solve nothing, print the table")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    known = {_key(c): c for c in read(options.output)}
    done = {key for key, cell in known.items() if settled(cell, options.groups, options.redo)}
    if not options.printing:
        for cell in cells(
            options.workload or (*ATTENTIONS, *CONVOLUTIONS),
            options.machine or MACHINES,
            options.dataflow,
            options.objective,
            options.seconds,
            lambda workload, machine, flow: (workload, machine, flow, options.objective) not in done,
            options.groups,
            lambda workload, machine, flow: lenders(known.values(), workload, machine, flow, options.objective),
        ):
            before = known.get(_key(cell))
            cell = cell if before is None else upgraded(before, cell)
            append(options.output, row_of(cell))
            name = f"{cell.workload} {cell.machine} {cell.dataflow}"
            print(f"{name}: {cell.status} {cell.cycles} {cell.grouped} {cell.seconds:.1f} s", flush=True)
    print(table(read(options.output)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

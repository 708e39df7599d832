"""Cycles of real hardware: TileFlow's two validation accelerators, mapping by mapping, beside what einloom says.

Comes in: the published rows (shape, tile sizes, RTL cycles), two machines of the zoo and a tree per design. Goes out: a
table of the event time, the roofline and TileFlow's own number beside the RTL's (TileFlow, MICRO'23, section 6.1). No
cycle count of the data enters the model; docs/model/latency.md says which constants were read off which rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from textwrap import indent

from ..cost.event import event_time
from ..dataclass import dataclass
from ..machine.levels import Machine
from ..mapping.text import parse_mapping
from ..mapping.tree import Mapping
from ..workload.build import build_workload
from ..workload.einsum import Workload
from ..zoo.machine_entries import zoo_machine

DATA = Path(__file__).parent / "data"
FREQUENCY = 400e6
SIDE = 16  # rows and columns of the array


@dataclass(frozen=True, slots=True)
class Published:
    """One published mapping: sizes and tile sizes by name, RTL and TileFlow cycles."""

    design: str
    sizes: tuple[tuple[str, int], ...]
    rtl: int
    tileflow: int

    def __getitem__(self, name: str) -> int:
        return dict(self.sizes)[name]

    @property
    def chosen(self) -> bool:
        """True for the rows on which constants may be chosen: the first byte of a hash of their sizes is even."""
        text = " ".join(f"{name}={size}" for name, size in self.sizes)
        return sha256(text.encode()).digest()[0] % 2 == 0


@dataclass(frozen=True, slots=True)
class ComparedMapping:
    """A published mapping with what einloom says of it, in cycles."""

    published: Published
    event: float
    roofline: float

    def error(self, what: str) -> float:
        """Relative error of ``event``, ``roofline`` or ``tileflow`` against the RTL; 0.01 is one percent too many."""
        found = self.published.tileflow if what == "tileflow" else getattr(self, what)
        return float(found) / self.published.rtl - 1

    @property
    def exact(self) -> bool:
        return abs(self.event - self.published.rtl) < 1e-3


@cache
def published(design: str) -> tuple[Published, ...]:
    """The published rows of ``gemm`` or ``fused`` that ship."""
    with (DATA / f"tileflow_{design}.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    known = ("rtl_cycles", "tileflow_cycles", "rtl_bits_read", "rtl_bits_written")
    return tuple(
        Published(
            design,
            tuple((name, int(value)) for name, value in row.items() if name not in known),
            int(row["rtl_cycles"]),
            int(row["tileflow_cycles"]),
        )
        for row in rows
    )


def compare(rows: Iterable[Published]) -> tuple[ComparedMapping, ...]:
    """Event time and roofline of every row, in cycles."""
    found = []
    for row in rows:
        workload, machine, mapping = scheduled(row)
        time = event_time(workload, machine, mapping)
        found.append(ComparedMapping(row, time.seconds * FREQUENCY, time.roofline * FREQUENCY))
    return tuple(found)


def scheduled(row: Published) -> tuple[Workload, Machine, Mapping]:
    """Workload, machine and tree of a published row."""
    machine = zoo_machine(f"tileflow-{row.design}")
    workload, text = _gemm(row) if row.design == "gemm" else _fused(row)
    return workload, machine, parse_mapping(text, workload, machine)


def _gemm(row: Published) -> tuple[Workload, str]:
    """Z = A B in output tiles, four accumulators side by side.

    The hardware loads both operand tiles anew for every output tile, as if each tile had operands of its own: that is
    what the rank `o` of output tiles says.
    """
    m, n, k = row["micro_M"], row["micro_N"], row["micro_K"]
    outputs = (row["M"] // m) * (row["N"] // n)
    sizes = {"o": outputs, "m": m, "n": n, "k": row["K"]}
    workload = build_workload("tileflow-gemm", ["Z[o,m,n] = A[o,m,k] * B[o,k,n]"], sizes, bits=16)
    blocks = -(-outputs // 4)
    return workload, (
        f"store DRAM: A B Z\nfor o in {blocks} tile 4\nstore Accumulators: Z\nfor k in {row['K'] // k} tile {k}\n"
        f"for o in {min(4, outputs)} tile 1\nstore In: A B\nstore Out: Z\n"
        f"{_array('m', m, 'k', k, 'n', n)}compute Z @ PE\n"
    )


def _fused(row: Published) -> tuple[Workload, str]:
    """C = A B, an element-wise pass, E = P D, one tile of m after the other; C and P stay on chip.

    B comes in one command for every tile of k, in parts; A stays for all of them, as P does for a tile of D.
    """
    m, k, l = row["micro_M"], row["micro_K"], row["micro_L"]  # noqa: E741 - the rank's name
    sizes = {"m": row["M"], "n": row["N"], "k": row["K"], "l": row["L"]}
    einsums = ["C[m,l] = A[m,k] * B[k,l]", "P[m,l] = exp(C[m,l])", "E[m,n] = P[m,l] * D[l,n]"]
    workload = build_workload("tileflow-fused", einsums, sizes, bits=16)
    first = _array("m", m, "k", k, "l", l)
    second = _array("m", m, "l", l, "n", row["N"])
    return workload, (
        f"store DRAM: A B D E\nfor m in {row['M'] // m} tile {m}\nstore Cache: C P\nsplit sequential:\n"
        f"  - for k in {row['K'] // k} tile {k}\n    store Line: B\n    store Left: A\n"
        f"    for l in {row['L'] // l} tile {l}\n    store Right: B\n{indent(first, '    ')}    compute C @ PE\n"
        f"  - for m in {m}\n    for l in {row['L']}\n    compute P @ Vector\n"
        f"  - store Accumulators: E\n    for l in {row['L'] // l} tile {l}\n    store Left: P\n    store Second: D\n"
        f"{indent(second, '    ')}    compute E @ PE\n"
    )


def _array(rows: str, height: int, columns: str, width: int, streamed: str, length: int) -> str:
    """The nest of one tile on the array: a block of `rows` and `columns` stays, `streamed` runs through it."""
    return (
        f"for {columns} in {width // SIDE}\nfor {rows} in {height // SIDE}\n"
        f"par {rows} in {SIDE} @ rows\npar {columns} in {SIDE} @ columns\nfor {streamed} in {length}\n"
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors over some rows: mean and largest absolute relative error of one column, and how many rows are exact."""

    rows: int
    mean: float
    worst: float
    exact: int


def summary(rows: Sequence[ComparedMapping], what: str = "event") -> Summary:
    """How far ``event``, ``roofline`` or ``tileflow`` is from the RTL."""
    errors = [abs(row.error(what)) for row in rows]
    exact = sum(row.exact for row in rows) if what == "event" else sum(error == 0 for error in errors)
    return Summary(len(rows), sum(errors) / len(errors), max(errors), exact)


def report(design: str, rows: Sequence[ComparedMapping] | None = None) -> str:
    """The table of a design as text: rows that constants were chosen on, the others, and all, for every column."""
    found = compare(published(design)) if rows is None else rows
    parts = {
        "even hash (chosen on)": [row for row in found if row.published.chosen],
        "odd hash (held out)": [row for row in found if not row.published.chosen],
        "all": list(found),
    }
    lines = [f"{design}: mean and worst error against RTL cycles, rows exact"]
    for what in ("event", "roofline", "tileflow"):
        for title, some in parts.items():
            s = summary(some, what)
            lines.append(f"  {what:<9} {title:<22} {s.mean:8.3%} {s.worst:8.2%}  {s.exact:>4} of {s.rows}")
    return "\n".join(lines) + "\n"

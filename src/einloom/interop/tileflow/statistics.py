"""TileFlow's ``out.csv`` beside einloom's numbers, and the named rules that account for the difference.

All numbers are in TileFlow's units of report: words read and updated by one instance in use, words filled per instance
on average over all, cycles. TileFlow prints six digits; numbers are equal if they print equally. What registers are
filled with is left out: TileFlow averages it over the arrays in use and cuts the average group by group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from ...dataclass import dataclass
from ...errors import SpecError
from ...reading.located import file_text
from .cycles import cycle_effects, einloom_cycles
from .read import Imported
from .rules import Case, Counts, What, counts, effects

MAX_BYTES = 1_000_000
NO_CYCLE = "these are no statistics of TileFlow: there is no Cycle"
_LINE = re.compile(r"([A-Za-z_][\w:]*)\s*,\s*([-+0-9.eE]{1,40})\s*\Z")
_WORDS: dict[What, str] = {"read": "Read", "update": "Update", "fill": "Fill"}


@dataclass(frozen=True, slots=True)
class StatisticsRow:
    """One number: einloom's, TileFlow's, and what each rule adds to the one to make it the other."""

    what: str
    einloom: float
    tileflow: float
    effects: tuple[tuple[str, float], ...]

    @property
    def ruled(self) -> float:
        """einloom's number under TileFlow's rules."""
        return self.einloom + sum(change for _, change in self.effects)

    @property
    def equal(self) -> bool:
        """einloom and TileFlow say the same."""
        return _printed(self.einloom) == _printed(self.tileflow)

    @property
    def accounted(self) -> bool:
        """The rules account for the whole difference."""
        return _printed(self.ruled) == _printed(self.tileflow)


@dataclass(frozen=True, slots=True)
class TileFlowComparison:
    """Every number of a case beside TileFlow's."""

    rows: tuple[StatisticsRow, ...]

    @property
    def accounted(self) -> bool:
        return all(row.accounted for row in self.rows)


def read_statistics(path: str | Path) -> dict[str, float]:
    """The numbers of an ``out.csv`` by name. SpecError with file and line for a line that is none."""
    file = str(path)
    text = file_text(path)
    if len(text) > MAX_BYTES:
        raise SpecError(f"more than {MAX_BYTES // 10**6} MB; einloom does not read it", file=file)
    found: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.strip() == "metric,value":
            continue
        match = _LINE.match(line)
        try:
            if match is None:
                raise ValueError
            found[match[1]] = float(match[2])
        except ValueError:
            raise SpecError(f"expected NAME,NUMBER, found {line!r:.60}", file=file, line=number) from None
    if "Cycle" not in found:
        raise SpecError(NO_CYCLE, file=file)
    return found


def compare(found: Imported, statistics: Mapping[str, float]) -> TileFlowComparison:
    """Every count and the cycles of an imported mapping beside TileFlow's `statistics`.

    Raises SpecError without a mapping or a Cycle and with convolutions, IllegalMapping with every reason.
    """
    case = Case.of(found)
    if "Cycle" not in statistics:
        raise SpecError(NO_CYCLE)
    plain = _reported(case, counts(case))
    ruled = [(rule.name, _reported(case, change)) for rule, change in effects(case)]
    rows = []
    innermost = case.machine.memories[-1].name
    for memory in case.machine.memories:
        for tensor in case.workload.tensors:
            for what in get_args(What):
                key = (memory.name, tensor.name, what)
                wanted = statistics.get(f"{memory.name}::{_WORDS[what]}::{tensor.name}", 0.0)
                changes = tuple((name, table[key]) for name, table in ruled if table.get(key))
                row = StatisticsRow(f"{memory.name} {what} {tensor.name}", plain.get(key, 0.0), wanted, changes)
                left_out = what == "fill" and memory.name == innermost
                if not left_out and (row.einloom or row.tileflow or row.effects):
                    rows.append(row)
    changes = tuple((rule.name, change) for rule, change in cycle_effects(case) if change)
    return TileFlowComparison((*rows, StatisticsRow("cycles", einloom_cycles(case), statistics["Cycle"], changes)))


def table_text(comparison: TileFlowComparison) -> str:
    """The comparison as text: a line a number, with the rules that make the difference."""
    lines = [f"{'':32}{'einloom':>12}{'TileFlow':>12}  rules"]
    for row in comparison.rows:
        said = ", ".join(f"{name} {_printed(change, sign=True)}" for name, change in row.effects)
        said = said if row.accounted else f"{said}; NOT ACCOUNTED FOR: {_printed(row.tileflow - row.ruled, sign=True)}"
        lines.append(f"{row.what:32}{_printed(row.einloom):>12}{_printed(row.tileflow):>12}  {said}".rstrip())
    return "\n".join(lines) + "\n"


def _reported(case: Case, table: Counts) -> dict[tuple[str, str, What], float]:
    """Counts by memory, tensor and what, fills per instance."""
    found: dict[tuple[str, str, What], float] = {}
    for (_, memory, tensor, what), count in table.items():
        share = case.machine.instances(memory) if what == "fill" else 1
        key = (memory, tensor, what)
        found[key] = found.get(key, 0.0) + count / share
    return found


def _printed(number: float, sign: bool = False) -> str:
    """Six digits, as TileFlow prints; what differs from a whole number by rounding of floats is that number."""
    whole = round(number)
    number = whole if abs(number - whole) < 1e-6 * max(1.0, abs(number)) ** 0.5 else number
    return f"{number:+.6g}" if sign else f"{number:.6g}"

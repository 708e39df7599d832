"""The comparison of dataflows as a table, and mean speed-ups beside those that TileFlow prints."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import exp, log
from pathlib import Path

from ..dataclass import dataclass
from .cells import COMPARED, FREE, Cell, family_of, quickest

DATA = Path(__file__).parent / "data"
BASELINE = {"attention": "layerwise", "convolution-chain": "layerwise-convolution"}


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """Geometric mean of the speed-ups of a dataflow over Layerwise, on the `shapes` for which both are known.

    printed: TileFlow's mean, if its text has one. concurrent: the same with concurrent trees where those are faster.
    """

    family: str
    machine: str
    dataflow: str
    shapes: int
    mean: float
    concurrent: float
    printed: float | None


def speed_ups(found: Iterable[Cell]) -> tuple[SpeedUp, ...]:
    """How much faster each dataflow is than Layerwise, beside what TileFlow prints. Only cells for latency count."""
    timed = [c for c in found if c.objective == "latency" and c.cycles is not None]
    base = {(c.workload, c.machine): c.cycles for c in timed if c.dataflow == BASELINE[family_of(c.workload)]}
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for c in timed:
        one = base.get((c.workload, c.machine))
        if one is not None and c.cycles is not None:
            faster = quickest(c)
            key = family_of(c.workload), c.machine, c.dataflow
            groups.setdefault(key, []).append((one / c.cycles, one / faster))
    return tuple(
        SpeedUp(*key, len(ratios), _mean(a for a, _ in ratios), _mean(b for _, b in ratios), printed().get(key))
        for key, ratios in groups.items()
    )


def _mean(ratios: Iterable[float]) -> float:
    logs = [log(ratio) for ratio in ratios]
    return exp(sum(logs) / len(logs))


@cache
def printed() -> dict[tuple[str, str, str], float]:
    """TileFlow's mean speed-ups over Layerwise by family, machine and dataflow, as its text prints them."""
    with (DATA / "tileflow_speedups.csv").open(encoding="utf-8") as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("#"))
        return {(r["family"], r["machine"], r["dataflow"]): float(r["speedup"]) for r in rows}


def table(found: Iterable[Cell]) -> str:
    """Cells as text: one block per machine and objective, one line per workload, a column per dataflow.

    Cycles, or joules where energy is minimised; ``~`` before what is not proven optimal. With Einsums at the same time,
    ``*`` before what is only the same tree made concurrent, or that tree itself: groups were not searched.
    """
    blocks: dict[tuple[str, str, str], dict[str, dict[str, Cell]]] = {}
    for c in found:
        key = family_of(c.workload), c.machine, c.objective
        blocks.setdefault(key, {}).setdefault(c.workload, {})[c.dataflow] = c
    parts = []
    for (kind, machine, objective), rows in blocks.items():
        names = [n for n in (*COMPARED[kind], FREE) if any(n in row for row in rows.values())]
        title = f"{kind} on {machine}, {objective} ({'cycles' if objective == 'latency' else 'J'})"
        parts.append(_block(title, names, rows, _shown))
        if any(c.grouped_status for row in rows.values() for c in row.values()):
            parts.append(_block(f"{title}, Einsums at the same time", names, rows, _shown_concurrent))
    means = [
        f"{s.family:<18} {s.machine:<15} {s.dataflow:<22} {s.shapes:>2} shapes {s.mean:6.2f}x"
        f" {s.concurrent:6.2f}x concurrent" + ("" if s.printed is None else f", printed {s.printed:.2f}x")
        for s in speed_ups(found)
    ]
    return "\n\n".join((*parts, *(["speed-ups over Layerwise\n" + "\n".join(means)] if means else []))) + "\n"


def _block(
    title: str, names: Sequence[str], rows: dict[str, dict[str, Cell]], show: Callable[[Cell | None], str]
) -> str:
    widths = [max(13, len(name)) for name in names]
    heads = (f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    lines = [title, " ".join((f"{'':<18}", *heads))]
    for workload, row in rows.items():
        shown = (f"{show(row.get(name)):>{width}}" for name, width in zip(names, widths, strict=True))
        lines.append(" ".join((f"{workload:<18}", *shown)))
    return "\n".join(lines)


def _shown_concurrent(found: Cell | None) -> str:
    """As `_shown`, of the fastest mapping whatever runs at the same time; ``*`` where groups were not searched."""
    if found is None or found.cycles is None:
        return _shown(found)
    value = quickest(found)
    best = found.grouped_status == "optimal" and found.grouped is not None and found.grouped <= value * (1 + 1e-9)
    return f"{'' if best else '~' if found.grouped_status else '*'}{value:,.0f}"


def _shown(found: Cell | None) -> str:
    if found is None:
        return "not run"
    value = found.cycles if found.objective == "latency" else found.energy
    if value is None:
        return found.status
    return f"{'' if found.status == 'optimal' else '~'}{value:,.0f}" if value < 1e8 else f"{value:.4g}"

"""A left-to-right layout of a directed acyclic graph: columns by longest path, rows by the neighbours before.

Long edges get a row of their own in every column that they pass, so that they run around boxes and not through them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """Places in units of columns and rows; `bends` are the places that an edge passes between its ends."""

    places: dict[str, tuple[int, float]]
    bends: dict[tuple[str, str], tuple[tuple[int, float], ...]]
    columns: int
    rows: int


def layout(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> Layout:
    """Places for `nodes` (in topological order) joined by `edges`."""
    before: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        before[target].append(source)
    column: dict[str, int] = {}
    for node in nodes:
        column[node] = max((column[source] + 1 for source in before[node]), default=0)
    for node in reversed(nodes):  # sources move next to what they feed
        after = [column[target] for source, target in edges if source == node]
        if after and not before[node]:
            column[node] = min(after) - 1
    slots: list[list[tuple[str, ...]]] = [[] for _ in range(max(column.values(), default=0) + 1)]
    inward: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for node in nodes:
        slots[column[node]].append((node,))
        inward[(node,)] = []
    for source, target in edges:
        last: tuple[str, ...] = (source,)
        for passed in range(column[source] + 1, column[target]):
            waypoint = (source, target, str(passed))
            slots[passed].append(waypoint)
            inward[waypoint] = [last]
            last = waypoint
        inward[(target,)].append(last)
    rows = _rows(slots, inward)
    places = {node: (column[node], rows[(node,)]) for node in nodes}
    bends = {
        (source, target): tuple((c, rows[(source, target, str(c))]) for c in range(column[source] + 1, column[target]))
        for source, target in edges
    }
    return Layout(places, bends, len(slots), max((len(slot) for slot in slots), default=1))


def _rows(
    slots: list[list[tuple[str, ...]]], inward: dict[tuple[str, ...], list[tuple[str, ...]]]
) -> dict[tuple[str, ...], float]:
    """The row of every item: ordered by the mean of what leads to it, each column centred; two sweeps each way."""
    outward: dict[tuple[str, ...], list[tuple[str, ...]]] = {item: [] for item in inward}
    for item, sources in inward.items():
        for source in sources:
            outward[source].append(item)
    rows = {item: float(i) - (len(slot) - 1) / 2 for slot in slots for i, item in enumerate(slot)}
    for sweep in range(4):
        toward, order = (inward, slots) if sweep % 2 == 0 else (outward, slots[::-1])
        for slot in order:
            wish = {item: _mean([rows[n] for n in toward[item]], rows[item]) for item in slot}
            slot.sort(key=lambda item: wish[item])
            for i, item in enumerate(slot):
                rows[item] = i - (len(slot) - 1) / 2
    return rows


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default

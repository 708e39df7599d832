"""Energy against latency: points, and the front of those that no other point beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...result import Result
from .markup import Html, el
from .plot import Curve, Scale, mark, plot
from .scene import energy, time

FEW = 12


@dataclass(frozen=True, slots=True)
class Trade:
    """One mapping's joules and seconds, under a label."""

    energy: float
    latency: float
    label: str


def front(points: Sequence[Trade]) -> list[Trade]:
    """The points that no other point beats in both energy and latency, by rising latency."""
    found: list[Trade] = []
    for point in sorted(points, key=lambda p: (p.latency, p.energy)):
        if not found or point.energy < found[-1].energy:
            found.append(point)
    return found


def of_result(result: Result) -> list[Trade]:
    """The points of a result's Pareto set, each labelled by its place on it; empty if it has none."""
    return [Trade(p.energy, p.latency, f"mapping {i + 1}") for i, p in enumerate(result.front)]


def table(result: Result) -> Html:
    """The front as a table, each point with its mapping as text."""
    rows = []
    for i, point in enumerate(result.front):
        cells = (energy(point.energy, 5), time(point.latency, 5), f"{point.energy * point.latency:.5g} J s")
        tree = el("details", el("summary", "show"), el("pre", str(point.mapping), tabindex=0))
        numbers = [el("td", cell, class_="num") for cell in cells]
        rows.append(el("tr", el("th", f"mapping {i + 1}", scope="row"), *numbers, el("td", tree)))
    names = ("", "energy", "latency", "EDP", "tree")
    heads = [el("th", name, scope="col", class_="num" if 1 <= i <= 3 else None) for i, name in enumerate(names)]
    return el("div", el("table", el("thead", el("tr", *heads)), el("tbody", *rows), class_="front"), class_="scroll")


def picture(points: Sequence[Trade], coloured: bool = True) -> Html:
    """All points, labelled where they are few, and the staircase of the front; a colour each if they are `coloured`."""
    if not points:
        return el("p", "There are no points to draw.")
    points = _joined(points)
    best = front(points)
    across, up = _scale([point.latency for point in points]), _scale([point.energy for point in points])
    stairs: list[tuple[float, float]] = []
    for point in best:
        stairs += [(point.latency, stairs[-1][1])] if stairs else [(point.latency, up.high)]
        stairs.append((point.latency, point.energy))
    stairs.append((across.high, best[-1].energy))
    marks = []
    for i, point in enumerate(points):
        on = point in best
        tip = f"{point.label}: {energy(point.energy, 5)}, {time(point.latency, 5)}" + ("; on the front" if on else "")
        text = point.label if len(points) <= FEW else None
        marks.append(
            mark(
                across,
                up,
                (point.latency, point.energy),
                f"trade k{i % 8 if coloured else 0}{' on' if on else ''}",
                tip,
                text,
            )
        )
    x_ticks = [(v, time(v, 3)) for v in across.ticks(4)]
    y_ticks = [(v, energy(v, 3)) for v in up.ticks(4)]
    label = f"Energy against latency of {len(points)} mappings, {len(best)} of them on the front"
    return plot([Curve(stairs, "front")], marks, (across, x_ticks, "latency"), (up, y_ticks, "energy"), label)


def _joined(points: Sequence[Trade]) -> list[Trade]:
    """One point for all that lie in one place, with all their labels."""
    places: dict[tuple[float, float], list[str]] = {}
    for point in points:
        places.setdefault((point.energy, point.latency), []).append(point.label)
    return [Trade(joules, seconds, ", ".join(labels)) for (joules, seconds), labels in places.items()]


def _scale(values: Sequence[float]) -> Scale:
    low, high = min(values), max(values)
    if low > 0 and high / low > 30:
        return Scale(low / 1.6, high * 1.6, log=True)
    margin = (high - low) * 0.15 or high * 0.1 or 1.0
    return Scale(max(0.0, low - margin), high + margin)

"""Energy against latency: points, and the front of those that no other point beats in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...dataclass import dataclass
from ...errors import SpecError
from ...result import Result
from ..text.names import shortened
from .drawing import Line, Mark, Plot, Ruler, Spot
from .markup import Html, el, table_of
from .scene import energy, in_one_unit, time

FEW, NAMES, LETTERS = 12, 24, 40
"""Points with names beside them, letters of one name, and of all names at one point."""


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
    return el("div", table_of(names, rows, numbers=range(1, 4), class_="front"), class_="scroll")


class Pareto:
    """Energy against latency: the front of each result that has one, a point for each that has none."""

    name, title, several = "pareto", "Pareto front", True

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> list[tuple[str, list[Trade]]]:
        """(label, points) of every front, and one pair without a label for all results that have none."""
        found = [(label, of_result(result)) for label, result in zip(labels, results, strict=True) if result.front]
        pairs = zip(labels, results, strict=True)
        alone = [Trade(result.energy, result.latency, label) for label, result in pairs if not result.front]
        return [*found, ("", alone)] if alone else found

    def draw(self, data: Sequence[tuple[str, Sequence[Trade]]]) -> Plot:
        """All points, labelled where they are few, and the staircases of the fronts."""
        if not any(points for _, points in data):
            raise SpecError("there are no points to draw")
        every = [point for _, points in data for point in points]
        across = _ruler("latency", [point.latency for point in every], time)
        up = _ruler("energy", [point.energy for point in every], energy)
        told = _told(data) if len(every) <= FEW else {}
        lines: list[Line] = []
        marks: list[Mark] = []
        for i, (label, points) in enumerate(data):
            best, places = front(points), _joined(points)
            one = i if label and len(data) > 1 else None
            lines.append(Line(_stairs(best, across.high, up.high), "front", one, label if one is not None else ""))
            for j, point in enumerate(places):
                on = (point.energy, point.latency) in {(p.energy, p.latency) for p in best}
                tip = f"{point.label}: {energy(point.energy, 5)}, {time(point.latency, 5)}"
                text = told.pop((point.energy, point.latency), None)
                number = i if label else i + j
                spot = (point.latency, point.energy)
                marks.append(Mark(spot, "trade on" if on else "trade", number, tip + "; on the front" * on, text))
        label = f"Energy against latency of {len(marks)} mappings, {len(front(every))} of them on the front"
        return Plot(label, across, up, tuple(lines), tuple(marks))


def _stairs(best: Sequence[Trade], right: float, top: float) -> tuple[Spot, ...]:
    spots: list[Spot] = []
    for point in best:
        spots += [(point.latency, spots[-1][1] if spots else top), (point.latency, point.energy)]
    return (*spots, (right, best[-1].energy)) if best else ()


def _joined(points: Sequence[Trade]) -> list[Trade]:
    """One point for all that lie in one place, with all their labels."""
    places: dict[tuple[float, float], list[str]] = {}
    for point in points:
        places.setdefault((point.energy, point.latency), []).append(point.label)
    return [Trade(joules, seconds, ", ".join(labels)) for (joules, seconds), labels in places.items()]


def _told(data: Sequence[tuple[str, Sequence[Trade]]]) -> dict[Spot, str]:
    """(energy, latency) -> what stands beside the point: the short names of all that lie there."""
    every = [(label, point) for label, points in data for point in points]
    fronts = len({label for label, _ in every if label}) + any(not label for label, _ in every) > 1
    names = [f"{label}: {point.label}" if label and fronts else point.label for label, point in every]
    places: dict[Spot, list[str]] = {}
    for (_, point), name in zip(every, shortened(names, NAMES), strict=True):
        places.setdefault((point.energy, point.latency), []).append(name)
    return {place: _listed(found) for place, found in places.items()}


def _listed(names: Sequence[str]) -> str:
    """The first names, as many as one line has room for, and how many more there are."""
    kept = next((n for n in range(len(names), 1, -1) if len(", ".join(names[:n])) <= LETTERS), 1)
    more = f" and {len(names) - kept} more" if len(names) > kept else ""
    return ", ".join(names[:kept]) + more


def _ruler(name: str, values: Sequence[float], shown: Callable[[float, int], str]) -> Ruler:
    low, high = min(values), max(values)
    if low > 0 and high / low > 30:
        return Ruler(name, low / 1.6, high * 1.6, shown, log=True)
    margin = (high - low) * 0.15 or high * 0.1 or 1.0
    unit, alike = in_one_unit("time" if shown is time else "energy", high)
    return Ruler(name, max(0.0, low - margin), high + margin, alike, unit=unit)

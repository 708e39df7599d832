"""Energy, traffic and busy time as bars; and the table that the page's own bars are drawn from, and as numbers.

The page groups and stacks these rows as its reader asks; what it needs is one row per Einsum, component, tensor and
action.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from ...dataclass import dataclass
from ...errors import SpecError
from ...result import Result
from ..data.bars import Key, Quantity, Row, busy_seconds, rows_of, sums
from .drawing import Bar, Line, Mark, Plot, Ruler
from .markup import Html, el, link, table_of
from .origins import anchor, energy_sources, why
from .scene import energy, in_one_unit, size, time
from .subject import Subject

ACTIONS = ("read", "write", "compute", "leak", "down", "up")
MOVES = ("read", "write", "down", "up")
AXES: dict[Quantity, Literal["energy", "time", "size"]] = {"energy": "energy", "latency": "time", "traffic": "size"}
UNITS: dict[Quantity, Callable[[float, int], str]] = {
    "energy": energy,
    "latency": time,
    "traffic": lambda value, digits: size(int(value)),
}
THICK, THIN = 24.0, 9.0
"""Points of a stacked bar, and of one of several beside each other."""
KEYS = (("einsum", "Einsum"), ("component", "level"), ("tensor", "tensor"), ("action", "action"))


@dataclass(frozen=True)
class Stacked:
    """A bar per Einsum (level, tensor, action), stacked of any other of them; of several results a bar each."""

    rows: Key = "einsum"
    parts: Key = "component"
    first: int = 0
    count: int | None = None
    name, title, several = "energy", "Energy", True
    what: ClassVar[Quantity] = "energy"

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> tuple[Row, ...]:
        """`count` rows from number `first` on."""
        every = rows_of(results, labels, self.what, self.rows, self.parts)
        last = None if self.count is None else self.first + self.count
        if not every[self.first : last]:
            raise SpecError(f"there is no {self.title.lower()} to draw")
        return every[self.first : last]

    def draw(self, data: Sequence[Row]) -> Plot:
        """Parts one after the other, the sum behind them."""
        shown, bars, marks = UNITS[self.what], list[Bar](), list[Mark]()
        for i, row in enumerate(data):
            sum_, top = 0.0, len(data) - i
            total = sum(value for *_, value in row.parts)
            for part, number, value in row.parts:
                tip = f"{row.name}, {part}: {shown(value, 4)} ({value / total:.1%})"
                bars.append(Bar(sum_, top - 0.88, sum_ + value, top - 0.12, number, tip, label=part))
                sum_ += value
            marks.append(Mark((sum_, top - 0.5), "words", text=shown(sum_, 3)))
        bars.sort(key=lambda bar: bar.fill)
        return _bars(data, self.title, max(bar.right for bar in bars), self.what, THICK, bars, (), marks)


@dataclass(frozen=True)
class Traffic(Stacked):
    """Bits read and written, as energy."""

    rows: Key = "component"
    parts: Key = "tensor"
    name, title = "traffic", "Traffic"
    what = "traffic"


@dataclass(frozen=True)
class BusyTime:
    """How long each Einsum keeps every component busy, bar beside bar, with its latency as a line.

    Several results: a row for each, busy times summed over its Einsums.
    """

    first: int = 0
    count: int | None = None
    name, title, several = "latency", "Busy time", True

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> tuple[Row, ...]:
        """`count` rows from number `first` on."""
        every = rows_of(results, labels, "latency", "einsum", "component")
        found = every[self.first : None if self.count is None else self.first + self.count]
        if not found:
            raise SpecError("nothing takes time: there is no busy time to draw")
        return found

    def draw(self, data: Sequence[Row]) -> Plot:
        """A bar per component, in the same place in each row."""
        used = {number: part for row in data for part, number, _ in row.parts}
        order = {number: i for i, number in enumerate(sorted(used))}
        wide = 0.84 / max(1, len(used))
        bars, lines, marks = list[Bar](), list[Line](), list[Mark]()
        for i, row in enumerate(data):
            top = len(data) - i
            for part, number, value in row.parts:
                high = top - 0.08 - wide * order[number]
                tip = f"{row.name}, {part}: {time(value)}"
                bars.append(Bar(0.0, high - 0.92 * wide, value, high, number, tip, label=part))
            took = row.limit or 0.0
            marks.append(Mark((took, top - 0.5), "words", text=time(took, 3)))
            lines.append(Line(((took, top - 0.96), (took, top - 0.04)), "limit", label="" if i else "latency"))
        bars.sort(key=lambda bar: bar.fill)
        largest = max([bar.right for bar in bars] + [row.limit or 0.0 for row in data])
        high = max(THICK, THIN * len(used) + 6)
        return _bars(data, self.title, largest, "latency", high, bars, lines, marks)


def _bars(
    data: Sequence[Row],
    title: str,
    largest: float,
    what: Quantity,
    high: float,
    bars: Sequence[Bar],
    lines: Sequence[Line],
    marks: Sequence[Mark],
) -> Plot:
    """A plot with a row for each name, the first on top."""
    unit, shown = in_one_unit(AXES[what], largest)
    letters = max((len(mark.text or "") for mark in marks), default=0)
    across = Ruler(title.lower(), 0.0, (1.0 + max(0.16, 0.018 * letters)) * largest or 1.0, shown, unit=unit)
    places = tuple((len(data) - i - 0.5, row.name) for i, row in enumerate(data))
    up = Ruler("", 0.0, float(len(data)), shown, ticks=places)
    label = f"{title} of {len(data)} rows: {', '.join(row.name for row in data[:12])}"
    return Plot(label, across, up, tuple(lines), tuple(marks), high * len(data) + 8, tuple(bars), paper=6.2)


def data(subject: Subject) -> dict[str, object]:
    """What the page's script draws bars from: names, and rows of numbers that refer to them."""
    result = subject.result
    machine = result.machine
    components = [component.name for component in machine.components]
    place = {name: i for i, name in enumerate(components)}
    leaf = {name: i for i, name in enumerate(subject.leaves)}
    rows = [
        [
            leaf[a.einsum],
            place[a.component],
            -1 if a.tensor is None else subject.number[a.tensor],
            ACTIONS.index(a.action),
            float(f"{a.energy:.6g}"),
            a.bits if a.action in ("read", "write") else 0,
            float(f"{seconds:.6g}"),
            a.count,
        ]
        for a, seconds in zip(result.cost.actions, busy_seconds(result), strict=True)
        if a.count or a.energy
    ]
    latency = dict(result.cost.einsum_latency)
    return {
        "einsum": list(subject.leaves),
        "component": components,
        "tensor": list(subject.tensors),
        "action": list(ACTIONS),
        "rows": rows,
        "latency": [latency.get(name, 0.0) for name in subject.leaves],
        "totals": [result.energy, sum(row[5] for row in rows), result.latency],
    }


def controls() -> Html:
    """The switches above the bars, and the place where the script draws them."""
    what = (("0", "energy"), ("2", "busy time"), ("1", "traffic"))
    rows = (*KEYS, ("einsum component", "Einsum and level"))
    parts = (
        _choice("bars-what", "Show", what, "0"),
        _choice("bars-rows", "a bar per", rows, "einsum"),
        _choice("bars-parts", "stacked by", KEYS, "component"),
    )
    note = el("p", id="bars-note", class_="note")
    return el(
        "div",
        el("div", *parts, class_="controls"),
        el("p", id="bars-legend", class_="legend"),
        el("div", id="bars", class_="bars", role="region", aria_label="stacked bars", tabindex=0),
        note,
        el("noscript", el("p", "The bars are drawn by a script; the table below holds the same numbers.")),
    )


def _choice(name: str, label: str, options: tuple[tuple[str, str], ...], chosen: str) -> Html:
    listed = [el("option", text, value=value, selected=value == chosen) for value, text in options]
    return el("label", label, " ", el("select", *listed, id=name))


def table(subject: Subject) -> Html:
    """Energy and traffic by component and action, each with the source of its price; the rest on demand."""
    result = subject.result
    priced = energy_sources(subject)
    position = result.machine.position
    rows = []
    found = sums(result, "component", "action")
    for component, action in sorted(found, key=lambda key: (position[key[0]], key[1])):
        count, bits, joules = found[component, action]
        path = priced.get((component, action))
        price = link(anchor(path), path, class_="why") if path else "no price given"
        share = f"{joules / result.energy:.1%}" if result.energy else "–"
        moved = size(bits) if bits and action in MOVES else "–"
        cells = [f"{count:,}", moved, energy(joules), share]
        numbers = [el("td", cell, class_="num") for cell in cells]
        rows.append(el("tr", el("th", component, scope="row"), el("td", action), *numbers, el("td", price)))
    names = ("component", "action", "count", "moved", "energy", "share", "priced by")
    inner = table_of(names, rows, numbers=range(2, 6))
    every = el(
        "details",
        el("summary", "Every action: Einsum, component, tensor, action"),
        el("div", id="all-actions", class_="scroll", tabindex=0, role="region", aria_label="every action"),
        id="all-actions-box",
    )
    counted = el("p", "Counts follow from the tree: ", why("moves", "moves"), ", ", why("fanouts", "fanouts"), ", ")
    rest = (why("partial-sums", "partial sums"), ", ", why("copies", "copies"), ".")
    return el("div", el("div", inner, class_="scroll"), el("div", counted, *rest, class_="joined"), every)

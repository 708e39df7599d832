"""Pictures as data: a `Plot` with two axes, or a `Canvas` of shapes; `svg` and `figures` draw the same one.

A *role* says what a line or a mark means, and so how it looks: ``best``, ``bound``, ``front``, ``roof``, ``second``,
``limit``, ``edge``, ``fused``, ``unfused``, ``achieved``, ``trade``, ``nothing``, ``unfinished``, with ``whole`` or
``on`` behind it where it stands out; ``words`` is a mark of which only the text is seen. A *number* picks one of forty
looks that colour-blind people can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import isfinite
from typing import Literal

from ...dataclass import dataclass

Spot = tuple[float, float]
Ink = Literal[
    "ink", "soft", "line", "paper", "dark", "warm", "slate", "violet", "pale", "grey",
    "m0", "m1", "m2", "m3", "m4", "rim1", "rim2", "rim3",
]  # fmt: skip
LETTER = 0.55
"""Width of a letter as a part of its size, about the same in every font that draws it."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points of a plot; label: what the legend calls it."""

    points: tuple[Spot, ...]
    role: str
    number: int | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a plot. tip: said when it is pointed at. text: stands beside it."""

    at: Spot
    role: str
    number: int | None = None
    tip: str = ""
    text: str | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of a plot, from (left, low) to (right, high). text: stands in it where there is room.

    fill: the number of its look, or an ink. touches: numbers of the tensors that it speaks of. label: as of a line.
    """

    left: float
    low: float
    right: float
    high: float
    fill: int | Ink
    tip: str = ""
    text: str = ""
    touches: tuple[int, ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Ruler:
    """One axis: its name, its ends, and how a value is printed with so many digits, or the places that have a name.

    unit: values along an even axis are round multiples of it.
    """

    name: str
    low: float
    high: float
    shown: Callable[[float, int], str]
    log: bool = False
    ticks: tuple[tuple[float, str], ...] | None = None
    unit: float = 1.0


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars, lines and marks between two axes; label: the picture in one sentence, for those who do not see it.

    height: in points. paper: inches across in a figure; a page stretches a plot. The legend names every label once.
    """

    label: str
    across: Ruler
    up: Ruler
    lines: tuple[Line, ...] = ()
    marks: tuple[Mark, ...] = ()
    height: float = 280
    bars: tuple[Bar, ...] = ()
    title: str = ""
    paper: float = 4.6


@dataclass(frozen=True, slots=True)
class Plots:
    """Plots below each other."""

    label: str
    plots: tuple[Plot, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of a canvas: its top left corner, its size, and the number of its look, or an ink.

    tip: said when it is pointed at. round: radius of its corners. touches: numbers of the tensors that it speaks of,
    with which it lights up on the page.
    """

    x: float
    y: float
    width: float
    height: float
    fill: int | Ink
    tip: str = ""
    edge: Ink | None = None
    round: float = 0.0
    dashed: bool = False
    touches: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Words:
    """Text of a canvas, its middle line at `y`; size: in points. side: where `x` is. touches: as of a box."""

    x: float
    y: float
    text: str
    size: float = 9.0
    side: Literal["start", "middle", "end"] = "start"
    ink: Ink = "ink"
    bold: bool = False
    touches: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line of a canvas through points, straight or level where it passes them (curved); arrow: a head at its end."""

    points: tuple[Spot, ...]
    ink: int | Ink = "soft"
    width: float = 1.0
    arrow: bool = False
    curved: bool = False
    tip: str = ""
    touches: tuple[int, ...] = ()


Shape = Box | Words | Stroke


@dataclass(frozen=True, slots=True)
class Canvas:
    """Shapes in points, the origin above left, later ones on top. label: as of a plot."""

    label: str
    width: float
    height: float
    shapes: tuple[Shape, ...]


Drawing = Plot | Plots | Canvas


def letters(room: float, size: float) -> int:
    """How many letters of a size have room in so many points; at least one."""
    return max(1, int(room / (LETTER * size)))


def cut(text: str, room: float, size: float) -> str:
    """The text, or its beginning where it is wider than `room` points.

    >>> cut("softmax", 30.0, 10.0)
    'soft…'
    """
    most = letters(room, size)
    return text if len(text) <= most else text[: most - 1] + "…"


def bent(points: Sequence[Spot]) -> Iterator[tuple[Spot, Spot, Spot]]:
    """Two handles and the end of each cubic piece of a curved stroke, level at every point."""
    for (x0, y0), (x1, y1) in pairwise(points):
        yield ((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1), (x1, y1)


def faults_of(drawing: Drawing) -> Iterator[str]:
    """What cannot be drawn of it, in words."""
    if not drawing.label.strip():
        yield "it has no label, so nothing is said to those who do not see it"
    if isinstance(drawing, Plots):
        yield from (f"plot {i + 1}: {fault}" for i, plot in enumerate(drawing.plots) for fault in faults_of(plot))
    elif isinstance(drawing, Plot):
        yield from _plot_faults(drawing)
    elif not (isfinite(drawing.width) and isfinite(drawing.height) and min(drawing.width, drawing.height) > 0):
        yield f"its canvas is {drawing.width!r} by {drawing.height!r} points"
    else:
        for shape in drawing.shapes:
            for x, y in _corners(shape):
                if not (0 <= x <= drawing.width and 0 <= y <= drawing.height):
                    yield f"a {type(shape).__name__} reaches ({x:g}, {y:g}), outside its canvas"


def _plot_faults(drawing: Plot) -> Iterator[str]:
    for name, ruler in (("across", drawing.across), ("up", drawing.up)):
        if not (isfinite(ruler.low) and isfinite(ruler.high) and ruler.low < ruler.high):
            yield f"its axis {name} goes from {ruler.low!r} to {ruler.high!r}"
        elif ruler.log and ruler.low <= 0:
            yield f"its axis {name} is logarithmic and begins at {ruler.low!r}"
    spots = [spot for line in drawing.lines for spot in line.points] + [mark.at for mark in drawing.marks]
    spots += [spot for bar in drawing.bars for spot in ((bar.left, bar.low), (bar.right, bar.high))]
    yield from (f"it has a point at {spot}" for spot in spots if not all(map(isfinite, spot)))


def _corners(shape: Shape) -> tuple[Spot, ...]:
    if isinstance(shape, Box):
        return ((shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height))
    return ((shape.x, shape.y),) if isinstance(shape, Words) else shape.points

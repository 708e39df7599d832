"""Pictures as data: a `Plot` with two axes, or a `Canvas` of shapes; `svg` and `figures` draw the same one.

A *role* says what a line or a mark means, and so how it looks: ``best``, ``bound``, ``front``, ``roof``, ``fused``,
``unfused``, ``achieved``, ``trade``, with ``whole`` or ``on`` behind it where it stands out. A *number* picks one of
forty looks that colour-blind people can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Literal

Spot = tuple[float, float]
Ink = Literal["ink", "soft", "line", "paper", "dark", "warm"]


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
class Ruler:
    """One axis: its name, its ends, and how a value is printed with so many digits."""

    name: str
    low: float
    high: float
    shown: Callable[[float, int], str]
    log: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines and marks between two axes; label: the picture in one sentence, for those who do not see it."""

    label: str
    across: Ruler
    up: Ruler
    lines: tuple[Line, ...] = ()
    marks: tuple[Mark, ...] = ()
    height: int = 280


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of a canvas: its top left corner, its size, and the number of its look, or an ink."""

    x: float
    y: float
    width: float
    height: float
    fill: int | Ink
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Text of a canvas, its middle line at `y`; size: in points. side: where `x` is."""

    x: float
    y: float
    text: str
    size: float = 9.0
    side: Literal["start", "middle", "end"] = "start"
    ink: Ink = "ink"
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line of a canvas through points; arrow: with a head at its end."""

    points: tuple[Spot, ...]
    ink: int | Ink = "soft"
    width: float = 1.0
    arrow: bool = False


@dataclass(frozen=True, slots=True)
class Canvas:
    """Shapes in points, the origin above left, later ones on top. label: as of a plot."""

    label: str
    width: float
    height: float
    shapes: tuple[Box | Words | Stroke, ...]


Drawing = Plot | Canvas


def faults_of(drawing: Drawing) -> Iterator[str]:
    """What cannot be drawn of it, in words."""
    if not drawing.label.strip():
        yield "it has no label, so nothing is said to those who do not see it"
    if isinstance(drawing, Plot):
        for name, ruler in (("across", drawing.across), ("up", drawing.up)):
            if not (isfinite(ruler.low) and isfinite(ruler.high) and ruler.low < ruler.high):
                yield f"its axis {name} goes from {ruler.low!r} to {ruler.high!r}"
            elif ruler.log and ruler.low <= 0:
                yield f"its axis {name} is logarithmic and begins at {ruler.low!r}"
        spots = [spot for line in drawing.lines for spot in line.points] + [mark.at for mark in drawing.marks]
        yield from (f"it has a point at {spot}" for spot in spots if not all(map(isfinite, spot)))
        return
    if not (isfinite(drawing.width) and isfinite(drawing.height) and min(drawing.width, drawing.height) > 0):
        yield f"its canvas is {drawing.width!r} by {drawing.height!r} points"
        return
    for shape in drawing.shapes:
        for x, y in _corners(shape):
            if not (0 <= x <= drawing.width and 0 <= y <= drawing.height):
                yield f"a {type(shape).__name__} reaches ({x:g}, {y:g}), outside its canvas"


def _corners(shape: Box | Words | Stroke) -> tuple[Spot, ...]:
    if isinstance(shape, Box):
        return ((shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height))
    return ((shape.x, shape.y),) if isinstance(shape, Words) else shape.points

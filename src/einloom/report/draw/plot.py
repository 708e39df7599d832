"""Axes that stretch with the page: lines in a stretched SVG, labels and points as HTML at percentages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from .markup import Html, el, number

LARGEST = 1e300  # files may hold numbers of which not even the axis can be drawn


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low` to 0 and `high` to 1, evenly or by powers of ten."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        low = min(max(self.low, 1 / LARGEST if self.log else -LARGEST), LARGEST / 10)
        high = min(self.high, LARGEST)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high if high > low else 10 * low if self.log else low + max(abs(low), 1.0))

    def at(self, value: float) -> float:
        value = min(max(value, -LARGEST), LARGEST)
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Round values between the ends."""
        if self.log:
            first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
            step = max(1, round((last - first) / wanted))
            return [10.0**power for power in range(first, last + 1, step)]
        raw = (self.high - self.low) / wanted
        power = 10.0 ** floor(log10(raw))
        step_size = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
        first = ceil(self.low / step_size - 1e-9)
        return [step_size * i for i in range(first, floor(self.high / step_size + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points, with classes for its look."""

    points: Sequence[tuple[float, float]]
    classes: str


def plot(
    curves: Sequence[Curve],
    marks: Sequence[Html],
    across: tuple[Scale, Sequence[tuple[float, str]], str],
    up: tuple[Scale, Sequence[tuple[float, str]], str],
    label: str,
    height: int = 280,
) -> Html:
    """A plot; `across` and `up` are (scale, (value, text) of every tick, name of the axis)."""
    (x, x_ticks, x_name), (y, y_ticks, y_name) = across, up
    grid = [el("path", d=f"M0 {number(1000 - 1000 * y.at(v))}H1000", class_="grid") for v, _ in y_ticks]
    grid += [el("path", d=f"M{number(1000 * x.at(v))} 0V1000", class_="grid") for v, _ in x_ticks]
    lines = [
        el("polyline", points=" ".join(_point(x, y, *point) for point in curve.points), class_=f"curve {curve.classes}")
        for curve in curves
    ]
    frame = {"viewBox": "0 0 1000 1000", "preserveAspectRatio": "none", "width": "100%", "height": height}
    svg = el("svg", *grid, *lines, class_="area", role="img", aria_label=label, **frame)
    left = [el("span", text, class_="ytick", style=f"bottom:{number(100 * y.at(v))}%") for v, text in y_ticks]
    low = [el("span", text, class_="xtick", style=f"left:{number(100 * x.at(v))}%") for v, text in x_ticks]
    body = el("div", *left, *low, svg, *marks, class_="plot axes", style=f"height:{height}px")
    return el("div", el("p", y_name, class_="yname"), body, el("p", x_name, class_="xname"), class_="plotted")


def _point(x: Scale, y: Scale, a: float, b: float) -> str:
    return f"{number(1000 * x.at(a))},{number(1000 - 1000 * y.at(b))}"


def mark(x: Scale, y: Scale, at: tuple[float, float], classes: str, tip: str, text: str | None = None) -> Html:
    """A point at (across, up), with a label beside it if `text` is given."""
    left, bottom = 100 * min(1.0, max(0.0, x.at(at[0]))), 100 * min(1.0, max(0.0, y.at(at[1])))
    words = el("span", text, class_="flip" if left > 62 else None) if text else None
    return el(
        "div", words, class_=f"mark {classes}", style=f"left:{number(left)}%;bottom:{number(bottom)}%", data_tip=tip
    )

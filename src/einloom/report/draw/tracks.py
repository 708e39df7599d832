"""Stacked bars without a script: a labelled track per row, a segment per part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .markup import Html, el
from .palette import look


@dataclass(frozen=True, slots=True)
class Part:
    """A segment: its name, its value, and the number of its look; None: neutral."""

    name: str
    value: float
    look: int | None


def tracks(rows: Sequence[tuple[str, Sequence[Part]]], shown: Callable[[float, int], str]) -> Html:
    """A bar per (label, parts) row, all on one scale; `shown` prints a value with so many digits."""
    largest = max((sum(part.value for part in parts) for _, parts in rows), default=0.0) or 1.0
    drawn: list[Html] = []
    for label, parts in rows:
        total = sum(part.value for part in parts)
        segments = []
        for part in parts:
            if not part.value:
                continue
            tip = f"{label}, {part.name}: {shown(part.value, 4)} ({part.value / total:.1%})"
            classes = "seg bare" if part.look is None else f"seg {look(part.look)}"
            place = f"width:{100 * part.value / largest:.3f}%"
            segments.append(el("div", class_=classes, style=place, data_tip=tip, title=tip))
        words = shown(total, 4)
        track = el("div", *segments, class_="track", role="img", aria_label=f"{label}: {words}")
        drawn += [el("span", label, class_="name", title=label), track, el("span", words, class_="value")]
    return el("div", *drawn, class_="bars")


def legend(names: Sequence[str]) -> Html:
    """Which look is which name, by place in the list."""
    found = [el("span", el("i", class_=f"swatch {look(i)}"), name) for i, name in enumerate(names)]
    return el("p", *found, class_="legend")

"""Figures for papers: every function draws saved results, searches nothing, and returns a matplotlib figure.

>>> from einloom import figures
>>> sorted(figures.KINDS)[:3]
['cascade', 'energy', 'latency']

`save` writes PDF, SVG or PNG. matplotlib comes with the extra ``figures``; without it MissingExtra says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...result import Result
from ...result.sweep import read_sweep
from ..pictures import drawn, pictures
from ..pictures import picture as named
from .bars import energy_bars, latency_breakdown, traffic_bars
from .canvas import FORMATS, save
from .curves import roofline, ski_slope
from .drawings import figure_of
from .graphs import cascade, occupancy
from .trees import looptree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FORMATS",
    "KINDS",
    "cascade",
    "energy_bars",
    "kinds",
    "latency_breakdown",
    "looptree",
    "occupancy",
    "pareto",
    "picture",
    "progress",
    "read_sweep",
    "roofline",
    "save",
    "ski_slope",
    "traffic_bars",
]


def picture(name: str, *results: Result, labels: Sequence[str] | None = None) -> Figure:
    """The picture of that name, shipped or of a package, as a figure. Raises SpecError if there is nothing to draw."""
    return figure_of(drawn(named(name), results, labels))


def progress(*results: Result, labels: Sequence[str] | None = None) -> Figure:
    """Best value (solid) and bound (dashed), as recorded, against the seconds of each search."""
    return picture("search", *results, labels=labels)


def pareto(*results: Result, labels: Sequence[str] | None = None) -> Figure:
    """Energy against latency: the front of each result that has one, a point for each that has none."""
    return picture("pareto", *results, labels=labels)


def kinds() -> tuple[str, ...]:
    """What `einloom figure` draws: the kinds below, and the pictures of installed packages."""
    return tuple(dict.fromkeys((*KINDS, *pictures())))


KINDS: dict[str, Callable[..., Any]] = {
    "energy": energy_bars,
    "traffic": traffic_bars,
    "latency": latency_breakdown,
    "roofline": roofline,
    "looptree": looptree,
    "occupancy": occupancy,
    "cascade": cascade,
    "search": progress,
    "pareto": pareto,
    "ski-slope": ski_slope,
}
"""Name on the command line -> function."""

"""Figures for papers: every function draws saved results, searches nothing, and returns a matplotlib figure.

>>> from einloom import figures
>>> figures.kinds()[:3]
('energy', 'traffic', 'latency')

`save` writes PDF, SVG or PNG. matplotlib comes with the extra ``figures``; without it MissingExtra says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import SpecError
from ...result import Result
from ...result.sweep import Sweep, read_sweep
from ...workload.einsum import Workload
from ..data.bars import Key
from ..draw.cascade import Cascade
from ..draw.scene import Scene
from ..draw.ski_slope import ski_slope as slope
from ..draw.ski_slope import titles
from ..pictures import blamed, drawn, pictures
from ..pictures import picture as named
from ..text.names import numbered
from .canvas import FORMATS, save
from .drawings import figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FORMATS",
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
SKI_SLOPE = "ski-slope"


def kinds() -> tuple[str, ...]:
    """What `einloom figure` draws: the pictures that ship, those of installed packages, and the ski slope of sweeps."""
    return (*pictures(), SKI_SLOPE)


def picture(name: str, *results: Result, labels: Sequence[str] | None = None, **options: object) -> Figure:
    """The picture of that name, shipped or of a package, as a figure; options: the fields of a picture that has some.

    Raises SpecError if there is nothing to draw, and for an option that the picture does not have.
    """
    drawing = drawn(named(name, **options), results, labels)
    with blamed(name):
        return figure_of(drawing)


def energy_bars(
    *results: Result, rows: Key = "einsum", parts: Key = "component", labels: Sequence[str] | None = None
) -> Figure:
    """Energy: a bar per Einsum (level, tensor, action), stacked by any other of them; of several results a bar each."""
    return picture("energy", *results, labels=labels, rows=rows, parts=parts)


def traffic_bars(
    *results: Result, rows: Key = "component", parts: Key = "tensor", labels: Sequence[str] | None = None
) -> Figure:
    """Bits read and written, as `energy_bars`."""
    return picture("traffic", *results, labels=labels, rows=rows, parts=parts)


def latency_breakdown(*results: Result, labels: Sequence[str] | None = None) -> Figure:
    """How long each Einsum keeps every component busy, side by side, with its latency as a line.

    Several results: a row per result, busy times summed over its Einsums.
    """
    return picture("latency", *results, labels=labels)


def roofline(*results: Result, labels: Sequence[str] | None = None) -> Figure:
    """Operations per byte of the outermost memory against operations per second, fused and unfused at best.

    Small points are Einsums on their roof, large ones whole cascades; hollow squares are unfused. Diamonds are what the
    whole cascade achieves. The roofs are those of the first result's machine and mix of reads and writes.
    """
    return picture("roofline", *results, labels=labels)


def looptree(result: Result, first: int = 0, count: int = 12) -> Figure:
    """The tree of `count` Einsums from number `first` on: stores with the lives of their tiles, loops, splits."""
    return picture("looptree", result, first=first, count=count)


def cascade(subject: Result | Workload, first: int = 0, count: int = 16) -> Figure:
    """`count` Einsums from number `first` on, and their tensors; of a result, what is fused lies inside one hull."""
    if isinstance(subject, Workload):
        return figure_of(Cascade(first, count).draw(Scene(subject)))
    return picture("cascade", subject, first=first, count=count)


def occupancy(result: Result, memory: str | None = None) -> Figure:
    """Live bits of one instance at the worst moment of each Einsum, by tensor, with the capacity as a line.

    All memories that hold something, or the named one.
    """
    return picture("occupancy", result, memory=memory)


def progress(*results: Result, labels: Sequence[str] | None = None) -> Figure:
    """Best value (solid) and bound (dashed), as recorded, against the seconds of each search."""
    return picture("search", *results, labels=labels)


def pareto(*results: Result, labels: Sequence[str] | None = None) -> Figure:
    """Energy against latency: the front of each result that has one, a point for each that has none."""
    return picture("pareto", *results, labels=labels)


def ski_slope(*sweeps: Sweep, labels: Sequence[str] | None = None) -> Figure:
    """The least value of the objective against the capacity of a memory, a curve per sweep.

    Capacities without a mapping are marked below the curves. Between two capacities a curve keeps the value of the
    smaller one: what fits there fits in more room. Bounds of results that are not proven optimal are dashed. Raises
    SpecError for sweeps of different objectives or memories.
    """
    if labels is not None and len(labels) != len(sweeps):
        raise SpecError(f"{len(labels)} labels for {len(sweeps)} sweeps")
    return figure_of(slope(sweeps, titles(sweeps) if labels is None else numbered(labels)))

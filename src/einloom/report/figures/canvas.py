"""The one door to matplotlib: figures without a global state, in one style, saved the same byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import SpecError, nearest, need
from ...reading import writing
from ..draw.palette import COLOURS, INKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HATCHES = ("", "////", "\\\\\\\\", "....", "xxxx")
INK, SOFT, LINE = INKS["ink"], INKS["soft"], INKS["line"]
FORMATS = ("pdf", "svg", "png")
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": SOFT,
    "grid.color": LINE,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "hatch.color": "#ffffff",
    "legend.frameon": False,
    "legend.handlelength": 1.2,
    "lines.linewidth": 1.4,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "einloom",
}


@contextmanager
def styled() -> Iterator[None]:
    """A ``with`` block in which everything is drawn in this style. Raises MissingExtra without matplotlib."""
    need("matplotlib", "figures")
    from matplotlib import rc_context

    with rc_context(STYLE):
        yield


def sheet(width: float, height: float, rows: int = 1) -> tuple[Figure, Sequence[Axes]]:
    """A figure of that many inches with `rows` axes below each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, 1, squeeze=False)[:, 0])


def bare(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure whose coordinates are points, the origin above left; nothing but what is drawn."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    return figure, axes


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def look(number: int) -> dict[str, Any]:
    """Colour and hatch of thing `number`, as bars and patches take them."""
    hatch = HATCHES[number // len(COLOURS) % len(HATCHES)]
    return {"facecolor": colour(number), "hatch": hatch, "edgecolor": "white", "linewidth": 0.4}


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as PDF, SVG or PNG, by the ending of its name; the same figure gives the same bytes.

    Raises SpecError for another ending, or if the file cannot be written.
    """
    kind = Path(path).suffix[1:].lower()
    if kind not in FORMATS:
        close = nearest(kind, FORMATS) or "pdf"
        raise SpecError(
            f"a figure is written as {', '.join(FORMATS)}, by the ending of its name",
            file=str(path),
            suggestion=str(Path(path).with_suffix(f".{close}")),
        )
    nameless: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None},
        "svg": {"Date": None},
        "png": {"Software": None},
    }
    with styled():
        drawn = BytesIO()
        figure.savefig(drawn, format=kind, dpi=200, metadata=nameless[kind])
    writing.write(drawn.getvalue(), path)

"""Drawings as matplotlib figures."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ..draw.drawing import Box, Canvas, Drawing, Line, Mark, Plot, Plots, Ruler, Shape, Stroke, Words, bent
from ..draw.palette import INKS
from ..draw.plot import marked
from ..text.names import shortened
from .canvas import INK, SOFT, bare, colour, look, sheet, styled
from .fitting import fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

LINES: dict[str, dict[str, Any]] = {
    "bound": {"linestyle": "--", "color": "#d55e00", "linewidth": 1.0},
    "front": {"linestyle": ":", "color": SOFT, "linewidth": 1.0},
    "roof": {"color": INK, "linewidth": 1.0},
    "second": {"color": INK, "linewidth": 1.0, "linestyle": "--"},
    "limit": {"color": INK, "linewidth": 1.6},
    "edge": {"color": SOFT, "linewidth": 0.6},
    "capacity": {"color": "#c00000", "linewidth": 1.0, "linestyle": "--"},
}
MARKS: dict[str, dict[str, Any]] = {
    "bound": {"marker": "s", "s": 8, "color": "#d55e00"},
    "fused": {"marker": "o", "s": 14, "alpha": 0.8, "color": "#009e73"},
    "unfused": {"marker": "s", "s": 14, "alpha": 0.8, "facecolor": "white", "edgecolor": "#d55e00"},
    "achieved": {"marker": "D", "s": 30, "facecolor": "#f0e442", "edgecolor": "#009e73"},
    "trade": {"marker": "o", "s": 20},
    "nothing": {"marker": "x", "s": 22},
    "unfinished": {"marker": "$?$", "s": 26},
}
LINE = 15
"""Letters of a title for each inch of paper."""
MOST, NAMES, LEGEND, WIDE = 40, 24, 40, 36
"""Names in a legend; letters of a name beside an axis, in a legend, and of one in a legend of two columns."""


def figure_of(drawing: Drawing) -> Figure:
    """The drawing as a figure. Raises MissingExtra without matplotlib."""
    with styled():
        if isinstance(drawing, Canvas):
            return _canvas(drawing)
        plots = drawing.plots if isinstance(drawing, Plots) else (drawing,)
        high = sum(0.6 + plot.height / 120 for plot in plots)
        figure, several = sheet(max(plot.paper for plot in plots), high, len(plots))
        pairs = list(zip(several, plots, strict=True))
        for axes, plot in pairs:
            _plot(axes, plot)
        fit(figure, pairs)
    return figure


def _plot(axes: Axes, drawing: Plot) -> None:
    from matplotlib.patches import Rectangle

    names = list(dict.fromkeys(bar.label for bar in drawing.bars if bar.label))
    short = dict(zip(names, shortened(names, LEGEND), strict=True))
    listed = set(names[:MOST])
    for bar in drawing.bars:
        plain = {"facecolor": INKS.get(str(bar.fill)), "edgecolor": "white", "linewidth": 0.4}
        label = short[bar.label] if bar.label in listed else None
        listed.discard(bar.label)
        style = look(bar.fill) if isinstance(bar.fill, int) else plain
        size = bar.right - bar.left, bar.high - bar.low
        axes.add_patch(Rectangle((bar.left, bar.low), *size, label=label, **style))
    if len(names) > MOST:
        axes.add_patch(Rectangle((0, 0), 0, 0, label=f"and {len(names) - MOST} more", facecolor="none"))
    for line in drawing.lines:
        _line(axes, line)
    for mark in drawing.marks:
        _mark(axes, mark)
    _ruler(axes, axes.xaxis, drawing.across)
    _ruler(axes, axes.yaxis, drawing.up)
    axes.set(xlim=(drawing.across.low, drawing.across.high), ylim=(drawing.up.low, drawing.up.high))
    if drawing.title:
        axes.set_title("\n".join(wrap(drawing.title, int(LINE * drawing.paper))), loc="left", fontsize=8)
    if not drawing.bars:
        axes.grid()
    _legend(axes, drawing)


def _legend(axes: Axes, drawing: Plot) -> None:
    """Right of bars in as many columns as keep it about as high as they are; above lines and marks."""
    handles, names = axes.get_legend_handles_labels()
    if names and drawing.bars:
        rows = max(8, round(drawing.height / 13))
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "labelspacing": 0.3}
        axes.legend(fontsize=6.5, ncols=-(-len(names) // rows), **beside)
    elif names:  # above: the best place inside takes long to find
        columns = 1 if max(map(len, names)) > WIDE else 2
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
        axes.legend(handles, shortened(names, LEGEND + WIDE), fontsize=7, ncols=columns, **above)


def _line(axes: Axes, line: Line) -> None:
    style = dict(LINES.get(line.role.split()[0], {}))
    if line.number is not None:
        style["color"] = colour(line.number)
    xs, ys = [x for x, _ in line.points], [y for _, y in line.points]
    axes.plot(xs, ys, label=line.label or None, **{"color": colour(0), **style})


def _mark(axes: Axes, mark: Mark) -> None:
    role, *more = mark.role.split()
    style = dict(MARKS.get(role, {"s": 8}))
    if mark.number is not None:
        style["color" if "facecolor" not in style else "edgecolor"] = colour(mark.number)
    if more:
        style["s"] = 4 * style["s"] if "whole" in more else style["s"]
    if not {"color", "edgecolor"} & set(style):
        style["color"] = colour(0)
    if role != "words":
        edge = {"clip_on": False} if role in ("nothing", "unfinished") else {}
        axes.scatter([mark.at[0]], [mark.at[1]], zorder=3 + len(more), label=mark.label or None, **style, **edge)
    if mark.text:
        _words(axes, mark)


def _words(axes: Axes, mark: Mark) -> None:
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7, "parse_math": False}
    if mark.role == "words":
        axes.annotate(str(mark.text), mark.at, xytext=(3, 0), va="center", **style)
    else:  # `fit` finds a place for it
        axes.annotate(str(mark.text), mark.at, xytext=(4, 4), gid="beside", **style).set_in_layout(False)


def _ruler(axes: Axes, axis: Axis, ruler: Ruler) -> None:
    (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log" if ruler.log else "linear")
    axis.set_label_text(ruler.name)
    ticks = marked(ruler, 4 if axis is axes.yaxis else 8)
    names = [name for _, name in ticks]
    if ruler.ticks is not None:
        names = shortened(names, NAMES)
    axis.set_ticks([at for at, _ in ticks], names, parse_math=False)
    axis.set_ticks([], minor=True)


def _canvas(drawing: Canvas) -> Figure:
    figure, axes = bare(drawing.width, drawing.height)
    for order, shape in enumerate(drawing.shapes):
        _shape(axes, shape, order)
    return figure


def _shape(axes: Axes, shape: Shape, order: int) -> None:
    if isinstance(shape, Box):
        axes.add_patch(_box(shape, order))
    elif isinstance(shape, Words):
        place = {"ha": {"start": "left", "middle": "center", "end": "right"}[shape.side], "va": "center"}
        weight = "bold" if shape.bold else "normal"
        style = {"fontsize": 0.8 * shape.size, "weight": weight, "color": INKS[shape.ink]}
        axes.text(shape.x, shape.y, shape.text, zorder=order, parse_math=False, **place, **style)
    else:
        axes.add_patch(_stroke(shape, order))


def _box(shape: Box, order: int) -> Patch:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    plain = {"facecolor": INKS.get(str(shape.fill)), "edgecolor": "none", "linewidth": 0.6}
    style = look(shape.fill) if isinstance(shape.fill, int) else plain
    style |= {"edgecolor": INKS[shape.edge]} if shape.edge else {}
    style |= {"linestyle": "--"} if shape.dashed else {}
    if not shape.round:
        return Rectangle((shape.x, shape.y), shape.width, shape.height, zorder=order, **style)
    corners = f"round,pad=0,rounding_size={min(shape.round, shape.width / 2, shape.height / 2)}"
    where = ((shape.x, shape.y), shape.width, shape.height)
    return FancyBboxPatch(*where, boxstyle=corners, zorder=order, **style)


def _stroke(shape: Stroke, order: int) -> Patch:
    from matplotlib.patches import FancyArrowPatch, PathPatch
    from matplotlib.path import Path

    ink = colour(shape.ink) if isinstance(shape.ink, int) else INKS[shape.ink]
    vertices, codes = list(shape.points), [Path.MOVETO, *[Path.LINETO] * (len(shape.points) - 1)]
    if shape.curved:
        vertices = [shape.points[0], *(spot for piece in bent(shape.points) for spot in piece)]
        codes = [Path.MOVETO, *[Path.CURVE4] * (len(vertices) - 1)]
    path, style = Path(vertices, codes), {"edgecolor": ink, "linewidth": shape.width, "zorder": order}
    if shape.arrow:
        return FancyArrowPatch(path=path, arrowstyle="-|>", mutation_scale=6, facecolor=ink, **style)
    return PathPatch(path, facecolor="none", capstyle="round", joinstyle="round", **style)

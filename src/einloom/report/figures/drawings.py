"""Drawings as matplotlib figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..draw.drawing import Box, Canvas, Drawing, Line, Mark, Plot, Ruler, Stroke, Words
from ..draw.palette import INKS
from .canvas import INK, SOFT, bare, colour, look, sheet, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

LINES: dict[str, dict[str, Any]] = {
    "bound": {"linestyle": "--", "color": "#d55e00", "linewidth": 1.0},
    "front": {"linestyle": ":", "color": SOFT, "linewidth": 1.0},
    "roof": {"color": INK, "linewidth": 1.0},
}
MARKS: dict[str, dict[str, Any]] = {
    "bound": {"marker": "s", "s": 8, "color": "#d55e00"},
    "fused": {"marker": "o", "s": 14, "alpha": 0.8, "color": "#009e73"},
    "unfused": {"marker": "s", "s": 14, "alpha": 0.8, "facecolor": "white", "edgecolor": "#d55e00"},
    "achieved": {"marker": "D", "s": 30, "facecolor": "#f0e442", "edgecolor": "#009e73"},
    "trade": {"marker": "o", "s": 20},
}


def figure_of(drawing: Drawing) -> Figure:
    """The drawing as a figure. Raises MissingExtra without matplotlib."""
    with styled():
        return _plot(drawing) if isinstance(drawing, Plot) else _canvas(drawing)


def _plot(drawing: Plot) -> Figure:
    figure, (axes,) = sheet(4.6, 2.9)
    for line in drawing.lines:
        _line(axes, line)
    for mark in drawing.marks:
        _mark(axes, mark)
    _ruler(axes, axes.xaxis, drawing.across)
    _ruler(axes, axes.yaxis, drawing.up)
    axes.set(xlim=(drawing.across.low, drawing.across.high), ylim=(drawing.up.low, drawing.up.high))
    axes.grid()
    if any(line.label for line in drawing.lines) or any(mark.label for mark in drawing.marks):
        axes.legend(fontsize=7)
    return figure


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
        for key in ("color", "edgecolor") if "facecolor" not in style else ("edgecolor",):
            style[key] = colour(mark.number)
    if more:
        style["s"] = 4 * style["s"] if "whole" in more else style["s"]
    if not {"color", "edgecolor"} & set(style):
        style["color"] = colour(0)
    axes.scatter([mark.at[0]], [mark.at[1]], zorder=3 + len(more), label=mark.label or None, **style)
    if mark.text:
        axes.annotate(mark.text, mark.at, xytext=(4, 4), textcoords="offset points", fontsize=7)


def _ruler(axes: Axes, axis: Axis, ruler: Ruler) -> None:
    from matplotlib.ticker import FuncFormatter

    (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log" if ruler.log else "linear")
    axis.set_label_text(ruler.name)
    axis.set_major_formatter(FuncFormatter(lambda value, _: ruler.shown(value, 4)))
    if ruler.log:
        axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def _canvas(drawing: Canvas) -> Figure:
    figure, axes = bare(drawing.width, drawing.height)
    for order, shape in enumerate(drawing.shapes):
        _shape(axes, shape, order)
    return figure


def _shape(axes: Axes, shape: Box | Words | Stroke, order: int) -> None:
    from matplotlib.patches import FancyArrowPatch, Rectangle

    if isinstance(shape, Box):
        plain = {"facecolor": INKS.get(str(shape.fill)), "edgecolor": "none"}
        style = look(shape.fill) if isinstance(shape.fill, int) else plain
        axes.add_patch(Rectangle((shape.x, shape.y), shape.width, shape.height, zorder=order, **style))
    elif isinstance(shape, Words):
        place = {"ha": {"start": "left", "middle": "center", "end": "right"}[shape.side], "va": "center"}
        weight = "bold" if shape.bold else "normal"
        style = {"fontsize": 0.8 * shape.size, "weight": weight, "color": INKS[shape.ink]}
        axes.text(shape.x, shape.y, shape.text, zorder=order, parse_math=False, **place, **style)
    else:
        ink = colour(shape.ink) if isinstance(shape.ink, int) else INKS[shape.ink]
        axes.plot(*zip(*shape.points, strict=True), color=ink, linewidth=shape.width, zorder=order)
        if shape.arrow:
            ends = {"arrowstyle": "-|>", "mutation_scale": 6, "color": ink, "linewidth": shape.width, "zorder": order}
            axes.add_patch(FancyArrowPatch(shape.points[-2], shape.points[-1], shrinkA=0, shrinkB=0, **ends))

"""Room for all words of a figure: it grows until nothing is cut, and words of one axis stand apart.

Sizes are measured as the figure is laid out, for the widths of letters are known then and not before.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..draw.drawing import Plot, Ruler
from ..draw.plot import marked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

TRIES = 6
LEAST = 0.66
"""Of its size on paper a plot keeps at least so much between its axes."""
AIR, PAD, STEP = 4.0, 0.04, 9.0
"""Points between two words along an axis, inches around a figure, points from one row of words to the next."""


def fit(figure: Figure, plots: Sequence[tuple[Axes, Plot]]) -> None:
    """Turn or leave out names along the axes that would touch, then let the figure grow until all fits in."""
    for _ in range(TRIES):
        _lay_out(figure)
        apart = [_apart(axes, plot) for axes, plot in plots]
        grown = _grow(figure, plots)
        if not any(apart) and not grown:
            break
    for axes, plot in plots:
        _place(axes, plot)


def _lay_out(figure: Figure) -> None:
    with warnings.catch_warnings():  # what is too narrow to be laid out grows, and is laid out again
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        figure.draw_without_rendering()


def _grow(figure: Figure, plots: Sequence[tuple[Axes, Plot]]) -> bool:
    """Make the figure larger where a word lies outside it, or an axis is short; true if it was."""
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    wide = max(0.0, -box.x0) + max(0.0, box.x1 - width)
    high = max(0.0, -box.y0) + max(0.0, box.y1 - height)
    for axes, plot in plots:
        area = axes.get_position()
        wide = max(wide, LEAST * plot.paper - area.width * width)
        high += max(0.0, 0.9 * plot.height / 120 - area.height * height)
    if max(wide, high) <= 0.01:
        return False
    figure.set_size_inches(width + (wide + PAD) * (wide > 0.01), height + (high + PAD) * (high > 0.01))
    return True


def _apart(axes: Axes, plot: Plot) -> bool:
    """Turn the names along the lower axis that touch, or leave out every second number; true if anything changed."""
    axis = axes.xaxis
    if not _touching(axis):
        return False
    if plot.across.ticks is None or axis.get_tick_params().get("labelrotation"):
        return _thin(axis, plot.across)
    axis.set_tick_params(rotation=60)
    return True


def _touching(axis: Axis) -> bool:
    turned = bool(axis.get_tick_params().get("labelrotation"))
    boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
    air = AIR * axis.get_figure(root=True).dpi / 72
    if turned:  # of turned names only the height of the letters counts
        high = 1.3 * air + axis.get_ticklabels()[0].get_fontsize() * axis.get_figure(root=True).dpi / 72
        return any(after.x1 - box.x1 < high for box, after in pairwise(boxes))
    return any(after.x0 - box.x1 < air for box, after in pairwise(boxes))


def _thin(axis: Axis, ruler: Ruler) -> bool:
    """Fewer round numbers, or every second of the names; false where there are too few already."""
    found = [
        (float(at), label.get_text()) for at, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    ]
    if len(found) < 3:
        return False
    fewer = [] if ruler.ticks is not None else [marked(ruler, wanted) for wanted in range(len(found) - 1, 1, -1)]
    kept = next((ticks for ticks in fewer if 2 <= len(ticks) < len(found)), found[::2])
    axis.set_ticks([at for at, _ in kept], [name for _, name in kept], parse_math=False)
    return True


def _place(axes: Axes, plot: Plot) -> None:
    """Put the words beside marks where they lie inside the axes and on no other words."""
    taken: list[Any] = []
    area = axes.get_window_extent()
    scale = axes.figure.dpi / 72
    beside = [text for text in axes.texts if text.get_gid() == "beside"]
    for text in beside:
        box = text.get_window_extent()
        across = (4.0, -4.0 - box.width / scale, 4.0 + (area.x1 - box.x1) / scale - 1)
        spots = [(x, y) for row in range(8) for y in (4 + STEP * row, -5 - STEP * (row + 1)) for x in across]
        for x, y in spots:
            moved = box.translated((x - 4) * scale, (y - 4) * scale)
            inside = area.x0 <= moved.x0 and moved.x1 <= area.x1 and area.y0 <= moved.y0 and moved.y1 <= area.y1
            if inside and not any(moved.overlaps(other) for other in taken):
                text.set_position((x, y))
                taken.append(moved)
                break
        else:
            taken.append(box)

"""The cascade as a graph with its fused groups as hulls, and how full every memory is while each Einsum runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, log2
from typing import TYPE_CHECKING, Any

from ...errors import SpecError
from ...result import Result
from ...workload.einsum import Workload
from ..draw.cascade import Group, graph, groups
from ..draw.layers import Layout, layout
from ..draw.occupancy import bands, columns
from ..draw.scene import Scene
from ..draw.subject import Subject
from ..text.results import bits
from .canvas import INK, SOFT, bare, look, sheet, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, ROW, WIDE, HIGH, MARGIN = 72.0, 44.0, 58.0, 24.0, 18.0
HULLS = {"m1": ("#5b8fb9", "#d9ecfa"), "m2": ("#4fa886", "#d8f1e6"), "m3": ("#b87f00", "#fbe8c9")}
INNER = ("#b87f00", "#ffe9a8")
Place = tuple[float, float]


def cascade(subject: Result | Workload, first: int = 0, count: int = 16) -> Figure:
    """`count` Einsums from number `first` on, and their tensors; of a result, what is fused lies inside one hull."""
    scene = Subject(subject) if isinstance(subject, Result) else Scene(subject)
    shown = set(scene.leaves[first : first + count])
    nodes, edges = graph(scene, shown)
    if not nodes:
        raise SpecError(f"there is no Einsum number {first + 1}")
    placed = layout(nodes, edges)
    width = (placed.columns - 1) * COLUMN + WIDE + 2 * MARGIN
    height = placed.rows * ROW + 2 * MARGIN

    def at(place: tuple[int, float]) -> Place:
        return MARGIN + WIDE / 2 + place[0] * COLUMN, height / 2 + place[1] * ROW

    points = {name: at(place) for name, place in placed.places.items()}
    lines = {edge: _line(points, placed, edge, at) for edge in edges}
    with styled():
        figure, axes = bare(width, height)
        if isinstance(scene, Subject):
            for group in groups(scene):
                if shown & set(group.einsums):
                    _hull(axes, group, points, lines)
        for edge, line in lines.items():
            _edge(axes, line, edge[1].startswith("e:"))
        for name in nodes:
            _node(axes, scene, name, *points[name])
    return figure


def _line(points: dict[str, Place], placed: Layout, edge: tuple[str, str], at: Any) -> list[Place]:
    (x0, y0), (x1, y1) = points[edge[0]], points[edge[1]]
    return [(x0 + WIDE / 2 - 2, y0), *(at(bend) for bend in placed.bends[edge]), (x1 - WIDE / 2 - 1, y1)]


def _path(line: Sequence[Place]) -> Any:
    from matplotlib.path import Path

    vertices, codes = [line[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(line):
        half = (x0 + x1) / 2
        vertices += [(half, y0), (half, y1), (x1, y1)]
        codes += [Path.CURVE4] * 3
    return Path(vertices, codes)


def _edge(axes: Axes, line: Sequence[Place], head: bool) -> None:
    from matplotlib.patches import FancyArrowPatch, PathPatch

    style = {"edgecolor": "#666666", "linewidth": 0.8}
    if head:
        axes.add_patch(
            FancyArrowPatch(path=_path(line), arrowstyle="-|>", mutation_scale=6, facecolor="#666666", **style)
        )
    else:
        axes.add_patch(PathPatch(_path(line), facecolor="none", **style))


def _hull(axes: Axes, group: Group, points: dict[str, Place], lines: dict[tuple[str, str], list[Place]]) -> None:
    """A rim and a fill of thick round strokes around the group's boxes and along its edges."""
    from matplotlib.patches import FancyBboxPatch, PathPatch

    inside = {f"e:{name}" for name in group.einsums} | {f"t:{name}" for name in group.tensors}
    rim, fill = INNER if group.inner else HULLS.get(group.look, HULLS["m1"])
    wide = 8.0 if group.inner else 13.0
    boxes = [points[name] for name in sorted(inside) if name in points]
    curves = [line for (a, b), line in lines.items() if a in inside and b in inside]
    for ink, more in ((rim, 1.2), (fill, 0.0)):
        for line in curves:
            stroke = {"linewidth": 2 * (wide + more), "capstyle": "round"}
            axes.add_patch(PathPatch(_path(line), facecolor="none", edgecolor=ink, **stroke))
        for x, y in boxes:
            corner, grown = (x - WIDE / 2 + 6, y - HIGH / 2 + 6), f"round,pad={wide + more - 1},rounding_size={wide}"
            axes.add_patch(
                FancyBboxPatch(corner, WIDE - 12, HIGH - 12, boxstyle=grown, facecolor=ink, edgecolor="none")
            )


def _node(axes: Axes, scene: Scene, name: str, x: float, y: float) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    corner, plain = (x - WIDE / 2, y - HIGH / 2), name[2:]
    room = 11 if name[0] == "e" else 8
    shown = plain if len(plain) <= room else plain[: room - 1] + "…"
    if name[0] == "e":
        style = {"boxstyle": "round,pad=0,rounding_size=3", "facecolor": "#2c3640", "edgecolor": "none"}
        axes.add_patch(FancyBboxPatch(corner, WIDE, HIGH, **style))
        axes.text(x, y, shown, color="white", weight="bold", fontsize=7, ha="center", va="center")
        return
    dashes = "--" if scene.outermost and scene.backing.get(plain) == scene.outermost else "-"
    round_ = {"boxstyle": f"round,pad=0,rounding_size={HIGH / 2}", "facecolor": "white", "edgecolor": SOFT}
    axes.add_patch(FancyBboxPatch(corner, WIDE, HIGH, linestyle=dashes, linewidth=0.7, **round_))
    axes.add_patch(Rectangle((x - WIDE / 2 + 6, y - 4.5), 8, 9, **look(scene.number[plain])))
    axes.text(x - WIDE / 2 + 17, y, shown, color=INK, fontsize=7, ha="left", va="center")


def occupancy(result: Result, memory: str | None = None) -> Figure:
    """Live bits of one instance at the worst moment of each Einsum, by tensor, with the capacity as a line.

    All memories with a size that hold something, or the named one.
    """
    subject = Subject(result)
    held = {tile.store.memory for tile in subject.tiles}
    names = [m.name for m in result.machine.memories if m.name in held and (m.size is not None or memory == m.name)]
    wanted = [name for name in names if memory in (None, name)] or [m.name for m in result.machine.memories[:1]]
    if memory is not None and memory not in wanted:
        raise SpecError(f"{memory!r} holds nothing here; memories that do are {', '.join(sorted(held))}")
    with styled():
        across = max(3.6, min(11.0, 1.8 + 0.42 * len(subject.leaves)))
        figure, several = sheet(across, 0.5 + 1.5 * len(wanted), rows=len(wanted))
        for axes, name in zip(several, wanted, strict=True):
            _memory(axes, subject, name)
        several[-1].set_xticks(*_names(subject), rotation=60, ha="right", fontsize=7)
    return figure


def _names(subject: Subject) -> tuple[list[int], list[str]]:
    step = -(-len(subject.leaves) // 40)
    shown = range(0, len(subject.leaves), step)
    return list(shown), [subject.leaves[i] for i in shown]


def _memory(axes: Axes, subject: Subject, name: str) -> None:
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    size, table = subject.machine.memory(name).size, columns(subject, name)
    peak = subject.result.cost.occupancy_of(name)
    labelled: set[str] = set()
    for band in bands(subject, table):
        label = band.tensor if band.tensor not in labelled else None
        labelled.add(band.tensor)
        corner = (band.start - 0.5, band.base)
        style = look(subject.number[band.tensor])
        axes.add_patch(Rectangle(corner, band.stop - band.start, band.bits, label=label, **style))
    near = size is not None and peak > 0.2 * size
    if size is not None and near:
        axes.axhline(size, color="#c00000", linestyle="--", linewidth=1.0)
    axes.set_xlim(-0.5, len(table) - 0.5)
    top = (float(size) if near and size is not None else peak * 1.1) or 1.0
    axes.set_ylim(0, top * 1.08)
    axes.set_xticks([])
    axes.yaxis.set_major_locator(MultipleLocator(2.0 ** ceil(log2(top / 4))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bits(int(value)) if value else "0"))
    room = "unlimited" if size is None else f"{peak / size:.1%} of {bits(size)}" if size else "0"
    axes.set_title(f"{name}: peak {bits(peak)}, {room}", loc="left", fontsize=8)
    if labelled:
        ncols = 1 + len(labelled) // 8
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=6.5, ncols=ncols, labelspacing=0.3)

"""The mapping as a LoopTree: columns are Einsums in program order, what spans two of them is shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...mapping.tree import Loop, Nest, Split, Store, einsums_below
from ...result import Result
from ..draw.scene import energy, time
from ..draw.subject import Subject
from .canvas import INK, LINE, MEMORY_COLOURS, SOFT, bare, look, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, ROW, LEAF, LABEL = 92.0, 13.0, 30.0, 10.0
MARGIN = 6.0
LETTER = 4.4


def looptree(result: Result, first: int = 0, count: int = 12) -> Figure:
    """The tree of `count` Einsums from number `first` on: stores with the lives of their tiles, loops, splits."""
    subject = Subject(result)
    window = range(max(0, min(first, len(subject.leaves) - 1)), min(first + count, len(subject.leaves)))
    tree = _Tree(subject, window)
    bottom = tree.height(result.mapping.nest, 0, 0)
    with styled():
        figure, axes = bare(COLUMN * len(window) + 2 * MARGIN, bottom + 2 * MARGIN)
        tree.draw(axes, result.mapping.nest, 0, 0, MARGIN, bottom + MARGIN)
    return figure


@dataclass(frozen=True)
class _Tree:
    subject: Subject
    window: range

    def shown(self, first: int, nest: Nest) -> range:
        last = first + len(einsums_below(nest))
        return range(max(first, self.window.start), min(last, self.window.stop))

    def lanes(self, node: Store, first: int, depth: int, shown: range) -> list[tuple[str, int, int]]:
        """(tensor, first leaf, last leaf) of every tile of a store that lives within the window."""
        address = self.subject.paths[first].addresses[depth]
        found = []
        for tensor in node.tensors:
            tile = self.subject.tile_at.get((address, tensor))
            if tile is None:
                continue
            start, last = self.subject.alive(tile)
            start, last = max(start, shown.start), min(last, shown.stop - 1)
            if start <= last:
                found.append((tensor, start, last))
        return found

    def rows(self, lanes: list[tuple[str, int, int]]) -> list[int]:
        """The row of each lane: the first one in which it meets no other."""
        ends: list[int] = []
        placed = []
        for _, start, last in lanes:
            row = next((i for i, end in enumerate(ends) if end < start), len(ends))
            ends[row : row + 1] = [last]
            placed.append(row)
        return placed

    def height(self, nest: Nest, first: int, depth: int) -> float:
        """Points from the top of a nest to its bottom."""
        shown, total = self.shown(first, nest), 0.0
        if not shown:
            return 0.0
        for offset, node in enumerate(nest):
            if isinstance(node, Store):
                rows = self.rows(self.lanes(node, first, depth + offset, shown))
                total += LABEL + ROW * (max(rows) + 1) if rows else 0.0
            elif isinstance(node, Loop):
                total += ROW
            elif isinstance(node, Split):
                start, deepest = first, 0.0
                for branch in node.branches:
                    deepest = max(deepest, self.height(branch, start, depth + offset + 1))
                    start += len(einsums_below(branch))
                total += LABEL + deepest
            else:
                total += LEAF
        return total

    def x(self, leaf: int) -> float:
        return MARGIN + COLUMN * (leaf - self.window.start)

    def draw(self, axes: Axes, nest: Nest, first: int, depth: int, top: float, bottom: float) -> None:
        shown = self.shown(first, nest)
        if not shown:
            return
        left, right = self.x(shown.start), self.x(shown.stop)
        for offset, node in enumerate(nest):
            if isinstance(node, Store):
                top = self._store(axes, node, first, depth + offset, shown, top)
            elif isinstance(node, Loop):
                shared = len(einsums_below(nest)) > 1
                fill = "#ffe9a8" if shared else "#ece8f5" if node.axis else "white"
                _box(axes, left, top, right, top + ROW, fill)
                _words(
                    axes, (left + right) / 2 if shared else left + 4, top + ROW / 2, _loop(node), right - left, shared
                )
                top += ROW
            elif isinstance(node, Split):
                _box(axes, left, top, right, top + LABEL, "#3b444d")
                where = f" {node.where}" if node.where == "shared" else f" @ {node.where}" if node.where else ""
                style = {"color": "white", "fontsize": 6}
                axes.text(
                    (left + right) / 2, top + LABEL / 2, f"split {node.kind}{where}", ha="center", va="center", **style
                )
                start = first
                for branch in node.branches:
                    self.draw(axes, branch, start, depth + offset + 1, top + LABEL, bottom)
                    start += len(einsums_below(branch))
            else:
                self._leaf(axes, node.einsum, node.unit, left, right, top, bottom)

    def _store(self, axes: Axes, node: Store, first: int, depth: int, shown: range, top: float) -> float:
        lanes = self.lanes(node, first, depth, shown)
        if not lanes:
            return top
        rows = self.rows(lanes)
        below = top + LABEL + ROW * (max(rows) + 1)
        left, right = self.x(shown.start), self.x(shown.stop)
        position = [memory.name for memory in self.subject.machine.memories].index(node.memory)
        _box(axes, left, top, right, below, MEMORY_COLOURS[min(position, len(MEMORY_COLOURS) - 1)])
        slots = f", {node.slots} slots" if node.slots else ""
        axes.text(left + 4, top + LABEL / 2 + 0.5, f"{node.memory}{slots}", va="center", fontsize=6, weight="bold")
        for (tensor, start, last), row in zip(lanes, rows, strict=True):
            y, x0, x1 = top + LABEL + ROW * row, self.x(start) + 3, self.x(last + 1) - 3
            _box(axes, x0, y + 1, x1, y + ROW - 1.5, "white", SOFT)
            number = self.subject.number[tensor]
            axes.add_patch(_rectangle(x0 + 2, y + 3, 7, ROW - 6.5, **look(number)))
            _words(axes, x0 + 12, y + ROW / 2, tensor, x1 - x0 - 12, False)
        return below

    def _leaf(
        self, axes: Axes, einsum: str, unit: str | None, left: float, right: float, top: float, low: float
    ) -> None:
        _box(axes, left, top, right, low, "#2c3640")
        result = self.subject.result
        joules = sum(action.energy for action in result.cost.actions if action.einsum == einsum)
        seconds = dict(result.cost.einsum_latency).get(einsum, 0.0)
        room = int((right - left - 8) / (LETTER * 1.1))
        shown = einsum if len(einsum) <= room else einsum[: room - 1] + "…"
        axes.text(left + 5, top + 9, shown, color="white", va="center", fontsize=8, weight="bold")
        prices = f"{unit or 'copy'}  {energy(joules, 3)}  {time(seconds, 3)}"
        axes.text(left + 5, top + 21, prices, color="#e3e8ed", va="center", fontsize=5.5)


def _loop(node: Loop) -> str:
    names = list(dict.fromkeys(variable for _, variable in node.binds))
    tile = f" tile {node.tile}" if node.tile is not None else ""
    axis = f" @ {node.axis}" if node.axis else ""
    return f"{'par' if node.axis else 'for'} {'/'.join(names[:3])}{'…' if names[3:] else ''} × {node.trips}{tile}{axis}"


def _words(axes: Axes, x: float, y: float, text: str, room: float, centred: bool) -> None:
    """A label that is cut where the room ends."""
    letters = max(2, int((room - 6) / (LETTER * 0.92)))
    shown = text if len(text) <= letters else text[: letters - 1] + "…"
    axes.text(x, y, shown, ha="center" if centred else "left", va="center", fontsize=7, color=INK)


def _rectangle(x: float, y: float, width: float, height: float, **style: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, **style)


def _box(axes: Axes, left: float, top: float, right: float, bottom: float, fill: str, edge: str = LINE) -> None:
    style = {"facecolor": fill, "edgecolor": edge, "linewidth": 0.5}
    axes.add_patch(_rectangle(left, top, right - left, bottom - top, **style))

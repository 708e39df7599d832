"""Energy, traffic and latency as bars, by any of Einsum, level, tensor and action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from ...cost.breakdown import Action, ActionName
from ...errors import SpecError
from ...result import Result
from ..compare import labels_of
from ..draw.scene import energy, time
from ..text.results import bits
from .canvas import INK, look, sheet, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Key = Literal["einsum", "component", "tensor", "action"]
KEYS: tuple[Key, ...] = ("einsum", "component", "tensor", "action")
NAMES = {"einsum": "Einsum", "component": "level", "tensor": "tensor", "action": "action"}
UNITS: dict[str, Callable[[float, int], str]] = {
    "energy": energy,
    "latency": time,
    "traffic": lambda value, digits: bits(int(value)),
}
STEEP, LONG = 8, 9


def energy_bars(
    *results: Result, rows: Key = "einsum", parts: Key = "component", labels: Sequence[str] | None = None
) -> Figure:
    """Energy: a bar per Einsum (level, tensor, action), stacked by any other of them; of several results a bar each."""
    return _stacked(results, rows, parts, labels, "energy")


def traffic_bars(
    *results: Result, rows: Key = "component", parts: Key = "tensor", labels: Sequence[str] | None = None
) -> Figure:
    """Bits read and written, as `energy_bars`."""
    return _stacked(results, rows, parts, labels, "traffic")


def _stacked(
    results: Sequence[Result], rows: Key, parts: Key, labels: Sequence[str] | None, what: Literal["energy", "traffic"]
) -> Figure:
    for key in (rows, parts):
        if key not in KEYS:
            raise SpecError(f"bars are grouped by {', '.join(KEYS)}, not by {key!r}")
    names = labels_of(results, labels)
    table: dict[str, dict[str, float]] = {}
    for label, result in zip(names, results, strict=True):
        for action in result.cost.actions:
            value = action.energy if what == "energy" else float(action.bits * (action.action in ("read", "write")))
            if value:
                bar = table.setdefault(_name(action, rows) if len(results) == 1 else label, {})
                bar[_name(action, parts)] = bar.get(_name(action, parts), 0.0) + value
    order = {key: i for i, key in enumerate(_all(results, rows))}
    heads = sorted(table, key=lambda name: order.get(name, 0)) if len(results) == 1 else list(table)
    with styled():
        figure, (axes,) = sheet(_width(heads), 2.6)
        base = [0.0] * len(heads)
        shown = [part for part in _all(results, parts) if any(part in bar for bar in table.values())]
        for i, part in enumerate(_all(results, parts)):
            values = [table[name].get(part, 0.0) for name in heads]
            if any(values):
                axes.bar(range(len(heads)), values, 0.74, bottom=base, label=part, **look(i))
                base = [low + value for low, value in zip(base, values, strict=True)]
        _finish(axes, heads, what, len(shown))
    return figure


def _width(heads: Sequence[str], least: float = 0.42) -> float:
    """Inches for bars under these names, the legend included."""
    level = len(heads) <= STEEP and max(map(len, heads), default=0) <= LONG
    each = max(least, 0.08 * max(map(len, heads), default=0)) if level else least
    return max(3.6, min(11.0, 2.2 + each * len(heads)))


def _name(action: Action, key: Key) -> str:
    value = getattr(action, key)
    return "operations" if value is None else str(value)


def _all(results: Sequence[Result], key: Key) -> list[str]:
    """Every name of a kind, in the order in which the report counts them."""
    found: dict[str, None] = {}
    for result in results:
        workload, machine = result.workload, result.machine
        if key == "einsum":
            names = list(result.mapping.einsums)
        elif key == "component":
            names = [component.name for component in machine.components]
        elif key == "tensor":
            names = [*workload.intermediates, *(tensor.name for tensor in workload.tensors), "operations"]
        else:
            names = list(get_args(ActionName))
        found |= dict.fromkeys(names)
    return list(found)


def _finish(axes: Axes, heads: Sequence[str], what: str, parts: int) -> None:
    from matplotlib.ticker import FuncFormatter

    steep = len(heads) > STEEP or max(map(len, heads), default=0) > LONG
    shown = [name if len(name) <= 18 else name[:17] + "…" for name in heads]
    axes.set_xticks(range(len(heads)), shown, rotation=60 if steep else 0, ha="right" if steep else "center")
    axes.tick_params(axis="x", length=0)
    unit = UNITS[what]
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: unit(value, 3) if value else "0"))
    axes.set_ylabel("busy time" if what == "latency" else what)
    axes.grid(axis="y")
    if parts:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=1 + parts // 14, fontsize=7)


def latency_breakdown(*results: Result, labels: Sequence[str] | None = None) -> Figure:
    """How long each Einsum keeps every component busy, side by side, with its latency as a line.

    Several results: a cluster per result, busy times summed over its Einsums.
    """
    names = labels_of(results, labels)
    clusters: list[tuple[str, dict[str, float], float]] = []
    for label, result in zip(names, results, strict=True):
        busy: dict[str, dict[str, float]] = {}
        for einsum, component, seconds in result.cost.busy:
            bar = busy.setdefault(einsum if len(results) == 1 else label, {})
            bar[component] = bar.get(component, 0.0) + seconds
        if len(results) == 1:
            latency = dict(result.cost.einsum_latency)
            clusters += [(name, busy.get(name, {}), latency.get(name, 0.0)) for name in result.mapping.einsums]
        else:
            clusters.append((label, busy.get(label, {}), result.latency))
    clusters = [cluster for cluster in clusters if cluster[2] > 0] or clusters
    every = _all(results, "component")
    used = [name for name in every if any(bar.get(name) for _, bar, _ in clusters)]
    wide = 0.8 / max(1, len(used))
    with styled():
        figure, (axes,) = sheet(_width([name for name, _, _ in clusters], 0.6), 2.6)
        for i, name in enumerate(used):
            places = [x - 0.4 + wide * (i + 0.5) for x in range(len(clusters))]
            heights = [bar.get(name, 0.0) for _, bar, _ in clusters]
            axes.bar(places, heights, wide * 0.92, label=name, **look(every.index(name)))
        for x, (_, _, took) in enumerate(clusters):
            axes.plot([x - 0.44, x + 0.44], [took, took], color=INK, linewidth=1.6, solid_capstyle="butt")
        axes.plot([], [], color=INK, linewidth=1.6, label="latency")
        _finish(axes, [name for name, _, _ in clusters], "latency", len(used) + 1)
    return figure

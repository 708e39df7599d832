"""Roofline, energy against latency, and minimal traffic against capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import SpecError
from ...result import Result
from ...result.sweep import Sweep
from ...result.unmapped import Unmapped
from ..compare import labels_of
from ..draw.roofline import points, roofs
from ..text.results import bits
from .canvas import INK, colour, sheet, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def roofline(*results: Result, labels: Sequence[str] | None = None) -> Figure:
    """Operations per byte of the outermost memory against operations per second, fused and unfused at best.

    Small points are Einsums on their roof, large ones whole cascades; hollow squares are unfused. Diamonds are what the
    whole cascade achieves. The roofs are those of the first result's machine and mix of reads and writes.
    """
    names = labels_of(results, labels)
    limits = roofs(results[0])
    if not limits.peaks:
        raise SpecError("this machine has no finite rates, or nothing is computed: there is no roofline to draw")
    every = [(points(result, unfused=False), points(result, unfused=True)) for result in results]
    known = [p for pair in every for side in pair for p in side if p.attainable and p.intensity]
    low = min((p.intensity or 1.0 for p in known), default=1.0) / 3
    high = max([p.intensity or 1.0 for p in known] + [1.0]) * 4
    top = max(rate for _, rate in limits.peaks)
    if limits.bandwidth:
        high = max(high, top / limits.bandwidth * 4)
    with styled():
        figure, (axes,) = sheet(4.6, 3.0)
        for i, (name, peak) in enumerate(sorted(limits.peaks, key=lambda pair: -pair[1])):
            left = max(low, peak / limits.bandwidth) if limits.bandwidth else low
            axes.plot([left, high], [peak, peak], color=INK, linestyle="-" if i == 0 else "--", linewidth=1.0)
            axes.annotate(name, (high, peak), xytext=(-2, 3), textcoords="offset points", ha="right", fontsize=7)
        if limits.bandwidth:
            axes.plot([low, top / limits.bandwidth], [low * limits.bandwidth, top], color=INK, linewidth=1.0)
        for i, (fused, unfused) in enumerate(every):
            shown = names[i] if len(results) > 1 else "as mapped"
            for side, style in ((unfused, "s"), (fused, "o")):
                full = {"color": colour(i)} if style == "o" else {"facecolor": "white", "edgecolor": colour(i)}
                for p in side[:-1] if len(side) > 2 else ():
                    axes.scatter([p.intensity or high], [p.attainable], s=14, marker=style, zorder=3, alpha=0.8, **full)
                whole = side[-1]
                told = shown if style == "o" else f"{shown}, unfused" if len(results) > 1 else "unfused, at best"
                at = whole.intensity or high
                axes.scatter([at], [whole.attainable], s=60, marker=style, zorder=4, label=told, **full)
            if fused[-1].achieved:
                axes.scatter([fused[-1].intensity or high], [fused[-1].achieved], s=30, marker="D", zorder=4, **_rim(i))
        axes.set(xscale="log", yscale="log", xlim=(low, high * 1.15))
        axes.set_xlabel(f"operations per byte of {results[0].machine.memories[0].name}")
        axes.set_ylabel("operations per second")
        axes.grid()
        axes.legend(fontsize=7, loc="lower right")
    return figure


def _rim(i: int) -> dict[str, str]:
    return {"facecolor": "#f0e442", "edgecolor": colour(i)}


def ski_slope(*sweeps: Sweep, labels: Sequence[str] | None = None) -> Figure:
    """The least value of the objective against the capacity of a memory, a curve per sweep; crosses: nothing is legal.

    Between two capacities a curve keeps the value of the smaller one: what fits there fits in more room. Bounds of
    results that are not proven optimal are dashed.
    """
    from matplotlib.ticker import FuncFormatter, NullLocator

    names = list(labels) if labels is not None else [sweep.title for sweep in sweeps]
    if len(names) != len(sweeps):
        raise SpecError(f"{len(names)} labels for {len(sweeps)} sweeps")
    with styled():
        figure, (axes,) = sheet(4.6, 3.0)
        lowest = min((p.answer.value for s in sweeps for p in s.points if isinstance(p.answer, Result)), default=1.0)
        for i, (name, sweep) in enumerate(zip(names, sweeps, strict=True)):
            found = [(p.capacity, p.answer) for p in sweep.points if isinstance(p.answer, Result)]
            nothing = [p.capacity for p in sweep.points if isinstance(p.answer, Unmapped)]
            xs, ys = [capacity for capacity, _ in found], [result.value for _, result in found]
            axes.step(xs, ys, where="post", color=colour(i), marker="os^D"[i % 4], markersize=4, label=name)
            proven = [result.certificate.bound if result.certificate else 0.0 for _, result in found]
            if any(low < value * (1 - 1e-9) for low, value in zip(proven, ys, strict=True)):
                axes.step(xs, proven, where="post", color=colour(i), linestyle="--", linewidth=0.9)
            axes.scatter(nothing, [lowest] * len(nothing), marker="x", color=colour(i), s=22)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        every = sorted({p.capacity for sweep in sweeps for p in sweep.points})
        round_ = [capacity for capacity in every if capacity.bit_count() == 1]
        ticks = round_ if len(round_) > 1 else every
        ticks = ticks[:: -(-len(ticks) // 12) or 1]
        axes.set_xticks(ticks, [bits(capacity) for capacity in ticks], rotation=45, ha="right")
        axes.xaxis.set_minor_locator(NullLocator())
        goal = next((p.answer.objective for s in sweeps for p in s.points if isinstance(p.answer, Result)), None)
        if goal is not None and goal.name == "traffic":
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bits(int(value))))
        axes.set_xlabel(f"capacity of {sweeps[0].memory}")
        axes.set_ylabel(f"least {goal}" if goal else "")
        axes.grid()
        axes.legend(fontsize=7)
    return figure

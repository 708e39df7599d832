"""Figures for papers: every function draws saved results, searches nothing, and returns a matplotlib figure.

>>> from einloom import figures
>>> sorted(figures.KINDS)[:3]
['cascade', 'energy', 'latency']

`save` writes PDF, SVG or PNG. matplotlib comes with the extra ``figures``; without it MissingExtra says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...result.sweep import read_sweep
from .bars import energy_bars, latency_breakdown, progress, traffic_bars
from .canvas import FORMATS, save
from .curves import pareto, roofline, ski_slope
from .graphs import cascade, occupancy
from .trees import looptree

__all__ = [
    "FORMATS",
    "KINDS",
    "cascade",
    "energy_bars",
    "latency_breakdown",
    "looptree",
    "occupancy",
    "pareto",
    "progress",
    "read_sweep",
    "roofline",
    "save",
    "ski_slope",
    "traffic_bars",
]

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

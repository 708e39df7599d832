"""Rank correlation of the relaxed cost that `gradient` descends with `evaluate`: ``python -m bench.relaxed``.

States are drawn as `gradient` draws its starts; each is priced by the relaxed cost at its own trips, all gates closed,
and by `evaluate`. Spearman's coefficient is that of the ranks. See docs/mappers.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import correlation, median

import numpy as np

from einloom.cost.evaluate import evaluate
from einloom.mapspace.registry import space_for
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics.gradient import Descent
from einloom.search.heuristics.points import Points
from einloom.search.heuristics.tile_model import TileModel

from .auto import named
from .mappers import PROBLEMS
from .measured import Column
from .rows import replace, stamp
from .speeds import fitting

RESULTS = Path(__file__).parent / "results" / "relaxed.csv"
ASKED = ("GPT-3 6.7B, EDP", "16 matmuls, energy", "BERT attention, latency")


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 0; equal values have the mean of theirs."""
    order = sorted(values)
    return [(order.index(v) + len(order) - 1 - order[::-1].index(v)) / 2 for v in values]


def row(name: str, states: int) -> dict[str, object]:
    """Spearman's coefficient over so many drawn states, and how far the relaxed cost is off."""
    asked, rng = named(name), Random(0)
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points = Points(asked, space, Evaluator(asked, space))
    relaxed, true = [], []
    for _ in range(states):
        state = fitting(points, rng)
        model = TileModel(points, state)
        descent = Descent(model, state)
        loss, _, _ = descent._loss(model.coordinates(), np.ones(len(descent.gates)), 0.0)
        cost = evaluate(asked.workload, asked.machine, points.encoding.decode(state), asked.latency_rule)
        relaxed.append(float(np.exp(loss)))
        true.append(asked.objective.value(cost))
    off = [abs(a / b - 1) for a, b in zip(relaxed, true, strict=True)]
    return {
        "problem": name,
        "states": states,
        "spearman": f"{correlation(ranks(relaxed), ranks(true)):.4f}",
        "median_off": f"{median(off):.6f}",
        "worst_off": f"{max(off):.6f}",
        **stamp(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the CSV anew."""
    parser = argparse.ArgumentParser(prog="python -m bench.relaxed", description=__doc__.split("\n")[0])
    parser.add_argument("--states", type=int, default=200)
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS))
    asked = parser.parse_args(arguments)
    found = [row(name, asked.states) for name in asked.problem or ASKED]
    for one in found:
        print(*list(one.values())[:-3], sep=", ", flush=True)
    replace(RESULTS, found, ("problem",), [(name,) for name in PROBLEMS])


COLUMNS = (
    Column("problem", "problem"),
    Column("states", "states"),
    Column("Spearman's coefficient", "spearman"),
    Column("relaxed cost off by, median", lambda row: f"{float(row['median_off']):.2%}"),
    Column("worst", lambda row: f"{float(row['worst_off']):.2%}"),
)

if __name__ == "__main__":
    main()

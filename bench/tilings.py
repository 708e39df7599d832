"""TileFlow's mapper on its attentions, in each of its dataflows: ``python -m bench.tilings``. See docs/mappers.md.

The method `tileflow` chooses tiles, orders and stores within each dataflow of TileFlow's Table 5, on the shapes of its
Table 2 and its Edge, least latency; beside it the optimum that `exact` proves in the same space (``bench.dataflows``),
the cycles of the sample output that TileFlow's authors ship, and the printed mean speed-ups over layer by layer. A row
that the CSV has is not measured again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

from einloom.dataflows.files import dataflow
from einloom.problem import Budget, Objective
from einloom.published.cells import ATTENTIONS
from einloom.published.dataflows import cycles, problems
from einloom.search.registry import method
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

from . import dataflows
from .cpu_time import run
from .measured import Row
from .rows import append, had, stamp

RESULTS = Path(__file__).parent / "results" / "tilings.csv"
MACHINE = "tileflow-edge"
PRINTED = {  # dataflow -> mean speed-up over layer by layer on Edge (TileFlow, section 7)
    "layerwise": 1.0,
    "uni-pipe": 1.62,
    "flat-h": 3.59,
    "flat-r": 2.89,
    "chimera": 2.91,
    "tileflow-attention": 6.65,
}
SHAPES = ATTENTIONS[:9]  # the sample output has neither T5 nor XLM
SAMPLE = {  # dataflow -> cycles of the sample output on Edge, in the order of the shapes
    "layerwise": (1720321, 2621377, 3440641, 645369, 907347, 991561, 411320, 548425, 598601),
    "uni-pipe": (1048576, 1572864, 2097152, 393216, 524288, 655360, 263424, 351232, 439040),
    "flat-h": (589824, 524288, 1048576, 131072, 262144, 327680, 98784, 175616, 219520),
    "flat-r": (524288, 1376256, 1835008, 229376, 294912, 327680, 100352, 200704, 219520),
    "chimera": (1572864, 524288, 3145728, 196608, 294912, 327680, 87808, 175616, 219520),
    "tileflow-attention": (262144, 393216, 524288, 65536, 131072, 163840, 65856, 76832, 175616),
}


def rows(shape: str, flow: str, points: int, seeds: int) -> list[dict[str, object]]:
    """A row: cycles of the median seed; nothing where the dataflow has no mapping of the shape."""
    hardware = load_machine(MACHINE).in_full_use()
    proven = {(c.workload, c.dataflow): c for c in dataflows.read(dataflows.RESULTS) if c.machine == MACHINE}
    best = proven[shape, flow]
    if best.cycles is None:
        return []
    labelled = list(problems(dataflow(flow), load_workload(shape), hardware, Objective("latency")))
    found = []
    spent = 0.0
    for seed in range(seeds):
        for one in labelled:
            done = run(method("tileflow", {"seed": seed}), one.problem, Budget(steps=points))
            spent += done.seconds
            found.append(float("inf") if done.found is None else cycles(hardware, done.found.cost))
    return [
        {
            "workload": shape,
            "dataflow": flow,
            "points": points,
            "seeds": seeds,
            "cycles": f"{median(found):.6g}",
            "best_seed": f"{min(found):.6g}",
            "optimum": f"{best.cycles:.6g}",
            "cpu_seconds": f"{spent / seeds:.2f}",
            **stamp(),
        }
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the CSV lacks."""
    parser = argparse.ArgumentParser(prog="python -m bench.tilings", description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workload", action="append", choices=SHAPES, help="of these shapes; by default all")
    options = parser.parse_args(arguments)
    known = had(RESULTS, "workload", "dataflow")
    for shape in options.workload or SHAPES:
        for flow in PRINTED:
            for row in [] if (shape, flow) in known else rows(shape, flow, options.points, options.seeds):
                append(RESULTS, row)
                print(*list(row.values())[:-3], sep=", ", flush=True)


def table(rows: list[Row]) -> str:
    """A line per dataflow: mean speed-ups over layer by layer, as printed, of the sample, the mapper and the optima."""
    heads = (
        "dataflow", "shapes", "printed", "sample output", "`tileflow`, speed-up", "proven optimum, speed-up",
        "`tileflow` above the optimum, median", "worst", "sample output over the optimum, median",
    )  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    at = {(row["workload"], row["dataflow"]): row for row in rows}
    for flow, printed in PRINTED.items():
        shapes = [shape for shape in SHAPES if (shape, flow) in at]
        mine = [at[shape, flow] for shape in shapes]
        base = [at[shape, "layerwise"] for shape in shapes]
        sample = [SAMPLE[flow][SHAPES.index(shape)] for shape in shapes]
        first = [SAMPLE["layerwise"][SHAPES.index(shape)] for shape in shapes]
        gaps = [float(row["cycles"]) / float(row["optimum"]) - 1 for row in mine]
        over = [one / float(row["optimum"]) for one, row in zip(sample, mine, strict=True)]
        cells = (
            f"`{flow}`",
            str(len(shapes)),
            f"{printed:.2f}",
            *(
                f"{mean(a / b for a, b in zip(before, after, strict=True)):.2f}"
                for before, after in (
                    (first, sample),
                    ([float(r["cycles"]) for r in base], [float(r["cycles"]) for r in mine]),
                    ([float(r["optimum"]) for r in base], [float(r["optimum"]) for r in mine]),
                )
            ),
            f"{median(gaps):.0%}",
            f"{max(gaps):.0%}",
            f"{median(over):.1f} times",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

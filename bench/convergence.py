"""How soon search methods come near the optimum, in units of what `exact` takes: ``python -m bench.convergence``.

FFM's Figure 8: a layer of GPT-3 6.7B with 64 sequences of 4,096 tokens on TPU-v4i, EDP. `exact` runs to its proof once;
then Timeloop's (`random`), TileFlow's (`genetic`) and SET's (`anneal`) method have a multiple of its CPU seconds, with
machine code from the start. A row per method: the mean of the seeds at each mark, and their standard deviation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev

from einloom.search.registry import method

from .auto import named
from .cpu_time import Run, heuristic, proving
from .measured import Column, Row
from .rows import replace, stamp

RESULTS = Path(__file__).parent / "results" / "convergence.csv"
PROBLEM = "GPT-3 6.7B, 64 sequences, EDP"
METHODS = ("random", "genetic", "anneal")
MARKS = (0.1, 0.3, 1.0, 3.0, 10.0)  # times the seconds of `exact`
INFINITE = float("inf")
PRINTED = {"random": "Timeloop", "genetic": "TileFlow", "anneal": "SET"}


def after(run: Run, seconds: float) -> float:
    """The best value of a run after so many CPU seconds; infinite without one."""
    trace = () if run.found is None else run.found.trace
    return min((point.best for point in trace if point.best is not None and point.seconds <= seconds), default=INFINITE)


def row(name: str, seconds: float, optimum: float, seeds: range, times: float) -> dict[str, object]:
    """Gaps to the optimum of a method at each mark up to so many times the seconds of `exact`."""
    problem = named(PROBLEM)
    runs = [heuristic(name, problem, times * seconds, {"seed": seed}) for seed in seeds]
    found: dict[str, object] = {"method": name, "seeds": len(seeds), "exact_cpu_s": f"{seconds:.2f}"}
    for mark in MARKS:
        gaps = [after(run, mark * seconds) / optimum - 1 for run in runs] if mark <= times else []
        known = bool(gaps) and max(gaps) < INFINITE
        found[f"mean_{mark:g}"] = f"{fmean(gaps):.6f}" if known else ""
        found[f"deviation_{mark:g}"] = f"{stdev(gaps):.6f}" if known and len(gaps) > 1 else ""
    return {**found, **stamp()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the rows of these methods anew."""
    parser = argparse.ArgumentParser(prog="python -m bench.convergence", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, metavar="SEED")
    parser.add_argument("--times", type=float, default=3.0, help="of the CPU seconds of `exact`")
    parser.add_argument("--method", action="append", choices=METHODS)
    asked = parser.parse_args(arguments)
    proof = proving(method("exact"), named(PROBLEM))
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    for name in asked.method or METHODS:
        made = row(name, proof.seconds, proof.value, seeds, asked.times)
        print(*list(made.values())[:-3], sep=", ", flush=True)
        replace(RESULTS, [made], ("method",), [(one,) for one in METHODS])


def _gap(mark: float) -> Callable[[Row], str]:
    def shown(row: Row) -> str:
        mean, deviation = row[f"mean_{mark:g}"], row[f"deviation_{mark:g}"]
        spread = f" ± {float(deviation):.1%}" if deviation else ""
        return f"{float(mean):.1%}{spread}" if mean else "-"

    return shown


COLUMNS = (
    Column("method", "method"),
    Column("as FFM reads", lambda row: PRINTED[row["method"]]),
    Column("seeds", "seeds"),
    Column("`exact`, CPU s", "exact_cpu_s"),
    *(Column(f"gap after {mark:g} times that", _gap(mark)) for mark in MARKS),
)

if __name__ == "__main__":
    main()

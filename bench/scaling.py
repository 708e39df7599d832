"""CPU time against the length of a chain of matmuls: ``python -m bench.scaling``. The form of FFM's Figure 9.

A process per length, from the command line to the written JSON; one CSV row each, and a figure of the whole CSV.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from einloom.errors import MissingExtra
from einloom.version import VERSION

from .measure import measure
from .rows import commit

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "scaling.csv"
FIGURE = HERE.parent / "docs" / "figures" / "scaling"
LENGTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 2000, 4000)
MACHINE = "simple:dram_energy=100,glb_bits=8388608"
COLUMNS = "length time einloom_version commit command cpu_s wall_s rss_mb energy outcome".split()


def workload(length: int) -> str:
    """The chain of so many equal matmuls, as the zoo calls it."""
    return f"matmuls:n={length},m=8192,kn=4096,bits=8"


def measured(length: int, cache: Path, timeout: float) -> dict[str, object]:
    """One search in a process of its own, as a row of the CSV."""
    words = ["map", workload(length), MACHINE, "--objective", "energy"]
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = [sys.executable, "-m", "einloom", *words, "--json", "result.json"]
        environment = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(HERE.parent / "src")}
        done = measure(command, folder, timeout, environment)
        energy = ""
        if done.outcome == "finished":
            energy = repr(json.loads((folder / "result.json").read_text())["certificate"]["value"])
    numbers = (f"{done.cpu:.2f}", f"{done.wall:.2f}", f"{done.rss / 10**6:.0f}", energy, done.outcome)
    asked = (length, started, VERSION, commit(), " ".join(["einloom", *words]))
    return dict(zip(COLUMNS, (*asked, *numbers), strict=True))


def draw(rows: Sequence[dict[str, str]]) -> tuple[Path, Path]:
    """The figure of the finished rows as SVG and PNG; returns their paths."""
    try:
        import matplotlib  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise MissingExtra("matplotlib", "figures") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]

    finished = [row for row in rows if row["outcome"] == "finished"]
    lengths = [int(row["length"]) for row in finished]
    seconds = [float(row["cpu_s"]) for row in finished]
    figure, (whole, each) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    whole.loglog(lengths, seconds, "o-", color="#0072b2")
    whole.set(xlabel="matmuls in the chain", ylabel="CPU seconds, whole process", title="all of it")
    each.loglog(lengths, [1000 * s / n for s, n in zip(seconds, lengths, strict=True)], "s-", color="#d55e00")
    each.set(xlabel="matmuls in the chain", ylabel="CPU milliseconds per Einsum", title="per Einsum")
    for axes in (whole, each):
        axes.grid(True, which="major", alpha=0.3)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    paths = FIGURE.with_suffix(".svg"), FIGURE.with_suffix(".png")
    for path in paths:
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return paths


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of the CSV; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print progress, write the CSV and the figure; 1 if a run failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=__doc__.split("\n")[0])
    parser.add_argument("--up-to", type=int, default=LENGTHS[-1], metavar="N", help="longest chain (default 4000)")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="for each run (default 600)")
    parser.add_argument("--again", action="store_true", help="measure also the lengths that the CSV has already")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    rows = [] if options.again else [row for row in rows_of(options.output) if row["einloom_version"] == VERSION]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    done = {int(row["length"]) for row in rows}
    with tempfile.TemporaryDirectory() as cache:
        for length in (n for n in LENGTHS if n <= options.up_to and n not in done):
            print(f"{length} matmuls ...", file=sys.stderr, flush=True)
            row = measured(length, Path(cache), options.timeout)
            rows.append({key: str(value) for key, value in row.items()})
            print(f"{length:>5} matmuls  {row['cpu_s']:>7} s CPU  {row['rss_mb']:>5} MB  {row['outcome']}", flush=True)
            with options.output.open("w", newline="") as stream:
                writer = csv.DictWriter(stream, COLUMNS)
                writer.writeheader()
                writer.writerows(sorted(rows, key=lambda r: int(r["length"])))
    try:
        print("figure:", *(path.name for path in draw(sorted(rows, key=lambda r: int(r["length"])))))
    except MissingExtra as error:
        print(f"bench: no figure: {error}", file=sys.stderr)
    return 1 if any(row["outcome"] != "finished" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

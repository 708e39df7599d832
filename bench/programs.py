"""Mappings as C programs that run: ``python -m bench.programs``. See docs/running.md.

For each problem its best mapping within some seconds, the program of it, and whether results and counts are those of
NumPy and of the price; small ones are executed by the simulator, too. A row each in the CSV. Exits with 1 if a
difference is found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import einloom as el
from einloom.api import SIMULATED_POINTS
from einloom.codegen.run import CLOSE

from .measured import Column, Row
from .rows import ROOT, had, replace, stamp

RESULTS = ROOT / "bench" / "results" / "programs.csv"
SECONDS = 60.0
KEYS = ("workload", "machine", "words")
PROBLEMS: tuple[tuple[str, str, dict[str, str]], ...] = (  # workload, machine, further words of `map`
    ("matmul:m=64,n=64,k=64", "two-level", {}),
    ("matmul:m=256,n=256,k=256", "simple", {}),
    ("matmul:m=197,n=197,k=197", "nvdla", {"space": "ragged"}),
    ("conv-chain", "tileflow-edge", {}),
    ("mobilenet-block", "two-level", {}),
    ("tileflow-bert-s", "tileflow-edge", {"dataflow": "flat-r"}),
    ("tileflow-bert-s", "tileflow-edge", {"dataflow": "flash-attention"}),
    ("conv-chain:h=15,w=15", "nvdla", {"space": "ragged"}),
    ("gpt2-124m:layers=1,tokens=1,cached=64,decode=true", "tpu-v4i-vector", {}),
    ("mamba-130m:layers=1", "ffm-edge-vector", {}),
    ("resnet18:image=32,width=16", "two-level", {}),
    ("vgg16:image=32,width=8", "nvdla", {}),
    ("bert-base:layers=2,tokens=16", "ffm-edge-vector", {}),
    ("gpt3-6.7b:batch=1,tokens=16", "ffm-edge", {}),
)
COLUMNS = (
    Column("workload", "workload"),
    Column("machine", lambda row: f"{row['machine']} {row['words']}".strip()),
    Column("lines of C", lambda row: f"{int(row['lines']):,}"),
    Column("operations", lambda row: f"{int(row['operations']):,}"),
    Column("moves", lambda row: f"{int(row['moves']):,}"),
    Column("s", "seconds"),
    Column("simulator, s", lambda row: row["simulator_seconds"] or "-"),
    Column("largest difference to NumPy", "error"),
    Column("counts as priced", lambda row: f"{row['equal']} of {row['counts']}"),
)


def spelled(words: dict[str, str]) -> str:
    """Further words of `map`."""
    return " ".join(f"--{key} {value}" for key, value in words.items())


def row(workload: str, machine: str, words: dict[str, str]) -> dict[str, object]:
    """One problem: its best mapping, run."""
    best = el.map(workload, machine, "energy", seconds=SECONDS, **words)
    done = el.run(best, said=print)
    begun = time.perf_counter()
    seen = None
    if sum(done.run.operations.values()) <= SIMULATED_POINTS // 4:
        seen = el.simulate(best)
    took = time.perf_counter() - begun
    if seen is not None and not seen.ok:
        raise SystemExit(f"the simulator differs: {seen.differences}")
    return {
        "workload": workload,
        "machine": machine,
        "words": spelled(words),
        "lines": done.run.lines,
        "operations": sum(done.run.operations.values()),
        "moves": done.run.moves,
        "seconds": f"{done.run.seconds:.2f}",
        "simulator_seconds": "" if seen is None else f"{took:.1f}",
        "error": f"{max(done.run.errors.values()):.0e}",
        "equal": len(done.run.counts) - len(done.differences),
        "counts": len(done.run.counts),
        **stamp(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the CSV does not have yet; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m bench.programs", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    wrong = 0
    for workload, machine, more in PROBLEMS:
        if (workload, machine, spelled(more)) not in had(asked.out, *KEYS):
            made = row(workload, machine, more)
            print(*list(made.values())[:-3], sep=", ", flush=True)
            replace(asked.out, [made], KEYS, [(one, other, spelled(words)) for one, other, words in PROBLEMS])
            wrong += made["equal"] != made["counts"] or float(str(made["error"])) > CLOSE
    return int(wrong > 0)


def table(rows: list[Row]) -> str:
    """The rows, and what they have together."""
    heads = [[c.head for c in COLUMNS], ["---"] * len(COLUMNS), *([c.of(one) for c in COLUMNS] for one in rows)]
    moves, counts = sum(int(one["moves"]) for one in rows), sum(int(one["counts"]) for one in rows)
    equal = sum(int(one["equal"]) for one in rows)
    lines = [f"| {' | '.join(line)} |" for line in heads]
    return "\n".join([*lines, "", f"Together {moves:,} moves in {counts:,} counts, of which {equal:,} are as priced."])


if __name__ == "__main__":
    sys.exit(main())

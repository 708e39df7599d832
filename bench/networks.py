"""Whole networks of the zoo in one search each: ``python -m bench.networks``. One CSV row per network and machine.

Each search is a process of its own, so that CPU seconds are those of the whole command, start-up included, and the peak
of memory is its own. A search that the budget ends is written with the gap that it has proven.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from einloom.result import Result
from einloom.result.unmapped import read_answer
from einloom.zoo.workload_by_name import load_workload

from .measure import Measured, measure
from .mutants.table import read
from .rows import ROOT, append, stamp

RESULTS = ROOT / "bench" / "results" / "networks.csv"
MACHINES = ("tpu-v4i-vector", "ffm-edge-vector")
NETWORKS = (
    "resnet18",
    "resnet50",
    "vgg16",
    "mobilenet-v2",
    "mobilenet-v3",
    "efficientnet-b0",
    "convnext-t",
    "swin-t",
    "bert-base",
    "gpt2-124m",
    "vit-b16",
    "t5-small",
    "whisper-base",
    "mamba-130m",
    "llama3-8b-net:layers=2",
    "llama3-8b-net:layers=8",
    "llama3-8b-net",
)


def solved(network: str, machine: str, seconds: float, folder: Path) -> tuple[Result | None, Measured]:
    """The answer, None if there is no mapping, and what the command used."""
    command = [sys.executable, "-m", "einloom", "map", network, machine, "--objective", "energy", "--json", "r.json"]
    used = measure([*command, "--budget-seconds", str(seconds)], folder, 2 * seconds)
    path = folder / "r.json"
    found = read_answer(path) if path.exists() else None
    return (found if isinstance(found, Result) else None), used


def row(network: str, machine: str, seconds: float) -> dict[str, object]:
    """One row."""
    workload = load_workload(network)
    with tempfile.TemporaryDirectory() as folder:
        found, used = solved(network, machine, seconds, Path(folder))
    known = found is not None and found.certificate is not None
    return {
        "network": network,
        "machine": machine,
        "einsums": len(workload.einsums),
        "energy_j": f"{found.cost.energy:.6e}" if found is not None else "",
        "gap": f"{found.certificate.gap:.4f}" if known else "",  # type: ignore[union-attr]
        "cpu_s": f"{used.cpu:.1f}",
        "peak_mb": f"{used.rss / 2**20:.0f}",
        **stamp(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="budget of one search, of wall time")
    parser.add_argument("--only", default="", help="networks with this in their names")
    parser.add_argument("--machine", action="append", help="instead of both; repeatable")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    done = {(one["network"], one["machine"]) for one in read(asked.output)}
    for network in NETWORKS:
        for machine in (asked.machine or MACHINES) if asked.only in network else ():
            if (network, machine) not in done:
                made = row(network, machine, asked.seconds)
                append(asked.output, made)
                print(", ".join(str(value) for value in made.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

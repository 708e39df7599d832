"""Whole imported networks against a run of their ONNX files: ``python -m bench.agreement``. One CSV row a network.

Each network is made with random weights by torch's exporter, if its file is not there yet, and read by einloom; every
tensor of its cascade that has an ONNX name is interpreted in NumPy, in double precision, and held against that value of
onnxruntime (or of the package onnx where onnxruntime is missing): as read, simplified, and as the workload's file says
it. ``--faults`` plants mistakes in the importer instead and says which network shows them. Exits with 1 if a number
differs, or a fault stays unnoticed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from einloom.interop.onnx.multiplications import counted

from ..mutants.table import read
from ..rows import ROOT, append, stamp
from .compare import SAME, Comparison, ReferenceRun, compared, noticed, reference
from .faults import FAULTS
from .mixture import mixture
from .models import NETWORKS, export

RESULTS = ROOT / "bench" / "results" / "agreement.csv"
FAULT_RESULTS = ROOT / "bench" / "results" / "agreement-faults.csv"
FILES = ROOT / "build" / "onnx"
SMALL = ("bert", "gpt2", "llama", "vit", "shufflenet", "squeezenet", "resnext", "t5", "mamba2", "swin-t")
"""Networks that faults are planted in, one after the other until one shows it; `mixture` is the last."""


def row(name: str, run: ReferenceRun) -> tuple[dict[str, object], Comparison]:
    """One network."""
    started = time.process_time()
    found = compared(run)
    seconds = time.process_time() - started
    about = NETWORKS[name]
    fates = Counter(fate.operator for fate in found.made.fates)
    return {
        "network": about.title,
        "size": about.size,
        "nodes": len(run.graph.nodes) + run.graph.folded,
        "einsums_read": found.einsums[0],
        "einsums": found.einsums[1],
        "multiplications": counted(run.graph)[0],
        "mapped": sum(step.multiplications for step in found.made.steps),
        "cut": " ".join(f"{count} {operator}" for operator, count in fates.items()),
        "tensors_read": found.raw.tensors,
        "tensors": found.simplified.tensors,
        "worst_read": f"{found.raw.worst:.1e}",
        "worst": f"{found.simplified.worst:.1e}",
        "worst_written": f"{found.written.worst:.1e}",
        "where": found.written.where if found.written.worst == found.worst else found.raw.where,
        "cpu_s": f"{seconds:.1f}",
        "made_by": f"torch {_version('torch')}, {about.package} {_version(about.package)}",
        "against": f"onnxruntime {_version('onnxruntime')}" if _version("onnxruntime") else f"onnx {_version('onnx')}",
        **stamp(),
    }, found


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def numbers(only: str, folder: Path, output: Path) -> int:
    """A row for each network that has none yet; 1 if a number differs."""
    done = {one["network"] for one in read(output)}
    bad = 0
    for name, about in NETWORKS.items():
        if about.title in done or (only and name != only):
            continue
        made, found = row(name, _run(name, folder))
        append(output, made)
        print(", ".join(str(value) for value in made.values()), flush=True)
        bad += not found.worst < SAME
    return int(bad > 0)


def _run(name: str, folder: Path) -> ReferenceRun:
    path = folder / f"{name}.onnx"
    if not path.exists():
        export(name, path)
    return reference(path)


def faults(folder: Path, output: Path) -> int:
    """A row for each fault that has none yet; 1 if one is not noticed."""
    done = {(one["rule"], one["fault"]) for one in read(output)}
    runs: list[ReferenceRun] = []
    missed = 0
    for fault in FAULTS:
        if (fault.rule, fault.words) in done:
            continue
        runs = runs or [*(_run(name, folder) for name in SMALL), reference(mixture(folder / "mixture.onnx"))]
        found = noticed(fault, runs)
        title = NETWORKS[found.network].title if found.network in NETWORKS else found.network
        made = {"rule": fault.rule, "fault": fault.words, "network": title, "difference": found.how}
        append(output, {**made, "same_before": found.same, **stamp()})
        print(", ".join(str(value) for value in (*made.values(), found.same)), flush=True)
        missed += not found.network
    return int(missed > 0)


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.agreement", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", choices=["", *NETWORKS], metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--faults", action="store_true", help="plant mistakes in the importer instead")
    parser.add_argument("--files", type=Path, default=FILES, help="where the ONNX files are, or are made")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args(words)
    if asked.faults:
        return faults(asked.files, asked.output or FAULT_RESULTS)
    return numbers(asked.only, asked.files, asked.output or RESULTS)


if __name__ == "__main__":
    sys.exit(main())

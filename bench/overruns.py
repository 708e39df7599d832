"""By how much `--budget-seconds` is overrun, whole processes: ``python -m bench.overruns --seconds 3``.

A budget counts seconds of the wall from the start of the program. A row says how long the process ran, how many CPU
seconds it had of that, and the average load of the machine in the last minute: what is beyond the budget on a busy
machine is partly other programs' time. A command that is in the CSV already is skipped.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .measure import measure
from .rows import ROOT, append, had, stamp

PATIENCE = 20
"""Times the budget after which a process is given up."""
CSV = ROOT / "bench" / "results" / "overruns.csv"
COMMANDS = (
    "map conv-chain tileflow-edge --objective edp",
    "map resnet18 tileflow-cloud --objective edp",
    "map llama3-8b-net:layers=8 tpu-v4i-vector",
    "map swin-t tileflow-edge --objective edp",
    "map convnext-t tileflow-cloud --objective edp",
    "map resnet18 tileflow-cloud --objective latency --full-use",
    "map gpt2 nvdla --objective edp --space ragged",
    "map whisper-base tpu-v4i-vector --objective edp --space ragged",
    "map tileflow-cc1 tileflow-cloud --objective edp --space ragged",
    "map tileflow-cc1 tileflow-cloud --objective latency --space ragged --full-use",
    "map tileflow-cc3 tileflow-cloud --objective latency --space ragged --dataflow spread-convolution",
    "explain conv-chain tileflow-edge --objective edp",
    "explain gpt3-6.7b:batch=1,tokens=2048 nvdla --objective edp",
    "explain resnet18 tileflow-edge --objective edp",
    "explain llama3-8b-net:layers=8 tpu-v4i-vector",
    "explain tileflow-bert-s tileflow-cloud --objective edp",
    "compare conv-chain tileflow-edge --objective edp --methods exact",
)


def row(command: str, seconds: float) -> dict[str, object]:
    """The measured columns of one command."""
    words = [sys.executable, "-m", "einloom", *command.split(), "--budget-seconds", f"{seconds:g}"]
    with tempfile.TemporaryDirectory() as folder:
        run = measure(words, Path(folder), PATIENCE * seconds, {"PYTHONPATH": str(ROOT / "src")})
    if run.code not in (0, 1):
        raise RuntimeError(f"einloom {command}: {run.outcome}: {run.err.strip()}")
    return {
        "command": command,
        "budget_s": f"{seconds:g}",
        "wall_s": f"{run.wall:.2f}",
        "beyond_s": f"{max(0.0, run.wall - seconds):.2f}",
        "cpu_s": f"{run.cpu:.2f}",
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measure what is not in the CSV yet."""
    parser = argparse.ArgumentParser(prog="python -m bench.overruns", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="the budget (default 3)")
    parser.add_argument("--csv", type=Path, default=CSV)
    options = parser.parse_args(words)
    known = had(options.csv, "command")
    for command in COMMANDS:
        if (command,) not in known:
            found = row(command, options.seconds)
            append(options.csv, {**found, **stamp()})
            said = f"{found['wall_s']} s, {found['cpu_s']} CPU s at load {found['load']}"
            print(f"einloom {command}: {said}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

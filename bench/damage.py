"""Damaged files by the ten thousand, block by block: ``python -m bench.damage --kind onnx``. One CSV row a block.

Each block is a process of its own (`bench.fuzz`), so that a reader that brings the interpreter down, or that waits in
C++ where no alarm of Python reaches it, is noticed too. Blocks that the CSV has are not read again. Exits with 1 if any
file broke a rule.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .measure import measure
from .measured import Row
from .mutants.table import read
from .rows import ROOT, append, stamp

RESULTS = ROOT / "bench" / "results" / "damage.csv"
BLOCK = 500
SECONDS = 900.0
"""Of wall time for one block."""


def block(kind: str, seed: int, first: int, files: int) -> dict[str, object]:
    """A row for these files."""
    command = [sys.executable, "-m", "bench.fuzz", "--kind", kind, "--json", "--seed", str(seed)]
    with tempfile.TemporaryDirectory() as folder:
        used = measure(
            [*command, "--first", str(first), "--files", str(files)],
            Path(folder),
            SECONDS,
            {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        )
    lines = used.out.splitlines()
    said = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    broken = said.get("broken", [f"{kind} from {first} on: {used.outcome}: {used.err[-200:]}"])
    for what in broken:
        print(f"broken: {what}")
    return {
        "kind": kind,
        "seed": seed,
        "first": first,
        "files": files,
        "read": said.get("read", ""),
        "refused": said.get("refused", ""),
        "broken": len(broken),
        "slowest_s": f"{said.get('slowest', 0):.2f}",
        "cpu_s": f"{used.cpu:.1f}",
        "peak_mb": f"{used.rss / 2**20:.0f}",
        **stamp(),
    }


def table(rows: Sequence[Row]) -> str:
    """The sums for each kind, as Markdown."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    lines = ["| file | damaged | read | refused by name | a rule broken | slowest, CPU s | peak, MB |"]
    lines.append("|---|---|---|---|---|---|---|")
    for kind, each in kinds.items():
        sums = [f"{sum(int(row[key]) for row in each):,}" for key in ("files", "read", "refused", "broken")]
        most = [max(each, key=lambda row: float(row[key]))[key] for key in ("slowest_s", "peak_mb")]
        lines.append(f"| {' | '.join((kind, *sums, *most))} |")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.damage", description=__doc__.split("\n")[0])
    parser.add_argument("--kind", required=True, help="as of bench.fuzz; onnx-squeezenet and such are whole networks")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args(words)
    done = {(row["kind"], row["seed"], row["first"]) for row in read(asked.output)}
    bad = 0
    for first in range(0, asked.files, BLOCK):
        if (asked.kind, str(asked.seed), str(first)) not in done:
            made = block(asked.kind, asked.seed, first, min(BLOCK, asked.files - first))
            append(asked.output, made)
            print(", ".join(str(value) for value in made.values()), flush=True)
            bad += int(str(made["broken"]))
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())

"""What `einloom verify` takes beside the search: ``python -m bench.again``. See bench/README.md.

Every problem is searched, and its saved result verified, in a process of its own each; compiled sources and machine
code are there already. A row of ``bench/results/again.csv`` per problem: CPU seconds of both, their ratio, the verdict,
and the route of the second solution.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from einloom.workload.files import workload_text

from . import sizes
from .measure import Measured, measure
from .measured import Column
from .peer import HERE
from .rows import append, had, stamp

RESULTS = HERE / "results" / "again.csv"
LAYER = "gpt3-6.7b:batch=1,tokens=2048"
SMALL = "simple:dram_energy=100,glb_bits=8388608"
ATTENTION = """schema: workload/1
name: attention-197
ranks: {h: 12, m: 197, p: 197, e: 64, f: 64}
bits: 16
einsums:
  - QK[h,m,p] = Q[h,m,e] * K[h,p,e]
  - S[h,m,p] = softmax(QK[h,m,p])
  - AV[h,m,f] = S[h,m,p] * V[h,p,f]
"""
STEPS = """schema: workload/1
name: two-steps
ranks: {b: 256, i: 256, j: 256, k: 256}
bits: 8
einsums:
  - H1[b,j] = X[b,i] * W[i,j]
  - H2[b,k] = H1[b,j] * W[j,k]
"""
FILES = {
    "attention.yaml": ATTENTION,
    "steps.yaml": STEPS,
    **{
        name: workload_text(next(one for one in sizes.WORKLOADS if one.name == title))
        for name, title in (
            ("vit-block.yaml", "ViT block, 197 tokens"),
            ("classifier.yaml", "classifier 16 x 50257 x 768 (GPT-2)"),
            ("alexnet-3.yaml", "AlexNet 3: 384 x 256, 13 x 13, 3 x 3"),
            ("whisper.yaml", "feed-forward 1500, 512, 2048 (Whisper base)"),
        )
    },
}
PUBLISHED = (
    "matmuls:n=2,m=64,kn=64,bits=8 tpu-v4i",
    f"{LAYER} tpu-v4i --max-fused-loops 1",
    f"{LAYER} tpu-v4i --objective edp",
    f"{LAYER} tpu-v4i --objective latency",
    f"{LAYER} tpu-v4i --objective pareto",
    f"{LAYER} tpu-v4i --objective edp --order free",
    f"{LAYER},layers=32 tpu-v4i --objective edp",
    "gpt3-6.7b:decode=true,cached=2047 tpu-v4i --objective edp",
    "gpt3-6.7b:batch=64,tokens=4096 tpu-v4i --objective edp",
    "gpt3-6.7b:batch=4,tokens=256 simple",
    "llama3-8b:batch=1,tokens=2048,layers=4 tpu-v4i --objective edp",
    "mobilenet-block two-level",
    f"matmuls:n=16,m=8192,kn=4096,bits=8 {SMALL}",
    f"matmuls:n=1000,m=8192,kn=4096 {SMALL}",
    f"resnet18 {SMALL}",
    "tileflow-bert-s tileflow-edge --objective latency --dataflow flat-h",
    "attention.yaml tpu-v4i --objective edp --space ragged",
    "attention.yaml ffm-edge --objective edp --space ragged",
    "attention.yaml nvdla --objective edp --space ragged",
    "attention.yaml tpu-v4i --objective edp --space ragged --relax integer",
    "vit-block.yaml tpu-v4i --objective edp --space ragged",
    "vit-block.yaml ffm-edge --objective edp --space ragged",
    "vit-block.yaml nvdla --objective edp --space ragged",
    "classifier.yaml nvdla --objective edp --space ragged",
    "alexnet-3.yaml tpu-v4i --objective edp --space ragged",
    "whisper.yaml tpu-v4i --objective edp --space ragged",
    "gpt3-6.7b:batch=1,tokens=197 tpu-v4i --objective edp --space ragged",
    f"{LAYER} tpu-v4i --objective edp --space ragged",
    "steps.yaml ffm-edge --objective edp --stores shared",
    "conv-chain tileflow-edge --objective edp",
    "tileflow-cc1 tileflow-edge --objective edp",
    "tileflow-cc5 tileflow-edge --objective edp",
    "vgg16 tpu-v4i --objective edp",
    "bert-base tpu-v4i-vector",
    "resnet50 tpu-v4i-vector",
    "mobilenet-v2 ffm-edge-vector",
    "efficientnet-b0 tpu-v4i-vector",
    "llama3-8b-net:layers=8 tpu-v4i-vector",
)


def checked(asked: str, timeout: float) -> dict[str, object]:
    """One problem, searched and verified, as a row of the CSV. Raises RuntimeError where a run fails."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        search = _run(["map", *asked.split(), "--json", "r.json"], folder, timeout)
        if search.outcome != "finished":
            raise RuntimeError(f"{asked}: {search.outcome}: {search.err.strip()[-300:]}")
        verdict = _run(["verify", "r.json"], folder, timeout)
    route = re.search(r"  again +(.*?)(?:\n  \S|\n\S|$)", verdict.out, flags=re.DOTALL)
    return {
        "problem": asked,
        "search_cpu_s": f"{search.cpu:.2f}",
        "verify_cpu_s": f"{verdict.cpu:.2f}",
        "ratio": f"{verdict.cpu / search.cpu:.2f}",
        "verdict": "verified" if verdict.code == 0 else verdict.outcome,
        "route": " ".join(route[1].split()) if route else "",
        **stamp(),
    }


def _run(words: Sequence[str], folder: Path, timeout: float) -> Measured:
    return measure([sys.executable, "-m", "einloom", *words], folder, timeout, {"PYTHONPATH": str(HERE.parent / "src")})


COLUMNS = (
    Column("einloom map …", lambda row: f"`{row['problem']}`"),
    Column("search, CPU s", "search_cpu_s"),
    Column("verify, CPU s", "verify_cpu_s"),
    Column("verify / search", "ratio"),
    Column("verdict", "verdict"),
)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write the CSV; 1 if a result is not verified or takes more than twice the search."""
    parser = argparse.ArgumentParser(prog="python -m bench.again", description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="TEXT", default="", help="only problems with this in their words")
    parser.add_argument("--timeout", type=float, default=900, metavar="SECONDS", help="for each run (900)")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    options = parser.parse_args(words)
    done, wrong = had(options.output, "problem"), 0
    for asked in PUBLISHED:
        if (asked,) in done or options.only not in asked:
            continue
        row = checked(asked, options.timeout)
        append(options.output, row)
        print(f"{row['search_cpu_s']:>8} {row['verify_cpu_s']:>8}  x {row['ratio']:<6} {row['verdict']}  {asked}")
        print(f"{'':28}{row['route']}", flush=True)
        wrong += row["verdict"] != "verified" or float(str(row["ratio"])) > 2
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""What perfect tiles cost at people's sizes: ``python -m bench.sizes``. One CSV row per problem and machine.

Each problem is solved by `exact` for EDP in `ffm` and in `ragged`. A search that a budget of wall time ends is written
with the gap that it has proven; where it ends before there is a mapping a line says so, and there is no row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time

from einloom.errors import BudgetExhausted
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.result import Result
from einloom.search.exact import Exact
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.transformers import gpt3

from .rows import ROOT, append, stamp

RESULTS = ROOT / "bench" / "results" / "sizes.csv"
MACHINES = ("tpu-v4i", "ffm-edge", "nvdla")
_ATTENTION = (
    "QK[h,m,p] = Q[h,m,e] * K[h,p,e]",
    "SM[h,m,p] = softmax(QK[h,m,p])",
    "AV[h,m,f] = SM[h,m,p] * V[h,p,f]",
)
_NETWORK = ("H[m,d] = X[m,e] * W1[e,d]", "Y[m,n] = H[m,d] * W2[d,n]")


def _attention(heads: int, tokens: int, head: int) -> Workload:
    ranks = {"h": heads, "m": tokens, "p": tokens, "e": head, "f": head}
    return build_workload(f"attention {heads} x {tokens} x {head}", _ATTENTION, ranks, bits=16)


def _network(tokens: int, model: int, hidden: int) -> Workload:
    ranks = {"m": tokens, "e": model, "d": hidden, "n": model}
    return build_workload(f"feed-forward {tokens}, {model}, {hidden}", _NETWORK, ranks, bits=16)


def _matmul(m: int, n: int, k: int) -> Workload:
    ranks = {"m": m, "n": n, "k": k}
    return build_workload(f"matmul {m} x {n} x {k}", ("Z[m,n] = A[m,k] * B[k,n]",), ranks, bits=16)


def _layer(name: str, heads: int, head: int, model: int, tokens: int) -> Workload:
    """A layer as the zoo has them: projections, attention, two feed-forward matrices of four times the width."""
    return gpt3(name, heads, head, model)({"batch": 1, "tokens": tokens, "layers": 1, "bits": 16, "decode": 0})


WORKLOADS = (
    _attention(12, 197, 64),
    _attention(32, 1000, 128),
    _matmul(197, 768, 768),
    _matmul(1000, 1000, 1000),
    _network(197, 768, 3072),
    _network(2048, 4096, 11008),
    _layer("ViT block, 197 tokens", 12, 64, 768, 197),
    _layer("layer of GPT-3 6.7B, 197 tokens", 32, 128, 4096, 197),
)


def solved(workload: Workload, machine: str, space: str, seconds: float) -> tuple[Result, float]:
    """The result in a space, and CPU seconds."""
    started = process_time()
    problem = Problem(workload, load_machine(machine), Mapspace(space), Objective("edp"))
    return Exact().search(problem, Budget(seconds=seconds)), process_time() - started


def measured(workload: Workload, machine: str, seconds: float) -> dict[str, object]:
    """One row."""
    perfect, before = solved(workload, machine, "ffm", seconds)
    ragged, after = solved(workload, machine, "ragged", seconds)
    return {
        "problem": workload.name,
        "machine": machine,
        "perfect_edp": f"{perfect.cost.edp:.5e}",
        "ragged_edp": f"{ragged.cost.edp:.5e}",
        "edp": f"{perfect.cost.edp / ragged.cost.edp:.4g}",
        "energy": f"{perfect.cost.energy / ragged.cost.energy:.4g}",
        "latency": f"{perfect.cost.latency / ragged.cost.latency:.4g}",
        "gap": f"{ragged.certificate.gap:.2%}",
        "perfect_cpu_s": f"{before:.2f}",
        "ragged_cpu_s": f"{after:.2f}",
        **stamp(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="budget of one search")
    parser.add_argument("--only", default="", help="problems with this in their names")
    parser.add_argument("--machine", action="append", help="instead of all three; repeatable")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    for workload in WORKLOADS:
        for machine in (asked.machine or MACHINES) if asked.only in workload.name else ():
            try:
                row = measured(workload, machine, asked.seconds)
            except BudgetExhausted as error:
                print(f"{workload.name}, {machine}: {error}", flush=True)
                continue
            append(asked.output, row)
            print(", ".join(str(value) for value in row.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

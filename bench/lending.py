"""What stores for several readers save: ``python -m bench.lending``. One CSV row per problem and machine.

Each problem is solved by `exact` for EDP with ``stores: own``, and from that optimum with ``stores: shared``. A search
that a budget of wall time ends is written with the gap that it has proven; where it ends before there is a mapping a
line says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time

from einloom.errors import BudgetExhausted
from einloom.mapping.tree import Mapping
from einloom.mapspace.space import Mapspace, Stores
from einloom.problem import Budget, Objective, Problem
from einloom.result import Result
from einloom.search.exact import Exact, ExactOptions
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

from .rows import ROOT, append, stamp

RESULTS = ROOT / "bench" / "results" / "lending.csv"
MACHINES = ("tpu-v4i", "ffm-edge", "nvdla")
_LATENT = ("S[h,m,p] = Q[h,m,c] * C[p,c]", "P[h,m,p] = exp(S[h,m,p])", "O[h,m,f] = P[h,m,p] * C[p,f]")
_TIED = ("X[t,d] = ID[t,v] * E[v,d]", "L[t,v] = X[t,d] * E[v,d]")
_STEPS = ("H[b,j] = X[b,k] * W[k,j]", "Y[b,i] = H[b,j] * W[j,i]")
WORKLOADS = (
    build_workload("tied embedding, 256 tokens, 8192 x 256", _TIED, {"t": 256, "v": 8192, "d": 256}, bits=16),
    build_workload("two steps, batch 256, 256 wide", _STEPS, {"b": 256, "k": 256, "j": 256, "i": 256}, bits=16),
    build_workload(
        "latent attention, 16 heads, 1024 x 512", _LATENT, {"h": 16, "m": 1024, "p": 1024, "c": 512, "f": 512}, bits=16
    ),
    load_workload("llama3-8b"),
)


def solved(
    workload: Workload, machine: str, stores: Stores, seconds: float, start: tuple[Mapping, ...] = ()
) -> tuple[Result, float]:
    """The result in a space, and CPU seconds."""
    started = process_time()
    problem = Problem(workload, load_machine(machine), Mapspace(stores=stores), Objective("edp"))
    return Exact(ExactOptions(start=start)).search(problem, Budget(seconds=seconds)), process_time() - started


def measured(workload: Workload, machine: str, seconds: float) -> dict[str, object]:
    """One row."""
    own, before = solved(workload, machine, "own", seconds)
    shared, after = solved(workload, machine, "shared", seconds, (own.mapping,))
    return {
        "problem": workload.name,
        "machine": machine,
        "own_edp": f"{own.cost.edp:.5e}",
        "shared_edp": f"{shared.cost.edp:.5e}",
        "edp": f"{own.cost.edp / shared.cost.edp:.4g}",
        "energy": f"{own.cost.energy / shared.cost.energy:.4g}",
        "latency": f"{own.cost.latency / shared.cost.latency:.4g}",
        "gap": f"{shared.certificate.gap:.2%}",
        "own_cpu_s": f"{before:.2f}",
        "shared_cpu_s": f"{after:.2f}",
        **stamp(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of one search")
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

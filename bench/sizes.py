"""What perfect tiles cost at people's sizes: ``python -m bench.sizes``. One CSV row per problem and machine.

Each problem is solved by `exact` for EDP in `ffm`, in `ragged`, and in `ffm` with its ranks padded; then a lower bound
over any integer tiles is looked for. A search that the budget of wall time ends is written with the gap that it has
proven. Rows that the file has are not measured again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

from einloom.errors import BudgetExhausted, Infeasible, SpecError
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact import Exact
from einloom.search.exact.integer import integer_bound
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.transformers import gpt3

from .measured import Column, Row, markdown
from .rows import ROOT, append, had, stamp

RESULTS = ROOT / "bench" / "results" / "sizes.csv"
MACHINES = ("tpu-v4i", "ffm-edge", "nvdla")
MULTIPLES = (2, 4, 8, 16, 32, 64, 128)
KERNELS = {"r", "s"}  # ranks that nobody pads
MOST = 4 / 3  # a rank is not padded to as much as this many times its extent
_ATTENTION = (
    "QK[h,m,p] = Q[h,m,e] * K[h,p,e]",
    "SM[h,m,p] = softmax(QK[h,m,p])",
    "AV[h,m,f] = SM[h,m,p] * V[h,p,f]",
)
_NETWORK = ("H[m,d] = X[m,e] * W1[e,d]", "Y[m,n] = H[m,d] * W2[d,n]")
_GATED = ("G[m,d] = X[m,e] * WG[e,d]", "U[m,d] = X[m,e] * WU[e,d]", "H[m,d] = G[m,d] * U[m,d]", _NETWORK[1])


def _named(name: str, einsums: Sequence[str], ranks: dict[str, int]) -> Workload:
    return build_workload(name, einsums, ranks, bits=16)


def _attention(heads: int, tokens: int, head: int, network: str) -> Workload:
    ranks = {"h": heads, "m": tokens, "p": tokens, "e": head, "f": head}
    return _named(f"attention {heads} x {tokens} x {head} ({network})", _ATTENTION, ranks)


def _network(tokens: int, model: int, hidden: int, network: str, einsums: Sequence[str] = _NETWORK) -> Workload:
    ranks = {"m": tokens, "e": model, "d": hidden, "n": model}
    what = "feed-forward" if einsums is _NETWORK else "gated feed-forward"
    return _named(f"{what} {tokens}, {model}, {hidden} ({network})", einsums, ranks)


def _matmul(name: str, m: int, n: int, k: int) -> Workload:
    return _named(name, ("Z[m,n] = A[m,k] * B[k,n]",), {"m": m, "n": n, "k": k})


def _convolution(name: str, channels: tuple[int, int], side: int, kernel: int, stride: int = 1) -> Workload:
    """A square convolution with `side` pixels of output; its input has what the windows need."""
    step = "" if stride == 1 else f"{stride}*"
    einsum = f"O[k,p,q] = I[c,{step}p+r,{step}q+s] * W[k,c,r,s]"
    ranks = {"c": channels[0], "k": channels[1], "p": side, "q": side, "r": kernel, "s": kernel}
    return _named(name, (einsum,), ranks)


def _layer(name: str, heads: int, head: int, model: int, tokens: int) -> Workload:
    """A layer as the zoo has them: projections, attention, two feed-forward matrices of four times the width."""
    return gpt3(name, heads, head, model)({"batch": 1, "tokens": tokens, "layers": 1, "bits": 16, "decode": 0})


WORKLOADS = (
    _attention(12, 197, 64, "ViT-B/16"),
    _network(197, 768, 3072, "ViT-B/16"),
    _layer("ViT block, 197 tokens", 12, 64, 768, 197),
    _attention(16, 257, 64, "ViT-L/14"),
    _network(257, 1024, 4096, "ViT-L/14"),
    _attention(12, 384, 64, "BERT base"),
    _attention(8, 1500, 64, "Whisper base"),
    _network(1500, 512, 2048, "Whisper base"),
    _attention(12, 1023, 64, "GPT-2"),
    _network(1000, 768, 3072, "GPT-2"),
    _matmul("classifier 16 x 50257 x 768 (GPT-2)", 16, 50257, 768),
    _layer("layer of GPT-3 6.7B, 197 tokens", 32, 128, 4096, 197),
    _network(2048, 4096, 11008, "Llama 2 7B, no gate"),
    _network(1000, 5120, 13824, "Llama 2 13B", _GATED),
    _matmul("classifier 16 x 32000 x 4096 (Llama 2 7B)", 16, 32000, 4096),
    _network(1000, 4096, 14336, "Llama 3 8B", _GATED),
    _matmul("classifier 16 x 128256 x 4096 (Llama 3 8B)", 16, 128256, 4096),
    _matmul("matmul 1000 x 1000 x 1000", 1000, 1000, 1000),
    _convolution("AlexNet 1: 96 x 3, 55 x 55, 11 x 11 by 4", (3, 96), 55, 11, 4),
    _convolution("AlexNet 2, one group: 128 x 48, 27 x 27, 5 x 5", (48, 128), 27, 5),
    _convolution("AlexNet 3: 384 x 256, 13 x 13, 3 x 3", (256, 384), 13, 3),
    _convolution("ResNet-50: 512 x 512, 7 x 7, 3 x 3", (512, 512), 7, 3),
    _named(
        "EfficientNet-B0: depthwise 32, 112 x 112, 3 x 3",
        ("O[c,p,q] = I[c,p+r,q+s] * W[c,r,s]",),
        {"c": 32, "p": 112, "q": 112, "r": 3, "s": 3},
    ),
    _network(361, 816, 136, "EfficientNet-B3, 19 x 19 pixels"),
)


@dataclass(frozen=True)
class Found:
    """What a search found: SI units. bound: no mapping of the space has less EDP. cpu: seconds."""

    problem: Problem
    edp: float
    energy: float
    latency: float
    bound: float
    cpu: float

    @property
    def gap(self) -> str:
        return _gap(self.bound, self.edp)


def _gap(bound: float, value: float) -> str:
    return f"{max(0.0, 1 - bound / value):.2%}"


def solved(workload: Workload, machine: str, space: str, seconds: float, known: Found | None = None) -> Found:
    """What `exact` finds in a space, or `known` with the bound of that space, if it is no worse. Raises
    BudgetExhausted where there is neither."""
    started = process_time()
    problem = Problem(workload, load_machine(machine), Mapspace(space), Objective("edp"))
    try:
        result = Exact().search(problem, Budget(seconds=seconds))
    except BudgetExhausted as error:
        if known is None:
            raise
        return replace(known, problem=problem, bound=error.bound, cpu=process_time() - started)
    assert result.certificate is not None
    cost, bound, cpu = result.cost, result.certificate.bound, process_time() - started
    if known is not None and known.edp < cost.edp:
        return replace(known, problem=problem, bound=bound, cpu=cpu)
    return Found(problem, cost.edp, cost.energy, cost.latency, bound, cpu)


def padded(workload: Workload) -> Iterator[tuple[int, Workload]]:
    """The workload with its ranks rounded up to a multiple: each padded workload once, with the smallest multiple."""
    seen = [dict(workload.extents)]
    for multiple in MULTIPLES:
        ranks = dict(seen[0])
        for rank, extent in seen[0].items():
            wider = -(-extent // multiple) * multiple
            if rank not in KERNELS and wider < MOST * extent:
                ranks[rank] = wider
        if ranks not in seen:
            seen.append(ranks)
            yield multiple, build_workload(workload.name, workload.einsums, ranks, bits=16, outputs=workload.outputs)


def best_padded(workload: Workload, machine: str, seconds: float, perfect: Found) -> tuple[int, Found]:
    """The multiple (1: none) and what was found with it: the best perfect tiles of the workload, padded or not, with
    a bound over all of them. seconds: of all searches together."""
    trials = list(padded(workload))
    best, multiple, bound, cpu = perfect, 1, perfect.bound, 0.0
    for by, wider in trials:
        started = process_time()
        try:
            found = solved(wider, machine, "ffm", seconds / len(trials))
        except BudgetExhausted as error:
            bound = min(bound, error.bound)
        except Infeasible:
            pass
        else:
            bound = min(bound, found.bound)
            if found.edp < best.edp:
                best, multiple = found, by
        cpu += process_time() - started
    return multiple, replace(best, bound=bound, cpu=cpu)


def any_integers(ragged: Found, seconds: float) -> dict[str, object]:
    """The columns of the bound over any integer tiles; empty where there is none."""
    started = process_time()
    try:
        bound, _ = integer_bound(ragged.problem, ragged.edp, Budget(seconds=seconds))
    except SpecError:
        return dict.fromkeys(("integer_bound", "integer_gap", "integer_cpu_s"), "")
    shown = f"{max(0.0, 1 - bound / ragged.edp):.3%}"
    cpu = process_time() - started
    return {"integer_bound": f"{bound:.5e}", "integer_gap": shown, "integer_cpu_s": f"{cpu:.2f}"}


def measured(workload: Workload, machine: str, seconds: float) -> dict[str, object]:
    """One row. Raises BudgetExhausted where there is no perfect mapping."""
    perfect = solved(workload, machine, "ffm", seconds)
    ragged = solved(workload, machine, "ragged", seconds, perfect)
    multiple, pads = best_padded(workload, machine, seconds, perfect)
    return {
        "problem": workload.name,
        "machine": machine,
        "perfect_edp": f"{perfect.edp:.5e}",
        "perfect_gap": perfect.gap,
        "perfect_cpu_s": f"{perfect.cpu:.2f}",
        "ragged_edp": f"{ragged.edp:.5e}",
        "ragged_gap": ragged.gap,
        "ragged_cpu_s": f"{ragged.cpu:.2f}",
        "edp": f"{perfect.edp / ragged.edp:.4g}",
        "energy": f"{perfect.energy / ragged.energy:.4g}",
        "latency": f"{perfect.latency / ragged.latency:.4g}",
        **any_integers(ragged, seconds),
        "padded_to": multiple,
        "padded_edp": f"{pads.edp:.5e}",
        "padded_gap": pads.gap,
        "padded_cpu_s": f"{pads.cpu:.2f}",
        "padded_over_ragged": f"{pads.edp / ragged.edp:.4g}",
        **stamp(),
    }


def _with_gap(row: Row, space: str) -> str:
    """The EDP in a space; where it is not proven, with the gap."""
    value, gap = row[f"{space}_edp"], row[f"{space}_gap"]
    return value if gap == "0.00%" else f"{value}, gap {gap}"


def _padding(row: Row) -> str:
    """EDP of the best padded workload over that of `ragged`, and the multiple; with the gap where it is not proven."""
    shown = f"{row['padded_over_ragged']}, {'none' if row['padded_to'] == '1' else row['padded_to']}"
    return shown if row["padded_gap"] == "0.00%" else f"{shown}, gap {row['padded_gap']}"


COLUMNS = (
    Column("problem", "problem"),
    Column("machine", "machine"),
    Column("perfect, J s", lambda row: _with_gap(row, "perfect")),
    Column("ragged, J s", lambda row: _with_gap(row, "ragged")),
    Column("times less EDP", "edp"),
    Column("energy", "energy"),
    Column("latency", "latency"),
    Column("within any integers", lambda row: row["integer_gap"] or "-"),
    Column("padded / ragged, multiple", _padding),
    Column("CPU s perfect", "perfect_cpu_s"),
    Column("ragged", "ragged_cpu_s"),
    Column("bound", "integer_cpu_s"),
    Column("padded", "padded_cpu_s"),
)


def table(rows: list[Row]) -> str:
    """The page's table: problem by problem, each on all machines."""
    names = [workload.name for workload in WORKLOADS]
    return markdown(
        COLUMNS, sorted(rows, key=lambda row: (names.index(row["problem"]), MACHINES.index(row["machine"])))
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of one search; of all paddings together")
    parser.add_argument("--only", default="", help="problems with this in their names")
    parser.add_argument("--machine", action="append", help="instead of all three; repeatable")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    done = had(asked.output, "problem", "machine")
    for machine in asked.machine or MACHINES:
        for workload in WORKLOADS:
            if asked.only not in workload.name or (workload.name, machine) in done:
                continue
            try:
                row = measured(workload, machine, asked.seconds)
            except (BudgetExhausted, Infeasible) as error:
                print(f"{workload.name}, {machine}: {error}", flush=True)
                continue
            append(asked.output, row)
            print(", ".join(str(value) for value in row.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

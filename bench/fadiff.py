"""FADiff's Table 1 on einloom's model: ``python -m bench.fadiff``. See docs/mappers.md, `gradient`.

Five networks on two Gemminis: what descent with fusion (`gradient`), descent layer by layer (`gradient` with `fuse=0`,
as DOSA), a genetic algorithm and Bayesian search reach in the same CPU seconds, beside the proven optima with and
without fusion and what the paper prints. A row that the CSV has is not measured again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from einloom.problem import Problem
from einloom.questions import problems
from einloom.search.registry import method
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload

from .cpu_time import heuristic, proving
from .measured import Column, Row
from .rows import had, replace, stamp

RESULTS = Path(__file__).parent / "results" / "fadiff.csv"
PUBLISHED = Path(__file__).parent / "published"
UNIT = 1e15  # uJ x cycles in a joule second, at 1 GHz
METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "fadiff": ("gradient", {}),
    "dosa": ("gradient", {"fuse": 0.0}),
    "genetic": ("genetic", {}),
    "bayes": ("bayes", {}),
}
PAPER = {  # (network, machine) -> EDP in uJ x cycles of dosa, bayes, genetic, fadiff: Table 1
    ("GPT-3 6.7B", "large"): (1.59e13, 3.67e14, 2.42e14, 1.15e13),
    ("VGG19", "large"): (1.16e13, 3.31e14, 2.29e14, 9.62e12),
    ("VGG16", "large"): (6.82e12, 1.82e14, 8.65e13, 6.16e12),
    ("MobileNetV1", "large"): (2.29e11, 1.60e13, 9.11e12, 1.67e11),
    ("ResNet18", "large"): (2.21e10, 4.03e12, 2.98e12, 2.07e10),
    ("GPT-3 6.7B", "small"): (6.14e13, 3.69e15, 2.05e15, 4.65e13),
    ("VGG19", "small"): (1.99e13, 8.37e14, 6.41e14, 1.66e13),
    ("VGG16", "small"): (9.70e12, 6.44e14, 4.84e14, 8.33e12),
    ("MobileNetV1", "small"): (1.44e12, 2.60e13, 2.53e13, 1.37e12),
    ("ResNet18", "small"): (2.23e10, 8.13e12, 9.26e12, 2.13e10),
}
Layer = tuple[str, int, int, int, int, bool]  # (kind, channels in, out, side of the output, of the filter, from above)


class Cascade:
    """Layers as Einsums whose indices are plain: the paper's tiles have neither halo nor stride (its equation 5)."""

    def __init__(self, fused: bool) -> None:
        self.fused, self.einsums, self.ranks = fused, list[str](), dict[str, int]()
        self.last, self.shape = "", ()

    def add(self, kind: str, cin: int, cout: int, side: int, filter_side: int, joined: bool) -> None:
        """A layer; joined: it reads what the one before writes, with which it may be fused."""
        n = len(self.einsums)
        reads = self.last if joined and self.fused and self.shape == (cin, side) else f"I{n}"
        c, k = (f"k{n}", f"k{n}") if kind == "depthwise" else (f"c{n}", f"k{n}")
        sizes = {f"k{n}": cout, f"p{n}": side, f"q{n}": side, f"r{n}": filter_side, f"s{n}": filter_side}
        sizes |= {} if kind == "depthwise" else {f"c{n}": cin}
        place = ",".join(v for v in (f"p{n}", f"q{n}") if sizes[v] > 1)
        window = "".join(f",{v}" for v in (f"r{n}", f"s{n}") if sizes[v] > 1)
        at = f",{place}" if place else ""
        weights = k if kind == "depthwise" else f"{k},{c}"
        self.einsums.append(f"T{n}[{k}{at}] = {reads}[{c}{at}] * W{n}[{weights}{window}]")
        self.ranks |= {v: size for v, size in sizes.items() if size > 1}
        self.last, self.shape = f"T{n}", (cout, side)


def layers(network: str) -> Iterator[Layer]:
    """The layers of a convolutional network at 224 x 224."""
    if network.startswith("VGG"):
        deep = 3 if network == "VGG16" else 4
        cin = 3
        for times, cout, side in ((2, 64, 224), (2, 128, 112), (deep, 256, 56), (deep, 512, 28), (deep, 512, 14)):
            for i in range(times):
                yield "conv", cin, cout, side, 3, i > 0
                cin = cout
        for i, (one, other) in enumerate(((25088, 4096), (4096, 4096), (4096, 1000))):
            yield "full", one, other, 1, 1, i > 0
    elif network == "ResNet18":
        yield "conv", 3, 64, 112, 7, False
        for cin, cout, side in ((64, 64, 56), (64, 128, 28), (128, 256, 14), (256, 512, 7)):
            yield "conv", cin, cout, side, 3, False
            yield "conv", cout, cout, side, 3, True
            if cin != cout:
                yield "conv", cin, cout, side, 1, False
            yield "conv", cout, cout, side, 3, False
            yield "conv", cout, cout, side, 3, True
        yield "full", 512, 1000, 1, 1, False
    else:
        yield "conv", 3, 32, 112, 3, False
        cin, side = 32, 112
        for cout, stride in (
            (64, 1),
            (128, 2),
            (128, 1),
            (256, 2),
            (256, 1),
            (512, 2),
            *[(512, 1)] * 5,
            (1024, 2),
            (1024, 1),
        ):
            side //= stride
            yield "depthwise", cin, cin, side, 3, stride == 1
            yield "conv", cin, cout, side, 1, True
            cin = cout
        yield "full", 1024, 1000, 1, 1, False


def workload(network: str, fused: bool) -> Workload:
    """A network of the paper, 8 bits, batch 1; without fusion no layer reads what another writes."""
    if network.startswith("GPT"):
        s, a, f, g = ("S", "A", "F", "G") if fused else ("S1", "A", "F1", "G")
        text = [
            "Y[n,j] = X[n,c] * WQ[c,j]",
            "S[h,m,l] = Q[h,m,e] * K[h,l,e]",
            f"{a}[h,m,d] = {s}[h,m,l] * V[h,l,d]",
            "O[u,v] = B[u,w] * WO[w,v]",
            "F[t,i] = D[t,x] * W1[x,i]",
            f"{g}[t,y] = {f}[t,i] * W2[i,y]",
        ]
        long = dict.fromkeys("nmlut", 512) | dict.fromkeys("cwvxy", 4096)
        return build_workload("gpt3-block", text, {**long, "j": 12288, "h": 32, "e": 128, "d": 128, "i": 16384}, bits=8)
    made = Cascade(fused)
    for layer in layers(network):
        made.add(*layer)
    return build_workload(network.lower(), made.einsums, made.ranks, bits=8)


def asked(network: str, machine: str, fused: bool = True) -> Problem:
    """The problem of a row; axes in full use, as the table of methods has them on Gemmini."""
    return problems(workload(network, fused), f"{PUBLISHED}/gemmini-{machine}.yaml", "edp", None, None, None, True)[
        0
    ].problem


def row(network: str, machine: str, seconds: float, seeds: int, proof: float) -> dict[str, object]:
    """The paper's four numbers, ours, and the optima with and without fusion, or bounds where no proof ended."""
    problem = asked(network, machine)
    made: dict[str, object] = {"network": network, "machine": machine, "cpu_seconds": seconds, "seeds": seeds}
    for name, printed in zip(("dosa", "bayes", "genetic", "fadiff"), PAPER[network, machine], strict=True):
        one, options = METHODS[name]
        values = [heuristic(one, problem, seconds, {**options, "seed": seed}).value for seed in range(seeds)]
        made[f"{name}_paper"] = f"{printed:.3g}"
        made[name] = f"{median(values) * UNIT:.6g}"
        made[f"{name}_worst"] = f"{max(values) * UNIT:.6g}"
    for name, fused in (("optimum", True), ("unfused", False)):
        found = proving(method("exact"), asked(network, machine, fused), proof)
        bound = 0.0 if found.found is None or found.found.certificate is None else found.found.certificate.bound
        made[name] = f"{found.value * UNIT:.6g}"
        made[f"{name}_bound"] = f"{bound * UNIT:.6g}"
    return {**made, **stamp()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the CSV lacks."""
    parser = argparse.ArgumentParser(prog="python -m bench.fadiff", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="CPU seconds of each method")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--proof", type=float, default=60.0, help="CPU seconds of each proof")
    parser.add_argument("--network", action="append", choices=list(dict.fromkeys(name for name, _ in PAPER)))
    options = parser.parse_args(arguments)
    known = had(RESULTS, "network", "machine")
    for network, machine in PAPER:
        if (network, machine) not in known and network in (options.network or (network,)):
            made = row(network, machine, options.seconds, options.seeds, options.proof)
            replace(RESULTS, [made], ("network", "machine"), list(PAPER))
            print(*list(made.values())[:-3], sep=", ", flush=True)


def _both(name: str) -> Callable[[Row], str]:
    """How many times the descent's EDP a method has: in the paper, and here."""

    def shown(row: Row) -> str:
        paper = float(row[f"{name}_paper"]) / float(row["fadiff_paper"])
        return f"{paper:.3g}, {float(row[name]) / float(row['fadiff']):.3g}"

    return shown


def _optimum(row: Row) -> str:
    proven = row["optimum"] == row["optimum_bound"]
    return f"{float(row['optimum']):.2e}" if proven else f"at least {float(row['optimum_bound']):.2e}"


def _gain(row: Row) -> str:
    """What fusion saves: in the paper, and of the proven optima."""
    paper = 1 - float(row["fadiff_paper"]) / float(row["dosa_paper"])
    proven = all(row[name] == row[f"{name}_bound"] for name in ("optimum", "unfused"))
    most = 1 - float(row["optimum" if proven else "optimum_bound"]) / float(row["unfused"])
    return f"{paper:.1%}, {'' if proven else 'at most '}{most:.1%}"


COLUMNS = (
    Column("network", "network"),
    Column("Gemmini", "machine"),
    Column(
        "EDP of descent with fusion: paper, `gradient`",
        lambda r: f"{float(r['fadiff_paper']):.2e}, {float(r['fadiff']):.2e}",
    ),
    Column("optimum here", _optimum),
    Column("`gradient` above it", lambda r: f"{float(r['fadiff']) / float(r['optimum_bound']) - 1:.0%}"),
    Column("times that, layer by layer: paper, `fuse=0`", _both("dosa")),
    Column("genetic: paper, here", _both("genetic")),
    Column("Bayesian: paper, here", _both("bayes")),
    Column("fusion saves: paper, optima here", _gain),
)

if __name__ == "__main__":
    main()

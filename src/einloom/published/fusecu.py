"""The FuseCU paper's Figures 9 to 11 and its area table: what is printed, what einloom says, and why they differ.

Comes in: the models of Table II and the five fabrics. Goes out: traffic between buffer and arrays, and at the DRAM
beside it; utilisation and speed-ups by roofline and by the exact cycle model; the principles' regret over 385 operators
and 231 pairs. Operators of Figure 10 and 11: three projections, QK and AV of one layer, the batch as so many
multiplications of its own, sums counted once (the paper says none of this; docs/fusecu.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import mean

from ..dataclass import dataclass
from ..fabric.describe import Fabric, fabric
from ..fabric.traffic import Goal, OperatorRun, best, best_pair, choices
from ..search.principles.matmul import Accounting, Matmul, best_schedule
from ..search.principles.pairs import Compared, Pair, compared
from ..search.principles.rules import COUNTS, chosen_class, judged
from ..zoo.table2 import BATCH, MODELS, operators

BUFFERS = tuple(32768 << i for i in range(11))
"""Elements: 32 KB to 32 MB of bytes (Figure 9)."""
BASELINES = ("tpu-v4i-like", "gemmini-like", "planaria-like")
SAVED = {"fusecu": (63.6, 62.4, 38.7), "unfcu": (42.6, 41.0, 4.5)}
"""Printed: percent of traffic saved against each of `BASELINES` (section V-C)."""
SPEEDUPS = (1.33, 1.25, 1.14)
"""Printed: of FuseCU over each of `BASELINES`."""
LLAMA_TOKENS = tuple(256 << i for i in range(7))
"""Figure 11: sequence lengths of LLaMA2."""
RULES: tuple[Accounting, ...] = ("once", "read-modify-write")
AREA = {"over TPUv4i": 12.0, "interconnect and control": 0.1, "Planaria's interconnect": 12.6}
"""Printed: percent of area (Figure 12); the second is an upper bound."""


@dataclass(frozen=True, slots=True)
class FusecuRun:
    """One model on one fabric: its choices, best in one goal."""

    model: str
    fabric: str
    choices: tuple[OperatorRun, ...]

    @property
    def moved(self) -> int:
        return sum(c.moved for c in self.choices)

    def by(self, goal: Goal) -> float:
        return sum(c.by(goal) for c in self.choices)

    @property
    def utilisation(self) -> float:
        """Multiplications over what all elements could do in the time of the cycle model."""
        one = self.choices[0].fabric
        return sum(c.operations for c in self.choices) / (one.elements * one.clock * self.by("seconds"))


def run(model: str, on: Fabric, goal: Goal = "traffic", tokens: int | None = None) -> FusecuRun:
    """Three projections and the attention pair of one layer, each its best way."""
    table = {o.name: o for o in operators(model, BATCH, tokens, merged=False)}
    projection, qk, av = table["projection"], table["QK"], table["AV"]
    matmul = Matmul(projection.m, projection.k, projection.l)
    first = best(choices(on, matmul, 3 * BATCH), goal)
    assert first is not None
    pair = Pair(qk.m, qk.k, qk.l, av.l)
    return FusecuRun(model, on.name, (first, *best_pair(on, pair, qk.count, goal)))


def saved(on: Fabric, against: Fabric) -> float:
    """Percent of the traffic between buffer and arrays that is saved: the mean over the models."""
    return 100 * (1 - mean(run(m, on).moved / run(m, against).moved for m in MODELS))


def speedup(on: Fabric, against: Fabric, exact: bool) -> float:
    """How much faster, the mean over the models; every operator runs its quickest way on both."""
    goal: Goal = "seconds" if exact else "roofline"
    return float(mean(run(m, against, goal).by(goal) / run(m, on, goal).by(goal) for m in MODELS))


def ablation() -> Iterator[tuple[str, Fabric]]:
    """From the TPUv4i-like fabric to FuseCU: one freedom at a time."""
    tpu, fused = fabric("tpu-v4i-like"), fabric("fusecu")
    plain = replace(fabric("unfcu"), element=replace(fused.element, stationary=("WS",)))
    tile = replace(fused, fusion=("tile",), configurations=tuple(c for c in fused.configurations if not c.column))
    column = replace(fused, fusion=("column",))
    yield "one stationary operand, 128x128", tpu
    yield "any stationary operand", fabric("gemmini-like")
    yield "one stationary operand, any shape", plain
    yield "both (UnfCU)", fabric("unfcu")
    yield "both, tile fusion", tile
    yield "both, column fusion", column
    yield "both, both fusions (FuseCU)", fused


@dataclass(frozen=True, slots=True)
class Regret:
    """The principles' picks beside the optimum for one buffer. optimal: share of picks; in parts of one."""

    buffer: int
    classes: tuple[int, int, int]
    optimal: float
    mean: float
    most: float
    mean_read_back: float
    most_read_back: float


@lru_cache(maxsize=1)
def operator_regrets() -> tuple[Regret, ...]:
    """Principles 1 to 3 over the operators of all models, per size of the buffer (Figure 9)."""
    return tuple(_regret(buffer) for buffer in BUFFERS)


def _regret(buffer: int) -> Regret:
    found = {rule: [r.regret for m in grid() if (r := judged(m, buffer, rule)) is not None] for rule in RULES}
    once, read_back = found["once"], found["read-modify-write"]
    counted = [COUNTS[chosen_class(m, buffer)] for m in grid()]
    return Regret(
        buffer,
        (counted.count(1), counted.count(2), counted.count(3)),
        mean(r == 0 for r in once),
        mean(once),
        max(once),
        mean(read_back),
        max(read_back),
    )


def grid() -> tuple[Matmul, ...]:
    """The five operators of all seven models, the batch as rows."""
    return tuple(Matmul(o.m, o.k, o.l) for model in MODELS for o in operators(model))


def pairs() -> tuple[tuple[str, Pair], ...]:
    """Three pairs of every model: QK and AV, the query projection of a head and QK, and the feed-forward network."""
    found = []
    for model in MODELS:
        o = {one.name: one for one in operators(model)}
        qk, av, up, down = o["QK"], o["AV"], o["FFN1"], o["FFN2"]
        found.append(("qk_av", Pair(qk.m, qk.k, qk.l, av.l)))
        found.append(("qproj_qk", Pair(qk.m, o["projection"].k, qk.k, qk.l)))
        found.append(("ffn1_ffn2", Pair(up.m, up.k, up.l, down.l)))
    return tuple(found)


def compare_pairs(which: str, accounting: Accounting = "once") -> list[Compared]:
    """The pairs of one kind over all models and buffers, fused and not."""
    mine = (p for name, p in pairs() if name == which)
    return [c for p in mine for buffer in BUFFERS if (c := compared(p, buffer, accounting)) is not None]


def dram(model: str, buffer: int, fused: bool) -> int:
    """Elements of one layer's operators of Figure 10 between a buffer and DRAM; the same for every fabric."""
    o = {one.name: one for one in operators(model, merged=True)}
    projection, qk, av = o["projection"], o["QK"], o["AV"]
    alone = best_schedule(Matmul(projection.m, projection.k, projection.l), buffer)
    attention = compared(Pair(qk.m, qk.k, qk.l, av.l), buffer)
    assert alone is not None and attention is not None
    return 3 * alone.traffic + qk.count * (attention.best if fused else attention.apart)


def llama(goal: Goal = "traffic") -> list[tuple[int, Sequence[FusecuRun]]]:
    """Figure 11: LLaMA2 over sequence lengths, on the three baselines, UnfCU and FuseCU."""
    names = (*BASELINES, "unfcu", "fusecu")
    return [(tokens, [run("llama2", fabric(n), goal, tokens) for n in names]) for tokens in LLAMA_TOKENS]

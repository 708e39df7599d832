"""The seven models of the FuseCU paper's Table II: whole layers, their attention pair, and their operators.

The table prints heads, sequence length and hidden size; the batch is 16 (section V-A). That a head is hidden / heads
wide and the feed-forward network four times the hidden size is assumed for all seven, as the paper prints neither
(Llama 2's own is gated and narrower). Norms, biases and masks are left out.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dataclass import dataclass
from ..reading.facts import Fact
from ..workload.build import build_workload
from ..workload.einsum import Workload
from .origins import CHOSEN, Values, bits_fact, rank_facts

TABLE = "Xu et al., DAC 2025 (FuseCU), Table II"
BATCH = 16
MODELS: dict[str, tuple[str, int, int, int]] = {
    "bert": ("BERT", 12, 1024, 768),
    "gpt2": ("GPT-2", 12, 2048, 768),
    "blenderbot": ("Blenderbot", 16, 256, 1024),
    "xlm": ("XLM", 16, 1024, 2048),
    "deberta-v2": ("DeBERTa-v2", 24, 1024, 1536),
    "llama2": ("Llama 2", 32, 4096, 4096),
    "albert": ("ALBERT", 64, 1024, 4096),
}
"""Entry: name in the table, heads, sequence length, hidden size."""

_LAYER = (
    "V[b,m,h,f] = I[b,m,d] * WV[h,f,d]",
    "K[b,m,h,e] = I[b,m,d] * WK[h,e,d]",
    "Q[b,m,h,e] = I[b,m,d] * WQ[h,e,d]",
    "QK[b,m,p,h] = Q[b,m,h,e] * K[b,p,h,e]",
    "QK_softmax[b,m,p,h] = softmax(QK[b,m,p,h])",
    "AV[b,m,h,f] = QK_softmax[b,m,p,h] * V[b,p,h,f]",
    "Z[b,m,g] = AV[b,m,h,f] * WZ[h,f,g]",
    "FFA[b,m,c] = Z[b,m,g] * WFFA[g,c]",
    "FFB[b,m,j] = FFA[b,m,c] * WFFB[c,j]",
)
_PAIR = ("QK[b,h,m,p] = Q[b,h,m,e] * K[b,h,p,e]", "AV[b,h,m,f] = QK[b,h,m,p] * V[b,h,p,f]")


@dataclass(frozen=True, slots=True)
class Operator:
    """One multiplication C[M,L] = A[M,K] B[K,L] of a model, and how often it occurs in a layer."""

    name: str
    m: int
    k: int
    l: int  # noqa: E741 - the paper's name
    count: int


def operators(model: str, batch: int = BATCH, tokens: int | None = None, merged: bool = True) -> tuple[Operator, ...]:
    """The operators of a layer: four projections, QK, AV and the two of the feed-forward network.

    >>> [(o.name, o.count) for o in operators("bert")]
    [('projection', 4), ('QK', 192), ('AV', 192), ('FFN1', 1), ('FFN2', 1)]

    merged: projections and the feed-forward network see the batch as more rows, not as more multiplications.
    """
    _, heads, sequence, hidden = MODELS[model]
    tokens = tokens or sequence
    rows, times = (batch * tokens, 1) if merged else (tokens, batch)
    head = hidden // heads
    return (
        Operator("projection", rows, hidden, hidden, 4 * times),
        Operator("QK", tokens, head, tokens, batch * heads),
        Operator("AV", tokens, tokens, head, batch * heads),
        Operator("FFN1", rows, hidden, 4 * hidden, times),
        Operator("FFN2", rows, 4 * hidden, hidden, times),
    )


def layer(model: str) -> Callable[[Values], Workload]:
    """A whole layer: projections, attention with its softmax, and the feed-forward network."""

    def build(v: Values) -> Workload:
        _, heads, sequence, hidden = MODELS[model]
        tokens, head = v.get("tokens", sequence), hidden // heads
        ranks = {"b": v["batch"], "m": tokens, "p": tokens, "d": hidden, "h": heads, "e": head, "f": head}
        ranks |= {"g": hidden, "c": 4 * hidden, "j": hidden}
        assumed = f"{TABLE} prints the hidden size alone: four times it in the feed-forward network"
        facts = (*_facts(v, "dhgj"), *rank_facts(assumed, "assumed", "c"))
        return build_workload(model, _LAYER, ranks, bits=v["bits"], facts=facts)

    return build


def attention_pair(model: str) -> Callable[[Values], Workload]:
    """QK and AV alone, without the softmax: the pair that the paper fuses."""

    def build(v: Values) -> Workload:
        _, heads, sequence, hidden = MODELS[model]
        tokens, head = v.get("tokens", sequence), hidden // heads
        ranks = {"b": v["batch"], "h": heads, "m": tokens, "p": tokens, "e": head, "f": head}
        return build_workload(f"{model}-attention", _PAIR, ranks, bits=v["bits"], facts=_facts(v, "h"))

    return build


def _facts(v: Values, printed: str) -> tuple[Fact, ...]:
    batch = rank_facts(f"{TABLE} and section V-A", "printed", "b")
    sequence = rank_facts(TABLE, "printed", "mp")
    return (
        *(batch if v["batch"] == BATCH else rank_facts(CHOSEN, "assumed", "b")),
        *(rank_facts(CHOSEN, "assumed", "mp") if "tokens" in v else sequence),
        *rank_facts(TABLE, "printed", printed),
        *rank_facts(f"{TABLE}: hidden size over heads", "derived", "ef"),
        bits_fact(v, 8, "Xu et al., DAC 2025, section III-A: a buffer of 512 KB holds 524,288 values"),
    )

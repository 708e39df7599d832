"""Self-attention as TileFlow maps it: seven Einsums, softmax as max, sub, exp, sum and div, at the shapes it prints."""

from __future__ import annotations

from collections.abc import Callable

from ..reading.facts import Fact
from ..workload.build import build_workload
from ..workload.einsum import Workload
from .origins import CHOSEN, Values, bits_fact, rank_facts

TABLE = "TileFlow paper (MICRO'23), Table 2"
SHAPES = (
    ("bert-s", "Bert-S", 8, 512, 512),
    ("bert-b", "Bert-B", 12, 512, 768),
    ("bert-l", "Bert-L", 16, 512, 1024),
    ("vit-14-b", "ViT/14-B", 12, 256, 768),
    ("vit-14-l", "ViT/14-L", 16, 256, 1024),
    ("vit-14-h", "ViT/14-H", 16, 256, 1280),
    ("vit-16-b", "ViT/16-B", 12, 196, 768),
    ("vit-16-l", "ViT/16-L", 16, 196, 1024),
    ("vit-16-h", "ViT/16-H", 16, 196, 1280),
    ("t5", "T5", 16, 1024, 1024),
    ("xlm", "XLM", 12, 1024, 768),
)
"""Entry, name in the table, heads, sequence, hidden size."""

_EINSUMS = (
    "A[b,h,m,l] = Q[b,h,m,k] * K[b,h,k,l]",
    "B[b,h,m] = max[l] A[b,h,m,l]",
    "C[b,h,m,l] = sub(A[b,h,m,l], B[b,h,m])",
    "D[b,h,m,l] = exp(C[b,h,m,l])",
    "E[b,h,m] = D[b,h,m,l]",
    "F[b,h,m,l] = div(D[b,h,m,l], E[b,h,m])",
    "G[b,h,m,n] = F[b,h,m,l] * V[b,h,l,n]",
)


def attention(name: str, heads: int, sequence: int, hidden: int) -> Callable[[Values], Workload]:
    """The self-attention of one row of the table: m queries, l keys, k and n the width of a head."""

    def build(v: Values) -> Workload:
        head = hidden // heads
        ranks = {"b": v["batch"], "h": heads, "m": sequence, "l": sequence, "k": head, "n": head}
        facts: tuple[Fact, ...] = (
            *rank_facts(CHOSEN, "assumed", {"b": v["batch"]}),
            *rank_facts(TABLE, "printed", dict.fromkeys("hml", 0)),
            *rank_facts(f"{TABLE}: hidden size over heads", "derived", dict.fromkeys("kn", 0)),
            bits_fact(v, 16, "TileFlow's code: word_bits 16"),
        )
        return build_workload(name, _EINSUMS, ranks, bits=v["bits"], facts=facts)

    return build

"""Transformer layers of the zoo, one or a stack: GPT-3 as AccelForge writes it, Llama 3 with shared heads and SwiGLU.

A layer is a list of Einsums in the notation. In a stack the names of layer i end with ``_i``, and a layer reads what
the one before it wrote. Norms, position embeddings, biases and masks are left out of every layer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..errors import SpecError
from ..reading.facts import Fact
from ..workload.build import build_workload
from ..workload.einsum import Einsum, Workload
from ..workload.notation import parse_einsum
from .origins import CHOSEN, Values, bits_fact, rank_facts

MAX_LAYERS = 1000
GPT3_TABLE = "Brown et al. 2020 (GPT-3), Table 2.1"
LLAMA3_TABLE = "Grattafiori et al. 2024 (The Llama 3 Herd of Models), Table 3"
LLAMA3_BITS = "BF16, as the paper runs its largest model"

_GPT3_PREFILL = (
    "I[b,m,d] = copy I_in[b,m,d]",
    "V[b,m,h,e] = I[b,m,d] * WV[h,e,d]",
    "K[b,m,h,e] = I[b,m,d] * WK[h,e,d]",
    "Q[b,m,h,e] = I[b,m,d] * WQ[h,e,d]",
    "QK[b,m,p,h] = Q[b,m,h,e] * K[b,p,h,e]",
    "QK_softmax[b,m,p,h] = softmax(QK[b,m,p,h])",
    "AV[b,m,h,f] = QK_softmax[b,m,p,h] * V[b,p,h,f]",
    "Z[b,m,g] = AV[b,m,h,f] * WZ[h,f,g]",
    "FFA[b,m,c] = Z[b,m,g] * WFFA[g,c]",
    "FFB[b,m,j] = FFA[b,m,c] * WFFB[c,j]",
)
_GPT3_DECODE = tuple(
    text.replace("* K[b,p,h,e]", "* K_cache[b,p,h,e]").replace("* V[b,p,h,f]", "* V_cache[b,p,h,f]")
    for text in _GPT3_PREFILL
)
_LLAMA3 = (
    "I[b,m,d] = copy I_in[b,m,d]",
    "V[b,m,g,f] = I[b,m,d] * WV[g,f,d]",
    "K[b,m,g,e] = I[b,m,d] * WK[g,e,d]",
    "Q[b,m,g,h,e] = I[b,m,d] * WQ[g,h,e,d]",
    "QK[b,m,p,g,h] = Q[b,m,g,h,e] * K[b,p,g,e]",
    "QK_softmax[b,m,p,g,h] = softmax(QK[b,m,p,g,h])",
    "AV[b,m,g,h,f] = QK_softmax[b,m,p,g,h] * V[b,p,g,f]",
    "Z[b,m,d] = AV[b,m,g,h,f] * WZ[g,h,f,d]",
    "R[b,m,d] = add(Z[b,m,d], I[b,m,d])",
    "GATE[b,m,c] = R[b,m,d] * WGATE[d,c]",
    "UP[b,m,c] = R[b,m,d] * WUP[d,c]",
    "SILU[b,m,c] = silu(GATE[b,m,c])",
    "FFA[b,m,c] = SILU[b,m,c] * UP[b,m,c]",
    "FFB[b,m,d] = FFA[b,m,c] * WDOWN[c,d]",
    "O[b,m,d] = add(FFB[b,m,d], R[b,m,d])",
)


def gpt3(name: str, heads: int, head: int, model: int) -> Callable[[Values], Workload]:
    """Layers of a GPT-3. Prefill: every token attends to all. Decode: the new tokens attend to the cached ones."""

    def build(v: Values) -> Workload:
        decode = bool(v["decode"])
        if "cached" in v and not decode:
            raise SpecError(f"{name}: cached counts only with decode=true")
        tokens = v.get("tokens", 1 if decode else 2048)
        ranks = {
            "b": v["batch"],
            "m": tokens,
            "p": v.get("cached", 2047) if decode else tokens,
            "d": model,
            "h": heads,
            "e": head,
            "f": head,
            "g": model,
            "c": 4 * model,
            "j": model,
        }
        facts = (
            *rank_facts(CHOSEN, "assumed", "bmp"),
            *rank_facts(GPT3_TABLE, "printed", "dhefgj"),
            Fact("ranks.c", "Brown et al. 2020 (GPT-3), section 2.1: d_ff = 4 d_model", "printed"),
            bits_fact(v, 16),
        )
        einsums = stacked(name, _GPT3_DECODE if decode else _GPT3_PREFILL, v["layers"], "I_in", "FFB")
        return build_workload(name, einsums, ranks, bits=v["bits"], facts=facts)

    return build


def llama3_8b(v: Values) -> Workload:
    """Layers of Llama 3 8B, prefill: g key/value heads, each read by h query heads."""
    ranks = {"b": v["batch"], "m": v["tokens"], "p": v["tokens"], "d": 4096, "g": 8, "h": 4, "e": 128, "f": 128}
    ranks["c"] = 14336
    facts = (
        *rank_facts(CHOSEN, "assumed", "bmp"),
        *rank_facts(LLAMA3_TABLE, "printed", "dgc"),
        Fact("ranks.h", f"{LLAMA3_TABLE}: 32 heads share 8 key/value heads", "derived"),
        *rank_facts(f"{LLAMA3_TABLE}: model dimension over heads", "derived", "ef"),
        Fact("bits.default", LLAMA3_BITS if v["bits"] == 16 else CHOSEN, "assumed"),
    )
    einsums = stacked("llama3-8b", _LLAMA3, v["layers"], "I_in", "O")
    return build_workload("llama3-8b", einsums, ranks, bits=v["bits"], facts=facts)


def stacked(name: str, layer: Sequence[str], layers: int, first: str, last: str) -> tuple[Einsum, ...]:
    """`layers` copies of a layer in a row: each reads as `first` what the one before it wrote as `last`.

    A single layer keeps its names and is no module. Raises SpecError for more layers than a cascade may have.
    """
    if layers > MAX_LAYERS:
        raise SpecError(f"{name}: layers={layers}: a stack has 1 to {MAX_LAYERS} layers")
    if layers == 1:
        return tuple(parse_einsum(text) for text in layer)

    def renamed(text: str, i: int) -> str:
        before = f"{last}_{i - 1}[" if i else f"{first}["
        return re.sub(r"(\w+)\[", lambda found: before if found[1] == first else f"{found[1]}_{i}[", text)

    modules = tuple(_modules(layer))
    return tuple(
        replace(parse_einsum(renamed(text, i)), group=f"layers.{i}{module}")
        for i in range(layers)
        for text, module in zip(layer, modules, strict=True)
    )


def _modules(layer: Sequence[str]) -> Iterator[str]:
    """The part of a layer that each Einsum is in: attention up to its projection Z, then the feed-forward layers."""
    part = ".attention"
    for text in layer:
        yield "" if "= add(" in text or "= copy" in text else part
        part = ".feed_forward" if text.startswith("Z[") else part

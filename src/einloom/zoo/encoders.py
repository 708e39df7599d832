"""Whole transformers of the zoo by their published dimensions, with norms and the softmax in parts.

A layer norm is a sum, a sum of squares and an elementwise map; an RMS norm a sum of squares and a product; a softmax
its maximum, exponentials, sum and quotient. Biases, activations, scales, masks and rotations of positions move nothing
between Einsums and are left out. Tokens enter as rows: choosing rows of a table by data is no Einsum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..dataclass import dataclass
from ..errors import SpecError
from ..reading.facts import Fact
from ..workload.build import build_workload
from ..workload.einsum import Einsum, Workload
from ..workload.notation import parse_einsum
from .origins import CHOSEN, Values, rank_facts
from .transformers import LLAMA3_TABLE, MAX_LAYERS

CHOSEN_RANKS = "bmpstl"
FRAMES = 3000
"""Of 10 ms, in the 30 s that Whisper hears at once."""


@dataclass(frozen=True)
class TransformerNetwork:
    """The dimensions of a network and what its layers are made of.

    heads: of keys and values; shared: query heads for each. wide: of the feed-forward layers; gated: those have a gate.
    before: norms come before a block, not behind it. classes: outputs of the head; pooled: it reads one token. experts:
    how many there are, and how many each token has. decoder: layers of a second stack that attends to the first. mel:
    channels of a spectrogram, two frames for each token of the first stack; 0: its tokens are the input.
    """

    name: str
    title: str
    source: str
    layers: int
    tokens: int
    model: int
    heads: int
    head: int
    wide: int
    classes: int
    shared: int = 1
    rms: bool = False
    gated: bool = False
    before: bool = True
    pooled: bool = False
    experts: tuple[int, int] = (0, 0)
    decoder: bool = False
    mel: int = 0

    @property
    def cached(self) -> bool:
        """Whether it can decode against a cache."""
        return not self.decoder and not self.pooled

    @property
    def parameters(self) -> str:
        """As `workload_entries` writes them."""
        tokens = 1 if self.experts[0] else self.tokens
        decode = " cached= decode=false" if self.cached else ""
        frames = f" frames={FRAMES}" if self.mel else ""
        return f"batch=1{frames} tokens={tokens} layers={self.layers}{decode} bits=8"

    def norm(self, n: str, x: str, m: str) -> list[str]:
        """N, the norm of x, whose tokens are the rank m."""
        if self.rms:
            return [f"SQ{n}[b,{m}] = square({x}[b,{m},d])", f"N{n}[b,{m},d] = mul({x}[b,{m},d], SQ{n}[b,{m}])"]
        return [
            f"MU{n}[b,{m}] = {x}[b,{m},d]",
            f"SD{n}[b,{m}] = elementwise({x}[b,{m},d], MU{n}[b,{m}])",
            f"N{n}[b,{m},d] = elementwise({x}[b,{m},d], MU{n}[b,{m}], SD{n}[b,{m}])",
        ]

    def attention(self, n: str, x: str, y: str, q: str, k: str, cached: bool = False) -> list[str]:
        """Z, what tokens q of x take from tokens k of y. cached: keys and values come from a cache instead."""
        keys, values = (f"K_cache{n}", f"V_cache{n}") if cached else (f"K{n}", f"V{n}")
        new = q if cached else k
        score = f"b,{q},{k},g,h"
        return [
            f"V{n}[b,{new},g,f] = {y}[b,{new},d] * WV{n}[g,f,d]",
            f"K{n}[b,{new},g,e] = {y}[b,{new},d] * WK{n}[g,e,d]",
            f"Q{n}[b,{q},g,h,e] = {x}[b,{q},d] * WQ{n}[g,h,e,d]",
            f"QK{n}[{score}] = Q{n}[b,{q},g,h,e] * {keys}[b,{k},g,e]",
            f"QM{n}[b,{q},g,h] = max[{k}] QK{n}[{score}]",
            f"QE{n}[{score}] = elementwise(QK{n}[{score}], QM{n}[b,{q},g,h])",
            f"QS{n}[b,{q},g,h] = QE{n}[{score}]",
            f"A{n}[{score}] = div(QE{n}[{score}], QS{n}[b,{q},g,h])",
            f"AV{n}[b,{q},g,h,f] = A{n}[{score}] * {values}[b,{k},g,f]",
            f"Z{n}[b,{q},d] = AV{n}[b,{q},g,h,f] * WZ{n}[g,h,f,d]",
        ]

    def forward(self, n: str, x: str, m: str) -> list[str]:
        """F, the feed-forward layers of x. Experts: those that a token has; the router's scores are an output."""
        expert, each = (",u", "u,") if self.experts[0] else ("", "")
        texts = [f"ROUTE{n}[b,{m},x] = {x}[b,{m},d] * WROUTE{n}[d,x]"] if self.experts[0] else []
        texts.append(f"UP{n}[b,{m}{expert},c] = {x}[b,{m},d] * WUP{n}[{each}d,c]")
        inner = f"UP{n}"
        if self.gated:
            texts.append(f"GATE{n}[b,{m}{expert},c] = {x}[b,{m},d] * WGATE{n}[{each}d,c]")
            texts.append(f"G{n}[b,{m}{expert},c] = mul(GATE{n}[b,{m}{expert},c], UP{n}[b,{m}{expert},c])")
            inner = f"G{n}"
        return [*texts, f"F{n}[b,{m},d] = {inner}[b,{m}{expert},c] * WDOWN{n}[{each}c,d]"]

    def layer(self, n: str, x: str, q: str, k: str, other: str = "", cached: bool = False) -> tuple[list[Einsum], str]:
        """A layer on x, and the name of what it makes. other: what its second attention reads as rank p."""

        def normed(which: str, name: str, of: str) -> list[Einsum]:
            return within(name, self.norm(f"{n}{which}", of, q))

        if not self.before:
            made = within("attention", self.attention(n, x, x, q, k))
            made += within("", [f"R{n}[b,{q},d] = add({x}[b,{q},d], Z{n}[b,{q},d])"])
            made += [*normed("a", "attention_norm", f"R{n}"), *within("feed_forward", self.forward(n, f"N{n}a", q))]
            made += within("", [f"O{n}[b,{q},d] = add(N{n}a[b,{q},d], F{n}[b,{q},d])"])
            return [*made, *normed("b", "feed_forward_norm", f"O{n}")], f"N{n}b"
        made = normed("a", "attention_norm", x)
        made += within("attention", self.attention(n, f"N{n}a", f"N{n}a", q, k, cached))
        made += within("", [f"R{n}[b,{q},d] = add({x}[b,{q},d], Z{n}[b,{q},d])"])
        before = f"R{n}"
        if other:
            made += normed("c", "cross_attention_norm", before)
            made += within("cross_attention", self.attention(f"{n}c", f"N{n}c", other, q, "p"))
            made += within("", [f"R{n}c[b,{q},d] = add({before}[b,{q},d], Z{n}c[b,{q},d])"])
            before = f"R{n}c"
        made += [*normed("b", "feed_forward_norm", before), *within("feed_forward", self.forward(n, f"N{n}b", q))]
        return [*made, *within("", [f"O{n}[b,{q},d] = add({before}[b,{q},d], F{n}[b,{q},d])"])], f"O{n}"

    def cascade(self, layers: int, cached: bool) -> list[Einsum]:
        """All Einsums."""
        made, last = self._stack("", "X", layers, "m", "p", "", cached)
        if self.decoder:
            more, last = self._stack("D", "Y", layers, "s", "t", last, False)
            made = [*within("encoder", [*self._front(), *made]), *within("decoder", more)]
        out, read = ("", "0") if self.pooled else (",s", "s") if self.decoder else (",m", "m")
        return [*made, *within("head", [f"HEAD[b{out},n] = {last}[b,{read},d] * WHEAD[d,n]"])]

    def _front(self) -> list[Einsum]:
        """X, the tokens that two convolutions over time make of a spectrogram, the second with stride two."""
        if not self.mel:
            return []
        first, second = "C[b,l,y] = MEL[b,l+r-1,i] * WC1[y,i,r]", "X[b,m,d] = C[b,2*m+w-1,y] * WC2[d,y,w]"
        return within("front", [first, second])

    def _stack(
        self, prefix: str, x: str, layers: int, q: str, k: str, other: str, cached: bool
    ) -> tuple[list[Einsum], str]:
        made: list[Einsum] = []
        if not self.before:
            made, x = within("norm", self.norm(f"{prefix}0", x, q)), f"N{prefix}0"
        for i in range(layers):
            layer, x = self.layer(f"{prefix}_{i}", x, q, k, other, cached)
            made += within(f"layers.{i}", layer)
        if not self.before:
            return made, x
        return [*made, *within("norm", self.norm(f"{prefix}end", x, q))], f"N{prefix}end"

    def build(self, v: Values) -> Workload:
        """The workload. Raises SpecError for values that do not fit together."""
        decode = bool(v.get("decode", 0))
        if v["layers"] > MAX_LAYERS:
            raise SpecError(f"{self.name}: layers={v['layers']}: a stack has 1 to {MAX_LAYERS} layers")
        if "cached" in v and not decode:
            raise SpecError(f"{self.name}: cached counts only with decode=true")
        if self.experts[0] and (decode, v["batch"] * v["tokens"]) not in ((False, 1), (True, 1)):
            raise SpecError(f"{self.name}: each token has experts of its own; batch and tokens must be 1")
        tokens, frames = 1 if decode else v["tokens"], v.get("frames", 0)
        if frames % 2:
            raise SpecError(f"{self.name}: frames={frames}: a token has two frames")
        first = frames // 2 or tokens
        past = v.get("cached", self.tokens) if decode else first
        sizes = {"b": v["batch"], "m": first, "p": past, "s": tokens, "t": tokens, "d": self.model, "g": self.heads}
        sizes |= {"l": frames, "i": self.mel, "y": self.model, "r": 3, "w": 3}
        sizes |= {"h": self.shared, "e": self.head, "f": self.head, "c": self.wide, "n": self.classes}
        sizes |= {"x": self.experts[0], "u": self.experts[1]}
        einsums = self.cascade(v["layers"], decode)
        used = {variable for einsum in einsums for variable in einsum.variables}
        ranks = {rank: size for rank, size in sizes.items() if rank in used}
        facts = (
            *rank_facts(CHOSEN, "assumed", (rank for rank in ranks if rank in CHOSEN_RANKS)),
            *rank_facts(self.source, "printed", (rank for rank in ranks if rank not in CHOSEN_RANKS)),
            Fact("bits.default", CHOSEN, "assumed"),
        )
        shapes = {"MEL": (v["batch"], frames, self.mel)} if self.mel else {}
        return build_workload(self.name, einsums, ranks, bits=v["bits"], shapes=shapes, facts=facts)


def within(module: str, einsums: Iterable[Einsum | str]) -> list[Einsum]:
    """The Einsums as parts of a module, those that are parts of others as parts of its parts."""
    parsed = [parse_einsum(einsum) if isinstance(einsum, str) else einsum for einsum in einsums]
    return [replace(e, group=".".join(filter(None, (module, e.group)))) for e in parsed]


NETWORKS = (
    TransformerNetwork(
        "bert-base", "BERT-base", "Devlin et al. 2019 (BERT), section 3",
        12, 128, 768, 12, 64, 3072, 768, before=False, pooled=True,
    ),
    TransformerNetwork(
        "gpt2-124m", "GPT-2 124M with head", "Radford et al. 2019 (GPT-2), Table 2", 12, 128, 768, 12, 64, 3072, 50257,
    ),
    TransformerNetwork(
        "vit-b16", "ViT-B/16 behind its patches", "Dosovitskiy et al. 2021 (ViT), Table 1",
        12, 197, 768, 12, 64, 3072, 1000, pooled=True,
    ),
    TransformerNetwork(
        "t5-small", "T5-small, encoder and decoder", "Raffel et al. 2020 (T5), section 3.7",
        6, 64, 512, 8, 64, 2048, 32128, rms=True, decoder=True,
    ),
    TransformerNetwork(
        "whisper-base", "Whisper-base, encoder and decoder", "Radford et al. 2022 (Whisper), section 2.2 and Table 1",
        6, 448, 512, 8, 64, 2048, 51865, decoder=True, mel=80,
    ),
    TransformerNetwork(
        "llama3-8b-net", "Llama 3 8B with norms and head", LLAMA3_TABLE,
        32, 2048, 4096, 8, 128, 14336, 128256, shared=4, rms=True, gated=True,
    ),
    TransformerNetwork(
        "mistral-7b", "Mistral 7B with norms and head", "Jiang et al. 2023 (Mistral 7B), Table 1",
        32, 2048, 4096, 8, 128, 14336, 32000, shared=4, rms=True, gated=True,
    ),
    TransformerNetwork(
        "mixtral-8x7b", "Mixtral 8x7B for one token and its two experts", "Jiang et al. 2024 (Mixtral), Table 1",
        32, 2048, 4096, 8, 128, 14336, 32000, shared=4, rms=True, gated=True, experts=(8, 2),
    ),
)  # fmt: skip

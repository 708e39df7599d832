"""Networks of state spaces: Mamba 130M, one token after those that its states hold.

A layer reads its state and the last inputs of its convolution, and writes the new state and the newest input: tensors
of their own, as the caches of a transformer. Over many tokens the scan would read the state that it wrote before;
no Einsum reads its own output, so that is not expressed. Biases and activations are left out.
"""

from __future__ import annotations

from ..errors import SpecError
from ..reading.facts import Fact
from ..workload.build import build_workload
from ..workload.einsum import Workload
from .encoders import within
from .origins import CHOSEN, Values, rank_facts
from .transformers import MAX_LAYERS

SOURCE = "the configuration of state-spaces/mamba-130m; Gu and Dao 2023 (Mamba), section 3.4"
SIZES = {"d": 768, "i": 1536, "s": 16, "r": 48, "k": 3, "n": 50280}
"""Width, twice that inside, states, rank of the step, taps of the convolution behind the newest, padded vocabulary."""


def _layer(n: int, x: str) -> list[str]:
    """The Einsums of one layer on x[b,d], which make O."""
    return [
        f"SQ_{n}[b] = square({x}[b,d])",
        f"N_{n}[b,d] = mul({x}[b,d], SQ_{n}[b])",
        f"XI_{n}[b,i] = N_{n}[b,d] * WX_{n}[d,i]",
        f"ZI_{n}[b,i] = N_{n}[b,d] * WZ_{n}[d,i]",
        f"TAPS_{n}[b,i] = INPUTS_{n}[b,k,i] * WTAPS_{n}[k,i]",
        f"U_{n}[b,i] = elementwise(TAPS_{n}[b,i], XI_{n}[b,i], WTAP_{n}[i])",
        f"RANK_{n}[b,r] = U_{n}[b,i] * WRANK_{n}[i,r]",
        f"B_{n}[b,s] = U_{n}[b,i] * WB_{n}[i,s]",
        f"C_{n}[b,s] = U_{n}[b,i] * WC_{n}[i,s]",
        f"STEP_{n}[b,i] = RANK_{n}[b,r] * WSTEP_{n}[r,i]",
        f"DECAY_{n}[b,i,s] = elementwise(STEP_{n}[b,i], WA_{n}[i,s])",
        f"SU_{n}[b,i] = mul(STEP_{n}[b,i], U_{n}[b,i])",
        f"H_{n}[b,i,s] = elementwise(DECAY_{n}[b,i,s], STATE_{n}[b,i,s], SU_{n}[b,i], B_{n}[b,s])",
        f"Y_{n}[b,i] = H_{n}[b,i,s] * C_{n}[b,s]",
        f"G_{n}[b,i] = elementwise(Y_{n}[b,i], U_{n}[b,i], ZI_{n}[b,i], WSKIP_{n}[i])",
        f"O_{n}[b,d] = G_{n}[b,i] * WO_{n}[i,d]",
    ]


def mamba_130m(v: Values) -> Workload:
    """Mamba 130M for one token of each sequence. Raises SpecError for more layers than a stack has."""
    if v["layers"] > MAX_LAYERS:
        raise SpecError(f"mamba-130m: layers={v['layers']}: a stack has 1 to {MAX_LAYERS} layers")
    einsums, x = [], "X"
    for n in range(v["layers"]):
        einsums += within(f"layers.{n}.mixer", _layer(n, x))
        einsums += within(f"layers.{n}", [f"R_{n}[b,d] = add({x}[b,d], O_{n}[b,d])"])
        x = f"R_{n}"
    einsums += within("norm", [f"SQ[b] = square({x}[b,d])", f"N[b,d] = mul({x}[b,d], SQ[b])"])
    einsums += within("head", ["HEAD[b,n] = N[b,d] * WHEAD[d,n]"])
    kept = [f"{name}_{n}" for n in range(v["layers"]) for name in ("XI", "H")]
    facts = (
        *rank_facts(CHOSEN, "assumed", "b"),
        *rank_facts(SOURCE, "code", SIZES),
        Fact("bits.default", CHOSEN, "assumed"),
    )
    ranks = {"b": v["batch"], **SIZES}
    return build_workload("mamba-130m", einsums, ranks, bits=v["bits"], outputs=(*kept, "HEAD"), facts=facts)

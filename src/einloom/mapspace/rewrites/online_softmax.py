"""Attention with its keys in tiles: softmax in one pass over them, as FlashAttention computes it.

A workload of the family ``attention`` comes in with a number of tiles, one of ``online-attention`` goes out. Source:
Dao et al., FlashAttention (NeurIPS'22), Algorithm 1; Nayak et al., FuseMax (MICRO'24), the cascade of one pass.

A step sees one tile of keys: t says which, s runs within it. What a step leaves to the next one, the maximum so far,
the sum and the result, is a scan over t, and an Einsum cannot read what it writes. So each scan is written as an Einsum
with the same operations on as many values:

- ``peak`` is the state of the maximum, a reduction over t, and ``running`` is a copy of what a step sees of it (copies
  perform no operation). An operand that is the state *before* the step is the step's own ``local`` instead: as many
  values, alive at the same time.
- ``total`` and ``sums`` multiply and add once per step and element: they add ``factor * part``, where the algorithm
  adds ``part`` to ``factor * total``.

`SCANS` says what these Einsums compute. Executed like that a mapping computes attention, if t runs upwards for every
row and no two instances share one. Loops run upwards, nested ones in lexicographic order, so every tiling keeps the
first; limits of axes keep the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...errors import SpecError
from ...workload.einsum import Workload
from ..families import cast, family
from .cascade import Script, check_whole, write

SCANS: Mapping[str, str] = MappingProxyType(
    {
        "running": "running[t] = max(running[t-1], local[t])",
        "change": "change[t] = running[t-1] - running[t]",
        "total": "total[t] = factor[t] * total[t-1] + part[t]",
        "rescale": "sums[t] = factor[t] * sums[t-1] + product[t]",
    }
)
"""What Einsums of scans compute, t upwards, by role; running starts at minus infinity, total and sums at 0."""

_EINSUMS = {
    **dict.fromkeys(("local", "peak", "running", "change", "factor"), "max"),
    **dict.fromkeys(("part", "total"), "sum"),
    **dict.fromkeys(("rescale", "div"), "AV"),
}
_TENSORS = {
    **dict.fromkeys(("local", "running", "change"), "peak"),
    **dict.fromkeys(("part", "factor"), "total"),
    **dict.fromkeys(("product", "sums"), "mixed"),
}


def online_softmax(workload: Workload, tiles: int) -> Workload:
    """The attention `workload` in one pass over its keys, which are cut into `tiles` tiles of equal size.

    >>> from einloom.workload.load import load_workload
    >>> online_softmax(load_workload("tileflow-bert-s"), 4).extents["l_s"]
    128

    Its outputs are that of `workload` and the maximum of every row, which FlashAttention writes, too. Raises SpecError
    for a workload of another family, and for a number that does not divide the keys.
    """
    players = cast(family("attention"), workload)
    check_whole(workload, "online_softmax")
    keys = workload.extents[players.variables["QK"]["l"]]
    if tiles < 1 or keys % tiles:
        raise SpecError(f"online_softmax: {tiles} tiles do not divide the {keys} keys of {workload.name}")
    script = Script(
        family("online-attention"),
        _EINSUMS,
        _TENSORS,
        {"t": ("QK", "l"), "s": ("QK", "l")},
        {"t": tiles, "s": keys // tiles},
    )
    cut = f"{tiles} tile{'' if tiles == 1 else 's'}"
    name = f"{workload.name} (online softmax, {cut})"
    return write(script, players, workload, name, ("peak", "mixed"), f"online_softmax, {cut}")

"""Attention with its keys in tiles: softmax in one pass over them, as FlashAttention computes it.

A workload of the family ``attention`` or ``softmax-attention`` comes in with a number of tiles, one of
``online-attention`` goes out, whose tensors keep their order of ranks. Source: Dao et al., FlashAttention (NeurIPS'22),
Algorithm 1; Nayak et al., FuseMax (MICRO'24), the cascade of one pass.

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
from ..casts import Cast, cast
from ..families import family
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

_STEPS = ("local", "peak", "running", "change", "factor", "part", "total", "sub", "exp")
_EINSUMS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "attention": {
            **dict.fromkeys(("local", "peak", "running", "change", "factor"), "max"),
            **dict.fromkeys(("part", "total"), "sum"),
            **dict.fromkeys(("rescale", "div"), "AV"),
        },
        "softmax-attention": {
            **dict.fromkeys(_STEPS, "softmax"),
            **dict.fromkeys(("rescale", "div"), "AV"),
        },
    }
)
"""Per family that comes in and Einsum that is new: the old Einsum whose rank variables it has."""

_TENSORS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "attention": {
            **dict.fromkeys(("local", "running", "change"), "peak"),
            **dict.fromkeys(("part", "factor"), "total"),
            **dict.fromkeys(("product", "sums"), "mixed"),
        },
        "softmax-attention": {
            **dict.fromkeys(("local", "peak", "running", "change", "shifted"), "scores"),
            **dict.fromkeys(("powers", "part", "factor", "total"), "weights"),
            **dict.fromkeys(("product", "sums"), "mixed"),
        },
    }
)
"""Per family that comes in and tensor that is new: the old tensor that it is named after, and has the bits of."""


def attention(workload: Workload) -> Cast:
    """Who plays which role in an attention, whose softmax is five Einsums or one.

    Raises SpecError for any other workload.
    """
    whole, single = family("attention"), family("softmax-attention")
    return cast(single if len(workload.einsums) == len(single.einsums) else whole, workload)


def online_softmax(workload: Workload, tiles: int) -> Workload:
    """The attention `workload` in one pass over its keys, which are cut into `tiles` tiles of equal size.

    >>> from einloom.zoo.workload_by_name import load_workload
    >>> online_softmax(load_workload("tileflow-bert-s"), 4).extents["l_s"]
    128

    Softmax is five Einsums or a single ``softmax(...)``, over the keys; heads may share keys; ranks stand in any order,
    and keep it. The outputs are that of `workload` and the maximum of every row, which FlashAttention writes, too.
    Raises SpecError for a workload of another family, for one with another output, and for a number that does not
    divide the keys.
    """
    players = attention(workload)
    check_whole(workload, "online_softmax")
    kind = players.family.name
    keys = workload.extents[players.variables["QK"]["l"]]
    if tiles < 1 or keys % tiles:
        raise SpecError(f"online_softmax: {tiles} tiles do not divide the {keys} keys of {workload.name}")
    script = Script(
        family("online-attention"),
        _EINSUMS[kind],
        _TENSORS[kind],
        {"t": ("QK", "l"), "s": ("QK", "l")},
        {"t": tiles, "s": keys // tiles},
        orders=_orders(players, workload),
    )
    cut = f"{tiles} tile{'' if tiles == 1 else 's'}"
    name = f"{workload.name} (online softmax, {cut})"
    return write(script, players, workload, name, _outputs(players, workload), f"online_softmax, {cut}")


def _outputs(players: Cast, workload: Workload) -> tuple[str, ...]:
    """Roles of the outputs. Raises SpecError for an output that the rewritten cascade does not have as a whole."""
    kept = ("peak", "total", "mixed")
    for role, tensor in players.tensors.items():
        if tensor in workload.outputs and role not in kept:
            raise SpecError(
                f"online_softmax: {tensor} is an output of {workload.name}, but one pass over the keys leaves no {role}"
            )
    wanted = [role for role in kept if players.tensors.get(role) in workload.outputs]
    return tuple(dict.fromkeys(("peak", *wanted)))


def _orders(players: Cast, workload: Workload) -> dict[str, tuple[str, ...]]:
    """The ranks of every tensor of the rewritten cascade: where `workload` has the keys, it has tiles and keys."""
    old: dict[str, tuple[str, ...]] = {}
    for role, einsum in players.einsums.items():
        marks = {name: mark for mark, name in players.variables[role].items()}
        for access in workload.einsum(einsum).accesses:
            tensor = next(mark for mark, name in players.tensors.items() if name == access.tensor)
            old.setdefault(tensor, tuple(marks[index.variables[0]] for index in access.indices))
    cut = {
        tensor: tuple(part for rank in ranks for part in (("t", "s") if rank == "l" else (rank,)))
        for tensor, ranks in old.items()
    }
    rows = tuple(rank for rank in old["scores"] if rank != "l")
    steps = (*cut.get("peak", rows), "t")
    mixed = cut["mixed"]
    return {
        **dict.fromkeys(("shifted", "powers"), cut["scores"]),
        **dict.fromkeys(("peak", "total"), rows),
        **dict.fromkeys(("local", "running", "change", "part", "factor"), steps),
        "sums": mixed,
        "product": tuple(part for rank in mixed for part in (("t", "n") if rank == "n" else (rank,))),
        **{tensor: ranks for tensor, ranks in cut.items() if tensor != "weights"},
    }

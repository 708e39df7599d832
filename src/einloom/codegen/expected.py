"""What a cascade computes, in NumPy: random inputs, and every tensor from them, Einsum by Einsum.

It knows no mapping and no machine. Elements outside a declared shape are 0; a maximum skips points that touch one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import mul

import numpy as np

from ..dataflows.casts import Cast, cast
from ..dataflows.families import family
from ..errors import SpecError
from ..workload.einsum import Access, Einsum, Workload
from .functions import Floats, Mask, in_numpy

PIECE = 1 << 24  # points that are in memory at once
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # ranks of `numpy.einsum`


def drawn(workload: Workload, seed: int) -> dict[str, Floats]:
    """Numbers from -1 to 1 for the inputs of a cascade and what its tensors have at first; the same seed gives the
    same."""
    random = np.random.default_rng(seed)
    names = (*workload.inputs, *(tensor.name for tensor in workload.tensors if tensor.initial))
    return {name: random.uniform(-1, 1, workload.tensor(name).shape) for name in names}


def scans(workload: Workload) -> Cast | None:
    """Who plays which role in an attention with online softmax; None for any other workload."""
    try:
        return cast(family("online-attention"), workload)
    except SpecError:
        return None


def computed(workload: Workload, inputs: Mapping[str, Floats]) -> dict[str, Floats]:
    """Every tensor that an Einsum writes; of an attention with online softmax those that are left at its end, with the
    meaning of its scans."""
    players = scans(workload)
    if players is not None:
        return _attention(workload, players, inputs)
    values, made = dict(inputs), dict[str, Floats]()
    for einsum in workload.einsums:
        tensor, result = einsum.output.tensor, _result(workload, einsum, values)
        if tensor in workload.parted:
            before = values.get(tensor, np.zeros_like(result))
            result = np.where(touched(workload, einsum), result, before)
        made[tensor] = values[tensor] = result
    return made


def _attention(workload: Workload, players: Cast, inputs: Mapping[str, Floats]) -> dict[str, Floats]:
    """Maximum, sum, products and result of attention over all keys at once, from its definition."""
    einsum = {role: workload.einsum(name) for role, name in players.einsums.items()}
    letter = dict(zip(players.family.variables, _LETTERS, strict=False))

    def spelled(role: str, access: Access) -> str:
        marks = {name: mark for mark, name in players.variables[role].items()}
        return "".join(letter[marks[index.variables[0]]] for index in access.indices)

    scores = _product(einsum["QK"], [inputs[access.tensor] for access in einsum["QK"].inputs])
    ranks = spelled("QK", einsum["QK"].output)
    keys = tuple(ranks.index(letter[mark]) for mark in ("t", "s"))
    rows = "".join(rank for n, rank in enumerate(ranks) if n not in keys)
    weights = np.exp(scores - scores.max(axis=keys, keepdims=True))
    value = next(access for access in einsum["AV"].inputs if access.tensor in inputs)
    ends = {role: spelled(role, einsum[role].output) for role in ("peak", "total", "rescale", "div")}
    total = np.einsum(f"{ranks}->{rows}", weights)
    mixed = f"{ranks},{spelled('AV', value)}->{ends['rescale']}"
    sums = np.einsum(mixed, weights, inputs[value.tensor], optimize=True)
    found = {
        "peak": np.einsum(f"{rows}->{ends['peak']}", scores.max(axis=keys)),
        "total": np.einsum(f"{rows}->{ends['total']}", total),
        "rescale": sums,
        "div": np.einsum(f"{ends['rescale']},{rows}->{ends['div']}", sums, 1 / total),
    }
    return {einsum[role].output.tensor: np.asarray(array) for role, array in found.items()}


def _product(einsum: Einsum, operands: Sequence[Floats]) -> Floats:
    """A product of simple accesses by `numpy.einsum`."""
    letter = dict(zip(einsum.variables, _LETTERS, strict=False))
    terms = ["".join(letter[i.variables[0]] for i in access.indices) for access in (*einsum.inputs, einsum.output)]
    return np.asarray(np.einsum(f"{','.join(terms[:-1])}->{terms[-1]}", *operands, optimize=True))


def touched(workload: Workload, einsum: Einsum) -> Mask:
    """The elements of its output that an Einsum writes."""
    found = np.zeros(workload.tensor(einsum.output.tensor).shape, np.bool_)
    piece = {v: range(workload.extents[v]) for v in einsum.output.variables}
    at, inside = _positions(workload, einsum.output, piece)
    full = np.broadcast_shapes(inside.shape, *(one.shape for one in at))
    found[tuple(np.broadcast_to(one, full)[np.broadcast_to(inside, full)] for one in at)] = True
    return found


def _result(workload: Workload, einsum: Einsum, values: Mapping[str, Floats]) -> Floats:
    simple = all(_whole(workload, access) for access in einsum.accesses)
    simple = simple and einsum.output.tensor not in workload.parted
    if simple and einsum.kind != "map" and einsum.reduction != "max" and len(einsum.variables) < len(_LETTERS):
        return _product(einsum, [values[access.tensor] for access in einsum.inputs])
    shape = workload.tensor(einsum.output.tensor).shape
    maximum = einsum.reduction == "max"
    found = np.full(int(np.prod(shape)), -np.inf if maximum else 0.0)
    for piece in _pieces(workload, einsum):
        operands, real = [], np.ones((1,) * len(einsum.variables), np.bool_)
        for access in einsum.inputs:
            at, inside = _positions(workload, access, piece)
            operands.append(np.where(inside, values[access.tensor].reshape(workload.shape(access))[at], 0.0))
            real = real & inside
        value = in_numpy(einsum.function or "identity", operands) if einsum.kind == "map" else reduce(mul, operands)
        at, inside = _positions(workload, einsum.output, piece)
        full = np.broadcast_shapes(value.shape, inside.shape, tuple(map(len, piece.values())))
        wanted = np.broadcast_to(inside & real if maximum else inside, full)
        flat = np.zeros((1,) * len(full), np.int64)
        for one, size in zip(at, shape, strict=True):
            flat = flat * size + one
        place, mine = (np.broadcast_to(one, full)[wanted] for one in (flat, value))
        (np.maximum if maximum else np.add).at(found, place, mine)
    return (np.where(np.isneginf(found), 0.0, found) if maximum else found).reshape(shape)


def _whole(workload: Workload, access: Access) -> bool:
    """True if an access is of a whole tensor, a variable for each rank."""
    ranks = zip(access.indices, workload.shape(access), strict=True)
    return not access.view and all(i.simple and workload.extents[i.variables[0]] == size for i, size in ranks)


def _pieces(workload: Workload, einsum: Einsum) -> Iterator[dict[str, range]]:
    """The iteration space in parts, cut along its first variable."""
    every = {v: range(workload.extents[v]) for v in einsum.variables}
    first = next(iter(every), None)
    if first is None:
        yield every
        return
    others = int(np.prod([len(n) for v, n in every.items() if v != first]))
    step = max(1, PIECE // max(1, others))
    for start in range(0, len(every[first]), step):
        yield {**every, first: every[first][start : start + step]}


def _positions(
    workload: Workload, access: Access, piece: Mapping[str, range]
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Per rank the positions of an access, cut at the declared shape, and which were inside; one axis a variable."""
    axis = {v: n for n, v in enumerate(piece)}
    inside = np.ones((1,) * len(piece), np.bool_)
    found = []
    for index, size in zip(access.indices, workload.shape(access), strict=True):
        at = np.full((1,) * len(piece), index.constant, np.int64)
        for v, c in index.terms:
            shape = [1] * len(piece)
            shape[axis[v]] = len(piece[v])
            at = at + c * np.array(piece[v], np.int64).reshape(shape)
        inside = inside & (at >= 0) & (at < size)
        found.append(np.clip(at, 0, size - 1))
    return tuple(found), inside

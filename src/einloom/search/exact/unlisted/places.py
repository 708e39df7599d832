"""Which places of a tensor's ranks an Einsum meets, and how often."""

from __future__ import annotations

import numpy as np

from ..einsums.classes import EinsumClass, TensorSignature


def reached(einsum: EinsumClass, tensor: TensorSignature, rank: int) -> tuple[int, int]:
    """(places of the rank inside the shape, iterations over the variables of its index that meet one)."""
    extents, size = einsum.extents, tensor.shape[rank]
    if tensor.simple(rank):
        return (min(extents[tensor.ranks[rank][0][0]], size),) * 2
    places, met = np.array([tensor.constants[rank]]), np.ones(1, np.int64)
    for v, coefficient in tensor.ranks[rank]:
        every = places[:, None] + coefficient * np.arange(extents[v])
        places, inverse = np.unique(every, return_inverse=True)
        met = np.bincount(inverse.reshape(-1), np.repeat(met, extents[v])).astype(np.int64)
    inside = (places >= 0) & (places < size)
    return int(inside.sum()), int(met[inside].sum())

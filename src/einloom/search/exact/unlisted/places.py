"""Which places of a tensor's ranks an Einsum meets, and how often."""

from __future__ import annotations

import numpy as np

from ....cost.formulas.places import ways
from ..einsums.classes import EinsumClass, TensorSignature


def reached(einsum: EinsumClass, tensor: TensorSignature, rank: int) -> tuple[int, int]:
    """(places of the rank inside the shape, iterations over the variables of its index that meet one)."""
    extents, size = einsum.extents, tensor.shape[rank]
    if tensor.simple(rank):
        return (min(extents[tensor.ranks[rank][0][0]], size),) * 2
    met = ways([(coefficient, extents[v]) for v, coefficient in tensor.ranks[rank]])
    first = tensor.constants[rank]
    found = met[max(-first, 0) : max(size - first, 0)]
    return int(np.count_nonzero(found)), int(found.sum())

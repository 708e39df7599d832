"""An independent NumPy evaluation of a cascade on integers: what the executed tree must compute.

A workload and integer inputs come in; an array per tensor goes out. It knows no mapping and no machine. Elements
outside a declared shape are 0; a reduction by maximum skips points that touch one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from itertools import product
from operator import mul
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ..workload.einsum import Access, Einsum, Workload

Array = npt.NDArray[np.int64]
_MIXING_MODULUS = 1009


def random_inputs(workload: Workload, seed: int = 0) -> dict[str, Array]:
    """Integers from -9 to 9 without 0 for inputs of the cascade and initial tensors; same seed, same values."""
    random = Random(seed)
    choices = [value for value in range(-9, 10) if value]
    return {
        name: np.array([random.choice(choices) for _ in range(workload.tensor(name).size)], dtype=np.int64).reshape(
            workload.tensor(name).shape
        )
        for name in (*workload.inputs, *(tensor.name for tensor in workload.tensors if tensor.initial))
    }


@cache
def _salt(name: str) -> int:
    return crc32(name.encode()) % _MIXING_MODULUS


def apply_function(name: str, values: tuple[int, ...]) -> int:
    """The named function on integers: exact where integers allow it, else a fixed mixing of name and values.

    >>> apply_function("add", (2, 3)), apply_function("max", (2, 3))
    (5, 3)
    """
    if name == "add":
        return sum(values)
    if name == "sub":
        return values[0] - sum(values[1:])
    if name in ("max", "min"):
        return max(values) if name == "max" else min(values)
    if name in ("identity", "copy"):
        return values[0]
    if name == "relu":
        return max(values[0], 0)
    mixed = _salt(name)
    for value in values:
        mixed = (mixed * 31 + value * 7 + value * value) % _MIXING_MODULUS
    return mixed


def combine(reduction: str, old: int | None, new: int | None) -> int | None:
    """Two partial results of one element; None is the neutral element."""
    if old is None or new is None:
        return new if old is None else old
    return max(old, new) if reduction == "max" else old + new


def evaluate_cascade(workload: Workload, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of the cascade, computed from `inputs` Einsum by Einsum over the whole iteration space."""
    values = dict(inputs)
    for einsum in workload.einsums:
        tensor, made = einsum.output.tensor, _evaluate(workload, einsum, values)
        if tensor in workload.parted:
            before = values.get(tensor, np.zeros_like(made))
            mine = np.zeros(made.shape, np.bool_)
            for element in written_elements(workload, einsum.name):
                mine[element] = True
            made = np.where(mine, made, before)
        values[tensor] = made
    return values


def written_elements(workload: Workload, einsum: str) -> set[tuple[int, ...]]:
    """The elements that an Einsum writes, found point by point."""
    output = workload.einsum(einsum).output
    variables = output.variables
    found = set()
    for point in product(*(range(workload.extents[v]) for v in variables)):
        at = dict(zip(variables, point, strict=True))
        found.add(tuple(index.constant + sum(c * at[v] for v, c in index.terms) for index in output.indices))
    return found


def _evaluate(workload: Workload, einsum: Einsum, values: Mapping[str, Array]) -> Array:
    names = einsum.variables
    grid = np.indices(tuple(workload.extents[name] for name in names), dtype=np.int64)
    points = {name: grid[i].ravel() for i, name in enumerate(names)}
    total = grid[0].size if names else 1
    operands, real = [], np.ones(total, dtype=np.bool_)
    for access in einsum.inputs:
        position, inside = _positions(workload, access, points, total)
        operands.append(np.where(inside, values[access.tensor].ravel()[np.where(inside, position, 0)], 0))
        real &= inside
    result = _pointwise(einsum, operands)
    position, inside = _positions(workload, einsum.output, points, total)
    size = workload.tensor(einsum.output.tensor).size
    if einsum.reduction == "max":
        chosen = inside & real
        output = np.full(size, np.iinfo(np.int64).min, dtype=np.int64)
        np.maximum.at(output, position[chosen], result[chosen])
        touched = np.zeros(size, dtype=np.bool_)
        touched[position[chosen]] = True
        output[~touched] = 0
    else:
        output = np.zeros(size, dtype=np.int64)
        np.add.at(output, position[inside], result[inside])
    return output.reshape(workload.tensor(einsum.output.tensor).shape)


def _positions(
    workload: Workload, access: Access, points: Mapping[str, Array], total: int
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The flat position of `access` at every point, and whether it lies inside the declared shape."""
    flat = np.zeros(total, dtype=np.int64)
    inside = np.ones(total, dtype=np.bool_)
    for index, size in zip(access.indices, workload.shape(access), strict=True):
        along = np.full(total, index.constant, dtype=np.int64)
        for name, coefficient in index.terms:
            along = along + coefficient * points[name]
        inside &= (along >= 0) & (along < size)
        flat = flat * size + along
    return flat, inside


def _pointwise(einsum: Einsum, operands: list[Array]) -> Array:
    if einsum.kind == "map":
        name = einsum.function or "identity"
        function: Any = np.frompyfunc(lambda *values: apply_function(name, tuple(map(int, values))), len(operands), 1)
        return np.asarray(function(*operands)).astype(np.int64)
    return reduce(mul, operands)

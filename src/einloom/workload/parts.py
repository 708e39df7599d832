"""Tensors written in parts: which elements each Einsum writes, and whether the parts are disjoint and complete.

An output rank may be indexed by a sum that reaches each of its positions once (``14*p+q+1``), or by a constant; several
Einsums may write one tensor. A rank is *whole* if every writer indexes it by one bare rank variable of its full size.
Only whole ranks may be iterated by loops that Einsums share (docs/model/parts.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from ..errors import SpecError
from .einsum import Access, Einsum, Index, Workload

MAX_POSITIONS = 2**22


def places(index: Index, sizes: Mapping[str, int]) -> int:
    """How many points an index expression has: positions that it reaches, if it reaches each of them once."""
    return prod(sizes[variable] for variable in index.variables)


def is_injective(index: Index, sizes: Mapping[str, int]) -> bool:
    """True if the terms are like digits: each factor is larger than what the smaller terms reach together.

    >>> is_injective(Index((("p", 14), ("q", 1)), 1), {"p": 14, "q": 14})
    True
    """
    reach = 0
    for variable, coefficient in sorted(index.terms, key=lambda term: term[1]):
        if sizes[variable] > 1 and coefficient <= reach:
            return False
        reach += coefficient * (sizes[variable] - 1)
    return True


def written_size(indices: Sequence[Index], sizes: Mapping[str, int]) -> int:
    """The size of a rank that its writers index so: up to the last position that one of them writes."""
    return max(index.constant + index.extent(sizes) for index in indices)


def part_problems(
    tensor: str, shape: Sequence[int], writers: Sequence[Einsum], sizes: Mapping[str, int], initial: bool
) -> Iterator[SpecError]:
    """What is wrong with the parts of a tensor: not injective, outside the shape, overlapping, or not all of it."""
    outside = [error for einsum in writers for error in _misplaced(einsum, shape, sizes)]
    yield from outside
    if outside:
        return
    apart = True
    for first, second in combinations(writers, 2):
        try:
            same = not _disjoint(first.output, second.output, sizes)
        except SpecError as error:
            raise SpecError(f"tensor {tensor}: {error.message}", path=f"einsums.{second.name}") from None
        if same:
            apart = False
            yield SpecError(
                f"Einsums {first.name} ({first.output}) and {second.name} ({second.output}) write the same elements of "
                f"{tensor}; parts of one tensor must be disjoint",
                path=f"einsums.{second.name}",
            )
    total = sum(prod(places(index, sizes) for index in einsum.output.indices) for einsum in writers)
    if apart and total < prod(shape) and not initial:
        names = ", ".join(f"{einsum.name} ({einsum.output})" for einsum in writers)
        yield SpecError(
            f"tensor {tensor} has {prod(shape)} elements, but {names} write{'s' if len(writers) == 1 else ''} {total} "
            f"of them; write the others, too, or list {tensor} under initial if they are there from the start",
            path=f"einsums.{writers[-1].name}",
        )


def refuse_parts(workload: Workload, what: str) -> None:
    """Raise SpecError if a tensor is written in parts or has views; `what` cannot say, or does not carry, that."""
    for tensor in workload.parted:
        writers = ", ".join(str(workload.einsum(name).output) for name in workload.writers.get(tensor, ()))
        detail = "" if tensor in workload.viewed else f" ({writers})"
        raise SpecError(f"{what}: tensor {tensor} {not_whole(workload, tensor)}{detail}")


def not_whole(workload: Workload, tensor: str) -> str:
    """What makes a tensor of `Workload.parted` one, as the end of a sentence."""
    views = ", ".join(view.name for view in workload.views if view.tensor == tensor)
    return f"is read under other ranks, as {views}" if views else "is written in parts"


def _misplaced(einsum: Einsum, shape: Sequence[int], sizes: Mapping[str, int]) -> Iterator[SpecError]:
    for index, size in zip(einsum.output.indices, shape, strict=True):
        said = f"Einsum {einsum.name} writes {einsum.output}"
        if not is_injective(index, sizes):
            yield SpecError(
                f"{said}, but {index} reaches some position more than once; the factor of each rank variable must be "
                "larger than what the terms with smaller factors reach together",
                path=f"einsums.{einsum.name}",
            )
        elif index.constant < 0 or index.constant + index.extent(sizes) > size:
            last = index.constant + index.extent(sizes) - 1
            yield SpecError(
                f"{said}, but {index} reaches positions {index.constant} to {last} of a rank of size {size}",
                path=f"einsums.{einsum.name}",
            )


def _disjoint(first: Access, second: Access, sizes: Mapping[str, int]) -> bool:
    """True if two writers share no element: on some rank they share no position."""
    return any(_apart(a, b, sizes) for a, b in zip(first.indices, second.indices, strict=True))


def _apart(first: Index, second: Index, sizes: Mapping[str, int]) -> bool:
    """True if two indices of one rank share no position."""
    low, high = max(first.constant, second.constant), min(i.constant + i.extent(sizes) for i in (first, second))
    if low >= high:
        return True
    step = gcd(*(coefficient for index in (first, second) for _, coefficient in index.terms))
    if step and (first.constant - second.constant) % step:
        return True  # as even and odd positions are
    if all(i.extent(sizes) == places(i, sizes) for i in (first, second)):
        return False
    if max(places(i, sizes) for i in (first, second)) > MAX_POSITIONS:
        raise SpecError(f"{first} and {second} have more than {MAX_POSITIONS:,} positions, too many to be compared")
    return np.intersect1d(_positions(first, sizes), _positions(second, sizes)).size == 0


def _positions(index: Index, sizes: Mapping[str, int]) -> NDArray[np.int64]:
    found = np.array([index.constant], dtype=np.int64)
    for variable, coefficient in index.terms:
        found = np.add.outer(found, coefficient * np.arange(sizes[variable], dtype=np.int64)).ravel()
    return found

"""The orders in which the Einsums of a cascade may run: each Einsum after those whose results it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from operator import or_

from .einsum import Workload


def awaited(workload: Workload) -> tuple[int, ...]:
    """For each Einsum those whose results it reads, as a set of bits: bit i stands for the Einsum at place i.

    >>> from .build import build_workload
    >>> w = build_workload("fork", ["Q[m] = exp(A[m])", "K[m] = exp(A[m])", "Z[m] = Q[m] * K[m]"], {"m": 2}, bits=8)
    >>> awaited(w)
    (0, 0, 3)
    """
    made = {tensor: {1 << workload.position[name] for name in names} for tensor, names in workload.writers.items()}
    read = ({a.tensor for a in e.inputs if a.tensor in made} for e in workload.einsums)
    return tuple(sum(bit for tensor in tensors for bit in made[tensor]) for tensors in read)


def earlier(workload: Workload) -> list[int]:
    """For each Einsum all that run before it in every order."""
    found: list[int] = []
    for direct in awaited(workload):
        found.append(direct | reduce(or_, (mine for j, mine in enumerate(found) if direct >> j & 1), 0))
    return found


def orders(workload: Workload) -> Iterator[Workload]:
    """The workload with its Einsums in every order that their data allows, program order first.

    >>> from .build import build_workload
    >>> w = build_workload("fork", ["Q[m] = exp(A[m])", "K[m] = exp(A[m])", "Z[m] = Q[m] * K[m]"], {"m": 2}, bits=8)
    >>> [tuple(one.names) for one in orders(w)]
    [('Q', 'K', 'Z'), ('K', 'Q', 'Z')]
    """
    names, waits = tuple(workload.names), awaited(workload)

    def further(chosen: tuple[int, ...], done: int) -> Iterator[tuple[int, ...]]:
        if len(chosen) == len(names):
            yield chosen
        for i, needed in enumerate(waits):
            if not done >> i & 1 and not needed & ~done:
                yield from further((*chosen, i), done | 1 << i)

    for order in further((), 0):
        yield reordered(workload, [names[i] for i in order])


def reordered(workload: Workload, names: Sequence[str]) -> Workload:
    """The workload with its Einsums in this order; itself if that is its own, or if `names` are other Einsums."""
    own = tuple(workload.names)
    if tuple(names) == own or sorted(names) != sorted(own):
        return workload
    return replace(workload, einsums=tuple(workload.einsum(name) for name in names))


def several_orders(workload: Workload) -> bool:
    """True if some Einsum may run before or after another."""
    return len(list(islice(orders(workload), 2))) > 1

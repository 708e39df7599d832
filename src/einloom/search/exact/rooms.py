"""Which memories can be too small, how much of them is left, and where room is followed along a cascade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...problem import Problem
from .einsums.classes import EinsumClass
from .einsums.holds import backings_of
from .einsums.users import Users


def limited(problem: Problem, signatures: Sequence[EinsumClass], aside: Mapping[int, int]) -> tuple[int | None, ...]:
    """Bits of every memory without those set `aside`; None where all tensors together fit."""
    workload = problem.workload
    capacities: list[int | None] = []
    for i, memory in enumerate(problem.machine.memories):
        widest: dict[str, int] = {}
        for sig, e in zip(signatures, workload.einsums, strict=True):
            for t, name in zip(sig.tensors, e.tensors, strict=True):
                widest[name] = max(widest.get(name, 0), t.bits[i])
        copies = {t.name: workload.repeat if t.persistent else 1 for t in workload.tensors}
        everything = sum(t.size * copies[t.name] * widest[t.name] for t in workload.tensors)
        everything *= memory.capacity_share()
        fits = memory.size is None or everything <= memory.size
        capacities.append(None if fits or memory.size is None else memory.size - aside.get(i, 0))
    return tuple(capacities)


def persistent_bits(problem: Problem, users: Users) -> dict[int, int]:
    """Bits per memory that persistent inputs and outputs of the cascade take there for the whole run, once per
    repeat. (Where others of them stand is for each mapping to say.)"""
    workload, total = problem.workload, dict[int, int]()
    for tensor in workload.tensors:
        first = users.first(tensor.name)
        home = users.homes[first].get(tensor.name)
        if tensor.persistent and home is not None:
            memory = problem.machine.memories[home]
            bits = users.span(tensor.name) * memory.bits(workload, first, tensor.name) * workload.repeat
            total[home] = total.get(home, 0) + bits * memory.capacity_share()
    return total


def followed_across(signatures: Sequence[EinsumClass], capacities: Sequence[int | None]) -> tuple[int, ...]:
    """The memories that can be too small and whose room Einsums share.

    Own stores stand above the split of a backing store further in, too.
    """
    backing = innermost_backing(signatures) > 0
    return tuple(i for i, c in enumerate(capacities) if c is not None and (i == 0 or backing))


def innermost_backing(signatures: Sequence[EinsumClass]) -> int:
    """The memory furthest in that can back what several Einsums share; 0 if that is the outermost."""
    units = ((sig, backings_of(option.held, len(sig.tensors))) for sig in {*signatures} for option in sig.units)
    return max((memory for sig, backs in units for t in sig.fusable for memory in backs[t]), default=0)

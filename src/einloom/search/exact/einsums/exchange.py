"""Axes, and loops over one axis, that may change places in all Einsums of a cascade at once.

Comes in: the classes of a cascade's Einsums. Goes out: the same, told an order of their rank variables in which all
users of a shared tensor have its ranks, and which axes of a fanout no Einsum can tell apart. Einsums that stand below
the same spatial loops put those of one axis in that order, and choose the same of all ways to lay them on like axes,
each by itself. The argument: docs/model/pruning.md, "Like axes" and "Loops over one axis".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from ....workload.einsum import Workload
from .classes import EinsumClass
from .spatial import padded


def exchangeable(workload: Workload, signatures: Sequence[EinsumClass], uneven: bool = False) -> list[EinsumClass]:
    """The classes with `order` and `swaps`: per axis the first one whose place it may take, empty if none may.

    They are as they are where no order is known, or nobody shares a loop over an axis (then variables may `merge`).
    uneven: tiles need not divide; then axes keep their places. Where rule 11 may bar a way to lay loops on them, each
    Einsum has the first way for each set of its variables that would be barred (`reach`).
    """
    orders = None if any(one.merge for one in signatures) else _orders(workload, signatures)
    if orders is None:
        return list(signatures)
    swaps = () if uneven else _swaps(signatures)
    reach = _reach(workload, signatures) if swaps else [()] * len(signatures)
    known: dict[EinsumClass, EinsumClass] = {}
    every = zip(signatures, orders, reach, strict=True)
    found = (replace(one, swaps=swaps, order=order, reach=more) for one, order, more in every)
    return [known.setdefault(one, one) for one in found]  # one object for all that are equal: quick to compare


def _swaps(signatures: Sequence[EinsumClass]) -> tuple[int, ...]:
    """Per axis the first of its fanout that all Einsums meet like it, whatever its size; limits tell axes apart. Empty
    if all are apart."""
    first: dict[object, int] = {}
    found = []
    for i, met in enumerate(zip(*(one.axes for one in signatures), strict=True)):
        limited = any(axis.shares or axis.totals for axis in met)
        mark: object = i if limited else tuple(replace(axis, size=0) for axis in met)
        found.append(first.setdefault(mark, i))
    return () if found == list(range(len(found))) else tuple(found)


def _reach(workload: Workload, signatures: Sequence[EinsumClass]) -> list[tuple[tuple[int, ...], ...]]:
    """Per Einsum and variable the numbers of positions with padding of all variables, its own too, whose loops it may
    share; () for an Einsum if there are none at all."""
    own = {(i, v): {n} for i, one in enumerate(signatures) for v, n in padded(one).items() if n > 1}
    if not own:
        return [()] * len(signatures)
    exchanged = [
        [(name, tensor) for name, tensor in zip(einsum.tensors, one.tensors, strict=True) if tensor.fusable]
        for einsum, one in zip(workload.einsums, signatures, strict=True)
    ]
    ranks = {
        (i, v): [(name, rank) for name, tensor in exchanged[i] if (rank := tensor.fused_rank(v)) is not None]
        for i, one in enumerate(signatures)
        for v in range(len(one.extents))
    }
    told: dict[tuple[str, int], set[int]] = {rank: set() for every in ranks.values() for rank in every}
    before = -1
    while before < (before := sum(map(len, told.values()))):  # numbers go on from rank to rank
        for at, every in ranks.items():
            numbers = own.get(at, set()).union(*(told[rank] for rank in every))
            told.update({rank: told[rank] | numbers for rank in every})
    return [
        tuple(tuple(sorted(set[int]().union(*(told[r] for r in ranks[i, v])))) for v in range(len(one.extents)))
        for i, one in enumerate(signatures)
    ]


def _orders(workload: Workload, signatures: Sequence[EinsumClass]) -> list[tuple[int, ...]] | None:
    """Per Einsum its variables in an order in which those that index a shared tensor come as in its other users; None
    if the tensors contradict each other."""
    ranks: dict[str, list[int]] = {}
    found = []
    for einsum, signature in zip(workload.einsums, signatures, strict=True):
        variables = range(len(signature.extents))
        shared = {
            name: {rank: v for v in variables if (rank := tensor.fused_rank(v)) is not None}
            for name, tensor in zip(einsum.tensors, signature.tensors, strict=True)
            if tensor.fusable
        }
        before: dict[int, set[int]] = {v: set() for v in variables}
        for name, mine in shared.items():
            for a, b in pairwise(mine[rank] for rank in ranks.get(name, ()) if rank in mine):
                before[b].add(a)
        order = _sorted(before)
        if order is None:
            return None
        found.append(order)
        for name, mine in shared.items():
            known = ranks.setdefault(name, [])
            if not mine.keys() <= set(known):
                if not mine.keys() >= set(known):
                    return None
                ranks[name] = sorted(mine, key=lambda rank: order.index(mine[rank]))
    return found


def _sorted(before: dict[int, set[int]]) -> tuple[int, ...] | None:
    """Numbers behind all that come before them, small ones first; None if there is no such order."""
    sorter, found = TopologicalSorter(before), list[int]()
    try:
        sorter.prepare()
    except CycleError:
        return None
    ready = list[int]()
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()])
        found.append(ready.pop(0))
        sorter.done(found[-1])
    return tuple(found)

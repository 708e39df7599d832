"""Which partial cascades an Einsum's rows can follow: those that a block agrees with, looked up instead of tried."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import chain

import numpy as np

from ..numerics.multiples import ragged_ranges
from ..numerics.pareto import IntArray, pack
from .compatibility import Axes, Compatibility, LiveTensor

Met = tuple[tuple[str, int], ...]  # tensors that the Einsum finds alive, with the loops whose ranks must be the same
Shape = tuple[int, Met]
Agreed = tuple[object, ...]


class Meeting:
    """What some partial cascades (by number) ask of the Einsum that follows, by what a block has to have."""

    def __init__(self, asks: Iterable[Compatibility], tensors: Container[str], producers: Container[str]) -> None:
        self._known: dict[Shape, dict[Agreed, list[int]]] = {}
        for number, one in enumerate(asks):
            met = sorted((live for live in one.live if live.tensor in tensors), key=lambda live: live.tensor)
            shared = len(one.axes)
            depths = [compared(live, shared, live.tensor in producers) for live in met]
            if None in depths:
                continue
            shape = shared, tuple((live.tensor, depth or 0) for live, depth in zip(met, depths, strict=True))
            agreed = (one.axes, *(_store(live, depth) for live, (_, depth) in zip(met, shape[1], strict=True)))
            self._known.setdefault(shape, {}).setdefault(agreed, []).append(number)

    def with_block(self, axes: Axes, mine: dict[str, LiveTensor]) -> list[int]:
        """Those that rows below such loops, with such stores, may follow, in order."""
        found = []
        for (shared, met), known in self._known.items():
            if shared <= len(axes) and all(tensor in mine for tensor, _ in met):
                agreed = (axes[:shared], *(_store(mine[tensor], depth) for tensor, depth in met))
                found.append(known.get(agreed, ()))
        return sorted(chain.from_iterable(found))


def compared(live: LiveTensor, shared: int, produced: bool) -> int | None:
    """The loops above a live tensor whose ranks its next Einsum must have, too; None if one of them is no rank of it
    alone."""
    if not produced:
        return live.depth
    known = max(min(len(live.ranks), shared), live.depth)
    return None if None in live.ranks[:known] else known


def _store(live: LiveTensor, known: int) -> Agreed:
    return live.memory, live.depth, live.ranks[:known]


def matching_pairs(left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """Every pair of rows with equal tiles, as two index arrays: a sorted merge."""
    n = len(left)
    keys = pack(np.concatenate([left, right]))
    a, b = keys[:n], keys[n:]
    order = np.argsort(b, kind="stable")
    sorted_b = b[order]
    first = np.searchsorted(sorted_b, a, side="left")
    counts = np.searchsorted(sorted_b, a, side="right") - first
    repeat, within = ragged_ranges(counts)
    return repeat, order[first[repeat] + within]

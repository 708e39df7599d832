"""Pareto filters: keep the rows that no other row of the same key beats in every column.

`skyline` picks between two equal implementations: NumPy (small inputs, and the oracle in tests) and a compiled
kernel that is loaded only when an input is large enough to pay for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...resources import unlimited
from .narrow import every, varying

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
COMPILED_FROM = 60_000_000  # numbers compared by NumPy before loading the compiled kernel pays
LOADED_FROM = 100  # rows from which it is used once it is loaded
COMPARED = 10_000_000  # pairs of rows compared by the kernel between checkpoints
Checkpoint = Callable[[], None]


def _go_on() -> None:
    """No checkpoint."""


def skyline(
    keys: IntArray, values: FloatArray, compiled: bool | None = None, checkpoint: Checkpoint = _go_on
) -> IntArray:
    """Indices of the rows that stay, sorted by key.

    keys: [n]; rows compete only within a key. values: [n, c], smaller is better; of equal rows the first stays.
    compiled: force one implementation; None picks by work. checkpoint: asked now and then whether to go on.
    """
    n = len(values)
    if n == 0:
        return np.zeros(0, np.int64)
    order = ordered(keys, values)
    sorted_keys = keys[order]
    starts = np.ones(n, bool)
    starts[1:] = sorted_keys[1:] != sorted_keys[:-1]
    return np.asarray(order[ordered_skyline(starts, values, order, compiled, checkpoint)])


def ordered(keys: IntArray, values: FloatArray) -> IntArray:
    """The rows by key, then by `ranking`, as `numpy.lexsort` has them: later columns are sorted only where it ties."""
    *later, first = ranking(values)
    order = np.lexsort((first, keys))
    if not later or len(order) < 2:
        return order
    lower, higher = order[:-1], order[1:]
    ties = np.flatnonzero((keys[lower] == keys[higher]) & (first[lower] == first[higher]))
    if not len(ties):
        return order
    tied = np.zeros(len(order), bool)
    tied[ties] = tied[ties + 1] = True
    places = np.flatnonzero(tied)
    begins = np.ones(len(order), bool)
    begins[ties + 1] = False
    rows = order[places]
    order[places] = rows[np.lexsort((*(column[rows] for column in later), np.cumsum(begins)[places]))]
    return order


def pack(trips: IntArray) -> IntArray:
    """One integer per distinct row of small positive numbers."""
    total = np.zeros(len(trips), np.int64)
    radix = 1
    for c in range(trips.shape[1]):
        size = int(trips[:, c].max(initial=0)) + 1
        if radix * size >= 1 << 62:
            unique, total = np.unique(total, return_inverse=True)
            total, radix = total.reshape(-1), len(unique)
        total, radix = total * size + trips[:, c], radix * size
    return total


def pareto(trips: IntArray, cost: FloatArray, reserved: IntArray, checkpoint: Checkpoint = _go_on) -> IntArray:
    """Indices of the rows that none with equal trips beats in cost and reservations."""
    return skyline(pack(trips), compared(cost, reserved), checkpoint=checkpoint)


def compared(cost: FloatArray, reserved: IntArray) -> FloatArray:
    """The columns of both, side by side, by which rows can be told apart; one if they cannot."""
    values = np.concatenate([cost, reserved.astype(np.float64)], axis=1)
    used = varying(values)
    return np.ascontiguousarray(values[:, used] if used.any() else values[:, :1])


def ranking(values: FloatArray) -> tuple[FloatArray, ...]:
    """Keys for `numpy.lexsort`, last first: no row comes after one that it beats.

    Two columns: lexicographic. More: first by the sum of the columns as shares of their ranges, because what beats most
    has a small one (after Chomicki et al., skyline with presorting); sums of rounded numbers grow with every number.
    """
    columns = [values[:, c] for c in range(values.shape[1] - 1, -1, -1)]
    if len(columns) <= 2 or not len(values):
        return tuple(columns)
    low = values.min(axis=0)
    wide = values.max(axis=0) - low
    shares = (values - low) * np.where(wide > 0, 1.0 / np.where(wide > 0, wide, 1.0), 0.0)
    return (*columns, shares.sum(axis=1))


def ordered_skyline(
    starts: NDArray[np.bool_],
    values: FloatArray,
    rows: IntArray,
    compiled: bool | None = None,
    checkpoint: Checkpoint = _go_on,
) -> NDArray[np.bool_]:
    """Mask of the places in `rows` (numbers of rows of `values`) that stay.

    starts: where each group begins; within a group the rows stand in the order of `ranking`.
    """
    columns = values.shape[1]
    if columns <= 1:
        return starts
    if columns == 2:
        return _sweep(starts, values[rows, 1])
    ranked = np.ascontiguousarray(values[rows])
    if compiled is None:
        return _either(starts, ranked, checkpoint)
    return _by_kernel(starts, ranked, checkpoint) if compiled else _peel(starts, ranked)


class _Effort:
    """Numbers that NumPy has compared so far in this process."""

    spent = 0


def _either(starts: NDArray[np.bool_], ranked: FloatArray, checkpoint: Checkpoint) -> NDArray[np.bool_]:
    """By NumPy until it has compared so much that the kernel is worth loading, then by the kernel."""
    if _compiled.cache_info().currsize and len(ranked) >= LOADED_FROM:
        return _by_kernel(starts, ranked, checkpoint)
    keep = _peel(starts, ranked, COMPILED_FROM)
    return keep if len(keep) else _by_kernel(starts, ranked, checkpoint)


def _by_kernel(starts: NDArray[np.bool_], ranked: FloatArray, checkpoint: Checkpoint) -> NDArray[np.bool_]:
    """Sort-filter skyline in machine code, some comparisons at a time."""
    keep = np.zeros(len(ranked), np.bool_)
    front = np.empty(len(ranked), np.int64)
    at = size = 0
    while at < len(ranked):
        at, size = _compiled()(starts, ranked, keep, front, at, size, COMPARED)
        if at < len(ranked):
            checkpoint()
    return keep


def _sweep(starts: NDArray[np.bool_], second: FloatArray) -> NDArray[np.bool_]:
    """Two columns: after sorting by the first, a row stays if its second is below all before it in its group."""
    n = len(starts)
    group = np.cumsum(starts) - 1
    # dense rank of the value, so that equal values do not count as better
    by_value = np.sort(second)
    dense = np.searchsorted(by_value, second)
    shifted = dense - group * (n + 1)
    lowest = np.minimum.accumulate(shifted)
    keep = starts.copy()
    keep[1:] |= shifted[1:] < lowest[:-1]
    return keep


def _peel(starts: NDArray[np.bool_], ranked: FloatArray, most: int | None = None) -> NDArray[np.bool_]:
    """Sort-filter skyline, all groups at once: the first open row of each group stays and removes what it dominates.

    most: numbers to compare, in all calls together, before giving up with an empty answer.
    """
    n, columns = ranked.shape
    group = np.cumsum(starts) - 1
    keep = np.zeros(n, bool)
    open_rows = np.arange(n)
    while len(open_rows):
        _Effort.spent += len(open_rows) * columns
        if most is not None and _Effort.spent > most:
            return np.zeros(0, bool)
        open_group = group[open_rows]
        first = np.ones(len(open_rows), bool)
        first[1:] = open_group[1:] != open_group[:-1]
        heads = open_rows[first]
        keep[heads] = True
        pivot = ranked[heads[np.cumsum(first) - 1]]
        dominated = every(pivot <= ranked[open_rows])
        open_rows = open_rows[~dominated]
    return keep


@lru_cache(maxsize=1)
def _compiled() -> Any:
    with unlimited():
        return _kernel()


def _kernel() -> Any:
    import numba

    @numba.njit(
        "UniTuple(int64, 2)(boolean[::1], float64[:, ::1], boolean[::1], int64[::1], int64, int64, int64)", cache=True
    )
    def kernel(starts: Any, ranked: Any, keep: Any, front: Any, at: Any, size: Any, most: Any) -> Any:
        """Goes on from row `at`, where the front of the group has `size` rows, until it has compared `most` or more."""
        n, columns = ranked.shape
        compared = 0
        for i in range(at, n):
            if compared >= most:
                return i, size
            if starts[i]:
                size = 0
            dominated = False
            for f in range(size):
                j = front[f]
                compared += 1
                worse = True
                for c in range(columns):
                    if ranked[j, c] > ranked[i, c]:
                        worse = False
                        break
                if worse:
                    dominated = True
                    if f > 0:  # move to front: what dominated once dominates again
                        front[f] = front[f - 1]
                        front[f - 1] = j
                    break
            if not dominated:
                keep[i] = True
                front[size] = i
                size += 1
        return n, size

    return kernel

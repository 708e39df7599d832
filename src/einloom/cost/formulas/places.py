"""Places of a rank that an index meets: sums of steps of its variables, each place once.

Comes in: a stride and a number of steps for each loop or variable, and where the sums start. Goes out: how many
distinct places are inside the rank. Runs without gaps are closed forms; of others there is a flag for each place.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Step = tuple[int, int]  # (stride, how many)


def inside(steps: Iterable[Step], starts: IntArray, size: int) -> int:
    """How many of the places 0 to size - 1 are reached from a start by some step of each kind, summed over all starts.

    steps: (stride, number of places along it) of each kind; the strides are positive.
    """
    run, gaps = _run(steps)
    if not gaps:
        return int(np.maximum(np.minimum(starts + run, size) - np.maximum(starts, 0), 0).sum())
    met = ways(gaps, np.ones(run, np.int64)) > 0
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(met)])
    first, last = np.clip(-starts, 0, len(met)), np.clip(size - starts, 0, len(met))
    return int(np.maximum(before[last] - before[first], 0).sum())


def ways(steps: Iterable[Step], found: IntArray | None = None) -> IntArray:
    """By how many choices of steps each place from 0 on is reached. found: the same of further steps."""
    if found is None:
        found = np.ones(1, np.int64)
    for stride, times in steps:
        rows = -(-len(found) // stride) + times - 1
        wide = np.zeros(rows * stride, np.int64)
        wide[: len(found)] = found
        sums = wide.reshape(rows, stride).cumsum(axis=0)
        sums[times:] -= sums[:-times].copy()
        found = sums.reshape(-1)[: len(found) + stride * (times - 1)]
    return found


def _run(steps: Iterable[Step]) -> tuple[int, list[Step]]:
    """(places in a row that the shortest strides reach, the strides that leave gaps between such rows)."""
    run, gaps = 1, []
    for stride, times in sorted(steps):
        if stride <= run:
            run += stride * (times - 1)
        elif times > 1:
            gaps.append((stride, times))
    return run, gaps

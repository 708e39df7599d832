"""Machine code that prices many choices of trips for one skeleton: a loop over rows, generic over data.

Nothing is compiled for a problem or a skeleton. A path costs what `kernel.price` says of it. What goes in is packed by
`rows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FOR, PAR, price, value_of
from .machine_code import machine_code


@machine_code
def price_rows(
    trips: Any,
    items: Any,
    column: Any,
    ends: Any,
    extents: Any,
    least: Any,
    tiles: Any,
    divided: Any,
    bits: Any,
    sizes: Any,
    rel: Any,
    values: Any,
    written: Any,
    joined: Any,
    width: Any,
    mem: Any,
    scal: Any,
    found: Any,
) -> None:
    """Fill `found` with the objective of every row, infinite where trips do not multiply to the extents or do not fit.

    trips: int64 [rows, columns]; least: what each column needs at least. items: the paths of all Einsums, one after the
    other, `ends` says where each ends, `column` where an item's trips stand (-1: as they are). extents: int64 [Einsums,
    variables]. tiles: int64 [n, 5], rows (memory, first leaf, last leaf, begin, end of its columns in `divided`), of
    `bits` when no column divides. The other arrays are those of `kernel.price`, with the Einsums in front.
    """
    count, leaves = items.shape[0], ends.shape[0]
    path = np.zeros((count, 4), np.int64)
    done = np.zeros(extents.shape[1], np.int64)
    used = np.zeros((sizes.shape[0], leaves))
    flows, out = np.zeros((4, mem.shape[0])), np.zeros(3)
    sums = np.zeros((trips.shape[0], 3))
    for row in range(trips.shape[0]):
        found[row] = 0.0 if _fits(trips[row], least, tiles, divided, bits, sizes, used) else np.inf
    begin = 0
    for e in range(leaves):
        for row in range(trips.shape[0]):
            if found[row] > 0:
                continue
            size = _laid(trips[row], items, column, begin, ends[e], extents[e], done, path)
            if size < 0:
                found[row] = np.inf
                continue
            price(path, size, rel[e], values[e], written[e], joined[e], width[e], mem, scal[e], flows, out)
            for n in range(3):
                sums[row, n] += out[n]
        begin = ends[e]
    for row in range(trips.shape[0]):
        if found[row] == 0:
            found[row] = value_of(scal[0], sums[row, 0], sums[row, 1], sums[row, 2])


@machine_code
def _fits(trips: Any, least: Any, tiles: Any, divided: Any, bits: Any, sizes: Any, used: Any) -> bool:
    """True if every column has its least trips, and all tiles that are alive together have room."""
    for c in range(least.shape[0]):
        if trips[c] < least[c]:
            return False
    used[:, :] = 0.0
    for t in range(tiles.shape[0]):
        parts = 1.0
        for at in range(tiles[t, 3], tiles[t, 4]):
            parts *= trips[divided[at]]
        size = bits[t] / parts
        m = tiles[t, 0]
        for leaf in range(tiles[t, 1], tiles[t, 2] + 1):
            used[m, leaf] += size
            if used[m, leaf] > sizes[m]:
                return False
    return True


@machine_code
def _laid(trips: Any, items: Any, column: Any, begin: int, end: int, extents: Any, done: Any, path: Any) -> int:
    """Enter a path with the trips of a row into `path`, without loops of one trip; its items, or -1 if trips do not
    multiply to the extents."""
    size = 0
    for v in range(extents.shape[0]):
        done[v] = 1
    for at in range(begin, end):
        kind, n = items[at, 0], items[at, 2]
        if kind in (FOR, PAR):
            if column[at] >= 0:
                n = trips[column[at]]
            if n == 1:
                continue
            v = items[at, 1]
            done[v] *= n
            if n > extents[v] or done[v] > extents[v]:
                return -1
        path[size, 0], path[size, 1], path[size, 2], path[size, 3] = kind, items[at, 1], n, items[at, 3]
        size += 1
    for v in range(extents.shape[0]):
        if done[v] != extents[v]:
            return -1
    return size

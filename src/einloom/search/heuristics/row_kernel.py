"""Machine code that prices many choices of trips for one skeleton: a loop over rows, generic over data.

Nothing is compiled for a problem or a skeleton. What a link moves is linear in how often the tile below it is fetched;
only that depends on the row. What goes in is packed by `rows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import value_of
from .machine_code import machine_code

BEGIN, LACKS, HAS, CUT, LINK = 0, 1, 2, 3, 4  # see `_fetched`


@machine_code
def price_rows(
    trips: Any,
    least: Any,
    tiles: Any,
    divided: Any,
    bits: Any,
    sizes: Any,
    chain: Any,
    ends: Any,
    whole: Any,
    walk: Any,
    slopes: Any,
    last: Any,
    bases: Any,
    floors: Any,
    ports: Any,
    scal: Any,
    factors: Any,
    of_link: Any,
    found: Any,
) -> None:
    """Fill `found` with the objective of every row, infinite where trips do not multiply to the extents or do not fit.

    trips: int64 [rows, columns]; least: what each column needs at least. tiles: int64 [n, 6], rows (memory, first leaf,
    last leaf, begin, end of its columns in `divided`, its column of factors or -1), of `bits` when no column divides.
    factors: float [rows, n], what windows make of tiles and links; of_link: the column of each link, or -1. chain,
    ends, whole: see `_multiply`; walk: see `_fetched`. slopes: float [links, 2 memories + 2], what each link adds
    whenever its tile is fetched: seconds that each memory reads and writes, joules, bits through the objective's
    memory; last: after which link an Einsum ends; bases: float [Einsums, 2 memories + 2], what it has besides; floors:
    seconds of its unit. ports: whether a memory reads and writes by turns. scal: as in `kernel.price`, the same for all
    Einsums.
    """
    leaves, sums = last.shape[0], bases.shape[1]
    used = np.zeros((sizes.shape[0], leaves))
    fetched, total = np.zeros(slopes.shape[0]), np.zeros(sums)
    for row in range(trips.shape[0]):
        found[row] = np.inf
        if not _fits(trips[row], least, tiles, divided, bits, sizes, factors[row], used):
            continue
        if not _multiply(trips[row], chain, ends, whole):
            continue
        _fetched(trips[row], walk, fetched)
        _slide(factors[row], of_link, fetched)
        energy = latency = traffic = 0.0
        begin = 0
        for e in range(leaves):
            for s in range(sums):
                total[s] = bases[e, s]
            for link in range(begin, last[e]):
                for s in range(sums):
                    total[s] += slopes[link, s] * fetched[link]
            begin, slowest = last[e], floors[e]
            for m in range(ports.shape[0]):
                reads, writes = total[2 * m], total[2 * m + 1]
                slowest = max(slowest, reads + writes if ports[m] else max(reads, writes))
            latency += slowest * scal[3]
            energy += total[sums - 2] + scal[4] * slowest * scal[3]
            traffic += total[sums - 1]
        found[row] = value_of(scal, energy, latency, traffic)


@machine_code
def _fits(trips: Any, least: Any, tiles: Any, divided: Any, bits: Any, sizes: Any, factors: Any, used: Any) -> bool:
    """True if every column has its least trips, and all tiles that are alive together have room."""
    for c in range(least.shape[0]):
        if trips[c] < least[c]:
            return False
    used[:, :] = 0.0
    for t in range(tiles.shape[0]):
        parts = 1.0
        for at in range(tiles[t, 3], tiles[t, 4]):
            parts *= trips[divided[at]]
        size, m = bits[t] / parts, tiles[t, 0]
        if tiles[t, 5] >= 0:
            size *= factors[tiles[t, 5]]
        for leaf in range(tiles[t, 1], tiles[t, 2] + 1):
            used[m, leaf] += size
            if used[m, leaf] > sizes[m]:
                return False
    return True


@machine_code
def _multiply(trips: Any, chain: Any, ends: Any, whole: Any) -> bool:
    """True if the trips of each variable of each Einsum multiply to what they are to cover.

    chain: the columns of their loops, one variable after the other, `ends` says where each ends.
    """
    begin = 0
    for v in range(ends.shape[0]):
        product = 1.0
        for at in range(begin, ends[v]):
            product *= trips[chain[at]]
        if product != whole[v]:
            return False
        begin = ends[v]
    return True


@machine_code
def _slide(factors: Any, of_link: Any, fetched: Any) -> None:
    """Multiply what is fetched over each link by what windows make of it."""
    for link in range(of_link.shape[0]):
        if of_link[link] >= 0:
            fetched[link] *= factors[of_link[link]]


@machine_code
def _fetched(trips: Any, walk: Any, fetched: Any) -> None:
    """Fill `fetched`: how often the tile below each link is fetched, as `even.even_counts` counts it.

    walk: int64 [n, 2], tensor by tensor of each Einsum its path from the outside in: a temporal loop that the tensor
    lacks or has, and its column, a split or leaf, which cuts, and links with their numbers. Trips of the loops that it
    lacks count above the last one that it has, or cut; loops of one trip are none.
    """
    again = counted = 1.0
    for at in range(walk.shape[0]):
        kind, n = walk[at, 0], walk[at, 1]
        if kind == LACKS:
            again *= trips[n]
        elif kind == HAS:
            if trips[n] > 1:
                counted = again
        elif kind == LINK:
            fetched[n] = counted
        elif kind == CUT:
            counted = again
        else:
            again = counted = 1.0

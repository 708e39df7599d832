"""The only formulas of the project: how often tiles are visited, what a visit moves, what an instance does.

Everything here is `+ - * // %`, minimum and selection on sizes, so the same code runs on Python ints (one mapping) and
on NumPy arrays (many tile choices of one template). The tree walk of `accesses` and the tables of the exact search both
price with these functions and with nothing else. Derivations: docs/model/moves.md; sources: DESIGN section 6 of the
cost semantics, FFM section 4 and LoopTree (multiplicity of buffers), and the exact recursion for ragged tiles.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from ...dataclass import dataclass

Number = Any  # int, or an integer array of one common shape


def minimum(a: Number, b: Number) -> Number:
    """The smaller of two sizes, elementwise on arrays."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


def maximum(a: Number, b: Number) -> Number:
    """The larger of two sizes or times, elementwise on arrays."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return max(a, b)


def positive(a: Number) -> Number:
    """1 where a size is above zero, else 0."""
    return int(a > 0) if isinstance(a, int) else (a > 0).astype(np.int64)


def trips_of(extent: Number, tile: Number) -> Number:
    """ceil(extent / tile): iterations of a loop that cuts `extent` into tiles of `tile`."""
    return -(-extent // tile)


@dataclass(frozen=True, slots=True)
class LoopCut:
    """How one loop cuts the extent of its variable.

    tile: extent below the loop; the last piece may be smaller. ends: for a loop whose pieces follow from the needs of
    consumers, the exclusive end of each piece over all iterations of this loop and those further out on the variable
    (then `tile` is not used); trips: pieces per iteration of the loops further out. once: 1 where only one piece is
    counted (a loop that keeps its tile, a multicast axis, the busiest instance), 0 where every piece is; a flag or an
    array of flags. pick: with `once`, the piece that is counted.
    """

    tile: Number
    ends: tuple[int, ...] | None = None
    once: Number = 0
    pick: int = 0
    trips: Number = 1

    def piece(self, at: Number) -> tuple[Number, Number]:
        """(start, extent) of piece number `at` of a derived loop, counted over all iterations."""
        assert self.ends is not None
        if isinstance(at, np.ndarray):
            numbers, ends = at.astype(np.int64), np.asarray(self.ends)
            starts = np.where(numbers > 0, ends[numbers - 1], 0)
            return starts, ends[numbers] - starts
        start = self.ends[at - 1] if at else 0
        return start, self.ends[at] - start

    def extent_of(self, extent: Number, at: Number, number: Number) -> Number:
        """Extent of piece `at` of `extent`; `number` counts the pieces over all iterations, for a derived loop."""
        if self.ends is not None:
            return self.piece(number)[1]
        return maximum(minimum(self.tile, extent - at * self.tile), 0)

    def picked(self, extent: Number) -> Number:
        """Extent of the one piece that a plain cut with `once` counts."""
        return minimum(extent, self.tile) if self.pick == 0 else self.extent_of(extent, self.pick, 0)


def _pieces_sum(extent: Number, cuts: tuple[LoopCut, ...], whole: bool) -> Number:
    """Sum over all pieces at the innermost cut of 1 (visits) or of their extent (`whole`)."""
    if not cuts:
        return extent if whole else positive(extent)
    if any(cut.ends is not None for cut in cuts):
        return _listed_sum(extent, cuts, whole, 0)
    head, rest = cuts[0], cuts[1:]
    if isinstance(head.once, (int, bool, np.bool_)) and head.once:
        return _pieces_sum(head.picked(extent), rest, whole)
    full = (extent // head.tile) * _pieces_sum(head.tile, rest, whole)
    every = full + _pieces_sum(extent % head.tile, rest, whole)
    if isinstance(head.once, (int, bool, np.bool_)):
        return every
    return np.where(head.once, _pieces_sum(minimum(extent, head.tile), rest, whole), every)


def _listed_sum(extent: int, cuts: tuple[LoopCut, ...], whole: bool, at: int) -> int:
    """As `_pieces_sum`, piece by piece, for chains with derived loops; `at` numbers the iteration of loops above."""
    if not cuts:
        return extent if whole else int(extent > 0)
    head, rest = cuts[0], cuts[1:]
    total = 0
    for j in range(head.pick, head.pick + 1) if head.once else range(head.trips):
        place = at * head.trips + j
        size = head.extent_of(extent, j, place)
        if size > 0:
            total += _listed_sum(size, rest, whole, place)
    return total


@lru_cache(maxsize=200_000)
def _pieces_cached(extent: int, cuts: tuple[LoopCut, ...], whole: bool) -> int:
    """`_pieces_sum` on integers, cut by cut: how many pieces of each extent there are."""
    if not cuts or any(cut.ends is not None for cut in cuts):
        return int(_pieces_sum(extent, cuts, whole))
    pieces = {extent: 1}
    for cut in cuts:
        found: dict[int, int] = {}
        for size, count in pieces.items():
            parts = ((cut.picked(size), 1),) if cut.once else ((cut.tile, size // cut.tile), (size % cut.tile, 1))
            for part, times in parts:
                if part > 0 and times > 0:
                    found[int(part)] = found.get(int(part), 0) + count * times
        pieces = found
    return sum(count * size if whole else count for size, count in pieces.items())


def _plain(extent: Number, cuts: tuple[LoopCut, ...]) -> bool:
    return isinstance(extent, int) and all(isinstance(c.tile, int) and isinstance(c.once, int) for c in cuts)


def visits(extent: Number, cuts: tuple[LoopCut, ...]) -> Number:
    """How often the tile below `cuts` is entered: F(D;) = 1, F(D; t, ..) = floor(D/t) F(t; ..) + F(D mod t; ..).

    A cut with `once` contributes its first piece only. Exact for any nested ragged tiles.

    >>> visits(7, (LoopCut(4), LoopCut(3)))
    3
    """
    return _pieces_cached(extent, cuts, False) if _plain(extent, cuts) else _pieces_sum(extent, cuts, False)


def covered(extent: Number, cuts: tuple[LoopCut, ...]) -> Number:
    """Sum of the variable's extents over all visits below `cuts`; the extent itself unless a cut counts once.

    >>> covered(7, (LoopCut(4, once=1), LoopCut(3)))
    4
    """
    return _pieces_cached(extent, cuts, True) if _plain(extent, cuts) else _pieces_sum(extent, cuts, True)


class Tiled(Protocol):
    """A plain cut, or a loop."""

    @property
    def tile(self) -> Number: ...


def largest(extent: Number, cuts: Iterable[Tiled]) -> Number:
    """Extent of the first, largest tile below plain `cuts`."""
    for cut in cuts:
        extent = minimum(extent, cut.tile)
    return extent


def evenly_crossed(values: int, visits: Number, parts: int) -> Number:
    """Values that cross a link where every loop cuts evenly: one of `parts` equal parts, once in each of the visits.

    visits: the product of the trips of loops that the tensor lacks and that fetch it anew. The same as `covered` and
    `visits` multiplied over the ranks.
    """
    return values // parts * visits


def perfect_trips(extent: Number, tile: Number, spread: Number) -> Number:
    """Temporal iterations above a tile when every loop divides evenly and `spread` instances share the extent."""
    return extent // (tile * spread)


def refills(moved: Number, fresh: Number) -> Number:
    """Partial results that are read back: all that is written up, less the first write of each (no value before it).

    moved: values written up; fresh: values written up for the first time, once per instance that holds a partial sum.
    """
    return moved - fresh


def energy(bits: Number, per_access: float, access_bits: int) -> Number:
    """Joules of `bits` moved; fractions of an access are not rounded."""
    return bits * (per_access / access_bits)


def transfer_time(bits: Number, throughput: float) -> Number:
    """Seconds to move `bits` through one instance."""
    return bits / throughput

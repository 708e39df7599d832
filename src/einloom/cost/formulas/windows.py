"""Windows of one rank, piece by piece: for ranks with halos, strides, padding or consumer-derived pieces.

Where a rank is a plain variable its counts are closed products (`terms.covered`); here the pieces are listed, because a
window may overlap the one before, leave gaps, or be cut at the declared shape. Only the loops on the rank's own
variables are listed, so the work is the product of a few trip counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from .terms import Cut

Chain = tuple[tuple[int, Cut], ...]


@dataclass(frozen=True, slots=True)
class RankUse:
    """How one Einsum reaches a rank: coefficient, extent and (place, cut) chain of each variable, plus the constant."""

    terms: tuple[tuple[int, int, Chain], ...]
    constant: int

    def interval(self, choice: dict[int, int]) -> tuple[int, int] | None:
        """[low, high) for one choice of piece per loop place; None if a piece is empty."""
        low = high = self.constant
        for coefficient, extent, chain in self.terms:
            start = number = 0
            for place, cut in chain:
                number = number * cut.trips + choice[place]
                if cut.ends is not None:
                    start, size = cut.piece(number)
                else:
                    start, size = start + choice[place] * cut.tile, min(cut.tile, extent - choice[place] * cut.tile)
                if size <= 0:
                    return None
                extent = size
            low += coefficient * start
            high += coefficient * (start + extent - 1)
        return low, high + 1


def hull(uses: tuple[RankUse, ...], choice: dict[int, int], size: int) -> tuple[int, int] | None:
    """[low, high) of what the Einsums need together, cut at the declared shape; None if none of them has work."""
    found = [i for use in uses if (i := use.interval(choice)) is not None]
    if not found:
        return None
    low, high = max(0, min(i[0] for i in found)), min(size, max(i[1] for i in found))
    return (low, high) if high > low else (low, low)


def _ranges(uses: tuple[RankUse, ...]) -> dict[int, range]:
    """Pieces to list per loop place; a cut with `once` lists its picked piece only."""
    table: dict[int, range] = {}
    for use in uses:
        for _, _, chain in use.terms:
            for place, cut in chain:
                table[place] = range(cut.pick, cut.pick + 1) if cut.once else range(cut.trips)
    return dict(sorted(table.items()))


@lru_cache(maxsize=100_000)
def moved(uses: tuple[RankUse, ...], size: int, sliding: int | None) -> int:
    """Elements of the rank that all visits bring in: the window, less what the step of the sliding loop kept.

    uses: the Einsums below the store that access the tensor. size: declared size of the rank. sliding: place of the
    loop whose steps keep the overlap with the window before, or None.
    """
    ranges = _ranges(uses)
    outer = [place for place in ranges if place != sliding]
    steps = ranges.get(sliding, range(1)) if sliding is not None else range(1)
    total = 0
    for combination in product(*(ranges[place] for place in outer)):
        choice = dict(zip(outer, combination, strict=True))
        before: tuple[int, int] | None = None
        for step in steps:
            if sliding is not None:
                choice[sliding] = step
            now = hull(uses, choice, size)
            if now is None:
                continue
            kept = max(0, min(now[1], before[1]) - max(now[0], before[0])) if before is not None else 0
            total += now[1] - now[0] - kept
            before = now
    return total


@lru_cache(maxsize=100_000)
def extent_at(uses: tuple[RankUse, ...], size: int, choice: tuple[tuple[int, int], ...]) -> int:
    """Size of the window for one choice of piece per loop place."""
    found = hull(uses, dict(choice), size)
    return 0 if found is None else found[1] - found[0]


@lru_cache(maxsize=100_000)
def overlaps(uses: tuple[RankUse, ...], size: int, sliding: int) -> bool:
    """True if any step of the sliding loop keeps an element of the rank."""
    return moved(uses, size, sliding) < moved(uses, size, None)

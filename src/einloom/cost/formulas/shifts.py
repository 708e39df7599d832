"""Iterations of a loop in which a window is only moved along: they are counted together.

Where every loop divides, windows differ by where they start alone, and how many start at each place is a running sum
over places (`EvenWindow`). Elsewhere fewer iterations are listed than loops have (`steps_of`): a window is that of the
iteration before, moved by a constant, if the piece of its variable is a full one and neither window is cut at the
declared shape, whatever the iterations of the other loops are. Then it has the same extent and the same overlap with
the window of the step before, so one of those iterations stands for all of them (docs/model/pruning.md). The others
are listed: those at a padded rim, and the last one of loops that do not divide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from ...dataclass import dataclass
from .places import Step, ways
from .terms import LoopCut

IntArray = NDArray[np.int64]
Term = tuple[int, int, tuple[tuple[int, LoopCut], ...]]  # coefficient, extent, (place, cut) of each loop


@dataclass(frozen=True, slots=True)
class Steps:
    """Iterations of a loop, ascending, and how many each stands for."""

    at: IntArray
    counts: IntArray


@dataclass(frozen=True, slots=True)
class EvenWindow:
    """A window all of whose loops divide. start: of the first one; span: extent of each; steps: (shift, trips) of the
    loops that count, without the sliding one, which is `slide`."""

    start: int
    span: int
    steps: tuple[Step, ...]
    slide: Step

    @staticmethod
    def of(terms: tuple[Term, ...], constant: int, sliding: int) -> EvenWindow | None:
        """The window of an index, if all its loops divide. sliding: place of the sliding loop."""
        start, span = constant, 1
        steps: list[Step] = []
        slides: list[Step] = []
        for coefficient, extent, chain in terms:
            for place, cut in chain:
                tile, trips = cut.tile, cut.trips
                if cut.ends is not None or coefficient < 1 or extent != tile * trips:
                    return None
                if cut.once:
                    start += coefficient * cut.pick * tile
                else:
                    (slides if place == sliding else steps).append((coefficient * tile, trips))
                extent = tile
            span += coefficient * (extent - 1)
        if len({trips for _, trips in slides}) > 1:
            return None
        slide = (sum(shift for shift, _ in slides), slides[0][1]) if slides else (0, 1)
        return EvenWindow(start, span, tuple(steps), slide)

    def moved(self, size: int) -> int:
        """Elements inside the declared shape that the windows of all iterations bring in: of steps of the sliding loop
        what the window of the step before has not."""
        shift, trips = self.slide
        fresh = min(self.span, shift)
        last = self.start + self.span + sum(step * (n - 1) for step, n in (*self.steps, self.slide))
        if self.start >= 0 and last <= size:
            return prod(n for _, n in self.steps) * (self.span + (trips - 1) * fresh)
        first = ways(self.steps)
        total = self._inside(first, self.start, self.span, size)
        if trips > 1:
            later = ways([(shift, trips - 1)], first)
            total += self._inside(later, self.start + shift + self.span - fresh, fresh, size)
        return total

    @staticmethod
    def _inside(counts: IntArray, start: int, extent: int, size: int) -> int:
        """Elements of runs inside the shape; counts: how many runs start at each place from `start` on."""
        low = start + np.arange(len(counts))
        return int((np.clip(low + extent, 0, size) - np.clip(low, 0, size)) @ counts)


def every(trips: int) -> Steps:
    """All iterations, each for itself."""
    return Steps(np.arange(trips), np.ones(trips, np.int64))


def steps_of(
    uses: Sequence[tuple[tuple[Term, ...], int]], size: int, trips: Mapping[int, int], sliding: int
) -> dict[int, Steps]:
    """The iterations to list of each loop. uses: terms and constant of each Einsum's index; size: declared size of the
    rank; trips: by place; sliding: place of the loop whose windows are set beside those of its step before."""
    found = {}
    for place, count in trips.items():
        first, last = _moved_along(uses, size, place, count)
        found[place] = _listed(count, first, last, sliding=place == sliding)
    return found


def _listed(trips: int, first: int, last: int, *, sliding: bool) -> Steps:
    """All iterations but those from `first` to `last`, of which one or two stand for all.

    The first one of a sliding loop has another step before it than the others have; the last one is listed as that
    before what follows, and counts nothing itself.
    """
    if last - first < (3 if sliding else 1):
        return every(trips)
    inside = [(first, 1), (first + 1, last - first), (last, 0)] if sliding else [(first, last - first + 1)]
    at, counts = np.array(inside).T
    before, after = np.arange(first), np.arange(last + 1, trips)
    ones = np.ones(len(before) + len(after), np.int64)
    return Steps(np.concatenate([before, at, after]), np.insert(ones, len(before), counts))


def _moved_along(uses: Sequence[tuple[tuple[Term, ...], int]], size: int, place: int, trips: int) -> tuple[int, int]:
    """The first and the last iteration of a loop in which all windows are only moved along; none if last < first."""
    first, last, shifts = 0, trips - 1, set()
    for terms, constant in uses:
        shift, end = 0, constant + 1
        for coefficient, extent, chain in terms:
            end += coefficient * (extent - 1)
            if coefficient < 0:
                return 0, -1
            for outer, tile in _cut_at(extent, chain, place):
                if tile is None:
                    return 0, -1
                shift += coefficient * tile
                end -= coefficient * (outer - tile)
                last = min(last, outer // tile - 1)
        if shift <= 0:
            return 0, -1
        shifts.add(shift)
        first = max(first, -(constant // shift))
        last = min(last, (size - end) // shift)
    return (first, last) if len(shifts) == 1 else (0, -1)


def _cut_at(extent: int, chain: tuple[tuple[int, LoopCut], ...], place: int) -> list[tuple[int, int | None]]:
    """(extent above, tile) of the loop at `place`, if it is of this variable; tile None: its pieces are not alike."""
    if all(at != place for at, _ in chain):
        return []
    if any(cut.ends is not None for _, cut in chain):
        return [(extent, None)]
    for at, cut in chain:
        tile = int(cut.tile)
        if at == place:
            return [(extent, tile)]
        if extent % tile:
            return [(extent, None)]
        extent = tile
    return []

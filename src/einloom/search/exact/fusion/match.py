"""Which complete rows fit below each boundary of the fused part, undominated.

Comes in: the rows below one memory that share a context. Goes out: for many boundary tiles at once, pairs of (boundary,
row). Rows are ordered once by what they are compared by, so that no sorting is left for the boundaries."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.divisibility import ByClass, Lattice, by_class
from ..numerics.multiples import ragged_ranges
from ..numerics.pareto import IntArray, ordered_skyline, pack, ranking
from ..numerics.uneven import ceil
from ..pmappings.cost_to_go import CostToGo
from ..pmappings.prune import Pruner
from ..pmappings.rows import PROMISE, Rows, promises

PAIRS = 1 << 21  # compared at a time
BEYOND = np.iinfo(np.int64).max  # above every number
ASKED = 1 << 18  # pairs from which on it is asked whether to go on before


class Below:
    """Answers for one set of rows; every boundary is worked out once. coming: what the fused part may add to them."""

    def __init__(self, pruner: Pruner, lattice: Lattice, rows: Rows, coming: CostToGo | None) -> None:
        self.pruner = pruner
        self.lattice = lattice
        values = pruner.values(rows, coming)
        order = np.lexsort(ranking(values))
        self.rows = rows.take(order)
        self.values = np.ascontiguousarray(values[order])
        self.codes = lattice.codes(self.rows.x) if lattice.packed else np.zeros(0, np.int64)
        self.least = self.rows.cost.min(axis=0, initial=np.inf)
        self.promises = bool(rows.marks[:, PROMISE].any())
        self._suited: dict[tuple[int, bytes], NDArray[np.bool_]] = {}
        self._known = self._order = np.zeros(0, np.int64)  # numbers of boundaries as they come, and these by size
        self._sorted = np.array([BEYOND])
        self._starts = np.zeros(1, np.int64)
        self._flat = np.zeros(0, np.int64)

    @cached_property
    def _by_class(self) -> ByClass:
        return by_class(self.rows.x)

    def suited(self, d: int, extents: IntArray) -> NDArray[np.bool_]:
        """Mask of the extents of class `d` below which the extent of some row fits."""
        key = d, extents.tobytes()
        if key not in self._suited:
            self._suited[key] = np.asarray(self.lattice.suit(d, self._by_class[d][0], extents).any(axis=1))
        return self._suited[key]

    def match(self, x: IntArray) -> tuple[IntArray, IntArray]:
        """(number of the boundary, row) for every undominated row that fits below each boundary `x`."""
        numbers = self.lattice.numbers(x)
        if numbers is not None:
            place = self._places(numbers, x)
            starts, flat = self._starts, self._flat
        else:
            _, first, inverse = np.unique(pack(x), return_index=True, return_inverse=True)
            place = inverse.reshape(-1)
            which, flat = self._fronts(x[first])
            starts = np.searchsorted(which, np.arange(len(first) + 1))
        counts = starts[place + 1] - starts[place]
        which, within = ragged_ranges(counts)
        return which, flat[starts[place[which]] + within]

    def _places(self, numbers: IntArray, x: IntArray) -> IntArray:
        """Where the answers for boundaries stand; new ones are worked out and added."""
        at = np.searchsorted(self._sorted, numbers)
        new = np.flatnonzero(self._sorted[at] != numbers)
        if len(new):
            fresh, first = np.unique(numbers[new], return_index=True)
            which, flat = self._fronts(x[new[first]])
            ends = np.searchsorted(which, np.arange(len(fresh)), side="right")
            self._starts = np.concatenate([self._starts, self._starts[-1] + ends])
            self._flat = np.concatenate([self._flat, flat])
            self._known = np.concatenate([self._known, fresh])
            self._order = np.argsort(self._known, kind="stable")
            self._sorted = np.append(self._known[self._order], BEYOND)
            at = np.searchsorted(self._sorted, numbers)
        return self._order[at]

    def _fronts(self, x: IntArray) -> tuple[IntArray, IntArray]:
        """(boundary, row) of distinct boundaries, sorted by boundary."""
        step = max(1, PAIRS // max(len(self.rows), 1))
        found = [self._some(x[i : i + step], i) for i in range(0, len(x), step)]
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate([w for w, _ in found]), np.concatenate([r for _, r in found])

    def _some(self, x: IntArray, offset: int) -> tuple[IntArray, IntArray]:
        if len(x) * len(self.rows) > ASKED:
            self.pruner.pause()
        which, rows = self._fitting(x)
        if self.promises:
            kept = np.flatnonzero(self._kept(x[which], rows))
            which, rows = which[kept], rows[kept]
        if self.pruner.rules.dominance and len(which):
            starts = np.ones(len(which), bool)
            starts[1:] = which[1:] != which[:-1]
            kept = np.flatnonzero(ordered_skyline(starts, self.values, rows))
            which, rows = which[kept], rows[kept]
        return which + offset, rows

    def _fitting(self, x: IntArray) -> tuple[IntArray, IntArray]:
        """(boundary, row) of all pairs in which the row fits below the boundary, sorted."""
        if self.lattice.packed:
            which, rows = np.nonzero(self.lattice.divides(self.codes, self.lattice.codes(x)))
            return which, rows
        return self.lattice.pairs(self._by_class, x)

    def _kept(self, x: IntArray, rows: IntArray) -> NDArray[np.bool_]:
        """Mask of pairs in which the promise of a sliding loop is kept between row and boundary."""
        prices = self.pruner.levels.prices
        assert prices.sliding is not None
        trips = ceil(x, self.rows.x[rows])
        free, touched, first = promises(self.rows.marks[rows, PROMISE], trips, prices.relevant[prices.sliding])
        return np.asarray(free | (touched & first))

"""Lower bounds on a product of sums from lower bounds on weighted sums.

Comes in: settled costs [n, c]. Goes out: the same with more columns, ``energy + weight * latency`` for a few weights,
whose sums are bounded one by one. Bounds ``m`` on all of them say that (latency, energy) lies above each of the lines
``energy = m - weight * latency``. A product of powers is quasi-concave, so over that region it is least at a corner:
where two lines of neighbouring weights meet. (A line below the corner of its neighbours meets them on both sides of it,
nearer to the axes: the least over all neighbours stays a bound.) The least sum is concave in the weight, so two lines
say what one between them is at least; sums of rows are concave as they are. One column stays as it is.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np

from ....dataclass import dataclass
from ..numerics.pareto import FloatArray, IntArray
from .cutoff import Cutoff

RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0)
MANY_RATIOS = tuple(2.0 ** (step / 2) for step in range(-16, 17))  # where there are few sums to bound
HALVINGS = 12


@dataclass(frozen=True)
class Lines:
    """The weights, ascending; none where a single column, or a whole front, is looked for.

    raised: True where more is known along some line than what the sums of rows add up to, which others then follow.
    """

    cutoff: Cutoff
    weights: tuple[float, ...]
    raised: bool = False

    @classmethod
    def of(cls, cutoff: Cutoff, least: FloatArray, ratios: tuple[float, ...] = RATIOS, raised: bool = False) -> Lines:
        """Weights around the one at which the least energy and the least latency of the cascade weigh the same."""
        if cutoff.weights is not None:
            return cls(cutoff, tuple(weight / cutoff.weights[0] for weight in cutoff.weights[1:]))
        total = least.sum(axis=0)
        if len(total) == 1 or cutoff.front is not None or not (total > 0).all():
            return cls(cutoff, ())
        return cls(cutoff, tuple(float(ratio * total[0] / total[1]) for ratio in ratios), raised)

    def extend(self, cost: FloatArray) -> FloatArray:
        """The columns of `cost`, then a weighted sum for each weight."""
        if not self.weights:
            return cost
        return np.concatenate([cost, cost[:, :1] + cost[:, 1:] * np.array(self.weights)], axis=1)

    def most(self, rest: FloatArray, own: FloatArray) -> FloatArray:
        """The most of each column that can be added to `rest` and be of use [n, columns]. own: what is added at least.
        Both [n, columns and lines]; found by halving, never too small."""
        columns = rest.shape[1] - len(self.weights)
        found = np.array([self.cutoff.most(total) for total in (rest + own)[:, :columns]]) - rest[:, :columns]
        for c in range(columns):
            low, high = own[:, c], found[:, c]
            halved = (low < high) & np.isfinite(high)
            for _ in range(HALVINGS):
                middle = own[:, :columns].copy()
                middle[halved, c] = (low[halved] + high[halved]) / 2
                useless = self.beyond(rest + np.maximum(self.extend(middle), own))
                high = np.where(halved & useless, middle[:, c], high)
                low = np.where(halved & ~useless, middle[:, c], low)
            found[:, c] = high
        return np.asarray(found)

    def beyond(self, bounds: FloatArray) -> np.ndarray:
        """Mask of lower bounds on all columns that no useful sum can meet."""
        if not self.weights:
            return self.cutoff.beyond(bounds)
        beyond = self.cutoff.beyond(bounds[:, :2])
        corners = self._corners(bounds)
        useless = self.cutoff.beyond(corners.reshape(-1, 2)).reshape(corners.shape[:2])
        return np.asarray(beyond | useless.all(axis=1))

    def value(self, bounds: FloatArray) -> FloatArray:
        """The least objective that sums with these lower bounds on all columns can have [n]."""
        if not self.weights:
            return self.cutoff.value(bounds)
        corners = self._corners(bounds)
        values = self.cutoff.value(corners.reshape(-1, 2)).reshape(corners.shape[:2])
        return np.asarray(np.maximum(values.min(axis=1), self.cutoff.value(bounds[:, :2])))

    def _corners(self, bounds: FloatArray) -> FloatArray:
        """Where lines of neighbouring weights meet [n, lines, 2]."""
        weights = np.array((0.0, *self.weights))
        corners = np.empty((len(bounds), len(weights), 2))
        with np.errstate(invalid="ignore"):  # where a bound is infinite `beyond` is True already
            lines = np.concatenate([bounds[:, :1], self._followed(bounds)], axis=1)
            corners[:, :-1, 1] = np.diff(lines, axis=1) / np.diff(weights)
            corners[:, -1, 1] = bounds[:, 1]
            corners[:, :, 0] = lines - weights * corners[:, :, 1]
        return np.maximum(corners, 0.0)

    def _followed(self, bounds: FloatArray) -> FloatArray:
        """The bound of each line, or what the others imply if that is more [n, lines]."""
        if not self.raised:
            return bounds[:, 2:]
        implied, starts = _implied(self.weights)
        return np.asarray(np.maximum.reduceat(bounds @ implied, starts, axis=1))


@lru_cache(maxsize=16)
def _implied(weights: tuple[float, ...]) -> tuple[FloatArray, IntArray]:
    """What bounds on both columns and on the lines say of every line: a matrix [columns and lines, ways], and where the
    ways of each line begin. The first of a line is its own bound; the others lie between two others."""
    at = (0.0, *weights, np.inf)  # energy alone, the lines, latency alone
    column = (0, *range(2, 2 + len(weights)), 1)
    ways = [(j, j, j) for j in range(1, 1 + len(weights))] + list(combinations(range(len(at)), 3))
    ways.sort(key=lambda way: way[1])
    found = np.zeros((len(at), len(ways)))
    for n, (i, j, k) in enumerate(ways):
        if at[k] == np.inf:
            shares = 1.0, at[j] - at[i]
        else:
            shares = ((at[k] - at[j]) / (at[k] - at[i]), (at[j] - at[i]) / (at[k] - at[i])) if i < k else (1.0, 0.0)
        found[column[i], n] += shares[0]
        found[column[k], n] += shares[1]
    starts = np.searchsorted([j for _, j, _ in ways], range(1, 1 + len(weights)))
    return found, starts

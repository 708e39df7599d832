"""What neighbouring Einsums cost at least together, and so what stands before and behind each Einsum (rule `windows`).

Comes in: lower bounds on a weighted sum of settled columns for windows of neighbours (`segments/window.py`). Goes out:
the least of all Einsums before each place, and of all from it on. Argument: docs/model/pruning.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....dataclass import dataclass
from ..numerics.pareto import FloatArray
from .weighted_sums import Lines

Window = tuple[int, int]  # the first Einsum of it, and the one behind the last


@dataclass(frozen=True)
class Windows:
    """weights: of the settled columns in the sum that is bounded. least: the bound by window; attained: those windows
    that cost no more."""

    weights: tuple[float, ...]
    least: Mapping[Window, float]
    attained: frozenset[Window] = frozenset()

    def before(self, lines: Lines, least: FloatArray) -> FloatArray:
        """What the Einsums before each place cost at least, in the columns of `lines` [n + 1, columns]. least: of each
        Einsum alone [n, settled columns]."""
        found = [np.zeros(lines.extend(least[:1]).shape[1])]
        for end in range(1, len(least) + 1):
            ways = [found[end - 1] + lines.extend(least[end - 1 : end])[0]]
            ways += [found[first] + self._of((first, end), lines, least) for first, last in self.least if last == end]
            found.append(np.max(ways, axis=0))
        return np.array(found)

    def after(self, lines: Lines, least: FloatArray) -> FloatArray:
        """What the Einsums from each place on cost at least [n + 1, columns]."""
        n = len(least)
        turned = Windows(self.weights, {(n - end, n - first): cost for (first, end), cost in self.least.items()})
        return np.asarray(turned.before(lines, least[::-1])[::-1])

    def _of(self, window: Window, lines: Lines, least: FloatArray) -> FloatArray:
        """The bound of a window in the columns of `lines`: a line of another weight than that of the window has some
        more, or less, of the columns, of which there is at least what the Einsums have alone."""
        known, alone = self.least[window], least[slice(*window)].sum(axis=0)
        columns: FloatArray = np.array(lines.extend(alone[None])[0])
        if len(self.weights) == 1:
            return np.asarray(np.maximum(columns, known / self.weights[0]))
        first, weight = self.weights
        ratio = weight / first
        for i, other in enumerate(lines.weights, start=len(alone)):
            if other >= ratio:
                bound = known / first + (other - ratio) * alone[1]
            else:
                bound = other / ratio * known / first + (1 - other / ratio) * alone[0]
            columns[i] = max(columns[i], bound)
        return np.asarray(columns)

"""What neighbouring Einsums cost at least together, and so what stands before each Einsum and behind it.

Comes in: lower bounds on a weighted sum of settled columns for some neighbours (`segments/neighbour_attempt.py`). Goes
out: the least of all Einsums before each place, and of all from it on. Argument: docs/model/pruning.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....dataclass import dataclass
from ..numerics.pareto import FloatArray
from .weighted_sums import Lines

Neighbours = tuple[int, int]  # the first Einsum of it, and the one behind the last


@dataclass(frozen=True)
class NeighbourBounds:
    """weights: of the settled columns in the sum that is bounded. least: the bound by neighbours. done: those
    of which no more is to be learnt."""

    weights: tuple[float, ...]
    least: Mapping[Neighbours, float]
    done: frozenset[Neighbours] = frozenset()

    @property
    def ends(self) -> list[int]:
        """The places at which neighbours begin or end."""
        return sorted({place for some in self.least for place in some})

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
        turned = NeighbourBounds(
            self.weights, {(n - end, n - first): cost for (first, end), cost in self.least.items()}
        )
        return np.asarray(turned.before(lines, least[::-1])[::-1])

    def _of(self, some: Neighbours, lines: Lines, least: FloatArray) -> FloatArray:
        """The bound of some neighbours in the columns of `lines`: a line of another weight than theirs has some
        more, or less, of the columns, of which there is at least what the Einsums have alone."""
        known, alone = self.least[some], least[slice(*some)].sum(axis=0)
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

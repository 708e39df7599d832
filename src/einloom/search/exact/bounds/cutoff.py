"""What a pass of the search is after: below which value of the objective, or outside what the known front dominates.

Einsums add their settled columns up: (energy), (latency), (traffic) or (energy, latency). The objective is a product of
powers of the sums, so it grows with every one of them: a partial cascade whose sums, with the least that the others
cost, are beyond the limit leads nowhere.
"""

from __future__ import annotations

import numpy as np

from ....dataclass import dataclass
from ....problem import Objective
from ..numerics.pareto import FloatArray

TIE = 1e-9
BELOW = 1 - 3 * TIE  # of a value: what is below this is better
COARSE = 0.15  # from here on repeated Einsums take the steps of all
SETTLED = {"energy": ("energy",), "latency": ("latency",), "traffic": ("traffic",)}


def settled(objective: Objective) -> tuple[Objective, ...]:
    """The additive objectives that `objective` is made of, one per settled column."""
    if objective.name in SETTLED:
        return (objective,)
    return (Objective("energy"), Objective("latency"))


def finer(steps: tuple[float, ...], repetition: float) -> tuple[float, ...]:
    """The steps; for cascades whose Einsums repeat, from much smaller ones up, each three times the one before.

    What a cascade costs above its bound is often that of one layer, and the rows to explore grow with what is left to
    one Einsum: the share that suits a layer is `repetition` times too large for a stack of so many.
    """
    if repetition <= 2:
        return steps
    small = [steps[0] / repetition]
    while 3 * small[-1] < COARSE:
        small.append(3 * small[-1])
    return (*small, *(step for step in steps if step >= COARSE))


@dataclass(frozen=True)
class Cutoff:
    """powers: exponent of each settled column in the objective. limit: largest useful value of the product.

    front: known points (energy, latency), ascending in energy and descending in latency; what they dominate is useless,
    and so is everything beyond their ends. None unless the whole Pareto set is asked for.

    weights: of the columns in a weighted sum, which is limited instead of the product.
    """

    powers: tuple[float, ...]
    limit: float = float("inf")
    front: FloatArray | None = None
    weights: tuple[float, ...] | None = None

    def along(self, front: FloatArray) -> Cutoff:
        """The cutoff to find everything that the points of `front` do not dominate."""
        return Cutoff(self.powers, front=front)

    @property
    def finite(self) -> bool:
        """True if anything can be beyond the cutoff."""
        return self.front is not None or bool(np.isfinite(self.limit))

    def value(self, cost: FloatArray) -> FloatArray:
        """The objective of sums of settled columns, [n, c] -> [n]."""
        if self.weights is not None:
            return np.asarray(cost @ np.array(self.weights))
        if all(power == 1 for power in self.powers):
            return np.asarray(cost[:, 0] * cost[:, 1] if cost.shape[1] == 2 else cost.prod(axis=1))
        return np.asarray(np.prod(cost ** np.array(self.powers), axis=1))

    def beyond(self, least: FloatArray) -> np.ndarray:
        """Mask of sums, or lower bounds of sums, that cannot become useful."""
        if self.front is None:
            return np.asarray(self.value(least) > self.limit * (1 + TIE))
        energy, latency = least[:, 0] * (1 - TIE), least[:, 1] * (1 - TIE)
        at = np.searchsorted(self.front[:, 0], energy, side="right") - 1
        no_sooner = (self.front[np.maximum(at, 0), 1] <= latency) & (latency > 0)  # a tie at 0 s is no loss
        dominated = (at >= 0) & no_sooner
        return np.asarray(dominated | (energy > self.front[-1, 0]) | (latency > self.front[0, 1]))

    def most(self, total: FloatArray) -> FloatArray:
        """Largest useful value of each column's sum when every sum is at least `total`."""
        if self.front is not None:
            return np.array([self.front[-1, 0], self.front[0, 1]])
        if self.weights is not None:
            each = total * np.array(self.weights)
            return np.asarray((self.limit - (each.sum() - each)) / np.array(self.weights))
        found = np.full(len(total), np.inf)
        for c, power in enumerate(self.powers):
            others = float(np.prod([total[d] ** p for d, p in enumerate(self.powers) if d != c]))
            if power > 0 and others > 0:
                found[c] = (self.limit / others) ** (1 / power)
        return found

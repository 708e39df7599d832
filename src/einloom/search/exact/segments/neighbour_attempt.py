"""Neighbouring Einsums alone: what a few of them cost at least together, whatever the rest of the cascade does.

Comes in: an attempt for the whole cascade. Goes out: lower bounds on a weighted sum of the settled columns of some
neighbours. What happens outside them is left open, as for a segment (`subcascade.py`), and so is how the tensors
at its ends are stored (docs/model/pruning.md, neighbours).
"""

from __future__ import annotations

from collections.abc import Iterator

from ....errors import Infeasible
from ..attempt import Attempt
from ..bounds.cutoff import Cutoff
from .subcascade import Subcascade

# limits, as shares above what is known
RISES = (1e-6, 1e-3, 4e-3, 1e-2, 0.02, 0.03, 0.045, 0.07, 0.1, 0.15, 0.22, 0.33, 0.5, 0.75, 1.1, 1.6)


class NeighbourAttempt(Subcascade):
    """The Einsums of `whole` from `start` to before `end`. weights: of the settled columns in the sum that counts."""

    def __init__(self, whole: Attempt, start: int, end: int, weights: tuple[float, ...]) -> None:
        super().__init__(whole, start, end, Cutoff((1.0,) * len(weights), weights=weights))

    def proven(self, known: float) -> Iterator[float]:
        """Lower bounds of the sum, rising; the last is the least, unless it is much more than is known."""
        self.agreed = max(known, self._agree())
        known = self.bound
        for step in RISES:
            limit = known * (1 + step)
            try:
                yield max(known, self.towards_least(limit))
                return
            except Infeasible:
                yield limit

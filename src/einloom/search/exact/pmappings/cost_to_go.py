"""What may still be added to the costs of rows, and which of their times count once for that (rule ``settled``).

Comes in: costs of rows, and what the stores that are not charged yet can add. Goes out: the columns by which the rows
are compared. The latency of an Einsum is the largest of its times, whatever the objective: a time that nothing is added
to any more matters only if it is the largest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....dataclass import dataclass
from ..numerics.narrow import largest
from ..numerics.pareto import FloatArray, IntArray


@dataclass(frozen=True)
class CostToGo:
    """What all that is not charged yet adds to rows [n, columns], or to all of them alike [1, columns].

    grows: mask of the columns that it can add to; least: what it adds at least.
    """

    grows: NDArray[np.bool_]
    least: FloatArray

    def first(self) -> CostToGo:
        """What comes above the first row, for all rows."""
        return CostToGo(self.grows[:1], self.least[:1])

    def take(self, index: IntArray) -> CostToGo:
        """What comes above the chosen rows."""
        return CostToGo(self.grows[index], self.least[index])

    def settled(self, cost: FloatArray, times: list[int]) -> FloatArray:
        """The costs with zeros for times that are final, and one column more: the least latency of each row.

        Of two rows with the same to come, the one that is no better in any of these columns is no better when complete:
        its latency is at least that least latency, and at least each of its growing times with all that is added.
        """
        least = largest(cost[:, times] + self.least[:, times])
        growing = cost.copy()
        growing[:, times] = np.where(self.grows[:, times], cost[:, times], 0.0)
        return np.column_stack([growing, least])

"""What all Einsums of one exact search share."""

from __future__ import annotations

import numpy as np

from ...dataclass import dataclass
from ...machine.levels import Machine
from ...problem import Objective
from .numerics.narrow import largest
from .numerics.pareto import FloatArray
from .pmappings.prune import Rules
from .prices.columns import Column, columns


@dataclass(frozen=True)
class Setting:
    """What all Einsums of a search share: machine, objective, limits of the space, memories whose room is shared.

    per_rank: how often fused loops may cut one rank.
    """

    machine: Machine
    objective: Objective
    columns: tuple[Column, ...]
    tracked: tuple[int, ...]
    capacities: tuple[int | None, ...]
    slots: tuple[int, ...]
    max_fused_loops: int | None
    rules: Rules
    per_rank: int = 1

    @classmethod
    def of(
        cls,
        machine: Machine,
        objective: Objective,
        tracked: tuple[int, ...],
        capacities: tuple[int | None, ...],
        max_fused_loops: int | None,
        rules: Rules,
        per_rank: int = 1,
    ) -> Setting:
        slots = tuple(m.capacity_share() for m in machine.memories)
        priced = columns(machine, objective)
        return cls(machine, objective, priced, tracked, capacities, slots, max_fused_loops, rules, per_rank)

    def settled(self, cost: FloatArray) -> FloatArray:
        """Columns of complete Einsums [n, columns] in the sums of the objective: (E), (L), (E, L) or (traffic)."""
        times = [i for i, column in enumerate(self.columns) if column.kind == "time"]
        latency = largest(cost[:, times]) if times else np.zeros(len(cost))
        if self.objective.name == "traffic":
            return np.ascontiguousarray(cost[:, :1])
        if self.objective.name == "latency":
            return latency[:, None]
        energy = cost[:, 0] + self.machine.leakage * latency
        if self.objective.name == "energy":
            return energy[:, None]
        return np.stack([energy, latency], axis=1)

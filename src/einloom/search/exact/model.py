"""What all Einsums of one exact search share."""

from __future__ import annotations

from functools import cached_property

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
    tracked: tuple[int, ...]
    capacities: tuple[int | None, ...]
    max_fused_loops: int | None
    rules: Rules
    per_rank: int = 1

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that decide the objective."""
        return columns(self.machine, self.objective)

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """Per memory how many tiles a store holds in turns."""
        return tuple(memory.capacity_share() for memory in self.machine.memories)

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

"""What the rows of a relaxation leave to the search of the tiles themselves (rule ``relaxed rows``).

Comes in: the rows of every Einsum with fused tiles that need not agree with inner ones, those that may be part of a
cascade within a limit. Goes out: for a limit that is no larger, what each Einsum costs at least, the most of each
settled column that is of use, and the keys of its shared tensors. Argument: docs/model/pruning.md.
"""

from __future__ import annotations

import numpy as np

from ....dataclass import dataclass
from ....errors import Infeasible
from ....workload.einsum import Workload
from ..einsums.classes import EinsumClass
from ..fusion.explore import Allowed, PmappingGroup
from ..numerics.pareto import FloatArray
from .arc_consistency import Consistency, either, keys_of
from .cutoff import Cutoff
from .neighbour_bounds import NeighbourBounds


@dataclass(frozen=True)
class RelaxedRows:
    """The rows per Einsum that may be part of a cascade within the limit. least: of each Einsum [n, columns]."""

    workload: Workload
    limit: float
    least: FloatArray
    blocks: list[list[PmappingGroup]]
    together: NeighbourBounds | None = None

    def within(self, cutoff: Cutoff) -> Left:
        """What is left of them within a cutoff of no larger limit; Infeasible if some Einsum has none."""
        consistency = Consistency(self.workload, self.least, cutoff, {}, together=self.together)
        rows = consistency.filter(self.blocks)
        if not all(rows):
            raise Infeasible("no combination of mappings stays within the limit")
        lowest = np.array([np.concatenate([block.cost for block in mine]).min(axis=0) for mine in rows])
        return Left(self.workload, rows, np.maximum(lowest, self.least), consistency.most(rows))


@dataclass(frozen=True)
class Left:
    """The rows within a cutoff. least, most: per Einsum, of each settled column."""

    workload: Workload
    rows: list[list[PmappingGroup]]
    least: FloatArray
    most: FloatArray

    def keys(self, signature: EinsumClass, positions: list[int]) -> dict[int, Allowed]:
        """Per shared tensor of a signature the keys that any of its Einsums has, with the smallest tiles of as many
        trips."""
        names = {i: self.workload.einsums[i].tensors for i in positions}
        return {
            t: either(keys_of(self.workload, i, names[i][t], self.rows[i]) for i in positions)
            for t in signature.fusable
        }

"""What partners can agree on before any of them is explored (rule ``agreement``).

Comes in: the signatures of a cascade. Goes out: a lower bound on the cascade, and for every Einsum the choices of
stores and of spatial loops that can be part of a cascade within a cutoff. A tensor that is backed behind a fanout has
all spatial loops of that fanout above it, and all its users have the same: so users of a tensor must agree on the
memory and on these loops, and each one's choice costs at least what `Floors` says. This is soft arc consistency
(`arc_consistency.py`) between choices instead of rows, and costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from ....dataclass import dataclass
from ....workload.einsum import Workload
from ..einsums.classes import EinsumClass, UnitOption
from ..einsums.holds import chains_of
from ..einsums.spatial import RankClasses
from ..fusion.explore import Wanted
from ..fusion.floors import Floors
from ..numerics.pareto import FloatArray, IntArray
from .arc_consistency import Arcs, Use
from .cutoff import Cutoff
from .neighbour_bounds import NeighbourBounds

LARGE = 1 << 20  # choices of one Einsum that are too many to be listed one by one
Loops = tuple[tuple[int, int, int], ...]  # (axis, rank, instances)


@dataclass(eq=False)
class Choices:
    """Choices of one Einsum on one unit. cost [n, settled columns]: at least. keys [n, tensors]: the number of what
    users of a tensor agree on. held, spread [n]: numbers of the choice of stores and of spatial loops."""

    unit: str | None
    cost: FloatArray
    keys: IntArray
    held: IntArray
    spread: IntArray

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, index: IntArray) -> Choices:
        return Choices(self.unit, self.cost[index], self.keys[index], self.held[index], self.spread[index])


@dataclass
class Keys:
    """Numbers for (memory that backs a tensor, spatial loops above it)."""

    numbers: dict[tuple[int, Loops], int] = field(default_factory=dict)

    def of(self, floors: Floors, option: UnitOption, tensor: int, memory: int) -> IntArray:
        """The number for every spatial choice; -1 where the tensor cannot be backed in `memory`: a spatial loop above
        it is over a variable that does not index it alone (a lent tensor may lack the variable)."""
        classes, signature = floors.classes, floors.classes.signature
        mine = signature.tensors[tensor]
        axes = [i for i, axis in enumerate(signature.axes) if axis.fanout < option.fanouts]
        upper = [k for k, i in enumerate(axes) if signature.axes[i].fanout < option.above[memory]]
        if memory == 0 or not upper:
            return np.full(len(classes.spreads(option)), self._number(memory, ()))
        spreads = np.array(classes.spreads(option), np.int64)[:, upper]
        rows, inverse = np.unique(spreads, axis=0, return_inverse=True)
        found = []
        for row in rows:
            loops = [(axes[k], v, int(row[n, d])) for n, k in enumerate(upper) for v, d in classes.of.items()]
            lacks = frozenset(classes.of) - mine.variables if mine.lent else frozenset()
            ranks = [(axis, -1 if v in lacks else mine.fused_rank(v), z) for axis, v, z in loops if z > 1]
            known = tuple(sorted((axis, rank, z) for axis, rank, z in ranks if rank is not None))
            able = len(known) == len(ranks) and not (ranks and mine.persistent)
            found.append(self._number(memory, known) if able else -1)
        return np.array(found, np.int64)[inverse.reshape(-1)]

    def _number(self, memory: int, loops: Loops) -> int:
        return self.numbers.setdefault((memory, loops), len(self.numbers))

    def choices(self, floors: Floors) -> list[Choices] | None:
        """Every choice of an Einsum, by unit; None if there are too many."""
        signature = floors.classes.signature
        sizes = [len(option.held) * len(floors.classes.spreads(option)) for option in signature.units]
        if sum(sizes) > LARGE:
            return None
        every = [self.on(floors, option) for option, size in zip(signature.units, sizes, strict=True) if size]
        return [choices for choices in every if len(choices)]

    def on(self, floors: Floors, option: UnitOption) -> Choices:
        """Every choice of an Einsum on one unit."""
        every = chains_of(option.held, len(floors.classes.signature.tensors))
        backed = [[chain[0] for chain in chains] for chains in every]
        places = {(t, m) for each in backed for t, m in enumerate(each)}
        numbers = {(t, m): self.of(floors, option, t, m) for t, m in sorted(places)}
        keys = np.concatenate([np.stack([numbers[t, m] for t, m in enumerate(each)], axis=1) for each in backed])
        cost = np.concatenate([floors.settled(option, held) for held in option.held])
        held, spread = np.divmod(np.arange(len(cost)), len(floors.classes.spreads(option)))
        found = Choices(option.unit, cost, keys, held, spread)
        return found.take(np.flatnonzero((keys >= 0).all(axis=1)))


class Agreement(Arcs[Choices]):
    """Soft arc consistency between the choices of a cascade's Einsums."""

    rule = "agreement"

    def __init__(
        self,
        workload: Workload,
        keys: Keys,
        least: FloatArray,
        cutoff: Cutoff,
        counts: dict[str, int],
        together: NeighbourBounds | None = None,
    ) -> None:
        super().__init__(workload, least, cutoff, counts, together=together)
        self.keys = keys

    def _numbered(self, mine: list[Choices], use: Use) -> IntArray:
        return np.concatenate([choices.keys[:, use.tensor] for choices in mine])

    def _many(self, use: Use) -> int:
        return len(self.keys.numbers)

    def bound(self, choices: list[list[Choices]]) -> float:
        """The objective of the cascade at least; infinite if some Einsum has no choice that suits the others."""
        return max((float(values.min(initial=np.inf)) for values in self.through(choices)), default=np.inf)

    def through(self, choices: list[list[Choices]]) -> list[FloatArray]:
        """The objective of a cascade with each choice at least, of every Einsum [choices]; infinite for one that suits
        no neighbour's. Empty where some Einsum has no choice."""
        if not all(map(len, choices)):
            return []
        before, after = self._sweep(choices, 1), self._sweep(choices, -1)
        totals = (a + self._cost(mine) + b for a, mine, b in zip(before, choices, after, strict=True))
        width = self.least.shape[1]
        return [self.cutoff.value(total[:, :width]) for total in totals]


def wanted(classes: Sequence[RankClasses], choices: Sequence[list[Choices]]) -> dict[EinsumClass, Wanted]:
    """Per signature and unit the choices [stores, spatial] of any Einsum that has the signature."""
    found: dict[EinsumClass, Wanted] = {}
    for each, mine in zip(classes, choices, strict=True):
        if each.signature not in found:
            sizes = {option.unit: (len(option.held), len(each.spreads(option))) for option in each.signature.units}
            found[each.signature] = {unit: np.zeros(size, bool) for unit, size in sizes.items()}
        for chosen in mine:
            found[each.signature][chosen.unit][chosen.held, chosen.spread] = True
    return found

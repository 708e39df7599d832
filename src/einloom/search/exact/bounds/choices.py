"""What partners can agree on before any of them is explored (rule ``agreement``).

Comes in: the signatures of a cascade. Goes out: a lower bound on the cascade, and for every Einsum the choices of
stores and of spatial loops that can be part of a cascade within a cutoff. A tensor that is backed behind a fanout has
all spatial loops of that fanout above it, and all its users have the same: so users of a tensor must agree on the
memory and on these loops, and each one's choice costs at least what `Floors` says. This is soft arc consistency
(`arc_consistency.py`) between choices instead of rows, and costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from ....dataclass import dataclass
from ....workload.einsum import Workload
from ..einsums.classes import EinsumClass, TensorSignature, UnitOption
from ..einsums.holds import backing, chains_of
from ..einsums.spatial import RankClasses
from ..fusion.explore import Wanted
from ..fusion.floors import Floors
from ..numerics.pareto import FloatArray, IntArray, pack
from .arc_consistency import Arcs, Use
from .cutoff import Cutoff
from .neighbour_bounds import NeighbourBounds

LARGE = 1 << 20  # choices of one Einsum that are too many to be listed one by one
LOOKED = 1 << 22  # of which it is too much to ask whether they are within a limit
WITHIN = 1 << 20  # within it that are too many to be listed


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
    """Numbers for (memory that backs a tensor, spatial loops above it, as `_loops` has them)."""

    numbers: dict[tuple[int, Hashable], int] = field(default_factory=dict)

    def of(self, floors: Floors, option: UnitOption, tensor: int, memory: int) -> IntArray:
        """The number for every spatial choice; -1 where the tensor cannot be backed in `memory`: a spatial loop above
        it is over a variable that does not index it alone (a lent tensor may lack the variable)."""
        classes, mine = floors.classes, floors.classes.signature.tensors[tensor]
        spreads = classes.instances(option)
        axes = classes.signature.visible(option.fanouts)
        upper = [i for i, axis in enumerate(axes) if axis.fanout < option.above[memory]]
        if memory == 0 or not upper:
            return np.full(len(spreads), self._number(memory, b""))
        spreads = spreads[:, upper]
        _, first, inverse = np.unique(pack(spreads.reshape(len(spreads), -1)), return_index=True, return_inverse=True)
        able, loops = _loops(mine, classes.of, spreads[first])
        found = [self._number(memory, one) if good else -1 for good, one in zip(able.tolist(), loops, strict=True)]
        return np.array(found, np.int64)[inverse.reshape(-1)]

    def _number(self, memory: int, loops: Hashable) -> int:
        return self.numbers.setdefault((memory, loops), len(self.numbers))

    def choices(self, floors: Floors) -> list[Choices] | None:
        """Every choice of an Einsum, by unit; None if there are too many."""
        signature = floors.classes.signature
        sizes = [len(option.held) * len(floors.classes.spreads(option)) for option in signature.units]
        if sum(sizes) > LARGE:
            return None
        every = [self.on(floors, option) for option, size in zip(signature.units, sizes, strict=True) if size]
        return [choices for choices in every if len(choices)]

    def within(self, floors: Floors, cutoff: Cutoff, rest: FloatArray) -> list[Choices] | None:
        """The choices of an Einsum that are not beyond the cutoff beside what the others cost at least; None if there
        are too many."""
        every = [
            (option, np.flatnonzero(~cutoff.beyond(floors.hoped(option) + rest)).tolist())
            for option in floors.classes.signature.units
            if floors.classes.spreads(option)
        ]
        if sum(len(stores) * len(floors.classes.spreads(option)) for option, stores in every) > LOOKED:
            return None
        found, number = list[Choices](), 0
        for option, i in ((option, i) for option, stores in every for i in stores):
            mine = self._of_stores(floors, option, i, cutoff, rest)
            number += len(mine)
            if number > WITHIN:
                return None
            found += [mine] if len(mine) else []
        return found

    def _of_stores(self, floors: Floors, option: UnitOption, i: int, cutoff: Cutoff, rest: FloatArray) -> Choices:
        """As `within`, with choice of stores number `i`."""
        spread, cost = floors.useful(option, option.held[i], lambda cost: ~cutoff.beyond(cost + rest))
        keys = np.empty((len(spread), len(floors.classes.signature.tensors)), np.int64)
        for t in range(keys.shape[1]):
            memory = backing(option.held[i], t)
            known = floors.classes.remembered.setdefault(("keys", id(self)), {"of": self})  # alive: ids may come again
            if (option, t, memory) not in known:
                known[option, t, memory] = self.of(floors, option, t, memory)
            keys[:, t] = known[option, t, memory][spread]
        found = Choices(option.unit, cost, keys, np.full(len(spread), i), spread)
        return found.take(np.flatnonzero((keys >= 0).all(axis=1)))

    def on(self, floors: Floors, option: UnitOption) -> Choices:
        """Every choice of an Einsum on one unit."""
        every = chains_of(option.held, len(floors.classes.signature.tensors))
        backed = [[chain[0] for chain in chains] for chains in every]
        places = {(t, m) for each in backed for t, m in enumerate(each)}
        numbers = {(t, m): self.of(floors, option, t, m) for t, m in sorted(places)}
        keys = np.concatenate([np.stack([numbers[t, m] for t, m in enumerate(each)], axis=1) for each in backed])
        spreads = np.arange(len(floors.classes.spreads(option)))
        cost = np.concatenate([floors.settled_close(option, held, spreads) for held in option.held])
        held, spread = np.divmod(np.arange(len(cost)), len(spreads))
        found = Choices(option.unit, cost, keys, held, spread)
        return found.take(np.flatnonzero((keys >= 0).all(axis=1) & np.isfinite(cost).all(axis=1)))


def _loops(
    tensor: TensorSignature, classes: Mapping[int, int], spreads: IntArray
) -> tuple[NDArray[np.bool_], list[Hashable]]:
    """Of rows of spatial loops [n, axes, classes] which may stand above a backing store of the tensor, and each as the
    tensor's users see it: the instances of every axis along every rank, and of lent ones along what the tensor lacks.
    classes: of each variable. Ranks behind the last one that is spread are left out, for a part that an Einsum writes
    has more of them than the tensor."""
    able, lacked = np.ones(len(spreads), bool), list[IntArray]()
    ranks = np.ones((len(spreads), len(tensor.ranks), spreads.shape[1]), np.int64)
    for v, d in classes.items():
        if (rank := tensor.fused_rank(v)) is not None:
            ranks[:, rank] *= spreads[:, :, d]
        elif tensor.lent and v not in tensor.variables:
            lacked.append(spreads[:, :, d])
        else:
            able &= (spreads[:, :, d] == 1).all(axis=1)
    if tensor.persistent:
        able &= (spreads == 1).all(axis=(1, 2))
    spread = (ranks > 1).any(axis=2) * np.arange(1, len(tensor.ranks) + 1)
    ends = spread.max(axis=1, initial=0).tolist()
    known: list[Hashable] = [row[:end].tobytes() for row, end in zip(ranks, ends, strict=True)]
    if any((more > 1).any() for more in lacked):
        every = np.stack(lacked, axis=2).tolist()
        more = (tuple(tuple(sorted(n for n in axis if n > 1)) for axis in row) for row in every)
        known = [(one, rest) if any(rest) else one for one, rest in zip(known, more, strict=True)]
    return able, known


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
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(workload, least, cutoff, counts, together=together, pause=pause)
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

"""What the room of memories adds to the least cost of spatial choices: an element that cannot stay is fetched again.

Comes in: a choice of stores, and the prices of some spatial choices. Goes out: what fills of its own stores cost beyond
one of every element, at least. The argument: docs/model/pruning.md, "Room under a spatial choice".
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ....machine.levels import Machine
from ..einsums.classes import UnitOption
from ..einsums.holds import Placement, chains_of
from ..einsums.spatial import RankClasses
from ..numerics.pareto import FloatArray, IntArray, pack
from ..prices.traffic import Prices
from ..unlisted.points import ROUNDED, OnUnit, Sharing
from ..unlisted.reuse import by_rooms

TOGETHER = 256  # shares of the extents whose boxes are listed at once
AT_ONCE = 1 << 20  # numbers of spatial choices and ways to share room that are compared at once
MANY = 200_000  # choices of stores and spatial loops of an Einsum
SLIDING = 256  # of spatial loops alone, where windows slide
KEPT = 1 << 16  # numbers of the stores of one memory that are remembered
Stores = tuple[int, Sharing, tuple[int, ...]]  # a memory, what shares its room, and where each store is filled from


def has_room_floors(classes: RankClasses) -> bool:
    """True if something is said of an Einsum: where choices are many, fewer where windows slide, so that most spatial
    choices have tables of their own."""
    signature = classes.signature
    if signature.copy or any(tensor.joins for tensor in signature.tensors):
        return False
    if any((*classes.uneven, *classes.windows, *classes.loose)):
        return False
    slides, units = any(tensor.slides for tensor in signature.tensors), signature.units
    if slides and sum(classes.number(option) for option in units) > SLIDING:
        return True
    return sum(len(option.held) * classes.number(option) for option in units) > MANY


class RoomFloors:
    """What the room of memories adds to the floors of one Einsum on one unit; it depends on no limit."""

    def __init__(self, machine: Machine, classes: RankClasses, option: UnitOption) -> None:
        self.classes = classes
        self.unit = OnUnit(machine, classes.signature, option)
        self._uses: dict[Sharing, dict[tuple[int, ...], FloatArray | None]] = classes.shared.setdefault("uses", {})
        self._known: dict[Stores, FloatArray] = {}

    def more(self, prices: Prices, held: Placement, which: IntArray) -> FloatArray:
        """What some spatial choices cost besides, under a choice of stores [which, columns]; infinite where an element
        of each store does not fit."""
        found = np.zeros((len(which), prices.width))
        for stores in self._stores(held):
            found += self._besides(prices, stores, which)
        return found

    def _besides(self, prices: Prices, stores: Stores, which: IntArray) -> FloatArray:
        """The same of the stores in one memory; remembered where that is little."""
        shape = len(prices.links.spreads), prices.width
        if prod(shape) > KEPT:
            return self._worked_out(prices, stores, which)
        known = self._known.setdefault(stores, np.full(shape, np.nan))
        asked = which[np.isnan(known[which, 0])]
        if len(asked):
            known[asked] = self._worked_out(prices, stores, asked)
        return np.asarray(known[which])

    def _stores(self, held: Placement) -> Iterator[Stores]:
        """Own stores for which the room of their memory may be too small, memory by memory."""
        chains = chains_of((held,), len(self.classes.signature.tensors))[0]
        for m in range(1, len(held)):
            sharing = self.unit.sharing(m, chains)
            if sharing.asks:
                yield m, sharing, tuple(max(p for p in chains[t] if p < m) for t in sharing.own)

    def _worked_out(self, prices: Prices, stores: Stores, which: IntArray) -> FloatArray:
        """What stores in one memory cost besides: of each way to share its room the least, column by column."""
        m, sharing, parents = stores
        instances = prices.links.instances[m][which]
        _, first, share = np.unique(pack(instances), return_index=True, return_inverse=True)
        uses, found = self._of_shares(sharing, self._left(instances[first])), np.zeros((len(which), prices.width))
        if uses is None:
            return found
        share, none = share.reshape(-1), np.isnan(uses[:, 0, 0])
        moves = [self._moves(prices, instances, which, (t, p, m)) for t, p in zip(sharing.own, parents, strict=True)]
        step = max(1, AT_ONCE // (uses.shape[1] * prices.width))
        for start in range(0, len(which), step):
            self.classes.checkpoint()
            some = slice(start, start + step)
            total: FloatArray | float = 0.0
            for i, (served, price, free) in enumerate(moves):
                moved = (served[some, None] / uses[share[some], :, i])[:, :, None]
                total = total + np.maximum(moved * price[some, None] - free[some, None], 0.0)
            found[some] = _best(np.asarray(total))
        found[none[share]] = np.inf
        return found

    def _moves(
        self, prices: Prices, instances: IntArray, which: IntArray, store: tuple[int, int, int]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of some spatial choices what there is to move into a store if an element serves once, what that costs an
        element, and what is counted already."""
        t, parent, m = store
        price, skipped = (one[which] for one in prices.links.link(t, parent, m))
        copies = instances[:, ~prices.relevant[t]].prod(axis=1)
        free = prices.elements(t) * skipped + prices.least(t, parent, m)[which]
        return self.unit.met(t)[1] * (1 - ROUNDED) / copies, price, free

    def _left(self, instances: IntArray) -> IntArray:
        """Of every variable at most what an instance has [n, variables]. Of variables that are one class each may have
        all of it."""
        extents, classes = np.array(self.classes.signature.extents, np.int64), self.classes
        shares = np.array(classes.extents, np.int64) // instances
        return np.asarray(np.gcd(extents, shares[:, [classes.of[v] for v in range(len(extents))]]))

    def _of_shares(self, sharing: Sharing, left: IntArray) -> FloatArray | None:
        """The most uses of elements [shares, ways, stores] for every share of the extents, the last way again where one
        has fewer; nan where nothing fits. None if there are too many."""
        known = self._uses.setdefault(sharing, {})
        every = list(map(tuple, left.tolist()))
        asked = [row for row in dict.fromkeys(every) if row not in known]
        for start in range(0, len(asked), TOGETHER):
            self.classes.checkpoint()
            some = asked[start : start + TOGETHER]
            room = (sharing.own, sharing.bits, sharing.backed, sharing.room or 0)
            found = by_rooms(self.classes.signature, *room, np.array(some))
            known.update(dict.fromkeys(some) if found is None else zip(some, found, strict=True))
        uses = [one for row in every if (one := known[row]) is not None]
        if len(uses) < len(every):
            return None
        number = np.array([max(1, len(one)) for one in uses])
        flat = np.concatenate([one if len(one) else np.full((1, len(sharing.own)), np.nan) for one in uses])
        ways = np.minimum(np.arange(number.max()), number[:, None] - 1)
        return np.asarray(flat[(np.cumsum(number) - number)[:, None] + ways])


def _best(total: FloatArray) -> FloatArray:
    """Of all ways the least, column by column. total: [spatial choices, ways, columns]."""
    return np.asarray(total.min(axis=1))

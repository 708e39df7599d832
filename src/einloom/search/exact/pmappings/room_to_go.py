"""What stores that are still missing move at least beside each other, because one memory has to hold them together.

Comes in: rows at a memory, some of whose own stores are not placed yet. Goes out: what these cost more than `Levels`
says, where every element moves once. The argument: docs/model/pruning.md, "Room for what is missing".
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ....dataclass import dataclass
from ....once import once_each
from ..numerics.narrow import multiplied
from ..numerics.pareto import FloatArray, IntArray
from ..numerics.uneven import ceil
from ..prices.columns import LinkCharge
from .levels import Levels


@dataclass(frozen=True)
class Refetch:
    """What a store costs more than in `Levels.later` if the extents of the classes in `lacks`, which the last store has
    and this one lacks, multiply to y: at least `price` / y - `once`, both [choices, columns]. whole: the largest y."""

    lacks: tuple[int, ...]
    price: FloatArray
    once: FloatArray
    whole: FloatArray


@dataclass(frozen=True)
class Last:
    """The store with the largest box of those that are missing. beside: the others; inside: what these cost."""

    tensor: int
    beside: tuple[int, ...]
    inside: tuple[Refetch, ...]


class RoomToGo:
    """What missing own stores of a limited memory cost more than in `Levels.later`."""

    def __init__(self, levels: Levels, memory: int) -> None:
        self.levels = levels
        self.prices = levels.prices
        self.memory = memory

    def of(self, x: IntArray, left: IntArray, context: int, missing: int, spread: IntArray) -> FloatArray | None:
        """[rows, columns] of rows of one level at extents x that leave so many bits of an instance to the stores of
        `missing`; None where nothing is known."""
        found: FloatArray | None = None
        for last in self._lasts(context, missing):
            more = self._with(last, x, left, spread)
            found = more if found is None else np.minimum(found, more)
        return found

    def _with(self, last: Last, x: IntArray, left: IntArray, spread: IntArray) -> FloatArray:
        """The same if one of them has the largest box."""
        room = left - sum(self.prices.tile_bits(t, x, self.memory) for t in last.beside)
        grown = np.maximum(room / np.maximum(self.prices.tile_bits(last.tensor, x, self.memory), 1), 1.0)
        extents = [multiplied(x[:, list(one.lacks)]) for one in last.inside]
        alone = []
        for one, low in zip(last.inside, extents, strict=True):
            most = np.minimum(grown * low, one.whole[spread])
            alone.append(np.maximum(one.price[spread] / most[:, None] - one.once[spread], 0.0))
        total = first = np.sum(alone, axis=0)
        for i, j in combinations(range(len(alone)), 2):
            a, b = last.inside[i], last.inside[j]
            if set(a.lacks).isdisjoint(b.lacks):
                both = _shared((a, b), (extents[i], extents[j]), grown, spread)
                total = np.maximum(total, first - alone[i] - alone[j] + both)
        return np.asarray(total)

    @once_each
    def _lasts(self, context: int, missing: int) -> tuple[Last, ...]:
        """The stores that may have the largest box; none if one of them would leave the others all that they want."""
        stores = [t for t in range(self.levels.tensors) if missing >> t & 1]
        found = [Last(t, tuple(u for u in stores if u != t), self._inside(context, t, stores)) for t in stores]
        return tuple(found) if all(last.inside for last in found) else ()

    def _inside(self, context: int, last: int, stores: list[int]) -> tuple[Refetch, ...]:
        """What the other stores cost inside the box of the last, which has at least an element."""
        prices, classes = self.prices, self.prices.classes
        signature = classes.signature.tensors[last]
        if not prices.tile_bits(last, np.ones((1, len(prices.whole)), np.int64), self.memory)[0]:
            return ()
        plain = {classes.of[rank[0][0]] for r, rank in enumerate(signature.ranks) if signature.simple(r)}
        every = ((u, tuple(d for d in sorted(plain) if not prices.relevant[u, d])) for u in stores if u != last)
        parents = self.levels.contexts.levels[self.memory][context].parents
        return tuple(one for u, lacks in every if lacks and (one := self._priced(u, parents[u], lacks)) is not None)

    @once_each
    def _priced(self, t: int, parent: int, lacks: tuple[int, ...]) -> Refetch | None:
        prices, links, tensor = self.prices, self.prices.links, self.prices.classes.signature.tensors[t]
        if (t in prices.compound and tensor.output) or (parent == 0 and tensor.joins):
            return None
        every, elements = np.arange(len(links.spreads)), prices.elements(t)
        reached: IntArray | int = prices.accessed(t, self.memory) if t in prices.compound else elements
        count = np.broadcast_to(reached, len(every)).astype(np.float64)
        whole = ceil(prices.whole, links.instances[self.memory])[:, list(lacks)].prod(axis=1).astype(np.float64)
        if not prices.uneven.any():
            price = count[:, None] * prices.links.link(t, parent, self.memory)[0]
            return Refetch(lacks, whole[:, None] * price, price, whole)
        price, once = np.zeros((2, len(every), len(links.columns)))
        for part in prices.links.parts(t, parent, self.memory)[0]:
            least, more = count, count
            for d, entries in prices.least_entries(part, t, self.memory):
                least = least * entries
                more = more * (self._entries(part, d, entries) if d in lacks else entries)
            free = 0 if part.free is None else elements * part.free
            price += more[:, None] * part.price
            once += (part.amount(least, elements, every) + free)[:, None] * part.price
        return Refetch(lacks, price, once, np.maximum(whole, links.widest[self.memory][:, list(lacks)].prod(axis=1)))

    def _entries(self, part: LinkCharge, d: int, least: IntArray) -> FloatArray:
        """How often loops over a class enter a tile of one iteration at least, in real numbers; 0 where a spatial
        choice stands for others with more instances."""
        together = part.together(d, 0, self.prices.links.fanouts)
        if self.prices.classes.integer and self.prices.uneven[d]:
            return np.where(together == 1, float(self.prices.whole[d]), 0.0)
        return np.asarray(self.prices.whole[d] / together)


def _shared(
    stores: tuple[Refetch, Refetch], low: tuple[IntArray, IntArray], grown: FloatArray, spread: IntArray
) -> FloatArray:
    """What two stores cost more if the extents that they lack multiply to at most `grown` times the least, in the best
    way."""
    (a, b), room = stores, grown * low[0] * low[1]
    first, second = a.price[spread], b.price[spread]
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(second > 0, np.sqrt(room[:, None] * first / second), np.inf)
    least, most = np.maximum(low[0], room / b.whole[spread]), np.minimum(grown * low[0], a.whole[spread])
    y = np.clip(best, least[:, None], most[:, None])
    other = np.minimum(room[:, None] / y, b.whole[spread][:, None])
    return np.asarray(first / y + second / other - a.once[spread] - b.once[spread])

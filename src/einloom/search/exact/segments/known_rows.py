"""Rows of Einsums that occur in several segments, explored once.

Comes in: an explorer with its limits and with what its neighbours allow. Goes out: its rows, or those of one that
looked further, within these limits. Rows that go along with no neighbour may be among them: who joins them drops them
(docs/model/pruning.md, segments).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..einsums.classes import EinsumClass
from ..fusion.explore import Allowed, Explorer, PmappingGroup, Wanted
from ..numerics.pareto import FloatArray


class Exploration(NamedTuple):
    """Rows, and how far they were explored (`Explorer`)."""

    limits: FloatArray
    wanted: Wanted
    allowed: dict[int, Allowed]
    rows: list[PmappingGroup]

    def hold(self, asked: Explorer) -> bool:
        """True if all rows of an explorer are among these."""
        if (self.limits < asked.limits).any() or not _wanted(self.wanted, asked.wanted):
            return False
        return all(t in asked.allowed and _allowed(mine, asked.allowed[t]) for t, mine in self.allowed.items())

    def within(self, limits: FloatArray) -> list[PmappingGroup]:
        """The rows that keep limits of the objective; all, if those are of other columns."""
        if any(block.cost.shape[1] != len(limits) for block in self.rows):
            return list(self.rows)
        kept = [np.flatnonzero((block.cost <= limits).all(axis=1)) for block in self.rows]
        return [block.take(mine) for block, mine in zip(self.rows, kept, strict=True) if len(mine)]


class KnownRows:
    """The rows that were explored last of each kind of Einsum. kinds: those that are worth keeping."""

    def __init__(self, kinds: Iterable[EinsumClass]) -> None:
        self.kinds = frozenset(kinds)
        self._known: dict[EinsumClass, Exploration] = {}

    def of(self, asked: Explorer) -> list[PmappingGroup]:
        """The rows within the limits of an explorer, of those that its neighbours allow, and maybe more."""
        kind = asked.signature
        if kind not in self.kinds:
            return asked.blocks()
        known = self._known.get(kind)
        if known is None or not known.hold(asked):
            rows = asked.blocks()
            self._known[kind] = Exploration(asked.limits, asked.wanted, asked.allowed, rows)
            return list(rows)
        asked.counts["isomorphic"] = asked.counts.get("isomorphic", 0) + 1
        return known.within(asked.limits)


def _wanted(mine: Wanted, others: Wanted) -> bool:
    """True if all choices that the others want are wanted here."""
    return all(unit in others and not (others[unit] & ~mask).any() for unit, mask in mine.items())


def _allowed(mine: Allowed, others: Allowed) -> bool:
    """True if all that the others allow is allowed here."""
    return all(shape in mine and np.isin(tiles, mine[shape]).all() for shape, tiles in others.items())

"""Soft arc consistency: rows that no compatible partner can save go before any join.

Comes in: the blocks of every Einsum and a limit. Goes out: the same blocks with fewer rows. For every Einsum j and
shared tensor t the least cost per *key* of t (its memory and the loops above it, with trips) is tabulated. A row of
Einsum i stays if every user of its shared tensors has the row's keys, and if its cost, plus for each other Einsum the
greatest of those least costs, can still stay within the limit. Rounds repeat while rows go. (After soft arc consistency
in weighted constraint satisfaction.)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...workload.einsum import Workload
from .aim import Aim
from .fused import Allowed, Block, numbered
from .skyline import FloatArray, IntArray
from .structures import Shape

ROUNDS = 4
Key = tuple[object, ...]


def keys_of(workload: Workload, position: int, tensor: str, blocks: list[Block]) -> Allowed:
    """Every key of `tensor` that an Einsum's blocks have: (memory, (rank, axis) of each loop above) -> sets of
    trips."""
    einsum = workload.einsums[position]
    t = einsum.tensors.index(tensor)
    access = einsum.access(tensor)
    sizes = workload.tensor(tensor).shape
    found: dict[Shape, list[IntArray]] = {}
    for block in blocks:
        memory, depth = next(((m, d) for b, m, d in block.structure.backings if b == t), (0, 0))
        loops = block.structure.loops[:depth]
        shape = (memory, tuple((access.rank_of(einsum.variables[x.variable]), x.axis) for x in loops))
        found.setdefault(shape, []).append(np.unique(numbered(block.trips[:, :depth], shape, sizes)))
    return {shape: np.unique(np.concatenate(parts)) for shape, parts in found.items()}


def common(first: Allowed, second: Allowed) -> Allowed:
    """The keys that both have."""
    both = {shape: np.intersect1d(first[shape], second[shape]) for shape in first.keys() & second.keys()}
    return {shape: numbers for shape, numbers in both.items() if len(numbers)}


@dataclass(frozen=True, slots=True)
class Use:
    """A shared tensor as one Einsum sees it: its number there, the rank of every variable, and the rank sizes."""

    tensor: int
    ranks: tuple[int | None, ...]
    sizes: tuple[int, ...]


class Consistency:
    """Filters the blocks of a cascade. least: least cost of each Einsum [n, c]; aim: which sums are of use.

    Einsums that have the same rows and the same neighbours lose the same rows: each such pattern is filtered once, so
    that repeated layers cost what the first ones and the last ones do.
    """

    def __init__(self, workload: Workload, least: FloatArray, aim: Aim, counts: dict[str, int]) -> None:
        self.workload = workload
        self.least = least
        self.aim = aim
        self.counts = counts
        self._numbers: dict[tuple[int, ...], dict[Key, int]] = {}
        self._keys: dict[tuple[int, Use], IntArray] = {}
        self._tables: dict[tuple[int, Use], FloatArray] = {}
        self._sums = least.sum(axis=0)
        self._shared = [self._uses(i) for i in range(len(workload.einsums))]

    def _uses(self, position: int) -> dict[int, tuple[tuple[Use, Use], ...]]:
        """Position of each neighbour -> (own use, the neighbour's use) of every tensor that both access."""
        order = self._order
        einsum = self.workload.einsums[position]
        found: dict[int, list[tuple[Use, Use]]] = {}
        for tensor in einsum.tensors:
            users = [u for u in (*self.workload.consumers[tensor], self.workload.producers.get(tensor)) if u]
            for other in {order[u] for u in users} - {position}:
                found.setdefault(other, []).append((self._use(position, tensor), self._use(other, tensor)))
        return {other: tuple(found[other]) for other in sorted(found)}

    @cached_property
    def _order(self) -> dict[str, int]:
        return {einsum.name: i for i, einsum in enumerate(self.workload.einsums)}

    def _use(self, position: int, tensor: str) -> Use:
        einsum = self.workload.einsums[position]
        access = einsum.access(tensor)
        ranks = tuple(access.rank_of(v) for v in einsum.variables)
        return Use(einsum.tensors.index(tensor), ranks, self.workload.tensor(tensor).shape)

    def filter(self, blocks: list[list[Block]]) -> list[list[Block]]:
        """The rows that may be part of a cascade within the limit."""
        for _ in range(ROUNDS):
            self._keys, self._tables = {}, {}
            rows = {id(mine): sum(map(len, mine)) for mine in blocks}
            filtered: dict[Hashable, list[Block]] = {}
            kept = []
            for i, mine in enumerate(blocks):
                pattern = self._pattern(i, blocks)
                if pattern not in filtered:
                    filtered[pattern] = self._keep(i, blocks)
                kept.append(filtered[pattern])
                self._lost(rows[id(mine)] - sum(map(len, kept[-1])))
            same = all(sum(map(len, mine)) == rows[id(before)] for mine, before in zip(kept, blocks, strict=True))
            blocks = kept
            if same or not all(blocks):
                break
        return blocks

    def _lost(self, rows: int) -> None:
        self.counts["arc consistency"] = self.counts.get("arc consistency", 0) + rows

    def _pattern(self, position: int, blocks: list[list[Block]]) -> Hashable:
        """Equal for two Einsums only if `_keep` does the same to both: rows, least costs, and what neighbours have."""
        around = (
            (id(blocks[other]), self.least[other].tobytes(), uses) for other, uses in self._shared[position].items()
        )
        return (id(blocks[position]), self.least[position].tobytes(), *around)

    def _numbered(self, mine: list[Block], use: Use) -> IntArray:
        """The key number of a shared tensor in every row, blocks one after the other."""
        if (id(mine), use) not in self._keys:
            numbers = self._numbers.setdefault(use.sizes, {})
            parts = []
            for block in mine:
                placed = {t: (memory, depth) for t, memory, depth in block.structure.backings}
                memory, depth = placed.get(use.tensor, (0, 0))
                ranks = tuple((use.ranks[x.variable], x.axis) for x in block.structure.loops[:depth])
                packed = numbered(block.trips[:, :depth], (memory, ranks), use.sizes)
                unique, inverse = np.unique(packed, return_inverse=True)
                ids = [numbers.setdefault((memory, ranks, int(n)), len(numbers)) for n in unique]
                parts.append(np.array(ids, np.int64)[inverse.reshape(-1)])
            self._keys[id(mine), use] = np.concatenate(parts)
        return self._keys[id(mine), use]

    def _table(self, mine: list[Block], use: Use) -> FloatArray:
        """The least cost per key of a shared tensor [keys, c]; infinite for keys that no row has."""
        if (id(mine), use) not in self._tables:
            keys = self._numbered(mine, use)
            cost = np.concatenate([block.cost for block in mine])
            table = np.full((len(self._numbers[use.sizes]), cost.shape[1]), np.inf)
            for c in range(cost.shape[1]):
                np.minimum.at(table[:, c], keys, cost[:, c])
            self._tables[id(mine), use] = table
        return self._tables[id(mine), use]

    def _keep(self, position: int, blocks: list[list[Block]]) -> list[Block]:
        """The rows of one Einsum that stay; the list of before if all do."""
        mine = blocks[position]
        total = np.concatenate([block.cost for block in mine]) + (self._sums - self.least[position])
        for other, uses in self._shared[position].items():
            share = np.broadcast_to(self.least[other], total.shape).copy()
            for own, theirs in uses:
                keys = self._numbered(mine, own)
                table = self._table(blocks[other], theirs)
                known = np.full((len(self._numbers[own.sizes]), total.shape[1]), np.inf)
                known[: len(table)] = table
                share = np.maximum(share, known[keys])
            total = total + (share - self.least[other])
        good = ~self.aim.beyond(total)
        if good.all():
            return mine
        kept, start = [], 0
        for block in mine:
            chosen = np.flatnonzero(good[start : start + len(block)])
            start += len(block)
            if len(chosen):
                kept.append(block if len(chosen) == len(block) else block.take(chosen))
        return kept

"""Soft arc consistency: rows that no compatible partner can save go before any join.

Comes in: the blocks of every Einsum and a limit. Goes out: the same blocks with fewer rows. For every Einsum j and
shared tensor t the least cost per *key* of t (its memory and the loops above it, with trips) is tabulated. A row of
Einsum i stays if every user of its shared tensors has the row's keys, and if its cost, plus for each other Einsum the
greatest of those least costs, can still stay within the limit. Rounds repeat while rows go. (After soft arc consistency
in weighted constraint satisfaction.)
"""

from __future__ import annotations

import numpy as np

from ...workload.einsum import Workload
from .aim import Aim
from .fused import Allowed, Block, Shape, numbered
from .signature import is_shared
from .skyline import FloatArray, IntArray

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


class Consistency:
    """Filters the blocks of a cascade. least: least cost of each Einsum [n, c]; aim: which sums are of use."""

    def __init__(self, workload: Workload, least: FloatArray, aim: Aim, counts: dict[str, int]) -> None:
        self.workload = workload
        self.least = least
        self.aim = aim
        self.counts = counts
        self._numbers: dict[str, dict[Key, int]] = {}
        order = {e.name: i for i, e in enumerate(workload.einsums)}
        self._neighbours: list[tuple[int, ...]] = []
        for i, einsum in enumerate(workload.einsums):
            users = {u for t in einsum.tensors for u in (*workload.consumers[t], workload.producers.get(t)) if u}
            self._neighbours.append(tuple(sorted({order[u] for u in users} - {i})))

    def filter(self, blocks: list[list[Block]]) -> list[list[Block]]:
        """The rows that may be part of a cascade within the limit."""
        for _ in range(ROUNDS):
            before = sum(len(block) for mine in blocks for block in mine)
            keys = [self._keys(i, mine) for i, mine in enumerate(blocks)]
            tables = [self._tables(mine, keys[i]) for i, mine in enumerate(blocks)]
            blocks = [self._keep(i, mine, keys[i], tables) for i, mine in enumerate(blocks)]
            after = sum(len(block) for mine in blocks for block in mine)
            self.counts["arc consistency"] = self.counts.get("arc consistency", 0) + before - after
            if after == before or any(not mine for mine in blocks):
                break
        return blocks

    def _keys(self, position: int, mine: list[Block]) -> dict[str, IntArray]:
        """For each shared tensor the key number of every row, blocks one after the other."""
        einsum = self.workload.einsums[position]
        found: dict[str, list[IntArray]] = {}
        for block in mine:
            placed = {t: (memory, depth) for t, memory, depth in block.structure.backings}
            for t, access in enumerate(einsum.accesses):
                if not is_shared(self.workload, access.tensor):
                    continue
                memory, depth = placed.get(t, (0, 0))
                loops = block.structure.loops[:depth]
                ranks = tuple((access.rank_of(einsum.variables[x.variable]), x.axis) for x in loops)
                numbers = self._numbers.setdefault(access.tensor, {})
                sizes = self.workload.tensor(access.tensor).shape
                packed = numbered(block.trips[:, :depth], (memory, ranks), sizes)
                unique, inverse = np.unique(packed, return_inverse=True)
                ids = [numbers.setdefault((memory, ranks, int(n)), len(numbers)) for n in unique]
                found.setdefault(access.tensor, []).append(np.array(ids, np.int64)[inverse.reshape(-1)])
        return {tensor: np.concatenate(parts) for tensor, parts in found.items()}

    def _tables(self, mine: list[Block], keys: dict[str, IntArray]) -> dict[str, FloatArray]:
        """For each shared tensor the least cost per key [keys, c]; infinite for keys that no row has."""
        cost = np.concatenate([block.cost for block in mine])
        tables = {}
        for tensor, numbers in keys.items():
            table = np.full((len(self._numbers[tensor]), cost.shape[1]), np.inf)
            for c in range(cost.shape[1]):
                np.minimum.at(table[:, c], numbers, cost[:, c])
            tables[tensor] = table
        return tables

    def _keep(
        self, position: int, mine: list[Block], keys: dict[str, IntArray], tables: list[dict[str, FloatArray]]
    ) -> list[Block]:
        others = self.least.sum(axis=0) - self.least[position]
        total = np.concatenate([block.cost for block in mine]) + others
        for other in self._neighbours[position]:
            share = np.broadcast_to(self.least[other], total.shape).copy()
            for tensor in keys.keys() & tables[other].keys():
                table = tables[other][tensor]
                known = np.full((len(self._numbers[tensor]), total.shape[1]), np.inf)
                known[: len(table)] = table
                share = np.maximum(share, known[keys[tensor]])
            total = total + (share - self.least[other])
        good = ~self.aim.beyond(total)
        kept, start = [], 0
        for block in mine:
            chosen = np.flatnonzero(good[start : start + len(block)])
            start += len(block)
            if len(chosen):
                kept.append(block if len(chosen) == len(block) else block.take(chosen))
        return kept

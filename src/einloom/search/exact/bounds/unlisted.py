"""What an Einsum costs at least, known before its spatial choices are listed: operations and compulsory moves.

Comes in: the class of an Einsum. Goes out: a lower bound on each settled column, below that of `Floors`, which looks at
every choice of spatial loops. The argument: docs/model/pruning.md, "Compulsory moves of an Einsum".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import pairwise
from math import inf, prod

import numpy as np

from ....machine.levels import Machine
from ....mapspace.divisors import divisors
from ....problem import Objective
from ..einsums.classes import AxisSignature, EinsumClass, UnitOption
from ..einsums.spatial import padded
from ..numerics.pareto import FloatArray
from ..prices.columns import leakage

MOST = 1 << 12  # choices of stores that are priced together; of more, each column is bounded alone
Chain = tuple[int, ...]  # the memories that hold a tensor, outermost first


def unlisted_least(machine: Machine, einsum: EinsumClass, objectives: tuple[Objective, ...]) -> FloatArray:
    """The least of every settled objective [columns] of one repeat: each alone, over all units and choices of stores.

    Infinite where there is no choice. Members of groups may cost less.
    """
    found = [_OnUnit(machine, einsum, option).least(objectives) for option in einsum.units]
    return np.asarray(np.min(np.array(found).reshape(-1, len(objectives)), axis=0, initial=inf))


@dataclass
class _OnUnit:
    """An Einsum on one of its units."""

    machine: Machine
    einsum: EinsumClass
    option: UnitOption
    _known: dict[tuple[AxisSignature, frozenset[int]], int] = field(default_factory=dict)

    def least(self, objectives: tuple[Objective, ...]) -> FloatArray:
        """As `unlisted_least`, of one unit."""
        tables = [self._moves(t) for t in range(len(self.einsum.tensors))]
        if prod(map(len, tables)) > MOST:
            tables = [table.min(axis=0, keepdims=True) for table in tables]
        moved = reduce(lambda a, b: (a[:, None] + b[None]).reshape(-1, a.shape[1]), tables)
        return np.array([self._value(moved, objective).min(initial=inf) for objective in objectives])

    def _value(self, moved: FloatArray, objective: Objective) -> FloatArray:
        """An additive objective of choices of stores. moved [n, 2 memories]: bits read, then bits written, in each."""
        memories = self.machine.memories
        read, written = moved[:, : len(memories)], moved[:, len(memories) :]
        if objective.name == "traffic":
            at = [memory.name for memory in memories].index(objective.memory or "")
            return np.asarray(read[:, at] + written[:, at])
        latency = self._latency(read, written)
        if objective.name == "latency":
            return latency
        energy = self._operations[0] + leakage(self.machine) * latency
        for m, memory in enumerate(memories):
            energy += (read[:, m] * memory.read_energy + written[:, m] * memory.write_energy) / memory.bits_per_access
        return np.asarray(energy)

    def _latency(self, read: FloatArray, written: FloatArray) -> FloatArray:
        """Seconds of what takes longest: its busiest instance works no less than the mean of all that may be in use."""
        latency = np.full(len(read), self._operations[1])
        for m, above in enumerate(self.option.above):
            memory, share = self.machine.memories[m], 1.0 / self._used(above)
            reading = read[:, m] * share / memory.read_throughput if memory.read_throughput else 0.0 * read[:, m]
            writing = written[:, m] * share / memory.write_throughput if memory.write_throughput else 0.0 * read[:, m]
            both = reading + writing if memory.ports == "shared" else np.maximum(reading, writing)
            latency = np.maximum(latency, both)
        return latency

    @cached_property
    def _operations(self) -> tuple[float, float]:
        """(joules, seconds) of the operations."""
        if self.option.unit is None:
            return 0.0, 0.0
        unit, points = self.machine.unit(self.option.unit), prod(self.einsum.extents)
        seconds = points / self._used(self.option.fanouts) / unit.throughput if unit.throughput else 0.0
        return points * unit.energy, seconds

    # -- moves --------------------------------------------------------------------------------------------------------

    def _moves(self, t: int) -> FloatArray:
        """[choices of memories that hold the tensor, 2 memories]: bits read, then bits written, in each memory."""
        held = [[t in choice[m] for choice in self.option.held] for m in range(len(self.option.above))]
        chains = {tuple(m for m, holds in enumerate(mask) if holds) for mask in set(zip(*held, strict=True))}
        elements, points = self._elements(t)
        return np.array([self._along(t, chain, elements, points) for chain in sorted(chains)])

    def _along(self, t: int, chain: Chain, elements: int, points: int) -> FloatArray:
        tensor, count = self.einsum.tensors[t], len(self.machine.memories)
        moved = np.zeros((2, count))
        for parent, child in pairwise(chain):
            if not (tensor.housed and parent < tensor.home) and not (tensor.joins and parent == 0):
                moved[int(tensor.output), parent] += elements * tensor.bits[parent]
                moved[int(not tensor.output), child] += elements * tensor.bits[child]
        if not self.einsum.copy:
            inner = chain[-1]
            together = self._instances(t, self.option.above[inner], self.option.fanouts, joined=True)
            values = points / together
            moved[int(tensor.output), inner] += values * tensor.bits[inner]
            if tensor.output:
                moved[0, inner] += max(0.0, values - elements * self._sums(t, inner)) * tensor.bits[inner]
        return moved.reshape(-1)

    def _elements(self, t: int) -> tuple[int, int]:
        """(elements of the tensor that the Einsum meets, iterations that meet one)."""
        tensor, elements, points = self.einsum.tensors[t], 1, 1
        for r, (rank, constant, size) in enumerate(zip(tensor.ranks, tensor.constants, tensor.shape, strict=True)):
            if tensor.simple(r):
                reached = min(self.einsum.extents[rank[0][0]], size)
                elements, points = elements * reached, points * reached
                continue
            places, met = np.array([constant]), np.ones(1, np.int64)
            for v, coefficient in rank:
                every = places[:, None] + coefficient * np.arange(self.einsum.extents[v])
                places, inverse = np.unique(every, return_inverse=True)
                met = np.bincount(inverse.reshape(-1), np.repeat(met, self.einsum.extents[v])).astype(np.int64)
            inside = (places >= 0) & (places < size)
            elements, points = elements * int(inside.sum()), points * int(met[inside].sum())
        lacks = (extent for v, extent in enumerate(self.einsum.extents) if v not in tensor.variables)
        return elements, points * prod(lacks)

    def _sums(self, t: int, inner: int) -> int:
        """Most instances that begin a sum of their own for one element: those for which nothing is added on the way."""
        above = self.option.above[inner]
        outside = self._instances(t, 0, above)
        return min(outside * self._instances(t, above, self.option.fanouts, joined=False), self._lacking(t))

    def _lacking(self, t: int) -> int:
        mine = self.einsum.tensors[t].variables
        return prod(extent for v, extent in enumerate(self.einsum.extents) if v not in mine)

    # -- instances ----------------------------------------------------------------------------------------------------

    def _instances(self, t: int, top: int, bottom: int, joined: bool | None = None) -> int:
        """Most instances, along variables that the tensor lacks, of the axes of fanouts `top` <= number < `bottom`.

        joined: of axes that join the tensor, or of the others.
        """
        lacking = set(range(len(self.einsum.extents))) - self.einsum.tensors[t].variables
        axes = (axis for axis in self.einsum.axes if top <= axis.fanout < bottom)
        some = [axis for axis in axes if joined is None or (t in axis.joined) == joined]
        return min(prod(self._taken(axis, lacking) for axis in some), self._lacking(t))

    def _used(self, fanouts: int) -> int:
        """Most instances that the first `fanouts` fanouts can have in use."""
        every = range(len(self.einsum.extents))
        most = prod(self._taken(axis, every) for axis in self.einsum.axes if axis.fanout < fanouts)
        return min(most, prod(self.einsum.extents))

    def _taken(self, axis: AxisSignature, variables: Collection[int]) -> int:
        """Most instances that loops over these variables can take of an axis."""
        key = axis, frozenset(variables)
        if key not in self._known:
            self._known[key] = self._most(*key)
        return self._known[key]

    def _most(self, axis: AxisSignature, variables: frozenset[int]) -> int:
        size = axis.size
        if axis.totals and not self.einsum.copy:
            size = max((n for n in range(1, size + 1) if all(total.allow(n) for total in axis.totals)), default=1)
        found = {1}
        for v in variables:
            takes = [n for n in self._takes(axis, v) if 1 < n <= size]
            found |= {n * take for n in found for take in takes if n * take <= size}
        return max(found)

    @cached_property
    def _outside(self) -> frozenset[int]:
        return padded(self.einsum)

    def _takes(self, axis: AxisSignature, v: int) -> Iterator[int]:
        """Instances of the axis that a variable may take."""
        if v in self._outside or any(v in self.einsum.tensors[t].variables for t in axis.barred):
            return
        extent = self.einsum.extents[v]
        every = range(1, min(extent, axis.size) + 1) if v in self.einsum.uneven else divisors(extent)
        limits = [numbers for w, numbers in axis.shares if w == v and not self.einsum.copy]
        yield from (n for n in every if all(numbers.allow(n) for numbers in limits))

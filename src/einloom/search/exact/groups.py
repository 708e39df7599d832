"""Which Einsums may run at the same time, and what they cost at least then.

Comes in: signatures, and the columns of the tables. Goes out: the windows of neighbouring Einsums that may be one
group, and per Einsum the least seconds that it keeps each component busy. A group takes at least as long as any
component is busy for all of it, so seconds on one component, the same for every Einsum of overlapping windows, add up
to a lower bound of the cascade's latency whichever of them form groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from ...machine.levels import Machine
from ...workload.einsum import Workload
from .pricing import Column
from .signature import Signature, UnitOption
from .skyline import FloatArray
from .structures import OwnStore, Structure


@dataclass(frozen=True)
class Components:
    """The components that keep time: memories, each with the columns of its ports, then compute units."""

    energy: int | None
    memories: tuple[tuple[int, ...], ...]
    compute: int | None
    units: tuple[str, ...]

    @classmethod
    def of(cls, machine: Machine, columns: tuple[Column, ...]) -> Components:
        ports: dict[int, list[int]] = {}
        for i, column in enumerate(columns):
            if column.kind == "time" and column.port != "compute":
                ports.setdefault(column.memory, []).append(i)
        energy = next((i for i, column in enumerate(columns) if column.kind == "energy"), None)
        compute = next((i for i, column in enumerate(columns) if column.port == "compute"), None)
        units = tuple(unit.name for unit in machine.units if unit.throughput is not None)
        return cls(energy, tuple(map(tuple, ports.values())), compute, units)

    def __len__(self) -> int:
        return len(self.memories) + len(self.units)

    def busy(self, cost: FloatArray, unit: str | None) -> FloatArray:
        """Seconds per component [n, components] of an Einsum on `unit`: of the ports of one memory the busiest."""
        found = np.zeros((len(cost), len(self)))
        for i, ports in enumerate(self.memories):
            found[:, i] = cost[:, list(ports)].max(axis=1)
        if unit in self.units:
            found[:, len(self.memories) + self.units.index(unit)] = cost[:, self.compute]
        return found

    def dynamic(self, cost: FloatArray) -> FloatArray:
        """Joules without leakage; zero where they do not matter."""
        return np.zeros(len(cost)) if self.energy is None else cost[:, self.energy]

    def columns(self, most: FloatArray, energy: float, width: int) -> FloatArray:
        """Limits of all columns from those of the components and of the energy."""
        limits = np.full(width, np.inf)
        for i, ports in enumerate(self.memories):
            limits[list(ports)] = most[i]
        if self.energy is not None:
            limits[self.energy] = energy
        if self.compute is not None:
            limits[self.compute] = most[len(self.memories) :].max(initial=0.0) if self.units else np.inf
        return limits


def kept_apart(signature: Signature, option: UnitOption, structure: Structure, own: tuple[OwnStore, ...]) -> bool:
    """True if an Einsum with this fused part may stand below a split whose branches run at the same time (rule 13).

    Then nothing below the split is kept from token to token that a store above the innermost loop could not keep, and
    every move costs what it costs below a sequential split.
    """
    if not structure.loops or any(loop.axis is not None for loop in structure.loops):
        return False
    variables = {loop.variable for loop in structure.loops}
    if any(variables & tensor.complex_variables for tensor in signature.tensors):
        return False
    inner = structure.loops[-1].variable
    if all(inner in tensor.variables for tensor in signature.tensors):
        return True
    outermost = min((*(m for _, m, _ in structure.backings), *(store.memory for store in own)))
    return len(option.above) - 1 <= outermost


def drains(
    signature: Signature, structure: Structure, own: tuple[OwnStore, ...], shares: tuple[int, ...]
) -> tuple[int, frozenset[OwnStore]]:
    """(loops from here on feed the pipeline without draining it, own stores that stand below the split instead).

    An own store keeps its tile over the innermost loops that its tensor lacks wherever it stands: below the split, it
    makes no loop drain the pipeline. Others do, with the first loop further out that moves their tile, if they have one
    slot; so do stores of exchanged tiles between the loops.
    """
    tensors, depth = signature.tensors, len(structure.loops)
    innermost = max(m for _, m, _ in structure.backings)
    start, lowered = 0, set()
    for store in own:
        moving = tensors[store.tensor].variables
        if store.memory == innermost and not any(x.variable in moving for x in structure.loops[store.depth :]):
            lowered.add(store)
        elif shares[store.memory] == 1:
            above = [i for i, loop in enumerate(structure.loops[: store.depth]) if loop.variable in moving]
            start = max(start, *(i + 1 for i in above), 0)
    for _, memory, place in structure.backings:
        if place < depth and shares[memory] == 1:
            start = max(start, place)
    return start, frozenset(lowered)


@dataclass(frozen=True)
class Windows:
    """Every window (first, last) of neighbouring Einsums that may be one group.

    signatures: of all Einsums. most: Einsums of one group. apart: members must run on different units.
    """

    workload: Workload
    signatures: list[Signature]
    most: int
    apart: bool

    @cached_property
    def all(self) -> tuple[tuple[int, int], ...]:
        count = len(self.signatures)
        able = [self._able(signature) for signature in self.signatures]
        return tuple(
            (a, b)
            for a in range(count)
            for b in range(a + 1, min(a + self.most, count))
            if all(able[a : b + 1]) and self._linked(a, b) and self._housed(a, b)
        )

    def _able(self, signature: Signature) -> bool:
        """True if some fused part might do (`kept_apart`)."""
        windowed = {v for tensor in signature.tensors for v in tensor.complex_variables}
        inside = any(self._innermost(signature, option) for option in signature.units)
        for v, extent in enumerate(signature.extents):
            links = any(tensor.intermediate and v in tensor.variables for tensor in signature.tensors)
            everywhere = all(v in tensor.variables for tensor in signature.tensors)
            if extent > 1 and v not in windowed and links and (everywhere or inside):
                return True
        return False

    def _innermost(self, signature: Signature, option: UnitOption) -> bool:
        """True if an intermediate may be backed by the innermost memory that the unit sees."""
        last = len(option.above) - 1
        fusable = [t for t, tensor in enumerate(signature.tensors) if tensor.intermediate]
        return any(t in held[last] and not any(t in h for h in held[:last]) for held in option.held for t in fusable)

    def inner(self, first: int, last: int) -> frozenset[str]:
        """Intermediates that only the Einsums of a window access."""
        position = {einsum.name: i for i, einsum in enumerate(self.workload.einsums)}
        found = set()
        for name in self.workload.intermediates:
            users = [position[u] for u in (self.workload.producers[name], *self.workload.consumers[name])]
            if first <= min(users) and max(users) <= last:
                found.add(name)
        return frozenset(found)

    def _linked(self, first: int, last: int) -> bool:
        einsums = self.workload.einsums
        inner = self.inner(first, last)
        users = {t: [i for i in range(first, last + 1) if t in einsums[i].tensors] for t in inner}
        spanned = all(any(min(u) <= i < max(u) for u in users.values()) for i in range(first, last))
        return spanned and all(inner & set(einsums[i].tensors) for i in range(first, last + 1))

    def _housed(self, first: int, last: int) -> bool:
        """True if every member can have units of its own, where it must."""
        if not self.apart:
            return True
        choices = [[option.unit for option in self.signatures[i].units] for i in range(first, last + 1)]
        return any(len(set(u := [n for n in some if n is not None])) == len(u) for some in product(*choices))

    @cached_property
    def reach(self) -> dict[int, int]:
        """First member -> the last one at most."""
        found: dict[int, int] = {}
        for a, b in self.all:
            found[a] = max(b, found.get(a, b))
        return found

    @cached_property
    def members(self) -> dict[int, frozenset[str]]:
        """Position -> tensors that may be stored directly above a split of which the Einsum is a branch."""
        found: dict[int, frozenset[str]] = {}
        for a, b in self.all:
            inner = self.inner(a, b)
            for i in range(a, b + 1):
                found[i] = found.get(i, frozenset()) | inner & set(self.workload.einsums[i].tensors)
        return found

    @cached_property
    def clusters(self) -> tuple[range, ...]:
        """Runs of Einsums that overlapping windows cover."""
        found: list[range] = []
        for a, b in sorted(self.all):
            if found and a < found[-1].stop:
                found[-1] = range(found[-1].start, max(found[-1].stop, b + 1))
            else:
                found.append(range(a, b + 1))
        return tuple(found)

    def chained(self, first: int) -> bool:
        """True if in every group that begins here each member reads what the one before it writes."""
        einsums = self.workload.einsums
        pairs = zip(einsums[first : self.reach[first]], einsums[first + 1 : self.reach[first] + 1], strict=True)
        return all(any(a.output.tensor == access.tensor for access in b.inputs) for a, b in pairs)


@dataclass(frozen=True)
class Floors:
    """Least busy seconds of the members. table [Einsums, components]; component: which one counts, per member."""

    table: FloatArray
    component: dict[int, int]

    @classmethod
    def of(cls, windows: Windows, table: FloatArray) -> Floors:
        """The floors, each cluster counting on the component that is busiest for all of it."""
        component = {i: int(table[list(run)].sum(axis=0).argmax()) for run in windows.clusters for i in run}
        return cls(table, component)

    def seconds(self, position: int) -> float:
        """The least that a member adds to the cascade's latency."""
        return float(self.table[position, self.component[position]])

    def most(self, windows: Windows, position: int, latency: float, least: FloatArray) -> FloatArray:
        """The longest that each component may be busy for a member, if the cascade may take `latency`.

        least: seconds that every Einsum adds at least.
        """
        found = np.full(self.table.shape[1], -np.inf)
        total = least.sum()
        for a, b in windows.all:
            if a <= position <= b:
                others = total - least[a : b + 1].sum()
                beside = self.table[a : b + 1].sum(axis=0) - self.table[position]
                found = np.maximum(found, latency - others - beside)
        return found

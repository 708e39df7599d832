"""Which Einsums may run at the same time, and what they cost at least then.

Comes in: signatures, and the columns of the tables. Goes out: `Candidate`s, neighbouring Einsums that may be one group,
and per Einsum the least seconds that it keeps each component busy. A group takes at least as long as any component is
busy for all of it, so seconds on one component, the same for every Einsum of overlapping candidates, add up to a lower
bound of the cascade's latency whichever of them form groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from ....dataclass import dataclass
from ....machine.levels import Machine
from ....once import once_each
from ....workload.einsum import Workload
from ....workload.orders import earlier
from ..einsums.classes import EinsumClass, UnitOption
from ..einsums.holds import Placement, backing
from ..fusion.templates import FusedTemplate, OwnStore
from ..numerics.pareto import FloatArray
from ..prices.columns import Column


@dataclass(frozen=True)
class TimedComponents:
    """The components that keep time: memories, each with the columns of its ports, then compute units.

    energy: the column that adds up in a group, joules or bits of traffic. Without any component one stands for all,
    never busy.
    """

    energy: int | None
    memories: tuple[tuple[int, ...], ...]
    compute: int | None
    units: tuple[str, ...]

    @classmethod
    def of(cls, machine: Machine, columns: tuple[Column, ...]) -> TimedComponents:
        ports: dict[int, list[int]] = {}
        for i, column in enumerate(columns):
            if column.kind == "time" and column.port != "compute":
                ports.setdefault(column.memory, []).append(i)
        energy = next((i for i, column in enumerate(columns) if column.kind != "time"), None)
        compute = next((i for i, column in enumerate(columns) if column.port == "compute"), None)
        units = tuple(unit.name for unit in machine.units if unit.throughput is not None and compute is not None)
        return cls(energy, tuple(map(tuple, ports.values())), compute, units)

    def __len__(self) -> int:
        return max(1, len(self.memories) + len(self.units))

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


def kept_apart(signature: EinsumClass, option: UnitOption, structure: FusedTemplate, own: tuple[OwnStore, ...]) -> bool:
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


def may_be_apart(signature: EinsumClass, option: UnitOption, held: Placement) -> bool:
    """True if some fused part of this choice of held tensors may be `kept_apart`: that asks of the innermost loop, and
    of the outermost backing store on chip."""
    links = [t for t, tensor in enumerate(signature.tensors) if tensor.intermediate]
    innermost = all(backing(held, t) in (0, len(option.above) - 1) for t in links)
    windowed = {v for tensor in signature.tensors for v in tensor.complex_variables}
    loops = [v for v, extent in enumerate(signature.extents) if extent > 1 and v not in windowed]
    linking = [v for v in loops if any(v in signature.tensors[t].variables for t in links)]
    return any(innermost or all(v in tensor.variables for tensor in signature.tensors) for v in linking)


def drains(
    signature: EinsumClass, structure: FusedTemplate, own: tuple[OwnStore, ...], slots: tuple[int, ...]
) -> tuple[int, frozenset[OwnStore]]:
    """(loops from here on feed the pipeline without draining it, own stores that stand below the split instead).

    An own store keeps its tile over the innermost loops that its tensor lacks wherever it stands: below the split, it
    makes no loop drain the pipeline. Others do, with the first loop further out that moves their tile, if they have one
    slot; so do stores of exchanged tiles between the loops, and those for several readers.
    """
    tensors, depth = signature.tensors, len(structure.loops)
    innermost = max(m for _, m, _ in structure.backings)
    start, lowered = 0, set()
    for store in own:
        moving = tensors[store.tensor].variables
        still = not any(x.variable in moving for x in structure.loops[store.depth :])
        if store.memory == innermost and still and not store.part:
            lowered.add(store)
        elif slots[store.memory] == 1:
            above = [i for i, loop in enumerate(structure.loops[: store.depth]) if loop.variable in moving]
            start = max(start, *(i + 1 for i in above), 0)
    for _, memory, place in structure.backings:
        if place < depth and slots[memory] == 1:
            start = max(start, place)
    return start, frozenset(lowered)


@dataclass(frozen=True)
class Candidate:
    """Einsums that may be one group. members: their positions, ascending.

    inner: intermediates that only they access. floors [members, components]: least busy seconds of each. component: the
    one that is busiest for all of them.
    """

    members: tuple[int, ...]
    inner: frozenset[str]
    floors: FloatArray
    component: int

    @property
    def seconds(self) -> float:
        """The least that a group of all of them takes."""
        return float(self.floors[:, self.component].sum())


@dataclass(frozen=True)
class Candidates:
    """Finds the candidates of a cascade.

    most: Einsums of one group. apart: members must run on different units. slots, capacities: of the memories. insides:
    memories that every branch has for itself, for each way to run at the same time. least: (Einsum, compute unit and
    its choice of held tensors) -> seconds per component that it is busy at least. free: Einsums run in any order that
    their data allows.
    """

    workload: Workload
    signatures: list[EinsumClass]
    most: int
    apart: bool
    slots: tuple[int, ...]
    capacities: tuple[int | None, ...]
    insides: frozenset[frozenset[int]]
    least: Callable[[EinsumClass, UnitOption, Placement], FloatArray]
    free: bool = False

    @cached_property
    def all(self) -> tuple[Candidate, ...]:
        """Every candidate, by its first Einsum."""
        able = [self._able(signature) for signature in self.signatures]
        return tuple(
            candidate
            for members in (self._linked() if self.free else self._neighbours())
            if all(able[i] for i in members) and (candidate := self._candidate(members)) is not None
        )

    def _neighbours(self) -> Iterator[tuple[int, ...]]:
        """Runs of the program of which each two neighbours are linked by an intermediate that stays among them."""
        count = len(self.signatures)
        for first in range(count):
            for stop in range(first + 2, min(first + self.most, count) + 1):
                users = [self._users[t] for t in self._inner(range(first, stop))]
                if all(any(u[0] <= i < u[-1] for u in users) for i in range(first, stop - 1)):
                    yield tuple(range(first, stop))

    def _linked(self) -> list[tuple[int, ...]]:
        """Einsums that may be neighbours in some order, each two linked by an intermediate that stays among them.

        If all hang together by such intermediates, each two neighbours are linked in every order. If they fall into
        parts, these have to interleave: then there are orders in which they are, and the join sees to it.
        """
        links = {frozenset(users) for users in self._users.values() if 1 < len(users) <= self.most}
        found, fresh = set(links), links
        while fresh:
            pairs = ((one, link) for one in fresh for link in links if len(one | link) <= self.most)
            fresh = {one | link for one, link in pairs if one & link or self._interleave(one, link)} - found
            found |= fresh
        return sorted(tuple(sorted(one)) for one in found if self._convex(one))

    def _interleave(self, some: frozenset[int], others: frozenset[int]) -> bool:
        """True if neither must have run before the others begin."""
        first, second = (sum(1 << i for i in members) for members in (some, others))
        before = self._earlier
        ordered = all(first & ~before[i] == 0 for i in others) or all(second & ~before[i] == 0 for i in some)
        return not ordered

    def _convex(self, members: frozenset[int]) -> bool:
        """True if no other Einsum has to run after one of them and before another."""
        before = self._earlier
        mine = sum(1 << i for i in members)
        between = [i for i in range(len(before)) if i not in members and before[i] & mine]
        return not any(before[i] >> other & 1 for i in members for other in between)

    @cached_property
    def _earlier(self) -> list[int]:
        return earlier(self.workload)

    @cached_property
    def _users(self) -> dict[str, list[int]]:
        """Intermediate -> the places of those that access it."""
        position, producers, consumers = self.workload.position, self.workload.producers, self.workload.consumers
        return {t: sorted({position[u] for u in (producers[t], *consumers[t])}) for t in self.workload.intermediates}

    def _able(self, signature: EinsumClass) -> bool:
        """True if some fused part might do (`kept_apart`)."""
        links = [t for t, tensor in enumerate(signature.tensors) if tensor.intermediate]
        choices = [(option, held) for option in signature.units for held in option.held]
        return any(may_be_apart(signature, *choice) for choice in choices if any(backing(choice[1], t) for t in links))

    def _candidate(self, members: tuple[int, ...]) -> Candidate | None:
        """The candidate, or None if these linked Einsums are no group: on one unit, or too large for some memory."""
        inner = self._inner(members)
        choices = [self._choices(i, inner) for i in members]
        if not (all(choices) and self._housed(choices) and self._fit(members, choices)):
            return None
        floors = np.array(
            [
                np.min([self.least(self.signatures[i], option, held) for option, held in some], axis=0)
                for i, some in zip(members, choices, strict=True)
            ]
        )
        if not np.isfinite(floors).all():
            return None
        return Candidate(members, inner, floors, int(floors.sum(axis=0).argmax()))

    def _inner(self, members: Sequence[int]) -> frozenset[str]:
        return frozenset(t for t, users in self._users.items() if all(i in members for i in users))

    def _choices(self, position: int, inner: frozenset[str]) -> list[tuple[UnitOption, Placement]]:
        """Units and choices of held tensors of a member: one that stays among the members is backed on chip."""
        names = self.workload.einsums[position].tensors
        linking = [t for t, name in enumerate(names) if name in inner]
        return [
            (option, held)
            for option in self.signatures[position].units
            for held in option.held
            if any(backing(held, t) > 0 for t in linking)
        ]

    def _housed(self, choices: list[list[tuple[UnitOption, Placement]]]) -> bool:
        """True if every member can have a unit of its own, where it must."""
        if not self.apart:
            return True
        units = [{option.unit for option, _ in some} for some in choices]
        return any(len(set(u := [n for n in some if n is not None])) == len(u) for some in product(*units))

    def _fit(self, members: tuple[int, ...], choices: list[list[tuple[UnitOption, Placement]]]) -> bool:
        """True if every memory has room for a value of each tensor that the members must keep there for themselves; one
        that every branch has for itself, for one member at a time."""
        limited = [(m, capacity) for m, capacity in enumerate(self.capacities) if m and capacity is not None]
        return any(
            all((max if m in inside else sum)(self._needs(m, members, choices)) <= room for m, room in limited)
            for inside in self.insides
        )

    def _needs(
        self, memory: int, members: tuple[int, ...], choices: list[list[tuple[UnitOption, Placement]]]
    ) -> Iterator[int]:
        """Bits of one value of each tensor that a member must keep in the memory for itself, and for nobody else."""
        for i, some in zip(members, choices, strict=True):
            tensors = self.signatures[i].tensors
            bits = [0 if tensor.parts else tensor.bits[memory] * self.slots[memory] for tensor in tensors]
            yield min(
                sum(bits[t] for t in held[memory] if backing(held, t) < memory) if memory < len(held) else 0
                for _, held in some
            )

    @once_each
    def grows(self, members: tuple[int, ...]) -> bool:
        """True if these, in the order in which they run, may be the first of a group that has more."""
        starts = (c.members for c in self.all if self.free or c.members[0] == members[0])
        return any(frozenset(members) < frozenset(one) for one in starts)

    @cached_property
    def members(self) -> dict[int, frozenset[str]]:
        """Position -> tensors that may be stored directly above a split of which the Einsum is a branch."""
        found: dict[int, frozenset[str]] = {}
        for candidate in self.all:
            for i in candidate.members:
                found[i] = found.get(i, frozenset()) | candidate.inner & set(self.workload.einsums[i].tensors)
        return found

    def around(self, position: int) -> list[Candidate]:
        """The candidates that an Einsum is in."""
        return [candidate for candidate in self.all if position in candidate.members]

    def chained(self, first: int) -> bool:
        """True if in every group that begins here each member reads what the one before it writes."""
        if self.free:
            return False
        last = max(c.members[-1] for c in self.all if c.members[0] == first)
        pairs = pairwise(self.workload.einsums[first : last + 1])
        return all(any(a.output.tensor == access.tensor for access in b.inputs) for a, b in pairs)

    def seconds(self, alone: FloatArray) -> FloatArray:
        """Seconds that every Einsum adds to the latency at least, `alone` or in a group: of no candidate more than it
        takes."""
        found = alone.copy()
        found[list(self.members)] = 0.0
        for i in self.members:
            room = [candidate.seconds - found[list(candidate.members)].sum() for candidate in self.around(i)]
            found[i] = max(0.0, min(alone[i], *room))
        return found

    def limits(self, position: int, latency: float, least: FloatArray) -> FloatArray:
        """The longest that each component may be busy for a member, if the cascade may take `latency`.

        least: seconds that every Einsum adds at least.
        """
        total = least.sum()
        found = []
        for candidate in self.around(position):
            others = total - least[list(candidate.members)].sum()
            beside = candidate.floors.sum(axis=0) - candidate.floors[candidate.members.index(position)]
            found.append(latency - others - beside)
        return np.asarray(np.max(found, axis=0))

    def least_sums(self, position: int, least: FloatArray) -> list[tuple[int, float]]:
        """(component, seconds) of each candidate around a member.

        Seconds on the component, and so many more, are what the member adds at least. Within a candidate the numbers
        added sum to zero: a group takes at least the sum.
        """
        found = []
        for candidate in self.around(position):
            mine = least[list(candidate.members)]
            left = (candidate.seconds - mine.sum()) / len(mine)
            at = candidate.members.index(position)
            found.append((candidate.component, float(mine[at] + left - candidate.floors[at, candidate.component])))
        return found

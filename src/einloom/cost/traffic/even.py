"""The price of one path on which every index is one plain variable, in plain integers.

Even cuts multiply here; where the outermost loop of a variable cuts unevenly, `uneven` counts.

Comes in: an Einsum and the steps of its path from the outside in. Goes out: its joules, seconds, and bits through each
memory, as `evaluate.price` has them. Searches that change one Einsum at a time ask this a thousand times a second; it
says the same as the walk of `accesses`, which a test compares on random trees. Searches that have not chosen the trips
of even loops yet ask with `Monomials` for them.
"""

from __future__ import annotations

from math import prod

from ...dataclass import dataclass
from ...machine.levels import Link, Machine
from ...workload.einsum import Workload
from ...workload.selectors import select
from ..formulas import terms
from ..formulas.components import component_time
from ..formulas.terms import Number
from .uneven import Counts, Step, crossed, done_by_busiest

Move = tuple[int, Number, Number, bool]  # (memory, bits, bits of the busiest instance, whether they are written)


@dataclass(frozen=True, slots=True)
class PathCost:
    """Joules, seconds (all repeats), and bits read and written in each memory of the machine, in its order."""

    energy: float
    latency: float
    traffic: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorOnPath:
    """A tensor of the Einsum, on any path. joined: axes over which instances count once above."""

    name: str
    variables: frozenset[str]
    values: int
    written: bool
    joined: frozenset[str]
    widths: tuple[int, ...]


class EvenPaths:
    """Prices paths of one Einsum.

    A step is (``store``, number of the memory, tensors), (``for``, variable, trips), (``par``, axis, variable, trips),
    (``split``,) or, last, (``leaf``, unit, what the loops of each unevenly cut variable cover).
    """

    def __init__(self, workload: Workload, machine: Machine, einsum: str) -> None:
        self.workload, self.machine = workload, machine
        self.einsum = workload.einsum(einsum)
        self.rmw = machine.partial_sums == "read-modify-write"
        self.tensors = tuple(self._tensor(access.tensor) for access in self.einsum.accesses)
        self.operations = workload.operations(einsum)
        self.extents = {v: workload.extents[v] for v in self.einsum.variables}
        self.energies = [(m.read_energy, m.write_energy, m.bits_per_access) for m in machine.memories]
        self.leak = sum(level.leakage * machine.instances(level.name) for level in machine.components if level.leakage)

    @staticmethod
    def able(workload: Workload, machine: Machine, einsum: str) -> bool:
        """True if the Einsum's indices are plain variables, and the machine has neither tolls nor links."""
        simple = all(index.simple for access in workload.einsum(einsum).accesses for index in access.indices)
        return simple and not machine.tolls and not any(isinstance(m, Link) for m in machine.memories)

    def _tensor(self, name: str) -> TensorOnPath:
        access = self.einsum.access(name)
        written = name == self.einsum.output.tensor
        joined = {
            axis.name
            for axis in self.machine.axes.values()
            if name in select(axis.reduce if written else axis.multicast, self.workload, self.einsum.name)
        }
        return TensorOnPath(
            name,
            frozenset(access.variables),
            prod(self.workload.extents[v] for v in access.variables),
            written,
            frozenset(joined),
            tuple(m.bits(self.workload, self.einsum.name, name) for m in self.machine.memories),
        )

    def cost(self, steps: tuple[Step, ...], filled: frozenset[tuple[int, str]] = frozenset()) -> PathCost:
        """The price of a path. filled: (memory, tensor) of the stores that an Einsum before this one pays for."""
        count = len(self.machine.memories)
        read, written = [0] * count, [0] * count
        own_read, own_written = [0] * count, [0] * count
        energy = 0.0
        repeat = self.workload.repeat
        for memory, bits, own, writes in self.moves(steps, filled):
            table, mine = (written, own_written) if writes else (read, own_read)
            table[memory] += bits
            mine[memory] += own
        for m, (reading, writing, per) in enumerate(self.energies):
            if not read[m] and not written[m]:
                continue
            energy += terms.energy(read[m] * repeat, reading, per) + terms.energy(written[m] * repeat, writing, per)
        times = [
            seconds
            for m, memory in enumerate(self.machine.memories)
            if (own_read[m] or own_written[m])
            and (seconds := component_time(memory, own_read[m], own_written[m])) is not None
        ]
        unit = steps[-1][1]
        if unit is not None and self.einsum.kind != "copy":
            level = self.machine.unit(str(unit))
            energy += self.operations * repeat * level.energy
            if level.throughput is not None:
                own = terms.evenly_crossed(self.operations, 1, instances(steps))
                own = done_by_busiest(steps, self.extents) if steps[-1][2] else own
                times.append(terms.transfer_time(own, level.throughput))
        latency = max(times, default=0.0) * repeat
        energy += self.leak * latency
        traffic = tuple((a + b) * repeat for a, b in zip(read, written, strict=True))
        return PathCost(float(energy), float(latency), traffic)

    def takes(self, steps: tuple[Step, ...], filled: frozenset[tuple[int, str]]) -> bool:
        """True if a path can be priced here."""
        return True

    def moves(self, steps: tuple[Step, ...], filled: frozenset[tuple[int, str]]) -> list[Move]:
        """What every link moves, at both ends."""
        return [move for _, _, moved in self.links(steps, filled) for move in moved]

    def crossed(
        self, steps: tuple[Step, ...], one: TensorOnPath, parent: int, child: int | None
    ) -> tuple[Counts, Counts]:
        """Values that cross a link between two places, counted at the parent and at the child."""
        if steps[-1][2]:
            return crossed(steps, one.variables, one.joined, parent, child, self.extents, one.written)
        return even_counts(steps, one, self.values(steps, one, child), parent, child)

    def values(self, steps: tuple[Step, ...], one: TensorOnPath, child: int | None) -> int:
        """Values of a tensor in all its tiles at `child` (None: the leaf), each tile counted once."""
        return one.values

    def links(
        self, steps: tuple[Step, ...], filled: frozenset[tuple[int, str]] = frozenset()
    ) -> list[tuple[str, int | None, list[Move]]]:
        """(tensor, place of the store below, None for the leaf, what moves) of every link, from the outside in."""
        found: list[tuple[str, int | None, list[Move]]] = []
        copy = self.einsum.kind == "copy"
        holders = _holders(steps, self.tensors)
        for one in self.tensors:
            places = holders[one.name]
            for at, (place, memory) in enumerate(places):
                child = places[at + 1] if at + 1 < len(places) else None
                if child is not None and (child[1], one.name) in filled:
                    continue
                if child is None and copy and len({h[-1][1] for h in holders.values()}) == 1:
                    continue
                moved = self._moved(steps, one, place, memory, child)
                found.append((one.name, None if child is None else child[0], moved))
        return found

    def _moved(
        self, steps: tuple[Step, ...], one: TensorOnPath, place: int, memory: int, child: tuple[int, int] | None
    ) -> list[Move]:
        """What one link moves. child: (place, memory) of the store below, None for the leaf."""
        below = None if child is None else child[0]
        upper, lower = self.crossed(steps, one, place, below)
        width = one.widths[memory]
        found = [(memory, upper[0] * width, upper[1] * width, one.written)]
        back = one.written and (self.rmw or child is None)
        if back:
            found.append((memory, (upper[0] - upper[2]) * width, (upper[1] - upper[3]) * width, False))
        if child is not None:
            width = one.widths[child[1]]
            found.append((child[1], lower[0] * width, lower[1] * width, not one.written))
            if back:
                found.append((child[1], (lower[0] - lower[2]) * width, (lower[1] - lower[3]) * width, True))
        return found


def instances(steps: tuple[Step, ...]) -> int:
    """How many share the work of a path."""
    return prod(step[3] for step in steps if step[0] == "par")


def _holders(steps: tuple[Step, ...], tensors: tuple[TensorOnPath, ...]) -> dict[str, list[tuple[int, int]]]:
    """(place, memory) of the stores of each tensor, from the outside in."""
    found: dict[str, list[tuple[int, int]]] = {one.name: [] for one in tensors}
    for place, step in enumerate(steps):
        if step[0] == "store":
            for tensor in step[2]:
                if tensor in found:
                    found[tensor].append((place, step[1]))
    return found


def even_counts(
    steps: tuple[Step, ...], one: TensorOnPath, values: int, parent: int, child: int | None
) -> tuple[Counts, Counts]:
    """Values that cross a link, counted at the parent and at the child (docs/model/moves.md). values: of all tiles.

    Walks outwards from the child: loops that the tensor lacks, directly above it, keep the tile; a loop that it has, or
    a split, ends that. The leaf keeps nothing. Spatial loops above the side at which we count belong to its instances.
    """
    still, variables = child is not None, one.variables
    again: Number = 1  # iterations of temporal loops that fetch the tile anew
    above, above_lacking, inside, inside_lacking, unjoined = 1, 1, 1, 1, 1
    for place in range((len(steps) if child is None else child) - 1, -1, -1):
        step = steps[place]
        kind = step[0]
        if kind == "for":
            if step[1] in variables:
                still = False
            elif not still:
                again *= step[2]
        elif kind == "par":
            _, axis, variable, trips = step
            if variable in variables:
                above, inside = (above * trips, inside) if place < parent else (above, inside * trips)
            elif place < parent:
                above_lacking *= trips
            else:
                inside_lacking *= trips
                unjoined *= 1 if axis in one.joined else trips
        elif kind == "split":
            still = False
    mine = values, one.written
    up = _counts(*mine, again, unjoined, above_lacking, above)
    return up, up if child is None else _counts(*mine, again, 1, above_lacking * inside_lacking, above * inside)


def _counts(values: int, written: bool, again: Number, unjoined: int, instances: int, parts: int) -> Counts:
    """instances: that need the same values; parts: that need different ones. What is written for the first time is
    asked of written tensors alone."""
    every, busiest = again * unjoined * instances, again * unjoined
    first = (
        (terms.evenly_crossed(values, unjoined * instances, 1), terms.evenly_crossed(values, unjoined, parts))
        if written
        else (0, 0)
    )
    return (
        terms.evenly_crossed(values, every, 1),
        terms.evenly_crossed(values, busiest, parts),
        *first,
    )

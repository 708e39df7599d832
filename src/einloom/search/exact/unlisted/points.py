"""What an Einsum costs at least, known before its spatial choices are listed: operations and compulsory moves.

Comes in: the class of an Einsum. Goes out: a lower bound on each settled column, below that of `Floors`, which looks at
every choice of spatial loops. The argument: docs/model/pruning.md, "Compulsory moves of an Einsum".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from math import inf, prod
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ....machine.levels import Machine, Memory
from ....mapspace.divisors import divisors
from ....once import once_each
from ....problem import Objective
from ..einsums.classes import AxisSignature, EinsumClass, UnitOption
from ..einsums.holds import Chain, chains_of
from ..einsums.spatial import padded
from ..numerics.pareto import FloatArray, skyline
from ..prices.columns import Column
from .backings import Barred
from .places import reached
from .reuse import by_instances, by_room

ROUNDED = 1e-12  # of a sum, if it is made in another order
MOST = 1 << 12  # choices of stores that are priced together; of more, each column is bounded alone
CLOSER = 256  # choices of stores that are looked at closely, those that move least first
ENERGY, LATENCY = Objective("energy"), Objective("latency")
Chains = tuple[Chain, ...]  # of each tensor
Rank = tuple[tuple[int, int], ...]


def unlisted_points(
    machine: Machine, einsum: EinsumClass, objectives: tuple[Objective, ...], barred: Barred = frozenset()
) -> FloatArray:
    """Settled objectives [points, columns] of one repeat: no mapping of the Einsum is better than all of them in every
    column. barred: tensors that a memory cannot back. Members of groups may cost less."""
    found = np.concatenate([OnUnit(machine, einsum, option, barred).points(objectives) for option in einsum.units])
    return np.asarray(found[skyline(np.zeros(len(found), np.int64), found)])


def room_of(memory: Memory) -> int | None:
    """Bits that the tiles in an instance of a memory may take together; None: any."""
    return None if memory.size is None else memory.size // memory.capacity_share()


@dataclass(frozen=True)
class Sharing:
    """What shares the room of an instance of a memory. own: tensors whose stores the Einsum fills; backed:
    intermediates that live there; bits: of an element of each; room: for all of them, None: any."""

    own: tuple[int, ...]
    bits: tuple[int, ...]
    backed: tuple[int, ...]
    room: int | None

    @property
    def asks(self) -> bool:
        """True if room may bound the uses of an element."""
        return bool(self.own) and self.room is not None and all(self.bits[: len(self.own)])


@dataclass
class OnUnit:
    """An Einsum on one of its units."""

    machine: Machine
    einsum: EinsumClass
    option: UnitOption
    barred: Barred = frozenset()

    def points(self, objectives: tuple[Objective, ...]) -> FloatArray:
        """As `unlisted_points`, of one unit."""
        placed = self._placed()
        tables = [{chain: self._along(t, chain) for chain in {chains[t] for chains in placed}} for t in self._tensors]
        if len(placed) > MOST:
            every = [np.array(list(table.values())).min(axis=0) for table in tables]
            return self._values(np.asarray(sum(every))[None], objectives)
        rows = [np.sum([tables[t][chain] for t, chain in enumerate(chains)], axis=0) for chains in placed]
        moved = np.array(rows).reshape(len(rows), 2 * len(self.machine.memories))
        values = self._values(moved, objectives)
        found = np.zeros((0, len(objectives)))
        order = np.argsort(values.prod(axis=1), kind="stable")
        for looked, i in enumerate(order.tolist()):
            if looked == CLOSER:
                found = np.concatenate([found, values[order[looked:]]])
                break
            if not (found <= values[i]).all(axis=1).any():
                found = np.concatenate([found, self._together(placed[i], moved[i], objectives)])
        return found

    def promised(self, columns: tuple[Column, ...]) -> FloatArray:
        """What every choice of stores costs at least, whatever its spatial choice [choices, columns]: operations and
        compulsory moves, without those of results whose ranks are windows. Never more than `Floors.of` says of it."""
        every, memories = chains_of(self.option.held, len(self._tensors)), len(self.machine.memories)
        moved = np.zeros((len(every), 2 * memories))
        for t in self._tensors:
            simple = all(map(self.einsum.tensors[t].simple, range(len(self.einsum.tensors[t].ranks))))
            filled = simple or not self.einsum.tensors[t].output
            table = {chain: self._along(t, chain, filled) for chain in {chains[t] for chains in every}}
            moved += np.array([table[chains[t]] for chains in every]).reshape(moved.shape)
        read, written = moved[:, :memories], moved[:, memories:]
        found = np.zeros((len(every), len(columns)))
        for c, column in enumerate(columns):
            if column.kind == "energy":
                found[:, c] = self._operations[0] + self._added(moved, ENERGY)
            elif column.kind == "traffic":
                found[:, c] = read[:, column.memory] + written[:, column.memory]
            elif column.port == "compute":
                found[:, c] = self._operations[1]
            elif column.memory < len(self.option.above):
                found[:, c] = self._busy(column.memory, column.port, read, written)
        return found * (1 - ROUNDED)

    def _busy(self, m: int, port: str, read: FloatArray, written: FloatArray) -> FloatArray:
        """Seconds of a port of a memory: its busiest instance works no less than the mean of all that may be in use."""
        memory, share = self.machine.memories[m], 1.0 / self._used(self.option.above[m])
        reading = read[:, m] * share / memory.read_throughput if memory.read_throughput else 0.0 * read[:, m]
        writing = written[:, m] * share / memory.write_throughput if memory.write_throughput else 0.0 * read[:, m]
        return reading if port == "read" else writing if port == "write" else reading + writing

    def _together(self, chains: Chains, moved: FloatArray, objectives: tuple[Objective, ...]) -> FloatArray:
        """Objectives [ways, objectives] of a choice of stores, by how its tensors share the instances and the room of
        the innermost memory; of the others, each of which they share in the best way."""
        *outer, inner = [self._more(m, chains) for m in range(1, len(self.option.above))] or [np.zeros((1, len(moved)))]
        if not all(map(len, (*outer, inner))):
            return np.zeros((0, len(objectives)))
        values = self._values(moved + inner, objectives)
        latency = sooner = self._values(moved + inner, (LATENCY,))[:, 0]
        for more in outer:
            latency = np.maximum(latency, self._values(moved + more, (LATENCY,)).min())
        for column, objective in enumerate(objectives):
            if objective.name == "latency":
                values[:, column] = latency
                continue
            values[:, column] += sum(float(self._added(more, objective).min()) for more in outer)
            if objective.name == "energy":
                values[:, column] += self.machine.leakage * (latency - sooner)
        return values[skyline(np.zeros(len(values), np.int64), values)]

    def _placed(self) -> list[Chains]:
        """The memories that hold each tensor, in every choice of stores."""
        every = chains_of(self.option.held, len(self._tensors))
        fitting = [chains for chains in every if not any(chains[t][0] == m for t, m in self.barred)]
        return list(dict.fromkeys(fitting or every))

    def _values(self, moved: FloatArray, objectives: tuple[Objective, ...]) -> FloatArray:
        """Additive objectives of choices of stores [n, objectives]. moved [n, 2 memories]: bits read, then bits
        written, in each."""
        memories, latency = len(self.machine.memories), np.zeros(len(moved))
        if any(objective.name != "traffic" for objective in objectives):
            latency = self._latency(moved[:, :memories], moved[:, memories:])
        found = np.empty((len(moved), len(objectives)))
        for column, objective in enumerate(objectives):
            found[:, column] = latency if objective.name == "latency" else self._added(moved, objective)
            if objective.name == "energy":
                found[:, column] += self._operations[0] + self.machine.leakage * latency
        return found

    def _added(self, moved: FloatArray, objective: Objective) -> FloatArray:
        """The joules, or the traffic, of moves alone."""
        memories = self.machine.memories
        read, written = moved[:, : len(memories)], moved[:, len(memories) :]
        if objective.name == "traffic":
            at = [memory.name for memory in memories].index(objective.memory or "")
            return np.asarray(read[:, at] + written[:, at])
        total = np.zeros(len(moved))
        for m, memory in enumerate(memories):
            total += (read[:, m] * memory.read_energy + written[:, m] * memory.write_energy) / memory.bits_per_access
        return total

    def _latency(self, read: FloatArray, written: FloatArray) -> FloatArray:
        """Seconds of what takes longest."""
        latency = np.full(len(read), self._operations[1])
        for m in range(len(self.option.above)):
            ports = ("shared",) if self.machine.memories[m].ports == "shared" else ("read", "write")
            for port in ports:
                latency = np.maximum(latency, self._busy(m, port, read, written))
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

    def filled(self, t: int, parent: int) -> bool:
        """True if a store below `parent` is filled from there, or emptied into it, by this Einsum."""
        tensor = self.einsum.tensors[t]
        return not (tensor.housed and parent < tensor.home) and not (tensor.joins and parent == 0)

    def _along(self, t: int, chain: Chain, filled: bool = True) -> FloatArray:
        """[2 memories]: bits read, then bits written, in each memory, of a tensor that these memories hold. filled:
        count what goes from one of them to the next."""
        tensor, moved = self.einsum.tensors[t], np.zeros((2, len(self.machine.memories)))
        elements, points = self.met(t)
        for parent, child in pairwise(chain):
            if filled and self.filled(t, parent):
                moved[int(tensor.output), parent] += elements * tensor.bits[parent]
                moved[int(not tensor.output), child] += elements * tensor.bits[child]
        if not self.einsum.copy:
            inner = chain[-1]
            values = points / self._instances(t, self.option.above[inner], self.option.fanouts, joined=True)
            moved[int(tensor.output), inner] += values * tensor.bits[inner]
            if tensor.output:
                moved[0, inner] += self._again(t, values, inner, self.option.fanouts) * tensor.bits[inner]
        return moved.reshape(-1)

    def _again(self, t: int, values: Any, memory: int, bottom: int) -> Any:
        """Of so many results written into a memory, those that are read back there for the next one."""
        return np.maximum(0.0, values - self.met(t)[0] * self._sums(t, memory, bottom))

    def _more(self, m: int, chains: Chains) -> FloatArray:
        """What moves in or out of a memory besides what `_along` counts, in bits [choices, 2 memories]: for each choice
        of how tensors share its room and its instances. What passes it by on the way to the unit is the innermost's."""
        above, last = self.option.above, m == len(self.option.above) - 1
        none = np.zeros((1, 2 * len(self.machine.memories)))
        if self.einsum.copy or any(tensor.joins for tensor in self.einsum.tensors):
            return none
        parents = {t: max(p for p in chains[t] if p < m) for t in self._tensors if chains[t][0] < m}
        sharing = self.sharing(m, chains)
        own, past = sharing.own, [t for t in parents if last and m not in chains[t]]
        if not own and not past:
            return none
        uses = np.full((1, len(own)), inf)
        if sharing.asks and sharing.room is not None:
            uses = by_room(self.einsum, own, sharing.bits, sharing.backed, sharing.room)
        axes = [a for a in self.einsum.axes if min(above[parents[t]] for t in (*own, *past)) <= a.fanout < above[m]]
        spread = frozenset(v for v, n in enumerate(self.einsum.extents) if n > self._padded.get(v, 0))
        together = by_instances(self.einsum, (*own, *past), spread, prod(axis.size for axis in axes))
        if len(uses) * len(together) > MOST:
            together = together.max(axis=0, keepdims=True)
        uses = np.repeat(uses, len(together), axis=0)
        together = np.tile(together, (len(uses) // len(together), 1))
        moved = np.zeros((len(uses), *none.reshape(2, -1).shape))
        for i, t in enumerate(own):
            self._fetched(moved, t, parents[t], m, uses[:, i], together[:, i])
        for i, t in enumerate(past, len(own)):
            self._passed(moved, t, parents[t], m, together[:, i])
        return moved.reshape(len(moved), none.size)

    def sharing(self, m: int, chains: Chains) -> Sharing:
        """What shares the room of a memory where it holds these tensors."""
        tensors, others = self.einsum.tensors, [t for t in self._tensors if m == chains[t][0]]
        inside = (t for t in self._tensors if chains[t][0] < m and m in chains[t])
        own = tuple(t for t in inside if self.filled(t, max(p for p in chains[t] if p < m)))
        backed = {t: n for t in others if tensors[t].intermediate and (n := tensors[t].backed[m])}
        room = room_of(self.machine.memories[m])
        if room is not None:
            room -= sum(tensors[t].backed[m] for t in others if t not in backed)
        return Sharing(own, (*(tensors[t].bits[m] for t in own), *backed.values()), tuple(backed), room)

    def _fetched(self, moved: FloatArray, t: int, p: int, m: int, uses: FloatArray, together: FloatArray) -> None:
        """Add what an own store moves more often than once. uses: of an element in an instance; together: instances."""
        tensor, (elements, points) = self.einsum.tensors[t], self.met(t)
        above = self.option.above
        most = np.minimum(together, self._instances(t, above[p], above[m], joined=True))
        outer, inner = np.maximum(elements, points / (uses * most)), np.maximum(elements, points / uses)
        moved[:, int(tensor.output), p] += (outer - elements) * tensor.bits[p]
        moved[:, int(not tensor.output), m] += (inner - elements) * tensor.bits[m]
        if tensor.output and self.machine.partial_sums != "once":
            moved[:, 0, p] += self._again(t, outer, p, above[m]) * tensor.bits[p]
            moved[:, 1, m] += self._again(t, inner, m, above[m]) * tensor.bits[m]

    def _passed(self, moved: FloatArray, t: int, p: int, m: int, together: FloatArray) -> None:
        """Add what the unit moves past a memory, where the tensors cannot all have as many instances as each alone."""
        tensor, points, fanouts = self.einsum.tensors[t], self.met(t)[1], self.option.fanouts
        alone = self._instances(t, self.option.above[p], fanouts, joined=True)
        below = self._instances(t, self.option.above[m], fanouts, joined=True)
        before, values = points / alone, points / np.minimum(alone, together * below)
        moved[:, int(tensor.output), p] += (values - before) * tensor.bits[p]
        if tensor.output:
            more = self._again(t, values, p, fanouts) - self._again(t, before, p, fanouts)
            moved[:, 0, p] += more * tensor.bits[p]

    @once_each
    def met(self, t: int) -> tuple[int, int]:
        """(elements of the tensor that the Einsum meets, iterations that meet one)."""
        tensor = self.einsum.tensors[t]
        met = [reached(self.einsum, tensor, r) for r in range(len(tensor.ranks))]
        return prod(places for places, _ in met), prod(times for _, times in met) * self.lacking(t)

    def _sums(self, t: int, memory: int, bottom: int) -> int:
        """Most sums of one element that begin in a memory: those of its instances, and of the fanouts down to `bottom`
        where nothing is added on the way."""
        above = self.option.above[memory]
        outside = self._instances(t, 0, above)
        return min(outside * self._instances(t, above, bottom, joined=False), self.lacking(t))

    def lacking(self, t: int) -> int:
        mine = self.einsum.tensors[t].variables
        return prod(extent for v, extent in enumerate(self.einsum.extents) if v not in mine)

    @property
    def _tensors(self) -> range:
        return range(len(self.einsum.tensors))

    # -- instances ----------------------------------------------------------------------------------------------------

    def _instances(self, t: int, top: int, bottom: int, joined: bool | None = None) -> int:
        """Most instances, along variables that the tensor lacks, of the axes of fanouts `top` <= number < `bottom`.

        joined: of axes that join the tensor, or of the others.
        """
        lacking = frozenset(range(len(self.einsum.extents))) - self.einsum.tensors[t].variables
        axes = (axis for axis in self.einsum.axes if top <= axis.fanout < bottom)
        return self._spread(tuple(x for x in axes if joined is None or (t in x.joined) == joined), lacking)

    def _used(self, fanouts: int) -> int:
        """Most instances that the first `fanouts` fanouts can have in use."""
        every = frozenset(range(len(self.einsum.extents)))
        return self._spread(tuple(axis for axis in self.einsum.axes if axis.fanout < fanouts), every)

    @once_each
    def _spread(self, axes: tuple[AxisSignature, ...], variables: frozenset[int]) -> int:
        """Most instances of some axes along some variables: no more than each axis can have of all of them, nor each
        variable on all of the axes."""
        by_variable = prod(self._taken_by(axes, v) for v in variables)
        return min(by_variable, prod(self._taken(axis, variables) for axis in axes))

    def _taken_by(self, axes: tuple[AxisSignature, ...], v: int) -> int:
        """Most instances of the axes along one variable."""
        extent, found = self.einsum.extents[v], {1}
        for axis in axes:
            takes = [n for n in self._takes(axis, v) if n > 1]
            if v in self.einsum.uneven:
                found = {min(extent, max(found) * max(takes, default=1))}
            else:
                found |= {n * take for n in found for take in takes if extent % (n * take) == 0}
        return max(found)

    @once_each
    def _taken(self, axis: AxisSignature, variables: frozenset[int]) -> int:
        """Most instances that loops over these variables can take of an axis."""
        size = axis.size
        if axis.totals and not self.einsum.copy:
            size = max((n for n in range(1, size + 1) if all(total.allow(n) for total in axis.totals)), default=1)
        found = {1}
        for v in variables:
            takes = [n for n in self._takes(axis, v) if 1 < n <= size]
            found |= {n * take for n in found for take in takes if n * take <= size}
        return max(found)

    @cached_property
    def _padded(self) -> dict[int, int]:
        return padded(self.einsum)

    def _takes(self, axis: AxisSignature, v: int) -> Iterator[int]:
        """Instances of the axis that a variable may take."""
        if any(v in self.einsum.tensors[t].variables for t in axis.barred):
            return
        extent, reach = self.einsum.extents[v], self._padded.get(v, 0)
        every = range(1, min(extent, axis.size) + 1) if v in self.einsum.uneven else divisors(extent)
        limits = [numbers for w, numbers in axis.shares if w == v and not self.einsum.copy]
        yield from (n for n in every if (n == 1 or n > reach) and all(numbers.allow(n) for numbers in limits))

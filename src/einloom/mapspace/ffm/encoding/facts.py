"""What every state of one workload on one machine shares: users of tensors, homes, units, stores and spatial choices.

Comes in: workload, machine, mapspace. Goes out: tables with small integers for Einsums and memories. An Einsum has the
number of its place; with `order: free` there are tables for each order, and what depends on none is found once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property
from math import prod
from random import Random
from typing import Any

from ....dataclass import dataclass
from ....errors import Infeasible
from ....machine.levels import Fanout, Link, Machine
from ....mapping.legality.placement import outermost_home, visible_memories
from ....workload.einsum import Access, Workload
from ....workload.orders import awaited, earlier
from ....workload.padding import padding_reach
from ....workload.selectors import select
from ...limits.checks import fused_trips, may_back, may_hold, must_hold, share_allowed, total_allowed
from ...limits.data import Numbers
from ...space import Mapspace
from ..ragged import spread_windows
from ..rules import allowed_instances, full_use, least_work

MOST_ORDERS = 256  # orders of the Einsums whose tables are remembered
Sequence = tuple[int, ...]  # for each place the number of an Einsum in the program; program order itself is ()
Spread = tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class Floating:
    """A tensor whose backing store may stand below shared loops.

    users: Einsums that access it, ascending. homes: memories that may back it. fuses: it is an intermediate, for the
    sake of which loops are shared (rule 7).
    """

    name: str
    users: tuple[int, ...]
    homes: tuple[int, ...]
    fuses: bool
    persistent: bool


class Facts:
    """Tables of one problem in one order of its Einsums, which are numbered by their places.

    sequence: that order. label: for each place the number of its Einsum in the program. Memories and floating tensors
    have the same numbers in all orders.
    """

    def __init__(self, workload: Workload, machine: Machine, mapspace: Mapspace) -> None:
        self.workload, self.machine, self.mapspace = workload, machine, mapspace
        self.limits = mapspace.limits
        self.ragged = mapspace.name == "ragged"
        self.einsums = workload.einsums
        self.count = len(self.einsums)
        self.sequence: Sequence = ()
        self.label: Sequence = tuple(range(self.count))
        self.waits = awaited(workload)
        self.extents = dict(workload.extents)
        self.memories = machine.memories
        self.place = [machine.position[memory.name] for memory in self.memories]
        self.number = {memory.name: i for i, memory in enumerate(self.memories)}
        self.axes = list(machine.axes.values())
        self.axis_place = {axis.name: machine.position[axis.name] for axis in self.axes}
        self.axis_order = {axis.name: i for i, axis in enumerate(self.axes)}
        self.index = {e.name: i for i, e in enumerate(self.einsums)}
        self.tensors = [frozenset(e.tensors) for e in self.einsums]
        listed: dict[str, list[int]] = {t.name: [] for t in workload.tensors}
        for i, einsum in enumerate(self.einsums):
            for tensor in einsum.tensors:
                listed[tensor].append(i)
        self.users = {tensor: tuple(users) for tensor, users in listed.items()}
        self.order = {tensor.name: i for i, tensor in enumerate(workload.tensors)}
        self.relevant = [{a.tensor: frozenset(a.variables) for a in e.accesses} for e in self.einsums]
        self.padded = [padding_reach(workload, e.name) for e in self.einsums]
        self.units: list[list[str | None]] = [
            [None] if e.kind == "copy" else [unit.name for unit in machine.units_for(e)] for e in self.einsums
        ]
        for einsum in self.einsums:
            if (why := machine.unexecuted(einsum)) is not None:
                raise Infeasible(why)
        self.floating = self._floating()
        self.floats = {one.name: i for i, one in enumerate(self.floating)}
        self.floats_of: list[list[int]] = [[] for _ in self.einsums]
        for n, one in enumerate(self.floating):
            for i in dict.fromkeys(one.users):
                self.floats_of[i].append(n)
        self.fixed = self._fixed()
        self.unbacked = self._unbacked()
        self.plain = [{a.tensor: _plain(a) for a in e.accesses} for e in self.einsums]
        self.compound = [{a.tensor: _compound(a) for a in e.accesses} for e in self.einsums]
        self.reached = self._reached()
        self.full = [{v: self.extents[v] for v in e.variables} for e in self.einsums]
        self._remember()
        self._program = self
        self._orders: dict[Sequence, Facts] = {}
        self._shares: dict[tuple[tuple[str, int], ...], Facts] = {}

    def _remember(self) -> None:
        """Empty tables for what is found once."""
        self._simple: dict[tuple[int, str, str], int | None] = {}
        self._axes_of: dict[str, list[str]] = {}
        self._widths: dict[tuple[int, int, str], int] = {}
        self._visible: dict[str | None, list[int]] = {}
        self.spread_lists: dict[tuple[int, str], tuple[list[Spread], Iterator[tuple[Spread, ...]]]] = {}
        self._takes: dict[tuple[int, str, str], tuple[int, ...]] = {}
        self._trips: dict[tuple[int, str, str], tuple[Numbers, ...]] = {}
        self._most: dict[tuple[int, str], int] = {}
        self._least: dict[tuple[int, str], int] = {}
        self._windows: dict[int, tuple[frozenset[str], frozenset[str]]] = {}
        self._owns: dict[tuple[int, str | None], tuple[tuple[int, str], ...]] = {}
        self._held: dict[object, bool] = {}
        self.paths: dict[object, Any] = {}  # by what they follow from (`state.path_of`)
        self.judged: dict[object, str | None] = {}
        self.weighed: dict[object, tuple[int, ...]] = {}
        self.stored: dict[object, str | None] = {}  # by the stores of a path
        self.spread_over: dict[object, str | None] = {}  # by the spatial loops of a path
        self.unlimited: dict[object, bool] = {}  # by what limits speak of

    def in_order(self, sequence: Sequence) -> Facts:
        """The tables with the Einsums in this order."""
        if sequence == self.sequence:
            return self
        program = self._program
        if not sequence:
            return program
        if sequence not in program._orders:
            if len(program._orders) >= MOST_ORDERS:
                program._orders.clear()
            program._orders[sequence] = program._reordered(sequence)
        return program._orders[sequence]

    def _reordered(self, sequence: Sequence) -> Facts:
        """A copy whose tables by Einsum are in this order; tables by label and those of memories are the same."""
        found = copy(self)
        for name in ("ties", "orderly", "lendable"):
            found.__dict__.pop(name, None)
        found.sequence = found.label = sequence
        found._shares = {}
        for name in ("einsums", "tensors", "relevant", "padded", "units", "floats_of", "plain", "full", "compound"):
            table = getattr(self, name)
            setattr(found, name, type(table)(table[i] for i in sequence))
        found.index = {e.name: i for i, e in enumerate(found.einsums)}
        place = {label: at for at, label in enumerate(sequence)}
        found.users = {t: tuple(sorted(place[i] for i in users)) for t, users in self.users.items()}
        found.floating = [replace(one, users=found.users[one.name]) for one in self.floating]
        return found

    def within(self, left: tuple[tuple[str, int], ...]) -> Facts:
        """The tables for Einsums that have so many instances of some axes only."""
        if not left:
            return self
        if left not in self._shares:
            found, sizes = copy(self), dict(left)
            levels = (
                replace(level, axes=tuple(replace(a, size=sizes.get(a.name, a.size)) for a in level.axes))
                if isinstance(level, Fanout)
                else level
                for level in self.machine.levels
            )
            found.machine = replace(self.machine, levels=tuple(levels))
            found._takes, found.spread_lists, found._most, found._least, found.spread_over = {}, {}, {}, {}, {}
            self._shares[left] = found
        return self._shares[left]

    @cached_property
    def limits_of_loops(self) -> bool:
        """True if some limit speaks of temporal loops, or of the tiles below them."""
        return bool(self.limits.loops or self.limits.tiles or any(one.rule == "once" for one in self.limits.holds))

    @cached_property
    def demanded(self) -> tuple[int, ...]:
        """The floating tensors that limits keep out of the outermost memory, so that their Einsums have to be fused."""
        asked = enumerate(self.floating) if self.limits.backs else ()
        return tuple(n for n, one in asked if one.fuses and min(one.homes, default=0) > 0)

    def loop_allowed(self, i: int, tensor: str, variable: str, trips: int) -> bool:
        """True if limits let the fused loops of Einsum i over the variable above the tensor have so many trips."""
        if not self.limits.loops:
            return True
        key = self.label[i], tensor, variable
        if key not in self._trips:
            self._trips[key] = fused_trips(self.limits, self.workload, self.einsums[i].name, tensor, variable)
        return all(numbers.allow(trips) for numbers in self._trips[key])

    @property
    def free(self) -> bool:
        """True if the Einsums may run in another order than that of the program."""
        return self.mapspace.order == "free"

    @cached_property
    def _before(self) -> list[int]:
        """For each label the Einsums that it waits for, directly or not, as a set of bits."""
        return earlier(self.workload)

    def before(self, one: int, other: int) -> bool:
        """True if the Einsum at place `other` waits for the one at place `one`, directly or not."""
        return bool(self._before[self.label[other]] >> self.label[one] & 1)

    @cached_property
    def orderly(self) -> bool:
        """True if every Einsum stands after those that it waits for, in an order that the space has."""
        done = 0
        for label in self.label:
            if self.waits[label] & ~done:
                return False
            done |= 1 << label
        return self.free or not self.sequence

    def drawn_order(self, rng: Random) -> Facts:
        """The tables in an order at random that data allow, half of the time in program order; in a space that has no
        other always in that."""
        if not self.free or rng.random() < 0.5:
            return self._program
        left, done, found = list(range(self.count)), 0, list[int]()
        while left:
            ready = [i for i in left if not self.waits[i] & ~done]
            follows = [i for i in ready if found and self.waits[i] >> found[-1] & 1]
            chosen = rng.choice(follows if follows and rng.random() < 0.5 else ready)
            left.remove(chosen)
            found.append(chosen)
            done |= 1 << chosen
        return self._program.in_order(self.named(found))

    def named(self, labels: Iterable[int]) -> Sequence:
        """An order of labels as states write it."""
        found = tuple(labels)
        return () if found == self._program.label else found

    def forget(self) -> None:
        """Forget all paths, and what was found of them."""
        self.paths.clear()
        for table in (self.judged, self.weighed, self.stored, self.spread_over, self.unlimited):
            table.clear()

    def _floating(self) -> list[Floating]:
        found = []
        for tensor in self.workload.tensors:
            users = self.users[tensor.name]
            fuses = tensor.name in self.workload.intermediates
            if fuses and tensor.name not in self.workload.ends:
                homes = tuple(
                    m for m, memory in enumerate(self.memories) if self._may_back(m, memory.name, users, tensor.name)
                )
                found.append(Floating(tensor.name, users, homes, True, tensor.persistent))
            elif len(users) > 1:
                home = self._outermost(tensor.name, users)
                if home > 0:
                    found.append(Floating(tensor.name, users, (home,), fuses, tensor.persistent))
        return found

    def _may_back(self, m: int, name: str, users: tuple[int, ...], tensor: str) -> bool:
        memory = self.memories[m]
        return not isinstance(memory, Link) and all(
            tensor in select(memory.backs, self.workload, self.einsums[i].name)
            and tensor in may_back(self.limits, memory, self.workload, self.einsums[i].name)
            and tensor in may_hold(self.limits, self.machine, memory, self.workload, self.einsums[i].name, ())
            for i in users
        )

    def _outermost(self, tensor: str, users: tuple[int, ...]) -> int:
        home = outermost_home(self.workload, self.machine, self.einsums[users[0]].name, tensor)
        return 0 if home is None else self.number[home]

    def _fixed(self) -> dict[str, int]:
        """Tensor that does not float -> the memory that backs it."""
        found = {}
        for tensor in self.workload.tensors:
            users = self.users[tensor.name]
            if users and tensor.name not in self.floats:
                found[tensor.name] = self._outermost(tensor.name, users)
        return found

    def _unbacked(self) -> frozenset[str]:
        """The tensors whose home may not back them for one of their Einsums, or that have none: no tree is legal."""
        homes = {one.name: one.homes for one in self.floating} | {t: (m,) for t, m in self.fixed.items()}
        return frozenset(
            t
            for t, mine in homes.items()
            if not any(
                all(t in select(self.memories[m].backs, self.workload, self.einsums[i].name) for i in self.users[t])
                for m in mine
            )
        )

    def _reached(self) -> frozenset[str]:
        """The tensors of several Einsums whose backing store holds what these reach together: parts, views, windows."""
        several = (t for t, users in self.users.items() if len(users) > 1)
        return frozenset(
            t for t in several if t in self.workload.parted or None in (self.plain[i][t] for i in self.users[t])
        )

    @cached_property
    def anchored(self) -> dict[str, int]:
        """Persistent tensor that does not float -> the inner memory that backs it: no loop stands above that store."""
        return {t: m for t, m in self.fixed.items() if m > 0 and self.workload.tensor(t).persistent}

    @cached_property
    def lendable(self) -> dict[str, dict[int, tuple[int, ...]]]:
        """Tensor -> the Einsums that one store may serve together, with the extents along its ranks (rule 8)."""
        found: dict[str, dict[int, tuple[int, ...]]] = {}
        for tensor, users in self.users.items() if self.mapspace.stores == "shared" else ():
            mine: dict[int, tuple[int, ...]] = {}
            for i in users:
                plain, einsum = self.plain[i][tensor], self.einsums[i]
                if plain is not None and len(set(plain)) == len(plain) and einsum.kind != "copy":
                    mine |= {i: tuple(self.extents[v] for v in plain)} if einsum.output.tensor != tensor else {}
            apart = tensor in self.workload.parted or self.workload.tensor(tensor).persistent
            home = self.floating[self.floats[tensor]].homes if tensor in self.floats else (self.fixed.get(tensor, -1),)
            if len(mine) > 1 and not apart and 0 in home:
                found[tensor] = mine
        return found

    @cached_property
    def ties(self) -> list[tuple[int, int, str]]:
        """(writer, another writer or a reader, tensor) wherever two Einsums may share only loops over its ranks."""
        pairs = [
            (min(self.index[one], self.index[other]), max(self.index[one], self.index[other]), t)
            for t, writers in self.workload.writers.items()
            for at, one in enumerate(writers)
            for other in (*writers[at + 1 :], *self.workload.consumers[t])
        ]
        return sorted(pairs, key=lambda pair: self.order[pair[2]])

    def simple_rank(self, i: int, tensor: str, variable: str) -> int | None:
        """The rank of the tensor that the variable of Einsum i indexes alone and that is whole, or None."""
        key = self.label[i], tensor, variable
        if key not in self._simple:
            access = self.einsums[i].access(tensor)
            rank = access.rank_of(variable)
            whole = rank is not None and access.indices[rank].simple and self._whole(tensor, rank)
            self._simple[key] = rank if whole else None
        return self._simple[key]

    def _whole(self, tensor: str, rank: int) -> bool:
        """True if loops above the tensor's backing store may iterate the rank; of an input with views none is."""
        return tensor not in self.workload.parted or (
            tensor in self.workload.producers and self.workload.tied(tensor, rank)
        )

    def variable_at(self, i: int, tensor: str, rank: int) -> str | None:
        """The variable of Einsum i that indexes this rank alone, if it is whole, or None."""
        indices = self.einsums[i].access(tensor).indices
        simple = self._whole(tensor, rank) and rank < len(indices) and indices[rank].simple
        return indices[rank].variables[0] if simple else None

    def visible(self, unit: str | None) -> list[int]:
        """The memories that an Einsum on this unit sees."""
        if unit not in self._visible:
            self._visible[unit] = [self.number[memory.name] for memory in visible_memories(self.machine, unit)]
        return self._visible[unit]

    def width(self, i: int, m: int, tensor: str) -> int:
        """Bits that one value of the tensor takes in the memory, all its turns together."""
        key = self.label[i], m, tensor
        if key not in self._widths:
            level = self.memories[m]
            self._widths[key] = level.bits(self.workload, self.einsums[i].name, tensor) * level.capacity_share()
        return self._widths[key]

    def owns(self, i: int, unit: str | None) -> tuple[tuple[int, str], ...]:
        """(memory, tensor) of every store that Einsum i may have for itself on this unit, if its path allows."""
        key = self.label[i], unit
        if key not in self._owns:
            name = self.einsums[i].name
            found = []
            for m in self.visible(unit):
                may: set[str] = set()
                for above in ((), self.einsums[i].tensors):
                    may |= may_hold(self.limits, self.machine, self.memories[m], self.workload, name, above)
                found += [(m, t) for t in self.einsums[i].tensors if t in may and m > 0]
            self._owns[key] = tuple(found)
        return self._owns[key]

    def needed(self, i: int, m: int, above: frozenset[str]) -> frozenset[str]:
        """What the memory must hold for Einsum i, if the memories above hold these tensors."""
        name = self.einsums[i].name
        return must_hold(self.limits, self.machine, self.memories[m], self.workload, name, above)

    def holds(self, i: int, unit: str | None, held: tuple[frozenset[str], ...]) -> bool:
        """True if each memory holds what it must and nothing that it may not. held: tensors of Einsum i per memory."""
        key = self.label[i], unit, held
        if key not in self._held:
            self._held[key] = self._holds(i, set(self.visible(unit)), held)
        return self._held[key]

    def _holds(self, i: int, seen: set[int], held: tuple[frozenset[str], ...]) -> bool:
        name, above = self.einsums[i].name, frozenset[str]()
        for m, memory in enumerate(self.memories):
            if held[m] - may_hold(self.limits, self.machine, memory, self.workload, name, above):
                return False
            if m in seen and self.needed(i, m, above) - held[m]:
                return False
            above |= held[m]
        return True

    # -- spatial choices ------------------------------------------------------------------------------------------

    def takes(self, i: int, axis: str, variable: str) -> tuple[int, ...]:
        """Instances of the axis that the variable may take."""
        key = self.label[i], axis, variable
        if key not in self._takes:
            name, level, padded = self.einsums[i].name, self.machine.axes[axis], self.padded[i]
            self._takes[key] = allowed_instances(self.workload, name, self.limits, level, variable, padded)
            barred = (self.einsums[i].access(t) for t in select(level.only_irrelevant_to, self.workload, name))
            if self.ragged and variable not in padded and all(variable not in a.variables for a in barred):
                every = range(1, min(self.extents[variable], level.size) + 1)
                self._takes[key] = tuple(n for n in every if share_allowed(self.limits, name, axis, variable, n))
        return self._takes[key]

    def axes_of(self, i: int, unit: str | None) -> list[str]:
        """The axes that stand above the unit; a copy spreads over none of its own."""
        if unit is None:
            return []
        if unit not in self._axes_of:
            stop = self.machine.position[unit]
            self._axes_of[unit] = [axis.name for axis in self.axes if self.axis_place[axis.name] < stop]
        return self._axes_of[unit]

    def most(self, i: int, unit: str) -> int:
        """Instances of the full-use axes that Einsum i has to use on this unit."""
        key = self.label[i], unit
        if key not in self._most:
            name = self.einsums[i].name
            self._most[key] = full_use(self.workload, self.machine, name, unit, self.limits)
        return self._most[key]

    def windows(self, i: int) -> frozenset[str]:
        """The variables of Einsum i that move windows."""
        label = self.label[i]
        if label not in self._windows:
            name = self.einsums[i].name
            self._windows[label] = self.workload.einsum(name).windowed, spread_windows(self.workload, name)
        return self._windows[label][0]

    def may_be_uneven(self, i: int, variable: str, axis: str | None) -> bool:
        """True if an outermost loop of the variable, on the axis or temporal, may cut it into unequal tiles."""
        if not self.ragged or variable not in self.windows(i):
            return self.ragged
        return axis is not None and variable in self._windows[self.label[i]][1]

    def least_work(self, i: int, unit: str, windows: bool) -> int:
        """The most iterations of Einsum i that `ragged` allows an instance of the full-use axes (rule 9)."""
        if not windows:
            return prod(self.full[i].values()) // self.most(i, unit)
        key = self.label[i], unit
        if key not in self._least:
            self._least[key] = least_work(self.workload, self.machine, self.einsums[i].name, unit, self.limits)
        return self._least[key]

    def total_allowed(self, i: int, axis: str, instances: int) -> bool:
        """True if limits let all loops of Einsum i on the axis take so many instances together."""
        return total_allowed(self.limits, self.einsums[i].name, axis, instances)


def _compound(access: Access) -> frozenset[str]:
    """The variables of the access's indices that add several."""
    return frozenset(v for index in access.indices if len(index.terms) > 1 for v in index.variables)


def _plain(access: Access) -> tuple[str, ...] | None:
    """The variables of an access all of whose indices are one plain variable; None if some is not."""
    return tuple(index.variables[0] for index in access.indices) if all(i.simple for i in access.indices) else None

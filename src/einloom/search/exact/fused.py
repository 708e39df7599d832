"""Rows of one Einsum: every undominated pmapping, with the fused loops above its shared tensors spelled out.

Comes in: a signature and its tables. Goes out: `Block`s. A block has one structure (fused loops in order, where each
shared tensor is stored) and one row per choice of trips and of everything that stays inside the Einsum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ...machine.levels import Machine
from ...problem import Objective
from .pricing import Column, Pricing, columns, settle
from .rows import FAR, PEND, Rows, union, wrapped
from .signature import Held, UnitOption
from .skyline import FloatArray, IntArray, skyline
from .spatial import Classes, Spread, divisors
from .structures import OwnStore, Stacker, Structure
from .tables import Rules, Tables

Shape = tuple[int, tuple[tuple[int | None, int | None], ...]]
Allowed = dict[Shape, IntArray]


def numbered(trips: IntArray, shape: Shape, sizes: tuple[int, ...]) -> IntArray:
    """One integer per choice of trips of the loops above a tensor; its rank sizes are the radices."""
    total = np.zeros(len(trips), np.int64)
    for column, (rank, _) in enumerate(shape[1]):
        assert rank is not None
        total = total * (sizes[rank] + 1) + trips[:, column]
    return total


@dataclass(frozen=True)
class Variant:
    """How a block's rows were made: unit, held tensors, spatial choice, own stores in the fused part, remaining
    rows."""

    option: UnitOption
    held: Held
    own: tuple[OwnStore, ...]
    memory: int
    remainder: Rows
    pricings: tuple[Pricing, ...]


@dataclass(eq=False)
class Block:
    """Rows with one structure. trips: [n, loops]. cost: [n, objective columns]. own: [n, tracked memories, depth +
    1] bits of own stores by the number of temporal loops above them, the last for everything local to the Einsum. Row
    `remainder` of variant number `variant` holds the rest."""

    structure: Structure
    trips: IntArray
    cost: FloatArray
    own: IntArray
    variant: IntArray
    remainder: IntArray
    variants: tuple[Variant, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, index: IntArray) -> Block:
        return Block(
            self.structure,
            self.trips[index],
            self.cost[index],
            self.own[index],
            self.variant[index],
            self.remainder[index],
            self.variants,
        )


@dataclass(frozen=True)
class Setting:
    """What all Einsums of a search share: machine, objective, limits of the space, memories whose room is shared."""

    machine: Machine
    objective: Objective
    columns: tuple[Column, ...]
    tracked: tuple[int, ...]
    capacities: tuple[int | None, ...]
    shares: tuple[int, ...]
    max_fused_loops: int | None
    rules: Rules

    @classmethod
    def of(
        cls,
        machine: Machine,
        objective: Objective,
        tracked: tuple[int, ...],
        capacities: tuple[int | None, ...],
        max_fused_loops: int | None,
        rules: Rules,
    ) -> Setting:
        shares = tuple(m.capacity_share() for m in machine.memories)
        return cls(machine, objective, columns(machine, objective), tracked, capacities, shares, max_fused_loops, rules)


class Explorer:
    """All blocks of one signature."""

    def __init__(
        self,
        setting: Setting,
        classes: Classes,
        limits: FloatArray,
        counts: dict[str, int],
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        self.setting = setting
        self.classes = classes
        self.signature = signature = classes.signature
        self.limits = limits
        self.counts = counts
        self.checkpoint = checkpoint
        self.allowed: dict[int, Allowed] = {}
        self.found: dict[Structure, list[Block]] = {}
        self._fronts: dict[tuple[int, bytes], tuple[Rows, IntArray]] = {}
        tables = [t for t in range(len(signature.tensors)) if signature.tensors[t].intermediate]
        self.fusable = frozenset(tables)

    def blocks(self) -> list[Block]:
        """The blocks, each reduced to its undominated rows."""
        for option in self.signature.units:
            choices = self.classes.spreads(option)
            tables = {spread: self._tables(option, spread) for spread in choices}
            groups: dict[tuple[int, Held, tuple[tuple[int, ...], ...]], list[tuple[Spread, Held]]] = {}
            for held in option.held:
                memory = self._fused_memory(held)
                for spread in choices:
                    if self.setting.rules.limits and (tables[spread].floor(held) > self.limits).any():
                        self.counts["choices of stores"] = self.counts.get("choices of stores", 0) + 1
                        continue
                    key = (memory, held[: memory + 1], self._upper(option, spread, memory))
                    groups.setdefault(key, []).append((spread, held))
            for (memory, _, _), members in groups.items():
                self.checkpoint()
                self._group(option, memory, members, tables)
        return [b for parts in self.found.values() if len(b := self._reduce(parts))]

    def floor(self) -> float:
        """A quick lower bound on the Einsum's objective: leaf, and every own store filled once."""
        values = [
            settle(self.setting.machine, self.setting.columns, tables.floor(held)[None, :], self.setting.objective)
            for option in self.signature.units
            for spread in self.classes.spreads(option)
            for tables in (self._tables(option, spread),)
            for held in option.held
        ]
        return float(min((v.min() for v in values), default=np.inf))

    def relaxed(self) -> Iterator[Rows]:
        """For every choice of unit, stores and spatial loops, the rows that hold all stores but backing ones, anywhere.

        The rows fit the memories without their shared tensors and stand below no fused loop: a relaxation.
        """
        whole = np.array(self.classes.extents, np.int64)
        for option in self.signature.units:
            for spread in self.classes.spreads(option):
                tables = self._tables(option, spread)
                for held in option.held:
                    self.checkpoint()
                    if self.setting.rules.limits and (tables.floor(held) > self.limits).any():
                        continue
                    own = tuple(
                        frozenset(t for t in h if m == 0 or self.backing(held, t) != m) for m, h in enumerate(held)
                    )
                    yield from tables.relaxed(held, own, whole)

    def _tables(self, option: UnitOption, spread: Spread) -> Tables:
        s = self.setting
        pricing = Pricing(s.machine, s.columns, self.classes, option.above, option.fanouts, spread, option.unit)
        capacities = s.capacities[: len(option.above)]
        return Tables(pricing, capacities, s.tracked, s.shares, self.limits, s.rules, self.counts)

    def backing(self, held: Held, tensor: int) -> int:
        return next(m for m, h in enumerate(held) if tensor in h)

    def _fused_memory(self, held: Held) -> int:
        """The innermost memory that backs an intermediate (0 if none does on chip)."""
        return max((self.backing(held, t) for t in self.fusable), default=0)

    def _upper(self, option: UnitOption, spread: Spread, memory: int) -> tuple[tuple[int, ...], ...]:
        axes = [axis for axis in self.signature.axes if axis.fanout < option.fanouts]
        stop = option.above[memory]
        return tuple(row for axis, row in zip(axes, spread, strict=True) if axis.fanout < stop)

    # ---- one choice of stores down to the lowest backing store -------------------------------------------------

    def _group(
        self, option: UnitOption, memory: int, members: list[tuple[Spread, Held]], tables: dict[Spread, Tables]
    ) -> None:
        spread, held = members[0]
        first = tables[spread]
        own_here = [t for t in sorted(held[memory]) if self.backing(held, t) != memory]
        for fused_count in range(1 << (len(own_here) if memory else 0)):
            fused = frozenset(t for i, t in enumerate(own_here) if fused_count >> i & 1)
            rest = frozenset(own_here) - fused
            parts: list[Rows] = []
            pricings: list[Pricing] = []
            for s, h in members:
                if memory == 0:
                    open_ended = [rows for rows, _ in tables[s].base(0, h)]
                else:
                    open_ended = [rows for (placed, _), rows in tables[s].level(memory, h).items() if placed == rest]
                found = [tables[s].closed(rows, memory, h) for rows in open_ended]
                found = [rows for rows in found if len(rows)]
                parts.extend(wrapped(rows) for rows in found)
                pricings.extend([tables[s].pricing] * len(found))
            if not parts:
                continue
            remainder = first.front(union(parts))
            rules = self.setting.rules
            stacker = Stacker(
                self.classes,
                option,
                held,
                spread,
                memory,
                fused,
                self.fusable,
                self.setting.max_fused_loops,
                rules.lowering,
            )
            for structure, own in stacker.structures():
                self._fill(first, structure, own, option, held, memory, remainder, tuple(pricings))

    # ---- rows ---------------------------------------------------------------------------------------------------

    def _fill(
        self,
        tables: Tables,
        structure: Structure,
        own: tuple[OwnStore, ...],
        option: UnitOption,
        held: Held,
        memory: int,
        remainder: Rows,
        pricings: tuple[Pricing, ...],
    ) -> None:
        if not self._welcome(structure):
            return
        trips = self._wanted(structure, self._trips(tables, structure))
        if not len(trips):
            return
        trips = trips[self._room(tables, structure, own, trips)]
        if not len(trips):
            return
        x = self._below(structure, trips, len(structure.loops))
        fixed, reserved = self._own_stores(tables, structure, own, held, trips)
        which, rows = self._match(tables, x, remainder)
        if not len(which):
            return
        cost = remainder.cost[rows] + fixed[which]
        kept = np.ones(len(which), bool)
        if self.setting.rules.limits:
            kept = np.asarray((cost <= self.limits).all(axis=1))
            self.counts["slack"] = self.counts.get("slack", 0) + int((~kept).sum())
        total = reserved[which]
        for i, m in enumerate(self.setting.tracked):
            if m in tables.limited:
                total[:, i, -1] += remainder.occupied[rows, tables.limited.index(m)]
        which, rows, cost, total = which[kept], rows[kept], cost[kept], total[kept]
        variant = Variant(option, held, own, memory, remainder, pricings)
        block = Block(
            structure,
            trips[which],
            settle(self.setting.machine, self.setting.columns, cost, self.setting.objective),
            total,
            np.zeros(len(which), np.int64),
            rows,
            (variant,),
        )
        self.found.setdefault(structure, []).append(block if len(block) < 2 else self._reduce([block]))

    def _shape(self, structure: Structure, tensor: int) -> Shape:
        """Memory of a shared tensor and (rank, axis) of each loop above it, as its other users see them."""
        memory, depth = next(((m, d) for t, m, d in structure.backings if t == tensor), (0, 0))
        signature = self.signature.tensors[tensor]
        return memory, tuple((signature.rank_of(x.variable), x.axis) for x in structure.loops[:depth])

    def _welcome(self, structure: Structure) -> bool:
        """False if some other user of a shared tensor never stores it like this (`allowed`, if it was given)."""
        return all(self._shape(structure, t) in keys for t, keys in self.allowed.items())

    def _wanted(self, structure: Structure, trips: IntArray) -> IntArray:
        """The rows whose trips every other user of the shared tensors has."""
        for t, keys in self.allowed.items():
            shape = self._shape(structure, t)
            numbers = numbered(trips, shape, self.signature.tensors[t].shape)
            trips = trips[np.isin(numbers, keys[shape])]
        return trips

    def _trips(self, tables: Tables, structure: Structure) -> IntArray:
        """All trip counts of the fused loops: divisors above one for temporal loops, the spatial choice for the
        others."""
        options = []
        for loop in structure.loops:
            if loop.axis is None:
                room = self.signature.extents[loop.variable]
                options.append(np.array([n for n in divisors(room) if n > 1], np.int64))
            else:
                row = tables.pricing.spread[loop.axis]
                options.append(np.array([row[self.classes.of[loop.variable]]], np.int64))
        if not options:
            return np.zeros((1, 0), np.int64)
        grid = np.meshgrid(*options, indexing="ij")
        return np.stack([g.reshape(-1) for g in grid], axis=1)

    def _below(self, structure: Structure, trips: IntArray, depth: int) -> IntArray:
        """Extents per class below the first `depth` fused loops."""
        x = np.tile(np.array(self.classes.extents, np.int64), (len(trips), 1))
        for i, loop in enumerate(structure.loops[:depth]):
            x[:, self.classes.of[loop.variable]] //= trips[:, i]
        return x

    def _room(self, tables: Tables, structure: Structure, own: tuple[OwnStore, ...], trips: IntArray) -> IntArray:
        """Rows whose spatial loops divide, and whose backed tiles and own stores alone fit each memory."""
        x = np.tile(np.array(self.signature.extents, np.int64), (len(trips), 1))
        good = np.ones(len(trips), bool)
        for i, loop in enumerate(structure.loops):
            good &= x[:, loop.variable] % trips[:, i] == 0
            x[:, loop.variable] //= trips[:, i]
        filled: dict[int, IntArray] = {}
        places = [(t, m, d) for t, m, d in structure.backings] + [(s.tensor, s.memory, s.depth) for s in own]
        for t, m, depth in places:
            if m in tables.limited:
                bits = tables.tile_bits(t, self._below(structure, trips, depth), m)
                filled[m] = filled.get(m, np.zeros(len(trips), np.int64)) + bits
        for m, bits in filled.items():
            capacity = tables.capacities[m]
            assert capacity is not None
            good &= bits <= capacity
        return np.flatnonzero(good)

    def _own_stores(
        self, tables: Tables, structure: Structure, own: tuple[OwnStore, ...], held: Held, trips: IntArray
    ) -> tuple[FloatArray, IntArray]:
        """Cost of the own stores in the fused part, and the bits that they reserve per tracked memory and depth."""
        cost = np.zeros((len(trips), len(self.setting.columns)))
        reserved = np.zeros((len(trips), len(self.setting.tracked), structure.depth + 1), np.int64)
        if 0 in self.setting.tracked:
            for t, tensor in enumerate(self.signature.tensors):
                if not tensor.shared:
                    whole = np.array([self.classes.extents], np.int64)
                    reserved[:, self.setting.tracked.index(0), 0] += tables.tile_bits(t, whole, 0)[0]
        for s in own:
            x = self._below(structure, trips, s.depth)
            parent = max((m for m in range(s.memory) if s.tensor in held[m]), default=None)
            if parent is not None:
                price, skipped = tables.link(s.tensor, parent, s.memory)
                moved = tables.moved(s.tensor, x, s.memory)
                cost += moved[:, None] * price - tables.elements(s.tensor) * skipped
            if s.memory in self.setting.tracked:
                at = self.setting.tracked.index(s.memory)
                reserved[:, at, structure.temporal(s.depth)] += tables.tile_bits(s.tensor, x, s.memory)
        return cost, reserved

    def _match(self, tables: Tables, x: IntArray, remainder: Rows) -> tuple[IntArray, IntArray]:
        """(trip row, remainder row) for every remainder row that fits below each boundary, undominated per boundary."""
        unique, inverse = np.unique(x, axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)
        fronts = [self._below_boundary(tables, boundary, remainder) for boundary in unique]
        sizes = np.array([len(f) for f in fronts])
        flat = np.concatenate(fronts) if fronts else np.zeros(0, np.int64)
        offsets = np.cumsum(sizes) - sizes
        counts = sizes[inverse]
        which = np.repeat(np.arange(len(x)), counts)
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return which, flat[offsets[inverse[which]] + within]

    def _below_boundary(self, tables: Tables, boundary: IntArray, remainder: Rows) -> IntArray:
        cache = self._fronts
        key = (id(remainder), boundary.tobytes())
        if key in cache:
            return np.asarray(cache[key][1])
        fits = (boundary % remainder.x == 0).all(axis=1)
        if remainder.pending.any():
            trips = boundary // remainder.x
            assert tables.sliding is not None
            code = remainder.pending % FAR
            promised = trips[np.arange(len(trips)), code // PEND] == code % PEND
            mine = [d for d in range(trips.shape[1]) if self.classes.relevant(tables.sliding, d)]
            touched = (trips[:, mine] > 1).any(axis=1)
            fits &= (remainder.pending == 0) | (touched & promised & ((remainder.pending & FAR) == 0))
        index = np.flatnonzero(fits)
        if self.setting.rules.dominance and len(index) > 1:
            cost = remainder.cost[index]
            cost = tables.weighed(cost) if self.setting.rules.dive else cost
            values = np.concatenate([cost, remainder.occupied[index].astype(np.float64)], axis=1)
            used = values.max(axis=0) > values.min(axis=0)
            columns_used = np.ascontiguousarray(values[:, used]) if used.any() else values[:, :1]
            index = index[skyline(np.zeros(len(index), np.int64), columns_used)]
        cache[key] = (remainder, index)
        return index

    def _reduce(self, parts: list[Block]) -> Block:
        """One block of all parts, without rows that another with the same trips beats."""
        if len(parts) > 1:
            variants: list[Variant] = []
            shifted = []
            for part in parts:
                shifted.append(part.variant + len(variants))
                variants.extend(part.variants)
            block = Block(
                parts[0].structure,
                np.concatenate([p.trips for p in parts]),
                np.concatenate([p.cost for p in parts]),
                np.concatenate([p.own for p in parts]),
                np.concatenate(shifted),
                np.concatenate([p.remainder for p in parts]),
                tuple(variants),
            )
        else:
            block = parts[0]
        if not self.setting.rules.dominance or len(block) < 2:
            return block
        return block.take(pareto(block.trips, block.cost, block.own.reshape(len(block), -1)))


def pack(trips: IntArray) -> IntArray:
    """One integer per distinct row."""
    total = np.zeros(len(trips), np.int64)
    for c in range(trips.shape[1]):
        values, inverse = np.unique(trips[:, c], return_inverse=True)
        if len(values) > 1:
            total = total * len(values) + inverse.reshape(-1)
    return total


def pareto(trips: IntArray, cost: FloatArray, reserved: IntArray) -> IntArray:
    """Indices of the rows that none with equal trips beats in cost and reservations."""
    values = np.concatenate([cost, reserved.astype(np.float64)], axis=1)
    used = values.max(axis=0) > values.min(axis=0)
    chosen = np.ascontiguousarray(values[:, used]) if used.any() else np.ascontiguousarray(values[:, :1])
    return skyline(pack(trips), chosen)

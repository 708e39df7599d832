"""What one element costs to move over each link, in the columns that an objective needs.

The exact search prices a store as ``per_element * moved - skipped``: `moved` counts elements over all temporal
visits, the two vectors depend only on which memories are linked and on the spatial choice (one row for each). All
counts come from `cost.formulas.terms`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ....cost.formulas import terms
from ....dataclass import dataclass
from ....machine.levels import Fanout, Machine, Toll
from ....once import once_each
from ....problem import Objective
from ..einsums.classes import AxisSignature, UnitOption
from ..einsums.runs import SpatialChoice
from ..einsums.spatial import RankClasses, like_axes, most_work, together
from ..numerics.narrow import PIECE, multiplied
from ..numerics.pareto import FloatArray, IntArray
from ..numerics.uneven import largest_tile

LISTED = 1 << 14  # spatial choices that become an array between two questions whether to stop
Port = Literal["shared", "read", "write", "compute"]


@dataclass(frozen=True, slots=True)
class Column:
    """One additive cost: joules, seconds of one port of a memory (or of compute, memory -1), or bits of traffic.

    memory: tolls are numbered after the memories.
    """

    kind: Literal["energy", "time", "traffic"]
    memory: int = -1
    port: Port = "shared"


@dataclass(frozen=True, eq=False)
class LinkCharge:
    """What one side of a link charges per element moved, where tiles need not divide: then how often an element is
    moved differs from side to side. price [choices, columns]. free [choices]: of so many moves of an element nothing is
    charged (first results that are not read back, where that many is only known from above).

    Spatial loops over classes that the tensor lacks count once there if their fanout is above the side (number below
    `top`) and it is the `busiest` instance that counts, or if it is on the way (below `bottom`) and joins the tensor.
    """

    links: LinkPrices
    tensor: int
    price: FloatArray
    top: int
    bottom: int
    busiest: bool
    free: IntArray | None = None

    def amount(self, moved: NDArray[Any], elements: int, choice: IntArray | int) -> NDArray[Any]:
        """Elements that are charged, of those `moved` under a choice. elements: of the tensor."""
        return moved if self.free is None else np.maximum(moved - elements * self.free[choice], 0)

    def counts_once(self, fanout: int, joined: frozenset[int]) -> bool:
        """True if the instances of an axis count once."""
        return self.busiest if fanout < self.top else fanout < self.bottom and self.tensor in joined

    def together(self, d: int, low: int, high: int) -> IntArray:
        """Instances of class d that count once, of the fanouts from `low` to `high`, per choice."""
        total = np.ones(len(self.price), np.int64)
        for fanout, joined, row in self.links.crossing(low, high, d):
            if self.counts_once(fanout, joined):
                total = total * row
        return total

    def share(self, whole: IntArray, d: int, low: int, high: int) -> IntArray:
        """Per choice the extent of class d that instances have which do not count once: of the fanouts from `low` to
        `high`."""
        return np.asarray(terms.trips_of(int(whole[d]), self.together(d, low, high)))


Way = Literal["down", "up"]
Action = Literal["read", "write"]
_ACTIONS: dict[Way, tuple[Action, Action]] = {"down": ("read", "write"), "up": ("write", "read")}
"""Way of an element -> what it is to the memory further out, and to the one further in."""


def columns(machine: Machine, objective: Objective) -> tuple[Column, ...]:
    """The columns that decide an objective: every pruning compares all of them."""
    found: list[Column] = []
    if objective.name not in ("latency", "traffic"):
        found.append(Column("energy"))
    if objective.name not in ("energy", "traffic") or (objective.name == "energy" and machine.leakage > 0):
        for i, memory in enumerate(machine.memories):
            rates: dict[Port, float | None] = {"read": memory.read_throughput, "write": memory.write_throughput}
            ports = [port for port, rate in rates.items() if rate is not None]
            if memory.ports == "shared":
                ports = ["shared"] if ports else []
            found.extend(Column("time", i, port) for port in ports)
        limited = (i for i, toll in enumerate(machine.tolls, len(machine.memories)) if toll.throughput is not None)
        found.extend(Column("time", i) for i in limited)
        if any(unit.throughput is not None for unit in machine.units):
            found.append(Column("time", -1, "compute"))
    if objective.name == "traffic":
        names = [m.name for m in machine.memories]
        assert objective.memory is not None
        found.append(Column("traffic", names.index(objective.memory)))
    return tuple(found)


@dataclass(frozen=True)
class LinkPrices:
    """Prices of links of one Einsum on one unit under many spatial choices: arrays with one row per choice."""

    machine: Machine
    columns: tuple[Column, ...]
    classes: RankClasses
    above: tuple[int, ...]
    fanouts: int
    spreads: tuple[SpatialChoice, ...]
    unit: str | None

    @cached_property
    def _axes(self) -> tuple[tuple[int, frozenset[int], IntArray], ...]:
        """(fanout, tensors joined, instances per choice and class) of every visible axis."""
        visible = self.classes.signature.visible(self.fanouts)
        rows = np.empty((len(self.spreads), len(visible), len(self.classes.members)), np.int64)
        for start in range(0, len(rows), LISTED):
            self.classes.checkpoint()
            some = self.spreads[start : start + LISTED]
            rows[start : start + LISTED] = np.array(some, np.int64).reshape(len(some), *rows.shape[1:])
        return tuple((a.fanout, a.joined, rows[:, i]) for i, a in enumerate(visible))

    def between(self, top: int, bottom: int) -> IntArray:
        """Instances that each class takes on the fanouts `top` <= number < `bottom`, per choice [n, classes]."""
        total = np.ones((len(self.spreads), len(self.classes.members)), np.int64)
        self.classes.checkpoint()
        for fanout, _, row in self._axes:
            self._look()
            if top <= fanout < bottom:
                total = total * row
        return total

    @cached_property
    def instances(self) -> tuple[IntArray, ...]:
        """For each memory, then the unit: instances that each class takes above it, per choice."""
        return tuple(self.between(0, stop) for stop in (*self.above, self.fanouts))

    @cached_property
    def alike(self) -> tuple[IntArray, ...]:
        """For each memory, then the unit: per choice the first that agrees on every fanout above; and on which classes
        are spread further in, of those that the fanouts above cut unevenly (rule 2 of `ragged`)."""
        found = []
        for stop, further in zip((*self.above, self.fanouts), self.further, strict=True):
            seen: dict[object, int] = {}
            keys = [(self.upper(i, stop), again) for i, again in enumerate(further)]
            found.append(np.array([seen.setdefault(key, i) for i, key in enumerate(keys)], np.int64))
        return tuple(found)

    @cached_property
    def further(self) -> tuple[list[tuple[int, ...]], ...]:
        """For each memory, then the unit: per choice the classes that it cuts unevenly above and spreads again."""
        found: list[list[tuple[int, ...]]] = []
        whole, uneven = np.array(self.classes.extents, np.int64), np.array(self.classes.uneven, bool)
        for upper in self.instances:
            again = uneven & (whole % upper > 0) & (self.instances[-1] > upper) & (not self.classes.integer)
            some = again.any()
            found.append([tuple(np.flatnonzero(row).tolist()) if some else () for row in again])
        return tuple(found)

    @cached_property
    def _option(self) -> UnitOption:
        units = self.classes.signature.units
        return next(o for o in units if (o.unit, o.above) == (self.unit, self.above))

    def _lanes(self, top: int, bottom: int) -> IntArray:
        """The most instances of full-use axes of the fanouts `top` <= number < `bottom` that a class may really have,
        per choice [n, classes]."""
        total = np.ones((len(self.spreads), len(self.classes.members)), np.int64)
        for axes, taken, _ in self._groups:
            if axes[0].full and top <= axes[0].fanout < bottom:
                same = [largest_tile(n, taken[:, d]) for d, n in enumerate(self.classes.extents)]
                total *= np.minimum(np.stack(same, axis=1), prod(axis.size for axis in axes))
        return total

    @cached_property
    def idle(self) -> tuple[tuple[IntArray, IntArray], ...]:
        """For each memory: (instances of full-use axes further in, how many of them a full extent of a class there may
        leave without work in its last pass), per choice [n, classes]; beyond that the busiest instance would have more
        than rule 9 allows. (1, 0) below spatial loops over the class: there extents of the tables need not be some
        mapping's."""
        extents = np.array(self.classes.extents, np.int64)
        if self.classes.signature.copy:
            return tuple((np.ones_like(self.instances[0]), np.zeros_like(self.instances[0])) for _ in self.above)
        shares = terms.trips_of(extents, self._lanes(0, self.fanouts))
        most = most_work(self.classes, self._option) // (shares.prod(axis=1, keepdims=True) // shares)
        found = []
        for stop, upper in zip(self.above, self.instances, strict=False):
            inner = np.where(upper == 1, self._lanes(stop, self.fanouts), 1)
            found.append((inner, np.where(upper == 1, inner * most - extents, 0)))
        return tuple(found)

    @cached_property
    def _groups(self) -> tuple[tuple[list[AxisSignature], IntArray, IntArray], ...]:
        """(axes, instances, fewer for sure) of every group of like axes; the last two per choice and class."""
        option = self._option
        axes = self.classes.signature.visible(self.fanouts)
        fewer = self.classes.fewer(option)
        found = []
        for g, group in enumerate(like_axes(self.classes.signature, option, axes)):
            taken = np.array([together(spread, [group])[0] for spread in self.spreads], np.int64)
            less = np.array([fewer[spread][g] for spread in self.spreads], np.int64)
            shape = len(self.spreads), len(self.classes.members)
            found.append(([axes[i] for i in group], taken.reshape(shape), less.reshape(shape)))
        return tuple(found)

    def piled(self, top: int, bottom: int, d: int) -> tuple[IntArray, IntArray, IntArray]:
        """What an extent of class d above the fanouts `top` <= number < `bottom` has of tiles below them, per choice.

        It is larger than the first number of tiles, or, if temporal loops over the class directly above went below,
        than the second number of tiles that are one smaller; and at most the third number of tiles. All 1 where none of
        the fanouts takes the class.
        """
        low, other, high = (np.ones(len(self.spreads), np.int64) for _ in range(3))
        for axes, taken, less in self._groups:
            if top <= axes[0].fanout < bottom:
                low = low * np.where(taken[:, d] > 1, np.maximum(less[:, d], 1), 1)
                other = other * np.where(taken[:, d] > 1, less[:, d] + 1, 1)
                high = high * taken[:, d]
        return low, other, high

    def beginning(self, part: LinkCharge, d: int, top: int, bottom: int) -> IntArray:
        """At least so many instances of the fanouts `top` <= number < `bottom` that count apart have work of class d in
        the first iteration, per choice."""
        most = np.ones(len(self.spreads), np.int64)
        for fanout in range(top, bottom):
            mine = np.ones(len(self.spreads), np.int64)
            some = np.zeros(len(self.spreads), bool)
            for axes, taken, less in self._groups:
                if axes[0].fanout == fanout and not part.counts_once(fanout, axes[0].joined):
                    mine = mine * np.where(taken[:, d] > 1, np.maximum(less[:, d], 1), 1)
                    some |= taken[:, d] > 1
            most = np.maximum(most, mine + some)
        return most

    @cached_property
    def widest(self) -> tuple[IntArray, ...]:
        """For each memory, then the unit: the largest tile of each class that an instance may have, per choice."""
        found = []
        for stop in (*self.above, self.fanouts):
            tiles = np.tile(np.array(self.classes.extents, np.int64), (len(self.spreads), 1))
            for fanout in range(stop):
                for d in range(tiles.shape[1]):
                    low, other, high = self.piled(fanout, fanout + 1, d)
                    full = tiles[:, d] - 1
                    tiles[:, d] = np.where(high > 1, np.maximum(full // low, full // other + 1), tiles[:, d])
            found.append(tiles)
        return tuple(found)

    def upper(self, choice: int, stop: int) -> SpatialChoice:
        """Instances on the axes of the fanouts before `stop`."""
        visible = self.classes.signature.visible(self.fanouts)
        return tuple(row for axis, row in zip(visible, self.spreads[choice], strict=True) if axis.fanout < stop)

    def place(self, memory: int | None) -> int:
        return len(self.above) if memory is None else memory

    @once_each
    def link(self, tensor: int, parent: int, child: int | None) -> tuple[FloatArray, FloatArray]:
        """(cost per element moved, cost of the first results that are not read back), per choice and column.

        child None is the leaf. Elements are counted over all instances of the classes that index the tensor and over
        temporal visits; instances along other classes are in the price.
        """
        signature = self.classes.signature.tensors[tensor]
        zero = np.zeros((len(self.spreads), len(self.columns)))
        if signature.housed and parent < signature.home:
            return zero, zero  # it is at home there: nothing comes from further out
        back = self._moved(tensor, parent, child, "down")
        if not signature.output:
            return back, zero
        up = self._moved(tensor, parent, child, "up")
        if child is not None and self.machine.partial_sums == "once":
            return up, zero
        return up + back, back

    def _moved(self, tensor: int, parent: int, child: int | None, way: Way) -> FloatArray:
        """Column vectors for one element that goes one way over a link."""
        bottom = self.fanouts if child is None else self.above[child]
        first, last = _ACTIONS[way]
        price = self._charge(tensor, parent, first, *self._copies(tensor, self.above[parent], bottom))
        price = price + self._passed(tensor, parent, child, way)
        if child is not None:
            price = price + self._charge(tensor, child, last, *self._copies(tensor, bottom, bottom))
        return price

    @once_each
    def unpadded(self, tensor: int, top: int) -> IntArray:
        """Per choice a bit for each of the tensor's padded ranks (`RankClasses.beyond`) of which some variable is
        spread above: then one of the instances below `top` fanouts reaches no padding along it (rule 11)."""
        rows, signature = self.between(0, top), self.classes.signature.tensors[tensor]
        found = np.zeros(len(self.spreads), np.int64)
        for bit, rank in enumerate(self.classes.beyond[tensor]):
            dims = [self.classes.of[v] for v, _ in signature.ranks[rank]]
            found |= (rows[:, dims] > 1).any(axis=1).astype(np.int64) << bit
        return found

    @once_each
    def busier(self, tensor: int) -> IntArray | None:
        """The same per choice and column [choices, columns]: 0 where all instances count. None if all are 0."""
        found = np.zeros((len(self.spreads), len(self.columns)), np.int64)
        memories, tolls = len(self.machine.memories), self.machine.tolls
        above = {**dict(enumerate(self.above)), **{memories + k: self._over(toll) for k, toll in enumerate(tolls)}}
        for i, column in enumerate(self.columns if self.classes.beyond[tensor] else ()):
            if column.kind == "time" and column.memory in above:
                found[:, i] = self.unpadded(tensor, above[column.memory])
        return found if found.any() else None

    def crossing(self, top: int, bottom: int, d: int) -> list[tuple[int, frozenset[int], IntArray]]:
        """(fanout, tensors joined, instances that class d takes per choice) of every axis in between, from the outside
        in."""
        return [(fanout, joined, row[:, d]) for fanout, joined, row in self._axes if top <= fanout < bottom]

    @once_each
    def parts(self, tensor: int, parent: int, child: int | None) -> tuple[tuple[LinkCharge, ...], FloatArray]:
        """As `link`, where tiles need not divide: the price side by side, and the cost of the first results that are
        not read back."""
        signature = self.classes.signature.tensors[tensor]
        zero = np.zeros((len(self.spreads), len(self.columns)))
        if signature.housed and parent < signature.home:
            return (), zero
        found = self._sides(tensor, parent, child, "down")
        if not signature.output:
            return tuple(found), zero
        out = self._sides(tensor, parent, child, "up")
        if child is not None and self.machine.partial_sums == "once":
            return tuple(out), zero
        if self.classes.integer:
            return (*out, *(replace(part, free=self._most_holders(tensor, part)) for part in found)), zero
        skipped = zero
        for part in found:
            skipped = skipped + part.price * self._holders(tensor, part)[:, None]
        return (*out, *found), skipped

    def _holders(self, tensor: int, part: LinkCharge) -> IntArray:
        """Per choice the instances that count apart, of the classes that the tensor lacks."""
        total = np.ones(len(self.spreads), np.int64)
        for fanout, joined, row in self._axes:
            if fanout < part.bottom and not part.counts_once(fanout, joined):
                total = total * row[:, ~np.array(self.classes.relevance[tensor], bool)].prod(axis=1)
        return total

    def _most_holders(self, tensor: int, part: LinkCharge) -> IntArray:
        """As `_holders`, at most, where spatial choices stand for all with as many passes."""
        total = np.ones(len(self.spreads), np.int64)
        for axes, taken, _ in self._groups:
            if axes[0].fanout >= part.bottom or part.counts_once(axes[0].fanout, axes[0].joined):
                continue
            for d in np.flatnonzero(~np.array(self.classes.relevance[tensor], bool)).tolist():
                mine, extent = taken[:, d], self.classes.extents[d]
                if self.classes.uneven[d]:
                    same = largest_tile(extent, mine) if len(axes) == 1 else np.where(mine > 1, extent, 1)
                    mine = np.minimum(same, prod(axis.size for axis in axes))
                total = total * mine
        return total

    def _sides(self, tensor: int, parent: int, child: int | None, way: Way) -> list[LinkCharge]:
        """The parts of what goes one way: at each end, and at the tolls between."""
        bottom = self.fanouts if child is None else self.above[child]
        ends = zip((parent,) if child is None else (parent, child), _ACTIONS[way], strict=False)
        sides: list[tuple[int, Callable[[FloatArray, FloatArray], FloatArray]]] = [
            (self.above[memory], partial(self._charge, tensor, memory, action)) for memory, action in ends
        ]
        for k, toll in enumerate(self.machine.tolls):
            sides.append((self._over(toll), partial(self._tolled, k, tensor, parent, child, way)))
        found = []
        for top, price in sides:
            none, share = np.zeros(len(self.spreads)), self._share(tensor, top)
            found.append(LinkCharge(self, tensor, price(none + 1, none), top, bottom, False))
            found.append(LinkCharge(self, tensor, price(none, share), top, bottom, True))
        return [part for part in found if part.price.any()]

    def _share(self, tensor: int, top: int) -> FloatArray:
        """Per choice the share of a tensor's elements that the busiest instance below `top` fanouts has; of windows
        that are cut unevenly the mean."""
        mine = np.array(self.classes.relevance[tensor], bool)
        whole, upper = np.array(self.classes.extents, np.int64)[mine], self.between(0, top)
        share = (terms.trips_of(whole, upper[:, mine]) / whole).prod(axis=1)
        for d in self.classes.halos[tensor]:
            extent = self.classes.extents[d]
            share = share * (extent / upper[:, d] / terms.trips_of(extent, upper[:, d]))
        return np.asarray(share)

    def _copies(self, tensor: int, top: int, bottom: int) -> tuple[NDArray[Any], FloatArray]:
        """How often one element counts where `top` fanouts stand above, if it comes from or goes behind `bottom` ones:
        (over all instances, as a share in the busiest one), per choice."""
        mine = np.array(self.classes.relevance[tensor], bool)
        here, apart = self.between(0, top), np.ones(len(self.spreads), np.int64)
        for fanout, joined, row in self._axes:
            self._look()
            if top <= fanout < bottom and tensor not in joined:
                apart = apart * multiplied(row[:, ~mine])
        self._look()
        every = multiplied(here[:, ~mine]) * apart
        if any(self.classes.uneven):
            return every, apart * self._share(tensor, top)
        return every, apart / multiplied(here[:, mine])

    def copied(self, source: int, target: int) -> tuple[FloatArray, FloatArray]:
        """Prices per element of a copy's leaf: (read of tensor 1, write of tensor 0); zero within one memory."""
        zero = np.zeros((len(self.spreads), len(self.columns)))
        if source == target:
            return zero, zero
        read = self._one_way(1, source, "read")
        way: Way = "down" if source < target else "up"
        read = read + self._passed(1, min(source, target), max(source, target), way)
        return read, self._one_way(0, target, "write")

    def _passed(self, tensor: int, parent: int, child: int | None, way: Way) -> FloatArray:
        """Column vectors for one element on its way through the tolls between two places (child None: the leaf)."""
        bottom = self.fanouts if child is None else self.above[child]
        vector = np.zeros((len(self.spreads), len(self.columns)))
        for k, toll in enumerate(self.machine.tolls):
            vector += self._tolled(k, tensor, parent, child, way, *self._copies(tensor, self._over(toll), bottom))
        return vector

    def _tolled(
        self,
        k: int,
        tensor: int,
        parent: int,
        child: int | None,
        way: Way,
        total: FloatArray,
        one: FloatArray,
    ) -> FloatArray:
        """Column vectors for one element on its way through toll number `k`, if that is between the two places."""
        place, memories, toll = self.machine.position, self.machine.memories, self.machine.tolls[k]
        inner = self.unit if child is None else memories[child].name
        assert inner is not None
        vector = np.zeros((len(self.spreads), len(self.columns)))
        bits = self.classes.signature.tensors[tensor].tolls[k][way == "up"]
        if not bits or not place[memories[parent].name] < place[toll.name] < place[inner]:
            return vector
        for i, column in enumerate(self.columns):
            if column.kind == "energy":
                vector[:, i] = terms.energy(total * bits, toll.energy, toll.bits_per_access)
            elif column.memory == len(memories) + k and toll.throughput is not None:
                vector[:, i] = terms.transfer_time(one * bits, toll.throughput)
        return vector

    def _over(self, toll: Toll) -> int:
        """How many fanouts stand above the toll."""
        return sum(isinstance(level, Fanout) for level in self.machine.levels[: self.machine.position[toll.name]])

    def _one_way(self, tensor: int, memory: int, action: Action) -> FloatArray:
        mine = np.array(self.classes.relevance[tensor], bool)
        one = 1.0 / self.instances[memory][:, mine].prod(axis=1)
        if any(self.classes.uneven):
            one = self._share(tensor, self.above[memory])
        return self._charge(tensor, memory, action, np.ones(len(self.spreads)), one)

    def _charge(self, tensor: int, memory: int, action: Action, total: NDArray[Any], one: FloatArray) -> FloatArray:
        """Column vectors for one element: `total` over all instances, `one` in the busiest."""
        level = self.machine.memories[memory]
        bits = self.classes.signature.tensors[tensor].bits[memory]
        vector = np.zeros((len(self.spreads), len(self.columns)))
        per_access = level.read_energy if action == "read" else level.write_energy
        throughput = level.read_throughput if action == "read" else level.write_throughput
        for i, column in enumerate(self.columns):
            self._look()
            if column.kind == "energy":
                vector[:, i] = terms.energy(total * bits, per_access, level.bits_per_access)
            elif column.memory == memory:
                if column.kind == "traffic":
                    vector[:, i] = total * bits
                elif column.port in ("shared", action) and throughput is not None:
                    vector[:, i] = terms.transfer_time(one * bits, throughput)
        return vector

    def _look(self) -> None:
        """Look at what stops the search, where an array has so many rows that each step takes long."""
        if len(self.spreads) > PIECE:
            self.classes.checkpoint()

    @cached_property
    def compute(self) -> FloatArray:
        """Column vectors of the operations themselves."""
        vector = np.zeros((len(self.spreads), len(self.columns)))
        if self.unit is None:
            return vector
        unit = self.machine.unit(self.unit)
        operations = prod(self.classes.extents)
        for i, column in enumerate(self.columns):
            if column.kind == "energy":
                vector[:, i] = operations * unit.energy
            elif column.port == "compute" and unit.throughput is not None:
                busiest = operations // self.instances[-1].prod(axis=1)
                if any(self.classes.uneven):
                    busiest = terms.trips_of(np.array(self.classes.extents), self.instances[-1]).prod(axis=1)
                vector[:, i] = terms.transfer_time(busiest, unit.throughput)
        return vector

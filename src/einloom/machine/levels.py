"""WHERE a workload runs: memories, tolls, fanouts and compute units in one list, outermost first, as frozen data.

SI units inside: joules, seconds, watts, square metres; sizes in bits; throughputs in bits (or operations) per second.
None means unlimited for a size or a throughput.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, fields, replace
from math import prod
from types import MappingProxyType
from typing import Literal

from ..dataclass import dataclass
from ..once import cached_property
from ..reading.facts import Fact
from ..reporting import Drawn
from ..workload.einsum import Einsum, Workload
from ..workload.selectors import Selector, select, selector

ALL = selector("all")
NOTHING = selector("nothing")


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory; there is one instance of it for each instance of the fanouts listed before it.

    size: bits per instance. read_energy, write_energy: joules per access. bits_per_access: width of one access (actions
    are counted in bits, an access is `bits / bits_per_access`, not rounded). read_throughput, write_throughput: bits
    per second and instance. ports: ``shared`` adds the times of reads and writes, ``separate`` takes their maximum.
    widths: (selector, bits) pairs that replace a tensor's bits per value here; the first that selects it counts.
    must, may: tensors that it must hold and that it may hold. backs: tensors whose outermost store it may be.
    double_buffer: a tile takes twice its size. leakage: watts per instance. area: square metres per instance.

    For time in events: setup, seconds before each transfer to or from a store below; release, whether a slot is free
    when its last use ends or when it begins; prefetch, how many tiles a store holds in turns (they all take room), if
    not 1 or, double buffered, 2; through, whether parts pass through as they come: a store below has its part of the
    tile while the rest is on its way, and a finished part goes up at once, each in one transfer from end to end.
    """

    name: str
    size: int | None = None
    read_energy: float = 0.0
    write_energy: float = 0.0
    bits_per_access: int = 1
    read_throughput: float | None = None
    write_throughput: float | None = None
    ports: Literal["shared", "separate"] = "shared"
    widths: tuple[tuple[Selector, int], ...] = ()
    must: Selector = NOTHING
    may: Selector = ALL
    backs: Selector = ALL
    double_buffer: bool = False
    leakage: float = 0.0
    area: float = 0.0
    setup: float = 0.0
    release: Literal["end", "start"] = "end"
    prefetch: int | None = None
    through: bool = False

    def bits(self, workload: Workload, einsum: str, tensor: str) -> int:
        """Bits of one value of `tensor` here, as `einsum` meets it."""
        return _width(self.widths, workload, einsum, tensor)

    def capacity_share(self) -> int:
        """How many tiles a store occupies: `prefetch` if that is said, else 2 with double buffering, else 1."""
        return self.prefetch or (2 if self.double_buffer else 1)


@dataclass(frozen=True, slots=True)
class Link(Memory):
    """A way between the instances of an axis, named as a place where a tile may stand: from a stage to the next ones.

    It holds nothing: what crosses it comes from the store of the stage that writes and goes to those of the stages that
    read. axis: the axis whose instances it joins. read_energy: joules per bit and hop. read_throughput: bits per
    second. hops: of one transfer. multicast: one transfer reaches all instances that need the tile.
    """

    may: Selector = NOTHING
    backs: Selector = NOTHING
    axis: str = ""
    hops: int = 1
    multicast: bool = True

    @property
    def energy(self) -> float:
        """Joules per bit and hop."""
        return self.read_energy

    @property
    def throughput(self) -> float | None:
        """Bits per second."""
        return self.read_throughput


@dataclass(frozen=True, slots=True)
class Toll:
    """A price for what passes: a converter, a driver, a bus. It keeps nothing, so no tile may stand in it.

    There is one instance of it for each instance of the fanouts listed before it. A value passes where it goes from a
    store listed before it to a store or unit listed after it (down), or the other way (up). down, up: tensors that are
    charged on that way. energy: joules per access of `bits_per_access` bits, not rounded. throughput: bits per second
    and instance, both ways together. widths, leakage, area: as of a memory. docs/model/tolls.md.
    """

    name: str
    energy: float = 0.0
    bits_per_access: int = 1
    throughput: float | None = None
    down: Selector = ALL
    up: Selector = ALL
    widths: tuple[tuple[Selector, int], ...] = ()
    leakage: float = 0.0
    area: float = 0.0

    def bits(self, workload: Workload, einsum: str, tensor: str) -> int:
        """Bits of one value of `tensor` here, as `einsum` meets it."""
        return _width(self.widths, workload, einsum, tensor)

    def charges(self, workload: Workload, einsum: str, tensor: str) -> tuple[bool, bool]:
        """Is the tensor charged (on the way down, on the way up)?"""
        return tensor in select(self.down, workload, einsum), tensor in select(self.up, workload, einsum)


def _width(widths: tuple[tuple[Selector, int], ...], workload: Workload, einsum: str, tensor: str) -> int:
    for which, width in widths:
        if tensor in select(which, workload, einsum):
            return width
    return workload.tensor(tensor).bits


@dataclass(frozen=True, slots=True)
class Axis:
    """One named direction of a fanout.

    multicast: tensors that one read above sends to all instances along the axis. reduce: outputs that are added on the
    way up. only_irrelevant_to: if not ``nothing``, only rank variables that none of these tensors has may be spread
    here. use: ``full`` admits only the spatial choices of an Einsum that use the most instances.
    """

    name: str
    size: int
    multicast: Selector = ALL
    reduce: Selector = ALL
    only_irrelevant_to: Selector = NOTHING
    use: Literal["any", "full"] = "any"


@dataclass(frozen=True, slots=True)
class Fanout:
    """Everything listed after a fanout exists once per instance of each of its axes."""

    name: str
    axes: tuple[Axis, ...]

    @property
    def instances(self) -> int:
        return prod(axis.size for axis in self.axes)


@dataclass(frozen=True, slots=True)
class ComputeUnit:
    """A compute unit; it sees only the levels listed before it, and has one instance per instance of their fanouts.

    throughput: operations per second and instance. energy: joules per operation. kinds: Einsum kinds that it executes.
    operands: numbers of input operands that it executes (empty: any).

    For time in events: setup, seconds before it works on a new tile of an operand; stationary, tensors that stay in the
    unit: if an Einsum has some, only a new tile of those takes the setup.
    """

    name: str
    throughput: float | None = None
    energy: float = 0.0
    kinds: tuple[str, ...] = ("multiply", "map")
    operands: tuple[int, ...] = ()
    leakage: float = 0.0
    area: float = 0.0
    setup: float = 0.0
    stationary: Selector = NOTHING

    def accepts(self, einsum: Einsum) -> bool:
        """True if this unit executes Einsums like this one (a copy needs no unit and is accepted by none)."""
        return einsum.kind in self.kinds and (not self.operands or len(einsum.inputs) in self.operands)

    @property
    def executed(self) -> str:
        """The Einsums that it executes, in words, as in ``multiply or map with 1 or 2 inputs``."""
        numbers = " or ".join(str(number) for number in self.operands)
        inputs = f" with {numbers} input{'s' if self.operands != (1,) else ''}" if numbers else ""
        return " or ".join(self.kinds) + inputs


Level = Memory | Toll | Fanout | ComputeUnit


@dataclass(frozen=True)
class Machine(Drawn):
    """An ordered list of levels, outermost memory first.

    partial_sums: ``read-modify-write`` charges the read-back of a spilled partial sum, ``once`` charges only its write.
    startup: seconds once per run, in time in events.
    """

    name: str
    levels: tuple[Level, ...]
    partial_sums: Literal["read-modify-write", "once"] = "read-modify-write"
    facts: tuple[Fact, ...] = field(default=(), compare=False)
    startup: float = 0.0

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        return tuple(level for level in self.levels if isinstance(level, Memory))

    @cached_property
    def memory_names(self) -> frozenset[str]:
        return frozenset(memory.name for memory in self.memories)

    @cached_property
    def seen(self) -> Mapping[str | None, tuple[Memory, ...]]:
        """Unit -> the memories listed before it; None, for a copy, -> those before the first unit."""
        stops: dict[str | None, int] = {unit.name: self.position[unit.name] for unit in self.units}
        stops[None] = min(stops.values(), default=len(self.levels))
        return {unit: tuple(m for m in self.memories if self.position[m.name] < stop) for unit, stop in stops.items()}

    @cached_property
    def tolls(self) -> tuple[Toll, ...]:
        return tuple(level for level in self.levels if isinstance(level, Toll))

    @cached_property
    def ways(self) -> tuple[Memory | Toll, ...]:
        """Memories and tolls: what values go into, out of or through."""
        return tuple(level for level in self.levels if isinstance(level, Memory | Toll))

    @cached_property
    def components(self) -> tuple[Memory | Toll | ComputeUnit, ...]:
        """Whatever may cost something: memories, then tolls, then units."""
        return (*self.memories, *self.tolls, *self.units)

    @cached_property
    def fanouts(self) -> tuple[Fanout, ...]:
        return tuple(level for level in self.levels if isinstance(level, Fanout))

    @cached_property
    def units(self) -> tuple[ComputeUnit, ...]:
        return tuple(level for level in self.levels if isinstance(level, ComputeUnit))

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Level name -> place in the list; an axis has its fanout's place."""
        table = {level.name: i for i, level in enumerate(self.levels)}
        for i, level in enumerate(self.levels):
            if isinstance(level, Fanout):
                table.update({axis.name: i for axis in level.axes})
        return MappingProxyType(table)

    def in_full_use(self) -> Machine:
        """The same machine with `use: full` on every axis."""
        levels = (
            replace(level, axes=tuple(replace(axis, use="full") for axis in level.axes))
            if isinstance(level, Fanout)
            else level
            for level in self.levels
        )
        return replace(self, levels=tuple(levels))

    def memory(self, name: str) -> Memory:
        return self._memory_table[name]

    def way(self, name: str) -> Memory | Toll:
        """The memory or the toll of that name."""
        return self._way_table[name]

    @cached_property
    def _memory_table(self) -> Mapping[str, Memory]:
        return {memory.name: memory for memory in self.memories}

    @cached_property
    def _way_table(self) -> Mapping[str, Memory | Toll]:
        return {way.name: way for way in self.ways}

    def unit(self, name: str) -> ComputeUnit:
        return self._unit_table[name]

    @cached_property
    def _unit_table(self) -> Mapping[str, ComputeUnit]:
        return {unit.name: unit for unit in self.units}

    @cached_property
    def axes(self) -> Mapping[str, Axis]:
        """Axis name -> axis; axis names are unique in a machine."""
        return MappingProxyType({axis.name: axis for fanout in self.fanouts for axis in fanout.axes})

    def instances(self, name: str) -> int:
        """Physical instances of the named memory, toll or unit: the product of the fanouts listed before it."""
        return self._instances[self.position[name]]

    @cached_property
    def _instances(self) -> tuple[int, ...]:
        """For each level the product of the fanouts before it."""
        found = [1]
        for level in self.levels:
            found.append(found[-1] * (level.instances if isinstance(level, Fanout) else 1))
        return tuple(found)

    @cached_property
    def leakage(self) -> float:
        """Watts of all instances together."""
        return sum(component.leakage * self.instances(component.name) for component in self.components)

    @cached_property
    def area(self) -> float:
        """Square metres of all instances together."""
        return sum(component.area * self.instances(component.name) for component in self.components)

    def units_for(self, einsum: Einsum) -> tuple[ComputeUnit, ...]:
        """The units that may execute `einsum`, in the order of the list."""
        return tuple(unit for unit in self.units if unit.accepts(einsum))

    def unexecuted(self, einsum: Einsum) -> str | None:
        """Why `einsum` has no mapping at all: no unit executes it. None if one does, or none is needed."""
        if einsum.kind == "copy" or self.units_for(einsum):
            return None
        inputs = f"{len(einsum.inputs)} input{'s' if len(einsum.inputs) != 1 else ''}"
        able = ", ".join(f"{unit.name} executes {unit.executed}" for unit in self.units)
        return (
            f"no compute unit of {self.name} executes Einsum {einsum.name} ({einsum.kind} with {inputs}; "
            f"{able or 'the machine has none'})"
        )

    def must_hold(self, memory: Memory, workload: Workload, einsum: str, held_above: Collection[str]) -> frozenset[str]:
        return select(memory.must, workload, einsum, held_above)

    def may_hold(self, memory: Memory, workload: Workload, einsum: str, held_above: Collection[str]) -> frozenset[str]:
        return select(memory.may, workload, einsum, held_above) | self.must_hold(memory, workload, einsum, held_above)

    def __reduce__(self) -> tuple[object, ...]:
        return (Machine, tuple(getattr(self, one.name) for one in fields(self)))

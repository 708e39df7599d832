"""One Einsum seen without names: all that its tables depend on, as hashable data.

Comes in: a problem. Goes out: a `Signature` per Einsum. Einsums with equal signatures (the Q, K and V projections, the
layers of a network) have equal tables and are explored once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from ...constraints import Selector, select
from ...errors import Infeasible, SpecError
from ...machine.levels import ComputeUnit, Fanout, Machine, Memory, Toll
from ...mapspace.limited import fetched_once, limited_variables, may_back, may_hold, must_hold
from ...mapspace.limits import UNLIMITED, Limits, Numbers, concerns
from ...workload.einsum import Workload

Held = tuple[frozenset[int], ...]


def backing(held: Held, tensor: int) -> int:
    """The outermost memory that holds the tensor."""
    return next(m for m, tensors in enumerate(held) if tensor in tensors)


@dataclass(frozen=True, slots=True)
class TensorSignature:
    """A tensor of the Einsum by position: (variable, coefficient) terms and constant per rank, shape, bits per
    memory.

    persistent: its room in the outermost memory is taken for the whole run (only said where that memory has a size).
    tolls: for each toll the bits of a value that it charges on the way (down, up), 0 where it does not.
    """

    ranks: tuple[tuple[tuple[int, int], ...], ...]
    constants: tuple[int, ...]
    shape: tuple[int, ...]
    bits: tuple[int, ...]
    output: bool
    intermediate: bool
    shared: bool
    persistent: bool = False
    tolls: tuple[tuple[int, int], ...] = ()

    @property
    def variables(self) -> frozenset[int]:
        return frozenset(v for rank in self.ranks for v, _ in rank)

    def simple(self, rank: int) -> bool:
        return len(self.ranks[rank]) == 1 and self.ranks[rank][0][1] == 1 and self.constants[rank] == 0

    @property
    def complex_variables(self) -> frozenset[int]:
        """Variables of ranks that are more than one plain variable."""
        return frozenset(v for r, rank in enumerate(self.ranks) if not self.simple(r) for v, _ in rank)

    @property
    def slides(self) -> bool:
        """True if windows of neighbouring tiles may overlap."""
        return any(len(rank) > 1 for rank in self.ranks)

    def rank_of(self, variable: int) -> int | None:
        """The rank whose expression has `variable`, or None."""
        return next((r for r, rank in enumerate(self.ranks) if variable in [v for v, _ in rank]), None)

    def simple_rank(self, variable: int) -> int | None:
        """The rank that `variable` indexes alone, or None."""
        return next((r for r, rank in enumerate(self.ranks) if self.simple(r) and rank[0][0] == variable), None)


@dataclass(frozen=True, slots=True)
class AxisSignature:
    """A fanout axis as the Einsum meets it: tensors that it joins (multicast or reduction), tensors it must not cut.

    shares: (variable, instances that it may take) and totals: instances of all loops together, as the mapspace asks.
    """

    fanout: int
    size: int
    joined: frozenset[int]
    barred: frozenset[int]
    full: bool
    shares: tuple[tuple[int, Numbers], ...] = ()
    totals: tuple[Numbers, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitOption:
    """A compute unit that may execute the Einsum (None for a copy), with what its path sees.

    above: for each memory that the path sees, how many fanouts stand above it; fanouts: how many stand above the unit;
    held: every admissible choice of held tensors per memory.
    """

    unit: str | None
    above: tuple[int, ...]
    fanouts: int
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """An Einsum by position. extents: per rank variable; tensors: output first, then inputs; merge: classes allowed.

    alone: variables that may not merge because the mapspace names them. once: (memory, tensor) pairs of which nothing
    may come twice. loops: (tensor, variable, trips of the fused
    loops above its backing store); tiles: (memory, tensor, variable, extents of the tile), as the mapspace asks.
    """

    extents: tuple[int, ...]
    tensors: tuple[TensorSignature, ...]
    copy: bool
    axes: tuple[AxisSignature, ...]
    units: tuple[UnitOption, ...]
    merge: bool
    alone: frozenset[int] = frozenset()
    loops: tuple[tuple[int, int, Numbers], ...] = ()
    tiles: tuple[tuple[int, int, int, Numbers], ...] = ()
    once: frozenset[tuple[int, int]] = frozenset()


def signatures(workload: Workload, machine: Machine, limits: Limits = UNLIMITED) -> list[Signature]:
    """The signature of every Einsum, in program order."""
    merge = not fuses_below_fanout(machine, workload)
    return [signature(workload, machine, e.name, merge, limits) for e in workload.einsums]


def signature(workload: Workload, machine: Machine, name: str, merge: bool, limits: Limits = UNLIMITED) -> Signature:
    """The signature of one Einsum.

    Raises Infeasible if no compute unit accepts it or the machine's constraints admit no choice of stores.
    """
    einsum = workload.einsum(name)
    if einsum.reduction == "online_softmax":
        raise Infeasible(f"Einsum {name} reduces by online_softmax, which is not priced yet")
    names = einsum.tensors
    variables = {v: i for i, v in enumerate(einsum.variables)}
    tensors = tuple(
        TensorSignature(
            ranks=tuple(tuple((variables[v], c) for v, c in index.terms) for index in access.indices),
            constants=tuple(index.constant for index in access.indices),
            shape=workload.tensor(access.tensor).shape,
            bits=tuple(m.bits(workload, name, access.tensor) for m in machine.memories),
            output=access.tensor == einsum.output.tensor,
            intermediate=access.tensor in workload.intermediates,
            shared=is_shared(workload, access.tensor),
            persistent=workload.tensor(access.tensor).persistent and machine.memories[0].size is not None,
            tolls=tuple(_tolled(toll, workload, name, access.tensor) for toll in machine.tolls),
        )
        for access in einsum.accesses
    )
    if sum(tensor.slides for tensor in tensors) > 1:
        raise SpecError(f"exact follows one tensor with sliding windows per Einsum; {name} has more")
    position = {t: i for i, t in enumerate(names)}
    extents = tuple(workload.extents[v] for v in einsum.variables)
    tiles = _tile_limits(workload, machine, limits, name, variables, position)
    copy = einsum.kind == "copy"
    units: list[ComputeUnit | None] = [None] if copy else list(machine.units_for(einsum))
    if not units:
        raise Infeasible(f"no compute unit of {machine.name} executes Einsum {name} ({einsum.kind})")
    options = tuple(_options(workload, machine, limits, name, units, tiles))
    if not options:
        asked = [str(x) for x in (*limits.holds, *limits.backs, *limits.tiles)]
        also = f" with {'; '.join(asked)}" if asked else ""
        raise Infeasible(
            f"{machine.name}: what its memories must and may hold{also} leaves no choice of stores for {name}"
        )
    return Signature(
        extents,
        tensors,
        copy,
        _axes(workload, machine, limits, name),
        options,
        merge,
        frozenset(variables[v] for v in limited_variables(limits, workload, name)),
        _loop_limits(workload, limits, name, variables, position),
        tiles,
        frozenset(
            (m, position[t])
            for m, memory in enumerate(machine.memories)
            for t in fetched_once(limits, memory.name, workload, name)
        ),
    )


def _options(
    workload: Workload,
    machine: Machine,
    limits: Limits,
    name: str,
    units: list[ComputeUnit | None],
    tiles: tuple[tuple[int, int, int, Numbers], ...],
) -> Iterator[UnitOption]:
    """The units for which machine and mapspace leave a choice of stores."""
    einsum = workload.einsum(name)
    position = {t: i for i, t in enumerate(einsum.tensors)}
    extents = tuple(workload.extents[v] for v in einsum.variables)
    for unit in units:
        stop = machine.position[unit.name if unit is not None else machine.units[0].name]
        visible = machine.levels[:stop]
        memories = tuple(level for level in visible if isinstance(level, Memory))
        held = tuple(
            choice
            for choice in held_choices(workload, machine, limits, name, memories, position)
            if all(sizes.allow(extents[v]) for m, t, v, sizes in tiles if m == 0 and t in choice[0])
        )
        if held:
            fanouts = sum(isinstance(level, Fanout) for level in visible)
            above = tuple(
                sum(isinstance(level, Fanout) for level in machine.levels[: machine.position[m.name]]) for m in memories
            )
            yield UnitOption(unit.name if unit else None, above, fanouts, held)


def _axes(workload: Workload, machine: Machine, limits: Limits, name: str) -> tuple[AxisSignature, ...]:
    """Every axis of the machine as the Einsum meets it."""
    einsum = workload.einsum(name)
    position = {t: i for i, t in enumerate(einsum.tensors)}
    variables = {v: i for i, v in enumerate(einsum.variables)}
    found = []
    for f, fanout in enumerate(machine.fanouts):
        for axis in fanout.axes:
            asked = [x for x in limits.axes if x.axis == axis.name and concerns(x.einsums, name)]
            found.append(
                AxisSignature(
                    fanout=f,
                    size=axis.size,
                    joined=_joined(workload, name, axis.multicast, axis.reduce, position),
                    barred=frozenset(position[t] for t in select(axis.only_irrelevant_to, workload, name)),
                    full=axis.use == "full",
                    shares=tuple((variables[v], x.instances) for x in asked for v in x.variables if v in variables),
                    totals=tuple(x.instances for x in asked if not x.variables),
                )
            )
    return tuple(found)


def _tolled(toll: Toll, workload: Workload, name: str, tensor: str) -> tuple[int, int]:
    down, up = toll.charges(workload, name, tensor)
    bits = toll.bits(workload, name, tensor)
    return (bits if down else 0, bits if up else 0)


def _loop_limits(
    workload: Workload, limits: Limits, name: str, variables: dict[str, int], position: dict[str, int]
) -> tuple[tuple[int, int, Numbers], ...]:
    """(tensor, variable, trips) of every limit of loops that speaks of the Einsum."""
    intermediates = frozenset(workload.intermediates)
    return tuple(
        (position[t], variables[v], limit.trips)
        for limit in limits.loops
        if concerns(limit.einsums, name)
        for t in sorted(select(limit.tensors, workload, name) & intermediates)
        for v in limit.variables
        if v in variables
    )


def _tile_limits(
    workload: Workload,
    machine: Machine,
    limits: Limits,
    name: str,
    variables: dict[str, int],
    position: dict[str, int],
) -> tuple[tuple[int, int, int, Numbers], ...]:
    """(memory, tensor, variable, extents) of every limit of tiles that speaks of the Einsum."""
    number = {memory.name: i for i, memory in enumerate(machine.memories)}
    return tuple(
        (number[limit.memory], position[t], variables[v], limit.sizes)
        for limit in limits.tiles
        if concerns(limit.einsums, name)
        for t in sorted(select(limit.tensors, workload, name))
        for v in limit.variables
        if v in workload.einsum(name).access(t).variables
    )


def is_shared(workload: Workload, tensor: str) -> bool:
    """True if more than one Einsum accesses the tensor."""
    return len(workload.consumers[tensor]) + (tensor in workload.producers) > 1


def _joined(
    workload: Workload, name: str, multicast: Selector, reduce: Selector, position: dict[str, int]
) -> frozenset[int]:
    """Numbers of the inputs that an axis multicasts and of the output if it reduces it."""
    output = workload.einsum(name).output.tensor
    joined = {t for t in select(multicast, workload, name) if t != output}
    joined |= {t for t in select(reduce, workload, name) if t == output}
    return frozenset(position[t] for t in joined)


def fuses_below_fanout(machine: Machine, workload: Workload) -> bool:
    """True if a memory behind a fanout may back an intermediate: then rank variables keep their identity there."""
    behind = False
    for level in machine.levels:
        if isinstance(level, Fanout):
            behind = True
        elif isinstance(level, Memory) and behind:
            for einsum in workload.einsums:
                backs = select(level.backs, workload, einsum.name) & frozenset(workload.intermediates)
                if backs & machine.may_hold(level, workload, einsum.name, ()):
                    return True
    return False


def held_choices(
    workload: Workload,
    machine: Machine,
    limits: Limits,
    name: str,
    memories: tuple[Memory, ...],
    position: dict[str, int],
) -> Iterator[Held]:
    """Every choice of held tensors per memory that machine and mapspace admit (rules 5 and 12)."""
    einsum = workload.einsum(name)
    intermediates = frozenset(workload.intermediates)

    def extend(level: int, held: Held, above: frozenset[str]) -> Iterator[Held]:
        if level == len(memories):
            if above == frozenset(einsum.tensors):
                yield held
            return
        memory = memories[level]
        must = must_hold(limits, machine, memory, workload, name, above)
        may = may_hold(limits, machine, memory, workload, name, above)
        backs = select(memory.backs, workload, name, above) & may_back(limits, memory, workload, name)
        if not must <= may:
            return
        if level == 0:
            must = must | (frozenset(einsum.tensors) - intermediates)
            if not must <= may:
                return
        optional = sorted(may - must)
        for count in range(len(optional) + 1):
            for extra in combinations(optional, count):
                chosen = must | frozenset(extra)
                backed = chosen - above
                if backed <= backs:
                    yield from extend(level + 1, (*held, frozenset(position[t] for t in chosen)), above | chosen)

    yield from extend(0, (), frozenset())

"""One Einsum seen without names: all that its tables depend on, as hashable data.

Comes in: a problem. Goes out: an `EinsumClass` per Einsum. Einsums of one class (the Q, K and V projections, the layers
of a network) have equal tables and are explored once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cached_property
from itertools import combinations

from ....dataclass import dataclass
from ....errors import Infeasible, SpecError
from ....machine.levels import ComputeUnit, Fanout, Machine, Memory, Toll
from ....mapspace.ffm.ragged import spread_windows
from ....mapspace.limits.checks import fetched_once, limited_variables
from ....mapspace.limits.data import UNLIMITED, Limits, Numbers, concerns
from ....workload.einsum import Access, Einsum, Index, Workload
from ....workload.selectors import select
from ..numerics.uneven import Tiling
from .holds import Placement, held_choices, holding
from .users import Part, Users, is_shared


class HashedOnce:
    """Frozen data that is looked up often and is large: hashed once, not each time."""

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in fields(self)))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        """Without what is remembered: strings have other hashes in another process."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


@dataclass(frozen=True)
class TensorSignature(HashedOnce):
    """A tensor of the Einsum by position: (variable, coefficient) terms and constant per rank, shape, bits per
    memory.

    backed: bits of a value in a backing tile per memory, as the tensor's first user has it; 0 where its room is set
    aside for the whole run. home: the memory that backs an input or output of the cascade. intermediate: it links
    Einsums, and several memories or an inner one may back it. lent: an input that several Einsums read and an inner
    memory backs. persistent: no loop stands above its backing store. contested: another Einsum that accesses it may
    stand with this one below loops that are above no backing store of it. parts: those that the Einsum may have in a
    store of the tensor for several readers. cut: ranks that no shared loop iterates, because the tensor is written in
    parts or has views; a part that the Einsum writes is a tensor of its own to it, with a rank for each variable.
    tolls: for each toll the bits of a value that it charges on the way (down, up), 0 where it does not.
    """

    ranks: tuple[tuple[tuple[int, int], ...], ...]
    constants: tuple[int, ...]
    shape: tuple[int, ...]
    bits: tuple[int, ...]
    backed: tuple[int, ...]
    output: bool
    intermediate: bool
    shared: bool
    persistent: bool = False
    tolls: tuple[tuple[int, int], ...] = ()
    home: int = 0
    lent: bool = False
    contested: bool = False
    parts: tuple[Part, ...] = ()
    cut: frozenset[int] = frozenset()
    __hash__ = HashedOnce.__hash__

    @property
    def joins(self) -> bool:
        """True if a store below the outermost memory may be filled already, by a reader before."""
        return "ends" in self.parts

    @property
    def fusable(self) -> bool:
        """True if its backing store may stand in the fused part: where all its users have it in common."""
        return self.intermediate or self.lent

    @property
    def housed(self) -> bool:
        """True if this Einsum alone accesses it and an inner memory backs it: there it starts, or ends, for nothing.

        Choices of held tensors say that the outermost memory holds it too, so that its store at home is like any other.
        """
        return self.home > 0 and not self.shared

    @cached_property
    def variables(self) -> frozenset[int]:
        return frozenset(v for rank in self.ranks for v, _ in rank)

    def simple(self, rank: int) -> bool:
        return len(self.ranks[rank]) == 1 and self.ranks[rank][0][1] == 1 and self.constants[rank] == 0

    @cached_property
    def complex_variables(self) -> frozenset[int]:
        """Variables of ranks that are more than one plain variable."""
        return frozenset(v for r, rank in enumerate(self.ranks) if not self.simple(r) for v, _ in rank)

    @cached_property
    def slides(self) -> bool:
        """True if windows of neighbouring tiles may overlap."""
        return any(len(rank) > 1 for rank in self.ranks)

    def rank_of(self, variable: int) -> int | None:
        """The rank whose expression has `variable`, or None."""
        return next((r for r, rank in enumerate(self.ranks) if variable in [v for v, _ in rank]), None)

    def simple_rank(self, variable: int) -> int | None:
        """The rank that `variable` indexes alone, or None."""
        return self._alone.get(variable)

    @cached_property
    def _alone(self) -> dict[int, int]:
        """Variable -> the first rank that it indexes alone."""
        ranks = enumerate(self.ranks)
        return {rank[0][0]: r for r, rank in reversed([(r, x) for r, x in ranks if self.simple(r)])}

    def fused_rank(self, variable: int) -> int | None:
        """The rank that `variable` indexes alone and a loop above the tensor's backing store may iterate, or None."""
        rank = self.simple_rank(variable)
        return None if rank in self.cut else rank


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


@dataclass(frozen=True)
class UnitOption(HashedOnce):
    """A compute unit that may execute the Einsum (None for a copy), with what its path sees.

    above: for each memory that the path sees, how many fanouts stand above it; fanouts: how many stand above the unit;
    held: every admissible choice of held tensors per memory.
    """

    unit: str | None
    above: tuple[int, ...]
    fanouts: int
    held: tuple[Placement, ...]
    __hash__ = HashedOnce.__hash__

    @cached_property
    def side_by_side(self) -> bool:
        """True if memories behind the same fanouts may hold different tensors: then tiles that one keeps over loops
        above a store of another, whose charges are put off, are most of what is worth it."""
        may = [frozenset[int]().union(*some) for some in zip(*self.held, strict=True)]
        behind = [(fanouts, mine) for fanouts, mine in zip(self.above, may, strict=True) if fanouts and mine]
        return any(f == g and not mine & other for (f, mine), (g, other) in combinations(behind, 2))


@dataclass(frozen=True)
class EinsumClass(HashedOnce):
    """An Einsum by position. extents: per rank variable; tensors: output first, then inputs; merge: classes allowed.

    alone: variables that may not merge because the mapspace names them. once: (memory, tensor) pairs of which nothing
    may come twice. uneven: variables whose tiles need not divide; windows: those of them that only a spatial loop, the
    outermost, may cut so, because they move windows; tied: those that a fused loop may cut; tiling: the tiles that
    these have. loops: (tensor, variable, trips of the fused
    loops above its backing store); tiles: (memory, tensor, variable, extents of the tile), as the mapspace asks.
    order, swaps: as `exchange.py` says of variables and of axes; empty where nothing changes places. reach: per
    variable the numbers of positions with padding at which partners may tell axes apart that change places.
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
    uneven: frozenset[int] = frozenset()
    windows: frozenset[int] = frozenset()
    tied: frozenset[int] = frozenset()
    tiling: Tiling = "loose"
    swaps: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    reach: tuple[tuple[int, ...], ...] = ()
    __hash__ = HashedOnce.__hash__

    def visible(self, fanouts: int) -> list[AxisSignature]:
        """The axes of the first so many fanouts."""
        return [axis for axis in self.axes if axis.fanout < fanouts]

    @cached_property
    def fusable(self) -> tuple[int, ...]:
        """The tensors whose backing store may stand in the fused part."""
        return tuple(t for t, tensor in enumerate(self.tensors) if tensor.fusable)

    @cached_property
    def ranks(self) -> tuple[tuple[int | None, ...], ...]:
        """Per tensor and variable the rank whose expression has the variable."""
        return tuple(tuple(t.rank_of(v) for v in range(len(self.extents))) for t in self.tensors)


def signatures(
    users: Users, limits: Limits = UNLIMITED, ragged: bool = False, tiling: Tiling = "loose"
) -> list[EinsumClass]:
    """The signature of every Einsum, in program order. ragged: in the space of that name, with this `tiling`."""
    merge = not fuses_below_fanout(users)
    found = [signature(users, i, merge, limits, ragged) for i in range(len(users.workload.einsums))]
    if ragged:
        found = [_ragged(users.workload, e, one, tiling) for e, one in zip(users.workload.einsums, found, strict=True)]
    known: dict[EinsumClass, EinsumClass] = {}
    return [known.setdefault(one, one) for one in found]  # one object for all that are equal: quick to compare


def _ragged(workload: Workload, einsum: Einsum, signature: EinsumClass, tiling: Tiling) -> EinsumClass:
    """The signature in the space `ragged`; in the relaxation of `integer` no window is cut unevenly."""
    uneven = _uneven(signature)
    links = [tensor for tensor in signature.tensors if tensor.intermediate]
    tied = frozenset(v for v in uneven if any(tensor.fused_rank(v) is not None for tensor in links))
    told = tied or tiling in ("coarse", "integer")
    spread = frozenset[str]() if tiling == "integer" else spread_windows(workload, einsum.name)
    windows = frozenset(i for i, v in enumerate(einsum.variables) if v in spread and signature.extents[i] > 1)
    return replace(
        signature,
        uneven=uneven | windows,
        windows=windows,
        tied=tied,
        tiling=tiling if told else "loose",
        tensors=tuple(_apart(tensor, windows) for tensor in signature.tensors),
    )


def _apart(tensor: TensorSignature, windows: frozenset[int]) -> TensorSignature:
    """The tensor, of which no loop that Einsums share iterates a rank of these variables."""
    return replace(tensor, cut=tensor.cut | {r for v in windows if (r := tensor.simple_rank(v)) is not None})


def _uneven(signature: EinsumClass) -> frozenset[int]:
    """The variables whose tiles need not divide: those that index nothing but plain ranks (rule 2 of `ragged`)."""
    windowed = frozenset[int]().union(*(tensor.complex_variables for tensor in signature.tensors))
    return frozenset(v for v, extent in enumerate(signature.extents) if extent > 1) - windowed


def signature(
    users: Users, position: int, merge: bool, limits: Limits = UNLIMITED, ragged: bool = False
) -> EinsumClass:
    """The signature of the Einsum at `position`. ragged: tiles need not divide; without it, the signature in `ffm`.

    Raises Infeasible if no compute unit accepts it or the machine's constraints admit no choice of stores.
    """
    workload, machine = users.workload, users.machine
    einsum = workload.einsums[position]
    name = einsum.name
    if einsum.reduction == "online_softmax":
        raise Infeasible(f"Einsum {name} reduces by online_softmax, which is not priced yet")
    variables = {v: i for i, v in enumerate(einsum.variables)}
    tensors = tuple(_tensor(users, position, access, variables) for access in einsum.accesses)
    if sum(tensor.slides for tensor in tensors) > 1:
        raise SpecError(f"exact follows one tensor with sliding windows per Einsum; {name} has more")
    number = {t: i for i, t in enumerate(einsum.tensors)}
    extents = tuple(workload.extents[v] for v in einsum.variables)
    tiles = (*_tile_limits(workload, machine, limits, name, variables, number), *_whole(tensors, extents))
    copy = einsum.kind == "copy"
    units: list[ComputeUnit | None] = [None] if copy else list(machine.units_for(einsum))
    if (why := machine.unexecuted(einsum)) is not None:
        raise Infeasible(why)
    barred = frozenset((m, t) for m, t, v, sizes in tiles if not sizes.any_tile(extents[v], ragged))
    options = tuple(_options(users, limits, name, units, tensors, tiles, barred))
    if not options:
        asked = [str(x) for x in (*limits.holds, *limits.backs, *limits.tiles)]
        also = f" with {'; '.join(asked)}" if asked else ""
        raise Infeasible(
            f"{machine.name}: what its memories must and may hold{also} leaves no choice of stores for {name}",
            name,
        )
    return EinsumClass(
        extents,
        tensors,
        copy,
        _axes(workload, machine, limits, name, variables, number),
        options,
        merge,
        frozenset(variables[v] for v in limited_variables(limits, workload, name)) | {v for _, _, v, _ in tiles},
        _loop_limits(workload, limits, name, variables, number),
        tiles,
        _once(users, limits, name, tensors),
    )


def _tensor(users: Users, position: int, access: Access, variables: dict[str, int]) -> TensorSignature:
    """A tensor as the Einsum at `position` accesses it."""
    workload, memories, tolls = users.workload, users.machine.memories, users.machine.tolls
    einsum, name = workload.einsums[position], access.tensor
    shared, links = is_shared(workload, name), name in users.linking
    home = users.homes[einsum.name].get(name, 0) or 0
    lasting, lent = workload.tensor(name).persistent, home > 0 and shared and not links
    aside = home if lasting and name in users.homes[einsum.name] and memories[home].size is not None else -1
    first = users.first(name)
    shape = workload.shape(access)
    cut = workload.parted.get(name, frozenset()).intersection(range(len(shape)))
    if cut and access is einsum.output:
        access, shape, cut = _part(workload, access, cut)
    return TensorSignature(
        ranks=tuple(tuple((variables[v], c) for v, c in index.terms) for index in access.indices),
        constants=tuple(index.constant for index in access.indices),
        shape=shape,
        bits=tuple(m.bits(workload, einsum.name, name) for m in memories),
        backed=tuple(0 if i == aside else m.bits(workload, first, name) for i, m in enumerate(memories)),
        output=name == einsum.output.tensor,
        intermediate=links,
        shared=shared,
        persistent=(lasting and (links or home > 0)) or (lent and name in workload.viewed),
        tolls=tuple(_tolled(toll, workload, einsum.name, name) for toll in tolls),
        home=home,
        lent=lent,
        contested=shared and users.contested(position, name),
        parts=users.parts(position, name) if shared else (),
        cut=cut,
    )


def _part(workload: Workload, access: Access, cut: frozenset[int]) -> tuple[Access, tuple[int, ...], frozenset[int]]:
    """A part that an Einsum writes as a tensor of its own: (access, shape, cut ranks).

    Every position is written once, so tiles and moves are those of a tensor with one rank for each variable: whole
    ranks keep their numbers, the others have their first variable, and ranks for further ones come behind.
    """
    indices, behind = list(access.indices), list[str]()
    for rank in sorted(cut):
        variables = access.indices[rank].variables
        indices[rank] = Index(tuple((variable, 1) for variable in variables[:1]))
        behind += variables[1:]
    indices += [Index(((variable, 1),)) for variable in behind]
    shape = tuple(index.extent(workload.extents) for index in indices)
    return Access(access.tensor, tuple(indices)), shape, cut | frozenset(range(len(access.indices), len(indices)))


def _whole(tensors: tuple[TensorSignature, ...], extents: tuple[int, ...]) -> Iterator[tuple[int, int, int, Numbers]]:
    """Limits of tiles of housed tensors: every loop stands below the store of a persistent tensor and of an input with
    views, and all but those of ranks that nobody writes in parts below that of a tensor written in parts."""
    for t, tensor in enumerate(tensors):
        if tensor.housed and (tensor.persistent or tensor.cut):
            every = tensor.persistent or not tensor.output
            kept = [v for v in range(len(extents)) if every or tensor.fused_rank(v) is None]
            yield from ((tensor.home, t, v, Numbers(values=(extents[v],))) for v in kept)


def _once(users: Users, limits: Limits, name: str, tensors: tuple[TensorSignature, ...]) -> frozenset[tuple[int, int]]:
    """(memory, tensor) of which nothing may come twice: as the mapspace asks of stores that are not backing ones; and a
    housed output, which would leave its home before its sums are complete."""
    workload = users.workload
    found = {(tensor.home, t) for t, tensor in enumerate(tensors) if tensor.housed and tensor.output}
    for m, memory in enumerate(users.machine.memories):
        asked = fetched_once(limits, memory.name, workload, name)
        mine = (t for t, tensor in enumerate(workload.einsum(name).tensors) if tensor in asked)
        found |= {(m, t) for t in mine if not (tensors[t].housed and tensors[t].home == m)}
    return frozenset(found)


def _options(
    users: Users,
    limits: Limits,
    name: str,
    units: list[ComputeUnit | None],
    tensors: tuple[TensorSignature, ...],
    tiles: tuple[tuple[int, int, int, Numbers], ...],
    barred: frozenset[tuple[int, int]],
) -> Iterator[UnitOption]:
    """The units for which machine and mapspace leave a choice of stores. barred: (memory, tensor) without any tile."""
    workload, machine = users.workload, users.machine
    einsum = workload.einsum(name)
    order = tuple(sorted(range(len(tensors)), key=einsum.tensors.__getitem__))
    homes = users.homes[name]
    holds = tuple(holding(workload, machine, limits, name, m, homes) for m in range(len(machine.memories)))
    housed = frozenset(t for t, tensor in enumerate(tensors) if tensor.housed)
    whole = [(t, sizes.allow(workload.extents[einsum.variables[v]])) for m, t, v, sizes in tiles if m == 0]
    for unit in units:
        stop = machine.position[unit.name if unit is not None else machine.units[0].name]
        visible = machine.levels[:stop]
        memories = tuple(level for level in visible if isinstance(level, Memory))
        held = held_choices(holds[: len(memories)], order)
        if housed or whole:
            held = tuple((c[0] | housed, *c[1:]) for c in held if all(good for t, good in whole if t in c[0]))
        held = tuple(c for c in held if not any(t in c[m] for m, t in barred if m < len(c)))
        if held:
            fanouts = sum(isinstance(level, Fanout) for level in visible)
            above = tuple(
                sum(isinstance(level, Fanout) for level in machine.levels[: machine.position[m.name]]) for m in memories
            )
            yield UnitOption(unit.name if unit else None, above, fanouts, held)


def _axes(
    workload: Workload,
    machine: Machine,
    limits: Limits,
    name: str,
    variables: dict[str, int],
    position: dict[str, int],
) -> tuple[AxisSignature, ...]:
    """Every axis of the machine as the Einsum meets it: it joins inputs by multicast, the output by reduction."""
    output, found = {workload.einsum(name).output.tensor}, []
    for f, fanout in enumerate(machine.fanouts):
        for axis in fanout.axes:
            asked = [x for x in limits.axes if x.axis == axis.name and concerns(x.einsums, name)]
            multicast, reduced = (select(which, workload, name) for which in (axis.multicast, axis.reduce))
            found.append(
                AxisSignature(
                    fanout=f,
                    size=axis.size,
                    joined=frozenset(position[t] for t in (multicast - output) | (reduced & output)),
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


def fuses_below_fanout(users: Users) -> bool:
    """True if a memory behind a fanout may back what several Einsums share: then rank variables keep their identity
    there."""
    workload, machine = users.workload, users.machine
    first = next((i for i, level in enumerate(machine.levels) if isinstance(level, Fanout)), len(machine.levels))
    for m, memory in enumerate(machine.memories):
        for name in workload.names if machine.position[memory.name] > first else ():
            homes = users.homes[name]
            if any(home == m and is_shared(workload, t) for t, home in homes.items()):
                return True
            free = users.linking - homes.keys()
            if select(memory.backs, workload, name) & machine.may_hold(memory, workload, name, ()) & free:
                return True
    return False

"""Which tensors every memory holds for one Einsum: each choice that machine and mapspace admit (rules 5 and 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations

from ....dataclass import dataclass
from ....machine.levels import Machine
from ....mapping.legality.placement import outermost_home
from ....mapspace.limits.checks import may_back, may_hold, must_hold
from ....mapspace.limits.data import Limits
from ....workload.einsum import Workload
from ....workload.selectors import select

Placement = tuple[frozenset[int], ...]
Chain = tuple[int, ...]  # the memories that hold a tensor, outermost first


def backing(held: Placement, tensor: int) -> int:
    """The outermost memory that holds the tensor."""
    return next(m for m, tensors in enumerate(held) if tensor in tensors)


@lru_cache(maxsize=16)
def chains_of(held: tuple[Placement, ...], count: int) -> tuple[tuple[Chain, ...], ...]:
    """Of every choice, the memories that hold each of so many tensors. Many Einsums of a network have equal choices."""
    known: dict[Chain, Chain] = {}  # there are few, each in many choices
    found = []
    for one in held:
        chains = (tuple(m for m, tensors in enumerate(one) if t in tensors) for t in range(count))
        found.append(tuple(known.setdefault(chain, chain) for chain in chains))
    return tuple(found)


@lru_cache(maxsize=64)
def backings_of(held: tuple[Placement, ...], count: int) -> tuple[frozenset[int], ...]:
    """Of each of so many tensors, the memories that back it in some choice."""
    return tuple(frozenset(chains[t][0] for chains in chains_of(held, count)) for t in range(count))


def homes(workload: Workload, machine: Machine, einsum: str) -> dict[str, int | None]:
    """Input or output of the cascade that `einsum` accesses -> number of the memory that must back it; None: no memory
    may. Roles are those of its first user: what is written where an output may be is read there."""
    ends = frozenset(workload.ends)
    number = {memory.name: m for m, memory in enumerate(machine.memories)}
    found: dict[str, int | None] = {}
    for tensor in workload.einsum(einsum).tensors:
        if tensor in ends:
            first = workload.producers.get(tensor) or workload.consumers[tensor][0]
            home = outermost_home(workload, machine, first, tensor)
            found[tensor] = None if home is None else number[home]
    return found


@dataclass(frozen=True)
class MemoryHolds:
    """What one memory must hold, may hold and may back, in numbers of tensors: (where no memory above holds the tensor,
    where one does). Selectors ask of a tensor nothing else about the memories above. home: what it must back."""

    must: tuple[frozenset[int], frozenset[int]]
    may: tuple[frozenset[int], frozenset[int]]
    backs: tuple[frozenset[int], frozenset[int]]
    home: frozenset[int]


def holding(
    workload: Workload, machine: Machine, limits: Limits, name: str, level: int, home: Mapping[str, int | None]
) -> MemoryHolds:
    """The holding of a memory for one Einsum. home: of inputs and outputs of the cascade, as in `homes`."""
    memory, tensors = machine.memories[level], workload.einsum(name).tensors
    number = {t: i for i, t in enumerate(tensors)}
    back = may_back(limits, memory, workload, name)

    def numbered(found: frozenset[str]) -> frozenset[int]:
        return frozenset(number[t] for t in found)

    above = ((), tensors)
    must = [numbered(must_hold(limits, machine, memory, workload, name, held)) for held in above]
    may = [numbered(may_hold(limits, machine, memory, workload, name, held)) for held in above]
    backs = [numbered(select(memory.backs, workload, name, held) & back) for held in above]
    homed = frozenset(number[t] for t, m in home.items() if m == level)
    return MemoryHolds((must[0], must[1]), (may[0], may[1]), (backs[0], backs[1]), homed)


@lru_cache(maxsize=1024)
def held_choices(memories: tuple[MemoryHolds, ...], order: tuple[int, ...]) -> tuple[Placement, ...]:
    """Every choice of held tensors per memory. order: all tensors, in the order in which they are chosen."""
    return tuple(_held(memories, order, (), frozenset()))


def _held(
    memories: tuple[MemoryHolds, ...], order: tuple[int, ...], held: Placement, above: frozenset[int]
) -> Iterator[Placement]:
    """The choices that begin with those of the outer memories, which hold the tensors `above`."""
    if len(held) == len(memories):
        if len(above) == len(order):
            yield held
        return
    memory = memories[len(held)]
    must, may, backs = (
        (without - above) | (given & above) for without, given in (memory.must, memory.may, memory.backs)
    )
    must |= memory.home
    if not must <= may:
        return
    optional = [t for t in order if t in may and t not in must]
    for count in range(len(optional) + 1):
        for extra in combinations(optional, count):
            chosen = must | frozenset(extra)
            if chosen - above <= backs:
                yield from _held(memories, order, (*held, chosen), above | chosen)

"""Which tensors every memory holds for one Einsum: each choice that machine and mapspace admit (rules 5 and 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from ....machine.levels import Machine, Memory
from ....mapping.legality.placement import outermost_home
from ....mapspace.limits.checks import may_back, may_hold, must_hold
from ....mapspace.limits.data import Limits
from ....workload.einsum import Workload
from ....workload.selectors import select

Placement = tuple[frozenset[int], ...]


def backing(held: Placement, tensor: int) -> int:
    """The outermost memory that holds the tensor."""
    return next(m for m, tensors in enumerate(held) if tensor in tensors)


def homes(workload: Workload, machine: Machine, einsum: str) -> dict[str, int | None]:
    """Input or output of the cascade that `einsum` accesses -> number of the memory that must back it; None: no memory
    may. Roles are those of its first user: what is written where an output may be is read there."""
    ends = {*workload.inputs, *workload.outputs}
    number = {memory.name: m for m, memory in enumerate(machine.memories)}
    found: dict[str, int | None] = {}
    for tensor in workload.einsum(einsum).tensors:
        if tensor in ends:
            first = workload.producers.get(tensor) or workload.consumers[tensor][0]
            home = outermost_home(workload, machine, first, tensor)
            found[tensor] = None if home is None else number[home]
    return found


def held_choices(
    workload: Workload,
    machine: Machine,
    limits: Limits,
    name: str,
    memories: tuple[Memory, ...],
    home: Mapping[str, int | None],
) -> Iterator[tuple[frozenset[str], ...]]:
    """Every choice of held tensors per memory. home: of inputs and outputs of the cascade, as in `homes`."""
    tensors = frozenset(workload.einsum(name).tensors)

    def extend(
        level: int, held: tuple[frozenset[str], ...], above: frozenset[str]
    ) -> Iterator[tuple[frozenset[str], ...]]:
        if level == len(memories):
            if above == tensors:
                yield held
            return
        memory = memories[level]
        must = must_hold(limits, machine, memory, workload, name, above)
        may = may_hold(limits, machine, memory, workload, name, above)
        backs = select(memory.backs, workload, name, above) & may_back(limits, memory, workload, name)
        if not must <= may:
            return
        must = must | {t for t, m in home.items() if m == level}
        if not must <= may:
            return
        optional = sorted(may - must)
        for count in range(len(optional) + 1):
            for extra in combinations(optional, count):
                chosen = must | frozenset(extra)
                if chosen - above <= backs:
                    yield from extend(level + 1, (*held, chosen), above | chosen)

    yield from extend(0, (), frozenset())

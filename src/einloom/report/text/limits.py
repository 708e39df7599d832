"""What the memories of a problem can, must and may hold: the facts to look at when no mapping fits."""

from __future__ import annotations

from ...dataclass import dataclass
from ...problem import Problem


@dataclass(frozen=True, slots=True)
class Limit:
    """One memory: bits and number of instances, tensors that it must and may hold for some Einsum.

    must: also those that no other memory may hold. size: None if unlimited. largest: the largest of all those tensors,
    whole, with its bits; None if there is none.
    """

    memory: str
    size: int | None
    instances: int
    must: tuple[str, ...]
    may: tuple[str, ...]
    largest: tuple[str, int] | None


def limits(problem: Problem) -> list[Limit]:
    """One line per memory, outermost first."""
    workload, machine = problem.workload, problem.machine
    homes: dict[tuple[str, str], list[str]] = {}
    for memory in machine.memories:
        for einsum in workload.einsums:
            for tensor in machine.may_hold(memory, workload, einsum.name, ()):
                homes.setdefault((einsum.name, tensor), []).append(memory.name)
    found = []
    for memory in machine.memories:
        must: set[str] = set()
        may: set[str] = set()
        rooms: list[tuple[str, int]] = []
        for einsum in workload.einsums:
            above = _held_above(problem, memory.name, einsum.name)
            needed = machine.must_hold(memory, workload, einsum.name, above)
            allowed = machine.may_hold(memory, workload, einsum.name, ())
            for tensor in einsum.tensors:
                if tensor not in allowed:
                    continue
                alone = homes[einsum.name, tensor] == [memory.name]
                (must if alone or tensor in needed else may).add(tensor)
                rooms.append((tensor, workload.tensor(tensor).size * memory.bits(workload, einsum.name, tensor)))
        largest = max(rooms, key=lambda one: one[1], default=None)
        names = [tensor.name for tensor in workload.tensors]
        needed_here = tuple(name for name in names if name in must)
        allowed_too = tuple(name for name in names if name in may - must)
        instances = machine.instances(memory.name)
        found.append(Limit(memory.name, memory.size, instances, needed_here, allowed_too, largest))
    return found


def _held_above(problem: Problem, memory: str, einsum: str) -> frozenset[str]:
    """Tensors that some memory above may hold for `einsum`: what a limit that asks for them can meet at most."""
    held: frozenset[str] = frozenset()
    for outer in problem.machine.memories:
        if outer.name == memory:
            break
        held |= problem.machine.may_hold(outer, problem.workload, einsum, held)
    return held

"""Which memories have no room for the least tile of what Einsums share, whatever stands above it.

Comes in: a workload, the classes of its Einsums, the room of each memory. Goes out: for every Einsum the tensors that
some memories cannot back. The argument: docs/model/pruning.md, "Room and instances".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ....workload.einsum import Workload
from ..einsums.classes import EinsumClass
from .places import reached

Barred = frozenset[tuple[int, int]]  # (tensor, memory)


def barred(workload: Workload, signatures: Sequence[EinsumClass], room: Sequence[int | None]) -> list[Barred]:
    """For every Einsum the shared tensors that a memory cannot back, because it has no room for their `whole` ranks."""
    least = {tensor.name: whole(workload, signatures, tensor.name) for tensor in workload.tensors}
    found = []
    for einsum, signature in zip(workload.einsums, signatures, strict=True):
        mine = [(t, signature.tensors[t], least[name]) for t, name in enumerate(einsum.tensors)]
        found.append(
            frozenset(
                (t, m)
                for t, tensor, elements in mine
                for m, bits in enumerate(room)
                if tensor.fusable and bits is not None and elements * tensor.backed[m] > bits
            )
        )
    return found


def whole(workload: Workload, signatures: Sequence[EinsumClass], tensor: str) -> int:
    """The elements that a tile of a shared tensor has at least: all along the ranks that no loop above it iterates.

    Such a loop iterates a bare rank of it for each of its users, all of them inside, and none whose result another
    needs is done before the loop over what it reduces.
    """
    if tensor in workload.parted:
        return 1
    names = dict.fromkeys((*workload.writers.get(tensor, ()), *workload.consumers[tensor]))
    users = [(name, signatures[workload.position[name]]) for name in names]
    needed, total = _needed(workload, names), 1
    for r in range(len(workload.tensor(tensor).shape)):
        seen = [(name, s, s.tensors[workload.einsum(name).tensors.index(tensor)]) for name, s in users]
        alone = all(one.simple(r) for _, _, one in seen)
        if not alone or any(name in needed and _reduced(s, one.ranks[r][0][0]) for name, s, one in seen):
            total *= max(reached(s, one, r)[0] for _, s, one in seen)
    return total


def _reduced(einsum: EinsumClass, variable: int) -> bool:
    """True if the Einsum has a result only after a loop over the variable."""
    return not any(tensor.output and variable in tensor.variables for tensor in einsum.tensors)


def _needed(workload: Workload, names: Collection[str]) -> frozenset[str]:
    """Those of some Einsums whose result another of them needs, directly or not."""
    every, found, last = list(names), set(), max(workload.position[name] for name in names)
    for name in every:
        after, new = set[str](), {name}
        while new:
            readers = {e for one in new for e in workload.consumers[workload.einsum(one).output.tensor]}
            new = {reader for reader in readers - after if workload.position[reader] <= last}
            after |= new
        if after & set(every) - {name}:
            found.add(name)
    return frozenset(found)

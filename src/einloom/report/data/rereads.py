"""What several Einsums read from the outermost memory, each into a store of its own, and what does without."""

from __future__ import annotations

from ...result import Result
from ...workload.views import called

LEAST = 0.1  # of the traffic of the outermost memory: less is not worth a note
LISTED, READERS = 3, 4


def rereads(result: Result) -> dict[str, tuple[tuple[str, ...], int]]:
    """(readers, bits beyond what one of them reads) of each tensor that several Einsums read from the outermost memory.

    Of Einsums that access an intermediate and of tensors that are not persistent: a store serves no others.
    """
    outermost, workload = result.machine.memories[0].name, result.workload
    chained = {e.name for e in workload.einsums if not set(workload.intermediates).isdisjoint(e.tensors)}
    readers = {name: users for name, users in workload.consumers.items() if not workload.tensor(name).persistent}
    read: dict[str, dict[str, int]] = {}
    for one in result.cost.actions:
        if one.component != outermost or one.action != "read" or one.tensor is None or not one.bits:
            continue
        if one.einsum in chained and one.einsum in readers.get(one.tensor, ()):
            mine = read.setdefault(one.tensor, {})
            mine[one.einsum] = mine.get(one.einsum, 0) + one.bits
    return {
        tensor: (tuple(bits), sum(bits.values()) - max(bits.values())) for tensor, bits in read.items() if len(bits) > 1
    }


def read_for_each(result: Result) -> str:
    """Which tensors are read several times and what tries to do without, in a sentence; empty if stores may be shared
    already, or if it is little."""
    found = rereads(result) if result.mapspace.stores == "own" else {}
    traffic = result.cost.traffic(result.machine.memories[0].name)
    if not found or sum(bits for _, bits in found.values()) < LEAST * traffic:
        return ""
    told = []
    for tensor, (readers, _) in sorted(found.items(), key=lambda item: -item[1][1])[:LISTED]:
        more = f" and {len(readers) - READERS} more" if len(readers) > READERS else ""
        told.append(f"{called(result.workload, tensor)} by {', '.join(readers[:READERS])}{more}")
    rest = f", and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return (
        f"read from {result.machine.memories[0].name} more than once: {', '.join(told)}{rest}; `--stores shared` also "
        "tries one store for several readers (docs/mapspace.md)"
    )

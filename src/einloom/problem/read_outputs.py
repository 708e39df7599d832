"""Outputs that an Einsum reads, too: they are backed by the memory where they end, so that nobody is fused over them.

Comes in: a workload and a machine. Goes out: a sentence for each such output, with the copy that leaves the choice
(docs/model/not-modelled.md).
"""

from __future__ import annotations

from ..machine.levels import Machine
from ..workload.einsum import Workload


def read_outputs(workload: Workload, machine: Machine) -> tuple[str, ...]:
    """A note for each output that an Einsum writes and another than a copy reads, on a machine with inner memories."""
    if len(machine.memories) < 2:
        return ()
    found = []
    for tensor in workload.outputs:
        writer = workload.producers.get(tensor)
        readers = [e.name for e in workload.einsums if e.kind != "copy" and tensor in [a.tensor for a in e.inputs]]
        if writer is None or not readers:
            continue
        are = "reads" if len(readers) == 1 else "read"
        found.append(
            f"{', '.join(readers)} {are} the output {tensor}, which is backed by the memory where it ends, and never "
            f"fused; with a copy as the output instead{_copy(workload, writer, tensor)} it may be, and may cost less "
            "(docs/model/not-modelled.md)"
        )
    return tuple(found)


def _copy(workload: Workload, writer: str, tensor: str) -> str:
    """The Einsum that copies a tensor, where one with the indices of its writer does."""
    output = workload.einsum(writer).output
    if output.view or not all(index.simple for index in output.indices):
        return ""
    free = f"{tensor}_out"
    while free in workload.position or any(free == one.name for one in workload.tensors):
        free += "_"
    ranks = ",".join(map(str, output.indices))
    return f" ({free}[{ranks}] = copy {tensor}[{ranks}])"

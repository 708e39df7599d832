"""Padding as part of the tensors: what reads outside of a tensor reads a rim of it instead.

A workload with padded windows comes in, one without goes out, with the same operations and, if the rim holds what
padding stands for (zero, of a maximum the least number), the same results. Then rule 11 of the space bars
no spatial loop. What it costs: the rim is stored and moved, and is in the outermost memory from the
start, so a tensor that is written by the cascade is backed there (`initial`).
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import SpecError
from ...workload.build import build_workload
from ...workload.einsum import Access, Workload


def stored_padding(workload: Workload) -> Workload:
    """The workload with a rim around each tensor of which windows reach outside.

    >>> from einloom.zoo.workload_by_name import load_workload
    >>> made = stored_padding(load_workload("mobilenet-block"))
    >>> str(made.einsum("E1").output), str(made.einsum("D1").inputs[0]), made.tensor("E1").shape
    ('E1[b,p+1,q+1]', 'E1[b,p+r,q+s]', (192, 30, 30))

    Raises SpecError for a workload without padding, and where a padded tensor is read under other ranks.
    """
    rims = {t.name: rim for t in workload.tensors if any(map(any, rim := _rim(workload, t.name)))}
    if not rims:
        raise SpecError(f"stored_padding: no window of {workload.name} reaches outside of what it reads")
    viewed = sorted({a.tensor for e in workload.einsums for a in e.accesses if a.view} & rims.keys())
    if viewed:
        raise SpecError(f"stored_padding: {viewed[0]} is read under other ranks, which have no place for a rim")

    def shifted(access: Access) -> Access:
        rim = rims.get(access.tensor, [(0, 0)] * len(access.indices))
        moved = (replace(i, constant=i.constant + low) for i, (low, _) in zip(access.indices, rim, strict=True))
        return replace(access, indices=tuple(moved))

    einsums = [replace(e, output=shifted(e.output), inputs=tuple(map(shifted, e.inputs))) for e in workload.einsums]
    written = {e.output.tensor for e in workload.einsums}
    shapes = {}
    for t in workload.tensors:
        rim = rims.get(t.name, [(0, 0)] * len(t.shape))
        shapes[t.name] = tuple(n + low + high for n, (low, high) in zip(t.shape, rim, strict=True))
    return build_workload(
        f"{workload.name} (stored padding)",
        einsums,
        workload.extents,
        bits={t.name: t.bits for t in workload.tensors},
        shapes=shapes,
        outputs=workload.outputs,
        persistent=[t.name for t in workload.tensors if t.persistent],
        initial=[t.name for t in workload.tensors if t.initial or (t.name in rims and t.name in written)],
        repeat=workload.repeat,
        facts=workload.facts,
        absorbed=workload.absorbed,
        views=workload.views,
    )


def _rim(workload: Workload, tensor: str) -> list[tuple[int, int]]:
    """How far windows reach outside of each rank, at its beginning and at its end."""
    found = [(0, 0)] * len(workload.tensor(tensor).shape)
    for access in (a for e in workload.einsums for a in e.inputs if a.tensor == tensor and not a.view):
        reach = zip(found, access.indices, workload.shape(access), strict=True)
        found = [
            (max(low, -i.constant), max(high, i.constant + i.extent(workload.extents) - size))
            for (low, high), i, size in reach
        ]
    return found

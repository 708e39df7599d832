"""Where a cascade can be taken apart: between Einsums that only one intermediate passes.

Comes in: a workload. Goes out: the places before which a segment begins, with the tensor that enters it.
"""

from __future__ import annotations

from typing import NamedTuple

from ....workload.einsum import Workload

SHORTEST = 6  # Einsums of a segment; shorter ones say little about the cascade


class CutPoint(NamedTuple):
    """position: of the first Einsum behind it. tensor: the intermediate that passes."""

    position: int
    tensor: str


def cuts(workload: Workload, shortest: int = SHORTEST) -> list[CutPoint]:
    """Cuts that leave so many Einsums in each segment, the last one as late as possible.

    A tensor passes one of them at most, and the Einsums behind a cut access it before the next one.
    """
    found: list[CutPoint] = []
    end = len(workload.einsums)
    for cut in reversed(_places(workload)):
        passes = found and found[0].tensor == cut.tensor
        if min(cut.position, end - cut.position) >= shortest and not passes and _accessed(workload, cut, end):
            found.insert(0, cut)
            end = cut.position
    return found


def _places(workload: Workload) -> list[CutPoint]:
    """Every place that one intermediate alone passes, if it is no persistent one."""
    place, passing = workload.position, dict[int, list[str]]()
    for tensor in workload.intermediates:
        written, read = place[workload.producers[tensor]], place[workload.consumers[tensor][-1]]
        for position in range(written + 1, read + 1):
            passing.setdefault(position, []).append(tensor)
    alone = ((position, tensors[0]) for position, tensors in sorted(passing.items()) if len(tensors) == 1)
    return [CutPoint(position, tensor) for position, tensor in alone if not workload.tensor(tensor).persistent]


def _accessed(workload: Workload, cut: CutPoint, end: int) -> bool:
    return any(cut.tensor in einsum.tensors for einsum in workload.einsums[cut.position : end])

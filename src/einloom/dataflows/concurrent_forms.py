"""A sequential tree with one of its splits turned into one whose branches run at the same time.

Comes in: a mapping and stages of Einsums (a dataflow's binding). Goes out: every tree that differs from it in the kind
of one split alone, legal or not. What it then costs is for `cost.evaluate` to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..dataclass import dataclass
from ..machine.levels import Machine
from ..mapping.tree import Mapping, Nest, Split, einsums_below

Stages = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class ConcurrentForm:
    """A tree with one concurrent split of so many `branches`; place: ``shared``, ``@ unit`` or ``@ AXIS``."""

    mapping: Mapping
    place: str
    branches: int


def concurrent_forms(mapping: Mapping, machine: Machine, stages: Stages) -> Iterator[ConcurrentForm]:
    """The trees in which one split has the `stages` as branches: shared, @ unit, and @ every axis.

    Branches of the sequential split that belong to one stage become one branch, sequential inside. Stages that the
    split does not part stay together. A split that holds fewer than two of the groups so found is left as it is.
    """
    for spot in ("shared", "unit", *machine.axes):
        for nest, branches in _forms(mapping.nest, spot, stages):
            yield ConcurrentForm(Mapping(nest), spot if spot == "shared" else f"@ {spot}", branches)


def _forms(nest: Nest, spot: str, stages: Stages) -> Iterator[tuple[Nest, int]]:
    head, split = nest[:-1], nest[-1]
    if not isinstance(split, Split):
        return
    branches = grouped(split.branches, stages)
    if len(branches) > 1:
        yield (*head, Split("pipelined", branches, spot)), len(branches)
    for i, branch in enumerate(split.branches):
        for form, parted in _forms(branch, spot, stages):
            yield (*head, replace(split, branches=(*split.branches[:i], form, *split.branches[i + 1 :]))), parted


def grouped(branches: Sequence[Nest], stages: Stages) -> tuple[Nest, ...]:
    """`branches` of a sequential split, one for each stage or for several that a branch has in common."""
    groups: list[list[Nest]] = []
    reach = -1
    for branch in branches:
        found = {i for i, stage in enumerate(stages) for einsum in einsums_below(branch) if einsum in stage}
        if groups and found and min(found) <= reach:
            groups[-1].append(branch)
        else:
            groups.append([branch])
        reach = max(reach, *found) if found else reach
    return tuple(group[0] if len(group) == 1 else (Split("sequential", tuple(group)),) for group in groups)

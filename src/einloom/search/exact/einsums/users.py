"""Who shares tensors with whom: what links Einsums so that they may be fused, and what several of them may contest.

Comes in: a cascade and where its inputs and outputs are backed. Goes out: answers about its tensors by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Literal

from ....machine.levels import Machine
from ....once import once_each
from ....workload.einsum import Workload
from .holds import homes

Part = Literal["fills", "keeps", "ends"]  # in a store for several readers: the first, one between, the last


def is_shared(workload: Workload, tensor: str) -> bool:
    """True if more than one Einsum accesses the tensor."""
    return len(workload.consumers[tensor]) + len(workload.writers.get(tensor, ())) > 1


class Users:
    """The tensors of one cascade on one machine. free: its Einsums run in any order that their data allows. lending: a
    store may serve several readers."""

    def __init__(self, workload: Workload, machine: Machine, free: bool = False, lending: bool = False) -> None:
        self.workload = workload
        self.machine = machine
        self.free = free
        self.lending = lending

    @cached_property
    def homes(self) -> Mapping[str, Mapping[str, int | None]]:
        """Per Einsum the memories that back inputs and outputs of the cascade (`held.homes`)."""
        return {einsum.name: homes(self.workload, self.machine, einsum.name) for einsum in self.workload.einsums}

    @cached_property
    def linking(self) -> frozenset[str]:
        """The tensors that pass from one Einsum to another and may stay on chip.

        An output that is also read, or an initial tensor, links Einsums only if an inner memory backs it.
        """
        producers, ends = self.workload.producers, frozenset(self.workload.ends)
        return frozenset(
            t for t in self.workload.intermediates if t not in ends or self.homes[producers[t]][t] not in (0, None)
        )

    @cached_property
    def away(self) -> frozenset[str]:
        """Inputs and outputs of the cascade that an inner memory backs."""
        return frozenset(t for found in self.homes.values() for t, home in found.items() if home)

    def parts(self, position: int, tensor: str) -> tuple[Part, ...]:
        """The parts that the Einsum at `position` may have in a store of the tensor that serves several readers; in
        free order all, and the join tells who comes first."""
        mine = self._plain(position, tensor)
        if not self.lending or mine is None or self.homes[self.workload.einsums[position].name].get(tensor, 0) != 0:
            return ()
        alike = [i for i in self._places[tensor] if self._plain(i, tensor) == mine]
        if self.free and len(alike) > 1:
            return ("fills", "keeps", "ends")
        found: list[Part] = []
        if alike[-1] != position:
            found.append("fills")
        if alike[0] != position:
            found += ["keeps", "ends"] if alike[-1] != position else ["ends"]
        return tuple(found)

    def _plain(self, position: int, tensor: str) -> tuple[int, ...] | None:
        """The extents of the tensor's ranks where each is one variable of its own of an Einsum that reads it; None
        where that is not so, and for what no store may serve several readers of (rule 8)."""
        einsum = self.workload.einsums[position]
        access = einsum.access(tensor)
        if einsum.output.tensor == tensor or einsum.kind == "copy" or self.workload.tensor(tensor).persistent:
            return None
        if tensor in self.workload.parted:
            return None
        if not all(index.simple for index in access.indices) or len(set(access.variables)) < len(access.indices):
            return None
        return tuple(self.workload.extents[index.variables[0]] for index in access.indices)

    def first(self, tensor: str) -> str:
        """The first Einsum that accesses the tensor; a tile that several share is as wide as this one has it."""
        return self.workload.producers.get(tensor) or self.workload.consumers[tensor][0]

    @once_each
    def span(self, tensor: str) -> int:
        """Elements of the tensor that its users reach, rank by rank from the first to the last position of any: what a
        tile has that no loop cuts. All along the ranks that views do not have in common with it."""
        places, shape = self._places[tensor], self.workload.tensor(tensor).shape
        several = len(places) > 1 and tensor in self.workload.viewed
        cut = self.workload.parted[tensor] if several else frozenset[int]()
        ranks = range(len(shape if several else self.workload.einsums[places[0]].access(tensor).indices))
        return prod(shape[r] if r in cut else self._reach(tensor, r) for r in ranks)

    def _reach(self, tensor: str, rank: int) -> int:
        einsums = [self.workload.einsums[i] for i in self._places[tensor]]
        extents, size = self.workload.extents, self.workload.shape(einsums[0].access(tensor))[rank]
        indices = [einsum.access(tensor).indices[rank] for einsum in einsums]
        if all(index.simple for index in indices) and self.workload.tied(tensor, rank):
            return extents[indices[0].variables[0]]
        low = min(max(0, index.constant) for index in indices)
        high = max(min(size, index.constant + index.extent(extents)) for index in indices)
        return max(0, high - low)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Tensor -> places of the Einsums that access it, in program order."""
        found: dict[str, list[int]] = {}
        for i, einsum in enumerate(self.workload.einsums):
            for tensor in einsum.tensors:
                found.setdefault(tensor, []).append(i)
        return found

    @cached_property
    def _links(self) -> list[int]:
        """For every Einsum but the last the number of linking tensors that pass from it or before it to a later one."""
        steps = [0] * (len(self.workload.einsums) + 1)
        for tensor in self.linking:
            steps[self._places[tensor][0]] += 1
            steps[self._places[tensor][-1]] -= 1
        links = 0
        return [links := links + step for step in steps[:-1]]

    @property
    def any_contested(self) -> bool:
        """True if some tensor is `contested`: members of a group may keep it each for itself, where no store could keep
        it for one of several Einsums one after the other."""
        shared = (t for t, places in self._places.items() if len(places) > 1)
        return any(self.contested(i, t) for t in shared for i in self._places[t])

    def contested(self, position: int, tensor: str) -> bool:
        """True if the Einsum at `position` and another one that accesses the tensor may stand below common loops that
        other tensors give the reason for (rule 7): each two neighbours from one to the other are linked by one; in free
        order, each of both is linked to some Einsum by one."""
        places = self._places[tensor]
        if self.free:
            others = any(self._linked(i, tensor) for i in places if i != position)
            return others and self._linked(position, tensor)
        span = range(places[0], places[-1]) if tensor in self.linking else range(0)
        at = places.index(position)
        ways = pairwise(places[max(0, at - 1) : at + 2])  # from the user before and to the one after
        return any(all(self._links[i] > (i in span) for i in range(a, b)) for a, b in ways)

    def _linked(self, position: int, tensor: str) -> bool:
        """True if the Einsum accesses a linking tensor other than this one."""
        return any(t in self.linking for t in self.workload.einsums[position].tensors if t != tensor)

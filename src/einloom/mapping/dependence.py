"""Who needs what when: loops against extents, producers against consumers, windows against what stores keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..workload.einsum import Workload
from .extents import Cuts, addressed_paths, derived_cuts, largest_extents, shared_length, tile_of, windows
from .text import describe
from .tree import Loop, Mapping, Node, Store

LARGEST_CHAIN = 1_000_000


def dependence_problems(workload: Workload, mapping: Mapping) -> Iterator[str]:
    """Reasons about extents, fusion, unfinished reductions and recomputation. The tree's layout must be sound."""
    tree = _Tree(workload, mapping)
    oversized = tuple(tree.oversized_chains())
    if oversized:
        yield from oversized
        return
    for einsum in tree.paths:
        yield from _extent_problems(tree, einsum)
        yield from _repeated(tree, einsum)
    for tensor in (t.name for t in workload.tensors if t.name in workload.producers):
        yield from _unfinished_in_store(tree, tensor)
        for consumer in workload.consumers[tensor]:
            yield from _untied(tree, tensor, consumer)
        yield from _dropped(tree, tensor)


@dataclass(frozen=True)
class _Tree:
    """A mapping with what all questions here share: its paths and derived cuts."""

    workload: Workload
    mapping: Mapping

    @cached_property
    def paths(self) -> dict[str, tuple[Node, ...]]:
        return {einsum: tuple(node for _, node in steps) for einsum, steps in self._addressed.items()}

    @cached_property
    def _addressed(self) -> dict[str, tuple[tuple[tuple[int, ...], Node], ...]]:
        return addressed_paths(self.mapping.nest)

    @cached_property
    def cuts(self) -> Cuts:
        return derived_cuts(self.workload, self.mapping)

    def shared(self, first: str, second: str) -> int:
        """Number of leading nodes that the paths of two Einsums share."""
        return shared_length(self._addressed[first], self._addressed[second])

    def loops(self, einsum: str, stop: int | None = None) -> list[tuple[int, Loop]]:
        """(index, loop) of the loops of more than one trip among the first `stop` nodes of the path."""
        steps = self.paths[einsum][:stop]
        return [(i, n) for i, n in enumerate(steps) if isinstance(n, Loop) and n.trips > 1]

    def backing(self, einsum: str, tensor: str) -> int | None:
        """Index of the backing store of `tensor` in the path of `einsum`."""
        steps = self.paths[einsum]
        return next((i for i, n in enumerate(steps) if isinstance(n, Store) and tensor in n.tensors), None)

    def oversized_chains(self) -> Iterator[str]:
        """Chains of loops too long to reason about; a legal one has about as many trips as its variable values."""
        for einsum in self.paths:
            for variable in self.workload.einsum(einsum).variables:
                trips = prod(loop.trips for _, loop in self.loops(einsum) if loop.variable(einsum) == variable)
                if trips > max(LARGEST_CHAIN, 16 * max(self.workload.extents.values())):
                    size = self.workload.extents[variable]
                    yield f"{einsum}: the loops of {variable} make {trips} trips, it has {size} values"


def _extent_problems(tree: _Tree, einsum: str) -> Iterator[str]:
    """Trips fit extents and tiles, and every variable reaches extent 1 at the leaf."""
    steps = tree.paths[einsum]
    variables = tree.workload.einsum(einsum).variables
    below = largest_extents(tree.workload, tree.mapping, tree.cuts, einsum)
    for i, node in enumerate(steps):
        v = node.variable(einsum) if isinstance(node, Loop) else None
        if not isinstance(node, Loop) or v is None:
            continue
        if (einsum, i) in tree.cuts and windows(tree.workload, tree.mapping, einsum, i):
            continue  # derived from the consumers: the loop's numbers speak of them
        extent = below[i - 1][v] if i else tree.workload.extents[v]
        tile = tile_of(node, extent)
        if node.trips != -(-extent // tile):
            yield (
                f"{einsum}: '{describe(node)}': {v} has extent {extent} here, so tiles of {tile} need "
                f"{-(-extent // tile)} trips, not {node.trips}"
            )
    for v in variables:
        if below[-1][v] != 1:
            yield f"{einsum}: {v} still has extent {below[-1][v]} at the leaf; loops must bring it to 1"


def _repeated(tree: _Tree, einsum: str) -> Iterator[str]:
    for _, loop in tree.loops(einsum):
        if loop.variable(einsum) is None:
            said = describe(loop)
            yield f"recomputation: Einsum {einsum} runs {loop.trips} times under '{said}', which does not bind it"


def _untied(tree: _Tree, tensor: str, consumer: str) -> Iterator[str]:
    """Loops that producer and consumer share must iterate the same rank of the tensor, for both alike."""
    producer = tree.workload.producers[tensor]
    output = tree.workload.einsum(producer).output
    access = tree.workload.einsum(consumer).access(tensor)
    for _, loop in tree.loops(producer, tree.shared(producer, consumer)):
        u, v = loop.variable(producer), loop.variable(consumer)
        if u is None or v is None:
            continue
        rank = output.rank_of(u)
        said = f"'{describe(loop)}' stands above {producer} and {consumer}, which reads {tensor}"
        if rank is None:
            yield f"unfinished reduction: {said}, but {producer} still reduces {u} there"
        elif not output.indices[rank].simple:
            yield f"{said}, but {producer} writes {tensor} at {output.indices[rank]}, not at a bare variable"
        elif v not in access.indices[rank].variables:
            other = access.rank_of(v)
            where = f"rank {other}" if other is not None else "no rank"
            yield f"{said}: {producer}.{u} indexes its rank {rank}, {consumer}.{v} {where} of it"


def _unfinished_in_store(tree: _Tree, tensor: str) -> Iterator[str]:
    """A backing store below a loop that its producer reduces would lose partial results."""
    producer = tree.workload.producers[tensor]
    backing = tree.backing(producer, tensor)
    kept = tree.workload.einsum(producer).output.variables
    for _, loop in tree.loops(producer, backing or 0):
        u = loop.variable(producer)
        if u is not None and u not in kept:
            memory = tree.paths[producer][backing or 0]
            assert isinstance(memory, Store)
            yield (
                f"unfinished reduction: '{describe(loop)}' stands above the backing store of {tensor} in "
                f"{memory.memory}, but {producer} reduces {u}"
            )


def _dropped(tree: _Tree, tensor: str) -> Iterator[str]:
    """Elements that a consumer needs again after the backing store dropped them, or from another instance.

    Only the innermost temporal loop above the store (one trip does not count) keeps the overlap with the window before.
    """
    producer = tree.workload.producers[tensor]
    backing = tree.backing(producer, tensor)
    loops = tree.loops(producer, backing or 0)
    sliding = max((i for i, loop in loops if loop.axis is None), default=None)
    for i, loop in loops:
        if i == sliding or (producer, i) not in tree.cuts:
            continue
        ends = tree.cuts[producer, i]
        for consumer, spans in windows(tree.workload, tree.mapping, producer, i):
            again = [
                ends[n - 1] - max(spans[n][0], 0)
                for n in range(1, len(spans))
                if n % loop.trips and spans[n][1] > spans[n][0]
            ]
            most = max(again, default=0)
            if most > 0:
                kind = "dropped between iterations" if loop.axis is None else "held by other instances"
                yield (
                    f"recomputation: {consumer} needs {most} positions of {tensor} again that were {kind} of "
                    f"'{describe(loop)}' above its backing store"
                )

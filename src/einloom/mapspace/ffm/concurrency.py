"""Rule 13: which splits may run at the same time, and every tree in which some do.

Comes in: a mapping. Goes out: why its concurrent splits are outside the space (docs/mapspace.md), or, from a sequential
mapping, all mappings that differ from it in concurrent splits alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Table
from functools import partial
from itertools import combinations, product

from ...machine.levels import Machine
from ...mapping.extents import Address, Trail, rewritten
from ...mapping.legality.concurrency import axis_of, concurrent, has_concurrent, title
from ...mapping.legality.placement import visible_memories
from ...mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store, einsums_below, every_node, leaves
from ...workload.einsum import Workload
from ..space import Mapspace
from .shares import every_share, share_reasons

Where = tuple[str, tuple[int, ...]]


def group_reasons(workload: Workload, machine: Machine, mapspace: Mapspace, nest: Nest) -> Iterator[str]:
    """Every reason why a concurrent split of `nest`, the whole tree, is outside the space."""
    for _, split, trail in splits(nest):
        above = tuple(node for _, node in trail)
        yield from _nested(split)
        if concurrent(split) and not mapspace.places:
            yield f"rule 1: a {split.kind} split"
        elif concurrent(split):
            yield from _kind(machine, mapspace, split)
            yield from _branches(mapspace, split)
            yield from _loops(workload, split, above)
            if not any(isinstance(node, Loop) and node.axis is not None for node in above):
                for leaf in leaves((split,)):
                    yield from _kept(workload, machine, split, above, leaf)
    if mapspace.places and has_concurrent(nest):
        for node in every_node(nest):
            if isinstance(node, Store) and node.slots is not None:
                yield f"rule 13: store {node.memory} says how many slots it has"


def grouped_forms(mapping: Mapping, places: tuple[str, ...], axes: Table[str, int]) -> Iterator[Mapping]:
    """The mappings in which one or more splits below a loop, of single Einsums, are pipelined in one of `places`.

    axes: instances by name, for place ``axis``: each of them, shared out in every way.
    """
    found = [
        (address, len(split.branches))
        for address, split, above in splits(mapping.nest)
        if any(isinstance(node, Loop) for _, node in above) and _single(split.branches)
    ]
    for count in range(1, len(found) + 1):
        for chosen in combinations(found, count):
            for where in product(*(tuple(_wheres(places, axes, branches)) for _, branches in chosen)):
                turned = {address: one for (address, _), one in zip(chosen, where, strict=True)}
                yield Mapping(rewritten(mapping.nest, partial(_turned, turned)))


def _wheres(places: tuple[str, ...], axes: Table[str, int], branches: int) -> Iterator[Where]:
    for place in places:
        if place == "axis":
            yield from ((name, given) for name, size in axes.items() for given in every_share(size, branches))
        else:
            yield place, ()


def _single(branches: tuple[Nest, ...]) -> bool:
    return all(len(einsums_below(branch)) == 1 for branch in branches)


def _turned(where: Table[Address, Where], address: Address, node: Node) -> Nest:
    """The node, pipelined if it is a split that says where."""
    if isinstance(node, Split) and address in where:
        return (Split("pipelined", node.branches, *where[address]),)
    return (node,)


def splits(nest: Nest, prefix: Address = (), above: Trail = ()) -> Iterator[tuple[Address, Split, Trail]]:
    """Every split with its address, and the stores and loops above it with theirs."""
    for i, node in enumerate(nest):
        address = (*prefix, i)
        if isinstance(node, Split):
            yield address, node, above
            for j, branch in enumerate(node.branches):
                yield from splits(branch, (*address, j), above)
        else:
            above = (*above, (address, node))


def _kind(machine: Machine, mapspace: Mapspace, split: Split) -> Iterator[str]:
    place = split.where if axis_of(split) is None else "axis"
    if split.kind != "pipelined" or place not in mapspace.places:
        yield f"rule 13: {title(split)}, where only pipelines on {' or '.join(mapspace.places)} may be"
    elif place == "axis":
        yield from share_reasons(machine, split)


def _branches(mapspace: Mapspace, split: Split) -> Iterator[str]:
    if len(split.branches) > mapspace.max_group:
        yield f"rule 13: {title(split)} has {len(split.branches)} branches, at most {mapspace.max_group} are allowed"
    if not _single(split.branches):
        yield f"rule 13: a branch of {title(split)} has several Einsums"


def _nested(split: Split) -> Iterator[str]:
    for branch in split.branches:
        inner = branch[-1]
        if isinstance(inner, Split) and concurrent(inner) and not any(isinstance(node, Loop) for node in branch):
            yield f"rule 13: no loop stands between {title(inner)} and the split above it"


def _loops(workload: Workload, split: Split, above: Nest) -> Iterator[str]:
    loops = [node for node in above if isinstance(node, Loop)]
    if not any(loop.axis is None for loop in loops):
        yield f"rule 13: no temporal loop stands above {title(split)}"
    if any(loop.axis is not None for loop in loops):
        yield f"rule 13: a spatial loop stands above {title(split)}"
    for name in einsums_below((split,)):
        for access in workload.einsum(name).accesses:
            windows = {v for index in access.indices if not index.simple for v in index.variables}
            for loop in loops:
                if loop.variable(name) in windows:
                    yield f"rule 13: a loop above {title(split)} moves windows of {access.tensor} that {name} accesses"


def _kept(workload: Workload, machine: Machine, split: Split, above: Nest, leaf: Compute) -> Iterator[str]:
    """What a store below the split would keep from token to token, though no store above the loop could."""
    einsum = workload.einsum(leaf.einsum)
    inner = next((node for node in reversed(above) if isinstance(node, Loop)), None)
    variable = None if inner is None else inner.variable(leaf.einsum)
    lacking = [a.tensor for a in einsum.accesses if variable is None or a.rank_of(variable) is None]
    stores = [node for node in above if isinstance(node, Store) and set(node.tensors) & set(einsum.tensors)]
    places = [machine.position[s.memory] for s in stores if s.memory != machine.memories[0].name]
    seen = visible_memories(machine, leaf.unit)
    if inner is not None and lacking and (not places or machine.position[seen[-1].name] > min(places)):
        yield (
            f"rule 13: {lacking[0]} of {leaf.einsum} does not move with the innermost loop above {title(split)}, and "
            f"{leaf.einsum} sees memories further in than its stores above"
        )

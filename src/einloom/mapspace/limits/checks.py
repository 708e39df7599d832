"""Rule 12 of the space `ffm`: which limits of the mapspace a path breaks. Also what they leave of holds and spreads.

The functions that answer for a memory or an axis are shared by the definition (`ffm.outside`), the enumeration and the
exact search, as `Machine.must_hold` and `may_hold` are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from ...machine.levels import Machine, Memory
from ...mapping.legality.concurrency import concurrent
from ...mapping.legality.placement import visible_memories
from ...mapping.tree import Compute, Loop, Node, Split, Store, describe
from ...workload.einsum import Workload
from ...workload.selectors import select
from .data import AxisLimit, Limits, LoopLimit, Numbers, TileLimit, concerns


def must_hold(
    limits: Limits, machine: Machine, memory: Memory, workload: Workload, einsum: str, above: Collection[str]
) -> frozenset[str]:
    """Tensors of `einsum` that `memory` must hold: the machine's and those that a limit keeps there."""
    found = machine.must_hold(memory, workload, einsum, above)
    for limit in limits.holds:
        if limit.rule == "keep" and limit.memory == memory.name and concerns(limit.einsums, einsum):
            found |= select(limit.tensors, workload, einsum, above)
    return found


def may_hold(
    limits: Limits, machine: Machine, memory: Memory, workload: Workload, einsum: str, above: Collection[str]
) -> frozenset[str]:
    """Tensors of `einsum` that `memory` may hold: what the machine allows, less what limits bypass or leave out."""
    found = machine.may_hold(memory, workload, einsum, above)
    for limit in limits.holds:
        if limit.memory == memory.name and concerns(limit.einsums, einsum):
            chosen = select(limit.tensors, workload, einsum, above)
            if limit.rule == "may_keep":
                found &= chosen
            elif limit.rule == "bypass":
                found -= chosen
    return found


def may_back(limits: Limits, memory: Memory, workload: Workload, einsum: str) -> frozenset[str]:
    """Tensors of `einsum` that limits let `memory` back: all but intermediates that belong elsewhere."""
    found = frozenset(workload.einsum(einsum).tensors)
    for limit in limits.backs:
        if memory.name not in limit.memories:
            found -= select(limit.tensors, workload, einsum) & frozenset(workload.intermediates)
    return found


def share_allowed(limits: Limits, einsum: str, axis: str, variable: str, instances: int) -> bool:
    """True if `variable` of `einsum` may take so many instances of `axis`."""
    mine = (x for x in limits.axes if x.axis == axis and variable in x.variables and concerns(x.einsums, einsum))
    return all(limit.instances.allow(instances) for limit in mine)


def total_allowed(limits: Limits, einsum: str, axis: str, instances: int) -> bool:
    """True if the loops of `einsum` on `axis` may take so many instances together."""
    mine = (x for x in limits.axes if x.axis == axis and not x.variables and concerns(x.einsums, einsum))
    return all(limit.instances.allow(instances) for limit in mine)


def fused_trips(limits: Limits, workload: Workload, einsum: str, tensor: str, variable: str) -> tuple[Numbers, ...]:
    """What limits say of the trips of fused loops of `einsum` over `variable` above an intermediate."""
    mine = (x for x in limits.loops if variable in x.variables and concerns(x.einsums, einsum))
    return tuple(limit.trips for limit in mine if tensor in select(limit.tensors, workload, einsum))


def limited_variables(limits: Limits, workload: Workload, einsum: str) -> frozenset[str]:
    """Rank variables of `einsum` that some limit names: they may not merge with others."""
    speaking: tuple[LoopLimit | TileLimit | AxisLimit, ...] = (*limits.loops, *limits.tiles, *limits.axes)
    named = {v for limit in speaking if concerns(limit.einsums, einsum) for v in limit.variables}
    return frozenset(named) & frozenset(workload.einsum(einsum).variables)


def unmet(
    workload: Workload,
    machine: Machine,
    limits: Limits,
    einsum: str,
    path: tuple[Node, ...],
    below: Sequence[Mapping[str, int]],
) -> Iterator[str]:
    """Every limit that the path of `einsum` breaks. below: extents of its rank variables under each node."""
    yield from _holds(workload, machine, limits, einsum, path)
    yield from _fetches(workload, limits, einsum, path)
    yield from _loops(workload, machine, limits, einsum, path)
    yield from _tiles(workload, limits, einsum, path, below)
    yield from _axes(workload, machine, limits, einsum, path)


def _holds(workload: Workload, machine: Machine, limits: Limits, einsum: str, path: tuple[Node, ...]) -> Iterator[str]:
    leaf = path[-1]
    seen = visible_memories(machine, leaf.unit if isinstance(leaf, Compute) else None)
    mine = frozenset(workload.einsum(einsum).tensors)
    above: set[str] = set()
    for memory in machine.memories:
        held = {t for n in path if isinstance(n, Store) and n.memory == memory.name for t in n.tensors} & mine
        for limit in limits.holds:
            if limit.memory != memory.name or not concerns(limit.einsums, einsum):
                continue
            chosen = select(limit.tensors, workload, einsum, above)
            missing = chosen - held if limit.rule == "keep" and memory in seen else frozenset()
            extra = held - chosen if limit.rule == "may_keep" else held & chosen if limit.rule == "bypass" else set()
            if missing or extra:
                verb = "lacks" if missing else "holds"
                which = ", ".join(sorted(missing or extra))
                yield f"rule 12: {memory.name} {verb} {which} of {einsum}; asked: {limit}"
        for back in limits.backs:
            backed = (held - above) & select(back.tensors, workload, einsum) & set(workload.intermediates)
            if backed and memory.name not in back.memories:
                yield f"rule 12: {', '.join(sorted(backed))} of {einsum} in {memory.name}; asked: {back}"
        above |= held


def fetched_once(limits: Limits, memory: str, workload: Workload, einsum: str) -> frozenset[str]:
    """Tensors of `einsum` that limits let come to the memory once only."""
    mine = (x for x in limits.holds if x.rule == "once" and x.memory == memory and concerns(x.einsums, einsum))
    return frozenset[str]().union(*(select(limit.tensors, workload, einsum) for limit in mine))


def _fetches(workload: Workload, limits: Limits, einsum: str, path: tuple[Node, ...]) -> Iterator[str]:
    """Stores whose tile comes again: the backing store of a tensor fetches nothing."""
    held: set[str] = set()
    for i, node in enumerate(path):
        if not isinstance(node, Store):
            continue
        asked = fetched_once(limits, node.memory, workload, einsum) & held & set(node.tensors)
        for tensor in sorted(asked):
            for loop in _forgetting(workload, einsum, tensor, path[:i]):
                yield f"rule 12: {tensor} comes to {node.memory} again in '{describe(loop)}' of {einsum}"
        held |= set(node.tensors)


def _forgetting(workload: Workload, einsum: str, tensor: str, above: tuple[Node, ...]) -> Iterator[Loop]:
    """Temporal loops that the tensor lacks and over which a store below `above` does not keep its tile."""
    variables = workload.einsum(einsum).access(tensor).variables
    kept = True
    for node in reversed(above):
        if isinstance(node, Split) and not concurrent(node):
            kept = False
        if not isinstance(node, Loop) or node.axis is not None or node.trips == 1:
            continue
        if (variable := node.variable(einsum)) in variables:
            kept = False
        elif variable is not None and not kept:
            yield node


def _loops(workload: Workload, machine: Machine, limits: Limits, einsum: str, path: tuple[Node, ...]) -> Iterator[str]:
    variables = workload.einsum(einsum).variables
    for limit in limits.loops:
        if not concerns(limit.einsums, einsum):
            continue
        waiting = select(limit.tensors, workload, einsum) & frozenset(workload.intermediates)
        trips = {v: 1 for v in limit.variables if v in variables}
        for node in path:
            if isinstance(node, Loop) and node.axis is None and (v := node.variable(einsum)) in trips:
                trips[str(v)] *= node.trips
            elif isinstance(node, Store) and waiting & set(node.tensors):
                backed, waiting = waiting & set(node.tensors), waiting - set(node.tensors)
                for v, number in trips.items():
                    if node.memory != machine.memories[0].name and not limit.trips.allow(number):
                        names = ", ".join(sorted(backed))
                        yield f"rule 12: {einsum} has {number} trips over {v} above {names}; asked: {limit}"


def _tiles(
    workload: Workload,
    limits: Limits,
    einsum: str,
    path: tuple[Node, ...],
    below: Sequence[Mapping[str, int]],
) -> Iterator[str]:
    for i, node in enumerate(path):
        if not isinstance(node, Store):
            continue
        extents = below[i]
        for limit in limits.tiles:
            if limit.memory != node.memory or not concerns(limit.einsums, einsum):
                continue
            chosen = select(limit.tensors, workload, einsum) & frozenset(node.tensors)
            for t, v in product(sorted(chosen), limit.variables):
                if v in workload.einsum(einsum).access(t).variables and not limit.sizes.allow(extents[v]):
                    yield f"rule 12: {t} in {node.memory} for {einsum} has {v} {extents[v]}; asked: {limit}"


def _axes(workload: Workload, machine: Machine, limits: Limits, einsum: str, path: tuple[Node, ...]) -> Iterator[str]:
    leaf = path[-1]
    if not isinstance(leaf, Compute) or leaf.unit is None or workload.einsum(einsum).kind == "copy":
        return
    for axis in machine.axes:
        if machine.position[axis] > machine.position[leaf.unit]:
            continue
        taken = dict.fromkeys(workload.einsum(einsum).variables, 1)
        for node in path:
            if isinstance(node, Loop) and node.axis == axis and (v := node.variable(einsum)) is not None:
                taken[v] *= node.trips
        shares = all(share_allowed(limits, einsum, axis, v, n) for v, n in taken.items())
        if not shares or not total_allowed(limits, einsum, axis, prod(taken.values())):
            shown = ", ".join(f"{v} {n}" for v, n in taken.items() if n > 1) or "no instances"
            asked = "; ".join(str(x) for x in limits.axes if x.axis == axis and concerns(x.einsums, einsum))
            yield f"rule 12: {einsum} takes {shown} of axis {axis}; asked: {asked}"

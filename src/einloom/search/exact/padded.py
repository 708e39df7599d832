"""Mappings of a workload from those of larger ones: ranks are rounded up, perfect tiles found there, and cut off here.

Comes in: a workload whose ranks have few divisors. Goes out: workloads with ranks rounded up; and a mapping of one of
them with its loops run over the ranks as they are, so that last tiles are smaller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping as Table
from dataclasses import replace
from math import ceil, lcm

from ...machine.levels import Machine
from ...mapping.extents import tile_of
from ...mapping.tree import Loop, Mapping, Nest, Node, Split, einsums_below, every_node
from ...mapspace.limits.data import AxisLimit, Numbers
from ...workload.einsum import Workload

MULTIPLES = (2, 4, 8, 16, 32, 64, 128)
MOST = 4 / 3  # a rank is not rounded up to as much as this many times its extent


def padded(workload: Workload) -> Iterator[Workload]:
    """The workload with its ranks rounded up to a multiple, each result once; ranks that move windows, or of tensors in
    parts or under other ranks, stay as they are."""
    groups = _ranks(workload)
    seen = [workload.sizes]
    for multiple in MULTIPLES:
        wider = {v: -(-extent // multiple) * multiple for v, extent in workload.sizes}
        group = {v: all(wider[u] < MOST * workload.extents[u] for u in same) for same in groups for v in same}
        sizes = tuple((v, wider[v] if group.get(v) else extent) for v, extent in workload.sizes)
        if sizes not in seen:
            seen.append(sizes)
            yield _resized(workload, sizes)


def grown(workload: Workload, wider: Workload) -> Iterator[tuple[str, int]]:
    """The ranks that were rounded up, with their new sizes."""
    yield from ((v, n) for v, n in wider.sizes if n != workload.extents[v])


def on_one_axis(mapping: Mapping, wider: Workload, workload: Workload, machine: Machine) -> tuple[AxisLimit, ...]:
    """Limits that keep each rank which was rounded up on the axis that takes most of it in a mapping, if any does, and
    off all others: below a spatial loop that cuts it unevenly no further one may (rule 2 of `ragged`)."""
    spread: dict[str, Counter[str]] = {v: Counter() for v, _ in grown(workload, wider)}
    for node in every_node(mapping.nest):
        if isinstance(node, Loop) and node.axis is not None:
            for _, v in node.binds:
                if v in spread:
                    spread[v][node.axis] = max(spread[v][node.axis], node.trips)
    kept = {v: max(axes, key=lambda axis: (axes[axis], axis), default=None) for v, axes in spread.items()}
    one = Numbers(values=(1,))
    return tuple(AxisLimit(axis, one, (v,)) for v in spread for axis in machine.axes if axis != kept[v])


def _ranks(workload: Workload) -> list[frozenset[str]]:
    """Variables that are one size, because they index one rank of a tensor; without those that may not change."""
    same = {v: {v} for v in workload.extents}
    fixed: set[str] = set()
    users: dict[tuple[str, int], str] = {}
    for access in (access for einsum in workload.einsums for access in (einsum.output, *einsum.inputs)):
        for rank, index in enumerate(access.indices):
            if not index.simple or access.view or access.tensor in workload.parted:
                fixed.update(index.variables)
                continue
            v = index.variables[0]
            if workload.shape(access)[rank] != workload.extents[v]:
                fixed.add(v)
            merged = same[v] | same[users.setdefault((access.tensor, rank), v)]
            same.update(dict.fromkeys(merged, merged))
    for einsum in workload.einsums:  # a rank that something else reads as a window
        for access in (einsum.output, *einsum.inputs):
            for rank, index in enumerate(access.indices):
                if not index.simple and (access.tensor, rank) in users:
                    fixed.add(users[access.tensor, rank])
    return [group for group in {frozenset(one) for one in same.values()} if not group & fixed]


def _resized(workload: Workload, sizes: tuple[tuple[str, int], ...]) -> Workload:
    """The workload with other sizes of ranks that no window moves."""
    extents, shapes = dict(sizes), {tensor.name: list(tensor.shape) for tensor in workload.tensors}
    for access in (access for einsum in workload.einsums for access in (einsum.output, *einsum.inputs)):
        for rank, index in enumerate(access.indices if not access.view else ()):
            if index.simple and extents[index.variables[0]] != workload.extents[index.variables[0]]:
                shapes[access.tensor][rank] = extents[index.variables[0]]
    tensors = tuple(replace(tensor, shape=tuple(shapes[tensor.name])) for tensor in workload.tensors)
    return replace(workload, sizes=sizes, tensors=tensors)


def clipped(mapping: Mapping, wider: Workload, workload: Workload) -> Mapping:
    """A mapping of `wider`, which has larger ranks, over the ranks of `workload`: no more trips than these take, and of
    the outermost loop over a variable the smallest tile for as many, a multiple of the next tile further in."""
    names = workload.names
    return Mapping(_clipped(mapping.nest, dict.fromkeys(names, wider.extents), dict.fromkeys(names, workload.extents)))


def _clipped(nest: Nest, wide: dict[str, Table[str, int]], true: dict[str, Table[str, int]]) -> Nest:
    """wide, true: per Einsum the extents above the nest, before and after."""
    nodes: list[Node] = []
    for at, node in enumerate(nest):
        if isinstance(node, Split):
            branches = tuple(_clipped(branch, dict(wide), dict(true)) for branch in node.branches)
            nodes.append(replace(node, branches=branches))
        elif isinstance(node, Loop):
            einsum, v = node.binds[0]
            tile, extent = tile_of(node, wide[einsum][v]), true[einsum][v]
            trips = -(-extent // tile)
            inner = lcm(*(_next_tile(nest[at + 1 :], bind, tile) for bind in node.binds))
            kept = min(extent, ceil(ceil(extent / trips) / inner) * inner)
            if trips > 1:
                nodes.append(replace(node, trips=trips, tile=kept))
            for name, mine in node.binds:
                wide[name], true[name] = {**wide[name], mine: tile}, {**true[name], mine: kept}
        else:
            nodes.append(node)
    return tuple(nodes)


def _next_tile(nest: Nest, bind: tuple[str, str], extent: int) -> int:
    """The tile of the next loop that binds a variable of an Einsum; 1 if there is none. extent: above the nest."""
    for node in nest:
        if isinstance(node, Split):
            branch = next((one for one in node.branches if bind[0] in einsums_below(one)), ())
            return _next_tile(branch, bind, extent)
        if isinstance(node, Loop) and bind in node.binds:
            return tile_of(node, extent)
    return 1

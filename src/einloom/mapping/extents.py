"""Addresses, paths and tiles: the words in which the analysis of a tree speaks (`analysed.Analysed`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..workload.einsum import Workload
from .tree import Compute, Loop, Nest, Node, Split, Store

Address = tuple[int, ...]
Trail = tuple[tuple[Address, Node], ...]
Cuts = dict[tuple[str, int], tuple[int, ...]]


def addressed_paths(nest: Nest) -> dict[str, Trail]:
    """For each Einsum the nodes from the root to its leaf, each with its address in the tree.

    Two Einsums share a node exactly if the addresses are equal; nodes that merely look alike have different ones.
    The last leaf wins where an Einsum has several.
    """
    found: dict[str, Trail] = {}

    def walk(nodes: Nest, prefix: Address, above: list[tuple[Address, Node]]) -> None:
        for i, node in enumerate(nodes):
            address = (*prefix, i)
            above.append((address, node))
            if isinstance(node, Compute):
                found[node.einsum] = tuple(above)
            elif isinstance(node, Split):
                for j, branch in enumerate(node.branches):
                    walk(branch, (*address, j), above.copy())

    walk(nest, (), [])
    return found


def outermost_stores(nest: Nest) -> dict[str, tuple[str, tuple[Loop, ...]]]:
    """Tensor -> the memory of its outermost store, and the loops above that."""
    found: dict[str, tuple[str, tuple[Loop, ...]]] = {}
    for steps in addressed_paths(nest).values():
        above: tuple[Loop, ...] = ()
        for _, node in steps:
            if isinstance(node, Loop):
                above = (*above, node)
            elif isinstance(node, Store):
                for tensor in node.tensors:
                    found.setdefault(tensor, (node.memory, above))
    return found


def tile_of(loop: Loop, extent: int) -> int:
    """The extent of a variable below `loop` when it is `extent` above."""
    return loop.tile if loop.tile is not None else -(-extent // max(1, loop.trips))


def tile_below(loop: Loop, extent: int, ends: tuple[int, ...] | None) -> int:
    """The extent of a variable in the largest tile below `loop`. ends: of its iterations, unless it cuts plainly."""
    if ends is None:
        return min(extent, tile_of(loop, extent))
    return max(e - s for s, e in zip((0, *ends), ends, strict=False))


def addresses(nest: Nest, above: Address = ()) -> Iterator[Address]:
    """The address of every node, in the order in which a mapping's text has them, one a line."""
    for i, node in enumerate(nest):
        yield (*above, i)
        if isinstance(node, Split):
            for j, branch in enumerate(node.branches):
                yield from addresses(branch, (*above, i, j))


def rewritten(nest: Nest, made: Callable[[Address, Node], Nest], above: Address = ()) -> Nest:
    """The nest with what `made` makes of each node at its address, a split after its branches."""
    nodes: list[Node] = []
    for i, node in enumerate(nest):
        address = (*above, i)
        if isinstance(node, Split):
            branches = tuple(rewritten(branch, made, (*address, j)) for j, branch in enumerate(node.branches))
            node = replace(node, branches=branches)
        nodes.extend(made(address, node))
    return tuple(nodes)


def edge_tiles(workload: Workload, nest: Nest) -> dict[Address, int]:
    """Address of a loop that does not divide its extent -> what is left for its last tile if all above are full."""
    found: dict[Address, int] = {}
    for einsum, steps in addressed_paths(nest).items():
        extents = dict(workload.extents)
        for address, node in steps:
            if isinstance(node, Loop) and (v := node.variable(einsum)) is not None:
                tile = tile_below(node, extents[v], None)
                last = extents[v] - (node.trips - 1) * tile
                if 0 < last < tile and node.binds[-1][0] == einsum:  # who fills it may cut a window
                    found[address] = last
                extents[v] = tile
    return found

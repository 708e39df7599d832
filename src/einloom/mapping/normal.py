"""The normal form: of all trees that are written differently and mean the same, one."""

from __future__ import annotations

from collections.abc import Mapping as Table

from ..workload.einsum import Workload
from .analysed import Analysed
from .extents import Cuts, tile_of
from .tree import Loop, Mapping, Nest, Node, Split, Store, einsums_behind


def normal_form(mapping: Mapping, workload: Workload) -> Mapping:
    """The same schedule in normal form; the normal form of a normal form is itself.

    Loops of one trip are dropped; adjacent stores of one memory are merged and list their tensors in the workload's
    order; a split with one branch is spliced into its nest; a loop's bindings stand in program order, and its tile is
    left out where it is ceil(extent / trips) for every Einsum. Nested splits and the order of loops stay.
    """
    order = {tensor.name: i for i, tensor in enumerate(workload.tensors)}
    shaped = Mapping(_reshape(mapping.nest, order))
    tree = Analysed(workload, shaped)
    below = {einsum: (workload.extents, *tree.below(einsum)) for einsum in tree.trails}
    return Mapping(_drop_tiles(shaped.nest, 0, below, tree.cuts))


def _reshape(nest: Nest, order: Table[str, int]) -> Nest:
    nodes: list[Node] = []
    for node in nest:
        if isinstance(node, Loop) and node.trips == 1:
            continue
        if isinstance(node, Split):
            branches = tuple(_reshape(branch, order) for branch in node.branches)
            if len(branches) == 1:
                head, *rest = branches[0]
                nodes[-1:] = _merged(nodes[-1:], head, order)
                nodes.extend(rest)
            else:
                nodes.append(Split(node.kind, branches, node.where, node.shares))
        else:
            nodes[-1:] = _merged(nodes[-1:], node, order)
    return tuple(nodes)


def _merged(last: list[Node], node: Node, order: Table[str, int]) -> list[Node]:
    """`last` (at most one node) followed by `node`; two stores that can be one become one."""
    if not isinstance(node, Store):
        return [*last, node]
    before = last[0] if last else None
    tensors = node.tensors
    if isinstance(before, Store) and (before.memory, before.slots) == (node.memory, node.slots):
        tensors, last = (*before.tensors, *tensors), []
    return [*last, Store(node.memory, tuple(sorted(tensors, key=lambda t: order.get(t, len(order)))), node.slots)]


def _drop_tiles(nest: Nest, depth: int, below: dict[str, tuple[Table[str, int], ...]], cuts: Cuts) -> Nest:
    nodes: list[Node] = []
    for i, (node, behind) in enumerate(zip(nest, einsums_behind(nest), strict=True)):
        if isinstance(node, Loop):
            program = {einsum: n for n, einsum in enumerate(behind)}
            binds = tuple(sorted(node.binds, key=lambda bind: program.get(bind[0], len(program))))
            default = Loop(binds, node.trips, None, node.axis)
            known = [(e, v) for e, v in binds if e in below]
            plain = [(e, v) for e, v in known if (e, depth + i) not in cuts]
            above = [below[e][depth + i].get(v, 1) for e, v in plain or known]
            same = all(tile_of(default, extent) == node.tile for extent in above)
            nodes.append(default if same else Loop(binds, node.trips, node.tile, node.axis))
        elif isinstance(node, Split):
            branches = tuple(_drop_tiles(branch, depth + i + 1, below, cuts) for branch in node.branches)
            nodes.append(Split(node.kind, branches, node.where, node.shares))
        else:
            nodes.append(node)
    return tuple(nodes)

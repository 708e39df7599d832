"""Is a tree a schedule at all? `problems` returns every structural reason against it, with numbers.

Comes in: a workload, a machine and any tree. Goes out: reasons, none if the tree is well formed. Capacity is the other
half of legality (cost/evaluate.py). First come names and layout; only a tree that is sound there is asked about stores
and machine limits (placement.py), about branches that run at the same time (concurrency.py) and about loops and fusion
(dependence.py), because those questions need sane paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

from ...machine.levels import Machine
from ...workload.einsum import Workload
from ...workload.parts import is_injective
from ..analysed import Analysed
from ..tree import Compute, Loop, Mapping, Nest, Node, Split, Store, describe, einsums_behind, leaves
from .concurrency import concurrency_problems, split_problems
from .dependence import dependence_problems
from .links import link_problems
from .placement import placement_problems
from .reason import Reason


def problems(workload: Workload, machine: Machine, mapping: Mapping) -> tuple[Reason, ...]:
    """Every structural reason why `mapping` is no legal schedule of `workload` on `machine`; empty if there is none.

    Never raises for an illegal tree. Each reason appears once, with the first node that it is true of.
    """
    return reasons_against(machine, Analysed(workload, mapping))


def reasons_against(machine: Machine, tree: Analysed) -> tuple[Reason, ...]:
    """As `problems`, of a tree that others ask about, too."""
    layout = (*_leaf_problems(tree.workload, tree.mapping), *_nest_problems(tree.workload, machine, tree.mapping.nest))
    if layout:
        return tuple(dict.fromkeys(layout))
    rest = (
        *placement_problems(machine, tree),
        *concurrency_problems(tree.workload, machine, tree.mapping),
        *link_problems(machine, tree),
        *dependence_problems(tree),
    )
    return tuple(dict.fromkeys(rest))


def _leaf_problems(workload: Workload, mapping: Mapping) -> Iterator[Reason]:
    """Every Einsum is one that can be priced and has exactly one leaf; producers stand before their consumers."""
    order = list(leaves(mapping.nest))
    counts = Counter(leaf.einsum for leaf in order)
    first = {leaf.einsum: i for i, leaf in reversed(list(enumerate(order)))}
    for einsum in workload.einsums:
        leaf = order[first[einsum.name]] if einsum.name in first else None
        if einsum.reduction == "online_softmax":
            yield Reason(f"Einsum {einsum.name} reduces by online_softmax, which is not priced yet", leaf)
        if not all(is_injective(index, workload.extents) for index in einsum.output.indices):
            words = f"Einsum {einsum.name} writes {einsum.output}: an output's index must reach each position once"
            yield Reason(words, leaf)
    for einsum in workload.einsums:
        if counts[einsum.name] != 1:
            again = next((leaf for leaf in order[::-1] if leaf.einsum == einsum.name), None)
            missing = mapping.nest[-1] if mapping.nest else None  # where its branch would stand
            yield Reason(f"Einsum {einsum.name} has {counts[einsum.name]} leaves instead of one", again or missing)
    for tensor, writers in workload.writers.items():
        for producer, consumer in product(writers, workload.consumers[tensor]):
            if producer in first and consumer in first and first[producer] > first[consumer]:
                words = f"{consumer} reads {tensor} but stands before its producer {producer}"
                yield Reason(words, order[first[consumer]])


def _nest_problems(workload: Workload, machine: Machine, nest: Nest) -> Iterator[Reason]:
    """Names, numbers and the place of every node of `nest`, branches included."""
    if not nest:
        yield Reason("a nest is empty")
        return
    if not isinstance(nest[-1], Split | Compute):
        yield Reason(f"a nest ends with {_name(nest[-1])}; its last node must be a split or a compute", nest[-1])
    for i, (node, below) in enumerate(zip(nest, einsums_behind(nest), strict=True)):
        if isinstance(node, Split | Compute) and i != len(nest) - 1:
            yield Reason(f"{_name(node)} is not the last node of its nest", node)
        if isinstance(node, Store):
            yield from (Reason(words, node) for words in _store_problems(workload, machine, node, below))
        elif isinstance(node, Loop):
            for words in _loop_reasons(workload, machine, node, below):
                yield Reason(f"'{describe(node)}'{words}", node)
        elif isinstance(node, Compute):
            if node.einsum not in workload.position:
                yield Reason(f"the workload has no Einsum {node.einsum}", node)
            if node.unit is not None and not any(unit.name == node.unit for unit in machine.units):
                yield Reason(f"the machine has no compute unit {node.unit}", node)
        else:
            yield from (Reason(words, node) for words in split_problems(machine, node))
            if not node.branches:
                yield Reason("a split has no branches", node)
            for branch in node.branches:
                yield from _nest_problems(workload, machine, branch)


def _name(node: Node) -> str:
    if isinstance(node, Store):
        return f"store {node.memory}"
    if isinstance(node, Loop):
        return f"'{describe(node)}'"
    return f"compute {node.einsum}" if isinstance(node, Compute) else "a split"


def _store_problems(workload: Workload, machine: Machine, store: Store, below: tuple[str, ...]) -> Iterator[str]:
    if store.memory not in machine.memory_names:
        yield f"the machine has no memory {store.memory}"
    if not store.tensors:
        yield f"store {store.memory} names no tensor"
    if store.slots is not None and store.slots < 1:
        yield f"store {store.memory}: {store.slots} slots; a store needs at least 1"
    used = {t for e in below if e in workload.position for t in workload.einsum(e).tensors}
    for tensor in dict.fromkeys(store.tensors):
        count = store.tensors.count(tensor)
        if tensor not in workload.consumers:
            yield f"the workload has no tensor {tensor}"
        elif tensor not in used:
            yield f"store {store.memory} holds {tensor}, which no Einsum below it accesses"
        if count > 1:
            yield f"store {store.memory} names {tensor} {count} times"


def _loop_reasons(workload: Workload, machine: Machine, loop: Loop, below: tuple[str, ...]) -> Iterator[str]:
    if loop.axis is not None and loop.axis not in machine.axes:
        yield f": the machine has no axis {loop.axis}"
    if loop.trips < 1:
        yield f": {loop.trips} trips; a loop needs at least 1"
    if loop.tile is not None and loop.tile < 1:
        yield f": tile {loop.tile}; a tile needs at least 1"
    sizes = []
    bound: dict[str, list[str]] = {}
    for einsum, variable in loop.binds:
        bound.setdefault(einsum, []).append(variable)
    for einsum, variables in bound.items():
        if len(variables) > 1:
            yield f" binds {len(variables)} variables of {einsum} ({', '.join(variables)}); at most one may be"
        if einsum not in workload.position:
            yield f": the workload has no Einsum {einsum}"
            continue
        if einsum not in below:
            yield f" binds {einsum}, which is not below it"
        for variable in variables:
            if variable not in workload.einsum(einsum).variables:
                yield f": Einsum {einsum} has no rank variable {variable}"
            else:
                sizes.append(workload.extents[variable])
    if not loop.binds:
        yield " binds no Einsum"
    if sizes and loop.trips > max(sizes):
        yield f" has more trips than its variables have values ({max(sizes)})"

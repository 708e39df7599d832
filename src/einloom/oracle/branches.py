"""Branches that run at the same time, as the oracle sees them: what is private to each, what they may not do.

The oracle executes branches one after the other, which is one of the orders that concurrency allows; what forbids other
orders (instances used twice, results passed between parallel branches) is said here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import prod

from ..machine.levels import Fanout, Machine
from ..mapping.tree import Compute, Loop, Nest, Split, Store, einsums_below, leaves
from ..workload.einsum import Workload
from ..workload.parts import not_whole


def private_levels(machine: Machine, split: Split) -> frozenset[str]:
    """Levels of which every branch of the split has instances of its own: those inside the axis that it cuts."""
    for i, level in enumerate(machine.levels):
        if isinstance(level, Fanout) and any(axis.name == split.where for axis in level.axes):
            return frozenset(level.name for level in machine.levels[i + 1 :])
    return frozenset()


def at_once(nest: Nest) -> bool:
    """True if any branches in the nest run at the same time."""
    last = nest[-1]
    return isinstance(last, Split) and (last.kind != "sequential" or any(at_once(branch) for branch in last.branches))


def flat(nest: Nest) -> bool:
    """True if a stage is itself a pipeline, without a loop between: then its stages are stages of the outer one."""
    loops = [node for node in nest if isinstance(node, Loop) and node.trips > 1]
    last = nest[-1]
    return isinstance(last, Split) and last.kind == "pipelined" and not loops


def taken(nest: Nest, axis: str) -> int:
    """Instances along `axis` that a nest takes: its loops multiply, branches with a share each add."""
    head, last = nest[:-1], nest[-1]
    count = prod(node.trips for node in head if isinstance(node, Loop) and node.axis == axis)
    if isinstance(last, Split):
        parts = [taken(branch, axis) for branch in last.branches]
        if last.kind != "sequential" and last.where == axis:
            parts = [sum(last.shares or parts)]
        count *= max(parts)
    return count


def first_of_shares(split: Split) -> tuple[int, ...]:
    """Per branch of a concurrent split the first instance of its share, counted from the first of the split.

    Shares lie next to each other, in the order of the branches.
    """
    parts = split.shares or tuple(taken(branch, split.where or "") for branch in split.branches)
    return tuple(sum(parts[:i]) for i in range(len(split.branches)))


def shared_out(nest: Nest) -> frozenset[str]:
    """The axes whose instances some split in the nest shares out."""
    last = nest[-1] if nest else None
    if not isinstance(last, Split):
        return frozenset()
    own = frozenset((last.where,)) if last.kind != "sequential" and last.where is not None else frozenset()
    return own.union(*(shared_out(branch) for branch in last.branches))


def branch_reasons(workload: Workload, machine: Machine, split: Split, above: Collection[str]) -> Iterator[str]:
    """Why the branches of a concurrent split cannot run at the same time. above: memories of the stores above it."""
    units = [unit for branch in split.branches for unit in {leaf.unit for leaf in leaves(branch)} - {None}]
    if split.where == "unit" and len(units) > len(set(units)):
        yield "branches: two branches of a split run on one unit"
    if split.where in machine.axes:
        for branch, share in zip(split.branches, split.shares or (10**9,) * len(split.branches), strict=False):
            if taken(branch, str(split.where)) > share:
                yield f"branches: a branch takes {taken(branch, str(split.where))} instances, its share has {share}"
        private = private_levels(machine, split)
        if private & set(above):
            yield f"branches: {sorted(private & set(above))} hold tiles above the split that shares them out"
    below = [set(einsums_below(branch)) for branch in split.branches]
    for tensor in workload.parted.keys() & workload.writers.keys():
        users = {*workload.writers[tensor], *workload.consumers[tensor]}
        if sum(not users.isdisjoint(branch) for branch in below) > 1:
            yield f"branches: several use {tensor}, which {not_whole(workload, tensor)}"
    if split.kind == "parallel":
        for i, branch in enumerate(split.branches):
            written = {workload.einsum(e).output.tensor for e in einsums_below(branch)}
            for j, other in enumerate(split.branches):
                read = {access.tensor for e in einsums_below(other) for access in workload.einsum(e).inputs}
                if i != j and written & read:
                    yield f"branches: parallel branches exchange {sorted(written & read)}"


def stages_apart(below: Nest, tensor: str, producer: str, consumers: Collection[str]) -> int:
    """Stages between the producer and the last consumer of the tile of a store, if a pipeline right below parts them.

    below: the nest below the store. 0 if a loop of tokens or another store of the tensor stands between.
    """
    for node in below:
        looped = isinstance(node, Loop) and node.axis is None and node.trips > 1
        if looped or isinstance(node, Compute) or (isinstance(node, Store) and tensor in node.tensors):
            return 0
        if isinstance(node, Split):
            number = {e: i for i, stage in enumerate(_stages(node)) for e in stage}
            if node.kind == "pipelined" and producer in number:
                apart = [number[c] - number[producer] for c in consumers if c in number]
                home = next((b for b in node.branches if producer in einsums_below(b)), ())
                outside = [c for c in consumers if c in number and c not in einsums_below(home)]
                if outside:
                    return max(apart)
            return max((stages_apart(b, tensor, producer, consumers) for b in node.branches), default=0)
    return 0


def _stages(split: Split) -> list[tuple[str, ...]]:
    """Einsums stage by stage; a pipeline that is a whole stage of another counts as its stages."""
    found: list[tuple[str, ...]] = []
    for branch in split.branches:
        last = branch[-1]
        found.extend(_stages(last) if isinstance(last, Split) and flat(branch) else [einsums_below(branch)])
    return found

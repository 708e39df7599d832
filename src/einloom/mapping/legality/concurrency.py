"""Branches that run at the same time: which instances each gets, what they may exchange, how far apart stages stand.

A concurrent split (``pipelined`` or ``parallel``) says where its branches run: ``@ AXIS`` cuts the instances of an axis
into shares, ``@ unit`` gives every branch compute units of its own, ``shared`` lets all take turns on all instances.
Shares are guillotine cuts: what a branch gets, its own loops and splits cut further. Comes in: a tree with sound names.
Goes out: shares and stages for the analysis, and every reason why a concurrent split cannot be. docs/model/bindings.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Table
from itertools import combinations, product

from ...machine.levels import Machine
from ...workload.einsum import Workload
from ...workload.parts import not_whole
from ..tree import Loop, Mapping, Nest, Split, Store, describe, einsums_below, leaves
from .reason import Reason

WHOLE = ("unit", "shared")


def concurrent(split: Split) -> bool:
    """True if the branches run at the same time; such a split does not end the life of data below it."""
    return split.kind != "sequential"


def has_concurrent(nest: Nest) -> bool:
    """True if any branches in `nest` run at the same time."""
    last = nest[-1]
    return isinstance(last, Split) and (concurrent(last) or any(has_concurrent(branch) for branch in last.branches))


def axis_of(split: Split) -> str | None:
    """The axis whose instances the branches share out, or None."""
    return None if split.where in WHOLE else split.where


def instances_used(nest: Nest, axis: str) -> int:
    """Instances along `axis` that the loops and shares of `nest` take."""
    used = 1
    for node in nest:
        if isinstance(node, Loop) and node.axis == axis:
            used *= node.trips
        elif isinstance(node, Split) and node.branches:
            used *= sum(shares(node)) if axis_of(node) == axis else max(instances_used(b, axis) for b in node.branches)
    return used


def shares(split: Split) -> tuple[int, ...]:
    """Instances of the split's axis that each branch gets: as written, or as many as the branch uses."""
    axis = axis_of(split)
    assert axis is not None
    return split.shares or tuple(instances_used(branch, axis) for branch in split.branches)


def stages(split: Split) -> tuple[tuple[str, ...], ...]:
    """The Einsums of every stage of a pipeline; a pipeline directly inside a stage, without a loop between, is flat.

    Tokens pass from stage to stage, so Pipe(a, Pipe(b, c)) is Pipe(a, b, c): pipelining is associative.
    """
    found: list[tuple[str, ...]] = []
    for branch in split.branches:
        inner = branch[-1]
        looped = any(isinstance(node, Loop) and node.trips > 1 for node in branch)
        if isinstance(inner, Split) and inner.kind == "pipelined" and not looped:
            found.extend(stages(inner))
        else:
            found.append(einsums_below(branch))
    return tuple(found)


def stage_distance(split: Split, producer: str, consumer: str) -> int:
    """How many stages the `consumer` stands behind the `producer` in a pipelined split that parts them."""
    place = {einsum: i for i, stage in enumerate(stages(split)) for einsum in stage}
    return place[consumer] - place[producer]


def title(split: Split) -> str:
    """The split as messages quote it."""
    where = "" if split.where is None else " shared" if split.where == "shared" else f" @ {split.where}"
    return f"'split {split.kind}{where}'"


def split_problems(machine: Machine, split: Split) -> Iterator[str]:
    """Reasons about the words of one split: its place and its shares."""
    if not concurrent(split):
        if split.where is not None or split.shares:
            yield "a sequential split says no place and no shares"
        return
    if split.where is None:
        yield f"{title(split)} must say its place: '@ AXIS', '@ unit' or 'shared'"
    elif split.where not in WHOLE and split.where not in machine.axes:
        yield f"{title(split)}: the machine has no axis {split.where}"
    if len(split.branches) == 1:
        yield f"{title(split)} has 1 branch; a concurrent split needs at least 2"
    if split.shares and split.where in (None, *WHOLE):
        yield f"{title(split)} has shares; only '@ AXIS' has"
    elif split.shares and len(split.shares) != len(split.branches):
        yield f"{title(split)} has {len(split.shares)} shares for {len(split.branches)} branches"
    if any(share < 1 for share in split.shares):
        yield f"{title(split)}: shares {' '.join(map(str, split.shares))}; a share needs at least 1"


def concurrency_problems(workload: Workload, machine: Machine, mapping: Mapping) -> Iterator[Reason]:
    """Reasons about instances, units and exchange of the concurrent splits. The tree's layout must be sound."""
    if not has_concurrent(mapping.nest):
        return
    free = {name: axis.size for name, axis in machine.axes.items()}
    yield from _nest_problems(workload, machine, mapping.nest, free, frozenset(), ())


def _nest_problems(
    workload: Workload,
    machine: Machine,
    nest: Nest,
    free: Table[str, int],
    cut: frozenset[str],
    stores: tuple[Store, ...],
) -> Iterator[Reason]:
    """free: instances left along every axis. cut: axes of which `nest` has a share only. stores: those above."""
    for node in nest:
        if isinstance(node, Store):
            stores = (*stores, node)
        elif isinstance(node, Loop) and node.axis is not None:
            left = free[node.axis]
            if node.axis in cut and node.trips > left:
                words = f"'{describe(node)}' needs {node.trips} instances of {node.axis}, {left} left of its share"
                yield Reason(words, node)
            free = {**free, node.axis: max(1, left // node.trips)}
        elif isinstance(node, Split):
            parts: tuple[Table[str, int], ...] = (free,) * len(node.branches)
            inside = cut
            if concurrent(node):
                yield from (Reason(words, node) for words in _exchange_problems(workload, node))
                if node.where == "unit":
                    yield from (Reason(words, node) for words in _unit_problems(node))
                axis = axis_of(node)
                if axis is not None:
                    yield from _share_problems(machine, node, axis, free[axis], stores)
                    parts = tuple({**free, axis: share} for share in shares(node))
                    inside = cut | {axis}
            for branch, part in zip(node.branches, parts, strict=True):
                yield from _nest_problems(workload, machine, branch, part, inside, stores)


def _share_problems(
    machine: Machine, split: Split, axis: str, free: int, stores: tuple[Store, ...]
) -> Iterator[Reason]:
    need = sum(shares(split))
    if need > free:
        count = len(stages(split)) if split.kind == "pipelined" else len(split.branches)
        yield Reason(f"{title(split)}: {count} branches need >= {need} instances of {axis}, {free} available", split)
    for store in stores:
        if machine.position[store.memory] > machine.position[axis]:
            words = f"store {store.memory} stands above {title(split)} but is private to the instances of {axis}"
            yield Reason(words, store)
    for leaf in leaves((split,)):
        if leaf.unit is not None and machine.position[leaf.unit] < machine.position[axis]:
            outside = f"{leaf.unit} is listed before {axis}: it has no share"
            yield Reason(f"{leaf.einsum} stands below {title(split)} but {outside}", leaf)


def _unit_problems(split: Split) -> Iterator[str]:
    units = [{leaf.unit for leaf in leaves(branch) if leaf.unit is not None} for branch in split.branches]
    for (i, first), (j, second) in combinations(enumerate(units, 1), 2):
        if first & second:
            both = ", ".join(sorted(first & second))
            yield f"{title(split)}: branches {i} and {j} both run on {both}; each needs units of its own"


def _exchange_problems(workload: Workload, split: Split) -> Iterator[str]:
    """Parallel branches exchange nothing. (That a stage reads only what stages before it wrote is order of leaves.)"""
    branch_of = {einsum: i for i, branch in enumerate(split.branches) for einsum in einsums_below(branch)}
    for tensor in workload.parted.keys() & workload.writers.keys():
        users = [e for e in (*workload.writers[tensor], *workload.consumers[tensor]) if e in branch_of]
        if len({branch_of[user] for user in users}) > 1:
            yield f"{title(split)} has users of {tensor} in several branches, but it {not_whole(workload, tensor)}"
    if split.kind != "parallel":
        return
    for tensor, writers in workload.writers.items():
        for producer, consumer in product(writers, workload.consumers[tensor]):
            if branch_of.get(producer, -1) != branch_of.get(consumer, -1) and {producer, consumer} <= branch_of.keys():
                yield f"{title(split)}: {consumer} reads {tensor}, which {producer} in another branch writes"

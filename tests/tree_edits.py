"""Small random changes of mapping trees: some of them stay well-formed, some of those leave the mapspace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from einloom.machine.levels import Machine
from einloom.mapping.tree import Loop, Mapping, Nest, Node, Split, Store, einsums_below
from einloom.workload.einsum import Workload

Edit = Callable[[Random, Workload, Machine, Nest], Nest]


def edited(rng: Random, workload: Workload, machine: Machine, mapping: Mapping) -> Mapping:
    """The tree with one to three changes, each somewhere in it."""
    nest = mapping.nest
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        nest = _somewhere(rng, workload, machine, nest, rng.choice(EDITS))
    return Mapping(nest)


def _somewhere(rng: Random, workload: Workload, machine: Machine, nest: Nest, edit: Edit) -> Nest:
    last = nest[-1]
    if isinstance(last, Split) and rng.random() < 0.6:
        at = rng.randrange(len(last.branches))
        branch = _somewhere(rng, workload, machine, last.branches[at], edit)
        return (*nest[:-1], replace(last, branches=(*last.branches[:at], branch, *last.branches[at + 1 :])))
    return edit(rng, workload, machine, nest)


def _swap(rng: Random, _: Workload, __: Machine, nest: Nest) -> Nest:
    """Two neighbours change places."""
    if len(nest) < 3:
        return nest
    i = rng.randrange(len(nest) - 2)
    return (*nest[:i], nest[i + 1], nest[i], *nest[i + 2 :])


def _drop(rng: Random, _: Workload, __: Machine, nest: Nest) -> Nest:
    if len(nest) < 2:
        return nest
    i = rng.randrange(len(nest) - 1)
    return (*nest[:i], *nest[i + 1 :])


def _store(rng: Random, workload: Workload, machine: Machine, nest: Nest) -> Nest:
    """One more store, of one or two tensors, anywhere."""
    names = sorted({t for e in einsums_below(nest) for t in workload.einsum(e).tensors})
    tensors = tuple(rng.sample(names, min(len(names), rng.choice((1, 1, 2)))))
    return _insert(rng, nest, Store(rng.choice(machine.memories).name, tensors))


def _loop(rng: Random, workload: Workload, machine: Machine, nest: Nest) -> Nest:
    """One more loop, of one variable of some of the Einsums below."""
    below = einsums_below(nest)
    some = [e for e in below if workload.einsum(e).variables and rng.random() < 0.8]
    binds = tuple((e, rng.choice(workload.einsum(e).variables)) for e in some)
    axis = rng.choice((None, None, *machine.axes))
    return _insert(rng, nest, Loop(binds, rng.choice((1, 2, 2, 3)), axis=axis)) if binds else nest


def _insert(rng: Random, nest: Nest, node: Node) -> Nest:
    i = rng.randrange(len(nest))
    return (*nest[:i], node, *nest[i:])


def _change(rng: Random, _: Workload, machine: Machine, nest: Nest) -> Nest:
    """A loop gets other trips or another axis, a store another memory."""
    i = rng.randrange(len(nest))
    node = nest[i]
    if isinstance(node, Store):
        node = replace(node, memory=rng.choice(machine.memories).name)
    elif isinstance(node, Loop) and rng.random() < 0.5:
        node = replace(node, trips=max(1, node.trips + rng.choice((-1, 1))), tile=None)
    elif isinstance(node, Loop):
        node = replace(node, axis=rng.choice((None, *machine.axes)))
    return (*nest[:i], node, *nest[i + 1 :])


def _cut(rng: Random, _: Workload, __: Machine, nest: Nest) -> Nest:
    """A loop becomes two, or a store of several tensors two stores."""
    i = rng.randrange(len(nest))
    node = nest[i]
    if isinstance(node, Loop) and node.trips % 2 == 0 and node.tile is None:
        return (*nest[:i], replace(node, trips=2), replace(node, trips=node.trips // 2), *nest[i + 1 :])
    if isinstance(node, Store) and len(node.tensors) > 1:
        k = rng.randrange(1, len(node.tensors))
        first, second = replace(node, tensors=node.tensors[:k]), replace(node, tensors=node.tensors[k:])
        return (*nest[:i], first, second, *nest[i + 1 :])
    return nest


def _lower(rng: Random, _: Workload, __: Machine, nest: Nest) -> Nest:
    """A loop or store directly above a split goes into its branches, or some of them."""
    last = nest[-1]
    if not isinstance(last, Split) or len(nest) < 2:
        return nest
    node, branches = nest[-2], []
    for branch in last.branches:
        one = node
        if isinstance(node, Loop):
            below = einsums_below(branch)
            one = replace(node, binds=tuple(bind for bind in node.binds if bind[0] in below))
        keep = isinstance(node, Loop) or rng.random() < 0.6
        branches.append((one, *branch) if keep else branch)
    return (*nest[:-2], replace(last, branches=tuple(branches)))


def _raise(rng: Random, _: Workload, __: Machine, nest: Nest) -> Nest:
    """A store at the head of a branch goes above the split."""
    last = nest[-1]
    if not isinstance(last, Split):
        return nest
    at = rng.randrange(len(last.branches))
    head, *rest = last.branches[at]
    if not isinstance(head, Store) or not rest:
        return nest
    branches = (*last.branches[:at], tuple(rest), *last.branches[at + 1 :])
    return (*nest[:-1], head, replace(last, branches=branches))


def _move(rng: Random, workload: Workload, machine: Machine, nest: Nest) -> Nest:
    """A node goes to another place of its nest."""
    if len(nest) < 3:
        return nest
    i = rng.randrange(len(nest) - 1)
    return _insert(rng, (*nest[:i], *nest[i + 1 :]), nest[i])


EDITS: tuple[Edit, ...] = (_swap, _drop, _store, _store, _loop, _change, _change, _cut, _lower, _raise, _move)

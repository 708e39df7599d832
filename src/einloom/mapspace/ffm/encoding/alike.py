"""Einsums that are alike but for names: what is found for one of them serves the others."""

from __future__ import annotations

from collections.abc import Hashable

from .checks import path_fault
from .facts import Facts
from .state import Own, State, tidy


def alike(facts: Facts) -> list[tuple[int, ...]]:
    """The Einsums of the program in groups of equal kind, extents, indices and bits, each by its numbers."""
    groups: dict[Hashable, list[int]] = {}
    for i in range(facts.count):
        groups.setdefault(_form(facts, i), []).append(i)
    return [tuple(group) for group in groups.values()]


def _form(facts: Facts, i: int) -> Hashable:
    einsum = facts.einsums[i]
    number = {v: n for n, v in enumerate(einsum.variables)}
    indices = tuple(
        tuple((tuple((number[v], c) for v, c in index.terms), index.constant) for index in access.indices)
        for access in einsum.accesses
    )
    tensors = tuple(
        (facts.workload.shape(a), tuple(m.bits(facts.workload, einsum.name, a.tensor) for m in facts.memories))
        for a in einsum.accesses
    )
    extents = tuple(facts.extents[v] for v in einsum.variables)
    return einsum.kind, einsum.reduction, extents, indices, tensors, tuple(facts.units[i])


def copied(facts: Facts, state: State, group: tuple[int, ...], i: int) -> State:
    """The state in which the others of a group have the privates of Einsum i, as far as these keep the rules there."""
    own = state.owns[i]
    for j in group:
        if j != i and not own.raised and state.shared[j] == state.shared[i] == ():
            found = state.with_own(j, tidy(facts, _renamed(facts, own, i, j)))
            state = found if path_fault(facts, found, j) is None else state
    return state


def _renamed(facts: Facts, own: Own, i: int, j: int) -> Own:
    mine, other = facts.einsums[i], facts.einsums[j]
    tensor = dict(zip(mine.tensors, other.tensors, strict=True))
    variable = dict(zip(mine.variables, other.variables, strict=True))
    return Own(
        own.unit,
        tuple((m, tensor[t]) for m, t in own.stores),
        tuple(tuple((variable[v], n) for v, n in segment) for segment in own.segments),
        tuple((axis, variable[v], n) for axis, v, n in own.spatial),
        (),
        tuple((variable[v], n) for v, n in own.covers),
    )

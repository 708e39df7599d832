"""The edits that could relax one constraint, from the smallest to giving it up.

Comes in: a problem and a constraint. Goes out: `Step`s, each the edit as text and the problem after it. Sizes and fused
loops have an order and are searched (`relaxation`); the others are listed here, nearest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ..dataclass import dataclass
from ..machine.levels import NOTHING
from ..mapspace.limits.data import AxisLimit, BackLimit, HoldLimit, Limit, LoopLimit, Numbers, TileLimit, concerns
from ..problem import Problem
from ..workload.einsum import Workload
from ..workload.selectors import Selector, select, selector
from .constraints import (
    Asked,
    Barred,
    Capacity,
    Constraint,
    Executes,
    FullUse,
    FusedLoops,
    Holding,
    bits,
    holding_less,
    said,
    where,
    wider_kinds,
    with_axis,
    with_level,
    with_limit,
    without,
)
from .record import Change

MAX_NUMBERS = 12


@dataclass(frozen=True, slots=True)
class RelaxationStep:
    """One way to relax a constraint: the edits, and the problem after them."""

    changes: tuple[Change, ...]
    problem: Problem


def dropped(problem: Problem, constraint: Constraint) -> RelaxationStep:
    """The constraint is given up altogether."""
    after = {Capacity: "unlimited", FullUse: "any", FusedLoops: "unlimited"}.get(type(constraint))
    if isinstance(constraint, Holding) and constraint.key == "must":
        memory = problem.machine.memory(constraint.memory)
        eased = holding_less(memory, NOTHING, problem.workload)
        return RelaxationStep(_held_changes(problem, constraint.memory, eased.may), with_level(problem, eased))
    if isinstance(constraint, Executes):
        unit = problem.machine.unit(constraint.unit)
        after = ", ".join(wider_kinds(unit, problem.workload)) if constraint.key == "kinds" else "any"
    if after is None:
        after = {Asked: "given up", Holding: "all"}.get(type(constraint), "nothing")
    return RelaxationStep((Change(where(constraint), said(problem, constraint), after),), without(problem, constraint))


def _held_changes(problem: Problem, name: str, may: Selector, must: Selector = NOTHING) -> tuple[Change, ...]:
    memory = problem.machine.memory(name)
    changes = [Change(f"{name}.must", str(memory.must), str(must))]
    if may != memory.may:
        changes.append(Change(f"{name}.may", str(memory.may), str(may)))
    return tuple(changes)


def sized(problem: Problem, name: str, size: int) -> RelaxationStep:
    """The memory has `size` bits."""
    memory = problem.machine.memory(name)
    change = Change(f"{name}.size", bits(memory.size), bits(size))
    return RelaxationStep((change,), with_level(problem, replace(memory, size=size)))


def fused_loops(problem: Problem, most: int) -> RelaxationStep:
    """So many fused loops are allowed."""
    change = Change("max_fused_loops", str(problem.mapspace.max_fused_loops), str(most))
    return RelaxationStep((change,), replace(problem, mapspace=replace(problem.mapspace, max_fused_loops=most)))


def tensors_of(problem: Problem, constraint: Constraint) -> tuple[str, ...]:
    """Tensors that could be taken out of (or added to) what the constraint selects; none if it selects no tensors."""
    found = _selection(problem, constraint)
    if found is None:
        return ()
    which, adds, einsums = found
    workload = problem.workload
    mine: set[str] = set()
    for einsum in workload.einsums:
        if concerns(einsums, einsum.name):
            chosen = select(which, workload, einsum.name)
            mine |= set(einsum.tensors) - chosen if adds else chosen
    return tuple(t.name for t in workload.tensors if t.name in mine)


def for_tensors(problem: Problem, constraint: Constraint, tensors: tuple[str, ...]) -> RelaxationStep:
    """The constraint no longer speaks of these tensors, or allows them too."""
    found = _selection(problem, constraint)
    assert found is not None, "only constraints that select tensors are asked"
    which, adds, _ = found
    listed = " | ".join(tensors)
    few = listed if len(tensors) == 1 else f"({listed})"
    old = which.text if which.tree[0] == "name" else f"({which.text})"
    new = selector(f"{old} | {listed}" if adds else f"{old} & ~{few}")
    return _reselected(problem, constraint, new)


def _selection(problem: Problem, constraint: Constraint) -> tuple[Selector, bool, tuple[str, ...] | None] | None:
    """(what it selects, whether adding tensors relaxes it, the Einsums that it speaks of)."""
    machine = problem.machine
    match constraint:
        case Holding(name, key):
            return getattr(machine.memory(name), key), key != "must", None
        case Barred(name):
            return machine.axes[name].only_irrelevant_to, False, None
        case Asked(HoldLimit() as limit):
            return limit.tensors, limit.rule == "may_keep", limit.einsums
        case Asked(BackLimit() as limit):
            return limit.tensors, False, None
    return None


def _reselected(problem: Problem, constraint: Constraint, new: Selector) -> RelaxationStep:
    machine = problem.machine
    match constraint:
        case Holding(name, "must"):
            eased = holding_less(machine.memory(name), new, problem.workload)
            return RelaxationStep(_held_changes(problem, name, eased.may, new), with_level(problem, eased))
        case Holding(name, "may"):
            after = with_level(problem, replace(machine.memory(name), may=new))
        case Holding(name, _):
            after = with_level(problem, replace(machine.memory(name), backs=new))
        case Barred(name):
            after = with_axis(problem, replace(machine.axes[name], only_irrelevant_to=new))
        case Asked(HoldLimit() | BackLimit() as limit):
            return exchanged(problem, limit, replace(limit, tensors=new))
        case _:
            raise AssertionError(f"{constraint} selects no tensors")
    return RelaxationStep((Change(where(constraint), said(problem, constraint), str(new)),), after)


def exchanged(problem: Problem, old: Limit, new: Limit) -> RelaxationStep:
    """The mapspace says `new` where it said `old`."""
    return RelaxationStep((Change("mapspace", str(old), str(new)),), with_limit(problem, old, new))


def numbers(problem: Problem, constraint: Constraint) -> Iterator[RelaxationStep]:
    """The constraint with one more number allowed, nearest numbers first; nothing if it limits no numbers."""
    if not isinstance(constraint, Asked):
        return
    limit = constraint.limit
    if isinstance(limit, LoopLimit):
        for trips in _wider(limit.trips, _possible(problem, limit)):
            yield exchanged(problem, limit, replace(limit, trips=trips))
    elif isinstance(limit, TileLimit):
        for sizes in _wider(limit.sizes, _possible(problem, limit)):
            yield exchanged(problem, limit, replace(limit, sizes=sizes))
    elif isinstance(limit, AxisLimit):
        for instances in _wider(limit.instances, _possible(problem, limit)):
            yield exchanged(problem, limit, replace(limit, instances=instances))


def _possible(problem: Problem, limit: LoopLimit | TileLimit | AxisLimit) -> list[int]:
    """Every number that the limit could ever meet: divisors of extents; on an axis not more than its size."""
    workload = problem.workload
    mine = [e for e in workload.einsums if concerns(limit.einsums, e.name)]
    if isinstance(limit, AxisLimit):
        size = problem.machine.axes[limit.axis].size
        wholes = _extents(workload, limit.variables) if limit.variables else _points(workload, [e.name for e in mine])
        return [n for n in range(1, size + 1) if any(whole % n == 0 for whole in wholes)]
    wholes = _extents(workload, limit.variables)
    return sorted({n for whole in wholes for n in range(1, whole + 1) if whole % n == 0})


def _extents(workload: Workload, variables: tuple[str, ...]) -> list[int]:
    return [workload.extents[v] for v in variables]


def _points(workload: Workload, einsums: list[str]) -> list[int]:
    return [prod(workload.extents[v] for v in workload.einsum(e).variables) for e in einsums]


def _wider(allowed: Numbers, possible: list[int]) -> Iterator[Numbers]:
    """`allowed` and one number more (or one end of the range further out), the nearest in ratio first."""
    others = [n for n in possible if not allowed.allow(n)]
    ends = allowed.values or tuple(n for n in (allowed.least, allowed.most) if n is not None)

    def ratio(n: int) -> tuple[float, int]:
        return min(max(n / end, end / n) for end in ends), n

    for n in sorted(others, key=ratio)[:MAX_NUMBERS]:
        if allowed.values:
            yield Numbers(values=tuple(sorted((*allowed.values, n))))
        elif n < allowed.least:
            yield Numbers(n, allowed.most)
        else:
            yield Numbers(allowed.least, n)

"""The edits that could relax one constraint, from the smallest to giving it up.

Comes in: a problem and a constraint. Goes out: `Step`s, each the edit as text and the problem after it. Sizes and fused
loops have an order and are searched (`relaxation`); the others are listed here, nearest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf, prod

from ..dataclass import dataclass
from ..machine.levels import NOTHING
from ..mapspace.divisors import divisors
from ..mapspace.limits.data import AxisLimit, BackLimit, HoldLimit, Limit, LoopLimit, Numbers, TileLimit, concerns
from ..problem import Problem
from ..workload.selectors import Selector, select, selector
from .constraints import (
    Asked,
    Constraint,
    FusedLoops,
    OfMachine,
    holding_less,
    part,
    said,
    stating,
    where,
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
    if isinstance(constraint, OfMachine) and constraint.key == "must":
        return _held_less(problem, constraint.name, NOTHING)
    after = without(problem, constraint)
    if isinstance(constraint, Asked):
        return RelaxationStep((Change("mapspace", str(constraint.limit), "given up"),), after)
    return _eased(problem, constraint, after)


def _eased(problem: Problem, constraint: Constraint, after: Problem) -> RelaxationStep:
    """The step to the problem in which only this constraint is another."""
    return RelaxationStep((Change(where(constraint), said(problem, constraint), said(after, constraint)),), after)


def _held_less(problem: Problem, name: str, must: Selector) -> RelaxationStep:
    """The memory must hold only `must`."""
    memory = problem.machine.memory(name)
    eased = holding_less(memory, must, problem.workload)
    changes = [Change(f"{name}.must", str(memory.must), str(must))]
    if eased.may != memory.may:
        changes.append(Change(f"{name}.may", str(memory.may), str(eased.may)))
    return RelaxationStep(tuple(changes), with_level(problem, eased))


def sized(problem: Problem, constraint: OfMachine, size: int) -> RelaxationStep:
    """The memory has `size` bits."""
    return _eased(problem, constraint, stating(problem, constraint, size))


def fused_loops(problem: Problem, most: int) -> RelaxationStep:
    """So many fused loops are allowed."""
    after = replace(problem, mapspace=replace(problem.mapspace, max_fused_loops=most))
    return _eased(problem, FusedLoops(), after)


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
    match constraint:
        case OfMachine(key="must" | "may" | "backs" | "only_irrelevant_to" as key):
            return getattr(part(problem.machine, constraint), key), key in ("may", "backs"), None
        case Asked(HoldLimit() as limit):
            return limit.tensors, limit.rule == "may_keep", limit.einsums
        case Asked(BackLimit() as limit):
            return limit.tensors, False, None
    return None


def _reselected(problem: Problem, constraint: Constraint, new: Selector) -> RelaxationStep:
    match constraint:
        case OfMachine(name, "must"):
            return _held_less(problem, name, new)
        case OfMachine():
            return _eased(problem, constraint, stating(problem, constraint, new))
        case Asked(HoldLimit() | BackLimit() as limit):
            return exchanged(problem, limit, replace(limit, tensors=new))
    raise AssertionError(f"{constraint} selects no tensors")


def exchanged(problem: Problem, old: Limit, new: Limit) -> RelaxationStep:
    """The mapspace says `new` where it said `old`."""
    return RelaxationStep((Change("mapspace", str(old), str(new)),), with_limit(problem, old, new))


def numbers(problem: Problem, constraint: Constraint) -> Iterator[RelaxationStep]:
    """The constraint with one more number allowed, nearest numbers first; nothing if it limits no numbers."""
    if isinstance(constraint, Asked) and isinstance(limit := constraint.limit, LoopLimit | TileLimit | AxisLimit):
        key = {LoopLimit: "trips", TileLimit: "sizes", AxisLimit: "instances"}[type(limit)]
        for wider in _wider(getattr(limit, key), _possible(problem, limit)):
            yield exchanged(problem, limit, replace(limit, **{key: wider}))  # type: ignore[arg-type]


def _possible(problem: Problem, limit: LoopLimit | TileLimit | AxisLimit) -> list[int]:
    """Every number that the limit could ever meet: divisors of extents; on an axis not more than its size."""
    extents, most = problem.workload.extents, inf
    wholes = [extents[v] for v in limit.variables]
    if isinstance(limit, AxisLimit):
        most = problem.machine.axes[limit.axis].size
        mine = (e for e in problem.workload.einsums if concerns(limit.einsums, e.name))
        wholes = wholes or [prod(extents[v] for v in e.variables) for e in mine]
    return sorted({n for whole in wholes for n in divisors(whole) if n <= most})


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

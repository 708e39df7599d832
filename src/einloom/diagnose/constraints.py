"""What can be blamed: every constraint of a problem that could be given up, and the problem without it.

Comes in: a problem. Goes out: `Constraint`s, and for any choice of them the problem in which only those count. Giving
one up never takes a mapping away, with one exception that `shapes_spreads` and `demands_full_use` name: on an axis
with ``use: full`` a limit of spatial choices also lowers how many instances count as full.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, get_args

from ..dataclass import dataclass
from ..machine.levels import ALL, NOTHING, Axis, ComputeUnit, Fanout, Level, Link, Machine, Memory
from ..mapspace.limits.data import AxisLimit, Limit, Limits
from ..problem import Problem
from ..reading.units import format as with_unit
from ..workload.einsum import Workload
from ..workload.selectors import Selector, select, selector

HoldingKey = Literal["must", "may", "backs"]
AxisKey = Literal["use", "only_irrelevant_to"]
UnitKey = Literal["kinds", "operands"]


@dataclass(frozen=True, slots=True)
class OfMachine:
    """What the machine's file says under a key of a memory, an axis or a compute unit; `use` only where it is full."""

    name: str
    key: Literal["size"] | HoldingKey | AxisKey | UnitKey


@dataclass(frozen=True, slots=True)
class FusedLoops:
    """The largest number of fused loops."""

    key: ClassVar = "max_fused_loops"


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A limit of the mapspace; the object itself, as two equal ones may stand in a file."""

    limit: Limit
    key: ClassVar = "mapspace"


MAX_SIZE_TEXT = 10  # characters
Constraint = OfMachine | FusedLoops | Asked
IDLE: Mapping[str, Any] = {
    "size": None,
    "must": NOTHING,
    "may": ALL,
    "backs": ALL,
    "use": "any",
    "only_irrelevant_to": NOTHING,
    "operands": (),
}
"""Key of a memory, an axis or a unit -> what asks for nothing there."""


def constraints(problem: Problem, granted: Collection[Limit] = ()) -> tuple[Constraint, ...]:
    """Everything that may be given up, what a user would rather keep last. granted: limits that are out of question."""
    workload, machine, space = problem.workload, problem.machine, problem.mapspace
    found: list[Constraint] = [Asked(x) for x in space.limits.all if not any(x is y for y in granted)]
    if space.max_fused_loops is not None:
        found.append(FusedLoops())
    for memory in machine.memories:
        if isinstance(memory, Link):
            continue  # it never holds anything, whatever its keys say
        if memory.size is not None:
            found.append(OfMachine(memory.name, "size"))
        for key in get_args(HoldingKey):
            if not all(_chosen(getattr(memory, key), workload, IDLE[key])):
                found.append(OfMachine(memory.name, key))
    for axis in machine.axes.values():
        found += [OfMachine(axis.name, "use")] if axis.use == "full" else []
        if not all(_chosen(axis.only_irrelevant_to, workload, NOTHING)):
            found.append(OfMachine(axis.name, "only_irrelevant_to"))
    for unit in machine.units:
        asked = [e for e in workload.einsums if e.kind != "copy"]
        found += [OfMachine(unit.name, "kinds")] if any(e.kind not in unit.kinds for e in asked) else []
        if unit.operands and any(len(e.inputs) not in unit.operands for e in asked):
            found.append(OfMachine(unit.name, "operands"))
    return tuple(found)


def _chosen(which: Selector, workload: Workload, idle: Selector) -> list[bool]:
    """Per Einsum: does `which` select the same as `idle`?"""
    names = [e.name for e in workload.einsums]
    return [select(which, workload, name) == select(idle, workload, name) for name in names]


def without(problem: Problem, constraint: Constraint) -> Problem:
    """The problem in which `constraint` is given up."""
    machine = problem.machine
    match constraint:
        case Asked(limit):
            return with_limit(problem, limit, None)
        case FusedLoops():
            return replace(problem, mapspace=replace(problem.mapspace, max_fused_loops=None))
        case OfMachine(name, "must"):
            return with_level(problem, holding_less(machine.memory(name), NOTHING, problem.workload))
        case OfMachine(name, "kinds"):
            return stating(problem, constraint, wider_kinds(machine.unit(name), problem.workload))
    return stating(problem, constraint, IDLE[constraint.key])


def stating(problem: Problem, constraint: OfMachine, value: Any) -> Problem:
    """The problem in which this value is said at the place of the constraint."""
    changed = replace(part(problem.machine, constraint), **{constraint.key: value})
    return with_axis(problem, changed) if isinstance(changed, Axis) else with_level(problem, changed)


def part(machine: Machine, constraint: OfMachine) -> Memory | ComputeUnit | Axis:
    """What the constraint is said of."""
    if constraint.key in get_args(AxisKey):
        return machine.axes[constraint.name]
    return machine.unit(constraint.name) if constraint.key in get_args(UnitKey) else machine.memory(constraint.name)


def holding_less(memory: Memory, must: Selector, workload: Workload) -> Memory:
    """The memory that must hold only `must`; it still may hold what it had to."""
    names = [e.name for e in workload.einsums]
    if all(select(memory.must, workload, name) <= select(memory.may, workload, name) for name in names):
        return replace(memory, must=must)
    if not any(select(memory.may, workload, name) for name in names):
        return replace(memory, must=must, may=memory.must)
    return replace(memory, must=must, may=selector(f"({memory.may}) | ({memory.must})"))


def wider_kinds(unit: ComputeUnit, workload: Workload) -> tuple[str, ...]:
    """The kinds that the unit executes and all others of the workload that need a unit."""
    return tuple(dict.fromkeys((*unit.kinds, *(e.kind for e in workload.einsums if e.kind != "copy"))))


def only(problem: Problem, all_of: tuple[Constraint, ...], active: Collection[int]) -> Problem:
    """The problem in which, of `all_of`, only those with the numbers `active` count."""
    for i, constraint in enumerate(all_of):
        if i not in active:
            problem = without(problem, constraint)
    return problem


def shapes_spreads(constraint: Constraint) -> bool:
    """True if it limits which spatial choices count among those that use the most instances."""
    limit = constraint.limit if isinstance(constraint, Asked) else None
    return constraint.key == "only_irrelevant_to" or isinstance(limit, AxisLimit)


def demands_full_use(constraint: Constraint) -> bool:
    """True if it admits only the spatial choices that use the most instances."""
    return constraint.key == "use"


def where(constraint: Constraint) -> str:
    """The place where the constraint is said, in few words."""
    return f"{constraint.name}.{constraint.key}" if isinstance(constraint, OfMachine) else constraint.key


def said(problem: Problem, constraint: Constraint) -> str:
    """What is said there."""
    if isinstance(constraint, Asked):
        return str(constraint.limit)
    if isinstance(constraint, FusedLoops):
        most = problem.mapspace.max_fused_loops
        return "unlimited" if most is None else str(most)
    value = getattr(part(problem.machine, constraint), constraint.key)
    if constraint.key == "size":
        return bits(value)
    return ", ".join(map(str, value)) or "any" if constraint.key in get_args(UnitKey) else str(value)


def bits(number: int | None) -> str:
    """A size, exactly, in the unit that reads best; small ones in bits, crooked ones in bits and roughly.

    >>> bits(528), bits(8 * 2**20), bits(1181116006), bits(None)
    ('528 bit', '1 MiB', '140.8 MiB (1181116006 bit)', 'unlimited')
    """
    if number is None:
        return "unlimited"
    text = f"{number} bit" if number < 8192 else with_unit(number, "size")
    if len(text) <= MAX_SIZE_TEXT:
        return text
    power = min((number.bit_length() - 4) // 10, 4)
    return f"{number / (8 * 1024**power):.4g} {' KMGT'[power]}iB ({number} bit)"


def with_level(problem: Problem, level: Level) -> Problem:
    """The problem whose machine has `level` in place of the one of that name."""
    levels = (level if old.name == level.name else old for old in problem.machine.levels)
    return replace(problem, machine=replace(problem.machine, levels=tuple(levels)))


def with_axis(problem: Problem, axis: Axis) -> Problem:
    """The problem whose machine has `axis` in place of the one of that name."""
    fanouts = (level for level in problem.machine.levels if isinstance(level, Fanout))
    around = next(fanout for fanout in fanouts if axis.name in [old.name for old in fanout.axes])
    return with_level(problem, replace(around, axes=tuple(axis if x.name == axis.name else x for x in around.axes)))


def with_limit(problem: Problem, old: Limit, new: Limit | None) -> Problem:
    """The problem whose mapspace has `new` in place of the limit `old` (this very object), or nothing."""
    kept = (new if limit is old else limit for limit in problem.mapspace.limits.all)
    limits = Limits.of(limit for limit in kept if limit is not None)
    return replace(problem, mapspace=replace(problem.mapspace, limits=limits))

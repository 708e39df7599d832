"""An easier problem with the same answer to "has it any legal mapping?", and how many spatial choices that has.

Two things never help a mapping to fit. A store that is not its tensor's backing store only takes room: without it the
loops around it are one block, and no memory holds more. And a spatial loop below every backing store can be a temporal
loop in the same place: every tile is as large as before. So memories need to hold only what they must or may back, and
axes that nobody asks to be used need no instances. Where a memory behind an axis may back a shared tensor, a spatial
loop may stand above it, and a temporal loop in its place counts as fused: there fewer instances are only a first try.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..dataclass import dataclass
from ..machine.levels import NOTHING, Fanout, Level, Memory
from ..mapspace.divisors import divisors
from ..mapspace.limits.checks import may_back
from ..mapspace.limits.data import BackLimit
from ..problem import Problem
from ..search.exact.einsums.classes import signatures
from ..search.exact.einsums.spatial import RankClasses
from ..search.exact.einsums.users import Users
from ..workload.selectors import Selector, select, selector

TAME_LOOPS = 1


@dataclass(frozen=True, slots=True)
class Easier:
    """The same question for less.

    tame: problems whose mappings are mappings of the one at hand, quickest first; most that have one have one there.
    bare: idle axes unused; an Einsum that has no mapping by itself there has none in the problem at hand. proof: has a
    mapping if and only if the problem at hand has.
    """

    tame: tuple[Problem, ...]
    bare: Problem
    proof: Problem


def easier(problem: Problem) -> Easier:
    """The easier problems of `problem`: tame ones fuse nothing, or few loops and not behind a fanout."""
    machine, space = problem.machine, problem.mapspace
    idle = _idle_axes(problem)
    safe = {axis for axis in idle if not _fused_behind(problem, axis)}
    names = [memory.name for memory in machine.memories]
    ahead = [name for name in names[1:] if machine.instances(name) == 1]
    apart = BackLimit(selector("intermediate"), (names[0],))
    unfused = replace(space, limits=replace(space.limits, backs=(*space.limits.backs, apart)))
    most = TAME_LOOPS if space.max_fused_loops is None else min(space.max_fused_loops, TAME_LOOPS)
    tame = (
        replace(_narrowed(problem, (), idle), mapspace=unfused),
        replace(_narrowed(problem, ahead, idle), mapspace=replace(space, max_fused_loops=most)),
    )
    return Easier(tame, _narrowed(problem, names[1:], idle), _narrowed(problem, names[1:], safe))


def _narrowed(problem: Problem, backing: Collection[str], idle: set[str]) -> Problem:
    """The problem in which only the `backing` memories and the outermost back, and idle axes leave no choice."""
    outermost = problem.machine.memories[0].name

    def made(level: Level) -> Level:
        if isinstance(level, Fanout):
            return replace(level, axes=tuple(replace(x, size=1) if x.name in idle else x for x in level.axes))
        if not isinstance(level, Memory) or level.name == outermost:
            return level
        backs = level.backs if level.name in backing else NOTHING
        return replace(level, backs=backs, may=_needed(problem, level, backs))

    return replace(problem, machine=replace(problem.machine, levels=tuple(map(made, problem.machine.levels))))


def _needed(problem: Problem, memory: Memory, backs: Selector) -> Selector:
    """Of what the memory may hold only what it must hold, is asked to keep, or may back."""
    keeps = (x.tensors for x in problem.mapspace.limits.holds if x.rule == "keep" and x.memory == memory.name)
    asked = " | ".join([f"intermediate & ({backs})", *(f"({which})" for which in (memory.must, *keeps))])
    return selector(f"({memory.may}) & ({asked})")


def _idle_axes(problem: Problem) -> set[str]:
    """Axes that no constraint asks to be used."""
    limited = {limit.axis for limit in problem.mapspace.limits.axes}
    return {axis.name for axis in problem.machine.axes.values() if axis.use == "any" and axis.name not in limited}


def _fused_behind(problem: Problem, axis: str) -> bool:
    """True if a memory behind the axis may back an intermediate."""
    workload, machine, limits = problem.workload, problem.machine, problem.mapspace.limits
    shared = frozenset(workload.intermediates)
    behind = [m for m in machine.memories if machine.position[m.name] > machine.position[axis]]
    return any(
        select(m.backs, workload, e.name)
        & may_back(limits, m, workload, e.name)
        & machine.may_hold(m, workload, e.name, ())
        & shared
        for m in behind
        for e in workload.einsums
    )


def spreads(problem: Problem) -> int:
    """At most so many spatial choices has one Einsum on one unit: what the search lists one by one.

    Raises Infeasible where already the choices of stores contradict each other.
    """
    most = 0
    for found in set(signatures(Users(problem.workload, problem.machine), problem.mapspace.limits)):
        classes = RankClasses(found)
        for option in found.units:
            total = 1
            for axis in found.axes:
                if axis.fanout < option.fanouts:
                    open_to = [
                        extent
                        for d, extent in enumerate(classes.extents)
                        if not any(classes.relevant(t, d) for t in axis.barred)
                    ]
                    total *= _ways(tuple(open_to), axis.size)
            most = max(most, total)
    return most


def _ways(extents: tuple[int, ...], size: int) -> int:
    """In how many ways divisors of the extents, one of each, multiply to at most `size`."""
    products = {1: 1}
    for extent in extents:
        grown: dict[int, int] = {}
        for product, ways in products.items():
            for n in divisors(extent):
                if product * n > size:
                    break
                grown[product * n] = grown.get(product * n, 0) + ways
        products = grown
    return sum(products.values())

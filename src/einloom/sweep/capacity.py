"""The least of an objective for each capacity of a memory, fused or not: what ski-slope figures are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import Ended, SpecError, nearest
from ..machine.levels import Machine, Memory
from ..mapspace.limits.data import BackLimit
from ..problem import Guarantee, Problem
from ..reading.units import parse
from ..result import Result
from ..result.sweep import CapacityPoint, Sweep
from ..result.unmapped import Unmapped
from ..search import registry
from ..search.several import Labelled
from ..workload.selectors import selector
from .store import AnswerStore
from .tasks import Task, answers


def sizes(capacities: str | Iterable[int | str]) -> list[int]:
    """Capacities in bits, of numbers of bits or sizes, in a list or a text with commas.

    >>> sizes("1 KiB, 2 KiB")
    [8192, 16384]

    Raises SpecError for what is no size.
    """
    listed = [one for one in capacities.split(",") if one.strip()] if isinstance(capacities, str) else capacities
    found = list(listed) if isinstance(listed, Iterable) else [None]
    for one in found:
        if not isinstance(one, int | str):
            raise SpecError(
                f"capacities are numbers of bits or sizes, in a list or with commas, not {capacities!r:.80}"
            )
    return [int(parse(one.strip() if isinstance(one, str) else one, "size")) for one in found]


def variants(problem: Problem, memory: str, capacities: Sequence[int], fused: bool) -> list[tuple[int, Problem]]:
    """(capacity, problem) pairs by rising capacity; unfused, every intermediate is backed by the outermost memory.

    Raises SpecError if the machine has no such memory, or a capacity is not positive.
    """
    names = [one.name for one in problem.machine.memories]
    if memory not in names:
        raise SpecError(f"{problem.machine.name} has no memory {memory!r}", suggestion=nearest(memory, names))
    if not capacities or min(capacities) < 1:
        raise SpecError("a sweep needs capacities of at least one bit")
    space = problem.mapspace
    if not fused:
        limits = replace(space.limits, backs=(*space.limits.backs, BackLimit(selector("all"), (names[0],))))
        space = replace(space, limits=limits)
    return [
        (capacity, replace(problem, machine=_resized(problem.machine, memory, capacity), mapspace=space))
        for capacity in sorted(set(capacities))
    ]


def _resized(machine: Machine, memory: str, capacity: int) -> Machine:
    """The machine with another size of one memory, which is no longer what its source says."""
    levels = tuple(
        replace(level, size=capacity) if isinstance(level, Memory) and level.name == memory else level
        for level in machine.levels
    )
    facts = tuple(
        replace(fact, source="varied by a sweep", kind="assumed") if fact.path == f"{memory}.size" else fact
        for fact in machine.facts
    )
    return replace(machine, levels=levels, facts=facts)


def sweep_capacity(
    problem: Problem | Sequence[Labelled],
    memory: str,
    capacities: Sequence[int],
    folder: str | Path,
    *,
    fused: bool = True,
    method: str = "exact",
    seconds: float | None = None,
    jobs: int = 1,
    on_point: Callable[[CapacityPoint, bool], None] = lambda point, kept: None,
    stop: Callable[[], bool] = lambda: False,
) -> Sweep:
    """Answers for all capacities (bits), saved in `folder`; what an earlier run finished there is read, not repeated.

    problem: one, or several, of which the best is the answer for each capacity, as for `map`. on_point hears of each
    point, and whether it was there already. seconds: a budget for each point. jobs: processes. stop: asked at least
    every second or so whether the sweep should end now, with what is known; where it ended a search, the next run goes
    on from the best that was found. Raises SpecError if the folder has answers to another question.
    """
    several = (Labelled("", problem),) if isinstance(problem, Problem) else tuple(problem)
    name = "fused" if fused else "unfused"
    title = f"{_title(several)}, {name}"
    asked = _of_each(several, memory, capacities, fused)
    store = AnswerStore(folder, name, memory, title)
    store.refuse_others(lambda capacity: _problems(_of_each(several, memory, [capacity], fused)[capacity]), list(asked))
    found: dict[int, Result | Unmapped] = {}
    missing: list[Task[int]] = []
    for capacity, labelled in asked.items():
        known = store.kept(capacity, _problems(labelled))
        if known is None or not _enough(known, method, seconds):
            missing.append((capacity, labelled, (known.mapping,) if isinstance(known, Result) else ()))
            continue
        found[capacity] = known
        store.mention(capacity)
        on_point(CapacityPoint(capacity, known), True)
    for (capacity, *_), one in answers(missing, method, seconds, min(jobs, len(missing)), stop):
        store.keep(capacity, one)
        found[capacity] = one
        on_point(CapacityPoint(capacity, one), False)
    return Sweep(
        memory, title, tuple(CapacityPoint(capacity, found[capacity]) for capacity in asked if capacity in found)
    )


def _enough(known: Result | Unmapped, method: str, seconds: float | None) -> bool:
    """False if nothing is known but a bound, a stop ended the search, or a method that proves is asked, and the answer
    is not proven: by another method, or in some budget where there is none now."""
    if known.ended is Ended.STOPPED or not isinstance(known, Result):
        return isinstance(known, Unmapped) and known.status == "infeasible"
    if known.optimal or registry.method(method).guarantee is Guarantee.NONE:
        return True
    return known.method == method and seconds is not None


def _title(asked: Sequence[Labelled]) -> str:
    first, *others = (each.problem for each in asked)
    more = f" and {len(others)} other numbers of tiles" if others else ""
    return f"{first.workload.name}{more} on {first.machine.name}"


def _problems(asked: Sequence[Labelled]) -> list[Problem]:
    return [each.problem for each in asked]


def _of_each(
    asked: Sequence[Labelled], memory: str, capacities: Sequence[int], fused: bool
) -> dict[int, tuple[Labelled, ...]]:
    """Capacity -> the problems with it, by rising capacity. Raises SpecError as `variants`."""
    made = [(each.label, variants(each.problem, memory, capacities, fused)) for each in asked]
    return {
        capacity: tuple(Labelled(label, found[i][1]) for label, found in made)
        for i, (capacity, _) in enumerate(made[0][1])
    }

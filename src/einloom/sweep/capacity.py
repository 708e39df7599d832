"""The least of an objective for each capacity of a memory, fused or not: what ski-slope figures are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..constraints import selector
from ..errors import BudgetExhausted, Infeasible, SpecError, nearest
from ..machine.levels import Machine, Memory
from ..mapspace.limits import BackLimit
from ..problem import Budget, Problem
from ..result import Result
from ..result.sweep import Point, Sweep
from ..result.unmapped import Unmapped
from ..search.protocol import Recorder, optimizer
from . import executors
from .store import Store

Task = tuple[int, Problem]


def variants(problem: Problem, memory: str, capacities: Sequence[int], fused: bool) -> list[Task]:
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


def solve(task: Task, method: str = "exact", seconds: float | None = None) -> Result | Unmapped:
    """The answer for one capacity; a search that finds nothing answers why."""
    _, problem = task
    recorder = Recorder()
    try:
        return optimizer(method).search(problem, Budget(seconds=seconds), recorder)
    except (Infeasible, BudgetExhausted) as error:
        return Unmapped.of(problem, error, method, recorder.seconds, recorder.counts, recorder.trace, recorder.lower)


def sweep_capacity(
    problem: Problem,
    memory: str,
    capacities: Sequence[int],
    folder: str | Path,
    *,
    fused: bool = True,
    method: str = "exact",
    seconds: float | None = None,
    jobs: int = 1,
    on_point: Callable[[Point, bool], None] = lambda point, kept: None,
) -> Sweep:
    """Answers for all capacities (bits), saved in `folder`; what an earlier run finished there is read, not repeated.

    on_point hears of each point, and whether it was there already. seconds: a budget for each point. jobs: processes.
    """
    name = "fused" if fused else "unfused"
    title = f"{problem.workload.name} on {problem.machine.name}, {name}"
    tasks = variants(problem, memory, capacities, fused)
    store = Store(folder, name, memory, title)
    found: dict[int, Result | Unmapped] = {}
    for task in tasks:
        answer = store.known(*task)
        if answer is not None:
            found[task[0]] = answer
            store.mention(task[0])
            on_point(Point(task[0], answer), True)
    work = partial(solve, method=method, seconds=seconds)
    missing = [task for task in tasks if task[0] not in found]
    for task, answer in _run(work, missing, jobs):
        store.keep(task[0], answer)
        found[task[0]] = answer
        on_point(Point(task[0], answer), False)
    return Sweep(memory, title, tuple(Point(capacity, found[capacity]) for capacity, _ in tasks))


def _run(
    work: Callable[[Task], Result | Unmapped], tasks: list[Task], jobs: int
) -> Iterator[tuple[Task, Result | Unmapped]]:
    few = min(jobs, len(tasks))
    return executors.serial(work, tasks) if few <= 1 else executors.processes(work, tasks, few)

"""Many searches of one method: what a task is, its answer, and the answers of all, here or on other processes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from ..mapping.tree import Mapping
from ..problem import Budget
from ..result import Result
from ..result.unmapped import Unmapped
from ..search import registry
from ..search.answer import answer
from ..search.method import Recorder
from ..search.several import Labelled
from . import executors

Answer = Result | Unmapped
Key = TypeVar("Key", bound=Hashable)
Task = tuple[Key, tuple[Labelled, ...], tuple[Mapping, ...]]
"""What tells it from the others, problems of which the best answer is wanted, and mappings to start from."""


def solve(task: Task[Key], method: str, seconds: float | None, stop: Callable[[], bool]) -> Answer:
    """The answer to a task; a search that finds nothing answers why."""
    _, asked, known = task
    starts = known if registry.method(method).able.starts else ()
    return answer(asked, method, Budget(seconds=seconds), Recorder(stop=stop), starts)


def answers(
    tasks: Iterable[Task[Key]],
    method: str,
    seconds: float | None,
    jobs: int,
    stop: Callable[[], bool],
    cluster: str | None = None,
) -> Iterator[tuple[Task[Key], Answer]]:
    """Each task with its answer, as it is ready. A task is asked for once it can be searched, and none after a stop.

    seconds: for each. jobs: processes; one searches here. cluster: instead, the address of a Dask scheduler.
    """
    work = partial(solve, method=method, seconds=seconds)
    if cluster is not None:
        return executors.dask(partial(work, stop=executors.never), tasks, cluster, stop)
    if jobs <= 1:
        return executors.serial(partial(work, stop=stop), tasks, stop)
    return executors.processes(partial(work, stop=executors.told_to_stop), tasks, jobs, stop)

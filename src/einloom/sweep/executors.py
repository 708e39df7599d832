"""Where the points of a sweep are worked on: one after the other here, or in a pool of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def serial(work: Callable[[Task], Answer], tasks: Iterable[Task]) -> Iterator[tuple[Task, Answer]]:
    """Each task with its answer, in order."""
    for task in tasks:
        yield task, work(task)


def processes(work: Callable[[Task], Answer], tasks: Iterable[Task], jobs: int) -> Iterator[tuple[Task, Answer]]:
    """Each task with its answer as it is ready, from `jobs` processes; what has not begun is dropped at the end."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(work, task): task for task in tasks}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

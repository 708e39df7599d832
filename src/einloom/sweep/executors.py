"""Where the points of a sweep are worked on: one after the other here, or in a pool of processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from typing import TypeVar

from ..errors import EinloomError
from ..stops import HEARD

Task = TypeVar("Task")
Answer = TypeVar("Answer")
Stop = Callable[[], bool]
PATIENCE = 0.2  # seconds between two looks at whether the sweep was stopped


def serial(work: Callable[[Task], Answer], tasks: Iterable[Task], stop: Stop) -> Iterator[tuple[Task, Answer]]:
    """Each task with its answer, in order, until `stop` says true; `work` hears that for itself."""
    for task in tasks:
        if stop():
            return
        yield task, work(task)


def processes(
    work: Callable[[Task], Answer], tasks: Iterable[Task], jobs: int, stop: Stop
) -> Iterator[tuple[Task, Answer]]:
    """Each task with its answer as it is ready, from `jobs` processes.

    Once `stop` says true, what has not begun is dropped, and `told_to_stop` says true in the processes.
    """
    context = get_context("spawn")
    over = context.Event()
    with ProcessPoolExecutor(jobs, context, _begin, (over, os.getpid())) as pool:
        waiting = {pool.submit(work, task): task for task in tasks}
        try:
            while waiting:
                for done in wait(waiting, PATIENCE, FIRST_COMPLETED).done:
                    yield waiting.pop(done), done.result()
                if stop():
                    over.set()
                    waiting = {future: task for future, task in waiting.items() if not future.cancel()}
        except BrokenProcessPool:
            raise EinloomError(
                "a process of the sweep ended before its work was done; what was done before is saved. Either it was "
                "killed, or the sweep stands in a script without a guard: every process imports the script, so put "
                "what it does below if __name__ == '__main__':"
            ) from None
        finally:
            over.set()
            pool.shutdown(wait=True, cancel_futures=True)


class _Worker:
    """What a process of the pool knows of the sweep that it works for."""

    over: Event | None = None
    parent = 0


def _begin(over: Event, parent: int) -> None:
    """In a new process: Ctrl-C goes to the whole group, and it is the parent that tells what to do about it."""
    for number in HEARD:
        signal.signal(number, signal.SIG_IGN)
    _Worker.over, _Worker.parent = over, parent


def told_to_stop() -> bool:
    """In a process of the pool: whether the sweep was stopped, or is gone."""
    return (_Worker.over is not None and _Worker.over.is_set()) or os.getppid() != _Worker.parent

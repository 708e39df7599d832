"""Where the points of a sweep are worked on: one after the other here, or in a pool of processes."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, TypeVar

from ..errors import EinloomError, MissingExtra
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

    A task is asked for when a process is free, so that it may depend on the answers before it. Once `stop` says true
    none is asked for, and `told_to_stop` says true in the processes.
    """
    context = get_context("spawn")
    over, coming = context.Event(), iter(tasks)
    with ProcessPoolExecutor(jobs, context, _begin, (over, os.getpid())) as pool:
        waiting: dict[Future[Answer], Task] = {}
        try:
            while _filled(waiting, jobs, coming, lambda task: pool.submit(work, task), stop):
                for done in wait(waiting, PATIENCE, FIRST_COMPLETED).done:
                    yield waiting.pop(done), done.result()
                if stop():
                    over.set()
        except BrokenProcessPool:
            raise EinloomError(
                "a process of the sweep ended before its work was done; what was done before is saved. Either it was "
                "killed, or the sweep stands in a script without a guard: every process imports the script, so put "
                "what it does below if __name__ == '__main__':"
            ) from None
        finally:
            over.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _filled(
    waiting: dict[Future[Answer], Task],
    most: int,
    coming: Iterator[Task],
    submitted: Callable[[Task], Future[Answer]],
    stop: Stop,
) -> bool:
    """Submit tasks until so many wait for their answer; whether any does."""
    while len(waiting) < most and not stop():
        for task in coming:
            waiting[submitted(task)] = task
            break
        else:
            break
    return bool(waiting)


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


def never() -> bool:
    """On a worker of a cluster, whose searches end by their budget, or with it."""
    return False


def dask(
    work: Callable[[Task], Answer], tasks: Iterable[Task], address: str, stop: Stop
) -> Iterator[tuple[Task, Answer]]:
    """Each task with its answer as it is ready, from the workers of a Dask scheduler.

    address: of the scheduler, or its file (``scheduler.json``). Once `stop` says true no task is asked for, and those
    that run are dropped. Raises MissingExtra without dask.distributed, EinloomError where no scheduler answers, or it
    or its workers are gone before all is done.
    """
    try:
        from dask.distributed import Client, KilledWorker, TimeoutError
    except ImportError as error:
        raise MissingExtra("distributed", "dask") from error
    if (in_file := address.endswith(".json")) and not Path(address).is_file():
        raise EinloomError(f"there is no scheduler file {address!r:.80}; dask scheduler --scheduler-file writes one")
    try:
        client = Client(**{"scheduler_file" if in_file else "address": address}, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise EinloomError(f"no Dask scheduler answers at {address!r:.80}: {error}") from error
    try:
        yield from _on_workers(client, work, tasks, stop)
    except (OSError, TimeoutError, CancelledError, KilledWorker) as error:
        said = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(": ")
        raise EinloomError(
            f"the Dask scheduler at {address!r:.80}, or its workers, are gone ({said:.200}). What was done before is "
            "saved, and the same command goes on there"
        ) from error


def _on_workers(
    client: Any, work: Callable[[Task], Answer], tasks: Iterable[Task], stop: Stop
) -> Iterator[tuple[Task, Answer]]:
    """As `dask`, for a client, which is closed in the end."""
    from dask.distributed import TimeoutError
    from dask.distributed import wait as ended

    logs = [logging.getLogger(name) for name in [*logging.root.manager.loggerDict] if name.startswith("distributed")]
    levels = [log.level for log in logs]
    with ExitStack() as after:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(logging.CRITICAL)  # errors are raised here, without tracebacks before them
            after.callback(log.setLevel, level)
        after.enter_context(client)
        client.get_versions(check=True)
        waiting: dict[Any, Task] = {}
        coming = iter(tasks)

        def submitted(task: Task) -> Any:
            return client.submit(work, task, pure=False)

        while _filled(waiting, max(1, len(client.ncores())), coming, submitted, stop):
            with suppress(TimeoutError):
                ended(list(waiting), timeout=PATIENCE, return_when="FIRST_COMPLETED")
            for one in [future for future in waiting if future.done()]:
                yield waiting.pop(one), one.result()
            if stop():
                client.cancel(list(waiting))
                return

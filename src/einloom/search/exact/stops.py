"""Whether a search has to stop: its budget is spent, or somebody asks for it.

Comes in: a budget, counts of what has been done, a watcher. Goes out: `Stopped` or `Enough`, raised.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ...errors import Ended
from ...problem import Budget
from ..method import Watcher
from ..resources import resident_bytes


class Stopped(Exception):
    """The budget ended, or the watcher asked to stop."""

    def __init__(self, ended: Ended) -> None:
        self.ended = ended


class Enough(Exception):
    """Something that is worth only part of the budget has had it."""


class Stops:
    """The limits of one search, and how much of them is used.

    counts: of what was done, by rule; "evaluated" are the steps of a budget. started: the moment of `time.monotonic` at
    which the search began. until, most: the moment, and the steps, from which on `Enough` is raised.
    """

    def __init__(self, budget: Budget, watcher: Watcher) -> None:
        self.budget, self.watcher = budget, watcher
        self.counts: dict[str, int] = {}
        self.started = time.monotonic()
        self.until = self.most = np.inf

    @property
    def evaluated(self) -> int:
        """The steps that were done."""
        return self.counts.get("evaluated", 0)

    @contextmanager
    def after(self, steps: int) -> Iterator[None]:
        """A ``with`` block in which `Enough` is raised after so many more steps."""
        self.most = self.evaluated + steps
        try:
            yield
        finally:
            self.most = np.inf

    @property
    def spent(self) -> float:
        """The seconds that the search has taken."""
        return time.monotonic() - self.started

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """A ``with`` block in which `Enough` is raised after so many more seconds."""
        outer, self.until = self.until, min(self.until, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.until = outer

    def check(self, closing: float = 0.0) -> None:
        """Raise Stopped if the budget is spent. closing: seconds of it that are left to the end of the search."""
        seconds, steps = self.budget.seconds, self.budget.steps
        now = time.monotonic()
        if seconds is not None and now - self.started > seconds - closing:
            raise Stopped(Ended.SECONDS)
        if steps is not None and self.evaluated > steps:
            raise Stopped(Ended.STEPS)
        if self.budget.memory is not None and resident_bytes() > self.budget.memory:
            raise Stopped(Ended.MEMORY)
        if self.watcher.stopped():
            raise Stopped(Ended.STOPPED)
        if now > self.until or self.evaluated > self.most:
            raise Enough


class StopsOnly(Watcher):
    """Hears a search inside another one: passes on only when to stop."""

    def __init__(self, outer: Watcher) -> None:
        self.stopped = outer.stopped  # type: ignore[method-assign]

"""Who hears what a search learns: the `Watcher` that it tells, and the `Recorder` that keeps it.

Incumbents, bounds and counts come in while a search runs; progress displays and traces read only that. Ctrl-C goes the
other way: `interruptible` lets a search that is called from Python hear of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..errors import BudgetExhausted, Ended, SpecError
from ..mapping.tree import Mapping as Tree
from ..result import TracePoint
from ..stops import interrupts


class Watcher:
    """Hears what a search learns; this one forgets it all. Searches call these, displays and traces override them."""

    def incumbent(self, value: float, mapping: Tree | None = None) -> None:
        """A better legal mapping is known; `mapping` is None if only its value is."""

    def bound(self, value: float) -> None:
        """Nothing in the mapspace is below `value`."""

    def count(self, rule: str, number: int = 1) -> None:
        """`number` more points were seen, or dropped by the pruning rule `rule`."""

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        """The search is in stage `name`, `done` of `total` steps behind it."""

    def stopped(self) -> bool:
        """True when the search should end now, with the best so far. Searches ask at least every second or so."""
        return False


class Recorder(Watcher):
    """A watcher that keeps the best so far, the bound, the counts and a trace of both over time.

    on_change: called after every report with the recorder, for displays. stop: asked by `stopped`.
    """

    def __init__(
        self,
        on_change: Callable[[Recorder], None] | None = None,
        stop: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.best: float | None = None
        self.best_mapping: Tree | None = None
        self.mapped_value: float | None = None
        self.lower: float | None = None
        self.counts: dict[str, int] = {}
        self.stage_name = ""
        self.done = 0
        self.total: int | None = None
        self.trace: list[TracePoint] = []
        self._on_change = on_change
        self._stop = stop
        self._clock = clock
        self._start = clock()

    @property
    def seconds(self) -> float:
        """Seconds since the recorder was made."""
        return self._clock() - self._start

    @property
    def gap(self) -> float | None:
        """(best - bound) / best, or None before both are known."""
        if self.best is None or self.lower is None:
            return None
        return 0.0 if self.best == 0 else max(0.0, (self.best - self.lower) / self.best)

    def incumbent(self, value: float, mapping: Tree | None = None) -> None:
        if mapping is not None and (self.mapped_value is None or value <= self.mapped_value):
            self.best_mapping, self.mapped_value = mapping, value
        if self.best is None or value < self.best:
            self.best = value
            self._record()

    def bound(self, value: float) -> None:
        if self.lower is None or value > self.lower:
            self.lower = value
            self._record()

    def count(self, rule: str, number: int = 1) -> None:
        self.counts[rule] = self.counts.get(rule, 0) + number
        self._changed()

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        self.stage_name, self.done, self.total = name, done, total
        self._changed()

    def stopped(self) -> bool:
        return self._stop is not None and self._stop()

    def _record(self) -> None:
        self.trace.append(TracePoint(self.seconds, self.best, self.lower))
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self)


class _Interruptible(Watcher):
    """Passes everything on to another watcher, and says that the search should end once a signal was heard."""

    def __init__(self, watch: Watcher, heard: Sequence[int]) -> None:
        self.watch, self._heard = watch, heard

    def incumbent(self, value: float, mapping: Tree | None = None) -> None:
        self.watch.incumbent(value, mapping)

    def bound(self, value: float) -> None:
        self.watch.bound(value)

    def count(self, rule: str, number: int = 1) -> None:
        self.watch.count(rule, number)

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        self.watch.stage(name, done, total)

    def stopped(self) -> bool:
        return bool(self._heard) or self.watch.stopped()


@contextmanager
def interruptible(watch: Watcher | None = None) -> Iterator[Watcher]:
    """A ``with`` block whose searches end at the first Ctrl-C, with the best so far; the next one raises.

    They have to tell the watcher that comes in here, which passes on what it hears. Where a search ends so before a
    mapping is known, KeyboardInterrupt leaves the block. Raises SpecError for what is no watcher.
    """
    watch = Watcher() if watch is None else watch
    lacks = [name for name in ("incumbent", "bound", "count", "stage", "stopped") if not hasattr(watch, name)]
    if lacks or isinstance(watch, type):
        what = "it is a class; give an object" if isinstance(watch, type) else f"it lacks {lacks[0]}"
        more = "; a function that hears of every change goes into Recorder(on_change=...)" if callable(watch) else ""
        raise SpecError(f"{watch!r:.80} is no watcher: {what}{more} (einloom.search.method)")
    with interrupts() as heard:
        try:
            yield _Interruptible(watch, heard)
        except BudgetExhausted as error:
            if not heard or error.ended is not Ended.STOPPED:
                raise
            raise KeyboardInterrupt(str(error)) from error


def trace_of(watch: Watcher) -> Sequence[TracePoint]:
    """What a watcher has kept of the best and the bound over time: nothing, unless it is a `Recorder`."""
    kept = watch.watch if isinstance(watch, _Interruptible) else watch
    return kept.trace if isinstance(kept, Recorder) else ()

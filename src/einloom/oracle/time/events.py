"""When things happen: a discrete-event execution of operations on engines and components.

An *engine* does its operations in order, one at a time. The first one waits for what it reads (data), for room in what
it writes (slots), then asks for its components (ports, compute units) and holds them for its duration. A component
serves whoever asked first; of those who asked at once, the one further down the pipeline. Nothing else is known here:
`journal` makes operations from the execution of a tree.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from heapq import heappop, heappush

from ...dataclass import dataclass


@dataclass(slots=True)
class Operation:
    """One operation. after: numbers of the operations that must have ended, begun: those that must have started.

    engine: who does it. components: what it holds for `duration`. rank: place in the pipeline, the higher goes first.
    """

    engine: Hashable
    duration: float
    components: tuple[Hashable, ...] = ()
    after: set[int] = field(default_factory=set)
    begun: set[int] = field(default_factory=set)
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """Start and end of every operation; `contended`: some operation waited for a component that another engine held."""

    starts: tuple[float, ...]
    ends: tuple[float, ...]
    contended: bool

    @property
    def end(self) -> float:
        return max(self.ends, default=0.0)


def execute(operations: Sequence[Operation]) -> Timeline:
    """Run all operations; every engine in the order of the list. Raises ValueError if some wait for one another."""
    count = len(operations)
    waiting = [len(op.after) + len(op.begun) for op in operations]
    on_end: list[list[int]] = [[] for _ in operations]
    on_start: list[list[int]] = [[] for _ in operations]
    last: dict[Hashable, int] = {}
    for i, op in enumerate(operations):
        for j in op.after:
            on_end[j].append(i)
        for j in op.begun:
            on_start[j].append(i)
        if op.engine in last:
            on_end[last[op.engine]].append(i)
            waiting[i] += 1
        last[op.engine] = i
    run = _Run(operations, waiting, on_end, on_start)
    run.to_the_end()
    if None in run.ends:
        raise ValueError(f"{run.ends.count(None)} of {count} operations wait for one another")
    return Timeline(tuple(map(_known, run.starts)), tuple(map(_known, run.ends)), run.contended)


def _known(time: float | None) -> float:
    assert time is not None
    return time


class _Run:
    """The state of an execution: a clock, who holds which component, who has asked."""

    def __init__(
        self,
        operations: Sequence[Operation],
        waiting: list[int],
        on_end: list[list[int]],
        on_start: list[list[int]],
    ) -> None:
        self.operations, self.waiting, self.on_end, self.on_start = operations, waiting, on_end, on_start
        self.starts: list[float | None] = [None] * len(operations)
        self.ends: list[float | None] = [None] * len(operations)
        self.asked: list[tuple[float, int, int]] = []
        self.held: set[Hashable] = set()
        self.running: list[tuple[float, int]] = []
        self.now = 0.0
        self.contended = False

    def to_the_end(self) -> None:
        self._ask([i for i, count in enumerate(self.waiting) if not count])
        self._serve()
        while self.running:
            self.now = self.running[0][0]
            while self.running and self.running[0][0] == self.now:
                self._finish(heappop(self.running)[1])
            self._serve()

    def _ask(self, ready: list[int]) -> None:
        for i in ready:
            heappush(self.asked, (self.now, -self.operations[i].rank, i))

    def _release(self, followers: list[int]) -> None:
        for i in followers:
            self.waiting[i] -= 1
        self._ask([i for i in dict.fromkeys(followers) if not self.waiting[i]])

    def _finish(self, i: int) -> None:
        self.ends[i] = self.now
        self.held.difference_update(self.operations[i].components)
        self._release(self.on_end[i])

    def _serve(self) -> None:
        """Start everything that can start now: first come, first served on every component."""
        again = True
        while again:
            again = False
            queue, self.asked = sorted(self.asked), []
            taken: set[Hashable] = set()
            for request in queue:
                op = self.operations[request[2]]
                if taken.isdisjoint(op.components) and self.held.isdisjoint(op.components):
                    self._start(request[2])
                    again = True
                else:
                    self.contended = True
                    taken.update(op.components)
                    heappush(self.asked, request)

    def _start(self, i: int) -> None:
        op = self.operations[i]
        self.starts[i] = self.now
        self.held.update(op.components)
        heappush(self.running, (self.now + op.duration, i))
        self._release(self.on_start[i])

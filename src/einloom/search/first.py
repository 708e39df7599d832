"""A legal mapping before a proof has one: drawn from the encoding, then improved in small slices of time.

Comes in: a problem. Goes out: the best mapping met, priced by `evaluate`. It is the answer of a search that is cut off
before it has a mapping of its own; a proof that ends never looks at it (docs/exact.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

from ..errors import Infeasible
from ..mapping.tree import Mapping
from ..mapspace.ffm.encoding import NoProposal, State
from ..mapspace.ffm.space import Ffm
from ..mapspace.registry import space_for
from ..problem import Budget, Problem
from .evaluator import Evaluator
from .heuristics.points import Points, Valued
from .method import Watcher

AFTER = 0.3  # seconds of a search without a mapping before one is drawn
PLAIN = 5  # draws with nothing fused that need not be, before fused ones
TRIES = 12  # proposals for the privates of each Einsum in a descent
ANEW = 0.2  # of the descents begin at a new state, the others near the best one
KICKS = 4  # moves away from it, at most
SHARED = 40  # proposals in a row for what Einsums share that may come to nothing


class FirstMappings:
    """Draws, and descents from them and from near the best, a piece at a time.

    best: the best legal mapping inside the space so far.

    watch: hears of each better mapping, and says when to stop.
    """

    def __init__(self, problem: Problem, watch: Watcher) -> None:
        self.problem, self.watch = problem, watch
        self._pieces: Iterator[None] | None = None
        self._prices: Evaluator | None = None
        self._points: Points | None = None
        self._ready: Valued | None = None
        self._top: Valued | None = None

    @property
    def best(self) -> Mapping | None:
        return None if self._prices is None else self._prices.best

    def work(self, until: float) -> None:
        """Go on until this moment of `time.monotonic`, a piece at least; a piece takes milliseconds an Einsum."""
        if self._pieces is None:
            self._pieces = self._visits()
        for _ in self._pieces:
            if time.monotonic() >= until:
                break
        self._offer()

    def draw(self) -> Mapping | None:
        """The best mapping so far; without one the first is drawn now. None if a good number of draws had none."""
        if self._pieces is None:
            self._pieces = self._visits()
        while self.best is None and next(self._pieces, self) is not self:
            pass
        return self.best

    def _visits(self) -> Iterator[None]:
        problem, rng = self.problem, Random(0)
        space = space_for(problem.workload, problem.machine, problem.mapspace)
        if not isinstance(space, Ffm):
            return
        self._prices = Evaluator(problem, space, Budget(), _Quiet(self.watch))
        try:
            points = self._points = Points(problem, space, self._prices)
        except Infeasible:  # an Einsum without a unit: the search says so
            return
        found = None
        for draw in range(2 * PLAIN):
            found = self._drawn(points, rng, 0.0 if draw < PLAIN else None)
            self._offer()
            yield
            if self.best is not None:
                break
        while self.best is not None:
            if found is not None:
                yield from self._descent(points, found, rng)
            found = self._drawn(points, rng, None) if rng.random() < ANEW else self._kicked(points, rng)
            yield

    def _offer(self) -> None:
        """Have the state that is ready priced as a whole, and kept if it is the best."""
        if self._ready is not None and self._points is not None and self._ready[0] < self._points.evaluator.value:
            self._points.value(self._ready[1])
        self._ready = None

    def _seen(self, found: Valued) -> Valued:
        if self._ready is None or found[0] < self._ready[0]:
            self._ready = found
        if self._top is None or found[0] < self._top[0]:
            self._top = found
        return found

    def _drawn(self, points: Points, rng: Random, fuse: float | None) -> Valued | None:
        state = points.encoding.sample(rng, fuse)
        return None if state is None else self._seen((points.apart(state), state))

    def _kicked(self, points: Points, rng: Random) -> Valued | None:
        """The best state so far after some moves at random, good or bad (iterated local search)."""
        found = self._top
        for _ in range(rng.randint(1, KICKS)):
            near = None if found is None else self._near(points, found[1], rng, 0.5)
            found = near if near is not None and near[0] < float("inf") else found
        return found

    def _descent(self, points: Points, found: Valued, rng: Random) -> Iterator[None]:
        """Better states one move away, of the privates first and then of what Einsums share."""
        count = points.facts.count
        for i in range(count):
            for _ in range(TRIES):
                found = self._seen(self._better(points, found, rng, i))
                yield
        failed = 0
        while failed < SHARED and points.facts.floating:
            before = found[0]
            near = self._near(points, found[1], rng, 0.5)
            if near is not None and near[0] < float("inf"):
                for i in [i for i in range(count) if near[1].shared[i] != found[1].shared[i]]:
                    near = self._better(points, near, rng, i)
                    yield
            if near is not None and near[0] < found[0]:
                found = self._seen(near)
            failed = 0 if found[0] < before else failed + 1
            yield

    def _better(self, points: Points, found: Valued, rng: Random, i: int) -> Valued:
        near = self._near(points, found[1], rng, 0.0, i)
        return found if near is None or near[0] >= found[0] else near

    @staticmethod
    def _near(points: Points, state: State, rng: Random, shared: float, i: int | None = None) -> Valued | None:
        try:
            moved = points.encoding.propose(state, rng, shared, i)
        except NoProposal:
            return None
        return points.apart(moved), moved


class _Quiet(Watcher):
    """Passes on better mappings alone: counts and stages are those of the search."""

    def __init__(self, outer: Watcher) -> None:
        self.incumbent = outer.incumbent  # type: ignore[method-assign]

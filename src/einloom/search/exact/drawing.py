"""When mappings are drawn: as long as the search has none of its own, in slices of time between its steps.

Comes in: what draws (`first.py`), the incumbent, the limits. Goes out: the best drawn mapping, for a search that is cut
off; or `AtTheBound`, raised where a mapping costs no more than what is proven.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ...problem import Budget, Problem
from ..first import AFTER, LATE, FirstMappings
from ..method import Watcher
from .attempt import Solution
from .bounds.cutoff import BELOW, TIE
from .einsums.runs import TooManyChoices
from .incumbent import Incumbent
from .options import ExactOptions
from .segments.chain import Chain
from .stops import Enough, Stops

# Where no seconds are given the first mapping is drawn so many times later, and once more for so many Einsums: most
# such searches have ended by then.
PATIENT, DRAWN = 8, 100
SLICE = 0.05  # seconds of drawing at a time
BRIEF = 0.002  # seconds in which the CPU time, which takes up to 40 us to ask for, is not asked for again
PROVING = 19  # seconds of search for one of drawing, without a budget, where a mapping is near the bound or soon found
FAR = 2.0  # times the bound: what is known is near it up to there
# seconds of drawing without a budget, while nothing near is known, for which it has the share that it asks
SHARED = 8.0
FURTHER = 3.0  # seconds of search for one of drawing after these, at least
ALONE = 5.0  # CPU seconds of drawing without a budget of seconds where spatial choices are too many to be listed
LOADS_FROM = 2.0  # seconds of a budget from which it is worth it to load machine code for drawing
HASTE = 30.0  # seconds of a budget from which on a dive has a better mapping of a network before its end
SOON = 0.2  # seconds of drawing for half of the time, beside dives into few choices
TURNS = 6.0  # seconds of these for one of drawing after that
FAVOURED = 10.0  # seconds of drawing, at most, while it has more of the time than the search
CLOSING = 2  # times the pricing of what was drawn is left to the end of a search, or one part in so many of its seconds
Drawer = Callable[[Problem, Watcher, bool], FirstMappings]


class AtTheBound(Exception):
    """A mapping, drawn or found, costs no more than what is proven that every mapping costs."""

    def __init__(self, solution: Solution) -> None:
        self.solution = solution


class Drawing:
    """The drawn mappings of one search, and the moments at which more are drawn.

    first: what draws; None where nothing is drawn. allowed: whether anything is drawn for now. chains: whether the
    search has a chain of segments, in which a dive is soon done.
    """

    def __init__(self, incumbent: Incumbent, stops: Stops, options: ExactOptions, drawer: Drawer | None) -> None:
        self.incumbent, self.stops, self.budget = incumbent, stops, stops.budget
        problem, seconds = incumbent.problem, self.budget.seconds
        loads = seconds is None or seconds >= LOADS_FROM
        draws = drawer if options.limit is None else None
        self.first = None if draws is None else draws(problem, incumbent.watcher, loads)
        self.allowed = True
        self.chains = Chain.able(problem, options)
        self._enough, self._asked = np.inf, -np.inf
        self._drawn = self._again = 0.0  # CPU seconds: a busy machine does not change the shares
        late = PATIENT + len(problem.workload.einsums) / DRAWN if seconds is None else 1
        eager = seconds is not None and self.first is not None and self.first.eager
        self._after = 0.0 if eager else AFTER * late
        # without seconds in CPU time: the same on a busy machine; steps give the same answer twice
        self._clock = time.process_time if seconds is None else time.monotonic
        self._at = self._clock() + (self._after if self.budget.steps is None else np.inf)

    def go_on(self, outer: Drawing) -> None:
        """Draw from now on what another search drew, as late in this search as in that one."""
        self.first, self._after = outer.first, outer._after
        self._at = self._clock() + self._after

    def at_once(self) -> None:
        """Draw one mapping now, if none is known; from now on drawing and the search take turns."""
        if self.first is not None and self.budget.steps is None:
            self.first.draw()
            self.end_if_met()
            self.first.early, self.first.hurried = SOON, TURNS
            self._at = self._clock()

    def go_on_near(self, known: Solution | None, turns: float = 1.0) -> None:
        """Draw from now on for one second in so many of the search besides; near a mapping, if one is known."""
        if self.first is not None:
            self.first.hurried, self._again = turns, 0.0
            if known is not None:
                self.first.go_on_near(known.mapping)

    def begin_near(self, known: Solution | None) -> None:
        """Go on drawing near a mapping that is better than what was drawn."""
        if self.first is not None and known is not None and known.value * self.incumbent.repeats < self.first.promised:
            self.first.go_on_near(known.mapping)

    @contextmanager
    def resting(self, seconds: float) -> Iterator[None]:
        """A ``with`` block in whose first seconds nothing is drawn, if a mapping is known."""
        before = self._at
        if np.isfinite(self.least):
            self._at = max(before, self._clock() + seconds)
        try:
            yield
        finally:
            self._at = before

    @property
    def least(self) -> float:
        """The least value of one repeat that is known, drawn or found."""
        drawn = np.inf if self.first is None else self.first.value / self.incumbent.repeats
        return min(self.incumbent.value, drawn)

    @property
    def leads(self) -> bool:
        """True if a drawn mapping is better than what the search has found."""
        return self.first is not None and self.first.promised < self.incumbent.value * self.incumbent.repeats

    @contextmanager
    def until(self, moment: float) -> Iterator[None]:
        """A ``with`` block in which `Enough` is raised after this moment of `time.process_time`."""
        self._enough, self._asked = moment, -np.inf
        try:
            yield
        finally:
            self._enough = np.inf

    def checkpoint(self) -> None:
        """Raise Stopped if the budget is spent, and AtTheBound if nothing can be better than what is known. As long as
        no mapping that fuses is known, draw some now and then."""
        self.stops.check(self._closing)
        if self.incumbent.best is not None and self.incumbent.met:
            raise AtTheBound(self.incumbent.best)
        if self._enough == np.inf and (self.first is None or not self.allowed):
            return
        moment = time.monotonic()
        if moment < self._asked + BRIEF:
            return
        self._asked, begun = moment, time.process_time()
        if begun > self._enough:
            raise Enough
        due = self.allowed and self._clock() >= self._at and begun >= self._again
        if self.first is not None and due and self.incumbent.provisional:
            known = self.first.best is not None
            self.first.work(begun + SLICE)
            took = time.process_time() - begun
            self._drawn += took if known else 0.0
            patient = self.chains and (self.budget.seconds is None or self.budget.seconds >= HASTE)
            early = self._drawn < self.first.early
            if patient:
                turns: float = PROVING
            elif self.budget == Budget():
                turns = self._unhurried(self.first)
            else:
                turns = 1.0 if early else self._turns(self.first)
            self._again = begun + took + took * turns
            self.end_if_met()

    def _turns(self, first: FirstMappings) -> float:
        """Seconds of the search for one of drawing; after some of these no less than one, because bounds may rise."""
        return max(first.hurried, 1.0) if self._drawn > FAVOURED else first.hurried

    def _unhurried(self, first: FirstMappings) -> float:
        """The same without a budget: few as long as nothing near the bound is known, because somebody may stop it."""
        if self.least <= FAR * self.incumbent.bound / self.incumbent.repeats:
            return PROVING
        return first.hurried if self._drawn < SHARED else max(first.hurried, FURTHER)

    def draw_on(self) -> None:
        """Draw for what is left of a budget of seconds, or for some seconds without one; not under a budget of steps.

        Raises Stopped or AtTheBound as `checkpoint` does.
        """
        until = time.process_time() + (ALONE if self.budget.seconds is None else np.inf)
        while self.first is not None and self.budget.steps is None and time.process_time() < until:
            self.first.work(time.process_time() + SLICE)
            if self.first.best is None:
                return
            self.end_if_met()
            self.checkpoint()

    @contextmanager
    def where_none_fit(self) -> Iterator[None]:
        """A ``with`` block after which mappings are drawn, if it ends because no memory would hold its choices."""
        try:
            yield
        except TooManyChoices:
            self.draw_on()
            raise

    @property
    def _closing(self) -> float:
        """Seconds that the end of the search may take: the answer is priced as a whole, as what was drawn has been."""
        priced = 0.0 if self.first is None else self.first.pricing
        return min(CLOSING * priced, (self.budget.seconds or 0.0) / CLOSING)

    @property
    def limit(self) -> float:
        """Below this (of all repeats) is whatever is better than the best drawn mapping; infinite where no limit comes
        from what is drawn: without seconds a proof and the mapping that it ends with do not hang on when it was."""
        first, sets = self.first, self.first is not None and self.first.limits and self.budget.seconds is not None
        return first.value * BELOW if first is not None and sets else np.inf

    def end_as_best(self) -> None:
        """Raise AtTheBound: nothing is better than the best drawn mapping."""
        assert self.first is not None and self.first.best is not None
        raise AtTheBound(self.incumbent.solution(self.first.best, self.first.cost))

    def end_if_met(self) -> None:
        """Raise AtTheBound if the best drawn mapping is at the bound; of a Pareto set one point is not enough."""
        incumbent = self.incumbent
        if self.first is None or not incumbent.provisional or incumbent.problem.objective.name == "pareto":
            return
        if self.first.best is not None and self.first.value <= incumbent.bound * (1 + TIE):
            self.end_as_best()

    def best(self) -> Solution | None:
        """The best mapping of a search that was cut off, found or drawn; None without any."""
        incumbent, first = self.incumbent, self.first
        if first is not None and incumbent.best is not None:
            value = incumbent.best.value * self.incumbent.repeats
            useless = incumbent.problem.objective.name != "pareto" and value <= first.promised
            first = None if first.best is None or useless else first
        hurry = self.budget.seconds is not None or incumbent.watcher.stopped()
        mapping = None if first is None else first.draw(time.monotonic() + LATE if hurry else np.inf)
        drawn = [] if first is None or mapping is None else [incumbent.solution(mapping, first.cost)]
        found = [] if incumbent.best is None else [incumbent.best]
        return min([*found, *drawn], key=lambda one: one.value, default=None)

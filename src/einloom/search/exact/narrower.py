"""Few fused loops in between, where a budget of seconds may end a search of many: what they reach is in the space.

Comes in: a search that goes on. Goes out: mappings of smaller spaces, each searched for a part of the budget at one of
the search's checks, and kept by its incumbent (docs/exact.md, the limit).
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from ...errors import Infeasible
from .einsums.runs import TooManyChoices
from .head_starts import Search
from .options import ExactOptions
from .stops import Enough, StopsOnly

LEAST = 2.0  # seconds of a budget, from which on smaller spaces are looked at
AFTER = 0.5  # of a budget goes to the whole space before: what is proven by then is proven as if there were no looks
LOOPS = (1, 2)  # fused loops of the spaces that are looked at
POOL = 0.3  # of a budget goes to all of them together, at most
HALF = 0.5  # of what is left of that goes to the next one, at most; all of it to the last
GAP = 1.1  # times the bound: a mapping that costs less needs no other one


class SmallerSpaces:
    """The looks at smaller spaces of one search, each once, one after the other."""

    def __init__(self, search: Search, options: ExactOptions) -> None:
        seconds, problem = search.budget.seconds, search.problem
        asked = seconds is not None and seconds >= LEAST and search.budget.steps is None and options.incumbent
        able = problem.mapspace.name == "ffm" and problem.objective.name != "pareto" and options.limit is None
        self.search, self._left = search, list(LOOPS) if asked and able and not search.drawing.chains else []
        self._pool = POOL * (seconds or 0.0)
        self._at = search.stops.started + AFTER * seconds if seconds is not None else np.inf

    @property
    def wait(self) -> bool:
        """True if some are to be looked at."""
        return bool(self._left)

    def rest(self) -> None:
        """Look at none."""
        self._left = []

    def look(self) -> None:
        """Search the next smaller space, if it is time to and nothing near the bound is known.

        The last one is that of which the search had not seen all in its part of the budget.
        """
        search = self.search
        if not self._left or time.monotonic() < self._at:
            return
        if search.drawing.least * search.incumbent.repeats <= GAP * search.incumbent.bound:
            return
        loops, begun = self._left.pop(0), time.monotonic()
        allowed = search.problem.mapspace.max_fused_loops
        smaller = allowed is None or allowed > loops
        if not smaller or not self._searched(loops, self._pool * (HALF if self._left else 1.0)):
            self._left = []
        self._pool -= time.monotonic() - begun

    def _searched(self, loops: int, seconds: float) -> bool:
        """Search the mappings with so many fused loops at most. True if their best is known now."""
        search, known = self.search, self.search.incumbent
        space = replace(
            search.problem.mapspace, max_fused_loops=loops, order="program", stores="own", concurrent="none"
        )
        inner = search.within(replace(search.problem, mapspace=space), StopsOnly(search.watcher))
        inner.stops.counts = {}
        inner.stops.until = min(search.stops.until, time.monotonic() + seconds)
        inner.incumbent.best = inner.incumbent.early = before = known.best
        search.watcher.stage(f"at most {loops} fused loop{'s' * (loops != 1)}")
        done = False
        try:
            with suppress(Infeasible, Enough, TooManyChoices):
                inner.incumbent.best = inner.solve()
                done = True
        finally:
            best = inner.incumbent.best
            if best is not None and best is not before and best.value < known.value:
                if known.provisional:
                    known.early = best
                known.found(best)
        search.drawing.begin_near(known.best)
        return done

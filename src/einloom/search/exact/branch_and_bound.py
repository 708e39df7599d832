"""Branch and bound: limits raised from the sum of lower bounds until some cascade stays below one; then it is optimal.

Comes in: a problem with its limits. Goes out: the optimum, or the whole Pareto set; an incumbent that was told of every
solution and bound on the way. Below each limit an attempt goes from classes of Einsums to groups of pmappings, joins
and trees (`attempt.py`). The argument for every rule: docs/exact.md, docs/model/pruning.md (after FFM, section 6).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np

from ...errors import Defect, Infeasible
from ...problem import Budget, Objective, Problem
from ...problem.compulsory import compulsory
from ..checked import priced
from ..first import FirstMappings
from ..method import Watcher
from .attempt import Attempt, Solution
from .bounds.cutoff import BELOW, TIE, finer
from .concurrent.first_attempt import attempt_for
from .drawing import FAR, AtTheBound, Drawer, Drawing
from .factors import by_energy, due
from .feasible import AT_ONCE, CHAINED, HEURISTICS, NEAR, heuristic, heuristic_by_segments, nearest
from .front import front, tied_front
from .head_starts import before_bounds, bounded, first_apart, first_uneven, first_unfused, quick_below, round_up
from .incumbent import Incumbent
from .joining.completions import TooMany
from .narrower import SmallerSpaces
from .neighbours import alike, large, look, look_at_segments
from .numerics.pareto import FloatArray
from .options import ExactOptions
from .segments.chain import Chain
from .stops import Enough, Stopped, Stops, StopsOnly

CUTOFF_SCHEDULE = (0.002, 0.02, 0.06, 0.15, 0.3, 0.6, 1.5, 4.0, 16.0, np.inf)  # limits tried, as shares above the bound
AT_BOUND, SUMMED = 1e-6, 0.01  # limits that are looked at before a dive: the second where costs add up
FEW, LOOKED = 5_000, 150_000  # rows of the first look after which there is a second, and of one that is given up
LONGER = 1.5  # times what bounds took, which a look at the bound may take instead
SECONDS, SHARE = 3.0, 0.2  # if that is so long, and no more than this share of what is left of a budget
QUIET = 0.4  # of what is left of a budget nothing is drawn during a look at the bound, at most
GLANCED = 30_000  # of one that is given up where quick passes look below Einsums alone next
NEXT_TO_BOUND = (1e-6, 0.004)  # limits below a first one, as shares above the bound
ABOVE = (1e-6, 1e-3, 1e-2, 0.05)  # limits of rounded tiles, as shares above the relaxation
# limits of the relaxation before that of a known value, as shares above the bound
NEARLY = (1e-4, 2e-3, 6e-3, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5)
SOONER_THAN = 0.6  # they go up to this share of the way
GOALS = (Objective("energy"), Objective("latency"), Objective("edp"))
"""Of a Pareto set's ends and its middle; the last comes first under a budget, because what is kept is judged by it."""
TIMES, SOME = 2, 100  # times the choices of the last limit, or so many, are few more where windows slide
COUNTED = 20_000  # choices of a limit after which those of the next ones are not counted
CLIMBING = (1e-6, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.55, 0.75, 1.0, 1.5, 2.5, 4.0, 8.0, 16.0, np.inf)
"""Limits where Einsums have very many choices, as shares above the bound."""
SOONER = 0.1  # limits up to this share of the way from the bound to a known value are tried before it


class Run:
    """One search under a budget: what it knows, when it stops, when it draws; and how it raises its limits.

    drawer: makes what draws mappings until the search has one of its own; None: nothing is drawn.
    """

    def __init__(
        self,
        problem: Problem,
        options: ExactOptions,
        budget: Budget,
        watcher: Watcher,
        drawer: Drawer | None = FirstMappings,
    ) -> None:
        self.problem, self.options, self.budget, self.watcher = problem, options, budget, watcher
        self.drawer, self.incumbent = drawer, Incumbent(problem, watcher)
        self.stops = Stops(budget, watcher)
        self.drawing = Drawing(self.incumbent, self.stops, options, drawer)
        self.smaller = SmallerSpaces(self, options)
        self.checks: Callable[[], None] = self._check
        self.points: list[Solution] = []  # of a Pareto set, met so far

    def within(self, problem: Problem, watcher: Watcher, draws: bool = False) -> Run:
        """A search inside this one: on the same budget, from no known mapping. draws: mappings, if this one does."""
        drawer = self.drawer if draws else None
        inner = Run(problem, replace(self.options, start=()), self.budget, watcher, drawer)
        inner.smaller.rest()
        inner.stops.counts, inner.stops.started = self.stops.counts, self.stops.started
        return inner

    def _check(self) -> None:
        """What is done now and then: stops, drawing, and looks at smaller spaces."""
        self.drawing.checkpoint()
        self.smaller.look()

    def attempt(self) -> Attempt:
        """The first attempt at the problem."""
        return attempt_for(self.problem, self.options, self.watcher, self.stops.counts, self.checks)

    def solve(self) -> Solution:
        """Raise a limit from the sum of lower bounds until some cascade stays below it: then the best is optimal, as is
        one on the way that costs no more than what is proven."""
        try:
            return self._raised()
        except AtTheBound as met:
            return met.solution

    def _raised(self) -> Solution:
        if self.options.limit is None:
            self.incumbent.prove(compulsory(self.problem))
        attempt = self.attempt()
        if self.smaller.wait and attempt.crowded:  # which lists uneven choices
            self.smaller.rest()
        if not self.options.incumbent:
            return attempt.tiled("every").run(float("inf"))
        most = None if self.options.limit is None else self.options.limit / attempt.repeats * (1 + TIE)
        if most is not None and self.incumbent.value * BELOW <= most * (1 + TIE):
            most = None  # the search looks only below what is known
        if most is None:
            before_bounds(self, attempt)
            self.incumbent.prove(attempt.begin() * attempt.repeats)
            first_uneven(self, attempt)
        bound = bounded(self, attempt, float("inf") if most is None else most * (1 + TIE), self._rising(attempt))
        self.incumbent.prove(bound * attempt.repeats)
        if most is not None:
            return self._at_most(attempt, most)
        if self.incumbent.best is not None and self.incumbent.value * BELOW <= bound:
            return self.incumbent.best
        first_unfused(self, attempt)
        return self._every_tile(attempt, bound) if attempt.tied else self._climb(attempt, bound)

    def _rising(self, attempt: Attempt) -> Callable[[float], None]:
        """What hears of the bound of one repeat while it rises."""
        return lambda bound: self.incumbent.prove(bound * attempt.repeats)

    def _every_tile(self, attempt: Attempt, bound: float) -> Solution:
        """The best cascade where Einsums may cut ranks alike and unevenly."""
        rounded = attempt.tiled("rounded")
        if bound > 0 and not self._begun_within(rounded, AT_ONCE):
            self._dive(attempt, rounded)
            bound = max(bound, attempt.bound)
            self._nearer(rounded, bound)
        best = self.incumbent.best
        if best is not None and best.value <= bound * (1 + TIE):
            return best
        if best is not None and best.value <= bound * (1 + HEURISTICS[-1]):
            return self._refined(attempt, best, rounded)
        try:
            found = self._raise_cutoff(rounded, self._steps(rounded, bound, None))
        except Infeasible:
            return self._raise_cutoff(attempt.tiled("every"), self._steps(attempt, bound, None))
        return self._refined(attempt, found)

    def _dive(self, attempt: Attempt, rounded: Attempt) -> None:
        """Look for a quick solution with rounded tiles; the attempt that bounds it may rise on the way."""
        heuristic(self.incumbent, rounded, attempt, self.stops)
        self.incumbent.prove(attempt.bound * attempt.repeats)

    def _nearer(self, rounded: Attempt, bound: float) -> None:
        """Where nothing near the bound is known: ranks rounded up, for no longer than the search has taken, then a dive
        below the best."""
        if self.incumbent.value <= bound * (1 + HEURISTICS[NEAR - 1]):
            return
        if self.budget == Budget():
            now = time.monotonic()
            round_up(self, 2 * now - self.stops.started)
        if self.incumbent.best is not None:
            self._better(rounded.heuristics()[0], self.incumbent.best)

    def _climb(self, attempt: Attempt, bound: float) -> Solution:
        """The best cascade of an attempt's tiling, from the bound up."""
        chained = self._chained(attempt) if bound > 0 else None
        if chained is not None:
            return chained
        bound = max(bound, attempt.bound)
        if bound > 0 and attempt.crowded:
            return self._raise_cutoff(attempt, self._climbing(attempt, bound))
        first, dived = attempt.first_limit(), None
        if bound > 0 and self._dives(attempt, first):
            apart = self.budget.seconds is not None and first_apart(self, attempt)
            sooner = self._soonest(attempt, bound, GLANCED if apart and not self._sums_up else LOOKED)
            if sooner is not None:
                return sooner
            dived = self._by_segments(attempt)
            bound = max(bound, attempt.bound)
            far = apart and self.incumbent.value > bound * FAR
            whole = far and quick_below(self, attempt)
            if far and self.incumbent.value <= bound * FAR:
                dived = self.incumbent.own()
            elif not whole and dived is None:
                dived = heuristic(self.incumbent, attempt)
                first_unfused(self, attempt, dived=True)
        best = self.incumbent.best
        if best is not None and best.value <= bound * (1 + TIE):
            return best
        if dived is not None:
            nearer = [] if first is None else [*next_to(bound, first), first]
            return self._raise_cutoff(attempt, [*(limit for limit in nearer if limit < dived.value), dived.value])
        return self._raise_cutoff(attempt, self._steps(attempt, bound, first))

    def _by_segments(self, attempt: Attempt) -> Solution | None:
        """A quick solution next to the bound; where there is none, alike segments are looked at, which may raise it."""
        every = alike(attempt)
        found = nearest(self.incumbent, attempt) if every else None
        if every and found is None:
            look_at_segments(attempt, every, self.stops)
            self.incumbent.prove(attempt.bound * attempt.repeats)
        return found

    def _chained(self, attempt: Attempt) -> Solution | None:
        """The best cascade by its segments, or None: it has too few, or costs much more than they say."""
        chain, quick = Chain.of(attempt), Chain.of(attempt.heuristics()[0])
        if chain is None or quick is None:
            return None
        heuristic_by_segments(self.incumbent, quick)
        chain.guided(quick)
        for bound in chain.rising():
            attempt.agreed = max(attempt.agreed, bound)
            self.incumbent.prove(bound * attempt.repeats)
            if self.incumbent.value <= bound * (1 + TIE):
                return self.incumbent.best
        for step in CHAINED:
            most = self.incumbent.value * BELOW
            limit = min(most, attempt.bound * (1 + step))
            try:
                solution = self._run(chain, limit)
            except TooMany:
                return None
            if solution is not None:
                return solution
            if limit == most:
                return self.incumbent.best
        return None

    @property
    def _sums_up(self) -> bool:
        """True if a cascade costs the sum of its Einsums: then the best is often at the bound, or next to it."""
        return self.problem.objective.name in ("energy", "traffic")

    def _soonest(self, attempt: Attempt, bound: float, looked: int) -> Solution | None:
        """The best cascade next to the bound, or None. Where there is one, a dive may cost more than this; where no
        rows are at the bound, few are near it (docs/exact.md, the limit)."""
        further = SUMMED if self._sums_up else CUTOFF_SCHEDULE[1]
        alone = finer(CUTOFF_SCHEDULE, attempt.repetition)[:1] if self._sums_up else (AT_BOUND,)
        for step in (AT_BOUND, further) if attempt.repetition <= 2 else alone:
            limit, before = bound * (1 + step), self.stops.evaluated
            if self.incumbent.value <= limit:
                return None
            try:
                solution = self._looked(attempt, limit, looked, longer=step == AT_BOUND)
            except Enough:
                return None
            if solution is not None:
                return solution
            if self.stops.evaluated - before > FEW:
                return None
        return None

    def _looked(self, attempt: Attempt, limit: float, looked: int, longer: bool) -> Solution | None:
        """What an attempt finds below a limit next to the bound. longer: not only among so many rows, if bounds have
        taken long. While it has not taken long itself nothing is drawn: it may well end with the optimum. Raises Enough
        where it is given up."""
        quiet = min(LONGER * self.stops.spent, QUIET * self._left)
        try:
            with self.stops.after(looked), self.drawing.resting(quiet):
                return self._run(attempt, limit)
        except Enough:
            seconds = LONGER * self.stops.spent
            if not longer or self.budget.steps is not None or not SECONDS <= seconds < SHARE * self._left:
                raise
        with self.stops.within(seconds):
            return self._run(attempt, limit)

    @property
    def _left(self) -> float:
        """The seconds that are left of the budget; infinite without one."""
        return np.inf if self.budget.seconds is None else self.budget.seconds - self.stops.spent

    def _run(self, attempt: Attempt | Chain, limit: float) -> Solution | None:
        """What an attempt finds below a limit; None, and the limit is a bound, if that is nothing.

        What was drawn may set a lower limit. Raises AtTheBound where nothing is below that.
        """
        repeats = self.incumbent.repeats
        most = min(limit, self.drawing.limit / repeats) if attempt.complete_space else limit
        self.watcher.stage(f"looking below {most * repeats:.6g}")
        solution = None
        try:
            if isinstance(attempt, Attempt) and attempt.complete_space:
                solution = attempt.run(most, self._rising(attempt))
            else:
                solution = attempt.run(most)
        except Infeasible:
            if not np.isfinite(most):
                raise
            if attempt.complete_space:
                self.incumbent.prove(most * repeats)
        else:
            self.incumbent.found(solution)
        found = solution is not None and solution.value <= most * (1 + TIE)
        if most < limit and not found:
            self.drawing.end_as_best()
        return solution if found else None

    def _at_most(self, attempt: Attempt, most: float) -> Solution:
        """The best cascade of at most this value, or Infeasible."""
        if not attempt.tied:
            chained = self._chained_at_most(attempt, most) if self.options.at_once else None
            if chained is None:
                look_at_segments(attempt, alike(attempt), self.stops)
            return chained or attempt.run(most)
        rounded = attempt.tiled("rounded")
        if attempt.bound > 0 and not self.options.at_once:
            self.incumbent.ceiling = most * (1 + TIE)
            self._dive(attempt, rounded)
        best = self.incumbent.best
        if best is not None and best.value <= most:
            return best if best.value <= attempt.bound * (1 + TIE) else self._refined(attempt, best, rounded)
        try:
            return self._refined(attempt, rounded.run(most))
        except Infeasible:
            if attempt.relaxes:
                attempt.towards_least(most)
            return attempt.tiled("every").run(most)

    def _chained_at_most(self, attempt: Attempt, most: float) -> Solution | None:
        """The best cascade of at most this value by its segments, or Infeasible; None where there are too few."""
        chain = Chain.of(attempt) if attempt.bound > 0 else None
        if chain is None:
            return None
        for bound in chain.rising():
            attempt.agreed = max(attempt.agreed, bound)
            if bound > most * (1 + TIE):
                raise Infeasible("no combination of segments stays within the limit")
        try:
            return chain.run(most)
        except TooMany:
            return None

    def _refined(self, attempt: Attempt, found: Solution, rounded: Attempt | None = None) -> Solution:
        """The best of all tiles, given a solution: where the relaxation finds nothing below it, that.

        rounded: the attempt with rounded tiles, if the solution need not be the best of those: then they are tried
        next. Else, or if the relaxation is still below, all integers are, below the known value.
        """
        if attempt.relaxes:
            look(attempt, self.stops)
            self.incumbent.prove(attempt.bound * attempt.repeats)
        every = attempt.tiled("every")
        tilings = (every, *([] if rounded is None else [rounded]))
        for other in tilings:
            other.agreed, other.together = max(other.agreed, attempt.agreed), attempt.together
        for limit in self._nearly(attempt, found):
            best = self._all_tiles(attempt, tilings, found, limit)
            if best.value <= limit * (1 + TIE):
                return best
            found = best
        return self._all_tiles(attempt, tilings, found, found.value * BELOW)

    def _nearly(self, attempt: Attempt, found: Solution) -> list[float]:
        """Limits near the bound that are tried before that of a solution: few rows are within them."""
        bound = attempt.bound
        if not attempt.relaxes or bound <= 0 or not large(self.stops):
            return []
        limits = [bound * (1 + step) for step in NEARLY]
        return [limit for limit in limits if limit - bound < SOONER_THAN * (found.value - bound)]

    def _all_tiles(self, attempt: Attempt, tilings: tuple[Attempt, ...], found: Solution, limit: float) -> Solution:
        """The best cascade of all tiles within a limit below a solution; if there is none, that solution.

        tilings: the attempts with every tile and, if these are to be tried before, with rounded ones.
        """
        least, every = 0.0, tilings[0]
        try:
            if attempt.relaxes:
                self.watcher.stage(f"looking below {limit * attempt.repeats:.6g} with tiles that need not agree")
                least = attempt.towards_least(limit, tilings)
                self.incumbent.prove(least * attempt.repeats)
            for rounded in tilings[1:]:
                found = self._next(rounded, found, least, limit)
                if least > found.value * BELOW:
                    return found
            self.watcher.stage("looking below with every tile")
            better = every.run(min(limit, found.value * BELOW))
        except Infeasible:
            if limit < found.value * BELOW:
                self.incumbent.prove(limit * attempt.repeats)
            return found
        self.incumbent.found(better)
        return min(better, found, key=lambda one: one.value)

    def _next(self, attempt: Attempt, found: Solution, least: float, most: float) -> Solution:
        """The best cascade of an attempt below a solution, and of at most so much; if there is none, that. least: of
        the relaxation, from which limits rise."""
        most = min(most, found.value * BELOW)
        for limit in (least * (1 + step) for step in ABOVE):
            if 0 < limit < most and (solution := self._run(attempt, limit)) is not None:
                return solution
        return self._better(attempt, found, most)

    def _better(self, attempt: Attempt, found: Solution, most: float = np.inf) -> Solution:
        """The best cascade of an attempt below a solution, and of at most so much; if there is none, that."""
        limit = min(most, found.value * BELOW)
        self.watcher.stage(f"looking below {limit * attempt.repeats:.6g}")
        try:
            better = attempt.run(limit)
        except Infeasible:
            return found
        self.incumbent.found(better)
        return min(better, found, key=lambda one: one.value)

    def _dives(self, attempt: Attempt, first: float | None) -> bool:
        """Whether to look for a quick solution: not where a known one is as near to the bound as that would be."""
        if self._begun_within(attempt, HEURISTICS[-1]):
            return False
        return first is None or self._sums_up or self.budget != Budget()

    def _begun_within(self, attempt: Attempt, share: float) -> bool:
        """True if the search began with a mapping that costs no more than this share above the quick bound."""
        start = self.incumbent.start
        return start is not None and start.value <= attempt.hurried().bound * (1 + share)

    def _steps(self, attempt: Attempt, bound: float, first: float | None) -> list[float]:
        """Limits from the bound up, of which the last admits whatever is better than the best known mapping."""
        steps = finer(CUTOFF_SCHEDULE, attempt.repetition)
        limits = [bound * (1 + step) if bound > 0 and np.isfinite(bound) else float("inf") for step in steps]
        if first is not None:
            limits = [*next_to(bound, first), first, *(limit for limit in limits if limit > first)]
        known = self.incumbent.value
        if known == np.inf:
            return limits
        share = 1.0 if self.incumbent.provisional else SOONER
        return [*(limit for limit in limits if limit - bound < share * (known * BELOW - bound)), known * BELOW]

    def _climbing(self, attempt: Attempt, bound: float) -> Iterator[float]:
        """Limits from the bound up where Einsums have very many choices: each admits many more than the one before, and
        a dive takes as long as several of the first."""
        if attempt.slides:
            yield from self._by_count(attempt, bound)
            return
        reached, known = 0.0, self.incumbent.value
        for step in CLIMBING:
            while reached < step:
                reached = attempt.next_limit(reached, step)
                if known < np.inf and bound * (1 + reached) >= known * BELOW:
                    yield known * BELOW
                    return
                yield bound * (1 + reached)

    def _by_count(self, attempt: Attempt, bound: float) -> Iterator[float]:
        """The same where windows slide: a limit takes as long as it has choices, so those are left out that are
        followed by one with few more than the last that was tried."""
        count, tried, looked = cache(attempt.choices_within), 0, 0.0
        for step, further in pairwise((*CLIMBING, np.inf)):
            limit, above, known = bound * (1 + step), bound * (1 + further), self.incumbent.value * BELOW
            drawn = self.drawing.least * (1 + 2 * TIE)  # within it is a mapping
            drawn = np.inf if drawn <= looked else drawn
            if limit >= min(known, drawn) or step == np.inf:
                looked = min(known, drawn)
                yield looked
                if looked == known:
                    return
            elif tried > COUNTED:
                yield limit
            elif count(min(above, known, drawn)) > max(TIMES * tried, SOME):
                tried = count(limit)
                yield limit
            elif attempt.plain and attempt.complete_space and not count(limit):
                self.incumbent.prove(limit * attempt.repeats)
        yield self.incumbent.value * BELOW

    def _after_energy(self, attempt: Attempt, limits: Iterable[float]) -> Iterator[float]:
        """The limits; before one of them the least energy is looked for, where that may be of use and no dive comes
        first. After that no limit admits more than what is better than the best known mapping."""
        most = np.inf
        for limit in limits:
            if most == np.inf and due(self) and attempt.crowded:
                by_energy(self)
                most = self.incumbent.value * BELOW
            yield min(limit, most)
            if limit >= most:
                return

    def _raise_cutoff(self, attempt: Attempt, limits: Iterable[float]) -> Solution:
        """The best cascade below the first of the limits that admits one; the best known one if none does."""
        limit = 0.0
        for limit in self._after_energy(attempt, limits):
            if (solution := self._run(attempt, limit)) is not None:
                return solution
        best = self.incumbent.best
        if best is None or limit >= best.value:
            raise Defect(f"exact found nothing below {limit!r}, though there is a mapping of {best!r}")
        return best

    def solve_front(self) -> list[Solution]:
        """The complete energy-latency Pareto set of one repeat, ascending in energy."""
        self.incumbent.prove(compulsory(self.problem))
        attempt = self.attempt()
        bound = attempt.lower_bound()
        self.incumbent.prove(bound * attempt.repeats)
        known = []
        for goal in GOALS if self.budget.seconds is None else GOALS[::-1]:
            self.watcher.stage(f"the point of least {goal}")
            alone = self.within(replace(self.problem, objective=goal), StopsOnly(self.watcher))
            alone.incumbent.begin(self.options.start)
            try:
                known.append(self._point(alone.problem, alone.solve(), proven=True))
            except (Stopped, MemoryError):
                if alone.incumbent.best is not None:
                    self._point(alone.problem, alone.incumbent.best, proven=False)
                raise
        known += [start.cost for start in self.incumbent.starts]
        self.watcher.stage("everything that no known point dominates")
        if attempt.tied:
            return tied_front(attempt, known, self.points.append)
        return front(attempt, attempt.heuristics()[0], known, self.points.append)

    def _point(self, problem: Problem, solution: Solution, proven: bool) -> FloatArray:
        """Energy and latency of one repeat of a solution for one goal, which is kept for its EDP."""
        once = replace(problem, workload=replace(problem.workload, repeat=1))
        cost = priced(once, solution.mapping, solution.value, or_less=not proven)
        point = np.array([cost.energy, cost.latency])
        self.points.append(Solution(cost.edp, point, solution.mapping))
        self.incumbent.found(self.points[-1])
        return point


def next_to(bound: float, first: float) -> list[float]:
    """Limits next to the bound that are tried before a first one: a group may cost less than Einsums in turn, and below
    these few rows are left (docs/exact.md, the limit)."""
    return [limit for limit in (bound * (1 + step) for step in NEXT_TO_BOUND) if limit < first]

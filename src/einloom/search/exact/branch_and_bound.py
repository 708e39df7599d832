"""The exact search: signatures -> blocks -> joins -> tree.

Each stage is a function of the one before; `ExactOptions` switches pruning rules off one at a time. The method and the
argument for every rule: docs/exact.md, docs/model/pruning.md (after FFM, section 6).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ...cost.breakdown import Cost
from ...cost.evaluate import evaluate
from ...errors import BudgetExhausted, Defect, Ended, Infeasible, SpecError
from ...mapping.tree import Mapping
from ...mapspace.space import SPACES
from ...problem import Budget, Certificate, Guarantee, Objective, Problem, refuse_timeless
from ...result import FrontPoint, Result
from ...workload.einsum import Workload
from ...workload.parts import not_whole
from ..checked import certified, priced, sound
from ..first import AFTER, FirstMappings
from ..method import Recorder, Watcher
from ..resources import at_most, rarely_collected, resident_bytes
from ..starts import admitted, fitting
from .attempt import Attempt, ExactOptions, Solution
from .bounds.compulsory import compulsory
from .bounds.cutoff import TIE, settled
from .concurrent.passes import ConcurrentAttempt
from .einsums.orders import layers, refuse_first_readers
from .einsums.spatial import TooManyChoices
from .einsums.users import Users
from .front import front, tied_front
from .joining.completions import TooMany
from .padded import clipped, grown, padded
from .prices.columns import columns
from .segments.chain import SHORT, Chain
from .unfused import unfused

CUTOFF_SCHEDULE = (0.002, 0.02, 0.06, 0.15, 0.3, 0.6, 1.5, 4.0, 16.0, np.inf)  # limits tried, as shares above the bound
COARSE = 0.15  # from here on repeated Einsums take the steps of all
HEURISTICS = (0.02, 0.05, 0.12, 0.25, 0.5, 1.0)
AT_ONCE = 1e-4  # before them, where tiles need not divide: bounds are often attained, and rows within so little few
ABOVE = (1e-6, 1e-3, 1e-2, 0.05)  # limits of rounded tiles, as shares above the relaxation
NEAR = 4  # of these, after which the bound is sharpened
FIRST_FEASIBLE = (HEURISTICS[0], HEURISTICS[-1])
BELOW = 1 - 3 * TIE  # of a value: what is below this is better
CLOSING = 2  # times the pricing of what was drawn is left to the end of a search, or one part in so many of its seconds
# Where no seconds are given the first mapping is drawn so many times later, and once more for so many Einsums: most
# such searches have ended by then.
PATIENT, DRAWN = 3, 30
SLICE = 0.05  # seconds of drawing at a time
PROVING = 19  # seconds of search for one of drawing, without a budget
ALONE = 5.0  # CPU seconds of drawing without a budget of seconds where spatial choices are too many to be listed
LOADS_FROM = 2.0  # seconds of a budget from which it is worth it to load machine code for drawing
HASTE = 30.0  # seconds of a budget from which on a dive has a better mapping of a network before its end
HEAD = 0.25  # of a budget of seconds goes to uneven tiles before perfect ones, at most
CHAINED = (0.0, 1e-6, 1e-4, 3e-4, 1e-3, 4e-3)  # limits of a chain, as shares above its bound
SOONER = 0.1  # limits up to this share of the way from the bound to a known value are tried before it
Drawing = Callable[[Problem, Watcher, bool], FirstMappings]


class Exact:
    """The optimal fused mapping in the stated mapspace, with its certificate.

    drawing: makes what draws mappings until the search has one of its own.
    """

    name = "exact"
    guarantee = Guarantee.OPTIMAL

    def __init__(self, options: ExactOptions | None = None, drawing: Drawing = FirstMappings) -> None:
        self.options, self.drawing = options or ExactOptions(), drawing

    def search(self, problem: Problem, budget: Budget | None = None, watch: Watcher | None = None) -> Result:
        """The optimum of `problem`; if the budget ends first, the best so far with the bound proven so far.

        Raises Infeasible with the limit that stands in the way, BudgetExhausted if the budget ended before any legal
        mapping was found, SpecError for a latency rule other than ``einsum``: the tables add Einsums up; for an
        objective that needs time where nothing takes any; and for a start that is illegal or outside the space. What is
        found is checked: Defect if the tree is not what the tables said.
        """
        refuse_timeless(problem.objective, problem.machine)
        refuse_uncarried(problem)
        if problem.latency_rule != "einsum":
            raise SpecError(
                f"exact proves optima under latency rule 'einsum', not {problem.latency_rule!r}", suggestion="einsum"
            )
        with sound(self.name, problem), rarely_collected():
            run = Run(problem, self.options, budget or Budget(), watch or Watcher(), self.drawing)
            run.begin()
            try:
                return self._answer(run)
            except Infeasible as error:
                if run.best is not None and self.options.limit is None:
                    raise Defect(f"a mapping is known, but the search finds that none is: {error.witness}") from error
                raise

    def _answer(self, run: Run) -> Result:
        pareto = run.problem.objective.name == "pareto"
        solutions: list[Solution] = []
        ended = None
        try:
            with at_most(run.budget.memory), drawing_where_none_fit(run):
                solutions = run.solve_front() if pareto else [run.solve()]
            solution = min(solutions, key=lambda found: found.value)
            guarantee, bound = Guarantee.OPTIMAL, None
        except AtTheBound as met:
            solution, guarantee, bound = met.solution, Guarantee.OPTIMAL, None
        except (Stopped, MemoryError) as error:
            ended = error.ended if isinstance(error, Stopped) else run.budget.without_memory
        if ended is not None:  # out here, where the error keeps no tables alive
            known = run.known()
            if known is None:
                raise BudgetExhausted(run.bound, ended=ended)
            solution, guarantee, bound = known, Guarantee.BOUNDED, run.bound
        points = run.front(solutions) if pareto else ()
        return run.result(self.name, solution, guarantee, bound, points, ended)


def refuse_uncarried(problem: Problem) -> None:
    """Raise SpecError for other spaces, and for what the search of uneven tiles or of any order does not carry yet."""
    name, places, order = problem.mapspace.name, problem.mapspace.places, problem.mapspace.order
    if name not in SPACES:
        raise SpecError(f"exact searches the mapspaces ffm and ragged, not {name!r}", suggestion="ffm")
    if problem.mapspace.stores != "own" and places:
        message = "exact searches no stores that serve several Einsums together with groups of Einsums"
        raise SpecError(message, suggestion="stores: own")
    for tensor in problem.workload.parted if places else ():
        message = f"tensor {tensor} {not_whole(problem.workload, tensor)}: exact searches no groups of Einsums then"
        raise SpecError(message, suggestion="concurrent: none")
    if order == "free":
        if places:
            raise SpecError("exact searches groups of Einsums in program order only", suggestion="order: program")
        refuse_first_readers(problem.workload, problem.machine)
        layers(problem.workload, free=True)


def finer(steps: tuple[float, ...], repetition: float) -> tuple[float, ...]:
    """The steps; for cascades whose Einsums repeat, from much smaller ones up, each three times the one before.

    What a cascade costs above its bound is often that of one layer, and the rows to explore grow with what is left to
    one Einsum: the share that suits a layer is `repetition` times too large for a stack of so many.
    """
    if repetition <= 2:
        return steps
    small = [steps[0] / repetition]
    while 3 * small[-1] < COARSE:
        small.append(3 * small[-1])
    return (*small, *(step for step in steps if step >= COARSE))


def first_feasible(problem: Problem, budget: Budget, watcher: Watcher) -> Mapping | None:
    """A mapping of at most twice the lower bound, if the quickest dive finds one. Nothing is proven by it."""
    run = Run(problem, ExactOptions(), budget, watcher)
    run.first = None
    try:
        with at_most(budget.memory):
            attempt = run._pass()
            bound = attempt.lower_bound()
            quick = attempt.tiled("rounded").heuristics()[0]
            for step in FIRST_FEASIBLE if bound > 0 else ():
                try:
                    solution = quick.run(quick.bound * (1 + step))
                except Infeasible:
                    continue
                return next(iter(fitting(problem, (solution.mapping,))), None)
    except (Infeasible, Stopped, MemoryError):
        pass  # the search itself says so, too
    return None


@contextmanager
def drawing_where_none_fit(run: Run) -> Iterator[None]:
    """A ``with`` block after which mappings are drawn, if the search ends because no memory would hold its choices."""
    try:
        yield
    except TooManyChoices:
        run.draw_on()
        raise


class Stopped(Exception):
    """The budget ended, or the watcher asked to stop."""

    def __init__(self, ended: Ended) -> None:
        self.ended = ended


class _Enough(Exception):
    """Something that is worth only part of the budget has had it."""


class AtTheBound(Exception):
    """A drawn mapping costs no more than what is proven that every mapping costs."""

    def __init__(self, solution: Solution) -> None:
        self.solution = solution


class Run:
    """One search under a budget: the attempts, the best solution and the bound so far."""

    def __init__(
        self,
        problem: Problem,
        options: ExactOptions,
        budget: Budget,
        watcher: Watcher,
        drawing: Drawing = FirstMappings,
    ) -> None:
        self.problem = problem
        self.options = options
        self.budget = budget
        self.watcher = watcher
        self.counts: dict[str, int] = {}
        self.starts: list[Solution] = []
        self.best: Solution | None = None
        self.bound = 0.0
        self.started = time.monotonic()
        loads = budget.seconds is None or budget.seconds >= LOADS_FROM
        self.first = None if options.limit is not None else drawing(problem, watcher, loads)
        self._until = np.inf  # raise _Enough from then on
        self._alone: Solution | None = None  # which fuses nothing
        self._draws = True  # as long as there is no other
        self._chains = Chain.able(problem, options)  # then a dive is soon done
        self._drawing = self._draw_again = 0.0  # CPU seconds: a busy machine does not change the shares
        late = PATIENT + len(problem.workload.einsums) / DRAWN if budget.seconds is None else 1
        eager = budget.seconds is not None and self.first is not None and self.first.eager
        self._after = 0.0 if eager else AFTER * late
        # without seconds in CPU time: the same on a busy machine; steps give the same answer twice
        self._clock = time.process_time if budget.seconds is None else time.monotonic
        self._draw_at = self._clock() + (self._after if budget.steps is None else np.inf)

    def checkpoint(self) -> None:
        """Raise Stopped if the budget is spent. As long as no mapping that fuses is known, draw some now and then."""
        seconds, steps = self.budget.seconds, self.budget.steps
        now = time.monotonic()
        if seconds is not None and now - self.started > seconds - self._closing:
            raise Stopped(Ended.SECONDS)
        if steps is not None and self.counts.get("evaluated", 0) > steps:
            raise Stopped(Ended.STEPS)
        if self.budget.memory is not None and resident_bytes() > self.budget.memory:
            raise Stopped(Ended.MEMORY)
        if self.watcher.stopped():
            raise Stopped(Ended.STOPPED)
        if now > self._until:
            raise _Enough
        drawing = self._draws and self._clock() >= self._draw_at and time.process_time() >= self._draw_again
        if self.first is not None and drawing and self.best is self._alone:
            begun, known = time.process_time(), self.first.best is not None
            self.first.work(begun + SLICE)
            took = time.process_time() - begun
            self._drawing += took if known else 0.0
            patient = self._chains and (seconds is None or seconds >= HASTE)
            early = self._drawing < self.first.early
            turns = PROVING if self.budget == Budget() or patient else 1 if early else self.first.hurried
            self._draw_again = begun + took + took * turns
            self._end_if_met()

    def draw_on(self) -> None:
        """Draw for what is left of a budget of seconds, or for some seconds without one; not under a budget of steps.

        Raises Stopped or AtTheBound as `checkpoint` does.
        """
        until = time.process_time() + (ALONE if self.budget.seconds is None else np.inf)
        while self.first is not None and self.budget.steps is None and time.process_time() < until:
            self.first.work(time.process_time() + SLICE)
            if self.first.best is None:
                return
            self._end_if_met()
            self.checkpoint()

    @property
    def _closing(self) -> float:
        """Seconds that the end of the search may take: the answer is priced as a whole, as what was drawn has been."""
        priced = 0.0 if self.first is None else self.first.pricing
        return min(CLOSING * priced, (self.budget.seconds or 0.0) / CLOSING)

    def _end_if_met(self) -> None:
        """Raise AtTheBound if the best drawn mapping is at the bound; of a Pareto set one point is not enough."""
        if self.first is None or self.best is not self._alone or self.problem.objective.name == "pareto":
            return
        if self.first.best is not None and self.first.value <= self.bound * (1 + TIE):
            raise AtTheBound(self._solution(self.first.best, self.first.cost))

    def known(self) -> Solution | None:
        """The best mapping of a search that was cut off, found or drawn; None without any."""
        drawing = self.first is not None and (self.best is None or self.first.best is not None)
        first = self.first if drawing else None
        if first is not None and self.best is not None:
            problem = self.problem
            value = self.best.value * problem.workload.repeat**problem.objective.degree
            first = None if problem.objective.name != "pareto" and value <= first.promised else first
        mapping = None if first is None else first.draw()
        drawn = [] if first is None or mapping is None else [self._solution(mapping, first.cost)]
        return min([*([] if self.best is None else [self.best]), *drawn], key=lambda one: one.value, default=None)

    def begin(self) -> None:
        """Take the known mappings: the best of them is the best so far. Raises SpecError for one that does not fit."""
        repeats = self.problem.workload.repeat**self.problem.objective.degree
        for mapping in admitted(self.problem, self.options.start):
            self.starts.append(self._solution(mapping))
            self._found(self.starts[-1], repeats)

    def _solution(self, mapping: Mapping, cost: Cost | None = None) -> Solution:
        """A legal mapping with its sums for one repeat. cost: by `evaluate`, if that is known."""
        problem, repeat = self.problem, self.problem.workload.repeat
        cost = cost or evaluate(problem.workload, problem.machine, mapping, problem.latency_rule)
        sums = np.array([part.value(cost) for part in settled(problem.objective)]) / repeat
        return Solution(problem.objective.value(cost) / repeat**problem.objective.degree, sums, mapping)

    @property
    def start(self) -> Solution | None:
        """The best of the known mappings."""
        return min(self.starts, key=lambda known: known.value, default=None)

    def solve(self) -> Solution:
        """Raise a limit from the sum of lower bounds until some cascade stays below it: then the best is optimal."""
        if self.options.limit is None:
            self._prove(compulsory(self.problem))
        attempt = self._pass()
        if not self.options.incumbent:
            return attempt.tiled("every").run(float("inf"))
        most = None if self.options.limit is None else self.options.limit / attempt.repeats * (1 + TIE)
        if most is not None and self.best is not None and self.best.value <= most:
            most = None
        if most is None:
            self._prove(attempt.begin() * attempt.repeats)
            self._soon(attempt)
        bound = attempt.lower_bound(float("inf") if most is None else most * (1 + TIE), self._rising(attempt))
        self._prove(bound * attempt.repeats)
        if most is not None:
            return self._within(attempt, most)
        self._unfused(attempt)
        return self._every_tile(attempt, bound) if attempt.tied else self._climb(attempt, bound)

    def _soon(self, attempt: Attempt) -> None:
        """Mappings to start from where tiles need not divide and seconds count: uneven ones that fuse nothing, then the
        best perfect ones, which are in the space, too (docs/exact.md, the limit)."""
        if self.budget.seconds is None or not any(signature.uneven for signature in attempt.signatures):
            return
        self._draws, self._until = False, self.started + HEAD * self.budget.seconds
        with suppress(Infeasible, _Enough):
            self._alone = unfused(attempt.tiled("rounded"))
            self._found(self._alone, attempt.repeats)
        self._draws, self._until = True, np.inf
        perfect = replace(self.problem, mapspace=replace(self.problem.mapspace, name="ffm"))
        run = Run(perfect, replace(self.options, start=()), self.budget, _Inside(self.watcher))
        run.counts, run.started, run.first = self.counts, self.started, self.first
        run.best = run._alone = self.best
        run._draw_at = time.monotonic() + self._after
        try:
            run.best = run.solve()
        except AtTheBound as met:
            run.best = met.solution
        except Infeasible:
            pass
        finally:
            if run.best is not None:
                self._found(run.best, attempt.repeats)
        if self.best is not None:
            self.first = None  # what would be drawn has perfect tiles
        now = time.monotonic()
        self._padded(now + HEAD * max(0.0, self.started + self.budget.seconds - now))

    def _padded(self, until: float) -> None:
        """Mappings to start from where tiles need not divide: the best perfect tiles of ranks rounded up, cut off at
        the ranks as they are. until: a moment of `time.monotonic` after which no further ranks are tried."""
        problem, tried = self.problem, False
        for wider in padded(problem.workload):
            if tried and time.monotonic() > until:
                return
            tried = True
            self.watcher.stage("ranks rounded up: " + ", ".join(f"{v}={n}" for v, n in grown(problem.workload, wider)))
            larger = replace(problem, workload=wider, mapspace=replace(problem.mapspace, name="ffm"))
            run = Run(larger, replace(self.options, start=()), self.budget, _Listener(self.watcher))
            run.counts, run.started, run.first, run._until = self.counts, self.started, None, until
            try:
                run.solve()
            except (Infeasible, _Enough):
                pass
            finally:
                self._cut_off(run.best, wider)

    def _cut_off(self, found: Solution | None, wider: Workload) -> None:
        """Keep a mapping of a workload with ranks rounded up, if it is one of the problem's without what was added."""
        mappings = () if found is None else (clipped(found.mapping, wider, self.problem.workload),)
        for mapping in fitting(self.problem, mappings):
            self._found(self._solution(mapping), self.problem.workload.repeat**self.problem.objective.degree)

    def _unfused(self, attempt: Attempt, dived: bool = False) -> None:
        """A first mapping by the search, if nothing is known and seconds are few: each Einsum alone. For networks, and
        for any cascade in which a dive has found nothing."""
        asked = (dived or len(self.problem.workload.einsums) >= SHORT) and type(attempt) is Attempt and not attempt.tied
        if self.best is not None or (self.budget.seconds or HASTE) >= HASTE or not asked:
            return
        self._draws = False
        try:
            self._alone = unfused(attempt)
            self._found(self._alone, attempt.repeats)
            self._draws = not self._chains
        except Infeasible:
            self._draws = True

    def _rising(self, attempt: Attempt) -> Callable[[float], None]:
        """What hears of the bound of one repeat while it rises."""
        return lambda bound: self._prove(bound * attempt.repeats)

    def _every_tile(self, attempt: Attempt, bound: float) -> Solution:
        """The best cascade where Einsums may cut ranks alike and unevenly."""
        rounded = attempt.tiled("rounded")
        if bound > 0 and self._dives(rounded, None):
            self._heuristic(rounded, attempt)
            bound = max(bound, attempt.bound)
            self._prove(bound * attempt.repeats)
            self._nearer(rounded, bound)
        if self.best is not None and self.best.value <= bound * (1 + TIE):
            return self.best
        if self.best is not None and self.best.value <= bound * (1 + HEURISTICS[-1]):
            return self._refined(attempt, self.best, rounded)
        try:
            found = self._raise_cutoff(rounded, self._steps(rounded, bound, None))
        except Infeasible:
            return self._raise_cutoff(attempt.tiled("every"), self._steps(attempt, bound, None))
        return self._refined(attempt, found)

    def _nearer(self, rounded: Attempt, bound: float) -> None:
        """Where nothing near the bound is known: ranks rounded up, for no longer than the search has taken, then a dive
        below the best."""
        if self.best is not None and self.best.value <= bound * (1 + HEURISTICS[NEAR - 1]):
            return
        if self.budget == Budget():
            now = time.monotonic()
            self._padded(2 * now - self.started)
        if self.best is not None:
            self._better(rounded.heuristics()[0], self.best)

    def _climb(self, attempt: Attempt, bound: float) -> Solution:
        """The best cascade of an attempt's tiling, from the bound up."""
        chained = self._chained(attempt) if bound > 0 else None
        if chained is not None:
            return chained
        bound = max(bound, attempt.bound)
        first, dived = attempt.first_limit(), None
        if bound > 0 and self._dives(attempt, first):
            sooner = self._soonest(attempt, bound) if self._sums_up else None
            if sooner is not None:
                return sooner
            dived = self._heuristic(attempt)
            self._unfused(attempt, dived=True)
        if self.best is not None and self.best.value <= bound * (1 + TIE):
            return self.best
        if dived is not None:
            return self._raise_cutoff(
                attempt, [*([first] if first is not None and first < dived.value else []), dived.value]
            )
        return self._raise_cutoff(attempt, self._steps(attempt, bound, first))

    def _chained(self, attempt: Attempt) -> Solution | None:
        """The best cascade by its segments, or None: it has too few, or costs much more than they say."""
        chain, quick = Chain.of(attempt), Chain.of(attempt.heuristics()[0])
        if chain is None or quick is None:
            return None
        self._dived_by_segments(quick)
        chain.guided(quick)
        for bound in chain.rising():
            attempt.agreed = max(attempt.agreed, bound)
            self._prove(bound * attempt.repeats)
            if self.best is not None and self.best.value <= bound * (1 + TIE):
                return self.best
        for step in CHAINED:
            most = float("inf") if self.best is None else self.best.value * BELOW
            limit = min(most, attempt.bound * (1 + step))
            try:
                solution = self._run(chain, limit)
            except TooMany:
                return None
            if solution is not None and solution.value <= limit * (1 + TIE):
                return solution
            if limit == most:
                return self.best
        return None

    def _dived_by_segments(self, quick: Chain) -> None:
        """A quick feasible solution from quick ones of the segments, if there is one near what they say."""
        try:
            for _ in quick.rising():
                pass
            for limit in (quick.bound * (1 + step) for step in CHAINED):
                try:
                    self._found(quick.run(limit), quick.repeats)
                    return
                except Infeasible:
                    continue
        except (Infeasible, TooMany):
            return

    @property
    def _sums_up(self) -> bool:
        """True if a cascade costs the sum of its Einsums: then the best is often at the bound, or next to it."""
        return self.problem.objective.name in ("energy", "traffic")

    def _soonest(self, attempt: Attempt, bound: float) -> Solution | None:
        """The best cascade within the first step above the bound, or None. Where there is one, a dive, which starts
        from ten times that step, may cost more than this (docs/exact.md, the limit)."""
        limit = bound * (1 + finer(CUTOFF_SCHEDULE, attempt.repetition)[0])
        if self.best is not None and self.best.value <= limit:
            return None
        solution = self._run(attempt, limit)
        return solution if solution is not None and solution.value <= limit * (1 + TIE) else None

    def _run(self, attempt: Attempt | Chain, limit: float) -> Solution | None:
        """What an attempt finds below a limit; None, and the limit is a bound, if that is nothing."""
        self.watcher.stage(f"looking below {limit * attempt.repeats:.6g}")
        try:
            solution = attempt.run(limit)
        except Infeasible:
            if not np.isfinite(limit):
                raise
            if attempt.complete_space:
                self._prove(limit * attempt.repeats)
            return None
        self._found(solution, attempt.repeats)
        return solution

    def _within(self, attempt: Attempt, most: float) -> Solution:
        """The best cascade of at most this value, or Infeasible."""
        if not attempt.tied:
            return attempt.run(most)
        try:
            return self._refined(attempt, attempt.tiled("rounded").run(most))
        except Infeasible:
            if attempt.relaxes:
                attempt.towards_least(most)
            return attempt.tiled("every").run(most)

    def _refined(self, attempt: Attempt, found: Solution, rounded: Attempt | None = None) -> Solution:
        """The best of all tiles, given a solution: where the relaxation finds nothing below it, that.

        rounded: the attempt with rounded tiles, if the solution need not be the best of those: then they are tried
        next. Else, or if the relaxation is still below, all integers are, below the known value.
        """
        least, every = 0.0, attempt.tiled("every")
        try:
            if attempt.relaxes:
                self.watcher.stage("looking below with tiles that need not agree")
                least = attempt.towards_least(found.value * BELOW, (every, *([] if rounded is None else [rounded])))
                self._prove(least * attempt.repeats)
            if rounded is not None:
                found = self._next(rounded, found, least)
                if least > found.value * BELOW:
                    return found
            self.watcher.stage("looking below with every tile")
            better = every.run(found.value * BELOW)
        except Infeasible:
            return found
        self._found(better, attempt.repeats)
        return min(better, found, key=lambda one: one.value)

    def _next(self, attempt: Attempt, found: Solution, least: float) -> Solution:
        """The best cascade of an attempt below a solution; if there is none, that. least: of the relaxation, from which
        limits rise."""
        for limit in (least * (1 + step) for step in ABOVE):
            if 0 < limit < found.value * BELOW:
                solution = self._run(attempt, limit)
                if solution is not None and solution.value <= limit * (1 + TIE):
                    return solution
        return self._better(attempt, found)

    def _better(self, attempt: Attempt, found: Solution) -> Solution:
        """The best cascade of an attempt below a solution; if there is none, that."""
        self.watcher.stage(f"looking below {found.value * attempt.repeats:.6g}")
        try:
            better = attempt.run(found.value * BELOW)
        except Infeasible:
            return found
        self._found(better, attempt.repeats)
        return min(better, found, key=lambda one: one.value)

    def _dives(self, attempt: Attempt, first: float | None) -> bool:
        """Whether to look for a quick solution: not where a known one is as near to the bound as that would be."""
        if self.start is not None and self.start.value <= attempt.hurried().bound * (1 + HEURISTICS[-1]):
            return False
        return first is None or self._sums_up or self.budget != Budget()

    def _steps(self, attempt: Attempt, bound: float, first: float | None) -> list[float]:
        """Limits from the bound up, of which the last admits whatever is better than the best known mapping."""
        steps = finer(CUTOFF_SCHEDULE, attempt.repetition)
        limits = [bound * (1 + step) if bound > 0 and np.isfinite(bound) else float("inf") for step in steps]
        if first is not None:
            limits = [first, *(limit for limit in limits if limit > first)]
        if self.best is None:
            return limits
        known = self.best.value
        share = 1.0 if self.best is self._alone else SOONER
        return [*(limit for limit in limits if limit - bound < share * (known * BELOW - bound)), known * BELOW]

    def _raise_cutoff(self, attempt: Attempt, limits: list[float]) -> Solution:
        """The best cascade below the first of the limits that admits one; the best known one if none does."""
        for limit in limits:
            solution = self._run(attempt, limit)
            if solution is not None and solution.value <= limit * (1 + TIE):
                return solution
        if self.best is None or limits[-1] >= self.best.value:
            raise Defect(f"exact found nothing below {limits[-1]!r}, though there is a mapping of {self.best!r}")
        return self.best

    def _pass(self) -> Attempt:
        machine, places = self.problem.machine, self.problem.mapspace.places
        matters = any(column.kind == "time" for column in columns(machine, self.problem.objective))
        matters = matters or (bool(places) and Users(self.problem.workload, machine).any_contested)
        emptier = any(axis.use == "full" for axis in machine.axes.values())
        together = matters or ("axis" in places and emptier)
        kind = ConcurrentAttempt if places and together else Attempt
        return kind(self.problem, self.options, self.watcher, self.counts, self.checkpoint)

    def _prove(self, bound: float) -> None:
        self.bound = max(self.bound, bound)
        self.watcher.bound(bound)

    def _found(self, solution: Solution, repeats: int) -> None:
        if self.best is None or solution.value < self.best.value:
            self.best = solution
            self.watcher.incumbent(solution.value * repeats, solution.mapping)

    def _heuristic(self, attempt: Attempt, relaxed: Attempt | None = None) -> Solution | None:
        """A quick feasible solution near the bound, or None.

        relaxed: the attempt that bounds this one. If there is nothing near, its bound is sharpened.
        """
        if relaxed is not None and relaxed.relaxes:
            found = self._dived(attempt, (AT_ONCE, *HEURISTICS[:NEAR]))
            near = attempt.hurried().bound * (1 + HEURISTICS[NEAR - 1])
            if found is not None or (self.best is not None and self.best.value <= near):
                return found
            relaxed.sharpen()
            attempt.agreed = relaxed.agreed
        return self._dived(attempt, HEURISTICS)

    def _dived(self, attempt: Attempt, steps: tuple[float, ...]) -> Solution | None:
        found: Solution | None = None
        for quick in attempt.heuristics():
            for limit in (quick.bound * (1 + step) for step in finer(steps, attempt.repetition)):
                if self.best is not None and limit >= self.best.value:
                    break
                try:
                    solution = quick.run(limit)
                except Infeasible:
                    continue
                self._found(solution, attempt.repeats)
                found = min(solution, found or solution, key=lambda one: one.value)
                break
        return found

    def solve_front(self) -> list[Solution]:
        """The complete energy-latency Pareto set of one repeat, ascending in energy."""
        self._prove(compulsory(self.problem))
        attempt = self._pass()
        bound = attempt.lower_bound()
        self._prove(bound * attempt.repeats)
        known = []
        for goal in (Objective("energy"), Objective("latency"), Objective("edp")):
            self.watcher.stage(f"the point of least {goal}")
            alone = Run(replace(self.problem, objective=goal), self.options, self.budget, _Listener(self.watcher))
            alone.counts, alone.started, alone.first = self.counts, self.started, None
            alone.begin()
            solution = alone.solve()
            once = replace(self.problem, workload=replace(self.problem.workload, repeat=1), objective=goal)
            cost = priced(once, solution.mapping, solution.value)
            known.append(np.array([cost.energy, cost.latency]))
            self._found(Solution(cost.edp, known[-1], solution.mapping), attempt.repeats)
        known += [start.cost for start in self.starts]
        self.watcher.stage("everything that no known point dominates")
        return tied_front(attempt, known) if attempt.tied else front(attempt, attempt.hurried(), known)

    def front(self, solutions: list[Solution]) -> tuple[FrontPoint, ...]:
        """The points of a Pareto set, priced again by `evaluate`."""
        problem, points = self.problem, []
        repeats = problem.workload.repeat
        for solution in solutions:
            cost = priced(problem, solution.mapping, solution.value * repeats**problem.objective.degree)
            if not np.allclose(solution.cost * repeats, [cost.energy, cost.latency], rtol=1e-9, atol=0.0):
                raise Defect(f"the tables say {solution.cost!r}, the tree costs {cost.energy, cost.latency}")
            points.append(FrontPoint(cost.energy, cost.latency, solution.mapping))
        return tuple(points)

    def result(
        self,
        method: str,
        solution: Solution,
        guarantee: Guarantee,
        bound: float | None,
        points: tuple[FrontPoint, ...] = (),
        ended: Ended | None = None,
    ) -> Result:
        """The solution priced again by `evaluate`, with its certificate.

        A dive that follows no window prices it too high: what such a dive has found may cost less, if it is no optimum.
        """
        problem, watcher = self.problem, self.watcher
        said = solution.value * problem.workload.repeat**problem.objective.degree
        cost = priced(problem, solution.mapping, said, or_less=guarantee is Guarantee.BOUNDED)
        value = problem.objective.value(cost)
        watcher.incumbent(value, solution.mapping)
        counts = MappingProxyType(dict(self.counts))
        proven = value if bound is None else bound
        certified(Certificate(Guarantee.BOUNDED, value, self.bound, problem.mapspace.describe()))
        certificate = certified(Certificate(guarantee, value, proven, problem.mapspace.describe(), counts))
        watcher.bound(certificate.bound)
        for rule, number in self.counts.items():
            watcher.count(rule, number)
        trace = watcher.trace if isinstance(watcher, Recorder) else ()
        seconds = time.monotonic() - self.started
        found = Result.of(
            problem, solution.mapping, cost, certificate=certificate, method=method, seconds=seconds, trace=trace
        )
        return replace(found, front=points, ended=ended)


class _Inside(Watcher):
    """Hears a search in part of the space: passes on all but bounds."""

    def __init__(self, outer: Watcher) -> None:
        self.stopped, self.incumbent = outer.stopped, outer.incumbent  # type: ignore[method-assign]
        self.outer = outer

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        self.outer.stage(f"perfect tiles: {name}", done, total)


class _Listener(Watcher):
    """Hears a search inside another one: passes on only when to stop."""

    def __init__(self, outer: Watcher) -> None:
        self.stopped = outer.stopped  # type: ignore[method-assign]

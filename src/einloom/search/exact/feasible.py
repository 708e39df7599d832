"""Quick feasible solutions near the bound: the heuristics of an attempt, below limits that rise until one finds some.

Comes in: attempts and the incumbent. Goes out: solutions that are no optima; a search that knows one looks only below.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import takewhile
from math import inf

from ...errors import Infeasible
from ...mapping.tree import Mapping
from ...problem import Budget, Problem
from ..method import Watcher
from ..resources import at_most
from ..starts import fitting
from .attempt import Attempt, Solution
from .bounds.cutoff import finer
from .concurrent.first_attempt import attempt_for
from .incumbent import Incumbent
from .joining.completions import TooMany
from .neighbours import look
from .options import ExactOptions
from .segments.chain import Chain
from .stops import Stopped, Stops

HEURISTICS = (0.02, 0.05, 0.12, 0.25, 0.5, 1.0)  # limits tried, as shares above the bound
AT_ONCE = 1e-4  # before them, where tiles need not divide: bounds are often attained, and rows within so little few
NEAR = 4  # of these, after which the bound is sharpened
CHAINED = (0.0, 1e-6, 1e-4, 3e-4, 1e-3, 4e-3)  # limits of a chain, as shares above its bound
FIRST_FEASIBLE = (HEURISTICS[0], HEURISTICS[-1])


def first_feasible(problem: Problem, budget: Budget, watcher: Watcher) -> Mapping | None:
    """A mapping of at most twice the lower bound, if the quickest dive finds one. Nothing is proven by it."""
    stops = Stops(budget, watcher)
    try:
        with at_most(budget.memory):
            attempt = attempt_for(problem, ExactOptions(), watcher, stops.counts, stops.check)
            bound = attempt.lower_bound()
            quick = attempt.tiled("rounded").heuristics()[0]
            found = first_within(quick, (quick.bound * (1 + step) for step in FIRST_FEASIBLE if bound > 0))
            return None if found is None else next(iter(fitting(problem, (found.mapping,))), None)
    except (Infeasible, Stopped, MemoryError):
        pass  # the search itself says so, too
    return None


def least_value(problem: Problem, budget: Budget, watcher: Watcher, brief: bool = False) -> tuple[float, bool]:
    """A lower bound of all mappings, as the search finds one first, infinite if there is none; and False if the budget
    left it lower than that. brief: only the bound that is known before spatial choices are listed."""
    stops, proven = Stops(budget, watcher), [0.0]
    try:
        with at_most(budget.memory):
            attempt = attempt_for(problem, ExactOptions(), watcher, stops.counts, stops.check)
            proven.append(attempt.begin())
            if not brief:
                proven.append(attempt.lower_bound(proven=proven.append))
        whole = True
    except Infeasible:
        return inf, True
    except (Stopped, MemoryError):
        whole = False
    return max(proven) * float(problem.workload.repeat**problem.objective.degree), whole


def heuristic(
    incumbent: Incumbent, attempt: Attempt, relaxed: Attempt | None = None, stops: Stops | None = None
) -> Solution | None:
    """A quick feasible solution near the bound, or None.

    relaxed: the attempt that bounds this one. If there is nothing near, its bound is sharpened, also by
    neighbours together if `stops` says how long the search has taken.
    """
    if relaxed is not None and relaxed.relaxes:
        found = _below_limits(incumbent, attempt, (AT_ONCE, *HEURISTICS[:NEAR]))
        near = attempt.hurried().bound * (1 + HEURISTICS[NEAR - 1])
        if found is not None or incumbent.value <= near:
            return found
        relaxed.sharpen(lambda bound: incumbent.prove(bound * relaxed.repeats))
        if stops is not None:
            look(relaxed, stops)
        attempt.agreed, attempt.together = relaxed.agreed, relaxed.together
    return _below_limits(incumbent, attempt, HEURISTICS if relaxed is None else (AT_ONCE, *HEURISTICS))


def nearest(incumbent: Incumbent, attempt: Attempt) -> Solution | None:
    """What the quickest heuristic finds below the first limit of a dive, or None."""
    quick = attempt.heuristics()[0]
    limit = quick.bound * (1 + finer(HEURISTICS, attempt.repetition)[0])
    if limit >= incumbent.value:
        return None
    solution = first_within(quick, (limit,))
    if solution is not None:
        incumbent.found(solution)
    return solution


def first_within(attempt: Attempt | Chain, limits: Iterable[float]) -> Solution | None:
    """What an attempt finds below the first of some limits that admits anything."""
    for limit in limits:
        with suppress(Infeasible):
            return attempt.run(limit)
    return None


def _below_limits(incumbent: Incumbent, attempt: Attempt, steps: tuple[float, ...]) -> Solution | None:
    """The best of what each heuristic finds first. steps: its limits, as shares above its bound, or above what is
    proven if that is more.

    Where no window slides, what the quickest finds is enough if it is near the bound, and others try few limits.
    """
    found: Solution | None = None
    for number, quick in enumerate(attempt.heuristics()):
        some = steps if attempt.slides or not number else steps[NEAR - 1 :: 2]
        least = max(quick.bound, incumbent.bound / attempt.repeats)
        limits = (least * (1 + step) for step in finer(some, attempt.repetition))
        solution = first_within(quick, takewhile(lambda limit: limit < incumbent.value, limits))
        if solution is not None:
            incumbent.found(solution)
            found = min(solution, found or solution, key=lambda one: one.value)
    return found


def heuristic_by_segments(incumbent: Incumbent, quick: Chain) -> None:
    """A quick feasible solution from quick ones of the segments, if there is one near what they say."""
    with suppress(Infeasible, TooMany):
        for _ in quick.rising():
            pass
        solution = first_within(quick, (quick.bound * (1 + step) for step in CHAINED))
        if solution is not None:
            incumbent.found(solution)

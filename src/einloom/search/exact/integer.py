"""A lower bound of every mapping with any integer tiles, where the optimum of a smaller space is known.

The tables of the exact search, where no uneven tile need divide another. The space and the argument:
docs/model/integer-tiles.md."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ...errors import Ended, Infeasible, SpecError
from ...problem import Budget, Problem
from ...problem.compulsory import compulsory
from ...result import Result
from ..method import Watcher
from .attempt import Attempt
from .bounds.cutoff import BELOW, TIE
from .einsums.classes import fuses_below_fanout
from .einsums.users import Users
from .options import ExactOptions
from .pmappings.prune import Rules
from .stops import Stopped, Stops

NEARER = (1e-4, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # limits tried, as shares above the bound


def refuse_unbounded(problem: Problem) -> None:
    """Raise SpecError where the relaxation is no bound, with what stands in the way."""
    mapspace, limits = problem.mapspace, problem.mapspace.limits
    why = None
    if problem.objective.name == "pareto":
        why = "a Pareto set has no single bound"
    elif problem.latency_rule != "einsum":
        why = f"it holds under latency rule 'einsum', not {problem.latency_rule!r}"
    elif mapspace.places:
        why = "groups of Einsums that run at the same time are not in it"
    elif mapspace.stores != "own":
        why = "stores that serve several Einsums are not in it"
    elif limits.tiles or limits.loops or limits.axes:
        why = "the mapspace limits tiles, loops or axes"
    elif fuses_below_fanout(Users(problem.workload, problem.machine, mapspace.order == "free")):
        why = "a memory behind a fanout may back what several Einsums share"
    if why is not None:
        raise SpecError(f"no bound over any integer tiles: {why}", suggestion="leave --relax out")


def integer_bound(
    problem: Problem, value: float, budget: Budget | None = None, watch: Watcher | None = None
) -> tuple[float, Ended | None]:
    """(a lower bound of the objective over the space `integer`, what ended the search for it if anything did).

    value: of a mapping in that space; the bound is at most that, and equal to it if no mapping of the space is better.
    Raises SpecError where there is no such bound.
    """
    refuse_unbounded(problem)
    budget = budget or Budget()
    proven = [compulsory(problem)]
    try:
        _raise(_attempt(problem, ExactOptions(), Stops(budget, watch or Watcher())), value, proven.append)
    except Stopped as stopped:
        return min(max(proven), value), stopped.ended
    except MemoryError:
        return min(max(proven), value), budget.without_memory
    return min(max(proven), value), None


def is_below(problem: Problem, bound: float, rules: Rules, budget: Budget | None = None) -> bool | None:
    """True if the relaxation has something below a bound, by more than rounding; None if the budget ended before that
    was known. Raises SpecError as `integer_bound`."""
    refuse_unbounded(problem)
    attempt = _attempt(problem, ExactOptions(rules), Stops(budget or Budget(), Watcher()))
    limit = bound / attempt.repeats * BELOW
    try:
        attempt.lower_bound(limit)
        attempt.towards_least(limit)
    except Infeasible:
        return False
    except Stopped:
        return None
    return True


def with_integer_bound(found: Result, budget: Budget, watch: Watcher | None = None) -> Result:
    """The result, its certificate with a bound over any integer tiles, looked for in what is left of the budget."""
    if found.certificate is None:
        return found
    began = time.monotonic()
    seconds = None if budget.seconds is None else max(budget.seconds - found.seconds, 1e-3)
    bound, _ = integer_bound(found.problem, found.value, replace(budget, seconds=seconds), watch)
    certificate = replace(found.certificate, integer=bound)
    return replace(found, certificate=certificate, seconds=found.seconds + time.monotonic() - began)


def _attempt(problem: Problem, options: ExactOptions, stops: Stops) -> Attempt:
    return Attempt(problem, options, stops.watcher, stops.counts, stops.check, "integer")


def _raise(attempt: Attempt, value: float, proven: Callable[[float], None]) -> None:
    """Raise a limit until the relaxation has something below it, or nothing below the value. proven: hears of it."""
    most, repeats = value / attempt.repeats, attempt.repeats
    attempt.watcher.stage("bounding any integer tiles")
    try:
        bound = attempt.lower_bound(most * (1 + TIE))
        proven(bound * repeats)
        for step in NEARER:
            limit = bound * (1 + step)
            if limit >= most * BELOW:
                break
            try:
                proven(attempt.towards_least(limit) * repeats)
                return
            except Infeasible:
                proven(limit * repeats)
        proven(attempt.towards_least(most * BELOW) * repeats)
    except Infeasible:
        proven(value)

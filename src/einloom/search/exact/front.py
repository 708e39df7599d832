"""The complete energy-latency Pareto set: the ends first, then everything that no known point dominates.

The least energy and the least latency bound both axes of the front: a mapping with more energy than the known one of
least latency is dominated by it, and the other way round. Known points between the ends cut further. What is left comes
out of one pass whose cutoff is that staircase; ties stay, so the known points come out again or are beaten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ...errors import Infeasible
from .attempt import Attempt, Solution
from .bounds.cutoff import TIE
from .joining.join import Partial
from .numerics.pareto import FloatArray


def staircase(points: FloatArray) -> FloatArray:
    """The undominated rows of (energy, latency) points, ascending in energy; of equal ones the first.

    >>> staircase(np.array([[2.0, 1.0], [1.0, 3.0], [2.0, 2.0]])).tolist()
    [[1.0, 3.0], [2.0, 1.0]]
    """
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    best = np.minimum.accumulate(ordered[:, 1])
    first = np.concatenate([[True], ordered[1:, 1] < best[:-1] * (1 - TIE)])
    return np.asarray(ordered[first])


def undominated(solutions: Sequence[Solution]) -> list[Solution]:
    """Those that no other one beats in energy and latency, ascending in energy; of equal ones the first."""
    ordered = sorted(solutions, key=lambda one: tuple(one.cost))
    kept, lowest = list[Solution](), np.inf
    for one in ordered:
        if one.cost[1] < lowest * (1 - TIE):
            kept, lowest = [*kept, one], one.cost[1]
    return kept


def tied_front(attempt: Attempt, known: Iterable[FloatArray], found_one: Callable[[Solution], None]) -> list[Solution]:
    """As `front`, where Einsums may cut ranks alike and unevenly: the front of rounded tiles, if the relaxation has
    nothing that it lacks; else that of all."""
    rounded, points = attempt.tiled("rounded"), list(known)
    try:
        found = front(rounded, rounded.hurried(), points, found_one)
    except Infeasible:
        found = []
    for solution in found:
        found_one(solution)
    points += [solution.cost for solution in found]
    if found and attempt.relaxes and _covers(staircase(np.array([one.cost for one in found])), attempt):
        return found
    return front(attempt.tiled("every"), rounded.hurried(), points, found_one)


def _covers(points: FloatArray, attempt: Attempt) -> bool:
    """True if each complete cascade of the attempt is no better than one of the points."""
    try:
        partials = attempt.complete(attempt.cutoff.along(points))
    except Infeasible:
        return True
    costs = np.concatenate([partial.cost for partial in partials])
    return bool((points[:, None] * (1 - TIE) <= costs).all(axis=2).any(axis=0).all())


def front(
    attempt: Attempt, quick: Attempt, known: Iterable[FloatArray], found_one: Callable[[Solution], None]
) -> list[Solution]:
    """Every undominated complete cascade, ascending in energy.

    known: (energy, latency) of feasible mappings of one repeat, those of least energy and of least latency among them.
    quick: a pass that finds some feasible mappings fast; they only lengthen the staircase. found_one: hears of them.
    """
    points = staircase(np.array(list(known)))
    try:
        found = quick.complete(attempt.cutoff.along(points))
        points = staircase(np.concatenate([points, *(partial.cost for partial in found)]))
        for solution in _ascending(quick, found):
            found_one(solution)
    except Infeasible:
        pass
    return _ascending(attempt, attempt.complete(attempt.cutoff.along(points)))


def _ascending(attempt: Attempt, partials: Sequence[Partial]) -> list[Solution]:
    """The undominated ones of complete cascades, ascending in energy."""
    costs = np.concatenate([partial.cost for partial in partials])
    owners = [(partial, row) for partial in partials for row in range(len(partial))]
    solutions = []
    order = np.lexsort((costs[:, 1], costs[:, 0]))
    lowest = np.inf
    for i in order:
        if costs[i, 1] < lowest * (1 - TIE):
            lowest = costs[i, 1]
            partial, row = owners[i]
            solutions.append(attempt.solution(partial, row))
    return solutions

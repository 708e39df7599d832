"""The complete energy-latency Pareto set: the ends first, then everything that no known point dominates.

The least energy and the least latency bound both axes of the front: a mapping with more energy than the known one of
least latency is dominated by it, and the other way round. Known points between the ends cut further. What is left comes
out of one pass whose cutoff is that staircase; ties stay, so the known points come out again or are beaten.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...errors import Infeasible
from .attempt import Attempt, Solution
from .bounds.cutoff import TIE
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


def tied_front(attempt: Attempt, known: Iterable[FloatArray]) -> list[Solution]:
    """As `front`, where Einsums may cut ranks alike and unevenly: the front of rounded tiles, if the relaxation has
    nothing that it lacks; else that of all."""
    rounded, points = attempt.tiled("rounded"), list(known)
    try:
        found = front(rounded, rounded.hurried(), points)
    except Infeasible:
        found = []
    points += [solution.cost for solution in found]
    if found and attempt.relaxes and _covers(staircase(np.array([one.cost for one in found])), attempt):
        return found
    return front(attempt.tiled("every"), rounded.hurried(), points)


def _covers(points: FloatArray, attempt: Attempt) -> bool:
    """True if each complete cascade of the attempt is no better than one of the points."""
    try:
        partials = attempt.complete(attempt.cutoff.along(points))
    except Infeasible:
        return True
    costs = np.concatenate([partial.cost for partial in partials])
    return bool((points[:, None] * (1 - TIE) <= costs).all(axis=2).any(axis=0).all())


def front(attempt: Attempt, quick: Attempt, known: Iterable[FloatArray]) -> list[Solution]:
    """Every undominated complete cascade, ascending in energy.

    known: (energy, latency) of feasible mappings of one repeat, those of least energy and of least latency among them.
    quick: a pass that finds some feasible mappings fast; they only lengthen the staircase.
    """
    points = staircase(np.array(list(known)))
    try:
        found = quick.complete(attempt.cutoff.along(points))
        points = staircase(np.concatenate([points, *(partial.cost for partial in found)]))
    except Infeasible:
        pass
    partials = attempt.complete(attempt.cutoff.along(points))
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

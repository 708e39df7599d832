"""Which neighbouring Einsums are looked at together for a better bound, and for how long.

Comes in: an attempt, and how long the search has taken. Goes out: the attempt with what neighbours cost at least
together (`segments/neighbour_attempt.py`, `bounds/neighbour_bounds.py`): a few Einsums that share an intermediate, or
the segments of a long cascade that occur again and again.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import accumulate, pairwise

from ...workload.einsum import Workload
from .attempt import Attempt
from .bounds.neighbour_bounds import NeighbourBounds
from .segments.chain import SHORT
from .segments.cuts import cuts
from .segments.neighbour_attempt import NeighbourAttempt
from .segments.segment import Segment, segments
from .stops import Enough, Stops

MOST = 4  # Einsums that are looked at together
OFTEN = 5  # segments of a kind from which on it is looked at
SEARCHED = 1_000_000  # steps that all of them may take
WORTH = 50_000  # steps of a search from which on it is worth looking where few rows are


def able(attempt: Attempt) -> bool:
    """False where neighbours say nothing of the attempt, or are not argued for."""
    space, workload = attempt.problem.mapspace, attempt.problem.workload
    plain = space.order == "program" and space.stores == "own" and not space.places and not workload.parted
    whole = attempt.cutoff.front is None and attempt.plain and attempt.options.consistency
    return plain and whole and attempt.relaxes and all(power == 1 for power in attempt.cutoff.powers)


def neighbours(workload: Workload) -> list[tuple[int, int]]:
    """The neighbours that are worth it: from the Einsum that writes an intermediate to the last that reads it."""
    found = []
    for tensor in workload.intermediates:
        places = [i for i, einsum in enumerate(workload.einsums) if tensor in einsum.tensors]
        first, end = places[0], places[-1] + 1
        if 1 < end - first <= min(MOST, len(workload.einsums) - 1):
            found.append((first, end))
    return sorted(set(found))


def large(stops: Stops) -> bool:
    """True if a search has taken long enough for limits near its bound to be worth more than they take."""
    return stops.evaluated >= WORTH


def look(attempt: Attempt, stops: Stops) -> None:
    """Raise the bound of an attempt by neighbours, for about as long as the search has taken so far: of those that are
    not done the one with the least work goes on. Not under a budget of steps, which must not depend on the clock."""
    total = attempt.least.sum(axis=0)
    if not large(stops) or stops.budget.steps is not None or not able(attempt) or not (total > 0).all():
        return
    known = attempt.together or NeighbourBounds((1.0, *(float(total[0] / one) for one in total[1:])), {})
    least, done = dict(known.least), set(known.done)
    every = [some for some in neighbours(attempt.problem.workload) if some not in done]
    rising = {w: NeighbourAttempt(attempt, *w, known.weights).proven(least.get(w, 0.0)) for w in every}
    spent = dict.fromkeys(every, 0.0)
    outer, end = stops.until, 2 * time.monotonic() - stops.started
    try:
        with stops.within(stops.spent):
            while spent and (now := time.monotonic()) <= end:
                some = min(spent, key=lambda one: spent[one])
                attempt.watcher.stage("bounding neighbours", len(every) - len(spent), len(every))
                bound = next(rising[some], None)
                if bound is None:
                    done.add(some)
                    del spent[some]
                else:
                    least[some] = bound
                    spent[some] += time.monotonic() - now
    except Enough:
        if time.monotonic() > outer:
            raise
    if least:
        attempt.neighbouring(NeighbourBounds(known.weights, least, frozenset(done)))


def alike(attempt: Attempt) -> list[Segment]:
    """The segments of a long cascade whose objective is a product of sums, if some occur often; else none. Those of one
    kind are one."""
    workload, total = attempt.problem.workload, attempt.least.sum(axis=0)
    long = len(workload.einsums) >= SHORT and len(total) == 2 and (total > 0).all()
    if not long or attempt.tied or not able(attempt) or not attempt.options.segments:
        return []
    every = segments(attempt, cuts(workload), (1.0, float(total[0] / total[1])))
    return every if max(Counter(every).values()) >= OFTEN else []


def look_at_segments(attempt: Attempt, every: list[Segment], stops: Stops) -> None:
    """Raise the bound of an attempt by those of its segments that occur often. Rooms count within a segment, so what
    the cascade costs above the bound is no longer what all of its layers do."""
    often = [kind for kind, times in Counter(every).most_common() if times >= OFTEN]
    try:
        with stops.after(SEARCHED):
            for number, kind in enumerate(often):
                attempt.watcher.stage("bounding segments", number, len(often))
                kind.begin()
                kind.learn()
    except Enough:
        pass
    spans = pairwise(accumulate((len(kind.signatures) for kind in every), initial=0))
    known = {span: kind.at_least for span, kind in zip(spans, every, strict=True) if kind.at_least > 0}
    weights = often[0].cutoff.weights if often else None
    if known and weights is not None:
        attempt.neighbouring(NeighbourBounds(weights, known))

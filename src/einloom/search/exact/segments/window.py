"""Neighbouring Einsums alone: what a few of them cost at least together, whatever the rest of the cascade does.

Comes in: an attempt for the whole cascade. Goes out: lower bounds on a weighted sum of the settled columns of windows
of neighbours. What happens outside a window is left open, as for a segment (`segment.py`), and so is how the tensors
at its ends are stored (docs/model/pruning.md, windows).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from ....errors import Infeasible
from ....workload.einsum import Workload
from ..attempt import Attempt
from ..bounds.cutoff import Cutoff
from ..bounds.windows import Windows
from ..fusion.explore import PmappingGroup
from ..fusion.serving import Serving
from ..joining.join import Joiner
from ..stops import Enough, Stops
from .segment import SegmentJoiner, part_of

MOST = 4  # Einsums of a window
# limits, as shares above what is known
STEPS = (1e-6, 1e-3, 4e-3, 1e-2, 0.02, 0.03, 0.045, 0.07, 0.1, 0.15, 0.22, 0.33, 0.5, 0.75, 1.1, 1.6)


class WindowAttempt(Attempt):
    """The Einsums of `whole` from `start` to before `end`. weights: of the settled columns in the sum that counts."""

    def __init__(self, whole: Attempt, start: int, end: int, weights: tuple[float, ...]) -> None:
        self.problem = replace(whole.problem, workload=part_of(whole.problem.workload, start, end))
        self.options, self.watcher, self.counts = whole.options, whole.watcher, whole.counts
        self.checkpoint, self.repeats, self.users = whole.checkpoint, whole.repeats, whole.users
        self.signatures, self.classes = whole.signatures[start:end], whole.classes
        self.tracked, self.objectives = whole.tracked, whole.objectives
        self.setting = replace(whole.setting, tracked=whole.tracked)
        self.least, self.agreed = whole.least[start:end], 0.0
        self.consistency, self.aim = None, Cutoff((1.0,) * len(weights), weights=weights)
        self._keys, choices = whole._keys, whole._choices
        self._choices = None if choices is None else choices[start:end]

    def _serving(self, blocks: list[list[PmappingGroup]]) -> Serving | None:
        return None

    def _joiner(self) -> Joiner:
        base = super()._joiner()
        return SegmentJoiner(
            self.users,
            self.setting,
            base.axis_names,
            self._hopeless,
            self.counts,
            self.checkpoint,
            cascade=self.problem.workload,
        )

    def proven(self, known: float) -> Iterator[float]:
        """Lower bounds of the sum, rising; the last is the least, unless it is much more than is known."""
        self.agreed = max(known, self._agree())
        known = self.bound
        for step in STEPS:
            limit = known * (1 + step)
            try:
                yield max(known, self.towards_least(limit))
                return
            except Infeasible:
                yield limit


def able(attempt: Attempt) -> bool:
    """False where windows say nothing of the attempt, or are not argued for."""
    space, workload = attempt.problem.mapspace, attempt.problem.workload
    plain = space.order == "program" and space.stores == "own" and not space.places and not workload.parted
    whole = attempt.aim.front is None and type(attempt) is Attempt and attempt.options.consistency
    return plain and whole and attempt.relaxes and all(power == 1 for power in attempt.aim.powers)


def neighbours(workload: Workload) -> list[tuple[int, int]]:
    """The windows that are worth it: from the Einsum that writes an intermediate to the last that reads it."""
    found = []
    for tensor in workload.intermediates:
        places = [i for i, einsum in enumerate(workload.einsums) if tensor in einsum.tensors]
        first, end = places[0], places[-1] + 1
        if 1 < end - first <= min(MOST, len(workload.einsums) - 1):
            found.append((first, end))
    return sorted(set(found))


def look(attempt: Attempt, stops: Stops) -> None:
    """Raise the bound of an attempt by windows, for about as long as the search has taken so far: of those that are not
    done the one with the least work goes on."""
    total = attempt.least.sum(axis=0)
    if not able(attempt) or not (total > 0).all():
        return
    known = attempt.windows or Windows((1.0, *(float(total[0] / one) for one in total[1:])), {})
    least, attained = dict(known.least), set(known.attained)
    every = [window for window in neighbours(attempt.problem.workload) if window not in attained]
    rising = {w: WindowAttempt(attempt, *w, known.weights).proven(least.get(w, 0.0)) for w in every}
    spent = dict.fromkeys(every, 0.0)
    outer, end = stops.until, 2 * time.monotonic() - stops.started
    stops.until = min(outer, end)
    try:
        while spent and (now := time.monotonic()) <= end:
            window = min(spent, key=lambda one: spent[one])
            attempt.watcher.stage("bounding neighbours", len(every) - len(spent), len(every))
            bound = next(rising[window], None)
            if bound is None:
                attained.add(window)
                del spent[window]
            else:
                least[window] = bound
                spent[window] += time.monotonic() - now
    except Enough:
        if time.monotonic() > outer:
            raise
    finally:
        stops.until = outer
    if least:
        attempt.neighbouring(Windows(known.weights, least, frozenset(attained)))

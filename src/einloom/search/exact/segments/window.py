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

    def proven(self) -> Iterator[float]:
        """Lower bounds of the sum, rising; the last is the least, or close to how far is looked."""
        self.agreed = self._agree()
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
    """Raise the bound of an attempt by windows, for about as long as the search has taken so far."""
    if attempt.windows is not None or not able(attempt):
        return
    total = attempt.least.sum(axis=0)
    weights = (1.0, *(float(total[0] / one) for one in total[1:])) if (total > 0).all() else ()
    every = neighbours(attempt.problem.workload) if weights else []
    found: dict[tuple[int, int], float] = {}
    outer, end = stops.until, 2 * time.monotonic() - stops.started
    for number, window in enumerate(every):
        attempt.watcher.stage("bounding neighbours", number, len(every))
        now = time.monotonic()
        stops.until = min(outer, now + (end - now) / 2)
        try:
            for bound in WindowAttempt(attempt, *window, weights).proven():
                found[window] = bound
        except Enough:
            if time.monotonic() > outer:
                raise
        finally:
            stops.until = outer
    if found:
        attempt.neighbouring(Windows(weights, found))

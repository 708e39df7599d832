"""`local`: coordinate descent. One Einsum at a time its privates, then what Einsums share, until nothing is better."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from ...dataclass import dataclass
from ..method import Watcher
from .points import INFINITE, Points, Valued
from .states import StateMethod


@dataclass(frozen=True)
class LocalSearch(StateMethod):
    """Descends from a draw until no proposal is better, then draws again.

    seed: the same seed gives the same answer. points: the most, as in `StateMethod`. tries: proposals for an Einsum's
    privates, or for the skeleton, before the next; each better state makes them begin again. polish: proposals for the
    privates of each Einsum that a move of the skeleton touched, before it is judged, for every thousand points of the
    search.
    """

    name: ClassVar[str] = "local"
    tries: int = 40
    polish: float = 3.0

    def __post_init__(self) -> None:
        self.least(1, "points", "tries")
        self.least(0, "polish")

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        """Descents from draws, one after the other."""
        waiting = [(points.value(state), state) for state in points.begin()]
        while points.part(self.points) < 1:
            start = waiting.pop() if waiting else points.draw(rng)
            if start is None:
                break
            watch.stage("descending")
            self._descend(points, start, rng)

    def _descend(self, points: Points, found: Valued, rng: Random) -> None:
        before, burst = INFINITE, points.burst_size(self.points)
        while found[0] < before and points.part(self.points) < 1:
            before = found[0]
            for i in range(points.facts.count):
                found = self._privates(points, found, i, burst, rng)
            found = self._skeleton(points, found, int(self.polish * burst), rng)

    def _privates(self, points: Points, found: Valued, i: int, burst: int, rng: Random) -> Valued:
        tried = 0
        while tried < self.tries:
            near = points.burst(found, i, burst, 0.0, rng)
            tried = 0 if near[0] < found[0] else tried + burst
            found = near
        return found

    def _skeleton(self, points: Points, found: Valued, tries: int, rng: Random) -> Valued:
        tried = 0
        while tried < self.tries and points.facts.floating:
            near = points.reshaped(found, rng, tries)
            tried += 1
            if near is not None and near[0] < found[0]:
                found, tried = near, 0
        return found

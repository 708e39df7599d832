"""`random`: Timeloop's random search, as FFM's section 7.2 reads it: compatible trees drawn at random."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from ...dataclass import dataclass
from ...mapspace.ffm.encoding import State
from ...mapspace.ffm.encoding.privates import drawn
from ..method import Watcher
from .points import Points
from .states import StateMethod


@dataclass(frozen=True)
class RandomSearch(StateMethod):
    """The best of mappings drawn at random.

    seed: the same seed gives the same answer. points: the most, as in `StateMethod`. redraws: mappings drawn with new
    privates for each drawn skeleton.
    """

    name: ClassVar[str] = "random"
    redraws: int = 20

    def __post_init__(self) -> None:
        self.least(1, "points")
        self.least(0, "redraws")

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        """Draws, and new privates for each."""
        points.begin()
        while points.part(self.points) < 1:
            found = points.draw(rng)
            if found is None:
                break
            watch.stage("drawing", points.evaluator.evaluated, self.points)
            for _ in range(self.redraws):
                state: State | None = found[1]
                for i in range(points.facts.count):
                    state = None if state is None else drawn(points.encoding.of(state), state, i, rng)
                if state is None:
                    points.note("no privates")
                else:
                    points.value(state)

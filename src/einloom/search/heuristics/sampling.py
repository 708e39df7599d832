"""`random`: Timeloop's random search, as FFM's section 7.2 reads it: compatible trees drawn at random."""

from __future__ import annotations

from random import Random

from ...mapspace.ffm.encoding import State
from ...mapspace.ffm.encoding.privates import drawn
from ...mapspace.space import Space
from ...problem import Budget, Guarantee, Problem
from ...result import Result
from ..evaluator import Evaluator
from ..method import Capabilities, Watcher
from .points import Points


class RandomSearch:
    """The best of mappings drawn at random.

    seed: the same seed gives the same answer. points: draws, if the budget names none. redraws: mappings drawn
    with new privates for each drawn skeleton.
    """

    name = "random"
    guarantee = Guarantee.NONE
    able = Capabilities(starts=True, spaces=("ffm", "ragged"))

    def __init__(self, seed: int = 0, points: int = 10_000, redraws: int = 20) -> None:
        if points < 1 or redraws < 0:
            raise ValueError("points: at least 1 is needed; redraws: at least 0")
        self.seed, self.points, self.redraws = seed, points, redraws

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best mapping drawn."""
        rng, points = Random(self.seed), Points(problem, space, price)
        points.begin()
        while points.part(self.points) < 1:
            found = points.draw(rng)
            if found is None:
                break
            watch.stage("drawing", price.evaluated, self.points)
            for _ in range(self.redraws):
                state: State | None = found[1]
                for i in range(points.facts.count):
                    state = None if state is None else drawn(points.facts, state, i, rng)
                if state is None:
                    points.note("no privates")
                else:
                    points.value(state)
        return price.result(self.name)

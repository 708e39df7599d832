"""`local`: coordinate descent. One Einsum at a time its privates, then what Einsums share, until nothing is better."""

from __future__ import annotations

from random import Random

from ...mapspace.space import Space
from ...problem import Budget, Guarantee, Problem
from ...result import Result
from ..evaluator import Evaluator
from ..method import Capabilities, Watcher
from .points import Points, Valued


class LocalSearch:
    """Descends from a draw until no proposal is better, then draws again.

    seed: the same seed gives the same answer. points: evaluations, if the budget names none. tries: proposals
    for an Einsum's privates, or for the skeleton, before the next; each better state makes them begin again. polish:
    proposals for the privates of each Einsum after a move of the skeleton, before it is judged.
    """

    name = "local"
    guarantee = Guarantee.NONE
    able = Capabilities(starts=True, spaces=("ffm", "ragged"))

    def __init__(self, seed: int = 0, points: int = 10_000, tries: int = 40, polish: int = 3) -> None:
        if points < 1 or tries < 1 or polish < 0:
            raise ValueError("points and tries: at least 1; polish: at least 0")
        self.seed, self.points, self.tries, self.polish = seed, points, tries, polish

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best end of all descents."""
        rng, points = Random(self.seed), Points(problem, space, price)
        waiting = [(points.value(state), state) for state in points.begin()]
        while points.part(self.points) < 1:
            start = waiting.pop() if waiting else points.draw(rng)
            if start is None:
                break
            watch.stage("descending")
            self._descend(points, start, rng)
        return price.result(self.name)

    def _descend(self, points: Points, found: Valued, rng: Random) -> None:
        before = float("inf")
        while found[0] < before and points.part(self.points) < 1:
            before = found[0]
            for i in range(points.facts.count):
                found = self._privates(points, found, i, rng)
            found = self._skeleton(points, found, rng)

    def _privates(self, points: Points, found: Valued, i: int, rng: Random) -> Valued:
        tried = 0
        while tried < self.tries:
            near = points.near(found[1], rng, 0.0, i)
            tried += 1
            if near is not None and near[0] < found[0]:
                found, tried = near, 0
        return found

    def _skeleton(self, points: Points, found: Valued, rng: Random) -> Valued:
        tried = 0
        while tried < self.tries and points.facts.floating:
            near = points.near(found[1], rng, 1.0)
            tried += 1
            if near is None or near[0] == float("inf"):
                continue
            changed = [i for i in range(points.facts.count) if near[1].shared[i] != found[1].shared[i]]
            near = points.polished(near, rng, self.polish, changed)
            if near[0] < found[0]:
                found, tried = near, 0
        return found

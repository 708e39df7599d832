"""A search method in a package of its own: the best of so many mappings drawn at random, then the best nearby."""

from __future__ import annotations

from random import Random

from einloom.mapspace.space import Space
from einloom.problem import Budget, Guarantee, Problem
from einloom.result import Result
from einloom.search.evaluator import Evaluator
from einloom.search.method import Capabilities, Watcher


class RandomSampling:
    """Draws `points` trees and prices them; then goes to a better neighbour for as long as there is one.

    seed: of the draws; the same seed gives the same answer. points: how many trees are drawn.
    """

    name = "random-sampling"
    guarantee = Guarantee.NONE
    able = Capabilities(starts=True, fronts=True)

    def __init__(self, seed: int = 0, points: int = 100) -> None:
        if points < 1:
            raise ValueError(f"points: at least 1 is needed, not {points}")
        self.seed, self.points = seed, points

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best tree seen. The evaluator counts, keeps the best, and ends the search when the budget is spent."""
        rng = Random(self.seed)
        price.begin()
        for done in range(self.points):
            watch.stage("drawing", done, self.points)
            price.checkpoint()
            tree = space.sample(rng)
            if tree is None:  # many draws, and none was legal
                break
            price.of(tree)
        watch.stage("climbing")
        while price.best is not None and self._climbs(space, price, rng):
            pass
        return price.result(self.name)

    def _climbs(self, space: Space, price: Evaluator, rng: Random) -> bool:
        """True if a neighbour of the best tree is better."""
        before = price.value
        assert price.best is not None
        return any(price.of(tree).value < before for tree in space.neighbours(price.best, rng))

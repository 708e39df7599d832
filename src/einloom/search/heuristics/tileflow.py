"""`tileflow`: a genetic algorithm over ordering and binding, tree search over tile factors (TileFlow, section 6)."""

from __future__ import annotations

from random import Random

from ...mapspace.ffm.encoding import NoProposal
from ...mapspace.space import Space
from ...problem import Budget, Guarantee, Problem
from ...result import Result
from ..evaluator import Evaluator
from ..method import Capabilities, Watcher
from .factors import tree_search
from .points import INFINITE, Points, Valued

MOVES = 3  # most moves of one mutation


class Tileflow:
    """Trees compete by the best tiles that Monte Carlo tree search finds for each; the best of them survive.

    seed: the same seed gives the same answer. points: evaluations, if the budget names none. population: trees that
    survive a generation. crossover, mutation: their probabilities. iterations, rollouts: of the tree search, for each
    tree. constant: of its upper confidence bound.
    """

    name = "tileflow"
    guarantee = Guarantee.NONE
    able = Capabilities(starts=True, spaces=("ffm", "ragged"))

    def __init__(
        self,
        seed: int = 0,
        points: int = 10_000,
        population: int = 10,
        crossover: float = 0.7,
        mutation: float = 0.2,
        iterations: int = 10,
        rollouts: int = 5,
        constant: float = 1.0,
    ) -> None:
        if min(points, iterations, rollouts) < 1 or population < 2:
            raise ValueError("points, iterations and rollouts: at least 1; population: at least 2")
        if not (0 <= crossover <= 1 and 0 <= mutation <= 1 and constant >= 0):
            raise ValueError("crossover and mutation: from 0 to 1; constant: at least 0")
        self.seed, self.points, self.population = seed, points, population
        self.crossover, self.mutation = crossover, mutation
        self.iterations, self.rollouts, self.constant = iterations, rollouts, constant

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best tiles of the best tree."""
        rng, points = Random(self.seed), Points(problem, space, price)
        people: list[Valued] = [(points.value(state), state) for state in points.begin()]
        while len(people) < self.population and points.part(self.points) < 1:
            drawn = points.draw(rng)
            if drawn is None:
                break
            people.append(self._tiled(points, drawn, rng))
        while people and points.part(self.points) < 1:
            watch.stage("generations")
            children = [child for _ in people if (child := self._child(points, people, rng)) is not None]
            fresh = points.draw(rng)  # a generation may propose nothing at all
            children += [] if fresh is None else [self._tiled(points, fresh, rng)]
            people = sorted([*people, *children], key=lambda one: one[0])[: self.population]
        return price.result(self.name)

    def _tiled(self, points: Points, found: Valued, rng: Random) -> Valued:
        return tree_search(points, found, self.iterations, self.rollouts, self.constant, rng)

    def _child(self, points: Points, people: list[Valued], rng: Random) -> Valued | None:
        """Another tree with the best tiles found for it; None if it breaks a rule or its tiles do not fit."""
        try:
            child = rng.choice(people)[1]
            if rng.random() < self.crossover:
                child = points.encoding.cross(child, rng.choice(people)[1], rng)
            if rng.random() < self.mutation or any(child == state for _, state in people):
                for _ in range(rng.randint(1, MOVES)):
                    child = points.encoding.propose(child, rng, 0.5)
        except NoProposal as rule:
            points.note(str(rule))
            return None
        fitted = points.encoding.fitted(child, rng)
        if fitted is None:
            points.evaluator.refuse("capacity")
            return None
        found = self._tiled(points, (points.value(fitted), fitted), rng)
        return found if found[0] < INFINITE else None

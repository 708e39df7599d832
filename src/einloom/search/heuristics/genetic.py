"""`genetic`: the genetic algorithm that FFM's section 7.2 makes of TileFlow's, on states; privates may be polished."""

from __future__ import annotations

from random import Random

from ...mapspace.ffm.encoding import NoProposal
from ...mapspace.space import Space
from ...problem import Budget, Guarantee, Problem
from ...result import Result
from ..evaluator import Evaluator
from ..method import Capabilities, Watcher
from .points import Points, Valued, changed_paths

MOVES = 3  # most moves of one mutation
REPAIRS = 50  # steps of a child's repair


class Genetic:
    """Generations of states: tournaments of two, crossover, mutation, repair; the best one is kept.

    seed: the same seed gives the same answer. points: evaluations, if the budget names none. population: the states of
    a generation. crossover, mutation: their probabilities. polish: proposals for the privates of each Einsum that a
    child has changed, for every thousand points of the search; 0 is the plain algorithm. patience: generations without
    a better state after which new ones are drawn.
    """

    name = "genetic"
    guarantee = Guarantee.NONE
    able = Capabilities(starts=True, spaces=("ffm", "ragged"))

    def __init__(
        self,
        seed: int = 0,
        points: int = 10_000,
        population: int = 10,
        crossover: float = 0.7,
        mutation: float = 0.2,
        polish: float = 2.0,
        patience: int = 15,
    ) -> None:
        if min(points, patience) < 1 or population < 2 or polish < 0:
            raise ValueError("points and patience: at least 1; population: at least 2; polish: at least 0")
        if not (0 <= crossover <= 1 and 0 <= mutation <= 1):
            raise ValueError("crossover and mutation: from 0 to 1")
        self.seed, self.points, self.population = seed, points, population
        self.crossover, self.mutation, self.polish, self.patience = crossover, mutation, polish, patience

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best state of all generations."""
        rng, points = Random(self.seed), Points(problem, space, price)
        known = [(points.value(state), state) for state in points.begin()]
        tries = int(self.polish * points.burst_size(self.points))
        while points.part(self.points) < 1:
            people = known[: self.population]
            known = []
            while len(people) < self.population and points.part(self.points) < 1:
                drawn = points.draw(rng)
                if drawn is None:
                    return price.result(self.name)
                people.append(points.polished(drawn, rng, tries))
            self._evolve(points, people, tries, rng)
        return price.result(self.name)

    def _evolve(self, points: Points, people: list[Valued], tries: int, rng: Random) -> None:
        """Generations until none has been better for a while."""
        still = 0
        while still < self.patience and points.part(self.points) < 1:
            points.evaluator.watch.stage("generations")
            before = min(value for value, _ in people)
            children = [min(people, key=_value)]
            while len(children) < len(people) and points.part(self.points) < 1:
                child = self._child(points, people, tries, rng)
                children.append(_tournament(people, rng) if child is None else child)
            people[:] = children
            still = 0 if min(value for value, _ in people) < before else still + 1

    def _child(self, points: Points, people: list[Valued], tries: int, rng: Random) -> Valued | None:
        """A state made of two, priced; None if it breaks a rule or cannot be mended."""
        mother = _tournament(people, rng)[1]
        encoding = points.encoding
        try:
            child = mother
            if rng.random() < self.crossover:
                child = encoding.cross(mother, _tournament(people, rng)[1], rng)
            if child == mother or rng.random() < self.mutation:
                for _ in range(rng.randint(1, MOVES)):
                    child = encoding.propose(child, rng)
        except NoProposal as rule:
            points.note(str(rule))
            return None
        fitted = encoding.fitted(child, rng, REPAIRS)
        if fitted is None:
            points.evaluator.refuse("capacity")
            return None
        found = (points.value(fitted), fitted)
        return points.polished(found, rng, tries, changed_paths(mother, fitted))


def _value(one: Valued) -> float:
    return one[0]


def _tournament(people: list[Valued], rng: Random) -> Valued:
    return min(rng.choice(people), rng.choice(people), key=_value)

"""`genetic`: the genetic algorithm that FFM's section 7.2 makes of TileFlow's, on states; privates may be polished."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from ...dataclass import dataclass
from ...mapspace.ffm.encoding import NoProposal
from ..method import Watcher
from .points import Points, Valued, changed_paths
from .states import MOVES, StateMethod

REPAIRS = 50  # steps of a child's repair


@dataclass(frozen=True)
class Genetic(StateMethod):
    """Generations of states: tournaments of two, crossover, mutation, repair; the best one is kept.

    seed: the same seed gives the same answer. points: the most, as in `StateMethod`. population: the states of a
    generation. crossover, mutation: their probabilities. polish: proposals for the privates of each Einsum that a child
    has changed, for every thousand points of the search; 0 is the plain algorithm. patience: generations without a
    better state after which new ones are drawn.
    """

    name: ClassVar[str] = "genetic"
    population: int = 10
    crossover: float = 0.7
    mutation: float = 0.2
    polish: float = 2.0
    patience: int = 15

    def __post_init__(self) -> None:
        self.least(1, "points", "patience")
        self.least(2, "population")
        self.least(0, "polish")
        self.share("crossover", "mutation")

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        """Populations, each until its generations bring nothing better."""
        known = [(points.value(state), state) for state in points.begin()]
        tries = int(self.polish * points.burst_size(self.points))
        while points.part(self.points) < 1:
            people = known[: self.population]
            known = []
            while len(people) < self.population and points.part(self.points) < 1:
                drawn = points.draw(rng)
                if drawn is None:
                    return
                people.append(points.polished(drawn, rng, tries))
            self._evolve(points, people, tries, rng)

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
        child = mother = _tournament(people, rng)[1]
        try:
            if rng.random() < self.crossover:
                child = points.encoding.cross(mother, _tournament(people, rng)[1], rng)
            if child == mother or rng.random() < self.mutation:
                for _ in range(rng.randint(1, MOVES)):
                    child = points.encoding.propose(child, rng)
        except NoProposal as rule:
            points.note(str(rule))
            return None
        found = points.fitted(child, rng, REPAIRS)
        return None if found is None else points.polished(found, rng, tries, changed_paths(mother, found[1]))


def _value(one: Valued) -> float:
    return one[0]


def _tournament(people: list[Valued], rng: Random) -> Valued:
    return min(rng.choice(people), rng.choice(people), key=_value)

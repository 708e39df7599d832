"""What methods on states have in common: their door, the limits of their options, and generations of trees."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import ClassVar

from ...dataclass import dataclass
from ...mapspace.ffm.encoding import NoProposal
from ...mapspace.space import Space
from ...problem import Budget, Guarantee, Problem
from ...result import Result
from ..evaluator import Evaluator
from ..method import Capabilities, Watcher
from .points import INFINITE, Points, Valued

MOVES = 3  # most moves of one mutation


@dataclass(frozen=True)
class StateMethod:
    """A method that draws, changes and prices states; the best legal one is its answer. seed: the same seed gives the
    same answer. points: the most evaluations, if the budget has no steps; by default none where it has seconds, else
    `usual`."""

    name: ClassVar[str]
    usual: ClassVar[int] = 10_000
    guarantee = Guarantee.NONE
    able = Capabilities(starts=True, spaces=("ffm", "ragged"))
    seed: int = 0
    points: int | None = None

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best mapping met. Raises SpecError where the mapspace has no states."""
        most = self.points or (self.usual if budget.seconds is None else None)
        replace(self, points=most).run(Points(problem, space, price), Random(self.seed), watch)
        if most is None:
            price.checkpoint()  # a run that sees that its seconds are over before a checkpoint does ends by them, too
        return price.result(self.name)

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        """Price states until the budget, or `points`, are used up; the evaluator keeps the best."""
        raise NotImplementedError

    def least(self, least: float, *names: str) -> None:
        """Raise ValueError where one of these options is less than `least`."""
        for name in names:
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"{name}: at least {least:g}")

    def share(self, *names: str) -> None:
        """Raise ValueError where one of these options is not from 0 to 1."""
        for name in names:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: from 0 to 1")


def child_of(
    points: Points, mother: Valued, people: list[Valued], crossover: float, mutation: float, rng: Random
) -> Valued | None:
    """A state of two, changed a little, mended and priced; None if it breaks a rule or cannot be mended."""
    child = mother[1]
    try:
        if rng.random() < crossover:
            child = points.encoding.cross(child, rng.choice(people)[1], rng)
        if rng.random() < mutation or any(child == state for _, state in people):
            for _ in range(rng.randint(1, MOVES)):
                child = points.encoding.propose(child, rng, 0.5)
    except NoProposal as rule:
        points.note(str(rule))
        return None
    return points.fitted(child, rng)


@dataclass(frozen=True)
class TiledTrees(StateMethod):
    """Trees compete by the best tiles that are found for each; the best of them survive a generation."""

    population: int = 10
    crossover: float = 0.7
    mutation: float = 0.2

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        people: list[Valued] = [(points.value(state), state) for state in points.begin()]
        while len(people) < self.population and points.part(self.points) < 1:
            drawn = points.draw(rng)
            if drawn is None:
                break
            people.append(self.tiled(points, drawn, rng))
        while people and points.part(self.points) < 1:
            watch.stage("generations")
            born = [self._child(points, people, rng) for _ in people]
            fresh = points.draw(rng)  # a generation may propose nothing at all
            born.append(None if fresh is None else self.tiled(points, fresh, rng))
            children = [child for child in born if child is not None]
            people = sorted([*people, *children], key=lambda one: one[0])[: self.population]

    def _child(self, points: Points, people: list[Valued], rng: Random) -> Valued | None:
        child = child_of(points, self.parent(people, rng), people, self.crossover, self.mutation, rng)
        found = None if child is None else self.tiled(points, child, rng)
        return None if found is None or found[0] == INFINITE else found

    def parent(self, people: list[Valued], rng: Random) -> Valued:
        """One of the trees, to be changed."""
        return rng.choice(people)

    def tiled(self, points: Points, found: Valued, rng: Random) -> Valued:
        """The tree with the best tiles that are found for it."""
        raise NotImplementedError

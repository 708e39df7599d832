"""Methods with one mistake each, for the kit to find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random

from einloom.cost.evaluate import evaluate
from einloom.mapping.tree import Loop, Mapping
from einloom.mapspace.space import Space
from einloom.problem import Budget, Certificate, Guarantee, Problem
from einloom.result import Result
from einloom.search.evaluator import Evaluator
from einloom.search.method import Capabilities, Watcher


class Sound:
    """The best of three random trees."""

    name = "sound"
    guarantee = Guarantee.NONE
    able = Capabilities()

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        rng = Random(0)
        for _ in range(3):
            tree = space.sample(rng)
            if tree is not None:
                price.of(tree)
        return price.result(self.name)


class Flattering(Sound):
    """Reports half of what its tree costs."""

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        found = super().search(problem, space, price, budget, watch)
        assert found.certificate is not None
        proof = replace(found.certificate, value=found.value / 2)
        return replace(found, cost=replace(found.cost, energy=found.cost.energy / 2), certificate=proof)


class Deaf(Sound):
    """Goes on for ever, whatever it is asked."""

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        tree = space.sample(Random(0))
        assert tree is not None
        while True:
            evaluate(problem.workload, problem.machine, tree)


class Fickle(Sound):
    """Draws other trees every time."""

    seeds: Iterator[int] = count()

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        tree = space.sample(Random(next(self.seeds)))
        if tree is not None:
            price.of(tree)
        return price.result(self.name)


class Wandering(Sound):
    """Returns a tree with a loop of one trip, which rule 2 of the space forbids."""

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        found = super().search(problem, space, price, budget, watch)
        einsums = problem.workload.einsums
        outer, *below = found.mapping.nest
        tree = Mapping((outer, Loop(tuple((e.name, e.variables[0]) for e in einsums), 1), *below))
        proof = Certificate(Guarantee.NONE, found.value, 0.0, problem.mapspace.describe())
        return Result.of(problem, tree, certificate=proof, method=self.name)


class Boasting(Sound):
    """Says that nothing is below the first tree that it drew."""

    guarantee = Guarantee.BOUNDED

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        tree = space.sample(Random(3))
        if tree is not None:
            price.of(tree)
        return price.result(self.name, Guarantee.BOUNDED, price.value if tree is not None else 0.0)


class Late(Sound):
    """Draws many trees, and is wrong in its last line alone."""

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        rng = Random(0)
        for _ in range(20):
            tree = space.sample(rng)
            if tree is not None:
                price.of(tree)
        found = price.result(self.name)
        assert found.certificate is not None
        return replace(found, certificate=replace(found.certificate, value=found.value / 2))


class Idle(Sound):
    """Looks at nothing."""

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        return price.result(self.name)


class Leaving(Sound):
    """Ends the process."""

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        raise SystemExit(0)


class Unlicensed(Sound):
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("no licence")


class Needy(Sound):
    """Has an option without a default."""

    def __init__(self, seed: int) -> None:
        self.seed = seed


class Listed(Sound):
    """Says what it is able to in a form of its own."""

    able = {"starts": True}  # type: ignore[assignment]  # noqa: RUF012


class Posing(Sound):
    """Calls itself as a method that ships."""

    name = "exact"

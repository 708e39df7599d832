"""`auto`: a mapping at once, `exact` at once, and search methods by turns with it until it has a mapping of its own."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from ...errors import BudgetExhausted, Ended
from ...mapping.tree import Mapping
from ...mapspace.space import Space
from ...problem import Budget, Guarantee, Problem
from ...result import Result
from ..evaluator import Evaluator, Stop
from ..first import FirstMappings
from ..method import Capabilities, Watcher
from .genetic import Genetic
from .turns import Turns


class Auto:
    """First an answer, then a good one, then the proof.

    seed: of the methods. points: evaluations of a memetic search before the proof, where the budget has steps: then
    nothing depends on seconds, and the same seed gives the same answer. Where `exact` ends for want of memory, the
    search goes on for as long as the budget lasts, and the bound stands.
    """

    name = "auto"
    guarantee = Guarantee.OPTIMAL
    able = Capabilities(starts=True, latency_rules=("einsum",), spaces=("ffm", "ragged"))

    def __init__(self, seed: int = 0, points: int = 1000) -> None:
        if points < 1:
            raise ValueError("points: at least 1")
        self.seed, self.points = seed, points

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The optimum; the best so far with the bound proven so far, if the budget ends first."""
        begun = time.monotonic()
        if budget.steps is None:
            found, seen = self._by_turns(problem, price, budget, watch)
        else:
            found, seen = self._one_after_the_other(problem, space, price, budget, watch)
        if found.ended in (Ended.MEMORY, Ended.NO_MEMORY):
            found = self._resumed(found, problem, space, _left(budget, begun), watch)
        counts = {} if found.certificate is None else dict(found.certificate.counts)
        for name, number in seen.items():
            counts[name] = counts.get(name, 0) + number
        proof = None if found.certificate is None else replace(found.certificate, counts=counts)
        return replace(found, method=self.name, certificate=proof)

    def _by_turns(
        self, problem: Problem, price: Evaluator, budget: Budget, watch: Watcher
    ) -> tuple[Result, dict[str, int]]:
        """The proof and the methods, each a share of the seconds; and how many points of which kind these visited."""
        from ..exact import Exact, ExactOptions

        made: list[Turns] = []

        def drawing(asked: Problem, heard: Watcher, loads: bool) -> FirstMappings:
            made.append(Turns(asked, heard, loads, self.seed, budget.seconds))
            return made[-1]

        options = ExactOptions(limit=price.cutoff, start=price.starts)
        found = Exact(options, drawing).search(problem, budget, watch)
        counts: dict[str, int] = {}
        for one in made:
            for name, number in one.counts.items():
                counts[name] = counts.get(name, 0) + number
        return found, counts

    def _one_after_the_other(
        self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher
    ) -> tuple[Result, dict[str, int]]:
        """A memetic search of so many points, then the proof from its best; and the points of which kind it visited."""
        from ..exact import Exact, ExactOptions

        begun = time.monotonic()
        short = Evaluator(problem, space, Budget(budget.seconds, min(self.points, budget.steps or self.points)), watch)
        self._memetic(short, price.starts, self.points)
        known = price.starts if short.best is None else (*price.starts, short.best)
        options = ExactOptions(limit=price.cutoff, start=known)
        found = Exact(options).search(problem, _left(budget, begun), watch)
        return found, {"evaluated": short.evaluated, "illegal": short.illegal, **short.refused}

    def _memetic(self, price: Evaluator, starts: tuple[Mapping, ...], points: int | None) -> None:
        """A search of so many points, or of the whole budget; what it finds stands in its evaluator."""
        price.starts = starts
        with suppress(Stop, BudgetExhausted):
            Genetic(self.seed, points).search(price.problem, price.space, price, price.budget, price.watch)
        price.settle()

    def _resumed(self, found: Result, problem: Problem, space: Space, budget: Budget, watch: Watcher) -> Result:
        """The memetic search again, from what `exact` had, for the rest of the seconds; the better of both."""
        if budget.seconds is None:
            return found
        price = Evaluator(problem, space, Budget(budget.seconds), watch)
        self._memetic(price, (found.mapping,), None)
        if price.best is None or price.cost is None or price.value >= found.value or found.certificate is None:
            return found
        proof = replace(found.certificate, value=price.value)
        return replace(found, mapping=price.best, cost=price.cost, certificate=proof)


def _left(budget: Budget, begun: float) -> Budget:
    """The budget of a proof: what is left of the seconds; steps do not bound it."""
    seconds = None if budget.seconds is None else max(0.001, budget.seconds - (time.monotonic() - begun))
    return Budget(seconds, None, budget.memory)

"""`auto`: a drawn mapping at once, a short memetic search, then `exact` from the best of it, with its proof."""

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
from ..method import Capabilities, Watcher
from .genetic import Genetic

PART = 0.05  # of the seconds of a budget, at most `MOST` seconds
MOST = 1.0


class Auto:
    """First an answer, then a good one, then the proof.

    seed: of the memetic search. points: its evaluations, fewer if the budget has fewer. Where `exact` ends for want of
    memory, the search goes on for as long as the budget lasts, and the bound stands.
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
        from ..exact import Exact, ExactOptions

        begun = time.monotonic()
        seconds = None if budget.seconds is None else min(MOST, PART * budget.seconds)
        short = Evaluator(problem, space, Budget(seconds, min(self.points, budget.steps or self.points)), watch)
        self._memetic(short, price.starts)
        known = price.starts if short.best is None else (*price.starts, short.best)
        options = ExactOptions(limit=price.cutoff, start=known)
        found = Exact(options).search(problem, _left(budget, begun), watch)
        if found.ended in (Ended.MEMORY, Ended.NO_MEMORY):
            found = self._resumed(found, problem, space, _left(budget, begun), watch)
        seen = {} if found.certificate is None else dict(found.certificate.counts)
        for name, number in (("evaluated", short.evaluated), ("illegal", short.illegal), *short.refused.items()):
            seen[name] = seen.get(name, 0) + number
        proof = None if found.certificate is None else replace(found.certificate, counts=seen)
        return replace(found, method=self.name, certificate=proof)

    def _memetic(self, price: Evaluator, starts: tuple[Mapping, ...]) -> None:
        """A short search; what it finds stands in its evaluator."""
        price.starts = starts
        with suppress(Stop, BudgetExhausted):
            Genetic(self.seed, self.points).search(price.problem, price.space, price, price.budget, price.watch)
        price.settle()

    def _resumed(self, found: Result, problem: Problem, space: Space, budget: Budget, watch: Watcher) -> Result:
        """The memetic search again, from what `exact` had, for the rest of the seconds; the better of both."""
        if budget.seconds is None:
            return found
        price = Evaluator(problem, space, Budget(budget.seconds), watch)
        self._memetic(price, (found.mapping,))
        if price.best is None or price.cost is None or price.value >= found.value or found.certificate is None:
            return found
        proof = replace(found.certificate, value=price.value)
        return replace(found, mapping=price.best, cost=price.cost, certificate=proof)


def _left(budget: Budget, begun: float) -> Budget:
    """The budget of a proof: what is left of the seconds; steps do not bound it."""
    seconds = None if budget.seconds is None else max(0.001, budget.seconds - (time.monotonic() - begun))
    return Budget(seconds, None, budget.memory)

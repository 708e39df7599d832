"""`exhaustive` as a `Method`: the best of all trees, with the certificate that having seen all of them gives."""

from __future__ import annotations

import time
from dataclasses import replace

from ..mapspace.space import Space
from ..problem import Budget, Certificate, Guarantee, Problem
from ..result import Result
from .checked import certified, priced, sound
from .evaluator import Evaluator
from .exhaustive import Exhaustive
from .method import Capabilities, Watcher
from .watcher import trace_of


class Enumerated:
    """Prices every tree of the space; OPTIMAL if the budget lets it see all of them, else the bound is zero."""

    name = "exhaustive"
    guarantee = Guarantee.OPTIMAL
    able = Capabilities(fronts=True)

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best of all trees. Raises Infeasible, or BudgetExhausted if the budget ended before a legal one, and
        Defect if what was found is not what it was taken for."""
        start = time.monotonic()
        with sound(self.name, problem):
            found = Exhaustive().search(problem, budget, watch)
            cost = priced(problem, found.mapping, found.value)
            for point in found.front:
                priced(problem, point.mapping, point.energy * point.latency)
            guarantee, bound = (Guarantee.OPTIMAL, found.value) if found.complete else (Guarantee.BOUNDED, 0.0)
            counts = {"trees": found.trees, "legal": found.legal}
            claim = Certificate(guarantee, found.value, bound, problem.mapspace.describe(), counts)
            certificate = certified(claim, problem, found.mapping)
            trace = trace_of(watch)
            seconds = time.monotonic() - start
            result = Result.of(
                problem, found.mapping, cost, certificate=certificate, method=self.name, seconds=seconds, trace=trace
            )
        return replace(result, front=found.front, ended=found.ended)

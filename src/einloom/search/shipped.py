"""`exact` as a method: what the starts and the cutoff are to it."""

from __future__ import annotations

from ..mapspace.space import Space
from ..problem import Budget, Guarantee, Problem, refuse_timeless
from ..result import Result
from .evaluator import Evaluator
from .method import Capabilities, Watcher


class ExactMethod:
    """The optimal mapping with its certificate (docs/exact.md).

    consistency, incumbent: whether the search drops what no partner can save, and what is above its limit; off, it is
    slow and finds the same.
    """

    name = "exact"
    guarantee = Guarantee.OPTIMAL
    able = Capabilities(starts=True, cutoff=True, fronts=True, latency_rules=("einsum",), spaces=("ffm", "ragged"))

    def __init__(self, *, consistency: bool = True, incumbent: bool = True) -> None:
        self.consistency, self.incumbent = consistency, incumbent

    def refuse(self, problem: Problem) -> None:
        """Raise SpecError for an objective that needs time where nothing takes any, and for what is not carried yet."""
        from .exact.answer import refuse_uncarried

        refuse_timeless(problem.objective, problem.machine)
        refuse_uncarried(problem)

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The optimum below the cutoff. It prices in tables, so it asks `price` only for starts and cutoff."""
        from .exact import Exact, ExactOptions

        options = ExactOptions(
            incumbent=self.incumbent, consistency=self.consistency, limit=price.cutoff, start=price.starts
        )
        return Exact(options).search(problem, budget, watch)

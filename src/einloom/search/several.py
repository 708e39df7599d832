"""The best of several problems with one objective, such as a cascade rewritten with every number of tiles.

Problems with labels come in, the `Result` of the best goes out; its certificate says of each what is proven. The exact
search is asked of a later problem only whether it beats the best so far, so most are dismissed by their lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..errors import BudgetExhausted, Infeasible, SpecError
from ..mapping.tree import Mapping
from ..problem import Alternative, Budget, Guarantee, Problem
from ..result import Result
from .protocol import Optimizer, Recorder, Watcher, optimizer


@dataclass(frozen=True, slots=True)
class Labelled:
    """A problem and what tells it from the others, in words."""

    label: str
    problem: Problem


def best_of(asked: Sequence[Labelled], method: str, budget: Budget, watch: Watcher) -> Result:
    """The best result among those of all problems.

    budget: its seconds are for all together, its steps and memory for each. Raises Infeasible if none has a mapping,
    BudgetExhausted if the budget ended before one was found, SpecError for objective ``pareto``: a front is one
    workload's.
    """
    if len(asked) == 1:
        return optimizer(method).search(asked[0].problem, budget, watch)
    if asked[0].problem.objective.name == "pareto":
        raise SpecError("a Pareto set is made of mappings of one workload; rewrite it with one number of tiles first")
    return _Several(asked, method, budget, watch).solve()


class _Several:
    def __init__(self, asked: Sequence[Labelled], method: str, budget: Budget, watch: Watcher) -> None:
        self.asked, self.method, self.budget, self.watch = asked, method, budget, watch
        self.best: Result | None = None
        self.known: list[Alternative] = []
        self.witness = ""
        self.counts: dict[str, int] = {}
        self.started = time.monotonic()

    def solve(self) -> Result:
        for each in self.asked:
            try:
                self.known.append(self.alternative(each))
            except KeyboardInterrupt:
                if self.best is None:
                    raise
                break
        self.known += [Alternative(each.label, 0.0) for each in self.asked[len(self.known) :]]
        if self.best is None:
            bounds = [each.bound for each in self.known if each.bound is not None]
            if bounds:
                raise BudgetExhausted(min(bounds))
            raise Infeasible(f"with {self.asked[-1].label}, as with the others: {self.witness}")
        return self.result(self.best)

    def alternative(self, each: Labelled) -> Alternative:
        """What is proven of one problem; a better mapping becomes the best."""
        limit = None if self.best is None else self.best.value
        budget = self.budget
        if budget.seconds is not None:
            budget = replace(budget, seconds=budget.seconds - (time.monotonic() - self.started))
        if self.watch.stopped() or (budget.seconds is not None and budget.seconds <= 0):
            return Alternative(each.label, 0.0)
        try:
            found = _method(self.method, limit).search(each.problem, budget, _Inner(self, each.label))
        except Infeasible as error:
            self.witness = error.witness
            return Alternative(each.label, limit if _limited(self.method) else None)
        except BudgetExhausted as error:
            return Alternative(each.label, error.bound if limit is None else min(limit, error.bound))
        if limit is None or found.value < limit:
            self.best = found
        assert found.certificate is not None
        return Alternative(each.label, found.certificate.bound, found.value)

    def result(self, best: Result) -> Result:
        """The best result with a certificate that speaks of all."""
        assert best.certificate is not None
        bound = min(each.bound for each in self.known if each.bound is not None)
        proven = best.certificate.guarantee is not Guarantee.NONE
        whole = proven and bound >= best.value * (1 - 1e-12)
        guarantee = Guarantee.OPTIMAL if whole else Guarantee.BOUNDED if proven else Guarantee.NONE
        bound = best.value if whole else min(bound, best.value)
        self.watch.bound(bound)
        for rule, number in self.counts.items():
            self.watch.count(rule, number)
        certificate = replace(
            best.certificate,
            guarantee=guarantee,
            bound=bound,
            counts=MappingProxyType(dict(self.counts)),
            alternatives=tuple(self.known),
        )
        trace = tuple(self.watch.trace) if isinstance(self.watch, Recorder) else ()
        return replace(best, certificate=certificate, seconds=time.monotonic() - self.started, trace=trace)


def _limited(method: str) -> bool:
    return method == "exact"


def _method(name: str, limit: float | None) -> Optimizer:
    """The method; the exact one looks for nothing above `limit`."""
    if limit is None or not _limited(name):
        return optimizer(name)
    from .exact import Exact, ExactOptions

    return Exact(ExactOptions(limit=limit))


class _Inner(Watcher):
    """Hears the search of one problem: counts are summed, bounds are its own, and stages get its label."""

    def __init__(self, outer: _Several, label: str) -> None:
        self.outer, self.label = outer, label

    def incumbent(self, value: float, mapping: Mapping | None = None) -> None:
        if self.outer.best is None or value < self.outer.best.value:
            self.outer.watch.incumbent(value)

    def count(self, rule: str, number: int = 1) -> None:
        self.outer.counts[rule] = self.outer.counts.get(rule, 0) + number

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        self.outer.watch.stage(f"{self.label}: {name}", done, total)

    def stopped(self) -> bool:
        return self.outer.watch.stopped()

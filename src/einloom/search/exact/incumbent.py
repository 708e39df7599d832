"""What a search knows so far: its best mapping, and the bound that is proven.

Comes in: solutions and bounds of its attempts. Goes out: the best of them; a watcher hears of each improvement.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...cost.breakdown import Cost
from ...cost.evaluate import evaluate
from ...mapping.tree import Mapping
from ...problem import Problem
from ..method import Watcher
from ..starts import admitted
from .attempt import Solution
from .bounds.cutoff import TIE, settled


class Incumbent:
    """The best solution (of one repeat) and the bound (of all repeats) so far.

    starts: the known mappings that the search began from. early: a mapping that
    fuses nothing, or one of few choices, found before the search has one of its own. ceiling: of the values that are
    looked for. repeats: how often the value of one repeat is in that of the whole problem.
    """

    def __init__(self, problem: Problem, watcher: Watcher) -> None:
        self.problem, self.watcher = problem, watcher
        self.starts: list[Solution] = []
        self.best: Solution | None = None
        self.early: Solution | None = None
        self.bound, self.ceiling = 0.0, np.inf
        self.repeats = problem.workload.repeat**problem.objective.degree

    def begin(self, mappings: Iterable[Mapping]) -> None:
        """Take the known mappings: the best of them is the best so far. Raises SpecError for one that does not fit."""
        for mapping in admitted(self.problem, mappings):
            self.starts.append(self.solution(mapping))
            self.found(self.starts[-1])

    @property
    def start(self) -> Solution | None:
        """The best of the known mappings."""
        return min(self.starts, key=lambda known: known.value, default=None)

    @property
    def value(self) -> float:
        """Of the best solution, or the ceiling if that is lower; what costs more is not looked for."""
        return self.ceiling if self.best is None else min(self.best.value, self.ceiling)

    @property
    def provisional(self) -> bool:
        """True while the search has found no mapping of its own: there is none, or an early one."""
        return self.best is self.early

    @property
    def met(self) -> bool:
        """True if the best solution costs no more than what is proven; of a Pareto set one point is not enough."""
        best = self.best
        if best is None or self.problem.objective.name == "pareto":
            return False
        return bool(best.value * self.repeats <= self.bound * (1 + TIE))

    def own(self) -> Solution | None:
        """The best solution, from now on one of the search's own."""
        self.early = None
        return self.best

    def found(self, solution: Solution) -> None:
        """Keep a solution if it is the best."""
        if self.best is None or solution.value < self.best.value:
            self.best = solution
            self.watcher.incumbent(solution.value * self.repeats, solution.mapping)

    def prove(self, bound: float) -> None:
        """Every mapping costs at least this."""
        self.bound = max(self.bound, bound)
        self.watcher.bound(bound)

    def solution(self, mapping: Mapping, cost: Cost | None = None) -> Solution:
        """A legal mapping with its sums for one repeat. cost: by `evaluate`, if that is known."""
        problem = self.problem
        cost = cost or evaluate(problem.workload, problem.machine, mapping, problem.latency_rule)
        sums = np.array([part.value(cost) for part in settled(problem.objective)]) / problem.workload.repeat
        return Solution(problem.objective.value(cost) / self.repeats, sums, mapping)

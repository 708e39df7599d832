"""The price of points, for every method alike: one by one, or many choices of tiles at a time.

Comes in: trees, or a skeleton with rows of tiles. Goes out: the objective's value of each. On the way the points are
counted, the best is kept and told to the watcher, and the search is ended when its budget is spent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Table
from contextlib import contextmanager
from dataclasses import replace
from math import ceil, floor, log10
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..cost.breakdown import Cost
from ..cost.evaluate import evaluate
from ..dataclass import dataclass
from ..errors import BudgetExhausted, Ended, IllegalMapping, SpecError
from ..mapping.normal import normal_form
from ..mapping.tree import Mapping
from ..mapspace.space import Skeleton, Space
from ..problem import Budget, Certificate, Guarantee, Objective, Problem
from ..result import FrontPoint, Result
from .resources import resident_bytes
from .starts import admitted
from .watcher import Watcher, trace_of

if TYPE_CHECKING:
    from ..cost.batch.arrays import Arrays

SURELY = 1 - 1e-12  # sums in another order may differ in the last places
CHECKS_A_DECADE = 12  # of points, at which offers are priced as whole trees
LOOK = 64  # points between two looks at the memory that the process holds


class Stop(BaseException):
    """The search is to end now: raised by an `Evaluator` into a method. No error: ``except Exception`` lets it pass."""


@dataclass(frozen=True, slots=True)
class Point:
    """A priced tree: the objective's value, infinite if the tree is illegal; then `reasons` say why, and no cost."""

    value: float
    cost: Cost | None = None
    reasons: tuple[str, ...] = ()


class Evaluator:
    """Prices the points of one problem for one search.

    starts: known mappings, for methods that are able to begin from them. cutoff: the method need not look for values
    above it. best, value: the best legal mapping inside the space so far. front: for objective ``pareto`` those that
    none beats in energy and latency. evaluated, illegal: points so far. refused: those that a
    method refused itself, by the rule that they break. ended: what ended the search, if anything did.
    """

    def __init__(
        self,
        problem: Problem,
        space: Space,
        budget: Budget | None = None,
        watch: Watcher | None = None,
        starts: Sequence[Mapping] = (),
        cutoff: float | None = None,
    ) -> None:
        self.problem, self.space = problem, space
        self.budget, self.watch = budget or Budget(), watch or Watcher()
        self.starts, self.cutoff = tuple(starts), cutoff
        self.value = float("inf")
        self.best: Mapping | None = None
        self.cost: Cost | None = None
        self.front: list[FrontPoint] = []
        self.evaluated = self.illegal = 0
        self.refused: dict[str, int] = {}
        self.ended: Ended | None = None
        self._offers: list[tuple[float, Callable[[], Mapping]]] = []
        self._check_at, self._check_by = 1, 0.0
        self._started = time.monotonic()

    def begin(self) -> None:
        """Price the starts. Raises SpecError for one that is illegal or outside the space."""
        for start in admitted(self.problem, self.starts):
            self.of(start)

    def of(self, tree: Mapping) -> Point:
        """The price of one tree; the best one inside the space is kept. Raises Stop when the search is to end."""
        self.checkpoint()
        problem = self.problem
        try:
            cost = evaluate(problem.workload, problem.machine, tree, problem.latency_rule)
        except IllegalMapping as error:
            self.illegal += 1
            self.watch.count("illegal")
            return Point(float("inf"), None, error.reasons)
        self.evaluated += 1
        self.watch.count("evaluated")
        point = Point(problem.objective.value(cost), cost)
        better = point.value < self.value
        if (better or self._extends(cost)) and not self.space.outside(tree):
            self._keep(tree, point, better)
        return point

    def offer(self, value: float, tree: Callable[[], Mapping], points: int = 1) -> float:
        """Count legal points that a method has priced part by part; the best of them has this value.

        tree: makes its mapping, if it is the best so far. It is priced by `evaluate` before it is kept or told to
        anyone: not at once, but at `CHECKS_A_DECADE` numbers of points, every second, and at the end. points: how many
        were visited together. Raises Stop when the search is to end.
        """
        self.checkpoint()
        if value < (self._offers[-1][0] if self._offers else self.value) * SURELY:
            self._offers.append((value, tree))
        self.evaluated += points - 1
        self.watch.count("evaluated", points - 1)
        self._look()
        self.evaluated += 1
        self.watch.count("evaluated")
        return value

    def _look(self) -> None:
        """Price what was offered, if it is time to, before the next point is counted."""
        done = self.evaluated + self.illegal + 1
        if self._offers and (done >= self._check_at or time.monotonic() >= self._check_by):
            self.settle()
        while self._check_at <= done:
            place = floor(log10(self._check_at) * CHECKS_A_DECADE + 0.5) + 1
            self._check_at = ceil(10 ** (place / CHECKS_A_DECADE))

    def settle(self) -> None:
        """Price the best of what was offered; if that is no mapping after all, the next best."""
        while self._offers:
            made = self._offers.pop()[1]()
            found = self._admitted(made)
            if isinstance(found, Point):
                self._offers.clear()
                if found.value < self.value:
                    self._keep(made, found, True)
            else:
                self.evaluated, self.illegal = self.evaluated - 1, self.illegal + 1
                self.refused[found] = self.refused.get(found, 0) + 1
        self._check_by = time.monotonic() + 1.0

    def _admitted(self, tree: Mapping) -> Point | str:
        """The price of a tree; or why it has none, in a word."""
        try:
            cost = evaluate(self.problem.workload, self.problem.machine, tree, self.problem.latency_rule)
        except IllegalMapping:
            return "illegal"
        if self.space.outside(tree):
            return "outside"
        return Point(self.problem.objective.value(cost), cost)

    def refuse(self, rule: str, points: int = 1) -> float:
        """Count points that are no legal mapping of the space, under the rule that they break; their value is infinite.

        Raises Stop when the search is to end.
        """
        self.checkpoint()
        self._look()
        self.illegal += points
        self.refused[rule] = self.refused.get(rule, 0) + points
        self.watch.count(rule, points)
        return float("inf")

    def many(self, skeleton: Skeleton, tiles: NDArray[np.int64]) -> NDArray[np.float64]:
        """The values of all rows of tiles, infinite where the tree is illegal; the best inside the space is kept.

        tiles: int64 [n, k], one column per open loop of the skeleton. Skeletons that `cost.batch` cannot price at once
        (windows, concurrent splits, objectives ``pareto`` and ``traffic``, rule ``tile``) are priced row by row.
        """
        self.checkpoint()
        room = None if self.budget.steps is None else self.budget.steps - self.evaluated - self.illegal
        rows = np.asarray(tiles, dtype=np.int64)[:room]
        values = self._priced(skeleton, rows)
        if values is None:
            return np.array([self.of(self.space.tree(skeleton, row)).value for row in rows])
        legal = int(np.isfinite(values).sum())
        self.evaluated, self.illegal = self.evaluated + legal, self.illegal + len(rows) - legal
        self.watch.count("evaluated", legal)
        self.watch.count("illegal", len(rows) - legal)
        for at in np.argsort(values, kind="stable"):
            if not values[at] < self.value:
                break
            tree = self.space.tree(skeleton, rows[at])
            if not self.space.outside(tree):
                cost = evaluate(self.problem.workload, self.problem.machine, tree, self.problem.latency_rule)
                self._keep(tree, Point(self.problem.objective.value(cost), cost), True)
        return values

    def stopped(self) -> bool:
        """True when the search should end now; the reason is `ended`. Methods that do not ask are ended by `of`."""
        self.ended = self.ended or self._spent()
        return self.ended is not None

    @property
    def spent(self) -> float:
        """The part of the budget's seconds or steps that is used, whichever is more; 0 without such a budget."""
        used = [0.0]
        if self.budget.seconds:
            used.append((time.monotonic() - self._started) / self.budget.seconds)
        if self.budget.steps:
            used.append((self.evaluated + self.illegal) / self.budget.steps)
        return max(used)

    def checkpoint(self) -> None:
        """Raise Stop when the search should end now."""
        if self.stopped():
            raise Stop

    @contextmanager
    def turn(self, budget: Budget, watch: Watcher) -> Iterator[None]:
        """A search within another, with a budget and a watcher of its own: what ends it ends no more than that."""
        outer, began = (self.budget, self.watch), self._started
        self.budget, self.watch, self._started = budget, watch, time.monotonic()
        try:
            yield
        except Stop:
            pass
        finally:
            (self.budget, self.watch), self._started, self.ended = outer, began, None
        self.settle()

    def result(
        self,
        method: str,
        guarantee: Guarantee = Guarantee.NONE,
        bound: float = 0.0,
        counts: Table[str, int] | None = None,
    ) -> Result:
        """The answer of a search: the best mapping with its certificate. Raises BudgetExhausted if there is none.

        bound: what the method has proven that no mapping is below. counts: beside those of evaluated and illegal
        points.
        """
        self.settle()
        if self.best is None:
            reason = (
                None if self.ended else f"{method} found no legal mapping in {self.evaluated + self.illegal} points"
            )
            raise BudgetExhausted(bound, reason, self.ended)
        seen = {"evaluated": self.evaluated, "illegal": self.illegal, **self.refused, **(counts or {})}
        certificate = Certificate(guarantee, self.value, bound, self.problem.mapspace.describe(), seen)
        trace = trace_of(self.watch)
        seconds = time.monotonic() - self._started
        found = Result.of(
            self.problem, self.best, self.cost, certificate=certificate, method=method, seconds=seconds, trace=trace
        )
        points = tuple(sorted(self.front, key=lambda point: point.energy))
        return replace(found, ended=self.ended, front=points)

    def _spent(self) -> Ended | None:
        budget, points = self.budget, self.evaluated + self.illegal
        if budget.seconds is not None and time.monotonic() - self._started >= budget.seconds:
            return Ended.SECONDS
        if budget.steps is not None and points >= budget.steps:
            return Ended.STEPS
        if budget.memory is not None and points % LOOK == 0 and resident_bytes() > budget.memory:
            return Ended.MEMORY
        return Ended.STOPPED if self.watch.stopped() else None

    def _extends(self, cost: Cost) -> bool:
        """True for objective ``pareto`` if no point of the front is as good."""
        return self.problem.objective.name == "pareto" and not any(
            point.energy <= cost.energy and point.latency <= cost.latency for point in self.front
        )

    def _keep(self, tree: Mapping, point: Point, better: bool) -> None:
        assert point.cost is not None
        tree = normal_form(tree, self.problem.workload)
        if self._extends(point.cost):
            new = FrontPoint(point.cost.energy, point.cost.latency, tree)
            kept = [old for old in self.front if old.energy < new.energy or old.latency < new.latency]
            self.front = [*kept, new]
        if better:
            self.value, self.best, self.cost = point.value, tree, point.cost
            self.watch.incumbent(point.value, tree)

    def _priced(self, skeleton: Skeleton, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """The values of all rows at once; None if they must be priced one by one."""
        from ..cost.batch.arrays import price_many

        problem = self.problem
        goal = problem.objective
        if goal.name in ("pareto", "traffic") or problem.latency_rule != "einsum" or not skeleton.loops:
            return None
        tiles = {address: np.ascontiguousarray(rows[:, i]) for i, address in enumerate(skeleton.loops)}
        try:
            found = price_many(problem.workload, problem.machine, skeleton.mapping, tiles)
        except IllegalMapping:
            return np.full(len(rows), np.inf)
        except SpecError:
            return None
        return np.where(found.legal, _values(goal, found), np.inf)


def _values(goal: Objective, found: Arrays) -> NDArray[np.float64]:
    """The objective of every row, as `Objective.value` has it of one cost."""
    if goal.name == "energy":
        return found.energy
    if goal.name == "latency":
        return found.latency
    energy, latency = goal.powers
    return np.asarray(found.energy**energy * found.latency**latency, dtype=np.float64)

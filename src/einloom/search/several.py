"""The best of several problems with one objective, such as a cascade rewritten with every number of tiles.

Problems with labels come in, the `Result` of the best goes out; its certificate says of each what is proven. The exact
search takes the problem with the least lower bound first, and is asked of a later one only whether it beats the best so
far, so most are dismissed by their bound. Where seconds are counted the problems take turns, none of all that is left.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import field, replace
from math import inf

from ..dataclass import dataclass
from ..errors import BudgetExhausted, Ended, Infeasible, SpecError
from ..mapping.tree import Mapping
from ..problem import Alternative, Budget, Certificate, Guarantee, Problem
from ..result import Result
from .door import ask, chosen, refuse
from .first import LATE, FirstMappings
from .method import Method, Watcher
from .starts import fitting, misfits, refusal
from .watcher import trace_of

BETTER = 1 - 4e-9  # of the best value so far: what is above this is not better, as `exact` compares
NEAR = 2.0  # times the bound of its problem: up to there the best known mapping says which problem comes first
TURN = 0.5  # of the seconds that are left goes to a turn: the first problem has the least lower bound
SHORTEST = 0.5  # seconds of a turn: in less a search has hardly begun
DRAWING = 0.25  # of the last turn is kept for drawing a mapping of any problem, if none is known by then
COMPARED = 0.5  # of the seconds are spent at most on lower bounds of all, and a half of what is left of that on one


@dataclass(frozen=True, slots=True)
class Labelled:
    """A problem and what tells it from the others, in words."""

    label: str
    problem: Problem


def best_of(
    asked: Sequence[Labelled], method: Method | str, budget: Budget, watch: Watcher, starts: Sequence[Mapping] = ()
) -> Result:
    """The best result among those of all problems.

    budget: its seconds are for all together, its steps and memory for each. starts: known mappings, each of some of
    the problems, for methods that are able to look below them. Raises Infeasible if none has a mapping,
    BudgetExhausted if the budget ended before one was found, SpecError for objective ``pareto`` (a front is one
    workload's), for a start that is a mapping of none of the problems, and for what the method is not able to do.
    """
    method = chosen(method)
    refuse(method, asked[0].problem, bool(starts))
    known = _shared_out(asked, starts)
    if len(asked) == 1:
        return ask(method, asked[0].problem, budget, watch, known[0])
    if asked[0].problem.objective.name == "pareto":
        raise SpecError("a Pareto set is made of mappings of one workload; rewrite it with one number of tiles first")
    return _Several(asked, method, budget, watch, known).solve()


def _shared_out(asked: Sequence[Labelled], starts: Sequence[Mapping]) -> list[tuple[Mapping, ...]]:
    """The starts of each problem; SpecError as `best_of`."""
    for start in starts:
        reasons = [misfits(each.problem, start) for each in asked]
        if all(reasons):
            raise refusal(min(reasons, key=len))
    return [fitting(each.problem, starts) for each in asked]


@dataclass
class _Several:
    """starts: of each problem. known, reached, last: of each problem asked so far, what is proven, the least value, and
    what ended its search. least, uneven: lower bounds before that, with perfect and with uneven tiles; sure: the
    problems whose `least` was found to the end. drew: whether mappings were drawn."""

    asked: Sequence[Labelled]
    method: Method
    budget: Budget
    watch: Watcher
    starts: list[tuple[Mapping, ...]]
    best: Result | None = None
    ended: Ended | None = None
    known: dict[int, Alternative] = field(default_factory=dict)
    reached: dict[int, float] = field(default_factory=dict)
    last: dict[int, Ended | None] = field(default_factory=dict)
    least: dict[int, float] = field(default_factory=dict)
    uneven: dict[int, float] = field(default_factory=dict)
    sure: set[int] = field(default_factory=set)
    witness: str = ""
    drew: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    started: float = field(default_factory=lambda: time.monotonic())

    def solve(self) -> Result:
        try:
            if self.method.able.cutoff and self.method.able.starts:
                if not any(self.starts):
                    self.begin_evenly()
                self.compare()
                if not any(self.starts) and not self.turns:
                    self.look_around()
            if self.turns:
                self.take_turns()
            else:
                for i in self.order():
                    self.known[i] = self.alternative(i, self.left())
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.ended = Ended.STOPPED
        if self.best is None and self.ended is not None and self.method.able.starts and not self.drew:
            hurry = self.budget.seconds is not None or self.watch.stopped()
            self.draw(time.monotonic() + LATE if hurry else inf)
        for i in range(len(self.asked)):
            self.known.setdefault(i, self.unproven(i))
        if self.best is None:
            bounds = [each.bound for each in self.known.values() if each.bound is not None]
            if bounds:
                raise BudgetExhausted(min(bounds), ended=self.ended)
            raise Infeasible(f"with {self.asked[-1].label}, as with the others: {self.witness}")
        return self.result(self.best)

    @property
    def turns(self) -> bool:
        """True if a search that was cut off may go on later from what all know by then: it is worth asking again."""
        able = self.method.able
        return self.budget.seconds is not None and self.budget.steps is None and able.cutoff and able.starts

    def take_turns(self) -> None:
        """Ask every problem for some of the seconds that are left, then those that may still be better for at least
        twice as long as before: the first might take the whole budget."""
        waiting, turns = self.order(), dict[int, float]()
        self.known = {i: self.unproven(i) for i in waiting}
        while waiting:
            for i in waiting:
                left = self.left()
                if left is None or left.seconds is None:
                    return
                turns[i] = max(SHORTEST, TURN * left.seconds, 2 * turns.get(i, 0.0))
                alone = len(waiting) == 1 or left.seconds < turns[i] + SHORTEST
                if alone and self.best is None and not self.drew:
                    end = time.monotonic() + left.seconds
                    self.ask_on(i, replace(left, seconds=left.seconds * (1 - DRAWING)))
                    if self.best is None:
                        self.draw(end)
                else:
                    self.ask_on(i, left if alone else replace(left, seconds=turns[i]))
            waiting = [i for i in self.order() if i in waiting and self.open(i)]

    def ask_on(self, i: int, budget: Budget) -> None:
        """Ask a problem once more; what was known of it stays."""
        before, found = self.known[i], self.alternative(i, budget)
        if found.value is not None:
            self.reached[i] = min(self.reached.get(i, found.value), found.value)
        if before.bound is not None and found.bound is not None:
            found = replace(found, bound=max(before.bound, found.bound), value=self.reached.get(i))
        self.known[i] = found

    def open(self, i: int) -> bool:
        """May the problem have something better than the best, and its search only wants more seconds?"""
        bound = self.known[i].bound
        better = bound is not None and (self.best is None or bound < self.best.value * BETTER)
        return better and self.last.get(i) is Ended.SECONDS

    def begin_evenly(self) -> None:
        """Where tiles may be uneven and seconds are counted, take the best with perfect tiles, found in half of them.

        Their search is short, and with uneven ones the first of many problems would take the whole budget.
        """
        seconds = self.budget.seconds
        if seconds is None or any(each.problem.mapspace.name != "ragged" for each in self.asked):
            return
        even = [Labelled(each.label, _evenly(each.problem)) for each in self.asked]
        budget = replace(self.budget, seconds=seconds / 2)
        quick = _Several(even, self.method, budget, _Even(self, "perfect tiles"), [()] * len(even))
        self.least, self.sure = quick.least, quick.sure
        try:
            found = quick.solve()
        except (BudgetExhausted, Infeasible):
            return
        self.starts = [fitting(each.problem, (found.mapping,)) for each in self.asked]
        if quick.ended is Ended.STOPPED:
            self.order()
            raise KeyboardInterrupt

    def compare(self) -> None:
        """Find a lower bound of every problem with perfect tiles: those with the least are the most promising. A bound
        takes a small part of a search, and tells most problems from the best. Of uneven tiles it is a brief one, and
        the other decides between equals."""
        from .exact import least_value

        spent = COMPARED * (self.budget.seconds or 0.0)
        for i, each in enumerate(self.asked):
            budget = self.left()
            if budget is not None and each.problem.mapspace.name == "ragged":
                self.uneven[i], _ = least_value(each.problem, budget, _Inner(self, each.label), brief=True)
            if budget is None or i in self.least:
                continue
            if budget.seconds is not None and self.budget.seconds is not None:
                rest = budget.seconds - (self.budget.seconds - spent)
                if rest <= 0:
                    continue
                budget = replace(budget, seconds=rest / 2)
            even = _evenly(each.problem) if each.problem.mapspace.name == "ragged" else each.problem
            self.least[i], whole = least_value(even, budget, _Even(self, each.label))
            if whole:
                self.sure.add(i)

    def look_around(self) -> None:
        """Take the first problem in which a quick look finds a mapping: it is the start of all, whatever the others
        cost. Else one that has no mapping, solved first, would take the whole budget."""
        from .exact import first_feasible

        for i in self.order():
            budget, each = self.left(), self.asked[i]
            if budget is None:
                return
            mapping = first_feasible(each.problem, budget, _Inner(self, each.label))
            if mapping is not None:
                self.starts[i] = (mapping,)
                return

    def draw(self, until: float) -> None:
        """Take the best mapping of those that can be drawn until this moment of `time.monotonic`, of one problem after
        the other, the most promising first; without such a moment the first mapping.

        Each has a half of what is left, one draw at least.
        """
        self.drew = True
        for i in self.order():
            now = time.monotonic()
            if now >= until or (until == inf and self.best is not None):
                return
            mapping = FirstMappings(self.asked[i].problem, Watcher()).draw((now + until) / 2)
            if mapping is not None:
                self.take(i, mapping)
                self.starts[i] = (mapping,)
                self.known[i] = replace(self.known.get(i) or self.unproven(i), value=self.reached[i])

    def unproven(self, i: int) -> Alternative:
        """What is known of a problem that was not searched."""
        from ..problem.compulsory import compulsory

        reached, bound = self.reached.get(i), 0.0
        if self.method.able.cutoff:
            bound = max(compulsory(self.asked[i].problem), self.bound(i) if self.bound(i) < inf else 0.0)
        return Alternative(self.asked[i].label, bound if reached is None else min(bound, reached), reached)

    def bound(self, i: int) -> float:
        """What was found of a problem before its search; infinite if it has no mapping."""
        return (self.uneven if self.asked[i].problem.mapspace.name == "ragged" else self.least).get(i, 0.0)

    def left(self) -> Budget | None:
        """What is left of the budget; None if that is nothing."""
        if self.watch.stopped():
            self.ended = Ended.STOPPED
            return None
        if self.budget.seconds is None:
            return self.budget
        seconds = self.budget.seconds - (time.monotonic() - self.started)
        if seconds <= 0:
            self.ended = Ended.SECONDS
            return None
        return replace(self.budget, seconds=seconds)

    def order(self) -> list[int]:
        """The problems in the order in which they are solved: that with the best mapping so far, unless its bound is
        much lower, then by their lower bounds and by what is known of them. The best start is kept."""
        for i, mappings in enumerate(self.starts):
            for mapping in mappings:
                self.take(i, mapping)
        first = min(self.reached, key=lambda i: self.reached[i], default=None)
        if first in self.uneven and self.reached[first] > NEAR * self.uneven[first]:
            first = None

        def rank(i: int) -> tuple[bool, bool, float, float, float]:
            bounds = self.uneven.get(i, 0.0), self.least.get(i, 0.0)
            return i != first, i not in self.sure, *bounds, self.reached.get(i, inf)

        return sorted(range(len(self.asked)), key=rank)

    def take(self, i: int, mapping: Mapping) -> None:
        """A known mapping of one problem; it becomes the best if it is."""
        problem = self.asked[i].problem
        plain = Result.of(problem, mapping)
        self.reached[i] = min(self.reached.get(i, plain.value), plain.value)
        if self.best is None or plain.value < self.best.value:
            proof = Certificate(Guarantee.BOUNDED, plain.value, 0.0, problem.mapspace.describe())
            self.best = Result.of(problem, mapping, plain.cost, certificate=proof, method=self.method.name)
            self.watch.incumbent(plain.value)

    def alternative(self, i: int, budget: Budget | None) -> Alternative:
        """What is proven of one problem within a budget; a better mapping becomes the best."""
        each = self.asked[i]
        limit = None if self.best is None else self.best.value
        below = None if limit is None else limit * BETTER
        if below is not None and self.bound(i) > below:
            self.last[i] = None
            return Alternative(each.label, limit, self.reached.get(i))
        if budget is None:
            return self.unproven(i)
        try:
            found = ask(self.method, each.problem, budget, _Inner(self, each.label), self.starts[i], below)
        except Infeasible as error:
            self.last[i], self.witness = None, error.witness
            return Alternative(each.label, limit if self.method.able.cutoff else None, self.reached.get(i))
        except BudgetExhausted as error:
            self.last[i], self.ended = error.ended, error.ended or self.ended
            return Alternative(each.label, error.bound if limit is None else min(limit, error.bound))
        self.last[i], self.ended = found.ended, found.ended or self.ended
        if limit is None or found.value < limit:
            self.best = found
            if self.method.able.starts:
                self.starts[i] = (found.mapping,)
        assert found.certificate is not None
        return Alternative(each.label, found.certificate.bound, found.value)

    def result(self, best: Result) -> Result:
        """The best result with a certificate that speaks of all."""
        assert best.certificate is not None
        known = tuple(self.known[i] for i in range(len(self.asked)))
        bound = min(each.bound for each in known if each.bound is not None)
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
            counts=self.counts,
            alternatives=known,
        )
        trace = tuple(trace_of(self.watch))
        seconds, ended = time.monotonic() - self.started, None if whole else self.ended
        return replace(best, certificate=certificate, seconds=seconds, trace=trace, ended=ended)


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


class _Even(_Inner):
    """Hears the search with perfect tiles: what that leaves out says nothing of uneven ones."""

    def count(self, rule: str, number: int = 1) -> None:
        pass


def _evenly(problem: Problem) -> Problem:
    """The same problem with perfect tiles."""
    return replace(problem, mapspace=replace(problem.mapspace, name="ffm"))

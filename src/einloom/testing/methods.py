"""The test kit of a search method: what is wrong with it, in sentences.

Tiny problems are given to the method as `einloom.map` would, without the checks that stand behind it, and every answer
is held against `evaluate`, the definition of the space, and the optimum by brute force.
"""

from __future__ import annotations

import ctypes
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from functools import cache, partial
from itertools import pairwise
from math import isclose

from ..cost.evaluate import evaluate
from ..dataclass import dataclass
from ..errors import BudgetExhausted, IllegalMapping, Infeasible
from ..mapping.tree import Mapping
from ..mapspace.registry import space_for
from ..problem import Budget, Guarantee, Problem
from ..reading.plugins import FAILURES, entry_faults, reason_of
from ..result import Result
from ..search.door import searched
from ..search.method import Method, Watcher
from ..search.registry import GROUP, SHIPPED, flaw, method, ships
from .tiny import TINY, tiny_problem

SAME = 1e-9  # relative
ENOUGH = 1000
"""Points of one more search where fewer ended the first: most methods end by themselves before, in their last lines."""
_STRENGTH = (Guarantee.NONE, Guarantee.BOUNDED, Guarantee.OPTIMAL)


@dataclass
class Kit:
    """How the method is made and what it is given.

    make: makes a method, a new one for every search. steps: a budget of points for each. patience: seconds within which
    a search that is asked to stop has to end.
    """

    make: Callable[[], Method]
    steps: int = 200
    patience: float = 5.0
    faults: list[str] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    made: Method = field(init=False)

    def run(self) -> tuple[str, ...]:
        """Every fault that was found, each with the problem's name; those of one kind are told once."""
        if self._is_one() and self._stops():
            for name in TINY:
                self._problem(name, "energy")
            self._problem("tight", "edp")
            self._starts()
            self._front()
            if not self.found:
                self.faults.append(f"it finds a mapping of none of {', '.join(TINY)}, and all but hopeless have one")
        return tuple(dict.fromkeys(self.faults))

    def _is_one(self) -> bool:
        """Whether what is made is a method; if not, nothing is asked."""
        try:
            self.made = self.make()
            why = flaw(self.made)
        except FAILURES as error:
            why = f"it cannot be made: {reason_of(error)}"
        if why is not None:
            self.faults.append(why)
        elif not ships(self.made):
            self.faults += entry_faults(GROUP, self.made, self.made.name, SHIPPED)
        return why is None

    def _problem(self, name: str, goal: str) -> None:
        problem, best = tiny_problem(name, goal), optimum(name, goal)
        first, second = (self._answer(name, problem, Budget(steps=self.steps)) for _ in range(2))
        self._judge(name, goal, best, first)
        if _seen(first) != _seen(second):
            self._say(name, "two searches with the same budget of steps give two answers")
        cut_off = first is None or (isinstance(first, Result) and first.ended is not None)
        if self.steps < ENOUGH and cut_off and best is not None:
            self._judge(name, goal, best, self._answer(name, problem, Budget(steps=ENOUGH)))

    def _judge(self, name: str, goal: str, best: float | None, answer: Result | Infeasible | None) -> None:
        """Everything that is wrong with one answer. best: the optimum, None if no mapping is legal."""
        if isinstance(answer, Result):
            self.found.add(name)
            try:
                self.faults += [f"{name}: {fault}" for fault in faults_of(answer, self.made, best)]
                same = pickle.loads(pickle.dumps(answer)).mapping == answer.mapping
            except FAILURES as error:
                self._say(name, f"its result cannot be read: {reason_of(error)}")
                return
            if not same:
                self._say(name, "its result, pickled, is another one")
        elif isinstance(answer, Infeasible) and best is not None:
            self._say(name, f"it says that no mapping is legal; one has {goal} {best:.6g}")

    def _answer(
        self,
        name: str,
        problem: Problem,
        budget: Budget,
        watch: Watcher | None = None,
        starts: tuple[Mapping, ...] = (),
        cutoff: float | None = None,
    ) -> Result | Infeasible | None:
        """What the method answers; None if it found nothing within the budget, or did something that it must not."""
        try:
            found = searched(self.make(), problem, budget, watch, starts, cutoff)
        except BudgetExhausted:
            return None
        except Infeasible as error:
            return error
        except FAILURES as error:
            self._say(name, f"it raises {reason_of(error)}")
            return None
        if isinstance(found, Result):
            return found
        self._say(name, f"it returns {type(found).__name__}, not a Result")  # type: ignore[unreachable]
        return None

    def _starts(self) -> None:
        """A method that takes starts is never worse than the best of them; one that takes a cutoff keeps it."""
        problem, best = tiny_problem("chain"), _solved("chain", "energy")
        able = self.made.able
        if able.starts:
            found = self._answer("chain", problem, Budget(steps=self.steps), starts=(best.mapping,))
            if isinstance(found, Result) and found.value > best.value * (1 + SAME):
                self._say("chain", f"begun from a mapping of {best.value:.6g} it ends at {found.value:.6g}")
        if able.cutoff:
            below = best.value * 0.9
            found = self._answer("chain", problem, Budget(steps=self.steps), cutoff=below)
            if isinstance(found, Result):
                self._say("chain", f"nothing is below the cutoff {below:.6g}, and it finds {found.value:.6g}")

    def _front(self) -> None:
        if not self.made.able.fronts:
            return
        found = self._answer("tight", tiny_problem("tight", "pareto"), Budget(steps=self.steps))
        if not isinstance(found, Result):
            return
        whole = _solved("tight", "pareto").front
        points = [(point.energy, point.latency) for point in found.front]
        falling = all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(points))
        if not points or not falling:
            self._say("tight", "the points of its front are not in order, or one beats another")
        proven = found.optimal
        if proven and len(points) != len(whole):
            self._say("tight", f"its front has {len(points)} points and is said to be whole; {len(whole)} exist")

    def _stops(self) -> bool:
        """Whether a search ends when it is asked to and when its seconds are over; if not, nothing else is asked."""
        problem = tiny_problem("spread")
        for words, budget, watch in (
            ("asked to stop", Budget(), _Impatient()),
            ("given 0.05 s", Budget(seconds=0.05), Watcher()),
        ):
            if not _within(self.patience, partial(self._answer, "spread", problem, budget, watch)):
                self._say("spread", f"{words}, it goes on for more than {self.patience:g} s")
                return False
        return True

    def _say(self, name: str, fault: str) -> None:
        self.faults.append(f"{name}: {fault}")


def method_faults(make: Callable[[], Method], steps: int = 200, patience: float = 5.0) -> tuple[str, ...]:
    """What is wrong with a method; empty if nothing is. Arguments: `Kit`."""
    return Kit(make, steps, patience).run()


def faults_of(found: Result, asked: Method, best: float | None) -> Iterator[str]:
    """What is wrong with one answer. best: the optimum; None if no mapping is legal."""
    problem = found.problem
    try:
        value = problem.objective.value(
            evaluate(problem.workload, problem.machine, found.mapping, problem.latency_rule)
        )
    except IllegalMapping as error:
        yield f"its mapping is illegal: {error}"
        return
    for reason in space_for(problem.workload, problem.machine, problem.mapspace).outside(found.mapping):
        yield f"its mapping is outside the space: {reason}"
    if not isclose(found.value, value, rel_tol=SAME):
        yield f"it reports {found.value!r}, its mapping costs {value!r}"
    proof = found.certificate
    if proof is None:
        yield "its result has no certificate"
        return
    if not isclose(proof.value, value, rel_tol=SAME):
        yield f"its certificate says {proof.value!r}, its mapping costs {value!r}"
    if _STRENGTH.index(proof.guarantee) > _STRENGTH.index(asked.guarantee):
        yield f"its certificate claims {proof.guarantee.value!r}, the method promises {asked.guarantee.value!r}"
    if best is not None and proof.bound > best * (1 + SAME):
        yield f"it claims a bound of {proof.bound!r}, and {best!r} is reached"
    if best is not None and proof.guarantee is Guarantee.OPTIMAL and not isclose(value, best, rel_tol=SAME):
        yield f"it calls {value!r} optimal, and {best!r} is reached"


def optimum(name: str, goal: str) -> float | None:
    """The optimum of a tiny problem by brute force; None if no mapping is legal."""
    try:
        return _solved(name, goal).value
    except Infeasible:
        return None


@cache
def _solved(name: str, goal: str) -> Result:
    return searched(method("exhaustive"), tiny_problem(name, goal))


def _seen(answer: Result | Infeasible | None) -> object:
    return (answer.value, answer.mapping) if isinstance(answer, Result) else type(answer)


class _Ended(BaseException):
    """Ends a search that does not end."""


def _within(seconds: float, work: Callable[[], object]) -> bool:
    """Run `work`; True if it ends within so many seconds. If not, it is ended from outside."""

    def run() -> None:
        with suppress(_Ended):
            work()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    ended = not thread.is_alive()
    while thread.is_alive() and thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Ended))
        time.sleep(0.05)
    return ended


class _Impatient(Watcher):
    """Asks the search to stop when it has been asked five times, or has found something."""

    def __init__(self) -> None:
        self.asked = 0
        self.over = False

    def incumbent(self, value: float, mapping: object = None) -> None:
        self.over = True

    def stopped(self) -> bool:
        self.asked += 1
        return self.over or self.asked > 5

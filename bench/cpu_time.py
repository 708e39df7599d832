"""Searches within CPU seconds: on a machine that is shared with others, those of the wall say nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from unittest.mock import patch

from einloom.errors import BudgetExhausted
from einloom.mapping.tree import Mapping as Tree
from einloom.problem import Budget, Problem
from einloom.result import Result
from einloom.search import evaluator, first
from einloom.search.door import ask
from einloom.search.exact import answer, branch_and_bound, drawing, head_starts, stops
from einloom.search.heuristics import auto, points, turns
from einloom.search.method import Method, Recorder
from einloom.search.registry import method
from einloom.search.resources import resident_bytes

CLOCK = SimpleNamespace(monotonic=time.process_time, process_time=time.process_time)
ENDLESS = 10**9  # points of a search that its seconds bound


@dataclass(frozen=True)
class Run:
    """A search: what it found, if anything, and the CPU seconds that it took."""

    found: Result | None
    seconds: float

    @property
    def value(self) -> float:
        """The value found; infinite if there is none."""
        return float("inf") if self.found is None else self.found.value


def heuristic(name: str, problem: Problem, seconds: float, options: Mapping[str, object]) -> Run:
    """A method without a proof. Its budget of seconds is CPU time, and it has machine code from the start."""
    with patch.object(evaluator, "time", CLOCK), patch.object(points, "COMPILES", 0.0):
        return run(method(name, {"points": ENDLESS, **options}), problem, Budget(seconds))


def budgeted(asked: Method, problem: Problem, seconds: float) -> Run:
    """`auto` with a budget of so many CPU seconds, which it knows."""
    with ExitStack() as patches:
        for module in (evaluator, first, answer, branch_and_bound, drawing, head_starts, stops, auto, turns):
            patches.enter_context(patch.object(module, "time", CLOCK))
        return run(asked, problem, Budget(seconds))


def proving(
    asked: Method,
    problem: Problem,
    seconds: float = float("inf"),
    starts: Sequence[Tree] = (),
    memory: float = float("inf"),
) -> Run:
    """`exact` or `auto`, stopped after so many CPU seconds or at so many bytes if it has not ended by then."""
    return run(asked, problem, Budget(), seconds, starts, memory)


def run(
    asked: Method,
    problem: Problem,
    budget: Budget,
    seconds: float = float("inf"),
    starts: Sequence[Tree] = (),
    memory: float = float("inf"),
) -> Run:
    """A search, stopped after so many CPU seconds, or as soon as the process holds so many bytes. Unlike a budget of
    the search neither changes what it does before."""
    begun = time.process_time()
    watch = Recorder(stop=lambda: time.process_time() - begun > seconds or resident_bytes() > memory)
    try:
        found: Result | None = ask(asked, problem, budget, watch, starts)
    except BudgetExhausted:
        found = None
    return Run(found, time.process_time() - begun)

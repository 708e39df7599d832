"""Mappings that a search starts from where it has none and seconds are few: cascades with nothing fused, perfect tiles
where uneven ones are asked for, and tiles of ranks rounded up.

Comes in: a search and its first attempt. Goes out: mappings of the problem, kept by the search's incumbent; a search
that knows one looks only below.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, Self

import numpy as np

from ...errors import Infeasible
from ...problem import Budget, Problem
from ...workload.einsum import Workload
from ..method import Watcher
from ..starts import fitting
from .attempt import Attempt, Solution
from .drawing import HASTE, AtTheBound, Drawing
from .incumbent import Incumbent
from .padded import clipped, grown, padded
from .segments.chain import SHORT
from .stops import Enough, Stops, StopsOnly
from .unfused import unfused

HEAD = 0.25  # of a budget of seconds goes to uneven tiles before perfect ones, at most


class Search(Protocol):
    """What is asked of a search: what it knows, and to solve a problem like its own."""

    problem: Problem
    budget: Budget
    watcher: Watcher
    incumbent: Incumbent
    stops: Stops
    drawing: Drawing

    def within(self, problem: Problem, watcher: Watcher) -> Self: ...

    def solve(self) -> Solution: ...


def first_uneven(search: Search, attempt: Attempt) -> None:
    """Mappings to start from where tiles need not divide and seconds count: uneven ones that fuse nothing, then the
    best perfect ones, which are in the space, too (docs/exact.md, the limit)."""
    seconds, stops, drawing = search.budget.seconds, search.stops, search.drawing
    if seconds is None or not any(signature.uneven for signature in attempt.signatures):
        return
    drawing.allowed, stops.until = False, stops.started + HEAD * seconds
    with suppress(Infeasible, Enough):
        _keep_unfused(search, attempt.tiled("rounded"), attempt.repeats)
    drawing.allowed, stops.until = True, np.inf
    _keep_perfect(search, attempt.repeats)
    if search.incumbent.best is not None:
        drawing.first = None  # what would be drawn has perfect tiles
    now = time.monotonic()
    round_up(search, now + HEAD * max(0.0, stops.started + seconds - now))


def _keep_unfused(search: Search, attempt: Attempt, repeats: int) -> None:
    """Keep the best mapping of every Einsum alone. Raises Infeasible if there is none."""
    search.incumbent.unfused = unfused(attempt)
    search.incumbent.found(search.incumbent.unfused, repeats)


def _keep_perfect(search: Search, repeats: int) -> None:
    """Keep the best mapping with perfect tiles, or the best so far of them if the budget ends."""
    known = search.incumbent.best
    perfect = replace(search.problem, mapspace=replace(search.problem.mapspace, name="ffm"))
    inner = search.within(perfect, _PerfectTiles(search.watcher))
    inner.drawing.go_on(search.drawing)
    inner.incumbent.best = inner.incumbent.unfused = known
    try:
        inner.incumbent.best = inner.solve()
    except AtTheBound as met:
        inner.incumbent.best = met.solution
    except Infeasible:
        pass
    finally:
        if inner.incumbent.best is not None:
            search.incumbent.found(inner.incumbent.best, repeats)


def round_up(search: Search, until: float) -> None:
    """Mappings to start from where tiles need not divide: the best perfect tiles of ranks rounded up, cut off at the
    ranks as they are. until: a moment of `time.monotonic` after which no further ranks are tried."""
    problem, tried = search.problem, False
    for wider in padded(problem.workload):
        if tried and time.monotonic() > until:
            return
        tried = True
        search.watcher.stage("ranks rounded up: " + ", ".join(f"{v}={n}" for v, n in grown(problem.workload, wider)))
        larger = replace(problem, workload=wider, mapspace=replace(problem.mapspace, name="ffm"))
        inner = search.within(larger, StopsOnly(search.watcher))
        inner.stops.until = until
        try:
            inner.solve()
        except (Infeasible, Enough):
            pass
        finally:
            _keep_clipped(search.incumbent, inner.incumbent.best, wider)


def _keep_clipped(incumbent: Incumbent, found: Solution | None, wider: Workload) -> None:
    """Keep a mapping of a workload with ranks rounded up, if it is one of the problem's without what was added."""
    problem = incumbent.problem
    mappings = () if found is None else (clipped(found.mapping, wider, problem.workload),)
    for mapping in fitting(problem, mappings):
        incumbent.found(incumbent.solution(mapping), problem.workload.repeat**problem.objective.degree)


def first_unfused(search: Search, attempt: Attempt, dived: bool = False) -> None:
    """A first mapping by the search, if nothing is known and seconds are few: each Einsum alone. For networks, and for
    any cascade in which a dive has found nothing."""
    asked = (dived or len(search.problem.workload.einsums) >= SHORT) and type(attempt) is Attempt and not attempt.tied
    if search.incumbent.best is not None or (search.budget.seconds or HASTE) >= HASTE or not asked:
        return
    search.drawing.allowed = False
    try:
        _keep_unfused(search, attempt, attempt.repeats)
        search.drawing.allowed = not search.drawing.chains
    except Infeasible:
        search.drawing.allowed = True


class _PerfectTiles(Watcher):
    """Hears a search in part of the space: passes on all but bounds."""

    def __init__(self, outer: Watcher) -> None:
        self.stopped, self.incumbent = outer.stopped, outer.incumbent  # type: ignore[method-assign]
        self.outer = outer

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        self.outer.stage(f"perfect tiles: {name}", done, total)

"""Mappings that a search starts from where it has none and seconds are few: cascades with nothing fused, dives into few
choices, perfect tiles where uneven ones are asked for, and tiles of ranks rounded up.

Comes in: a search and its first attempt. Goes out: mappings of the problem, kept by the search's incumbent; a search
that knows one looks only below.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, Self

import numpy as np

from ...errors import Infeasible
from ...mapspace.limits.data import Limits
from ...problem import Budget, Problem
from ...workload.einsum import Workload
from ..method import Watcher
from ..starts import fitting
from .attempt import Attempt, Solution
from .bounds.cutoff import BELOW
from .drawing import HASTE, Drawing
from .einsums.runs import TooManyChoices
from .feasible import first_within
from .few_choices import Few, among_few, crowd
from .incumbent import Incumbent
from .options import ExactOptions
from .padded import clipped, grown, on_one_axis, padded
from .segments.chain import SHORT
from .stops import Enough, Stops, StopsOnly
from .unfused import unfused

GLANCE = 0.1  # of a budget of seconds goes to perfect tiles before anything else, and as much to drawing, at most
DRAWN = 1.0  # seconds of drawing there, at most
HEAD = 0.15  # of a budget goes to uneven tiles that fuse nothing, at most
PERFECT = 0.5  # of what is left goes to perfect tiles once more, where drawn uneven ones are better
ROUNDED = 0.25  # of what is left then goes to ranks rounded up, at most
MUCH = 0.9  # times what is drawn Einsums that fuse nothing may cost at least, if they are mapped alone
APART = 0.5  # CPU seconds for all of them together, at most
WIDE = 200_000  # steps of a quick pass below a mapping that is far from the bound
SPARSE = 100_000  # choices up to which every Einsum alone is mapped in a fraction of a CPU second
CROWDED = 13_000_000  # choices from which on no cascade of the zoo is proven within a CPU second
MANY = 1_000_000  # choices from which on a proof that takes longer than this second takes much longer
LATE = 1.0  # CPU seconds of a search after which one of many choices looks at few
DIVING = 0.4  # of a budget of seconds goes to few choices, at most
LONGEST = 8.0  # CPU seconds of them, at most
WHOLE = 20.0  # the same of a network, which has no mapping until every Einsum has one
NETWORK = Few(40, 2, 16, 1)  # of each Einsum of a network, which is mapped alone
SLIDING = Few(60, 2, 30, 1)  # looked at before the others where windows slide: tables are many then
FEW = (Few(60, 4, 60, 1), Few(150, 2, 60, 1), Few(60, 8, 100, 1), Few(150, 8, 200, 2))  # looked at one after the other
SLOW = 1 / 3  # of that time is long for one of them: then no more are looked at where what is drawn is better
SOON_DONE = 4  # Einsums up to which a search with many choices may end within a minute
SEARCHING = 0.25  # CPU seconds of the search for one of drawing where it would not end soon
LISTED = 2_000  # spatial choices of an Einsum for each second of a budget, from which on drawing has all of it
NEXT = 0.01  # within this limit, as a share above the bound
UNTIMED = 10.0  # seconds that stand for no budget there
PACKED = 10_000_000_000  # choices from which on the second comes first, and no search under sliding windows ends soon
ABOVE_FEW = (0.05, 0.2, 0.5, 4.0, 100.0)  # limits of them, as shares above what they cost at least


class Search(Protocol):
    """What is asked of a search: what it knows, and to solve a problem like its own."""

    problem: Problem
    budget: Budget
    watcher: Watcher
    incumbent: Incumbent
    stops: Stops
    drawing: Drawing
    options: ExactOptions

    def within(self, problem: Problem, watcher: Watcher, draws: bool = False) -> Self: ...

    def attempt(self) -> Attempt: ...

    def solve(self) -> Solution: ...


def first_uneven(search: Search, attempt: Attempt) -> None:
    """Mappings to start from where tiles need not divide: perfect ones, which are in the space, too, drawn ones, uneven
    ones that fuse nothing, and those of ranks rounded up (docs/exact.md, the limit). Without seconds only perfect ones,
    where Einsums have very many choices and nothing is known."""
    seconds, stops = search.budget.seconds, search.stops
    if not any(signature.uneven for signature in attempt.signatures):
        return
    if seconds is None:
        if search.budget.steps is None and search.incumbent.best is None and crowd(attempt) > CROWDED:
            _keep_perfect(search, LONGEST, anew=True)
        return
    done, pays, network = False, False, _network(search)
    if not network:
        done = _keep_perfect(search, GLANCE * seconds, anew=True)
        pays = not done and not search.incumbent.met and _drawn_are_better(search, GLANCE * seconds)
    if search.incumbent.met:
        return
    perfect = search.incumbent.value
    _keep_drawn(search)
    with suppress(Infeasible, Enough, TooManyChoices), stops.within(HEAD * seconds):
        _keep_unfused(search, attempt.tiled("rounded"))
    if not done:
        _keep_perfect(search, PERFECT * (seconds - stops.spent) if pays else np.inf, anew=not network)
    round_up(search, time.monotonic() + ROUNDED * max(0.0, seconds - stops.spent))
    _keep_drawn(search)
    if search.incumbent.value < perfect * BELOW:
        search.drawing.go_on_near(search.incumbent.best)
    else:
        search.drawing.begin_near(search.incumbent.best)


def _keep_drawn(search: Search) -> None:
    """Keep the best of what was drawn and found as an early mapping: drawing goes on."""
    search.incumbent.early = best = search.drawing.best()
    if best is not None:
        search.incumbent.found(best)


def _drawn_are_better(search: Search, seconds: float) -> bool:
    """Draw mappings. True if, after so many seconds, the best of them is better than what is known."""
    with suppress(Enough), search.stops.within(min(seconds, DRAWN)):
        search.drawing.draw_on()
    return search.drawing.leads


def _keep_unfused(search: Search, attempt: Attempt) -> None:
    """Keep the best mapping of every Einsum alone. Raises Infeasible if there is none that may be much better than what
    is drawn."""
    search.incumbent.early = unfused(attempt, search.drawing.least * MUCH)
    search.incumbent.found(search.incumbent.early)


def _keep_perfect(search: Search, seconds: float, anew: bool) -> bool:
    """Keep the best mapping with perfect tiles, or the best so far of them after so many seconds. True if it is the
    best. anew: perfect ones are drawn, too; else the search goes on drawing."""
    perfect = replace(search.problem, mapspace=replace(search.problem.mapspace, name="ffm"))
    inner = search.within(perfect, _PerfectTiles(search.watcher), anew)
    if not anew:
        inner.drawing.go_on(search.drawing)
    inner.incumbent.best = inner.incumbent.early = search.incumbent.best
    try:
        with inner.stops.within(seconds):
            inner.incumbent.best = inner.solve()
        return True
    except Infeasible:
        return True
    except (Enough, TooManyChoices):
        return False
    finally:
        best = inner.drawing.best() if inner.drawing.leads else inner.incumbent.best
        if best is not None:
            search.incumbent.found(best)


def round_up(search: Search, until: float) -> None:
    """Mappings to start from where tiles need not divide: the best perfect tiles of ranks rounded up, cut off at the
    ranks as they are. until: a moment of `time.monotonic` after which no further ranks are tried; each has its share of
    what is left."""
    problem, every = search.problem, list(padded(search.problem.workload))
    for number, wider in enumerate(every):
        now = time.monotonic()
        if number and now > until:
            return
        search.watcher.stage("ranks rounded up: " + ", ".join(f"{v}={n}" for v, n in grown(problem.workload, wider)))
        share = (until - now) / (len(every) - number)
        found = _rounded_up(search, wider, problem.mapspace.limits, now + share / 2)
        if found is not None and not _keep_clipped(search.incumbent, found, wider):
            apart = on_one_axis(found.mapping, wider, problem.workload, problem.machine)
            limits = Limits.of((*problem.mapspace.limits.all, *apart))
            if (other := _rounded_up(search, wider, limits, now + share)) is not None:
                _keep_clipped(search.incumbent, other, wider)


def _rounded_up(search: Search, wider: Workload, limits: Limits, until: float) -> Solution | None:
    """The best perfect tiles of a workload with ranks rounded up, or the best so far at that moment; None if none."""
    problem = search.problem
    larger = replace(problem, workload=wider, mapspace=replace(problem.mapspace, name="ffm", limits=limits))
    inner = search.within(larger, StopsOnly(search.watcher), draws=search.budget.seconds is not None)
    inner.stops.until = until
    with suppress(Infeasible, Enough, TooManyChoices):
        return inner.solve()
    return inner.drawing.best()


def _keep_clipped(incumbent: Incumbent, found: Solution, wider: Workload) -> bool:
    """Keep a mapping of a workload with ranks rounded up, if it is one of the problem's without what was added: then
    True."""
    problem = incumbent.problem
    mappings = fitting(problem, (clipped(found.mapping, wider, problem.workload),))
    for mapping in mappings:
        incumbent.found(incumbent.solution(mapping))
    return bool(mappings)


def first_unfused(search: Search, attempt: Attempt, dived: bool = False) -> None:
    """A first mapping by the search, if nothing is known and seconds are few: each Einsum alone. For networks, and for
    any cascade in which a dive has found nothing."""
    asked = (dived or len(search.problem.workload.einsums) >= SHORT) and attempt.plain and not attempt.tied
    if search.incumbent.best is not None or (search.budget.seconds or HASTE) >= HASTE or not asked:
        return
    search.drawing.allowed = False
    try:
        _keep_unfused(search, attempt)
        search.drawing.allowed = not search.drawing.chains
    except Infeasible:
        search.drawing.allowed = True


def first_apart(search: Search, attempt: Attempt) -> bool:
    """A first mapping by the search where nothing is known and Einsums have few choices: each Einsum alone. What is
    drawn goes on from it, if it is the better one. False if there is none."""
    drawing, count = search.drawing, len(search.problem.workload.einsums)
    asked = 1 < count < SHORT and attempt.plain and not attempt.tied and crowd(attempt) <= SPARSE
    if search.incumbent.best is not None or not asked:
        return False
    drawing.allowed = False
    with suppress(Infeasible, Enough), drawing.until(time.process_time() + APART):
        _keep_unfused(search, attempt)
    drawing.allowed = True
    drawing.begin_near(search.incumbent.best)
    return search.incumbent.best is not None


def quick_below(search: Search, attempt: Attempt) -> bool:
    """Mappings of the quick passes below what is known, each pass within some steps: near the bound or not. True if
    all of them ended, so that they have nothing more."""
    incumbent, drawing, whole = search.incumbent, search.drawing, True
    drawing.allowed = False
    for quick in attempt.heuristics():
        quick.watcher.stage("looking below the Einsums alone")
        try:
            with search.stops.after(WIDE):
                solution = quick.run(drawing.least * BELOW)
        except Infeasible:
            continue
        except Enough:
            whole = False
        else:
            incumbent.early = solution
            incumbent.found(solution)
    drawing.allowed = True
    drawing.begin_near(incumbent.best)
    return whole


def before_bounds(search: Search, attempt: Attempt) -> None:
    """Of a network with many choices, mappings of few; even its first bound takes long."""
    if _network(search) and _hurries(search, attempt) and (size := crowd(attempt)) > CROWDED:
        first_among_few(search, attempt, size)


def bounded(search: Search, attempt: Attempt, enough: float, proven: Callable[[float], None]) -> float:
    """The attempt's lower bound; a search whose Einsums have many choices looks at few of them before, or when bounding
    has taken long (docs/exact.md, few choices). Raises TooManyChoices where a budget of seconds is better
    spent on drawing alone."""
    size = crowd(attempt) if _hurries(search, attempt) else 0
    if size > CROWDED:
        first_among_few(search, attempt, size)
        found = attempt.lower_bound(enough, proven, search.incumbent.value * BELOW)
        _rather_draw(search, attempt)
        return found
    elif size > MANY or (size and attempt.side_by_side):
        try:
            with search.drawing.until(time.process_time() + LATE):
                return attempt.lower_bound(enough, proven)
        except Enough:
            first_among_few(search, attempt, size)
    return attempt.lower_bound(enough, proven, search.incumbent.value * BELOW)


def _rather_draw(search: Search, attempt: Attempt) -> None:
    """Draw on where an Einsum has more spatial choices next to the bound than a search gets through soon. Raises
    TooManyChoices if that is not within a budget of seconds."""
    seconds = search.budget.seconds
    if attempt.listed(NEXT, LISTED * (UNTIMED if seconds is None else seconds)) == np.inf:
        if seconds is not None:
            raise TooManyChoices("more spatial choices of an Einsum than a search gets through")
        search.drawing.draw_on()


def _hurries(search: Search, attempt: Attempt) -> bool:
    """True if a dive into few choices may be of use: steps are not counted, nothing is known, and Einsums, with even
    tiles, run one after the other."""
    known = not search.incumbent.provisional or search.options.limit is not None
    plain = attempt.plain and not any(signature.uneven for signature in attempt.signatures)
    count = len(search.problem.workload.einsums)
    timed = search.budget.seconds is not None or search.budget.steps is None
    return timed and not known and plain and count > 1 and search.drawing.first is not None


def first_among_few(search: Search, attempt: Attempt, size: int) -> None:
    """Mappings of few choices, more of them each time, then drawn ones from the best on. Of a network each Einsum is
    mapped alone. size: how many choices there are."""
    incumbent, drawing, network = search.incumbent, search.drawing, _network(search)
    drawing.at_once()
    most = min(DIVING * (search.budget.seconds or np.inf), WHOLE if network else LONGEST)
    with suppress(Enough), drawing.until(time.process_time() + most):
        for few in (NETWORK,) if network else _ladder(attempt, size):
            begun = time.process_time()
            with suppress(Infeasible):
                quick = among_few(attempt, few)
                if network:
                    _keep_unfused(search, quick)
                else:
                    _dive(incumbent, quick)
            if drawing.leads and time.process_time() - begun > SLOW * most:
                break
    soon = len(search.problem.workload.einsums) <= SOON_DONE and (size < PACKED or not attempt.slides)
    drawing.go_on_near(incumbent.best, 1.0 if soon or size <= CROWDED else SEARCHING)


def _network(search: Search) -> bool:
    return len(search.problem.workload.einsums) >= SHORT


def _ladder(attempt: Attempt, size: int) -> Sequence[Few]:
    """How many choices are looked at, one after the other."""
    first = (SLIDING,) if attempt.slides else ()
    return (*first, *FEW) if size < PACKED else (*first, FEW[1], FEW[0], *FEW[2:])


def _dive(incumbent: Incumbent, quick: Attempt) -> None:
    """Keep what a dive finds below the lowest of some limits that admits anything better than the best."""
    quick.watcher.stage("looking at few choices")
    known = incumbent.value * BELOW
    solution = first_within(quick, dict.fromkeys(min(quick.bound * (1 + step), known) for step in ABOVE_FEW))
    if solution is not None and solution.value < incumbent.value:
        incumbent.early = solution
        incumbent.found(solution)


class _PerfectTiles(Watcher):
    """Hears a search in part of the space: passes on all but bounds."""

    def __init__(self, outer: Watcher) -> None:
        self.stopped, self.incumbent = outer.stopped, outer.incumbent  # type: ignore[method-assign]
        self.outer = outer

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        self.outer.stage(f"perfect tiles: {name}", done, total)

"""A legal mapping before a proof has one: drawn from the encoding, then improved in small slices of time.

Comes in: a problem. Goes out: the best mapping met, priced by `evaluate`. It is the answer of a search that is cut off
before it has a mapping of its own; a proof that ends never looks at it (docs/exact.md).
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from operator import itemgetter
from random import Random

from ..cost.breakdown import Cost
from ..dataclass import dataclass
from ..errors import Infeasible
from ..mapping.tree import Mapping
from ..mapspace.ffm.encoding import NoProposal, State
from ..mapspace.ffm.encoding.alike import alike, copied
from ..mapspace.ffm.encoding.checks import path_fault
from ..mapspace.ffm.encoding.privates import drawn
from ..mapspace.ffm.encoding.rooms import overflow
from ..mapspace.ffm.encoding.state import Own
from ..mapspace.ffm.space import Ffm
from ..mapspace.registry import space_for
from ..problem import Budget, Problem
from .evaluator import SURELY, Evaluator
from .heuristics.compiling import COMPILER
from .heuristics.points import INFINITE, Points, Sums, Valued, accepted, changed_paths
from .method import Watcher

AFTER = 0.3  # seconds of a search without a mapping before one is drawn
PLAIN = 5  # draws with nothing fused that need not be, before fused ones
TRIES = 12  # proposals for the privates of an Einsum at a time
BURST = 300  # the same in machine code
DRAWS = 8  # of the privates of Einsums that are alike, before rounds begin
ROUNDS = 3  # of so many proposals, at most, for each Einsum of its kind, before anything is fused
TIRED = 25  # rounds in a row that brought nothing to an Einsum, after which it is left alone
STALE = 3  # of them after which it gets new privates
HEATS = (0.0, 0.03, 0.1, 0.3)  # temperatures of bursts
DESCENDING = 1.0  # seconds of drawing in which states go down, before annealing: it is better soon, and worse later
ANEW = 0.1  # of the descents begin at a new state, the others near the best one
KICKS = 4  # moves away from it, at most
SHARED = 40  # proposals in a row for what Einsums share that may come to nothing
HOT, WARM, COLD = 0.3, 0.1, 0.001  # temperatures of annealing: first from a new state, from the best, and last
ROUND, LONGER, ALIKE = 600, 1.5, 4  # steps of the first rounds; longer by so much after as many rounds
RESHAPED = 0.3  # of the steps change what Einsums share
STEPPED, STEP = 24, 100  # proposals for the privates of an Einsum in a step, and in machine code
# What follows was chosen on a layer of GPT-3 in `ragged` (docs/exact.md, the limit).
SWEEP_HEATS = (0.0, 0.03, 0.1, 0.3)  # temperatures, one after the other, at which all privates are searched
SWEEP_TRIES = 1000  # proposals for each Einsum at each of them
MOVE_TRIES, MOVE_HEAT = 3000, 0.1  # proposals after a move of what Einsums share, for each that it touches
MOVE_MORE, MOVE_NEAR = 7000, 1.2  # so many more, if the state is no worse than so many times the one before
MOVE_ACCEPTED = 0.003  # the temperature at which such moves are taken
MOVES_IN_VAIN = 200  # without a better state, after which states are annealed again
RETILED = 0.8  # of the moves in `ragged` are to other tiles; the others change what Einsums share in any way
FITTING = 12  # steps to make the tiles of a proposal fit
CHECKING = 4  # seconds of drawing for one of pricing what was drawn as a whole
LATEST = 0.2  # seconds of wall time that drawing takes at a time
LATE = 0.25  # seconds that a search which was cut off without a mapping may still draw, if one draw takes no more
LOADS = 0.5  # seconds of drawing after which machine code is loaded, if it has been compiled before
EARLY = 1.0  # seconds of drawing after the first mapping, with a budget, in which search and drawing take turns
HURRIED = 4.0  # seconds of search for one of drawing after that


@dataclass
class _Trial:
    """Privates that some Einsums try. tired, stale: rounds since the best ones got better, and since these did."""

    group: tuple[int, ...]
    own: Own
    tired: int = 0
    stale: int = 0


class FirstMappings:
    """Draws, and descents from them and from near the best, a piece at a time.

    best: the best legal mapping inside the space so far, of those that were priced as a whole. pricing: seconds that
    this took last.

    watch: hears of each better mapping, and says when to stop. machine_code: whether there is time to load that. eager:
    the first is drawn at once if seconds are few. early: seconds of drawing in which the search and it take turns, if
    there is a budget; hurried: seconds of search for each of drawing after that. limits: under a budget of seconds the
    search looks only below what was drawn.
    """

    eager, early, hurried, limits = False, EARLY, HURRIED, False

    def __init__(self, problem: Problem, watch: Watcher, machine_code: bool = False) -> None:
        self.problem, self.watch, self._machine_code = problem, watch, machine_code
        self._pieces: Iterator[None] | None = None
        self._prices: Evaluator | None = None
        self._points: Points | None = None
        self._ready: Valued | None = None
        self._top: Valued | None = None
        self._spent = self._since = self.pricing = 0.0

    @property
    def best(self) -> Mapping | None:
        return None if self._prices is None else self._prices.best

    @property
    def cost(self) -> Cost | None:
        """What the best mapping costs."""
        return None if self._prices is None else self._prices.cost

    @property
    def value(self) -> float:
        """The objective of the best mapping; infinite without one."""
        return float("inf") if self._prices is None else self._prices.value

    @property
    def promised(self) -> float:
        """What the best state so far costs by its Einsums, if it is legal as a whole; infinite without one."""
        return min(self.value, float("inf") if self._ready is None else self._ready[0])

    def work(self, until: float) -> None:
        """Go on until this moment of `time.process_time`, a piece at least, and no longer than `LATEST`; a piece takes
        milliseconds an Einsum."""
        begun, latest = time.process_time(), time.monotonic() + LATEST
        if self._pieces is None:
            self._pieces = self._visits()
        for _ in self._pieces:
            if time.process_time() >= until or time.monotonic() >= latest:
                break
        took = time.process_time() - begun
        self._spent, self._since = self._spent + took, self._since + took
        if self.best is None or self._since >= CHECKING * self.pricing:
            self._offer()

    def draw(self, until: float = float("inf")) -> Mapping | None:
        """The best mapping so far; without one the first is drawn now, until this moment of `time.monotonic`.

        None if a good number of draws had none, or those until then: one at least.
        """
        if self._pieces is None:
            self._pieces = self._visits()
        self._offer()
        while self.best is None and next(self._pieces, self) is not self:
            self._offer()
            if time.monotonic() >= until:
                break
        return self.best

    def _begun(self) -> Points | None:
        """The states of the problem, made once; None where it has none."""
        problem = self.problem
        if self._points is None and self._prices is None:
            sequential = replace(problem.mapspace, concurrent="none")  # where points cost least; part of the space
            space = space_for(problem.workload, problem.machine, sequential)
            if isinstance(space, Ffm):
                self._prices = Evaluator(problem, space, Budget(), _Quiet(self.watch))
                with suppress(Infeasible):  # an Einsum without a unit: the search says so
                    self._points = Points(problem, space, self._prices)
        return self._points

    def _visits(self) -> Iterator[None]:
        points, rng = self._begun(), Random(0)
        if points is None:
            return
        found = None
        for draw in range(2 * PLAIN):
            found = self._drawn(points, rng, 0.0 if draw < PLAIN else None)
            self._offer()
            yield
            if self.best is not None:
                break
        if found is not None and points.additive:
            found = yield from self._apart(points, found, rng)
        if self.best is not None:
            yield from self._walk(points, found, rng)

    def go_on_near(self, mapping: Mapping) -> None:
        """Go on from a known mapping, if it has a state."""
        points, rng = self._begun(), Random(1)
        state = None if points is None else points.encoding.encode(mapping)
        if points is None or state is None or points.encoding.fault(state) is not None:
            return
        best, found = self._top, self._seen((points.apart(state), state))
        self._pieces = self._near_known(points, found, best, rng)

    def _near_known(self, points: Points, found: Valued, best: Valued | None, rng: Random) -> Iterator[None]:
        """Better privates of a known state, first those of the best that was drawn, then states near it."""
        yield
        if best is not None and points.additive:
            found = yield from self._crossed(points, *sorted((found, best), key=itemgetter(0)))
        if points.additive and found[0] < INFINITE and self._loaded(points):
            found = yield from self._swept(points, found, rng)
            yield from self._hops(points, found, rng)
        elif points.additive and found[0] < INFINITE:
            found = yield from self._polished(points, found, rng)
        yield from self._walk(points, found, rng)

    def _crossed(self, points: Points, found: Valued, other: Valued) -> Generator[None, None, Valued]:
        """A state with those privates of another one that are better, of Einsums that share the same in both."""
        facts = points.encoding.of(found[1])
        if other[1].sequence != found[1].sequence:  # places differ
            return found
        for i in range(facts.count):
            own = other[1].owns[i]
            if found[1].shared[i] == other[1].shared[i] and own != found[1].owns[i]:
                near = found[1].with_own(i, own)
                if path_fault(facts, near, i) is None and (value := points.apart(near)) < found[0]:
                    found = self._seen((value, near))
            yield
        return found

    def _walk(self, points: Points, found: Valued | None, rng: Random) -> Iterator[None]:
        """Descents, from one state and then from near the best or from new ones; later annealing and moves from the
        best by turns, without an end."""
        while self._spent < DESCENDING:
            if found is not None:
                yield from self._descent(points, found, rng)
            anew = rng.random() < ANEW
            found = self._drawn(points, rng, None) if anew else self._kicked(points, rng)
            yield
            if anew and found is not None:
                found = yield from self._polished(points, found, rng)
        for number in count():
            found, hot = (self._drawn(points, rng, None), HOT) if number % 2 else (self._top, WARM)
            yield
            if found is not None and found[0] < INFINITE:
                yield from self._cooled(points, found, rng, int(ROUND * LONGER ** (number // ALIKE)), hot)
            if number % 2 and self._top is not None and points.additive and self._fast(points):
                yield from self._hops(points, self._top, rng)

    def _cooled(self, points: Points, now: Valued, rng: Random, steps: int, hot: float) -> Iterator[None]:
        """One round of annealing, from hot to cold."""
        for step in range(steps):
            heat, near = hot * (COLD / hot) ** (step / steps), None
            if points.facts.floating and rng.random() < RESHAPED:
                near = self._near(points, now[1], rng, 1.0)
                if near is not None and near[0] < INFINITE:
                    for i in changed_paths(now[1], near[1]):
                        near = self._stepped(points, near, rng, i, 0.0)
                        yield
            else:
                near = self._stepped(points, now, rng, rng.randrange(points.facts.count), heat)
            if near is not None and near[0] < INFINITE and accepted(near[0], now[0], heat, rng):
                now = near
            yield

    def _stepped(self, points: Points, found: Valued, rng: Random, i: int, heat: float) -> Valued:
        """The state after some proposals for the privates of Einsum i, annealed at this temperature."""
        if points.additive and self._fast(points) and points.bursts.able(found[1], i):
            done = points.bursts.run(found[1], i, points.sums(found[1], {i}), STEP, STEP, heat, rng)
            self._seen((points.apart(done.best), done.best))
            return points.apart(done.state), done.state
        label = points.encoding.of(found[1]).label[i]
        for _ in range(TRIES if points.closed[label] is None else STEPPED):
            near = self._near(points, found[1], rng, 0.0, i)
            if near is not None and near[0] < INFINITE and accepted(near[0], found[0], heat, rng):
                found = self._seen(near)
        return found

    def _offer(self) -> None:
        """Have the state that is ready priced as a whole, and kept if it is the best."""
        begun, points = time.process_time(), self._points
        if self._ready is not None and points is not None and self._ready[0] < points.evaluator.value:
            points.value(self._ready[1])
            points.evaluator.settle()
            self.pricing, self._since = time.process_time() - begun, 0.0
        self._ready = None

    def _seen(self, found: Valued) -> Valued:
        if self._ready is None or found[0] < self._ready[0]:
            self._ready = found
        if self._top is None or found[0] < self._top[0]:
            self._top = found
        return found

    def _drawn(self, points: Points, rng: Random, fuse: float | None) -> Valued | None:
        unfused = fuse == 0.0 and not points.facts.demanded
        state = points.encoding.unfused(rng) if unfused else points.encoding.sample(rng, fuse)
        return None if state is None else self._seen((points.apart(state), state))

    def _kicked(self, points: Points, rng: Random) -> Valued | None:
        """The best state so far after some moves at random, good or bad (iterated local search)."""
        found = self._top
        for _ in range(rng.randint(1, KICKS)):
            near = None if found is None else self._near(points, found[1], rng, 0.5)
            found = near if near is not None and near[0] < float("inf") else found
        return found

    # -- one Einsum at a time ----------------------------------------------------------------------------------------

    def _apart(self, points: Points, found: Valued, rng: Random) -> Generator[None, None, Valued]:
        """Better privates, for all Einsums that are alike at once; most often for those that cost most."""
        trials = [_Trial(group, found[1].owns[group[0]]) for group in alike(points.encoding.of(found[1]))]
        for trial in trials:
            found = self._seen(self._redrawn(points, found, trial, rng))
            yield
        for _ in range(ROUNDS * len(trials)):
            awake = [trial for trial in trials if trial.tired < TIRED]
            if not awake:
                break
            weights = [points.part_of(found[1], trial.group) * 0.9**trial.tired for trial in awake]
            trial = rng.choices(awake, weights)[0] if sum(weights) > 0 else rng.choice(awake)
            near = self._for_all(points, found, trial, rng)
            trial.tired = 0 if near[0] < found[0] * SURELY else trial.tired + 1
            found = self._seen(near) if near[0] < found[0] else found
            yield
        return found

    @staticmethod
    def _redrawn(points: Points, found: Valued, trial: _Trial, rng: Random) -> Valued:
        """The state with the best of some privates at random for all Einsums of a group, if they are better."""
        facts, group, i = points.encoding.of(found[1]), trial.group, trial.group[0]
        draws = (drawn(facts, found[1], i, rng) for _ in range(DRAWS))
        fitting = [state for state in draws if state is not None and overflow(facts, state) is None]
        best = min([found[1], *fitting], key=lambda state: points.of(*points.sums(state)))
        trial.own = best.owns[i]
        every = copied(facts, best, group, i)
        return min(found, (points.apart(every), every), key=itemgetter(0))

    def _for_all(self, points: Points, found: Valued, trial: _Trial, rng: Random) -> Valued:
        """The state with other privates of all Einsums of a group, perhaps better ones, and its value."""
        facts, group, i = points.encoding.of(found[1]), trial.group, trial.group[0]
        start = found[1].with_own(i, trial.own)
        if overflow(facts, start) is not None:
            start = found[1]
        rest, times = points.sums(start, set(group)), len(group)
        before = points.with_more(rest, points.cost(start, i), times)
        if self._fast(points) and points.bursts.able(start, i):
            alone = (rest[0] / times, rest[1] / times, rest[2] / times)
            done = points.bursts.run(start, i, alone, BURST, BURST, rng.choice(HEATS), rng)
            best, end = done.best, done.state
        else:
            best = end = self._privates(points, start, i, rest, times, rng)
        value = points.with_more(rest, points.cost(best, i), times)
        trial.stale = 0 if value < before * SURELY else trial.stale + 1
        trial.own = end.owns[i]
        if trial.stale >= STALE:
            fresh = drawn(facts, found[1], i, rng)
            trial.own, trial.stale = found[1].owns[i] if fresh is None else fresh.owns[i], 0
        every = copied(facts, best, group, i)
        return points.apart(every), every

    @staticmethod
    def _privates(points: Points, state: State, i: int, rest: Sums, times: int, rng: Random) -> State:
        """The state after some proposals for the privates of Einsum i, which count so many times."""
        value = points.with_more(rest, points.cost(state, i), times)
        for _ in range(TRIES):
            with suppress(NoProposal):
                near = points.encoding.propose(state, rng, 0.0, i)
                now = points.with_more(rest, points.cost(near, i), times)
                if now <= value and points.encoding.fits(near):
                    state, value = near, now
        return state

    def _fast(self, points: Points) -> bool:
        """True if proposals are made in machine code."""
        return points.machine_code or (self._spent >= LOADS and self._loaded(points))

    def _loaded(self, points: Points) -> bool:
        """True if machine code is loaded now, or was; if there is none yet, it is made beside the search."""
        if self._machine_code and not points.machine_code and not COMPILER.waits:
            self._machine_code = points.load() or COMPILER.begun(points.facts.ragged) or points.load()
        return points.machine_code

    # -- all together ------------------------------------------------------------------------------------------------

    def _descent(self, points: Points, found: Valued, rng: Random) -> Iterator[None]:
        """Better states one move away; what changes for Einsums that share something else changes their privates."""
        count, failed = points.facts.count, 0
        while failed < SHARED and points.facts.floating and self._spent < DESCENDING:
            before = found[0]
            near = self._near(points, found[1], rng, 0.5)
            if near is not None and near[0] < float("inf"):
                for i in [i for i in range(count) if near[1].shared[i] != found[1].shared[i]]:
                    near = self._better(points, near, rng, i)
                    yield
            if near is not None and near[0] < found[0]:
                found = self._seen(near)
            failed = 0 if found[0] < before else failed + 1
            yield

    def _better(
        self, points: Points, found: Valued, rng: Random, i: int, tries: int = BURST, heat: float = 0.0
    ) -> Valued:
        """The best state after some proposals for the privates of Einsum i, so many at this temperature in machine
        code; else worse ones are not taken."""
        if self._fast(points) and points.bursts.able(found[1], i):
            best = points.bursts.run(found[1], i, points.sums(found[1], {i}), tries, tries, heat, rng).best
            return min(found, (points.apart(best), best), key=itemgetter(0))
        for _ in range(TRIES):
            near = self._near(points, found[1], rng, 0.0, i)
            found = found if near is None or near[0] >= found[0] else near
        return found

    def _swept(self, points: Points, found: Valued, rng: Random) -> Generator[None, None, Valued]:
        """A state with better privates of each Einsum, at several temperatures, until none gets better."""
        before = INFINITE
        while found[0] < before * SURELY:
            before = found[0]
            for heat in SWEEP_HEATS:
                for i in range(points.facts.count):
                    found = self._seen(self._better(points, found, rng, i, SWEEP_TRIES, heat))
                    yield
        return found

    def _hops(self, points: Points, found: Valued, rng: Random) -> Iterator[None]:
        """Moves to something else that Einsums share, with better privates after each, until so many brought nothing.

        In `ragged` mostly to other tiles of shared loops.
        """
        now, waiting = found, 0
        while waiting < MOVES_IN_VAIN and points.facts.floating:
            best = min(now[0], INFINITE if self._top is None else self._top[0])
            near = self._hop(points, now, rng)
            waiting += 1
            yield
            if near is None:
                continue
            changed = changed_paths(now[1], near[1])
            near = yield from self._searched(points, near, rng, changed, MOVE_TRIES)
            if near[0] < now[0] * MOVE_NEAR:
                near = yield from self._searched(points, near, rng, changed, MOVE_MORE)
            if near[0] < best * SURELY:
                near, waiting = (yield from self._swept(points, near, rng)), 0
            if accepted(near[0], now[0], MOVE_ACCEPTED, rng):
                now = near

    def _searched(
        self, points: Points, found: Valued, rng: Random, einsums: Sequence[int], tries: int
    ) -> Generator[None, None, Valued]:
        """A state with better privates of some Einsums, after so many proposals for each."""
        for i in einsums:
            found = self._seen(self._better(points, found, rng, i, tries, MOVE_HEAT))
            yield
        return found

    def _hop(self, points: Points, now: Valued, rng: Random) -> Valued | None:
        """A state with other tiles of what Einsums share, or with something else of it; None without one that fits."""
        sharing = [i for i in range(points.facts.count) if now[1].shared[i]]
        if not sharing or not points.facts.ragged or rng.random() >= RETILED:
            near = self._near(points, now[1], rng, 1.0)
            return near if near is not None and near[0] < INFINITE else None
        weights = [points.part_of(now[1], (i,)) for i in sharing]
        i = rng.choices(sharing, weights)[0] if sum(weights) > 0 else rng.choice(sharing)
        try:
            state = points.encoding.retiled(now[1], i, rng)
        except NoProposal:
            return None
        value = points.apart(state)
        return (value, state) if value < INFINITE else None

    def _polished(self, points: Points, found: Valued, rng: Random) -> Generator[None, None, Valued]:
        """A state with better privates of each Einsum in turn."""
        for i in range(points.facts.count):
            found = self._seen(self._better(points, found, rng, i))
            yield
        return found

    @staticmethod
    def _near(points: Points, state: State, rng: Random, shared: float, i: int | None = None) -> Valued | None:
        try:
            moved = points.encoding.propose(state, rng, shared, i)
        except NoProposal:
            return None
        if shared and not points.encoding.fits(moved):
            moved = points.encoding.fitted(moved, rng, FITTING) or moved
        return points.apart(moved), moved


class _Quiet(Watcher):
    """Passes on better mappings alone: counts and stages are those of the search."""

    def __init__(self, outer: Watcher) -> None:
        self.incumbent = outer.incumbent  # type: ignore[method-assign]

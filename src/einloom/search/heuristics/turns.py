"""Search methods by turns while a proof has no mapping of its own: each begins from the best that all have met.

Comes in: a problem, as for `first.FirstMappings`, whose first mapping they begin from. Goes out: better ones. `auto`
hands this to `exact`, which gives it a share of the seconds. Moves as of the first mappings have a turn, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from itertools import cycle
from random import Random

from ...errors import MissingExtra
from ...mapping.tree import Mapping
from ...problem import Budget, Problem
from ..first import FirstMappings
from ..method import Watcher
from ..resources import growth_left
from .anneal import Anneal
from .dat import Dat
from .genetic import Genetic
from .points import Points, Valued
from .states import StateMethod

LONGER = 1.5  # times as long is each round of turns
LONGEST = 2.0  # seconds of a turn
MOVING = 2.0  # seconds of the first round of moves with long searches of privates, after the methods
ELITE = 4  # states that turns begin from, at most
LARGEST = 40  # Einsums of a cascade in which a turn can change something
SOLVER = 256 << 20  # bytes of room before integer programs are solved, whose solver is another library
TOGETHER, BESIDE = 0.8, 9.0  # seconds of drawing by turns with the proof; of the proof for each of drawing after that
PART, MOST = 1 / 6, 1 / 3  # of a budget of seconds is drawn by turns with the proof; at most, while it is worth it
APART = 0.4  # of these seconds goes to Einsums one by one, where a mapping takes long to price
SLOW = 0.05  # seconds of pricing a mapping that are long: 0.01 to 0.03 for layers and convolutions
GAIN = 0.99  # of the best value: a turn that ends above this was not worth it
WALKS, SELDOM = 0.05, 49  # the same where a point costs a walk of windows
Turn = tuple[StateMethod, float]  # a method, and the seconds of its first turn


class Turns(FirstMappings):
    """The first mapping at once, then the methods by turns: tiles by programs, annealing, a genetic search, annealing.

    A problem gets turns if machine code is in the cache, energy, latency or traffic add over Einsums, and there are no
    more than `LARGEST` of these; without a bound on seconds only if all are priced in closed form, too. Else it gets
    what `exact` alone draws.
    seed: of all methods. seconds: from now, that the proof and these may take together, if they are bounded.
    """

    eager, early, hurried, limits = True, TOGETHER, BESIDE, True

    def __init__(
        self, problem: Problem, watch: Watcher, machine_code: bool = False, seed: int = 0, seconds: float | None = None
    ) -> None:
        super().__init__(problem, watch, machine_code)
        self.seed = seed
        self._ends = None if seconds is None else time.monotonic() + seconds
        self._shares = (TOGETHER, TOGETHER) if seconds is None else (min(TOGETHER, PART * seconds), MOST * seconds)
        self.early = self._shares[0]
        self._elite: list[Valued] = []

    @property
    def counts(self) -> dict[str, int]:
        """Points and proposals, by what they were."""
        prices = self._prices
        return {} if prices is None else {"evaluated": prices.evaluated, "illegal": prices.illegal, **prices.refused}

    @cached_property
    def _turns(self) -> tuple[Turn, ...]:
        anneal = Anneal(rounds=1, hot=0.1), 0.5
        programs = ((Dat(), 0.2),) if growth_left() > SOLVER else ()
        return *programs, anneal, (Genetic(), 0.3), anneal

    def _visits(self) -> Iterator[None]:
        """Pieces as of the base until there is a mapping, and for some time more where a mapping takes long to price;
        then a turn is a piece."""
        begun = 0.0
        for _ in super()._visits():
            yield
            points = self._points
            if self.best is None or points is None:
                continue
            begun = begun or time.process_time()
            if time.process_time() >= begun + self._alone(points) and self._able(points):
                yield from self._by_turns()

    def _alone(self, points: Points) -> float:
        """Seconds in which privates of one Einsum after the other get better before the turns, whose methods price
        whole states: long windows take a hundred times as long."""
        slow = self.pricing > SLOW and points.additive and self._ends is not None
        return APART * self._shares[0] if slow else 0.0

    def go_on_near(self, mapping: Mapping) -> None:
        """Turns from a known mapping, if it has a state and the problem gets turns."""
        super().go_on_near(mapping)
        points = self._points
        if points is not None and self._ready is not None and self._able(points):
            points.value(self._ready[1])
            self._pieces = self._by_turns()

    def _by_turns(self) -> Iterator[None]:
        """A turn of a method after the other, each a piece, without an end."""
        rng, longer = Random(self.seed), 1.0
        for number, (method, seconds) in enumerate(cycle(self._turns)):
            yield
            if number and number % len(self._turns) == 0:
                yield from self._move(MOVING * longer, rng)
                longer *= LONGER
            self._take(method, min(LONGEST, seconds * longer), rng)

    def _move(self, seconds: float, rng: Random) -> Iterator[None]:
        """Moves from the best state with long searches of privates after each, for some seconds."""
        points, end = self._points, time.process_time() + seconds
        if points is None or points.best is None:
            return
        for _ in self._hops(points, points.best, rng):
            if time.process_time() >= end:
                break
            yield
        self._offer()

    def _able(self, points: Points) -> bool:
        """True if turns are worth it; else the proof gets more of the seconds where a point costs a walk. Within a
        budget of seconds turns are worth it there, too: the proof may not end by then."""
        if not points.additive or points.facts.count > LARGEST:
            return False
        if None in points.closed and self._ends is None:
            self.early, self.hurried = WALKS, SELDOM
            return False
        return self._loaded(points)

    def _take(self, method: StateMethod, seconds: float, rng: Random) -> None:
        """One turn of a method, from the best states so far."""
        points, left = self._points, seconds if self._ends is None else min(seconds, self._ends - time.monotonic())
        if points is None or left <= 0:
            return
        found = points.best
        if found is not None and found not in self._elite:
            self._elite = sorted([*self._elite, found], key=lambda one: one[0])[:ELITE]
        points.known = tuple(state for _, state in self._elite)
        before = self.promised
        with points.evaluator.turn(Budget(left), _Stops(self.watch)), suppress(MissingExtra):
            method.run(points, rng, points.evaluator.watch)
        self.early = self._shares[self.promised < GAIN * before]


class _Stops(Watcher):
    """Hears a turn: passes on better mappings, and when to stop."""

    def __init__(self, outer: Watcher) -> None:
        self.incumbent, self.stopped = outer.incumbent, outer.stopped  # type: ignore[method-assign]

"""The tile factors of one state as a row of decisions, and Monte Carlo tree search over them (TileFlow, section 6).

First the trips of every shared loop, then for each Einsum and variable the trips below each of its stores, from the
inside out; what is left stands outermost. Stores, orders, homes and spatial loops, shared ones too, stay, and so does
what the loops of a variable cover together: of uneven tiles those that divide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, log, log10, sqrt
from random import Random

from ...mapspace.divisors import divisors
from ...mapspace.ffm.encoding import State
from ...mapspace.ffm.encoding.checks import fault
from ...mapspace.ffm.encoding.covers import recovered
from ...mapspace.ffm.encoding.state import covers_of, frame_of, tidy
from .blocks import without_ones
from .points import INFINITE, Points, Valued

Shared = tuple[int, int, int]  # first and last Einsum of a run, number of its loop
Private = tuple[int, str, int]  # Einsum, variable, segment
PUNISHED = 2.0  # how much worse than the worst legal one a rollout counts that is none, in powers of ten


class Factors:
    """The decisions of a state, and the states that they make. least: trips of a shared loop; one of one trip goes."""

    def __init__(self, points: Points, state: State, least: int = 2) -> None:
        self.points, self.facts, self.state, self.least = points, points.encoding.of(state), state, least
        self.covers = [covers_of(self.facts, own, i) for i, own in enumerate(state.owns)]
        frame = frame_of(self.facts, state)
        levels = range(max(frame.lengths, default=0))
        self.shared: list[Shared] = [(*run, level) for level in levels for run in frame.runs(level)]
        self.private: list[Private] = [
            (i, v, at)
            for i, own in enumerate(state.owns)
            for v in self.facts.einsums[i].variables
            for at in range(len(own.segments) - 1, 0, -1)
        ]
        self.count = len(self.shared) + len(self.private)
        self._whole = [dict(one) for one in self.covers]
        for one, own in zip(self._whole, state.owns, strict=True):
            for _, v, n in own.spatial:
                one[v] //= n

    def left(self, chosen: Sequence[int]) -> list[dict[str, int]]:
        """What is left of each variable of each Einsum: its cover over its spatial trips and the decisions so far."""
        found = [dict(one) for one in self._whole]
        for at, n in enumerate(chosen):
            self.take(found, at, n)
        return found

    def take(self, left: list[dict[str, int]], at: int, n: int) -> None:
        """Enter decision number `at` into what is left."""
        if at < len(self.shared):
            first, last, level = self.shared[at]
            for i in range(first, last + 1):
                left[i][self.state.shared[i][level][0]] //= n
        else:
            i, v, _ = self.private[at - len(self.shared)]
            left[i][v] //= n

    def domain(self, at: int, left: list[dict[str, int]]) -> tuple[int, ...]:
        """What decision number `at` may take: divisors of what those before it leave."""
        if at < len(self.shared):
            first, last, level = self.shared[at]
            _, trips, axis = self.state.shared[first][level]
            rest = gcd(*(left[i][self.state.shared[i][level][0]] for i in range(first, last + 1)))
            if axis is not None:
                return () if rest % trips else (trips,)
            return divisors(rest)[self.least - 1 :]
        i, v, _ = self.private[at - len(self.shared)]
        return divisors(left[i][v])

    def rolled(self, chosen: Sequence[int], rng: Random) -> list[int] | None:
        """The decisions completed at random; None if one has nothing to take. Half of the variables stay outermost."""
        row, left = list(chosen), self.left(chosen)
        flat = {(i, v) for i, v, _ in self.private if rng.random() < 0.5}
        for at in range(len(row), self.count):
            options, place = self.domain(at, left), at - len(self.shared)
            if not options:
                return None
            row.append(1 if place >= 0 and self.private[place][:2] in flat else rng.choice(options))
            self.take(left, at, row[at])
        return row

    def made(self, row: Sequence[int]) -> State | None:
        """The state of a whole row; None if it breaks a rule, which is counted."""
        shared = [list(loops) for loops in self.state.shared]
        for (first, last, level), n in zip(self.shared, row, strict=False):
            for i in range(first, last + 1):
                shared[i][level] = (shared[i][level][0], n, shared[i][level][2])
        trips, left = dict(zip(self.private, row[len(self.shared) :], strict=True)), self.left(row)
        owns = []
        for i, own in enumerate(self.state.owns):
            segments = []
            for at, segment in enumerate(own.segments):
                names = dict.fromkeys((*(v for v, _ in segment), *self.facts.einsums[i].variables))
                segments.append(tuple((v, trips[i, v, at] if at else left[i][v]) for v in names))
            owns.append(tidy(self.facts, replace(own, segments=tuple(segments))))
        whole = replace(self.state, shared=tuple(map(tuple, shared)), owns=tuple(owns), known={})
        found = without_ones(self.facts, whole)
        for i, own in enumerate(found.owns):
            found = found.with_own(i, recovered(self.facts, found, i, own)) if own.covers else found
        why = fault(self.facts, found)
        if why is not None:
            self.points.note(why)
            return None
        return found


def tree_search(points: Points, found: Valued, iterations: int, rollouts: int, constant: float, rng: Random) -> Valued:
    """The best state that Monte Carlo tree search over the factors of a state meets, itself among them.

    Each iteration goes down by UCB with this constant to a row of decisions that it has not been at, completes it so
    many times at random, and backs up the best reward, which is -log10 of the objective.
    """
    factors = Factors(points, found[1])
    known: dict[tuple[int, ...], tuple[int, float]] = {(): (0, 0.0)}
    worst = -log10(found[0]) if 0 < found[0] < INFINITE else -20.0
    best = found
    for _ in range(iterations if factors.count else 0):
        row = _selected(factors, known, constant, rng)
        reward = None
        for _ in range(rollouts):
            value, state = _priced(points, factors, row, rng)
            if state is not None and 0 < value < INFINITE:
                worst = min(worst, -log10(value))
                reward = max(-log10(value), reward if reward is not None else -log10(value))
                best = (value, state) if value < best[0] else best
        got = worst - PUNISHED if reward is None else reward
        for size in range(len(row) + 1):
            visits, total = known.get(row[:size], (0, 0.0))
            known[row[:size]] = visits + 1, total + got
    return best


def _priced(points: Points, factors: Factors, row: Sequence[int], rng: Random) -> tuple[float, State | None]:
    whole = factors.rolled(row, rng)
    state = None if whole is None else factors.made(whole)
    return (INFINITE, None) if state is None else (points.value(state), state)


def _selected(
    factors: Factors, known: dict[tuple[int, ...], tuple[int, float]], constant: float, rng: Random
) -> tuple[int, ...]:
    """A row of decisions that has not been visited, below the best ones by their upper confidence bound."""
    row: tuple[int, ...] = ()
    left = factors.left(())
    while len(row) < factors.count:
        options = factors.domain(len(row), left)
        fresh = [n for n in options if (*row, n) not in known]
        if fresh:
            return (*row, rng.choice(fresh))
        if not options:
            return row
        above = log(max(2, known[row][0]))
        row = (*row, max(options, key=lambda n, row=row, above=above: _bound(known[*row, n], above, constant)))  # type: ignore[misc]
        factors.take(left, len(row) - 1, row[-1])
    return row


def _bound(node: tuple[int, float], above: float, constant: float) -> float:
    visits, total = node
    return total / visits + constant * sqrt(above / visits)

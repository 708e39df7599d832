"""`bayes`: Bayesian optimization of skeletons by a Gaussian process; the privates under each are polished."""

from __future__ import annotations

from math import log, log2
from operator import itemgetter
from random import Random
from typing import ClassVar

import numpy as np

from ...dataclass import dataclass
from ...mapspace.ffm.encoding import NoProposal, State
from ...mapspace.ffm.encoding.rooms import tile_bits
from ...mapspace.ffm.encoding.state import left_below
from ..method import Watcher
from .gaussian_process import Floats, GaussianProcess
from .points import INFINITE, Points, Valued
from .states import StateMethod

MOST = 400  # trials that a process begins with: half of them the best, half the last
GROWS = 1.25  # a process begins anew, with the scales of all that it knows, when it has grown by a quarter


@dataclass(frozen=True)
class Bayes(StateMethod):
    """Trials of skeletons, each the one of a pool for which the most improvement is expected.

    seed: the same seed gives the same answer. points: the most, as in `StateMethod`. first: trials at random. pool:
    skeletons that are compared for a trial, half of them near the best. polish: proposals for the privates of each
    Einsum in a trial, for every thousand points of the search.
    """

    name: ClassVar[str] = "bayes"
    first: int = 8
    pool: int = 16
    polish: float = 3.0

    def __post_init__(self) -> None:
        self.least(1, "points", "first")
        self.least(2, "pool")
        self.least(0, "polish")

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        """Trials, one after the other."""
        tries, known = int(self.polish * points.burst_size(self.points)), _Trials(points)
        for state in points.begin():
            known.add((points.value(state), state))
        while points.part(self.points) < 1:
            watch.stage("trials", len(known.all))
            chosen = self._chosen(points, known, rng)
            if chosen is None:
                break
            known.add(points.polished((points.value(chosen), chosen), rng, tries))

    def _chosen(self, points: Points, known: _Trials, rng: Random) -> State | None:
        """The next trial; None if nothing can be drawn."""
        if len(known.all) < self.first:
            return points.drawn(rng)
        process = known.process()
        pool = [_near(points, known.best[1], rng) for _ in range(self.pool // 2)]
        pool += [_near(points, known.all[rng.choice(known.members)][1], rng) for _ in range(self.pool - len(pool))]
        states = [state for state in pool if state is not None]
        if not states:
            return points.drawn(rng)
        return states[int(np.argmax(process.improvement(np.array([features(points, state) for state in states]))))]


class _Trials:
    """All trials with a value, and a process of their logarithms. members: the numbers of those that it knows."""

    def __init__(self, points: Points) -> None:
        self.points, self.all, self.members = points, list[Valued](), list[int]()
        self._rows, self._until = list[Floats](), 0
        self._process: GaussianProcess | None = None
        self.best: Valued

    def add(self, found: Valued) -> None:
        """Enter a trial, if it has a value."""
        if found[0] == INFINITE:
            return
        if not self.all or found[0] < self.best[0]:
            self.best = found
        self.all.append(found)
        self._rows.append(features(self.points, found[1]))
        if self._process is not None:
            self.members.append(len(self.all) - 1)
            self._process.add(self._rows[-1], _logarithm(found[0]))

    def process(self) -> GaussianProcess:
        """The process of the trials so far: that of before, or one with new scales where many came since."""
        if self._process is None or len(self.members) > self._until:
            numbers = range(len(self.all))
            best = sorted(numbers, key=lambda n: self.all[n][0])[: MOST // 2]
            self.members = sorted({*best, *numbers[-MOST // 2 :]})
            self._until = int(GROWS * len(self.members))
            rows = np.array([self._rows[n] for n in self.members])
            self._process = GaussianProcess(rows, np.array([_logarithm(self.all[n][0]) for n in self.members]))
        return self._process


def _logarithm(value: float) -> float:
    return log(max(value, 1e-300))


def _near(points: Points, state: State, rng: Random) -> State | None:
    """A state one or two moves away that fits; None if there was none."""
    try:
        for _ in range(rng.randint(1, 2)):
            state = points.encoding.propose(state, rng, 0.8)
    except NoProposal as rule:
        points.note(str(rule))
        return None
    return points.encoding.fitted(state, rng)


def features(points: Points, state: State) -> Floats:
    """Homes, depths and logarithms of the tiles of intermediates; of each Einsum its stores, instances and reuse, and
    its place where there are several orders."""
    facts, row = points.encoding.of(state), list[float]()
    for number, tensor in enumerate(facts.floating):
        home, depth, user = state.homes[number], state.depths[number], tensor.users[0]
        extents = left_below(facts, state, user, depth)
        row += [float(home), float(depth), log2(max(1, tile_bits(facts, user, home, tensor.name, extents)))]
    for own in (own for _, own in sorted(zip(facts.label, state.owns, strict=True), key=itemgetter(0))):
        trips = [log2(n) for segment in own.segments[:-1] for _, n in segment]
        row += [float(len(own.stores)), sum(log2(n) for _, _, n in own.spatial), sum(trips)]
    if facts.free:
        row += [float(facts.index[einsum.name]) for einsum in points.facts.einsums]
    return np.array(row)

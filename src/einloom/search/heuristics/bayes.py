"""`bayes`: Bayesian optimization of skeletons by a Gaussian process; the privates under each are polished."""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, log, log2, pi, sqrt
from operator import itemgetter
from random import Random
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...mapspace.ffm.encoding import NoProposal, State
from ...mapspace.ffm.encoding.rooms import tile_bits
from ...mapspace.ffm.encoding.state import covers_of
from ..method import Watcher
from .points import INFINITE, Points, Valued
from .states import StateMethod

Floats = NDArray[np.float64]
MOST = 200  # trials that the process knows; their inverse costs the cube of this
NOISE = 1e-3


@dataclass(frozen=True)
class Bayes(StateMethod):
    """Trials of skeletons, each the one of a pool for which the most improvement is expected.

    seed: the same seed gives the same answer. points: evaluations, if the budget names none. first: trials at random.
    pool: skeletons that are compared for a trial, half of them near the best. polish: proposals for the privates of
    each Einsum in a trial, for every thousand points of the search.
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
        tries = int(self.polish * points.burst_size(self.points))
        trials = [(points.value(state), state) for state in points.begin()]
        while points.part(self.points) < 1:
            watch.stage("trials", len(trials))
            chosen = self._chosen(points, trials, rng)
            if chosen is None:
                break
            found = points.polished((points.value(chosen), chosen), rng, tries)
            if found[0] < INFINITE:
                trials.append(found)

    def _chosen(self, points: Points, trials: list[Valued], rng: Random) -> State | None:
        """The next trial; None if nothing can be drawn."""
        if len(trials) < self.first:
            return _drawn(points, rng)
        known = sorted(trials, key=lambda one: one[0])[: MOST // 2] + trials[-MOST // 2 :]
        pool = [_near(points, min(trials, key=lambda one: one[0])[1], rng) for _ in range(self.pool // 2)]
        pool += [_near(points, rng.choice(known)[1], rng) for _ in range(self.pool - len(pool))]
        states = [state for state in pool if state is not None]
        if not states:
            return _drawn(points, rng)
        values = np.array([log(max(value, 1e-300)) for value, _ in known])
        rows = np.array([features(points, state) for _, state in known])
        gains = expected(rows, values, np.array([features(points, state) for state in states]))
        return states[int(np.argmax(gains))]


def _drawn(points: Points, rng: Random) -> State | None:
    for _ in range(100):
        points.evaluator.checkpoint()
        state = points.encoding.sample(rng)
        if state is not None:
            return state
    return None


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
        extents = covers_of(facts, state.owns[user], user)
        for v, n, _ in state.shared[user][:depth]:
            extents[v] //= n
        row += [float(home), float(depth), log2(max(1, tile_bits(facts, user, home, tensor.name, extents)))]
    for own in (own for _, own in sorted(zip(facts.label, state.owns, strict=True), key=itemgetter(0))):
        trips = [log2(n) for segment in own.segments[:-1] for _, n in segment]
        row += [float(len(own.stores)), sum(log2(n) for _, _, n in own.spatial), sum(trips)]
    if facts.free:
        row += [float(facts.index[einsum.name]) for einsum in points.facts.einsums]
    return np.array(row)


def expected(rows: Floats, values: Floats, asked: Floats) -> Floats:
    """Expected improvement, in logarithms, of each asked row over the least value (squared exponential kernel)."""
    scale = rows.std(axis=0) + 1e-9
    rows, asked = rows / scale, asked / scale
    spread = float(values.std()) or 1.0
    targets = (values - values.mean()) / spread
    apart = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    width = float(np.median(apart)) or 1.0
    inverse = np.linalg.inv(np.exp(-0.5 * (apart / width) ** 2) + NOISE * np.eye(len(rows)))
    cross = np.exp(-0.5 * ((asked[:, None] - rows[None]) ** 2).sum(axis=2) / width**2)
    mean = cross @ (inverse @ targets)
    sigma = np.sqrt(np.maximum(1 + NOISE - np.einsum("ij,jk,ik->i", cross, inverse, cross), 1e-12))
    better = targets.min() - mean
    z = better / sigma
    below = np.array([0.5 * (1 + erf(one / sqrt(2))) for one in z])
    return np.asarray(better * below + sigma * np.exp(-0.5 * z**2) / sqrt(2 * pi), dtype=np.float64)

"""`anneal`: simulated annealing of SET, as FFM's section 7.2 reads it: storage, shared loops and privates change."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from ...dataclass import dataclass
from ..method import Watcher
from .points import INFINITE, Points, Valued, accepted
from .states import StateMethod


@dataclass(frozen=True)
class Anneal(StateMethod):
    """Moves at random; a worse state is accepted with probability exp(-ln(new / old) / T).

    seed: the same seed gives the same answer. points: the most, as in `StateMethod`. rounds: runs, each from a new
    start but the last, which starts from the best. hot, cold: first and last T, which falls geometrically; T has no
    unit, because values are compared by their ratio. shared: the share of moves that change what Einsums share. polish:
    proposals for the privates of each Einsum that such a move touched, before it is judged, as a part of the proposals
    between two moves.
    """

    name: ClassVar[str] = "anneal"
    rounds: int = 3
    hot: float = 0.3
    cold: float = 0.001
    shared: float = 0.3
    polish: float = 1.0

    def __post_init__(self) -> None:
        self.least(1, "points", "rounds")
        self.least(0, "polish")
        self.share("shared")
        if not 0 < self.cold <= self.hot:
            raise ValueError("0 < cold <= hot")

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        """Rounds of cooling; the last one starts from the best state."""
        begun = bool(points.begin())
        for number in range(self.rounds):
            start = points.best if points.best and (begun or number == self.rounds - 1) else points.draw(rng)
            if start is None:
                break
            watch.stage("annealing", number, self.rounds)
            self._cooled(points, start, number, rng)

    def _cooled(self, points: Points, now: Valued, number: int, rng: Random) -> None:
        """One run, from hot to cold."""
        burst, stuck = points.burst_size(self.points), 0
        while (done := points.part(self.points) * self.rounds - number) < 1 and stuck < STUCK:
            heat = self.hot * (self.cold / self.hot) ** max(0.0, done)
            if points.facts.floating and rng.random() < self.shared:
                near = points.reshaped(now, rng, int(self.polish * burst) if burst > 1 else 0)
            else:
                near = points.burst(now, rng.randrange(points.facts.count), burst, heat, rng)
            stuck = stuck + 1 if near is None or near == now else 0
            if near is not None and near[0] < INFINITE and accepted(near[0], now[0], heat, rng):
                now = near


STUCK = 2000  # steps in a row without a proposal after which a run ends

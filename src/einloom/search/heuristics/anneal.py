"""`anneal`: simulated annealing of SET, as FFM's section 7.2 reads it: storage, shared loops and privates change."""

from __future__ import annotations

from math import exp, log
from random import Random

from ...mapspace.ffm.encoding import State
from ...mapspace.space import Space
from ...problem import Budget, Guarantee, Problem
from ...result import Result
from ..evaluator import Evaluator
from ..method import Capabilities, Watcher
from .points import Points


class Anneal:
    """Moves at random; a worse state is accepted with probability exp(-ln(new / old) / T).

    seed: the same seed gives the same answer. points: evaluations of all rounds, if the budget names none.
    rounds: runs, each from a new start but the last, which starts from the best. hot, cold: first and last T, which
    falls geometrically; T has no unit, because values are compared by their ratio. shared: the share of moves that
    change what Einsums share.
    """

    name = "anneal"
    guarantee = Guarantee.NONE
    able = Capabilities(starts=True, spaces=("ffm", "ragged"))

    def __init__(
        self,
        seed: int = 0,
        points: int = 10_000,
        rounds: int = 3,
        hot: float = 0.3,
        cold: float = 0.001,
        shared: float = 0.3,
    ) -> None:
        if points < 1 or rounds < 1 or not 0 < cold <= hot or not 0 <= shared <= 1:
            raise ValueError("points and rounds: at least 1; 0 < cold <= hot; shared from 0 to 1")
        self.seed, self.points, self.rounds = seed, points, rounds
        self.hot, self.cold, self.shared = hot, cold, shared

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best mapping met."""
        rng, points = Random(self.seed), Points(problem, space, price)
        known = [(points.value(state), state) for state in points.begin()]
        best = min(known, key=lambda one: one[0], default=None)
        for number in range(self.rounds):
            start = best if best is not None and (known or number == self.rounds - 1) else points.draw(rng)
            if start is None:
                break
            watch.stage("annealing", number, self.rounds)
            found = self._cooled(points, start, number, rng)
            best = found if best is None or found[0] < best[0] else best
        return price.result(self.name)

    def _cooled(self, points: Points, start: tuple[float, State], number: int, rng: Random) -> tuple[float, State]:
        """The best state of one run."""
        value, state = best = start
        stuck = 0
        while (done := points.part(self.points) * self.rounds - number) < 1 and stuck < STUCK:
            found = points.near(state, rng, self.shared)
            stuck = stuck + 1 if found is None else 0
            if found is None or found[0] == float("inf"):
                continue
            heat = self.hot * (self.cold / self.hot) ** max(0.0, done)
            if accepted(found[0], value, heat, rng):
                value, state = found
                best = found if value < best[0] else best
        return best


STUCK = 2000  # refused proposals in a row after which a run ends


def accepted(new: float, old: float, heat: float, rng: Random) -> bool:
    """True if a step from `old` to `new` is taken at this temperature."""
    if new <= old:
        return True
    return old > 0 and rng.random() < exp(-log(new / old) / heat)

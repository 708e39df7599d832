"""`gradient`: descent on logarithms of trips with gates for fusion, as FADiff; with `fuse=0` it is DOSA."""

from __future__ import annotations

from random import Random
from typing import ClassVar

import numpy as np

from ...dataclass import dataclass
from ...mapspace.ffm.encoding import NoProposal, State
from ...mapspace.ffm.encoding.skeletons import SkeletonDraft
from ..method import Watcher
from .monomials import Floats, Terms
from .points import Points, Valued
from .states import StateMethod
from .tile_model import TileModel

STRONG = 30.0  # the weight of broken bounds and overfull memories at the end; 1 at the beginning


@dataclass(frozen=True)
class Gradient(StateMethod):
    """Descents from drawn states, each rounded to divisors, mended, and polished.

    seed: the same seed gives the same answer. points: the most, as in `StateMethod`. steps, rate: of a descent. fuse:
    the share of intermediates that a draw tries to fuse; 0 is layer by layer. hot, cold: first and last temperature of
    the gates. polish: proposals for the privates of each Einsum after rounding, for every thousand points of the
    search.
    """

    name: ClassVar[str] = "gradient"
    steps: int = 150
    rate: float = 0.2
    fuse: float = 0.7
    hot: float = 2.0
    cold: float = 0.05
    polish: float = 3.0

    def __post_init__(self) -> None:
        self.least(1, "points", "steps")
        self.least(0, "polish")
        self.share("fuse")
        if self.rate <= 0 or not 0 < self.cold <= self.hot:
            raise ValueError("rate above 0; 0 < cold <= hot")

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        """Descents from draws, one after the other."""
        waiting = [(points.value(state), state) for state in points.begin()]
        tries = int(self.polish * points.burst_size(self.points))
        while points.part(self.points) < 1:
            start = waiting.pop() if waiting else points.draw(rng, self.fuse)
            if start is None:
                break
            watch.stage("descending")
            end = self._rounded(points, start, rng)
            points.polished(start if end is None else end, rng, tries)

    def _rounded(self, points: Points, start: Valued, rng: Random) -> Valued | None:
        """The state of the descent's end; None if it is none, or if the tiles of this state have no model."""
        if not TileModel.able(points):
            return None
        model = TileModel(points, start[1])
        x, gates = Descent(model, start[1]).run(self.steps, self.rate, self.hot, self.cold, rng)
        found = model.rounded(x)
        if found is None:
            return None
        for number, gate in gates.items():
            if gate < 0.5:
                found = _unfused(points, found, number, rng)
        return points.fitted(found, rng)


def _unfused(points: Points, state: State, number: int, rng: Random) -> State:
    draft = SkeletonDraft(points.encoding.of(state), state)
    draft.unfuse(number, min(points.facts.floating[number].homes))
    try:
        return draft.settled(rng)
    except NoProposal as rule:
        points.note(str(rule))
        return state


class Descent:
    """Adam on the logarithm of the relaxed objective, with penalties.

    A gate g of a fused intermediate, from 0 to 1, is the part that stays fused: 1 - g of it is written to the outermost
    memory and read from there (FADiff, equations 13 to 15). While the gates are hot, Gumbel noise is added to them.
    """

    def __init__(self, model: TileModel, state: State) -> None:
        self.model = model
        facts, self.powers = model.facts, model.powers
        wide = model.size + 1
        self.energy = _stacked(model.energy, wide)
        self.times = [[_stacked(one, wide) for one in components] for components in model.times]
        self.rooms = [(size, *_stacked(tiles, wide)) for size, tiles in model.rooms]
        self.bounds = np.array(model.rests).reshape(-1, wide), np.array(model.closed).reshape(-1, wide)
        self.least = np.zeros(model.size)
        self.least[: len(model.factors.shared)] = 1.0
        self.gates = [
            n for n, one in enumerate(facts.floating) if one.fuses and state.homes[n] > 0 and min(one.homes) == 0
        ]
        self.outside = [self._outside(n) for n in self.gates]

    def _outside(self, number: int) -> float:
        """Joules, or bits, of one write to the outermost memory and one read by each consumer."""
        facts = self.model.facts
        one, memory = facts.floating[number], facts.memories[0]
        user = one.users[0]
        bits = float(facts.width(user, 0, one.name))
        for v in facts.plain[user][one.name] or ():
            bits *= facts.extents[v]
        if self.model.counted is not None:
            return bits * len(one.users) * facts.workload.repeat if self.model.counted == 0 else 0.0
        joules = memory.write_energy + memory.read_energy * (len(one.users) - 1)
        return bits * joules / memory.bits_per_access * facts.workload.repeat

    def run(self, steps: int, rate: float, hot: float, cold: float, rng: Random) -> tuple[Floats, dict[int, float]]:
        """Coordinates and gates at the end."""
        noise = np.random.default_rng(rng.getrandbits(32))
        free = np.concatenate([self.model.coordinates(), np.ones(len(self.gates))])
        size, first, second = self.model.size, np.zeros(len(free)), np.zeros(len(free))
        best, lowest, stays = free.copy(), np.inf, free[self.model.spatial]
        for step in range(1, steps + 1):
            part = step / steps
            heat = hot * (cold / hot) ** part
            gumbel = noise.gumbel(size=len(self.gates)) - noise.gumbel(size=len(self.gates))
            gates = 1 / (1 + np.exp(-np.clip((free[size:] + gumbel * (part < 0.8)) / heat, -30, 30)))
            loss, slope, slope_gates = self._loss(free[:size], gates, STRONG**part)
            if part >= 0.8 and loss < lowest:
                best, lowest = free.copy(), loss
            slopes = np.concatenate([slope, slope_gates * gates * (1 - gates) / heat])
            first = 0.9 * first + 0.1 * slopes
            second = 0.99 * second + 0.01 * slopes**2
            free = free - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
            free[:size] = np.maximum(free[:size], self.least)
            free[self.model.spatial] = stays
        return best[:size], {n: float(free > 0) for n, free in zip(self.gates, best[size:], strict=True)}

    def _loss(self, x: Floats, gates: Floats, strong: float) -> tuple[float, Floats, Floats]:
        """The logarithm of the objective with penalties, and its slopes."""
        at = np.append(x, 1.0)
        energy, slope = _sum(self.energy, at)
        energy += float((1 - gates) @ self.outside)
        latency, later = 0.0, np.zeros(len(at))
        for components in self.times:
            slowest, steepest = max((_sum(one, at) for one in components), key=lambda one: one[0], default=(0.0, later))
            latency, later = latency + slowest, later + steepest
        energy, slope = energy + self.model.leak * latency, slope + self.model.leak * later
        loss, slopes, on_gates = 0.0, np.zeros(len(at)), np.zeros(len(gates))
        for power, value, change in ((self.powers[0], energy, slope), (self.powers[1], latency, later)):
            if power and value > 0:
                loss += power * float(np.log(value))
                slopes += power * change / value
        if self.powers[0] and energy > 0:
            on_gates -= self.powers[0] * np.array(self.outside) / energy
        rests, closed = self.bounds
        for rows, broken in ((rests, np.minimum(rests @ at, 0)), (closed, closed @ at)):
            loss += strong * float(broken @ broken)
            slopes += 2 * strong * (broken @ rows)
        for size, factors, rows in self.rooms:
            used, growth = _sum((factors, rows), at)
            if used > size:
                over = float(np.log(used / size))
                loss += strong * over**2
                slopes += 2 * strong * over * growth / used
        return loss, slopes[:-1], on_gates


def _stacked(terms: Terms, wide: int) -> tuple[Floats, Floats]:
    """The factors and, one a row, the exponents of monomials; there may be none."""
    return np.array([factor for factor, _ in terms]), np.array([row for _, row in terms]).reshape(-1, wide)


def _sum(terms: tuple[Floats, Floats], at: Floats) -> tuple[float, Floats]:
    """The value of a sum of monomials, and its slopes."""
    values = terms[0] * np.exp2(np.minimum(terms[1] @ at, 200))
    return float(values.sum()), np.log(2) * (values @ terms[1])

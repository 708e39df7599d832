"""`dat`: a genetic algorithm over fusion and orders, each child's tiles by an integer program (DAT, 4.1 to 4.3).

The solver is HiGHS, as SciPy ships it (extra ``dat``).
"""

from __future__ import annotations

from itertools import count
from math import ceil, floor, log2
from random import Random
from typing import Any, ClassVar

import numpy as np

from ...dataclass import dataclass
from ...errors import MissingExtra
from ...mapspace.divisors import primes
from ..method import Watcher
from .blocks import in_blocks
from .monomials import Floats, Terms
from .points import INFINITE, Points, Valued
from .quiet import silenced
from .states import TiledTrees
from .tile_model import TileModel

DEEP, HIGH = 10, 4  # powers of two below and above the present value at which a monomial is cut into chords


@dataclass(frozen=True)
class Dat(TiledTrees):
    """Trees compete by the best tiles that an integer program finds for each.

    seed: the same seed gives the same answer. points: evaluations, if the budget names none. population: trees of a
    generation. crossover, mutation: their probabilities. nodes: branch-and-bound nodes of one program.
    """

    name: ClassVar[str] = "dat"
    points: int = 1000
    crossover: float = 0.5
    mutation: float = 0.7
    nodes: int = 20

    def __post_init__(self) -> None:
        self.least(1, "points", "nodes")
        self.least(2, "population")
        self.share("crossover", "mutation")

    def run(self, points: Points, rng: Random, watch: Watcher) -> None:
        """Generations of trees. Raises MissingExtra without SciPy."""
        _solver()
        super().run(points, rng, watch)

    def parent(self, people: list[Valued], rng: Random) -> Valued:
        """The better one of two."""
        return min(rng.sample(people, min(2, len(people))), key=lambda one: one[0])

    def tiled(self, points: Points, found: Valued, rng: Random) -> Valued:
        """The tree with the tiles of its integer program, mended until they fit, if they are better."""
        if found[0] == INFINITE or not TileModel.able(points):
            return found
        model = TileModel(points, in_blocks(points.encoding.of(found[1]), found[1], rng), 1)
        x = solved(model, self.nodes)
        state = None if x is None else model.rounded(x)
        state = None if state is None else points.encoding.fitted(state, rng)
        if state is None or state == found[1]:
            return found
        return min(found, (points.value(state), state), key=lambda one: one[0])


def _solver() -> Any:
    try:
        from scipy import optimize
    except ImportError as error:
        raise MissingExtra("scipy", "dat") from error
    return optimize


def solved(model: TileModel, nodes: int) -> Floats | None:
    """Logarithms of the trips that make the model least, as far as so many nodes tell; None if none fit, or none are
    left to choose.

    The unknowns are the exponents of the primes in each coordinate's trips, so that trips divide. A monomial is convex
    in the logarithms: its chords between powers of two are exact there and a little too high between. A product of
    joules and seconds is made linear at the present trips.
    """
    optimize, program = _solver(), _Program(model)
    if not program.limits:
        return None
    columns = program.columns
    upper = np.full(columns, np.inf)
    upper[: program.size] = program.most
    asked = {
        "c": program.goal(),
        "integrality": np.arange(columns) < program.size,
        "bounds": optimize.Bounds(np.zeros(columns), upper),
        "constraints": optimize.LinearConstraint(*program.matrix()),
        "options": {"node_limit": nodes, "mip_rel_gap": 0.01},
    }
    with silenced():  # HiGHS prints some lines whatever its options say
        found = optimize.milp(**asked)
    return None if found.x is None else np.asarray(program.logarithms @ np.round(found.x[: program.size]))


class _Program:
    """Columns: the exponents of every coordinate's primes, a value for every monomial relative to its present one, the
    seconds of every Einsum. logarithms: the coordinates that exponents make. most: of each exponent."""

    def __init__(self, model: TileModel) -> None:
        self.model, self.now = model, np.append(model.coordinates(), 1.0)
        factors = model.factors
        covers = [factors.covers[first][model.state.shared[first][level][0]] for first, _, level in factors.shared]
        covers += [factors.covers[i][v] for i, v, _ in factors.private]
        self.primes = [(j, p, n) for j, cover in enumerate(covers) for p, n in _exponents(cover).items()]
        self.size, self.most = len(self.primes), [n for _, _, n in self.primes]
        self.logarithms = np.zeros((model.size, self.size))
        for column, (j, p, _) in enumerate(self.primes):
            self.logarithms[j, column] = log2(p)
        self.number: dict[bytes, int] = {}
        self.rows: list[Floats] = []
        self.highest: list[float] = []
        for terms in (model.energy, *(one for components in model.times for one in components)):
            self._enter(terms)
        for size, terms in model.rooms:
            self._enter(terms, size)
        self.columns = self.size + len(self.rows) + len(model.times)
        self.limits: list[tuple[Floats, float, float]] = []
        self._bounds()

    def _enter(self, terms: Terms, size: float = 0.0) -> None:
        for factor, row in terms:
            if not row[:-1].any():
                continue
            n = self.number.setdefault(row.tobytes(), len(self.rows))
            if n == len(self.rows):
                self.rows.append(row)
                self.highest.append(float(row @ self.now) + HIGH)
            if size > 0:
                self.highest[n] = max(self.highest[n], log2(size / factor) + 1)

    def _line(self, terms: Terms) -> tuple[Floats, float]:
        """A sum of monomials as a row over all columns, and what of it no trip changes."""
        line, rest = np.zeros(self.columns), 0.0
        for factor, row in terms:
            value = factor * 2.0 ** float(row @ self.now)
            if row[:-1].any():
                line[self.size + self.number[row.tobytes()]] += value
            else:
                rest += value
        return line, rest

    def _now(self, terms: Terms) -> float:
        """The present value of a sum of monomials."""
        line, rest = self._line(terms)
        return float(line.sum()) + rest

    def goal(self) -> Floats:
        """The slope of the logarithm of the objective at the present trips."""
        model, powers = self.model, self.model.powers
        energy = self._line(model.energy)[0]
        seconds = [max((self._now(one) for one in components), default=0.0) for components in model.times]
        joules = max(self._now(model.energy) + model.leak * sum(seconds), 1e-300)
        line = powers[0] * energy / joules
        a_second = powers[1] / max(sum(seconds), 1e-300) + powers[0] * model.leak / joules
        line[-len(seconds) :] = a_second * np.maximum(seconds, 1e-300)
        return np.asarray(line)

    def _bounds(self) -> None:
        model = self.model
        for n, row in enumerate(self.rows):
            now = float(row @ self.now)
            for power in range(floor(now) - DEEP, ceil(self.highest[n])):
                scale = 2.0 ** (power - now)  # value >= scale * (1 + logarithm - power)
                line = np.zeros(self.columns)
                line[: self.size], line[self.size + n] = -scale * (row[:-1] @ self.logarithms), 1.0
                self.limits.append((line, scale * (1 + row[-1] - power), np.inf))
        closed = {row.tobytes() for row in model.closed}
        for row in model.rests:
            self._divided(row, row.tobytes() in closed)
        for j in range(len(model.factors.shared)):
            least, most = (self.now[j], self.now[j]) if j in model.spatial else (log2(model.factors.least), np.inf)
            self.limits.append((self._line_of(j), least, most))
        for size, terms in model.rooms:
            line, rest = self._line(terms)
            self.limits.append((line / size, -np.inf, 1.0 - rest / size))
        for i, components in enumerate(model.times):
            slowest = max((self._now(one) for one in components), default=0.0) or 1.0
            for one in components:
                line, rest = self._line(one)
                line = -line / slowest
                line[len(line) - len(model.times) + i] = 1.0
                self.limits.append((line, rest / slowest, np.inf))

    def _divided(self, row: Floats, closed: bool) -> None:
        """The trips of one variable: each prime as often as in the extent, or less if a rest may stay outermost."""
        left = _exponents(round(2.0 ** row[-1]))
        for prime in {p for j, p, _ in self.primes if row[j]}:
            line = np.zeros(self.columns)
            line[: self.size] = [row[j] < 0 and p == prime for j, p, _ in self.primes]
            self.limits.append((line, left.get(prime, 0) if closed else 0.0, left.get(prime, 0)))

    def _line_of(self, j: int) -> Floats:
        """The logarithm of coordinate j over all columns."""
        line = np.zeros(self.columns)
        line[: self.size] = self.logarithms[j]
        return line

    def matrix(self) -> tuple[Floats, Floats, Floats]:
        """Rows, and what they may be at least and at most."""
        lines, least, most = zip(*self.limits, strict=True)
        return np.array(lines), np.array(least), np.array(most)


def _exponents(number: int) -> dict[int, int]:
    """How often each prime is in the number."""
    return {p: next(n for n in count(1) if number % p ** (n + 1)) for p in primes(number)}

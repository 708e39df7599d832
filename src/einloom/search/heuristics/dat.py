"""`dat`: a genetic algorithm over fusion and orders, each child's tiles by an integer program (DAT, 4.1 to 4.3).

The solver is HiGHS, as SciPy ships it (extra ``dat``).
"""

from __future__ import annotations

from collections.abc import Iterator
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

_Sum = tuple[list[int], list[float], float]  # columns, what each has in the sum now, and what no trip changes
Limits = tuple[Floats, Floats, Floats]  # rows, and what they may be at least and at most
DEEP, HIGH = 10, 4  # powers of two below and above the present value at which a monomial is cut into chords


@dataclass(frozen=True)
class Dat(TiledTrees):
    """Trees compete by the best tiles that an integer program finds for each.

    seed: the same seed gives the same answer. points: the most, as in `StateMethod`. population: trees of a generation.
    crossover, mutation: their probabilities. nodes: branch-and-bound nodes of one program.
    """

    name: ClassVar[str] = "dat"
    usual: ClassVar[int] = 1000
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
    lines, least, most = program.matrix()
    if not len(lines):
        return None
    columns = program.columns
    upper = np.full(columns, np.inf)
    upper[: program.size] = program.most
    asked = {
        "c": program.goal,
        "integrality": np.arange(columns) < program.size,
        "bounds": optimize.Bounds(np.zeros(columns), upper),
        "constraints": optimize.LinearConstraint(lines, least, most),
        "options": {"node_limit": nodes, "mip_rel_gap": 0.01},
    }
    with silenced():  # HiGHS prints some lines whatever its options say
        found = optimize.milp(**asked)
    return None if found.x is None else np.asarray(program.logarithms @ np.round(found.x[: program.size]))


class _Program:
    """Columns: the exponents of every coordinate's primes, a value for every monomial relative to its present one, the
    seconds of every Einsum. at: the coordinate of every exponent. logarithms: the coordinates that exponents make.
    most: of each exponent. limits: rows, and what they may be at least and at most."""

    def __init__(self, model: TileModel) -> None:
        self.model, self.now = model, np.append(model.coordinates(), 1.0)
        factors = model.factors
        covers = [factors.covers[first][model.state.shared[first][level][0]] for first, _, level in factors.shared]
        covers += [factors.covers[i][v] for i, v, _ in factors.private]
        self.primes = [(j, p, n) for j, cover in enumerate(covers) for p, n in _exponents(cover).items()]
        self.size, self.most = len(self.primes), [n for _, _, n in self.primes]
        self.at = np.array([j for j, _, _ in self.primes], dtype=int)
        self.logarithms = np.zeros((model.size, self.size))
        for column, (j, p, _) in enumerate(self.primes):
            self.logarithms[j, column] = log2(p)
        self.number: dict[bytes, int] = {}
        self.rows: list[Floats] = []
        self.present: list[float] = []  # the logarithm of each monomial now
        self.highest: list[float] = []
        energy = self._sum(model.energy)
        times = [[self._sum(one) for one in components] for components in model.times]
        rooms = [(size, self._sum(terms, size)) for size, terms in model.rooms]
        self.columns = self.size + len(self.rows) + len(times)
        self.limits = [self._chords(), *self._divided(), *self._shared(), *self._fitting(rooms), *self._slowest(times)]
        self.goal = self._goal(energy, times)

    def _sum(self, terms: Terms, size: float = 0.0) -> _Sum:
        """A sum of monomials, each with a column of its own. size: what the sum may not be above, if anything."""
        columns, values, rest = list[int](), list[float](), 0.0
        for factor, row in terms:
            if not row[:-1].any():
                rest += factor * 2.0 ** float(row @ self.now)
                continue
            n = self.number.setdefault(row.tobytes(), len(self.rows))
            if n == len(self.rows):
                self.rows.append(row)
                self.present.append(float(row @ self.now))
                self.highest.append(self.present[n] + HIGH)
            if size > 0:
                self.highest[n] = max(self.highest[n], log2(size / factor) + 1)
            columns.append(self.size + n)
            values.append(factor * 2.0 ** self.present[n])
        return columns, values, rest

    def _line(self, found: _Sum) -> Floats:
        """A sum as a row over all columns, without what of it no trip changes."""
        line = np.zeros(self.columns)
        line[found[0]] = found[1]
        return line

    def _now(self, found: _Sum) -> float:
        """The present value of a sum."""
        return float(self._line(found).sum()) + found[2]

    def _goal(self, energy: _Sum, times: list[list[_Sum]]) -> Floats:
        """The slope of the logarithm of the objective at the present trips."""
        model, powers = self.model, self.model.powers
        seconds = [max(map(self._now, components), default=0.0) for components in times]
        joules = max(self._now(energy) + model.leak * sum(seconds), 1e-300)
        line = powers[0] * self._line(energy) / joules
        a_second = powers[1] / max(sum(seconds), 1e-300) + powers[0] * model.leak / joules
        line[-len(seconds) :] = a_second * np.maximum(seconds, 1e-300)
        return np.asarray(line)

    def _chords(self) -> Limits:
        """Every monomial's value is above each of its chords: ``scale * (1 + logarithm - power)``."""
        tops = zip(self.present, self.highest, strict=True)
        powers = [range(floor(now) - DEEP, ceil(most)) for now, most in tops]
        of = np.repeat(np.arange(len(powers)), [len(some) for some in powers])
        power = np.fromiter((one for some in powers for one in some), dtype=np.float64, count=len(of))
        scale = np.array([2.0 ** (one - now) for some, now in zip(powers, self.present, strict=True) for one in some])
        rows = np.array(self.rows).reshape(-1, self.model.size + 1)
        lines = np.zeros((len(of), self.columns))
        slopes = rows[:, self.at] * self.logarithms[self.at, np.arange(self.size)]
        lines[:, : self.size] = -scale[:, None] * slopes[of]
        lines[np.arange(len(of)), self.size + of] = 1.0
        return lines, scale * (1 + rows[of, -1] - power), np.full(len(of), np.inf)

    def _divided(self) -> Iterator[Limits]:
        """The trips of one variable: each prime as often as in the extent, or less if a rest may stay outermost."""
        closed = {row.tobytes() for row in self.model.closed}
        primes_at = np.array([p for _, p, _ in self.primes], dtype=int)
        for row in self.model.rests:
            left, mine = _exponents(round(2.0 ** row[-1])), row[self.at]
            for prime in set(primes_at[mine != 0].tolist()):
                line, most = np.zeros(self.columns), left.get(prime, 0)
                line[: self.size] = (mine < 0) & (primes_at == prime)
                yield _limit(line, most if row.tobytes() in closed else 0.0, most)

    def _shared(self) -> Iterator[Limits]:
        """Spatial shared loops stay as they are, others have trips."""
        for j in range(len(self.model.factors.shared)):
            line = np.zeros(self.columns)
            line[: self.size] = self.logarithms[j]
            fixed = j in self.model.spatial
            yield _limit(line, *((self.now[j],) * 2 if fixed else (log2(self.model.factors.least), np.inf)))

    def _fitting(self, rooms: list[tuple[float, _Sum]]) -> Iterator[Limits]:
        """What a memory holds is at most its size."""
        for size, found in rooms:
            yield _limit(self._line(found) / size, -np.inf, 1.0 - found[2] / size)

    def _slowest(self, times: list[list[_Sum]]) -> Iterator[Limits]:
        """The seconds of an Einsum are at least those of each component."""
        for i, components in enumerate(times):
            slowest = max(map(self._now, components), default=0.0) or 1.0
            for one in components:
                line = -self._line(one) / slowest
                line[len(line) - len(times) + i] = 1.0
                yield _limit(line, one[2] / slowest, np.inf)

    def matrix(self) -> Limits:
        """All limits."""
        lines, least, most = zip(*self.limits, strict=True)
        return np.concatenate(lines), np.concatenate(least), np.concatenate(most)


def _limit(line: Floats, least: float, most: float) -> Limits:
    """One row."""
    return line[None, :], np.array([least]), np.array([most])


def _exponents(number: int) -> dict[int, int]:
    """How often each prime is in the number."""
    return {p: next(n for n in count(1) if number % p ** (n + 1)) for p in primes(number)}

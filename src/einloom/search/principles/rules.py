"""Principles 1 to 3 of the FuseCU paper as printed: which schedule they pick, and what it costs beside the optimum.

Xu et al., DAC 2025, section III-A. The classes of buffers are the paper's. Where a principle leaves a choice open (two
equal dimensions, two equal operands, the range in which two classes are allowed), every candidate is counted with whole
trips and the least is taken. The paper says nothing of ties; this reading is the kindest to the principles.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt, sqrt
from typing import Literal

from ...dataclass import dataclass
from .matmul import (
    OPERANDS,
    Accounting,
    Cutting,
    Matmul,
    Operand,
    OperandSchedule,
    best_schedule,
    largest_tile,
    missing,
    schedule,
    traffic,
)

Class = Literal["single", "single/two", "two", "three"]
COUNTS: dict[Class, int] = {"single": 1, "two": 2, "three": 3}


@dataclass(frozen=True, slots=True)
class Pick:
    """What the principles pick. principle: 1, 2 or 3. feasible: whether its tiles fit the buffer."""

    principle: int
    schedule: OperandSchedule
    feasible: bool

    def moved(self, matmul: Matmul, accounting: Accounting) -> int:
        """Elements that the pick moves."""
        return traffic(matmul, self.schedule.stationary, self.schedule.trips, accounting)


@dataclass(frozen=True, slots=True)
class Judged:
    """A pick beside the optimum. moved: what the pick moves in the accounting that was asked for, elements.

    equal: all picks that the principles leave equal, of which `pick` is the best.
    """

    pick: Pick
    moved: int
    best: OperandSchedule
    equal: tuple[Pick, ...]

    @property
    def regret(self) -> float:
        """(pick - optimum) / optimum; 0.05 is five percent too much traffic."""
        return self.moved / self.best.traffic - 1


def buffer_class(matmul: Matmul, buffer: int) -> Class:
    """The paper's class of a buffer: Tiny, Small, Medium or Large, as the numbers of operands that move once."""
    least = min(matmul.m, matmul.k, matmul.l)
    if buffer > min(matmul.size(x) for x in OPERANDS):
        return "three"
    if 4 * buffer <= least**2:
        return "single"
    return "single/two" if 2 * buffer <= least**2 else "two"


def chosen_class(matmul: Matmul, buffer: int) -> Class:
    """The class; in the range where two are allowed the one of which the paper's equations say less traffic."""
    kind = buffer_class(matmul, buffer)
    if kind != "single/two":
        return kind
    return "single" if _first_equation(matmul, buffer) <= _third_equation(matmul, buffer) else "two"


def pick(
    matmul: Matmul, buffer: int, cutting: Cutting = "integer", accounting: Accounting = "read-modify-write"
) -> Pick | None:
    """What principles 1 to 3 pick in a buffer of so many elements; None if not even tiles of one fit.

    Of equal picks one that fits comes before one that does not, then the one that moves least in this accounting.
    """
    return _best(matmul, picks(matmul, buffer, cutting), accounting)


def picks(matmul: Matmul, buffer: int, cutting: Cutting = "integer") -> tuple[Pick, ...]:
    """All picks that the principles leave equal, each once: of the same traffic, partial sums counted once."""
    candidates = {"single": _single, "two": _two, "three": _three}[chosen_class(matmul, buffer)]
    found = tuple(dict.fromkeys(candidates(matmul, buffer, cutting)))
    least = min((p.schedule.traffic for p in found), default=0)
    return tuple(p for p in found if p.schedule.traffic == least)


def _best(matmul: Matmul, found: tuple[Pick, ...], accounting: Accounting) -> Pick | None:
    return min(found, key=lambda p: (not p.feasible, p.moved(matmul, accounting)), default=None)


def judged(matmul: Matmul, buffer: int, accounting: Accounting = "once", cutting: Cutting = "integer") -> Judged | None:
    """The pick of the principles beside the optimum, both in this accounting and cutting; None if nothing fits."""
    equal, best = picks(matmul, buffer, cutting), best_schedule(matmul, buffer, accounting, cutting)
    chosen = _best(matmul, equal, accounting)
    if chosen is None or best is None:
        return None
    return Judged(chosen, chosen.moved(matmul, accounting), best, equal)


def predicted(matmul: Matmul, buffer: int) -> float:
    """What the paper's equations say of the pick, with trips as real numbers: Eq. (1), Eq. (3), or every operand once.

    A bound and no prediction: whole trips cost more.
    """
    kind = chosen_class(matmul, buffer)
    if kind == "three":
        return float(matmul.compulsory)
    return _first_equation(matmul, buffer) if kind == "single" else _third_equation(matmul, buffer)


def _first_equation(matmul: Matmul, buffer: int) -> float:
    return 2 * matmul.operations / (sqrt(buffer + 1) - 1) + min(matmul.size(x) for x in OPERANDS)


def _third_equation(matmul: Matmul, buffer: int) -> float:
    least = min(matmul.m, matmul.k, matmul.l)
    return min(
        matmul.size(x) + matmul.size(_lacking(whole)) + matmul.operations * (least + 1) / (buffer - least)
        for whole, x in _untiled(matmul)
    )


def _single(matmul: Matmul, buffer: int, cutting: Cutting) -> Iterator[Pick]:
    """Principle 1: a smallest operand is stationary, its tile a square as large as fits."""
    side = isqrt(buffer + 1) - 1
    if side >= 1:
        for x in _smallest(matmul):
            yield Pick(1, _tiled(matmul, x, side, side, cutting), True)


def _two(matmul: Matmul, buffer: int, cutting: Cutting) -> Iterator[Pick]:
    """Principle 2: the smallest dimension whole, the other one of the stationary operand as large as fits."""
    for whole, x in _untiled(matmul):
        extent = matmul.extent(whole)
        tile = (buffer - extent) // (extent + 1)
        if tile >= 1:
            sides = (extent, tile) if OPERANDS[x][0] == whole else (tile, extent)
            yield Pick(2, _tiled(matmul, x, *sides, cutting), True)


def _three(matmul: Matmul, buffer: int, cutting: Cutting) -> Iterator[Pick]:
    """Principle 3: a smallest operand whole in the buffer."""
    for x in _smallest(matmul):
        first, second = OPERANDS[x]
        found = _tiled(matmul, x, matmul.extent(first), matmul.extent(second), cutting)
        yield Pick(3, found, found.room <= buffer)


def _tiled(matmul: Matmul, x: Operand, side1: int, side2: int, cutting: Cutting) -> OperandSchedule:
    extents = [matmul.extent(d) for d in OPERANDS[x]]
    sides = [min(side, extent) for side, extent in zip((side1, side2), extents, strict=True)]
    if cutting == "divisors":
        sides = [largest_tile(extent, side, cutting) for side, extent in zip(sides, extents, strict=True)]
    return schedule(matmul, x, sides[0], sides[1])


def _smallest(matmul: Matmul) -> tuple[Operand, ...]:
    """Every operand that no other is smaller than."""
    least = min(map(matmul.size, OPERANDS))
    return tuple(x for x in OPERANDS if matmul.size(x) == least)


def _untiled(matmul: Matmul) -> Iterator[tuple[str, Operand]]:
    """(D, stationary operand) for every smallest dimension D."""
    least = min(matmul.m, matmul.k, matmul.l)
    for whole in "MKL":
        if matmul.extent(whole) == least:
            yield from ((whole, x) for x, dimensions in OPERANDS.items() if whole in dimensions)


def _lacking(dimension: str) -> Operand:
    return next(x for x in OPERANDS if missing(x) == dimension)

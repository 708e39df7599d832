"""Traffic of one matrix multiplication between one buffer and the memory above it: the exact closed form.

A `Matmul` C[M,L] = A[M,K] B[K,L] and a buffer of so many elements come in, the best `Schedule` goes out: no search, one
scan of the O(sqrt D) trip counts of one dimension per stationary operand. One operand X is stationary; the dimension
that X lacks takes a tile of one; Y and Z, the others, come again once per trip over the dimension of X that they lack:

    traffic = |X| + |Y| n2 + |Z| n1,        room = t1 t2 + t1 + t2  (or t1 t2 + min(t1, t2) + 1)

This is the one formula of the project outside `cost/formulas/terms.py` that multiplies trips by sizes; tests hold it to
`evaluate`, to brute force and to `exact` (docs/principles.md).
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Literal

from ...dataclass import dataclass
from ...mapspace.divisors import divisors

Accounting = Literal["once", "read-modify-write"]
Cutting = Literal["integer", "divisors"]
Room = Literal["together", "apart"]
Operand = Literal["A", "B", "C"]

OPERANDS: dict[Operand, tuple[str, str]] = {"A": ("M", "K"), "B": ("K", "L"), "C": ("M", "L")}
"""The dimensions of each operand."""


@dataclass(frozen=True, slots=True)
class Matmul:
    """The sizes of C[M,L] = A[M,K] B[K,L]."""

    m: int
    k: int
    l: int

    def extent(self, dimension: str) -> int:
        return {"M": self.m, "K": self.k, "L": self.l}[dimension]

    def size(self, operand: Operand) -> int:
        """Elements of an operand."""
        first, second = OPERANDS[operand]
        return self.extent(first) * self.extent(second)

    @property
    def operations(self) -> int:
        return self.m * self.k * self.l

    @property
    def compulsory(self) -> int:
        """Elements of all three operands: what any schedule moves."""
        return sum(self.size(x) for x in OPERANDS)


@dataclass(frozen=True, slots=True)
class OperandSchedule:
    """One tiling with one operand stationary.

    tiles, trips: along M, K and L. traffic: elements moved between the buffer and the memory above. room: elements of
    the buffer in use.
    """

    stationary: Operand
    tiles: tuple[int, int, int]
    trips: tuple[int, int, int]
    traffic: int
    room: int

    @property
    def non_redundant(self) -> int:
        """How many operands move only once: 1, 2 or 3 (the paper's Single-, Two- and Three-NRA)."""
        return 1 + sum(self.trips["MKL".index(d)] == 1 for d in OPERANDS[self.stationary])


def missing(operand: Operand) -> str:
    """The dimension that an operand lacks."""
    return next(d for d in "MKL" if d not in OPERANDS[operand])


def traffic(matmul: Matmul, stationary: Operand, trips: tuple[int, int, int], accounting: Accounting) -> int:
    """Elements moved when `stationary` moves once and the others once per trip over the dimension that they lack.

    ``once`` charges a partial sum that leaves the buffer its write; ``read-modify-write`` also its way back.
    """
    total = 0
    for operand in OPERANDS:
        visits = 1 if operand == stationary else trips["MKL".index(missing(operand))]
        if operand == "C" and accounting == "read-modify-write":
            visits = 2 * visits - 1
        total += matmul.size(operand) * visits
    return total


def room_of(t1: int, t2: int, room: Room) -> int:
    """Elements in use by a stationary tile of t1 x t2 with its streams: a column and a row, or one and an element."""
    return t1 * t2 + (t1 + t2 if room == "together" else min(t1, t2) + 1)


def best_schedule(
    matmul: Matmul,
    buffer: int,
    accounting: Accounting = "once",
    cutting: Cutting = "integer",
    room: Room = "together",
    operands: tuple[Operand, ...] = tuple(OPERANDS),
) -> OperandSchedule | None:
    """The schedule of least traffic in a buffer of so many elements; None if not even tiles of one fit.

    >>> best_schedule(Matmul(1024, 768, 768), 512 * 1024).traffic
    2752512

    room: ``together`` keeps one tile of each operand at the same loop, as the FuseCU paper does; ``apart`` lets the
    stores stand at different loops, as mapping trees do. operands: which may be stationary.
    """
    found = (_best_with(matmul, x, buffer, accounting, cutting, room) for x in operands)
    return min((s for s in found if s is not None), key=lambda s: (s.traffic, s.room), default=None)


def _best_with(
    matmul: Matmul, stationary: Operand, buffer: int, accounting: Accounting, cutting: Cutting, room: Room
) -> OperandSchedule | None:
    first, second = OPERANDS[stationary]
    best: OperandSchedule | None = None
    for t1 in tile_sizes(matmul.extent(first), cutting):
        t2 = _other_tile(t1, buffer, room)
        if t2 < 1:
            break
        t2 = largest_tile(matmul.extent(second), t2, cutting)
        here = schedule(matmul, stationary, t1, t2, accounting, room)
        if best is None or (here.traffic, here.room) < (best.traffic, best.room):
            best = here
    return best


def schedule(
    matmul: Matmul, stationary: Operand, t1: int, t2: int, accounting: Accounting = "once", room: Room = "together"
) -> OperandSchedule:
    """The schedule with a stationary tile of t1 x t2 and a tile of one along the third dimension."""
    first, second = OPERANDS[stationary]
    tile = {first: t1, second: t2, missing(stationary): 1}
    tiles = (tile["M"], tile["K"], tile["L"])
    trips = (ceil_div(matmul.m, tiles[0]), ceil_div(matmul.k, tiles[1]), ceil_div(matmul.l, tiles[2]))
    moved = traffic(matmul, stationary, trips, accounting)
    return OperandSchedule(stationary, tiles, trips, moved, room_of(t1, t2, room))


def _other_tile(t1: int, buffer: int, room: Room) -> int:
    """The largest t2 with which a stationary tile of t1 fits the buffer."""
    if room == "together":
        return (buffer + 1) // (t1 + 1) - 1
    wide = (buffer - 1 - t1) // t1  # t2 >= t1: t1 t2 + t1 + 1 <= S
    return wide if wide >= t1 else (buffer - 1) // (t1 + 1)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def tile_sizes(extent: int, cutting: Cutting = "integer") -> tuple[int, ...]:
    """The tile sizes that matter, ascending: the smallest of each number of trips, or the divisors."""
    return divisors(extent) if cutting == "divisors" else _smallest(extent)


def largest_tile(extent: int, limit: int, cutting: Cutting) -> int:
    """The tile of at most `limit` with the fewest trips; of equal ones the smallest."""
    if cutting == "divisors":
        return max(t for t in divisors(extent) if t <= limit)
    return ceil_div(extent, ceil_div(extent, min(limit, extent)))


@lru_cache(maxsize=4096)
def _smallest(extent: int) -> tuple[int, ...]:
    """ceil(extent / n) for n = ..., 2, 1, each once: about 2 sqrt(extent) numbers."""
    found = [extent]
    while found[-1] > 1:
        trips = ceil_div(extent, found[-1] - 1)  # the fewest with a smaller tile
        found.append(ceil_div(extent, trips))
    return tuple(reversed(found))


def lower_bound(matmul: Matmul, buffer: int) -> float:
    """Elements that no schedule goes below: 2 M K L / sqrt(S) - 2 S (Smith et al. 2017), or each operand once.

    Holds where the output's partial sums are read back, ``read-modify-write``.
    """
    return max(2 * matmul.operations / sqrt(buffer) - 2 * buffer, float(matmul.compulsory))

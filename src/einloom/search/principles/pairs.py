"""Two matrix multiplications in a row, fused or not: the exact comparison, and principle 4 as the paper prints it.

C[M,L] = A[M,K] B[K,L], then E[M,N] = C[M,L] D[L,N], one buffer. Fused, a block of C (m x l) is computed with its
reduction innermost, used in place and never leaves the buffer; A, B, D and E are each kept across the inner loop of the
two that are shared, or streamed. What is kept takes room in both phases. Left out, as in the paper: recomputation,
keeping part of a row block, and chains of more than two (Xu et al., DAC 2025, section III-B).
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...dataclass import dataclass
from .matmul import Accounting, Cutting, Matmul, OperandSchedule, best_schedule, ceil_div, tile_sizes
from .rules import COUNTS, chosen_class

IntArray = NDArray[np.int64]
Number = TypeVar("Number", int, NDArray[np.int64])
Order = Literal["m outside", "l outside"]
ORDERS: tuple[Order, ...] = ("m outside", "l outside")
SHARED: dict[str, str] = {"A": "M", "B": "L", "D": "L", "E": "M"}
"""The shared dimension that each streamed operand has; it comes again over the other one."""
PHASES = ("AB", "DE")


@dataclass(frozen=True, slots=True)
class Pair:
    """The sizes of C[M,L] = A[M,K] B[K,L] and E[M,N] = C[M,L] D[L,N]."""

    m: int
    k: int
    l: int
    n: int

    @property
    def first(self) -> Matmul:
        return Matmul(self.m, self.k, self.l)

    @property
    def second(self) -> Matmul:
        """The second multiplication, with the paper's names of a single one."""
        return Matmul(self.m, self.l, self.n)

    def extent(self, dimension: str) -> int:
        return {"M": self.m, "L": self.l}[dimension]

    def width(self, operand: str) -> int:
        """The extent along the dimension that is not shared."""
        return self.k if operand in "AB" else self.n

    def size(self, operand: str) -> int:
        return self.extent(SHARED[operand]) * self.width(operand)

    @property
    def compulsory(self) -> int:
        """Elements of A, B, D and E: what any schedule moves."""
        return sum(self.size(x) for x in SHARED)


@dataclass(frozen=True, slots=True)
class FusedSchedule:
    """One way of fusing. tile: the block of C. kept: operands kept across the inner loop. In elements."""

    order: Order
    tile: tuple[int, int]
    trips: tuple[int, int]
    kept: str
    traffic: int
    room: int


@dataclass(frozen=True, slots=True)
class Compared:
    """A pair with its exact optima, fused and not. fused: None where no block of C fits."""

    pair: Pair
    buffer: int
    unfused: tuple[OperandSchedule, OperandSchedule]
    fused: FusedSchedule | None

    @property
    def apart(self) -> int:
        """Elements moved without fusion."""
        return sum(s.traffic for s in self.unfused)

    @property
    def best(self) -> int:
        return self.apart if self.fused is None else min(self.apart, self.fused.traffic)

    @property
    def profitable(self) -> bool:
        """True if fusing moves less."""
        return self.fused is not None and self.fused.traffic < self.apart

    def followed(self, fuse: bool) -> int:
        """Elements moved by whoever fuses or does not."""
        return self.fused.traffic if fuse and self.fused is not None else self.apart

    def principle(self, classes: Literal["exact", "threshold"] = "threshold") -> bool:
        """Principle 4: fuse if both have as many operands that move once.

        classes: of the two optima (``exact``), or of the paper's thresholds of the buffer.
        """
        if classes == "exact":
            first, second = (s.non_redundant for s in self.unfused)
            return first == second
        one, other = (COUNTS[chosen_class(x, self.buffer)] for x in (self.pair.first, self.pair.second))
        return one == other

    def regret(self, classes: Literal["exact", "threshold"] = "threshold") -> float:
        """What following principle 4 costs; 0.05 is five percent too much traffic."""
        return self.followed(self.principle(classes)) / self.best - 1


def compared(pair: Pair, buffer: int, accounting: Accounting = "once", cutting: Cutting = "integer") -> Compared | None:
    """Fused and unfused optima in a buffer of so many elements; None if not even tiles of one fit."""
    first, second = (best_schedule(x, buffer, accounting, cutting) for x in (pair.first, pair.second))
    if first is None or second is None:
        return None
    return Compared(pair, buffer, (first, second), best_fused(pair, buffer, accounting, cutting))


def best_fused(
    pair: Pair, buffer: int, accounting: Accounting = "once", cutting: Cutting = "integer"
) -> FusedSchedule | None:
    """The fused schedule of least traffic; None if no block of C fits.

    For each order, each choice of what is kept and each number of trips over the dimension outside: the room grows with
    the other tile in a straight line, so the largest that fits is known.
    """
    found = (_with(pair, order, kept, buffer, accounting, cutting) for order in ORDERS for kept in _subsets())
    return min((s for s in found if s is not None), key=lambda s: (s.traffic, s.room), default=None)


@cache
def _subsets() -> tuple[str, ...]:
    return tuple("".join(c) for n in range(5) for c in combinations("ABDE", n))


def _with(
    pair: Pair, order: Order, kept: str, buffer: int, accounting: Accounting, cutting: Cutting
) -> FusedSchedule | None:
    outer, inner = ("M", "L") if order == "m outside" else ("L", "M")
    tiles = np.array(tile_sizes(pair.extent(outer), cutting))
    most = _largest_inner(pair, order, kept, tiles, buffer)
    if not (most >= 1).any():
        return None
    others = np.array(tile_sizes(pair.extent(inner), cutting))
    other = others[np.searchsorted(others, np.maximum(most, 1), side="right") - 1]
    trips = {outer: -(-pair.extent(outer) // tiles), inner: -(-pair.extent(inner) // other)}
    moved = np.where(most >= 1, _moved(pair, kept, trips["M"], trips["L"], accounting), np.iinfo(np.int64).max)
    at = int(moved.argmin())
    block = (int(tiles[at]), int(other[at]))
    return fused_schedule(pair, order, kept, block if outer == "M" else block[::-1], accounting)


def _largest_inner(pair: Pair, order: Order, kept: str, tiles: IntArray, buffer: int) -> IntArray:
    """The largest tile along the inner shared dimension with which the block fits: each phase is linear in it."""
    found = np.full_like(tiles, pair.extent("L" if order == "m outside" else "M"))
    for phase in PHASES:
        none, one = (
            _room_in(pair, order, kept, (tiles, x) if order == "m outside" else (x, tiles), phase)
            for x in (np.zeros_like(tiles), np.ones_like(tiles))
        )
        found = np.minimum(found, (buffer - none) // (one - none))
    return found


def room_of(pair: Pair, order: Order, kept: str, block: tuple[int, int]) -> int:
    """Elements in use in the fuller of the two phases: the block, whatever is kept, and the streams of the phase."""
    return max(_room_in(pair, order, kept, block, phase) for phase in PHASES)


def _room_in(pair: Pair, order: Order, kept: str, block: tuple[Number, Number], phase: str) -> Number:
    tile = dict(zip("ML", block, strict=True))
    held = block[0] * block[1] + sum(_kept_elements(pair, order, x, tile) for x in kept)
    return held + sum(tile[SHARED[x]] for x in phase if x not in kept)


def _kept_elements(pair: Pair, order: Order, operand: str, tile: dict[str, Number]) -> Number | int:
    """What keeping an operand takes: its row block if it has the outer dimension, else the whole of it."""
    shared = SHARED[operand]
    return pair.width(operand) * (tile[shared] if shared == order[0].upper() else pair.extent(shared))


def fused_schedule(
    pair: Pair, order: Order, kept: str, block: tuple[int, int], accounting: Accounting = "once"
) -> FusedSchedule:
    """The fused schedule with such a block of C."""
    trips = {"M": ceil_div(pair.m, block[0]), "L": ceil_div(pair.l, block[1])}
    moved = _moved(pair, kept, trips["M"], trips["L"], accounting)
    return FusedSchedule(order, block, (trips["M"], trips["L"]), kept, moved, room_of(pair, order, kept, block))


def _moved(pair: Pair, kept: str, trips_m: Number, trips_l: Number, accounting: Accounting) -> Number:
    """Elements moved: what is kept once, what is streamed once per trip over the shared dimension that it lacks."""
    total = trips_m * 0
    for operand, shared in SHARED.items():
        visits = trips_m * 0 + 1 if operand in kept else trips_l if shared == "M" else trips_m
        if operand == "E" and accounting == "read-modify-write":
            visits = 2 * visits - 1
        total = total + visits * pair.size(operand)
    return total

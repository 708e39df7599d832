"""Extents as points of a lattice of prime exponents: divisibility of many pairs is one subtraction each.

Comes in: the extents of the classes. Goes out: one integer per vector of divisors, with a spare bit above each prime's
exponent, so that x divides y exactly if subtracting x's integer from y's with all spare bits set clears none."""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from ....mapspace.divisors import divisors, primes
from .pareto import IntArray

SPARSE = 0.05  # of all pairs: where fewer fit, they are found class by class
FEW = 1 << 12  # pairs that are compared at once then
DENSE = 1 << 16  # numbers up to this are ranked by a table, whatever their number
MOST = 1 << 62  # numbers that rows of extents may have
ByClass = list[tuple[IntArray, IntArray]]


class Lattice:
    """Codes of extents. bits: how many they take; `packed` is False if those are more than 62, or if some class is
    `uneven`, cut into tiles that need not divide it (there are no codes). loose: of these classes only the numbers of
    trips must suit, not the tiles."""

    def __init__(self, extents: tuple[int, ...], uneven: tuple[bool, ...] = (), loose: tuple[bool, ...] = ()) -> None:
        self.extents = extents
        self.uneven = uneven or (False,) * len(extents)
        self.loose = loose or (False,) * len(extents)
        self.values = [np.array(divisors(extent), np.int64) for extent in extents]
        tables: list[IntArray] = []
        spare, bits = 0, 0
        for extent, values in zip(extents, self.values, strict=True):
            codes = np.zeros(len(values), np.int64)
            for prime, most in _factors(extent):
                width = most.bit_length()
                if bits + width + 1 > 62:
                    bits = 63
                    break
                exponent = sum((values % prime**k == 0).astype(np.int64) for k in range(1, most + 1))
                codes += exponent << bits
                spare |= 1 << (bits + width)
                bits += width + 1
            tables.append(codes)
        self.bits = bits
        self.packed = bits <= 62 and not any(uneven)
        self._tables = tables
        self._spare = np.int64(spare if self.packed else 0)

    def codes(self, x: IntArray) -> IntArray:
        """One integer per row of extents, each a divisor of its class's extent."""
        total = np.zeros(len(x), np.int64)
        for d, values in enumerate(self.values):
            if len(values) > 1:
                table, mine = self._dense[d], x[:, d]
                total += self._tables[d][np.searchsorted(values, mine)] if table is None else table[mine]
        return total

    def numbers(self, x: IntArray) -> IntArray | None:
        """One integer per row of extents, of whatever size up to the class's; None if those are too many."""
        if self.packed:
            return self.codes(x)
        if prod(extent + 1 for extent in self.extents) >= MOST:
            return None
        total = np.zeros(len(x), np.int64)
        for d, extent in enumerate(self.extents):
            total = total * (extent + 1) + x[:, d]
        return total

    @cached_property
    def _dense(self) -> list[IntArray | None]:
        """Tables by extent, for extents that are not too large for one."""
        found: list[IntArray | None] = []
        for extent, values, codes in zip(self.extents, self.values, self._tables, strict=True):
            table = np.zeros(extent + 1, np.int64) if extent <= 1 << 18 else None
            if table is not None:
                table[values] = codes
            found.append(table)
        return found

    def pairs(self, inner: ByClass, outer: IntArray) -> tuple[IntArray, IntArray]:
        """(row of `outer`, row of `inner`) of all pairs, in this order, in which loops may cut every extent of `outer`
        [m, classes] into that of `inner` [n, classes, of which there is one at least].

        Where few are, rows are told apart class by class, so that most pairs are never looked at.
        """
        suits = sorted(self._suits(inner, outer), key=lambda one: one.share)
        length = len(inner[0][1])
        if prod(one.share for one in suits) > SPARSE:
            which, row = np.nonzero(_all_suit(suits, len(outer), length))
            return which, row
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        _sparse_pairs(suits, np.arange(len(outer)), np.arange(length), found)
        which, row = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.lexsort((row, which))
        return which[order], row[order]

    def _suits(self, inner: ByClass, outer: IntArray) -> list[_Suit]:
        """What each class says of pairs, but where it says yes to all."""
        found = []
        for d, ((above, row), (below, column)) in enumerate(zip(by_class(outer), inner, strict=True)):
            table = self.suit(d, below, above)
            if not table.all():
                found.append(_Suit(table, row, column))
        return found

    def suit(self, d: int, inner: IntArray, outer: IntArray) -> NDArray[np.bool_]:
        """[n], [m] extents of one class -> [m, n]: may loops cut that of `outer` into that of `inner`?"""
        extent, above = self.extents[d], outer[:, None]
        table = -(-extent // above) <= -(-extent // inner) if self.loose[d] else above % inner == 0
        if self.uneven[d]:
            table |= above == extent  # the outermost loop may leave a smaller last tile
        return np.asarray(table)

    def divides(self, inner: IntArray, outer: IntArray) -> NDArray[np.bool_]:
        """[n], [m] codes -> [m, n]: does every extent of `inner` divide that of `outer`?"""
        return np.asarray((((outer | self._spare)[:, None] - inner) & self._spare) == self._spare)


class _Suit:
    """Which extents of one class go together: table [above, below], and the place of each row's extent in it. share: of
    all pairs of rows, those that go together."""

    def __init__(self, table: NDArray[np.bool_], above: IntArray, below: IntArray) -> None:
        self.table, self.above, self.below = table, above, below
        counts = np.bincount(above, minlength=len(table)) @ table @ np.bincount(below, minlength=table.shape[1])
        self.share = float(counts) / max(len(above) * len(below), 1)


def _all_suit(suits: list[_Suit], outer: int, inner: int) -> NDArray[np.bool_]:
    """[outer, inner]: do the two rows suit every class?"""
    good = np.ones((outer, inner), bool)
    for one in suits:
        good &= one.table[one.above][:, one.below]
    return good


def _sparse_pairs(suits: list[_Suit], outer: IntArray, inner: IntArray, found: list[tuple[IntArray, IntArray]]) -> None:
    """Add all pairs of these rows that suit every class. The first class tells the rows apart."""
    if not len(outer) or not len(inner):
        return
    if not suits or len(outer) * len(inner) <= FEW:
        good = np.ones((len(outer), len(inner)), bool)
        for one in suits:
            good &= one.table[one.above[outer][:, None], one.below[inner]]
        which, row = np.nonzero(good)
        found.append((outer[which], inner[row]))
        return
    first, *others = suits
    values, places = first.above[outer], first.below[inner]
    order = np.argsort(values, kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(values[order])) + 1):
        _sparse_pairs(others, outer[some], inner[first.table[values[some[0]], places]], found)


def by_class(x: IntArray) -> ByClass:
    """Of each class the distinct extents in the rows of `x` [n, classes], and the place of each row's among them."""
    return [distinct(x[:, d]) for d in range(x.shape[1])]


def distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, none negative, ascending, and the place of each value among them.

    >>> [found.tolist() for found in distinct(np.array([4, 2, 4]))]
    [[2, 4], [1, 0, 1]]
    """
    most = int(values.max(initial=0))
    if most > max(DENSE, 4 * len(values)):
        unique, place = np.unique(values, return_inverse=True)
        return unique, place.reshape(-1)
    known = np.zeros(most + 1, bool)
    known[values] = True
    return np.flatnonzero(known), (np.cumsum(known) - 1)[values]


def _factors(n: int) -> list[tuple[int, int]]:
    """The prime factors, each with how often it divides the number."""
    return [(p, max(k for k in range(1, n.bit_length()) if n % p**k == 0)) for p in primes(n)]

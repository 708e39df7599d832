"""Extents as points of a lattice of prime exponents: divisibility of many pairs is one subtraction each.

Comes in: the extents of the classes. Goes out: one integer per vector of divisors, with a spare bit above each prime's
exponent, so that x divides y exactly if subtracting x's integer from y's with all spare bits set clears none."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....mapspace.divisors import divisors
from .pareto import IntArray

DENSE = 1 << 16  # numbers up to this are ranked by a table, whatever their number


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
                table = self._dense[d]
                total += table[x[:, d]] if table is not None else self._sparse(d, x[:, d])
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

    def _sparse(self, d: int, x: IntArray) -> IntArray:
        return self._tables[d][np.searchsorted(self.values[d], x)]

    def fits(self, inner: IntArray, outer: IntArray) -> NDArray[np.bool_]:
        """[n, classes], [m, classes] extents -> [m, n]: may loops cut every extent of `outer` into that of `inner`?"""
        good = np.ones((len(outer), len(inner)), bool)
        for d, (extent, uneven, loose) in enumerate(zip(self.extents, self.uneven, self.loose, strict=True)):
            above, row = distinct(outer[:, d])
            below, column = distinct(inner[:, d])
            table = above[:, None] % below == 0
            if loose:
                table = -(-extent // above[:, None]) <= -(-extent // below)
            if uneven:
                table |= above[:, None] == extent  # the outermost loop may leave a smaller last tile
            if not table.all():
                good &= table[row][:, column]
        return good

    def divides(self, inner: IntArray, outer: IntArray) -> NDArray[np.bool_]:
        """[n], [m] codes -> [m, n]: does every extent of `inner` divide that of `outer`?"""
        return np.asarray((((outer | self._spare)[:, None] - inner) & self._spare) == self._spare)


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
    found, p = [], 2
    while n > 1:
        count = 0
        while n % p == 0:
            n //= p
            count += 1
        if count:
            found.append((p, count))
        p = p + 1 if p * p <= n else n
    return found

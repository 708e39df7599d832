"""Sums of monomials of trips that nobody has chosen yet: the formulas of `cost` take them for numbers.

Comes in: the trips of a loop, as a coordinate; sizes and trips that stand are plain numbers. Goes out: what a formula
makes of them, as factors and rows of exponents.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Terms = list[tuple[float, Floats]]  # (factor, row): factor * 2 ** (row @ (x, 1))


class Monomials:
    """The sum of ``factor * 2 ** (row @ (x, 1))``. x: logarithms of trips, of which nobody knows more than that they
    divide what they are to divide; so a quotient by one monomial is exact. Made thousands of times for one state, so it
    is no dataclass."""

    __slots__ = ("terms",)

    def __init__(self, terms: tuple[tuple[float, Floats], ...]) -> None:
        self.terms = terms

    @staticmethod
    def power(row: Floats) -> Monomials:
        """Two to the power of a row over the coordinates and 1."""
        exponents = row.copy()
        exponents[-1] = 0.0
        return Monomials(((2.0 ** float(row[-1]), exponents),))

    def __mul__(self, other: Monomials | float) -> Monomials:
        if isinstance(other, Monomials):
            return Monomials(tuple([(a * b, r + s) for a, r in self.terms for b, s in other.terms]))
        return Monomials(tuple([(a * other, r) for a, r in self.terms]))

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> Monomials:
        return Monomials(tuple([(a / other, r) for a, r in self.terms]))

    def __floordiv__(self, other: Monomials | float) -> Monomials:
        return self * other._inverse() if isinstance(other, Monomials) else self / other

    def __rfloordiv__(self, other: float) -> Monomials:
        return self._inverse() * other

    def _inverse(self) -> Monomials:
        ((factor, row),) = self.terms
        return Monomials(((1 / factor, -row),))

    def __add__(self, other: Monomials | float) -> Monomials:
        more = other.terms if isinstance(other, Monomials) else ((float(other), np.zeros_like(self.terms[0][1])),)
        return Monomials((*self.terms, *more))

    __radd__ = __add__

    def __sub__(self, other: Monomials | float) -> Monomials:
        return self + other * -1.0

    def __rsub__(self, other: float) -> Monomials:
        return self * -1.0 + other


def terms_of(found: Monomials | float, size: int) -> Terms:
    """Factors and rows, one for each row. size: numbers in a row."""
    if not isinstance(found, Monomials):
        return [(float(found), np.zeros(size))] if found else []
    sums: dict[bytes, tuple[float, Floats]] = {}
    for factor, row in found.terms:
        key = (row + 0.0).tobytes()  # no negative zeros
        sums[key] = sums.get(key, (0.0, row))[0] + factor, row
    return [(factor, row) for factor, row in sums.values() if factor]

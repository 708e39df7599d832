"""What arithmetic may call: ``sqrt``, ``log2``, ``min``, ``max``, ``ceil``, ``floor``; ``table`` for printed values.

Comes in: numbers with their dimensions. Goes out: one; exact where the answer is rational, else the nearest float's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from ..errors import SpecError
from .dimensions import PLAIN, Dimension, Measure, dimension_text, of_sum


def called(name: str, given: Sequence[Measure], text: str) -> Measure:
    """What a function makes of numbers. text: the whole expression, for messages. Raises SpecError."""
    try:
        return FUNCTIONS[name](given, f"{name}() in {text!r}")
    except OverflowError:
        raise SpecError(f"a number in {text!r} is too large") from None


def real_power(number: Measure, exponent: Fraction, text: str) -> Measure:
    """A power that is not whole, of a plain number above 0.

    >>> real_power(Measure(Fraction(4)), Fraction(1, 2), "4 ** 0.5").value
    Fraction(2, 1)
    """
    base = number.value
    if number.dimension != PLAIN:
        unit = dimension_text(number.dimension)
        raise SpecError(f"a number in {unit} has no power {float(exponent):g} in {text!r}; divide by a unit before")
    if base <= 0:
        raise SpecError(f"a power with the exponent {float(exponent):g} needs a number above 0 in {text!r}")
    try:
        found = _root(base) if exponent == Fraction(1, 2) else Fraction(float(base) ** float(exponent))
    except OverflowError:
        raise SpecError(f"a number in {text!r} is too large") from None
    return Measure(found)


def _root(number: Fraction) -> Fraction:
    """The square root, exact where it is rational."""
    above, below = math.isqrt(number.numerator), math.isqrt(number.denominator)
    if above * above == number.numerator and below * below == number.denominator:
        return Fraction(above, below)
    return Fraction(math.sqrt(number))


def _sqrt(given: Sequence[Measure], said: str) -> Measure:
    one = _plain(given, said)
    if one < 0:
        raise SpecError(f"{said} is of a number below 0")
    return Measure(_root(one))


def _log2(given: Sequence[Measure], said: str) -> Measure:
    one = _plain(given, said)
    if one <= 0:
        raise SpecError(f"{said} is of a number that is not above 0")
    bits = one.numerator.bit_length() - one.denominator.bit_length()
    return Measure(Fraction(bits) if one == Fraction(2) ** bits else Fraction(math.log2(one)))


def _plain(given: Sequence[Measure], said: str) -> Fraction:
    """The one number without a unit that a function takes."""
    if len(given) != 1:
        raise SpecError(f"{said} takes one number, not {len(given)}")
    if given[0].dimension != PLAIN:
        unit = dimension_text(given[0].dimension)
        raise SpecError(f"{said} takes a plain number, not one in {unit}; divide by a unit, as in glb / KiB")
    return given[0].value


def _whole(rounded: Callable[[Fraction], int]) -> Callable[[Sequence[Measure], str], Measure]:
    def of(given: Sequence[Measure], said: str) -> Measure:
        return Measure(Fraction(rounded(_plain(given, said))))

    return of


def _chosen(choose: Callable[[Sequence[Fraction]], Fraction]) -> Callable[[Sequence[Measure], str], Measure]:
    def of(given: Sequence[Measure], said: str) -> Measure:
        if not given:
            raise SpecError(f"{said} takes one number or more")
        return Measure(choose([one.value for one in given]), _common(given, said))

    return of


def _common(given: Sequence[Measure], said: str) -> Dimension:
    """The dimension of all; a plain number is in the SI unit of the others."""
    found = given[0].dimension
    for one in given[1:]:
        both = of_sum(found, one.dimension)
        if both is None:
            raise SpecError(f"{said} has values of different units, {_unit(found)} and {_unit(one.dimension)}")
        found = both
    return found


def _unit(powers: Dimension) -> str:
    return dimension_text(powers)


def _table(given: Sequence[Measure], said: str) -> Measure:
    """``table(x, x0, y0, x1, y1, ...)``: printed values; between two of them the straight line in logarithms."""
    if len(given) < 5 or len(given) % 2 == 0:
        raise SpecError(f"{said} takes a number and two or more pairs: table(glb, 8 KiB, 1.1 pJ, 64 KiB, 2.6 pJ)")
    at, firsts, seconds = given[0].value, given[1::2], given[2::2]
    _common([given[0], *firsts], said)
    values, dimension = [one.value for one in seconds], _common(seconds, said)
    places = [one.value for one in firsts]
    if not all(a < b for a, b in pairwise(places)) or min(*places, *values) <= 0:
        raise SpecError(f"the pairs of {said} are numbers above 0, the first ones ascending")
    if not places[0] <= at <= places[-1]:
        side, end = ("below", places[0]) if at < places[0] else ("above", places[-1])
        one, other = (f"{float(value):g} {_unit(given[1].dimension)}".removesuffix(" 1") for value in (at, end))
        raise SpecError(f"{said}: {one} is {side} all of the table, which ends at {other}")
    for (x, y), (further, then) in pairwise(zip(places, values, strict=True)):
        if at in (x, further):
            return Measure(y if at == x else then, dimension)
        if x < at < further:
            part = math.log(at / x) / math.log(further / x)
            return Measure(Fraction(float(y) * float(then / y) ** part), dimension)
    raise AssertionError(at)  # it is between the ends


FUNCTIONS: dict[str, Callable[[Sequence[Measure], str], Measure]] = {
    "sqrt": _sqrt,
    "log2": _log2,
    "min": _chosen(min),
    "max": _chosen(max),
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "table": _table,
}

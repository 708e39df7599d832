"""Numbers with a dimension: what ``64 * KiB`` is before it is known what the number is for.

Below `arithmetic` and `units`. A dimension is the power of each base unit; a number without any is plain, and stands
for a number in SI wherever a dimension is expected.
"""

from __future__ import annotations

from fractions import Fraction

from ..dataclass import dataclass

Dimension = tuple[int, ...]
"""The powers of `BASES`, in their order."""
BASES = ("bit", "op", "J", "m", "s")
PLAIN: Dimension = (0,) * len(BASES)


@dataclass(frozen=True, slots=True)
class Measure:
    """An exact number in SI and its dimension.

    >>> Measure(Fraction(8), dimension(bit=1, s=-1))
    Measure(value=Fraction(8, 1), dimension=(1, 0, 0, 0, -1))
    """

    value: Fraction
    dimension: Dimension = PLAIN


def dimension(**powers: int) -> Dimension:
    """The dimension with these powers of base units: ``dimension(bit=1, s=-1)`` is that of a throughput."""
    return tuple(powers.get(base, 0) for base in BASES)


def of_product(left: Dimension, right: Dimension, power: int = 1) -> Dimension:
    """The dimension of ``left * right**power``."""
    return tuple(a + power * b for a, b in zip(left, right, strict=True))


def of_sum(left: Dimension, right: Dimension) -> Dimension | None:
    """The dimension of a sum, of which plain terms take the other's; None if the terms differ."""
    if left == right or right == PLAIN:
        return left
    return right if left == PLAIN else None


def dimension_text(powers: Dimension) -> str:
    """The dimension in base units, ``bit/s`` or ``J*bit``; a plain one is ``1``.

    >>> dimension_text(dimension(bit=1, s=-1))
    'bit/s'
    """
    above = "*".join(_power(base, power) for base, power in zip(BASES, powers, strict=True) if power > 0)
    below = [_power(base, -power) for base, power in zip(BASES, powers, strict=True) if power < 0]
    return "/".join((above or "1", *below))


def _power(base: str, power: int) -> str:
    return base if power == 1 else f"{base}^{power}"

"""Values half-way between two quantised numbers: the last place of what comes before says which way they are rounded.

The model and its interpretation add in another order, so each may round such a value its own way. `both_ways` says what
the interpretation yields for either.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from itertools import product

import numpy as np

from .program import Array

SHARE = 1e-5
"""Of the largest value, what single precision may lose over some hundred layers."""
MARGIN = 0.01
"""No value counts as half-way that is farther from it than this part of a step."""
COMBINED = 3
"""Roundings of one Einsum whose ways are combined; more go up or down together."""
Ways = dict[str, int]
_WAYS: ContextVar[Ways | None] = ContextVar("ways", default=None)


def nearest(quotient: Array, name: str) -> Array:
    """The nearest integers. name: of the rounding; values that are half-way go where `both_ways` sends them."""
    found, ways = np.rint(quotient), _WAYS.get()
    if ways is None:
        return found
    finite = np.where(np.isfinite(quotient), quotient, 0)
    below = np.floor(finite)
    half = np.abs(finite - below - 0.5) <= min(MARGIN, SHARE * float(np.abs(finite).max(initial=0)))
    if half.any() and (way := ways.setdefault(name, 0)):
        found = np.where(half & np.isfinite(quotient), below + (way > 0), found)
    return found


def both_ways(run: Callable[[], Array]) -> tuple[Array, Array, Array]:
    """What `run` yields, and the least and the largest of what it yields with values half-way rounded up or down."""
    ways: Ways = {}
    array = _sent(run, ways)
    low = high = array
    several = len(ways) <= COMBINED
    for signs in product((-1, 1), repeat=len(ways) if several else 1):
        each = signs if several else signs * len(ways)
        other = _sent(run, dict(zip(ways, each, strict=True))) if ways else array
        low, high = np.minimum(low, other), np.maximum(high, other)
    return array, low, high


def _sent(run: Callable[[], Array], ways: Ways) -> Array:
    token = _WAYS.set(ways)
    try:
        return run()
    finally:
        _WAYS.reset(token)

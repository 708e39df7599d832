"""The functions of ``map`` Einsums, in C and in NumPy.

``gelu`` is its form with tanh. ``softmax`` and ``elementwise`` say nothing about one value, so something else stands
for them: ``STAND_INS``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

STAND_INS = ("softmax", "elementwise")
"""Functions that have no meaning value by value; the sum of x / (1 + |x|) over the operands stands for them."""

_UNARY: dict[str, tuple[str, Callable[[Floats], Any]]] = {
    "exp": ("exp({0})", np.exp),
    "log": ("log({0})", np.log),
    "sqrt": ("sqrt({0})", np.sqrt),
    "rsqrt": ("1 / sqrt({0})", lambda x: 1 / np.sqrt(x)),
    "reciprocal": ("1 / {0}", lambda x: 1 / x),
    "neg": ("-{0}", np.negative),
    "abs": ("fabs({0})", np.abs),
    "square": ("{0} * {0}", np.square),
    "relu": ("fmax({0}, 0)", lambda x: np.maximum(x, 0)),
    "relu6": ("fmin(fmax({0}, 0), 6)", lambda x: np.clip(x, 0, 6)),
    "gelu": ("0.5 * {0} * (1 + tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})))", lambda x: _gelu(x)),
    "silu": ("{0} / (1 + exp(-{0}))", lambda x: x / (1 + np.exp(-x))),
    "sigmoid": ("1 / (1 + exp(-{0}))", lambda x: 1 / (1 + np.exp(-x))),
    "tanh": ("tanh({0})", np.tanh),
}
_FOLDED: dict[str, tuple[str, Callable[[Floats, Floats], Any]]] = {
    "add": ("{0} + {1}", np.add),
    "mul": ("{0} * {1}", np.multiply),
    "max": ("fmax({0}, {1})", np.maximum),
    "min": ("fmin({0}, {1})", np.minimum),
    "sub": ("{0} - {1}", np.subtract),
    "div": ("{0} / {1}", np.divide),
}


def _gelu(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))


def in_c(function: str, values: list[str]) -> str:
    """The C expression of a function of some values, each a name or a number.

    >>> in_c("add", ["a", "b", "c"]), in_c("relu", ["a"])
    ('((a + b) + c)', '(fmax(a, 0))')
    """
    if function in _FOLDED:
        text = _FOLDED[function][0]
        return reduce(lambda left, right: f"({text.format(left, right)})", values)
    if function in _UNARY:
        return f"({_UNARY[function][0].format(values[0])})"
    if function in STAND_INS:
        return "(" + " + ".join(f"{value} / (1 + fabs({value}))" for value in values) + ")"
    return values[0]  # identity and copy


def in_numpy(function: str, values: list[Floats]) -> Floats:
    """The same on arrays. Shapes: all alike, or such that NumPy broadcasts them."""
    with np.errstate(all="ignore"):
        if function in _FOLDED:
            return np.asarray(reduce(_FOLDED[function][1], values))
        if function in _UNARY:
            return np.asarray(_UNARY[function][1](values[0]))
        if function in STAND_INS:
            return np.asarray(sum(value / (1 + np.abs(value)) for value in values))
    return values[0]

"""Elementwise operators: one map each, with the NumPy function that it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from ..graph import OnnxNode
from ..lower import Cut, Lowering
from ..program import Array, Meaning
from ..ranks import View

erf = np.vectorize(math.erf, otypes=[float])
Make = Callable[[OnnxNode], Meaning]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


def gelu(node: OnnxNode) -> Meaning:
    if node.get("approximate", "none") == "tanh":
        return lambda a: 0.5 * a[0] * (1 + np.tanh(math.sqrt(2 / math.pi) * (a[0] + 0.044715 * a[0] ** 3)))
    return lambda a: 0.5 * a[0] * (1 + erf(a[0] / math.sqrt(2)))


def divide(node: OnnxNode) -> Meaning:
    def run(a: Sequence[Array]) -> Array:
        if a[0].dtype.kind not in "iu":
            return a[0] / a[1]
        quotient = np.floor_divide(a[0], a[1])
        return quotient + ((quotient < 0) & (quotient * a[1] != a[0])).astype(quotient.dtype)

    return run


def _fold(function: Callable[[Array, Array], Array]) -> Make:
    return lambda node: lambda a: reduce(function, a)


def _plain(function: Callable[..., Any]) -> Make:
    return lambda node: lambda a: function(*a)


def _with(function: Callable[..., Any], **defaults: float) -> Make:
    """Of one operand, and of numbers that attributes give, by default these."""

    def make(node: OnnxNode) -> Meaning:
        numbers = {name: node.get(name, default) for name, default in defaults.items()}
        return lambda a: function(a[0], **numbers)

    return make


def is_infinite(x: Array, detect_positive: int, detect_negative: int) -> Array:
    return np.isinf(x) & ((x > 0) * bool(detect_positive) | (x < 0) * bool(detect_negative))


UNNAMED: Mapping[str, Callable[..., Any]] = {
    "Floor": np.floor, "Ceil": np.ceil, "Round": np.round, "Sign": np.sign, "Erf": erf, "Not": np.logical_not,
    "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
    "Sinh": np.sinh, "Cosh": np.cosh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
    "IsNaN": np.isnan, "BitwiseNot": np.bitwise_not, "Softplus": softplus,
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Mish": lambda x: x * np.tanh(softplus(x)),
    "PRelu": lambda x, slope: np.where(x < 0, slope * x, x),
    "Where": np.where, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
    "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}  # fmt: skip
"""Operators without a name in the notation."""
UNNAMED_WITH_NUMBERS: Mapping[str, Make] = {
    "Selu": _with(
        lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
        alpha=1.6732632423543772, gamma=1.0507009873554805,
    ),
    "Elu": _with(lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))), alpha=1.0),
    "Celu": _with(lambda x, alpha: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)), alpha=1.0),
    "LeakyRelu": _with(lambda x, alpha: np.where(x < 0, alpha * x, x), alpha=0.01),
    "HardSigmoid": _with(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), alpha=0.2, beta=0.5),
    "Shrink": _with(
        lambda x, bias, lambd: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)), bias=0.0, lambd=0.5,
    ),
    "ThresholdedRelu": _with(lambda x, alpha: np.where(x > alpha, x, 0), alpha=1.0),
    "IsInf": _with(is_infinite, detect_positive=1, detect_negative=1),
}  # fmt: skip
MAPS: Mapping[str, tuple[str, Make]] = {
    **{name: ("elementwise", _plain(function)) for name, function in UNNAMED.items()},
    **{name: ("elementwise", make) for name, make in UNNAMED_WITH_NUMBERS.items()},
    "Exp": ("exp", _plain(np.exp)),
    "Log": ("log", _plain(np.log)),
    "Sqrt": ("sqrt", _plain(np.sqrt)),
    "Reciprocal": ("reciprocal", _plain(lambda x: 1 / x)),
    "Neg": ("neg", _plain(np.negative)),
    "Abs": ("abs", _plain(np.abs)),
    "Relu": ("relu", _plain(lambda x: np.maximum(x, 0))),
    "Sigmoid": ("sigmoid", _plain(sigmoid)),
    "Tanh": ("tanh", _plain(np.tanh)),
    "Gelu": ("gelu", gelu),
    "Swish": ("silu", _with(lambda x, alpha: x * sigmoid(alpha * x), alpha=1.0)),
    "Add": ("add", _plain(np.add)),
    "Sub": ("sub", _plain(np.subtract)),
    "Mul": ("mul", _plain(np.multiply)),
    "Div": ("div", divide),
    "Max": ("max", _fold(np.maximum)),
    "Min": ("min", _fold(np.minimum)),
    "Sum": ("add", _fold(np.add)),
    "Mean": ("elementwise", lambda node: lambda a: sum(a[1:], a[0]) / len(a)),
    "Mod": ("elementwise", lambda node: _plain(np.fmod if node.get("fmod", 0) else np.mod)(node)),
    "BitShift": (
        "elementwise",
        lambda node: _plain(np.left_shift if node.get("direction") == "LEFT" else np.right_shift)(node),
    ),
}


def _map(p: Lowering, node: OnnxNode) -> View:
    function, make = MAPS[node.operator]
    given = [name for name in node.inputs if name]
    if node.get("broadcast") is not None or node.get("axis") is not None:
        raise Cut("broadcasting of before opset 7")
    return p.pointwise([p.view(name) for name in given], function, make(node), node.outputs[0])


def _pow(p: Lowering, node: OnnxNode) -> View:
    kind = p.graph.types[node.outputs[0]]

    def power(a: Sequence[Array]) -> Array:
        return np.power(a[0].astype(float), a[1].astype(float)).astype(kind if kind.kind in "iu" else float)

    exponent = p.graph.constants.get(node.inputs[1])
    square = exponent is not None and exponent.size == 1 and float(exponent.reshape(-1)[0]) == 2
    if square and kind.kind == "f":
        return p.pointwise([p.view(node.inputs[0])], "square", lambda a: a[0] * a[0], node.outputs[0])
    return p.pointwise([p.view(name) for name in node.inputs], "elementwise", power, node.outputs[0])


def _clip(p: Lowering, node: OnnxNode) -> View:
    low, high = node.get("min"), node.get("max")
    names = (*node.inputs[1:], "", "")[:2]
    given = [name for name in names if name]

    def clip(a: Sequence[Array]) -> Array:
        rest = list(a[1:])
        least = rest.pop(0) if names[0] else low
        most = rest.pop(0) if names[1] else high
        found = a[0] if least is None else np.maximum(a[0], least)
        return found if most is None else np.minimum(found, most)

    values = [p.graph.constants.get(name) for name in given]
    numbers = [float(v.reshape(-1)[0]) for v in values if v is not None and v.size == 1]
    relu6 = numbers == [0, 6] or (low, high) == (0, 6)
    views = [p.view(name) for name in (node.inputs[0], *given)]
    return p.pointwise(views, "relu6" if relu6 else "elementwise", clip, node.outputs[0])


def _batch_norm(p: Lowering, node: OnnxNode) -> View:
    if node.get("training_mode", 0) or any(node.outputs[1:]):
        raise Cut("BatchNormalization in training mode")
    epsilon = node.get("epsilon", 1e-5)
    x = p.view(node.inputs[0])
    shape = [1, x.shape[1] if len(x.dims) > 1 else 1, *[1] * (len(x.dims) - 2)]
    rest = [p.reshaped(p.view(name), shape[: max(len(x.dims), 2)]) for name in node.inputs[1:5]]

    def normal(a: Sequence[Array]) -> Array:
        value, scale, bias, mean, variance = a
        return scale * (value - mean) / np.sqrt(variance + epsilon) + bias

    return p.pointwise([x, *rest], "elementwise", normal, node.outputs[0])


def _trilu(p: Lowering, node: OnnxNode) -> View:
    view = p.view(node.inputs[0])
    k = 0
    if len(node.inputs) > 1 and node.inputs[1]:
        value = p.constant(node.inputs[1])
        k = 0 if value is None else int(value.reshape(-1)[0])
    ones = np.ones(view.shape[-2:], bool)
    mask = p.made(np.triu(ones, k) if node.get("upper", 1) else np.tril(ones, k), "mask")
    zero = p.graph.types[node.outputs[0]].type(0)
    return p.pointwise([view, mask], "elementwise", lambda a: np.where(a[1], a[0], zero), node.outputs[0])


TABLE: Mapping[str, Callable[[Lowering, OnnxNode], View]] = MappingProxyType(
    {
        **dict.fromkeys(MAPS, _map),
        "Pow": _pow,
        "Clip": _clip,
        "BatchNormalization": _batch_norm,
        "Trilu": _trilu,
    }
)

"""Operators that reduce: Reduce*, pools, softmax, norms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..graph import OnnxNode
from ..lower import Cut, Lowering, Refused
from ..program import Array, Meaning, Reduction
from ..ranks import View
from .products import slides, windows


class Reducing(NamedTuple):
    """A reduction in parts: the map before it, the reduction, the map after it (of the result and the count)."""

    before: tuple[str, Meaning] | None
    reduction: Reduction
    after: Callable[[Array, int], Array] | None = None


REDUCTIONS: Mapping[str, Reducing] = MappingProxyType(
    {
        "ReduceSum": Reducing(None, "sum"),
        "ReduceMax": Reducing(None, "max"),
        "ReduceMin": Reducing(("neg", lambda a: -a[0]), "max", lambda x, n: -x),
        "ReduceMean": Reducing(None, "sum", lambda x, n: x / n),
        "ReduceL1": Reducing(("abs", lambda a: np.abs(a[0])), "sum"),
        "ReduceL2": Reducing(("square", lambda a: a[0] * a[0]), "sum", lambda x, n: np.sqrt(x)),
        "ReduceSumSquare": Reducing(("square", lambda a: a[0] * a[0]), "sum"),
        "ReduceLogSum": Reducing(None, "sum", lambda x, n: np.log(x)),
        "ReduceLogSumExp": Reducing(("exp", lambda a: np.exp(a[0])), "sum", lambda x, n: np.log(x)),
    }
)


def _reduced(p: Lowering, x: View, dims: Sequence[int], how: Reducing, keep: bool, value: str | None) -> View:
    function, meaning = how.before or ("", None)
    count = prod(x.shape[dim] for dim in dims)
    after = how.after
    name = value if after is None else None
    if after is None and count == 1 and meaning is None:
        return p.reshaped(x, [size for i, size in enumerate(x.shape) if keep or i not in dims])
    view = p.reduce([x], dims, how.reduction, function, meaning, name, keep)
    return view if after is None else p.pointwise([view], "elementwise", lambda a: after(a[0], count), value)


def _reduce(p: Lowering, node: OnnxNode) -> View:
    x = p.view(node.inputs[0])
    axes = node.get("axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1]:
        listed = p.constant(node.inputs[1])
        if listed is None:
            raise Cut("axes that are not kept")
        axes = [int(i) for i in listed.reshape(-1)]
    if p.graph.types[node.inputs[0]].kind == "b":
        raise Cut("a reduction of Boolean values")
    if not axes and node.get("noop_with_empty_axes", 0):
        if REDUCTIONS[node.operator].before is None and node.operator != "ReduceLogSum":
            return x
        raise Cut("a reduction of no axes")
    dims = sorted({int(axis) % len(x.dims) for axis in axes}) if axes else list(range(len(x.dims)))
    how = REDUCTIONS[node.operator]
    if node.operator in ("ReduceMean", "ReduceMin") and p.graph.types[node.inputs[0]].kind in "iu":
        raise Cut("a reduction of integers that divides or negates")
    return _reduced(p, x, dims, how, bool(node.get("keepdims", 1)), node.outputs[0])


def _global(how: Reducing) -> Callable[[Lowering, OnnxNode], View]:
    def lower(p: Lowering, node: OnnxNode) -> View:
        x = p.view(node.inputs[0])
        return _reduced(p, x, range(2, len(x.dims)), how, True, node.outputs[0])

    return lower


def _pool(p: Lowering, node: OnnxNode) -> View:
    if len(node.outputs) > 1 and node.outputs[1]:
        raise Refused("yields the places of its maxima")
    x = p.view(node.inputs[0])
    kernel, spatial = node.get("kernel_shape"), p.shape(node.outputs[0])[2:]
    if p.graph.types[node.inputs[0]].kind in "iu" and node.operator != "MaxPool":
        raise Cut("a pooling of integers that divides")
    moved, _ = windows(p, node, x, kernel, 2, spatial)
    dims = [3 + 2 * i for i in range(len(kernel))]
    power = node.get("p", 2)
    match node.operator:
        case "MaxPool":
            return p.reduce([moved], dims, "max", value=node.outputs[0], keep=False)
        case "LpPool":
            view = p.reduce([moved], dims, "sum", "elementwise", lambda a: np.abs(a[0]) ** power, keep=False)
            return p.pointwise([view], "elementwise", lambda a: a[0] ** (1 / power), node.outputs[0])
        case _:
            view = p.reduce([moved], dims, "sum", keep=False)
            divisors = p.made(_divisors(node, x.shape[2:], kernel, spatial), "divisors")
            return p.pointwise([view, divisors], "div", lambda a: a[0] / a[1], node.outputs[0])


def _divisors(node: OnnxNode, sizes: Sequence[int], kernel: Sequence[int], spatial: Sequence[int]) -> Array:
    """How many values each average is of; one number where all are equal."""
    rank = len(kernel)
    strides, dilations, pads = slides(node, sizes, kernel, spatial)
    explicit = node.get("pads") or [0] * (2 * rank)
    ends = explicit[rank:] if node.get("auto_pad", "NOTSET") == "NOTSET" else pads
    counts = np.ones(())
    for i in range(rank):
        taken = np.arange(spatial[i])[:, None] * strides[i] + np.arange(kernel[i])[None, :] * dilations[i] - pads[i]
        low, high = (-pads[i], sizes[i] + ends[i]) if node.get("count_include_pad", 0) else (0, sizes[i])
        counts = counts[..., None] * ((taken >= low) & (taken < high)).sum(1)
    return counts if np.any(counts != counts.flat[0]) else np.array(counts.flat[0])


def _softmax(p: Lowering, node: OnnxNode) -> View:
    x = p.view(node.inputs[0])
    shape = x.shape
    axis = node.get("axis", -1 if node.version >= 13 else 1) % max(len(shape), 1)
    if node.version < 13:
        x = p.reshaped(x, [prod(shape[:axis]), prod(shape[axis:])])
        axis = 1
    kept = [axis]
    out = node.outputs[0]
    top = p.reduce([x], kept, "max")
    if node.operator == "LogSoftmax":
        total = p.reduce([x, top], kept, "sum", "elementwise", lambda a: np.exp(a[0] - a[1]))
        view = p.pointwise([x, top, total], "elementwise", lambda a: a[0] - a[1] - np.log(a[2]), out)
    else:
        powers = p.pointwise([x, top], "elementwise", lambda a: np.exp(a[0] - a[1]))
        total = p.reduce([powers], kept)
        view = p.pointwise([powers, total], "div", lambda a: a[0] / a[1], out)
    return p.reshaped(view, shape)


def normalised(
    p: Lowering, node: OnnxNode, x: View, dims: Sequence[int], rest: Sequence[View], centred: bool = True
) -> tuple[View, View | None, View]:
    """(x - mean) / sqrt(variance + epsilon), with scale and bias in `rest`; also mean and reciprocal deviation."""
    epsilon = node.get("epsilon", 1e-5)
    count = prod(x.shape[dim] for dim in dims)
    if centred:
        mean = p.pointwise([p.reduce([x], dims)], "elementwise", lambda a: a[0] / count)
        squares = p.reduce([x, mean], dims, "sum", "elementwise", lambda a: (a[0] - a[1]) ** 2)
    else:
        mean = None
        squares = p.reduce([x], dims, "sum", "square", lambda a: a[0] * a[0])
    scale = p.pointwise([squares], "rsqrt", lambda a: 1 / np.sqrt(a[0] / count + epsilon))

    def normal(a: Sequence[Array]) -> Array:
        left = list(a[2:]) if centred else list(a[1:])
        value = (a[0] - a[1] if centred else a[0]) * left.pop(0)
        value = value * left.pop(0) if left else value
        return value + left.pop(0) if left else value

    operands = [x, *([mean] if mean is not None else []), scale, *rest]
    return p.pointwise(operands, "elementwise" if len(operands) > 2 else "mul", normal), mean, scale


def _named(p: Lowering, name: str, view: View) -> None:
    """Put the result of the last Einsum under the name of an ONNX value."""
    if name:
        p.program.steps[-1].output.value = name if view.shape == p.shape(name) else None
        p.put(name, p.reshaped(view, p.shape(name)))


def _layer_norm(p: Lowering, node: OnnxNode) -> None:
    x = p.view(node.inputs[0])
    axis = node.get("axis", -1) % len(x.dims)
    rest = [p.view(name) for name in node.inputs[1:] if name]
    centred = node.operator == "LayerNormalization"
    view, mean, scale = normalised(p, node, x, range(axis, len(x.dims)), rest, centred)
    _named(p, node.outputs[0], view)
    for name, extra in zip(node.outputs[1:], (mean, scale), strict=False):
        if name and extra is not None:
            p.put(name, p.reshaped(extra, p.shape(name)))


def _instance_norm(p: Lowering, node: OnnxNode) -> None:
    x = p.view(node.inputs[0])
    shape = [1, x.shape[1], *[1] * (len(x.dims) - 2)]
    rest = [p.reshaped(p.view(name), shape) for name in node.inputs[1:3]]
    view, _, _ = normalised(p, node, x, range(2, len(x.dims)), rest)
    _named(p, node.outputs[0], view)


def _group_norm(p: Lowering, node: OnnxNode) -> View:
    x = p.view(node.inputs[0])
    groups, channels = node.get("num_groups"), x.shape[1]
    split = p.reshaped(x, [x.shape[0], groups, channels // groups, *x.shape[2:]])
    per_group = p.shape(node.inputs[1])[0] == groups != channels
    shape = [1, groups, 1 if per_group else channels // groups, *[1] * (len(x.dims) - 2)]
    rest = [p.reshaped(p.view(name), shape) for name in node.inputs[1:3]]
    view, _, _ = normalised(p, node, split, range(2, len(split.dims)), rest)
    return p.reshaped(view, x.shape)


def _mean_variance(p: Lowering, node: OnnxNode) -> View:
    x = p.view(node.inputs[0])
    dims = [axis % len(x.dims) for axis in node.get("axes", [0, 2, 3])]
    count = prod(x.shape[dim] for dim in dims)
    mean = p.pointwise([p.reduce([x], dims)], "elementwise", lambda a: a[0] / count)
    squares = p.reduce([x, mean], dims, "sum", "elementwise", lambda a: (a[0] - a[1]) ** 2)
    spread = p.pointwise([squares], "sqrt", lambda a: np.sqrt(a[0] / count) + 1e-9)
    return p.pointwise([x, mean, spread], "elementwise", lambda a: (a[0] - a[1]) / a[2], node.outputs[0])


def _lp_norm(p: Lowering, node: OnnxNode) -> View:
    x = p.view(node.inputs[0])
    power = node.get("p", 2)
    dims = [node.get("axis", -1) % len(x.dims)]
    total = p.reduce([x], dims, "sum", "elementwise", lambda a: np.abs(a[0]) ** power)
    norm = p.pointwise([total], "elementwise", lambda a: a[0] ** (1 / power))

    def scaled(a: Sequence[Array]) -> Array:
        return np.divide(a[0], a[1], out=np.zeros_like(a[0] + a[1]), where=a[1] != 0)

    return p.pointwise([x, norm], "div", scaled, node.outputs[0])


def _lrn(p: Lowering, node: OnnxNode) -> View:
    x = p.view(node.inputs[0])
    size, channels = node.get("size"), x.shape[1]
    alpha, beta, bias = node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0)
    moved = p.window(x, 1, size, 1, 1, (size - 1) // 2, channels)
    total = p.reduce([moved], [2], "sum", "square", lambda a: a[0] * a[0], keep=False)
    norm = p.pointwise([total], "elementwise", lambda a: (bias + alpha / size * a[0]) ** beta)
    return p.pointwise([x, norm], "div", lambda a: a[0] / a[1], node.outputs[0])


TABLE: Mapping[str, Callable[[Lowering, OnnxNode], View | None]] = MappingProxyType(
    {
        **dict.fromkeys(REDUCTIONS, _reduce),
        "GlobalAveragePool": _global(REDUCTIONS["ReduceMean"]),
        "GlobalMaxPool": _global(REDUCTIONS["ReduceMax"]),
        **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
        **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
        **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _layer_norm),
        "InstanceNormalization": _instance_norm,
        "GroupNormalization": _group_norm,
        "MeanVarianceNormalization": _mean_variance,
        "LpNormalization": _lp_norm,
        "LRN": _lrn,
    }
)

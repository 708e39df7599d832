"""What every ATen operator is in ONNX operators: a table from its name to the function that writes it.

Operators without a function here are decomposed by PyTorch, or named as such; `..onnx.operators` says what is cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from ..onnx.check import precision
from .calls import SILENT, AtenCall, base_name

Write = Callable[[AtenCall], None]


def write(c: AtenCall) -> None:
    """Add what the call is to the graph; under its own name where it has no ONNX operator."""
    TABLE.get(c.label, unknown)(c)


def translated(target: Any) -> bool:
    """True for a call that needs no decomposition."""
    name = base_name(target)
    return name in TABLE or name in SILENT


def unknown(c: AtenCall) -> None:
    c.add(c.label, *c.tensors, domain="aten")


def _plain(operator: str, **attributes: Any) -> Write:
    """Of the first argument alone."""
    return lambda c: c.add(operator, c.tensor(), **attributes)


def _of(operator: str, *names: str, **attributes: Any) -> Write:
    """Of the arguments with these names."""
    return lambda c: c.add(operator, *(c.tensor(name) for name in names), **attributes)


def _with(operator: str, *names: str, **attributes: str) -> Write:
    """As `_of`, with arguments as attributes: attribute = name of the argument."""
    return lambda c: _of(operator, *names, **{key: c.get(name) for key, name in attributes.items()})(c)


def _all(operator: str) -> Write:
    """Of all tensors; operators that are cut or refused by their names."""
    return lambda c: c.add(operator, *c.tensors)


def _if(fits: Callable[[AtenCall], bool], write: Write) -> Write:
    """As `write`, for calls that fit."""
    return lambda c: write(c) if fits(c) else unknown(c)


def _binary(operator: str) -> Write:
    def run(c: AtenCall) -> None:
        left, right = c.tensor("self"), c.tensor("other")
        c.add(operator, left, _scaled(c, right, c.get("alpha")))

    return run


def _scaled(c: AtenCall, name: str, factor: Any) -> str:
    """A value times a number."""
    if factor in (None, 1):
        return name
    return c.part("Mul", name, c.value(factor), shape=c.shape(name))


def _divide(c: AtenCall) -> None:
    left, right, mode = c.tensor("self"), c.tensor("other"), c.get("rounding_mode")
    if mode is None:
        return c.add("Div", left, right)
    if mode != "floor" or c.graph.types[c.names[0]].kind != "f":
        return unknown(c)
    return c.add("Floor", c.part("Div", left, right, shape=c.out))


def _boolean(operator: str, other: str) -> Write:
    """One operator for Boolean values and one for integers."""
    return lambda c: c.add(operator if c.graph.types[c.names[0]].kind == "b" else other, *c.tensors)


def _prelu(c: AtenCall) -> None:
    x, slope = c.tensor("self"), c.tensor("weight")
    rank = len(c.shape(x))
    if c.shape(slope) != (1,) and rank > 2:
        shape = (c.shape(slope)[0], *[1] * (rank - 2))
        slope = c.part("Reshape", slope, shape=shape)
    c.add("PRelu", x, slope)


def _glu(c: AtenCall) -> None:
    x, dim = c.tensor("self"), c.get("dim")
    value, gate = (_slice_of(c, x, dim, start, c.out) for start in (0, c.out[dim]))
    c.add("Mul", value, c.part("Sigmoid", gate, shape=c.out))


def _slice_of(c: AtenCall, x: str, dim: int, start: int, shape: Sequence[int]) -> str:
    axis = dim % len(shape)
    return c.part("Slice", x, shape=shape, starts=[start], ends=[start + shape[axis]], axes=[axis])


def _combined(operator: str) -> Write:
    """self + value * (tensor1 operator tensor2)."""

    def run(c: AtenCall) -> None:
        parts = [c.tensor("tensor1"), c.tensor("tensor2")]
        shape = np.broadcast_shapes(*(c.shape(part) for part in parts))
        c.add("Add", c.tensor("self"), _scaled(c, c.part(operator, *parts, shape=shape), c.get("value")))

    return run


def _permute(c: AtenCall) -> None:
    x = c.tensor()
    rank = len(c.shape(x))
    order = list(range(rank))
    if c.label == "permute":
        order = [dim % rank for dim in c.ints("dims")]
    elif rank > 1:
        one, two = (c.ints("dim0", "axis0") or [-2])[0], (c.ints("dim1", "axis1") or [-1])[0]
        order[one], order[two] = order[two], order[one]
    c.add("Transpose", x, perm=order)


def _repeat(c: AtenCall) -> None:
    x, repeats = c.tensor(), c.ints("repeats", "dims")
    shape = c.shape(x)
    longer = (*[1] * (len(repeats) - len(shape)), *shape)
    c.add("Tile", x if longer == shape else c.part("Reshape", x, shape=longer))


def _repeat_interleave(c: AtenCall) -> None:
    x, repeats, dim = c.tensor("self"), c.get("repeats"), c.get("dim")
    if not isinstance(repeats, int) or dim is None:
        return unknown(c)
    shape = c.shape(x)
    axis = dim % len(shape)
    apart = c.part("Reshape", x, shape=(*shape[: axis + 1], 1, *shape[axis + 1 :]))
    wide = c.part("Expand", apart, shape=(*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return c.add("Reshape", wide)


def _select(c: AtenCall) -> None:
    x, dim = c.tensor("self"), c.get("dim")
    index = c.get("index") % c.shape(x)[dim]
    c.add("Gather", x, c.constant(np.int64(index)), axis=dim)


def _slice(c: AtenCall) -> None:
    x, dim = c.tensor("self"), c.get("dim") or 0
    start, end, step = c.get("start"), c.get("end"), c.get("step")
    last = c.shape(x)[dim] if end is None else end
    if c.label == "narrow":
        last = start + c.get("length")
    c.add("Slice", x, starts=[start or 0], ends=[last], axes=[dim % len(c.out)], steps=[step or 1])


def _split(c: AtenCall) -> None:
    """Parts of a dimension; those that nothing reads are not sliced."""
    x, dim = c.tensor("self"), c.get("dim") or 0
    size, total = c.get("split_size", "split_sizes"), c.shape(x)[dim]
    lengths = [size] * -(-total // size) if isinstance(size, int) else list(size)
    start = 0
    for name, length in zip(c.names, lengths, strict=True):
        if name:
            end = min(start + length, total)
            c.another(name, "Slice", x, starts=[start], ends=[end], axes=[dim % len(c.shape(x))])
        start += length


def _unbind(c: AtenCall) -> None:
    x, dim = c.tensor("self"), c.get("dim") or 0
    for i, name in enumerate(c.names):
        if name:
            c.another(name, "Gather", x, c.constant(np.int64(i)), axis=dim)


def _index(c: AtenCall) -> None:
    """Rows by one tensor of indices, as a Gather; anything else has no such form."""
    chosen = [(dim, index) for dim, index in enumerate(c.get("indices")) if index is not None]
    if len(chosen) != 1:
        return c.add("GatherND", *c.tensors)
    dim, index = chosen[0]
    return c.add("Gather", c.tensor("self"), c.value(index), axis=dim)


def _roll(c: AtenCall) -> None:
    """Around the edge of each dimension: its last positions, then the others."""
    x, shifts, dims = c.tensor("self"), c.ints("shifts"), c.ints("dims")
    if len(shifts) != len(dims):
        return unknown(c)
    moves = [
        (dim % len(c.out), shift % c.out[dim]) for dim, shift in zip(dims, shifts, strict=True) if shift % c.out[dim]
    ]
    for i, (dim, shift) in enumerate(moves):
        rest = c.out[dim] - shift
        sizes = [(*c.out[:dim], size, *c.out[dim + 1 :]) for size in (shift, rest)]
        halves = (_slice_of(c, x, dim, rest, sizes[0]), _slice_of(c, x, dim, 0, sizes[1]))
        if i + 1 == len(moves):
            return c.add("Concat", *halves, axis=dim)
        x = c.part("Concat", *halves, shape=c.out, axis=dim)
    return c.add("Identity", x)


def _stack(c: AtenCall) -> None:
    axis = (c.get("dim") or 0) % len(c.out)
    shape = (*c.out[:axis], 1, *c.out[axis + 1 :])
    c.add("Concat", *(c.part("Reshape", c.value(given), shape=shape) for given in c.get("tensors")), axis=axis)


def _pad(c: AtenCall) -> None:
    pads = c.ints("pad")  # pairs from the last dimension on
    axes = [len(c.out) - 1 - i for i in range(len(pads) // 2)]
    c.add("Pad", c.tensor(), pads=[*pads[::2], *pads[1::2]], axes=axes, value=float(c.get("value") or 0))


def _nearest(c: AtenCall) -> None:
    scales = [c.get(name) for name in ("scales", "scales_h", "scales_w")] + list(c.get("scale_factors") or ())
    even = all(scale is None or float(scale).is_integer() for scale in scales)
    c.add("Resize", c.tensor(), mode="nearest" if even else "uneven")


def _reduce(operator: str) -> Write:
    def run(c: AtenCall) -> None:
        x = c.tensor("self")
        axes = c.ints("dim") or list(range(len(c.shape(x))))
        c.add(operator, x, axes=axes, keepdims=int(bool(c.get("keepdim"))))

    return run


def _extreme(operator: str) -> Write:
    """`max` and `min`: of all values, of two tensors, or of a dimension with the places, which must not be read."""

    def run(c: AtenCall) -> None:
        if c.overload == "other":
            return c.add(operator.removeprefix("Reduce"), *c.tensors)
        if any(c.names[1:]):
            return c.add("TopK", *c.tensors)
        return _reduce(operator)(c)

    return run


def _norm(c: AtenCall) -> None:
    order = c.get("p", "ord")
    operator = {1: "ReduceL1", 2: "ReduceL2", None: "ReduceL2"}.get(order)
    if operator is None:
        return unknown(c)
    return _reduce(operator)(c)


def _variance(c: AtenCall) -> None:
    """The mean of squares of distances from the mean, over a count less the correction; its root for `std`."""
    x = c.tensor("self")
    shape = c.shape(x)
    dims = [dim % len(shape) for dim in c.ints("dim")] or list(range(len(shape)))
    unbiased, correction = c.get("unbiased"), c.get("correction")
    less = 1 if correction is None and unbiased in (None, True) else (correction or 0)
    count = prod(shape[dim] for dim in dims)
    if count <= less or any(c.names[1:]):
        return unknown(c)
    kept = tuple(1 if dim in dims else size for dim, size in enumerate(shape))
    mean = c.part("ReduceMean", x, shape=kept, axes=dims, keepdims=1)
    apart = c.part("Sub", x, mean, shape=shape)
    total = c.part("ReduceSumSquare", apart, shape=c.out, axes=dims, keepdims=int(bool(c.get("keepdim"))))
    scale = c.value(1.0 / (count - less))
    if c.label == "var":
        return c.add("Mul", total, scale)
    return c.add("Sqrt", c.part("Mul", total, scale, shape=c.out))


def _scale_and_bias(c: AtenCall, size: int) -> list[str]:
    """Weight and bias of a norm, ones and zeros where it has none."""
    weight, bias = c.tensor("weight"), c.tensor("bias")
    if not weight:
        weight = c.constant(np.ones(size, np.float32))
    return [weight, bias or c.constant(np.zeros(size, np.float32))]


def _layer_norm(c: AtenCall) -> None:
    shape = c.ints("normalized_shape")
    rest = [name for name in (c.tensor("weight"), c.tensor("bias")) if name]
    if not c.tensor("weight") and rest:
        rest = [c.constant(np.ones(shape, np.float32)), *rest]
    c.add("LayerNormalization", c.tensor("input"), *rest, axis=-len(shape), epsilon=float(c.get("eps")))


def _rms_norm(c: AtenCall) -> None:
    epsilon = c.get("eps")
    if epsilon is None:
        epsilon = precision(c.graph.types[c.names[0]])
    rest = [name for name in (c.tensor("weight"),) if name]
    axis = -len(c.ints("normalized_shape"))
    c.add("RMSNormalization", c.tensor("input"), *rest, axis=axis, epsilon=float(epsilon))


def _batch_norm(c: AtenCall) -> None:
    x = c.tensor("input")
    size = c.shape(x)[1]
    mean, variance = c.tensor("running_mean"), c.tensor("running_var")
    if not mean or c.get("training", "use_input_stats"):
        return unknown(c)
    rest = [*_scale_and_bias(c, size), mean, variance]
    return c.another(c.names[0], "BatchNormalization", x, *rest, epsilon=float(c.get("eps")))


def _group_norm(c: AtenCall) -> None:
    if any(c.names[1:]):
        return unknown(c)
    x, groups = c.tensor("input"), c.get("num_groups", "group")
    rest = _scale_and_bias(c, c.shape(x)[1])
    return c.another(c.names[0], "GroupNormalization", x, *rest, num_groups=groups, epsilon=float(c.get("eps")))


def _instance_norm(c: AtenCall) -> None:
    if c.get("use_input_stats") is False:
        return _batch_norm(c)
    x = c.tensor("input")
    return c.add("InstanceNormalization", x, *_scale_and_bias(c, c.shape(x)[1]), epsilon=float(c.get("eps")))


def _each(values: Sequence[int], count: int) -> list[int]:
    return list(values) * count if len(values) == 1 else list(values)


def _conv(c: AtenCall) -> None:
    x, weight, bias = c.tensor("input"), c.tensor("weight"), c.tensor("bias")
    count = len(c.shape(weight)) - 2
    if c.get("transposed"):
        return c.add("ConvTranspose", *c.tensors)
    if len(c.shape(x)) != count + 2:
        return unknown(c)
    attributes: dict[str, Any] = {
        "strides": _each(c.ints("stride"), count),
        "dilations": _each(c.ints("dilation"), count),
        "group": c.get("groups"),
    }
    padding = c.get("padding")
    if isinstance(padding, str):
        attributes["auto_pad"] = {"valid": "VALID", "same": "SAME_UPPER"}[padding]
    else:
        attributes["pads"] = _each(c.ints("padding"), count) * 2
    return c.add("Conv", x, weight, *([bias] if bias else []), **attributes)


def _pool(operator: str) -> Write:
    def run(c: AtenCall) -> None:
        x = c.tensor("self")
        count = int(c.label.rpartition("pool")[2][0])
        kernel = _each(c.ints("kernel_size"), count)
        if any(c.names[1:]) or c.get("divisor_override") is not None:
            return unknown(c)
        attributes: dict[str, Any] = {
            "kernel_shape": kernel,
            "strides": _each(c.ints("stride"), count) or kernel,
            "dilations": _each(c.ints("dilation") or [1], count),
            "pads": _each(c.ints("padding"), count) * 2,
            "count_include_pad": int(bool(c.get("count_include_pad"))),
        }
        if len(c.shape(x)) == count + 2:
            return c.another(c.names[0], operator, x, **attributes)
        batched = c.part("Reshape", x, shape=(1, *c.shape(x)))
        out = c.part(operator, batched, shape=(1, *c.out), **attributes)
        return c.another(c.names[0], "Reshape", out)

    return run


def _adaptive(operator: str, whole: str) -> Write:
    """To one value per channel: a reduction; to a divisor of the size: a pool."""

    def run(c: AtenCall) -> None:
        x = c.tensor("self")
        count = int(c.label.rpartition("pool")[2][0])
        shape, out = c.shape(x), c.out[-count:]
        if any(c.names[1:]) or any(size % wanted for size, wanted in zip(shape[-count:], out, strict=True)):
            return unknown(c)
        if prod(out) == 1:
            return c.another(c.names[0], whole, x, axes=list(range(-count, 0)), keepdims=1)
        if len(shape) != count + 2:
            return unknown(c)
        kernel = [size // wanted for size, wanted in zip(shape[-count:], out, strict=True)]
        return c.another(c.names[0], operator, x, kernel_shape=kernel, strides=kernel)

    return run


def _turned(c: AtenCall, name: str) -> str:
    """A matrix, or several, transposed."""
    shape, rank = c.shape(name), len(c.shape(name))
    order = [*range(rank - 2), rank - 1, rank - 2]
    return c.part("Transpose", name, shape=[shape[dim] for dim in order], perm=order)


def _linear(c: AtenCall) -> None:
    x, weight, bias = c.tensor("input"), c.tensor("weight"), c.tensor("bias")
    if len(c.shape(weight)) != 2:
        return c.add("MatMul", x, weight)
    right = _turned(c, weight)
    if not bias:
        return c.add("MatMul", x, right)
    return c.add("Add", c.part("MatMul", x, right, shape=c.out), bias)


def _matmul(c: AtenCall) -> None:
    names = ("self", "other", "mat2", "vec", "tensor")
    c.add("MatMul", *(c.tensor(name) for name in names if c.get(name) is not None))


def _add_matmul(c: AtenCall) -> None:
    """beta * self + alpha * (one @ two)."""
    one, two = c.tensor("mat1", "batch1", "mat"), c.tensor("mat2", "batch2", "vec")
    product = _scaled(c, c.part("MatMul", one, two, shape=c.out), c.get("alpha"))
    c.add("Add", product, _scaled(c, c.tensor("self"), c.get("beta")))


def _attention(c: AtenCall) -> None:
    """softmax(scale * query key^T + mask) value; several queries of one key as a batch of their own."""
    query, key, value, mask = (c.tensor(name) for name in ("query", "key", "value", "attn_mask"))
    if c.get("dropout_p"):
        return unknown(c)
    shape = c.shape(query)
    grouped = bool(c.get("enable_gqa")) and shape[-3] != c.shape(key)[-3]
    scale = c.get("scale") or 1 / math.sqrt(shape[-1])
    if grouped:
        query, key, value, mask = _grouped(c, query, key, value, mask)
    rows, columns = c.shape(query)[-2], c.shape(key)[-2]
    points = (*c.shape(query)[:-1], columns)
    scores = _scaled(c, c.part("MatMul", query, _turned(c, key), shape=points), scale)
    if c.get("is_causal"):
        mask = c.constant(np.tril(np.ones((rows, columns), bool)))
    if mask and c.graph.types[mask].kind == "b":
        scores = c.part("Where", mask, scores, c.value(-math.inf), shape=points)
    elif mask:
        scores = c.part("Add", scores, mask, shape=points)
    weights = c.part("Softmax", scores, shape=points, axis=-1)
    if not grouped:
        return c.add("MatMul", weights, value)
    return c.add("Reshape", c.part("MatMul", weights, value, shape=(*points[:-1], c.out[-1])))


def _grouped(c: AtenCall, query: str, key: str, value: str, mask: str) -> tuple[str, str, str, str]:
    """Heads of the query as groups, one per head of the key."""
    heads, shape = c.shape(key)[-3], c.shape(query)
    query = c.part("Reshape", query, shape=(*shape[:-3], heads, shape[-3] // heads, *shape[-2:]))
    made = [c.part("Reshape", x, shape=(*c.shape(x)[:-2], 1, *c.shape(x)[-2:])) for x in (key, value)]
    of = c.shape(mask) if mask else ()
    if len(of) > 2:
        whole = (1, 1) if of[-3] == 1 else (heads, of[-3] // heads)
        mask = c.part("Reshape", mask, shape=(*of[:-3], *whole, *of[-2:]), kind=str(c.graph.types[mask]))
    return query, made[0], made[1], mask


def _triangle(upper: int) -> Write:
    return lambda c: c.add("Trilu", c.tensor(), c.constant(np.int64(c.get("diagonal") or 0)), upper=upper)


def _names(text: str, function: Write) -> dict[str, Write]:
    return dict.fromkeys(text.split(), function)


_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor",
    "hardswish": "HardSwish", "isinf": "IsInf", "isnan": "IsNaN", "log": "Log", "logical_not": "Not", "mish": "Mish",
    "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign",
    "sin": "Sin", "sinh": "Sinh", "softsign": "Softsign", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "maximum": "Max", "minimum": "Min", "eq": "Equal", "lt": "Less",
    "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "logical_and": "And", "logical_or": "Or",
    "logical_xor": "Xor", "remainder": "Mod",
}  # fmt: skip
_ALL = {
    "topk": "TopK", "sort": "TopK", "argmax": "ArgMax", "argmin": "ArgMin", "lstm": "LSTM", "gru": "GRU",
    "rnn_tanh": "RNN", "rnn_relu": "RNN", "nonzero": "NonZero", "multinomial": "Multinomial", "bernoulli": "Bernoulli",
    "rand": "RandomUniform", "rand_like": "RandomUniformLike", "randn": "RandomNormal", "randint": "RandomUniform",
    "randn_like": "RandomNormalLike", "cumsum": "CumSum", "gather": "GatherElements", "scatter": "ScatterElements",
    "scatter_add": "ScatterElements", "index_put": "ScatterND", "grid_sampler": "GridSample",
    "conv_transpose1d": "ConvTranspose", "conv_transpose2d": "ConvTranspose", "conv_transpose3d": "ConvTranspose",
}  # fmt: skip
TABLE: Mapping[str, Write] = MappingProxyType(
    {
        **{name: _plain(operator) for name, operator in _UNARY.items()},
        **{name: _binary(operator) for name, operator in _BINARY.items()},
        **{name: _all(operator) for name, operator in _ALL.items()},
        **_names("alias clone contiguous detach lift_fresh lift_fresh_copy dropout", _plain("Identity")),
        **_names("_to_copy to type_as", _plain("Cast")),
        **_names(
            "view reshape _unsafe_view _reshape_alias flatten unflatten unsqueeze squeeze",
            _if(lambda c: c.overload != "dtype", _plain("Reshape")),
        ),
        **_names("expand expand_as broadcast_to", _plain("Expand")),
        **_names("permute transpose t mT swapaxes swapdims", _permute),
        **_names("repeat tile", _repeat),
        **_names("slice narrow", _slice),
        **_names("split split_with_sizes", _split),
        **_names("mean", _reduce("ReduceMean")),
        **_names("sum", _reduce("ReduceSum")),
        **_names("prod", _reduce("ReduceProd")),
        **_names("amax", _reduce("ReduceMax")),
        **_names("amin", _reduce("ReduceMin")),
        **_names("logsumexp", _reduce("ReduceLogSumExp")),
        **_names("max", _extreme("ReduceMax")),
        **_names("min", _extreme("ReduceMin")),
        **_names("norm linalg_vector_norm", _norm),
        **_names("var std", _variance),
        **_names("softmax _softmax _safe_softmax", _with("Softmax", "self", axis="dim")),
        **_names("log_softmax _log_softmax", _with("LogSoftmax", "self", axis="dim")),
        **_names("batch_norm _native_batch_norm_legit_no_training", _batch_norm),
        **_names("conv1d conv2d conv3d convolution", _conv),
        **_names("max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices", _pool("MaxPool")),
        **_names("avg_pool1d avg_pool2d avg_pool3d", _pool("AveragePool")),
        **_names("adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d", _adaptive("AveragePool", "ReduceMean")),
        **_names("adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", _adaptive("MaxPool", "ReduceMax")),
        **_names("matmul mm bmm mv dot", _matmul),
        **_names("addmm baddbmm addmv addbmm", _add_matmul),
        **_names("upsample_nearest1d upsample_nearest2d _upsample_nearest_exact2d", _nearest),
        **_names(
            "upsample_bilinear2d upsample_bicubic2d upsample_linear1d _upsample_bilinear2d_aa",
            _plain("Resize", mode="linear"),
        ),
        "bitwise_and": _boolean("And", "BitwiseAnd"),
        "bitwise_or": _boolean("Or", "BitwiseOr"),
        "bitwise_xor": _boolean("Xor", "BitwiseXor"),
        "bitwise_not": _boolean("Not", "BitwiseNot"),
        "ne": lambda c: c.add("Not", c.part("Equal", c.tensor("self"), c.tensor("other"), shape=c.out, kind="bool")),
        "rsub": lambda c: c.add("Sub", c.tensor("other"), _scaled(c, c.tensor("self"), c.get("alpha"))),
        "div": _divide,
        "pow": _of("Pow", "self", "exponent"),
        "rsqrt": lambda c: c.add("Reciprocal", c.part("Sqrt", c.tensor(), shape=c.out)),
        "silu": _plain("Swish"),
        "gelu": _with("Gelu", "self", approximate="approximate"),
        "softplus": _if(lambda c: c.get("beta") in (None, 0, 1), _plain("Softplus")),
        "elu": _if(
            lambda c: all(c.get(name) in (None, 1) for name in ("scale", "input_scale")),
            lambda c: c.add("Elu", c.tensor(), alpha=float(c.get("alpha"))),
        ),
        "celu": _with("Celu", "self", alpha="alpha"),
        "selu": _plain("Selu"),
        "leaky_relu": _with("LeakyRelu", "self", alpha="negative_slope"),
        "hardsigmoid": _plain("HardSigmoid", alpha=1 / 6, beta=0.5),
        "prelu": _prelu,
        "glu": _glu,
        "relu6": lambda c: c.add("Clip", c.tensor(), c.value(0.0), c.value(6.0)),
        **_names("clamp clamp_min clamp_max", _of("Clip", "self", "min", "max")),
        "hardtanh": _of("Clip", "self", "min_val", "max_val"),
        "where": _of("Where", "condition", "self", "other"),
        "masked_fill": _of("Where", "mask", "value", "self"),
        "addcmul": _combined("Mul"),
        "addcdiv": _combined("Div"),
        "repeat_interleave": _repeat_interleave,
        "select": _select,
        "unbind": _unbind,
        "embedding": _of("Gather", "weight", "indices", axis=0),
        "index_select": _with("Gather", "self", "index", axis="dim"),
        "index": _index,
        "cat": lambda c: c.add("Concat", *map(c.value, c.get("tensors")), axis=(c.get("dim") or 0) % len(c.out)),
        "stack": _stack,
        "roll": _roll,
        "constant_pad_nd": _pad,
        **_names("layer_norm native_layer_norm", _layer_norm),
        "rms_norm": _rms_norm,
        **_names("group_norm native_group_norm", _group_norm),
        "instance_norm": _instance_norm,
        "linear": _linear,
        "einsum": lambda c: c.add("Einsum", *map(c.value, c.get("tensors")), equation=c.get("equation")),
        "sdpa": _attention,
        "triu": _triangle(1),
        "tril": _triangle(0),
        "pixel_shuffle": _if(
            lambda c: len(c.out) == 4,
            lambda c: c.add("DepthToSpace", c.tensor(), blocksize=c.get("upscale_factor"), mode="CRD"),
        ),
    }
)

"""Constant folding: what follows from constants alone is computed, or loses its data but keeps its shape.

Only arithmetic on small arrays is executed, by the reference implementation of the package onnx, and only where the
result is known to be small beforehand.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...reading.plugins import MISTAKES
from .graph import Array, Graph, OnnxNode

LARGEST = 2**22
FOLDED = frozenset(
    "Abs Add And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip Concat ConstantOfShape "
    "Cos CumSum DequantizeLinear Div Equal Erf Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND Gelu "
    "Greater GreaterOrEqual Identity IsInf IsNaN Less LessOrEqual Log Max Min Mod Mul Neg NonZero Not OneHot Or Pad "
    "Pow Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Round ScatterElements "
    "ScatterND Sigmoid Sign Sin Size Slice Softmax Split Sqrt Squeeze Sub Sum Tanh Tile Transpose Trilu Unsqueeze "
    "Where Xor".split()
)


def fold(graph: Graph, nodes: Sequence[OnnxNode]) -> list[OnnxNode]:
    """The nodes that are left; what the others yield is put into the graph's constants."""
    left = []
    for node in nodes:
        values = _folded(graph, node)
        if values is None:
            left.append(node)
            continue
        for name, value in zip(node.outputs, values, strict=False):
            graph.constants[name] = value
            if value is not None:
                graph.shapes[name] = value.shape
                if value.dtype != object:
                    graph.types[name] = value.dtype
                    graph.bits.setdefault(name, 1 if value.dtype == bool else 8 * value.dtype.itemsize)
    return left


def _folded(graph: Graph, node: OnnxNode) -> Sequence[Array | None] | None:
    """What the outputs of a node are; None if it is no constant."""
    if node.operator == "Constant" and not node.domain:
        return [_constant(node)]
    given = [name for name in node.inputs if name]
    if node.operator in ("Shape", "Size") and not node.domain and given and given[0] in graph.shapes:
        return [_shape(node, graph.shapes[given[0]])]
    if node.operator == "CastLike" and len(given) == 2 and given[1] in graph.types:
        value = graph.constants.get(given[0])
        if value is not None:
            return [value.astype(graph.types[given[1]])]
    if not all(name in graph.constants for name in given) or "graph" in node.attributes.values():
        return None
    values = [None if not name else graph.constants[name] for name in node.inputs]
    data = all(value is not None for name, value in zip(node.inputs, values, strict=True) if name)
    if data and node.operator in FOLDED and not node.domain and _small(graph, node, values):
        found = _computed(node, values)
        if found is not None:
            return found
    known = all(name in graph.shapes and name in graph.types for name in node.outputs if name)
    random = node.operator.startswith(("Random", "Multinomial", "Bernoulli"))
    return [None] * len(node.outputs) if known and given and not random else None


def _constant(node: OnnxNode) -> Array | None:
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        if name in node.attributes:
            value = node.attributes[name]
            if value is None or isinstance(value, np.ndarray):
                return value
            return np.array(value, np.float32 if "float" in name else np.int64)
    return None


def _shape(node: OnnxNode, shape: tuple[int, ...]) -> Array:
    if node.operator == "Size":
        return np.array(prod(shape), np.int64)
    return np.array(shape[node.get("start", 0) : node.get("end", len(shape))], np.int64)


def _small(graph: Graph, node: OnnxNode, values: Sequence[Array | None]) -> bool:
    """True if inputs and outputs have few values."""
    arrays = [value for value in values if value is not None]
    if any(array.size > LARGEST or array.dtype == object for array in arrays):
        return False
    sizes = [prod(graph.shapes[name]) for name in node.outputs if name in graph.shapes]
    if len(sizes) == len(node.outputs):
        return max(sizes, default=0) <= LARGEST
    return _estimate(node.operator, arrays) <= LARGEST


def _estimate(operator: str, arrays: Sequence[Array]) -> float:
    """No fewer values than the result has, where shape inference does not know."""
    total = sum(array.size for array in arrays)
    match operator:
        case "ConstantOfShape":
            return float(np.prod(arrays[0].astype(float)))
        case "Range":
            start, limit, step = (float(array.reshape(-1)[0]) for array in arrays[:3])
            return abs((limit - start) / step) + 1 if step else np.inf
        case "Expand" | "Tile" | "Pad" | "OneHot":
            extra = np.abs(np.concatenate([array.reshape(-1).astype(float) for array in arrays[1:]]))
            return float(np.prod(arrays[0].size * (np.maximum(extra, 1))))
        case "NonZero":
            return float(arrays[0].size * max(arrays[0].ndim, 1))
        case "Concat" | "Split" | "Slice" | "Reshape" | "Squeeze" | "Unsqueeze" | "Transpose" | "Flatten" | "Identity":
            return float(total)
        case _:
            return float(prod(max(array.size, 1) for array in arrays))


def _computed(node: OnnxNode, values: Sequence[Array | None]) -> Sequence[Array] | None:
    """The outputs by the reference implementation, None where it has none or fails."""
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    attributes = {
        name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in node.attributes.items()
    }
    names = [f"i{i}" if value is not None else "" for i, value in enumerate(values)]
    outputs = [f"o{i}" for i in range(len(node.outputs))]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            proto: Any = helper.make_node(node.operator, names, outputs, **attributes)
            run = ReferenceEvaluator(proto, opsets={"": node.version})
            found = run.run(None, {name: value for name, value in zip(names, values, strict=True) if name})
    except (*MISTAKES, MemoryError):
        return None
    return [np.asarray(value) for value in found] if all(hasattr(value, "shape") for value in found) else None

"""How many multiplications a graph's products have, from the shapes that the file says alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

from .graph import Graph, OnnxNode, Shape
from .operators import CUT, REFUSED, TABLE

Count = Callable[[OnnxNode, Mapping[str, Shape]], int]
CONTROL_FLOW = frozenset(("If", "Loop", "Scan"))
"""Operators that hold graphs of their own."""


def counted(graph: Graph) -> tuple[int, tuple[str, ...]]:
    """The multiplications of all products, and the operators whose multiplications cannot be counted."""
    found, unknown = 0, []
    for node in graph.nodes:
        try:
            if node.domain or node.operator in CONTROL_FLOW:
                raise LookupError
            if node.operator in PRODUCTS:
                found += PRODUCTS[node.operator](node, graph.shapes)
            elif node.operator not in TABLE and node.operator not in CUT | REFUSED:
                raise LookupError
        except (LookupError, TypeError):  # a shape that is not known or does not fit; a damaged attribute
            unknown.append(node.operator)
    return found, tuple(dict.fromkeys(unknown))


def _output_by(first: Callable[[OnnxNode, Shape], int]) -> Count:
    """The elements of the output, each a sum over so many products by the first input's shape."""
    return lambda node, shapes: prod(shapes[node.outputs[0]]) * first(node, shapes[node.inputs[0]])


def _convolution(weight: int) -> Count:
    """The elements of the output times those of one kernel. weight: which input holds the kernels."""
    return lambda node, shapes: prod(shapes[node.outputs[0]]) * prod(shapes[node.inputs[weight]][1:])


def _transposed(node: OnnxNode, shapes: Mapping[str, Shape]) -> int:
    """The elements of the input times those of one kernel."""
    return prod(shapes[node.inputs[0]]) * prod(shapes[node.inputs[1]][1:])


def _recurrent(node: OnnxNode, shapes: Mapping[str, Shape]) -> int:
    """Steps and batches times the weights of the input and of the state.

    Raises LookupError for PyTorch's call, which has no attributes and its weights in other places.
    """
    if "hidden_size" not in node.attributes:
        raise LookupError
    steps, *weights = (shapes[name] for name in node.inputs[:3])
    return prod(steps[:2]) * sum(map(prod, weights))


def _attention(node: OnnxNode, shapes: Mapping[str, Shape]) -> int:
    """Queries by keys, and weights by values."""
    keys = [shapes[name][-2] for name in (node.inputs[1], *node.inputs[4:5]) if name]
    return (prod(shapes[node.inputs[0]]) + prod(shapes[node.outputs[0]])) * sum(keys)


def _einsum(node: OnnxNode, shapes: Mapping[str, Shape]) -> int:
    """The points of all indices, of at least two operands."""
    terms = re.sub(r"\s", "", node.get("equation", "")).partition("->")[0].split(",")
    sizes: dict[str | int, int] = {}
    for term, name in zip(terms, node.inputs, strict=False):
        before, dots, after = term.partition("...")
        inner = len(shapes[name]) - len(before) - len(after)
        spread = range(-inner, 0) if dots else ()  # the dimensions of an ellipsis, the last ones in common
        for label, size in zip((*before, *spread, *after), shapes[name], strict=False):
            sizes[label] = max(size, sizes.get(label, 1))
    return prod(sizes.values()) if len(terms) > 1 else 0


PRODUCTS: Mapping[str, Count] = MappingProxyType(
    {
        "MatMul": _output_by(lambda node, first: first[-1]),
        "MatMulInteger": _output_by(lambda node, first: first[-1]),
        "QLinearMatMul": _output_by(lambda node, first: first[-1]),
        "Gemm": _output_by(lambda node, first: first[0 if node.get("transA", 0) else 1]),
        **dict.fromkeys(("Conv", "ConvInteger", "DeformConv"), _convolution(1)),
        "QLinearConv": _convolution(3),
        "ConvTranspose": _transposed,
        **dict.fromkeys(("RNN", "LSTM", "GRU"), _recurrent),
        "Attention": _attention,
        "Einsum": _einsum,
    }
)

"""Operators that ONNX defines by others, as those others: functions with a body, and products of integers.

The package onnx writes the body of a function. A product of integers becomes DequantizeLinear, the product, and
QuantizeLinear or a Cast, which is what its definition says; `quantised` makes bits of the tensors of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

from .operators import CUT, REFUSED, TABLE

DOMAINS = ("", "ai.onnx")
KEPT_DOMAIN = "einloom.kept"
"""Of nodes that are not to be expanded, meanwhile."""
FOLDED = frozenset(("Range", "SequenceMap"))
"""Functions that are constants, or loops."""
FLOAT, INT32, INT64 = 1, 6, 7  # of TensorProto.DataType
WITH_AXIS = 13
"""The first opset whose DequantizeLinear has several scales."""
BIAS = 8
"""The input of QLinearConv that is added."""


def expanded(onnx: Any, model: Any, kept: Collection[str] = ()) -> Any:
    """The model with such operators expanded; nodes without a name get one. kept: names of nodes to leave as they are.

    Sizes of inputs must be known. What a node becomes is named after it and belongs to its module.
    """
    name_all(model)
    model = _bodies(onnx, model, kept)
    if any(_is_product(node, kept) for node in model.graph.node):
        nodes = [made for node in model.graph.node for made in _product(onnx, model, node, kept)]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return model


def name_all(model: Any) -> frozenset[str]:
    """Give a name to each node that has none; these names."""
    made = {i: f"{node.op_type}_{i}#{i}" for i, node in enumerate(model.graph.node) if not node.name}
    for i, name in made.items():
        model.graph.node[i].name = name
    return frozenset(made.values())


def _bodies(onnx: Any, model: Any, kept: Collection[str]) -> Any:
    """The model with the bodies of functions in their places."""
    versions = {opset.domain: opset.version for opset in model.opset_import}
    version = versions.get("", versions.get("ai.onnx", 1))
    found = [node for node in model.graph.node if node.name not in kept and _has_body(onnx, node, version)]
    if not found:
        return model
    functions = {node.op_type for node in found}
    outer = {id(node) for node in found}
    for node in model.graph.node:
        if node.op_type in functions and node.domain in DOMAINS and id(node) not in outer:
            node.domain = KEPT_DOMAIN
    try:
        made = onnx.inliner.inline_selected_functions(model, [("", name) for name in sorted(functions)], False, True)
    except (TypeError, RuntimeError):  # before onnx 1.19; where a body depends on types that are not known
        made = model
    _name(made.graph.node, found)
    for node in made.graph.node:
        if node.domain == KEPT_DOMAIN:
            node.domain = ""
    return made


def _has_body(onnx: Any, node: Any, version: int) -> bool:
    """True for a function that the package onnx can write out; it cannot where an input in the middle is left out."""
    known = node.op_type in TABLE or node.op_type in CUT | REFUSED | FOLDED
    if known or node.domain not in DOMAINS or "" in node.input or not onnx.defs.has(node.op_type):
        return False
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "")
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def _name(nodes: Sequence[Any], outer: Sequence[Any]) -> None:
    """Name the nodes of bodies, which have no names, after the nodes that they stand for."""
    last = {name: i for i, node in enumerate(nodes) for name in node.output}
    ends = [max((last.get(name, 0) for name in node.output), default=0) for node in outer]
    at = 0
    for i, node in enumerate(nodes):
        while at < len(ends) and ends[at] < i:
            at += 1
        if not node.name and at < len(ends):
            _stamp(node, outer[at], i)


def _stamp(node: Any, outer: Any, number: int) -> None:
    node.name = f"{outer.name}:{node.op_type}_{number}"
    node.metadata_props.extend(outer.metadata_props)


class _Body:
    """The nodes that one product of integers becomes."""

    def __init__(self, onnx: Any, model: Any, node: Any) -> None:
        self.onnx, self.model, self.node = onnx, model, node
        self.nodes: list[Any] = []
        self.inputs = [*node.input, *[""] * 10]
        self.version = next((one.version for one in model.opset_import if one.domain in DOMAINS), 1)

    def add(self, operator: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """A node; its output, which has a name after the node's by default."""
        name = output or f"{self.node.output[0]}_{operator}{len(self.nodes)}"
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        made = self.onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        _stamp(made, self.node, len(self.nodes))
        self.nodes.append(made)
        return name

    def decoded(self, value: int, scale: str, zero: int, axis: int, several: bool) -> str:
        """An input as the numbers that it stands for. axis: of scale and zero point, if these are several."""
        read, given, name = self.inputs[value], self.inputs[zero], f"{self.inputs[value]}_of_{self.node.output[0]}"
        if self.version >= WITH_AXIS:
            return self.add("DequantizeLinear", (read, scale or self.ones(given), given), name, axis=axis)
        if not several:
            return self.add("DequantizeLinear", (read, scale or self.ones(given), given), name)
        number = self.add("DequantizeLinear", (read, self.ones("")), "" if given or scale else name)
        if given:
            zeros = self.add("Cast", [self.along(given, read, axis)], to=FLOAT)
            number = self.add("Sub", (number, zeros), "" if scale else name)
        return self.add("Mul", (number, self.along(scale, read, axis)), name) if scale else number

    def along(self, name: str, value: str, axis: int) -> str:
        """A list of numbers in the shape that is broadcast along an axis of a value."""
        rank = len(self.dims(value))
        if axis == -1 or rank < 2:
            return name
        shape = [1] * rank
        shape[axis] = -1
        wanted = f"{self.node.output[0]}_along_{name}"
        self.model.graph.initializer.append(self.onnx.helper.make_tensor(wanted, INT64, [rank], shape))
        return self.add("Reshape", (name, wanted))

    def dims(self, name: str) -> tuple[int, ...]:
        """The sizes of a constant; none if they are not known."""
        return next((tuple(tensor.dims) for tensor in self.model.graph.initializer if tensor.name == name), ())

    def several(self, *places: int) -> bool:
        """True if one of these inputs is a list."""
        return any(prod(self.dims(self.inputs[place])) > 1 for place in places)

    def ones(self, like: str) -> str:
        """A scale of 1 for each zero point."""
        graph, name, dims = self.model.graph, f"{self.node.output[0]}_one_{like}", self.dims(like)
        if name not in {tensor.name for tensor in graph.initializer}:
            graph.initializer.append(self.onnx.helper.make_tensor(name, FLOAT, dims, [1.0] * prod(dims)))
        return name

    def attributes(self) -> dict[str, Any]:
        return {item.name: self.onnx.helper.get_attribute_value(item) for item in self.node.attribute}


def _integer(operator: str, axes: tuple[int, int]) -> Callable[[_Body], object]:
    """MatMulInteger and ConvInteger. axes: of the operands' zero points."""

    def run(b: _Body) -> object:
        operands = [b.decoded(i, "", 2 + i, axes[i], b.several(2 + i)) for i in range(2)]
        product = b.add(operator, operands, **b.attributes())
        return b.add("Cast", [product], b.node.output[0], to=INT32)

    return run


def _linear(operator: str, axes: tuple[int, int]) -> Callable[[_Body], object]:
    """QLinearMatMul and QLinearConv. axes: of the operands' scales."""

    def run(b: _Body) -> object:
        operands = [
            b.decoded(i, b.inputs[i + 1], i + 2, axis, b.several(i + 1, i + 2))
            for i, axis in zip((0, 3), axes, strict=True)
        ]
        if b.inputs[BIAS]:
            scale = b.add("Mul", (b.inputs[1], b.inputs[4]))
            operands.append(b.decoded(BIAS, scale, BIAS + 1, 0, b.several(4)))
        product = b.add(operator, operands, **b.attributes())
        return b.add("QuantizeLinear", (product, *b.inputs[6:8]), b.node.output[0])

    return run


PRODUCTS: Mapping[str, Callable[[_Body], object]] = MappingProxyType(
    {
        "MatMulInteger": _integer("MatMul", (-2, -1)),
        "ConvInteger": _integer("Conv", (1, 0)),
        "QLinearMatMul": _linear("MatMul", (-2, -1)),
        "QLinearConv": _linear("Conv", (1, 0)),
    }
)


def _is_product(node: Any, kept: Collection[str]) -> bool:
    return node.op_type in PRODUCTS and node.domain in DOMAINS and node.name not in kept


def _product(onnx: Any, model: Any, node: Any, kept: Collection[str]) -> list[Any]:
    """The nodes that a node becomes: itself, unless it is a product of integers."""
    if not _is_product(node, kept):
        return [node]
    body = _Body(onnx, model, node)
    PRODUCTS[node.op_type](body)
    return body.nodes

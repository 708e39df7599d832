"""Quantised tensors: what DequantizeLinear yields has the bits of what it reads.

A QuantizeLinear that DequantizeLinear alone reads, with the same scale, is one map: it rounds to the numbers that the
quantised type has. Everything behind it reads that tensor, and no other stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .graph import Graph, OnnxNode

Q, DQ = "QuantizeLinear", "DequantizeLinear"
ROUNDED = "rounded to"
"""An attribute of a QuantizeLinear: the quantised value whose numbers it yields dequantised."""
SAME = frozenset(
    "Identity Reshape Transpose Squeeze Unsqueeze Flatten Slice Gather Expand Tile Split Cast DepthToSpace "
    "SpaceToDepth".split()
)
"""Operators that move values and change none."""


def narrow(graph: Graph, nodes: Sequence[OnnxNode]) -> None:
    """Note the bits of what is dequantised. nodes: those that are folded, too."""
    found: dict[str, int] = {}
    for node in nodes:
        if node.domain or not node.inputs:
            continue
        if node.operator == DQ:
            found[node.outputs[0]] = graph.bits.get(node.inputs[0], 8)
        elif node.inputs[0] in found and (node.operator in SAME or _rescaled(graph, node)):
            found.update(dict.fromkeys(node.outputs, found[node.inputs[0]]))
    graph.bits.update(found)


def _rescaled(graph: Graph, node: OnnxNode) -> bool:
    """True for a constant that a scale or a zero point is applied to."""
    return node.operator in ("Sub", "Mul") and node.outputs[0] in graph.constants


def without_pairs(graph: Graph) -> list[OnnxNode]:
    """The nodes with each pair as one map, and what is dequantised twice alike as the same value."""
    readers: dict[str, list[OnnxNode]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    pairs = {
        node.outputs[0]: node
        for node in graph.nodes
        if node.operator == Q
        and not node.domain
        and node.outputs[0] not in graph.outputs
        and all(_undoes(graph, node, reader) for reader in readers.get(node.outputs[0], ()))
    }
    first: dict[object, str] = {}
    found = []
    for node in graph.nodes:
        if node.operator == DQ and not node.domain:
            key = (node.inputs[0], *(_known(graph, node, place) for place in (1, 2)), node.get("axis", 1))
            known = first.setdefault(key, node.outputs[0])
            if known != node.outputs[0]:
                node = _same(node, known)
            elif node.inputs[0] in pairs:
                before = pairs[node.inputs[0]]
                attributes = {**before.attributes, ROUNDED: node.inputs[0]}
                node = replace(node, operator=Q, attributes=attributes, before=before.origin)
        elif pairs.get(node.outputs[0] if node.outputs else "") is node:
            node = _same(node, node.inputs[0])
        found.append(node)
    return found


def _same(node: OnnxNode, name: str) -> OnnxNode:
    return replace(node, operator="Identity", inputs=(name,), attributes={})


def _undoes(graph: Graph, node: OnnxNode, reader: OnnxNode) -> bool:
    """True for a DequantizeLinear with the scale and the zero point of the QuantizeLinear."""
    if reader.operator != DQ or reader.domain or reader.inputs[0] != node.outputs[0]:
        return False
    alike = all(_known(graph, node, place) == _known(graph, reader, place) for place in (1, 2))
    return alike and node.get("axis", 1) == reader.get("axis", 1)


def _known(graph: Graph, node: OnnxNode, place: int) -> object:
    """An input, by its values if they are kept; zeros are as good as none."""
    name = node.inputs[place] if len(node.inputs) > place else ""
    value = graph.constants.get(name)
    if not name or (value is not None and not value.any()):
        return ""
    return name if value is None else (value.shape, value.tobytes())

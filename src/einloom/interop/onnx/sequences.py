"""Sequences that are split off a tensor and taken apart again: each element is a slice of the tensor.

PyTorch's exporter writes `split` and `chunk` so. Other sequences stay as they are, and are refused by name.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import numpy as np

from .graph import Graph, OnnxNode


def without_sequences(graph: Graph) -> list[OnnxNode]:
    """The nodes with SplitToSequence as the tensor itself, and each SequenceAt of it as a Gather of a range."""
    readers: dict[str, list[OnnxNode]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    starts = {
        node.outputs[0]: (node, found)
        for node in graph.nodes
        if node.operator == "SplitToSequence"
        and node.outputs[0] not in graph.outputs
        and all(_taken(graph, reader) for reader in readers.get(node.outputs[0], ()))
        and (found := _starts(graph, node)) is not None
    }
    return [_plain(graph, node, starts) for node in graph.nodes]


def _taken(graph: Graph, reader: OnnxNode) -> bool:
    """Does it take one element, of a place that is known?"""
    return reader.operator == "SequenceAt" and graph.constants.get(reader.inputs[1]) is not None


def _starts(graph: Graph, node: OnnxNode) -> list[int] | None:
    """Where the elements begin along the axis, and where the last ends; None if that is not known."""
    shape = graph.shapes.get(node.inputs[0])
    axis = node.get("axis", 0)
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    size = shape[axis]
    if len(node.inputs) < 2 or not node.inputs[1]:
        return list(range(size + 1))
    sizes = graph.constants.get(node.inputs[1])
    if sizes is None or (sizes < 1).any():
        return None
    if sizes.ndim == 0:
        return [*range(0, size, int(sizes)), size]
    found = [0, *accumulate(int(each) for each in sizes)]
    return found if found[-1] == size else None


def _plain(graph: Graph, node: OnnxNode, starts: dict[str, tuple[OnnxNode, list[int]]]) -> OnnxNode:
    """The node without sequences."""
    if node.outputs[0] in starts:
        name, source = node.outputs[0], node.inputs[0]
        graph.shapes[name], graph.types[name] = graph.shapes[source], graph.types[source]
        graph.bits[name] = graph.bits[source]
        return replace(node, operator="Identity", inputs=(source,))
    if node.operator != "SequenceAt" or node.inputs[0] not in starts:
        return node
    split, places = starts[node.inputs[0]]
    index = graph.constants[node.inputs[1]]
    assert index is not None
    at = int(index.reshape(-1)[0])
    if not -len(places) < at < len(places) - 1:
        return node
    at %= len(places) - 1
    single = len(split.inputs) < 2 and not split.get("keepdims", 1)
    chosen = np.array(places[at]) if single else np.arange(places[at], places[at + 1])
    axis = split.get("axis", 0) % len(graph.shapes[split.outputs[0]])
    shape = list(graph.shapes[split.outputs[0]])
    shape[axis : axis + 1] = chosen.shape
    indices, out = f"{node.outputs[0]}/range", node.outputs[0]
    graph.constants[indices], graph.shapes[indices] = chosen, chosen.shape
    graph.types[indices], graph.bits[indices] = chosen.dtype, 64
    graph.shapes[out], graph.types[out] = tuple(shape), graph.types[split.outputs[0]]
    graph.bits[out] = graph.bits[split.outputs[0]]
    return replace(node, operator="Gather", inputs=(split.outputs[0], indices), attributes={"axis": axis})

"""Small ONNX models for the tests, made with `onnx.helper`; weights are random."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
F = 1  # TensorProto.FLOAT
Shape = Sequence[int | str]


class Builder:
    """Nodes, weights, and a file of them."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def weight(self, *shape: int) -> str:
        """A random weight."""
        return self.constant(self.rng.uniform(0.1, 1, shape).astype(np.float32))

    def constant(self, value: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, operator: str, *inputs: str, outputs: int = 1, name: str | None = None, **attributes: Any) -> Any:
        """A node; its output, or all of them."""
        made = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        label = name or f"/body/{operator.lower()}{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, list(inputs), made, label, **attributes))
        return made[0] if outputs == 1 else made

    def model(self, inputs: dict[str, Shape], outputs: dict[str, Shape], kinds: dict[str, int] | None = None) -> Any:
        kinds = kinds or {}
        given = [onnx.helper.make_tensor_value_info(n, kinds.get(n, F), s) for n, s in inputs.items()]
        made = [onnx.helper.make_tensor_value_info(n, kinds.get(n, F), s) for n, s in outputs.items()]
        opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("some.where", 1)]
        graph = onnx.helper.make_graph(self.nodes, "g", given, made, self.weights)
        return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def save(self, path: Path, inputs: dict[str, Shape], outputs: dict[str, Shape], **kinds: int) -> Path:
        onnx.save(self.model(inputs, outputs, kinds), path)
        return path


def convnet(path: Path) -> Path:
    """Convolutions with stride, padding, groups and a residual, batch norm, pools, a classifier; batch is open."""
    b = Builder()

    def conv(x: str, channels: int, out: int, kernel: int, groups: int = 1, **attributes: Any) -> str:
        made = b.add(
            "Conv", x, b.weight(out, channels // groups, kernel, kernel), b.weight(out), group=groups, **attributes
        )
        normal = b.add("BatchNormalization", made, *(b.weight(out) for _ in range(4)))
        found: str = b.add("Relu", normal)
        return found

    x = conv("x", 3, 8, 3, strides=[2, 2], pads=[1, 1, 1, 1])
    x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    y = conv(conv(x, 8, 8, 1), 8, 8, 3, groups=4, pads=[1, 1, 1, 1])
    x = b.add("Add", x, y)
    x = b.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    y = b.add("Gemm", x, b.weight(5, 8), b.weight(5), transB=1)
    return b.save(path, {"x": ["batch", 3, 12, 12]}, {y: ["batch", 5]})


def attention(path: Path, tokens: int | str = 6) -> Path:
    """A layer of a transformer: fused Q, K, V, heads by reshape, a mask, softmax, layer norms, GELU in parts."""
    b = Builder()
    d, h = 8, 2
    x = b.add("LayerNormalization", "x", b.weight(d), b.weight(d))
    qkv = b.add("Add", b.add("MatMul", x, b.weight(d, 3 * d)), b.weight(3 * d))
    parts = b.add("Split", qkv, b.constant(np.array([d, d, d])), outputs=3, axis=2)
    heads = b.constant(np.array([0, 0, h, d // h]))
    q, k, v = (b.add("Transpose", b.add("Reshape", part, heads), perm=[0, 2, 1, 3]) for part in parts)
    scores = b.add("MatMul", q, b.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.add("Mul", scores, b.constant(np.float32(0.5)))
    if isinstance(tokens, int):
        scores = b.add("Add", scores, b.constant(np.triu(np.full((tokens, tokens), -9, np.float32), 1)))
    mixed = b.add("Transpose", b.add("MatMul", b.add("Softmax", scores), v), perm=[0, 2, 1, 3])
    flat = b.add("Reshape", mixed, b.constant(np.array([0, 0, d])))
    x = b.add("Add", "x", b.add("MatMul", flat, b.weight(d, d)))
    u = b.add("MatMul", b.add("LayerNormalization", x, b.weight(d), b.weight(d)), b.weight(d, 4 * d))
    e = b.add("Erf", b.add("Div", u, b.constant(np.float32(2**0.5))))
    g = b.add("Mul", b.add("Mul", u, b.add("Add", e, b.constant(np.float32(1)))), b.constant(np.float32(0.5)))
    y = b.add("Add", x, b.add("MatMul", g, b.weight(4 * d, d)))
    return b.save(path, {"x": [1, tokens, d]}, {y: [1, tokens, d]})

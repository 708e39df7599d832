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


def mixture(path: Path) -> Path:
    """What the others lack: dilation, slices with a step, parts, one tensor read in two ways, a repeated axis."""
    b = Builder()

    def shaped(x: str, *sizes: int) -> str:
        made: str = b.add("Reshape", x, b.constant(np.array(sizes)))
        return made

    wide = b.add("Conv", "x", b.weight(4, 4, 3, 3), dilations=[2, 2], pads=[2, 2, 2, 2])
    both = b.add("Concat", b.add("Tanh", wide), b.add("Neg", "x"), axis=1)
    narrow = b.add("Conv", both, b.weight(4, 8, 1, 1))
    from_, to, axes, steps = (b.constant(np.array(n)) for n in ([0, 0], [8, 4], [2, 3], [2, 1]))
    thinned = b.add("Slice", narrow, from_, to, axes, steps)  # every other row, the first columns
    tokens = b.add("Transpose", shaped(thinned, 1, 4, 16), perm=[0, 2, 1])
    tokens = b.add("Concat", b.weight(1, 1, 4), tokens, axis=1)
    tokens = b.add("Pad", tokens, b.constant(np.array([0, 2, 0, 0, 1, 0])), b.constant(np.float32(0.5)))
    centred = b.add("Sub", tokens, b.add("ReduceMean", tokens, b.constant(np.array([2]))))
    pairs = b.add("MatMul", centred, b.weight(4, 20))
    turned = b.add("Transpose", pairs, perm=[0, 2, 1])
    pairs = shaped(b.add("Tanh", b.add("Sub", pairs, turned)), 20, 20)  # one tensor, read in two ways
    biased = b.add("Sub", pairs, b.weight(20))
    square = b.add("Gemm", biased, b.weight(20, 20), transB=1)
    twice = b.add("Expand", shaped(square, 1, 2, 1, 200), b.constant(np.array([1, 2, 2, 200])))
    y = b.add("MatMul", shaped(twice, 4, 200), b.weight(200, 3))
    return b.save(path, {"x": [1, 4, 8, 8]}, {y: [4, 3]})

"""Operators that multiply and sum: MatMul, Gemm, Conv, Einsum."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ..graph import OnnxNode
from ..lower import Cut, Labels, Lowering
from ..program import Array
from ..ranks import View
from .views import permuted


def matmul(p: Lowering, left: View, right: View, value: str | None) -> View:
    """NumPy's matmul: vectors at either end, batches broadcast."""
    batch = max(len(left.dims), len(right.dims)) - 2
    names: list[list[str]] = [[f"b{i}"] for i in range(max(batch, 0))]

    def labels(view: View, last: Labels) -> list[Sequence[str]]:
        own = len(view.dims) - len(last)
        return [*names[len(names) - own :], *last] if own else list(last)

    first: Labels = [["m"], ["k"]] if len(left.dims) > 1 else [["k"]]
    second: Labels = [["k"], ["n"]] if len(right.dims) > 1 else [["k"]]
    output = [*names, *([["m"]] if len(left.dims) > 1 else []), *([["n"]] if len(right.dims) > 1 else [])]
    return p.einsum([(left, labels(left, first)), (right, labels(right, second))], output, value=value)


def _gemm(p: Lowering, node: OnnxNode) -> View:
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    left = permuted(p.view(node.inputs[0]), [1, 0] if node.get("transA", 0) else [0, 1])
    right = permuted(p.view(node.inputs[1]), [1, 0] if node.get("transB", 0) else [0, 1])
    bias = len(node.inputs) > 2 and bool(node.inputs[2]) and beta != 0
    plain = alpha == 1 and not bias
    view = matmul(p, left, right, node.outputs[0] if plain else None)
    if bias:

        def scaled(a: Sequence[Array]) -> Array:
            return alpha * a[0] + beta * a[1]

        return p.pointwise([view, p.view(node.inputs[2])], "add", scaled, node.outputs[0])
    return view if plain else p.pointwise([view], "mul", lambda a: alpha * a[0], node.outputs[0])


def windows(
    p: Lowering, node: OnnxNode, view: View, kernel: Sequence[int], first: int, spatial: Sequence[int]
) -> tuple[View, list[tuple[int, int]]]:
    """The view with dimensions from `first` on as positions and taps, and per dimension the taps: start and number.

    spatial: sizes of the output. Where there is a single position, only taps inside the tensor are left.
    """
    strides, dilations, pads = slides(node, view.shape[first:], kernel, spatial)
    taken: list[tuple[int, int]] = []
    for i, taps in enumerate(kernel):
        size, stride, pad, start = view.shape[first + 2 * i], strides[i], pads[i], 0
        if spatial[i] == 1:
            start = -(-pad // dilations[i])
            taps = min(taps, (size - 1 + pad) // dilations[i] + 1) - start
            stride, pad = 1, pad - start * dilations[i]
            if taps < 1:
                raise Cut("a window of nothing but padding")
        if size == 1 and (taps > 1 or spatial[i] > 1):
            raise Cut("a window over a size of 1")
        view = p.window(view, first + 2 * i, taps, stride, dilations[i], pad, spatial[i])
        taken.append((start, taps))
    return view, taken


def slides(
    node: OnnxNode, sizes: Sequence[int], kernel: Sequence[int], spatial: Sequence[int]
) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Strides, dilations, and padding before the first position, per dimension."""
    strides = node.get("strides") or [1] * len(kernel)
    dilations = node.get("dilations") or [1] * len(kernel)
    mode = node.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return strides, dilations, (node.get("pads") or [0] * len(kernel))[: len(kernel)]
    if mode == "VALID":
        return strides, dilations, [0] * len(kernel)
    found = []
    for size, taps, stride, dilation, out in zip(sizes, kernel, strides, dilations, spatial, strict=False):
        total = max((out - 1) * stride + (taps - 1) * dilation + 1 - size, 0)
        found.append((total + (mode == "SAME_LOWER")) // 2)
    return strides, dilations, found


def _conv(p: Lowering, node: OnnxNode) -> View:
    x, w = p.view(node.inputs[0]), p.view(node.inputs[1])
    groups = node.get("group", 1)
    batch, channels = x.shape[:2]
    kernel, spatial = w.shape[2:], p.shape(node.outputs[0])[2:]
    if channels % groups or w.shape[0] % groups or w.shape[1] != channels // groups:
        raise Cut(f"{groups} groups of {channels} channels")
    split = p.reshaped(x, [batch, groups, channels // groups, *x.shape[2:]])
    weight = p.reshaped(w, [groups, w.shape[0] // groups, *w.shape[1:]])
    count = len(kernel)
    positions, taps = [[f"p{i}"] for i in range(count)], [[f"r{i}"] for i in range(count)]
    moved, taken = windows(p, node, split, kernel, 3, spatial)
    for i, (start, number) in enumerate(taken):
        weight = p.sliced(weight, 3 + i, start, 1, number)
    inner = [label for pair in zip(positions, taps, strict=True) for label in pair]
    bias = len(node.inputs) > 2 and bool(node.inputs[2])
    view = p.einsum(
        [(moved, [["b"], ["g"], ["c"], *inner]), (weight, [["g"], ["o"], ["c"], *taps])],
        [["b"], ["g", "o"], *positions],
        value=None if bias else node.outputs[0],
    )
    if not bias:
        return view
    listed = p.reshaped(p.view(node.inputs[2]), [1, w.shape[0], *[1] * count])
    return p.pointwise([view, listed], "add", lambda a: a[0] + a[1], node.outputs[0])


def _einsum(p: Lowering, node: OnnxNode) -> View:
    equation = re.sub(r"\s", "", node.get("equation", ""))
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    views = [p.view(name) for name in node.inputs]
    if len(terms) != len(views) or not re.fullmatch(r"[A-Za-z.,]*", left):
        raise Cut(f"the equation {equation!r:.80}")
    dotted = [len(v.dims) - len(t) + 3 for v, t in zip(views, terms, strict=True) if "..." in t]
    rank = max(dotted, default=0)
    listed = [_labels(term, len(view.dims), rank) for term, view in zip(terms, views, strict=True)]
    if not arrow:
        single = sorted(c for c in set(left) - set(",.") if left.count(c) == 1)
        right = ("..." if "..." in left else "") + "".join(single)
    output = _labels(right, len(right.replace("...", "")) + (rank if "..." in right else 0), rank)
    for names in (*listed, output):
        flat = [name for dim in names for name in dim]
        if len(set(flat)) != len(flat):
            raise Cut("an index that stands twice in one operand")
    return p.einsum(list(zip(views, listed, strict=True)), output, value=node.outputs[0])


def _labels(term: str, dims: int, rank: int) -> list[list[str]]:
    before, dots, after = term.partition("...")
    own = dims - len(before) - len(after) if dots else 0
    if own < 0 or (not dots and len(before) != dims):
        raise Cut(f"{term!r:.40} for {dims} dimensions")
    return [*[[c] for c in before], *[[f"e{i}"] for i in range(rank - own, rank)], *[[c] for c in after]]


TABLE: Mapping[str, Callable[[Lowering, OnnxNode], View]] = MappingProxyType(
    {
        "MatMul": lambda p, node: matmul(p, p.view(node.inputs[0]), p.view(node.inputs[1]), node.outputs[0]),
        "Gemm": _gemm,
        "Conv": _conv,
        "Einsum": _einsum,
    }
)

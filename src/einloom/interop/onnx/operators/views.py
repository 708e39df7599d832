"""Operators that move nothing: an ONNX value is the same stored tensor under another index map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Literal

import numpy as np

from ..graph import OnnxNode
from ..lower import Boundary, Cut, Lowering
from ..ranks import Var, View


def _same(p: Lowering, node: OnnxNode) -> View:
    return p.view(node.inputs[0])


def _dropout(p: Lowering, node: OnnxNode) -> View:
    if (len(node.outputs) > 1 and node.outputs[1]) or (len(node.inputs) > 2 and node.inputs[2]):
        raise Cut("Dropout in training mode")
    return _same(p, node)


def _cast(p: Lowering, node: OnnxNode) -> View:
    source, target = (p.graph.types.get(name) for name in (node.inputs[0], node.outputs[0]))
    if source is None or target is None:
        raise Cut("a type that is not known")
    small = p.graph.bits[node.outputs[0]] < 16 and target.kind not in "biu"
    if small or any(word in str(target) for word in ("int2", "int4")):
        raise Cut(f"the narrow type {target}")
    narrows = (source.kind == "f" and target.kind in "biu") or target.kind == "b"
    if narrows or (source.kind in "iu" and target.kind in "iu" and target.itemsize < source.itemsize):
        return p.pointwise([p.view(node.inputs[0])], "elementwise", lambda a: a[0].astype(target), node.outputs[0])
    return _same(p, node)


def _reshape(p: Lowering, node: OnnxNode) -> View:
    """Every operator that keeps the row-major order: the shape is what inference says."""
    return p.reshaped(p.view(node.inputs[0]), p.shape(node.outputs[0]))


def _transpose(p: Lowering, node: OnnxNode) -> View:
    view = p.view(node.inputs[0])
    order = node.get("perm", list(range(len(view.dims)))[::-1])
    return permuted(view, order)


def permuted(view: View, order: Sequence[int]) -> View:
    """The view with its dimensions in another order."""
    if sorted(order) != list(range(len(view.dims))):
        raise Cut(f"{list(order)} is no order of {len(view.dims)} dimensions")
    return View(view.tensor, tuple(view.dims[i] for i in order), view.places)


def _expand(p: Lowering, node: OnnxNode) -> View:
    return broadcast(p, p.view(node.inputs[0]), p.shape(node.outputs[0]))


def broadcast(p: Lowering, view: View, shape: Sequence[int]) -> View:
    """The view with axes that index nothing where a size of 1 becomes larger."""
    dims: list[tuple[Var, ...]] = [(), *()] * (len(shape) - len(view.dims)) + list(view.dims)
    for i, size in enumerate(shape):
        if prod(var.size for var in dims[i]) == 1 and size > 1:
            dims[i] = (Var(p.splitter.rank(size, (p.node.outputs[0], i, "expand"))),)
    return View(view.tensor, tuple(dims), view.places)


def _tile(p: Lowering, node: OnnxNode) -> View:
    view = p.view(node.inputs[0])
    shape = p.shape(node.outputs[0])
    dims = []
    for i, (dim, size) in enumerate(zip(view.dims, shape, strict=True)):
        repeats = size // view.shape[i]
        extra = (Var(p.splitter.rank(repeats, (node.outputs[0], i, "tile"))),) if repeats > 1 else ()
        dims.append((*extra, *dim))
    return View(view.tensor, tuple(dims), view.places)


def _ints(p: Lowering, node: OnnxNode, place: int, attribute: str) -> list[int] | None:
    """A list of integers: an attribute, or a constant input."""
    if attribute in node.attributes:
        return [int(i) for i in node.attributes[attribute]]
    if len(node.inputs) <= place or not node.inputs[place]:
        return None
    value = p.constant(node.inputs[place])
    if value is None:
        raise Cut(f"the values of {node.inputs[place]!r:.80} are not kept")
    return [int(i) for i in value.reshape(-1)]


def _slice(p: Lowering, node: OnnxNode) -> View:
    view = p.view(node.inputs[0])
    starts, ends = _ints(p, node, 1, "starts"), _ints(p, node, 2, "ends")
    assert starts is not None and ends is not None
    axes = _ints(p, node, 3, "axes") or list(range(len(starts)))
    steps = _ints(p, node, 4, "steps") or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        dim = axis % len(view.dims)
        taken = range(view.shape[dim])[slice(start, end, step)]
        if not len(taken):
            raise Cut("a slice of nothing")
        view = p.sliced(view, dim, taken.start, taken.step if len(taken) > 1 else 1, len(taken))
    return view


def _split(p: Lowering, node: OnnxNode) -> None:
    view = p.view(node.inputs[0])
    dim = node.get("axis", 0) % len(view.dims)
    start, even = 0, -(-view.shape[dim] // len(node.outputs))
    for name, length in zip(node.outputs, _ints(p, node, 1, "split") or [even] * len(node.outputs), strict=True):
        if name:
            length = p.shape(name)[dim]  # the last one of even parts may be shorter
            p.put(name, p.sliced(view, dim, start, 1, length))
        start += length


def _gather(p: Lowering, node: OnnxNode) -> View:
    table, chosen = node.inputs[:2]
    if chosen not in p.graph.constants:
        raise Boundary(f"rows of {table} that {chosen} chooses")
    indices = p.constant(chosen)
    view = p.view(table)
    dim = node.get("axis", 0) % len(view.dims)
    if indices is None:
        raise Cut("rows by a large constant")
    flat = [int(i) % view.shape[dim] for i in indices.reshape(-1)]
    step = flat[1] - flat[0] if len(flat) > 1 else 1
    if step < 1 or flat != list(range(flat[0], flat[0] + step * len(flat), step)):
        mode = _padding(flat, view.shape[dim])
        raise Cut(f"padding by {mode!r}" if mode else "rows in an order that is no range")
    view = p.sliced(view, dim, flat[0], step, len(flat))
    return view if indices.ndim == 1 else p.reshaped(view, p.shape(node.outputs[0]))


def _padding(rows: list[int], size: int) -> str:
    """The mode of the padding that a choice of rows is, as PyTorch writes it; empty if it is none.

    >>> _padding([1, 0, 1, 2, 1], 3), _padding([0, 0, 1, 2], 3), _padding([2, 0, 1, 2], 3), _padding([2, 1, 0], 3)
    ('reflect', 'edge', 'wrap', '')
    """
    more = len(rows) - size
    modes: list[tuple[Literal["reflect", "edge", "wrap"], int]] = [
        ("reflect", rows[0]),
        ("edge", rows.count(0) - 1),
        ("wrap", -rows[0] % size),
    ]
    for mode, before in modes:
        ends = (before, more - before)
        if more > 0 and min(ends) >= 0 and rows == np.pad(np.arange(size), ends, mode).tolist():
            return mode
    return ""


def _depth_to_space(p: Lowering, node: OnnxNode) -> View:
    n, c, h, w = p.shape(node.inputs[0])
    b = node.get("blocksize")
    crd = node.get("mode", "DCR") == "CRD"
    parts = [n, c // b**2, b, b, h, w] if crd else [n, b, b, c // b**2, h, w]
    view = p.reshaped(p.view(node.inputs[0]), parts)
    order = [0, 1, 4, 2, 5, 3] if crd else [0, 3, 4, 1, 5, 2]
    return p.reshaped(permuted(view, order), p.shape(node.outputs[0]))


def _space_to_depth(p: Lowering, node: OnnxNode) -> View:
    n, c, h, w = p.shape(node.inputs[0])
    b = node.get("blocksize")
    view = p.reshaped(p.view(node.inputs[0]), [n, c, h // b, b, w // b, b])
    order = [0, 1, 3, 5, 2, 4] if node.get("mode", "DCR") == "CRD" else [0, 3, 5, 1, 2, 4]
    return p.reshaped(permuted(view, order), p.shape(node.outputs[0]))


def _concat(p: Lowering, node: OnnxNode) -> View:
    """Several tensors one behind the other are written as parts of one."""
    given = [name for name in node.inputs if name]
    shape = p.shape(node.outputs[0])
    if len(given) == 1:
        return _same(p, node)
    dim, parts, start = node.get("axis", 0) % len(shape), [], 0
    for name in given:
        view = p.view(name)
        parts.append((view, [start if d == dim else 0 for d in range(len(shape))]))
        start += view.shape[dim]
    return p.parts(node.outputs[0], parts)


def _pad(p: Lowering, node: OnnxNode) -> View:
    """A constant around a tensor is there from the start; the tensor is written as a part."""
    pads = _ints(p, node, 1, "pads") or []
    if not any(pads) and p.shape(node.inputs[0]) == p.shape(node.outputs[0]):
        return _same(p, node)
    shape = p.shape(node.outputs[0])
    mode = node.get("mode", "constant")
    axes = [axis % len(shape) for axis in _ints(p, node, 3, "axes") or range(len(shape))]
    if mode != "constant" or any(pad < 0 for pad in pads) or len(pads) != 2 * len(axes):
        raise Cut(f"padding by {mode!r}" if mode != "constant" else "padding that takes away")
    value = p.constant(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    fill = float(node.get("value", 0.0)) if value is None else float(value.reshape(-1)[0])
    before = dict(zip(axes, pads, strict=False))
    starts = [before.get(d, 0) for d in range(len(shape))]
    return p.parts(node.outputs[0], [(p.view(node.inputs[0]), starts)], fill)


def _resize(p: Lowering, node: OnnxNode) -> View:
    """The nearest value at an integer scale is each value written several times; other resolutions are cut."""
    before, after = p.shape(node.inputs[0]), p.shape(node.outputs[0])
    if before == after:
        return _same(p, node)
    mode, place = node.get("mode", "nearest"), node.get("coordinate_transformation_mode", "half_pixel")
    rounds = node.get("nearest_mode", "round_prefer_floor")
    first = place == "asymmetric" and rounds == "floor"
    nearest = first or (place.endswith("half_pixel") and rounds.startswith("round"))
    at = 1 if node.version < 11 else 2
    scales = p.constant(node.inputs[at]) if len(node.inputs) > at and node.inputs[at] else None
    uneven = scales is not None and bool((scales != scales.round()).any())
    if mode != "nearest" or not nearest or uneven or any(b % a for a, b in zip(before, after, strict=True)):
        raise Cut("another resolution")
    view, scaled = p.view(node.inputs[0]), [d for d, size in enumerate(before) if after[d] != size]
    dims = list(view.dims)
    for d in scaled:
        repeated = Var(p.splitter.rank(after[d] // before[d], (node.outputs[0], d, "resize")))
        dims[d] = (*dims[d], repeated)
    wide = View(view.tensor, tuple(dims), view.places)
    return p.parts(node.outputs[0], [(wide, [0] * len(after))], joined=scaled)


TABLE: Mapping[str, Callable[[Lowering, OnnxNode], View | None]] = MappingProxyType(
    {
        "Identity": _same,
        "Dropout": _dropout,
        "Cast": _cast,
        "CastLike": _cast,
        **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshape),
        "Transpose": _transpose,
        "Expand": _expand,
        "Tile": _tile,
        "Slice": _slice,
        "Split": _split,
        "Gather": _gather,
        "DepthToSpace": _depth_to_space,
        "SpaceToDepth": _space_to_depth,
        "Concat": _concat,
        "Pad": _pad,
        "Resize": _resize,
    }
)

"""QuantizeLinear and DequantizeLinear: maps that round to the numbers of a type, or yield what such numbers mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..graph import OnnxNode
from ..lower import Cut, Lowering
from ..program import Array
from ..quantised import DQ, ROUNDED, Q
from ..ranks import View
from ..ties import nearest


def _quantize(p: Lowering, node: OnnxNode) -> View:
    """Rounded numbers, in units of the scale; as plain numbers again if a DequantizeLinear is in it."""
    rounded = node.get(ROUNDED)
    quantised = rounded or node.outputs[0]
    kind = str(p.graph.types[quantised])
    if "int" not in kind:
        raise Cut(f"quantising to {kind}")
    bits = p.graph.bits[quantised]
    least = 0 if kind.startswith("u") else -(2 ** (bits - 1))
    most = least + 2**bits - 1

    own = p.graph.types[node.inputs[1]]  # numbers half-way between two others are rounded as the model does

    def quantize(a: Sequence[Array]) -> Array:
        zero = a[2].astype(float) if len(a) > 2 else 0.0
        quotient = a[0].astype(own) / a[1].astype(own)
        found = np.clip(nearest(quotient.astype(float), node.outputs[0]) + zero, least, most)
        return found if rounded is None else (found - zero) * a[1]

    return p.pointwise([p.view(node.inputs[0]), *_scales(p, node)], "elementwise", quantize, node.outputs[0])


def _dequantize(p: Lowering, node: OnnxNode) -> View | None:
    """What quantised numbers mean; an input of the cascade if they are one."""
    view = p.view(node.inputs[0])
    if all(step.output is not view.tensor.base for step in p.program.steps):
        p.read(node.outputs[0])
        return None

    def dequantize(a: Sequence[Array]) -> Array:
        return (a[0].astype(float) - (a[2].astype(float) if len(a) > 2 else 0.0)) * a[1]

    return p.pointwise([view, *_scales(p, node)], "elementwise", dequantize, node.outputs[0])


def _scales(p: Lowering, node: OnnxNode) -> list[View]:
    """Scale and zero point, along their axis."""
    shape = p.shape(node.inputs[0])
    found = []
    for name in filter(None, node.inputs[1:3]):
        view = p.view(name)
        if len(view.dims) > 1 or node.get("block_size", 0):
            raise Cut("scales of blocks")
        axis = node.get("axis", 1) % len(shape) if shape else 0
        single = view.shape in ((), (1,))
        found.append(p.reshaped(view, [1 if single or d != axis else view.shape[0] for d in range(len(shape))]))
    return found


TABLE: Mapping[str, Callable[[Lowering, OnnxNode], View | None]] = MappingProxyType({Q: _quantize, DQ: _dequantize})

"""A .onnx file as a `Graph`: axes bound, functions inlined, shapes inferred, constants folded.

The file's size bounds everything: large and external tensors keep shape and type only, no other file is opened, and
nothing in it is executed but NumPy's arithmetic on small constants (`folding`).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import MissingExtra, SpecError, combined, nearest
from ...reading.plugins import MISTAKES
from .expand import DOMAINS, expanded, name_all
from .folding import fold
from .graph import FUNCTION, OPTIONS, Graph, OnnxNode, Wording
from .quantised import narrow, without_pairs
from .sequences import without_sequences
from .wellformed import check_inputs, check_order

MAX_BYTES = 2**31 - 1  # of a protobuf message
MAX_NODES = 100_000
MAX_VALUES = 2**40  # of one tensor
KEPT = 4096  # values of a constant that are kept
ROUNDS = 8
SHAPED_AS_INPUT = frozenset(("GroupNormalization", "MeanVarianceNormalization"))
"""Functions without shape inference in the package onnx, whose result has the shape and the type of their input."""
NAME_SCOPES = "pkg.torch.onnx.name_scopes"
_BITS = {"BOOL": 1, "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}


def library() -> Any:
    """The package onnx. Raises MissingExtra."""
    try:
        import onnx
        import onnx.inliner
        import onnx.shape_inference
    except ImportError:
        raise MissingExtra("onnx", "onnx") from None
    return onnx


def load(
    path: str | Path,
    sizes: Mapping[str, int] | None = None,
    kept: int = KEPT,
    wording: Wording = FUNCTION,
    opaque: Collection[str] = (),
) -> Graph:
    """The graph of a file. sizes: of axes that the file leaves open, by name. kept: constants up to it keep values.
    opaque: names of nodes that stay as they are.

    Raises SpecError for what is no ONNX file, for an axis without a size, for a shape that stays unknown.
    """
    onnx = library()
    data = file_bytes(path)
    failures: tuple[type[Exception], ...] = (*MISTAKES, *_foreign(onnx))
    try:
        model = onnx.ModelProto()
        model.ParseFromString(data)
        if not model.graph.node:
            raise SpecError("this is not an ONNX file: it has no graph with nodes", file=str(path))
        return from_model(model, str(path), sizes or {}, kept, hashlib.sha256(data).hexdigest(), wording, opaque)
    except SpecError as error:
        if error.file is None:
            raise SpecError(error.message, file=str(path)) from None
        raise
    except failures as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SpecError(f"this is not a valid ONNX file: {reason:.200}", file=str(path)) from None


def _foreign(onnx: Any) -> tuple[type[Exception], ...]:
    """The errors of the libraries, which derive from nothing but Exception."""
    from google.protobuf.message import DecodeError, EncodeError

    found: tuple[type[Exception], ...] = (DecodeError, EncodeError)
    return (*found, onnx.shape_inference.InferenceError, onnx.checker.ValidationError)


def file_bytes(path: str | Path) -> bytes:
    """The content of a regular file of at most 2 GB. Raises SpecError."""
    file = str(path)
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            raise SpecError("this is not a regular file", file=file)
        if about.st_size > MAX_BYTES:
            raise SpecError(f"the file has {about.st_size / 1e9:.1f} GB; an ONNX file has at most 2 GB", file=file)
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SpecError(f"cannot read the file: {reason}", file=file) from None


def from_model(
    model: Any,
    file: str,
    sizes: Mapping[str, int],
    kept: int = KEPT,
    digest: str = "",
    wording: Wording = FUNCTION,
    opaque: Collection[str] = (),
) -> Graph:
    """The graph of a ModelProto, which is changed on the way."""
    onnx = library()
    if len(model.graph.node) > MAX_NODES:
        raise SpecError(f"the graph has {len(model.graph.node):,} nodes; at most {MAX_NODES:,} are read", file=file)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    inputs = _bind(onnx, model.graph, dict(sizes), file, wording)
    unnamed = name_all(model)
    model = expanded(onnx, model, opaque)
    constants = _strip(onnx, model.graph, kept)
    versions = {opset.domain: opset.version for opset in model.opset_import}
    nodes = [_node(onnx, node, i, versions, unnamed) for i, node in enumerate(model.graph.node)]
    check_order(nodes, {*inputs, *constants}, file)
    check_inputs(onnx, nodes, file)
    graph = Graph(Path(file).stem, nodes, inputs, tuple(o.name for o in model.graph.output), constants=constants)
    graph.file, graph.source, graph.wording = file, f"{Path(file).name}, sha256 {digest[:12]}", wording
    _infer(onnx, model, graph)
    graph.folded = len(nodes) - len(graph.nodes)
    graph.unshaped = _unshaped(onnx, model, graph)
    narrow(graph, nodes)
    graph.nodes = without_sequences(graph)
    graph.nodes = without_pairs(graph)
    graph.nodes = _read_only(graph)
    _check_sizes(graph, file)
    return graph


def _read_only(graph: Graph) -> list[OnnxNode]:
    """The nodes without the names of outputs that nothing reads, the first excepted, and of empty parts of a Concat."""
    nodes = [replace(node, inputs=_parts(graph, node)) if node.operator == "Concat" else node for node in graph.nodes]
    read = {name for node in nodes for name in node.inputs} | set(graph.outputs)
    return [
        replace(node, outputs=(*node.outputs[:1], *(name if name in read else "" for name in node.outputs[1:])))
        for node in nodes
    ]


def _parts(graph: Graph, node: OnnxNode) -> tuple[str, ...]:
    return tuple(name for name in node.inputs if 0 not in graph.shapes.get(name, ())) or node.inputs


def _infer(onnx: Any, model: Any, graph: Graph) -> None:
    """Shapes, and whatever folds; again while what folded may give further shapes."""
    nodes, known = graph.nodes, 0
    for _ in range(ROUNDS):
        _note_shapes(onnx, _inferred(onnx, model).graph, graph)
        graph.nodes = fold(graph, nodes)
        if len(graph.constants) == known or all(name in graph.shapes for node in graph.nodes for name in node.outputs):
            return
        known = len(graph.constants)
        present = {tensor.name for tensor in model.graph.initializer}
        for name, value in graph.constants.items():
            if value is not None and name not in present and value.dtype != object and value.size <= KEPT:
                model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
        left = {id(node) for node in graph.nodes}
        kept = [proto for proto, node in zip(model.graph.node, nodes, strict=True) if id(node) in left]
        nodes = graph.nodes
        del model.graph.node[:]
        model.graph.node.extend(kept)


def _inferred(onnx: Any, model: Any) -> Any:
    """The model with shapes. A norm that the package knows no shape of stands as an Identity meanwhile."""
    norms = [node for node in model.graph.node if node.op_type in SHAPED_AS_INPUT and node.domain in DOMAINS]
    originals = []
    for node in norms:
        originals.append(onnx.NodeProto())
        originals[-1].CopyFrom(node)
        node.op_type = "Identity"
        del node.input[1:]
        del node.attribute[:]
    found = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)
    for node, original in zip(norms, originals, strict=True):
        node.CopyFrom(original)
    return found


def _unshaped(onnx: Any, model: Any, graph: Graph) -> str:
    """Why some shape is not known, as the package onnx says it; empty if all are, or if it does not say."""
    if all(name in graph.shapes for node in graph.nodes for name in node.outputs if name):
        return ""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        lines = str(error).strip().splitlines() or [""]
        return re.sub(r"^.*(Error\]|\):)\s*", "", lines[-1])[:200]
    return ""


def _note_shapes(onnx: Any, proto: Any, graph: Graph) -> None:
    for info in (*proto.input, *proto.value_info, *proto.output):
        if not info.type.HasField("tensor_type"):
            continue
        kind = info.type.tensor_type
        if kind.elem_type:
            _note_type(onnx, graph, info.name, kind.elem_type)
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            graph.shapes[info.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    for tensor in proto.initializer:
        graph.shapes[tensor.name] = tuple(tensor.dims)
        _note_type(onnx, graph, tensor.name, tensor.data_type)


def _note_type(onnx: Any, graph: Graph, name: str, kind: int) -> None:
    words = onnx.TensorProto.DataType.Name(kind)
    if words in ("UNDEFINED", "STRING"):
        return
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
    graph.types[name] = dtype
    graph.bits[name] = _BITS.get(words, 8 * dtype.itemsize)


def _bind(onnx: Any, proto: Any, sizes: dict[str, int], file: str, wording: Wording) -> tuple[str, ...]:
    """Give every open axis of the inputs its size; the names of the inputs that no initializer gives."""
    given = {tensor.name for tensor in proto.initializer} | {t.values.name for t in proto.sparse_initializer}
    inputs = [value for value in proto.input if value.name not in given]
    axes: dict[str, list[str]] = {}
    stated: dict[str, int] = {}
    for value in inputs:
        if not value.type.HasField("tensor_type"):
            raise SpecError(f"input {value.name!r:.80} is a {value.type.WhichOneof('value')}, not a tensor", file=file)
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value > 0:
                continue
            axis = dim.dim_param or f"{value.name}.{i}"
            axes.setdefault(axis, []).append(value.name)
            if dim.HasField("dim_value"):
                stated[axis] = dim.dim_value
            if axis in sizes:
                dim.dim_value = sizes[axis]
    wrong = [
        _unsized(axis, names, stated.get(axis), file, wording) for axis, names in axes.items() if axis not in sizes
    ]
    wrong += [_unknown_axis(axis, axes, file, wording) for axis in sizes if axis not in axes]
    if wrong:
        raise combined(wrong)
    for value in (*proto.value_info, *proto.output):  # their names of open axes mean nothing any more
        for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
            if dim.dim_param:
                dim.ClearField("dim_param")
    return tuple(value.name for value in inputs)


def _unsized(axis: str, inputs: Sequence[str], stated: int | None, file: str, wording: Wording) -> SpecError:
    first, *others = dict.fromkeys(inputs)
    more = f" and {len(others)} more" if others else ""
    has = "no size" if stated is None else f"a size of {stated} in the file"
    example = wording.axis(axis, file)
    return SpecError(f"axis {axis!r:.80} of input {first!r:.80}{more} has {has}; write {example:.120}", file=file)


def _unknown_axis(axis: str, axes: Mapping[str, object], file: str, wording: Wording) -> SpecError:
    if axis in OPTIONS and wording.elsewhere:
        return SpecError(f"{axis!r} is no axis, but {wording.elsewhere.format(file=Path(file).name)}", file=file)
    known = f"open are {', '.join(sorted(axes))}" if axes else "none is open"
    return SpecError(f"no axis {axis!r:.80}; {known:.300}", file=file, suggestion=nearest(axis, axes))


def _strip(onnx: Any, proto: Any, kept: int) -> dict[str, Any]:
    """The constants by name. Large and external ones become inputs, so that shape inference knows their shapes."""
    constants: dict[str, Any] = {}
    left = []
    listed = {value.name for value in proto.input}
    for tensor in proto.initializer:
        values = _values(onnx, tensor, kept)
        constants[tensor.name] = values
        if values is not None:
            left.append(tensor)
        elif tensor.name not in listed:
            proto.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    for sparse in proto.sparse_initializer:
        constants[sparse.values.name] = None
        kind = sparse.values.data_type
        proto.input.append(onnx.helper.make_tensor_value_info(sparse.values.name, kind, sparse.dims))
    del proto.sparse_initializer[:]
    del proto.initializer[:]
    proto.initializer.extend(left)
    return constants


def _values(onnx: Any, tensor: Any, kept: int) -> Any:
    """The values of a TensorProto; None if there are more than `kept`, or if they stand in another file."""
    for dim in tensor.dims:
        if dim < 0:
            raise SpecError(f"tensor {tensor.name!r:.80} has a size of {dim}")
    if prod(tensor.dims) > MAX_VALUES:
        raise SpecError(f"tensor {tensor.name!r:.80} has more than 2**40 values")
    if prod(tensor.dims) > kept or tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        return None
    return onnx.numpy_helper.to_array(tensor)


def _node(onnx: Any, proto: Any, number: int, versions: Mapping[str, int], unnamed: Collection[str]) -> OnnxNode:
    domain = "" if proto.domain in DOMAINS else proto.domain
    version = versions.get(proto.domain, versions.get(domain, 1))
    attributes = {item.name: _attribute(onnx, item) for item in proto.attribute}
    return OnnxNode(
        proto.name or f"{proto.op_type}_{number}#{number}",
        proto.op_type,
        domain,
        tuple(proto.input),
        tuple(proto.output),
        attributes,
        version,
        _scope(proto),
        bool(proto.name) and proto.name not in unnamed,
    )


def _scope(proto: Any) -> str:
    """The module path among the node's metadata: PyTorch writes all paths around the node, then the node's own name."""
    written = next((item.value for item in proto.metadata_props if item.key == NAME_SCOPES), "")
    paths: list[str] = re.findall(r"'([^']*)'", written)
    return paths[-2] if len(paths) > 1 else ""


def _attribute(onnx: Any, item: Any) -> Any:
    """An attribute's value: numbers, texts, arrays (None without data), lists of them; a graph as ``"graph"``."""
    kind = onnx.AttributeProto.AttributeType.Name(item.type)
    match kind:
        case "TENSOR":
            return _values(onnx, item.t, 2**22)
        case "STRING":
            return item.s.decode("utf-8", "replace")
        case "STRINGS":
            return [text.decode("utf-8", "replace") for text in item.strings]
        case "INT" | "FLOAT" | "INTS" | "FLOATS":
            value = onnx.helper.get_attribute_value(item)
            return list(value) if kind.endswith("S") else value
        case _:
            return kind.lower()


def _check_sizes(graph: Graph, file: str) -> None:
    """Refuse tensors that are empty or too large."""
    for node in graph.nodes:
        for name in (*node.inputs, *node.outputs):
            if prod(graph.shapes.get(name, ())) > MAX_VALUES:
                raise SpecError(f"tensor {name!r:.80} of {node} has more than 2**40 values", file=file)


def axis_sizes(parameters: Mapping[str, str], file: str) -> dict[str, int]:
    """Sizes of axes as the user writes them. Raises SpecError for what is no size."""
    found: dict[str, int] = {}
    for name, text in parameters.items():
        if not re.fullmatch(r"[0-9]{1,13}", text) or not 1 <= int(text) <= MAX_VALUES:
            raise SpecError(f"{name}={text!s:.40} is not a whole number from 1 to 2**40", file=file)
        found[name] = int(text)
    return found

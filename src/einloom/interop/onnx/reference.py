"""Every value of an ONNX graph on random inputs: by onnxruntime if it is installed, else by the package onnx."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import SpecError
from ...reading.plugins import MISTAKES
from .expand import DOMAINS, expanded
from .graph import Array, Graph
from .load import file_bytes, library


def values_of(file: str, graph: Graph, inputs: Mapping[str, Array] | None, seed: int) -> dict[str, Array]:
    """Inputs, weights and all values between, by name. Raises SpecError if the model cannot be run."""
    onnx = library()
    model = onnx.ModelProto()
    model.ParseFromString(file_bytes(file))
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    load_external(onnx, model.graph.initializer, file)
    _bind(model.graph, graph)
    model = expanded(onnx, model)
    given = dict(inputs or {}) or random_inputs(graph, seed)
    failures: tuple[type[Exception], ...] = (*MISTAKES, *_failures())
    try:
        found = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        found |= {name: value for name, value in graph.constants.items() if value is not None}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found.update(_run(onnx, model, graph, given))
    except failures as error:
        raise SpecError(f"the model cannot be run: {error!s:.200}", file=file) from None
    return {**found, **given}


def runner() -> str:
    """Who runs models here, with its version."""
    try:
        import onnxruntime
    except ImportError:
        return f"the reference implementation of onnx {library().__version__}"
    return f"onnxruntime {onnxruntime.__version__}"


def _bind(proto: Any, graph: Graph) -> None:
    """Give open axes of the inputs the sizes that the graph has."""
    for value in proto.input:
        if value.name in graph.inputs:
            for dim, size in zip(value.type.tensor_type.shape.dim, graph.shapes[value.name], strict=True):
                dim.dim_value = size


def load_external(onnx: Any, tensors: Iterable[Any], file: str) -> None:
    """Put the values of tensors that stand in other files into them.

    Reads regular files in the folder of the model or below it, of at most 2 GB each. Raises SpecError for any other.
    """
    folder = Path(file).resolve().parent
    read: dict[Path, bytes] = {}
    for tensor in tensors:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        said = {entry.key: entry.value for entry in tensor.external_data}
        location = said.get("location", "")
        start, length = (_position(said.get(key, "0"), tensor.name, file) for key in ("offset", "length"))
        path = Path(folder, location).resolve() if location and "\0" not in location else folder
        if path == folder or not path.is_relative_to(folder):
            where = f"{location!r:.120}, which is no file in the folder of the model"
            raise SpecError(f"{tensor.name!r:.80} stands in {where}: there are no numbers to check", file=file)
        if path not in read:
            read[path] = file_bytes(path)
        end = start + length if "length" in said else len(read[path])
        if not start <= end <= len(read[path]):
            has = f"{Path(location).name!r:.120} has {len(read[path]):,} bytes"
            raise SpecError(f"{has}, and {tensor.name!r:.80} stands there from {start:,} to {end:,}", file=file)
        tensor.raw_data = read[path][start:end]
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _position(text: str, name: str, file: str) -> int:
    """A number of bytes. Raises SpecError."""
    if not re.fullmatch(r"[0-9]{1,13}", text):
        raise SpecError(
            f"{name!r:.80} stands in another file from {text!r:.40}, which is no number of bytes", file=file
        )
    return int(text)


def random_inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Inputs between -1 and 1; integers are 0 or 1."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name in graph.inputs:
        kind, shape = graph.types[name], graph.shapes[name]
        drawn = rng.integers(0, 2, shape) if kind.kind in "biu" else rng.uniform(-1, 1, shape)
        found[name] = np.asarray(drawn).astype(kind)
    return found


def _run(onnx: Any, model: Any, graph: Graph, given: Mapping[str, Array]) -> dict[str, Array]:
    made = dict.fromkeys(name for node in graph.nodes for name in node.outputs if name)
    folded = {name for node in model.graph.node for name in node.output if graph.constants.get(name, "") is None}
    names = [name for name in (*made, *sorted(folded - made.keys())) if name in graph.shapes]
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        found = ReferenceEvaluator(model, new_ops=operators(model)).run(None, dict(given), intermediate=True)
        return {name: np.asarray(found[name]) for name in names if isinstance(found.get(name), np.ndarray | np.generic)}
    known = {output.name for output in model.graph.output}
    for name in names:
        if name not in known:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    return dict(zip(outputs, session.run(None, dict(given)), strict=True))


def operators(model: Any) -> list[Any]:
    """Operators that the package onnx does not run, or runs wrongly."""
    version = min((opset.version for opset in model.opset_import if opset.domain in DOMAINS), default=1)
    return [_lrn(), *(_quantisation() if version < 19 else ()), *(_softmax() if version < 13 else ())]


def _lrn() -> Any:
    """LRN of all channels: that of onnx 1.23 goes over as many channels as there are images."""
    from onnx.reference.op_run import OpRun

    class LRN(OpRun):  # type: ignore[misc]
        def _run(self, x: Array, alpha: float, beta: float, bias: float, size: int) -> tuple[Array]:
            before, channels = (size - 1) // 2, x.shape[1]
            ends = [(max(0, c - before), c - before + size) for c in range(channels)]
            squares = np.stack([np.sum(x[:, first:last] ** 2, axis=1) for first, last in ends], axis=1)
            return ((x / (bias + alpha / size * squares) ** beta).astype(x.dtype),)

    return LRN


def _softmax() -> list[Any]:
    """Softmax and its kin of before opset 13, over all dimensions from the axis on; the package goes over one alone."""
    from onnx.reference.op_run import OpRun

    def flat(operator: Any, x: Array) -> Array:
        axis = next((item.i for item in operator.onnx_node.attribute if item.name == "axis"), 1)
        return x.reshape(math.prod(x.shape[: axis % max(x.ndim, 1)]), -1)

    def logarithms(operator: Any, x: Array) -> Array:
        rows = flat(operator, x)
        rows = rows - rows.max(axis=1, keepdims=True)
        return np.asarray(rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))).reshape(x.shape)

    class Softmax(OpRun):  # type: ignore[misc]
        def _run(self, x: Array, **_: Any) -> tuple[Array]:
            return (np.exp(logarithms(self, x)).astype(x.dtype),)

    class LogSoftmax(OpRun):  # type: ignore[misc]
        def _run(self, x: Array, **_: Any) -> tuple[Array]:
            return (logarithms(self, x).astype(x.dtype),)

    class Hardmax(OpRun):  # type: ignore[misc]
        def _run(self, x: Array, **_: Any) -> tuple[Array]:
            rows = flat(self, x)
            return ((np.arange(rows.shape[1]) == rows.argmax(axis=1)[:, None]).reshape(x.shape).astype(x.dtype),)

    return [Softmax, LogSoftmax, Hardmax]


def _quantisation() -> list[Any]:
    """QuantizeLinear and DequantizeLinear of before opset 19, which the package onnx does not run."""
    from onnx.reference.op_run import OpRun

    def along(values: Array, x: Array, axis: int) -> Array:
        return values.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)]) if values.size > 1 else values

    class QuantizeLinear(OpRun):  # type: ignore[misc]
        def _run(self, x: Array, scale: Array, zero: Array | None = None, axis: int = 1, **_: Any) -> tuple[Array]:
            zeros = np.zeros_like(scale, np.uint8) if zero is None else zero
            about = np.iinfo(zeros.dtype)
            found = np.rint(x / along(scale, x, axis)) + along(zeros.astype(np.int32), x, axis)
            return (np.clip(found, about.min, about.max).astype(zeros.dtype),)

    class DequantizeLinear(OpRun):  # type: ignore[misc]
        def _run(self, x: Array, scale: Array, zero: Array | None = None, axis: int = 1, **_: Any) -> tuple[Array]:
            shifted = x.astype(np.int64) - (0 if zero is None else along(zero.astype(np.int64), x, axis))
            return ((shifted * along(scale, x, axis)).astype(scale.dtype),)

    return [QuantizeLinear, DequantizeLinear]


def _failures() -> tuple[type[Exception], ...]:
    """The errors of onnxruntime, which derive from nothing but Exception."""
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as state
    except ImportError:
        return ()
    names = ("Fail", "InvalidArgument", "InvalidGraph", "NotImplemented", "RuntimeException", "NoSuchFile")
    return tuple(getattr(state, name) for name in names if hasattr(state, name))

"""ONNX in: quantised tensors have the bits of their types, and functions of ONNX are what their bodies say."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from einloom.errors import SpecError
from einloom.interop.onnx import ImportedModel, from_onnx
from einloom.interop.onnx.reference import operators
from einloom.interop.onnx.ties import both_ways, nearest
from onnx_models import Builder, onnx

F, I8, U8, I32 = 1, 3, 2, 6  # of TensorProto.DataType
Array = Any


def bits(model: ImportedModel) -> dict[str, int]:
    return {tensor.name: tensor.bits for tensor in model.workload.tensors}


def int8(b: Builder, *shape: int, zeros: bool = True) -> Array:
    """A constant of int8, a scale for each of its rows, and zero points."""
    values = b.rng.integers(-100, 100, shape).astype(np.int8)
    scales = b.rng.uniform(0.01, 0.03, shape[:1]).astype(np.float32)
    points = np.zeros(shape[:1], np.int8) if zeros else b.rng.integers(-9, 9, shape[:1]).astype(np.int8)
    return [b.constant(each) for each in (values, scales, points)]


def rounded(b: Builder, x: str, scale: float = 0.02, zero: int = 3) -> str:
    """QuantizeLinear and DequantizeLinear, as tools write them around each operator."""
    given = [b.constant(np.float32(scale)), b.constant(np.uint8(128 + zero))]
    found: str = b.add("DequantizeLinear", b.add("QuantizeLinear", x, *given), *given)
    return found


@pytest.mark.parametrize("rows", [16, 100])
def test_quantised_networks_have_tensors_of_eight_bits(tmp_path: Path, rows: int) -> None:
    """A convolution with a kernel per channel and a product, with kept and with large weights."""
    b = Builder()
    kernel = b.add("DequantizeLinear", *int8(b, rows, 4, 3, 3, zeros=False), axis=0)
    first = b.add("Relu", b.add("Conv", rounded(b, "x"), kernel, b.weight(rows), pads=[1, 1, 1, 1]))
    flat = b.add("Reshape", rounded(b, first), b.constant(np.array([rows, 64])))
    weights = b.add("Transpose", b.add("DequantizeLinear", *int8(b, 8, 64), axis=0), perm=[1, 0])
    out = rounded(b, b.add("MatMul", flat, weights), 0.5)
    model = from_onnx(b.save(tmp_path / "m.onnx", {"x": (1, 4, 8, 8)}, {out: (rows, 8)}))
    assert len(model.workload.einsums) == 3, "x is rounded, and the others where they are made"
    assert {name: width for name, width in bits(model).items() if width != 8} == {"x": 32}
    assert model.multiplications[0] == model.multiplications[1]
    agreed = model.check()
    assert agreed.worst < 1e-5 and agreed.tensors == 3 and agreed.limit == pytest.approx(10 / 128)
    assert {t.bits for t in from_onnx(tmp_path / "m.onnx", bits=16).workload.tensors} == {16}


@pytest.mark.parametrize("reader", ["Add", "Mul", "MaxPool"])
def test_what_is_rounded_is_stored_with_few_bits_whoever_reads_it(tmp_path: Path, reader: str) -> None:
    """Rounding is an epilogue of the convolution. In its reader it would leave 32 bits of each value to be moved."""
    b = Builder()
    given = [b.constant(np.float32(0.05)), b.constant(np.int8(0))]
    x = b.add("DequantizeLinear", "x", *given)
    made = []
    for _ in range(2 if reader in ("Add", "Mul") else 1):
        weights = b.add("DequantizeLinear", *int8(b, 4, 4, 1, 1), axis=0)
        made.append(rounded(b, b.add("Relu", b.add("Conv", x, weights, b.weight(4)))))
    window = {"kernel_shape": [2, 2], "strides": [2, 2]} if reader == "MaxPool" else {}
    out = rounded(b, b.add(reader, *made, **window))
    side = 4 if window else 8
    model = from_onnx(b.save(tmp_path / "m.onnx", {"x": (1, 4, 8, 8)}, {out: (1, 4, side, side)}, x=I8))
    assert len(model.workload.einsums) == len(made) + 1
    written = [model.workload.tensor(einsum.output.tensor) for einsum in model.workload.einsums]
    by_hand = [8 * 4 * 8 * 8] * len(made) + [8 * 4 * side * side]
    assert [tensor.bits * prod(tensor.shape) for tensor in written] == by_hand
    assert set(bits(model).values()) == {8}
    assert model.check().agrees


@pytest.mark.parametrize(("kind", "width"), [("int8", 8), ("int4", 4), ("uint4", 4), ("uint8", 8), ("int16", 16)])
def test_weights_that_are_dequantised_have_the_bits_of_their_type(tmp_path: Path, kind: str, width: int) -> None:
    b = Builder()
    number = getattr(onnx.TensorProto, kind.upper())
    values = b.rng.integers(0, 8, (8, 6)).flatten()
    b.weights.append(onnx.helper.make_tensor("w", number, (8, 6), values))
    weights = b.add("DequantizeLinear", "w", b.constant(np.float32(0.1)))
    model = b.model({"x": (4, 8)}, {b.add("MatMul", "x", weights): (4, 6)})
    model.opset_import[0].version = 21
    onnx.save(model, tmp_path / "m.onnx")
    found = from_onnx(tmp_path / "m.onnx")
    assert sorted(bits(found).values()) == sorted([width, 32, 32])
    assert found.check().worst < 1e-5


def test_what_is_dequantised_in_two_ways_is_rounded_once(tmp_path: Path) -> None:
    """As of exporters that give each reader a DequantizeLinear of its own."""
    b = Builder()
    given = [b.constant(np.float32(0.02)), b.constant(np.int8(0))]
    quantised = b.add("QuantizeLinear", "x", *given)
    left, right = (b.add("DequantizeLinear", quantised, *given) for _ in range(2))
    out = b.add("Add", b.add("MatMul", left, b.weight(8, 8)), b.add("MatMul", right, b.weight(8, 8)))
    model = from_onnx(b.save(tmp_path / "m.onnx", {"x": (4, 8)}, {out: (4, 8)}))
    assert len(model.workload.einsums) == 4 and model.check().worst < 1e-5


def test_other_scales_and_quantised_outputs_keep_their_numbers(tmp_path: Path) -> None:
    b = Builder()
    zero = b.constant(np.int8(2))
    quantised = b.add("QuantizeLinear", "x", b.constant(np.float32(0.02)), zero)
    other = b.add("DequantizeLinear", quantised, b.constant(np.float32(0.04)), zero)
    out = b.add("QuantizeLinear", b.add("MatMul", other, b.weight(8, 8)), b.constant(np.float32(0.2)), zero)
    model = from_onnx(b.save(tmp_path / "m.onnx", {"x": (4, 8)}, {out: (4, 8)}, **{out: I8}))
    assert bits(model)[out] == 8 and model.check().worst < 1e-5


def integers(operator: str, opset: int, path: Path) -> Path:
    """One product of integers with zero points, scales for each channel where they may be, and a bias."""
    b = Builder()
    conv = "Conv" in operator
    shape, weights = ((1, 4, 6, 6), (5, 4, 3, 3)) if conv else ((3, 8), (8, 5))
    w, scales, points = int8(b, *weights)
    if not conv:
        scales, points = b.constant(np.float32(0.02)), b.constant(np.int8(4))
    zero, scale, last = b.constant(np.uint8(120)), b.constant(np.float32(0.1)), b.constant(np.float32(3.5))
    attributes: dict[str, Any] = {"pads": [1, 1, 1, 1]} if conv else {}
    if operator.endswith("Integer"):
        out, kind = b.add(operator, "x", w, zero, "" if conv else points, **attributes), I32
    else:
        bias = [b.constant(np.arange(5, dtype=np.int32))] if conv else []
        out = b.add(operator, "x", scale, zero, w, scales, points, last, b.constant(np.uint8(90)), *bias, **attributes)
        kind = U8
    made = (1, 5, 6, 6) if conv else (3, 5)
    model = b.model({"x": shape}, {out: made}, {"x": U8, out: kind})
    model.opset_import[0].version = opset
    onnx.save(model, path)
    return path


def multiplied(operator: str, path: Path) -> tuple[Array, Array]:
    """An input and the result of the product, in integers, by the package's own implementation of the operator."""
    from onnx.reference import ReferenceEvaluator

    x = np.random.default_rng(5).integers(0, 255, (1, 4, 6, 6) if "Conv" in operator else (3, 8)).astype(np.uint8)
    return x, ReferenceEvaluator(onnx.load(path)).run(None, {"x": x})[0]


@pytest.mark.parametrize("opset", [11, 21])
@pytest.mark.parametrize("operator", ["MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv"])
def test_products_of_integers_are_products_of_eight_bits(tmp_path: Path, operator: str, opset: int) -> None:
    path = integers(operator, opset, tmp_path / "m.onnx")
    model = from_onnx(path)
    (einsum,) = model.workload.einsums
    assert [model.workload.tensor(access.tensor).bits for access in einsum.inputs] == [8, 8]
    assert model.workload.tensor(einsum.name).bits == (32 if operator.endswith("Integer") else 8)
    assert model.multiplications[0] == model.multiplications[1] > 0
    x, expected = multiplied(operator, path)
    values = model.values_of({"x": x}, 0)
    out = model.graph.outputs[0]
    assert np.abs(values[out].astype(int) - expected).max() <= (not operator.endswith("Integer"))
    assert model.check({"x": x}).agrees


def test_quantisation_while_running_is_written_out(tmp_path: Path) -> None:
    """As of dynamic quantisation: the scale follows from the values, the product is of integers."""
    b = Builder()
    quantised, scale, zero = b.add("DynamicQuantizeLinear", "x", outputs=3)
    product = b.add("Cast", b.add("MatMulInteger", quantised, int8(b, 8, 5)[0], zero), to=F)
    model = from_onnx(b.save(tmp_path / "m.onnx", {"x": (4, 8)}, {b.add("Mul", product, scale): (4, 5)}))
    (matmul,) = [einsum for einsum in model.workload.einsums if len(einsum.inputs) == 2 and not einsum.function]
    assert [model.workload.tensor(access.tensor).bits for access in matmul.inputs] == [8, 8]
    assert model.check().agrees


def attending(path: Path) -> Path:
    """ONNX's own Attention behind projections of opset 23, with grouped heads and a mask that is causal."""
    b = Builder()
    q, k, v = (b.add("MatMul", "x", b.weight(16, heads * 4)) for heads in (4, 2, 2))
    out = b.add("Attention", q, k, v, name="/layer/sdpa", q_num_heads=4, kv_num_heads=2, is_causal=1)
    model = b.model({"x": (1, 6, 16)}, {b.add("MatMul", out, b.weight(16, 16)): (1, 6, 16)})
    model.opset_import[0].version = 23
    onnx.save(model, path)
    return path


def test_a_function_of_onnx_is_its_body(tmp_path: Path) -> None:
    model = from_onnx(attending(tmp_path / "m.onnx"))
    assert not model.cuts and model.check().worst < 1e-5
    products = 6 * 16 * (16 + 8 + 8 + 16) + 2 * 6 * 6 * 16
    assert model.multiplications == (products, products)
    assert "layer" in model.groups.values()


def test_a_boundary_at_a_function_cuts_all_of_it(tmp_path: Path) -> None:
    model = from_onnx(attending(tmp_path / "m.onnx"), boundary="/layer/sdpa")
    assert model.cuts[0].startswith("cut /layer/sdpa (Attention): a boundary that was asked for")
    whole, mapped = model.multiplications
    assert whole - mapped == 2 * 6 * 6 * 16, "counted, and not mapped"


def test_rotary_embeddings_are_their_body(tmp_path: Path) -> None:
    b = Builder()
    turned = b.add("RotaryEmbedding", b.add("Relu", "x"), "c", "s")
    model = b.model({"x": (1, 4, 6, 8), "c": (1, 6, 4), "s": (1, 6, 4)}, {turned: (1, 4, 6, 8)})
    model.opset_import[0].version = 23
    onnx.save(model, tmp_path / "m.onnx")
    found = from_onnx(tmp_path / "m.onnx")
    assert not found.cuts and found.check().worst < 1e-5


def test_a_function_without_a_body_is_refused_by_its_name(tmp_path: Path) -> None:
    b = Builder()
    out = b.add("Attention", "x", "x", "x", "", "p", "p", name="/sdpa")
    model = b.model({"x": (1, 2, 3, 4), "p": (1, 2, 5, 4)}, {out: (1, 2, 3, 4)})
    model.opset_import[0].version = 23
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(SpecError, match=r"'/sdpa' \(Attention\) is an operator that einloom does not know; import one"):
        from_onnx(tmp_path / "m.onnx")


def test_quantising_to_numbers_that_are_no_integers_is_cut_by_name(tmp_path: Path) -> None:
    b = Builder()
    small = b.add("QuantizeLinear", b.add("Relu", "x"), b.constant(np.float32(0.5)), "")
    b.nodes[-1].attribute.append(onnx.helper.make_attribute("output_dtype", 17))
    out = b.add("MatMul", b.add("DequantizeLinear", small, b.constant(np.float32(0.5))), b.weight(8, 8))
    model = b.model({"x": (4, 8)}, {out: (4, 8)})
    model.opset_import[0].version = 23
    onnx.save(model, tmp_path / "m.onnx")
    assert "quantising to float8_e4m3fn" in from_onnx(tmp_path / "m.onnx").cuts[0]


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [9, 12, 13])
def test_the_reference_goes_over_all_that_softmax_did_before_opset_13(
    operator: str, axis: int | None, opset: int
) -> None:
    """Against the definition: rows of a matrix of two dimensions, which the axis cuts; by default it is the second."""
    from onnx.reference import ReferenceEvaluator

    b = Builder()
    out = b.add(operator, "x", **({} if axis is None else {"axis": axis}))
    model = b.model({"x": (2, 3, 4)}, {out: (2, 3, 4)})
    model.opset_import[0].version = opset
    x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    found = ReferenceEvaluator(model, new_ops=operators(model)).run(None, {"x": x})[0]
    at = (1 if opset < 13 else -1) if axis is None else axis
    over = (at,) if opset >= 13 else tuple(range(at % 3, 3))
    shares = np.exp(x.astype(float)) / np.exp(x.astype(float)).sum(axis=over, keepdims=True)
    largest = (x == x.max(axis=over, keepdims=True)).astype(float)
    expected = {"Softmax": shares, "LogSoftmax": np.log(shares), "Hardmax": largest}[operator]
    assert found.dtype == np.float32 and np.abs(found - expected).max() < 1e-6


def test_the_check_runs_a_softmax_of_opset_11_as_it_is(tmp_path: Path) -> None:
    b = Builder()
    model = b.model({"x": (2, 3, 4)}, {b.add("Softmax", "x"): (2, 3, 4)})
    model.opset_import[0].version = 11
    onnx.save(model, tmp_path / "m.onnx")
    agreed = from_onnx(tmp_path / "m.onnx").check()
    assert agreed.agrees and "onnx" in agreed.reference


@pytest.mark.parametrize(("place", "ties"), [(1, 1), (2, 0)])
def test_only_a_value_half_way_may_be_rounded_the_other_way(tmp_path: Path, place: int, ties: int) -> None:
    """The model's own value is one more at a place; what follows is computed from it if this one is half-way."""
    b = Builder()
    given = [b.constant(np.float32(1)), b.constant(np.int8(0))]
    quantised = b.add("DequantizeLinear", b.add("QuantizeLinear", "x", *given), *given)
    out = b.add("MatMul", quantised, b.weight(4, 4))
    model = from_onnx(b.save(tmp_path / "m.onnx", {"x": (1, 4)}, {out: (1, 4)}))
    values = model.values_of({"x": np.array([[9.0, 0.5, 0.3, -2.0]], np.float32)}, 0)
    values[quantised] = np.rint(values["x"])
    values[quantised][0, place] += 1
    values[out] = values[quantised] @ values["w2"]
    agreed = replace(model, values_of=lambda inputs, seed: values).check()
    assert agreed.ties == (((quantised, 1),) if ties else ())
    assert agreed.agrees is bool(ties) and (agreed.worst < 1e-6) is bool(ties)


def test_two_roundings_of_one_einsum_go_each_its_way() -> None:
    def run() -> Array:
        first = nearest(np.array([0.5, 0.5, 2.0, np.nan, np.inf]), "first")
        return first - nearest(np.array([1.5, 7.2, 1.5, 0.0, 0.0]), "second")

    array, low, high = both_ways(run)
    assert array[:3].tolist() == [-2, -7, 0]
    assert low[:3].tolist() == [-2, -7, 0] and high[:3].tolist() == [0, -6, 1]
    assert np.isnan(low[3]) and np.isinf(high[4])


def test_many_roundings_go_up_or_down_together() -> None:
    array, low, high = both_ways(lambda: sum(nearest(np.array([0.5]), f"{i}") for i in range(9)))
    assert (array[0], low[0], high[0]) == (0, 0, 9)

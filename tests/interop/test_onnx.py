"""ONNX in: every tensor has the model's own value, what cannot be said is named, bad files are refused."""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main
from einloom.errors import SpecError
from einloom.interop.onnx import ImportedModel, from_onnx
from einloom.interop.onnx.importer import OnnxImporter
from einloom.interop.onnx.program import Epilogue, Step, StepOperand
from einloom.interop.onnx.ranks import Affine
from einloom.testing.importers import importer_faults
from einloom.workload.einsum import NetworkNode
from einloom.workload.files import parse_workload, workload_data, workload_from_data, workload_text
from einloom.zoo.workload_by_name import load_workload
from onnx_models import Builder, attention, convnet, onnx


def test_every_tensor_of_a_convolutional_network_has_the_models_value(tmp_path: Path) -> None:
    model = from_onnx(convnet(tmp_path / "net.onnx"), {"batch": 2})
    agreed = model.check()
    assert agreed.tensors == 6 and agreed.worst < 1e-5
    assert model.multiplications[0] == model.multiplications[1] > 0
    assert model.absorbed["BatchNormalization"] == 3 and not model.cuts
    assert parse_workload(workload_text(model.workload)) == model.workload


def test_every_tensor_of_a_transformer_layer_has_the_models_value(tmp_path: Path) -> None:
    model = from_onnx(attention(tmp_path / "net.onnx"))
    agreed = model.check()
    assert agreed.tensors >= 12 and agreed.worst < 1e-5
    counted, mapped = model.multiplications
    assert counted == mapped == 6 * 8 * 24 + 2 * 6 * 6 * 8 + 6 * 64 + 2 * 6 * 8 * 32
    parts = [e for e in model.workload.einsums if e.inputs and "w2" in e.tensors]
    assert len(parts) == 3, "Q, K and V are written apart"
    assert model.groups[parts[0].name] == "body"


def test_einsums_have_modules_and_the_workload_says_what_was_absorbed(tmp_path: Path) -> None:
    """From node names, odd ones too, or from what PyTorch's exporter writes beside a node."""
    b = Builder()
    first = b.add("MatMul", "x", b.weight(4, 4), name="/model/layers.0/q proj:0/MatMul")
    second = b.add("MatMul", b.add("Relu", first, name="relu"), b.weight(4, 4), name="node_MatMul_7")
    scopes = "['', 'model', 'model.layers.1', 'linear_7']"
    b.nodes[-1].metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
    b.nodes[0].metadata_props.add(key="pkg.torch.onnx.name_scopes", value="__import__('os')")
    last = b.add("MatMul", second, b.weight(4, 4), name="plain")
    path = b.save(tmp_path / "m.onnx", {"x": (2, 4)}, {last: (2, 4)})
    workload = from_onnx(path).workload
    assert [e.group for e in workload.einsums] == ["model.layers.0.q_proj_0", "model.layers.1", ""]
    assert workload.absorbed == ("1 x Relu",)
    again = parse_workload(workload_text(workload))
    assert [e.group for e in again.einsums] == [e.group for e in workload.einsums]
    assert again.absorbed == workload.absorbed


def test_einsums_have_the_names_of_their_nodes_and_outputs_keep_theirs(tmp_path: Path) -> None:
    """Of merged maps, of a Softmax, of a node without a name; an output behind an Identity names its tensor."""
    b = Builder()
    made = b.add("Relu", b.add("MatMul", "x", b.weight(4, 4), name="/fc/MatMul"), name="/relu")
    soft = b.add("Softmax", made, name="/soft: \n1")
    last = b.add("MatMul", soft, b.weight(4, 4))
    b.nodes[-1].name = ""
    model = b.model({"x": (2, 4)}, {"y": (2, 4), "z": (2, 4)})
    for output, source in (("y", last), ("z", made)):
        model.graph.node.append(onnx.helper.make_node("Identity", [source], [output], f"/to {output}"))
    onnx.save(model, tmp_path / "m.onnx")
    found = from_onnx(tmp_path / "m.onnx")
    product, relu = NetworkNode("t0_0", "/fc/MatMul"), NetworkNode("t1_0", "/relu")
    softmax = NetworkNode("t2_0", "/soft: ?1")
    nodes = [e.nodes for e in found.workload.einsums]
    assert nodes == [(product, relu), *[(softmax,)] * 4, (NetworkNode("t3_0"),)]
    assert found.workload.outputs == ("z", "y")
    again = parse_workload(workload_text(found.workload))
    assert [e.nodes for e in again.einsums] == nodes
    assert "z: /fc/MatMul > t0_0, /relu > t1_0\n" in found.account() and "y: > t3_0\n" in found.account()
    assert found.check().agrees


def test_a_name_of_an_output_stays_with_its_own_tensor(tmp_path: Path) -> None:
    """No tensor is called after an output that shows it in another order, or after a second output."""
    b = Builder()
    made = b.add("MatMul", "x", b.weight(4, 4))
    turned = b.add("Transpose", made, perm=[1, 0])
    model = b.model({"x": (4, 4)}, {turned: (4, 4), "y": (4, 4), "z": (4, 4)})
    for output in ("y", "z"):
        model.graph.node.append(onnx.helper.make_node("Identity", [made], [output], f"/to {output}"))
    onnx.save(model, tmp_path / "m.onnx")
    assert from_onnx(tmp_path / "m.onnx").workload.outputs == ("y",)


def offset_pad(step: Step) -> bool:
    """Move a window by one."""
    for operand in step.operands:
        for i, (rank, affine) in enumerate(operand.places):
            if len(affine.terms) == 2 and affine.constant:
                moved = (rank, Affine(affine.terms, affine.constant + 1))
                operand.places = (*operand.places[:i], moved, *operand.places[i + 1 :])
                return True
    return False


def dropped_epilogue(step: Step) -> bool:
    before = step.epilogues
    step.epilogues = before[:-1]
    return bool(before)


def swapped_ranks(step: Step) -> bool:
    """Exchange two variables of one size in an operand."""
    for operand in step.operands:
        bare = [affine.bare for _, affine in operand.places]
        for i, one in enumerate(bare):
            for j, two in enumerate(bare[:i]):
                if one is not None and two is not None and one.size == two.size > 1:
                    places = list(operand.places)
                    places[i], places[j] = (places[i][0], places[j][1]), (places[j][0], places[i][1])
                    operand.places = tuple(places)
                    return True
    return False


def wrong_digit(step: Step) -> bool:
    for operand in step.operands:
        for i, (rank, affine) in enumerate(operand.places):
            if not affine.terms:
                operand.places = (
                    *operand.places[:i],
                    (rank, Affine((), (affine.constant + 1) % rank.size)),
                    *operand.places[i + 1 :],
                )
                return True
    return False


def other_reduction(step: Step) -> bool:
    changes = step.reduction == "max" and bool(step.reduced)
    step.reduction = "sum" if changes else step.reduction
    return changes


def swapped_operands(step: Step) -> bool:
    if len(step.operands) != 2 or step.labels[-1] not in ("Softmax", "LayerNormalization") or step.reduced:
        return False
    first, second = step.operands
    step.operands = (StepOperand(second.tensor, first.places[:0] + second.places), first)
    return True


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (convnet, offset_pad),
        (convnet, dropped_epilogue),
        (attention, swapped_ranks),
        (attention, wrong_digit),
        (convnet, other_reduction),
        (attention, swapped_operands),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, made: Callable[[Path], Path], fault: Callable[[Step], bool]) -> None:
    model = from_onnx(made(tmp_path / "net.onnx"), {"batch": 2} if made is convnet else {})
    assert any(fault(step) for step in model.program.steps)
    assert not model.check().worst < 1e-3


def imported(
    b: Builder, path: Path, shapes: dict[str, tuple[int, ...]], out: str, made: tuple[int, ...]
) -> ImportedModel:
    return from_onnx(b.save(path, shapes, {out: made}))


def test_what_has_no_words_is_cut_by_name(tmp_path: Path) -> None:
    b = Builder()
    summed = b.add("CumSum", b.add("Relu", "x"), b.constant(np.array(1)), name="/head/sums")
    model = imported(b, tmp_path / "m.onnx", {"x": (4, 8)}, b.add("MatMul", summed, b.weight(8, 4)), (4, 4))
    assert len(model.cuts) == 1 and "cut /head/sums (CumSum)" in model.cuts[0]
    assert len(model.workload.outputs) == 2 and model.check().worst < 1e-5
    assert "warning: 57%" in model.report()


def joined(path: Path) -> Path:
    """Two branches joined twice as in DenseNet, a class token before 3 x 3 patches, zeros around what is no window."""
    b = Builder()
    first = b.add("Conv", "x", b.weight(4, 3, 3, 3), pads=[1, 1, 1, 1])
    once = b.add("Concat", first, b.add("Exp", "x"), axis=1)
    twice = b.add("Concat", b.add("Relu", once), b.add("Conv", once, b.weight(2, 7, 1, 1)), axis=1)
    patches = b.add("Conv", twice, b.weight(5, 9, 2, 2), strides=[2, 2])
    tokens = b.add("Transpose", b.add("Reshape", patches, b.constant(np.array([1, 5, 9]))), perm=[0, 2, 1])
    tokens = b.add("Concat", b.weight(1, 1, 5), tokens, axis=1)
    wide = b.add("Pad", tokens, b.constant(np.array([0, 0, 1, 0, 2, 0])), b.constant(np.float32(0.5)))
    return b.save(path, {"x": [1, 3, 6, 6]}, {b.add("MatMul", wide, b.weight(6, 4)): [1, 12, 4]})


def test_what_is_joined_is_written_in_parts(tmp_path: Path) -> None:
    model = from_onnx(joined(tmp_path / "m.onnx"))
    written = [str(einsum.output) for einsum in model.workload.einsums]
    assert not model.cuts and model.check().worst < 1e-5
    assert {len(names) for names in model.workload.writers.values()} == {1, 2}
    assert len(model.workload.parted) == 4
    assert any("3*" in text and "+1" in text for text in written)  # 3 x 3 patches behind the token
    assert [tensor.name for tensor in model.workload.tensors if tensor.initial] == ["t10_0"]
    kinds = {einsum.kind for einsum in model.workload.einsums}
    assert "copy" in kinds  # the token
    assert parse_workload(workload_text(model.workload)) == model.workload


@pytest.mark.parametrize("operator", ["Concat", "Pad"])
def test_a_part_in_the_wrong_place_is_found(tmp_path: Path, operator: str) -> None:
    model = from_onnx(joined(tmp_path / "m.onnx"))
    step = next(s for s in model.program.steps if s.places and operator in s.labels)
    rank, affine = next((r, a) for r, a in step.places if r.locked)
    at = [r for r, _ in step.places].index(rank)
    moved = Affine(affine.terms, affine.constant - 1 if affine.constant else 1)
    step.places = (*step.places[:at], (rank, moved), *step.places[at + 1 :])
    assert not model.check().worst < 1e-3


def shuffled(path: Path) -> Path:
    """Group convolutions with a shuffle between, a residual over unequal groups, and a norm across them."""
    b = Builder()
    first = b.add("Relu", b.add("Conv", "x", b.weight(12, 4, 1, 1), group=3))
    split = b.add("Reshape", first, b.constant(np.array([1, 3, 4, 3, 3])))
    mixed = b.add("Reshape", b.add("Transpose", split, perm=[0, 2, 1, 3, 4]), b.constant(np.array([1, 12, 3, 3])))
    second = b.add("Conv", mixed, b.weight(12, 4, 1, 1), group=3)
    both = b.add("Add", second, b.add("Conv", "y", b.weight(12, 3, 1, 1), group=4))
    last = b.add("LRN", both, size=3)
    return b.save(path, {"x": [1, 12, 3, 3], "y": [1, 12, 3, 3]}, {last: [1, 12, 3, 3]})


def test_reshapes_that_do_not_nest_are_views(tmp_path: Path) -> None:
    """12 channels as 3 x 4, as 4 x 3, and as windows of 3 across them: no cut, and every multiplication."""
    model = from_onnx(shuffled(tmp_path / "m.onnx"))
    assert not model.cuts and model.check().worst < 1e-5
    assert model.multiplications[0] == model.multiplications[1] > 0
    assert {view.shape for view in model.workload.views} == {(3, 4, 3, 3), (1, 12, 3, 3)}
    assert parse_workload(workload_text(model.workload)) == model.workload
    assert load_workload(str(tmp_path / "m.onnx")) == model.workload


def test_a_reshape_that_does_not_nest_is_a_view_by_itself(tmp_path: Path) -> None:
    """6 x 4 as 4 x 6 as 3 x 8, read in two ways at once; what is no graph input is kept for both."""
    b = Builder()
    wide = b.add("Reshape", b.add("Exp", "x"), b.constant(np.array([4, 6])))
    both = b.add("Add", b.add("Reshape", wide, b.constant(np.array([3, 8]))), b.add("Reshape", "x", b.constant([3, 8])))
    out = b.add("MatMul", both, b.weight(8, 2))
    model = imported(b, tmp_path / "m.onnx", {"x": (6, 4)}, out, (3, 2))
    assert not model.cuts and model.check().worst < 1e-5
    assert model.workload.views
    assert el.map(model.workload, "simple").certificate is not None


def test_a_part_is_copied_before_it_is_seen_under_other_ranks(tmp_path: Path) -> None:
    """The first 3 of 4 rows are no whole tensor: 3 x 4 of 4 x 4 as 4 x 3."""
    b = Builder()
    part = b.add("Slice", b.add("Exp", "x"), *(b.constant(np.array([i])) for i in (0, 3, 0)))
    out = b.add("MatMul", b.add("Reshape", part, b.constant(np.array([4, 3]))), b.weight(3, 2))
    model = imported(b, tmp_path / "m.onnx", {"x": (4, 4)}, out, (4, 2))
    assert not model.cuts and model.check().worst < 1e-5
    assert [view.shape for view in model.workload.views] == [(4, 3)]


@pytest.mark.parametrize("turn", [0, 1])
def test_a_view_in_another_order_is_found(tmp_path: Path, turn: int) -> None:
    """Elements column by column, or the tensor that is not the one that is seen."""
    model = from_onnx(shuffled(tmp_path / "m.onnx"))
    seen = [o.tensor for step in model.program.steps for o in step.operands if o.tensor.of is not None]
    tensor = seen[0]
    assert tensor.of is not None
    if turn:
        tensor.of = next(t for t in (step.output for step in model.program.steps) if t is not tensor.of)
    else:
        before = tensor.of.ranks
        tensor.of.ranks = (before[1], before[0], *before[2:])
        step = next(step for step in model.program.steps if step.output is tensor.of)
        step.variables = (step.variables[1], step.variables[0], *step.variables[2:])
    assert not model.check().worst < 1e-3


@pytest.mark.parametrize(("scale", "cuts"), [(2.0, 0), (3.0, 0), (2.5, 1), (0.5, 1)])
def test_the_nearest_value_at_an_integer_scale(tmp_path: Path, scale: float, cuts: int) -> None:
    """As in a U-net: two resolutions up, beside what was there before, through a convolution."""
    b, size = Builder(), int(4 * scale)
    scales = b.constant(np.array([1, 1, scale, scale], np.float32))
    wide = b.add("Resize", b.add("Relu", "x"), "", scales, mode="nearest", nearest_mode="round_prefer_floor")
    both = b.add("Concat", wide, "y", axis=1)
    out = b.add("Conv", both, b.weight(2, 5, 3, 3), pads=[1, 1, 1, 1])
    shapes = {"x": (1, 3, 4, 4), "y": (1, 2, size, size)}
    model = imported(b, tmp_path / "m.onnx", shapes, out, (1, 2, size, size))
    assert len(model.cuts) == cuts and model.check().worst < 1e-5
    written = [str(einsum.output) for einsum in model.workload.einsums]
    assert any(f"{int(scale)}*" in text for text in written) == (cuts == 0)


def test_a_map_of_the_first_rows_is_no_epilogue_of_what_makes_more(tmp_path: Path) -> None:
    """As in Mamba: a convolution over time is padded at both ends, and its last values are cut off."""
    b = Builder()
    wide = b.add("Conv", "x", b.weight(4, 1, 3), pads=[2, 2], group=4)
    ends = [b.constant(np.array([value])) for value in (0, 6, 2)]
    out = b.add("Sigmoid", b.add("Slice", wide, *ends))
    model = imported(b, tmp_path / "m.onnx", {"x": (1, 4, 6)}, out, (1, 4, 6))
    assert len(model.workload.einsums) == 2 and model.check().worst < 1e-5


def test_what_follows_from_large_constants_is_checked_too(tmp_path: Path) -> None:
    b = Builder()
    turned = b.add("Transpose", b.weight(80, 64), perm=[1, 0])
    model = imported(b, tmp_path / "m.onnx", {"x": (3, 64)}, b.add("MatMul", "x", turned), (3, 80))
    assert model.graph.constants[turned] is None and model.check().worst < 1e-5


@pytest.mark.parametrize("given", ["chunk", "sizes", "ones"])
def test_a_sequence_that_is_taken_apart_is_slices(tmp_path: Path, given: str) -> None:
    """As PyTorch writes `split`: by one size, by several, and into single rows."""
    b = Builder()
    sizes = {"chunk": [b.constant(np.array(4))], "sizes": [b.constant(np.array([4, 6]))], "ones": []}[given]
    whole = b.add("SplitToSequence", "x", *sizes, axis=0, **({} if sizes else {"keepdims": 0}))
    last, first = (b.add("SequenceAt", whole, b.constant(np.array(place))) for place in (-1, 0))
    out = b.add("Sub", b.add("ReduceSum", last, keepdims=0), b.add("ReduceSum", first, keepdims=0))
    model = imported(b, tmp_path / "m.onnx", {"x": (10, 3)}, out, ())
    assert not model.cuts and model.check().worst < 1e-5


def test_another_sequence_is_refused_by_name(tmp_path: Path) -> None:
    b = Builder()
    whole = b.add("SplitToSequence", "x", b.constant(np.array(4)), axis=0)
    out = b.add("Add", b.add("SequenceAt", whole, "n"), b.constant(np.float32(1)))
    with pytest.raises(SpecError, match="SplitToSequence"):
        from_onnx(b.save(tmp_path / "m.onnx", {"x": (8, 3), "n": ()}, {out: (4, 3)}, n=7))


def test_padding_that_repeats_is_cut_by_name(tmp_path: Path) -> None:
    b = Builder()
    wide = b.add("Pad", "x", b.constant(np.array([0, 1, 0, 1])), mode="reflect")
    model = imported(b, tmp_path / "m.onnx", {"x": (4, 8)}, b.add("MatMul", wide, b.weight(10, 4)), (4, 4))
    assert "padding by 'reflect'" in model.cuts[0]


def test_a_cache_is_appended_in_place(tmp_path: Path) -> None:
    """docs/onnx.md: the copy of the past moves nothing, and a workload without it costs the same."""
    b = Builder()
    present = b.add("Concat", "past", b.add("MatMul", "x", b.weight(4, 8)), axis=0)
    out = b.add("MatMul", "q", b.add("Transpose", present, perm=[1, 0]))
    sizes = {"x": (1, 4), "past": (15, 8), "q": (1, 8)}
    workload = from_onnx(b.save(tmp_path / "m.onnx", sizes, {out: (1, 16), present: (16, 8)})).workload
    data = workload_data(workload)
    copies = [e for e in workload.einsums if e.kind == "copy"]
    assert [e.output.tensor for e in copies] == [present]
    data["einsums"] = [e for e in data["einsums"] if not (isinstance(e, dict) and e.get("name") == copies[0].name)]
    data["ranks"] = {name: size for name, size in data["ranks"].items() if name != copies[0].variables[0]}
    plain = workload_from_data({**data, "initial": [present]})
    assert len(plain.einsums) == len(workload.einsums) - 1
    found = [el.map(each, "tpu-v4i-vector", objective="energy") for each in (workload, plain)]
    assert found[0].value == pytest.approx(found[1].value, rel=1e-12)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([2, 1, 0, 1, 2, 3, 2], "padding by 'reflect'"),
        ([0, 0, 1, 2, 3, 3, 3], "padding by 'edge'"),
        ([3, 0, 1, 2, 3, 0, 1], "padding by 'wrap'"),
        ([1, 0, 3, 2], "rows in an order that is no range"),
        ([0, 1, 2, 3, 2, 3], "rows in an order that is no range"),
    ],
)
def test_padding_by_a_choice_of_rows_is_called_padding(tmp_path: Path, rows: list[int], words: str) -> None:
    """As PyTorch decomposes `reflection_pad`, `replication_pad` and circular padding."""
    b = Builder()
    wide = b.add("Gather", "x", b.constant(np.array(rows)), axis=1)
    out = b.add("MatMul", wide, b.weight(len(rows), 4))
    model = imported(b, tmp_path / "m.onnx", {"x": (3, 4)}, out, (3, 4))
    assert f": {words};" in model.cuts[0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("t1_0", "no node is called 't1_0'; did you mean '/body/relu1'?"),
        ("/body/rilu1", "did you mean '/body/relu1'?"),
        ("nope", "no node is called 'nope'; nodes are '/body/matmul0', '/body/relu1', '/body/matmul2' and 1 more;"),
    ],
)
def test_a_boundary_at_no_node_is_answered_with_nodes(tmp_path: Path, asked: str, words: str) -> None:
    b = Builder()
    made = b.add("Relu", b.add("MatMul", "x", b.weight(4, 4)))
    out = b.add("Sigmoid", b.add("MatMul", made, b.weight(4, 4)))
    path = b.save(tmp_path / "m.onnx", {"x": (2, 4)}, {out: (2, 4)})
    with pytest.raises(SpecError) as caught:
        from_onnx(path, boundary=asked)
    assert words in str(caught.value)


def test_rows_that_data_choose_are_an_input(tmp_path: Path) -> None:
    b = Builder()
    rows = b.add("Gather", b.weight(50, 8), "ids")
    out = b.add("MatMul", rows, b.weight(8, 4))
    model = from_onnx(b.save(tmp_path / "m.onnx", {"ids": (6,)}, {out: (6, 4)}, ids=7))
    assert "boundary" in model.cuts[0] and "chooses" in model.cuts[0]
    assert model.workload.extents and model.check().worst < 1e-5


def test_every_node_without_an_einsum_is_refused_at_once(tmp_path: Path) -> None:
    b = Builder()
    top, _ = b.add("TopK", "x", b.constant(np.array([2])), outputs=2, name="/top")
    wild = b.add("Imaginary", top, name="/wild", domain="some.where")
    path = b.save(tmp_path / "m.onnx", {"x": (4, 8)}, {b.add("Relu", top): (4, 2), wild: (4, 2)})
    with pytest.raises(SpecError) as error:
        from_onnx(path)
    assert "'/top' (TopK) chooses by data" in str(error.value) and "some.where" in str(error.value)
    model = from_onnx(path, boundary=frozenset({"/top", "/wild"}))
    assert [e.function for e in model.workload.einsums] == ["relu"]


def test_open_axes_are_named_and_bound(tmp_path: Path) -> None:
    path = convnet(tmp_path / "net.onnx")
    for call, words in (
        ("", "axis 'batch' of input 'x' has no size; write net.onnx:batch=1"),
        (":bacth=2", "did you mean 'batch'"),
        (":batch=0", "not a whole number"),
        (":batch=2,bits=x", "write a number, or weights=4,default=16"),
    ):
        with pytest.raises(SpecError, match=words):
            load_workload(f"{path}{call}")
    assert {t.bits for t in load_workload(f"{path}:batch=3,bits=8").tensors} == {8}
    b = Builder()
    out = b.add("Relu", b.add("MatMul", "x", b.weight(8, 4)))
    small = b.save(tmp_path / "small.onnx", {"x": ["batch", 8]}, {out: ["batch", 4]})
    found = el.map(f"{small}:batch=3,bits=8", "simple")
    assert found.certificate is not None and found.certificate.gap == 0


def test_the_verb_reports_checks_and_writes(tmp_path: Path) -> None:
    path = attention(tmp_path / "net.onnx")
    ran = CliRunner().invoke(
        main, ["import", "onnx", str(path), "--check", "--bits", "weights=4,default=16", "-o", str(tmp_path)]
    )
    assert ran.exit_code == 0 and "5,184 multiplications: 1 of the graph's" in ran.output, ran.output
    assert "checked" in ran.output
    written = load_workload(str(tmp_path / "workload.yaml"))
    assert {t.bits for t in written.tensors} == {4, 16}
    assert "absorbed" in (tmp_path / "import.txt").read_text()


def test_no_other_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = attention(tmp_path / "net.onnx")
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > 100:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="secret.bin")
            tensor.external_data.add(key="offset", value="20000")
    onnx.save(model, tmp_path / "outside.onnx")
    (tmp_path / "secret.bin").write_bytes(b"0" * 10_000)
    opened: list[str] = []

    def watched(file: object, *args: object, **named: object) -> object:
        opened.append(str(file))
        return open(file, *args, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(builtins, "open", watched)
    monkeypatch.chdir(tmp_path)
    assert from_onnx(tmp_path / "outside.onnx").multiplications[1] == 5184
    assert not any("secret" in name for name in opened)
    with pytest.raises(SpecError, match=r"'secret.bin' has 10,000 bytes, and 'w\d+' stands there from 20,000 to"):
        from_onnx(tmp_path / "outside.onnx").check()


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("not a model")
    os.mkfifo(tmp_path / "fifo.onnx")
    b = Builder()
    shape = b.add("Relu", "x")
    views = b.save(tmp_path / "views.onnx", {"x": (4,)}, {b.add("Identity", "x"): (4,), shape: (4,)})
    assert len(from_onnx(views).workload.einsums) == 1
    for name, words in (("text.onnx", "not a"), ("fifo.onnx", "regular file"), ("missing.onnx", "cannot read")):
        with pytest.raises(SpecError, match=words):
            from_onnx(tmp_path / name)


def test_the_door_has_no_faults(tmp_path: Path) -> None:
    assert importer_faults(OnnxImporter, [convnet(tmp_path / "net.onnx")], {"batch": "2"}, damaged=60) == ()
    assert importer_faults(OnnxImporter, [attention(tmp_path / "layer.onnx")], damaged=60) == ()


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("ConstantOfShape", [np.array([2**14, 2**14])]),
        ("Range", [np.array(0), np.array(2**28), np.array(1)]),
        ("Expand", [np.zeros((1, 1), np.float32), np.array([2**14, 2**14])]),
        ("Tile", [np.zeros((1, 1), np.float32), np.array([2**14, 2**14])]),
    ],
)
def test_a_few_bytes_that_ask_for_much_memory_is_not_given_it(
    tmp_path: Path, operator: str, inputs: list[np.ndarray[Any, Any]]
) -> None:
    b = Builder()
    made = b.add(operator, *(b.constant(value) for value in inputs))
    out = b.add("Add", "x", b.add("Cast", b.add("ReduceSum", made, keepdims=0), to=1))
    model = from_onnx(b.save(tmp_path / "m.onnx", {"x": (4,)}, {out: (4,)}))
    assert model.graph.constants[made] is None, "its values are not computed"
    assert [e.function for e in model.workload.einsums] == ["add"]


def test_orders_of_nodes_and_names_do_not_matter(tmp_path: Path) -> None:
    model = onnx.load(attention(tmp_path / "net.onnx"))
    rng = Random(1)
    for node in model.graph.node:
        node.name = "" if rng.random() < 0.5 else "same"
    onnx.save(model, tmp_path / "other.onnx")
    assert len(from_onnx(tmp_path / "other.onnx").workload.einsums) == 21


def test_the_share_counts_products_that_are_cut(tmp_path: Path) -> None:
    b = Builder()
    first = b.add("Conv", "x", b.weight(3, 2, 1, 1))
    out = b.add("ConvTranspose", first, b.weight(3, 4, 3, 3))
    model = imported(b, tmp_path / "m.onnx", {"x": (1, 2, 8, 8)}, out, (1, 4, 10, 10))
    assert model.multiplications == (384 + 6912, 384)
    assert "384 multiplications: 0.05263 of the graph's" in model.report()


def test_the_share_counts_recurrent_networks(tmp_path: Path) -> None:
    b = Builder()
    states, _ = b.add("GRU", "x", b.weight(1, 12, 3), b.weight(1, 12, 4), outputs=2, name="/gru", hidden_size=4)
    rows = b.add("Reshape", states, b.constant(np.array([10, 4])))
    path = b.save(tmp_path / "m.onnx", {"x": (5, 2, 3)}, {b.add("MatMul", rows, b.weight(4, 7)): (10, 7)})
    model = from_onnx(path, boundary=frozenset({"/gru"}))
    assert model.multiplications == (5 * 2 * 12 * (3 + 4) + 10 * 4 * 7, 10 * 4 * 7)


@pytest.mark.parametrize(("equation", "points"), [("...ij,...jk->...ik", 120), ("i...,...jk->jk", 240)])
def test_the_share_counts_dimensions_of_an_ellipsis(tmp_path: Path, equation: str, points: int) -> None:
    b = Builder()
    out = b.add("Einsum", "x", "y", equation=equation)
    shape = (2, 3, 5) if points == 120 else (4, 5)
    first = (2, 3, 4) if points == 120 else (6, 2)
    model = imported(b, tmp_path / "m.onnx", {"x": first, "y": (2, 4, 5)}, out, shape)
    assert model.multiplications == (points, points)


def test_nodes_that_no_output_needs_are_left_out_by_name(tmp_path: Path) -> None:
    b = Builder()
    b.add("Relu", b.add("MatMul", "x", b.weight(8, 4)))
    b.add("TopK", "x", b.constant(np.array([2])), outputs=2)
    model = imported(b, tmp_path / "m.onnx", {"x": (2, 8)}, b.add("MatMul", "x", b.weight(8, 4)), (2, 4))
    assert model.multiplications == (64, 64)
    assert "4 nodes: 1 arithmetic, 3 unused" in model.report()


def test_the_report_names_operators_whose_multiplications_cannot_be_counted(tmp_path: Path) -> None:
    b = Builder()
    odd = b.add("Imaginary", "x", name="/odd", domain="some.where")
    inferred = onnx.helper.make_tensor_value_info(odd, 1, (2, 8))
    model = b.model({"x": (2, 8)}, {b.add("MatMul", odd, b.weight(8, 4)): (2, 4)})
    model.graph.value_info.append(inferred)
    onnx.save(model, tmp_path / "m.onnx")
    report = from_onnx(tmp_path / "m.onnx", boundary=frozenset({"/odd"})).report()
    assert "64 multiplications; those of Imaginary in the graph cannot be counted" in report


@pytest.mark.parametrize(
    ("operator", "hint"), [("MatMull", "; is MatMul meant?"), ("Attentions", ""), ("FusedMatMul", "")]
)
def test_an_operator_is_suggested_only_for_one_that_is_almost_spelt_so(
    tmp_path: Path, operator: str, hint: str
) -> None:
    b = Builder()
    out = b.add(operator, "x", name="/odd")
    path = b.save(tmp_path / "m.onnx", {"x": (4, 8)}, {out: (4, 8)})
    with pytest.raises(SpecError, match=rf"does not know{re.escape(hint)}; import one side"):
        from_onnx(path)


def decoder(path: Path) -> Path:
    """One step with two caches: three open axes, each of several inputs."""
    b = Builder()
    joined = b.add("Concat", "k", "x", axis=1)
    out = b.add("Add", b.add("MatMul", b.add("Concat", "v", "x", axis=1), b.weight(8, 8)), joined)
    shapes: dict[str, Any] = {"x": ["batch", "t", 8], "k": ["batch", "past", 8], "v": ["batch", "past", 8]}
    return b.save(path, shapes, {out: ["batch", "all", 8]})


def test_each_open_axis_is_named_once_and_as_the_user_gives_it(tmp_path: Path) -> None:
    path = decoder(tmp_path / "dec.onnx")
    ran = CliRunner().invoke(main, ["import", "onnx", str(path)])
    assert ran.exit_code == 2 and ran.output.count("\n") == 3, ran.output
    assert "axis 'batch' of input 'x' and 2 more has no size; write --set batch=1" in ran.output
    with pytest.raises(SpecError, match=r"of input 'k' and 1 more has no size; write dec\.onnx:past=1"):
        load_workload(str(path))
    with pytest.raises(SpecError, match=r"axis 't' of input 'x' has no size; write sizes=\{'t': 1\}"):
        from_onnx(path)


def test_errors_of_other_verbs_name_the_verb_that_cuts(tmp_path: Path) -> None:
    b = Builder()
    top, _ = b.add("TopK", "x", b.constant(np.array([2])), outputs=2, name="/top")
    out = b.add("MatMul", top, b.weight(2, 3))
    path = b.save(tmp_path / "m.onnx", {"x": (4, 8)}, {out: (4, 3)})
    ran = CliRunner().invoke(main, ["map", str(path), "simple"])
    folder = tmp_path / "folder"
    assert f"cut there with `einloom import onnx {path} --boundary '/top' -o DIR`" in ran.output, ran.output
    assert "map DIR/workload.yaml" in ran.output
    ran = CliRunner().invoke(main, ["import", "onnx", str(path)])
    assert "cut there with --boundary '/top'" in ran.output
    ran = CliRunner().invoke(main, ["import", "onnx", str(path), "--boundary", "/top", "-o", str(folder)])
    assert ran.exit_code == 0 and load_workload(str(folder / "workload.yaml")).einsums
    with pytest.raises(SpecError, match=r"cut there with boundary=\{'/top'\}"):
        from_onnx(path)


def test_a_file_that_map_reads_takes_bits_of_weights_apart_and_says_where_options_are(tmp_path: Path) -> None:
    b = Builder()
    path = b.save(tmp_path / "m.onnx", {"x": (4, 8)}, {b.add("MatMul", "x", b.weight(8, 3)): (4, 3)})
    for call in ("bits=weights=4,default=16", "bits=default=16,weights=4"):
        assert sorted(t.bits for t in load_workload(f"{path}:{call}").tensors) == [4, 16, 16]
    with pytest.raises(
        SpecError, match=r"'operands' is no axis, but an option of `einloom import onnx m\.onnx -o DIR`"
    ):
        load_workload(f"{path}:operands=2")


def test_options_of_the_verb_are_repeatable(tmp_path: Path) -> None:
    path = decoder(tmp_path / "dec.onnx")
    verb = ["import", "onnx", str(path), "--set", "batch=2,t=3", "--set", "past=5", "--bits", "weights=4"]
    ran = CliRunner().invoke(main, [*verb, "--bits", "default=16", "-o", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    assert {t.bits for t in load_workload(str(tmp_path / "out" / "workload.yaml")).tensors} == {4, 16}
    for more, words in (
        (["--set", "t=4"], "key 't' stands here twice"),
        (["--bits", "weights=8"], "weights stands here twice"),
        (["--bits", "8"], "write a number, or weights=4,default=16"),
    ):
        ran = CliRunner().invoke(main, [*verb, *more])
        assert ran.exit_code == 2 and words in ran.output, ran.output


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"bits": {"weight": 4, "default": 8}}, "unknown kind of values for bits 'weight'.*did you mean 'weights'"),
        ({"bits": "8"}, "bits: '8' is not a whole number from 1 to 4096"),
        ({"bits": 8.5}, "bits: 8.5 is not a whole number"),
        ({"bits": {"default": 0}}, "bits: 0 is not a whole number"),
        ({"sizes": {"batch": "2"}}, "axis 'batch': '2' is not a whole number from 1 to"),
        ({"operands": 0}, "operands: 0 is not a whole number from 1 on"),
        ({"boundary": "MatMul"}, "no node is called 'MatMul'"),
        ({"boundary": [3]}, "no node is called 3"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(tmp_path: Path, asked: dict[str, Any], words: str) -> None:
    path = convnet(tmp_path / "net.onnx")
    with pytest.raises(SpecError, match=words):
        from_onnx(path, **{"sizes": {"batch": 2}, **asked})


def test_numbers_of_numpy_and_the_name_of_one_node_are_arguments(tmp_path: Path) -> None:
    path = convnet(tmp_path / "net.onnx")
    model = from_onnx(path, {"batch": np.int64(2)}, bits=np.int32(8), boundary="/body/maxpool3")  # type: ignore[arg-type]
    assert {t.bits for t in model.workload.tensors} == {8}
    assert model.cuts[0].startswith("cut /body/maxpool3 (MaxPool): a boundary that was asked for")


def halved(path: Path) -> Path:
    """Two products in float16."""
    b = Builder()
    weights = b.constant(b.rng.uniform(-1, 1, (64, 8)).astype(np.float16))
    out = b.add("MatMul", b.add("MatMul", "x", weights), b.constant(np.eye(8, dtype=np.float16)))
    return b.save(path, {"x": (4, 64)}, {out: (4, 8)}, x=10, **{out: 10})


def test_what_rounding_explains_follows_from_the_types_of_the_model(tmp_path: Path) -> None:
    verb = ["import", "onnx", str(halved(tmp_path / "half.onnx")), "--check"]
    ran = CliRunner().invoke(main, verb)
    assert ran.exit_code == 0, ran.output
    model = from_onnx(verb[2])
    agreed = model.check()
    assert 1e-5 < agreed.worst < agreed.limit == pytest.approx(0.01, rel=0.03)
    assert from_onnx(convnet(tmp_path / "net.onnx"), {"batch": 2}).check().limit == 1e-5
    (step, _) = model.program.steps
    step.operands = (step.operands[1], step.operands[1])
    assert not model.check().agrees


def test_numbers_that_overflow_in_the_models_types_are_told_and_are_no_difference(tmp_path: Path) -> None:
    """1e30, infinities, then NaN: sums of infinities of both signs."""
    b = Builder()
    weights, out = b.constant((1e30 * b.rng.uniform(-1, 1, (8, 8))).astype(np.float32)), "x"
    for _ in range(3):
        out = b.add("MatMul", out, weights)
    path = b.save(tmp_path / "m.onnx", {"x": (4, 8)}, {out: (4, 8)})
    ran = CliRunner().invoke(main, ["import", "onnx", str(path), "--check"])
    assert ran.exit_code == 0, ran.output
    assert "checked   3 tensors against " in ran.output
    assert "2 with infinities or NaN, where the model has them, too" in ran.output
    model = from_onnx(path)
    model.program.steps[0].epilogues = (Epilogue("Clip", lambda a: np.minimum(a[0], 1)),)
    assert not model.check().agrees


def outside(path: Path, **place: str) -> Path:
    """A product whose weights stand in w.bin, 16 bytes from its beginning."""
    b = Builder()
    model = b.model({"x": (4, 8)}, {b.add("MatMul", "x", b.weight(8, 6)): (4, 6)})
    tensor = model.graph.initializer[0]
    (path.parent / "w.bin").write_bytes(b"0" * 16 + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", "offset": "16", "length": "192", **place}.items():
        tensor.external_data.add(key=key, value=value)
    onnx.save(model, path)
    return path


def test_the_check_reads_weights_beside_the_model(tmp_path: Path) -> None:
    agreed = from_onnx(outside(tmp_path / "m.onnx")).check()
    assert agreed.agrees and agreed.tensors == 1


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({"location": "/etc/passwd"}, "'/etc/passwd', which is no file in the folder of the model"),
        ({"location": "../w.bin"}, "which is no file in the folder"),
        ({"location": "link.bin"}, "which is no file in the folder"),
        ({"location": ""}, "which is no file in the folder"),
        ({"location": "none.bin"}, r"none\.bin: cannot read the file: No such file"),
        ({"offset": "17"}, r"'w\.bin' has 208 bytes, and 'w0' stands there from 17 to 209"),
        ({"offset": "-1"}, "from '-1', which is no number of bytes"),
        ({"length": "100"}, "cannot be run"),
    ],
)
def test_weights_that_are_not_beside_the_model_are_not_read(tmp_path: Path, place: dict[str, str], words: str) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(b"0" * 1000)
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    path = outside(folder / "m.onnx", **place)
    with pytest.raises(SpecError, match=words):
        from_onnx(path).check()
    out = tmp_path / "out"
    ran = CliRunner().invoke(main, ["import", "onnx", str(path), "--check", "-o", str(out)])
    assert ran.exit_code == 2 and re.search(words, ran.output)
    assert load_workload(str(out / "workload.yaml")).einsums, "the workload is written, checked or not"


def broken(b: Builder, kind: str) -> str:
    """One node or two that no runtime would take; the output."""
    if kind == "cycle":
        b.nodes = [onnx.helper.make_node("Add", ["x", "b"], ["a"], "n0"), onnx.helper.make_node("Relu", ["a"], ["b"])]
        return "b"
    if kind == "loop":
        b.nodes = [onnx.helper.make_node("Add", ["x", "a"], ["a"], "n0")]
        return "a"
    if kind == "twice":
        b.nodes = [onnx.helper.make_node("Relu", ["x"], ["y"], f"n{i}") for i in range(2)]
        return "y"
    if kind == "input":
        b.nodes = [onnx.helper.make_node("Relu", ["x"], ["x"], "n0")]
        return "x"
    inputs = {"inner": ["x", b.weight(7, 4)], "unnamed": ["", b.weight(8, 4)], "missing": ["x"]}[kind]
    b.nodes = [onnx.helper.make_node("MatMul", inputs, ["y"], "n0")]
    return "y"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("inner", r"has 'y', whose shape is not known \(Incompatible dimensions for matrix multiplication\)"),
        ("cycle", r"node 'n0' \(Add\) reads 'b', which is written later, by node 'Relu_1#1' \(Relu\)"),
        ("loop", r"node 'n0' \(Add\) reads 'a', which it writes itself"),
        ("twice", r"node 'n1' \(Relu\) writes 'y', which node 'n0' \(Relu\) writes, too"),
        ("input", r"node 'n0' \(Relu\) writes 'x', which is an input or a constant"),
        ("unnamed", r"node 'n0' \(MatMul\) has no input 'A'"),
        ("missing", r"node 'n0' \(MatMul\) has no input 'B'"),
    ],
)
def test_what_is_malformed_is_named(tmp_path: Path, kind: str, words: str) -> None:
    b = Builder()
    out = broken(b, kind)
    model = b.model({"x": (4, 8)}, {out: (4, 4)})
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(SpecError, match=words):
        from_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("opset", [18, 21, 23])
@pytest.mark.parametrize("operator", ["GroupNormalization", "MeanVarianceNormalization"])
def test_norms_in_the_middle_of_a_graph_have_the_shape_of_their_input(
    tmp_path: Path, operator: str, opset: int
) -> None:
    """The package onnx infers no shape of them; two in a row, with an open axis."""
    b = Builder()
    x = "x"
    for _ in range(2):
        given = [b.weight(8 if opset >= 21 else 2) for _ in range(2)] if operator[0] == "G" else []
        x = b.add(operator, x, *given, **({"num_groups": 2} if given else {}))
        x = b.add("Relu", b.add("Conv", x, b.weight(8, 8, 1, 1)))
    model = b.model({"x": ("batch", 8, 4, 4)}, {x: ("batch", 8, 4, 4)})
    model.opset_import[0].version = opset
    onnx.save(model, tmp_path / "m.onnx")
    found = from_onnx(tmp_path / "m.onnx", {"batch": 2})
    assert not found.cuts and found.multiplications == (2 * 2 * 8 * 8 * 16,) * 2 and found.check().agrees


def test_a_size_that_the_file_says_and_that_is_none_is_told(tmp_path: Path) -> None:
    b = Builder()
    path = b.save(tmp_path / "m.onnx", {"x": (0, 8)}, {b.add("Relu", "x"): ("n", 8)})
    with pytest.raises(
        SpecError, match=r"axis 'x\.0' of input 'x' has a size of 0 in the file; write sizes=\{'x\.0': 1"
    ):
        from_onnx(path)
    assert from_onnx(path, {"x.0": 3}).workload.einsums


@pytest.mark.parametrize(("kind", "width", "moved"), [(9, 1, False), (9, 8, True), (1, 1, True)])
def test_masks_of_booleans_are_moved_as_constants_are(tmp_path: Path, kind: int, width: int, moved: bool) -> None:
    b = Builder()
    mask = b.add("Cast", "m", to=1) if kind == 9 else "m"
    out = b.add("MatMul", b.add("Mul", "x", mask), b.weight(8, 4))
    model = from_onnx(b.save(tmp_path / "m.onnx", {"x": (4, 8), "m": (4, width)}, {out: (4, 4)}, m=kind))
    assert len(model.workload.einsums[0].inputs) == 1 + moved and model.check().agrees


@pytest.mark.parametrize("sizes", [None, [1, 2, 3]])
def test_parts_behind_one_that_nothing_reads_are_the_right_ones(tmp_path: Path, sizes: list[int] | None) -> None:
    b = Builder()
    given = [] if sizes is None else [b.constant(np.array(sizes))]
    first, _, last = b.add("Split", "x", *given, outputs=3, **({} if sizes else {"num_outputs": 3}))
    out = b.add("Add", first, b.add("ReduceSum", last, b.constant(np.array([0]))))
    model = imported(b, tmp_path / "m.onnx", {"x": (6, 8)}, out, (sizes[0] if sizes else 2, 8))
    assert model.check().worst < 1e-5


def test_a_constant_that_says_a_huge_size_is_refused_before_shapes_are_inferred(tmp_path: Path) -> None:
    """The package onnx asks for as much memory where it follows the values of such a constant."""
    b = Builder()
    model = b.model({"x": (4,)}, {b.add("Add", b.add("Relu", "x"), b.weight(4)): (4,)})
    model.graph.initializer[0].dims[:] = [2**63 - 1]
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(SpecError, match="tensor 'w0' has more than"):
        from_onnx(tmp_path / "m.onnx")

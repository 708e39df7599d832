"""ONNX models damaged as messages: operators, names, attributes, sizes and types; the same for a seed."""

from __future__ import annotations

import random
from typing import Any

from bench.mutate import mutated

EDITS = 4
BYTES = 0.2  # how many are damaged as bytes instead, most of which are no message any more
NUMBERS = (-(2**63), -1, 0, 1, 2, 3, 4, 7, 64, 2**20, 2**31, 2**40, 2**63 - 1)
PLANTED = "planted.bin"
"""A file beside the model that models are made to name: nobody may open it."""
LOCATIONS = (PLANTED, f"./{PLANTED}", "/etc/passwd", f"../{PLANTED}", "model.onnx")
OPERATORS = (
    "Add Mul MatMul Gemm Conv Relu Softmax Reshape Transpose Split Slice Gather Concat Pad Tile Expand Squeeze "
    "Unsqueeze ReduceSum ReduceMax MaxPool AveragePool LRN LayerNormalization GroupNormalization Einsum TopK If Loop "
    "Range Shape ConstantOfShape Cast Clip Where DepthToSpace CumSum Resize LSTM Attention Trilu Constant Identity"
).split()


def damaged(original: bytes, seed: str) -> bytes:
    """The model with one to four edits."""
    import onnx

    chance = random.Random(seed)
    if chance.random() < BYTES:
        return mutated(original, seed)
    model = onnx.ModelProto()
    model.ParseFromString(original)
    for _ in range(chance.randint(1, EDITS)):
        _edit(onnx, model.graph, chance)
    return bytes(model.SerializeToString())


def _edit(onnx: Any, graph: Any, chance: random.Random) -> None:
    nodes = list(graph.node)
    if not nodes:
        return
    node = chance.choice(nodes)
    names = [name for each in nodes for name in (*each.input, *each.output)] + ["", "missing"]
    match chance.randrange(10):
        case 0:
            node.op_type = chance.choice(OPERATORS)
        case 1 if node.input:
            node.input[chance.randrange(len(node.input))] = chance.choice(names)
        case 2 if node.output:
            node.output[chance.randrange(len(node.output))] = chance.choice(names)
        case 3:
            graph.node.remove(node)
        case 4:
            _attribute(onnx, node, chance)
        case 5 | 6 if graph.initializer:
            _tensor(onnx, chance.choice(list(graph.initializer)), chance)
        case 7:
            value = chance.choice([*graph.input, *graph.output])
            if value.type.tensor_type.shape.dim:
                chance.choice(list(value.type.tensor_type.shape.dim)).dim_value = chance.choice(NUMBERS)
        case 8:
            chance.choice([*graph.input, *graph.output]).type.tensor_type.elem_type = chance.randrange(0, 24)
        case _:
            node.input.append(chance.choice(names))


def _attribute(onnx: Any, node: Any, chance: random.Random) -> None:
    names = (
        "axis axes perm kernel_shape strides pads dilations group to epsilon equation num_groups size blocksize value"
    )
    name = chance.choice(names.split())
    for item in [item for item in node.attribute if item.name == name]:
        node.attribute.remove(item)
    value: Any = chance.choice(
        (chance.choice(NUMBERS), [chance.choice(NUMBERS) for _ in range(chance.randrange(1, 5))], "ij,jk->ik", 1e300)
    )
    node.attribute.append(onnx.helper.make_attribute(name, value))


def _tensor(onnx: Any, tensor: Any, chance: random.Random) -> None:
    """Other sizes, another type, other values, or values in another file."""
    match chance.randrange(5):
        case 0 if tensor.dims:
            tensor.dims[chance.randrange(len(tensor.dims))] = chance.choice(NUMBERS)
        case 1:
            tensor.data_type = chance.randrange(0, 24)
        case 2 if tensor.int64_data:
            tensor.int64_data[chance.randrange(len(tensor.int64_data))] = chance.choice(NUMBERS)
        case 3:
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=chance.choice(LOCATIONS))
        case _:
            tensor.dims.append(chance.choice(NUMBERS))

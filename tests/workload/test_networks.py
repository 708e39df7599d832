"""Whole networks of the zoo: their sizes against what their papers print, and small ones mapped and executed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np
import pytest

from einloom.certify.verify import verify
from einloom.cost.evaluate import evaluate
from einloom.errors import SpecError
from einloom.mapspace.space import Mapspace
from einloom.oracle.simulate import simulate
from einloom.problem import Guarantee, Objective, Problem
from einloom.search.exact import Exact
from einloom.workload.einsum import Workload
from einloom.zoo.encoders import NETWORKS
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.transformers import stacked
from einloom.zoo.workload_by_name import load_workload


def operations(workload: Workload, kernel: str) -> int:
    """Multiplications by a weight: operations of the Einsums that read a tensor whose name starts so."""
    einsums = (e for e in workload.einsums if any(a.tensor.startswith(kernel) for a in e.inputs))
    return sum(workload.operations(e.name) for e in einsums)


def weights(workload: Workload) -> int:
    return sum(t.size for t in workload.tensors if t.name in workload.inputs and t.name.startswith("W"))


def modules(name: str) -> dict[str, int]:
    return Counter(einsum.group for einsum in load_workload(name).einsums)


def test_einsums_of_whole_networks_are_in_modules() -> None:
    layer = {"attention_norm": 3, "attention": 10, "feed_forward_norm": 3, "feed_forward": 2}
    layers = {f"layers.{i}.{part}": number for i in range(2) for part, number in layer.items()}
    assert modules("gpt2-124m:layers=2") == {**layers, "layers.0": 2, "layers.1": 2, "norm": 3, "head": 1}
    assert modules("t5-small:layers=1")["decoder.layers.0.cross_attention"] == 10
    assert modules("gpt3-6.7b:layers=2")["layers.1.attention"] == 7 and modules("gpt3-6.7b") == {"": 10}
    assert modules("resnet50")["stages.3.blocks.0"] == 5 and modules("vgg16")["head"] == 3
    for name in ("resnet18", "mobilenet-v2", "mobilenet-v3", "efficientnet-b0", "bert-base", "mixtral-8x7b"):
        assert "" not in modules(name) and len(modules(name)) >= 10


def test_resnet18_has_the_operations_that_its_paper_prints() -> None:
    """Table 1: 1.8e9 FLOPs, multiply-adds. 11.7 million weights without biases and normalisation."""
    network = load_workload("resnet18")
    assert operations(network, "W") == pytest.approx(1.8e9, rel=0.01)
    assert weights(network) == pytest.approx(11.68e6, rel=0.001)
    assert network.tensor("T26").shape == (1, 512, 7, 7)
    assert sum(e.function == "add" for e in network.einsums) == 8


def test_alexnet_has_the_weights_and_operations_that_everybody_counts() -> None:
    """60,965,224 parameters with the 10,568 biases, and 724,406,816 multiply-adds, in two groups; shapes by hand."""
    network = load_workload("alexnet:batch=2")
    biases = 96 + 256 + 384 + 384 + 256 + 4096 + 4096 + 1000
    assert weights(network) + biases == 60_965_224
    assert operations(network, "W") == 2 * 724_406_816
    sides = {
        tensor: network.tensor(tensor).shape[1:] for tensor in ("X", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8")
    }
    assert sides == {
        "X": (3, 227, 227),
        "T1": (2, 48, 55, 55),
        "T2": (2, 48, 27, 27),
        "T3": (2, 128, 27, 27),
        "T4": (2, 128, 13, 13),
        "T5": (2, 192, 13, 13),
        "T6": (2, 192, 13, 13),
        "T7": (2, 128, 13, 13),
        "T8": (2, 128, 6, 6),
    }
    seen = {e.name: len(network.tensor(e.inputs[1].tensor).shape) - 2 for e in network.einsums if e.reduction != "max"}
    assert [seen[name] for name in ("T3", "T5", "T6", "T7")] == [3, 4, 3, 3]  # the third layer alone sees both groups
    kinds = {fact.path: fact.kind for fact in network.facts}
    assert kinds["ranks.g1"] == kinds["ranks.r1"] == "printed" and kinds["ranks.c1"] == kinds["ranks.c0"] == "derived"


VGG_D = (64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M")
"""Table 1, column D: output channels of its 3x3 convolutions, and its poolings (M); then FC 4096, 4096, 1000."""


def vgg16_by_hand() -> list[tuple[int, int, int]]:
    """(weights, multiply-adds, values of the output) of each layer, from the table alone; no biases."""
    layers, side, channels = [], 224, 3
    for layer in VGG_D:
        if isinstance(layer, str):
            side //= 2
            layers.append((0, channels * side**2 * 4, channels * side**2))  # windows of 2x2 at stride two
        else:
            layers.append((9 * channels * layer, 9 * channels * layer * side**2, layer * side**2))
            channels = layer
    values = channels * side**2
    for wide in (4096, 4096, 1000):
        layers.append((values * wide, values * wide, wide))
        values = wide
    return layers


def test_vgg16_is_the_network_that_its_paper_prints() -> None:
    """Layer by layer; Table 2 prints 138 million parameters, 138,357,544 with the biases."""
    network, layers = load_workload("vgg16"), vgg16_by_hand()
    written = [e.output.tensor for e in network.einsums]
    assert [network.operations(e.name) for e in network.einsums] == [work for _, work, _ in layers]
    assert [network.tensor(tensor).size for tensor in written] == [values for _, _, values in layers]
    own = [sum(network.tensor(a.tensor).size for a in e.inputs if a.tensor.startswith("W")) for e in network.einsums]
    assert own == [count for count, _, _ in layers]
    biases = sum(layer for layer in VGG_D if isinstance(layer, int)) + 4096 + 4096 + 1000
    assert weights(network) + biases == 138_357_544
    assert operations(network, "W") == 15_470_264_320
    assert [e.name for e in network.einsums if e.reduction == "max"] == ["T3", "T6", "T10", "T14", "T18"]
    assert load_workload("vgg16:batch=2").tensor("T18").shape == (2, 512, 7, 7)


@pytest.mark.parametrize(("name", "table"), [("vgg16", "VGG"), ("resnet18", "ResNet|Deep Residual")])
def test_sizes_say_where_they_are_from(name: str, table: str) -> None:
    """Channels and kernels are printed in the table; rows, columns and the image's channels follow; a batch is chosen.

    With another image or width no size is the table's.
    """
    network = load_workload(name)
    kinds = {fact.path.removeprefix("ranks."): fact.kind for fact in network.facts}
    sources = {
        fact.kind: fact.source for fact in network.facts if fact.path.startswith("ranks.") and fact.path != "ranks.b"
    }
    assert kinds["b"] == kinds["bits.default"] == "assumed"
    assert kinds.keys() - {"bits.default"} == network.extents.keys()
    for rank, kind in kinds.items():
        if rank[0] in "crsn":
            assert kind == ("derived" if rank == "c0" else "printed"), rank
        elif rank[0] in "pq":
            assert kind == "derived", rank
    assert sources.keys() == {"printed", "derived"}
    assert all(re.search(table, source) for source in sources.values())
    for changed in ("image=64", "width=16", "image=64,width=16"):
        facts = load_workload(f"{name}:{changed}").facts
        assert {fact.kind for fact in facts} == {"assumed"}, changed
        assert {fact.source for fact in facts} == {"a parameter of the zoo entry"}
    assert load_workload(f"{name}:image=224,width=64").facts == network.facts


def test_llama3_8b_has_eight_billion_weights() -> None:
    """8.03e9, of which 2 * 128256 * 4096 embed tokens."""
    stack = load_workload("llama3-8b:layers=32,tokens=4")
    assert weights(stack) + 2 * 128256 * 4096 == pytest.approx(8.03e9, rel=0.001)
    assert prod(stack.tensor("K_0").shape) * 4 == prod(stack.tensor("Q_0").shape)
    assert stack.inputs[0] == "I_in"
    assert stack.outputs == ("O_31",)
    assert stack.consumers["I_7"] == ("V_7", "K_7", "Q_7", "R_7")


def test_a_stack_of_gpt3_layers_hands_its_result_on() -> None:
    stack = load_workload("gpt3-6.7b:tokens=8,layers=3")
    assert len(stack.einsums) == 30
    assert stack.einsum("I_1").inputs[0].tensor == "FFB_0"
    assert stack.outputs == ("FFB_2",)
    assert [e.name for e in load_workload("gpt3-6.7b:tokens=8").einsums][:2] == ["I", "V"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet18:stages=5", "stages=5"),
        ("vgg16:image=100", "multiple of 32"),
        ("llama3-8b:layers=5000", "layers=5000"),
    ],
)
def test_what_a_network_lacks_is_refused(name: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_workload(name)


def test_one_layer_keeps_its_names() -> None:
    assert [e.name for e in stacked("x", ("Y[m] = relu(X[m])",), 1, "X", "Y")] == ["Y"]
    assert [str(e.inputs[0]) for e in stacked("x", ("Y[m] = relu(X[m])",), 2, "X", "Y")] == ["X[m]", "Y_0[m]"]


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("resnet18:image=4,width=1,stages=1", "two-level:glb_bits=600"),
        ("resnet18:image=8,width=1,stages=2", "two-level:glb_bits=600"),
        ("vgg16:image=4,width=1,stages=1,batch=2", "two-level:glb_bits=600"),
    ],
)
def test_small_networks_are_mapped_priced_verified_and_executed(name: str, machine: str) -> None:
    workload, levels = load_workload(name), load_machine(machine)
    result = Exact().search(Problem(workload, levels, Mapspace("ffm"), Objective("energy")))
    cost = evaluate(workload, levels, result.mapping)
    assert cost.energy == pytest.approx(result.value, rel=1e-9, abs=0)
    assert verify(result, quick=True).ok
    seen = simulate(workload, levels, result.mapping)
    for action in cost.actions:
        if action.action in ("read", "write"):
            assert action.count == seen.count(action.component, action.tensor, action.action, action.einsum)


@pytest.mark.parametrize(
    ("name", "einsums", "gmac"),
    [  # multiply-accumulates as frameworks count them; BERT and ViT by hand: see the formula
        ("resnet50", 72, 4.089),
        ("mobilenet-v2", 64, 0.3008),
        ("mobilenet-v3", 91, 0.2166),
        ("efficientnet-b0", 124, 0.3858),
        ("bert-base", 244, 11.17),
        ("gpt2-124m", 244, 16.11),
        ("vit-b16", 244, 17.45),
        ("llama3-8b-net", 643, 16_469),
        ("convnext-t", 147, 4.456),
        ("swin-t", 325, 4.491),
        ("resnet18", 31, 1.814),
        ("vgg16", 21, 15.47),
        ("mistral-7b:layers=2", 43, 1_231),
    ],
)
def test_a_whole_network_has_its_published_multiplications(name: str, einsums: int, gmac: float) -> None:
    w = load_workload(name)
    assert len(w.einsums) == einsums
    assert products(w) / 1e9 == pytest.approx(gmac, rel=5e-4)


def products(w: Workload) -> int:
    """Multiplications of the Einsums that multiply two tensors."""
    return sum(w.operations(e.name) for e in w.einsums if e.kind == "multiply" and len(e.inputs) == 2)


def test_whisper_base_has_the_parameters_of_its_checkpoint() -> None:
    """72,593,920 with positions, norms and biases (keys have none); the paper's Table 1 prints 74 million."""
    network, width = load_workload("whisper-base"), 512
    assert network.tensor("MEL").shape == (1, 3000, 80) and network.tensor("X").shape == (1, 1500, width)
    assert network.tensor("QKD_0c").shape == (1, 448, 1500, 8, 1)
    assert network.consumers["Nend"][:2] == ("VD_0c", "KD_0c") and modules("whisper-base")["encoder.front"] == 2
    positions, ends = (1500 + 448) * width, 2 * 2 * width
    attention, feed, norm = 3 * width, 2048 + width, 2 * width
    encoder, decoder = attention + feed + 2 * norm, 2 * attention + feed + 3 * norm
    assert weights(network) + positions + 2 * width + ends + 6 * (encoder + decoder) == 72_593_920
    with pytest.raises(SpecError, match="a token has two frames"):
        load_workload("whisper-base:frames=11")


def test_whisper_has_the_multiplications_of_the_exported_graph() -> None:
    """Whisper-tiny without its head, 16 tokens: 20.44e9, counted from the shapes of its ONNX graph."""
    base = next(network for network in NETWORKS if network.name == "whisper-base")
    tiny = replace(base, name="whisper-tiny", model=384, heads=6, wide=1536)
    network = tiny.build({"batch": 1, "frames": 3000, "tokens": 16, "layers": 4, "bits": 8})
    assert products(network) - network.operations("HEAD") == pytest.approx(20.44e9, rel=5e-4)


def test_convnext_t_has_the_parameters_of_its_checkpoint() -> None:
    """28,589,128 with biases, norms and the scales of its layers; Table 1 prints 29 million and 4.5e9 FLOPs."""
    stages = ((96, 3), (192, 3), (384, 9), (768, 3))
    stem, head = 3 * 96, 2 * 768 + 1000
    # of a layer: a bias, a norm, two biases of which one is wide, a scale
    layers = sum(9 * width * blocks for width, blocks in stages)
    between = sum(2 * a + b for (a, _), (b, _) in pairwise(stages))
    assert weights(load_workload("convnext-t")) + stem + layers + between + head == 28_589_128


def test_swin_t_has_the_parameters_of_its_checkpoint() -> None:
    """28,288,354 with biases, norms and the tables of relative positions; Table 7 prints 29 million and 4.5e9 FLOPs."""
    network, stages = load_workload("swin-t"), ((96, 2, 3), (192, 2, 6), (384, 6, 12), (768, 2, 24))
    stem, head = 96 + 2 * 96, 2 * 768 + 1000
    # of a block: biases of the queries, keys, values, projection and two layers of which one is wide, two norms
    blocks = sum(blocks * (13 * width + 13 * 13 * heads) for width, blocks, heads in stages)
    between = sum(2 * 4 * width for width, _, _ in stages[:-1])
    assert weights(network) + stem + blocks + between + head == 28_288_354
    sums = [e for e in network.einsums if e.kind != "copy" and e.reduced]
    assert len(sums) == 101 + 83, "products and reductions of the exported graph"
    with pytest.raises(SpecError, match="multiples of 224"):
        load_workload("swin-t:image=256")


@pytest.mark.parametrize(("tensor", "moved"), [("S_0_1", -3), ("B_2_5", 3)])
def test_moved_windows_go_around_the_edge(tensor: str, moved: int) -> None:
    """Every element of the plane is written once, from where numpy.roll takes it."""
    network = load_workload("swin-t")
    _, _, rows, columns = network.tensor(tensor).shape
    found = np.full((rows, columns), -1)
    for name in network.writers[tensor]:
        einsum = network.einsum(name)
        names = einsum.output.variables[2:]
        at = dict(zip(names, np.indices([network.extents[v] for v in names]), strict=True))
        to, come = (
            [sum(c * at[v] for v, c in index.terms) + index.constant for index in access.indices[2:]]
            for access in (einsum.output, einsum.inputs[0])
        )
        assert (found[tuple(to)] == -1).all()
        found[tuple(to)] = come[0] * columns + come[1]
    plane = np.arange(rows * columns).reshape(rows, columns)
    assert (found == np.roll(plane, (moved, moved), (0, 1))).all()


def test_a_token_of_mamba_130m_reads_every_parameter_and_its_states() -> None:
    """129,135,360 parameters with biases and norms, tied embeddings counted once; the paper prints 130 million."""
    network = load_workload("mamba-130m")
    assert weights(network) + 24 * (2 * 1536 + 768) + 768 == 129_135_360
    assert network.tensor("STATE_5").shape == network.tensor("H_5").shape == (1, 1536, 16)
    assert {"STATE_23", "INPUTS_23"} <= set(network.inputs) and {"H_23", "XI_23", "HEAD"} <= set(network.outputs)
    elementwise = 24 * 1536 * (1 + 1 + 16)  # newest tap, skip and decay: weights of maps, not of products
    assert products(network) == weights(network) - elementwise + 24 * 1536 * 16
    assert len(load_workload("mamba-130m:layers=2").einsums) == 37
    with pytest.raises(SpecError, match="1 to 1000 layers"):
        load_workload("mamba-130m:layers=1001")


@pytest.mark.parametrize(
    "network",
    [
        "mamba-130m:layers=1",
        pytest.param("mamba-130m", marks=pytest.mark.slow),
        pytest.param("whisper-base", marks=pytest.mark.slow),
        pytest.param("convnext-t", marks=pytest.mark.slow),
        pytest.param("swin-t", marks=pytest.mark.slow),
    ],
)
def test_recent_networks_are_mapped_with_a_proof(network: str) -> None:
    machine = load_machine("tpu-v4i-vector")
    result = Exact().search(Problem(load_workload(network), machine, Mapspace("ffm"), Objective("energy")))
    assert result.certificate is not None and result.certificate.guarantee is Guarantee.OPTIMAL
    assert verify(result, quick=True).ok


def test_decoding_reads_a_cache_and_experts_are_those_of_one_token() -> None:
    w = load_workload("llama3-8b-net:decode=true,cached=100,layers=1")
    assert w.tensor("K_cache_0").shape == (1, 100, 8, 128) and "K_0" in w.outputs
    assert w.operations("QK_0") == 100 * 32 * 128
    moe = load_workload("mixtral-8x7b:layers=1")
    assert moe.tensor("WUP_0").shape == (2, 4096, 14336) and "ROUTE_0" in moe.outputs
    decoder = load_workload("t5-small:layers=1")
    assert decoder.consumers["Nend"] == ("VD_0c", "KD_0c"), "its encoder's output is read by keys and values"
    for call, words in (
        ("bert-base:layers=1001", "1 to 1000 layers"),
        ("mistral-7b:cached=4", "only with decode=true"),
        ("mixtral-8x7b:tokens=2", "experts of its own"),
        ("resnet50:image=100", "multiple of 32"),
    ):
        with pytest.raises(SpecError, match=words):
            load_workload(call)

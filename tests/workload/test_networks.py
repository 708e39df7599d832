"""Whole networks of the zoo: their sizes against what their papers print, and small ones mapped and executed."""

from __future__ import annotations

from math import prod

import pytest

from einloom.certify.verify import verify
from einloom.cost.evaluate import evaluate
from einloom.errors import SpecError
from einloom.machine.load import load_machine
from einloom.mapspace.space import Mapspace
from einloom.oracle.simulate import simulate
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.workload.einsum import Workload
from einloom.workload.load import load_workload
from einloom.workload.transformers import stacked


def operations(workload: Workload, kernel: str) -> int:
    """Multiplications by a weight: operations of the Einsums that read a tensor whose name starts so."""
    einsums = (e for e in workload.einsums if any(a.tensor.startswith(kernel) for a in e.inputs))
    return sum(workload.operations(e.name) for e in einsums)


def weights(workload: Workload) -> int:
    return sum(t.size for t in workload.tensors if t.name in workload.inputs and t.name.startswith("W"))


def test_resnet18_has_the_operations_that_its_paper_prints() -> None:
    """Table 1: 1.8e9 FLOPs, multiply-adds. 11.7 million weights without biases and normalisation."""
    network = load_workload("resnet18")
    assert operations(network, "W") == pytest.approx(1.8e9, rel=0.01)
    assert weights(network) == pytest.approx(11.68e6, rel=0.001)
    assert network.tensor("T26").shape == (1, 512, 7, 7)
    assert sum(e.function == "add" for e in network.einsums) == 8


def test_vgg16_has_the_weights_that_its_paper_prints() -> None:
    """Table 2: 138 million parameters."""
    network = load_workload("vgg16:batch=2")
    assert weights(network) == pytest.approx(138e6, rel=0.005)
    assert [e.name for e in network.einsums if e.reduction == "max"] == ["T3", "T6", "T10", "T14", "T18"]
    assert network.tensor("T18").shape == (2, 512, 7, 7)


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

"""Mistakes planted in the importer's rules: the comparison with the model's own numbers finds every one."""

from __future__ import annotations

import pytest
from bench.agreement.compare import SAME, ReferenceRun, compared, noticed
from bench.agreement.faults import FAULTS, Fault
from bench.agreement.mixture import mixture

from einloom.interop.onnx.load import load
from einloom.interop.onnx.reference import values_of
from onnx_models import attention, convnet


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ReferenceRun]:
    """Three small networks with their values."""
    folder = tmp_path_factory.mktemp("networks")
    found = []
    for made, sizes in ((convnet, {"batch": 2}), (attention, {}), (mixture, {})):
        path = made(folder / f"{made.__name__}.onnx")
        graph = load(path, sizes)
        found.append(ReferenceRun(made.__name__, graph, values_of(str(path), graph, None, 0)))
    return found


def test_without_a_fault_every_number_is_right_at_every_stage(runs: list[ReferenceRun]) -> None:
    """As read, simplified, and as the workload's file says it."""
    for run in runs:
        found = compared(run)
        assert found.worst < SAME, run.name
        assert found.raw.tensors >= found.simplified.tensors == found.written.tensors > 4


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}: {fault.words}")
def test_a_fault_in_a_rule_is_found_by_its_numbers(fault: Fault, runs: list[ReferenceRun]) -> None:
    found = noticed(fault, runs)
    assert found.network and float(found.how) > 100 * SAME

"""Sequential trees with one split made concurrent: which trees come out, and what the worked examples say of them."""

from __future__ import annotations

from typing import Any

import pytest

from einloom.cost.evaluate import evaluate
from einloom.dataflows.concurrent_forms import concurrent_forms, grouped
from einloom.mapping.tree import Split, einsums_below
from worked import given

SEQUENTIAL: dict[str, Any] = {
    "workload": "chain",
    "machine": "S2",
    "mapping": """
store MM: T0 T2 W0 W1
for m in 4
store GLB: T1
split sequential:
  - par n1 in 4 @ X
    store Reg: W0
    for n0 in 4
    compute E0 @ MAC
  - par n2 in 4 @ X
    store Reg: W1
    for n1 in 4
    compute E1 @ MAC
""",
}


def test_the_worked_example_turned() -> None:
    """128 s one after the other; 81 s as a pipeline on the same instances (docs/model/bindings.md)."""
    workload, machine, mapping = given(SEQUENTIAL)
    assert evaluate(workload, machine, mapping).latency == 128
    forms = {form.place: form for form in concurrent_forms(mapping, machine, [["E0"], ["E1"]])}
    assert set(forms) == {"shared", "@ unit", "@ X"} and all(form.branches == 2 for form in forms.values())
    assert evaluate(workload, machine, forms["shared"].mapping).latency == 81
    assert all(form.mapping.einsums == mapping.einsums for form in forms.values())


def test_one_stage_makes_no_pipeline() -> None:
    _, machine, mapping = given(SEQUENTIAL)
    assert not list(concurrent_forms(mapping, machine, [["E0", "E1"]]))


@pytest.mark.parametrize(
    ("stages", "parts"),
    [
        ([["E0"], ["E1"]], [("E0",), ("E1",)]),
        ([["E0", "E1"]], [("E0", "E1")]),
        ([["E1"], ["E0"]], [("E0", "E1")]),
    ],
)
def test_groups(stages: list[list[str]], parts: list[tuple[str, ...]]) -> None:
    _, _, mapping = given(SEQUENTIAL)
    split = mapping.nest[-1]
    assert isinstance(split, Split)
    assert [einsums_below(branch) for branch in grouped(split.branches, stages)] == parts

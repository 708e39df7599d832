"""One Einsum of the published GPT-3 6.7B optimum on TPU v4i, in its published mapping; printed numbers are float32."""

from __future__ import annotations

import pytest

from einloom.cost.evaluate import evaluate
from einloom.mapping.text import parse_mapping
from einloom.workload.build import build_workload
from einloom.zoo.machine_by_name import load_machine

MAPPING = """
store DRAM: I_in WV Y
store GLB: I V
split sequential:
  - for m in 2048
    for d in 4096
    compute I
  - for V.e in 2 tile 64
    par V.e in 4 tile 16 @ Z
    store LB: V
    for V.d in 32 tile 128
    store LB: I
    for V.e in 4 tile 4
    par V.h in 32 tile 1 @ reuse_input
    par V.e in 4 tile 1 @ reuse_input
    par V.d in 128 tile 1 @ reuse_output
    store Reg: WV
    for V.m in 2048
    compute V @ MAC
  - for m in 2048
    store LB: V Y
    for h in 32
    for e in 128
    compute Y @ Scalar
"""


def test_value_projection_and_copy() -> None:
    workload = build_workload(
        "V of GPT-3 6.7B",
        ["I[b,m,d] = copy I_in[b,m,d]", "V[b,m,h,e] = I[b,m,d] * WV[h,e,d]", "Y[b,m,h,e] = exp(V[b,m,h,e])"],
        {"b": 1, "m": 2048, "d": 4096, "h": 32, "e": 128},
        bits=16,
    )
    machine = load_machine("tpu-v4i")
    cost = evaluate(workload, machine, parse_mapping(MAPPING, workload, machine))
    energy = cost.energy_by("einsum")
    assert energy["V",] == pytest.approx(1.08206336e-2, rel=1e-7)
    assert energy["I",] == pytest.approx(1.26030447e-3, rel=1e-7)
    assert dict(cost.einsum_latency)["V"] == pytest.approx(4.9932190e-4, rel=1e-7)
    assert dict(cost.einsum_latency)["I"] == pytest.approx(2.7324457e-5, rel=1e-7)

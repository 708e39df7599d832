"""Worked examples as data: a workload, a machine, a mapping, and the numbers to expect.

    case: A0
    workload: matmul      # of docs/model/workloads.yaml
    machine: S1           # of docs/model/machines.yaml
    mapping: |
      store MM: A B Z
      ...
    expect: {energy: 304, latency: 64, MM: {A: 64/0, Z: 48/64}, busy: {GLB: 24}, occupancy: {GLB: 33}}

A memory's entry says reads/writes (or reads) of a tensor, a toll's down/up, all instances, whole run. `energy_of` asks
for Einsums or components, `views` for the ways to see the latency, `peer` says in words what another tool reports.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from einloom.cost.breakdown import Cost
from einloom.cost.evaluate import evaluate, latencies
from einloom.cost.event import event_time
from einloom.machine.files import machine_from_data
from einloom.machine.levels import Machine
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Mapping
from einloom.workload.einsum import Workload
from einloom.workload.files import workload_from_data

DOCS = Path(__file__).resolve().parents[1] / "docs"
MACHINES = YAML(typ="safe").load((DOCS / "model" / "machines.yaml").read_text(encoding="utf-8"))
WORKLOADS = YAML(typ="safe").load((DOCS / "model" / "workloads.yaml").read_text(encoding="utf-8"))


def load_cases(text: str) -> list[dict[str, Any]]:
    """The cases of a YAML text: one mapping, or several separated by ``---``."""
    return [case for case in YAML(typ="safe").load_all(text) if case]


def priced(case: dict[str, Any]) -> Cost:
    """What `evaluate` says of the case."""
    return evaluate(*given(case))


def given(case: dict[str, Any]) -> tuple[Workload, Machine, Mapping]:
    """Workload, machine and mapping of the case."""
    workload = workload_from_data({"schema": "workload/1", "name": "small", "bits": 1, **WORKLOADS[case["workload"]]})
    machine = machine_from_data({"schema": "machine/1", "name": case["machine"], **MACHINES[case["machine"]]})
    return workload, machine, parse_mapping(case["mapping"], workload, machine)


def check(case: dict[str, Any]) -> None:
    """Assert every number that the case expects."""
    assert set(case) <= {"case", "workload", "machine", "mapping", "expect", "peer"}, case["case"]
    cost = priced(case)
    found: dict[str, Any] = {}
    expected = dict(case["expect"])
    for key, value in expected.items():
        if key in ("energy", "latency", "roofline"):
            found[key] = pytest.approx(getattr(cost, key), rel=1e-12)
        elif key == "views":
            found[key] = {view: pytest.approx(seen(case)[view], rel=1e-12) for view in value}
        elif key == "busy":
            found[key] = {name: _busy(cost, name) for name in value}
        elif key == "occupancy":
            found[key] = {memory: cost.occupancy_of(memory) for memory in value}
        elif key == "energy_of":
            found[key] = {name: _energy_of(cost, name) for name in value}
        elif key == "latency_of":
            found[key] = {name: pytest.approx(dict(cost.einsum_latency)[name]) for name in value}
        elif key == "operations":
            found[key] = sum(a.count for a in cost.actions if a.action == "compute")
        else:
            found[key] = {tensor: _moves(cost, key, tensor, numbers) for tensor, numbers in value.items()}
    assert expected == found, case["case"]


def seen(case: dict[str, Any]) -> dict[str, float]:
    """Every view of the case's latency, in seconds."""
    workload, machine, mapping = given(case)
    steady = latencies(workload, machine, mapping)
    return {**asdict(steady), "event": event_time(workload, machine, mapping).seconds}


def _busy(cost: Cost, component: str) -> object:
    return pytest.approx(sum(seconds for _, name, seconds in cost.busy if name == component))


def _energy_of(cost: Cost, name: str) -> object:
    mine = [a.energy for a in cost.actions if name in (a.einsum, a.component)]
    assert mine, f"{name} is no Einsum and no component"
    return pytest.approx(sum(mine))


def _moves(cost: Cost, memory: str, tensor: str, wanted: object) -> object:
    reads, writes = (
        cost.count(memory, tensor, one) + cost.count(memory, tensor, other)
        for one, other in (("read", "down"), ("write", "up"))
    )
    return f"{reads}/{writes}" if "/" in str(wanted) else reads

"""The pipelines of docs/model/bindings.md as results."""

from __future__ import annotations

import re

from einloom import Problem, Result
from einloom.machine.files import machine_from_data
from einloom.mapping.text import parse_mapping
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective
from einloom.workload.files import workload_from_data
from worked import DOCS, MACHINES, WORKLOADS, load_cases


def pipelined(name: str) -> Result:
    """The worked example called `name`, evaluated."""
    text = (DOCS / "model" / "bindings.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    case = next(case for block in blocks for case in load_cases(block) if case["case"] == name)
    workload = workload_from_data({"schema": "workload/1", "name": "small", "bits": 1, **WORKLOADS[case["workload"]]})
    machine = machine_from_data({"schema": "machine/1", "name": case["machine"], **MACHINES[case["machine"]]})
    problem = Problem(workload, machine, Mapspace("ffm", None), Objective("latency"))
    return Result.of(problem, parse_mapping(case["mapping"], workload, machine))

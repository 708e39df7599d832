"""What has to be on chip, inside axes in full use: no Einsum can be drawn alone, all that share a loop can."""

from __future__ import annotations

from random import Random

import pytest

from einloom.dataflows.files import dataflow
from einloom.mapspace.ffm.encoding.sample import joined, plain
from einloom.mapspace.registry import space_for
from einloom.problem import Budget, Objective
from einloom.published.dataflows import problems
from einloom.search.door import ask
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics.points import Points
from einloom.search.registry import method
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload


@pytest.mark.parametrize("flow", ["uni-pipe", "flat-r", "tileflow-attention"])
def test_states_of_a_fusing_dataflow_are_drawn(flow: str) -> None:
    hardware = load_machine("tileflow-edge").in_full_use()
    labelled = problems(dataflow(flow), load_workload("tileflow-vit-16-b"), hardware, Objective("latency"))
    asked = next(iter(labelled)).problem
    space, rng = space_for(asked.workload, asked.machine, asked.mapspace), Random(1)
    points = Points(asked, space, Evaluator(asked, space))
    encoding, found = points.encoding, 0
    for _ in range(20):
        assert plain(encoding.facts, rng) is None
        state = joined(encoding.facts, rng)
        assert state is None or encoding.fault(state) in (None, "capacity")
        drawn = encoding.sample(rng)
        if drawn is not None:
            found += 1
            assert encoding.fault(drawn) is None and not space.outside(encoding.decode(drawn))
    assert found > 10
    assert ask(method("genetic"), asked, Budget(steps=100)).value > 0


def test_nothing_is_joined_where_nothing_has_to_be() -> None:
    hardware = load_machine("tileflow-edge").in_full_use()
    asked = next(
        iter(problems(dataflow("layerwise"), load_workload("tileflow-vit-16-b"), hardware, Objective("latency")))
    ).problem
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points = Points(asked, space, Evaluator(asked, space))
    assert joined(points.encoding.facts, Random(1)) is None

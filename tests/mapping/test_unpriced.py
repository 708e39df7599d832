"""What the cost model does not price yet is refused by name, never taken for something else."""

from __future__ import annotations

import pytest

from einloom.cost.evaluate import evaluate
from einloom.errors import IllegalMapping, Infeasible
from einloom.mapping.tree import Compute, Loop, Mapping, Store
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.workload.build import build_workload
from einloom.workload.einsum import Access, Einsum, Index, Tensor, Workload
from einloom.workload.notation import parse_einsum
from einloom.zoo.machine_by_name import load_machine


def test_online_softmax() -> None:
    workload = build_workload(
        "s", [parse_einsum("S[m] = online_softmax[p] X[m,p]")], {"m": 2, "p": 2}, bits={"default": 8}
    )
    machine = load_machine("simple")
    loops = (Loop((("S", "m"),), 2), Loop((("S", "p"),), 2))
    mapping = Mapping((Store("DRAM", ("X", "S")), *loops, Compute("S", "MAC")))
    with pytest.raises(IllegalMapping, match="online_softmax, which is not priced yet"):
        evaluate(workload, machine, mapping)
    with pytest.raises(Infeasible, match="online_softmax, which is not priced yet"):
        Exact().search(Problem(workload, machine, Mapspace(), Objective("energy")))


def test_an_output_that_is_written_twice() -> None:
    plus = Access("O", (Index((("p", 1), ("r", 1))),))
    einsum = Einsum("O", plus, (Access("X", (Index((("p", 1),)), Index((("r", 1),)))),))
    tensors = (Tensor("O", (3,), 8), Tensor("X", (2, 2), 8))
    workload = Workload("s", (einsum,), tensors, (("p", 2), ("r", 2)), ("O",))
    loops = (Loop((("O", "p"),), 2), Loop((("O", "r"),), 2))
    mapping = Mapping((Store("DRAM", ("X", "O")), *loops, Compute("O", "MAC")))
    with pytest.raises(IllegalMapping, match="must reach each position once"):
        evaluate(workload, load_machine("simple"), mapping)

"""Pairs of Einsums whose fused tiles have to suit both."""

from __future__ import annotations

from cases import cascade, machine
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.selectors import selector


def halves(size: int, m: int = 17, local: bool = False) -> Problem:
    """Two Einsums with lanes of their own: four and five, so that tiles of 12 suit one and tiles of 15 the other."""
    workload = cascade("E0: T[m] = exp(A[m])\nE1: Z[m,q] = T[m] * C[q]", {"m": m, "q": 2})
    buffer = Memory("GLB", size, 1.0, 1.0, 1, 64.0, 64.0, may=selector("T"), must=selector("T"))
    first = Axis("X", 4, selector("all"), selector("all"), only_irrelevant_to=selector("Z"), use="full")
    second = Axis("Y", 5, selector("all"), selector("all"), use="full")
    inner = (Memory("LB", 3, 0.1, 0.1, 1, 64.0, 64.0, may=selector("T")),) if local else ()
    outer = Memory("DRAM", None, 10.0, 10.0, 1, 64.0, 64.0)
    vector, array = ComputeUnit("VEC", 1.0, 1.0, kinds=("map",)), ComputeUnit("MAC", 1.0, 1.0, kinds=("multiply",))
    on = machine(outer, buffer, Fanout("F", (first,)), vector, Fanout("G", (second,)), *inner, array)
    return Problem(workload, on, Mapspace("ragged"), Objective("edp"))

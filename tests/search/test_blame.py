"""What an infeasible problem blames: numbers that divide nothing, and memories in which something must stay."""

from __future__ import annotations

import pytest

import einloom as el
from einloom.errors import Infeasible
from einloom.machine.files import parse_machine
from einloom.mapspace.limits.data import AxisLimit, BackLimit, Limits, LoopLimit, Numbers
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector

MACHINE = """\
schema: machine/1
name: rows
levels:
  - {memory: DRAM, read_energy: 8 pJ, write_energy: 8 pJ, must: ~intermediate}
  - {memory: FREE, size: 4 B, backs: nothing}
  - {memory: HELD, size: 2 B, must: input, backs: nothing}
  - fanout: PE
    axes: [{axis: row, size: 4}]
  - {compute: MAC, throughput: 1 GHz}
"""


def reason(limits: Limits, bits: int = 8, space: str = "ffm") -> str:
    lines = ["T[m,n] = A[m,k] * B[k,n]", "U[m,l] = T[m,n] * C[n,l]"]
    workload = build_workload("pair", lines, {"m": 8, "n": 8, "k": 8, "l": 8}, bits=bits)
    asked = Problem(workload, parse_machine(MACHINE), Mapspace(space, limits=limits), Objective("energy"))
    with pytest.raises(Infeasible) as raised:
        Exact().search(asked)
    return raised.value.witness


def axis(numbers: Numbers) -> Limits:
    return Limits(axes=(AxisLimit("row", numbers, ("m",)),))


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (axis(Numbers(values=(3,))), "axis row: m: 3 instances, but 3 does not divide m = 8"),
        (axis(Numbers(values=(3, 5))), "axis row: m: 3 or 5 instances, but no number that is 3 or 5 divides m = 8"),
    ],
)
def test_a_number_that_divides_nothing_is_all_that_is_said(limits: Limits, said: str) -> None:
    assert reason(limits).endswith(f"has no mapping on its own: the mapspace asks: {said}")


def test_numbers_of_fused_loops_are_looked_at_too() -> None:
    loops = LoopLimit(selector("T"), ("m",), Numbers(values=(3,)))
    lines = ["T[m,n] = A[m,k] * B[k,n]", "U[m,l] = T[m,n] * C[n,l]"]
    workload = build_workload("pair", lines, {"m": 8, "n": 8, "k": 8, "l": 8}, bits=8)
    limits = Limits(loops=(loops,), backs=(BackLimit(selector("T"), ("GLB",)),))
    asked = Problem(workload, el.load_machine("simple"), Mapspace("ffm", limits=limits), Objective("energy"))
    with pytest.raises(Infeasible, match=r"3 trips, but 3 does not divide m = 8$"):
        Exact().search(asked)


def test_a_memory_that_must_hold_nothing_is_not_blamed() -> None:
    said = reason(Limits(), bits=32)
    assert "HELD holds 16 bits and what must stay there is larger" in said and "FREE" not in said

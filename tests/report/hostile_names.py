"""A result whose names and sources try to be markup, script, style and JSON."""

from __future__ import annotations

from einloom import Machine, Result
from einloom.machine.levels import ComputeUnit, Memory
from einloom.mapping.tree import Compute, Loop, Mapping, Store
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.reading.facts import Fact
from einloom.workload.einsum import Access, Einsum, Index, Tensor, Workload

IMAGE = "<img src=x onerror=boom()>"
SCRIPT = "</script><script>boom()</script>"
QUOTE = "\"' onmouseover=boom() x='"
STYLE = "</style><svg onload=boom()>"


def hostile() -> Result:
    """A copy-free map of one tensor to another, named as badly as possible."""
    index = Index((("i", 1),))
    einsum = Einsum(SCRIPT, Access(IMAGE, (index,)), (Access(QUOTE, (index,)),), "map", "exp")
    workload = Workload(
        STYLE,
        (einsum,),
        (Tensor(IMAGE, (4,), 8), Tensor(QUOTE, (4,), 8)),
        (("i", 4),),
        (IMAGE,),
        facts=(Fact("ranks.i", IMAGE, "assumed"),),
    )
    memory, unit = f"M{QUOTE}", f"U{SCRIPT}"
    levels = (Memory(memory, read_energy=1.0, write_energy=1.0, read_throughput=1.0), ComputeUnit(unit, 1.0, 1.0))
    machine = Machine(f"{IMAGE}{SCRIPT}", levels, facts=(Fact(f"{memory}.read_energy", STYLE, "printed"),))
    nest = (Store(memory, (IMAGE, QUOTE)), Loop(((SCRIPT, "i"),), 4), Compute(SCRIPT, unit))
    problem = Problem(workload, machine, Mapspace("ffm", None), Objective("energy"))
    return Result.of(problem, Mapping(nest), method=SCRIPT)

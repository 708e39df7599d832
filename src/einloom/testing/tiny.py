"""Tiny problems with every feature that a method stumbles over; brute force solves each in well under a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from ..machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from ..mapspace.space import Mapspace
from ..problem import Problem, objective
from ..workload.build import build_workload
from ..workload.einsum import Workload
from ..workload.selectors import selector

_OUTER = Memory("DRAM", None, 10.0, 12.0, read_throughput=2.0, write_throughput=2.0)
_MAC = ComputeUnit("MAC", 1.0, 0.5)


def _buffer(size: int | None) -> Memory:
    return Memory("GLB", size, 1.0, 1.0, read_throughput=8.0, write_throughput=8.0)


def _machine(name: str, *inner: Level) -> Machine:
    return Machine(name, (_OUTER, *inner, _MAC))


def _workload(name: str, einsums: tuple[str, ...], extents: dict[str, int]) -> Workload:
    return build_workload(name, einsums, extents, bits=8)


_BETWEEN = replace(_buffer(40), may=selector("intermediate | weight"))
_ARRAY = Fanout("PE", (Axis("X", 2),))
_ONE = _workload("one", ("Z[m,n] = A[m,k] * B[k,n]",), {"m": 2, "n": 2, "k": 1})
_CHAIN = _workload("chain", ("B[m,n] = A[m,k] * W[k,n]", "C[m,p] = B[m,n] * V[n,p]"), {"m": 2, "k": 1, "n": 1, "p": 1})
_WINDOW = _workload("window", ("O[p] = I[p+r] * F[r]",), {"p": 4, "r": 2})
_MADE: Mapping[str, tuple[Workload, Machine]] = MappingProxyType(
    {
        "one": (_ONE, _machine("roomy", _buffer(None))),
        "tight": (_ONE, _machine("tight", _buffer(24))),
        "spread": (_ONE, _machine("array", _buffer(40), _ARRAY)),
        "chain": (_CHAIN, _machine("small", _BETWEEN)),
        "window": (_WINDOW, _machine("small", _buffer(48))),
        "repeated": (replace(_CHAIN, repeat=3), _machine("small", _BETWEEN)),
        "hopeless": (_ONE, _machine("hopeless", replace(_buffer(8), must=selector("all")))),
    }
)
TINY = tuple(_MADE)
"""Names of the problems; ``hopeless`` has no legal mapping, all others have."""


@cache
def tiny_problem(name: str, goal: str = "energy") -> Problem:
    """The tiny problem of this name, for this objective."""
    workload, machine = _MADE[name]
    return Problem(workload, machine, Mapspace(), objective(goal, machine))

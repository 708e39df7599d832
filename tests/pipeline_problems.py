"""Problems whose optimum is a pipeline and whose rows trade components, room and filling for one another.

Too large to look at every tree, small enough for `exact` in a tenth of a second.
"""

from __future__ import annotations

from random import Random

from einloom.machine.levels import ComputeUnit, Level, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector

FAMILIES: dict[str, tuple[tuple[str, ...], ...]] = {
    "chain": (
        ("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = exp(T[m])"),
        ("R[m] = exp(X[m])", "S[m] = exp(R[m])", "T[m] = exp(S[m])", "Z[m] = exp(T[m])"),
    ),
    "fork": (
        ("R[m] = exp(X[m])", "S[m] = exp(R[m])", "T[m] = exp(R[m])", "Z[m] = add(S[m], T[m])"),
        ("R[m] = exp(X[m])", "S[m] = exp(Y[m])", "T[m] = add(R[m], S[m])", "Z[m] = exp(T[m])"),
    ),
    "deep": (
        ("T[m] = X[m] * W[m]", "Z[m] = exp(T[m])"),
        ("T[m,n] = X[m,n] * W[m]", "Z[m,n] = exp(T[m,n])"),
    ),
    "room": (
        ("T[m] = X[m,k] * W[k]", "Z[m] = exp(T[m])"),
        ("S[m] = X[m,k] * W[k]", "T[m] = S[m] * V[m]", "Z[m] = exp(T[m])"),
    ),
}


def _memory(rng: Random, name: str, size: int | None, must: str, may: str) -> Memory:
    return Memory(
        name,
        size,
        read_energy=float(rng.randint(0, 3)),
        write_energy=float(rng.randint(0, 3)),
        read_throughput=float(rng.randint(2, 12)),
        write_throughput=float(rng.randint(2, 12)),
        ports=rng.choice(("shared", "separate")),
        must=selector(must),
        may=selector(may),
    )


def pipeline_problem(family: str, seed: int) -> Problem:
    """The problem of a family and a seed."""
    rng = Random(f"{family} {seed}")
    texts = rng.choice(FAMILIES[family])
    einsums = [parse_einsum(text) for text in texts]
    sizes = {"m": rng.choice((4, 8)), "n": 2, "k": rng.choice((2, 4))}
    bits = {tensor: rng.choice((1, 2, 3, 4)) for einsum in einsums for tensor in einsum.tensors}
    used = {v for einsum in einsums for v in einsum.variables}
    sizes = {v: n for v, n in sizes.items() if v in used}
    workload = build_workload("pipeline", einsums, sizes, bits={"default": 1, **bits})
    room = sum(t.size * t.bits for t in workload.tensors)
    wide, fast = rng.randint(4, 16), float(rng.randint(4, 16))
    levels: list[Level] = [
        Memory("DRAM", read_energy=4.0, write_energy=4.0, bits_per_access=wide, read_throughput=fast)
    ]
    if family == "deep":
        levels.append(_memory(rng, "GLB", rng.randint(4, room), "cascade_input | weight", "nothing"))
        levels.append(_memory(rng, "LB", None, "intermediate", "nothing"))
    elif family == "room":
        levels.append(_memory(rng, "GLB", rng.randint(6, room // 2 + 6), "intermediate", "weight | cascade_input"))
    else:
        levels.append(_memory(rng, "GLB", None, "intermediate", "nothing"))
    for name in rng.sample(("A", "B", "C"), rng.choice((2, 3))):
        levels.append(ComputeUnit(name, throughput=float(rng.choice((1, 2, 3, 4))), energy=float(rng.randint(0, 3))))
    space = Mapspace(concurrent=rng.choice(("shared", "any")))
    return Problem(workload, Machine("pipeline", tuple(levels)), space, Objective(rng.choice(("latency", "edp"))))

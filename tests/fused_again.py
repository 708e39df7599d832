"""Short cascades on a buffer that holds little: of some the optimum has fused loops that cut one rank twice."""

from __future__ import annotations

from random import Random

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector

CASCADES = (
    ("T[m] = relu(X[m])", "U[m] = exp(T[m])", "Z[m,k] = U[m] * W[k]"),
    ("T[m] = relu(X[m])", "U[m] = T[m] * V[m]", "Z[m] = exp(U[m])"),
    ("T[m] = relu(X[m])", "Z[m,k] = T[m] * W[k]"),
    ("T[m] = relu(X[m])", "U[m,k] = T[m] * W[k]", "Z[m] = U[m,k]"),
    ("T[m] = relu(X[m])", "U[m] = exp(T[m])", "Z[m] = add(T[m], U[m])"),
    ("T[m] = relu(X[m])", "U[m] = exp(T[m])", "Z[m] = U[m] * W[m]", "Y[m] = U[m] * V[m]"),
)
SPEEDS = (None, 1.0, 2.0, 4.0)


def levelled(seed: int, small: bool = False) -> Problem:
    """The problem of a seed: a wide tensor, and behind it a narrow one whose tile gives reuse. small: of few trees."""
    rng = Random(f"levels {seed}")
    texts = rng.choice(CASCADES[:1] if small else CASCADES)
    ragged = not small and rng.random() < 0.25
    extents = {"m": 8 if small else rng.choice((7, 9, 11) if ragged else (8, 12, 16))}
    if any("k" in text for text in texts):
        extents["k"] = rng.choice((3, 4, 5))
    bits = {"T": rng.choice((6, 8, 16)), "U": 1, "X": rng.choice((1, 1, 2))}
    written = {text[0] for text in texts}
    bits = {tensor: n for tensor, n in bits.items() if tensor in written | {"X"}}
    workload = build_workload("levels", texts, extents, bits={"default": 1, **bits}, repeat=rng.choice((1, 1, 2)))
    outer = Memory(
        "DRAM",
        None,
        rng.choice((20.0, 50.0)),
        20.0,
        read_throughput=rng.choice((1.0, 2.0)),
        write_throughput=rng.choice(SPEEDS),
        may=selector("~intermediate" if small else rng.choice(("all", "~intermediate", "~intermediate"))),
    )
    double = rng.random() < 0.2
    room = bits["T"] + rng.choice((2, 2, 4)) * (1 + bits["X"]) + rng.choice((0, 0, 1))
    buffer = Memory(
        "GLB",
        room * (2 if double else 1),
        rng.choice((0.5, 1.0)),
        1.0,
        read_throughput=rng.choice(SPEEDS),
        write_throughput=rng.choice(SPEEDS),
        double_buffer=double,
        may=selector("intermediate | X | W" if small else "all"),
    )
    inner: list[Level] = [Fanout("F", (Axis("x", 2),))] if not small and rng.random() < 0.2 else []
    units = [ComputeUnit(f"V{n}", 1.0, 0.5, kinds=("map",)) for n in range(rng.choice((0, 0, 1)))]
    machine = Machine("levels", (outer, buffer, *inner, ComputeUnit("MAC", 1.0, 0.5), *units))
    space = Mapspace(
        "ragged" if ragged else "ffm",
        max_fused_loops=rng.choice((None, 2, 2, 3)),
        concurrent="none" if small else rng.choice(("none", "none", "shared", "any")),  # type: ignore[arg-type]
        order="program" if small else rng.choice(("program", "program", "free")),
        stores="own" if small else rng.choice(("own", "own", "shared")),
        max_fused_loops_per_rank_variable=4,
    )
    return Problem(workload, machine, space, Objective(rng.choice(("energy", "energy", "latency", "edp"))))

"""Cascades of four to six Einsums that fork and meet again, on a buffer that holds about what they exchange.

They have too many trees to look at all.
"""

from __future__ import annotations

from random import Random

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

CONCURRENT = ("none", "unit", "shared", "axis", "any", "everywhere")


def cascade(rng: Random) -> Workload:
    """Four to six Einsums over one rank; most read what an earlier one writes, some one of every second."""
    count, step = rng.choice((4, 4, 5, 6)), rng.choice((1, 1, 2))
    texts: list[str] = []

    def read(place: int, name: str) -> str:
        written = range(place - step, -1, -step)
        return f"T{rng.choice(written)}[m]" if written and rng.random() < 0.75 else f"{name}{place}[m]"

    for i in range(count):
        kind, first = rng.random(), read(i, "X")
        if kind < 0.55:
            texts.append(f"T{i}[m] = {rng.choice(('exp', 'relu'))}({first})")
        elif kind < 0.8:
            second = read(i, "Y")
            texts.append(f"T{i}[m] = add({first}, {second if second != first else f'Z{i}[m]'})")
        else:
            texts.append(f"T{i}[m] = {first} * W{i}[m]")
    bits = {f"T{i}": rng.choice((1, 1, 2, 3)) for i in range(count)}
    extents = {"m": rng.choice((2, 3, 4, 6))}
    return build_workload("forks", texts, extents, bits={"default": 1, **bits}, repeat=rng.choice((1, 1, 2)))


def machine(rng: Random, workload: Workload) -> Machine:
    """A buffer of about what the intermediates take, one to three units, sometimes registers and an axis."""
    room = sum(t.size * t.bits for t in workload.tensors if t.name in workload.intermediates)
    speed = (None, 1.0, 2.0, 3.0, 8.0)
    outer = Memory(
        "DRAM",
        None,
        rng.choice((3.0, 9.0)),
        4.0,
        read_throughput=rng.choice((1.0, 2.0, 4.0)),
        write_throughput=rng.choice(speed),
        may=selector(rng.choice(("all", "~intermediate"))),
    )
    buffer = Memory(
        "GLB",
        rng.choice((None, room, room // 2 + 2, 2 * room)),
        1.0,
        rng.choice((1.0, 2.0)),
        read_throughput=rng.choice(speed),
        write_throughput=rng.choice(speed),
        double_buffer=rng.random() < 0.4,
        may=selector(rng.choice(("all", "intermediate", "intermediate"))),
    )
    levels: list[Level] = [outer, buffer]
    if rng.random() < 0.25:
        levels.append(Fanout("F", (Axis("x", rng.choice((2, 3))),)))
    if rng.random() < 0.2:
        levels.append(Memory("REG", rng.choice((None, 4, 8)), 0.1, 0.1))
    levels.append(ComputeUnit("MAC", rng.choice((1.0, 0.5)), 0.5))
    for number in range(rng.choice((0, 0, 1, 2))):
        levels.append(ComputeUnit(f"V{number}", rng.choice((1.0, 2.0)), 0.5, kinds=("map",)))
    return Machine("forks", tuple(levels))


def forked(seed: int) -> Problem:
    """The problem of a seed."""
    rng = Random(f"forks {seed}")
    workload = cascade(rng)
    space = Mapspace(
        rng.choice(("ffm", "ffm", "ragged")),
        max_fused_loops=rng.choice((1, 1, 2, None)),
        concurrent=rng.choice(CONCURRENT),  # type: ignore[arg-type]
        max_group=rng.choice((2, 3, 4, 5)),
        order=rng.choice(("free", "free", "program")),
        stores=rng.choice(("own", "own", "shared")),
    )
    objective = Objective(rng.choice(("energy", "latency", "edp", "edp")))
    return Problem(workload, machine(rng, workload), space, objective)

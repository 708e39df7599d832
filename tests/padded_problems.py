"""Random problems with padded windows on machines with axes: small enough to look at every tree, by seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory, Toll
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector
from tiny_problems import tiny_machine


def padded_workload(rng: Random) -> Workload:
    """Convolutions with strides, shifts, channels and two dimensions; chains of two; rims of unequal width, at the end
    alone too."""
    p, r = rng.choice((3, 3, 4, 5, 6)), rng.choice((2, 3, 3))
    q, s = rng.choice(((1, 1), (3, 1), (3, 2)))
    texts, sizes, shapes = rng.choice(
        (
            (["O[p] = I[p+r-1] * F[r]"], {"p": p, "r": r}, {"I": (p,)}),
            (["O[p,c] = I[p+r-1] * F[r,c]"], {"p": p, "r": r, "c": 2}, {"I": (p,)}),
            (["O[p] = I[2*p+r-1] * F[r]"], {"p": p, "r": 3}, {"I": (2 * p,)}),
            (["O[p] = I[2*p+r] * F[r]"], {"p": p, "r": 3}, {"I": (2 * p,)}),
            (["O[p,c] = I[p+r] * F[r,c]"], {"p": p, "r": r, "c": 2}, {"I": (p,)}),
            (["O[p,q] = I[p+r,q+s-1] * F[r,s]"], {"p": 3, "r": rng.choice((1, 2)), "q": 2, "s": 2}, {"I": (2, 1)}),
            (["O[p] = I[p-1] * F[p]"], {"p": p}, {"I": (p,)}),
            (["O[p] = I[p-1,c] * F[c]"], {"p": p, "c": 2}, {"I": (p - 1, 2)}),
            (["T[h] = exp(X[h])", "O[p] = T[p+r-1] * F[r]"], {"h": 3, "p": 3, "r": 2}, {}),
            (["T[p] = exp(X[p])", "O[p] = T[p] * I[p+r-1]"], {"p": 3, "r": 2}, {"I": (3,)}),
            (["O[p,q] = I[p+r-1,q+s-1] * F[r]"], {"p": 3, "q": q, "r": rng.choice((1, 2)), "s": s}, {"I": (3, q + 1)}),
            (["O[p] = I[p+r-2] * F[r]"], {"p": p + 1, "r": 3}, {"I": (p + rng.choice((-1, 0, 1)),)}),
        )
    )
    if sizes.get("q") == 1:
        shapes = {"I": (3, 2)} if s > 1 else {"I": (3, 1)}
        texts = ["O[p,q] = I[p+r-1,q] * F[r]"]
        sizes = {v: n for v, n in sizes.items() if v != "s"}
    einsums = [parse_einsum(text) for text in texts]
    bits = {tensor: rng.choice((1, 1, 2, 3)) for einsum in einsums for tensor in einsum.tensors}
    return build_workload(
        "padded", einsums, sizes, bits={"default": 1, **bits}, shapes=shapes, repeat=rng.choice((1, 3))
    )


def padded_problem(seed: int) -> Problem:
    """Any machine of the tiny ones that has a fanout, with longer axes and tolls; both spaces, every objective."""
    rng = Random(seed)
    workload = padded_workload(rng)
    machine = tiny_machine(rng, sum(t.size * t.bits for t in workload.tensors))
    while not machine.fanouts or len(machine.memories) > 3:
        machine = tiny_machine(rng, sum(t.size * t.bits for t in workload.tensors))
    levels: list[Level] = []
    for level in machine.levels:
        if isinstance(level, Fanout):
            level = replace(level, axes=tuple(replace(axis, size=rng.randint(2, 6)) for axis in level.axes))
        levels.append(level)
        if isinstance(level, Memory | Fanout) and rng.random() < 0.2:
            throughput = rng.choice((None, float(rng.randint(1, 3))))
            levels.append(Toll(f"t{len(levels)}", energy=float(rng.randint(0, 3)), throughput=throughput))
    names = [memory.name for memory in machine.memories]
    every = Objective("energy"), Objective("latency"), Objective("edp"), Objective("traffic", rng.choice(names))
    space = Mapspace(rng.choice(("ffm", "ffm", "ragged")), rng.choice((None, None, 0, 1)))
    return Problem(workload, replace(machine, levels=tuple(levels)), space, rng.choice(every))


def timed_convolution(seed: int) -> Problem:
    """A padded convolution on a machine whose memories alone take time."""
    rng = Random(seed)
    text = rng.choice(("O[p,c] = I[p+r-1] * F[r,c]", "O[p,c] = I[p+r-1,c] * F[r,c]", "O[p] = I[p+r-1] * F[r]"))
    text = text.replace("-1", rng.choice(("-1", "-1", "-2", "")))
    sizes = {"p": rng.randint(3, 6), "r": 3, "c": rng.randint(2, 5)}
    shape = (sizes["p"], sizes["c"]) if ",c] * F" in text else (sizes["p"],)
    sizes = {v: n for v, n in sizes.items() if v in text}
    workload = build_workload("convolution", [text], sizes, bits=1, shapes={"I": shape})

    def memory(name: str, size: int | None) -> Memory:
        speeds = rng.choice((None, 1.0, 2.0) if size is None else (1.0, 2.0)), rng.choice((None, 1.0, 3.0))
        ports = rng.choice(("shared", "separate"))
        return Memory(name, size, 1.0, 1.0, read_throughput=speeds[0], write_throughput=speeds[1], ports=ports)

    def axis(name: str) -> Axis:
        every = ("all", "nothing")
        joins = selector(rng.choice(every)), selector(rng.choice(every))
        return Axis(name, rng.randint(3, 6), multicast=joins[0], reduce=joins[1])

    levels: list[Level] = [Memory("DRAM", None, 1.0, 1.0, read_throughput=8.0)]
    for i in range(rng.choice((1, 1, 2))):
        levels.append(Fanout(f"F{i}", tuple(axis(f"{name}{i}") for name in ("x", "y")[: rng.choice((1, 1, 2))])))
        levels.append(memory(f"M{i}", rng.choice((None, None, 6, 10))))
    levels.append(ComputeUnit("MAC", energy=1.0))
    space = Mapspace(rng.choice(("ffm", "ffm", "ragged")), 0)
    return Problem(
        workload, Machine("timed", tuple(levels)), space, Objective(rng.choice(("latency", "latency", "edp")))
    )

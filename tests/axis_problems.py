"""Cascades behind fanouts with a memory that backs what their Einsums share: of some the best shares spatial loops."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from einloom.machine.levels import NOTHING, Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Problem, objective
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

FIRST = ("T[m,n] = A[m,k] * B[k,n]", "T[n,m] = A[m,k] * B[k,n]", "T[m,n] = A[m,n]")
NEXT = {
    "T[m,n]": ("S[m,n] = T[m,n] * D[m,n]", "S[n,m] = T[m,n]", "S[m,p] = T[m,n] * D[n,p]", "S[p,n] = T[m,n] * D[m,p]"),
    "T[n,m]": ("S[m,n] = T[n,m] * D[m,n]", "S[n,m] = T[n,m]", "S[m,p] = T[n,m] * D[n,p]", "S[p,n] = T[n,m] * D[m,p]"),
}
LAST = {
    "S[m,n]": ("Z[m,n] = S[m,n] * E[n]", "Z[n,m] = S[m,n]", "Z[n,q] = S[m,n] * E[m,q]"),
    "S[n,m]": ("Z[m,n] = S[n,m] * E[n]", "Z[m,q] = S[n,m] * E[n,q]"),
    "S[m,p]": ("Z[p,m] = S[m,p]", "Z[q,p] = S[m,p] * E[m,q]"),
    "S[p,n]": ("Z[p] = S[p,n] * E[n]", "Z[n,p] = S[p,n]"),
}
GOALS = ("energy", "latency", "edp")


def cascade(rng: Random, sizes: Sequence[int], most: int) -> Workload:
    """Two or three Einsums, whose tensors have their ranks in any order."""
    first = rng.choice(FIRST)
    second = rng.choice(NEXT[first.split(" ")[0]])
    einsums = [first, second]
    if most > 2 and rng.random() < 0.5:
        einsums.append(rng.choice(LAST[second.split(" ")[0]]))
    text = " ".join(einsums)
    return build_workload("w", einsums, {v: rng.choice(sizes) for v in "mnkpq" if v in text}, bits=1)


def chip(rng: Random, sizes: Sequence[int], alike: bool) -> Machine:
    """Memories before and behind a fanout of two or three axes, alike or with one that joins nothing."""
    speed = lambda: rng.choice((0.5, 1.0, 2.0, 8.0))  # noqa: E731
    kinds: list[dict[str, Any]] = [{}, {}] if alike else [{}, {"multicast": NOTHING}]
    axes = [Axis(f"x{i}", rng.choice(sizes), **kinds[i == 0]) for i in range(rng.choice((2, 2, 3)))]
    rng.shuffle(axes)
    levels: list[Memory | Fanout | ComputeUnit] = [
        Memory("D", None, read_energy=9.0, write_energy=7.0, read_throughput=speed(), write_throughput=speed())
    ]
    if rng.random() < 0.4:
        levels.append(Memory("G", rng.choice((12, 40)), read_energy=2.0, write_energy=3.0, read_throughput=speed()))
    levels.append(Fanout("F", tuple(axes)))
    levels.append(Memory("R", rng.choice((3, 6, 16)), read_energy=0.5, write_energy=1.0, read_throughput=speed()))
    levels.append(ComputeUnit("U", energy=0.1, throughput=rng.choice((0.25, 1.0))))
    return Machine("chip", tuple(levels))


def drawn(seed: int, sizes: Sequence[int] = (2, 4, 6, 8), most: int = 3, alike: bool = True) -> Problem:
    rng = Random(f"like axes {seed}")
    machine = chip(rng, sizes[:3], alike)
    return Problem(cascade(rng, sizes, most), machine, Mapspace(), objective(rng.choice(GOALS), machine))


TWO, ONE = (Axis("x", 2), Axis("y", 2)), (Axis("x", 4),)


def tiny(seed: int, reduced: bool, axes: tuple[Axis, ...] = TWO) -> Problem:
    """Two Einsums of which all trees are few: behind two axes of two instances, or one of four, a memory for their
    tensor alone. reduced: the first one adds over a rank."""
    rng = Random(f"tiny like axes {seed}")
    head = rng.choice(("T[m,n]", "T[n,m]"))
    first = f"{head} = A[m,k] * B[n]" if reduced else f"{head} = A[m] * B[n]"
    second = rng.choice(("Z[m,n] = {} * D[n]", "Z[n,m] = {} * D[m]", "Z[n] = {} * D[m]", "Z[m] = {} * D[n]"))
    sizes = {v: 2 if v == "k" else rng.choice((2, 2, 4)) for v in ("mnk" if reduced else "mn")}
    fast = [rng.choice((0.5, 1.0, 4.0)) for _ in range(3)]
    machine = Machine(
        "tiny",
        (
            Memory("D", None, read_energy=9.0, write_energy=7.0, read_throughput=fast[0], write_throughput=fast[1]),
            Fanout("F", axes),
            Memory("R", rng.choice((1, 2, 4)), may=selector("T"), read_energy=0.5, write_energy=1.0),
            ComputeUnit("U", energy=0.1, throughput=fast[2]),
        ),
    )
    workload = build_workload("w", [first, second.format(head)], sizes, bits=1)
    return Problem(workload, machine, Mapspace(), objective(rng.choice(GOALS), machine))

"""Small workloads, and machines whose memories have room for a few elements."""

from __future__ import annotations

from random import Random
from typing import Any

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.search.exact import ExactOptions
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.notation import parse_einsum

UNBOUNDED = ExactOptions(incumbent=False, consistency=False, completions=False, segments=False)


def workload(text: str, sizes: str, shapes: dict[str, tuple[int, ...]] | None = None) -> Workload:
    extents = {name: int(size) for name, size in (pair.split("=") for pair in sizes.split())}
    shapes = shapes or ({"I": (2 * extents["p"],)} if "2*p" in text else {})
    einsums = [parse_einsum(one) for one in text.split("; ")]
    return build_workload("w", einsums, extents, bits={"default": 1}, shapes=shapes)


def crowded_machine(rng: Random) -> Machine:
    """A memory with everything, perhaps instances, a buffer of a few elements, perhaps another one."""

    def memory(name: str, size: int | None, cost: int) -> Memory:
        rate = rng.choice((None, 1.0, 2.0, 8.0))
        ports = rng.choice(("shared", "separate"))
        return Memory(name, size, cost, cost, 1, rate, rate, ports=ports)

    levels: list[Any] = [memory("MM", None, rng.choice((1, 5, 20)))]
    inner = [memory("GLB", rng.randint(2, 6), rng.choice((0, 1, 3)))]
    if rng.random() < 0.3:
        inner.insert(0, memory("L2", rng.randint(4, 12), 4))
    if rng.random() < 0.6:
        inner.insert(rng.randrange(len(inner) + 1), Fanout("f", (Axis("x", rng.choice((2, 3, 4))),)))
    return Machine("m", (*levels, *inner, ComputeUnit("MAC", rng.choice((1.0, 4.0)), rng.choice((0.0, 1.0)))))

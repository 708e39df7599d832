"""Random trees of Einsums that have nothing in common, in splits of splits that run at the same time."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from ..machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from ..mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store
from ..workload.build import build_workload
from ..workload.einsum import Workload
from ..workload.notation import parse_einsum


def nested_tree(seed: int) -> tuple[Workload, Machine, Mapping]:
    """Maps of inputs of their own in splits of splits: concurrent in any way, shares of axes inside of other branches.

    What they have in common are the instances of memories and units, and nothing else; all tiles are even.
    """
    rng = Random(f"nested {seed}")
    names = [f"E{i}" for i in range(rng.randint(3, 6))]
    sizes = {f"v{i}": rng.choice((1, 2, 3, 4, 6, 8)) for i in range(len(names))}
    lines = [parse_einsum(f"T{i}[v{i}] = exp(I{i}[v{i}])", e) for i, e in enumerate(names)]
    workload = build_workload("nested", lines, sizes, bits=1)
    axes = tuple(Axis(name, rng.choice((2, 4, 6))) for name in ("X", "Y")[: rng.randint(1, 2)])
    outer = Memory("G", read_throughput=rng.choice((None, None, 4.0)), write_throughput=rng.choice((None, None, 4.0)))
    inner = Memory("B", read_throughput=1.0, write_throughput=rng.choice((None, 1.0)), double_buffer=rng.random() < 0.3)
    units = tuple(ComputeUnit(f"U{i}", rng.choice((0.5, 1.0, 100.0, 100.0))) for i in range(len(names)))
    machine = Machine("nested", (outer, Fanout("array", axes), inner, *units))
    free = {axis.name: axis.size for axis in axes}
    nest = _nested(rng, names, {name: workload.extents[f"v{name[1:]}"] for name in names}, free)
    head = Store("G", tuple(tensor.name for tensor in workload.tensors))
    return workload, machine, Mapping((head, *nest))


def _nested(rng: Random, names: list[str], left: dict[str, int], free: dict[str, int]) -> Nest:
    """left: extent of each Einsum's variable here. free: instances left along every axis."""
    if len(names) == 1:
        return _map(rng, names[0], left[names[0]], free)
    parts = rng.randint(2, min(3, len(names)))
    above: tuple[Node, ...] = ()
    wide = [axis for axis, most in free.items() if most >= 2 * parts]
    if wide and all(left[name] % 2 == 0 for name in names) and rng.random() < 0.5:
        axis = rng.choice(wide)
        above = (Loop(tuple((name, f"v{name[1:]}") for name in names), 2, None, axis),)
        left, free = {name: left[name] // 2 for name in names}, {**free, axis: free[axis] // 2}
    cuts = [0, *sorted(rng.sample(range(1, len(names)), parts - 1)), len(names)]
    groups = [names[a:b] for a, b in pairwise(cuts)]
    if rng.random() < 0.1:
        return (*above, Split("sequential", tuple(_nested(rng, group, left, free) for group in groups)))
    open_axes = [axis for axis, most in free.items() if most >= parts]
    place = rng.choice(["unit", "shared", *open_axes, *open_axes])
    room = [free] * parts
    shares: tuple[int, ...] = ()
    if place in free:
        ends = [0, *sorted(rng.sample(range(1, free[place]), parts - 1)), free[place]]
        shares = tuple(b - a for a, b in pairwise(ends))
        room = [{**free, place: share} for share in shares]
    branches = tuple(_nested(rng, group, left, own) for group, own in zip(groups, room, strict=True))
    written = shares if rng.random() < 0.7 else ()
    return (*above, Split(rng.choice(("parallel", "pipelined")), branches, place, written))


def _map(rng: Random, name: str, left: int, free: dict[str, int]) -> Nest:
    """One map: spread over some of its instances, through the inner memory or past it."""
    variable = f"v{name[1:]}"
    nodes: list[Node] = []
    for axis, most in free.items():
        trips = rng.choice([n for n in range(1, most + 1) if left % n == 0])
        if trips > 1:
            nodes.append(Loop(((name, variable),), trips, None, axis))
            left //= trips
    inside = rng.choice([n for n in range(1, left + 1) if left % n == 0])
    outer, inner = ([Loop(((name, variable),), trips)] if trips > 1 else [] for trips in (left // inside, inside))
    held = tuple(tensor + name[1:] for tensor in "TI" if rng.random() < 0.7)
    return (*nodes, *outer, *([Store("B", held)] if held else []), *inner, Compute(name, f"U{name[1:]}"))

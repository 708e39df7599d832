"""Random problems whose Einsums may run at the same time, small enough to look at every tree.

Machines say of most tensors where they must be: what is left to choose is where loops, splits and stores stand.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapspace.space import Concurrent, Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector

Chain = tuple[tuple[str, ...], dict[str, tuple[int, ...]]]
TWO: tuple[Chain, ...] = (
    (("T[m] = exp(X[m])", "Z[m] = exp(T[m])"), {"m": (2, 3, 4, 6)}),
    (("T[m,n] = exp(X[m,n])", "Z[m,n] = exp(T[m,n])"), {"m": (2, 3), "n": (1, 2)}),
    (("T[m] = A[m,k] * B[m,k]", "Z[m] = exp(T[m])"), {"m": (2, 3), "k": (1, 2)}),
    (("T[m] = A[m,k] * W[k]", "Z[m] = exp(T[m])"), {"m": (2, 3), "k": (1, 2)}),
    (("T[m] = A[m] * W[m]", "Z[m] = T[m] * V[m]"), {"m": (2, 2, 2, 3)}),
    (("T[b,m] = A[b,m] * W[b]", "Z[b] = T[b,m] * V[m]"), {"b": (2,), "m": (2,)}),
    (("T[b,m] = A[b,m] * W[m]", "Z[b,m] = exp(T[b,m])"), {"b": (2, 3), "m": (2,)}),
    (("T[p] = exp(X[p])", "Z[q] = T[q+r] * F[r]"), {"q": (2,), "r": (1, 2)}),
)
THREE: tuple[Chain, ...] = (
    (("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = exp(T[m])"), {"m": (2, 2, 3)}),
    (("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = add(S[m], T[m])"), {"m": (2, 2, 3)}),
    (("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = exp(S[m])"), {"m": (2, 2, 2, 3)}),
    (("S[m] = exp(X[m])", "T[m] = S[m] * W[m]", "Z[m] = exp(T[m])"), {"m": (2, 2, 2, 3)}),
    (("S[m,n] = exp(X[m,n])", "T[m,n] = S[m,n] * W[m]", "Z[m] = exp(T[m,n])"), {"m": (2,), "n": (2,)}),
    (("S[m] = exp(X[m])", "T[m,n] = S[m] * W[n]", "Z[m,n] = exp(T[m,n])"), {"m": (2,), "n": (2,)}),
    (("S[m] = exp(X[m])", "I[m] = copy S[m]", "Z[m] = exp(I[m])"), {"m": (2, 2, 2, 3)}),
)
FOUR: tuple[Chain, ...] = (
    (("R[m] = exp(X[m])", "S[m] = exp(R[m])", "T[m] = exp(S[m])", "Z[m] = exp(T[m])"), {"m": (2, 2, 3)}),
    (("R[m] = exp(X[m])", "S[m] = exp(R[m])", "T[m] = exp(R[m])", "Z[m] = add(S[m], T[m])"), {"m": (2,)}),
    (("R[m] = exp(X[m])", "S[m] = exp(R[m])", "T[m] = add(R[m], S[m])", "Z[m] = exp(T[m])"), {"m": (2,)}),
)


def group_workload(rng: Random) -> Workload:
    """Two to four Einsums in a chain, with skips and forks."""
    texts, ranks = rng.choice(rng.choice((TWO, TWO, THREE, THREE, FOUR)))
    sizes = {rank: rng.choice(options) for rank, options in ranks.items()}
    if "q" in sizes:
        sizes["p"] = sizes["q"] + sizes["r"] - 1
    einsums = [parse_einsum(text) for text in texts]
    bits = {tensor: rng.choice((1, 1, 1, 2)) for einsum in einsums for tensor in einsum.tensors}
    return build_workload("grouped", einsums, sizes, bits={"default": 1, **bits}, repeat=rng.choice((1, 1, 3)))


MUST = (
    *("intermediate", "intermediate", "intermediate | weight", "intermediate | cascade_input"),
    *("all", "output", "nothing", "intermediate | output"),
)


def _memory(rng: Random, name: str, most: int, must: str, may: str) -> Memory:
    return Memory(
        name,
        size=None if rng.random() < 0.2 else rng.randint(2, most),
        read_energy=float(rng.randint(0, 3)),
        write_energy=float(rng.randint(0, 3)),
        read_throughput=float(rng.randint(2, 12)),
        write_throughput=float(rng.randint(2, 12)),
        ports=rng.choice(("shared", "separate")),
        must=selector(must),
        may=selector(may),
        leakage=rng.choice((0.0, 0.0, 0.0, 1.0)),
        double_buffer=rng.random() < 0.2,
    )


def _outer(rng: Random, least: int, most: int) -> Memory:
    """DRAM with throughputs from `least` to `most`."""
    return Memory(
        "DRAM",
        None,
        read_energy=float(rng.randint(3, 12)),
        write_energy=float(rng.randint(3, 12)),
        read_throughput=float(rng.randint(least, most)),
        write_throughput=float(rng.randint(least, most)),
        must=selector("~intermediate"),
    )


def one_or_two_units(rng: Random, often: float) -> list[ComputeUnit]:
    """A unit for everything and, in so large a share of the draws, one for maps before it."""
    units = [ComputeUnit("MAC", throughput=rng.choice((0.5, 1.0, 2.0)), energy=float(rng.randint(0, 2)))]
    if rng.random() < often:
        units.insert(0, ComputeUnit("V", throughput=rng.choice((0.5, 1.0, 2.0)), energy=1.0, kinds=("map",)))
    return units


def space_with_groups(rng: Random, spread: bool) -> Mapspace:
    """Einsums may run at the same time, also on shares of an axis if the machine has one to `spread` over."""
    places: tuple[Concurrent, ...] = ("unit", "shared", "any", "any")
    return Mapspace(
        max_fused_loops=rng.choice((None, None, None, 1)),
        concurrent=rng.choice((*places, "axis", "axis", "everywhere") if spread else places),
        max_group=rng.choice((2, 3, 4)),
    )


def group_machine(rng: Random, most_bits: int, levels_more: bool) -> Machine:
    """DRAM, one memory or two, perhaps a fanout, and one to three units."""
    outer = _outer(rng, 2, 16)
    levels: list[Level] = [outer]
    deep = levels_more and rng.random() < 0.4
    if deep and rng.random() < 0.7:
        levels.append(_memory(rng, "GLB", 2 * most_bits, rng.choice(("cascade_input", "weight")), "nothing"))
        levels.append(_memory(rng, "LB", 2 * most_bits, rng.choice(("intermediate", "all")), "nothing"))
    else:
        must = rng.choice(MUST)
        levels.append(_memory(rng, "GLB", 2 * most_bits, must, rng.choice(("nothing", "nothing", "intermediate"))))
        if deep:
            levels.append(Fanout("F", (Axis("x", 2, multicast=selector("all"), reduce=selector("all")),)))
    if rng.random() < 0.75:
        levels.append(ComputeUnit("V", throughput=float(rng.choice((1, 1, 2, 3))), energy=1.0, kinds=("map",)))
    if levels_more and rng.random() < 0.2:
        levels.append(ComputeUnit("W", throughput=float(rng.choice((1, 1, 2, 3))), energy=float(rng.randint(0, 2))))
    levels.append(ComputeUnit("MAC", throughput=float(rng.choice((1, 1, 2, 3))), energy=float(rng.randint(0, 2))))
    return Machine("grouped", tuple(levels))


def group_problem(seed: int) -> Problem:
    """The problem of a seed."""
    rng = Random(seed)
    workload = group_workload(rng)
    room = sum(t.size * t.bits for t in workload.tensors)
    machine = group_machine(rng, room + 2, len(workload.einsums) < 4)
    goal = Objective(rng.choice(("latency", "latency", "latency", "edp", "edp", "edp", "edp", "energy")))
    space = Mapspace(
        max_fused_loops=rng.choice((None, None, None, 1)),
        concurrent=rng.choice(("unit", "shared", "any")),
        max_group=rng.choice((2, 3, 4, 4)),
    )
    return Problem(workload, machine, space, goal)


ORDERED: tuple[Chain, ...] = (
    (("T[m] = exp(A[m])", "V[m] = exp(B[m])", "Z[m] = exp(T[m])"), {"m": (2, 3)}),
    (("T[m] = A[m] * W[m]", "V[m] = exp(B[m])", "Z[m] = exp(T[m])"), {"m": (2, 3)}),
    (("S[m] = exp(A[m])", "T[m] = B[m] * W[m]", "Z[m] = add(S[m], T[m])"), {"m": (2, 3)}),
    (("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = exp(S[m])"), {"m": (2, 3)}),
    (("S[m] = exp(X[m])", "T[m] = S[m] * W[m]", "Z[m] = exp(S[m])"), {"m": (2, 3)}),
    (("S[m] = exp(X[m])", "P[m] = exp(Y[m])", "T[m] = exp(S[m])", "Z[m] = exp(P[m])"), {"m": (2,)}),
    (("R[m] = exp(X[m])", "S[m] = exp(R[m])", "T[m] = exp(R[m])", "Z[m] = add(S[m], T[m])"), {"m": (2,)}),
    (("S[m] = exp(X[m])", "T[m] = exp(S[m])", "V[m] = exp(B[m])", "Z[m] = add(S[m], T[m])"), {"m": (2,)}),
)


def ordered_group_problem(seed: int) -> Problem:
    """The problem of a seed whose Einsums may run in several orders, and some at the same time. Most tensors must stay
    somewhere, so that trees are few."""
    rng = Random(f"ordered groups {seed}")
    texts, ranks = rng.choice(ORDERED)
    sizes = {rank: rng.choice(options) for rank, options in ranks.items()}
    einsums = [parse_einsum(text) for text in texts]
    bits = {tensor: rng.choice((1, 1, 1, 2)) for einsum in einsums for tensor in einsum.tensors}
    workload = build_workload("ordered", einsums, sizes, bits={"default": 1, **bits}, repeat=rng.choice((1, 1, 3)))
    room = sum(t.size * t.bits for t in workload.tensors if t.name in workload.intermediates)
    must = rng.choice(("intermediate", "intermediate", "intermediate | output"))
    may = rng.choice(("nothing", "nothing", "intermediate")) if len(texts) < 4 else "nothing"
    buffer = replace(_memory(rng, "GLB", 2 * room + 2, must, may), backs=selector("all"))
    outer = _outer(rng, 1, 8)
    outer = replace(outer, may=selector(rng.choice(("all", "~intermediate", "~intermediate"))))
    units = one_or_two_units(rng, 0.75)
    spread = rng.random() < 0.2
    axis = Fanout("F", (Axis("x", rng.choice((2, 3)), multicast=selector("all"), reduce=selector("all")),))
    space = replace(space_with_groups(rng, spread), order="free")
    machine = Machine("ordered", (outer, buffer, *((axis,) if spread else ()), *units))
    return Problem(workload, machine, space, Objective(rng.choice(("latency", "latency", "edp", "edp", "energy"))))

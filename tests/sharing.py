"""Random problems in which several fused Einsums read a tensor, small enough to look at every tree: by seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.legality.structure import problems
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.enumerate import candidates
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector
from tiny_groups import one_or_two_units, space_with_groups

READERS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("T[m] = X[m] * E[k]", "Z[m] = T[m] * E[k]"), ("m", "k")),  # a tile that no fused loop moves
    (("T[m] = exp(E[m])", "Z[m] = add(T[m], E[m])"), ("m",)),  # one that all fused loops move: a residual
    (("T[m,n] = A[m] * E[n]", "Z[m] = T[m,n] * E[n]"), ("m", "n")),  # latent attention: keys are values
    (("H[m,j] = X[m,k] * W[k,j]", "Y[m,i] = H[m,j] * W[j,i]"), ("m", "k")),  # two steps of a recurrent network
    (("S[m] = add(X[m], E[m])", "T[m] = exp(S[m])", "Z[m] = add(T[m], E[m])"), ("m",)),
    (("S[m] = X[m] * E[]", "T[m] = S[m] * E[]", "Z[m] = T[m] * E[]"), ("m",)),
    (("U[m] = exp(X[m])", "S[m] = exp(U[m])", "Z[m] = add(S[m], U[m])"), ("m",)),  # an intermediate
    (("R[m] = X[m] * E[]", "S[m] = R[m] * E[]", "T[m] = S[m] * E[]", "Z[m] = T[m] * E[]"), ("m",)),
)


def _workload(rng: Random) -> Workload:
    texts, ranks = rng.choice(READERS)
    sizes = {rank: rng.choice((2, 2, 3) if rank == "m" else (1, 2, 2, 3)) for rank in ranks}
    if len(texts) > 2:
        sizes["m"] = 2
    if "H[" in texts[0]:
        sizes = {"m": 2, **dict.fromkeys("kji", rng.choice((1, 2)))}
    einsums = [parse_einsum(text) for text in texts]
    bits = {tensor: rng.choice((1, 1, 2, 3)) for einsum in einsums for tensor in einsum.tensors}
    return build_workload("readers", einsums, sizes, bits={"default": 1, **bits}, repeat=rng.choice((1, 1, 1, 3)))


def _machine(rng: Random, workload: Workload) -> Machine:
    """DRAM, one or two more memories, which often hold only what several Einsums use, at times a fanout, and a unit."""
    bits = sum(t.size * t.bits for t in workload.tensors)
    several = " | ".join(t.name for t in workload.tensors if sum(t.name in e.tensors for e in workload.einsums) > 1)
    levels: list[Level] = [_memory(rng, "DRAM", None, "all")]
    kinds = rng.choice((["memory"],) * 4 + (["memory", "memory"], ["fanout", "memory"], ["memory", "fanout"]))
    for i, kind in enumerate(kinds):
        if kind == "memory":
            size = None if rng.random() < 0.1 else rng.randint(bits // 2, 3 * bits // 2)
            may = "all" if len(workload.einsums) == 2 and rng.random() < 0.5 else several
            levels.append(_memory(rng, f"M{i}", size, may))
        else:
            multicast = selector(rng.choice(("all", "nothing")))
            levels.append(Fanout(f"F{i}", (Axis(f"x{i}", 2, multicast=multicast, use=rng.choice(("any", "full"))),)))
    if rng.random() < 0.3:
        levels.append(ComputeUnit("SLOW", throughput=0.05, energy=1.0, kinds=("map",)))
    levels.append(ComputeUnit("MAC", throughput=float(rng.randint(1, 4)), energy=float(rng.randint(0, 2))))
    return Machine("readers", tuple(levels), partial_sums=rng.choice(("read-modify-write", "once")))


def _memory(rng: Random, name: str, size: int | None, may: str) -> Memory:
    inner = name != "DRAM"
    least = 0 if inner else 5
    return Memory(
        name,
        size=size,
        read_energy=float(least + rng.randint(0, 5)),
        write_energy=float(least + rng.randint(0, 5)),
        read_throughput=float(rng.randint(1, 4)),
        write_throughput=float(rng.randint(1, 4)),
        ports=rng.choice(("shared", "separate")),
        backs=selector(rng.choice(("all", "all", "all", "all", "nothing")) if inner else "all"),
        may=selector(may),
        leakage=rng.choice((0.0, 0.0, 1.0)),
        double_buffer=inner and rng.random() < 0.1,
    )


def sharing_problem(seed: int) -> Problem:
    """The problem of a seed, in the space with shared stores."""
    rng = Random(f"readers {seed}")
    workload = _workload(rng)
    machine = _machine(rng, workload)
    names = [memory.name for memory in machine.memories]
    goals = (Objective("energy"), Objective("latency"), Objective("edp"), Objective("traffic", rng.choice(names)))
    space = Mapspace(max_fused_loops=rng.choice((None, None, None, 1)), stores="shared")
    return Problem(workload, machine, space, rng.choice(goals))


def sharing_trees(problem: Problem, most: int = 400) -> Iterator[Mapping]:
    """Trees of the problem in which a store serves several Einsums; among the first candidates only."""
    workload, machine = problem.workload, problem.machine
    own = replace(problem.mapspace, stores="own")
    for tree in islice(candidates(workload, machine, stores="shared"), 50 * most):
        if problems(workload, machine, tree) or outside(workload, machine, problem.mapspace, tree):
            continue
        if outside(workload, machine, own, tree):
            yield tree


ORDERED: tuple[tuple[str, ...], ...] = (
    ("T[m] = X[m] * E[]", "Y[m] = exp(W[m])", "Z[m] = T[m] * E[]"),
    ("T[m] = exp(E[m])", "Y[m] = exp(W[m])", "Z[m] = add(T[m], E[m])"),
    ("T[m] = X[m] * E[k]", "Y[m] = Y0[m] * E[k]", "Z[m] = T[m] * E[k]"),
    ("T[m] = X[m] * E[k]", "U[m] = Y[m] * E[k]", "Z[m] = add(T[m], U[m])"),
    ("S[m] = X[m] * E[]", "T[m] = Y[m] * E[]", "Z[m] = add(S[m], T[m])"),
    ("U[m] = exp(E[m])", "V[m] = exp(E[m])", "Z[m] = add(U[m], V[m])"),
    ("T[m] = exp(X[m])", "U[m] = T[m] * E[]", "V[m] = T[m] * E[]"),
    ("P[m] = add(X[m], E[m])", "T[m] = exp(P[m])", "U[m] = add(P[m], E[m])"),
    ("T[m] = exp(X[m])", "U[m] = add(T[m], E[m])", "V[m] = T[m] * F[m]"),
    ("T[m] = X[m] * E[]", "U[m] = exp(T[m])", "Y[m] = exp(W[m])", "V[m] = U[m] * E[]"),
)


def ordered_problem(seed: int) -> Problem:
    """The problem of a seed with shared stores, whose Einsums may run in several orders. What several use must stay in
    a small buffer, and nothing else may, so that trees are few."""
    rng = Random(f"ordered readers {seed}")
    texts = rng.choice(ORDERED)
    sizes = {"m": rng.choice((2, 2, 3, 4))} | ({"k": rng.choice((1, 2))} if "k" in texts[0] else {})
    einsums = [parse_einsum(text) for text in texts]
    bits = {tensor: rng.choice((1, 1, 2)) for einsum in einsums for tensor in einsum.tensors}
    workload = build_workload("ordered", einsums, sizes, bits={"default": 1, **bits}, repeat=rng.choice((1, 1, 3)))
    several = [t.name for t in workload.tensors if sum(t.name in e.tensors for e in workload.einsums) > 1]
    room = sum(t.size * t.bits for t in workload.tensors if t.name in several)
    held = selector(" | ".join(several))
    buffer = replace(
        _memory(rng, "GLB", rng.choice((None, rng.randint(2, room + 1), rng.randint(2, room + 1))), "nothing"),
        may=held,
        must=held if rng.random() < 0.7 else selector("intermediate"),
        backs=selector("all"),
    )
    unit = ComputeUnit("MAC", throughput=float(rng.randint(1, 4)), energy=float(rng.randint(0, 2)))
    machine = Machine("ordered", (_memory(rng, "DRAM", None, "all"), buffer, unit))
    space = Mapspace(max_fused_loops=rng.choice((None, None, 1)), order="free", stores="shared")
    return Problem(workload, machine, space, Objective(rng.choice(("energy", "latency", "edp"))))


AT_ONCE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("T[m] = exp(E[m])", "Z[m] = add(T[m], E[m])"), ("m",)),  # a residual
    (("T[m] = X[m] * E[k]", "Z[m] = T[m] * E[k]"), ("m", "k")),
    (("T[m,n] = A[m] * E[n]", "Z[m] = T[m,n] * E[n]"), ("m", "n")),
    (("T[m,n] = exp(E[m])", "Z[m,n] = add(T[m,n], E[m])"), ("m", "n")),  # tokens of n in one tile of E
    (("S[m] = add(X[m], E[m])", "T[m] = exp(S[m])", "Z[m] = add(T[m], E[m])"), ("m",)),
    (("S[m] = X[m] * E[]", "T[m] = exp(S[m])", "Z[m] = T[m] * E[]"), ("m",)),
    (("T[m] = exp(E[m])", "Y[m] = add(T[m], E[m])", "Z[m] = Y[m] * E[m]"), ("m",)),
    (("U[m] = exp(X[m])", "S[m] = exp(U[m])", "Z[m] = add(S[m], U[m])"), ("m",)),  # an intermediate
)


def grouped_sharing_problem(seed: int) -> Problem:
    """The problem of a seed with shared stores, whose Einsums may run at the same time."""
    rng = Random(f"grouped readers {seed}")
    texts, ranks = rng.choice(AT_ONCE)
    sizes = {rank: rng.choice((2, 2, 3, 4) if rank == "m" and len(texts) == 2 else (2, 2, 3)) for rank in ranks}
    if len(ranks) > 1:
        sizes = {"m": 2, ranks[1]: rng.choice((1, 2, 2))}
    einsums = [parse_einsum(text) for text in texts]
    bits = {tensor: rng.choice((1, 1, 1, 2)) for einsum in einsums for tensor in einsum.tensors}
    workload = build_workload("grouped", einsums, sizes, bits={"default": 1, **bits}, repeat=rng.choice((1, 1, 3)))
    several = [t.name for t in workload.tensors if sum(t.name in e.tensors for e in workload.einsums) > 1]
    room = sum(t.size * t.bits for t in workload.tensors if t.name in several)
    held = selector(" | ".join(several))
    buffer = replace(
        _memory(rng, "GLB", rng.choice((None, *(rng.randint(2, room + 2) for _ in range(4)))), "nothing"),
        may=held,
        must=rng.choice((*(held,) * 7, selector("intermediate"))),
        backs=selector("all"),
        double_buffer=rng.random() < 0.15,
    )
    buffer = replace(buffer, read_throughput=4 * (buffer.read_throughput or 1.0), write_throughput=8.0)
    outside = selector("~intermediate" if "U[m]" not in texts[0] and rng.random() < 0.6 else "all")
    outer = replace(_memory(rng, "DRAM", None, "all"), must=selector("~intermediate"), may=outside)
    if rng.random() < 0.4:
        outer = replace(outer, read_throughput=2 * (outer.read_throughput or 1.0), write_throughput=8.0)
    spread = len(texts) == 2 and rng.random() < 0.2
    axis = Fanout("F", (Axis("x", 2, multicast=selector("all"), reduce=selector("all")),))
    units = one_or_two_units(rng, 0.9)
    machine = Machine("grouped", (outer, buffer, *((axis,) if spread else ()), *units))
    space = replace(space_with_groups(rng, spread), stores="shared")
    return Problem(workload, machine, space, Objective(rng.choice(("latency", "latency", "edp", "edp", "energy"))))

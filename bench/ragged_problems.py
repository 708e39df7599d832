"""Random cascades with odd sizes for the space `ragged`, most of them small enough to look at every tree.

Comes in: a seed. Goes out: a problem. Memories hold little, and mostly what they must, so that trees are few."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, islice
from random import Random
from re import findall
from typing import Literal

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory, Toll
from einloom.mapspace.ffm.enumerate import candidates
from einloom.mapspace.space import Concurrent, Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

CASCADES = (
    ("T[m] = exp(A[m])", "Z[m] = exp(T[m])"),
    ("T[m] = A[m,k] * B[k]", "Z[m] = exp(T[m])"),
    ("T[m,n] = A[m] * B[n]", "Z[m] = T[m,n] * C[n]"),
    ("T[m] = exp(A[m])", "Z[m,q] = T[m] * C[q]"),
    ("T[m] = A[m] * B[m]", "S[m] = exp(T[m])", "Z[m] = exp(S[m])"),
    ("T[m] = exp(A[m])", "S[m] = exp(T[m])", "Z[m] = add(S[m], T[m])"),
    ("I[m] = copy A[m]", "Z[m] = exp(I[m])"),
    ("T[h] = exp(A[h])", "Z[p] = T[p+r] * F[r]"),
)
WINDOWS = (
    ("Z[p] = A[p+r] * F[r]",),
    ("Z[p] = A[2*p+r] * F[r]",),
    ("Z[p] = A[p+2*r] * F[r]",),
    ("Z[p] = exp(A[2*p])",),
    ("Z[r] = A[p+r] * F[p]",),
    ("Z[p,q] = A[p+r] * F[r,q]",),
    ("Z[p,x] = A[p+r,x+s] * F[r,s]",),
    ("T[h] = exp(A[h])", "Z[p] = T[p+r] * F[r]"),
    ("T[h,q] = exp(A[h,q])", "Z[p,q] = T[p+r,q] * F[r]"),
    ("T[h] = A[h+u] * G[u]", "Z[p] = T[p+r] * F[r]"),
    ("T[p] = A[p+r] * F[r]", "Z[p] = exp(T[p])"),
)
GROUPED = (
    ("T[m] = exp(A[m])", "Z[m] = T[m] * B[m]"),
    ("T[m] = A[m,k] * B[m,k]", "Z[m] = exp(T[m])"),
    ("T[m] = A[m,k] * B[k]", "Z[m] = exp(T[m])"),
    ("T[m] = exp(A[m])", "Z[m,q] = T[m] * C[q]"),
    ("T[m,n] = A[m] * B[n]", "Z[m,n] = exp(T[m,n])"),
    ("T[m] = exp(A[m])", "S[m] = T[m] * B[m]", "Z[m] = exp(S[m])"),
    ("T[m] = exp(A[m])", "S[m] = T[m] * B[m]", "Z[m] = add(S[m], T[m])"),
    ("T[m] = exp(A[m])", "S[m] = T[m] * B[m]", "Z[m] = T[m] * C[m]"),
    ("T[m] = A[m] * B[m]", "I[m] = copy T[m]", "Z[m] = exp(I[m])"),
    ("R[m] = exp(A[m])", "S[m] = R[m] * B[m]", "T[m] = exp(S[m])", "Z[m] = T[m] * C[m]"),
)
READERS = (
    ("T[m] = X[m] * E[k]", "Z[m] = T[m] * E[k]"),
    ("T[m] = exp(E[m])", "Z[m] = add(T[m], E[m])"),
    ("T[m,n] = A[m] * E[n]", "Z[m] = T[m,n] * E[n]"),
    ("T[m,q] = A[m,q] * E[q]", "Z[m,q] = T[m,q] * E[q]"),
    ("S[m] = add(X[m], E[m])", "T[m] = exp(S[m])", "Z[m] = add(T[m], E[m])"),
    ("S[m] = X[m] * E[]", "T[m] = S[m] * E[]", "Z[m] = T[m] * E[]"),
    ("U[m] = exp(X[m])", "S[m] = exp(U[m])", "Z[m] = add(S[m], U[m])"),
)
GOALS = ("energy", "latency", "latency", "edp", "edp", "edp")


def _workload(rng: Random) -> Workload:
    texts = rng.choice(CASCADES)
    sizes = {"m": rng.choice((3, 5, 5, 5, 7, 7)), "r": 2, "p": rng.choice((2, 3))}
    sizes |= {rank: rng.choice((1, 1, 2)) for rank in "knq"}
    sizes["h"] = sizes["p"] + sizes["r"] - 1
    inside = {letter for text in texts for index in findall(r"\[([^]]*)\]", text) for letter in index}
    ranks = {rank: sizes[rank] for rank in sorted(inside & sizes.keys())}
    return build_workload("uneven", texts, ranks, bits=rng.choice((1, 1, 2)))


def _windows(rng: Random) -> Workload:
    texts = rng.choice(WINDOWS)
    sizes = {"p": rng.choice((3, 5, 5, 5, 7)), "r": rng.choice((1, 2, 2, 3)), "x": rng.choice((1, 2, 3))}
    sizes |= {rank: rng.choice((1, 2)) for rank in "uqs"}
    sizes["h"] = sizes["p"] + sizes["r"] - 1
    inside = {letter for text in texts for index in findall(r"\[([^]]*)\]", text) for letter in findall("[a-z]", index)}
    ranks = {rank: sizes[rank] for rank in sorted(inside & sizes.keys())}
    return build_workload("windows", texts, ranks, bits=rng.choice((1, 1, 2)))


def _memory(rng: Random, name: str, workload: Workload, most: int, backs: str) -> Memory:
    tensors = [tensor.name for tensor in workload.tensors]
    held = rng.sample(tensors, rng.choice((1, 1, 2)))
    if name == "GLB":
        held = [*dict.fromkeys((*workload.intermediates[:1], *held[:1]))]
    speed = rng.choice((None, None, 4.0, 16.0))
    return Memory(
        name,
        rng.randint(2, max(2, most // 2)),
        float(rng.randint(0, 4)),
        float(rng.randint(0, 4)),
        1,
        speed,
        speed,
        must=selector(" | ".join(held[: rng.choice((1, 3, 3, 3, 3))]) or "nothing"),
        may=selector(" | ".join(held)),
        backs=selector(backs),
    )


def _fanout(rng: Random, name: str) -> Fanout:
    joins = rng.choice((("all", "all"), ("nothing", "nothing"), ("all", "nothing")))
    use: Literal["any", "full"] = rng.choice(("any", "full"))
    return Fanout(name, (Axis(f"{name}x", rng.choice((2, 3, 4)), selector(joins[0]), selector(joins[1]), use=use),))


def _machine(rng: Random, workload: Workload) -> Machine:
    most = max(3, sum(tensor.size * tensor.bits for tensor in workload.tensors) // 2)
    speed = rng.choice((2.0, 16.0, 64.0))
    levels: list[Level] = [Memory("DRAM", None, 10.0, 10.0, 1, speed, speed)]
    if rng.random() < 0.08:
        levels.append(_fanout(rng, "F0"))
    levels.append(_memory(rng, "GLB", workload, most, rng.choice(("all", "all", "intermediate"))))
    if rng.random() < 0.3:
        levels.append(ComputeUnit("VEC", float(rng.randint(1, 3)), 1.0, kinds=("map",)))
    if rng.random() < 0.8:
        levels.append(_fanout(rng, "F1"))
    if rng.random() < 0.3:
        levels.append(_memory(rng, "LB", workload, max(3, most // 2), rng.choice(("nothing", "nothing", "all"))))
    levels.append(ComputeUnit("MAC", float(rng.randint(1, 2)), 0.5))
    return Machine("tiny", tuple(levels))


class _TooManyError(Exception):
    """More trees than shall be looked at."""


def few(problem: Problem, most: int) -> bool:
    """True if there are at most so many candidate trees, and not many more nests on the way to them."""
    asked = count()

    def checkpoint() -> None:
        if next(asked) > 2 * most:
            raise _TooManyError

    trees = candidates(problem.workload, problem.machine, "ragged", checkpoint, problem.mapspace.stores)
    try:
        return len(list(islice(trees, most + 1))) <= most
    except _TooManyError:
        return False


def _holding(rng: Random, name: str, workload: Workload, most: int) -> Memory:
    """A memory that mostly must hold what it may."""
    tensors = [tensor.name for tensor in workload.tensors]
    held = tensors if rng.random() < 0.75 else rng.sample(tensors, rng.randint(1, len(tensors)))
    return replace(
        _memory(rng, name, workload, most, rng.choice(("nothing", "intermediate", "all"))),
        size=rng.randint(max(2, most // 3), max(3, most)),
        must=selector(" | ".join(held) if rng.random() < 0.85 else "nothing"),
        may=selector(" | ".join(held)),
    )


def window_problem(seed: int) -> Problem:
    """The problem with windows of a seed, of any size: an axis or two, further out or in than the buffer."""
    rng = Random(f"windows {seed}")
    workload, speed = _windows(rng), rng.choice((2.0, 16.0, 64.0))
    most = sum(tensor.size * tensor.bits for tensor in workload.tensors)
    levels: list[Level] = [Memory("DRAM", None, 10.0, 10.0, 1, speed, speed)]
    outer = rng.random()
    levels += [_fanout(rng, "F0")] * (outer < 0.35)
    levels.append(_holding(rng, "GLB", workload, most))
    levels += [_fanout(rng, "F1")] * (outer > 0.3)
    if rng.random() < 0.35:
        levels.append(_holding(rng, "LB", workload, most // 2))
    levels.append(ComputeUnit("MAC", 1.0, rng.choice((0.5, 2.0))))
    space = Mapspace("ragged", rng.choice((None, None, 1)))
    return Problem(workload, Machine("tiny", tuple(levels)), space, Objective(rng.choice(GOALS)))


def _room(rng: Random, name: str, most: int, must: str) -> Memory:
    """A memory of groups, which holds little but what it must."""
    speeds = rng.choice(((64.0, 64.0), (64.0, 64.0), (16.0, 32.0), (8.0, 8.0)))
    return Memory(
        name,
        None if rng.random() < 0.4 else rng.randint(2, most),
        float(rng.randint(0, 3)),
        float(rng.randint(0, 3)),
        1,
        *speeds,
        ports=rng.choice(("shared", "separate")),
        must=selector(must),
        may=selector(rng.choice(("nothing", "nothing", "intermediate"))),
        leakage=rng.choice((0.0, 0.0, 0.0, 1.0)),
        double_buffer=rng.random() < 0.2,
    )


def _grouping_machine(rng: Random, most: int) -> Machine:
    """A buffer for what is handed on, lanes behind it, and units for maps and for products."""
    joins = rng.choice((("all", "all"), ("nothing", "nothing"), ("all", "nothing")))
    use: Literal["any", "full"] = rng.choice(("any", "any", "full"))
    lanes = Axis("x", rng.choice((2, 2, 3, 3, 4, 6)), selector(joins[0]), selector(joins[1]), use=use)
    speed = rng.choice((32.0, 64.0, 64.0))
    must = rng.choice(("intermediate", "intermediate", "intermediate | output", "intermediate | weight", "all"))
    levels: list[Level] = [Memory("DRAM", None, 5.0, 5.0, 1, speed, speed, must=selector("~intermediate"))]
    levels.append(_room(rng, "GLB", most, must))
    if rng.random() < 0.1:
        levels.append(Toll("way", float(rng.randint(0, 2)), throughput=16.0))
    if rng.random() < 0.85:
        levels.append(Fanout("F", (lanes,)))
    if rng.random() < 0.1:
        levels.append(_room(rng, "LB", most, rng.choice(("output", "all"))))
    if rng.random() < 0.75:
        levels.append(ComputeUnit("VEC", rng.choice((0.5, 1.0, 1.0)), 1.0, kinds=("map",)))
    levels.append(ComputeUnit("MAC", rng.choice((0.5, 1.0, 1.0)), float(rng.randint(0, 2))))
    return Machine("grouping", tuple(levels))


def grouped_problem(seed: int) -> Problem:
    """The problem of a seed whose Einsums may run at the same time, of any size: most have few trees."""
    rng = Random(f"groups {seed}")
    texts = rng.choice(GROUPED)
    sizes = {"m": rng.choice((3, 5, 5, 7))} | {rank: rng.choice((1, 1, 2)) for rank in "knq"}
    ranks = {
        rank: size for rank, size in sizes.items() if any(rank in word for word in findall(r"\[([^]]*)\]", str(texts)))
    }
    workload = build_workload("grouped", texts, ranks, bits=rng.choice((1, 1, 2)), repeat=rng.choice((1, 1, 3)))
    most = max(4, sum(tensor.size * tensor.bits for tensor in workload.tensors))
    places: Concurrent = rng.choice(("unit", "unit", "any", "any", "shared", "axis", "everywhere"))
    space = Mapspace("ragged", rng.choice((None, None, None, 1)), concurrent=places, max_group=rng.choice((2, 3, 4)))
    goal = rng.choice((*GOALS, "latency", "latency", "energy", "traffic"))
    objective = Objective(goal, memory="GLB") if goal == "traffic" else Objective(goal)
    return Problem(workload, _grouping_machine(rng, most), space, objective)


def shared_problem(seed: int) -> Problem:
    """The problem of a seed in which a store may serve several Einsums that read its tensor, of any size."""
    rng = Random(f"readers {seed}")
    texts, size = rng.choice(READERS), rng.choice((3, 5, 5, 7))
    every = {"m": size, **{rank: rng.choice((1, 1, 2)) for rank in "knq"}}
    ranks = {rank: n for rank, n in every.items() if any(rank in word for word in findall(r"\[([^]]*)\]", str(texts)))}
    workload = build_workload("readers", texts, ranks, bits=rng.choice((1, 1, 2)), repeat=rng.choice((1, 1, 3)))
    several = [t.name for t in workload.tensors if sum(t.name in e.tensors for e in workload.einsums) > 1]
    most = max(4, sum(tensor.size * tensor.bits for tensor in workload.tensors) * 2 // 3)
    speed = rng.choice((2.0, 4.0, 16.0))
    buffer = replace(
        _memory(rng, "GLB", workload, most, rng.choice(("all", "all", "intermediate"))),
        may=selector(" | ".join(several)),
        must=selector(" | ".join(several) if rng.random() < 0.85 else "intermediate"),
        double_buffer=rng.random() < 0.1,
    )
    levels: list[Level] = [Memory("DRAM", None, 10.0, 10.0, 1, speed, speed)]
    outer = rng.random()
    levels += [_fanout(rng, "F0")] * (outer < 0.1)
    levels.append(buffer)
    levels += [_fanout(rng, "F1")] * (outer > 0.4)
    levels.append(ComputeUnit("MAC", rng.choice((0.5, 1.0, 4.0)), float(rng.randint(0, 2))))
    space = Mapspace("ragged", rng.choice((None, None, None, 1)), stores="shared")
    return Problem(workload, Machine("readers", tuple(levels)), space, Objective(rng.choice(GOALS)))


def ragged_problem(seed: int) -> Problem:
    """The problem of a seed, of any size."""
    rng = Random(f"ragged {seed}")
    workload = _workload(rng)
    machine, fused = _machine(rng, workload), rng.choice((None, None, None, 1))
    return Problem(workload, machine, Mapspace("ragged", fused), Objective(rng.choice(GOALS)))

"""Random problems whose groups may share out an axis, small enough to look at every tree."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory, Toll
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector

CHAINS: tuple[tuple[tuple[str, ...], dict[str, tuple[int, ...]]], ...] = (
    (("T[m] = exp(X[m])", "Z[m] = exp(T[m])"), {"m": (3, 4, 5, 7)}),
    (("T[m] = A[m,k] * B[m,k]", "Z[m] = exp(T[m])"), {"m": (3, 5), "k": (2, 3)}),
    (("T[m] = A[m,k] * W[k]", "Z[m] = exp(T[m])"), {"m": (3, 5), "k": (2,)}),
    (("T[m] = exp(A[m])", "Z[m] = T[m] * W[m,k]"), {"m": (3, 5), "k": (2,)}),
    (("T[m] = A[m] * W[m]", "Z[m] = T[m] * V[m]"), {"m": (3, 4, 5)}),
    (("T[b,m] = A[b,m] * W[b]", "Z[b] = T[b,m] * V[m]"), {"b": (3,), "m": (2,)}),
    (("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = exp(T[m])"), {"m": (3, 5, 5)}),
    (("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = add(S[m], T[m])"), {"m": (3, 5)}),
    (("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = exp(S[m])"), {"m": (3, 5)}),
    (("S[m] = exp(X[m])", "T[m] = S[m] * W[m]", "Z[m] = exp(T[m])"), {"m": (3, 5)}),
    (("R[m] = exp(X[m])", "S[m] = exp(R[m])", "T[m] = exp(S[m])", "Z[m] = exp(T[m])"), {"m": (3, 5)}),
    (("R[m] = exp(X[m])", "S[m] = exp(R[m])", "T[m] = exp(R[m])", "Z[m] = add(S[m], T[m])"), {"m": (3, 5)}),
)

CORED = 1_000_000


def _memory(rng: Random, name: str, most: int, must: str | None = None) -> Memory:
    return Memory(
        name,
        size=None if rng.random() < 0.4 else rng.randint(2, most),
        read_energy=float(rng.randint(0, 5)),
        write_energy=float(rng.randint(0, 5)),
        read_throughput=float(rng.randint(4, 40)),
        write_throughput=float(rng.randint(4, 40)),
        ports=rng.choice(("shared", "separate")),
        must=selector(must or rng.choice(("all", "all", "intermediate", "output"))),
        may=selector(rng.choice(("nothing", "nothing", "nothing", "intermediate"))),
        leakage=rng.choice((0.0, 0.0, 0.0, 1.0)),
        double_buffer=rng.random() < 0.2,
    )


def _axis(rng: Random, name: str) -> Axis:
    joins = [selector(rng.choice(("all", "nothing", "input"))) for _ in range(2)]
    return Axis(
        name,
        rng.choice((2, 2, 3, 4, 4, 4, 6, 8)),
        multicast=joins[0],
        reduce=joins[1],
        use=rng.choice(("any", "any", "full")),
    )


def share_machine(rng: Random, most_bits: int, levels_more: bool) -> Machine:
    """DRAM, a buffer, an axis or two, perhaps registers behind them, and one to three units."""
    outer = Memory(
        "DRAM",
        None,
        read_energy=float(rng.randint(5, 20)),
        write_energy=float(rng.randint(5, 20)),
        read_throughput=float(rng.randint(4, 40)),
        write_throughput=float(rng.randint(4, 40)),
        must=selector("~intermediate"),
    )
    levels: list[Level] = [outer, _memory(rng, "GLB", most_bits)]
    axes = (_axis(rng, "x"), *((_axis(rng, "y"),) if levels_more and rng.random() < 0.1 else ()))
    if levels_more and rng.random() < 0.1:
        levels.append(ComputeUnit("U", throughput=float(rng.randint(1, 4)), energy=1.0, kinds=("map",)))
    if rng.random() < 0.1:
        levels.append(Toll("before", energy=float(rng.randint(0, 3)), throughput=float(rng.randint(2, 20))))
    levels.append(Fanout("F", axes))
    if rng.random() < 0.1:
        levels.append(Toll("behind", energy=float(rng.randint(0, 3)), throughput=float(rng.randint(1, 10))))
    if levels_more and rng.random() < 0.3:
        levels.append(_memory(rng, "LB", max(2, most_bits // 2), rng.choice(("input", "output", "all"))))
    rates = (0.25, 0.5, 0.5, 1.0)
    if rng.random() < 0.2:
        levels.append(ComputeUnit("V", throughput=rng.choice(rates), energy=1.0, kinds=("map",)))
    levels.append(ComputeUnit("MAC", throughput=rng.choice(rates), energy=float(rng.randint(0, 2))))
    return Machine("shared out", tuple(levels))


def cored(machine: Machine, rng: Random) -> Machine:
    """The machine with two cores (or three), each with a buffer of its own."""
    use = rng.choice(("any", "any", "full"))
    joins = [selector(rng.choice(("all", "nothing"))) for _ in range(2)]
    axis = Axis("core", rng.choice((2, 2, 3)), multicast=joins[0], reduce=joins[1], use=use)
    return replace(machine, levels=(machine.levels[0], Fanout("cores", (axis,)), *machine.levels[1:]))


def share_problem(seed: int) -> Problem:
    """The problem of a seed; from `CORED` on the buffer is one of several."""
    rng = Random(seed)
    texts, ranks = rng.choice(CHAINS)
    sizes = {rank: rng.choice(options) for rank, options in ranks.items()}
    einsums = [parse_einsum(text) for text in texts]
    bits = {tensor: rng.choice((1, 1, 2, 3)) for einsum in einsums for tensor in einsum.tensors}
    workload = build_workload("shared out", einsums, sizes, bits={"default": 1, **bits}, repeat=rng.choice((1, 1, 3)))
    room = sum(t.size * t.bits for t in workload.tensors)
    machine = share_machine(rng, room + 2, len(texts) == 2)
    machine = cored(machine, Random(f"cores {seed}")) if seed >= CORED else machine
    name = rng.choice(("latency",) * 5 + ("edp",) * 3 + ("energy", "traffic"))
    goal = Objective(name, memory="GLB") if name == "traffic" else Objective(name)
    space = Mapspace(concurrent=rng.choice(("axis", "axis", "everywhere")), max_group=rng.choice((2, 3, 4, 4)))
    return Problem(workload, machine, space, goal)

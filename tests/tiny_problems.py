"""Random problems that are small enough to look at every tree: workloads, machines, mapspaces and objectives by
seed."""

from __future__ import annotations

from random import Random

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector

CASCADES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("Z[m,n] = A[m,k] * B[k,n]",), ("m", "n", "k")),
    (("Z[b,m] = A[b,m] * B[m]",), ("b", "m")),
    (("Z[m] = A[m,k] * B[m,k]",), ("m", "k")),
    (("Z[m,n] = add(A[m,n], B[n,m])",), ("m", "n")),
    (("O[p] = I[p+r] * F[r]",), ("p", "r")),
    (("O[p,c] = I[2*p+r] * F[r,c]",), ("p", "r", "c")),
    (("I[m] = copy X[m]", "Z[m] = exp(I[m])"), ("m",)),
    (("T[m,n] = A[m,k] * B[k,n]", "Z[m,n] = exp(T[m,n])"), ("m", "n", "k")),
    (("T[m,n] = A[m] * B[n]", "Z[m,q] = T[m,n] * C[n,q]"), ("m", "n", "q")),
    (("S[m] = exp(X[m])", "T[m] = exp(S[m])", "Z[m] = add(S[m], T[m])"), ("m",)),
    (("T[h] = exp(X[h])", "O[p] = T[p+r] * F[r]"), ("h", "p", "r")),
)


def _sizes(rng: Random, ranks: tuple[str, ...], room: int) -> dict[str, int]:
    sizes = {}
    for rank in rng.sample(ranks, len(ranks)):
        options = [n for n in (1, 2, 2, 3, 4) if n <= room]
        sizes[rank] = rng.choice(options)
        room //= sizes[rank]
    return {rank: sizes[rank] for rank in ranks}


def tiny_workload(rng: Random) -> Workload:
    texts, ranks = rng.choice(CASCADES)
    sizes = _sizes(rng, ranks, 8 if len(texts) == 1 else 4)
    if "h" in sizes:
        sizes["h"] = sizes["p"] + sizes["r"] - 1
    einsums = [parse_einsum(text) for text in texts]
    bits = {"default": 1}
    for einsum in einsums:
        for tensor in einsum.tensors:
            bits[tensor] = rng.choice((1, 1, 2, 3))
    default = bits.pop("default")
    return build_workload("tiny", einsums, sizes, bits={"default": default, **bits}, repeat=rng.choice((1, 1, 1, 3)))


def _memory(rng: Random, name: str, most: int) -> Memory:
    size = None if rng.random() < 0.15 else rng.randint(1, most)
    throughput = rng.random() < 0.6
    return Memory(
        name,
        size=size,
        read_energy=float(rng.randint(0, 5)),
        write_energy=float(rng.randint(0, 5)),
        read_throughput=float(rng.randint(1, 8)) if throughput else None,
        write_throughput=float(rng.randint(1, 8)) if throughput else None,
        ports=rng.choice(("shared", "separate")),
        must=selector(rng.choice(("nothing",) * 6 + ("weight", "output", "input", "unheld"))),
        may=selector(rng.choice(("all",) * 4 + ("~weight", "output | input", "nothing"))),
        backs=selector(rng.choice(("all", "all", "nothing"))),
        leakage=rng.choice((0.0, 0.0, 0.0, 1.0)),
        double_buffer=rng.random() < 0.1,
    )


def tiny_machine(rng: Random, most_bits: int) -> Machine:
    """DRAM, one to three more memories (fewer on average), up to two fanouts, one or two units."""
    outer = Memory(
        "DRAM",
        size=None if rng.random() < 0.85 else rng.randint(most_bits // 2, 2 * most_bits),
        read_energy=float(rng.randint(5, 20)),
        write_energy=float(rng.randint(5, 20)),
        read_throughput=float(rng.randint(1, 4)),
        write_throughput=float(rng.randint(1, 4)),
        must=selector(rng.choice(("nothing", "~intermediate"))),
    )
    levels: list[Level] = [outer]
    memories = rng.choice((1, 1, 1, 2, 2, 3))
    fanouts = rng.choice((0, 0, 1, 1, 2))
    kinds = rng.sample(["memory"] * memories + ["fanout"] * fanouts, memories + fanouts)
    for i, kind in enumerate(kinds):
        if kind == "memory":
            levels.append(_memory(rng, f"M{i}", most_bits))
        else:
            axes = tuple(
                Axis(
                    f"x{i}{j}",
                    rng.choice((2, 2, 3)),
                    multicast=selector(rng.choice(("all", "nothing", "input"))),
                    reduce=selector(rng.choice(("all", "nothing"))),
                    only_irrelevant_to=selector(rng.choice(("nothing", "nothing", "weight", "output"))),
                    use=rng.choice(("any", "any", "full")),
                )
                for j in range(rng.choice((1, 1, 2)))
            )
            levels.append(Fanout(f"F{i}", axes))
        if kind == "memory" and rng.random() < 0.1:
            levels.append(ComputeUnit(f"V{i}", throughput=float(rng.randint(1, 4)), energy=1.0, kinds=("map",)))
    levels.append(ComputeUnit("MAC", throughput=float(rng.randint(1, 4)), energy=float(rng.randint(0, 2))))
    return Machine("tiny", tuple(levels), partial_sums=rng.choice(("read-modify-write",) * 3 + ("once",)))


def tiny_problem(seed: int) -> Problem:
    """The problem of a seed."""
    rng = Random(seed)
    workload = tiny_workload(rng)
    bits = sum(t.size * t.bits for t in workload.tensors)
    machine = tiny_machine(rng, bits)
    names = [memory.name for memory in machine.memories]
    objective = rng.choice(
        (Objective("energy"), Objective("latency"), Objective("edp"), Objective("traffic", rng.choice(names)))
    )
    return Problem(workload, machine, Mapspace("ffm", rng.choice((None, None, 0, 1))), objective)

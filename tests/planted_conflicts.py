"""Problems without a mapping whose cause was planted, with what is to blame and what must be offered as help."""

from __future__ import annotations

from dataclasses import dataclass

from einloom.machine.files import parse_machine
from einloom.mapspace.files import parse_mapspace
from einloom.problem import Problem, objective
from einloom.workload.files import parse_workload

MATMUL = "Z[m,n] = A[m,k] * B[k,n]"
CHAIN = "[T[m,n] = A[m,k] * B[k,n], Z[m,q] = T[m,n] * C[n,q]]"


def workload(einsums: str, **ranks: int) -> str:
    sizes = ", ".join(f"{name}: {size}" for name, size in ranks.items())
    cascade = einsums if einsums.startswith("[") else f"[{einsums}]"
    cascade = cascade.replace("[T[", "['T[").replace(", Z[", "', 'Z[").replace("[Z[", "['Z[")[:-1] + "']"
    return f"schema: workload/1\nname: small\nbits: 8\nranks: {{{sizes}}}\neinsums: {cascade}\n"


def machine(*levels: str) -> str:
    return "schema: machine/1\nname: planted\nlevels:\n" + "".join(f"  - {{{level}}}\n" for level in levels)


DRAM = "memory: DRAM, read_energy: 1, write_energy: 1"
MAC = "compute: MAC, throughput: 1, energy: 1"
SQUARE = workload(MATMUL, m=4, n=4, k=4)
TWO = workload(CHAIN, m=8, n=8, k=8, q=8)


@dataclass(frozen=True)
class Planted:
    """A problem, (place, part of what is said there) of every constraint to blame, and relaxations that must be among
    those offered, as (place, after)."""

    name: str
    workload: str
    machine: str
    blamed: tuple[tuple[str, str], ...]
    helps: tuple[tuple[str, str], ...]
    mapspace: str = ""

    def problem(self) -> Problem:
        cascade, hardware = parse_workload(self.workload), parse_machine(self.machine)
        space = parse_mapspace(f"schema: mapspace/1\n{self.mapspace}", hardware)
        return Problem(cascade, hardware, space, objective("energy", hardware))


CASES = (
    Planted(
        "a buffer too small for what it must hold",
        SQUARE,
        machine(DRAM, "memory: GLB, size: 20 bit, must: all", MAC),
        (("GLB.size", "20 bit"), ("GLB.must", "all")),
        (("GLB.size", "24 bit"), ("GLB.must", "all & ~A"), ("GLB.must", "all & ~Z")),
    ),
    Planted(
        "keep against bypass",
        SQUARE,
        machine(DRAM, "memory: GLB", MAC),
        (("mapspace", "GLB keeps A | B"), ("mapspace", "GLB is bypassed by A | Z")),
        (("mapspace", "GLB keeps (A | B) & ~A"), ("mapspace", "GLB is bypassed by (A | Z) & ~A")),
        "memories: {GLB: {keep: A | B, bypass: A | Z}}",
    ),
    Planted(
        "bypass of the only home",
        TWO,
        machine(DRAM + ", may: ~intermediate", "memory: GLB", MAC),
        (("DRAM.may", "~intermediate"), ("mapspace", "GLB is bypassed by T")),
        (("DRAM.may", "all"), ("mapspace", "given up")),
        "memories: {GLB: {bypass: T}}",
    ),
    Planted(
        "a forced fusion that does not fit",
        TWO,
        machine(DRAM, "memory: GLB, size: 7 bit", MAC),
        (("mapspace", "T backed in GLB"), ("GLB.size", "7 bit")),
        (("mapspace", "given up"), ("GLB.size", "8 bit")),
        "fusion: {fused: T}",
    ),
    Planted(
        "a limit of loops against a limit of tiles",
        TWO,
        machine(DRAM, "memory: GLB, size: 1 KiB", MAC),
        (("mapspace", "T backed in GLB"), ("mapspace", "fused loops"), ("mapspace", "tiles of T in GLB: m 4")),
        (
            ("mapspace", "given up"),
            ("mapspace", "fused loops of T over m: 2 or 4 trips"),
            ("mapspace", "tiles of T in GLB: m 2 or 4"),
        ),
        "fusion: {fused: T}\nloops: [{tensors: T, variables: [m], trips: 4}]\n"
        "tiles: [{memory: GLB, tensors: T, variables: [m], sizes: 4}]",
    ),
    Planted(
        "no fused loops, a small buffer and a forced fusion",
        TWO,
        machine(DRAM, "memory: GLB, size: 100 bit", MAC),
        (("mapspace", "T backed in GLB"), ("max_fused_loops", "0"), ("GLB.size", "100 bit")),
        (("mapspace", "given up"), ("max_fused_loops", "1"), ("GLB.size", "512 bit")),
        "max_fused_loops: 0\nfusion: {fused: T}",
    ),
    Planted(
        "instances that do not divide",
        SQUARE,
        machine(DRAM, "memory: GLB", "fanout: F, axes: [{axis: x, size: 4}]", MAC),
        (("mapspace", "axis x: m: 3 instances"),),
        (("mapspace", "axis x: m: 3 or 4 instances"),),
        "axes: [{axis: x, variables: [m], instances: 3}]",
    ),
    Planted(
        "full use of an axis with a limit of it",
        SQUARE,
        machine(DRAM, "memory: GLB, size: 64 bit, must: all", "fanout: F, axes: [{axis: x, size: 4, use: full}]", MAC),
        (("x.use", "full"), ("mapspace", "axis x: m, n, k: 1 or 4"), ("GLB.size", "64 bit"), ("GLB.must", "all")),
        (("x.use", "any"), ("mapspace", "axis x: m, n, k: 1 or 2 or 4 instances"), ("GLB.size", "72 bit")),
        "axes: [{axis: x, variables: [m, n, k], instances: [1, 4]}]",
    ),
    Planted(
        "two limits that only together are more than the capacity",
        SQUARE,
        machine(DRAM, "memory: GLB, size: 12 bit", MAC),
        (("mapspace", "GLB keeps A"), ("mapspace", "GLB keeps B"), ("GLB.size", "12 bit")),
        (("GLB.size", "16 bit"),),
        "memories: {GLB: [{keep: A}, {keep: B}]}",
    ),
    Planted(
        "a kind that no unit executes",
        SQUARE,
        machine(DRAM, "memory: GLB, size: 100 bit", "compute: VEC, throughput: 1, kinds: [map]"),
        (("VEC.kinds", "map"),),
        (("VEC.kinds", "map, multiply"),),
    ),
    Planted(
        "more operands than any unit takes",
        SQUARE,
        machine(DRAM, "memory: GLB, size: 100 bit", "compute: VEC, throughput: 1, operands: [1]"),
        (("VEC.operands", "1"),),
        (("VEC.operands", "any"),),
    ),
    Planted(
        "an axis that may not take what it is asked to take",
        workload(MATMUL, m=4, n=3, k=4),
        machine(DRAM, "memory: GLB", "fanout: F, axes: [{axis: x, size: 4, only_irrelevant_to: A}]", MAC),
        (("x.only_irrelevant_to", "A"), ("mapspace", "axis x: 4 instances")),
        (("x.only_irrelevant_to", "nothing"), ("mapspace", "axis x: 3 or 4 instances")),
        "axes: [{axis: x, instances: 4}]",
    ),
    Planted(
        "a forced fusion where nothing may be backed",
        TWO,
        machine(DRAM, "memory: GLB, size: 1 KiB, backs: ~intermediate", MAC),
        (("GLB.backs", "~intermediate"), ("mapspace", "T backed in GLB")),
        (("GLB.backs", "all"), ("mapspace", "given up")),
        "fusion: {fused: T}",
    ),
)

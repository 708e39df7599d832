"""Short spellings for hand-made workloads, machines and trees; used by the tests that check single numbers."""

from __future__ import annotations

import re

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.tree import Compute, Loop, Mapping, Node, Split, Store
from einloom.workload.einsum import Access, Einsum, Index, Tensor, Workload
from einloom.workload.selectors import selector

FIVE_STEP_ATTENTION = (
    "A[h,m,l] = Q[h,m,k] * K[h,k,l]",
    "B[h,m] = max[l] A[h,m,l]",
    "C[h,m,l] = sub(A[h,m,l], B[h,m])",
    "D[h,m,l] = exp(C[h,m,l])",
    "E[h,m] = D[h,m,l]",
    "F[h,m,l] = div(D[h,m,l], E[h,m])",
    "G[h,m,n] = F[h,m,l] * V[h,l,n]",
)
"""Attention with its softmax in five Einsums."""


def index(text: str) -> Index:
    """An index expression such as ``2*p+r-1``."""
    terms: list[tuple[str, int]] = []
    constant = 0
    for part in re.findall(r"[+-]?[^+-]+", text):
        match = re.fullmatch(r"\+?(?:(\d+)\*)?([a-z]\w*)", part)
        if match:
            terms.append((match.group(2), int(match.group(1) or 1)))
        else:
            constant += int(part)
    return Index(tuple(terms), constant)


def access(text: str) -> Access:
    """An access such as ``I[p+r,c]``."""
    match = re.fullmatch(r"(\w+)\[(.*)\]", text.strip())
    assert match
    return Access(match.group(1), tuple(index(part) for part in match.group(2).split(",") if part))


def cascade(
    text: str,
    sizes: dict[str, int],
    *,
    bits: int = 1,
    shapes: dict[str, tuple[int, ...]] | None = None,
    outputs: tuple[str, ...] | None = None,
    persistent: tuple[str, ...] = (),
    repeat: int = 1,
) -> Workload:
    """A cascade, one Einsum per line: ``E0: Z[m,n] = A[m,k] * B[k,n]``, ``C: I[m] = copy(J[m])``, ``S: … = exp(X[m])``.

    ``max`` behind the equals sign (``= max:``) makes the reduction a maximum. A tensor's shape is what its largest
    access reaches, unless `shapes` says otherwise.
    """
    einsums = []
    for line in text.strip().splitlines():
        name, rest = line.split(":", 1)
        left, right = rest.split("=", 1)
        reduction = "sum"
        if right.strip().startswith("max:"):
            reduction, right = "max", right.strip()[4:]
        call = re.fullmatch(r"\s*(\w+)\((.*)\)\s*", right)
        operands = tuple(access(part) for part in re.findall(r"\w+\[[^\]]*\]", right))
        kind = "multiply" if call is None else "copy" if call.group(1) == "copy" else "map"
        function = call.group(1) if call is not None and kind == "map" else None
        einsums.append(Einsum(name.strip(), access(left), operands, kind, function, reduction))  # type: ignore[arg-type]
    found: dict[str, tuple[int, ...]] = {}
    for einsum in einsums:
        for one in (*einsum.inputs, einsum.output):
            reach = tuple(i.extent(sizes) + i.constant for i in one.indices)
            found[one.tensor] = tuple(map(max, zip(found.get(one.tensor, reach), reach, strict=True)))
    found.update(shapes or {})
    written = {einsum.output.tensor for einsum in einsums}
    read = {one.tensor for einsum in einsums for one in einsum.inputs}
    return Workload(
        name="case",
        einsums=tuple(einsums),
        tensors=tuple(Tensor(name, shape, bits, name in persistent) for name, shape in found.items()),
        sizes=tuple(sizes.items()),
        outputs=outputs if outputs is not None else tuple(sorted(written - read)),
        repeat=repeat,
    )


def machine(*levels: Level, partial_sums: str = "read-modify-write") -> Machine:
    return Machine("case", levels, partial_sums)  # type: ignore[arg-type]


def dram(throughput: float | None = None) -> Memory:
    return Memory("DRAM", None, 1.0, 1.0, 1, throughput, throughput)


def simple(dram_throughput: float | None = None) -> Machine:
    """DRAM, GLB and MAC with one joule per action (S1 of the conformance page)."""
    return machine(dram(dram_throughput), Memory("GLB", 1024, 1.0, 1.0, 1, 16.0, 8.0), ComputeUnit("MAC", 1.0, 1.0))


def arrayed(multicast: str = "all", reduce: str = "all", size: int = 4) -> Machine:
    """DRAM, GLB, fanout X, Reg and MAC (S2 of the conformance page)."""
    return machine(
        dram(2.0),
        Memory("GLB", 1024, 1.0, 1.0, 1, 16.0, 8.0),
        Fanout("PE", (Axis("X", size, selector(multicast), selector(reduce)),)),
        Memory("Reg", 64, 1.0, 1.0, 1, 1.0, 1.0),
        ComputeUnit("MAC", 1.0, 1.0),
    )


def tree(text: str) -> Mapping:
    """A tree in one line: ``DRAM[A B Z] E.m:4 GLB[A] E.n:2/3@X | …``; see `nest`."""
    tokens = re.findall(r"[{}]|[^\s{}\[\]]+\[[^\]]*\]|[^\s{}]+", text)
    nodes, rest = _nest(tokens, 0)
    assert rest == len(tokens), tokens[rest:]
    return Mapping(nodes)


def _nest(tokens: list[str], at: int) -> tuple[tuple[Node, ...], int]:
    """Nodes until a closing brace: ``MEM[A B]`` stores, ``E.m,F.n:4/2@X`` loops (4 trips, tile 2), ``!E@MAC`` leaves.

    Braces in a row are the branches of one sequential split.
    """
    nodes: list[Node] = []
    branches: list[tuple[Node, ...]] = []
    while at < len(tokens) and tokens[at] != "}":
        token = tokens[at]
        at += 1
        if token == "{":
            branch, at = _nest(tokens, at)
            branches.append(branch)
            at += 1
        elif token.startswith("!"):
            name, _, unit = token[1:].partition("@")
            nodes.append(Compute(name, unit or None))
        elif "[" in token:
            memory, tensors = token[:-1].split("[")
            nodes.append(Store(memory, tuple(tensors.split())))
        else:
            bind, _, size = token.partition(":")
            size, _, axis = size.partition("@")
            trips, _, tile = size.partition("/")
            binds = tuple((pair.split(".")[0], pair.split(".")[1]) for pair in bind.split(","))
            nodes.append(Loop(binds, int(trips), int(tile) if tile else None, axis or None))
    if branches:
        nodes.append(Split("sequential", tuple(branches)))
    return tuple(nodes), at


def energy(simulation: object) -> int:
    """Joules when every action of one bit costs 1 J: all values moved plus all operations."""
    return sum(simulation.counts.values()) + sum(simulation.operations.values())  # type: ignore[attr-defined]

"""Random small trees with concurrent splits: the random trees of `trees`, with splits of other kinds.

Everything is a function of the seed. Roughly half of the trees are legal; the others break one of the rules of
concurrent splits (mostly: parallel branches that exchange data).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Literal

from cases import cascade
from einloom.machine.levels import ALL, NOTHING, Axis, ComputeUnit, Fanout, Link, Machine, Memory
from einloom.mapping.legality.concurrency import instances_used
from einloom.mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store, leaves
from einloom.workload.einsum import Workload
from trees import Case, TreeGrower, random_case

UNITS = ("MAC", "U1", "U2")


def concurrent_case(seed: int) -> Case:
    """The case of `random_case(seed)` with some of its sequential splits made concurrent, on a machine with room."""
    case, rng = random_case(seed), Random(f"concurrent {seed}")
    if rng.random() < 0.15:
        case = _independent(seed, case)
    return made_concurrent(case, rng)


def made_concurrent(case: Case, rng: Random) -> Case:
    """The case with some of its sequential splits made concurrent, on a machine with room."""
    machine = _roomy(case.machine)
    nest = _changed(case.mapping.nest, case.workload, machine, rng, (), UNITS)
    return replace(case, machine=machine, mapping=Mapping(nest))


def _independent(seed: int, case: Case) -> Case:
    """A tree for Einsums that exchange nothing, on the machine of `case`: what parallel branches may be."""
    rng = Random(f"independent {seed}")
    text = rng.choice(
        ("E0: X[m,n] = A[m,k] * B[k,n]\nE1: Y[m,n] = A[m,k] * D[k,n]", "E0: X[m] = A[m]\nE1: Y[m] = A[m] * D[m]")
    )
    workload = cascade(text, {v: rng.randint(2, 4) for v in "mnk" if f"{v}" in text})
    return replace(case, workload=workload, mapping=TreeGrower(rng, workload, case.machine).mapping())


def fused(case: Case) -> bool:
    """True if a split stands in the tree at all."""
    return isinstance(case.mapping.nest[-1], Split)


def kinds(nest: Nest) -> set[tuple[str, str]]:
    """(kind, place) of every concurrent split; the place of an axis is ``axis``; ``nested`` if one is in another."""
    last = nest[-1]
    if not isinstance(last, Split):
        return set()
    below = {found for branch in last.branches for found in kinds(branch)}
    if last.kind == "sequential":
        return below
    place = last.where if last.where in ("unit", "shared") else "axis"
    return below | {(last.kind, str(place))} | ({("nested", "")} if below else set())


def _roomy(machine: Machine) -> Machine:
    """Axes eight times as long, and two more units that do what MAC does."""
    levels = [
        replace(level, axes=tuple(replace(axis, size=8 * axis.size) for axis in level.axes))
        if isinstance(level, Fanout)
        else level
        for level in machine.levels
    ]
    assert isinstance(levels[-1], ComputeUnit)
    return replace(machine, levels=(*levels, *(replace(levels[-1], name=name) for name in UNITS[1:])))


def _changed(
    nest: Nest, workload: Workload, machine: Machine, rng: Random, above: tuple[str, ...], units: tuple[str, ...]
) -> Nest:
    """above: memories of the stores above. units: those that this nest may run on."""
    head = tuple(_slotted(node, rng) for node in nest[:-1])
    last: Node = nest[-1]
    above = (*above, *(node.memory for node in head if isinstance(node, Store)))
    if isinstance(last, Compute):
        return (*head, last if last.unit is None else replace(last, unit=rng.choice(units)))
    assert isinstance(last, Split)
    place = _place(last, machine, rng, above, units)
    kind = rng.choice(("pipelined", "pipelined", "pipelined", "parallel")) if rng.random() < 0.85 else "sequential"
    if not workload.intermediates and rng.random() < 0.7:
        kind = "parallel"
    if place == "unit" and kind != "sequential":
        chosen = [(unit,) for unit in units[: len(last.branches)]]
    else:
        chosen = [units] * len(last.branches)
    branches = tuple(
        _changed(branch, workload, machine, rng, above, own) for branch, own in zip(last.branches, chosen, strict=True)
    )
    if kind == "sequential":
        return (*head, replace(last, branches=branches))
    shares: tuple[int, ...] = ()
    if place in machine.axes and rng.random() < 0.6:
        shares = tuple(instances_used(branch, place) + rng.choice((0, 0, 1)) for branch in branches)
    return (*head, Split(kind, branches, place, shares))


def _place(split: Split, machine: Machine, rng: Random, above: tuple[str, ...], units: tuple[str, ...]) -> str:
    open_axes: list[Axis] = [
        axis
        for axis in machine.axes.values()
        if all(machine.position[memory] < machine.position[axis.name] for memory in above)
    ]
    choices = ["shared", *(axis.name for axis in open_axes)]
    if len(units) >= len(split.branches) and any(leaf.unit for leaf in leaves((split,))):
        choices.append("unit")
    return rng.choice(choices)


def _slotted(node: Node, rng: Random) -> Node:
    return replace(node, slots=rng.randint(1, 3)) if isinstance(node, Store) and rng.random() < 0.05 else node


CASCADES = {
    "two products": ("E0: C[m,l] = A[m,k] * B[k,l]\nE1: E[p,n] = C[p,q] * D[q,n]", "l=q"),
    "three products": (
        "E0: C[m,l] = A[m,k] * B[k,l]\nE1: E[p,n] = C[p,q] * D[q,n]\nE2: F[r,t] = E[r,s] * G[s,t]",
        "l=q n=s",
    ),
    "a skip": (
        "E0: C[m,l] = exp(A[m,l])\nE1: E[p,n] = C[p,q] * D[q,n]\nE2: F[r,s] = add(E[r,s], C[r,s])",
        "l=q l=n l=s",
    ),
    "two readers": ("E0: C[m,l] = A[m,k] * B[k,l]\nE1: E[p,q] = exp(C[p,q])\nE2: F[r,s] = C[r,s] * D[s]", "l=q l=s"),
}


def linked_case(seed: int) -> Case:
    """A pipeline on shares of an axis whose stages hand some tiles on over a link, and the others in a memory."""
    rng = Random(f"linked {seed}")
    text, equal = CASCADES[rng.choice(tuple(CASCADES))]
    sizes = {v: rng.randint(2, 4) for v in "mklnqst"} | {"m": rng.randint(2, 5)}
    sizes |= {"p": sizes["m"], "r": sizes["m"]}
    for pair in equal.split():
        sizes[pair[2]] = sizes[pair[0]]
    used = {v for v in sizes if any(f"{v}{end}" in text for end in ",]")}
    workload = cascade(text, {v: sizes[v] for v in sizes if v in used})
    private = rng.random() < 0.5
    fanout = Fanout("array", (Axis("X", 16, reduce=rng.choice((ALL, NOTHING)), multicast=rng.choice((ALL, NOTHING))),))
    near = Memory("L", double_buffer=rng.random() < 0.6)
    way = Link("way", axis="X", multicast=rng.random() < 0.5, read_energy=1.0, hops=rng.randint(1, 3))
    levels = (fanout, near) if private else (near, fanout)
    machine = Machine("linked", (Memory("G"), way, *levels, Memory("Reg"), ComputeUnit("MAC", 1.0, 1.0)))
    handed = [t for t in workload.intermediates if rng.random() < 0.75] or list(workload.intermediates[:1])
    above = [t.name for t in workload.tensors if t.name not in handed]
    tile = rng.randint(1, sizes["m"])
    binds = tuple((e.name, e.output.variables[0]) for e in workload.einsums)
    head: list[Node] = [
        Store("G", tuple(above)),
        Loop(binds, -(-sizes["m"] // tile), tile),
        Store("way", tuple(handed)),
    ]
    branches = tuple(_stage(rng, workload, einsum.name, tile, private) for einsum in workload.einsums)
    mapping = Mapping((*head, Split("pipelined", branches, "X")))
    return Case(workload, machine, mapping, frozenset(("links",)))


def _stage(rng: Random, workload: Workload, name: str, tile: int, private: bool) -> Nest:
    """One stage: some of its instances, a local store of everything, loops in any order, perhaps a register."""
    einsum = workload.einsum(name)
    left = {v: workload.extents[v] for v in einsum.variables} | {einsum.output.variables[0]: tile}
    spread: list[Node] = []
    if rng.random() < 0.8:
        variable = rng.choice(einsum.variables)
        inside = rng.randint(1, left[variable])
        trips = -(-left[variable] // inside)
        spread = [Loop(((name, variable),), trips, inside, "X")]
        left[variable] = inside
    store = Store("L", tuple(einsum.tensors))
    order = [v for v in rng.sample(einsum.variables, len(einsum.variables)) if left[v] > 1]
    loops: list[Node] = [Loop(((name, v),), left[v]) for v in order]
    if loops and rng.random() < 0.4:
        at = rng.randint(0, len(loops))
        tensors = tuple(t for t in einsum.tensors if rng.random() < 0.5)
        loops[at:at] = [Store("Reg", tensors)] if tensors else []
    body = (*spread, store, *loops) if private else (store, *spread, *loops)
    return (*body, Compute(name, "MAC"))


def links_in(nest: Nest) -> int:
    """Tensors that stand in a link somewhere in the nest."""
    own = sum(len(node.tensors) for node in nest if isinstance(node, Store) and node.memory.startswith("way-"))
    last = nest[-1]
    return own + (sum(map(links_in, last.branches)) if isinstance(last, Split) else 0)


def loaded(machine: Machine, seed: int) -> Machine:
    """The machine with throughputs, ports and double buffers by the dice."""
    rng = Random(seed)

    def memory(level: Memory) -> Memory:
        read, written = rng.choice((1.0, 2.0, 4.0)), rng.choice((1.0, 2.0, 4.0))
        ports: Literal["shared", "separate"] = "shared" if rng.random() < 0.5 else "separate"
        if isinstance(level, Link):
            return replace(level, read_throughput=read)
        level = replace(level, read_throughput=read, write_throughput=written, ports=ports)
        return replace(level, double_buffer=rng.random() < 0.5)

    return replace(machine, levels=tuple(memory(n) if isinstance(n, Memory) else n for n in machine.levels))

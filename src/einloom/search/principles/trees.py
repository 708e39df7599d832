"""Schedules of the closed forms as mapping trees, one multiplication or two fused ones.

Comes in: a schedule, the parts of the Einsums and the names of two memories. Goes out: a `Mapping` in normal form,
priced by `evaluate` like any other; tiles that do not divide leave a ragged edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...mapping.normal import normal_form
from ...mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store
from ...workload.einsum import Workload
from .matmul import OPERANDS, OperandSchedule, Room, ceil_div, missing
from .pairs import SHARED, FusedSchedule
from .roles import Roles

Units: TypeAlias = dict[str, str]
"""Einsum -> the unit that computes it."""


def unfused_tree(
    workload: Workload,
    parts: Sequence[Roles],
    schedules: Sequence[OperandSchedule],
    memories: tuple[str, str],
    units: Units,
    room: Room = "apart",
) -> Mapping:
    """Every multiplication by its own schedule, one after the other; each intermediate goes to the outer memory."""
    outer, buffer = memories
    nests = [
        _nest(workload, part, one, buffer, units[part.einsum], room) for part, one in zip(parts, schedules, strict=True)
    ]
    below: Nest = nests[0] if len(nests) == 1 else (Split("sequential", tuple(nests)),)
    return normal_form(Mapping((Store(outer, tuple(t.name for t in workload.tensors)), *below)), workload)


def fused_tree(
    workload: Workload, parts: Sequence[Roles], one: FusedSchedule, memories: tuple[str, str], units: Units
) -> Mapping:
    """Both multiplications below the loops over blocks of the intermediate, which stays in the buffer."""
    outer, buffer = memories
    first, second = parts
    names = {"A": first.tensor("A"), "B": first.tensor("B"), "D": second.tensor("B"), "E": second.tensor("C")}
    middle = first.tensor("C")
    m = _both(parts, "M", "M"), one.trips[0], one.tile[0]
    l = _both(parts, "L", "K"), one.trips[1], one.tile[1]
    outside, inside = (m, l) if one.order == "m outside" else (l, m)
    row = "M" if one.order == "m outside" else "L"
    whole = tuple(names[x] for x in one.kept if SHARED[x] != row)
    rows = tuple(names[x] for x in one.kept if SHARED[x] == row)
    branches = tuple(
        _phase(workload, part, one, tuple(names[x] for x in phase if x not in one.kept), buffer, units, last)
        for part, phase, last in ((first, "AB", "K"), (second, "DE", "L"))
    )
    nodes: list[Node] = [Store(outer, tuple(t.name for t in workload.tensors if t.name != middle))]
    for v, w in zip(first.batch, second.batch, strict=True):
        nodes.append(Loop(((first.einsum, v), (second.einsum, w)), workload.extents[v]))
    nodes += [*_store(buffer, whole), Loop(*outside), *_store(buffer, rows), Loop(*inside), Store(buffer, (middle,))]
    return normal_form(Mapping((*nodes, Split("sequential", branches))), workload)


def _both(parts: Sequence[Roles], first: str, second: str) -> tuple[tuple[str, str], ...]:
    return tuple((part.einsum, part.variable(d)) for part, d in zip(parts, (first, second), strict=True))


def _phase(
    workload: Workload,
    part: Roles,
    one: FusedSchedule,
    streamed: tuple[str, ...],
    buffer: str,
    units: Units,
    last: str,
) -> Nest:
    """One branch below the block: the dimension that is not shared step by step, what is streamed, then the block."""
    block = dict(zip("MLK" if last == "K" else "MKL", (*one.tile, 1), strict=True))
    steps = Loop(((part.einsum, part.variable(last)),), workload.extents[part.variable(last)])
    inner = (Loop(((part.einsum, part.variable(d)),), size, 1) for d, size in block.items() if d != last)
    return (steps, *_store(buffer, streamed), *inner, Compute(part.einsum, units[part.einsum]))


def _nest(workload: Workload, part: Roles, one: OperandSchedule, buffer: str, unit: str, room: Room) -> Nest:
    """The loops of one multiplication: tiles of the stationary operand, then the third dimension step by step."""
    x = one.stationary
    third = missing(x)
    tile, trips = dict(zip("MKL", one.tiles, strict=True)), dict(zip("MKL", one.trips, strict=True))

    def loop(dimension: str, number: int, size: int) -> Loop:
        return Loop(((part.einsum, part.variable(dimension)),), number, size)

    nodes: list[Node] = [Loop(((part.einsum, v),), workload.extents[v]) for v in part.batch]
    nodes += [loop(d, trips[d], tile[d]) for d in OPERANDS[x]]
    extent = workload.extents[part.variable(third)]
    steps = loop(third, ceil_div(extent, tile[third]), tile[third])
    short, long = sorted(OPERANDS[x], key=lambda d: tile[d])
    if room == "together":
        nodes += [steps, Store(buffer, part.tensors), loop(short, tile[short], 1), loop(long, tile[long], 1)]
    else:  # the operand with the short side is stored as a line, the other one element by element
        line = next(y for y in OPERANDS if short in OPERANDS[y] and third in OPERANDS[y])
        single = next(z for z in OPERANDS if z not in (x, line))
        nodes += [
            Store(buffer, (part.tensor(x),)),
            steps,
            Store(buffer, (part.tensor(line),)),
            loop(long, tile[long], 1),
        ]
        nodes += [Store(buffer, (part.tensor(single),)), loop(short, tile[short], 1)]
    return (*nodes, Compute(part.einsum, unit))


def _store(memory: str, tensors: tuple[str, ...]) -> tuple[Node, ...]:
    return (Store(memory, tensors),) if tensors else ()

"""A fabric as a machine and limits for `exact`: the buffer, one region of elements, and what its registers may hold.

The stationary tile has the shape of a region: the dimensions of the operand that stays take the rows and the columns,
and nothing else is spread. Sums that flow leave by the edge, a step of the stream at a time. Tile fusion: the
intermediate is backed in the registers; sums of the second multiplication that come again are then counted with their
way back, as nothing between buffer and registers holds them. `exact` minimises the traffic of the buffer, with perfect
tiles; `traffic.py` has the closed form for any sizes. A column crosses between two regions at the same time, which is
not in the space `ffm`, so column fusion has the closed form alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import SpecError
from ..machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from ..mapping.extents import addressed_paths
from ..mapping.tree import Loop, Mapping
from ..mapspace.limits.data import AxisLimit, BackLimit, HoldLimit, HoldRule, Limits, Numbers, TileLimit
from ..mapspace.space import Mapspace
from ..problem import Objective, Problem
from ..search.principles.matmul import OPERANDS, missing
from ..search.principles.roles import Roles, roles
from ..workload.einsum import Workload
from ..workload.selectors import selector
from .describe import Configuration, Fabric
from .traffic import STATIONARY

BUFFER, EDGE, REGISTERS = "Buffer", "Edge", "Registers"
RULES: tuple[HoldRule, ...] = ("keep", "may_keep")


def machine_of(fabric: Fabric, configuration: Configuration) -> Machine:
    """The buffer and one region: rows and columns of elements, each with one register for what stays."""
    rows, columns = configuration.extents(fabric)
    axes = tuple(Axis(name, size, reduce=selector("all")) for name, size in (("rows", rows), ("columns", columns)))
    wide = fabric.element.operand_bits
    speed = fabric.bandwidth
    return Machine(
        f"{fabric.name}-{configuration.name}",
        (
            Memory(BUFFER, read_throughput=speed, write_throughput=speed),
            Memory(EDGE),
            Fanout("elements", axes),
            Memory(REGISTERS, size=wide),
            ComputeUnit("MAC", throughput=fabric.clock),
        ),
        partial_sums="once",
    )


def problems(fabric: Fabric, workload: Workload) -> Iterator[tuple[str, Problem]]:
    """(what stays where, the problem) for every legal choice of one multiplication, or of a pair fused by tile."""
    parts = roles(workload)
    for one in fabric.configurations:
        if one.column:
            continue
        if len(parts) == 1:
            for mode in fabric.element.stationary:
                yield f"{mode} {one.name}", _problem(fabric, one, workload, parts, STATIONARY[mode])
        elif fabric.turns:
            yield f"tile {one.name}", _problem(fabric, one, workload, parts, "C")


def _problem(fabric: Fabric, one: Configuration, workload: Workload, parts: tuple[Roles, ...], stays: str) -> Problem:
    """The search for one operand in the registers, its dimensions on rows and columns."""
    rows, columns = one.extents(fabric)
    first, *more = parts
    kept = first.tensor(stays)
    limits: list[AxisLimit] = []
    tiles: list[TileLimit] = []
    flowing = first.tensor("C") if stays != "C" else "nothing"  # of a pair no edge stands below the registers
    for part in parts:
        operand = "A" if more and part is not first else stays  # the intermediate is the second one's A
        down, across = (part.variable(d) for d in OPERANDS[operand])  # type: ignore[index]
        for axis, variable, size in (("rows", down, rows), ("columns", across, columns)):
            extent = workload.extents[variable]
            if extent % min(size, extent):
                raise SpecError(f"{variable} of {extent} has no perfect tile of {size}; the closed form prices it")
            limits.append(AxisLimit(axis, Numbers(values=(min(size, extent),)), (variable,), (part.einsum,)))
            limits.append(AxisLimit(axis, Numbers(values=(min(size, extent),)), (), (part.einsum,)))
        if stays != "C":
            stream = part.variable(missing(operand))  # type: ignore[arg-type]
            tiles.append(TileLimit(EDGE, selector(flowing), (stream,), Numbers(values=(1,)), (part.einsum,)))
    places = ((REGISTERS, kept), (EDGE, flowing))
    holds = tuple(HoldLimit(rule, m, selector(t)) for m, t in places for rule in RULES)
    backs = (BackLimit(selector(kept), (REGISTERS,)),) if more else ()
    space = Mapspace(limits=Limits(holds, backs, (), tuple(tiles), tuple(limits)), title=f"{fabric.name}, {one.name}")
    return Problem(workload, machine_of(fabric, one), space, Objective("traffic", BUFFER))


def tile_of(workload: Workload, mapping: Mapping) -> tuple[int, int]:
    """The block of the intermediate that a mapping keeps in the elements: extents along its two dimensions."""
    first, _ = roles(workload)
    shares = {"M": 1, "L": 1}
    for _, node in addressed_paths(mapping.nest)[first.einsum]:
        if isinstance(node, Loop) and node.axis is not None:
            for dimension in shares:
                if node.variable(first.einsum) == first.variable(dimension):
                    shares[dimension] *= node.trips
    return shares["M"], shares["L"]

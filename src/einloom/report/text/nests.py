"""Loop nests in the manner of Timeloop: per Einsum its levels with what they hold, and the loops between them.

A pure function of a saved result, at most 100 columns wide.
"""

from __future__ import annotations

from textwrap import indent

from ...cost.room.occupancy import Tile, tiles
from ...cost.traffic.paths import Path, paths
from ...mapping.extents import Address
from ...mapping.tree import Compute, Loop, Store
from ...result import Result
from . import results as text
from .results import bits
from .table import WIDTH, fold

DEEPEST = 24
MAX_NAMES = 4
MAX_NESTS = 16
Tiles = dict[tuple[Address, str], Tile]


def everything(result: Result) -> str:
    """All that the terminal shows of a result; the loop nests of large cascades are cut after some Einsums."""
    count = len(result.mapping.einsums)
    left = f"\n\n... and {count - MAX_NESTS} more Einsums; --loops prints all" if count > MAX_NESTS else ""
    parts = [
        text.headline(result),
        text.front(result),
        text.fusion(result),
        f"mapping\n{indent(text.tree(result), '  ')}",
        loops(result, MAX_NESTS) + left,
    ]
    return "\n\n".join(part for part in (*parts, text.occupancy(result), text.breakdown(result)) if part) + "\n"


def loops(result: Result, most: int | None = None) -> str:
    """One loop nest per Einsum, in program order, `most` of them at most.

    ``GLB [ T1 2 KiB ]`` is a level and the tiles that the Einsum keeps there, ``| for m in [0:4)`` a loop in time,
    ``| par m in [0:4) @ X`` one in space, ``<< MAC >>`` the operation. A loop names the Einsums that share it.
    """
    every = paths(result.workload, result.mapping)
    held = {(t.store.address, t.store.tensor): t for t in tiles(result.workload, result.machine, every)}
    below: dict[Address, list[str]] = {}
    for path in every:
        for address, node in zip(path.addresses, path.nodes, strict=True):
            if isinstance(node, Loop):
                below.setdefault(address, []).append(path.einsum.name)
    return "\n\n".join("\n".join(_nest(path, held, below)) for path in every[:most])


def _nest(path: Path, held: Tiles, below: dict[Address, list[str]]) -> list[str]:
    lines = fold(f"{path.einsum.name}: {_equation(path)}")
    lines.append("-" * min(WIDTH - 4, max(map(len, lines))))
    depth = 0
    for address, node in zip(path.addresses, path.nodes, strict=True):
        margin = "  " * min(depth, DEEPEST)
        if isinstance(node, Store):
            shown = [_tile(held, address, tensor) for tensor in node.tensors if tensor in path.einsum.tensors]
            slots = f" slots {node.slots}" if node.slots else ""
            lines += fold(f"{node.memory}{slots} [ {', '.join(shown)} ]") if shown else []
        elif isinstance(node, Loop) and (variable := node.variable(path.einsum.name)):
            kind, axis = ("par", f" @ {node.axis}") if node.axis else ("for", "")
            tile = f" tile {node.tile}" if node.tile is not None else ""
            others = [name for name in below[address] if name != path.einsum.name]
            lines += fold(f"| {margin}{kind} {variable} in [0:{node.trips}){tile}{axis}{_shared(others)}")
            depth += 1
        elif isinstance(node, Compute):
            lines += fold(f"| {margin}<< {node.unit or 'copy'} >>")
    return lines


def _shared(others: list[str]) -> str:
    """A remark that names the other Einsums below a loop."""
    if not others:
        return ""
    more = f" and {len(others) - MAX_NAMES} more" if len(others) > MAX_NAMES else ""
    return f"   # shared with {', '.join(others[:MAX_NAMES])}{more}"


def _equation(path: Path) -> str:
    einsum = path.einsum
    inputs = [str(access) for access in einsum.inputs]
    body = " * ".join(inputs) if einsum.kind == "multiply" else f"{einsum.function or einsum.kind}({', '.join(inputs)})"
    return f"{einsum.output} = {body}"


def _tile(held: Tiles, address: Address, tensor: str) -> str:
    tile = held.get((address, tensor))
    return tensor if tile is None else f"{tensor} {bits(int(tile.bits({})))}"

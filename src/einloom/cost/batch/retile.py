"""A template with other tiles: as a tree, and as the paths that the analysis walks.

A template is a mapping whose loops stand; tiles are given by the address of a loop, trips follow as ceil(extent/tile).
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping as Table
from dataclasses import replace

from ...errors import SpecError
from ...mapping.extents import Address, rewritten
from ...mapping.legality.concurrency import has_concurrent
from ...mapping.tree import Loop, Mapping, Nest, Node
from ...workload.einsum import Workload
from ..formulas import terms
from ..formulas.terms import Number
from ..traffic.paths import Path, not_plain, paths, unlike_stores


def retile(workload: Workload, mapping: Mapping, tiles: Table[Address, int]) -> Mapping:
    """The template with the given tiles: every loop names its tile, trips follow as ceil(extent / tile).

    Raises SpecError for ranks with windows, concurrent splits and addresses where no loop stands.
    """
    table = {
        path.addresses[loop.place]: loop for path in retiled_paths(workload, mapping, tiles) for loop in path.loops
    }

    def made(address: Address, node: Node) -> Nest:
        if isinstance(node, Loop) and address in table:
            return (replace(node, trips=table[address].trips, tile=table[address].tile),)
        return (node,)

    return Mapping(rewritten(mapping.nest, made))


def retiled_paths(workload: Workload, mapping: Mapping, tiles: Table[Address, Number]) -> tuple[Path, ...]:
    """The paths of the template with other tiles, and the trips that follow. Raises SpecError as `retile` does."""
    return tuple(_retiled(path, tiles) for path in plain_paths(workload, mapping, tiles))


def plain_paths(workload: Workload, mapping: Mapping, addresses: Collection[Address]) -> tuple[Path, ...]:
    """The paths of the template as it stands. Raises SpecError as `retile` does."""
    found = paths(workload, mapping)
    if has_concurrent(mapping.nest):
        raise SpecError("many tiles at once need sequential splits; this template has branches that run concurrently")
    shared = unlike_stores(found, every=True)
    if reason := not_plain(tuple(replace(p, unlike=shared.get(p.order, frozenset())) for p in found)):
        raise SpecError(f"many tiles at once need plain ranks; {reason}")
    known = {path.addresses[loop.place] for path in found for loop in path.loops}
    for address in addresses:
        if address not in known:
            raise SpecError(f"no loop of the template stands at {address}; loops stand at {sorted(known)}")
    return found


def _retiled(path: Path, tiles: Table[Address, Number]) -> Path:
    extents: dict[str, Number] = {variable: path.extent(variable) for variable in path.einsum.variables}
    loops = []
    for loop in path.loops:
        tile = tiles.get(path.addresses[loop.place], loop.tile)
        loops.append(loop._replace(trips=terms.trips_of(extents[loop.variable], tile), tile=tile))
        extents[loop.variable] = terms.minimum(extents[loop.variable], tile)
    return replace(path, loops=tuple(loops))

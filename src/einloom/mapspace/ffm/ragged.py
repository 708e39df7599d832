"""Rule 2 of the spaces `ragged` and `integer`: which uneven tiles a mapping may have. Definition: docs/mapspace.md.

Comes in: the path of an Einsum. Goes out: why its loops are not in the space; and for the enumeration, every tile that
one loop may have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from math import prod

from ...cost.formulas import terms
from ...dataclass import dataclass
from ...mapping.analysed import Analysed
from ...mapping.extents import tile_of
from ...mapping.tree import Loop, describe
from ...workload.einsum import Workload


@dataclass(frozen=True, slots=True)
class Cutting:
    """One loop of a variable: its index in the path, the extent above it and its full tile."""

    place: int
    loop: Loop
    extent: int
    tile: int

    @property
    def uneven(self) -> bool:
        """True if the last tile is smaller."""
        return self.loop.trips * self.tile != self.extent


def spread_windows(workload: Workload, einsum: str) -> frozenset[str]:
    """Those of the windowed variables, which temporal loops cut evenly, that the outermost loop, a spatial one, may cut
    unevenly: no loop above a split can iterate them, because no intermediate has a rank that they, and all other
    Einsums, index alone."""
    e = workload.einsum(einsum)
    if e.kind == "copy":
        return frozenset()
    kept = {v for index in e.output.indices if not index.simple for v in index.variables}
    for access in (e.output, *e.inputs):
        if access.tensor in workload.intermediates:
            users = (*workload.writers[access.tensor], *workload.consumers[access.tensor])
            others = [a for name in users for a in workload.einsum(name).accesses if a.tensor == access.tensor]
            kept |= {
                index.variables[0]
                for rank, index in enumerate(access.indices)
                if index.simple and all(rank >= len(a.indices) or a.indices[rank].simple for a in others)
            }
    return e.windowed - kept


def chains(tree: Analysed, einsum: str) -> dict[str, list[Cutting]]:
    """The loops of every variable, from the outermost in."""
    found: dict[str, list[Cutting]] = {}
    for i, loop, v, extent in tree.extents(einsum)[0]:
        found.setdefault(v, []).append(Cutting(i, loop, extent, tile_of(loop, extent)))
    return found


def ragged_reasons(tree: Analysed, einsum: str, integer: bool = False) -> Iterator[str]:
    """Rule 2 of `ragged` or of `integer`, for every loop on the path of `einsum`."""
    workload, window = tree.workload, tree.workload.einsum(einsum).windowed
    spread = frozenset() if integer else spread_windows(workload, einsum)
    for v, chain in chains(tree, einsum).items():
        for n, cut in enumerate(chain):
            title = f"rule 2: '{describe(cut.loop)}'"
            if cut.loop.trips < 2:
                yield f"{title} has fewer than 2 trips"
            elif (einsum, cut.place) in tree.cuts:
                yield f"{title} cuts {einsum}.{v} as its consumers need it"
            elif cut.uneven and n and not integer:
                yield f"{title} cuts {einsum}.{v} of extent {cut.extent} unevenly below another loop over it"
            elif cut.uneven and v in window and (cut.loop.axis is None or v not in spread):
                yield f"{title} cuts {einsum}.{v} of extent {cut.extent} unevenly, and it moves a window"
        if not integer:
            yield from _spatial_reasons(einsum, v, workload.extents[v], chain)


def _spatial_reasons(einsum: str, variable: str, whole: int, chain: list[Cutting]) -> Iterator[str]:
    """Spatial loops are balanced, and one that cuts unevenly has no other below it."""
    spatial = [cut for cut in chain if cut.loop.axis is not None]
    if spatial and spatial[0].uneven and len(spatial) > 1:
        below = f"'{describe(spatial[1].loop)}' spreads {einsum}.{variable} further"
        yield f"rule 2: '{describe(spatial[0].loop)}' cuts {einsum}.{variable} unevenly, and {below}"
    for n, cut in enumerate(spatial):
        trips = [other.loop.trips for other in spatial[:n]]
        if not all(balanced(share, cut.loop.trips, cut.tile) for share in shares(whole, trips)):
            yield f"rule 2: '{describe(cut.loop)}' does not spread {einsum}.{variable} evenly over its instances"


def busiest(extents: Mapping[str, int], cuts: Mapping[str, list[Cutting]], axes: Collection[str]) -> int:
    """Iterations of the busiest instance of these axes, if nothing else were spread."""
    trips = {v: prod(c.loop.trips for c in cuts.get(v, ()) if c.loop.axis in axes) for v in extents}
    return prod(-(-extent // trips[v]) for v, extent in extents.items())


def done_by_busiest(extents: Mapping[str, int], cuts: Mapping[str, list[Cutting]], axes: Collection[str]) -> int:
    """Iterations of the first instance of these axes, which is the busiest, in the loops as they are."""
    found = 1
    for v, extent in extents.items():
        chain = tuple(terms.LoopCut(c.tile, once=int(c.loop.axis in axes)) for c in cuts.get(v, ()))
        found *= int(terms.covered(extent, chain))
    return found


def shares(whole: int, trips: list[int]) -> set[int]:
    """ceil(whole / product) for the products of all subsets of the trips of spatial loops."""
    every = (chosen for size in range(len(trips) + 1) for chosen in combinations(trips, size))
    return {-(-whole // prod(chosen)) for chosen in every}


def balanced(extent: int, instances: int, tile: int) -> bool:
    """True if no smaller tile could hold an instance's part of what the last pass over the instances has left.

    >>> balanced(10, 4, 3), balanced(9, 4, 3), balanced(8, 4, 3)
    (True, True, False)
    """
    left = extent % (instances * tile)
    return left == 0 or left > instances * (tile - 1)


def tiles(space: str, extent: int, whole: bool) -> Iterator[int]:
    """Every tile, smaller than the extent, that one loop may have. whole: no loop above it cuts the variable."""
    anything = space == "integer" or (space == "ragged" and whole)
    yield from (tile for tile in range(1, extent) if anything or extent % tile == 0)

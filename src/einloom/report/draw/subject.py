"""What the pictures of a result ask of it: leaves in program order, live tiles, backing memories."""

from __future__ import annotations

from functools import cached_property

from ...cost.room.occupancy import Tile, tiles
from ...cost.traffic.paths import Path, paths
from ...machine.levels import Machine
from ...mapping.extents import Address, edge_tiles, outermost_stores
from ...once import once_each
from ...result import Provenance, Result
from .scene import Scene


class Subject(Scene):
    """A result, and what follows from its mapping without a search."""

    machine: Machine
    provenance: Provenance

    def __init__(self, result: Result) -> None:
        super().__init__(result.workload, result.machine, result.provenance)
        self.result = result

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        return paths(self.result.workload, self.result.mapping)

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        return tiles(self.result.workload, self.result.machine, self.paths)

    @cached_property
    def _edges(self) -> dict[Address, int]:
        return edge_tiles(self.result.workload, self.result.mapping.nest)

    def last_tile(self, leaf: int, depth: int) -> int | None:
        """The extent of a loop's last tile, if it is smaller; the loop is node number `depth` on the path to a leaf."""
        return self._edges.get(self.paths[leaf].addresses[depth])

    @cached_property
    def tile_at(self) -> dict[tuple[Address, str], Tile]:
        return {(tile.store.address, tile.store.tensor): tile for tile in self.tiles}

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Einsum names in program order."""
        return tuple(path.einsum.name for path in self.paths)

    @once_each
    def alive(self, address: Address, tensor: str) -> tuple[int, int]:
        """First and last leaf, in program order, at which the tile is alive: its users, and what a loop adds around."""
        tile = self.tile_at[address, tensor]
        near = range(len(self.paths)) if tile.stays else tile.below
        first, last = tile.users[0].order, tile.users[-1].order
        while first > near.start and tile.alive(self.paths[first - 1], {}):
            first -= 1
        while last < near.stop - 1 and tile.alive(self.paths[last + 1], {}):
            last += 1
        return first, last

    @cached_property
    def backing(self) -> dict[str, str]:
        """Tensor -> memory of its outermost store."""
        return {tensor: memory for tensor, (memory, _) in outermost_stores(self.result.mapping.nest).items()}

    @cached_property
    def shallowest(self) -> int:
        """Depth of the first store on chip that holds what Einsums share; deeper groups are inner ones."""
        shared = self.result.workload.intermediates
        found = [t.store.place for t in self.tiles if t.store.memory != self.outermost and t.store.tensor in shared]
        return min(found, default=0)

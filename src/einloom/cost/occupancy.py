"""How many bits live in one instance of every memory at the worst moment.

A tile is alive from the first to the last leaf below its store that touches it, everything between included. Where a
temporal loop stands between the store and a split, or the store keeps elements into its next visit, it is alive in all
branches. Backing tiles of persistent tensors are alive for the whole run, once per repeat; tiles of their inner stores
are like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ..machine.levels import Machine
from ..mapping.extents import Address
from ..mapping.tree import Loop
from ..workload.einsum import Workload
from . import terms, windows
from .accesses import Link, rank_use
from .paths import Path, PathStore
from .record import Occupancy
from .terms import Number


@dataclass(frozen=True)
class Tile:
    """A stored tile: the paths whose Einsums touch it, and the leaves (by order) where it is alive."""

    store: PathStore
    users: tuple[Path, ...]
    alive: range
    width: int
    copies: int

    def size(self, choice: dict[int, int]) -> Number:
        """Values in the tile for one choice of piece in the loops of complex ranks, every other loop in its first."""
        first = self.users[0]
        access = first.einsum.access(self.store.tensor)
        total: Number = 1
        for rank, index in enumerate(access.indices):
            if any(u.complex_rank(u.einsum.access(self.store.tensor), rank) for u in self.users):
                uses = tuple(rank_use(u, self.store.tensor, rank, self.store.place, {}, None) for u in self.users)
                at = tuple((p, choice.get(p, 0)) for p in sorted({p for u in uses for _, _, c in u.terms for p, _ in c}))
                total = total * windows.extent_at(uses, first.workload.tensor(self.store.tensor).shape[rank], at)
            else:
                variable = index.variables[0]
                cuts = first.cuts(variable, self.store.place, lambda loop: 0)
                total = total * terms.largest(first.extent(variable), cuts)
        return total

    def bits(self, choice: dict[int, int]) -> Number:
        return self.size(choice) * self.width * self.copies

    def moving_places(self) -> frozenset[int]:
        """Places of the loops that change the tile's size in other ways than a ragged edge."""
        found: set[int] = set()
        for user in self.users:
            access = user.einsum.access(self.store.tensor)
            for rank, index in enumerate(access.indices):
                if any(u.complex_rank(u.einsum.access(self.store.tensor), rank) for u in self.users):
                    for variable in index.variables:
                        found.update(p.place for p in user.by_variable[variable] if p.place < self.store.place)
        return frozenset(found)


def tiles(workload: Workload, machine: Machine, all_paths: tuple[Path, ...]) -> tuple[Tile, ...]:
    """Every stored tile of the mapping, with its lifetime."""
    found: list[Tile] = []
    seen: set[tuple[Address, str]] = set()
    for path in all_paths:
        for store in path.stores:
            if (store.address, store.tensor) in seen:
                continue
            seen.add((store.address, store.tensor))
            below = tuple(p for p in all_paths if p.holds(store))
            users = tuple(p for p in below if store.tensor in p.einsum.tensors)
            if not users:
                continue
            memory = machine.memory(store.memory)
            width = memory.bits(workload, users[0].einsum.name, store.tensor)
            stays = _persists(workload, store, users[0])
            repeats = workload.repeat if stays else 1
            alive = range(len(all_paths)) if stays else _lifetime(workload, machine, store, below, users)
            found.append(Tile(store, users, alive, width, memory.capacity_share() * repeats))
    return tuple(found)


def _persists(workload: Workload, store: PathStore, user: Path) -> bool:
    """True for the backing store of a persistent tensor: its tile stays for the whole run, one for each repeat."""
    return workload.tensor(store.tensor).persistent and user.holders(store.tensor)[0].address == store.address


def _lifetime(
    workload: Workload, machine: Machine, store: PathStore, below: tuple[Path, ...], users: tuple[Path, ...]
) -> range:
    everywhere = range(below[0].order, below[-1].order + 1)
    if _keeps(workload, machine, store, users):
        return everywhere
    first, last = users[0].order, users[-1].order
    for end in (users[0], users[-1]):
        group = _loop_group(end, store, below)
        first, last = min(first, group[0]), max(last, group[1])
    return range(first, last + 1)


def _loop_group(path: Path, store: PathStore, below: tuple[Path, ...]) -> tuple[int, int]:
    """First and last leaf under the outermost temporal loop between the store and the leaf of `path` (or the leaf)."""
    for place in range(store.place + 1, len(path.nodes)):
        node = path.nodes[place]
        if isinstance(node, Loop) and node.axis is None and not (isinstance(node.trips, int) and node.trips == 1):
            same = [p.order for p in below if p.addresses[place : place + 1] == path.addresses[place : place + 1]]
            return min(same), max(same)
    return path.order, path.order


def _keeps(workload: Workload, machine: Machine, store: PathStore, users: tuple[Path, ...]) -> bool:
    """True if any element of the tile stays from one visit to the next."""
    user = users[0]
    link = Link(workload, machine, user, store.tensor, store, store, users, False)
    keeps, sliding = link.retention
    if any(keeps.get(p.place, 0) is True and isinstance(p.trips, int) and p.trips > 1 for p in user.loops):
        return True
    if sliding is None:
        return False
    for rank in range(len(link.access.indices)):
        if any(u.complex_rank(u.einsum.access(store.tensor), rank) for u in users):
            uses = tuple(rank_use(u, store.tensor, rank, store.place, {}, None) for u in users)
            if any(sliding == p for u in uses for _, _, chain in u.terms for p, _ in chain) and windows.overlaps(
                uses, workload.tensor(store.tensor).shape[rank], sliding
            ):
                return True
    return False


def _choices(path: Path, found: list[Tile]) -> Iterator[dict[int, int]]:
    """Every combination of pieces of the loops that change tile sizes on this path."""
    places = sorted({p for tile in found for p in tile.moving_places() if p < len(path.nodes)})
    ranges = []
    for place in places:
        node = path.nodes[place]
        assert isinstance(node, Loop)
        ranges.append(range(node.trips))
    for combination in product(*ranges):
        yield dict(zip(places, combination, strict=True))


def peak(all_tiles: tuple[Tile, ...], all_paths: tuple[Path, ...], memory: str) -> tuple[Number, tuple[tuple[str, Number], ...]]:
    """(bits, tensors alive with their bits) at the worst moment of one instance of `memory`."""
    mine = [tile for tile in all_tiles if tile.store.memory == memory]
    worst: Number = 0
    alive_then: tuple[tuple[str, Number], ...] = ()
    for path in all_paths:
        alive = [tile for tile in mine if path.order in tile.alive]
        for choice in _choices(path, alive):
            sizes = [(tile.store.tensor, tile.bits(choice)) for tile in alive]
            total: Number = sum(bits for _, bits in sizes)
            if isinstance(total, int) and isinstance(worst, int):
                if total > worst:
                    worst, alive_then = total, tuple(sizes)
            else:
                worst = terms.maximum(worst, total)
    return worst, alive_then


def occupancy(workload: Workload, machine: Machine, all_paths: tuple[Path, ...]) -> tuple[Occupancy, ...]:
    """Peak occupancy of every memory that stores something."""
    all_tiles = tiles(workload, machine, all_paths)
    used = [m for m in machine.memories if any(tile.store.memory == m.name for tile in all_tiles)]
    result = []
    for memory in used:
        bits, alive = peak(all_tiles, all_paths, memory.name)
        result.append(Occupancy(memory.name, bits, memory.size, alive))
    return tuple(result)

"""How many bits live in one instance of every memory at the worst moment.

A tile is alive from the first to the last leaf below its store that touches it, everything between included. Where a
temporal loop stands between the store and a split, or the store keeps elements into its next visit, it is alive in all
branches. Backing tiles of persistent tensors are alive for the whole run, once per repeat; tiles of their inner stores
are like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from math import prod
from operator import or_

import numpy as np

from ...dataclass import dataclass
from ...machine.levels import Link, Machine, Memory
from ...mapping.extents import Address
from ...mapping.legality.concurrency import axis_of, stage_distance
from ...mapping.tree import Split, Store
from ...once import cached_property
from ...workload.einsum import Workload
from ..breakdown import Occupancy
from ..formulas import terms, windows
from ..formulas.terms import Number
from ..formulas.windows import Array, Choice
from ..traffic.accesses import StoreLink, by_tensor, moving, rank_use, retention, split_above
from ..traffic.boxes import Shared, Sides
from ..traffic.paths import Path, PathLoop, PathStore, all_plain
from .moments import Moment, fullest


@dataclass(eq=False)  # not frozen: that takes three times as long to make, and a tree has many
class Tile:
    """A stored tile: the leaves below its store, by order, and the paths of the Einsums that touch it.

    within: the leaves at which the tile may be alive. stays: it is the backing tile of a persistent tensor. steps: the
    temporal loops above the store whose next iteration may find elements of the tile again, each with a flag (or an
    array of flags) that says whether it has one. unlike: the users' boxes, if a loop moves them in different ways.
    """

    store: PathStore
    below: range
    within: range
    users: tuple[Path, ...]
    width: int
    copies: int
    stays: bool
    steps: tuple[tuple[PathLoop, Number], ...]
    unlike: Shared | None = None

    def alive(self, path: Path, choice: Choice) -> Number:
        """1 if the tile is alive when `path` reaches its leaf, else 0; an array of both where trips are arrays."""
        if self.stays:
            return 1
        if path.order not in self.below:
            return 0
        first, last = self.users[0], self.users[-1]
        if first.order <= path.order <= last.order:
            return 1
        flag: Number = 0
        for end in (first, last):
            for loop in end.loops:
                if loop.axis is None and self.store.place < loop.place and path.shares(end, loop.place):
                    flag = terms.maximum(flag, terms.positive(loop.trips - 1))
        return flag if isinstance(flag, int) and flag else terms.maximum(flag, self.kept(choice))

    def kept(self, choice: Choice) -> Number:
        """1 if the visit of `choice` leaves elements to the next visit, else 0.

        Loops in `choice` are asked piece by piece, because a piece may be empty; every other loop is in its first.
        """
        inside = {loop.place: loop.trips for loop, _ in self.steps if loop.place in self.moving}
        flag: Number = 0
        for loop, keeps in self.steps:
            if loop.place not in inside:
                flag = terms.maximum(flag, keeps)
        if (isinstance(flag, int) and flag) or not inside:
            return flag
        outer = {place: at for place, at in choice.items() if place in self.moving and place not in inside}
        ndim = max((at.ndim for at in choice.values() if isinstance(at, np.ndarray)), default=0)
        table = self._leaves(outer, inside, ndim)
        for place in reversed(inside):  # the last axis is the iteration of `place`: put in the one that is asked for
            at = choice.get(place, 0)
            if not isinstance(at, np.ndarray):
                table = table[..., at]
                continue
            axis = list(choice).index(place)
            table = np.moveaxis(table.take(0, axis=axis).take(at.astype(np.int64).ravel(), axis=-1), -1, axis)
        return table if ndim else int(table)

    def _leaves(self, outer: Choice, inside: dict[int, int], ndim: int) -> Array:
        """For every iteration of the moving steps: does the visit before or in it leave elements to the one after?

        outer: choices of the other loops, arrays of `ndim` axes. The result has an axis more for each step.
        """
        sides, work = self._box(windows.grid(outer, inside, ndim))
        flat = [one for side in sides for one in side]
        wide = np.broadcast_shapes(*(np.shape(one) for one in (work, *flat)), (1,) * ndim + tuple(inside.values()))
        visits = (*wide[:ndim], prod(inside.values()))
        work, *flat = (np.broadcast_to(one, wide).reshape(visits) for one in (work, *flat))
        there, before = windows.previous(work, flat)
        again = there & work
        for low, high, start, end in zip(flat[::2], flat[1::2], before[::2], before[1::2], strict=True):
            again = again & (np.minimum(high, end) > np.maximum(low, start))
        steps = np.arange(visits[-1])
        after = np.where(work, steps, visits[-1])[..., ::-1]
        after = np.minimum.accumulate(after, axis=-1)[..., ::-1]  # the first visit with work in or behind each
        following = np.concatenate([after[..., 1:], np.full((*visits[:-1], 1), visits[-1])], axis=-1)
        found = np.take_along_axis(again, np.minimum(following, visits[-1] - 1), axis=-1) & (following < visits[-1])
        return np.asarray(found.reshape(wide), dtype=np.int64)

    def _box(self, choice: Choice) -> tuple[Sides, Number]:
        """(the windows of the complex ranks for a choice, has any user work in it?)."""
        if self.unlike is not None:
            return self.unlike.box(choice)
        busy = [user.works(choice, self.store.place) for user in self.users]
        sides: Sides = []
        for uses, size in self._windows:
            low, high, there = windows.hull(uses, choice, size, busy)
            sides.append((windows.choose(there, low, 0), windows.choose(there, high, 0)))
        return sides, reduce(or_, busy)

    @cached_property
    def _whole(self) -> frozenset[int]:
        """The ranks along which it holds all, because its users see the tensor under several (docs/model/views.md)."""
        workload, tensor = self.users[0].workload, self.store.tensor
        several = len(self.users) > 1 and tensor in workload.viewed
        return workload.parted[tensor] if several else frozenset()

    @cached_property
    def _simple(self) -> bool:
        """True if no user has windows."""
        return all_plain(self.users)

    def _complex(self, rank: int) -> bool:
        tensor = self.store.tensor
        if rank in self._whole:
            return False
        if not self._simple and any(
            user.complex_rank(user.einsum.access(tensor), rank) for user in self.users if not user.plain
        ):
            return True
        return len(self.users) > 1 and not self.users[0].workload.tied(tensor, rank)

    def size(self, choice: Choice) -> Number:
        """Values in the tile for a choice of pieces, every other loop in its first."""
        return prod(self.factors(choice))

    def factors(self, choice: Choice) -> list[Number]:
        """Numbers whose product is `size`; each depends on few of the loops."""
        if self.unlike is not None:
            sides, work = self.unlike.box(choice)
            return [windows.choose(work, prod(high - low for low, high in sides), 0)]
        found = [self._plain] if not choice or self._ragged.isdisjoint(choice) else self._plain_at(choice)
        if self._whole:
            shape = self.users[0].workload.tensor(self.store.tensor).shape
            found = [*(size for rank, size in enumerate(shape) if rank in self._whole), *found]
        found.extend([windows.extent_at(uses, size, choice) for uses, size in self._windows])
        return found

    @cached_property
    def _plain(self) -> Number:
        """Product of the extents of the ranks that are one plain variable, in the largest tile."""
        first, place = self.users[0], self.store.place
        extents, narrowed = first.workload.extents, first.narrowed
        total: Number = 1
        for variable in self._plain_variables:
            extent: Number = extents[variable]
            for at, below in narrowed[variable]:
                if at > place:
                    break
                extent = below
            total = total * extent
        return total

    @property
    def _plain_variables(self) -> Iterable[str]:
        """The variables of every rank that is no window."""
        access = self.users[0].einsum.access(self.store.tensor)
        if self._simple and len(self.users) == 1:
            return access.variables
        ranks = [rank for rank in range(len(access.indices)) if rank not in self._whole and not self._complex(rank)]
        return dict.fromkeys(v for rank in ranks for v in access.indices[rank].variables)

    @cached_property
    def _plain_ranks(self) -> tuple[tuple[int, tuple[PathLoop, ...]], ...]:
        """(extent, loops above the store) of the variables of every rank that is no window."""
        first, place = self.users[0], self.store.place
        extents, loops = first.workload.extents, first.by_variable
        return tuple([(extents[v], tuple([n for n in loops[v] if n.place < place])) for v in self._plain_variables])

    @cached_property
    def _ragged(self) -> frozenset[int]:
        """Places of the loops whose pieces of a plain rank differ."""
        if self.users[0].busy:
            return frozenset()
        found: set[int] = set()
        for extent, loops in self._plain_ranks:
            whole: Number = extent
            for loop in loops:
                if not isinstance(loop.tile, int) or whole != loop.tile * loop.trips:
                    found.update(other.place for other in loops)
                whole = loop.tile
        return frozenset(found)

    def _plain_at(self, choice: Choice) -> list[Number]:
        """The factors of `_plain`, for a choice of pieces."""
        chains = [(extent, tuple([(n.place, n.cut(0)) for n in loops])) for extent, loops in self._plain_ranks]
        return [terms.maximum(windows.piece(extent, chain, choice)[1], 0) for extent, chain in chains]

    @cached_property
    def _windows(self) -> tuple[tuple[tuple[windows.RankUse, ...], int], ...]:
        """The other ranks: how the users reach each, and its declared size."""
        if self._simple:
            return ()
        user = self.users[0]
        shape = user.workload.shape(user.einsum.access(self.store.tensor))
        found = []
        for rank, size in enumerate(shape):
            if self._complex(rank):
                uses = tuple(rank_use(u, self.store.tensor, rank, self.store.place, {}, None) for u in self.users)
                found.append((uses, size))
        return tuple(found)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.store.address, self.store.tensor)

    def bits(self, choice: Choice) -> Number:
        return self.size(choice) * self.width * self.copies if choice else self._first_bits

    @cached_property
    def _first_bits(self) -> Number:
        """Bits where every loop is in its first piece."""
        plain = self._simple and self.unlike is None and (len(self.users) == 1 or not self._whole)
        size = self._plain if plain else self.size({})
        return size * self.width * self.copies

    @cached_property
    def moving(self) -> frozenset[int]:
        """Places of the loops that change the tile's size, or end its use, in other ways than a ragged edge."""
        if self.unlike is None and self._simple:
            return frozenset()
        found: set[int] = set()
        steps = {loop.place for loop, _ in self.steps}
        for user in self.users:
            access = user.einsum.access(self.store.tensor)
            for rank, index in enumerate(access.indices):
                if self._complex(rank):
                    for variable in index.variables:
                        found.update(p.place for p in user.by_variable[variable])
            for variable in user.derived:
                if any(p.place in steps for p in user.by_variable[variable]):
                    found.update(p.place for p in user.by_variable[variable])
        if self.unlike is not None:
            found.update(self.unlike.places)
        many = {p.place for user in self.users for p in user.loops if not (isinstance(p.trips, int) and p.trips == 1)}
        return frozenset(place for place in found & many if place < self.store.place)


def tiles(workload: Workload, machine: Machine, all_paths: tuple[Path, ...]) -> tuple[Tile, ...]:
    """Every stored tile of the mapping, with its lifetime."""
    found: list[Tile] = []
    below = _leaves_below(all_paths)
    touching = by_tensor(all_paths)
    for store in _stores(all_paths):
        mine = below[store.address]
        users = tuple([p for p in touching.get(store.tensor, ()) if p.order in mine])
        memory = machine.memory(store.memory)
        if not users or isinstance(memory, Link):
            continue
        width = memory.bits(workload, users[0].einsum.name, store.tensor)
        stays = _persists(workload, store, users[0])
        copies = slots(memory, store, users) * (workload.repeat if stays else 1)
        windowed = not all_plain(users) or (store.place, store.tensor) in users[0].unlike
        link = StoreLink(workload, machine, users[0], store.tensor, store, store, users, False) if windowed else None
        steps = () if stays else _steps(store, users, link)
        within = mine if steps else _span(store, users, below)
        unlike = None if link is None else link.unlike
        found.append(Tile(store, mine, within, users, width, copies, stays, steps, unlike))
    return tuple(found)


def _stores(all_paths: tuple[Path, ...]) -> Iterator[PathStore]:
    """Every store of the tree in program order, one for each of its tensors."""
    seen: set[Address] = set()
    for path in all_paths:
        for place, (address, node) in enumerate(zip(path.addresses, path.nodes, strict=True)):
            if isinstance(node, Store) and address not in seen:
                seen.add(address)
                yield from (PathStore(place, node.memory, tensor, address, node.slots) for tensor in node.tensors)


def _leaves_below(all_paths: tuple[Path, ...]) -> dict[Address, range]:
    """Address of a node -> orders of the leaves below it; program order keeps them together."""
    first: dict[Address, int] = {}
    last: dict[Address, int] = {}
    for path in all_paths:
        for address in path.addresses:
            first.setdefault(address, path.order)
            last[address] = path.order
    return {address: range(start, last[address] + 1) for address, start in first.items()}


def _span(store: PathStore, users: tuple[Path, ...], below: dict[Address, range]) -> range:
    """Orders of the leaves from the first to the last user, and of all in loops around either, below the store."""
    start, stop = users[0].order, users[-1].order + 1
    for end in users if len(users) == 1 else (users[0], users[-1]):
        for loop in end.loops:
            if loop.place > store.place and loop.axis is None and not (isinstance(loop.trips, int) and loop.trips == 1):
                around = below[end.addresses[loop.place]]
                start, stop = min(start, around.start), max(stop, around.stop)
                break
    return range(start, stop)


def slots(memory: Memory, store: PathStore, users: tuple[Path, ...]) -> int:
    """How many tiles a store holds in turns: as written, else 2 with double buffering, else what an exchange takes.

    A tile that stages of a pipeline exchange needs one slot more than they stand apart. A store above a loop of tokens
    holds a place for each of them already.
    """
    if store.slots is not None:
        return store.slots
    if not any(user.forks for user in users):
        return memory.capacity_share()
    return max(memory.capacity_share(), 1 + max([distance for _, distance in exchanges(store, users)], default=0))


def exchanges(store: PathStore, users: tuple[Path, ...]) -> Iterator[tuple[Path, int]]:
    """(consumer, stage distance) of everyone who reads the store's tile one stage or more behind its producer."""
    for producer in (user for user in users if user.einsum.output.tensor == store.tensor):
        for fork in producer.forks:
            between = (store.place < n.place < fork.place for n in producer.holders(store.tensor))
            looped = (store.place < n.place < fork.place and n.axis is None and n.trips > 1 for n in producer.loops)
            if fork.split.kind != "pipelined" or fork.place < store.place or any(between) or any(looped):
                continue
            for user in users:
                if any(f.address == fork.address and f.branch != fork.branch for f in user.forks):
                    yield user, stage_distance(fork.split, producer.einsum.name, user.einsum.name)


def _persists(workload: Workload, store: PathStore, user: Path) -> bool:
    """True for the backing store of a persistent tensor: its tile stays for the whole run, one for each repeat."""
    return workload.tensor(store.tensor).persistent and user.holders(store.tensor)[0].address == store.address


def _steps(store: PathStore, users: tuple[Path, ...], link: StoreLink | None) -> tuple[tuple[PathLoop, Number], ...]:
    """The loops above a store that may keep elements of its tile: those its tensor lacks, and the sliding one.

    link: to the store, if its windows may overlap.
    """
    path = users[0]
    edge = split_above(path, store.place)
    keeps, sliding = retention(path, store.place, moving(users, store.tensor), edge)
    found: list[tuple[PathLoop, Number]] = []
    for loop in path.loops:
        if loop.place == sliding:
            if link is not None and _slides(link, loop):
                found.append((loop, 1))
        elif loop.place in keeps:
            flag = terms.positive(loop.trips - 1) * keeps[loop.place]
            if not isinstance(flag, int) or flag:
                found.append((loop, flag))
    return tuple(found)


def _slides(link: StoreLink, loop: PathLoop) -> bool:
    """True if some step of the sliding loop finds elements of the tile again: windows that overlap."""
    if link.unlike is not None:
        return link.unlike.overlaps(loop.place)
    for rank, size in enumerate(link.workload.shape(link.access)):
        if len(link.users) > 1 and link.tensor in link.workload.viewed and not link.workload.tied(link.tensor, rank):
            continue
        if any(u.complex_rank(u.einsum.access(link.tensor), rank) for u in link.users):
            uses = tuple(rank_use(u, link.tensor, rank, link.place, {}, None) for u in link.users)
            places = {place for use in uses for _, _, chain in use.terms for place, _ in chain}
            if loop.place in places and windows.overlaps(uses, size, loop.place):
                return True
    return False


def _moments(path: Path, near: list[Tile], changing: list[Tile]) -> Choice:
    """The iterations of the loops that change tiles on this path, without those in which all is as in one before.

    Along each loop, iterations in which no factor of any tile's size and no tile's life differ from those in an earlier
    one are left out, whatever the iterations of the other loops are: a worst moment is worst there, too, and the first
    of all is among those that stay.
    """
    places = {place for tile in changing for place in tile.moving}
    if not places:
        return {}
    trips = {loop.place: loop.trips for loop in path.loops if loop.place in places}
    choice = windows.axes(trips)
    arrays = path.working(choice, len(path.nodes))
    for tile in near:
        arrays.extend((*tile.factors(choice), tile.alive(path, choice)))
    kept = windows.representatives(list(trips.values()), arrays)
    return {place: one.astype(object) for place, one in zip(trips, kept, strict=True)}


@dataclass(eq=False)
class _Live:
    """What may be alive when a path reaches its leaf: (tile, is it alive?, bits), at all moments of `choice`."""

    path: Path
    choice: Choice
    tiles: tuple[tuple[Tile, Number, Number], ...]

    @staticmethod
    def of(path: Path, near: list[Tile], changing: list[Tile]) -> _Live:
        choice = _moments(path, near, changing) if changing else {}
        flags = [(tile, tile.alive(path, choice)) for tile in near]
        found = [(tile, flag, tile.bits(choice) * flag) for tile, flag in flags if not isinstance(flag, int) or flag]
        return _Live(path, choice, tuple(found))

    @cached_property
    def _work(self) -> Array:
        """For each moment whether the path has work."""
        work = np.asarray(self.path.works(self.choice, len(self.path.nodes)))
        return np.broadcast_to(work, tuple(one.size for one in self.choice.values()))

    def each(self, bits: Number) -> Array:
        """A number of bits at each moment, one after the other; -1 where the path has no work."""
        return np.where(self._work, np.asarray(bits, dtype=object), -1).ravel()

    def at(self, moment: int) -> list[tuple[Tile, int]]:
        """The tiles that are alive at one moment, with their bits."""
        found = []
        for tile, flag, bits in self.tiles:
            if np.broadcast_to(np.asarray(flag), self._work.shape).flat[moment]:
                found.append((tile, int(np.broadcast_to(np.asarray(bits), self._work.shape).flat[moment])))
        return found


def peak(
    all_tiles: tuple[Tile, ...], all_paths: tuple[Path, ...], memory: str
) -> tuple[Number, tuple[tuple[str, Number], ...]]:
    """(bits, tensors alive with their bits) at the worst moment of one instance of `memory`; no tensors for arrays.

    One leaf at a time: without concurrent splits, or for the view of a single path.
    """
    mine = [tile for tile in all_tiles if tile.store.memory == memory]
    number = {tile.key: i for i, tile in enumerate(mine)}
    always = [(tile, tile.bits({})) for tile in mine if tile.stays and not tile.moving]
    base: Number = sum(bits for _, bits in always)
    worst: Number = 0
    alive_then: list[tuple[Tile, Number]] = []
    for path, near, changing in _near(mine, all_paths):
        live = _Live.of(path, near, changing)
        total: Number = base + sum(bits for _, _, bits in live.tiles)
        moment = 0
        if live.choice:
            each = live.each(total)
            moment = int(np.argmax(each))
            total = int(each[moment])
        if not isinstance(total, int) or not isinstance(worst, int):
            worst = terms.maximum(worst, total)
        elif total > worst:
            worst, alive_then = total, live.at(moment) if live.choice else [(tile, n) for tile, _, n in live.tiles]
    fullest_known = isinstance(worst, int) and worst > 0
    listed = sorted((*always, *alive_then) if fullest_known else (), key=lambda entry: number[entry[0].key])
    return worst, tuple((tile.store.tensor, bits) for tile, bits in listed)


def _near(mine: list[Tile], all_paths: tuple[Path, ...]) -> Iterator[tuple[Path, list[Tile], list[Tile]]]:
    """For each path the tiles that may be alive at its leaf, and those stored above it that change with loops.

    Backing tiles of persistent tensors are left out, unless they change.
    """
    near: dict[int, list[Tile]] = {path.order: [] for path in all_paths}
    changing = [tile for tile in mine if tile.moving]
    for tile in mine:
        if not tile.stays:
            for order in tile.within:
                if order in near:
                    near[order].append(tile)
        elif tile.moving:
            for listed in near.values():
                listed.append(tile)
    for path in all_paths:
        yield path, near[path.order], [tile for tile in changing if tile.stays or path.order in tile.below]


def _forked_peak(
    machine: Machine, all_tiles: tuple[Tile, ...], all_paths: tuple[Path, ...], memory: str
) -> tuple[int, tuple[tuple[str, int], ...]]:
    """As `peak`, where some branches run at the same time."""
    mine = [tile for tile in all_tiles if tile.store.memory == memory]
    staying = tuple((tile.store.tensor, tile.bits({})) for tile in mine if tile.stays)
    moments: list[Moment] = []
    for path, near, changing in _near([tile for tile in mine if not tile.stays], all_paths):
        live = _Live.of(path, near, changing)
        for moment in _telling(live) if live.choice else (0,):
            now = live.at(moment) if live.choice else [(tile, bits) for tile, _, bits in live.tiles]
            alive = tuple((t.key, _depth(path, t), t.store.tensor, bits) for t, bits in now if bits)
            moments.append(Moment(path.forks, alive))

    def private(split: Split) -> bool:
        axis = axis_of(split)
        return axis is not None and machine.position[memory] > machine.position[axis]

    bits, names = fullest(moments, private)
    return bits + sum(n for _, n in staying), (*staying, *names)


def _depth(path: Path, tile: Tile) -> int:
    """How many concurrent splits of the path stand above the tile's store."""
    return sum(fork.place < tile.store.place for fork in path.forks)


def _telling(live: _Live) -> list[int]:
    """The moments that `moments.fullest` can tell from the others: the fullest of the tiles in the path's own branch,
    and for each tile the first in which it is alive and the first in which it is largest."""
    own = sum(bits for tile, _, bits in live.tiles if _depth(live.path, tile) == len(live.path.forks))
    found = {int(np.argmax(live.each(own)))}
    for _, _, bits in live.tiles:
        each = live.each(bits)
        found |= {int(np.argmax(each > 0)), int(np.argmax(each))}
    return sorted(moment for moment in found if live._work.flat[moment])


def occupancy(workload: Workload, machine: Machine, all_paths: tuple[Path, ...]) -> tuple[Occupancy, ...]:
    """Peak occupancy of every memory that stores something."""
    all_tiles = tiles(workload, machine, all_paths)
    used = [m for m in machine.memories if any(tile.store.memory == m.name for tile in all_tiles)]
    result = []
    for memory in used:
        if any(path.forks for path in all_paths):
            bits, alive = _forked_peak(machine, all_tiles, all_paths, memory.name)
        else:
            bits, alive = peak(all_tiles, all_paths, memory.name)
        result.append(Occupancy(memory.name, bits, memory.size, alive))
    return tuple(result)

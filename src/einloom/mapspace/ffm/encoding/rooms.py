"""Bits alive in every memory at every leaf, from states: the rule of lifetime (docs/model) without a tree.

A tile is alive from the first to the last leaf that touches it. Where a temporal loop stands between its store and a
split, or its store keeps it into the next visit, it is alive in all branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ....cost.room.occupancy import occupancy
from ....cost.traffic.paths import paths
from ....dataclass import dataclass
from ....workload.einsum import Index
from .facts import Facts
from .state import Frame, State, frame_of, left_below, path_of
from .trees import decode


@dataclass(frozen=True, slots=True)
class LiveTile:
    """A tile: its memory, bits, first and last leaf at which it is alive.

    owner: the Einsum whose private store it is, None for the backing store of a floating tensor and for one that serves
    several Einsums. raised: it stands above the Einsum's own branch, or serves several.
    """

    memory: int
    bits: int
    first: int
    last: int
    tensor: str
    owner: int | None
    raised: bool


def tile_values(facts: Facts, i: int, tensor: str, extents: Mapping[str, int]) -> int:
    """Values of a tile of the tensor with these extents of the variables of Einsum i."""
    total = 1
    plain = facts.plain[i][tensor]
    if plain is not None:
        for variable in plain:
            total *= extents[variable]
        return total
    access = facts.einsums[i].access(tensor)
    if access is facts.einsums[i].output:  # each position once: no gaps
        return prod(extents[v] for v in access.variables)
    for index, size in zip(access.indices, facts.workload.shape(access), strict=True):
        total *= extents[index.variables[0]] if index.simple else window_positions(facts, index, size, extents)
    return total


def window_positions(facts: Facts, index: Index, size: int, extents: Mapping[str, int]) -> int:
    """Positions that a tile has along a rank of this size that is read through windows."""
    if all(extents[v] == facts.extents[v] for v in index.variables):
        return max(0, min(size, index.constant + index.extent(extents)) - max(0, index.constant))
    return min(size, index.extent(extents))


def tile_bits(facts: Facts, i: int, memory: int, tensor: str, extents: Mapping[str, int]) -> int:
    """Bits of one tile in the memory, all its turns together."""
    return tile_values(facts, i, tensor, extents) * facts.width(i, memory, tensor)


def backing_bits(facts: Facts, memory: int, tensor: str, extents: Mapping[str, int]) -> int:
    """Bits of the tile that a backing store keeps for all Einsums that access the tensor.

    extents: of the variables of the first of them. Along a rank that is not whole, or that one of them reads through
    windows, it has all that they reach; of a tensor with views all along the ranks that these do not have in common.
    """
    users = facts.users[tensor]
    if tensor not in facts.reached:
        return tile_bits(facts, users[0], memory, tensor, extents)
    cut, total = facts.workload.parted.get(tensor, ()), 1
    for rank, size in enumerate(facts.workload.tensor(tensor).shape):
        if rank in cut and tensor in facts.workload.viewed:
            total *= size
            continue
        indices = [facts.einsums[i].access(tensor).indices[rank] for i in users]
        if rank not in cut and all(index.simple for index in indices):
            total *= extents[indices[0].variables[0]]
        else:
            ends = [index.constant + index.extent(facts.extents) for index in indices]
            total *= min(size, max(ends)) - max(0, min(index.constant for index in indices))
    return total * facts.width(users[0], memory, tensor)


def held(facts: Facts, state: State) -> list[LiveTile]:
    """Every tile in a memory of limited size, but for those of private branches, which `own_bits` sums up."""
    frame = frame_of(facts, state)
    found: list[LiveTile] = []
    for tensor, memory, depth in zip(facts.floating, state.homes, state.depths, strict=True):
        if facts.memories[memory].size is not None:
            found.append(_backing(facts, state, frame, tensor.name, memory, depth))
    for name, memory in facts.fixed.items():
        if (memory == 0 or name in facts.anchored) and facts.memories[memory].size is not None:
            found.append(_backing(facts, state, frame, name, memory, 0))
    for i in range(facts.count):
        found.extend(_raised(facts, state, frame, i))
    for one in state.lent:
        memory, lent, level, _, first = one
        if facts.memories[memory].size is not None:
            bits = tile_bits(facts, first, memory, lent, _extents(facts, state, first, level))
            span = _alive(state, frame, first, frame.served(one)[-1], level)
            found.append(LiveTile(memory, bits, *span, lent, None, True))
    return found


def _alive(state: State, frame: Frame, first: int, last: int, level: int) -> tuple[int, int]:
    """First and last leaf in a temporal loop below the store that the first or last user is in, these included."""
    start, stop = first, last
    for end in (first, last):
        for at in range(level, len(state.shared[end])):
            if state.shared[end][at][2] is None:
                run = frame.run(end, at + 1)
                start, stop = min(start, run[0]), max(stop, run[1])
                break
    return start, stop


def _backing(facts: Facts, state: State, frame: Frame, tensor: str, memory: int, depth: int) -> LiveTile:
    """The tile in a backing store below so many shared loops; that of a persistent tensor is always alive."""
    first, last = facts.users[tensor][0], facts.users[tensor][-1]
    bits = backing_bits(facts, memory, tensor, _extents(facts, state, first, depth))
    if facts.workload.tensor(tensor).persistent:
        return LiveTile(memory, bits * facts.workload.repeat, 0, facts.count - 1, tensor, None, False)
    return LiveTile(memory, bits, *_alive(state, frame, first, last, depth), tensor, None, False)


def _extents(facts: Facts, state: State, i: int, level: int) -> dict[str, int]:
    """Extents of the variables of Einsum i below its `level` outermost shared loops."""
    found = left_below(facts, state, i, level)
    return _at_most_whole(facts, state, i, found) if state.owns[i].covers else found


def _at_most_whole(facts: Facts, state: State, i: int, extents: dict[str, int]) -> dict[str, int]:
    """The extents, where no loop of a variable that is cut unevenly stands above its own."""
    for variable, _ in state.owns[i].covers:
        extents[variable] = min(extents[variable], facts.extents[variable])
    return extents


def _raised(facts: Facts, state: State, frame: Frame, i: int) -> Iterator[LiveTile]:
    for memory, tensor, level, below in state.owns[i].raised:
        if facts.memories[memory].size is None or facts.anchored.get(tensor) == memory:
            continue
        bits = tile_bits(facts, i, memory, tensor, _extents(facts, state, i, level))
        if _kept(facts, state, frame, i, tensor, level, below):
            span = frame.run(i, level + below)
        else:
            span = _alive(state, frame, i, i, level)
        yield LiveTile(memory, bits, *span, tensor, i, True)


def _kept(facts: Facts, state: State, frame: Frame, i: int, tensor: str, level: int, below: bool) -> bool:
    """True if the store keeps its tile into the next visit: over a loop directly above that the tensor lacks."""
    if below and frame.parted(i, level):
        return False
    for at in range(level - 1, -1, -1):
        variable, _, axis = state.shared[i][at]
        if axis is None:
            return variable not in facts.relevant[i][tensor]
        if frame.parted(i, at):
            return False
    return False


def own_bits(facts: Facts, state: State, i: int) -> tuple[int, ...]:
    """Bits of the stores in the branch of Einsum i, memory by memory; they are all alive at its leaf."""
    mine = path_of(facts, state, i)
    bits = facts.weighed.get(mine)
    if bits is None:
        found = [0] * len(facts.memories)
        for memory, tensor, extents in own_tiles(facts, state, i):
            if facts.memories[memory].size is not None and facts.anchored.get(tensor) != memory:
                found[memory] += tile_bits(facts, i, memory, tensor, extents)
        bits = facts.weighed[mine] = tuple(found)
    return bits


def own_tiles(facts: Facts, state: State, i: int) -> Iterator[tuple[int, str, dict[str, int]]]:
    """(memory, tensor, extents below) of every store in the branch of Einsum i."""
    own = state.owns[i]
    extents = left_below(facts, state, i)
    waiting = list(own.spatial)
    for (memory, tensor), segment in zip(own.stores, own.segments, strict=False):
        for variable, trips in segment:
            extents[variable] //= trips
        for one in [one for one in waiting if facts.axis_place[one[0]] < facts.place[memory]]:
            extents[one[1]] //= one[2]
            waiting.remove(one)
        yield memory, tensor, _at_most_whole(facts, state, i, dict(extents))


def loads(facts: Facts, state: State) -> list[list[int]]:
    """Bits alive in each memory of limited size at each leaf."""
    bits = [own_bits(facts, state, i) for i in range(facts.count)]
    common = state.known.get("held")
    if not isinstance(common, list):
        common = state.known["held"] = [[0] * facts.count for _ in facts.memories]
        for tile in held(facts, state):
            row = common[tile.memory]
            for leaf in range(tile.first, tile.last + 1):
                row[leaf] += tile.bits
    found = [list(row) for row in common]
    for i, mine in enumerate(bits):
        for memory, more in enumerate(mine):
            if more:
                found[memory][i] += more
    return found


def _grouped(facts: Facts, state: State) -> list[list[int]]:
    """As `loads`, where Einsums run at the same time: the leaf that has most has what the whole tree takes."""
    workload, machine, found = facts.workload, facts.machine, loads(facts, state)
    taken = {one.memory: one.bits for one in occupancy(workload, machine, paths(workload, decode(facts, state)))}
    for row, memory in zip(found, facts.memories, strict=True):
        leaf = row.index(max(row))
        row[:] = [0] * facts.count
        row[leaf] = taken.get(memory.name, 0)
    return found


def overfull(facts: Facts, state: State, i: int) -> int | None:
    """The first memory that the stores in the branch of Einsum i alone overfill; None if they fit."""
    for memory, bits in enumerate(own_bits(facts, state, i)):
        size = facts.memories[memory].size
        if size is not None and bits > size:
            return memory
    return None


def overflow(facts: Facts, state: State) -> tuple[int, int] | None:
    """(memory, leaf) of the most overfull moment; None if everything fits."""
    worst, where = 1.0, None
    for memory, row in enumerate(_grouped(facts, state) if state.groups else loads(facts, state)):
        size = facts.memories[memory].size
        if size is None:
            continue
        most = max(row)
        full = most / size if size else float("inf") if most else 0.0
        if most > size and full > worst:
            worst, where = full, (memory, row.index(most))
    return where

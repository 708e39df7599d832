"""What every partial cascade costs at least to complete: the join without rooms, walked from its end.

Comes in: the blocks of every Einsum, as the joiner gets them. Goes out: the least cost of what follows, for every state
that a partial cascade can be in (what the next Einsum must match, and the tiles of the open loops), and the least cost
of a complete cascade through every row. Rooms can only rule cascades out, so both are lower bounds; where no
memory fills up they are exact.

Einsums of repeated layers meet the same states with the same rows: their joins are made once (`_Frame`). Argument:
docs/model/pruning.md, completions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np

from ....workload.einsum import Workload
from ..bounds.arc_consistency import chosen
from ..bounds.cutoff import Cutoff
from ..bounds.weighted_sums import Lines
from ..fusion.explore import PmappingGroup
from ..fusion.serving import NOTHING
from ..numerics.pareto import FloatArray, IntArray, pack
from .join import Compatibility, Joiner
from .matching import matching_pairs

MOST_EDGES = 10_000_000  # kept at once; beyond, the join goes without


class _Frame:
    """Names of tensors as an Einsum sees them: by the first Einsum that accesses them, counted from here."""

    def __init__(self, workload: Workload, first: dict[str, tuple[int, int]], position: int) -> None:
        self._workload, self._first, self._position = workload, first, position

    def near(self, compatibility: Compatibility) -> Compatibility:
        return self._renamed(compatibility, self.name)

    def far(self, compatibility: Compatibility) -> Compatibility:
        return self._renamed(compatibility, self._tensor)

    def name(self, tensor: str) -> str:
        position, number = self._first[tensor]
        return f"{position - self._position} {number}"

    def _tensor(self, name: str) -> str:
        position, number = map(int, name.split())
        return self._workload.einsums[self._position + position].tensors[number]

    @staticmethod
    def _renamed(compatibility: Compatibility, rename: Callable[[str], str]) -> Compatibility:
        live = (replace(x, tensor=rename(x.tensor)) for x in compatibility.live)
        served = NOTHING if compatibility.served == NOTHING else compatibility.served.renamed(rename)
        return replace(compatibility, live=tuple(sorted(live, key=lambda x: x.tensor)), served=served)


@dataclass(frozen=True, eq=False)
class _States:
    """What partial cascades can look like before an Einsum, names as it sees them: tiles [n, open loops] for each
    compatibility, numbered one after the other."""

    tiles: dict[Compatibility, IntArray]

    def __len__(self) -> int:
        return sum(map(len, self.tiles.values()))

    @property
    def key(self) -> Hashable:
        return tuple((one, tiles.tobytes()) for one, tiles in self.tiles.items())

    def starts(self) -> dict[Compatibility, int]:
        found, start = {}, 0
        for one, tiles in self.tiles.items():
            found[one] = start
            start += len(tiles)
        return found


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of an Einsum, of which those with one template and equal tiles are one kind.

    kinds [rows]: the kind of each; cost [kinds, c]: the least in each column.
    """

    blocks: list[PmappingGroup]
    tiles: list[IntArray]
    kinds: IntArray
    cost: FloatArray


@dataclass(frozen=True, eq=False)
class _Joins:
    """All joins of the states before an Einsum with its rows: numbers of the state, the kind of row, the state after.

    after: by the names that the next Einsum sees."""

    after: _States
    left: IntArray
    kind: IntArray
    result: IntArray


class TooMany(Exception):
    """There are more joins than can be kept."""


class Completions:
    """The least that follows each state, and the least cascade through each row, in the columns of `lines`."""

    def __init__(self, joiner: Joiner, lines: Lines, blocks: list[list[PmappingGroup]]) -> None:
        self.joiner, self.lines = joiner, lines
        workload = joiner.workload
        self._first: dict[str, tuple[int, int]] = {}
        for i, einsum in enumerate(workload.einsums):
            for number, tensor in enumerate(einsum.tensors):
                self._first.setdefault(tensor, (i, number))
        self._rows = self._kinds(blocks)
        self._joins = self._joined()
        self._walk()

    @classmethod
    def of(cls, joiner: Joiner, lines: Lines, blocks: list[list[PmappingGroup]]) -> Completions | None:
        """None if there are too many joins."""
        try:
            return cls(joiner, lines, blocks)
        except TooMany:
            return None

    # ---- joins ------------------------------------------------------------------------------------------------------

    def _kinds(self, blocks: list[list[PmappingGroup]]) -> list[_Rows]:
        known: dict[int, _Rows] = {}
        for mine in blocks:
            if id(mine) not in known:
                known[id(mine)] = _rows(mine, self.lines)
        return [known[id(mine)] for mine in blocks]

    def _joined(self) -> list[_Joins]:
        states = _States({Compatibility((), ()): np.zeros((1, 0), np.int64)})
        known: dict[Hashable, _Joins] = {}
        found, edges = [], 0
        for position in range(len(self._rows)):
            pattern = (self._pattern(position), states.key)
            if pattern not in known:
                self.joiner.checkpoint()
                known[pattern] = self._step(position, states)
                edges += len(known[pattern].left)
                if edges > MOST_EDGES:
                    raise TooMany
            found.append(known[pattern])
            states = found[-1].after
        return found

    def _frame(self, position: int) -> _Frame:
        return _Frame(self.joiner.workload, self._first, position)

    def _pattern(self, position: int) -> Hashable:
        """Equal for two Einsums only if equal states lead to equal states: rows, and what a join asks of tensors."""
        workload, frame = self.joiner.workload, self._frame(position)
        einsum = workload.einsums[position]
        tensors = tuple(
            (
                frame.name(access.tensor),
                access.tensor in workload.producers,
                len(workload.consumers[access.tensor]) + (access.tensor in workload.producers) > 1,
                self.joiner.still_needed(position, access.tensor),
                tuple((access.rank_of(v), self._alone(position, access.tensor, v)) for v in einsum.variables),
            )
            for access in einsum.accesses
        )
        served = self.joiner.serving and self.joiner.serving.knows(position, frame.name)
        return id(self._rows[position]), tuple(workload.extents[v] for v in einsum.variables), tensors, served

    def _alone(self, position: int, tensor: str, variable: str) -> bool:
        access = self.joiner.workload.einsums[position].access(tensor)
        rank = access.rank_of(variable)
        return rank is not None and access.indices[rank].simple

    def _step(self, position: int, states: _States) -> _Joins:
        joiner, here, there = self.joiner, self._frame(position), self._frame(position + 1)
        known = [(here.far(one), tiles) for one, tiles in states.tiles.items()]
        starts = list(states.starts().values())
        meeting = joiner.meeting(position, [one for one, _ in known])
        parts: dict[Compatibility, list[tuple[IntArray, IntArray, IntArray]]] = {}
        start = 0
        rows = self._rows[position]
        for block, tiles in zip(rows.blocks, rows.tiles, strict=True):
            mine = joiner.accesses(position, block)
            for number in meeting.with_block(joiner.axes(block.structure.loops), mine):
                before, left_tiles = known[number]
                left, right = matching_pairs(left_tiles, tiles[:, : len(before.axes)])
                after = joiner.after(position, before, block, mine) if len(left) else None
                if after is not None:
                    made = tiles[right][:, : len(after.axes)]
                    parts.setdefault(after, []).append((left + starts[number], right + start, made))
            start += len(tiles)
        return _gathered({there.near(after): some for after, some in parts.items()})

    # ---- bounds -----------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        """The least to each state, from it, and through each kind of row."""
        width = self._rows[0].cost.shape[1]
        behind = [np.zeros((1, width))]
        for rows, joins in zip(self._rows, self._joins, strict=True):
            total = behind[-1][joins.left] + rows.cost[joins.kind]
            behind.append(_least(joins.result, total, len(joins.after)))
        self.ahead = [np.zeros((len(self._joins[-1].after), width))]
        self.through: list[FloatArray] = []
        for rows, joins, before in zip(self._rows[::-1], self._joins[::-1], behind[-2::-1], strict=True):
            after = self.ahead[-1][joins.result]
            self.through.append(_least(joins.kind, before[joins.left] + after, len(rows.cost)) + rows.cost)
            self.ahead.append(_least(joins.left, after + rows.cost[joins.kind], len(before)))
        self.ahead.reverse()
        self.through.reverse()

    def least_limit(self) -> float:
        """The least value of the objective that no complete cascade is known to be above."""
        low, high = 0.0, self.lines.aim.limit
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            if replace(self.lines, aim=replace(self.lines.aim, limit=middle)).beyond(self.ahead[0]).all():
                low = middle
            else:
                high = middle
        return high

    def towards(self, aim: Cutoff, blocks: list[list[PmappingGroup]]) -> list[list[PmappingGroup]]:
        """The rows through which some cascade, rooms aside, is not beyond the aim, which `beyond` asks of from now
        on."""
        self.lines = replace(self.lines, aim=aim)
        kept: dict[Hashable, list[PmappingGroup]] = {}
        found = []
        for mine, rows, through in zip(blocks, self._rows, self.through, strict=True):
            cost = self.lines.extend(np.concatenate([block.cost for block in mine]))
            good = ~self.lines.beyond(through[rows.kinds] + (cost - rows.cost[rows.kinds]))
            key = (id(mine), good.tobytes())
            if key not in kept:
                kept[key] = chosen(mine, good)
            found.append(kept[key])
        return found

    def beyond(self, position: int, after: Compatibility, tiles: IntArray, cost: FloatArray) -> np.ndarray:
        """Mask of partial cascades up to `position` that lead to nothing within the aim."""
        return self.lines.beyond(self.lines.extend(cost) + self._ahead_of(position, after, tiles))

    def _ahead_of(self, position: int, after: Compatibility, tiles: IntArray) -> FloatArray:
        """The least of what follows the Einsum, for each partial cascade; infinite where nothing can follow."""
        states = self._joins[position].after
        near = self._frame(position + 1).near(after)
        found = np.full((len(tiles), self.ahead[0].shape[1]), np.inf)
        if near not in states.tiles:
            return found
        known, start = states.tiles[near], self._starts(position)[near]
        numbers = pack(np.concatenate([known, tiles]))
        table, asked = numbers[: len(known)], numbers[len(known) :]
        order = np.argsort(table)
        at = np.minimum(np.searchsorted(table[order], asked), len(known) - 1)
        there = table[order][at] == asked
        found[there] = self.ahead[position + 1][start + order[at[there]]]
        return found

    def _starts(self, position: int) -> dict[Compatibility, int]:
        return self._joins[position].after.starts()


def _rows(mine: list[PmappingGroup], lines: Lines) -> _Rows:
    kinds, tiles, start = [], [], 0
    for block in mine:
        _, first, inverse = np.unique(pack(block.tiles), return_index=True, return_inverse=True)
        tiles.append(block.tiles[first])
        kinds.append(inverse.reshape(-1) + start)
        start += len(first)
    kind = np.concatenate(kinds)
    cost = lines.extend(np.concatenate([block.cost for block in mine]))
    return _Rows(mine, tiles, kind, _least(kind, cost, start))


def _gathered(parts: dict[Compatibility, list[tuple[IntArray, IntArray, IntArray]]]) -> _Joins:
    """The joins, with equal states after them as one."""
    tiles, columns, start = {}, [], 0
    for after, some in parts.items():
        left, right, made = (np.concatenate(column) for column in zip(*some, strict=True))
        _, first, inverse = np.unique(pack(made), return_index=True, return_inverse=True)
        tiles[after] = made[first]
        columns.append((left, right, inverse.reshape(-1) + start))
        start += len(first)
    if not columns:
        empty = np.zeros(0, np.int64)
        return _Joins(_States({}), empty, empty, empty)
    left, kind, result = (np.concatenate(column) for column in zip(*columns, strict=True))
    return _Joins(_States(tiles), left, kind, result)


def _least(groups: IntArray, values: FloatArray, many: int) -> FloatArray:
    """The least value per group, column by column; infinite for a group without any."""
    found = np.full((many, values.shape[1]), np.inf)
    for c in range(values.shape[1]):
        np.minimum.at(found[:, c], groups, values[:, c])
    return found

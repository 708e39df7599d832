"""What every partial cascade costs at least to complete: the join without rooms, walked from its end.

Comes in: the blocks of every Einsum, as the joiner gets them. Goes out: the least cost of what follows, for every state
that a partial cascade can be in (the Einsums that have run, what the next one must match, the tiles of the open loops),
and the least cost of a complete cascade through every row. Rooms can only rule cascades out, so both are lower bounds;
where no memory fills up they are exact.

Einsums of repeated layers meet the same states with the same rows: their joins are made once (`_Frame`). Argument:
docs/model/pruning.md, completions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ....dataclass import dataclass
from ....once import once_each
from ....workload.einsum import Workload
from ..bounds.arc_consistency import chosen
from ..bounds.cutoff import Cutoff
from ..bounds.weighted_sums import Lines
from ..einsums.orders import JoinStep, Layer
from ..einsums.users import is_shared
from ..fusion.explore import PmappingGroup
from ..fusion.serving import NOTHING
from ..numerics.pareto import FloatArray, IntArray, pack
from .compatibility import Compatibility
from .join import Joiner
from .matching import matching_pairs

Passing = dict[int, Callable[[Compatibility], FloatArray]]  # by the Einsums that have run: [before and after, columns]
MOST_EDGES = 10_000_000  # kept at once; beyond, the join goes without


class _Frame:
    """Names of tensors where some Einsums have run: by the first Einsum in the program that accesses them, counted from
    the first that has not run."""

    def __init__(self, workload: Workload, first: dict[str, tuple[int, int]], done: int) -> None:
        self._workload, self._first, self._position = workload, first, base(done)

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
        loans = frozenset(replace(x, tensor=rename(x.tensor)) for x in compatibility.loans)
        return replace(compatibility, live=tuple(sorted(live, key=lambda x: x.tensor)), served=served, loans=loans)


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

    @cached_property
    def starts(self) -> dict[Compatibility, int]:
        """The number of the first state of each compatibility."""
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

    after: by the names of those who come next."""

    after: _States
    left: IntArray
    kind: IntArray
    result: IntArray


@dataclass(frozen=True, eq=False)
class _Edge:
    """The joins of a step. numbers: of their states after it among all states of these Einsums."""

    step: JoinStep
    joins: _Joins
    numbers: IntArray

    @property
    def result(self) -> IntArray:
        return self.numbers[self.joins.result]


class TooMany(Exception):
    """There are more joins than can be kept."""


class Completions:
    """The least that follows each state, and the least cascade through each row, in the columns of `lines`.

    passing: by the Einsums that have run, what is known to come before and after some states, in the columns of
    `lines`. Raises TooMany if there are too many joins.
    """

    def __init__(
        self,
        joiner: Joiner,
        lines: Lines,
        blocks: list[list[PmappingGroup]],
        layers: Sequence[Layer],
        passing: Passing | None = None,
    ) -> None:
        self.joiner, self.lines = joiner, lines
        workload = joiner.workload
        self._first: dict[str, tuple[int, int]] = {}
        for i, einsum in enumerate(workload.einsums):
            for number, tensor in enumerate(einsum.tensors):
                self._first.setdefault(tensor, (i, number))
        self._rows = self._kinds(blocks)
        self._states: dict[int, _States] = {}
        self._edges = self._joined(layers)
        self._passing = {done: self._passed(done, known) for done, known in (passing or {}).items()}
        self._walk()

    # ---- joins ------------------------------------------------------------------------------------------------------

    def _kinds(self, blocks: list[list[PmappingGroup]]) -> list[_Rows]:
        known: dict[int, _Rows] = {}
        for mine in blocks:
            if id(mine) not in known:
                known[id(mine)] = _rows(mine, self.lines)
        return [known[id(mine)] for mine in blocks]

    def _joined(self, layers: Sequence[Layer]) -> list[_Edge]:
        """The joins of every step, those before others first."""
        self._states[0] = _States({Compatibility((), ()): np.zeros((1, 0), np.int64)})
        known: dict[Hashable, _Joins] = {}
        united: dict[Hashable, tuple[_States, list[IntArray]]] = {}
        found, edges = list[_Edge](), 0
        for done, steps in ((done, steps) for layer in layers for done, steps in layer.items()):
            mine = []
            for step in steps:
                states = self._states[step.before]
                pattern = (self._pattern(step), states.key)
                if pattern not in known:
                    self.joiner.checkpoint()
                    known[pattern] = self._step(step, states, MOST_EDGES - edges)
                    edges += len(known[pattern].left)
                mine.append(known[pattern])
            same = tuple(map(id, mine))
            if same not in united:
                united[same] = _united([joins.after for joins in mine])
            self._states[done], numbers = united[same]
            found += map(_Edge, steps, mine, numbers)
        return found

    def _frame(self, done: int) -> _Frame:
        return _Frame(self.joiner.workload, self._first, done)

    def _pattern(self, step: JoinStep) -> Hashable:
        """Equal for two steps only if equal states lead to equal states: rows, what a join asks of tensors, and which
        Einsums have run, counted from the first that has not."""
        workload, frame, position = self.joiner.workload, self._frame(step.before), step.position
        einsum, start = workload.einsums[position], base(step.before)
        tensors = tuple(
            (
                frame.name(access.tensor),
                access.tensor in workload.producers,
                access.tensor == einsum.output.tensor,
                is_shared(workload, access.tensor),
                self.joiner.still_needed(step, access.tensor),
                tuple((access.rank_of(v), self.joiner.alone(access, v) is not None) for v in einsum.variables),
            )
            for access in einsum.accesses
        )
        served = self.joiner.serving and self.joiner.serving.knows(step, frame.name)
        extents = tuple(workload.extents[v] for v in einsum.variables)
        return id(self._rows[position]), step.before >> start, position - start, extents, tensors, served

    def _step(self, step: JoinStep, states: _States, most: int) -> _Joins:
        """All joins of a step. Raises TooMany where there are more than `most`."""
        joiner, here, there = self.joiner, self._frame(step.before), self._frame(step.done)
        position = step.position
        known = [(here.far(one), tiles) for one, tiles in states.tiles.items()]
        starts = list(states.starts.values())
        meeting = joiner.meeting(position, [one for one, _ in known])
        parts: dict[Compatibility, list[tuple[IntArray, IntArray, IntArray]]] = {}
        start = edges = 0
        rows = self._rows[position]
        for block, tiles in zip(rows.blocks, rows.tiles, strict=True):
            mine = joiner.accesses(position, block)
            for number in meeting.with_block(joiner.axes(block.structure.loops), mine):
                joiner.checkpoint()
                before, left_tiles = known[number]
                left, right = matching_pairs(left_tiles, tiles[:, : len(before.axes)])
                after = joiner.after(step, before, block, mine) if len(left) else None
                if after is not None:
                    edges += len(left)
                    if edges > most:
                        raise TooMany
                    made = tiles[right][:, : len(after.axes)]
                    parts.setdefault(after, []).append((left + starts[number], right + start, made))
            start += len(tiles)
        return _gathered({there.near(after): some for after, some in parts.items()}, joiner.checkpoint)

    # ---- bounds -----------------------------------------------------------------------------------------------------

    def _passed(self, done: int, known: Callable[[Compatibility], FloatArray]) -> tuple[FloatArray, FloatArray]:
        """What is known to come before and after each state of these Einsums."""
        frame, tiles = self._frame(done), self._states[done].tiles
        width = self._rows[0].cost.shape[1]
        costs = np.array([known(frame.far(one)) for one in tiles]).reshape(-1, 2, width)
        each = np.repeat(costs, [len(rows) for rows in tiles.values()], axis=0)
        return each[:, 0], each[:, 1]

    def _walk(self) -> None:
        """The least to each state, from it, and through each kind of row."""
        width = self._rows[0].cost.shape[1]
        endless = {done: np.full((len(states), width), np.inf) for done, states in self._states.items()}
        behind = {done: least.copy() for done, least in endless.items()}
        behind[0] = np.zeros((1, width))
        for edge in self._edges:
            self.joiner.checkpoint()
            joins, rows = edge.joins, self._rows[edge.step.position]
            if edge.step.before in self._passing:
                behind[edge.step.before] = np.maximum(behind[edge.step.before], self._passing[edge.step.before][0])
            total = behind[edge.step.before][joins.left] + rows.cost[joins.kind]
            behind[edge.step.done] = _least(edge.result, total, behind[edge.step.done])
        last = (1 << len(self._rows)) - 1
        self.ahead = {**endless, last: np.zeros_like(endless[last])}
        self.through = [np.full_like(rows.cost, np.inf) for rows in self._rows]
        for edge in reversed(self._edges):
            self.joiner.checkpoint()
            (position, before), joins = edge.step, edge.joins
            if edge.step.done in self._passing:
                self.ahead[edge.step.done] = np.maximum(self.ahead[edge.step.done], self._passing[edge.step.done][1])
            total = self.ahead[edge.step.done][edge.result] + self._rows[position].cost[joins.kind]
            self.through[position] = _least(joins.kind, behind[before][joins.left] + total, self.through[position])
            self.ahead[before] = _least(joins.left, total, self.ahead[before])

    def least_limit(self) -> float:
        """The least value of the objective that no complete cascade is known to be above."""
        low, high = 0.0, self.lines.cutoff.limit
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            if replace(self.lines, cutoff=replace(self.lines.cutoff, limit=middle)).beyond(self.ahead[0]).all():
                low = middle
            else:
                high = middle
        return high

    def towards(self, cutoff: Cutoff, blocks: list[list[PmappingGroup]]) -> list[list[PmappingGroup]]:
        """The rows through which some cascade, rooms aside, is not beyond the cutoff, which `beyond` asks of from now
        on."""
        self.lines = replace(self.lines, cutoff=cutoff)
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

    def beyond(self, done: int, compatibility: Compatibility, tiles: IntArray, cost: FloatArray) -> np.ndarray:
        """Mask of partial cascades of these Einsums that lead to nothing within the cutoff."""
        return self.lines.beyond(self.lines.extend(cost) + self._ahead_of(done, compatibility, tiles))

    def _ahead_of(self, done: int, after: Compatibility, tiles: IntArray) -> FloatArray:
        """The least of what follows these Einsums, for each partial cascade; infinite where nothing can follow."""
        found = np.full((len(tiles), self.ahead[0].shape[1]), np.inf)
        place = self._place(done, after)
        if place is None:
            return found
        known, start = place
        numbers = pack(np.concatenate([known, tiles]))
        table, asked = numbers[: len(known)], numbers[len(known) :]
        order = np.argsort(table)
        at = np.minimum(np.searchsorted(table[order], asked), len(known) - 1)
        there = table[order][at] == asked
        found[there] = self.ahead[done][start + order[at[there]]]
        return found

    @once_each
    def _place(self, done: int, after: Compatibility) -> tuple[IntArray, int] | None:
        """The tiles of the states of a compatibility, and the number of the first; None if it is none of theirs."""
        states, near = self._states[done], self._frame(done).near(after)
        return (states.tiles[near], states.starts[near]) if near in states.tiles else None


def base(done: int) -> int:
    """The place of the first Einsum of the program that has not run."""
    return (~done & (done + 1)).bit_length() - 1


def _rows(mine: list[PmappingGroup], lines: Lines) -> _Rows:
    kinds, tiles, start = [], [], 0
    for block in mine:
        _, first, inverse = np.unique(pack(block.tiles), return_index=True, return_inverse=True)
        tiles.append(block.tiles[first])
        kinds.append(inverse.reshape(-1) + start)
        start += len(first)
    kind = np.concatenate(kinds)
    cost = lines.extend(np.concatenate([block.cost for block in mine]))
    return _Rows(mine, tiles, kind, _least(kind, cost, np.full((start, cost.shape[1]), np.inf)))


def _gathered(
    parts: dict[Compatibility, list[tuple[IntArray, IntArray, IntArray]]], checkpoint: Callable[[], None]
) -> _Joins:
    """The joins, with equal states after them as one."""
    tiles, columns, start = {}, [], 0
    for after, some in parts.items():
        checkpoint()
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


def _united(parts: list[_States]) -> tuple[_States, list[IntArray]]:
    """All of the states, each once; for each part the numbers that its states have there."""
    if len(parts) == 1:
        return parts[0], [np.arange(len(parts[0]))]
    tiles: dict[Compatibility, IntArray] = {}
    numbers = [np.zeros(len(part), np.int64) for part in parts]
    starts, start = [part.starts for part in parts], 0
    for one in dict.fromkeys(one for part in parts for one in part.tiles):
        mine = [(i, part.tiles[one]) for i, part in enumerate(parts) if one in part.tiles]
        every = np.concatenate([some for _, some in mine])
        _, first, inverse = np.unique(pack(every), return_index=True, return_inverse=True)
        tiles[one] = every[first]
        places = np.split(inverse.reshape(-1) + start, np.cumsum([len(some) for _, some in mine])[:-1])
        for (i, some), found in zip(mine, places, strict=True):
            numbers[i][starts[i][one] : starts[i][one] + len(some)] = found
        start += len(first)
    return _States(tiles), numbers


def _least(groups: IntArray, values: FloatArray, known: FloatArray) -> FloatArray:
    """The least value per group, column by column, or that which is known of it."""
    found = known.copy()
    for c in range(values.shape[1]):
        np.minimum.at(found[:, c], groups, values[:, c])
    return found

"""All choices of trips of one skeleton, priced many at a time in machine code (`row_kernel`).

Comes in: a state, whose temporal loops are open, and rows of trips for them. Goes out: the objective of each row. A
skeleton is prepared in a millisecond or two, because nothing is compiled for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from ...dataclass import dataclass
from ...mapspace.ffm.encoding.rooms import held, own_tiles, tile_bits
from ...mapspace.ffm.encoding.state import State, branch_items, frame_of, tidy, word
from ..resources import unlimited
from . import row_kernel
from .bursts import Floats, Ints
from .points import Points

Above = tuple[int, str]  # the column of a loop, -1 if it stands, and its variable
Room = tuple[int, int, int, float, list[int]]  # memory, first and last leaf, bits, columns that divide them


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """A temporal loop whose trips are a column. einsum: the first that it stands above; shared: whether others have
    it, too, so that it needs two trips at least; variable: by the name that this Einsum has for it."""

    einsum: int
    variable: str
    trips: int
    shared: bool


class TripRows:
    """Prices of the rows of one skeleton.

    loops: the open loops, one a column of the rows. A private loop may have one trip, then it is none; spatial loops
    stand. Two rows with equal trees are two rows.
    """

    def __init__(self, points: Points, state: State) -> None:
        assert self.able(points, state)
        self.points, self.state, self.facts = points, state, points.encoding.of(state)
        self.loops: list[OpenLoop] = []
        self._tables = points.bursts.stacked(self.facts, tuple(own.unit for own in state.owns))
        self._paths()
        self._rooms()
        self._least = np.array([2 if loop.shared else 1 for loop in self.loops], dtype=np.int64)

    @staticmethod
    def able(points: Points, state: State) -> bool:
        """True if the machine code speaks of every Einsum: plain indices, no parts nor views, perfect tiles, and no
        store that serves several."""
        facts = points.facts
        return (
            points.additive
            and not state.lent
            and not state.groups
            and not any(points.bursts.uneven)
            and not facts.reached
            and not facts.ragged
            and not facts.anchored
        )

    @property
    def trips(self) -> Ints:
        """The row of the state itself."""
        return np.array([loop.trips for loop in self.loops], dtype=np.int64)

    def price(self, trips: Ints) -> Floats:
        """The objective of every row, infinite where it is no tiling of the extents or does not fit.

        trips: int64 [rows, loops]. Values are those of `evaluate` to some units in the last place.
        """
        rows, one = np.ascontiguousarray(trips, dtype=np.int64), self._tables
        found = np.empty(len(rows))
        with unlimited():
            row_kernel.price_rows(
                rows, self._items, self._column, self._ends, one.extents, self._least, self._tiles, self._divided,
                self._bits, one.sizes, one.rel, one.values, one.written, one.joined, one.width, one.mem, one.scal,
                found,
            )  # fmt: skip
        return found

    def at(self, row: Ints) -> State:
        """The state of one row."""
        facts, old = self.facts, self.state
        own = {i: iter([n for loop, n in zip(self.loops, row, strict=True) if loop.einsum == i and not loop.shared])
               for i in range(facts.count)}  # fmt: skip
        shared, owns = [], []
        for i in range(facts.count):
            places = [place for place, _ in self._shared[i]]
            shared.append(
                tuple(
                    (variable, trips if place < 0 else int(row[place]), axis)
                    for (variable, trips, axis), place in zip(old.shared[i], places, strict=True)
                )
            )
            segments = tuple(tuple((v, int(next(own[i]))) for v, _ in segment) for segment in old.owns[i].segments)
            owns.append(tidy(facts, replace(old.owns[i], segments=segments)))
        return replace(old, shared=tuple(shared), owns=tuple(owns), known={})

    def _paths(self) -> None:
        """Items of all paths, the column of each, and per Einsum the open loops above each of its items."""
        facts, state = self.facts, self.state
        frame, columns = frame_of(facts, state), dict[tuple[int, int], int]()
        made, column, ends = [], list[int](), []
        self._shared: list[list[Above]] = []
        for i in range(facts.count):
            path, levels = word(facts, state, i)[:-1], list[Above]()
            for item in path:
                place, level = -1, len(levels)
                if item[0] in ("for", "par") and level < len(state.shared[i]):
                    if item[0] == "for":
                        place = columns.setdefault((frame.run(i, level + 1)[0], level), len(self.loops))
                    levels.append((place, item[-2]))
                elif item[0] == "for":
                    place = len(self.loops)
                if place == len(self.loops):
                    self.loops.append(OpenLoop(i, item[1], item[2], level < len(state.shared[i])))
                column.append(place)
            self._shared.append(levels)
            made.append(self._tables.tables[i].items(path))
            ends.append(len(column))
        self._items, self._column = np.concatenate(made), np.array(column, dtype=np.int64)
        self._ends = np.array(ends, dtype=np.int64)

    def _rooms(self) -> None:
        """Every tile in a memory of limited size: its bits if no open loop divided it, and which ones do."""
        tiles, divided, bits = [], list[int](), []
        for memory, first, last, most, columns in (*self._held(), *self._private()):
            tiles.append((memory, first, last, len(divided), len(divided) + len(columns)))
            divided += columns
            bits.append(most)
        self._tiles = np.array(tiles, dtype=np.int64).reshape(-1, 5)
        self._divided, self._bits = np.array(divided, dtype=np.int64), np.array(bits, dtype=float)

    def _held(self) -> Iterator[Room]:
        """Tiles of backing stores, and of own ones above a branch."""
        facts, state = self.facts, self.state
        for tile in held(facts, state):
            if tile.owner is None:
                number = facts.floats.get(tile.tensor)
                backed = number is not None and state.homes[number] > 0
                i, level = facts.users[tile.tensor][0], state.depths[number] if backed and number is not None else 0
            else:
                raised = {(memory, tensor): level for memory, tensor, level, _ in state.owns[tile.owner].raised}
                i, level = tile.owner, raised[tile.memory, tile.tensor]
            yield (
                tile.memory,
                tile.first,
                tile.last,
                *self._undivided(i, tile.tensor, tile.bits, self._shared[i][:level]),
            )

    def _private(self) -> Iterator[Room]:
        """Tiles in the branches of Einsums."""
        facts, state = self.facts, self.state
        begin = 0
        for i in range(facts.count):
            path, end = word(facts, state, i)[:-1], int(self._ends[i])
            branch = len(path) - len(branch_items(facts, state.owns[i], i))
            above = [
                (int(place), item[1])
                for item, place in zip(path, self._column[begin:end], strict=True)
                if item[0] == "for" and place >= 0
            ]
            passed = sum(1 for item in path[:branch] if item[0] == "for")
            weights = {(m, t): tile_bits(facts, i, m, t, extents) for m, t, extents in own_tiles(facts, state, i)}
            for item in path[branch:]:
                passed += item[0] == "for"
                if item[0] == "store" and facts.memories[item[1]].size is not None:
                    for tensor in item[2]:
                        bits = weights[item[1], tensor]
                        yield item[1], i, i, *self._undivided(i, tensor, bits, above[:passed])
            begin = end

    def _undivided(self, i: int, tensor: str, bits: int, above: list[Above]) -> tuple[float, list[int]]:
        """Bits of a tile below these open loops if none of them divided it, and the columns of those that do."""
        relevant = self.facts.relevant[i][tensor]
        columns = [place for place, variable in above if place >= 0 and variable in relevant]
        return float(bits * prod(self.loops[place].trips for place in columns)), columns

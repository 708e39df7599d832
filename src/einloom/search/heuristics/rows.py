"""All choices of trips of one skeleton, priced many at a time in machine code (`row_kernel`).

Comes in: a state, whose temporal loops are open, and rows of trips for them. Goes out: the objective of each row. A
skeleton is prepared in a millisecond or two, because nothing is compiled for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ...cost.formulas import terms
from ...cost.traffic.even import EvenPaths, Move, TensorOnPath, instances
from ...cost.traffic.uneven import Step
from ...cost.traffic.windowed import WindowPaths
from ...dataclass import dataclass
from ...mapspace.ffm.encoding.rooms import held, own_tiles, tile_bits
from ...mapspace.ffm.encoding.state import SPLIT, State, Word, branch_items, frame_of, path_of, tidy, word
from ..resources import unlimited
from . import row_kernel
from .bursts import Floats, Ints
from .points import Points
from .window_rows import LinkWindows, TileWindows

Above = tuple[int, str, int]  # the column of a loop, -1 if it stands, its variable and trips
Tile = tuple[float, list[int], TileWindows | None]  # bits without open loops, columns that divide them, windows
Room = tuple[int, int, int, Tile]  # memory, first and last leaf, what a tile takes there


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
        self._words = [word(self.facts, state, i) for i in range(self.facts.count)]
        self._windows: list[LinkWindows | TileWindows] = []
        self._paths()
        self._chains()
        self._links()
        self._rooms()
        self._least = np.array([2 if loop.shared else 1 for loop in self.loops], dtype=np.int64)

    @staticmethod
    def able(points: Points, state: State) -> bool:
        """True if closed forms price every path: no parts or views, perfect tiles, no store that serves several."""
        facts = points.facts
        apart = facts.workload.parted or facts.workload.viewed or facts.ragged or facts.anchored
        if not points.additive or state.lent or state.groups or apart:
            return False
        mine = points.encoding.of(state)
        paths = ((label, path_of(mine, state, i)) for i, label in enumerate(mine.label))
        return all(points.in_closed_form(label, path) is not None for label, path in paths)

    @property
    def trips(self) -> Ints:
        """The row of the state itself."""
        return np.array([loop.trips for loop in self.loops], dtype=np.int64)

    def price(self, trips: Ints) -> Floats:
        """The objective of every row, infinite where it is no tiling of the extents or does not fit.

        trips: int64 [rows, loops]. Values are those of `evaluate` to some units in the last place.
        """
        rows = np.ascontiguousarray(trips, dtype=np.int64)
        found = np.empty(len(rows))
        with unlimited():
            row_kernel.price_rows(
                rows, self._least, self._tiles, self._divided, self._bits, self._sizes, self._chain, self._chain_ends,
                self._whole, self._walk, self._slopes, self._last, self._bases, self._floors, self._ports, self._scal,
                self._factors(rows), self._of_link, found,
            )  # fmt: skip
        return found

    def _factors(self, rows: Ints) -> Floats:
        """What windows make of tiles and links, a column each; ones where the trips are no tiling."""
        found = np.ones((len(rows), len(self._windows)))
        if not self._windows:
            return found
        ends = zip([0, *self._chain_ends], self._chain_ends, self._whole, strict=False)
        tiled = np.ones(len(rows), dtype=bool)
        for begin, end, whole in ends:
            tiled &= rows[:, self._chain[begin:end]].prod(axis=1) == whole
        some = rows[tiled]
        for n, one in enumerate(self._windows):
            found[tiled, n] = one.factors(some)
        return found

    def at(self, row: Ints) -> State:
        """The state of one row."""
        facts, old = self.facts, self.state
        own = {i: iter([n for loop, n in zip(self.loops, row, strict=True) if loop.einsum == i and not loop.shared])
               for i in range(facts.count)}  # fmt: skip
        shared, owns = [], []
        for i in range(facts.count):
            places = [place for place, _, _ in self._shared[i]]
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
        """The column of each item of all paths, -1 for those that are no open loop; and those of shared loops."""
        facts, state = self.facts, self.state
        frame, columns = frame_of(facts, state), dict[tuple[int, int], int]()
        self._columns: list[list[int]] = []
        self._shared: list[list[Above]] = []
        for i, path in enumerate(self._words):
            levels, column = list[Above](), list[int]()
            for item in path:
                place, level = -1, len(levels)
                if item[0] in ("for", "par") and level < len(state.shared[i]):
                    if item[0] == "for":
                        place = columns.setdefault((frame.run(i, level + 1)[0], level), len(self.loops))
                    levels.append((place, item[-2], item[-1]))
                elif item[0] == "for":
                    place = len(self.loops)
                if place == len(self.loops):
                    self.loops.append(OpenLoop(i, item[1], item[2], level < len(state.shared[i])))
                column.append(place)
            self._shared.append(levels)
            self._columns.append(column)

    def _chains(self) -> None:
        """The columns of the open loops of each variable, and what their trips multiply to."""
        chain, ends, whole = list[int](), list[int](), list[float]()
        for i, path in enumerate(self._words):
            for v, extent in self.facts.full[i].items():
                chain += [
                    place for item, place in zip(path, self._columns[i], strict=True) if place >= 0 and item[1] == v
                ]
                ends.append(len(chain))
                whole.append(extent / prod(item[3] for item in path if item[0] == "par" and item[2] == v))
        self._chain, self._chain_ends = np.array(chain, dtype=np.int64), np.array(ends, dtype=np.int64)
        self._whole = np.array(whole)

    def _links(self) -> None:
        """What each link adds whenever its tile is fetched, what an Einsum has besides, and how to count that.

        `EvenPaths.links` is asked for tiles that are fetched an imaginary number of times: what it says of them is
        imaginary, and real what is moved however often.
        """
        facts, wide = self.facts, 2 * len(self.facts.memories) + 2
        walk, last, links = list[tuple[int, int]](), list[int](), list[list[complex]]()
        bases, floors, of_link = [], list[float](), list[int]()
        for i, path in enumerate(self._words):
            even, begin = self.points.closed[facts.label[i]], len(links)
            assert even is not None
            bare = (("for", "", 1j), SPLIT, *(item for item in path if item[0] not in ("for", "split")))
            moved = [(tensor, self._apart(even, bare, tensor, moves)) for tensor, _, moves in even.links(bare)]
            walk += self._walked(i, path, [(tensor, len(parts)) for tensor, parts in moved], begin)
            links += [self._sums(moves) for _, parts in moved for moves in parts.values()]
            for one in even.tensors:
                parts = [list(parts) for tensor, parts in moved if tensor == one.name]
                windows = isinstance(even, WindowPaths) and even.ranks.get(one.name)
                of_link += self._slid(i, path, one, parts) if windows else [-1] * sum(map(len, parts))
            joules, operations, throughput = self._scalars(i)[:3]
            floors.append(operations / instances(path) / throughput if throughput > 0 else 0.0)
            bases.append(np.array(links[begin:], dtype=complex).reshape(-1, wide).real.sum(axis=0))
            bases[-1][-2] += joules
            last.append(len(links))
        self._walk, self._last = np.array(walk, dtype=np.int64).reshape(-1, 2), np.array(last, dtype=np.int64)
        self._slopes = np.ascontiguousarray(np.array(links, dtype=complex).reshape(-1, wide).imag)
        self._bases, self._floors = np.array(bases), np.array(floors)
        self._ports = np.array([memory.ports == "shared" for memory in facts.memories])
        self._sizes = np.array([np.inf if m.size is None else float(m.size) for m in facts.memories])
        self._scal, self._of_link = self._scalars(0), np.array(of_link, dtype=np.int64)

    def _apart(
        self, even: EvenPaths, steps: tuple[Step, ...], tensor: str, moves: list[Move]
    ) -> dict[frozenset[str], list[Move]]:
        """What moves over a link, by the variables of whose ranks padding counts: none of them for all instances
        together, those that are spread above for the busiest one."""
        found: dict[frozenset[str], list[Move]] = {frozenset(): []}
        for memory, bits, busiest, writes in moves:
            uncut = frozenset[str]()
            if isinstance(even, WindowPaths) and even.ranks.get(tensor):
                place = next(at for at, s in enumerate(steps) if s[0] == "store" and s[1] == memory and tensor in s[2])
                uncut = even.spread(steps[:place])
            found[frozenset()].append((memory, bits, 0 if uncut else busiest, writes))
            if uncut:
                found.setdefault(uncut, []).append((memory, 0, busiest, writes))
        return found

    def _slid(self, i: int, path: Word, one: TensorOnPath, links: list[list[frozenset[str]]]) -> list[int]:
        """The columns of factors of the links of a tensor that Einsum i reads through windows. links: the parts of
        each."""
        paths = self.points.closed[self.facts.label[i]]
        assert isinstance(paths, WindowPaths)
        stores = [at for at, item in enumerate(path) if item[0] == "store" and one.name in item[2]]
        begin = len(self._windows)
        for end, parts in zip([*stores[1:], len(path) - 1], links, strict=False):
            columns = tuple(self._columns[i][:end])
            for uncut in parts:
                self._windows.append(LinkWindows(paths, one, path[:end], columns, end in stores, uncut))
        return list(range(begin, len(self._windows)))

    def _scalars(self, i: int) -> Floats:
        """What the kernel of bursts knows of Einsum i on its unit and of the objective."""
        return self.points.bursts.packed(self.facts.label[i], self.state.owns[i].unit).scal

    def _sums(self, moves: Sequence[Move]) -> list[complex]:
        """Seconds that each memory reads and writes, joules, and bits through the objective's memory, of some moves."""
        memories, problem = self.facts.memories, self.points.problem
        found, goal = [0j] * (2 * len(memories) + 2), problem.objective.memory
        for m, bits, busiest, writes in moves:
            memory, moved = memories[m], bits * problem.workload.repeat
            throughput = memory.write_throughput if writes else memory.read_throughput
            if throughput is not None:
                found[2 * m + writes] += terms.transfer_time(busiest, throughput)
            energy = memory.write_energy if writes else memory.read_energy
            found[-2] += terms.energy(moved, energy, memory.bits_per_access)
            if memory.name == goal:
                found[-1] += moved
        return found

    def _walked(self, i: int, path: Word, linked: list[tuple[str, int]], number: int) -> Iterator[tuple[int, int]]:
        """The walks of all tensors of Einsum i, see `row_kernel._fetched`. linked: the tensor of each link and how many
        parts it has, in order; number: of the first."""
        for tensor in dict.fromkeys(name for name, _ in linked):
            yield row_kernel.BEGIN, 0
            left, held = [count for name, count in linked if name == tensor], False
            for item, place in zip(path, self._columns[i], strict=True):
                if item[0] == "for":
                    yield (row_kernel.HAS if item[1] in self.facts.relevant[i][tensor] else row_kernel.LACKS), place
                elif item[0] == "split":
                    yield row_kernel.CUT, 0
                elif item[0] == "store" and tensor in item[2]:
                    for _ in range(left.pop(0) if held else 0):
                        yield row_kernel.LINK, number
                        number += 1
                    held = True
            if left:
                yield row_kernel.CUT, 0
                for _ in range(left[0]):
                    yield row_kernel.LINK, number
                    number += 1

    def _rooms(self) -> None:
        """Every tile in a memory of limited size: its bits if no open loop divided it, which ones do, and the column of
        what windows add."""
        tiles, divided, bits = [], list[int](), []
        for memory, first, last, (most, columns, windows) in (*self._held(), *self._private()):
            factor = -1 if windows is None else len(self._windows)
            tiles.append((memory, first, last, len(divided), len(divided) + len(columns), factor))
            divided += columns
            bits.append(most)
            self._windows += [] if windows is None else [windows]
        self._tiles = np.array(tiles, dtype=np.int64).reshape(-1, 6)
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
            windows = tile.owner is not None or tile.tensor not in facts.reached
            above = self._shared[i][:level]
            yield tile.memory, tile.first, tile.last, self._undivided(i, tile.tensor, tile.bits, above, windows)

    def _private(self) -> Iterator[Room]:
        """Tiles in the branches of Einsums."""
        facts, state = self.facts, self.state
        for i in range(facts.count):
            path = self._words[i][:-1]
            branch = len(path) - len(branch_items(facts, state.owns[i], i))
            weights = {(m, t): tile_bits(facts, i, m, t, extents) for m, t, extents in own_tiles(facts, state, i)}
            above = list[Above]()
            for at, item in enumerate(path):
                if item[0] in ("for", "par"):
                    above.append((int(self._columns[i][at]), item[-2], item[-1]))
                elif item[0] == "store" and at >= branch and facts.memories[item[1]].size is not None:
                    for tensor in item[2]:
                        yield item[1], i, i, self._undivided(i, tensor, weights[item[1], tensor], above)

    def _undivided(self, i: int, tensor: str, bits: int, above: list[Above], windows: bool = True) -> Tile:
        """A tile below these loops. windows: whether its size follows from those of Einsum i, if these are any."""
        facts, access = self.facts, self.facts.einsums[i].access(tensor)
        ranks = zip(access.indices, facts.workload.shape(access), strict=True)
        slid = tuple([one for one in ranks if not one[0].simple]) if windows and bits else ()
        mine = {v for index, _ in slid for v in index.variables}
        columns = [p for p, v, _ in above if p >= 0 and v in facts.relevant[i][tensor] - mine]
        whole = {v: facts.full[i][v] // prod([n for p, w, n in above if p < 0 and w == v]) for v in mine}
        found = None
        if slid:
            found = TileWindows(facts, slid, whole, {v: [p for p, w, _ in above if p >= 0 and w == v] for v in mine})
            bits //= round(float(found.factors(self.trips[None])[0]))
        return float(bits * prod([self.loops[place].trips for place in columns])), columns, found

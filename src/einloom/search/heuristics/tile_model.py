"""The cost of all tilings of one state, as sums of monomials of its trips: for gradients and integer programs.

A coordinate is the base-two logarithm of the trips of one loop: of a shared loop, or of a variable of an Einsum in one
of its segments. The trips of segment 0 are what the others leave. What moves and what is held is said by the functions
that price and weigh states, `EvenPaths.moves` and `tile_bits`, which take `Monomials` for trips. A loop of one trip
counts as a loop here, though in a tree it is none and keeps the tiles inside it: so this cost is an upper bound, and
exact where no such loop stands between a tile and a loop that its tensor has, and all tiles are even. Uneven tiles
count as if they were full. Einsums that run at the same time take as long as the longest, or as
the busiest component that they share; a pipeline neither fills nor drains here, and holds one tile of what it passes
on; a store that it keeps from token to token is filled anew. Whatever comes of it is priced as a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

import numpy as np

from ...cost.formulas import terms
from ...cost.formulas.terms import Number
from ...cost.traffic.even import EvenPaths, instances
from ...cost.traffic.uneven import Step
from ...mapping.legality.concurrency import WHOLE
from ...mapspace.ffm.encoding import State
from ...mapspace.ffm.encoding.rooms import LiveTile, backing_bits, held, tile_bits
from ...mapspace.ffm.encoding.state import Group, path_of
from .bursts import prefix
from .factors import Factors
from .monomials import Floats, Monomials, Terms, terms_of
from .points import Points

Part = tuple[str, Number]  # a component, and the seconds for which one Einsum keeps its busiest instance busy


class TileModel:
    """Rows over the coordinates and a constant: ``row @ (x, 1)`` is the logarithm of a product of trips.

    factors: the coordinates are its decisions. rests: rows of segment 0, which are to be at least 0; closed: those that
    are to be 0, because the variable has a loop directly above. energy: joules, or the bits through its memory where
    the objective is traffic. times: of each Einsum, or group of them, the seconds of its components, of which the
    slowest counts. rooms: (bits of a memory, the tiles that it holds at one leaf). powers: with which energy and
    seconds enter the objective. leak: joules a second. spatial: the coordinates of shared spatial loops, which stay
    as they are.
    """

    def __init__(self, points: Points, state: State, least: int = 2) -> None:
        self.points, self.state, self.facts = points, state, points.encoding.of(state)
        self.factors = Factors(points, state, least)
        self.size = self.factors.count
        runs = enumerate(self.factors.shared)
        self.spatial = [n for n, (first, _, level) in runs if state.shared[first][level][2] is not None]
        self.rests: list[Floats] = []
        self.closed: list[Floats] = []
        self.barred: set[tuple[int, str]] = set()
        self.rooms: list[tuple[float, Terms]] = []
        goal = points.problem.objective
        self.counted = self.facts.number[goal.memory] if goal.memory else None
        self.powers = {"energy": (1.0, 0.0), "traffic": (1.0, 0.0), "latency": (0.0, 1.0)}.get(
            goal.name, goal.powers if goal.name == "product" else (1.0, 1.0)
        )
        even = points.even[0]
        self.leak = even.leak if even is not None and self.counted is None else 0.0
        self.paths = [self._steps(i) for i in range(self.facts.count)]
        self.extents = [self._below_stores(i) for i in range(self.facts.count)]
        total: Number = 0.0
        parts: list[list[Part]] = []
        for i in range(self.facts.count):
            more, busy = self._price(i)
            total = total + more
            parts.append(busy)
        self.energy = terms_of(total, self.size + 1)
        self.times = [[terms_of(one, self.size + 1) for one in some] for some in self._together(parts)]
        self._rooms()

    @staticmethod
    def able(points: Points) -> bool:
        """True if every index is a plain variable, the machine has no links and tolls, and the objective adds over
        Einsums."""
        return points.additive and points.plain

    def rounded(self, x: Floats) -> State | None:
        """The state with the divisors nearest to the coordinates, decided in their order; None if it breaks a rule."""
        factors, row = self.factors, list[int]()
        left = factors.left(())
        for number in range(self.size):
            options, at = factors.domain(number, left), number - len(factors.shared)
            if not options:
                return None
            i, v, k = factors.private[at] if at >= 0 else (0, "", 0)
            if k == 1 and (i, v) in self.barred:
                row.append(options[-1])
            else:
                target = x[number]
                row.append(min(options, key=lambda n, target=target: abs(log2(n) - target)))  # type: ignore[misc]
            factors.take(left, number, row[number])
        return factors.made(row)

    def coordinates(self) -> Floats:
        """Those of the state itself."""
        found = [log2(self.state.shared[first][level][1]) for first, _, level in self.factors.shared]
        for i, v, k in self.factors.private:
            found.append(log2(dict(self.state.owns[i].segments[k]).get(v, 1)))
        return np.array(found, dtype=np.float64)

    def _row(self, constant: float = 0.0, at: int | None = None) -> Floats:
        row = np.zeros(self.size + 1)
        row[-1] = constant
        if at is not None:
            row[at] = 1.0
        return row

    def _steps(self, i: int) -> tuple[Step, ...]:
        """The path of Einsum i with every loop that it might have, as `EvenPaths` takes it."""
        return (*self._path(i), ("leaf", self.state.owns[i].unit, ()))

    def _path(self, i: int) -> Iterator[Step]:
        own, factors = self.state.owns[i], self.factors
        shared = {level: n for n, (first, last, level) in enumerate(factors.shared) if first <= i <= last}
        rest = {v: self._row(log2(n)) for v, n in factors.covers[i].items()}
        level, open_above = 0, set[str]()
        for item in prefix(self.facts, self.state, i):
            if item[0] == "store":
                open_above = set()
                yield item
            elif item[0] == "split":
                yield item
            else:
                _, trips, axis = self.state.shared[i][level]
                row = self._row(at=shared[level]) if axis is None else self._row(log2(trips))
                rest[item[-2]] = rest[item[-2]] - row
                open_above |= {item[1]} if axis is None else set()
                level += 1
                yield item if axis is not None else ("for", item[1], Monomials.power(row))
        self.barred |= {(i, v) for v in open_above}
        for _, v, n in own.spatial:
            rest[v] = rest[v] - self._row(log2(n))
        at = {key: len(factors.shared) + n for n, key in enumerate(factors.private)}
        rows = [{v: self._row(at=at[i, v, k]) for v in rest} for k in range(1, len(own.segments))]
        for v in rest:
            rest[v] = rest[v] - sum((segment[v] for segment in rows), self._row())
        self.rests += rest.values()
        self.closed += [rest[v] for v in open_above]
        yield from self._branch(i, [rest, *rows])

    def _branch(self, i: int, rows: list[dict[str, Floats]]) -> Iterator[Step]:
        facts, own = self.facts, self.state.owns[i]
        waiting = list(own.spatial)
        for k, segment in enumerate(rows):
            named = [v for v, _ in own.segments[k]]
            for v in [*(v for v in segment if v not in named), *named]:
                yield "for", v, Monomials.power(segment[v])
            last = k == len(own.stores)
            ready = [s for s in waiting if last or facts.axis_place[s[0]] < facts.place[own.stores[k][0]]]
            for one in ready:
                waiting.remove(one)
                yield "par", *one
            if not last:
                yield "store", own.stores[k][0], (own.stores[k][1],)

    def _price(self, i: int) -> tuple[Number, list[Part]]:
        """Joules, or bits through the objective's memory, of one Einsum, and for how long it keeps what busy."""
        even = self.points.even[self.facts.label[i]]
        assert even is not None
        repeat, every = self.facts.workload.repeat, range(len(self.facts.memories))
        moved: list[list[Number]] = [[0 for _ in every] for _ in range(2)]
        busiest: list[list[Number]] = [[0 for _ in every] for _ in range(2)]
        for memory, bits, own, written in even.moves(self.paths[i], path_of(self.facts, self.state, i).filled):
            moved[written][memory] = moved[written][memory] + bits * repeat
            busiest[written][memory] = busiest[written][memory] + own * repeat
        found: Number = 0.0
        for m in every:
            prices = even.energies[m] if self.counted is None else (float(m == self.counted),) * 2 + (1,)
            for side in (0, 1):
                found = found + terms.energy(moved[side][m], prices[side], prices[2])
        joules, parts = self._computed(i, even, repeat)
        parts += [one for m in every for one in self._busy(m, busiest[0][m], busiest[1][m])]
        return found + (joules if self.counted is None else 0.0), parts

    def _busy(self, m: int, read: Number, written: Number) -> list[Part]:
        """The seconds of a memory, as `component_time` has them: of each of two ports by itself."""
        memory, found = self.facts.memories[m], list[Part]()
        for bits, throughput in ((read, memory.read_throughput), (written, memory.write_throughput)):
            if throughput is not None:
                found.append((memory.name, terms.transfer_time(bits, throughput)))
        return [(memory.name, found[0][1] + found[1][1])] if memory.ports == "shared" and len(found) == 2 else found

    def _computed(self, i: int, even: EvenPaths, repeat: int) -> tuple[float, list[Part]]:
        """Joules and seconds of computing."""
        unit = self.state.owns[i].unit
        if unit is None or even.einsum.kind == "copy":
            return 0.0, []
        level = self.facts.machine.unit(unit)
        own = terms.evenly_crossed(even.operations, 1, instances(self.paths[i])) * repeat
        times = [] if level.throughput is None else [(unit, terms.transfer_time(own, level.throughput))]
        return even.operations * repeat * level.energy, times

    def _together(self, parts: list[list[Part]]) -> Iterator[list[Number]]:
        """The seconds of Einsums that run one after the other, each by itself, and of those of a group together."""
        grouped = {i: group for group in self.state.groups for i in range(group[0], group[1] + 1)}
        for i, busy in enumerate(parts):
            group = grouped.get(i)
            if group is None:
                yield [one for _, one in busy]
            elif group[0] == i:
                yield self._group(group, parts)

    def _group(self, group: Group, parts: list[list[Part]]) -> list[Number]:
        """What each Einsum of a group takes alone, and the sums of those that share a component. Ports are not told
        apart in these sums where a memory has two: the first of one meets the first of another."""
        first, last, where, _ = group
        place, members = self.facts.machine.position, range(first, last + 1)
        found = [one for i in members for _, one in parts[i]]
        sums: dict[tuple[str, int], Number] = {}
        for i in members:
            for n, (name, one) in enumerate(parts[i]):
                port = sum(other == name for other, _ in parts[i][:n])
                if where in WHOLE or place[name] < place[where]:
                    sums[name, port] = sums.get((name, port), 0.0) + one
        return [*found, *sums.values()]

    def _rooms(self) -> None:
        """Enter what every limited memory holds at every leaf; Einsums that run at the same time are one leaf."""
        found = held(self.facts, self.state)
        for m, memory in enumerate(self.facts.memories):
            for first, last in self._leaves(m) if memory.size else ():
                total: Number = 0.0
                for tile in found:
                    if tile.memory == m and tile.first <= last and first <= tile.last:
                        total = total + self._held(tile)
                for i in range(first, last + 1):
                    for n, t in self.state.owns[i].stores:
                        total = total + (self._tile(i, m, t) if n == m else 0.0)
                if mine := terms_of(total, self.size + 1):
                    self.rooms.append((float(memory.size or 0), mine))

    def _leaves(self, m: int) -> Iterator[tuple[int, int]]:
        """First and last of the Einsums whose own stores in a memory are alive together."""
        facts, ends = self.facts, {}
        for first, last, where, _ in self.state.groups:
            if where in WHOLE or facts.place[m] < facts.axis_place[where]:
                ends[first] = last
        i = 0
        while i < facts.count:
            yield i, ends.get(i, i)
            i = ends.get(i, i) + 1

    def _held(self, tile: LiveTile) -> Number:
        """A tile that lives in several branches; above a backing store no loop cuts a rank that is not whole."""
        facts, m, tensor = self.facts, tile.memory, tile.tensor
        if tile.owner is not None:
            return self._tile(tile.owner, m, tensor)
        if tile.raised:
            return self._tile(next(i for i in facts.users[tensor] if i >= tile.first), m, tensor)
        bits = backing_bits(facts, m, tensor, self._extents(facts.users[tensor][0], m, tensor))
        return bits * (facts.workload.repeat if facts.workload.tensor(tensor).persistent else 1)

    def _tile(self, i: int, m: int, tensor: str) -> Number:
        return tile_bits(self.facts, i, m, tensor, self._extents(i, m, tensor))

    def _extents(self, i: int, m: int, tensor: str) -> dict[str, Number]:
        """Extents of the variables of Einsum i below its store of a tensor in a memory; below all loops where it has
        none."""
        known, below = self.extents[i]
        return known.get((m, tensor), below)

    def _below_stores(self, i: int) -> tuple[dict[tuple[int, str], dict[str, Number]], dict[str, Number]]:
        """What `_extents` says of each store of Einsum i, and of the leaf."""
        found: dict[str, Number] = dict(self.factors.covers[i])
        known: dict[tuple[int, str], dict[str, Number]] = {}
        for step in self.paths[i]:
            match step:
                case ("store", int(memory), tuple(tensors)):
                    for tensor in tensors:
                        known.setdefault((memory, tensor), dict(found))
                case ("for" | "par", *_, str(variable), trips):
                    found[variable] = found[variable] // trips
        return known, found

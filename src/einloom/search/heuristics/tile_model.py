"""The cost of all tilings of one state, as sums of monomials of its trips: for gradients and integer programs.

A coordinate is the base-two logarithm of the trips of one loop: of a shared loop, or of a variable of an Einsum in one
of its segments. The trips of segment 0 are what the others leave. A loop of one trip counts as a loop here, though in a
tree it is none and keeps the tiles inside it: so this cost is an upper bound, and exact where no such loop stands
between a tile and a loop that its tensor has, and all tiles are even. Uneven tiles count as if they were full. Whatever
comes of it is priced as a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dataclass import dataclass
from ...mapspace.ffm.encoding import State
from ...mapspace.ffm.encoding.rooms import backing_bits, held
from .bursts import prefix
from .factors import Factors
from .points import Points

Floats = NDArray[np.float64]
Terms = list[tuple[float, Floats]]  # (factor, row): factor * 2 ** (row @ (x, 1))


@dataclass(frozen=True, slots=True)
class ModelStep:
    """One step of a path. row: the logarithm of its trips over the coordinates and 1."""

    kind: str
    row: Floats
    variable: str = ""
    axis: str = ""
    memory: int = 0
    tensors: tuple[str, ...] = ()


class TileModel:
    """Rows over the coordinates and a constant: ``row @ (x, 1)`` is the logarithm of a product of trips.

    factors: the coordinates are its decisions. rests: rows of segment 0, which are to be at least 0; closed: those that
    are to be 0, because the variable has a loop directly above. energy: joules, or the bits through its memory where
    the objective is traffic. times: of each Einsum the seconds of its components, of which the slowest counts. rooms:
    (bits of a memory, the tiles that it holds at one leaf). fixed: joules that no trip changes. powers: with which
    energy and seconds enter the objective. spatial: the coordinates of shared spatial loops, which stay as they are.
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
        self.energy: Terms = []
        self.times: list[list[Terms]] = []
        self.rooms: list[tuple[float, Terms]] = []
        self.fixed = 0.0
        goal = points.problem.objective
        self.counted = self.facts.number[goal.memory] if goal.memory else None
        self.powers = {"energy": (1.0, 0.0), "traffic": (1.0, 0.0), "latency": (0.0, 1.0)}.get(
            goal.name, goal.powers if goal.name == "product" else (1.0, 1.0)
        )
        self.paths = [list(self._path(i)) for i in range(self.facts.count)]
        for i, path in enumerate(self.paths):
            self._prices(i, path)
        self._tiles()

    @staticmethod
    def able(points: Points, state: State) -> bool:
        """True if every index is a plain variable, no store serves several Einsums and the objective adds over them.
        Copies count nothing."""
        return points.additive and not state.lent and not state.groups and not any(points.bursts.uneven)

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

    def _path(self, i: int) -> Iterator[ModelStep]:
        """The path of Einsum i with every loop that it might have."""
        facts, own, factors = self.facts, self.state.owns[i], self.factors
        shared = {level: n for n, (first, last, level) in enumerate(factors.shared) if first <= i <= last}
        rest = {v: self._row(log2(n)) for v, n in factors.covers[i].items()}
        level, open_above = 0, set[str]()
        for item in prefix(facts, self.state, i):
            if item[0] == "store":
                open_above = set()
                yield ModelStep("store", self._row(), memory=item[1], tensors=item[2])
            elif item[0] == "split":
                yield ModelStep("split", self._row())
            else:
                row = self._row(at=shared[level])
                rest[item[-2]] = rest[item[-2]] - row
                open_above |= {item[1]} if item[0] == "for" else set()
                level += 1
                yield ModelStep(item[0], row, item[-2], item[1] if item[0] == "par" else "")
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

    def _branch(self, i: int, rows: list[dict[str, Floats]]) -> Iterator[ModelStep]:
        facts, own = self.facts, self.state.owns[i]
        waiting = list(own.spatial)
        for k, segment in enumerate(rows):
            named = [v for v, _ in own.segments[k]]
            for v in [*(v for v in segment if v not in named), *named]:
                yield ModelStep("for", segment[v], v)
            last = k == len(own.stores)
            ready = [s for s in waiting if last or facts.axis_place[s[0]] < facts.place[own.stores[k][0]]]
            for one in ready:
                waiting.remove(one)
                yield ModelStep("par", self._row(log2(one[2])), one[1], one[0])
            if not last:
                yield ModelStep("store", self._row(), memory=own.stores[k][0], tensors=(own.stores[k][1],))

    def _prices(self, i: int, path: list[ModelStep]) -> None:
        """Enter energy and times of one Einsum."""
        unit = self.state.owns[i].unit
        if unit is None:
            self.times.append([])
            return
        tables = self.points.bursts.packed(self.facts.label[i], unit)
        scal, memories = tables.scal, tables.mem
        busy: list[Terms] = [[] for _ in range(2 * len(memories))]
        for t, tensor in enumerate(tables.tensors):
            stores = [p for p, step in enumerate(path) if tensor in step.tensors]
            for n, place in enumerate(stores):
                child = stores[n + 1] if n + 1 < len(stores) else None
                written, joined = bool(tables.written[t]), tables.joined[t]
                for memory, side, visits, parts in self._link(i, path, tensor, written, joined, place, child):
                    bits = tables.values[t] * tables.width[t, memory] * scal[3]
                    if self.counted is None or memory == self.counted:
                        price = memories[memory, side] if self.counted is None else 1.0
                        self.energy.append((bits * price, visits))
                    if memories[memory, 2 + side] > 0:
                        busy[2 * memory + side].append((bits / memories[memory, 2 + side], visits - parts))
        self.fixed += scal[0] if self.counted is None else 0.0
        times: list[Terms] = []
        for m in range(len(memories)):
            times += [busy[2 * m] + busy[2 * m + 1]] if memories[m, 4] > 0 else busy[2 * m : 2 * m + 2]
        if scal[2] > 0:
            spread = sum((step.row for step in path if step.kind == "par"), self._row())
            times.append([(scal[1] * scal[3] / scal[2], -spread)])
        self.times.append([one for one in times if one])

    def _link(
        self, i: int, path: list[ModelStep], tensor: str, written: bool, joined: Any, place: int, child: int | None
    ) -> Iterator[tuple[int, int, Floats, Floats]]:
        """(memory, 1 if it is written, row of visits by all instances, row of instances) at both ends of a link.

        As `even._crossed`; that the first partial results are not read back is left out.
        """
        relevant, still = self.facts.relevant[i][tensor], child is not None
        again, above, inside = self._row(), self._row(), self._row()
        lacking, lacking_inside, apart = self._row(), self._row(), self._row()
        for p in range((len(path) if child is None else child) - 1, -1, -1):
            step = path[p]
            has = step.variable in relevant
            if step.kind == "split" or (step.kind == "for" and has):
                still = False
            elif step.kind == "for" and not still:
                again = again + step.row
            elif step.kind == "par" and p < place:
                above, lacking = above + step.row, lacking if has else lacking + step.row
            elif step.kind == "par":
                inside, lacking_inside = inside + step.row, lacking_inside if has else lacking_inside + step.row
                apart = apart if has or joined[self.facts.axis_order[step.axis]] else apart + step.row
        for side in (1, 0) if written and child is None else (int(written),):
            yield path[place].memory, side, again + lacking + apart, above
        if child is not None:
            yield path[child].memory, int(not written), again + lacking + lacking_inside, above + inside

    def _tiles(self) -> None:
        """Enter what every limited memory holds at every leaf."""
        facts, found = self.facts, held(self.facts, self.state)
        for m, memory in enumerate(facts.memories):
            for i in range(facts.count if memory.size else 0):
                mine: Terms = []
                for tile in found:
                    if tile.memory == m and tile.first <= i <= tile.last:
                        mine.append(
                            self._backed(m, tile.tensor)
                            if tile.owner is None
                            else self._tile(tile.owner, m, tile.tensor)
                        )
                mine += [self._tile(i, m, t) for n, t in self.state.owns[i].stores if n == m]
                if mine:
                    self.rooms.append((float(memory.size or 0), mine))

    def _backed(self, m: int, tensor: str) -> tuple[float, Floats]:
        """A backing store's tile: along ranks that are not whole no loop stands above it."""
        user = self.facts.users[tensor][0]
        whole = float(backing_bits(self.facts, m, tensor, self.facts.extents))
        for v, cover in self.state.owns[user].covers:
            whole *= cover / self.facts.extents[v] if v in self.facts.relevant[user][tensor] else 1.0
        return whole, self._tile(user, m, tensor)[1]

    def _tile(self, i: int, m: int, tensor: str) -> tuple[float, Floats]:
        row, bits = self._row(), float(self.facts.width(i, m, tensor))
        for v in self.facts.plain[i][tensor] or ():
            bits *= self.factors.covers[i][v]
        for step in self.paths[i]:
            if step.kind == "store" and step.memory == m and tensor in step.tensors:
                break
            if step.variable in self.facts.relevant[i][tensor]:
                row = row - step.row
        return bits, row

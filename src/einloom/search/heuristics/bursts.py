"""Many proposals for the privates of one Einsum at once, in machine code (`kernel`).

Comes in: a state and one of its Einsums. Goes out: the state after so many proposals, and the best of them. All else
stands still: what the Einsum shares with others is a fixed prefix of its path, the tiles of others are so much less
room, and what others cost is a constant.
"""

from __future__ import annotations

from functools import cached_property
from math import inf
from random import Random

import numpy as np
from numpy.typing import NDArray

from ...cost.traffic.even import EvenPaths
from ...dataclass import dataclass
from ...mapspace.divisors import primes
from ...mapspace.ffm.encoding.covers import recovered
from ...mapspace.ffm.encoding.facts import Facts
from ...mapspace.ffm.encoding.rooms import loads, own_bits
from ...mapspace.ffm.encoding.spreads import spreads
from ...mapspace.ffm.encoding.state import Own, State, Word, branch_items, covers_of, frame_of, path_of, tidy, word
from ...mapspace.limits.checks import may_hold
from ...problem import Problem
from ..resources import unlimited
from . import kernel, uneven_kernel

SMALL_PRIMES = (2, 3, 5, 7)  # by which uneven tiles are divided, too
MOST_FIXED = 10_000  # paths above branches that are remembered
MOST_SPREADS = 4096  # spatial choices that are packed
GOALS = {"energy": kernel.ENERGY, "latency": kernel.LATENCY, "traffic": kernel.TRAFFIC}
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Burst:
    """What proposals came to: the state at their end, the best one, their values, and how many were what."""

    state: State
    value: float
    best: State
    best_value: float
    legal: int
    overfull: int
    refused: int


class Bursts:
    """Proposals for the Einsums of one problem."""

    def __init__(self, problem: Problem, facts: Facts) -> None:
        self.problem, self.facts = problem, facts
        self._packed: dict[tuple[int, str | None], _Packed] = {}
        self._fixed: dict[object, _Fixed] = {}

    def able(self, state: State, i: int) -> bool:
        """True if the kernel speaks of this Einsum: loops, plain indices, a unit, no open block, no limit it lacks, no
        store that an Einsum before it fills, no persistent tensor that an inner memory backs for it."""
        facts = self.facts.in_order(state.sequence)
        loops = any(facts.einsums[i].variables)
        if self._limited or state.owns[i].unit is None or self.uneven[facts.label[i]] or not loops:
            return False
        if state.groups or path_of(facts, state, i).filled or not facts.anchored.keys().isdisjoint(facts.tensors[i]):
            return False
        return not self._above(facts, state, i).open

    def _above(self, facts: Facts, state: State, i: int) -> _Fixed:
        """What stands above the branch of Einsum i, found once."""
        own = state.owns[i]
        key = i, own.unit, state.shared[i], own.raised, own.covers, frame_of(facts, state).place_of(i), state.sequence
        found = self._fixed.get(key)
        if found is None:
            if len(self._fixed) >= MOST_FIXED:
                self._fixed.clear()
            found = self._fixed[key] = _Fixed(self.packed(facts.label[i], own.unit), facts, state, i)
        return found

    @cached_property
    def _limited(self) -> bool:
        limits = self.facts.limits
        once = any(limit.rule == "once" for limit in limits.holds)
        totals = any(not limit.variables for limit in limits.axes)
        return bool(limits.loops or limits.tiles or once or totals)

    @cached_property
    def uneven(self) -> list[bool]:
        """Of each Einsum of the program, whether it has windows, or links and tolls to pass."""
        able = EvenPaths.able
        return [not able(self.problem.workload, self.problem.machine, e.name) for e in self.facts.einsums]

    def packed(self, i: int, unit: str | None) -> _Packed:
        """The tables of an Einsum of the program on a unit, or on none where it computes nothing; made once."""
        if (i, unit) not in self._packed:
            self._packed[i, unit] = _Packed(self.problem, self.facts, i, unit)
        return self._packed[i, unit]

    def run(
        self, state: State, i: int, rest: tuple[float, float, float], tries: int, points: int, heat: float, rng: Random
    ) -> Burst:
        """Proposals for the privates of Einsum i. rest: joules, seconds and bits of all the others.

        points: legal or overfull ones after which it ends, before `tries`. heat: as in `anneal`; 0 takes no worse.
        """
        facts, own = self.facts.in_order(state.sequence), state.owns[i]
        assert own.unit is not None
        tables = self.packed(facts.label[i], own.unit)
        fixed = self._above(facts, state, i)
        now = tables.arrays(own)
        best = kernel.Privates(*map(np.empty_like, now))
        start = rng.getrandbits(31), tries, points, heat, np.array(rest), fixed.items, fixed.base, len(own.stores), now
        with unlimited():  # the first call loads or compiles, and native libraries wait for ever for refused memory
            if facts.ragged:
                tried, cuts = kernel.Privates(*map(np.empty_like, now)), _cuts(tables, state, i)
                found = uneven_kernel.anneal(*start, fixed.arrays(state), tables.tables, cuts, tried, best)
            else:
                found = kernel.anneal(*start, fixed.arrays(state), tables.tables, best)
        ns, best_ns, value, best_value, legal, overfull, refused = found
        ends = state.with_own(i, recovered(facts, state, i, tidy(facts, tables.own(own, ns, now))))
        top = state.with_own(i, recovered(facts, state, i, tidy(facts, tables.own(own, best_ns, best))))
        return Burst(ends, value, top, best_value, legal, overfull, refused)

    def prices(self, i: int) -> bool:
        """True if the kernel prices paths of this Einsum of the program: plain indices, no links, perfect tiles."""
        return not self.facts.ragged and not self.uneven[i] and any(self.facts.einsums[i].variables)

    def price(self, i: int, mine: Word) -> tuple[float, float, float]:
        """(joules, seconds, bits through the objective's memory) of a path of Einsum i of the program, by the kernel.

        Joules and seconds are those of `EvenPaths.cost` to the last place where all counts of bits are below 2**53.
        """
        t = self.packed(i, mine[-1][1])
        items = t.items(mine[:-1])
        kernel.price(items, len(items), t.rel, t.values, t.written, t.joined, t.width, t.mem, t.scal, t.flows, t.out)
        energy, latency, traffic = t.out.tolist()
        return energy, latency, traffic


def _cuts(tables: _Packed, state: State, i: int) -> uneven_kernel.Cuts:
    """The extents of the variables of Einsum i, and what those cover that have a shared loop."""
    facts = tables.facts.in_order(state.sequence)
    covers, bound = covers_of(facts, state.owns[i], i), {v for v, _, _ in state.shared[i]}
    whole = np.array([tables.facts.extents[v] for v in tables.variables], dtype=np.int64)
    return uneven_kernel.Cuts(
        whole, np.array([covers[v] if v in bound else 0 for v in tables.variables], dtype=np.int64)
    )


def prefix(facts: Facts, state: State, i: int) -> Word:
    """The path of Einsum i above its own branch."""
    mine = word(facts, state, i)
    return mine[: len(mine) - 1 - len(branch_items(facts, state.owns[i], i))]


def _open(prefix: Word) -> bool:
    """True if a spatial loop stands behind the last store, so that loops of the branch would continue its block."""
    return next((item[0] == "par" for item in reversed(prefix) if item[0] in ("par", "store")), False)


class _Packed:
    """Tables of one Einsum on one unit. Tensors, variables, memories and axes are numbered."""

    def __init__(self, problem: Problem, facts: Facts, i: int, unit: str | None) -> None:
        self.problem, self.facts, self.i, self.unit = problem, facts, i, unit
        einsum = facts.einsums[i]
        self.variables, self.tensors = einsum.variables, tuple(a.tensor for a in einsum.accesses)
        self.bit = {t: 1 << n for n, t in enumerate(self.tensors)}
        self.number = {v: n for n, v in enumerate(self.variables)}
        even = EvenPaths(problem.workload, problem.machine, einsum.name)
        self.rel = np.array([[v in one.variables for v in self.variables] for one in even.tensors])
        self.values = np.array([float(one.values) for one in even.tensors])
        self.written = np.array([one.written for one in even.tensors])
        self.joined = np.array([[axis.name in one.joined for axis in facts.axes] for one in even.tensors], dtype=bool)
        self.joined = self.joined.reshape(len(self.tensors), len(facts.axes))
        self.width = np.array([[float(w) for w in one.widths] for one in even.tensors])
        every = range(len(facts.memories))
        self.cap = np.array([[float(facts.width(i, m, t)) for m in every] for t in self.tensors])
        self.mem = np.array([self._memory(m) for m in every])
        owns = [(m, self.tensors.index(t)) for m, t in facts.owns(i, unit)]
        self.owns = np.array(owns, dtype=np.int64).reshape(-1, 2)
        self.rows = len(owns) + 2
        self.scal = self._scalars(even)
        self.may, self.need = self._held()
        self.spreads = self._spreads()
        self.takes, self.count = self._takes()
        self.flows, self.out = np.zeros((4, len(facts.memories))), np.zeros(3)
        more = SMALL_PRIMES if facts.ragged else ()
        every_prime = [tuple({*primes(facts.extents[v]), *more}) or (1,) for v in self.variables]
        most = max(map(len, every_prime), default=1)
        self.primes = np.array([[p[n % len(p)] for n in range(most)] for p in every_prime], np.int64).reshape(-1, most)

    def _memory(self, m: int) -> tuple[float, ...]:
        memory = self.facts.memories[m]
        per = memory.bits_per_access
        return (
            memory.read_energy / per,
            memory.write_energy / per,
            memory.read_throughput or 0.0,
            memory.write_throughput or 0.0,
            float(memory.ports == "shared"),
            float(self.facts.place[m]),
        )

    def _scalars(self, even: EvenPaths) -> Floats:
        goal, level = self.problem.objective, self.unit and self.problem.machine.unit(self.unit)
        repeat = self.problem.workload.repeat
        powers = goal.powers if goal.name == "product" else (1.0, 1.0)
        return np.array(
            [
                even.operations * repeat * level.energy if level else 0.0,
                even.operations,
                (level.throughput or 0.0) if level else 0.0,
                repeat,
                even.leak,
                even.rmw,
                GOALS.get(goal.name, kernel.PRODUCT),
                *powers,
                self.facts.number[goal.memory] if goal.memory else -1,
                even.einsum.kind == "copy",
            ],
            dtype=np.float64,
        )

    def _held(self) -> tuple[Ints, Ints]:
        """What each memory may and must hold, as bits, by what the memories above hold."""
        facts, masks = self.facts, 1 << len(self.tensors)
        may, need = (np.zeros((len(facts.memories), masks), dtype=np.int64) for _ in range(2))
        seen = facts.visible(self.unit)
        name = facts.einsums[self.i].name
        for m, memory in enumerate(facts.memories):
            for mask in range(masks):
                above = frozenset(t for t in self.tensors if mask & self.bit[t])
                may[m, mask] = self.mask(may_hold(facts.limits, facts.machine, memory, facts.workload, name, above))
                need[m, mask] = self.mask(facts.needed(self.i, m, above)) if m in seen else 0
        return may, need

    def _spreads(self) -> Ints:
        """int64 [n, axes, variables]: choices on the full-use axes, thinned evenly to `MOST_SPREADS`."""
        known = () if self.unit is None else spreads(self.facts, self.i, self.unit)
        chosen = known[:: -(-len(known) // MOST_SPREADS)] if known else ()
        found = np.ones((len(chosen), len(self.facts.axes), len(self.variables)), dtype=np.int64)
        for row, one in enumerate(chosen):
            for axis, v, n in one:
                found[row, self.facts.axis_order[axis], self.number[v]] = n
        return found

    def _takes(self) -> tuple[Ints, Ints]:
        facts = self.facts
        options = [[facts.takes(self.i, axis.name, v) for v in self.variables] for axis in facts.axes]
        most = max((len(o) for row in options for o in row), default=1)
        takes = np.ones((len(options), len(self.variables), most), dtype=np.int64)
        count = np.zeros((len(options), len(self.variables)), dtype=np.int64)
        for a, row in enumerate(options):
            for v, some in enumerate(row):
                takes[a, v, : len(some)], count[a, v] = some, len(some)
        return takes, count

    def mask(self, tensors: frozenset[str]) -> int:
        return sum(self.bit[t] for t in tensors if t in self.bit)

    def items(self, path: Word, more: int = 0) -> Ints:
        """int64 [n + more, 4]: the items of a path, see `kernel.price`."""
        number, bit, axes = self.number, self.bit, self.facts.axis_order
        found: list[tuple[int, int, int, int]] = []
        for item in path:
            if item[0] == "store":
                found.append((kernel.STORE, item[1], sum([bit[t] for t in item[2] if t in bit]), 0))
            elif item[0] == "for":
                found.append((kernel.FOR, number[item[1]], item[2], 0))
            elif item[0] == "par":
                found.append((kernel.PAR, number[item[2]], item[3], axes[item[1]]))
            else:
                found.append((kernel.SPLIT, 0, 0, 0))
        return np.array(found + [(0, 0, 0, 0)] * more, dtype=np.int64).reshape(-1, 4)

    @cached_property
    def tables(self) -> kernel.Tables:
        return kernel.Tables(*(getattr(self, name) for name in kernel.Tables._fields))

    def arrays(self, own: Own) -> kernel.Privates:
        """The privates as arrays."""
        nv = len(self.variables)
        stores = np.zeros((self.rows, 2), dtype=np.int64)
        trips = np.ones((self.rows, nv), dtype=np.int64)
        orders = np.tile(np.arange(nv), (self.rows, 1))
        spatial = np.ones((len(self.facts.axes), nv), dtype=np.int64)
        for k, (m, t) in enumerate(own.stores):
            stores[k] = m, self.tensors.index(t)
        for k, segment in enumerate(own.segments):
            named = [self.number[v] for v, _ in segment]
            orders[k] = [*named, *(v for v in range(nv) if v not in named)]
            for v, n in segment:
                trips[k, self.number[v]] = n
        for axis, v, n in own.spatial:
            spatial[self.facts.axis_order[axis], self.number[v]] = n
        return kernel.Privates(stores, trips, orders, spatial)

    def own(self, old: Own, count: int, now: kernel.Privates) -> Own:
        """The privates that arrays say."""
        stores, trips, orders, spatial = (part.tolist() for part in now)
        segments = tuple(
            tuple((self.variables[v], trips[k][v]) for v in orders[k] if trips[k][v] > 1) for k in range(count + 1)
        )
        loops = tuple(
            (axis.name, v, n)
            for axis, row in zip(self.facts.axes, spatial, strict=True)
            for v, n in zip(self.variables, row, strict=True)
            if n > 1
        )
        return Own(
            old.unit, tuple((m, self.tensors[t]) for m, t in stores[:count]), segments, loops, old.raised, old.covers
        )


class _Fixed:
    """What stands still while the privates of Einsum i change. open: a block above continues in the branch."""

    def __init__(self, tables: _Packed, facts: Facts, state: State, i: int) -> None:
        self.facts, self.i = facts, i
        above = prefix(facts, state, i)
        self.base, self.open = len(above), _open(above)
        nv, na = len(tables.variables), len(facts.axes)
        self.items = tables.items(above, (tables.rows + 1) * (nv + 1) + na * nv)
        covers, bound = covers_of(facts, state.owns[i], i), {v for v, _, _ in state.shared[i]}
        whole = [covers[v] if v in bound else facts.extents[v] for v in tables.variables]
        self.left = np.array(whole, dtype=np.int64)
        self.shared = np.ones((na, nv), dtype=np.int64)
        self.barred = np.zeros(nv, dtype=bool)
        self.held = np.zeros(len(facts.memories), dtype=np.int64)
        self.home = np.array([facts.fixed.get(t, 0) or -1 for t in tables.tensors], dtype=np.int64)
        self.least = np.zeros(1 + len(tables.tensors), dtype=np.int64)
        self.least[1:] = np.maximum(self.home, 1)
        stores = axes = -1
        for item in above:
            if item[0] == "store":
                self._store(tables, item[1], item[2])
                stores = max(stores, facts.place[item[1]])
            elif item[0] == "for":
                self.left[tables.number[item[1]]] //= item[2]
                self.barred[tables.number[item[1]]] = True
            elif item[0] == "par":
                a, v = facts.axis_order[item[1]], tables.number[item[2]]
                self.shared[a, v] = item[3]
                self.left[v] //= item[3]
                axes = max(axes, facts.axis_place[item[1]])
        inside = next((m for m, place in enumerate(facts.place) if place >= axes), len(facts.memories))
        self.least[0] = max(self.least[0], inside)
        known = set(facts.axes_of(i, tables.unit))
        self.axis = np.array(
            [
                (
                    facts.axis_place[axis.name],
                    axis.use == "full",
                    axis.size if axis.name in known and facts.axis_place[axis.name] > stores else 0,
                )
                for axis in facts.axes
            ],
            dtype=np.int64,
        ).reshape(na, 3)

    def arrays(self, state: State) -> kernel.Fixed:
        """With the room that the tiles of others leave in a state."""
        i, every = self.i, loads(self.facts, state)
        mine, sizes = own_bits(self.facts, state, i), (memory.size for memory in self.facts.memories)
        room = [inf if size is None else size - (every[m][i] - mine[m]) for m, size in enumerate(sizes)]
        return kernel.Fixed(
            self.left, np.array(room, dtype=float), self.shared, self.barred, self.held, self.home, self.least,
            self.axis,
        )  # fmt: skip

    def _store(self, tables: _Packed, memory: int, tensors: tuple[str, ...]) -> None:
        self.barred[:] = False
        self.least[0] = max(self.least[0], memory)
        for tensor in tensors:
            t = tables.tensors.index(tensor) if tensor in tables.bit else -1
            if t >= 0 and not any(mask >> t & 1 for mask in self.held):
                self.least[1 + t], self.home[t] = memory + 1, -1
        self.held[memory] |= tables.mask(frozenset(tensors))

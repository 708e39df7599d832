"""Soft arc consistency: rows that no compatible partner can save go before any join.

Comes in: the blocks of every Einsum and a limit. Goes out: the same blocks with fewer rows. For every Einsum j and
shared tensor t the least cost per *key* of t (its memory and the loops above it, with tiles) is tabulated. A row of
Einsum i stays if every user of its shared tensors has the row's keys, and if its cost, plus for each other Einsum the
greatest of those least costs, can still stay within the limit. Rounds repeat while rows go. (After soft arc consistency
in weighted constraint satisfaction.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from itertools import count
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from ....dataclass import dataclass
from ....once import once_each
from ....workload.einsum import Workload
from ..einsums.orders import JoinStep
from ..fusion.explore import Allowed, PmappingGroup, numbered
from ..fusion.templates import FusedTemplate, Shape
from ..numerics.pareto import FloatArray, IntArray
from .cutoff import Cutoff
from .neighbour_bounds import NeighbourBounds
from .weighted_sums import Lines

ROUNDS = 4


def keys_of(workload: Workload, position: int, tensor: str, blocks: list[PmappingGroup]) -> Allowed:
    """Every key of `tensor` that an Einsum's blocks have: (memory, (rank, axis) of each loop above) -> sets of
    tiles."""
    use, found = use_of(workload, position, tensor), dict[Shape, list[IntArray]]()
    for block in blocks:
        shape = block.structure.shape(use.tensor, use.ranks)
        found.setdefault(shape, []).append(np.unique(numbered(block.tiles, shape, use.sizes)))
    return {shape: np.unique(np.concatenate(parts)) for shape, parts in found.items()}


def common(first: Allowed, second: Allowed) -> Allowed:
    """The keys that both have."""
    both = {shape: np.intersect1d(first[shape], second[shape]) for shape in first.keys() & second.keys()}
    return {shape: numbers for shape, numbers in both.items() if len(numbers)}


def either(parts: Iterable[Allowed]) -> Allowed:
    """The keys that any of them has."""
    found: dict[Shape, IntArray] = {}
    for part in parts:
        for shape, numbers in part.items():
            found[shape] = np.union1d(found[shape], numbers) if shape in found else numbers
    return found


@dataclass(frozen=True, slots=True)
class Use:
    """A shared tensor as one Einsum sees it: its number there, the rank of every variable, and the rank sizes."""

    tensor: int
    ranks: tuple[int | None, ...]
    sizes: tuple[int, ...]


def use_of(workload: Workload, position: int, tensor: str) -> Use:
    """The tensor as the Einsum at a place sees it."""
    einsum = workload.einsums[position]
    ranks = tuple(einsum.access(tensor).rank_of(v) for v in einsum.variables)
    return Use(einsum.tensors.index(tensor), ranks, workload.tensor(tensor).shape)


class Costed(Protocol):
    """Rows with costs [n, c], of which some can be taken."""

    cost: FloatArray

    def __len__(self) -> int: ...

    def take(self, index: IntArray) -> Self:
        """Some of the rows."""


Some = TypeVar("Some", bound=Costed)


class Arcs(ABC, Generic[Some]):
    """Filters the rows of a cascade. least: least cost of each Einsum [n, c]; cutoff: which sums are of use. known: the
    Einsums whose rows are known; None: all. Of the others only the least costs are. together: what neighbours cost at
    least together, if that is known. pause: called for every Einsum; may raise.

    Einsums that have the same rows and the same neighbours lose the same rows: each such pattern is filtered once, so
    that repeated layers cost what the first ones and the last ones do.
    """

    rule = "arc consistency"

    def __init__(
        self,
        workload: Workload,
        least: FloatArray,
        cutoff: Cutoff,
        counts: dict[str, int],
        known: frozenset[int] | None = None,
        together: NeighbourBounds | None = None,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self.pause = pause
        self.workload = workload
        self.least = least
        self.cutoff = cutoff
        self.counts = counts
        self.known = frozenset(range(len(least))) if known is None else known
        self._keys: dict[int, dict[Use, IntArray]] = {}
        self._tables: dict[tuple[int, Use], FloatArray] = {}
        self._sums = least.sum(axis=0)
        self.lines = Lines.of(cutoff, least, raised=together is not None)
        each = self.lines, least
        self._outside = None if together is None else (together.before(*each), together.after(*each))
        self._shared = [self._uses(i) for i in range(len(workload.einsums))]
        self._span: dict[str, tuple[int, int]] = {}
        for i, einsum in enumerate(workload.einsums):
            for tensor in einsum.tensors if i in self.known else ():
                self._span[tensor] = (self._span.get(tensor, (i, i))[0], i)
        passing = {tensor for tensor, (first, last) in self._span.items() if first < last}
        self._own = [
            {t: use_of(workload, i, t) for t in einsum.tensors if i in self.known and t in passing}
            for i, einsum in enumerate(workload.einsums)
        ]
        self._costs: dict[int, FloatArray] = {}
        self._kept: dict[Hashable, tuple[list[Some], list[Some]]] = {}  # (before, after): lists that ids stand for
        self.ahead: list[FloatArray] = []
        self.rest = Rest(self.lines.extend(least))

    def _uses(self, position: int) -> dict[int, tuple[tuple[Use, Use], ...]]:
        """Position of each neighbour -> (own use, the neighbour's use) of every tensor that both access."""
        order = self.workload.position
        einsum = self.workload.einsums[position]
        found: dict[int, list[tuple[Use, Use]]] = {}
        for tensor in einsum.tensors:
            users = (*self.workload.consumers[tensor], *self.workload.writers.get(tensor, ()))
            others = {order[u] for u in users} & self.known if position in self.known else set()
            for other in others - {position}:
                mine, theirs = (use_of(self.workload, i, tensor) for i in (position, other))
                found.setdefault(other, []).append((mine, theirs))
        return {other: tuple(found[other]) for other in sorted(found)}

    def filter(self, blocks: list[list[Some]]) -> list[list[Some]]:
        """The rows that may be part of a cascade within the limit."""
        blocks = self._by_neighbours(blocks)
        rounds = 0
        while all(blocks) and rounds < ROUNDS:
            swept = self._by_sweeps(blocks)
            rounds = rounds + 1 if any(a is not b for a, b in zip(swept, blocks, strict=True)) else ROUNDS
            blocks = swept
        self._keys, self._tables, self._costs, self._kept = {}, {}, {}, {}
        return blocks

    def _by_sweeps(self, blocks: list[list[Some]]) -> list[list[Some]]:
        """The rows whose cost, with the least of everything before and after them, can stay within the limit."""
        before, after = self._sweep(blocks, 1), self._sweep(blocks, -1)
        kept: list[list[Some]] = []
        self.ahead = []
        self.rest = Rest(np.array([self._cost(mine).min(axis=0) for mine in blocks]))
        for i, mine in enumerate(blocks):
            self.pause()
            good = ~self.lines.beyond(before[i] + self._cost(mine) + after[i])
            self._lost(int((~good).sum()))
            kept.append(self._shrunk(mine, good))
            self.ahead.append(after[i][good])
        return kept

    def most(self, blocks: list[list[Some]]) -> FloatArray:
        """Per Einsum the most of each settled column that is of use, if it has none but these rows.

        The rest of the cascade costs at least what the sweeps from both ends add up to, in the columns and along the
        lines; the Einsum's other column at least what the row with the least of it has.
        """
        before, after = self._sweep(blocks, 1), self._sweep(blocks, -1)
        rests = np.array([(a + b).min(axis=0) for a, b in zip(before, after, strict=True)])
        return self.lines.most(rests, np.array([self._cost(mine).min(axis=0) for mine in blocks]))

    def beyond(self, step: JoinStep, cost: FloatArray, rows: IntArray) -> np.ndarray:
        """Mask of partial cascades that end with these rows of the Einsum of `step` and lead to nothing of use.

        What the rows ask of others is known of those behind it in the program; where others are to come, the least of
        each counts.
        """
        ahead = self.ahead[step.position][rows] if step.as_written else self.rest.after(step.done)
        return self.lines.beyond(self.lines.extend(cost) + ahead)

    def _sweep(self, blocks: list[list[Some]], step: int) -> list[FloatArray]:
        """For every row the least cost of all Einsums passed before it, going up (1) or down (-1) the cascade.

        Carried along: the least of everything so far, over all, and per key of every tensor that Einsums on both sides
        access. (After mini-buckets in weighted constraint satisfaction.)
        """
        order = range(len(blocks))[::step]
        found: list[FloatArray] = [np.zeros((0, 0))] * len(blocks)
        floor = np.zeros(self._cost(blocks[0]).shape[1])
        tables: dict[str, FloatArray] = {}
        for i in order:
            self.pause()
            mine, uses, cost = blocks[i], self._own[i], self._cost(blocks[i])
            bound = np.broadcast_to(floor, cost.shape).copy()
            for tensor in uses.keys() & tables.keys():
                keys, table = self._numbered(mine, uses[tensor]), tables[tensor]
                known = np.full((self._many(uses[tensor]), cost.shape[1]), np.inf)
                known[: len(table)] = table
                bound = np.maximum(bound, known[keys])
            if self._outside is not None:
                bound = np.maximum(bound, self._outside[0][i] if step > 0 else self._outside[1][i + 1])
            found[i] = bound
            total = bound + cost
            floor = total.min(axis=0)
            least = cost.min(axis=0)
            tables = {t: np.maximum(table + least, floor) for t, table in tables.items() if t not in uses}
            for tensor, use in uses.items():
                first, last = self._span[tensor]
                if i != (last if step > 0 else first):
                    tables[tensor] = self._least_per_key(self._numbered(mine, use), total, use)
        return found

    def _cost(self, mine: list[Some]) -> FloatArray:
        """The cost of every row, with the columns of `lines`."""
        if id(mine) not in self._costs:
            self._costs[id(mine)] = self.lines.extend(np.concatenate([block.cost for block in mine]))
        return self._costs[id(mine)]

    def _by_neighbours(self, blocks: list[list[Some]]) -> list[list[Some]]:
        """The rows that may stay as far as each one's neighbours can tell."""
        for _ in range(ROUNDS):
            rows = {id(mine): sum(map(len, mine)) for mine in blocks}
            filtered: dict[Hashable, list[Some]] = {}
            kept = []
            for i, mine in enumerate(blocks):
                pattern = self._pattern(i, blocks)
                if pattern not in filtered:
                    filtered[pattern] = self._keep(i, blocks)
                kept.append(filtered[pattern])
                self._lost(rows[id(mine)] - sum(map(len, kept[-1])))
            same = all(sum(map(len, mine)) == rows[id(before)] for mine, before in zip(kept, blocks, strict=True))
            blocks = kept
            if same or not all(blocks):
                break
        return blocks

    def _lost(self, rows: int) -> None:
        self.counts[self.rule] = self.counts.get(self.rule, 0) + rows

    def _pattern(self, position: int, blocks: list[list[Some]]) -> Hashable:
        """Equal for two Einsums only if `_keep` does the same to both: rows, least costs, and what neighbours have."""
        around = (
            (id(blocks[other]), self.least[other].tobytes(), uses) for other, uses in self._shared[position].items()
        )
        return (id(blocks[position]), self.least[position].tobytes(), *around)

    @abstractmethod
    def _numbered(self, mine: list[Some], use: Use) -> IntArray:
        """The number of a shared tensor's key in every row."""

    @abstractmethod
    def _many(self, use: Use) -> int:
        """How many keys of the tensor have a number."""

    def _table(self, mine: list[Some], use: Use) -> FloatArray:
        """The least cost per key of a shared tensor [keys, c]; infinite for keys that no row has."""
        if (id(mine), use) not in self._tables:
            cost = np.concatenate([block.cost for block in mine])
            self._tables[id(mine), use] = self._least_per_key(self._numbered(mine, use), cost, use)
        return self._tables[id(mine), use]

    def _least_per_key(self, keys: IntArray, cost: FloatArray, use: Use) -> FloatArray:
        table = np.full((self._many(use), cost.shape[1]), np.inf)
        for c in range(cost.shape[1]):
            np.minimum.at(table[:, c], keys, cost[:, c])
        return table

    def _keep(self, position: int, blocks: list[list[Some]]) -> list[Some]:
        """The rows of one Einsum that stay; the list of before if all do."""
        mine = blocks[position]
        total = np.concatenate([block.cost for block in mine]) + (self._sums - self.least[position])
        for other, uses in self._shared[position].items():
            share = np.broadcast_to(self.least[other], total.shape).copy()
            for own, theirs in uses:
                keys = self._numbered(mine, own)
                table = self._table(blocks[other], theirs)
                known = np.full((self._many(own), total.shape[1]), np.inf)
                known[: len(table)] = table
                share = np.maximum(share, known[keys])
            total = total + (share - self.least[other])
        good = ~self.cutoff.beyond(total)
        return self._shrunk(mine, good)

    def _shrunk(self, mine: list[Some], good: np.ndarray) -> list[Some]:
        """The good rows, with what is known of them; the same list for the same rows of the same list."""
        if good.all():
            return mine
        pattern = (id(mine), good.tobytes())
        if pattern not in self._kept:
            found = chosen(mine, good)
            self._kept[pattern] = (mine, found)
            self._keys[id(found)] = {use: keys[good] for use, keys in self._keys.get(id(mine), {}).items()}
        return self._kept[pattern][1]


class _Numbers:
    """Numbers of keys, in the order in which they are met: of a store with the loops above it, and its tile."""

    def __init__(self) -> None:
        self._next = count()
        self._known: dict[Hashable, defaultdict[int, int]] = defaultdict(lambda: defaultdict(self._next.__next__))

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))

    def of(self, store: Hashable, tiles: IntArray) -> IntArray:
        """The numbers of some tiles of a store."""
        known = self._known[store]
        return np.array([known[tile] for tile in tiles.tolist()], np.int64)


class Consistency(Arcs[PmappingGroup]):
    """Filters the blocks of a cascade."""

    def filled(self, blocks: list[list[PmappingGroup]]) -> list[list[PmappingGroup]]:
        """The blocks, with one row that costs the least in place of those that are not known."""
        none = np.zeros(1, np.int64)

        def bare(i: int) -> PmappingGroup:
            return PmappingGroup(
                FusedTemplate((), ()), none[:, None][:, :0], self.least[i : i + 1], none[:, None, None], none, none
            )

        return [mine if i in self.known else [bare(i)] for i, mine in enumerate(blocks)]

    @cached_property
    def _numbers(self) -> dict[tuple[int, ...], _Numbers]:
        return defaultdict(_Numbers)

    def _many(self, use: Use) -> int:
        return len(self._numbers[use.sizes])

    def _numbered(self, mine: list[PmappingGroup], use: Use) -> IntArray:
        """The key number of a shared tensor in every row, blocks one after the other."""
        known = self._keys.setdefault(id(mine), {})
        if use not in known:
            numbers = self._numbers[use.sizes]
            parts = []
            for block in mine:
                shape = block.structure.shape(use.tensor, use.ranks)
                unique, inverse = np.unique(numbered(block.tiles, shape, use.sizes), return_inverse=True)
                parts.append(numbers.of(shape, unique)[inverse.reshape(-1)])
            known[use] = np.concatenate(parts)
        return known[use]


class Rest:
    """What the Einsums that have not run cost at least together. least: each of them [n, c]."""

    def __init__(self, least: FloatArray) -> None:
        self._least = least

    @once_each
    def after(self, done: int) -> FloatArray:
        """The sum of each column. done: the Einsums that have run, as a set of places."""
        left = [i for i in range(len(self._least)) if not done >> i & 1]
        return np.asarray(self._least[left].sum(axis=0))


def chosen(mine: list[Some], good: np.ndarray) -> list[Some]:
    """The good rows; blocks without any are left out."""
    ends = np.cumsum([len(block) for block in mine], dtype=np.int64)
    many = np.diff(np.concatenate([[0], np.cumsum(good)])[np.concatenate([[0], ends])])
    kept = []
    for block, end, wanted in zip(mine, ends.tolist(), many.tolist(), strict=True):
        if wanted:
            some = wanted < len(block)
            kept.append(block.take(np.flatnonzero(good[end - len(block) : end])) if some else block)
    return kept

"""Every way to stack fused loops and stores down to the lowest store of one Einsum that stands above a split.

Comes in: a choice of held tensors and of spatial loops. Goes out: `FusedTemplate`s with the own stores between their
loops. Order: stores memory by memory; a fused loop iterates a variable that indexes every tensor still to be backed
alone (no recomputation), each variable at most once; a loop directly below an own store is one that its tensor lacks
(``lowering``). Only intermediates give loops a reason: the store of a lent tensor stands among theirs, below any loops;
above that of a persistent tensor there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby, permutations, product
from typing import NamedTuple

from ....dataclass import dataclass
from ....once import once_each
from ..einsums.classes import UnitOption
from ..einsums.holds import Placement, backing
from ..einsums.runs import SpatialChoice
from ..einsums.spatial import RankClasses
from ..einsums.users import Part

Shape = tuple[int, tuple[tuple[int | None, int | None], ...]]


class FusedLoop(NamedTuple):
    """A loop above a shared tensor's backing store: temporal, or spatial over axis number `axis`."""

    variable: int
    axis: int | None = None


class SplitConstraint(NamedTuple):
    """What a tile that is kept, or is not, asks of the splits above its store: some split, or none, has from `least` to
    `most` of the Einsum's loops above it."""

    least: int
    most: int
    some: bool


@dataclass(frozen=True, slots=True)
class Alone:
    """What an own store of a shared tensor asks, because it serves one Einsum (rule 8): no other Einsum that accesses
    the tensor shares more than `loops` loops.

    under: tensors backed further in below as many loops. If one of them stands above a split there, so does the own
    store: then none that accesses the tensor shares `loops` loops either. late: the store stands below the split of a
    group, unless the split that holds the group has more than `loops` loops above it.
    """

    tensor: int
    loops: int
    under: frozenset[int] = frozenset()
    late: bool = False


class LentStore(NamedTuple):
    """A store for several readers: tensor, memory, loops above, and the Einsum's part in it."""

    tensor: int
    memory: int
    depth: int
    part: Part


@dataclass(frozen=True, slots=True)
class FusedTemplate:
    """What partners must agree on, but for tiles: loops in order, (tensor, memory, loops above) per backed tensor, and
    stores for several readers; and what its own stores ask of the splits above them and of other Einsums."""

    loops: tuple[FusedLoop, ...]
    backings: tuple[tuple[int, int, int], ...]
    asked: frozenset[SplitConstraint] = frozenset()
    alone: frozenset[Alone] = frozenset()
    lent: tuple[LentStore, ...] = ()

    @property
    def asks(self) -> frozenset[Alone]:
        """What own stores ask, and stores for several readers of those that they do not serve."""
        return self.alone | {Alone(x.tensor, x.depth) for x in self.lent}

    @property
    def depth(self) -> int:
        """Temporal loops in the fused part."""
        return self.temporal(len(self.loops))

    def temporal(self, depth: int) -> int:
        """Temporal loops among the first `depth`."""
        return sum(loop.axis is None for loop in self.loops[:depth])

    def place(self, tensor: int) -> tuple[int, int]:
        """The memory that backs a tensor, and the loops above it."""
        return next(((m, depth) for t, m, depth in self.backings if t == tensor), (0, 0))

    def shape(self, tensor: int, ranks: Sequence[int | None]) -> Shape:
        """The memory that backs a tensor, and (rank, axis) of each loop above it, as all its users see them. ranks: of
        the Einsum's variables."""
        memory, depth = self.place(tensor)
        return memory, tuple((ranks[loop.variable], loop.axis) for loop in self.loops[:depth])


@dataclass(frozen=True, slots=True)
class OwnStore:
    """A store of the fused part that serves this Einsum alone: `depth` loops stand above it.

    over: the temporal loops above it, innermost first, over which its tile stays though it cannot stand above them.
    asked: what that asks of the splits. part: the Einsum's part in it, if it serves others as well.
    """

    tensor: int
    memory: int
    depth: int
    over: tuple[int, ...] = ()
    asked: frozenset[SplitConstraint] = frozenset()
    part: Part | None = None

    @property
    def joins(self) -> bool:
        """True if another Einsum has filled it."""
        return self.part in ("keeps", "ends")


@dataclass(frozen=True, slots=True)
class Stack:
    """A fused part under construction: at `memory`, with `left` of its stores and `waiting` of all backing stores to
    come."""

    memory: int
    loops: tuple[FusedLoop, ...] = ()
    stores: tuple[OwnStore, ...] = ()
    backs: tuple[tuple[int, int, int], ...] = ()
    left: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()

    @property
    def begun(self) -> bool:
        """True once the present memory has a store: loops may follow. Those of a memory without stores stand above the
        spatial loops before it (rule 3), where they were tried."""
        placed = any(s.memory == self.memory for s in self.stores) or any(m == self.memory for _, m, _ in self.backs)
        return placed or self.memory == 0

    def stored(self, loop: int) -> int:
        """How many stores stand below loop number `loop`."""
        return sum(s.depth > loop for s in self.stores) + sum(depth > loop for _, _, depth in self.backs)

    def after(self, tensor: int, last: bool = False) -> bool:
        """True if a store of a higher number stands at this depth of this memory: that order was tried already. last:
        the tensor has to come after own stores that keep their tile or serve others."""
        depth = len(self.loops)
        own = (s for s in self.stores if not (last and (s.over or s.part)))
        placed = [s.tensor for s in own if s.depth == depth and s.memory == self.memory]
        placed += [t for t, m, d in self.backs if d == depth and m == self.memory]
        return any(other > tensor for other in placed)


@dataclass(frozen=True)
class Stacker:
    """Enumerates fused parts. held: down to `memory`, the innermost that backs, or one further in
    whose own stores keep their tiles above a split; spread: instances of every class on
    each axis above it; fused: its own stores that stand in the fused part; welcome: for tensors whose other users are
    explored already, how those store them; per_rank: how often fused loops may cut a rank; lowering:
    memories whose own stores stand as low as they may."""

    classes: RankClasses
    option: UnitOption
    held: Placement
    spread: SpatialChoice
    memory: int
    fused: frozenset[int]
    max_fused_loops: int | None
    per_rank: int
    lowering: frozenset[int]
    welcome: dict[int, frozenset[Shape]]

    def structures(self) -> Iterator[tuple[FusedTemplate, tuple[OwnStore, ...]]]:
        """Every structure once, with its own stores."""
        backed = frozenset(t for t in self.classes.signature.fusable if backing(self.held, t) > 0)
        if not all((0, ()) in shapes for t, shapes in self.welcome.items() if t not in backed):
            return
        if self.memory == 0:
            yield FusedTemplate((), ()), ()
        elif self._leads((), backed) and all(self._spreadable(t) for t in backed):
            yield from self._descend(Stack(0, waiting=backed))

    def _spreadable(self, tensor: int) -> bool:
        """True if the tensor's backing store may stand below all spatial loops above its memory."""
        signature, outside = self.classes.signature.tensors[tensor], self._outside(tensor)
        if signature.persistent:
            return not outside
        if signature.lent:
            return not any(x.variable in signature.complex_variables for x in outside)
        return all(x.variable in self._fused[tensor] for x in outside)

    def _outside(self, tensor: int) -> tuple[FusedLoop, ...]:
        """The spatial loops above the memory that backs the tensor: all of them stand above its store."""
        return tuple(x for m in range(1, backing(self.held, tensor) + 1) for x in self._between(m))

    @cached_property
    def _backed(self) -> tuple[frozenset[int], ...]:
        """Per memory the tensors that it backs on chip."""
        backs = {t: backing(self.held, t) for t in self.classes.signature.fusable}
        return tuple(frozenset(t for t, m in backs.items() if m == memory > 0) for memory in range(len(self.held)))

    def _own(self, memory: int) -> frozenset[int]:
        return self.fused if memory == self.memory else self.held[memory] - self._backed[memory]

    @cached_property
    def _simple(self) -> tuple[frozenset[int], ...]:
        """Per tensor the variables that index it alone on a rank."""
        signature = self.classes.signature
        every = range(len(signature.extents))
        return tuple(frozenset(v for v in every if t.simple_rank(v) is not None) for t in signature.tensors)

    @cached_property
    def _fused(self) -> tuple[frozenset[int], ...]:
        """Per tensor the variables that index it alone on a rank that loops above its backing store may iterate."""
        tensors = self.classes.signature.tensors
        pairs = zip(tensors, self._simple, strict=True)
        return tuple(frozenset(v for v in simple if t.fused_rank(v) is not None) for t, simple in pairs)

    @once_each
    def _common(self, waiting: frozenset[int]) -> frozenset[int]:
        """The variables of loops that may stand above the backing stores of what waits: those that index every
        intermediate alone on a rank, and every lent tensor so or not at all."""
        tensors = self.classes.signature.tensors
        links = [t for t in waiting if tensors[t].intermediate]
        if not links or any(tensors[t].persistent for t in waiting):
            return frozenset()
        windows = frozenset[int]().union(*(tensors[t].complex_variables for t in waiting if tensors[t].lent))
        return frozenset.intersection(*(self._fused[t] for t in links)) - windows

    @cached_property
    def _looping(self) -> frozenset[int]:
        """The variables of more than one value."""
        return frozenset(v for v, extent in enumerate(self.classes.signature.extents) if extent > 1)

    @cached_property
    def _free(self) -> frozenset[int]:
        """The variables whose loops may be moved across stores."""
        return frozenset(v for v, d in self.classes.of.items() if d not in self.classes.pinned)

    def _descend(self, at: Stack) -> Iterator[tuple[FusedTemplate, tuple[OwnStore, ...]]]:
        depth = len(at.loops)
        if not at.left and at.memory == self.memory:
            if max((d for _, _, d in at.backs), default=0) == depth and self._ends(at):
                asked = frozenset[SplitConstraint]().union(*(s.asked for s in at.stores))
                lent = tuple(sorted(LentStore(s.tensor, s.memory, s.depth, s.part) for s in at.stores if s.part))
                backs = tuple(sorted(at.backs))
                yield FusedTemplate(at.loops, backs, asked, frozenset(self._alone(at)), lent), at.stores
            return
        if not at.left:
            yield from self._cross(at)
        for t in sorted(at.left):
            left = at.left - {t}
            last = t in self._backed[at.memory] and at.waiting == {t} and not left and at.memory == self.memory
            if at.after(t, last):
                continue
            if t in self._backed[at.memory]:
                if not self._hoistable(at) or (at.waiting == {t} and not self._closes(at, left)):
                    continue
                if any(s.part and s.depth == depth and s.memory < at.memory for s in at.stores):
                    continue
                if t in self.welcome and (at.memory, self._above(t, at.loops)) not in self.welcome[t]:
                    continue
                backs = (*at.backs, (t, at.memory, depth))
                yield from self._descend(Stack(at.memory, at.loops, at.stores, backs, left, at.waiting - {t}))
            elif not self._halo_above(t, at.loops):
                for store in (*self._standing(t, at), *self._lent(t, at)):
                    stores = (*at.stores, store)
                    yield from self._descend(Stack(at.memory, at.loops, stores, at.backs, left, at.waiting))
        limit = self.max_fused_loops
        if at.waiting and at.begun and (limit is None or sum(x.axis is None for x in at.loops) < limit):
            yield from self._deepen(at)

    def _standing(self, tensor: int, at: Stack) -> Iterator[OwnStore]:
        """The ways in which a tensor's own store may stand here: they differ in the loops over which its tile stays.

        A tile stays over loops directly above its store that do not move it, up to the nearest split. Where the store
        may as well stand above these loops that is left to such trees. It may not if spatial loops or a store of a
        memory further out stand between. (A split between them ends what the tile is kept for.)
        """
        depth, variables = len(at.loops), self.classes.signature.tensors[tensor].variables
        run: list[int] = []
        for i in reversed(range(depth)):
            if at.loops[i].axis is None:
                if at.loops[i].variable in variables:
                    break
                run.append(i)
        if not run or not self._barred(at, run[0]):
            yield OwnStore(tensor, at.memory, depth)
            return
        for kept in range(len(run) + 1 if self._hoistable(at) else 1):
            asked = set()
            if kept:
                asked.add(SplitConstraint(run[kept - 1] + 1, depth - 1, False))
            if kept < len(run):
                asked.add(SplitConstraint(run[kept] + 1, run[kept - 1] if kept else depth - 1, True))
            if all(x.least <= x.most or not x.some for x in asked):
                real = frozenset(x for x in asked if x.least <= x.most)
                yield OwnStore(tensor, at.memory, depth, tuple(run[:kept]), real)

    def _lent(self, tensor: int, at: Stack) -> Iterator[OwnStore]:
        """The stores of a tensor for several readers that may stand here (rule 8), one for each part in them."""
        parts, depth = self.classes.signature.tensors[tensor].parts, len(at.loops)
        if not parts or backing(self.held, tensor) > 0 or any(tensor in held for held in self.held[1 : at.memory]):
            return
        inner = next((x.variable for x in reversed(at.loops) if x.axis is None), None)
        beside = [s.memory for s in at.stores if s.depth == depth] + [m for _, m, d in at.backs if d == depth]
        linked = at.waiting | {t for t, m, d in at.backs if (m, d) == (at.memory, depth)}
        moved = inner is None or inner in self._simple[tensor]
        if moved and self._linking(linked) and all(memory == at.memory for memory in beside):
            yield from (OwnStore(tensor, at.memory, depth, part=part) for part in parts)

    @staticmethod
    def _barred(at: Stack, loop: int) -> bool:
        """True if a store that comes next cannot stand above loop number `loop` instead, the innermost temporal one."""
        outer = [s.depth for s in at.stores if s.memory < at.memory] + [d for _, m, d in at.backs if m < at.memory]
        return loop + 1 < len(at.loops) or any(d > loop for d in outer)

    def _ends(self, at: Stack) -> bool:
        """True if the last stores are backing ones, or own stores further in that all keep their tile (others
        are inside the Einsum)."""
        mine = [s for s in at.stores if s.memory == self.memory]
        return bool(self._backed[self.memory]) or all(s.over for s in mine)

    def _closes(self, at: Stack, left: frozenset[int]) -> bool:
        """True if the last backing store may stand here: no loop follows, and every own store of the same memory stands
        above some loop or keeps its tile (those that do not are inside the Einsum). Where own stores further in follow,
        all of its memory stand above them."""
        if at.memory < self.memory:
            return True
        mine = (s for s in at.stores if s.memory == self.memory)
        return not left and all(s.depth < len(at.loops) or s.over or s.part for s in mine)

    def _alone(self, at: Stack) -> Iterator[Alone]:
        """What the own stores ask of other Einsums that access their tensors."""
        for s in at.stores:
            tensor = self.classes.signature.tensors[s.tensor]
            if s.part:
                continue
            here = [x for x in at.stores if x.depth == s.depth and x.over]
            if not tensor.shared:
                continue
            if any(x.memory > s.memory or x is s for x in here):  # above the split, which would empty it
                yield Alone(s.tensor, s.depth - 1)
                continue
            under = frozenset(t for t, m, depth in at.backs if depth == s.depth and m > s.memory)
            if under or (tensor.contested and s.depth < len(at.loops)):
                yield Alone(s.tensor, s.depth, under)

    def _hoistable(self, at: Stack) -> bool:
        """True if what is to be backed here, or to keep its tile, may stand below all own stores of this depth.

        Those of memories further out then stand above every split here, and are not emptied by it: what does not move
        with the loop above them is as well stored above that loop, or kept over it.
        """
        inner = next((i for i in reversed(range(len(at.loops))) if at.loops[i].axis is None), None)
        if inner is None:
            return True
        mine = (s for s in at.stores if s.depth == len(at.loops) and s.memory < at.memory)
        tensors, variable = self.classes.signature.tensors, at.loops[inner].variable
        return all(variable in tensors[s.tensor].variables or inner in s.over or s.asked for s in mine)

    def _above(self, tensor: int, loops: tuple[FusedLoop, ...]) -> tuple[tuple[int | None, int | None], ...]:
        """(rank, axis) of each loop, as other users of the tensor see them."""
        ranks = self.classes.signature.ranks[tensor]
        return tuple((ranks[x.variable], x.axis) for x in loops)

    @cached_property
    def _beginnings(self) -> dict[int, frozenset[tuple[tuple[int | None, int | None], ...]]]:
        """Per tensor every beginning of the loops that its other users have above it in the memory that backs it.

        Only of those whose spatial loops are the spatial choice's.
        """
        found = {}
        for t, shapes in self.welcome.items():
            spatial = Counter(self._above(t, self._outside(t)))
            mine = (loops for memory, loops in shapes if memory == backing(self.held, t))
            good = [loops for loops in mine if Counter(x for x in loops if x[1] is not None) == spatial]
            found[t] = frozenset(loops[:depth] for loops in good for depth in range(len(loops) + 1))
        return found

    def _leads(self, loops: tuple[FusedLoop, ...], waiting: frozenset[int]) -> bool:
        """True if every tensor still to be backed may have these loops above it."""
        return all(self._above(t, loops) in begins for t, begins in self._beginnings.items() if t in waiting)

    def _deepen(self, at: Stack) -> Iterator[tuple[FusedTemplate, tuple[OwnStore, ...]]]:
        """One more temporal loop."""
        depth = len(at.loops)
        last = {x.variable: i for i, x in enumerate(at.loops) if x.axis is None}
        common = self._looping & self._common(at.waiting)
        usable = common - last.keys()
        if self.per_rank > 1 or not self._linking(at.waiting):
            usable |= {v for v in common & last.keys() if self._again(at, v) and at.stored(last[v])}
        for s in at.stores:
            if s.depth == depth and s.memory in self.lowering and not s.over and not s.part:
                moved = usable & self._simple[s.tensor] & self._free
                usable -= {v for v in moved if v not in last or at.stored(last[v]) > 1}
        for v in sorted(usable):
            loops = (*at.loops, FusedLoop(v))
            if self._leads(loops, at.waiting):
                yield from self._descend(Stack(at.memory, loops, at.stores, at.backs, at.left, at.waiting))

    def _again(self, at: Stack, variable: int) -> bool:
        """True if one more temporal loop may cut a variable that others cut: below all that is fused no loop is."""
        cut = sum(x.variable == variable and x.axis is None for x in at.loops)
        return cut < self.per_rank or not self._linking(at.waiting)

    def _cross(self, at: Stack) -> Iterator[tuple[FusedTemplate, tuple[OwnStore, ...]]]:
        """On to the next memory, under the spatial loops of the fanouts between."""
        new = at.memory + 1
        left = self._backed[new] | self._own(new)
        for between in self._orders(new):
            loops = (*at.loops, *between)
            if not between or (self._linking(at.waiting) and self._leads(loops, at.waiting)):
                yield from self._descend(Stack(new, loops, at.stores, at.backs, left, at.waiting))

    def _orders(self, memory: int) -> list[tuple[FusedLoop, ...]]:
        """The spatial loops of the fanouts directly above a memory: those of one axis in the order of the cascade or,
        if it has none, in every order, as Einsums that share them need not have their variables in the same one."""
        order, between = self.classes.signature.order, self._between(memory)
        if order:
            return [tuple(sorted(between, key=lambda loop: (loop.axis, order.index(loop.variable))))]
        axes = [list(loops) for _, loops in groupby(between, key=lambda loop: loop.axis)]
        return [tuple(chain(*orders)) for orders in product(*map(permutations, axes))]

    def _linking(self, waiting: frozenset[int]) -> bool:
        """True if an intermediate waits: it is the reason for the loops above its store."""
        return any(self.classes.signature.tensors[t].intermediate for t in waiting)

    @once_each
    def _between(self, memory: int) -> tuple[FusedLoop, ...]:
        """The spatial loops of the fanouts directly above a memory."""
        signature = self.classes.signature
        axes = [(i, axis) for i, axis in enumerate(signature.axes) if axis.fanout < self.option.fanouts]
        return tuple(
            FusedLoop(v, i)
            for (i, axis), row in zip(axes, self.spread, strict=False)
            if self.option.above[memory - 1] <= axis.fanout < self.option.above[memory]
            for v in range(len(signature.extents))
            if row[self.classes.of[v]] > 1
        )

    def _halo_above(self, tensor: int, loops: tuple[FusedLoop, ...]) -> bool:
        """True if a fused loop iterates a variable of a sliding tensor's compound rank (not in the space)."""
        signature = self.classes.signature.tensors[tensor]
        return signature.slides and any(x.variable in signature.complex_variables for x in loops)

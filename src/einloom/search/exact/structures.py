"""Every way to stack fused loops and stores down to the lowest backing store of one Einsum.

Comes in: a choice of held tensors and of spatial loops. Goes out: `Structure`s with the own stores between their
loops. Order: stores memory by memory; a fused loop iterates a variable that indexes every tensor still to be backed
alone (no recomputation), each variable at most once; a loop directly below an own store is one that its tensor lacks
(``lowering``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from .signature import Held, UnitOption
from .spatial import Classes, Spread

Shape = tuple[int, tuple[tuple[int | None, int | None], ...]]


@dataclass(frozen=True, slots=True)
class FusedLoop:
    """A loop above a shared tensor's backing store: temporal, or spatial over axis number `axis`."""

    variable: int
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class Structure:
    """What partners must agree on, but for trips: loops in order, and (tensor, memory, loops above) per backed
    tensor."""

    loops: tuple[FusedLoop, ...]
    backings: tuple[tuple[int, int, int], ...]

    @property
    def depth(self) -> int:
        """Temporal loops in the fused part."""
        return self.temporal(len(self.loops))

    def temporal(self, depth: int) -> int:
        """Temporal loops among the first `depth`."""
        return sum(loop.axis is None for loop in self.loops[:depth])


@dataclass(frozen=True, slots=True)
class OwnStore:
    """A store above the lowest backing store that serves this Einsum alone: `depth` loops stand above it."""

    tensor: int
    memory: int
    depth: int


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
        """True once the present memory has a store, or needs none any more: loops may follow."""
        placed = any(s.memory == self.memory for s in self.stores) or any(m == self.memory for _, m, _ in self.backs)
        return placed or not self.left

    def after(self, tensor: int) -> bool:
        """True if a store of a higher number stands at this depth of this memory: that order was tried already."""
        depth = len(self.loops)
        placed = [s.tensor for s in self.stores if s.depth == depth and s.memory == self.memory]
        placed += [t for t, m, d in self.backs if d == depth and m == self.memory]
        return any(other > tensor for other in placed)


@dataclass(frozen=True)
class Stacker:
    """Enumerates fused parts. held: down to `memory`, the innermost that backs; spread: instances of every class on
    each axis above it; fused: its own stores that stand in the fused part; welcome: for tensors whose other users are
    explored already, how those store them; lowering: memories whose own stores stand as low as they may."""

    classes: Classes
    option: UnitOption
    held: Held
    spread: Spread
    memory: int
    fused: frozenset[int]
    fusable: frozenset[int]
    max_fused_loops: int | None
    lowering: frozenset[int]
    welcome: dict[int, frozenset[Shape]]

    def structures(self) -> Iterator[tuple[Structure, tuple[OwnStore, ...]]]:
        """Every structure once, with its own stores."""
        backed = {t for t in self.fusable if self._backing(t) > 0}
        if not all((0, ()) in shapes for t, shapes in self.welcome.items() if t not in backed):
            return
        if self.memory == 0:
            yield Structure((), ()), ()
            return
        waiting = frozenset(t for t in self.fusable if self._backing(t) > 0)
        yield from self._descend(Stack(0, waiting=waiting))

    def _backing(self, tensor: int) -> int:
        return next(m for m, h in enumerate(self.held) if tensor in h)

    def _backed(self, memory: int) -> frozenset[int]:
        mine = (t for t in self.held[memory] if t in self.fusable and self._backing(t) == memory)
        return frozenset(mine) if memory else frozenset()

    def _own(self, memory: int) -> frozenset[int]:
        return self.fused if memory == self.memory else self.held[memory] - self._backed(memory)

    def _usable(self, variable: int, waiting: frozenset[int]) -> bool:
        return all(self._simple[t][variable] for t in waiting)

    @cached_property
    def _simple(self) -> tuple[tuple[bool, ...], ...]:
        """Per tensor and variable: does the variable index the tensor alone on a rank?"""
        signature = self.classes.signature
        every = range(len(signature.extents))
        return tuple(tuple(t.simple_rank(v) is not None for v in every) for t in signature.tensors)

    @cached_property
    def _ranks(self) -> tuple[tuple[int | None, ...], ...]:
        """Per tensor and variable the rank whose expression has the variable."""
        signature = self.classes.signature
        return tuple(tuple(t.rank_of(v) for v in range(len(signature.extents))) for t in signature.tensors)

    def _descend(self, at: Stack) -> Iterator[tuple[Structure, tuple[OwnStore, ...]]]:
        depth = len(at.loops)
        if not at.left and at.memory == self.memory:
            lowest = max((d for _, _, d in at.backs), default=0)
            above = all(s.depth < depth for s in at.stores if s.memory == self.memory)
            if not at.waiting and lowest == depth and above:
                yield Structure(at.loops, tuple(sorted(at.backs))), at.stores
            return
        if not at.left:
            yield from self._cross(at)
        for t in sorted(at.left):
            if at.after(t):
                continue
            left = at.left - {t}
            if t in self._backed(at.memory):
                if not self._hoistable(at):
                    continue
                if t in self.welcome and (at.memory, self._above(t, at.loops)) not in self.welcome[t]:
                    continue
                backs = (*at.backs, (t, at.memory, depth))
                yield from self._descend(Stack(at.memory, at.loops, at.stores, backs, left, at.waiting - {t}))
            elif not self._halo_above(t, at.loops):
                stores = (*at.stores, OwnStore(t, at.memory, depth))
                yield from self._descend(Stack(at.memory, at.loops, stores, at.backs, left, at.waiting))
        limit = self.max_fused_loops
        if at.waiting and at.begun and (limit is None or sum(x.axis is None for x in at.loops) < limit):
            yield from self._deepen(at)

    def _hoistable(self, at: Stack) -> bool:
        """True if what is to be backed here may stand below all own stores of this depth.

        Those of memories further out then stand above every split here, and are not emptied by it: what does not move
        with the loop above them is as well stored above that loop.
        """
        inner = next((x.variable for x in reversed(at.loops) if x.axis is None), None)
        tensors = self.classes.signature.tensors
        return inner is None or all(
            inner in tensors[s.tensor].variables for s in at.stores if s.depth == len(at.loops) and s.memory < at.memory
        )

    def _above(self, tensor: int, loops: tuple[FusedLoop, ...]) -> tuple[tuple[int | None, int | None], ...]:
        """(rank, axis) of each loop, as other users of the tensor see them."""
        ranks = self._ranks[tensor]
        return tuple((ranks[x.variable], x.axis) for x in loops)

    @cached_property
    def _beginnings(self) -> dict[int, frozenset[tuple[tuple[int | None, int | None], ...]]]:
        """Per tensor every beginning of the loops that its other users have above it."""
        return {
            t: frozenset(loops[:depth] for _, loops in shapes for depth in range(len(loops) + 1))
            for t, shapes in self.welcome.items()
        }

    def _leads(self, loops: tuple[FusedLoop, ...], waiting: frozenset[int]) -> bool:
        """True if every tensor still to be backed may have these loops above it."""
        return all(self._above(t, loops) in begins for t, begins in self._beginnings.items() if t in waiting)

    def _deepen(self, at: Stack) -> Iterator[tuple[Structure, tuple[OwnStore, ...]]]:
        """One more temporal loop."""
        signature = self.classes.signature
        directly_above = [s.tensor for s in at.stores if s.depth == len(at.loops) and s.memory in self.lowering]
        for v, extent in enumerate(signature.extents):
            taken = any(x.variable == v and x.axis is None for x in at.loops)
            if extent == 1 or taken or not self._usable(v, at.waiting):
                continue
            if self.classes.of[v] not in self.classes.pinned and any(self._simple[t][v] for t in directly_above):
                continue
            loops = (*at.loops, FusedLoop(v))
            if self._leads(loops, at.waiting):
                yield from self._descend(Stack(at.memory, loops, at.stores, at.backs, at.left, at.waiting))

    def _cross(self, at: Stack) -> Iterator[tuple[Structure, tuple[OwnStore, ...]]]:
        """On to the next memory, under the spatial loops of the fanouts between."""
        signature, new = self.classes.signature, at.memory + 1
        axes = [(i, axis) for i, axis in enumerate(signature.axes) if axis.fanout < self.option.fanouts]
        between = [
            FusedLoop(v, i)
            for (i, axis), row in zip(axes, self.spread, strict=False)
            if self.option.above[at.memory] <= axis.fanout < self.option.above[new]
            for v in range(len(signature.extents))
            if row[self.classes.of[v]] > 1
        ]
        if all(self._usable(x.variable, at.waiting) for x in between):
            left = self._backed(new) | self._own(new)
            loops = (*at.loops, *between)
            yield from self._descend(Stack(new, loops, at.stores, at.backs, left, at.waiting))

    def _halo_above(self, tensor: int, loops: tuple[FusedLoop, ...]) -> bool:
        """True if a fused loop iterates a variable of a sliding tensor's compound rank (not in the space)."""
        signature = self.classes.signature.tensors[tensor]
        return signature.slides and any(x.variable in signature.complex_variables for x in loops)

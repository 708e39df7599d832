"""Own stores serve one Einsum (rule 8), whichever loops Einsums have in common.

Comes in: what the own stores of each row ask (`structures.Alone`). Goes out: what a partial cascade remembers of the
stores and accesses so far, or that an Einsum may not follow. Loops are counted from the root: an own store with so many
loops above it stands above all Einsums that share more, and directly above a split also above those that share as many.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property

from ....dataclass import dataclass
from ....once import once_each
from ....workload.einsum import Workload
from ..einsums.orders import JoinStep
from .templates import Alone


@dataclass(frozen=True, slots=True)
class Guard:
    """An own store above loops that the next Einsum may share, as `Alone`, by names.

    under: tensors that are live still. met: an Einsum before the store's accesses the tensor and shares just `loops`
    loops. member: place of an Einsum of the open group whose store is late; -1 for other stores.
    """

    tensor: str
    loops: int
    under: frozenset[str] = frozenset()
    met: bool = False
    member: int = -1


@dataclass(frozen=True, slots=True)
class Served:
    """What a partial cascade remembers. seen: (tensor, loops that the next Einsum shares with the last Einsum that
    accessed it), where a later store may ask. split: live tensors whose backing store stands above a split already."""

    guards: frozenset[Guard] = frozenset()
    seen: frozenset[tuple[str, int]] = frozenset()
    split: frozenset[str] = frozenset()

    def renamed(self, name: Callable[[str], str]) -> Served:
        """The same with other names of tensors."""
        guards = (replace(x, tensor=name(x.tensor), under=frozenset(map(name, x.under))) for x in self.guards)
        seen = frozenset((name(tensor), loops) for tensor, loops in self.seen)
        return Served(frozenset(guards), seen, frozenset(map(name, self.split)))


NOTHING = Served()


@dataclass(frozen=True, slots=True)
class ServingStep:
    """One Einsum more, at `step`. alone: what its own stores ask; shared: loops that it shares with the Einsum before;
    open: loops that it shares with the next; live: loops above each tensor that is still needed.

    members: places of those of its group so far, itself included, if it is in one; outer: loops above the split that
    holds the group; closing: the group ends with it. ended: stores for several readers of which it is the last.
    """

    step: JoinStep
    alone: frozenset[Alone]
    shared: int
    open: int
    live: dict[str, int]
    members: tuple[int, ...] = ()
    outer: int = 0
    closing: bool = False
    ended: tuple[Guard, ...] = ()


class Serving:
    """Follows own stores along a cascade. asking: per place what the own stores of any row there ask, and the stores
    for several readers."""

    def __init__(self, workload: Workload, asking: Sequence[frozenset[Alone]]) -> None:
        self._names = [einsum.tensors for einsum in workload.einsums]
        self._users: dict[str, int] = {}  # sets of places
        for i, tensors in enumerate(self._names):
            for tensor in tensors:
                self._users[tensor] = self._users.get(tensor, 0) | 1 << i
        self._under: set[str] = set()
        self._asked: list[tuple[int, frozenset[str]]] = []
        for i, (tensors, asked) in enumerate(zip(self._names, asking, strict=True)):
            self._asked += [(1 << i, frozenset(tensors[x.tensor] for x in asked))] if asked else []
            self._under |= {tensors[t] for x in asked for t in x.under}

    @once_each
    def _later(self, done: int) -> frozenset[str]:
        """The tensors that stores of Einsums to come may ask about."""
        return frozenset[str]().union(*(tensors for bit, tensors in self._asked if not done & bit))

    def knows(self, step: JoinStep, name: Callable[[str], str]) -> Hashable:
        """What `after` looks up about tensors that the Einsum accesses, or others both before and after it, by name.

        Tensors that no store asks about, now or later, are not looked up.
        """
        later, found = self._later(step.done), []
        for tensor in self._relevant:
            users = self._users[tensor]
            if users & step.done and users & ~step.before:
                found.append((name(tensor), tensor in later, tensor in self._under, self._needed(tensor, step)))
        return bool(later), tuple(sorted(found))

    @cached_property
    def _relevant(self) -> frozenset[str]:
        return self._later(0) | self._under

    def _needed(self, tensor: str, step: JoinStep) -> bool:
        """True if an Einsum to come accesses the tensor."""
        return bool(self._users[tensor] & ~step.done)

    def after(self, before: Served, step: ServingStep) -> Served | None:
        """What is known after one Einsum more; None if an own store would serve two."""
        later = self._later(step.step.done)
        if not step.alone and not step.ended and not before.guards and not later:
            return NOTHING
        names = self._names[step.step.position]
        if any(x.tensor in names and x.member < 0 and step.shared > x.loops for x in before.guards):
            return None
        seen = dict(before.seen)
        guards: set[Guard] = set()
        fresh = [self._guard(x, names, seen, before.split, step) for x in step.alone]
        for guard in (*before.guards, *step.ended, *fresh):
            if guard is None or (kept := self._kept(guard, step)) is None:
                return None
            if kept.loops < step.open and self._needed(kept.tensor, step.step):
                guards.add(kept)
        loops = {t: min(n, step.open) for t, n in seen.items()} | dict.fromkeys(names, step.open)
        split = {t for t, n in step.live.items() if t in self._under and (n == step.open or t in before.split)}
        return Served(frozenset(guards), frozenset((t, n) for t, n in loops.items() if t in later), frozenset(split))

    def _guard(
        self, asked: Alone, names: tuple[str, ...], seen: dict[str, int], split: frozenset[str], step: ServingStep
    ) -> Guard | None:
        """The guard of an own store; None if another Einsum before is below the store."""
        tensor, loops = names[asked.tensor], asked.loops
        if asked.late and step.outer <= loops:
            return Guard(tensor, loops, member=step.step.position)
        under = frozenset(names[t] for t in asked.under)
        if under & split:
            loops, under = loops - 1, frozenset()
        shared = seen.get(tensor, -1)
        return None if shared > loops else Guard(tensor, loops, under, bool(under) and shared == loops)

    def _kept(self, guard: Guard, step: ServingStep) -> Guard | None:
        """The guard as it stands after the Einsum; None if its store turns out to be above another Einsum's leaf."""
        if guard.member >= 0 and step.closing:
            others = (i for i in step.members if i != guard.member)
            if step.open > guard.loops and any(guard.tensor in self._names[i] for i in others):
                return None
            return replace(guard, member=-1)
        if guard.under:
            under = frozenset(guard.under & step.live.keys())
            if under and step.open == guard.loops:
                return None if guard.met else Guard(guard.tensor, guard.loops - 1)
            return replace(guard, under=under, met=guard.met and bool(under))
        return guard

"""Changes of what Einsums share: a draft that is completed and settled into a state again, or refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from random import Random
from typing import TypeVar

from ...divisors import divisors
from .checks import path_fault, skeleton_fault
from .covers import cover_of_loop, may_cut
from .facts import Facts
from .group_rules import group_fault
from .lent_stores import keeps_rules
from .privates import refitted
from .rooms import backing_bits
from .state import Frame, KnownPath, Lent, Own, SharedLoop, State, frame_of, path_of, replaced

MOST_LOOPS = 3
Rank = tuple[int, int, str | None]  # (rank of a tensor, trips, axis)
Option = TypeVar("Option")


class NoProposal(Exception):
    """A proposal that is no state; the rule's name is its text."""


def raise_for(broken: str | None) -> None:
    """Raise NoProposal if a rule is broken."""
    if broken is not None:
        raise NoProposal(broken)


def unfused_state(facts: Facts) -> State:
    """Nothing fused that need not be, and no privates."""
    homes = tuple(min(tensor.homes, default=0) for tensor in facts.floating)
    nothing = tuple(Own(units[0] if units else None) for units in facts.units)
    return State(homes, (0,) * len(homes), ((),) * facts.count, nothing, facts.sequence)


def chosen(options: Sequence[Option], rng: Random, broken: str = "nothing to move") -> Option:
    """One of the options at random. Raises NoProposal if there is none."""
    if not options:
        raise NoProposal(broken)
    return rng.choice(options)


class SkeletonDraft:
    """A skeleton that is being changed; `settled` makes the state.

    sound: the state keeps the rules, so that paths which do not change need no second look.
    """

    def __init__(self, facts: Facts, state: State, sound: bool = True) -> None:
        self.facts, self.old, self.sound = facts, state, sound
        self.homes, self.depths = list(state.homes), list(state.depths)
        self.shared = [list(loops) for loops in state.shared]
        self.owns, self.lent, self.groups = list(state.owns), list(state.lent), list(state.groups)
        self.wanted: dict[int, list[SharedLoop]] = {}
        self.covers: dict[tuple[int, str], int] = {}

    def fuse(self, number: int, memory: int, loops: list[Rank], covers: dict[int, int] | None = None) -> None:
        """Back a floating tensor in the memory, below these loops over its ranks, which are to cover so much."""
        tensor = self.facts.floating[number]
        self.homes[number], self.depths[number] = memory, len(loops)
        for user in tensor.users:
            mine = []
            for rank, trips, axis in loops:
                variable = self.facts.variable_at(user, tensor.name, rank)
                if variable is None:
                    raise NoProposal("loop not of the tensor")
                mine.append((variable, trips, axis))
                if covers and rank in covers:
                    self.covers[user, variable] = covers[rank]
            self.wanted[user] = mine

    def unfuse(self, number: int, memory: int) -> None:
        """Back a floating tensor in the memory, above all loops."""
        self.homes[number], self.depths[number] = memory, 0

    def settled(self, rng: Random) -> State:
        """The state of the draft. Raises NoProposal with the rule that it breaks.

        Of a sound state only paths that changed are mended and checked.
        """
        facts, old = self.facts, frame_of(self.facts, self.old)
        bare = Frame(facts, tuple(self.homes), tuple(self.depths))
        shared = tuple(map(tuple, self._completed(bare, rng)))  # this also says what the owns cover
        lent = self._kept(bare, shared) if self.lent else ()
        groups = tuple(sorted(one for one in self.groups if group_fault(facts, bare, shared, one) is None))
        frame = Frame(facts, bare.homes, bare.depths, lent, groups) if lent or groups else bare
        paths: list[KnownPath | None] = [None] * facts.count
        known: dict[str, object] = {"frame": frame, "paths": paths}
        state = State(frame.homes, frame.depths, shared, tuple(self.owns), facts.sequence, lent, groups, known)
        raise_for(skeleton_fault(facts, state))
        changed = []
        for i, own in enumerate(state.owns):
            same = own is self.old.owns[i] and not own.raised and state.shared[i] == self.old.shared[i]
            if self.sound and same and frame.place_of(i) == old.place_of(i):
                paths[i] = path_of(facts, self.old, i)
            else:
                changed.append(i)
        for i in changed:
            mended = refitted(facts, state, i, rng)
            if mended is None:
                raise NoProposal("no privates")
            state = mended
        for i in changed:
            raise_for(path_fault(facts, state, i))
        return state

    def _kept(self, bare: Frame, shared: tuple[tuple[SharedLoop, ...], ...]) -> tuple[Lent, ...]:
        """The stores for several Einsums that there is a place for and that keep the rules."""
        found = set()
        for memory, tensor, level, below, i in self.lent:
            if bare.stands(i, level, below):
                served = bare.served((memory, tensor, level, below, i))
                found |= {(memory, tensor, level, below, served[0])} if served else set()
        every = tuple(sorted(found))
        state = State(bare.homes, bare.depths, shared, tuple(self.owns), self.facts.sequence, every)
        return tuple(one for one in every if keeps_rules(self.facts, state, one))

    def _completed(self, frame: Frame, rng: Random) -> list[list[SharedLoop]]:
        """One loop for every run at every level: a wanted one, else one that a member has, else a new one."""
        facts = self.facts
        found: list[list[SharedLoop]] = [[] for _ in range(facts.count)]
        left = [dict(full) for full in facts.full]
        covers = dict[tuple[int, str], int]()
        for level in range(max(frame.lengths, default=0)):
            for first, last in frame.runs(level):
                leader, (variable, trips, axis) = self._leader(frame, first, last, level, left, rng)
                bound = self._bound(first, last, level, leader, variable, rng)
                if facts.ragged and self._may_cut(bound, found, axis):
                    extent = facts.extents[variable]
                    trips, cover = cover_of_loop(extent, min(trips, extent), self._wished(leader, variable), rng)
                    for i, v in bound.items():
                        left[i][v] = covers[i, v] = cover
                for i, v in bound.items():
                    trips = gcd(trips, left[i][v])
                if trips < 2:
                    raise NoProposal("shared trips")
                for i, v in bound.items():
                    left[i][v] //= trips
                    found[i].append((v, trips, axis))
        self._cover(found, covers)
        return found

    def _may_cut(self, bound: dict[int, str], found: list[list[SharedLoop]], axis: str | None) -> bool:
        """True if a loop over these variables is the first of each, and may cut them into any tiles."""
        facts = self.facts
        return len({facts.extents[v] for v in bound.values()}) == 1 and all(
            may_cut(facts, i, v, found[i]) and facts.may_be_uneven(i, v, axis) for i, v in bound.items()
        )

    def _wished(self, i: int, variable: str) -> int | None:
        """What the loops of a variable are to cover: what the draft says, else what they do cover."""
        return self.covers.get((i, variable), dict(self.old.owns[i].covers).get(variable))

    def _cover(self, shared: list[list[SharedLoop]], covers: dict[tuple[int, str], int]) -> None:
        """Enter what the shared loops cover in the privates."""
        for i, loops in enumerate(shared):
            own = self.owns[i]
            if not covers and not own.covers:
                continue
            bound = {v for v, _, _ in loops}
            mine = [one for one in own.covers if one[0] not in bound]
            mine += [(v, covers[i, v]) for v in bound if covers.get((i, v), 0) > self.facts.extents[v]]
            if tuple(sorted(mine)) != own.covers:
                self.owns[i] = replaced(own, covers=tuple(sorted(mine)))

    def _leader(
        self, frame: Frame, first: int, last: int, level: int, left: list[dict[str, int]], rng: Random
    ) -> tuple[int, SharedLoop]:
        members = range(first, last + 1)
        wanting = [i for i in members if level < len(self.wanted.get(i, ()))]
        having = [i for i in members if level < len(self.shared[i])]
        if wanting:
            i = rng.choice(wanting)
            return i, self.wanted[i][level]
        if having:
            i = rng.choice(having)
            return i, self.shared[i][level]
        for number in rng.sample(range(len(self.homes)), len(self.homes)):
            tensor = self.facts.floating[number]
            if self.depths[number] > level and first <= tensor.users[0] and tensor.users[-1] <= last:
                i = tensor.users[0]
                ranks = ((v, self.facts.simple_rank(i, tensor.name, v)) for v in left[i] if left[i][v] > 1)
                simple = [v for v, rank in ranks if rank is not None]
                if simple:
                    v = rng.choice(simple)
                    return i, (v, self._some_trips(left[i][v], rng), None)
        raise NoProposal("no loop to share")

    def _some_trips(self, extent: int, rng: Random) -> int:
        uneven = self.facts.ragged and rng.random() < 0.5
        return rng.randint(2, extent) if uneven else rng.choice(divisors(extent)[1:])

    def _bound(self, first: int, last: int, level: int, leader: int, variable: str, rng: Random) -> dict[int, str]:
        """The variable of each member: what the tensors between them tie to the leader's, else its old one."""
        bound = {leader: variable}
        todo = [leader]
        while True:
            while todo:
                todo += self._tied(todo.pop(), first, last, bound)
            rest = [i for i in range(first, last + 1) if i not in bound]
            if not rest:
                return bound
            i = rest[0]
            variables = self.facts.einsums[i].variables
            if not variables:
                raise NoProposal("no loop to share")
            old = self.shared[i][level][0] if level < len(self.shared[i]) else None
            bound[i] = old or rng.choice(variables)
            todo = [i]

    def _tied(self, at: int, first: int, last: int, bound: dict[int, str]) -> list[int]:
        """The members that a tensor ties to one whose variable is bound; they are bound, too."""
        facts, found = self.facts, []
        for producer, consumer, tensor in facts.ties:
            if at not in (producer, consumer) or producer < first or consumer > last:
                continue
            other = consumer if at == producer else producer
            rank = facts.simple_rank(at, tensor, bound[at])
            theirs = None if rank is None else facts.variable_at(other, tensor, rank)
            if theirs is None or bound.get(other, theirs) != theirs:
                raise NoProposal("loop not of the tensor")
            if other not in bound:
                bound[other] = theirs
                found.append(other)
        return found


def tile_loops(
    facts: Facts, number: int, memory: int, given: list[Rank], goal: float, taken: dict[int, int], rng: Random
) -> list[Rank]:
    """Loops over ranks of a floating tensor, `given` first, until its tile takes at most so many bits of the memory.

    taken: instances that each rank's extent has to leave for spatial loops further in. At most `MOST_LOOPS` are added.
    In `ragged` a new loop may cut into any multiple of these instances.
    """
    tensor = facts.floating[number]
    user = tensor.users[0]
    access = facts.einsums[user].access(tensor.name)
    ranks = [r for r in range(len(access.indices)) if all(facts.variable_at(i, tensor.name, r) for i in tensor.users)]
    extents = dict(facts.extents)
    variables = {r: access.indices[r].variables[0] for r in ranks}
    loops: list[Rank] = []
    for rank, trips, axis in given:
        if rank not in variables or (extents[variables[rank]] % trips and not facts.ragged):
            break
        extents[variables[rank]] = -(-extents[variables[rank]] // trips)
        loops.append((rank, trips, axis))
    fresh = [r for r in ranks if extents[variables[r]] > 1]
    rng.shuffle(fresh)
    for rank in fresh[:MOST_LOOPS]:
        bits = backing_bits(facts, memory, tensor.name, extents)
        if bits <= goal:
            break
        v = variables[rank]
        options = _trips_for(facts, extents[v], taken.get(rank, 1), rng)
        if facts.limits.loops:
            before = prod(n for one, n, axis in given if one == rank and axis is None)
            options = [n for n in options if _allowed(facts, number, rank, before * n)]
        if not options:
            continue
        enough = [n for n in options if bits // n <= goal]
        trips = enough[0] if enough and rng.random() < 0.7 else rng.choice(enough or options[-1:])
        extents[v] = -(-extents[v] // trips)
        loops.append((rank, trips, None))
    return loops


def _allowed(facts: Facts, number: int, rank: int, trips: int) -> bool:
    """True if limits allow so many trips over the rank above the store of a floating tensor."""
    tensor = facts.floating[number]
    bound = ((i, facts.variable_at(i, tensor.name, rank)) for i in tensor.users)
    return all(v is None or facts.loop_allowed(i, tensor.name, v, trips) for i, v in bound)


def _trips_for(facts: Facts, extent: int, taken: int, rng: Random) -> list[int]:
    """Numbers of trips, ascending, of a new loop that leaves a multiple of `taken`; in `ragged` sometimes any."""
    if facts.ragged and rng.random() < 0.5:
        tiles = range(taken, extent, taken)
        return sorted({-(-extent // tile) for tile in tiles} - {1})
    return [n for n in divisors(extent)[1:] if (extent // n) % taken == 0]

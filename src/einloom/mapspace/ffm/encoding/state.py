"""A tree of `ffm` as skeleton and privates, and what follows from it: cuts, runs, paths.

Loop l of Einsum i is shared by a run of neighbouring Einsums: those that boundaries with more than l shared loops join.
The boundary behind Einsum i shares as many loops as stand above the deepest backing store that lives across it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import cached_property
from itertools import chain, product
from typing import Any, TypeVar

from ....dataclass import dataclass
from .facts import Facts, Sequence, Spread

SharedLoop = tuple[str, int, str | None]  # (variable, trips, axis); a temporal loop has axis None
Lent = tuple[int, str, int, bool, int]  # as Raised, of a store for several Einsums, and the first of these
Group = tuple[int, int, str, tuple[int, ...]]  # first and last Einsum, where they run, their shares of an axis
Left = tuple[tuple[str, int], ...]  # instances of an axis, where not all of it is there
Segment = tuple[tuple[str, int], ...]  # temporal loops, outermost first
Raised = tuple[int, str, int, bool]  # (memory, tensor, shared loops above, below the split there)
Item = tuple[Any, ...]  # (kind, …), see `word`
Word = tuple[Item, ...]
Key = TypeVar("Key", str, int)
SPLIT: Item = ("split",)
MOST_PATHS = 200_000  # that are remembered


@dataclass(frozen=True, slots=True)
class Own:
    """The privates of one Einsum.

    stores: (memory, tensor) in the Einsum's own branch, memories inwards. segments: the temporal loops above each of
    them, and above the leaf. spatial: (axis, variable, trips), in the machine's order. raised: stores further out.
    covers: of the variables that are cut unevenly what all loops cover together, shared ones too (`covers`).
    """

    unit: str | None
    stores: tuple[tuple[int, str], ...] = ()
    segments: tuple[Segment, ...] = ((),)
    spatial: Spread = ()
    raised: tuple[Raised, ...] = ()
    covers: Segment = ()


@dataclass(frozen=True)
class State:
    """homes, depths: of each floating tensor the memory that backs it, and the shared loops above its backing store.

    sequence: the order of the Einsums. shared: the shared loops of each Einsum, in that order. owns: its privates.
    lent: the stores that serve several Einsums and back nothing. groups: the Einsums that run at the same time.
    """

    homes: tuple[int, ...]
    depths: tuple[int, ...]
    shared: tuple[tuple[SharedLoop, ...], ...]
    owns: tuple[Own, ...]
    sequence: Sequence = ()
    lent: tuple[Lent, ...] = ()
    groups: tuple[Group, ...] = ()
    known: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    def with_own(self, i: int, own: Own) -> State:
        """The same skeleton with other privates of Einsum i; what was found of the skeleton stays known."""
        owns = (*self.owns[:i], own, *self.owns[i + 1 :])
        before, known = self.owns[i], self.known
        names = ["frame"]
        if own.covers == before.covers:
            names += ["skeleton"] if own.raised or before.raised else ["skeleton", "held"]
        kept: dict[str, object] = {key: known[key] for key in names if key in known}
        paths = known.get("paths")
        if isinstance(paths, list):
            kept["paths"] = [*paths[:i], None, *paths[i + 1 :]]
        return State(self.homes, self.depths, self.shared, owns, self.sequence, self.lent, self.groups, kept)


@dataclass(slots=True, eq=False)
class KnownPath:
    """The path of one Einsum. Equal paths below the same shared loops are one object, so what was found of one is
    found again without a look at its items.

    filled: (memory, tensor) of the stores on it that an Einsum before it pays for.
    """

    word: Word
    filled: frozenset[tuple[int, str]] = frozenset()


class Frame:
    """What follows from a skeleton alone: cuts and runs.

    cuts: loops shared across each boundary. A run is (first, last) of the Einsums below a loop, both included.
    """

    def __init__(
        self,
        facts: Facts,
        homes: tuple[int, ...],
        depths: tuple[int, ...],
        lent: tuple[Lent, ...] = (),
        groups: tuple[Group, ...] = (),
    ) -> None:
        self.facts, self.homes, self.depths, self.lent, self.groups = facts, homes, depths, lent, groups
        cuts = [0] * (facts.count - 1)
        for tensor, home, depth in zip(facts.floating, homes, depths, strict=True):
            if home > 0 and depth > 0 and tensor.fuses:
                for boundary in range(tensor.users[0], tensor.users[-1]):
                    cuts[boundary] = max(cuts[boundary], depth)
        self.cuts = cuts
        self._places: dict[int, tuple[object, ...]] = {}

    @cached_property
    def lengths(self) -> list[int]:
        """How many loops each Einsum shares."""
        around = [0, *self.cuts, 0]
        return [max(around[i], around[i + 1]) for i in range(self.facts.count)]

    def run(self, i: int, level: int) -> tuple[int, int]:
        """The Einsums that share the `level` outermost loops of Einsum i; all of them for 0."""
        if level <= 0:
            return 0, len(self.cuts)
        return self._runs[level][i] if level < len(self._runs) else (i, i)

    @cached_property
    def _runs(self) -> list[list[tuple[int, int]]]:
        """For each number of shared loops that there is the run of each Einsum."""
        found: list[list[tuple[int, int]]] = []
        for level in range(max(self.cuts, default=0) + 1):
            row: list[tuple[int, int]] = []
            first = 0
            for last in range(self.facts.count):
                if last == len(self.cuts) or self.cuts[last] < level:
                    row += [(first, last)] * (last + 1 - first)
                    first = last + 1
            found.append(row)
        return found

    def parted(self, i: int, level: int) -> bool:
        """True if a split stands on the path of Einsum i directly below its `level` outermost shared loops."""
        return self.run(i, level) != self.run(i, level + 1)

    def stands(self, i: int, level: int, below: bool) -> bool:
        """True if there is a place for stores of several Einsums there: of Einsum i, below so many of its shared loops,
        above or below the split."""
        if level > self.lengths[i] or (below and (level == self.lengths[i] or not self.parted(i, level))):
            return False
        first, last = self.run(i, level + below)
        return first < last

    def places(self, i: int) -> list[tuple[int, bool]]:
        """(shared loops above, below the split there) wherever there is such a place over Einsum i."""
        every = product(range(self.lengths[i] + 1), (False, True))
        return [(level, below) for level, below in every if self.stands(i, level, below)]

    def served(self, one: Lent) -> list[int]:
        """The Einsums that a store for several of them serves, ascending."""
        _, tensor, level, below, i = one
        first, last = self.run(i, level + below)
        return [user for user in self.facts.users[tensor] if first <= user <= last]

    @cached_property
    def lents(self) -> list[list[tuple[int, str, int, bool, bool]]]:
        """For each Einsum its stores for several: as `Raised`, and whether an Einsum before it pays for what comes."""
        found: list[list[tuple[int, str, int, bool, bool]]] = [[] for _ in range(self.facts.count)]
        for one in self.lent:
            for i in self.served(one):
                found[i].append((*one[:4], i != one[4]))
        return found

    def home(self, tensor: str) -> int | None:
        """The memory that backs a tensor; None for one that no Einsum accesses."""
        number = self.facts.floats.get(tensor)
        return self.facts.fixed.get(tensor) if number is None else self.homes[number]

    def left_of(self, i: int) -> Left:
        """The share of an axis that Einsum i has in its group; nothing if it has all."""
        return tuple((g[2], g[3][i - g[0]]) for g in self.groups if g[0] <= i <= g[1] and g[3])

    def runs(self, level: int) -> Iterator[tuple[int, int]]:
        """The runs of more than one Einsum that share loop number `level`, from the left."""
        i = 0
        while i < self.facts.count:
            first, last = self.run(i, level + 1)
            if last > first:
                yield first, last
            i = last + 1

    def place_of(self, i: int) -> tuple[object, ...]:
        """What the frame says of the path of Einsum i: its backing stores, its splits, and what is backed outermost."""
        found = self._places.get(i)
        if found is None:
            parted = tuple(self.parted(i, level) for level in range(self.lengths[i] + 1))
            outer = tuple(self.homes[number] for number in self.facts.floats_of[i])
            found = self._places[i] = (tuple(self.backings[i]), parted, outer, tuple(self.lents[i]), self.left_of(i))
        return found

    @cached_property
    def backings(self) -> list[list[tuple[int, int, bool]]]:
        """For each Einsum (floating tensor, shared loops above, below the split there), of those that it accesses."""
        found: list[list[tuple[int, int, bool]]] = [[] for _ in range(self.facts.count)]
        for number, tensor in enumerate(self.facts.floating):
            if self.homes[number] == 0:
                continue
            depth = self.depths[number]
            below = self.run(tensor.users[0], depth) != self.run(tensor.users[0], depth + 1) and self.run(
                tensor.users[0], depth + 1
            ) == self.run(tensor.users[-1], depth + 1)
            for user in tensor.users:
                found[user].append((number, depth, below))
        return found

    def placed(self, i: int, raised: tuple[Raised, ...]) -> dict[tuple[int, bool], list[tuple[int, str]]]:
        """(shared loops above, below the split there) -> (memory, tensor) of stores above the branch of Einsum i."""
        found: dict[tuple[int, bool], list[tuple[int, str]]] = {}
        for number, depth, below in self.backings[i]:
            found.setdefault((depth, below), []).append((self.homes[number], self.facts.floating[number].name))
        for memory, tensor, depth, below in (*raised, *(one[:4] for one in self.lents[i])):
            found.setdefault((depth, below), []).append((memory, tensor))
        return found


def frame_of(facts: Facts, state: State) -> Frame:
    """The frame of a state, found once."""
    assert state.sequence == facts.sequence
    found = state.known.get("frame")
    if not isinstance(found, Frame):
        found = state.known["frame"] = Frame(facts, state.homes, state.depths, state.lent, state.groups)
    return found


def path_of(facts: Facts, state: State, i: int) -> KnownPath:
    """The path of Einsum i, found once."""
    assert state.sequence == facts.sequence
    paths = state.known.get("paths")
    if not isinstance(paths, list):
        paths = state.known["paths"] = list[KnownPath | None]([None] * len(state.owns))
    found: KnownPath | None = paths[i]
    if found is None:
        frame = frame_of(facts, state)
        key = facts.label[i], state.shared[i], state.owns[i], frame.place_of(i)
        found = facts.paths.get(key)
        if found is None:
            if len(facts.paths) >= MOST_PATHS:
                facts.forget()
            lents = frame.lents[i]
            filled = frozenset((m, t) for m, t, _, _, paid in lents if paid) if lents else frozenset()
            found = facts.paths[key] = KnownPath(_word(facts, state, i), filled)
        paths[i] = found
    return found


def word(facts: Facts, state: State, i: int) -> Word:
    """The path of Einsum i: (``store``, memory, tensors), (``for``, variable, trips), (``par``, axis, variable, trips),
    ``split``, and at the end (``leaf``, unit, covers). Stores of one place come memory by memory."""
    return path_of(facts, state, i).word


def _word(facts: Facts, state: State, i: int) -> Word:
    frame, own = frame_of(facts, state), state.owns[i]
    placed = frame.placed(i, own.raised)
    outer = [t for t in facts.tensors[i] if frame.home(t) == 0]
    items: list[Item] = [("store", 0, tuple(sorted(outer, key=facts.order.__getitem__)))] if outer else []
    loops = state.shared[i]
    for level in range(len(loops) + 1):
        if (level, False) in placed:
            items += block_of(facts, placed[level, False])
        if frame.parted(i, level):
            items.append(SPLIT)
            if level < len(loops) and (level, True) in placed:
                items += block_of(facts, placed[level, True])
        if level < len(loops):
            variable, trips, axis = loops[level]
            items.append(("for", variable, trips) if axis is None else ("par", axis, variable, trips))
    return (*items, *branch_items(facts, own, i), ("leaf", own.unit, own.covers))


def backings_of(mine: Word) -> Iterator[tuple[int, int, frozenset[str]]]:
    """(place on the path, memory, tensors that it backs) of every store, from the outside in."""
    seen = frozenset[str]()
    for at, item in enumerate(mine):
        if item[0] == "store":
            yield at, item[1], seen.union(item[2]) - seen
            seen = seen.union(item[2])


def block_of(facts: Facts, stores: list[tuple[int, str]]) -> list[Item]:
    """The stores of one place, memory by memory."""
    if len(stores) == 1:
        return [("store", stores[0][0], (stores[0][1],))]
    tensors: dict[int, list[str]] = {}
    for memory, tensor in stores:
        tensors.setdefault(memory, []).append(tensor)
    order = facts.order.__getitem__
    return [("store", memory, tuple(sorted(tensors[memory], key=order))) for memory in sorted(tensors)]


def branch_items(facts: Facts, own: Own, i: int) -> list[Item]:
    """Segments and stores of Einsum i; a spatial loop stands below the temporal ones, above the first store inside its
    fanout.

    Where it cuts a window unevenly, with no store below, the last loop over that variable stands below it: above, it
    would cut the window so.
    """
    found: list[Item] = []
    waiting: list[tuple[str, str, int]] = list(own.spatial)
    block: list[tuple[int, str]] = []
    for (memory, tensor), segment in zip(own.stores, own.segments, strict=False):
        ready = [one for one in waiting if facts.axis_place[one[0]] < facts.place[memory]] if waiting else ()
        if segment or ready:
            if block:
                found += block_of(facts, block)
                block = []
            found += [("for", v, n) for v, n in segment]
            if ready:
                found += [("par", axis, v, n) for axis, v, n in ready]
                waiting = [one for one in waiting if one not in ready]
        block.append((memory, tensor))
    if block:
        found += block_of(facts, block)
    late = {v for _, v, _ in waiting} & dict(own.covers).keys()
    late = late & facts.windows(i) if late else late
    found += [("for", v, n) for v, n in own.segments[-1] if v not in late]
    found += [("par", axis, v, n) for axis, v, n in waiting]
    found += [("for", v, n) for v, n in own.segments[-1] if v in late]
    return found


def tidy(facts: Facts, own: Own) -> Own:
    """The privates in their one form: sorted blocks of stores, spatial loops in order, no loop of one trip."""
    stores: list[tuple[int, str]] = []
    segments: list[Segment] = []
    block: list[tuple[int, str]] = []
    reach = -1
    places = [facts.axis_place[axis] for axis, _, _ in own.spatial]
    for (memory, tensor), segment in zip(own.stores, own.segments, strict=False):
        kept, place = _longer(segment), facts.place[memory]
        if kept or not block or any(reach < one < place for one in places):
            stores += _sorted(facts, block)
            segments += [()] * (len(stores) - len(segments))
            block = []
            segments.append(kept)
        reach = max(reach, place)
        block.append((memory, tensor))
    stores += _sorted(facts, block)
    segments += [()] * (len(stores) - len(segments))
    last = tuple(sorted(_longer(own.segments[-1])))
    spatial = [one for one in own.spatial if one[2] > 1]
    if len(spatial) > 1:
        spatial.sort(key=lambda s: (facts.axis_order[s[0]], s[1]))
    raised = tuple(sorted(own.raised))
    covers = tuple(sorted([one for one in own.covers if one[1] != facts.extents[one[0]]]))
    return Own(own.unit, tuple(stores), (*segments, last), tuple(spatial), raised, covers)


def below_anchored(facts: Facts, own: Own) -> Own:
    """The privates with no loop above the store of a persistent tensor: those there stand directly below it."""
    at = max((k for k, (m, t) in enumerate(own.stores) if facts.anchored.get(t) == m), default=-1)
    if at < 0:
        return own
    below = tuple(products(chain(*own.segments[: at + 2])).items())
    return replace(own, segments=(*((),) * (at + 1), below, *own.segments[at + 2 :]))


def _longer(segment: Segment) -> Segment:
    """The loops of more than one trip."""
    return tuple([one for one in segment if one[1] > 1])


def _sorted(facts: Facts, block: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return sorted(block, key=lambda one: (one[0], facts.order[one[1]])) if len(block) > 1 else block


def covers_of(facts: Facts, own: Own, i: int) -> dict[str, int]:
    """What the loops of each variable of Einsum i cover: its extent, or whole tiles that are a little more."""
    return facts.full[i] | dict(own.covers)


def left_below(facts: Facts, state: State, i: int, level: int | None = None) -> dict[str, int]:
    """What is left of each variable of Einsum i below its `level` outermost shared loops, or below all of them."""
    found = covers_of(facts, state.owns[i], i)
    for variable, trips, _ in state.shared[i][:level]:
        found[variable] //= trips
    return found


def products(loops: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    """All trips of each variable, or rank, together, in the order of their first loops."""
    found: dict[Key, int] = {}
    for key, trips in loops:
        found[key] = found.get(key, 1) * trips
    return found


def joined(outer: Segment, inner: Segment) -> Segment:
    """Two segments as one."""
    return tuple(products(outer + inner).items())


def multiplies(facts: Facts, state: State, i: int) -> bool:
    """True if the trips of all loops of Einsum i, variable by variable, multiply to what they are to cover."""
    own = state.owns[i]
    around = ((v, n) for v, n, _ in state.shared[i])
    found = products(chain(around, *own.segments, ((v, n) for _, v, n in own.spatial)))
    return all(found.get(variable, 1) == cover for variable, cover in covers_of(facts, own, i).items())


def replaced(own: Own, **changes: object) -> Own:
    """The privates with some fields changed."""
    return replace(own, **changes)  # type: ignore[arg-type]

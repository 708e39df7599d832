"""All trees of a named space of a tiny problem, straight from the grammar.

Comes in: workload, machine, mapspace. Goes out: every tree of the space that is well formed (capacity is not asked),
one of each set that means the same (docs/counting.md lists the sets). Nothing is left out because it looks bad: the
next node is chosen in every way that the grammar allows; `structure.problems` and `ffm.outside` judge the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, pairwise, permutations, product
from math import gcd, prod

from ...dataclass import dataclass
from ...machine.levels import Machine, Memory
from ...mapping.extents import tile_of
from ...mapping.legality.placement import outermost_home, visible_memories
from ...mapping.legality.structure import problems
from ...mapping.tree import Compute, Loop, Mapping, Nest, Split, Store
from ...once import once_each
from ...workload.einsum import Workload
from ...workload.orders import orders
from ..divisors import divisors
from ..space import Mapspace, Stores
from .concurrency import grouped_forms
from .ragged import tiles
from .rules import outside

Binds = tuple[tuple[str, str], ...]


def enumerate_trees(
    workload: Workload, machine: Machine, mapspace: Mapspace, checkpoint: Callable[[], None] = lambda: None
) -> Iterator[Mapping]:
    """Every well-formed tree of `mapspace`, up to writing the same schedule differently.

    checkpoint: see `candidates`; called for every candidate, too.
    """
    for one in ordered(workload, mapspace):
        yield from _in_program_order(one, machine, mapspace, checkpoint)


def ordered(workload: Workload, mapspace: Mapspace) -> Iterator[Workload]:
    """The workload with its Einsums in every order that the space has."""
    yield from orders(workload) if mapspace.order == "free" else (workload,)


def _in_program_order(
    workload: Workload, machine: Machine, mapspace: Mapspace, checkpoint: Callable[[], None]
) -> Iterator[Mapping]:
    axes = {name: axis.size for name, axis in machine.axes.items()}
    emptier = "axis" in mapspace.places and any(axis.use == "full" for axis in machine.axes.values())
    for candidate in candidates(workload, machine, mapspace.name, checkpoint, mapspace.stores):
        checkpoint()
        if problems(workload, machine, candidate):
            continue
        inside = not outside(workload, machine, mapspace, candidate)
        if inside:
            yield candidate
        if inside or emptier:  # branches that fill their shares leave a full-use axis half empty without them
            for form in grouped_forms(candidate, mapspace.places, axes):
                if not problems(workload, machine, form) and not outside(workload, machine, mapspace, form):
                    yield form


def candidates(
    workload: Workload,
    machine: Machine,
    space: str = "ffm",
    checkpoint: Callable[[], None] = lambda: None,
    stores: Stores = "own",
) -> Iterator[Mapping]:
    """Every tree that the grammar lets one write within rules 1-4; many break the others or the machine's limits.

    checkpoint: called for every block of stores and every loop, so that a caller can stop between two trees that are
    far apart.
    """
    grammar = _Grammar(workload, machine, space, checkpoint, stores)
    outer = machine.memories[0].name
    einsums = tuple(e.name for e in workload.einsums)
    user = {t: e.name for e in reversed(workload.einsums) for t in e.tensors}
    fixed = [t for t in workload.ends if t in user and outermost_home(workload, machine, user[t], t) == outer]
    free = [t for t in workload.intermediates if t not in fixed]
    for chosen in _subsets(free):
        top = tuple(t.name for t in workload.tensors if t.name in fixed or t.name in chosen)
        extents = tuple(((e.name, v), workload.extents[v]) for e in workload.einsums for v in e.variables)
        state = _State(einsums, extents, frozenset((outer, t) for t in top))
        for nest in grammar.nests(state, fresh=True, looped=True):
            yield Mapping((Store(outer, top), *nest) if top else nest)


def _subsets(items: list[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(items) + 1):
        yield from combinations(items, size)


@dataclass(frozen=True, slots=True)
class _State:
    """What the nodes above say to the next node.

    group: Einsums below. extents: what is left of each variable. stored: (memory, tensor) above. reach: the innermost
    level that a store or a spatial loop above stands for. wilful: the loops directly above stand in an order other than
    the canonical one, which makes a new schedule only if a store follows.
    """

    group: tuple[str, ...]
    extents: tuple[tuple[tuple[str, str], int], ...]
    stored: frozenset[tuple[str, str]]
    spatial_reach: int = -1
    store_reach: int = -1
    wilful: bool = False

    def left(self, einsum: str, variable: str) -> int:
        return dict(self.extents)[einsum, variable]

    def divide(self, loop: Loop) -> _State:
        bound = set(loop.binds)
        return replace(self, extents=tuple((k, tile_of(loop, n) if k in bound else n) for k, n in self.extents))

    @property
    def finished(self) -> bool:
        return all(n == 1 for (einsum, _), n in self.extents if einsum in self.group)


class _Grammar:
    """Chooses the next node in every possible way."""

    def __init__(
        self, workload: Workload, machine: Machine, space: str, checkpoint: Callable[[], None], stores: Stores
    ) -> None:
        self.workload, self.machine, self.space, self.checkpoint = workload, machine, space, checkpoint
        self.stores = stores
        self.allowed: dict[tuple[str, str, str], bool] = {}

    def nests(self, state: _State, fresh: bool, looped: bool) -> Iterator[Nest]:
        """Nests that start with a block of stores (which may be missing if `fresh`, at the start of a branch).

        looped: a split may follow, because a loop (or the root) stands between it and the split above.
        """
        for block, below in self.store_blocks(state):
            self.checkpoint()
            if not block and not fresh:
                continue
            for rest in self.after_stores(below, block, looped):
                yield (*block, *rest)

    def after_stores(self, state: _State, block: tuple[Store, ...], looped: bool) -> Iterator[Nest]:
        if len(state.group) == 1 and state.finished:
            yield from self.leaves(state)
            return
        if len(state.group) > 1 and looped:
            yield from self.splits(state, block)
        for loops, below in self.loop_blocks(state):
            if len(below.group) == 1 and below.finished and not below.wilful:
                for leaf in self.leaves(below):
                    yield (*loops, *leaf)
            yield from self.below_windows(loops, below)
            one_of_several = len(below.group) == 1 < len(self.workload.einsums)
            for rest in self.listed(below, False) if one_of_several else self.nests(below, fresh=False, looped=True):
                yield (*loops, *rest)

    def below_windows(self, loops: tuple[Loop, ...], state: _State) -> Iterator[Nest]:
        """Leaves below temporal loops that may not stand above the spatial ones of the block, which cut their windows
        unevenly: in every order, with nothing but the leaf below."""
        if self.space != "ragged" or len(state.group) > 1 or state.wilful:
            return
        einsum = state.group[0]
        window, spread = self.workload.einsum(einsum).windowed, {loop.variable(einsum) for loop in loops if loop.axis}
        if not any(v in window and state.left(einsum, v) > 1 for v in spread):
            return
        bound = tuple(loop for loop in loops if loop.axis is None)
        for inner, below in self.temporal_blocks(state, bound):
            if len(inner) > len(bound) and below.finished:
                for leaf in self.leaves(below):
                    yield (*loops, *inner[len(bound) :], *leaf)

    def leaves(self, state: _State) -> Iterator[Nest]:
        einsum = self.workload.einsum(state.group[0])
        if any(all(t != tensor for _, t in state.stored) for tensor in einsum.tensors):
            return
        units = [None] if einsum.kind == "copy" else [unit.name for unit in self.machine.units_for(einsum)]
        for unit in units:
            if self.limits_kept(state, einsum.name, unit):
                yield (Compute(einsum.name, unit),)

    def limits_kept(self, state: _State, einsum: str, unit: str | None) -> bool:
        """True if the memories hold what they must and only what they may of the tensors of `einsum`."""
        seen = visible_memories(self.machine, unit)
        above: set[str] = set()
        for memory in self.machine.memories:
            held = {t for m, t in state.stored if m == memory.name and t in self.workload.einsum(einsum).tensors}
            if held - self.machine.may_hold(memory, self.workload, einsum, above):
                return False
            if memory in seen and self.machine.must_hold(memory, self.workload, einsum, above) - held:
                return False
            above |= held
        return True

    # -- splits ---------------------------------------------------------------------------------------------------

    def splits(self, state: _State, block: tuple[Store, ...]) -> Iterator[Nest]:
        """Every way to cut the group into consecutive branches."""
        count = len(state.group)
        for size in range(1, count):
            for cut in combinations(range(1, count), size):
                bounds = (0, *cut, count)
                parts = [state.group[a:b] for a, b in pairwise(bounds)]
                if not self.sensible(state, block, parts):
                    continue
                for chosen in product(*(self.branch(state, part) for part in parts)):
                    yield (Split("sequential", tuple(chosen)),)

    def branch(self, state: _State, part: tuple[str, ...]) -> tuple[Nest, ...]:
        """The nests of one branch; only what stands above of its own Einsums and tensors decides."""
        tensors = {t for e in part for t in self.workload.einsum(e).tensors}
        stored = frozenset((m, t) for m, t in state.stored if t in tensors)
        mine = replace(
            state,
            group=part,
            extents=tuple((key, n) for key, n in state.extents if key[0] in part),
            stored=stored,
            store_reach=max((self.machine.position[m] for m, _ in stored), default=-1),
            wilful=False,
        )
        return self.listed(mine, True)

    @once_each
    def listed(self, state: _State, fresh: bool) -> tuple[Nest, ...]:
        """The nests below `state` of a branch, without a split before the first loop."""
        return tuple(self.nests(state, fresh, looped=False))

    def sensible(self, state: _State, block: tuple[Store, ...], parts: list[tuple[str, ...]]) -> bool:
        """True if the split is not another way to write a deeper one, and if the loops above have their reason.

        The backing store of an intermediate that only one branch needs is written in that branch. If loops stand
        above, then rule 7 asks of the innermost one that the block of stores below it, which is this one, backs an
        intermediate between every two neighbouring branches.
        """
        places = {e: i for i, part in enumerate(parts) for e in part}
        spans = []
        for tensor in (t for store in block for t in store.tensors):
            if tensor in self.workload.intermediates and sum(t == tensor for _, t in state.stored) == 1:
                users = [*self.workload.writers[tensor], *self.workload.consumers[tensor]]
                span = min(places[e] for e in users), max(places[e] for e in users)
                if span[0] == span[1]:
                    return False
                spans.append(span)
        looped = any(n != self.workload.extents[v] for (e, v), n in state.extents if e in state.group)
        return not looped or all(any(a <= i < b for a, b in spans) for i in range(len(parts) - 1))

    # -- stores ---------------------------------------------------------------------------------------------------

    def store_blocks(self, state: _State) -> Iterator[tuple[tuple[Store, ...], _State]]:
        """Every set of stores that may stand here, one node per memory in the order of the machine."""
        used = {t for e in state.group for t in self.workload.einsum(e).tensors}
        tensors = [t.name for t in self.workload.tensors if t.name in used]
        for choice in product(*(list(self.held_here(state, t)) for t in tensors)):
            stores = []
            for memory in self.machine.memories[1:]:
                mine = tuple(t for t, chosen in zip(tensors, choice, strict=True) if memory.name in chosen)
                if mine:
                    stores.append(Store(memory.name, mine))
            if not stores:
                yield (), state
                continue
            new = {(store.memory, t) for store in stores for t in store.tensors}
            reach = max(state.store_reach, *(self.machine.position[store.memory] for store in stores))
            yield (
                tuple(stores),
                replace(state, stored=state.stored | new, store_reach=reach, wilful=False),
            )

    def held_here(self, state: _State, tensor: str) -> Iterator[tuple[str, ...]]:
        """The sets of memories (outermost excepted) in which a store of `tensor` may stand here."""
        place = self.machine.position
        users = [e for e in self.workload.einsums if tensor in e.tensors]
        here = [e for e in users if e.name in state.group]
        above = sum(t == tensor for _, t in state.stored)
        backed = above > 0
        lends = self.stores == "shared" and above == 1 and all(e.output.tensor != tensor for e in here)
        free = [
            memory.name
            for memory in self.machine.memories[1:]
            if all(self.may_stand(memory, e.name, tensor) for e in here)
            and place[memory.name] > state.spatial_reach
            and all(place[m] < place[memory.name] for m, t in state.stored if t == tensor)
            and all(place[m] <= place[memory.name] for e in here for m, t in state.stored if t in e.tensors)
        ]
        for chosen in _subsets(free):
            own = len(chosen) if backed else len(chosen) - 1
            alone = len(here) == 1 or own == 0 or (own == 1 and lends)
            if not chosen or (alone and (backed or len(here) == len(users))):
                yield chosen

    def may_stand(self, memory: Memory, einsum: str, tensor: str) -> bool:
        """True if the memory may hold the tensor in some tree, whatever is held above."""
        key = memory.name, einsum, tensor
        if key not in self.allowed:
            above = ((), self.workload.einsum(einsum).tensors)
            self.allowed[key] = any(tensor in self.machine.may_hold(memory, self.workload, einsum, a) for a in above)
        return self.allowed[key]

    # -- loops ----------------------------------------------------------------------------------------------------

    def loop_blocks(self, state: _State) -> Iterator[tuple[tuple[Loop, ...], _State]]:
        """Every non-empty block of temporal loops, in every order, with spatial loops below them."""
        for temporal, below in self.temporal_blocks(state, ()):
            binds = [loop.binds for loop in temporal]
            below = replace(below, wilful=binds != sorted(binds))
            for spatial, last in self.spatial_blocks(below):
                if temporal or spatial:
                    yield (*temporal, *spatial), last

    def temporal_blocks(self, state: _State, above: tuple[Loop, ...]) -> Iterator[tuple[tuple[Loop, ...], _State]]:
        yield above, state
        bound = {bind for loop in above for bind in loop.binds}
        for binds in self.bindings(state):
            if not bound & set(binds):
                for loop in self.loops(state, binds, None):
                    yield from self.temporal_blocks(state.divide(loop), (*above, loop))

    def spatial_blocks(self, state: _State) -> Iterator[tuple[tuple[Loop, ...], _State]]:
        """Every set of spatial loops, axis by axis; no order of them changes anything."""
        place = self.machine.position
        axes = [a for a in self.machine.axes.values() if place[a.name] > max(state.store_reach, state.spatial_reach)]
        partial: list[tuple[tuple[Loop, ...], _State]] = [((), state)]
        for axis in axes:
            for binds in sorted(self.bindings(state)):
                grown = []
                for loops, below in partial:
                    self.checkpoint()
                    mine = [loop for loop in loops if loop.axis == axis.name]
                    taken = {bind for loop in mine for bind in loop.binds}
                    room = axis.size // prod(loop.trips for loop in mine)
                    for loop in self.loops(below, binds, axis.name):
                        if loop.trips <= room and not taken & set(binds):
                            after = replace(below.divide(loop), spatial_reach=place[axis.name])
                            grown.append(((*loops, loop), after))
                partial += grown
        yield from partial

    def loops(self, state: _State, binds: Binds, axis: str | None) -> Iterator[Loop]:
        """Every loop of at least 2 trips: an even one for any extents, an uneven one for equal ones that are whole."""
        extents = [state.left(einsum, variable) for einsum, variable in binds]
        if self.space == "ffm" or len(set(extents)) > 1:
            yield from (Loop(binds, n, None, axis) for n in divisors(gcd(*extents))[1:])
            return
        extent = extents[0]
        whole = all(self.workload.extents[variable] == extent for _, variable in binds)
        for tile in tiles(self.space, extent, whole):
            trips = -(-extent // tile)
            yield Loop(binds, trips, None if tile == -(-extent // trips) else tile, axis)

    def bindings(self, state: _State) -> Iterator[Binds]:
        """One variable for every Einsum of the group; who write and read a tensor index one rank of it, a whole one."""
        for choice in product(*(self.workload.einsum(e).variables for e in state.group)):
            self.checkpoint()
            binds = tuple(zip(state.group, choice, strict=True))
            if all(self.tied(a, b) for a, b in permutations(binds, 2)):
                yield binds

    def tied(self, first: tuple[str, str], second: tuple[str, str]) -> bool:
        producer, consumer = self.workload.einsum(first[0]), self.workload.einsum(second[0])
        tensor = producer.output.tensor
        if tensor not in consumer.tensors:
            return True
        rank = producer.output.rank_of(first[1])
        same = rank is not None and rank == consumer.access(tensor).rank_of(second[1])
        return same and (rank is None or self.workload.tied(tensor, rank))

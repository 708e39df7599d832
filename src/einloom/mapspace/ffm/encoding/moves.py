"""One step away: proposals from a state, each a state that keeps the rules or a refusal by name.

Moves of the privates change one Einsum; moves of the skeleton mend the privates of all Einsums that they touch. The
compound ones bring a tensor home together with the loops that make its tile fit, and lift stores above shared loops:
without them a search ends where every single step overflows (docs/mappers.md).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

from ...divisors import divisors, primes
from .checks import path_fault
from .covers import any_tile, recovered
from .facts import Facts
from .group_rules import whole_fault
from .grouping import regroup
from .lending import lend
from .orders import gathered, moved
from .privates import drawn, mended, slots_for, spread
from .rooms import held, own_tiles, tile_bits
from .skeletons import NoProposal, Rank, SkeletonDraft, chosen, raise_for, tile_loops
from .state import Own, Segment, State, below_anchored, frame_of, joined, left_below, products, replaced, tidy

Shared = Callable[[Facts, State, Random], State]
Private = Callable[[Facts, State, int, Random], State]
REORDERING = 0.3  # of the moves of skeletons, where Einsums may run in another order
GROUPING = 0.3  # of the moves of skeletons, where Einsums may run at the same time
LENDING = 0.3  # of the moves of skeletons, where stores may serve several Einsums
PARTS = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)


def proposed(facts: Facts, state: State, rng: Random, shared: float, einsum: int | None = None) -> State:
    """A state one move away. shared: the share of moves of the skeleton; the others are of the privates of `einsum`, or
    of any. Raises NoProposal with a rule's name."""
    if facts.free and rng.random() < shared * REORDERING:
        found = moved(facts, state, rng)
    elif facts.mapspace.places and rng.random() < shared * GROUPING:
        found = regroup(facts, state, rng)
    elif facts.lendable and rng.random() < shared * LENDING:
        found = lend(facts, state, rng)
    elif facts.floating and rng.random() < shared:
        found = rng.choices(*SKELETON)[0](facts, state, rng)
    else:
        found = rng.choices(*PRIVATE)[0](facts, state, rng.randrange(facts.count) if einsum is None else einsum, rng)
    if found == state:
        raise NoProposal("no change")
    raise_for(whole_fault(facts.in_order(found.sequence), found))
    return found


# -- privates ----------------------------------------------------------------------------------------------------


def _changed(facts: Facts, state: State, i: int, own: Own | None) -> State:
    if own is None:
        raise NoProposal("no privates")
    found = state.with_own(i, recovered(facts, state, i, tidy(facts, below_anchored(facts, own))))
    raise_for(path_fault(facts, found, i))
    return found


def factor(facts: Facts, state: State, i: int, rng: Random) -> State:
    """Some of the trips of a variable go to another segment."""
    own = state.owns[i]
    loops = [(at, v, n) for at, segment in enumerate(own.segments) for v, n in segment]
    if not loops or len(own.segments) < 2:
        raise NoProposal("nothing to move")
    at, v, n = rng.choice(loops)
    to = rng.choice([other for other in range(len(own.segments)) if other != at])
    some = rng.choice(primes(n)) if rng.random() < 0.6 else rng.choice(divisors(n)[1:])
    return _changed(facts, state, i, _shifted(own, v, some, at, to, rng))


def _shifted(own: Own, v: str, some: int, at: int, to: int, rng: Random) -> Own:
    """So many trips of the variable in segment `to` instead of `at`."""
    segments = [list(segment) for segment in own.segments]
    segments[at] = [(w, m // some if w == v else m) for w, m in segments[at]]
    if any(w == v for w, _ in segments[to]):
        segments[to] = [(w, m * some if w == v else m) for w, m in segments[to]]
    else:
        segments[to].insert(rng.randint(0, len(segments[to])), (v, some))
    return replaced(own, segments=tuple(map(tuple, segments)))


def tile(facts: Facts, state: State, i: int, rng: Random) -> State:
    """In `ragged`, another tile of a variable, which need not divide its extent."""
    if not facts.ragged:
        return factor(facts, state, i, rng)
    own = any_tile(facts, state, i, state.owns[i], rng)
    if own is None:
        raise NoProposal("nothing to move")
    return _changed(facts, state, i, own)


def order(facts: Facts, state: State, i: int, rng: Random) -> State:
    """A loop goes elsewhere in its segment."""
    own = state.owns[i]
    places = [at for at, segment in enumerate(own.segments[:-1]) if len(segment) > 1]
    at = chosen(places, rng)
    segment = list(own.segments[at])
    loop = segment.pop(rng.randrange(len(segment)))
    segment.insert(rng.randint(0, len(segment)), loop)
    segments = (*own.segments[:at], tuple(segment), *own.segments[at + 1 :])
    return _changed(facts, state, i, replaced(own, segments=segments))


def toggle(facts: Facts, state: State, i: int, rng: Random) -> State:
    """An own store comes or goes; a new one divides the segment that it enters."""
    own = state.owns[i]
    options = [one for one in facts.owns(i, own.unit) if one not in {r[:2] for r in own.raised}]
    memory, tensor = chosen(options, rng)
    return _toggled(facts, state, i, memory, tensor, rng)


def _toggled(facts: Facts, state: State, i: int, memory: int, tensor: str, rng: Random) -> State:
    own = state.owns[i]
    stores, segments = list(own.stores), list(own.segments)
    if (memory, tensor) in stores:
        at = stores.index((memory, tensor))
        stores.pop(at)
        segments[at : at + 2] = [joined(segments[at], segments[at + 1])]
    else:
        low = sum(m < memory for m, _ in stores)
        at = rng.randint(low, sum(m <= memory for m, _ in stores))
        cut = rng.randint(0, len(segments[at]))
        outer, inner = _divided(segments[at], cut, rng)
        stores.insert(at, (memory, tensor))
        segments[at : at + 1] = [outer, inner]
    return _changed(facts, state, i, replaced(own, stores=tuple(stores), segments=tuple(segments)))


def _divided(segment: Segment, cut: int, rng: Random) -> tuple[Segment, Segment]:
    """A segment in two; with some luck one of its loops stands in both."""
    outer, inner = segment[:cut], segment[cut:]
    if segment and rng.random() < 0.5:
        v, n = rng.choice(segment)
        some = rng.choice(divisors(n))
        outer = (*((w, m) for w, m in outer if w != v), (v, some))
        inner = ((v, n // some), *((w, m) for w, m in inner if w != v))
    return tuple((v, n) for v, n in outer if n > 1), tuple((v, n) for v, n in inner if n > 1)


def spatial(facts: Facts, state: State, i: int, rng: Random) -> State:
    """Another spatial choice; temporal loops give and take what it changes."""
    own = state.owns[i]
    choice = spread(facts, state, i, own.unit, rng)
    return _changed(facts, state, i, None if choice is None else mended(facts, state, i, own, choice, rng))


def exchange(facts: Facts, state: State, i: int, rng: Random) -> State:
    """A private spatial loop and a temporal one swap some trips."""
    own = state.owns[i]
    axis, v, n = chosen(own.spatial, rng)
    some = rng.choice(primes(n))
    rest = tuple((a, w, m // some if (a, w) == (axis, v) else m) for a, w, m in own.spatial)
    takers = [w for w in facts.einsums[i].variables if facts.takes(i, axis, w)]
    taker = rng.choice(takers)
    spatial_loops = {(a, w): m for a, w, m in rest if m > 1}
    spatial_loops[axis, taker] = spatial_loops.get((axis, taker), 1) * some
    choice = tuple((a, w, m) for (a, w), m in spatial_loops.items())
    return _changed(facts, state, i, mended(facts, state, i, own, choice, rng))


def lift(facts: Facts, state: State, i: int, rng: Random) -> State:
    """An own store goes to another place on the path: above a split, between shared loops, or back."""
    own = state.owns[i]
    if own.raised and rng.random() < 0.5:
        one = rng.choice(own.raised)
        rest = tuple(r for r in own.raised if r != one)
        slots = [s for s in slots_for(facts, state, i, one[0], one[1]) if s != one[2:]]
        if slots and rng.random() < 0.5:
            return _changed(facts, state, i, replaced(own, raised=(*rest, (one[0], one[1], *rng.choice(slots)))))
        at = sum(m < one[0] for m, _ in own.stores)
        stores = (*own.stores[:at], (one[0], one[1]), *own.stores[at:])
        segments = (*own.segments[:at], (), *own.segments[at:])
        if at < len(own.stores) and rng.random() < 0.5:
            segments = (*own.segments[: at + 1], (), *own.segments[at + 1 :])
        return _changed(facts, state, i, replaced(own, raised=rest, stores=stores, segments=segments))
    return _lifted(facts, state, i, chosen(range(len(own.stores)), rng), rng)


def _lifted(facts: Facts, state: State, i: int, at: int, rng: Random) -> State:
    own = state.owns[i]
    memory, tensor = own.stores[at]
    slots = slots_for(facts, state, i, memory, tensor)
    return raised_at(facts, state, i, at, chosen(slots, rng, "place of a store"))


def raised_at(facts: Facts, state: State, i: int, at: int, slot: tuple[int, bool]) -> State:
    """The state with own store number `at` of Einsum i in a slot above its branch. Raises NoProposal."""
    own = state.owns[i]
    stores = (*own.stores[:at], *own.stores[at + 1 :])
    segments = (*own.segments[:at], joined(own.segments[at], own.segments[at + 1]), *own.segments[at + 2 :])
    raised = (*own.raised, (*own.stores[at], *slot))
    return _changed(facts, state, i, replaced(own, stores=stores, segments=segments, raised=raised))


def exchange_stores(facts: Facts, state: State, i: int, rng: Random) -> State:
    """Two neighbouring stores of one memory change places."""
    own = state.owns[i]
    pairs = [at for at in range(len(own.stores) - 1) if own.stores[at][0] == own.stores[at + 1][0]]
    at = chosen(pairs, rng)
    stores = list(own.stores)
    stores[at], stores[at + 1] = stores[at + 1], stores[at]
    return _changed(facts, state, i, replaced(own, stores=tuple(stores)))


def unit(facts: Facts, state: State, i: int, rng: Random) -> State:
    """Another compute unit, with the privates mended."""
    others = [name for name in facts.units[i] if name != state.owns[i].unit]
    state = state.with_own(i, replaced(state.owns[i], unit=chosen(others, rng)))
    return spatial(facts, state, i, rng)


def redraw(facts: Facts, state: State, i: int, rng: Random) -> State:
    """New privates of one Einsum."""
    found = drawn(facts, state, i, rng)
    if found is None:
        raise NoProposal("no privates")
    return found


def together(facts: Facts, state: State, i: int, rng: Random) -> State:
    """One axis for the same rank in all Einsums of a run, or neighbours alike: new spatial choices of several."""
    for at in range(i, min(facts.count, i + rng.randint(2, 4))):
        state = spatial(facts, state, at, rng)
    return state


# -- skeletons ---------------------------------------------------------------------------------------------------


def home(facts: Facts, state: State, rng: Random) -> State:
    """Another home for a tensor, with loops that make its tile fit; or out again."""
    number = chosen(range(len(facts.floating)), rng)
    homes = [m for m in facts.floating[number].homes if m != state.homes[number]]
    memory = chosen(homes, rng)
    if facts.free and memory and rng.random() < 0.5:
        facts, state = gathered(facts, state, number, rng)
    if memory == 0 or rng.random() < 0.1:
        draft = SkeletonDraft(facts, state)
        draft.unfuse(number, memory)
        return draft.settled(rng)
    found = bring_home(facts, state, number, memory, rng.choice(PARTS), rng)
    return _lifted_all(facts, found, number, rng) if rng.random() < 0.5 else found


def refuse(facts: Facts, state: State, rng: Random) -> State:
    """Other loops for a tensor that is at home."""
    number = chosen(range(len(facts.floating)), rng)
    if state.homes[number] == 0:
        raise NoProposal("nothing to move")
    found = bring_home(facts, state, number, state.homes[number], rng.choice(PARTS), rng)
    return _lifted_all(facts, found, number, rng) if rng.random() < 0.5 else found


def bring_home(facts: Facts, state: State, number: int, memory: int, part: float, rng: Random) -> State:
    """The tensor backed in the memory, below loops that leave its tile so much of it: those at hand, then new ones."""
    tensor = facts.floating[number]
    size = facts.memories[memory].size
    user = rng.choice(tensor.users)
    given: list[Rank] = []
    if rng.random() < 0.75:
        for variable, trips, axis in state.shared[user]:
            rank = facts.simple_rank(user, tensor.name, variable)
            if rank is None or (axis is not None and facts.axis_place[axis] > facts.place[memory]):
                break
            given.append((rank, trips, axis))
        given = given[: rng.randint(0, len(given))] if rng.random() < 0.3 else given
    spatial_loops = [] if any(a for _, _, a in given) else spatial_ranks(facts, number, memory, rng)
    taken = products((rank, n) for rank, n, _ in spatial_loops)
    goal = float("inf") if size is None else size * part * prod(taken.values())
    loops = tile_loops(facts, number, memory, given, goal, taken, rng)
    if size is None and rng.random() < 0.5:
        loops = tile_loops(facts, number, memory, given, rng.choice((1.0, 8.0, 64.0, 4096.0)), taken, rng)
    draft = SkeletonDraft(facts, state)
    draft.fuse(number, memory, [*loops, *spatial_loops])
    return draft.settled(rng)


def adopt(facts: Facts, state: State, rng: Random) -> State:
    """A tensor comes home below all loops that one of its Einsums has over its ranks, the spatial ones too.

    Its other Einsums take them over at once: one by one they would have other instances, and no room for the tile.
    """
    number = chosen(range(len(facts.floating)), rng)
    tensor = facts.floating[number]
    homes = [m for m in tensor.homes if m]
    memory, user = chosen(homes, rng), rng.choice(tensor.users)
    own = state.owns[user]
    mine = [*state.shared[user], *((v, n, None) for segment in own.segments for v, n in segment)]
    mine += [(v, n, axis) for axis, v, n in own.spatial if facts.axis_place[axis] < facts.place[memory]]
    given = [(facts.simple_rank(user, tensor.name, v), n, axis) for v, n, axis in mine]
    loops = [(rank, n, axis) for rank, n, axis in given if rank is not None]
    ranks = ((facts.simple_rank(user, tensor.name, v), cover) for v, cover in own.covers)
    draft = SkeletonDraft(facts, state)
    draft.fuse(number, memory, loops, {rank: cover for rank, cover in ranks if rank is not None})
    return draft.settled(rng)


def spatial_ranks(facts: Facts, number: int, memory: int, rng: Random) -> list[Rank]:
    """Shared spatial loops over the axes above the memory."""
    tensor = facts.floating[number]
    found: list[Rank] = []
    left = {
        rank: min(facts.extents[v] for v in variables if v)
        for rank in range(len(facts.workload.tensor(tensor.name).shape))
        if all(variables := [facts.variable_at(i, tensor.name, rank) for i in tensor.users])
    }
    for axis in facts.axes:
        room = axis.size
        if facts.axis_place[axis.name] > facts.place[memory]:
            continue
        for rank in rng.sample(list(left), len(left)):
            options = tuple(range(1, left[rank] + 1)) if facts.ragged else divisors(left[rank])
            for user in tensor.users:
                takes = facts.takes(user, axis.name, str(facts.variable_at(user, tensor.name, rank)))
                options = tuple(n for n in options if n <= room and n in takes)
            if options and options[-1] > 1 and rng.random() < 0.7:
                n = options[-1] if rng.random() < 0.7 else rng.choice(options)
                if n > 1:
                    found.append((rank, n, axis.name))
                    left[rank] = -(-left[rank] // n)
                    room //= n
    return found


def _lifted_all(facts: Facts, state: State, number: int, rng: Random) -> State:
    """Own stores of the tensor's Einsums above the shared loops that their tensors lack."""
    for i in facts.floating[number].users:
        lacking = {v for v, _, _ in state.shared[i]}
        for memory, tensor in state.owns[i].stores:
            if not facts.relevant[i][tensor] & lacking and rng.random() < 0.7:
                try:
                    state = _lifted(facts, state, i, state.owns[i].stores.index((memory, tensor)), rng)
                except NoProposal:
                    continue
    return state


def depth(facts: Facts, state: State, rng: Random) -> State:
    """The backing store of a tensor stands below one shared loop more, or less."""
    number = chosen(range(len(facts.floating)), rng)
    if state.homes[number] == 0:
        raise NoProposal("nothing to move")
    draft = SkeletonDraft(facts, state)
    draft.depths[number] += rng.choice((-1, 1))
    if draft.depths[number] < 0:
        raise NoProposal("depth")
    return draft.settled(rng)


def trips(facts: Facts, state: State, rng: Random) -> State:
    """A shared loop has more or fewer trips, by a prime; a loop of one trip goes."""
    first, last, level = _shared_loop(facts, state, rng)
    n = state.shared[first][level][1]
    draft = SkeletonDraft(facts, state)
    if facts.ragged and rng.random() < 0.5:
        return _other_tile(facts, state, first, level, rng)
    if rng.random() < 0.5:
        some = rng.choice(primes(n))
        new = n // some if rng.random() < 0.7 else rng.choice(divisors(n)[:-1])
    else:
        v = state.shared[first][level][0]
        rest = left_below(facts, state, first)[v]
        if rest < 2:
            raise NoProposal("shared trips")
        new = n * (rng.choice(primes(rest)) if rng.random() < 0.7 else rng.choice(divisors(rest)[1:]))
    for i in range(first, last + 1):
        v, _, axis = draft.shared[i][level]
        draft.shared[i][level] = (v, new, axis)
    if new == 1:
        removed(facts, state, draft, first, last, level)
    return draft.settled(rng)


def _other_tile(facts: Facts, state: State, i: int, level: int, rng: Random) -> State:
    """A shared loop with any other tile, or the smallest of some number of trips."""
    extent = extent_of(facts, state, i, level)
    if extent < 3:
        raise NoProposal("nothing to move")
    size = rng.randint(1, extent - 1) if rng.random() < 0.5 else -(-extent // rng.randint(2, extent))
    return with_tile(facts, state, i, level, size, rng)


def extent_of(facts: Facts, state: State, i: int, level: int) -> int:
    """The extent that shared loop number `level` of Einsum i cuts."""
    variable = state.shared[i][level][0]
    above = prod(n for v, n, _ in state.shared[i][:level] if v == variable)
    cover = dict(state.owns[i].covers).get(variable, facts.extents[variable])
    return cover // above if above > 1 else facts.extents[variable]


def with_tile(facts: Facts, state: State, i: int, level: int, size: int, rng: Random) -> State:
    """The state with this tile of a loop that Einsum i shares, which goes if it has one trip. Raises NoProposal."""
    first, last = frame_of(facts, state).run(i, level + 1)
    variable = state.shared[first][level][0]
    outermost = all(v != variable for v, _, _ in state.shared[first][:level])
    trips = -(-extent_of(facts, state, first, level) // size)
    draft = SkeletonDraft(facts, state)
    for one in range(first, last + 1):
        v, _, axis = draft.shared[one][level]
        draft.shared[one][level] = (v, trips, axis)
        if outermost:
            draft.covers[one, v] = trips * size
    if trips == 1:
        removed(facts, state, draft, first, last, level)
    return draft.settled(rng)


def removed(facts: Facts, state: State, draft: SkeletonDraft, first: int, last: int, level: int) -> None:
    """The draft without a shared loop: what is backed below it stands below one less."""
    for i in range(first, last + 1):
        draft.shared[i].pop(level)
    _shift(facts, state, draft, first, last, level + 1, -1)


def _shift(facts: Facts, state: State, draft: SkeletonDraft, first: int, last: int, least: int, by: int) -> None:
    """Depths of at least `least`, of backing stores and raised stores in a run, change."""
    for number, tensor in enumerate(facts.floating):
        if first <= tensor.users[0] and tensor.users[-1] <= last and draft.depths[number] >= least:
            draft.depths[number] += by
    draft.lent = [
        (m, t, at + by if first <= i <= last and at >= least else at, below, i) for m, t, at, below, i in draft.lent
    ]
    for i in range(first, last + 1):
        raised = tuple((m, t, at + by if at >= least else at, b) for m, t, at, b in state.owns[i].raised)
        draft.owns[i] = replaced(draft.owns[i], raised=raised)


def insert(facts: Facts, state: State, rng: Random) -> State:
    """A new shared loop above or below another, over a rank of a tensor that is backed below it."""
    first, last, level = _shared_loop(facts, state, rng)
    draft = SkeletonDraft(facts, state)
    inside = [
        n
        for n, t in enumerate(facts.floating)
        if state.depths[n] > level and first <= t.users[0] and t.users[-1] <= last
    ]
    number = rng.choice(inside)
    user = facts.floating[number].users[0]
    v = rng.choice(facts.einsums[user].variables)
    rest = left_below(facts, state, user)[v]
    if facts.simple_rank(user, facts.floating[number].name, v) is None or rest < 2:
        raise NoProposal("loop not of the tensor")
    loop = (v, rng.choice(divisors(rest)[1:]), None)
    draft.wanted[user] = [*state.shared[user][:level], loop, *state.shared[user][level:]]
    for i in range(first, last + 1):
        draft.shared[i].insert(level, loop if i == user else (rng.choice(facts.einsums[i].variables), loop[1], None))
    _shift(facts, state, draft, first, last, level + rng.randint(0, 1), 1)
    return draft.settled(rng)


def swap(facts: Facts, state: State, rng: Random) -> State:
    """Two shared loops of one run change places."""
    first, last, level = _shared_loop(facts, state, rng)
    if frame_of(facts, state).run(first, level + 2) != (first, last):
        raise NoProposal("nothing to move")
    draft = SkeletonDraft(facts, state)
    for i in range(first, last + 1):
        loops = draft.shared[i]
        loops[level], loops[level + 1] = loops[level + 1], loops[level]
    return draft.settled(rng)


def rank(facts: Facts, state: State, rng: Random) -> State:
    """A shared loop iterates another rank."""
    first, last, level = _shared_loop(facts, state, rng)
    i = rng.randint(first, last)
    draft = SkeletonDraft(facts, state)
    _, n, axis = state.shared[i][level]
    v = rng.choice(facts.einsums[i].variables)
    if rng.random() < 0.5:
        n = rng.choice(divisors(facts.extents[v]))
    draft.wanted[i] = [*state.shared[i][:level], (v, n, axis)]
    return draft.settled(rng)


def axis(facts: Facts, state: State, rng: Random) -> State:
    """A shared loop becomes spatial, or temporal."""
    first, last, level = _shared_loop(facts, state, rng)
    _, n, old = state.shared[first][level]
    new = rng.choice([None, *facts.axis_place]) if old is None else None
    draft = SkeletonDraft(facts, state)
    for i in range(first, last + 1):
        draft.shared[i][level] = (draft.shared[i][level][0], n, new)
    return draft.settled(rng)


def _shared_loop(facts: Facts, state: State, rng: Random) -> tuple[int, int, int]:
    """(first, last, level) of a run below a shared loop."""
    having = [i for i, loops in enumerate(state.shared) if loops]
    i = chosen(having, rng)
    level = rng.randrange(len(state.shared[i]))
    return (*frame_of(facts, state).run(i, level + 1), level)


# -- repair ------------------------------------------------------------------------------------------------------


def eased(facts: Facts, state: State, memory: int, leaf: int, rng: Random) -> State:
    """A state that needs less of the memory at the leaf: smaller tiles, fewer stores, or a tensor sent out."""
    tiles = [
        (t.bits, t.tensor, t.owner, t.raised)
        for t in held(facts, state)
        if t.memory == memory and t.first <= leaf <= t.last
    ]
    for m, tensor, extents in own_tiles(facts, state, leaf):
        if m == memory:
            tiles.append((tile_bits(facts, leaf, m, tensor, extents), tensor, leaf, False))
    tiles.sort(key=lambda one: (*one[:2], -1 if one[2] is None else one[2], one[3]), reverse=True)
    _, tensor, owner, raised = tiles[0] if rng.random() < 0.7 else rng.choice(tiles)
    if owner is None and raised:
        draft = SkeletonDraft(facts, state)
        draft.lent = [one for one in draft.lent if one[:2] != (memory, tensor)]
        return draft.settled(rng)
    if owner is None:
        return _smaller_backing(facts, state, tensor, memory, rng)
    own = state.owns[owner]
    if raised:
        rest = tuple(r for r in own.raised if r[:2] != (memory, tensor))
        return _changed(facts, state, owner, mended(facts, state, owner, replaced(own, raised=rest), own.spatial, rng))
    return _smaller(facts, state, owner, own.stores.index((memory, tensor)), rng)


def _smaller_backing(facts: Facts, state: State, tensor: str, memory: int, rng: Random) -> State:
    number = facts.floats.get(tensor)
    if number is None:
        raise NoProposal("capacity")
    if rng.random() < 0.6:
        return bring_home(facts, state, number, memory, rng.choice(PARTS), rng)
    if number in facts.demanded:  # nowhere else is more room
        return _finer(facts, state, number, rng)
    draft = SkeletonDraft(facts, state)
    draft.unfuse(number, min(facts.floating[number].homes))
    return draft.settled(rng)


def _finer(facts: Facts, state: State, number: int, rng: Random) -> State:
    """More trips of a shared loop over a rank of a tensor, above its backing store."""
    user = facts.floating[number].users[0]
    rest, mine = left_below(facts, state, user), state.shared[user][: state.depths[number]]
    level = chosen([at for at, (v, _, axis) in enumerate(mine) if axis is None and rest[v] > 1], rng)
    first, last = frame_of(facts, state).run(user, level + 1)
    more = rng.choice(divisors(rest[mine[level][0]])[1:])
    draft = SkeletonDraft(facts, state)
    for i in range(first, last + 1):
        v, n, axis = draft.shared[i][level]
        draft.shared[i][level] = (v, n * more, axis)
    return draft.settled(rng)


def _smaller(facts: Facts, state: State, i: int, at: int, rng: Random) -> State:
    """Trips of a variable of the tile go from below the store to above it; or the store goes."""
    own = state.owns[i]
    memory, tensor = own.stores[at]
    below = [
        (place, v, n)
        for place in range(at + 1, len(own.segments))
        for v, n in own.segments[place]
        if v in facts.relevant[i][tensor]
    ]
    if not below or rng.random() < 0.15:
        if rng.random() < 0.5 and own.spatial:
            return spatial(facts, state, i, rng)
        return _toggled(facts, state, i, memory, tensor, rng)
    place, v, n = rng.choice(below)
    some = rng.choice(divisors(n)[1:])
    return _changed(facts, state, i, _shifted(own, v, some, place, rng.randint(0, at), rng))


PRIVATE: tuple[list[Private], list[float]] = (
    [factor, tile, order, toggle, spatial, exchange, lift, exchange_stores, unit, redraw, together],
    [6, 4, 2, 2, 2, 2, 2, 1, 0.5, 0.5, 0.5],
)
SKELETON: tuple[list[Shared], list[float]] = (
    [trips, home, refuse, adopt, depth, insert, swap, rank, axis],
    [4, 3, 1, 1, 2, 0.5, 0.5, 0.5, 0.5],
)

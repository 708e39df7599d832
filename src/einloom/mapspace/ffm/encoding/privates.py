"""Privates at random under given shared loops, and old privates made to fit new ones."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from math import gcd, prod
from random import Random

from ...divisors import divisors
from .checks import path_fault
from .covers import covering, may_cut, recovered
from .facts import Facts, Spread
from .rooms import tile_bits
from .spreads import spreads
from .state import (
    Own,
    Raised,
    Segment,
    State,
    below_anchored,
    covers_of,
    frame_of,
    joined,
    multiplies,
    products,
    replaced,
    tidy,
)

TRIES = 6


def drawn(facts: Facts, state: State, i: int, rng: Random) -> State | None:
    """The state with new privates of Einsum i that keep the rules; None if some tries gave none."""
    for _ in range(TRIES):
        own = _draw(facts, state, i, rng)
        if own is not None:
            found = state.with_own(i, own)
            if path_fault(facts, found, i) is None:
                return found
    return None


def refitted(facts: Facts, state: State, i: int, rng: Random) -> State | None:
    """The state with the privates of Einsum i changed as little as its shared loops ask; new ones if need be."""
    if multiplies(facts, state, i) and path_fault(facts, state, i) is None:
        return state
    old = state.owns[i]
    if old.unit in facts.units[i]:
        for spatial in (_rest_of(facts, state, i, old.spatial), spread(facts, state, i, old.unit, rng)):
            own = None if spatial is None else mended(facts, state, i, old, spatial, rng)
            if own is not None:
                found = state.with_own(i, own)
                if path_fault(facts, found, i) is None:
                    return found
    return drawn(facts, state, i, rng)


def _left(facts: Facts, state: State, i: int, covers: dict[str, int] | None = None) -> dict[str, int]:
    """What the shared loops leave of each variable. covers: of those with no shared loop, the extents if not given."""
    above = products((v, n) for v, n, _ in state.shared[i])
    shared = covers_of(facts, state.owns[i], i)
    whole = facts.full[i] if covers is None else covers
    return {v: shared[v] // above[v] if v in above else whole[v] for v in facts.einsums[i].variables}


def _divides(facts: Facts, state: State, i: int, v: str, left: int, n: int) -> bool:
    """True if n instances may share what is left of a variable: unequally, too, if they are the first to cut it."""
    if left % n == 0:
        return True
    return n <= left and may_cut(facts, i, v, state.shared[i]) and facts.may_be_uneven(i, v, "any")


def _rest_of(facts: Facts, state: State, i: int, spatial: Spread) -> Spread | None:
    """The same private spatial loops, if the extents that are left still allow them."""
    left = _left(facts, state, i)
    for _, variable, trips in spatial:
        if not _divides(facts, state, i, variable, left[variable], trips):
            return None
        left[variable] = -(-left[variable] // trips)
    return spatial


def spread(facts: Facts, state: State, i: int, unit: str | None, rng: Random) -> Spread | None:
    """A spatial choice for what the shared loops leave; None if none fits."""
    if unit is None:
        return ()
    facts = facts.within(frame_of(facts, state).left_of(i))
    left = _left(facts, state, i)
    least = max((facts.place[m] for t, m in facts.anchored.items() if t in facts.tensors[i]), default=-1)
    least = max(least, _inner(facts, state, i))
    shared = [(axis, v, n) for v, n, axis in state.shared[i] if axis is not None]
    full = {a for a in facts.axes_of(i, unit) if facts.machine.axes[a].use == "full"}
    chosen = _full(facts, state, i, unit, left, [one for one in shared if one[0] in full], rng) if full else ()
    if chosen is None or any(facts.axis_place[axis] < least for axis, _, _ in chosen):
        return None
    spatial = list(chosen)
    for _, v, n in chosen:
        left[v] = -(-left[v] // n)
    free = [axis for axis in facts.axes_of(i, unit) if axis not in full and facts.axis_place[axis] > least]
    slots = [(axis, v) for axis in free for v in facts.einsums[i].variables]
    rng.shuffle(slots)
    room = {axis: facts.machine.axes[axis].size // prod(n for a, _, n in shared if a == axis) for axis in free}
    eager = rng.random()
    for axis, v in slots:
        if any(a == axis and w == v for a, w, _ in shared):
            continue
        fits = [n for n in facts.takes(i, axis, v) if n <= room[axis] and _divides(facts, state, i, v, left[v], n)]
        n = (fits[-1] if rng.random() < 0.6 else rng.choice(fits)) if fits and rng.random() < eager else 1
        if n > 1:
            spatial.append((axis, v, n))
            room[axis] //= n
            left[v] = -(-left[v] // n)
    return tuple(spatial)


def _inner(facts: Facts, state: State, i: int) -> int:
    """Where limits demand inner backing stores, the place of the innermost above the branch of Einsum i; else -1."""
    if not facts.demanded:
        return -1
    return max((facts.place[m] for m, _ in _path_stores(facts, state, i, [])), default=-1)


def _full(
    facts: Facts, state: State, i: int, unit: str, left: dict[str, int], shared: list[tuple[str, str, int]], rng: Random
) -> Spread | None:
    """A choice on the full-use axes that has the shared loops and divides what is left, without these loops."""
    every = spreads(facts, i, unit)
    inner = _inner(facts, state, i)
    cut = {v for v, _, _ in state.shared[i]}
    free = {v for v in left if v not in cut and facts.may_be_uneven(i, v, "any")}

    def fits(one: Spread) -> bool:
        if any(loop not in one for loop in shared):
            return False
        if any(facts.axis_place[loop[0]] < inner for loop in one if loop not in shared):
            return False
        takes = products((v, n) for axis, v, n in one if (axis, v, n) not in shared)
        return all(left[v] % n == 0 or (v in free and n <= left[v]) for v, n in takes.items())

    for _ in range(8):
        one = rng.choice(every) if every else ()
        if fits(one):
            return tuple(loop for loop in one if loop not in shared)
    fitting = [one for one in every if fits(one)]
    return tuple(loop for loop in rng.choice(fitting) if loop not in shared) if fitting else None


def mended(facts: Facts, state: State, i: int, old: Own, spatial: Spread, rng: Random) -> Own | None:
    """Old privates with stores that may be, and trips that multiply to the extents."""
    placed = _kept_stores(facts, state, i, old, rng)
    if placed is None:
        return None
    stores, segments, raised = placed
    covers = _covers(facts, state, i, old, spatial)
    left = _left(facts, state, i, covers)
    for _, v, n in spatial:
        left[v] //= n
    found: list[list[tuple[str, int]]] = []
    outermost: dict[str, list[tuple[str, int]]] = {}
    for segment in reversed(segments):
        mine = []
        for v, n in segment:
            n = gcd(n, left[v])
            left[v] //= n
            mine.append((v, n))
            outermost[v] = mine
        found.append(mine)
    found.reverse()
    for v in facts.einsums[i].variables:
        if left[v] > 1 and v in outermost:
            outermost[v][:] = [(w, n * left[v]) if w == v else (w, n) for w, n in outermost[v]]
        elif left[v] > 1:
            found[0].append((v, left[v]))
    own = Own(old.unit, tuple(stores), tuple(map(tuple, found)), spatial, tuple(raised), tuple(covers.items()))
    return recovered(facts, state, i, tidy(facts, below_anchored(facts, own)))


def _covers(facts: Facts, state: State, i: int, old: Own, spatial: Spread) -> dict[str, int]:
    """What the loops of each variable cover with these private spatial loops: as much as before, if they divide it."""
    found = covers_of(facts, old, i)
    for v, cover in found.items():
        q = prod(n for _, w, n in spatial if w == v)
        if cover % q and may_cut(facts, i, v, state.shared[i]):
            found[v] = q * -(-facts.extents[v] // q)
    return found


Stores = tuple[list[tuple[int, str]], list[Segment], list[Raised]]


def _kept_stores(facts: Facts, state: State, i: int, old: Own, rng: Random) -> Stores | None:
    """Own stores with their segments: those that may stay, and those that the machine demands."""
    above = _above(facts, state, i)
    over = above | _lent(facts, state, i)
    raised = [
        (m, t, level, below)
        for m, t, level, below in old.raised
        if over.get(t, -1) < m and (level, below) in slots_for(facts, state, i, m, t)
    ]
    lowered = [(m, t) for m, t, level, below in old.raised if (m, t, level, below) not in raised]
    reach = max((m for m, _ in _path_stores(facts, state, i, raised)), default=0)
    stores: list[tuple[int, str]] = []
    segments: list[Segment] = []
    carried: Segment = ()
    candidates = [*((one, ()) for one in lowered), *zip(old.stores, old.segments, strict=False)]
    candidates.sort(key=lambda one: one[0][0])
    for (m, t), segment in candidates:
        carried = joined(carried, segment)
        if m >= reach and over.get(t, -1) < m:
            stores.append((m, t))
            segments.append(carried)
            carried = ()
    segments.append(joined(carried, old.segments[-1]))
    held = [frozenset(t for t, m in above.items() if m == k) for k in range(len(facts.memories))]
    for m, t in [*stores, *((r[0], r[1]) for r in raised), *((m, t) for t, m in _lent(facts, state, i).items())]:
        held[m] |= {t}
    outer = frozenset[str]()
    for m in range(len(facts.memories)):
        if m in facts.visible(old.unit):
            for t in sorted(facts.needed(i, m, outer) - held[m]):
                if m < reach:
                    return None
                at = next((at for at, (n, _) in enumerate(stores) if n > m), len(stores))
                stores.insert(at, (m, t))
                segments.insert(at, ())
                if at < len(segments) - 1:
                    segments[at], segments[at + 1] = segments[at + 1], segments[at]
                held[m] |= {t}
        outer |= held[m]
    return _anchors_raised(facts, state, i, (stores, segments, raised), rng)


def _anchors_raised(facts: Facts, state: State, i: int, found: Stores, rng: Random) -> Stores | None:
    """Those stores, with persistent tensors above the shared loops; None if there is no place for one."""
    stores, segments, raised = found
    for m, t in [one for one in stores if state.shared[i] and facts.anchored.get(one[1]) == one[0]]:
        slots, at = slots_for(facts, state, i, m, t), stores.index((m, t))
        if not slots:
            return None
        stores.pop(at)
        segments[at : at + 2] = [joined(segments[at], segments[at + 1])]
        raised.append((m, t, *rng.choice(slots)))
    return stores, segments, raised


def _above(facts: Facts, state: State, i: int) -> dict[str, int]:
    """Tensor of Einsum i -> the memory that backs it."""
    return {
        t: state.homes[facts.floats[t]] if t in facts.floats else facts.fixed[t]
        for t in facts.einsums[i].tensors
        if t in facts.floats or facts.fixed[t] == 0
    }


def _lent(facts: Facts, state: State, i: int) -> dict[str, int]:
    """Tensor -> the memory of the store on the path of Einsum i that serves others, too."""
    return {tensor: memory for memory, tensor, *_ in frame_of(facts, state).lents[i]}


def _path_stores(facts: Facts, state: State, i: int, raised: list[Raised]) -> list[tuple[int, str]]:
    """The stores of Einsum i above its own branch."""
    frame = frame_of(facts, state)
    backed = [(state.homes[number], facts.floating[number].name) for number, _, _ in frame.backings[i]]
    return [*backed, *((m, t) for m, t, _, _ in raised), *((m, t) for m, t, *_ in frame.lents[i])]


def _draw(facts: Facts, state: State, i: int, rng: Random) -> Own | None:
    unit = rng.choice(facts.units[i])
    spatial = spread(facts, state, i, unit, rng)
    if spatial is None:
        return None
    above = _above(facts, state, i) | _lent(facts, state, i)
    keen = rng.random()
    wished = [one for one in facts.owns(i, unit) if above.get(one[1], -1) < one[0] and rng.random() < keen]
    rng.shuffle(wished)
    wished.sort(key=lambda one: one[0])
    placed = _kept_stores(facts, state, i, Own(unit, tuple(wished), ((),) * (len(wished) + 1)), rng)
    if placed is None:
        placed = _with_forced(facts, state, i, unit, rng)
    if placed is None:
        return None
    stores, _, raised = placed
    covers = facts.full[i] | dict(state.owns[i].covers)
    if facts.ragged:
        drawn_covers = covering(facts, i, spatial, rng)
        covers |= {v: n for v, n in drawn_covers.items() if may_cut(facts, i, v, state.shared[i])}
    own = Own(unit, tuple(stores), ((),) * (len(stores) + 1), spatial, tuple(raised), tuple(covers.items()))
    return recovered(facts, state, i, tidy(facts, below_anchored(facts, tiled(facts, state, i, own, rng))))


def _with_forced(facts: Facts, state: State, i: int, unit: str | None, rng: Random) -> Stores | None:
    """No stores but those that must be, further out where a backing store inside forbids them in the branch."""
    above = _above(facts, state, i)
    lent = _lent(facts, state, i)
    held = [frozenset(t for t, m in (*above.items(), *lent.items()) if m == k) for k in range(len(facts.memories))]
    reach = max((m for m, _ in _path_stores(facts, state, i, [])), default=0)
    stores: list[tuple[int, str]] = []
    raised: list[Raised] = []
    over = frozenset[str]()
    for m in range(len(facts.memories)):
        if m in facts.visible(unit):
            for t in sorted(facts.needed(i, m, over) - held[m]):
                held[m] |= {t}
                if m >= reach:
                    stores.append((m, t))
                    continue
                slots = slots_for(facts, state, i, m, t)
                if not slots:
                    return None
                raised.append((m, t, *rng.choice(slots)))
        over |= held[m]
    return stores, [()] * (len(stores) + 1), raised


def slots_for(facts: Facts, state: State, i: int, memory: int, tensor: str) -> list[tuple[int, bool]]:
    """(shared loops above, below the split there) where an own store of Einsum i may stand above its branch."""
    frame = frame_of(facts, state)
    backed = [(depth, below, state.homes[n]) for n, depth, below in frame.backings[i]]
    backed += [(depth, below, m) for m, _, depth, below, _ in frame.lents[i]]
    found = []
    for level, below in frame.places(i):
        first, last = frame.run(i, level + below)
        alone = not any(tensor in facts.tensors[j] for j in range(first, last + 1) if j != i)
        outer = all(m <= memory for depth, under, m in backed if (depth, under) < (level, below))
        inner = all(m >= memory for depth, under, m in backed if (depth, under) > (level, below))
        loose = level == 0 or facts.anchored.get(tensor) != memory
        if alone and outer and inner and loose:
            found.append((level, below))
    return found


def tiled(facts: Facts, state: State, i: int, own: Own, rng: Random) -> Own:
    """Temporal loops drawn inside out: of each variable a divisor for which the tiles above still have room."""
    left = _left(facts, state, i, facts.full[i] | dict(own.covers))
    tile = dict.fromkeys(left, 1)
    for _, v, n in own.spatial:
        left[v] //= n
    waiting = list(own.spatial)
    segments: list[Segment] = []
    count = Counter(m for m, _ in own.stores)
    part = rng.choice((1.0, 1.0, 0.5, 0.25, 0.1))
    for at in range(len(own.stores) - 1, -1, -1):
        memory, tensor = own.stores[at]
        for one in [one for one in waiting if facts.axis_place[one[0]] > facts.place[memory]]:
            tile[one[1]] *= one[2]
            waiting.remove(one)
        size = facts.memories[memory].size
        room = None if size is None else size / count[memory] * part
        segments.append(_segment(facts, i, memory, tensor, room, left, tile, rng))
    segments.append(tuple((v, n) for v, n in rng.sample(list(left.items()), len(left)) if n > 1))
    segments.reverse()
    return replaced(own, segments=tuple(segments))


def _segment(
    facts: Facts,
    i: int,
    memory: int,
    tensor: str,
    room: float | None,
    left: dict[str, int],
    tile: dict[str, int],
    rng: Random,
) -> Segment:
    """The loops below a store; what they take leaves `left` and enters `tile`."""
    found = []
    relevant, plain = facts.relevant[i][tensor], facts.plain[i][tensor]
    bits = 0 if plain is None or room is None else tile_bits(facts, i, memory, tensor, tile)
    for v in rng.sample(list(left), len(left)):
        options = divisors(left[v])
        if room is not None and v in relevant:
            if plain is not None:
                options = options[: bisect_right(options, room / bits)] if bits else options
            else:
                options = tuple(n for n in options if _fits(facts, i, memory, tensor, {**tile, v: tile[v] * n}, room))
        kind = rng.random()
        n = 1 if kind < 0.3 or not options else options[-1] if kind < 0.6 else rng.choice(options)
        if n > 1:
            found.append((v, n))
            left[v] //= n
            tile[v] *= n
            bits *= 1 if plain is None else n ** plain.count(v)
    return tuple(found)


def _fits(facts: Facts, i: int, memory: int, tensor: str, tile: dict[str, int], room: float) -> bool:
    return tile_bits(facts, i, memory, tensor, tile) <= room

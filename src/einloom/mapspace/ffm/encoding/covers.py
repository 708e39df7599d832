"""Uneven tiles, the rule 2 of `ragged`: the loops of a variable cover its extent, or a little more.

Of the loops of a variable the outermost alone may cut unevenly, into ceil(extent / tile) tiles, and the others divide.
So all trips multiply to a *cover*, the extent rounded up to whole tiles, and the tile below each loop is the cover over
the trips so far. An even cut covers the extent itself; of the others the privates of an Einsum say the covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from random import Random

from ..ragged import balanced, shares
from .facts import Facts, Spread
from .state import Own, Segment, SharedLoop, State, replaced, tidy

Chain = list[tuple[str | None, int]]  # (axis, trips) of the loops of one variable, outermost first


def uneven_fault(facts: Facts, i: int, variable: str, cover: int, chain: Chain) -> str | None:
    """Why the loops of a variable of Einsum i may not cover so much; None if they may.

    The last tile of the outermost loop is not empty. Spatial loops are balanced, none is below one that cuts unevenly,
    and windows are cut unevenly by an outermost spatial loop at most (docs/mapspace.md).
    """
    extent = facts.extents[variable]
    if cover == extent:
        return None
    if not chain or cover < extent:
        return "trips"
    axis, trips = chain[0]
    tile = cover // trips
    if cover - extent >= tile or not facts.may_be_uneven(i, variable, axis):
        return "uneven tile"
    spatial: list[int] = []
    for axis, trips in chain:
        cover //= trips
        if axis is not None:
            if not all(balanced(share, trips, cover) for share in shares(extent, spatial)):
                return "balance"
            spatial.append(trips)
    return "spatial below uneven" if chain[0][0] is not None and len(spatial) > 1 else None


def busiest_work(facts: Facts, i: int, chains: dict[str, Chain], full: Iterable[str]) -> int:
    """Iterations of the busiest instance of these axes, if nothing else were spread (rule 9 of `ragged`)."""
    axes = set(full)
    trips = {v: prod(n for axis, n in chains.get(v, ()) if axis in axes) for v in facts.einsums[i].variables}
    return prod(-(-facts.extents[v] // n) for v, n in trips.items())


def may_cut(facts: Facts, i: int, variable: str, loops: Iterable[SharedLoop]) -> bool:
    """True if no shared loop over the variable stands above, so that the next loop may have any tile."""
    return facts.ragged and all(v != variable for v, _, _ in loops)


def recovered(facts: Facts, state: State, i: int, own: Own) -> Own:
    """The privates in which the outermost loop of each variable has as many tiles as its extent needs.

    Loops further in stay, so any tiles come out dividing; a loop whose tile is the whole extent goes. A variable
    with shared loops keeps its cover. Perfect tiles stay as they are.
    """
    if not facts.ragged:
        return own
    known = dict(own.covers)
    covers, segments, spatial = [], list(own.segments), list(own.spatial)
    for v in facts.einsums[i].variables:
        if not may_cut(facts, i, v, state.shared[i]):
            covers += [(v, known[v])] if v in known else []
            continue
        cover = _outermost(facts, v, own, segments, spatial)
        covers += [(v, cover)] if cover != facts.extents[v] else []
    return tidy(facts, replaced(own, segments=tuple(segments), spatial=tuple(spatial), covers=tuple(sorted(covers))))


def _outermost(facts: Facts, v: str, own: Own, segments: list[Segment], spatial: list[tuple[str, str, int]]) -> int:
    """What the loops of a variable cover, once its outermost loop has the trips that are needed."""
    extent = facts.extents[v]
    places = list(_places(facts, v, own))
    trips = [
        dict(segments[at])[v] if axis is None else next(n for a, w, n in spatial if (a, w) == (axis, v))
        for at, axis in places
    ]
    for n, (at, axis) in enumerate(places):
        inner = prod(trips[n + 1 :])
        need = -(-extent // inner)
        if axis is None:
            segments[at] = tuple((w, need if w == v else m) for w, m in segments[at] if w != v or need > 1)
        else:
            spatial[:] = [(a, w, need if (a, w) == (axis, v) else m) for a, w, m in spatial]
            spatial[:] = [one for one in spatial if one[2] > 1]
        if need > 1:
            return need * inner
    return extent


def _places(facts: Facts, v: str, own: Own) -> Iterator[tuple[int, str | None]]:
    """(segment, None) of each temporal loop of the variable and (-1, axis) of each spatial one, outermost first."""
    waiting = [axis for axis, w, _ in own.spatial if w == v]
    waiting.sort(key=lambda axis: facts.axis_order[axis])
    for at, segment in enumerate(own.segments):
        if any(w == v for w, _ in segment):
            yield at, None
        place = facts.place[own.stores[at][0]] if at < len(own.stores) else float("inf")
        while waiting and facts.axis_place[waiting[0]] < place:
            yield -1, waiting.pop(0)


def any_tile(facts: Facts, state: State, i: int, own: Own, rng: Random) -> Own | None:
    """The privates with another number of trips of a loop below the outermost of its variable; None if there is none.

    Half of the numbers are the smallest tile of some number of trips further out.
    """
    free = [v for v in facts.einsums[i].variables if may_cut(facts, i, v, state.shared[i]) and facts.extents[v] > 1]
    if not free or (len(own.segments) < 2 and not own.spatial):
        return None
    v = rng.choice(free)
    at = rng.randrange(len(own.segments))
    others = prod(n for k, segment in enumerate(own.segments) for w, n in segment if w == v and k > at)
    others *= prod(n for _, w, n in own.spatial if w == v)
    most = -(-facts.extents[v] // others)
    trips = rng.randint(1, most) if rng.random() < 0.5 else -(-most // rng.randint(1, most))
    segments = list(own.segments)
    if any(w == v for w, _ in segments[at]):
        segments[at] = tuple((w, trips if w == v else n) for w, n in segments[at])
    else:
        place = rng.randint(0, len(segments[at]))
        segments[at] = (*segments[at][:place], (v, trips), *segments[at][place:])
    if at and rng.random() < 0.5 and not any(w == v for segment in segments[:at] for w, _ in segment):
        over = rng.randrange(at)
        place = rng.randint(0, len(segments[over]))
        segments[over] = (*segments[over][:place], (v, 2), *segments[over][place:])
    return replaced(own, segments=tuple(segments))


def cover_of_loop(extent: int, trips: int, wished: int | None, rng: Random) -> tuple[int, int]:
    """(trips, cover) of an outermost loop with about so many trips: of the wished cover if it may have it, else of the
    smallest tile, now and then of a larger one."""
    if wished is not None and wished % trips == 0 and 0 <= wished - extent < wished // trips:
        return trips, wished
    if extent % trips == 0:
        return trips, extent
    tile = -(-extent // trips)
    if rng.random() < 0.2:
        tile = rng.randint(tile, max(tile, -(-extent // (trips - 1)) - 1)) if trips > 1 else tile
    trips = -(-extent // tile)
    return trips, trips * tile


def covering(facts: Facts, i: int, spatial: Spread, rng: Random) -> dict[str, int]:
    """What the loops of each variable of Einsum i shall cover with a spatial choice: the extent, or some tiles more."""
    found = {}
    for v in facts.einsums[i].variables:
        extent, q = facts.extents[v], prod(n for _, w, n in spatial if w == v)
        least = -(-extent // q)
        tile = 1 if rng.random() < 0.4 or not facts.may_be_uneven(i, v, None) else rng.randint(1, least)
        found[v] = q * tile * -(-least // tile)
    return found

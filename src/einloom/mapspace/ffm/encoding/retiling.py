"""Uneven tiles of shared loops: one loop gets another tile, and another one as few trips as let all tiles fit.

Where tiles need not divide a rank, most steps of one loop alone end in tiles that do not fit, or in room that is left
over: three tiles of weights need smaller tiles of tokens than four. So these two steps are one.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .facts import Facts
from .moves import extent_of, with_tile
from .skeletons import NoProposal, SkeletonDraft, chosen
from .state import State

STEPS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0)  # times the trips of a loop
UNTOUCHED = 0.2  # of the moves leave the tile of the first loop as it is
OTHER = 0.6  # of the moves ask the second loop to iterate another variable
FURTHER = 1.5  # times the trips, until tiles fit
ROUNDEST = 7  # tiles are multiples of a power of two, up to two to this power


def retiled(facts: Facts, state: State, i: int, rng: Random, fits: Callable[[State], bool]) -> State:
    """A state with other tiles of the loops that Einsum i shares. Raises NoProposal with a rule's name."""
    level = chosen(range(len(state.shared[i])), rng)
    if rng.random() >= UNTOUCHED:
        trips, extent = state.shared[i][level][1], extent_of(facts, state, i, level)
        wanted = max(1, round(trips * rng.choice(STEPS)))
        wanted = trips + 1 if wanted == trips else wanted
        state = with_tile(facts, state, i, level, round_tile(extent, min(wanted, extent), _multiple(rng)), rng)
    level = chosen(range(len(state.shared[i])), rng)
    if rng.random() < OTHER:
        state = _turned(facts, state, i, level, rng)
    return _fewest(facts, state, i, level, rng, fits)


def round_tile(extent: int, trips: int, multiple: int) -> int:
    """A tile for so many trips, a multiple of the given power of two or of the largest one below that leaves them.

    >>> round_tile(16384, 3, 128), round_tile(4096, 67, 128)
    (5504, 62)
    """
    least = -(-extent // trips)
    while multiple > 1 and (multiple > least or -(-extent // _up(least, multiple)) != -(-extent // least)):
        multiple //= 2
    return min(extent, _up(least, multiple))


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _multiple(rng: Random) -> int:
    return 1 << rng.randint(0, ROUNDEST)


def _turned(facts: Facts, state: State, i: int, level: int, rng: Random) -> State:
    """The state with another variable of a shared loop, in as many trips if they divide it, else in two or in all."""
    old, trips, axis = state.shared[i][level]
    backed = [t.name for t, depth in zip(facts.floating, state.depths, strict=True) if i in t.users and depth > level]
    variables = [v for v in facts.einsums[i].variables if all(facts.simple_rank(i, t, v) is not None for t in backed)]
    variable = chosen(variables, rng)
    if axis is not None or variable == old:
        return state
    extent = facts.extents[variable]
    dividing = next(n for n in (trips, 2, extent) if extent % n == 0)
    draft = SkeletonDraft(facts, state)
    draft.wanted[i] = [*state.shared[i][:level], (variable, dividing, None)]
    return draft.settled(rng)


def _fewest(facts: Facts, state: State, i: int, level: int, rng: Random, fits: Callable[[State], bool]) -> State:
    """The state with the fewest trips of a temporal shared loop with which all tiles fit, about. Raises NoProposal."""
    if level >= len(state.shared[i]) or state.shared[i][level][2] is not None:
        return state
    extent, multiple = extent_of(facts, state, i, level), _multiple(rng)

    def at(trips: int) -> State | None:
        try:
            found = with_tile(facts, state, i, level, round_tile(extent, trips, multiple), rng)
        except NoProposal:
            return None
        return found if fits(found) else None

    low, high = 0, 1
    while (best := at(high)) is None:
        if high >= extent:
            raise NoProposal("capacity")
        low, high = high, min(extent, max(high + 1, int(high * FURTHER)))
    while high - low > 1:
        middle = (low + high) // 2
        found = at(middle)
        low, high, best = (low, middle, found) if found is not None else (middle, high, best)
    return best

"""Windows of one rank, piece by piece: for ranks with halos, strides, padding or consumer-derived pieces.

Where a rank is a plain variable its counts are closed products (`terms.covered`); here the pieces are listed, because a
window may overlap the one before, leave gaps, or be cut at the declared shape. Only the loops on the rank's own
variables are listed, so the work is the product of a few trip counts, and all pieces are looked at together: a *choice*
names the iteration of each loop by an int, or all iterations by an array with an axis of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dataclass import dataclass
from .shifts import EvenWindow, Steps, steps_of
from .terms import LoopCut, Number, maximum, minimum

Chain = tuple[tuple[int, LoopCut], ...]
Choice = Mapping[int, Number]
Array = NDArray[Any]
EXACT = 2**62  # sums below it are exact in 64-bit integers; larger ones are computed in Python's
MOST = 2**21  # pieces that are looked at together


def piece(extent: Number, chain: Chain, choice: Choice) -> tuple[Number, Number]:
    """(start, extent) of the piece of a variable below its cuts; none is left where the extent is 0 or less.

    choice: iteration of each loop by place; loops that it does not name are in their first.
    """
    start: Number = 0
    number: Number = 0
    for place, cut in chain:
        at = choice.get(place, 0)
        number = number * cut.trips + at
        if cut.ends is not None:
            start, extent = cut.piece(number)
        else:
            start, extent = start + at * cut.tile, minimum(cut.tile, extent - at * cut.tile)
    return start, extent


@dataclass(frozen=True, slots=True)
class RankUse:
    """How one Einsum reaches a rank: coefficient, extent and (place, cut) chain of each variable, plus the constant."""

    terms: tuple[tuple[int, int, Chain], ...]
    constant: int

    def interval(self, choice: Choice) -> tuple[Number, Number, Number]:
        """(low, high, has it work?): [low, high) for one choice, if no piece is empty."""
        low: Number = self.constant
        high: Number = self.constant
        work: Number = True
        for coefficient, extent, chain in self.terms:
            start, size = piece(extent, chain, choice)
            work = work & (size > 0)
            low = low + coefficient * start
            high = high + coefficient * (start + size - 1)
        return low, high + 1, work


def choose(flag: Number, yes: Number, no: Number) -> Number:
    """`yes` where the flag is set, else `no`."""
    return np.where(flag, yes, no) if isinstance(flag, np.ndarray) else yes if flag else no


def hull(
    uses: Sequence[RankUse], choice: Choice, size: int, busy: Sequence[Number] | None = None
) -> tuple[Number, Number, Number]:
    """(low, high, has any of them work?) of what the Einsums need together, cut at the declared shape.

    busy: for each use whether its Einsum works at all, if other ranks decide that, too.
    """
    low, high, work = uses[0].interval(choice)
    work = work if busy is None else work & busy[0]
    for i, use in enumerate(uses[1:], 1):
        start, end, also = use.interval(choice)
        also = also if busy is None else also & busy[i]
        low = choose(work, choose(also, minimum(low, start), low), start)
        high = choose(work, choose(also, maximum(high, end), high), end)
        work = work | also
    low = maximum(low, 0)
    return low, maximum(minimum(high, size), low), work


def extent_at(uses: Sequence[RankUse], size: int, choice: Choice) -> Number:
    """Size of the window for a choice."""
    low, high, work = hull(uses, choice, size)
    return choose(work, high - low, 0)


def axes(trips: Mapping[int, int], before: int = 0, dtype: type = np.int64) -> dict[int, Array]:
    """All iterations of the loops, by place: an array for each, with an axis of its own behind the first `before`."""
    count = len(trips)
    return {
        place: np.arange(n).astype(dtype, copy=False).reshape((1,) * (before + k) + (n,) + (1,) * (count - k - 1))
        for k, (place, n) in enumerate(trips.items())
    }


def grid(chosen: Choice, trips: Mapping[int, int], ndim: int, dtype: type = np.int64) -> Choice:
    """`chosen`, arrays of `ndim` axes, together with all iterations of more loops, on axes behind those."""
    behind = (1,) * len(trips)
    wide = {at: one.reshape(one.shape + behind) if isinstance(one, np.ndarray) else one for at, one in chosen.items()}
    return {**wide, **axes(trips, ndim, dtype)}


def representatives(trips: Sequence[int], arrays: Sequence[Number]) -> list[Array]:
    """For every axis the first iteration of each class, with that axis of its own; trips: length of each axis.

    Two iterations of an axis are of one class if no array differs between them, whatever the others are. Whatever is
    computed from the arrays element by element takes all its values among the representatives, each first where it
    comes first at all (docs/model/pruning.md).
    """
    found: list[Array] = []
    left = [one for one in arrays if isinstance(one, np.ndarray) and one.size > 1]
    for axis, count in enumerate(trips):
        mine = [np.moveaxis(one, axis, 0).reshape(count, -1) for one in left if one.shape[axis] > 1]
        first: dict[tuple[object, ...], int] = {}
        for i in range(count if mine else 1):
            rows = (one[i] for one in mine)
            first.setdefault(tuple([tuple(r.flat) if r.dtype == object else r.tobytes() for r in rows]), i)
        kept = np.array(list(first.values()))
        left = [one.take(kept, axis=axis) if one.shape[axis] > 1 else one for one in left]
        found.append(kept.reshape([-1 if k == axis else 1 for k in range(len(trips))]))
    return found


def previous(work: Array, values: Sequence[Array]) -> tuple[Array, list[Array]]:
    """(is there any, `values` there) of the iteration with work before each, along the last axis."""
    steps = work.shape[-1]
    if work.all():
        found = [np.concatenate([value[..., :1], value[..., :-1]], axis=-1) for value in values]
        return np.broadcast_to(np.arange(steps) > 0, work.shape), found
    last = np.maximum.accumulate(np.where(work, np.arange(steps), -1), axis=-1)
    before = np.concatenate([np.full((*work.shape[:-1], 1), -1), last[..., :-1]], axis=-1)
    at = np.maximum(before, 0)
    return before >= 0, [np.take_along_axis(np.broadcast_to(value, work.shape), at, axis=-1) for value in values]


@lru_cache(maxsize=100_000)
def moved(uses: tuple[RankUse, ...], size: int, sliding: int | None) -> int:
    """Elements of the rank that all visits bring in: the window, less what the step of the sliding loop kept.

    uses: the Einsums below the store that access the tensor; a cut with `once` counts its picked piece only. size:
    declared size of the rank. sliding: place of the loop whose steps keep the overlap with the window before, or None.
    """
    return int(moved_each(uses, size, sliding, {}, 0))


def moved_each(uses: tuple[RankUse, ...], size: int, sliding: int | None, picks: Choice, ndim: int) -> Number:
    """As `moved`, for each of many picks. picks: pieces of cuts with `once`, arrays of `ndim` axes for some of them."""
    chosen: dict[int, Number] = {}
    trips: dict[int, int] = {}
    for chain in (chain for use in uses for _, _, chain in use.terms):
        for place, cut in chain:
            if cut.once:
                chosen[place] = picks.get(place, cut.pick)
            else:
                trips[place] = cut.trips
    reach = max(abs(use.constant) + sum(c * extent for c, extent, _ in use.terms) for use in uses)
    steps = trips.pop(sliding, 1) if sliding is not None else 1
    last = -1 if sliding is None or sliding in chosen else sliding
    exact = max(reach, size) * prod(trips.values()) * steps < EXACT
    if exact and not ndim and len(uses) == 1:
        even = EvenWindow.of(uses[0].terms, uses[0].constant, last)
        if even is not None:
            return even.moved(size)
    indices = [(use.terms, use.constant) for use in uses]
    listed = steps_of(indices, size, {**dict(sorted(trips.items())), last: steps}, last)
    return _sum(uses, size, chosen, listed, ndim, np.int64 if exact else object)


def _sum(
    uses: tuple[RankUse, ...], size: int, chosen: dict[int, Number], listed: dict[int, Steps], ndim: int, dtype: type
) -> Number:
    """What is new in each piece of the `listed` loops, of which the last one slides, summed up over all of them."""
    first = next(iter(listed))
    if len(listed) > 1 and prod(len(one.at) for one in listed.values()) > MOST:
        rest = {place: one for place, one in listed.items() if place != first}
        each = zip(listed[first].at.tolist(), listed[first].counts.tolist(), strict=True)
        return sum(count * _sum(uses, size, {**chosen, first: at}, rest, ndim, dtype) for at, count in each)
    lengths = {place: len(one.at) for place, one in listed.items()}
    choice = {
        place: listed[place].at.astype(dtype)[at.astype(np.int64)] if place in listed else at
        for place, at in grid(chosen, lengths, ndim, dtype).items()
    }
    low, high, work = hull(uses, choice, size)
    shape = np.broadcast_shapes(*(np.shape(one) for one in (low, high, work)), (1,) * ndim + tuple(lengths.values()))
    low, high, work = (np.broadcast_to(one, shape) for one in (low, high, work))
    there, (start, end) = previous(work, (low, high))
    kept = np.where(there, np.maximum(np.minimum(high, end) - np.maximum(low, start), 0), 0)
    found = np.where(work, high - low - kept, 0)
    for one in reversed(listed.values()):
        found = found @ one.counts.astype(dtype)
    return found.astype(object) if ndim else found


def pieces(extent: int, chain: Chain, whole: bool, picks: Choice, ndim: int) -> Number:
    """How many pieces of a variable are not empty below its cuts, or (`whole`) the sum of their extents, for each of
    many picks; arguments as of `moved_each`."""
    trips = {place: cut.trips for place, cut in chain if not cut.once}
    chosen = {place: picks.get(place, cut.pick) for place, cut in chain if cut.once}
    _, size = piece(extent, chain, grid(chosen, trips, ndim))
    size = np.maximum(size, 0)
    shape = np.broadcast_shapes(np.shape(size), (1,) * ndim + tuple(trips.values()))
    counted = np.broadcast_to(size if whole else size > 0, shape)
    return counted.sum(axis=tuple(range(ndim, ndim + len(trips))), dtype=np.int64).astype(object)


@lru_cache(maxsize=100_000)
def overlaps(uses: tuple[RankUse, ...], size: int, sliding: int) -> bool:
    """True if any step of the sliding loop keeps an element of the rank."""
    return moved(uses, size, sliding) < moved(uses, size, None)

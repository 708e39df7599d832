"""How often an element can be of use each time it is fetched: what room and instances leave to the tensors together.

Comes in: the class of an Einsum, the tensors that a memory holds, the room of an instance. Goes out: choices, each with
the most uses of an element of every tensor; no mapping has more of all than some choice. The argument:
docs/model/pruning.md, "Room and instances".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from ....mapspace.divisors import divisors
from ..einsums.classes import EinsumClass, TensorSignature
from ..numerics.pareto import FloatArray, IntArray, skyline

BOXES = 1 << 15  # boxes of one tensor, or ways to share instances, that are listed; of more nothing is said
SHARED = 1 << 18  # boxes of some shares of an instance that are compared at once
FEWEST = 4  # parts into which the extents of a variable that may be cut unevenly are cut at least


@lru_cache(maxsize=256)
def by_room(
    einsum: EinsumClass, tensors: tuple[int, ...], bits: tuple[int, ...], backed: tuple[int, ...], room: int
) -> FloatArray:
    """The most iterations that a fetched element serves in an instance [choices, tensors], of own stores of a memory.

    bits: of an element of each, then of the intermediates that the memory backs. room: bits of an instance that the
    stores may take together. Of no choice if an element of each does not fit.
    """
    stores = [einsum.tensors[t] for t in (*tensors, *backed)]
    if sum(bits) > room:
        return np.zeros((0, len(tensors)))
    every, found = np.array(einsum.extents)[None], []
    for held, cut, slides in _largest(einsum, stores, len(tensors)):
        box = _boxes(einsum, [(stores[i], bits[i]) for i in held], _beside(bits, held, room), cut)
        if box is None:
            return np.full((1, len(tensors)), inf)
        extents = np.where([v in cut for v in range(every.size)], box, every).astype(float)
        found.append(_uses(every, stores[: len(tensors)], extents, held[0], slides))
    return _most(np.concatenate(found))


def by_rooms(
    einsum: EinsumClass,
    tensors: tuple[int, ...],
    bits: tuple[int, ...],
    backed: tuple[int, ...],
    room: int,
    left: IntArray,
) -> list[FloatArray] | None:
    """The same for instances that have a share of the extents [shares, variables] each, where all tiles divide: one
    table of uses per share; None if boxes are too many."""
    stores = [einsum.tensors[t] for t in (*tensors, *backed)]
    if sum(bits) > room:
        return [np.zeros((0, len(tensors))) for _ in left]
    found = []
    for held, cut, slides in _largest(einsum, stores, len(tensors)):
        mine, spare = [(stores[i], bits[i]) for i in held], _beside(bits, held, room)
        boxes = _divisors_that_fit(einsum, mine, spare, cut)
        if len(boxes) > BOXES:
            return None
        step = max(1, SHARED // max(1, len(boxes)))
        for start in range(0, len(left), step):
            share, extents = _shared(einsum, mine, spare, cut, boxes, left[start : start + step])
            some = left[start + share]
            found.append((start + share, _uses(some, stores[: len(tensors)], extents.astype(float), held[0], slides)))
    share = np.concatenate([one for one, _ in found])
    uses = np.concatenate([one for _, one in found])
    kept = skyline(share, -uses)
    return np.split(uses[kept], np.searchsorted(share[kept], np.arange(1, len(left))))


def _shared(
    einsum: EinsumClass,
    stores: Sequence[tuple[TensorSignature, int]],
    room: int,
    cut: frozenset[int],
    boxes: IntArray,
    left: IntArray,
) -> tuple[IntArray, IntArray]:
    """(numbers of shares, boxes that divide them and fit): of the variables that are not cut all that is left."""
    among = np.array([v in cut for v in range(len(einsum.extents))], bool)
    share, box = np.nonzero((left[:, None, among] % boxes[None][:, :, among] == 0).all(axis=2))
    extents = np.where(among, boxes[box], left[share])
    fits = _fitting(stores, np.array(einsum.extents, np.int64), extents, room)
    return share[fits], extents[fits]


def _largest(
    einsum: EinsumClass, stores: Sequence[TensorSignature], own: int
) -> Iterator[tuple[tuple[int, ...], frozenset[int], bool]]:
    """What may have the largest box, of own stores and then of intermediates: (its place among the stores, and of the
    one that slides, if one does; the variables that these tiles may cut; whether one slides)."""
    inside = {i: _below(einsum, stores[i]) for i in range(own, len(stores))}
    for outer in range(len(stores)):
        whole = frozenset[int]().union(*(below for i, below in inside.items() if i != outer))
        for slides in (None, *(u for u in range(own) if stores[u].slides and u != outer)):
            held = tuple(dict.fromkeys((outer, *(() if slides is None else (slides,)))))
            yield held, frozenset[int]().union(*(stores[i].variables for i in held)) - whole, slides is not None


def _beside(bits: tuple[int, ...], held: tuple[int, ...], room: int) -> int:
    """The bits of an instance for these tiles, beside an element of each other one."""
    return room - sum(bits) + sum(bits[i] for i in held)


def _uses(left: IntArray, own: Sequence[TensorSignature], box: FloatArray, outer: int, slides: bool) -> FloatArray:
    """The most iterations that an element of each own store serves in a box [boxes, stores]. outer: the store whose box
    it is, which slides."""
    return np.stack([_served(left, one, box, i == outer or slides) for i, one in enumerate(own)], axis=1)


def _divisors_that_fit(
    einsum: EinsumClass, stores: Sequence[tuple[TensorSignature, int]], room: int, cut: frozenset[int]
) -> IntArray:
    """The extents [boxes, variables] of tiles that fit together, of those that divide; of variables other than those of
    `cut` one element. More than `BOXES` are not all of them."""
    every, found = np.array(einsum.extents, np.int64), np.ones((1, len(einsum.extents)), np.int64)
    for v in sorted(cut):
        takes = np.array(divisors(einsum.extents[v]))
        found = np.repeat(found, len(takes), axis=0)
        found[:, v] = np.tile(takes, len(found) // len(takes))
        found = found[_fitting(stores, every, found, room)]
        if len(found) > BOXES:
            break
    return found


def _below(einsum: EinsumClass, tensor: TensorSignature) -> frozenset[int]:
    """The variables of which every loop stands below the backing store of an intermediate (rule 6)."""
    return frozenset(v for v in range(len(einsum.extents)) if tensor.fused_rank(v) is None)


def _boxes(
    einsum: EinsumClass, stores: Sequence[tuple[TensorSignature, int]], room: int, cut: frozenset[int]
) -> FloatArray | None:
    """The extents [boxes, variables] whose tiles fit together, with the bits of an element of each; None if they are
    too many. Variables other than those of `cut` are whole. Of variables that may be cut unevenly, a box is the upper
    corner of a cell of extents, of which the lower one fits: at most what the room leaves beside that."""
    every, variables = np.array(einsum.extents), sorted(cut)
    least = np.where([v in cut for v in range(len(every))], 1, every)[None]
    low = high = least[_fitting(stores, every, least, room)]
    even = prod(len(divisors(einsum.extents[v])) for v in variables if v not in einsum.uneven)
    count = _parts(BOXES / even, sum(v in einsum.uneven for v in variables))
    for v in variables:
        whole = einsum.extents[v]
        takes = _cells(whole, count) if v in einsum.uneven else np.array(divisors(whole))[:, None]
        low, high = (np.repeat(box, len(takes), axis=0) for box in (low, high))
        low[:, v], high[:, v] = (np.tile(takes[:, end], len(low) // len(takes)) for end in (0, -1))
        fits = _fitting(stores, every, low, room)
        low, high = low[fits], high[fits]
        if len(low) > BOXES:
            return None
    return _tightened(einsum, stores, room, cut, low, high)


def _fitting(
    stores: Sequence[tuple[TensorSignature, int]], every: IntArray, box: IntArray, room: int
) -> NDArray[np.bool_]:
    """Mask of the boxes whose tiles fit together."""
    return np.asarray(sum(_held(tensor, every, box) * bits for tensor, bits in stores) <= room)


def _parts(boxes: float, variables: int) -> int:
    """Into how many parts each of so many variables may be cut for so many boxes in all."""
    return max(FEWEST, int(boxes ** (1 / variables))) if variables else FEWEST


def _cells(most: int, count: int) -> IntArray:
    """The first and the last number of about so many parts of 1 ... most, one each at first, then growing alike."""
    bounds = np.unique(np.rint(np.geomspace(1, most + 1, count + 1)).astype(np.int64))
    return np.stack([bounds[:-1], bounds[1:] - 1], axis=1)


def _tightened(
    einsum: EinsumClass,
    stores: Sequence[tuple[TensorSignature, int]],
    room: int,
    cut: frozenset[int],
    low: IntArray,
    high: IntArray,
) -> FloatArray:
    """The upper corners, each extent cut to what fits beside the others of the lower corner."""
    every, found = np.array(einsum.extents), high.astype(float)
    held = np.stack([_held(tensor, every, low) * bits for tensor, bits in stores], axis=1)
    for v in cut & einsum.uneven - einsum.windows:  # it indexes plain ranks alone
        mine = [i for i, (tensor, _) in enumerate(stores) if v in tensor.variables]
        left = room - np.delete(held, mine, axis=1).sum(axis=1)
        found[:, v] = np.minimum(found[:, v], low[:, v] * left / held[:, mine].sum(axis=1))
    return found


def _held(tensor: TensorSignature, extents: IntArray, box: IntArray) -> FloatArray:
    """The fewest elements of a tile of the tensor over these extents at its largest; outside the shape there are none.

    extents: of all variables; windows reach beyond the shape by what they say."""
    total = np.ones(len(box))
    for rank, constant, size in zip(tensor.ranks, tensor.constants, tensor.shape, strict=True):
        mine = [v for v, _ in rank]
        places = box[:, mine].max(axis=1, initial=1)
        if all(coefficient == 1 for _, coefficient in rank):
            places = box[:, mine].sum(axis=1) - len(mine) + 1
        beyond = constant + 1 + sum(coefficient * (int(extents[v]) - 1) for v, coefficient in rank) - size
        total *= np.maximum(1, places - max(0, -constant) - max(0, beyond))
    return np.asarray(total)


def _served(left: IntArray, tensor: TensorSignature, box: FloatArray, slides: bool) -> FloatArray:
    """The most iterations that an element serves between two fetches [boxes], if what stays is no larger than the box.

    left: the extents of an instance, of all boxes or of each. slides: besides, one loop outside the box may slide: then
    an element stays as long as a window holds it."""
    lacks = [v for v in range(box.shape[1]) if v not in tensor.variables]
    windows = [[v for v, _ in rank] for rank in tensor.ranks if len(rank) > 1]
    served, slid = box[:, lacks].prod(axis=1), np.ones(len(box))
    stays = [_meets(left, box, window, None) for window in windows]
    for v in sorted({v for window in windows for v in window if slides}):
        longer = [_meets(left, box, w, v) / kept for w, kept in zip(windows, stays, strict=True) if v in w]
        slid = np.maximum(slid, np.prod(longer, axis=0))
    return np.asarray(served * np.prod(stays, axis=0, initial=1.0) * slid)


def _meets(left: IntArray, box: FloatArray, window: Sequence[int], slides: int | None) -> FloatArray:
    """The most places of a window's variables in a box that meet one place of its rank, along which one may slide."""
    every, reached = left[:, window].astype(float), box[:, window]
    among = reached.max(axis=1) if slides is None else reached[:, list(window).index(slides)]
    return np.asarray(np.minimum(reached.prod(axis=1) / among, every.prod(axis=1) / every.max(axis=1)))


@lru_cache(maxsize=256)
def by_instances(einsum: EinsumClass, tensors: tuple[int, ...], spread: frozenset[int], most: int) -> FloatArray:
    """How many instances one move of each tensor may serve at most [choices, tensors]. spread: the variables of which
    loops may be spatial; most: instances in all."""
    groups: dict[tuple[bool, ...], tuple[int, bool]] = {}
    for v in spread:
        lacks = tuple(v not in einsum.tensors[t].variables for t in tensors)
        extent, uneven = groups.get(lacks, (1, False))
        groups[lacks] = extent * einsum.extents[v], uneven or v in einsum.uneven
    groups = {lacks: group for lacks, group in groups.items() if any(lacks)}
    even = prod(len(divisors(extent)) for extent, uneven in groups.values() if not uneven)
    count = _parts(BOXES / even, sum(uneven for _, uneven in groups.values()))
    served, left = np.ones((1, len(tensors))), np.array([most])
    for lacks, (extent, uneven) in groups.items():
        takes = _cells(min(extent, most), count) if uneven else np.array(divisors(extent))[:, None]
        low, high = (np.tile(takes[:, end], len(left)) for end in (0, -1))
        left = np.repeat(left, len(takes))
        served = np.repeat(served, len(takes), axis=0) * np.where(lacks, np.minimum(high, left)[:, None], 1)
        served, left = served[low <= left], (left // low)[low <= left]
        if len(left) > BOXES:
            return np.full((1, len(tensors)), inf)
    return _most(served)


def _most(uses: FloatArray) -> FloatArray:
    """The choices that no other beats in all tensors."""
    return np.asarray(uses[skyline(np.zeros(len(uses), np.int64), -uses)])

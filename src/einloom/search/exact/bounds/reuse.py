"""How often an element can be of use each time it is fetched: what room and instances leave to the tensors together.

Comes in: the class of an Einsum, the tensors that a memory holds, the room of an instance. Goes out: choices, each with
the most uses of an element of every tensor; no mapping has more of all than some choice. The argument:
docs/model/pruning.md, "Room and instances".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf

import numpy as np

from ....mapspace.divisors import divisors
from ..einsums.classes import EinsumClass, TensorSignature
from ..numerics.pareto import FloatArray, IntArray, skyline

BOXES = 1 << 15  # boxes of one tensor, or ways to share instances, that are listed; of more nothing is said


@lru_cache(maxsize=256)
def by_room(einsum: EinsumClass, tensors: tuple[int, ...], bits: tuple[int, ...], room: int) -> FloatArray:
    """The most iterations that a fetched element serves in an instance [choices, tensors], of own stores of a memory.

    bits: of an element of each. room: bits of an instance that the stores may take together. Of no choice if an element
    of each does not fit.
    """
    every, stores = np.array(einsum.extents)[None], [einsum.tensors[t] for t in tensors]
    if sum(bits) > room:
        return np.zeros((0, len(tensors)))
    found = []
    for outer, first in enumerate(stores):
        for slides in (None, *(u for u, tensor in enumerate(stores) if tensor.slides and u != outer)):
            held = dict.fromkeys((outer, *(() if slides is None else (slides,))))
            inside = frozenset[int]().union(*(stores[i].variables for i in held))
            box = _boxes(einsum, [(stores[i], bits[i]) for i in held], room - sum(bits) + sum(bits[i] for i in held))
            if box is None:
                return np.full((1, len(tensors)), inf)
            extents = np.where([v in inside for v in range(every.size)], box, every).astype(float)
            uses = (_served(einsum, one, extents, one is first or slides is not None) for one in stores)
            found.append(np.stack(list(uses), axis=1))
    return _most(np.concatenate(found))


def _boxes(einsum: EinsumClass, stores: Sequence[tuple[TensorSignature, int]], room: int) -> IntArray | None:
    """The extents [boxes, variables] whose tiles fit together, with the bits of an element of each; None if they are
    too many."""
    every, box = np.array(einsum.extents), np.ones((1, len(einsum.extents)), np.int64)
    for v in sorted(frozenset[int]().union(*(tensor.variables for tensor, _ in stores))):
        takes = np.array(divisors(einsum.extents[v]), np.int64)
        wider = np.repeat(box, len(takes), axis=0)
        wider[:, v] = np.tile(takes, len(box))
        box = wider[sum(_held(tensor, every, wider) * bits for tensor, bits in stores) <= room]
        if len(box) > BOXES:
            return None
    return box


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


def _served(einsum: EinsumClass, tensor: TensorSignature, box: FloatArray, slides: bool) -> FloatArray:
    """The most iterations that an element serves between two fetches [boxes], if what stays is no larger than the box.

    slides: besides, one loop outside the box may slide: then an element stays as long as a window holds it."""
    lacks = [v for v in range(len(einsum.extents)) if v not in tensor.variables]
    windows = [[v for v, _ in rank] for rank in tensor.ranks if len(rank) > 1]
    served, slid = box[:, lacks].prod(axis=1), np.ones(len(box))
    stays = [_meets(einsum, box, window, None) for window in windows]
    for v in sorted({v for window in windows for v in window if slides}):
        longer = [_meets(einsum, box, w, v) / kept for w, kept in zip(windows, stays, strict=True) if v in w]
        slid = np.maximum(slid, np.prod(longer, axis=0))
    return np.asarray(served * np.prod(stays, axis=0, initial=1.0) * slid)


def _meets(einsum: EinsumClass, box: FloatArray, window: Sequence[int], slides: int | None) -> FloatArray:
    """The most places of a window's variables in a box that meet one place of its rank, along which one may slide."""
    every = np.array([einsum.extents[v] for v in window], float)
    reached = box[:, window]
    among = reached.max(axis=1) if slides is None else reached[:, list(window).index(slides)]
    return np.asarray(np.minimum(reached.prod(axis=1) / among, every.prod() / every.max()))


@lru_cache(maxsize=256)
def by_instances(einsum: EinsumClass, tensors: tuple[int, ...], spread: frozenset[int], most: int) -> FloatArray:
    """How many instances one move of each tensor may serve at most [choices, tensors]. spread: the variables of which
    loops may be spatial; most: instances in all."""
    groups: dict[tuple[bool, ...], int] = {}
    for v in spread:
        lacks = tuple(v not in einsum.tensors[t].variables for t in tensors)
        groups[lacks] = groups.get(lacks, 1) * einsum.extents[v]
    groups = {lacks: extent for lacks, extent in groups.items() if any(lacks)}
    served, left = np.ones((1, len(tensors))), np.array([most])
    for lacks, extent in groups.items():
        takes = np.array(divisors(extent))
        served = np.repeat(served, len(takes), axis=0) * np.where(lacks, np.tile(takes, len(left))[:, None], 1)
        left, taken = np.repeat(left, len(takes)), np.tile(takes, len(left))
        served, left = served[taken <= left], (left // taken)[taken <= left]
        if len(left) > BOXES:
            return np.full((1, len(tensors)), inf)
    return _most(served)


def _most(uses: FloatArray) -> FloatArray:
    """The choices that no other beats in all tensors."""
    return np.asarray(uses[skyline(np.zeros(len(uses), np.int64), -uses)])

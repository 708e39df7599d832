"""Reservations of a partial cascade: what stays alive in each tracked memory, and the worst moment so far.

Comes in: the reservations before an Einsum, its own stores, and the tiles that it brings or meets. Goes out: the
reservations after it. They are consolidated by lifetime (FFM, section 6): what is over is kept as one number, the worst
moment, and what is alive as one number for each depth of open temporal loops.

The peak of everything is ``max(peak[0], alive[0] + max(peak[1], alive[1] + ...))``; ``peak[0]`` is checked and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ....dataclass import dataclass
from ..numerics.pareto import IntArray


@dataclass(frozen=True, slots=True)
class Reservations:
    """Bits in tracked memories of n partial cascades, [n, memories, depth] each.

    alive: of the stores below d open temporal loops that stay alive while the loop below them is open, d < depth. peak:
    the worst moment so far among finished items under d open loops, without what is alive further out, d = 1..depth.
    """

    alive: IntArray
    peak: IntArray


@dataclass(frozen=True, slots=True)
class Reserved:
    """A tile that an Einsum reserves room for: bits [n] below so many temporal loops in a tracked memory."""

    memory: int
    depth: int
    bits: IntArray


def reserve(
    before: Reservations, tiles: Iterable[Reserved], own: IntArray, depth: int, at_once: bool
) -> tuple[Reservations, IntArray]:
    """(reservations after an Einsum [n], the worst moment of what is over outside every loop [n, memories]).

    tiles: those that are not counted in `before`. own [n, memories, loops + 1]: of its own stores by the temporal loops
    above them. depth: temporal loops that stay open. at_once: it runs at the same time as the Einsums before it under
    the same loops, so their moments add up; else the larger counts.
    """
    n, memories, open_before = before.alive.shape
    deepest = max(open_before, depth)
    alive = np.zeros((n, memories, deepest), np.int64)
    alive[:, :, :open_before] = before.alive
    peak = np.zeros((n, memories, deepest + 1), np.int64)
    peak[:, :, 1 : open_before + 1] = before.peak
    mine = own[:, :, deepest:].sum(axis=2)
    stays = min(deepest, own.shape[2])
    alive[:, :, :stays] += own[:, :, :stays]
    for tile in tiles:
        if tile.depth >= deepest:
            mine[:, tile.memory] += tile.bits
        else:
            alive[:, tile.memory, tile.depth] += tile.bits
    peak[:, :, deepest] = peak[:, :, deepest] + mine if at_once else np.maximum(peak[:, :, deepest], mine)
    for d in range(deepest - 1, depth - 1, -1):
        peak[:, :, d] = np.maximum(peak[:, :, d], alive[:, :, d] + peak[:, :, d + 1])
    return Reservations(alive[:, :, :depth], peak[:, :, 1 : depth + 1]), peak[:, :, 0]


def worst_moment(reserved: Reservations, over: IntArray) -> IntArray:
    """Bits at the worst moment so far [n, memories]. over: the worst moment of what is over outside every loop."""
    depth = reserved.alive.shape[2]
    worst = reserved.peak[:, :, depth - 1] if depth else over
    for d in range(depth - 1, -1, -1):
        done = reserved.peak[:, :, d - 1] if d else over
        worst = np.maximum(done, reserved.alive[:, :, d] + worst)
    return worst

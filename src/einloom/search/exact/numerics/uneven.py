"""Extents of ranks that may be cut unevenly: which tiles can be optimal, and how a spatial loop shares them out.

Comes in: an extent, what stands below. Goes out: the tiles worth considering. Rules and arguments: uneven tiles in
docs/model/pruning.md.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ....mapspace.divisors import divisors
from .pareto import IntArray

ROUND = 128  # tiles are rounded up to multiples of the powers of two up to this


def ceil(a: IntArray | int, b: IntArray | int) -> IntArray:
    """a / b, rounded up."""
    return np.asarray(-(-np.asarray(a) // b))


@lru_cache(maxsize=8192)
def smallest_tiles(extent: int) -> tuple[int, ...]:
    """The smallest tile of every number of trips over an extent, ascending.

    >>> smallest_tiles(10)
    (1, 2, 3, 4, 5, 10)
    """
    found = [extent]
    while found[-1] > 1:
        trips = -(-extent // (found[-1] - 1))
        found.append(-(-extent // trips))
    return tuple(reversed(found))


@lru_cache(maxsize=65536)
def multiples(extent: int, inner: int) -> tuple[int, ...]:
    """The smallest multiple of an inner tile for every number of trips, ascending; the last is the whole extent.

    >>> multiples(10, 2)
    (2, 4, 6, 10)
    """
    below = [inner * k for k in smallest_tiles(-(-extent // inner))]
    return (*(x for x in below if x < extent), extent)


Tiling = Literal["loose", "coarse", "rounded", "every", "integer"]
"""Which tiles ranks may have that several Einsums cut alike: the smallest of every number of trips, where inner tiles
need not divide the fused one (a relaxation); for dives divisors, where there are many; a list of round ones; or all.
``integer`` speaks of all ranks that may be cut unevenly: no tile of theirs need divide another (a relaxation)."""


@lru_cache(maxsize=1024)
def tile_list(extent: int, tiling: Tiling) -> tuple[int, ...]:
    """The tiles of such a rank, ascending; the last is the whole extent.

    >>> tile_list(10, "loose"), tile_list(6, "every")
    ((1, 2, 3, 4, 5, 10), (1, 2, 3, 4, 5, 6))
    """
    if tiling == "every":
        return tuple(range(1, extent + 1))
    if tiling == "coarse" and len(divisors(extent)) >= extent.bit_length():
        return divisors(extent)
    if tiling != "rounded":
        return smallest_tiles(extent)
    inner = (1 << k for k in range(ROUND.bit_length()))
    return tuple(sorted({tile for x in inner if x <= extent for tile in multiples(extent, x)}))


def largest_tile(extent: int, tile: IntArray) -> IntArray:
    """The largest tile with as many trips over an extent.

    >>> largest_tile(10, np.array([2, 4, 5, 10])).tolist()
    [2, 4, 9, 10]
    """
    trips = ceil(extent, tile)
    return np.asarray(np.where(trips > 1, ceil(extent, np.maximum(trips - 1, 1)) - 1, extent))


def filled(extent: int, tile: IntArray, lanes: IntArray, idle: IntArray) -> IntArray:
    """The least tile of as many trips, no smaller, that leaves at most `idle` of so many lanes without work in its last
    pass; one larger than the extent where there is none.

    >>> filled(768, np.array([154, 384]), np.array([32]), np.array([0])).tolist()
    [160, 384]
    """
    found = np.where(ceil(tile, lanes) * lanes - tile <= idle, tile, ceil(tile, lanes) * lanes - idle)
    return np.asarray(np.where(found <= largest_tile(extent, tile), found, extent + 1))


def balanced(extent: IntArray, instances: IntArray, tile: IntArray) -> NDArray[np.bool_]:
    """Mask of tiles of spatial loops that share out an extent evenly: the last pass could do with no smaller one."""
    left = extent % (instances * tile)
    return np.asarray((left == 0) | (left > instances * (tile - 1)))


def met(extent: int, outer: list[IntArray], choices: int) -> list[IntArray]:
    """The extents that a spatial loop may meet: shares of one instance of any of the loops further out, per choice."""
    every = (chosen for size in range(len(outer) + 1) for chosen in combinations(outer, size))
    return [ceil(extent, prod(chosen, start=np.ones(choices, np.int64))) for chosen in every]

"""Reservations alone: consolidated by lifetime they give the moment that adding up all stores of all Einsums gives."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from einloom.search.exact.joining.reservations import Reservations, Reserved, reserve, worst_moment


def after_all(owns: list[list[int]], opened: list[int]) -> int:
    """The worst moment of Einsums joined one by one. owns: bits by loops above; opened: loops shared with the next."""
    none = np.zeros((1, 1, 0), np.int64)
    reserved, over = Reservations(none, none), np.zeros((1, 1), np.int64)
    for own, depth in zip(owns, [*opened, 0], strict=True):
        reserved, done = reserve(reserved, (), np.array([[own]], np.int64), depth, at_once=False)
        over = np.maximum(over, done)
        moment = int(worst_moment(reserved, over)[0, 0])
    return moment


def added_up(owns: list[list[int]], opened: list[int]) -> int:
    """The same from lifetimes: a store below d loops is alive in all Einsums with which its own shares more than d."""
    moments = []
    for now in range(len(owns)):
        total = 0
        for i, own in enumerate(owns):
            low, high = sorted((i, now))
            shared = min(opened[low:high], default=len(own))
            total += sum(bits for d, bits in enumerate(own) if d < shared)
        moments.append(total)
    return max(moments)


@pytest.mark.parametrize("seed", range(200))
def test_lifetimes(seed: int) -> None:
    """Each Einsum has own stores below 0 to 3 loops; it shares at most its loops with its neighbours."""
    rng = Random(seed)
    loops = [rng.randint(0, 3) for _ in range(rng.randint(1, 5))]
    owns = [[rng.choice((0, 0, 1, 2, 3, 5)) for _ in range(depth + 1)] for depth in loops]
    opened = [rng.randint(0, min(a, b)) for a, b in pairwise(loops)]
    assert after_all(owns, opened) == added_up(owns, opened)


def test_members_of_a_group_add_up() -> None:
    """Two Einsums below one loop, 3 and 4 bits: 4 at a time one after the other, 7 at the same time."""
    none = np.zeros((1, 1, 0), np.int64)
    own = [np.array([[[0, bits]]]) for bits in (3, 4)]
    for at_once, worst in ((False, 4), (True, 7)):
        first, _ = reserve(Reservations(none, none), (), own[0], 1, at_once)
        second, over = reserve(first, (), own[1], 0, at_once)
        assert worst_moment(second, over).tolist() == [[worst]]


def test_tiles_that_others_need_stay() -> None:
    """A tile of 5 bits above the shared loop is alive in both Einsums; one of 2 bits below it only in the first."""
    none = np.zeros((1, 1, 0), np.int64)
    tiles = [Reserved(0, 0, np.array([5])), Reserved(0, 1, np.array([2]))]
    first, over = reserve(Reservations(none, none), tiles, np.zeros((1, 1, 2), np.int64), 1, False)
    assert (first.alive.tolist(), first.peak.tolist(), over.tolist()) == ([[[5]]], [[[2]]], [[0]])
    assert worst_moment(first, over).tolist() == [[7]]
    second, over = reserve(first, (), np.array([[[0, 3]]]), 0, False)
    assert over.tolist() == worst_moment(second, over).tolist() == [[8]]

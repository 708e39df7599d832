"""Regions against all of their mappings: points of a small grid."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from einloom.exploration.regions import Archive, Point, Region, below, both, distance, least, staircase, summed

GRID = [(float(a), float(b)) for a, b in product(range(1, 7), repeat=2)]


def drawn(rng: Random) -> Region:
    return staircase(rng.sample(GRID, rng.randrange(0, 5)))


def mappings(region: Region) -> set[Point]:
    """All points of the grid that are in a region."""
    return {point for point in GRID if any(a <= point[0] and b <= point[1] for a, b in region)}


@pytest.mark.parametrize("seed", range(200))
def test_regions_say_of_a_grid_what_its_points_say(seed: int) -> None:
    rng = Random(seed)
    one, other = drawn(rng), drawn(rng)
    assert mappings(both(one, other)) == mappings(one) & mappings(other) and both(one, other) == both(other, one)
    assert below(one, other) == (mappings(other) <= mappings(one))
    sums = {(a + 2 * c, b + 2 * d) for a, b in mappings(one) for c, d in mappings(other)}
    assert summed((1.0, 2.0), (one, other)) == staircase(sums)
    assert least(one, True) == min((a * b for a, b in mappings(one)), default=float("inf"))


@pytest.mark.parametrize("seed", range(100))
def test_a_distance_is_the_least_with_which_points_cover_a_region(seed: int) -> None:
    rng = Random(seed)
    points, region = drawn(rng), drawn(rng)
    apart = distance(points, region)

    def cover(part: float) -> bool:
        return below([(a * (1 - part), b * (1 - part)) for a, b in points], region)

    assert cover(apart + 1e-9) or not points
    assert apart == 0 or not cover(apart - 1e-9)


@pytest.mark.parametrize("seed", range(100))
def test_an_archive_keeps_what_matters(seed: int) -> None:
    rng = Random(seed)
    archive, every = Archive(), list[tuple[float, Point]]()
    for _ in range(12):
        cost, points = float(rng.randrange(4)), drawn(rng)
        archive.add(cost, points)
        every += [(cost, point) for point in points]
    for cost in range(4):
        for point in GRID:
            beaten = any(c <= cost and a <= point[0] and b <= point[1] for c, (a, b) in every)
            assert archive.beats(float(cost), (point,)) == beaten
    assert len(archive._kept) == len({
        one for one in every
        if not any(o != one and o[0] <= one[0] and o[1][0] <= one[1][0] and o[1][1] <= one[1][1] for o in every)
    })  # fmt: skip

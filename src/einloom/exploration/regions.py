"""Where the mappings of a machine may lie: no better than one of some points, in every number.

A point has two numbers: the value and 0; or energy and latency, where the objective is ``pareto``. A region is the
staircase of such points, ascending in the first number; an empty one has no mapping.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import reduce
from math import inf

Point = tuple[float, float]
Region = tuple[Point, ...]
ANYWHERE: Region = ((0.0, 0.0),)
EQUAL = 1e-9


def staircase(points: Iterable[Point]) -> Region:
    """The points that no other one is below in both numbers, ascending in the first; of equal ones one.

    >>> staircase([(2.0, 1.0), (1.0, 3.0), (2.0, 2.0)])
    ((1.0, 3.0), (2.0, 1.0))
    """
    kept, least = list[Point](), inf
    for point in sorted(points):
        if point[1] < least or not kept:
            kept.append(point)
            least = point[1]
    return tuple(kept)


def both(one: Region, other: Region) -> Region:
    """Where mappings lie that are in both regions.

    >>> both(((1.0, 3.0), (2.0, 1.0)), ((1.5, 0.0),))
    ((1.5, 3.0), (2.0, 1.0))
    """
    if not one or not other:
        return ()
    firsts = sorted({point[0] for point in (*one, *other)})
    seconds = [(first, max(_lowest(one, first), _lowest(other, first))) for first in firsts]
    return staircase(pair for pair in seconds if pair[1] < inf)


def _lowest(region: Region, first: float) -> float:
    """The least second number in a region where the first is at most so much; infinite where there is none."""
    place = bisect_right(region, (first, inf))
    return region[place - 1][1] if place else inf


def scaled(region: Region, factors: Point) -> Region:
    """Every point times a factor for each number."""
    return staircase((a * factors[0], b * factors[1]) for a, b in region)


def summed(weights: Sequence[float], regions: Sequence[Region]) -> Region:
    """Where weighted sums of one point of each region lie."""
    parts = (scaled(region, (weight, weight)) for weight, region in zip(weights, regions, strict=True))
    return reduce(lambda one, other: staircase((a + c, b + d) for a, b in one for c, d in other), parts)


def least(region: Region, pareto: bool) -> float:
    """The least value of a region, or its least product of energy and latency; infinite for an empty one."""
    return min((a * b if pareto else a for a, b in region), default=inf)


def distance(points: Region, region: Region) -> float:
    """How far the points are from a region: some mapping may have both numbers smaller by this part, none by more.

    1 where there are no points; 0 where the region is empty.

    >>> distance(((2.0, 4.0), (4.0, 2.0)), ((2.0, 4.0), (3.0, 2.0)))
    0.25
    """
    return max((min((_apart(point, low) for point in points), default=1.0) for low in region), default=0.0)


def _apart(point: Point, low: Point) -> float:
    return max(0.0, *(1 - b / a if a > 0 else 0.0 for a, b in zip(point, low, strict=True)))


def below(points: Iterable[Point], region: Region) -> bool:
    """True if every point of the region has one of the points that is no larger in both numbers."""
    found = staircase(points)
    return all(_lowest(found, first) <= second for first, second in region)


class Archive:
    """Costs with points of which none is beaten by another of no more cost."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, Point]] = []

    def add(self, cost: float, points: Region) -> None:
        for point in points:
            if not any(other <= cost and _no_larger(kept, point) for other, kept in self._kept):
                rest = [one for one in self._kept if not (cost <= one[0] and _no_larger(point, one[1]))]
                self._kept = [*rest, (cost, point)]

    def beats(self, cost: float, region: Region) -> bool:
        """True if every point of a region has one of no more cost that is no larger in both numbers."""
        return below((point for other, point in self._kept if other <= cost), region)


def _no_larger(one: Point, other: Point) -> bool:
    return one[0] <= other[0] and one[1] <= other[1]

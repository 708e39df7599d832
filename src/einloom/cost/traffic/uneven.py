"""The counts of `even` where the outermost loop of a variable cuts unevenly: visits and values of chains of loops.

Comes in: the steps of a path, what the loops of each variable cover, its extent. Goes out: values that cross a link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from ...dataclass import dataclass
from ..formulas import terms
from ..formulas.terms import Number

Step = tuple[Any, ...]
Counts = tuple[
    Number, Number, Number, Number
]  # all, those of the busiest instance, and of both those with no value before them


@dataclass(frozen=True, slots=True)
class Crossing:
    """A loop above a tile: its variable and the tile below it, and which loops count once in which count.

    kept: a temporal loop that keeps the tile; has: the tensor has the variable; outside: a spatial loop above the
    parent; joined: its instances count once there.
    """

    variable: str
    trips: int
    tile: int
    spatial: bool
    has: bool
    kept: bool
    outside: bool
    joined: bool


def crossed(
    steps: tuple[Step, ...],
    variables: frozenset[str],
    joined: frozenset[str],
    parent: int,
    child: int | None,
    extents: Mapping[str, int],
    written: bool,
) -> tuple[Counts, Counts]:
    """Values that cross a link, counted at the parent and at the child, as `even` counts them.

    written: it is; of what is only read all values are there before it.
    """
    loops: dict[str, list[Crossing]] = {v: [] for v in extents}
    for loop in _crossings(steps, variables, joined, parent, child, extents):
        loops[loop.variable].append(loop)
    covers = dict(steps[-1][2])

    def count(once: Callable[[Crossing], bool]) -> int:
        found = 1
        for v, extent in extents.items():
            has = v in variables
            if v not in covers:
                trips = prod(c.trips for c in loops[v] if once(c) == has)
                found *= extent // trips if has else trips
                continue
            chain = tuple(terms.LoopCut(c.tile, once=int(once(c))) for c in loops[v])
            if chain or has:
                found *= terms.covered(extent, chain) if has else terms.visits(extent, chain)
        return found

    up = (
        count(lambda c: c.kept or c.joined),
        count(lambda c: c.kept or c.joined or c.outside),
        count(lambda c: _once_more(c) or c.joined) if written else 0,
        count(lambda c: _once_more(c) or c.joined or c.outside) if written else 0,
    )
    if child is None:
        return up, (0, 0, 0, 0)
    down = (
        count(lambda c: c.kept),
        count(lambda c: c.kept or c.spatial),
        count(_once_more) if written else 0,
        count(lambda c: _once_more(c) or c.spatial) if written else 0,
    )
    return up, down


def _once_more(c: Crossing) -> bool:
    """A temporal loop that the tensor lacks: only its first iteration finds no value."""
    return c.kept or (not c.spatial and not c.has)


def _crossings(
    steps: tuple[Step, ...],
    variables: frozenset[str],
    joined: frozenset[str],
    parent: int,
    child: int | None,
    extents: Mapping[str, int],
) -> list[Crossing]:
    """The loops above the child's tile, from the outside in."""
    still, found = child is not None, list[Crossing]()
    left = dict(extents) | dict(steps[-1][2])
    end = len(steps) if child is None else child
    tiles: dict[int, int] = {}
    for place in range(end):
        if steps[place][0] in ("for", "par"):
            v = str(steps[place][-2])
            left[v] //= steps[place][-1]
            tiles[place] = left[v]
    for place in range(end - 1, -1, -1):
        match steps[place]:
            case ("split",):
                still = False
            case ("for", str(variable), int(trips)):
                still = still and variable not in variables
                found.append(Crossing(variable, trips, tiles[place], False, variable in variables, still, False, False))
            case ("par", str(axis), str(variable), int(trips)):
                has, outside = variable in variables, place < parent
                once = not has and not outside and axis in joined
                found.append(Crossing(variable, trips, tiles[place], True, has, False, outside, once))
    return found[::-1]


def done_by_busiest(steps: tuple[Step, ...], extents: Mapping[str, int]) -> int:
    """Iterations of the busiest instance."""
    left = dict(extents) | dict(steps[-1][2])
    chains: dict[str, list[terms.LoopCut]] = {v: [] for v in extents}
    for step in steps:
        if step[0] in ("for", "par"):
            v = str(step[-2])
            left[v] //= step[-1]
            chains[v].append(terms.LoopCut(left[v], once=int(step[0] == "par")))
    return prod(terms.covered(extent, tuple(chains[v])) for v, extent in extents.items())

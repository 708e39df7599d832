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
    end = len(steps) if child is None else child
    keeps_from = end if child is None else 0  # loops further out than this find nothing that is kept
    for place, step in enumerate(steps[:end]):
        if step[0] == "split" or (step[0] == "for" and step[1] in variables):
            keeps_from = max(keeps_from, place + 1)
    left, found = dict(extents) | dict(steps[-1][2]), list[Crossing]()
    for place, step in enumerate(steps[:end]):
        if step[0] in ("for", "par"):
            variable, trips = step[-2:]
            left[variable] //= trips
            spatial, has = step[0] == "par", variable in variables
            kept, outside = not spatial and place >= keeps_from, spatial and place < parent
            once = spatial and not has and not outside and step[1] in joined
            found.append(Crossing(variable, trips, left[variable], spatial, has, kept, outside, once))
    return found


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

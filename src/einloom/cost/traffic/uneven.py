"""The counts of `even` where the outermost loop of a variable cuts unevenly: visits and values of chains of loops.

Comes in: the steps of a path, what the loops of each variable cover, its extent. Goes out: values that cross a link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from ..formulas import terms

Step = tuple[object, ...]
Counts = tuple[int, int, int, int]  # all, those of the busiest instance, and of both those with no value before them


@dataclass(frozen=True, slots=True)
class Crossing:
    """A loop above a tile: its variable and the tile below it, and which loops count once in which count.

    kept: a temporal loop that keeps the tile; has: the tensor has the variable; outside: a spatial loop above the
    parent; joined: its instances count once there.
    """

    variable: str
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
) -> tuple[Counts, Counts]:
    """Values that cross a link, counted at the parent and at the child, as `even` counts them."""
    loops = _crossings(steps, variables, joined, parent, child, extents)

    def count(once: Callable[[Crossing], bool]) -> int:
        return prod(
            terms.covered(extent, chain) if v in variables else terms.visits(extent, chain)
            for v, extent in extents.items()
            if (chain := tuple(terms.LoopCut(c.tile, once=int(once(c))) for c in loops if c.variable == v))
            or v in variables
        )

    up = (
        count(lambda c: c.kept or (c.spatial and c.joined)),
        count(lambda c: c.kept or (c.spatial and (c.joined or c.outside))),
        count(lambda c: _once_more(c) or (c.spatial and c.joined)),
        count(lambda c: _once_more(c) or (c.spatial and (c.joined or c.outside))),
    )
    down = (
        count(lambda c: c.kept),
        count(lambda c: c.kept or c.spatial),
        count(_once_more),
        count(lambda c: _once_more(c) or c.spatial),
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
    left = dict(extents) | dict(steps[-1][2])  # type: ignore[call-overload]
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
            case ("for", str(variable), int(_)):
                still = still and variable not in variables
                found.append(Crossing(variable, tiles[place], False, variable in variables, still, False, False))
            case ("par", str(axis), str(variable), int(_)):
                has, outside = variable in variables, place < parent
                once = not has and not outside and axis in joined
                found.append(Crossing(variable, tiles[place], True, has, False, outside, once))
    return found[::-1]


def done_by_busiest(steps: tuple[Step, ...], extents: Mapping[str, int]) -> int:
    """Iterations of the busiest instance."""
    left = dict(extents) | dict(steps[-1][2])  # type: ignore[call-overload]
    chains: dict[str, list[terms.LoopCut]] = {v: [] for v in extents}
    for step in steps:
        if step[0] in ("for", "par"):
            v = str(step[-2])
            left[v] //= step[-1]
            chains[v].append(terms.LoopCut(left[v], once=int(step[0] == "par")))
    return prod(terms.covered(extent, tuple(chains[v])) for v, extent in extents.items())

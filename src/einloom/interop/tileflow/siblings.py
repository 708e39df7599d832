"""What a branch finds that the branch before it left behind, instance by instance.

In TileFlow's sequential scope a branch starts from the state that its elder sibling ends with. Where both hold a tile
of the same tensor in the same instance, only what the tiles do not have in common is fetched.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod

from ...cost.formulas import terms
from ...cost.traffic.paths import Path, PathLoop
from ...errors import SpecError
from ...mapping.legality.concurrency import axis_of, shares
from .trees import TileAt, TreeLayout

MAX_INSTANCES = 2**20
Box = tuple[tuple[int, int], ...]
Instance = tuple[tuple[str, int], ...]


def left_behind(all_paths: tuple[Path, ...], layout: TreeLayout, path: Path, tensor: str, memory: str) -> Fraction:
    """The part of the tile of `tensor` in `memory` that `path` finds in place when its branch starts."""
    elder = _elder(all_paths, layout, path)
    if elder is None or tensor not in elder[0].einsum.tensors:
        return Fraction(0)
    other, scope = elder
    mine, theirs = _first(layout, path, tensor, memory, scope), _first(layout, other, tensor, memory, scope)
    if mine is None or theirs is None:
        return Fraction(0)
    boxes, left = _boxes(path, tensor, mine, scope), _boxes(other, tensor, theirs, scope)
    common = sum(_common(box, left[instance]) for instance, box in boxes.items() if instance in left)
    return Fraction(common, sum(prod(high - low for low, high in box) for box in boxes.values()))


def offset(path: Path, place: int) -> dict[str, int]:
    """The first instance of every axis that the path's shares above `place` leave it."""
    found: dict[str, int] = {}
    for fork in path.forks:
        axis = axis_of(fork.split)
        if axis is not None and fork.place < place:
            found[axis] = found.get(axis, 0) + sum(shares(fork.split)[: fork.branch])
    return {axis: start for axis, start in found.items() if start}


def _elder(all_paths: tuple[Path, ...], layout: TreeLayout, path: Path) -> tuple[Path, int] | None:
    """The last path of the branch before, at the innermost sequential scope, and the scope's place."""
    for place in sorted(path.splits, reverse=True):
        address = path.addresses[place]
        branch = path.addresses[place + 1][len(address)]
        if layout.scopes[address] != "sequential" or branch == 0:
            return None
        before = [
            p
            for p in all_paths
            if p.addresses[place : place + 1] == (address,) and p.addresses[place + 1][len(address)] == branch - 1
        ]
        return before[-1], place
    return None


def _first(layout: TreeLayout, path: Path, tensor: str, memory: str, scope: int) -> TileAt | None:
    """The path's first tile below the scope, if it is in `memory`, holds the tensor, and no temporal loop is above."""
    below = [tile for tile in layout.tiles[path.einsum.name] if tile.place > scope]
    if not below or below[0].memory != memory or tensor not in below[0].tensors:
        return None
    looped = any(loop.axis is None and scope < loop.place < below[0].place for loop in path.loops)
    return None if looped else below[0]


def _boxes(path: Path, tensor: str, tile: TileAt, scope: int) -> dict[Instance, Box]:
    """Instance -> the part of the tensor that it holds, counted from where the scope's tile starts."""
    access = path.einsum.access(tensor)
    loops = [loop for loop in path.loops if loop.axis is not None and scope < loop.place < tile.place]
    start = offset(path, tile.place)
    sizes = {v: terms.largest(path.extent(v), path.cuts(v, tile.place, lambda loop: 0)) for v in access.variables}
    if prod(loop.trips for loop in loops) > MAX_INSTANCES:
        raise SpecError(f"more than {MAX_INSTANCES} instances; they are compared one by one, and this takes too long")
    boxes: dict[Instance, Box] = {}
    for at in product(*(range(loop.trips) for loop in loops)):
        steps = list(zip(loops, at, strict=True))
        lows = {v: sum(i * loop.tile for loop, i in steps if loop.variable == v) for v in access.variables}
        box = tuple((lows[v], lows[v] + sizes[v]) for index in access.indices for v in index.variables)
        boxes[_instance(steps, start)] = box
    return boxes


def _instance(steps: list[tuple[PathLoop, int]], start: dict[str, int]) -> Instance:
    """The place on every axis, loops of one axis counting from the outermost digit."""
    found: dict[str, int] = {}
    for loop, i in steps:
        assert loop.axis is not None
        found[loop.axis] = found.get(loop.axis, 0) * loop.trips + i
    places = {axis: found.get(axis, 0) + start.get(axis, 0) for axis in {**found, **start}}
    return tuple(sorted((axis, place) for axis, place in places.items() if place))


def _common(one: Box, other: Box) -> int:
    return prod(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in zip(one, other, strict=True))

"""PRICE, many at a time: all tile choices of one template in one walk of its tree.

Comes in: workload, machine, a template (a mapping whose loops stand) and arrays of tiles for some of its loops. Goes
out: energy, latency, occupancy and legality of every choice, as NumPy arrays. The walk is that of `evaluate`, with
arrays where it has ints; nothing is counted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Table
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import IllegalMapping, SpecError
from ..machine.levels import Machine
from ..mapping.concurrent import has_concurrent
from ..mapping.extents import Address
from ..mapping.tree import Loop, Mapping, Nest, Split
from ..mapping.wellformed import problems
from ..workload.einsum import Workload
from . import terms
from .evaluate import price
from .occupancy import occupancy
from .paths import Path, PathLoop, paths
from .terms import Number

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Arrays:
    """The prices of n choices: joules, seconds, peak bits per memory, and whether each is legal.

    Where `legal` is False because a tree is no schedule, the other numbers of that choice mean nothing; where it is
    False because a memory is too small, they are the price that the choice would have.
    """

    energy: Floats
    latency: Floats
    occupancy: Table[str, Ints]
    legal: Flags


def price_many(workload: Workload, machine: Machine, mapping: Mapping, tiles: Table[Address, Ints]) -> Arrays:
    """The prices of all choices of tiles for the loops of `mapping` that `tiles` names by address.

    tiles: address of a loop (`extents.addressed_paths`) -> int array [n], one tile per choice. All other loops keep
    their tile; trips follow as ceil(extent / tile) everywhere. Row i prices `retile(workload, mapping, tiles at i)`.
    Raises SpecError for ranks with windows and for arrays that do not fit, IllegalMapping if no choice is a schedule.
    """
    chosen = {address: np.asarray(tile, dtype=np.int64) for address, tile in tiles.items()}
    shapes = {tile.shape for tile in chosen.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise SpecError(f"the tiles of all loops need one common length, not {sorted(shapes)}")
    if any((tile < 1).any() for tile in chosen.values()):
        raise SpecError("a tile needs at least 1")
    template = _plain_paths(workload, mapping, chosen)
    choices = tuple(_retiled(path, chosen) for path in template)
    (count,) = next(iter(shapes))
    sound = _sound(workload, machine, mapping, choices, chosen, count)
    occupied = occupancy(workload, machine, choices)
    cost = price(workload, machine, choices, "einsum", occupied)
    legal = sound
    for o in occupied:
        if o.size is not None:
            legal = legal & (o.bits <= o.size)
    return Arrays(
        energy=np.broadcast_to(np.asarray(cost.energy, dtype=np.float64), count),
        latency=np.broadcast_to(np.asarray(cost.latency, dtype=np.float64), count),
        occupancy={o.memory: np.broadcast_to(np.asarray(o.bits, dtype=np.int64), count) for o in occupied},
        legal=legal,
    )


def retile(workload: Workload, mapping: Mapping, tiles: Table[Address, int]) -> Mapping:
    """The template with the given tiles: every loop names its tile, trips follow as ceil(extent / tile)."""
    template = _plain_paths(workload, mapping, tiles)
    table = {path.addresses[loop.place]: loop for path in template for loop in _retiled(path, tiles).loops}
    return Mapping(_rebuild(mapping.nest, (), table))


def _plain_paths(workload: Workload, mapping: Mapping, tiles: Table[Address, object]) -> tuple[Path, ...]:
    """The paths of the template; SpecError for a rank that is no plain variable and for an address without a loop."""
    found = paths(workload, mapping)
    if has_concurrent(mapping.nest):
        raise SpecError("many tiles at once need sequential splits; this template has branches that run concurrently")
    for path in found:
        for variable in sorted(path.complex_variables):
            raise SpecError(
                f"many tiles at once need plain ranks; {path.einsum.name}.{variable} is in a window or follows one"
            )
    known = {path.addresses[loop.place] for path in found for loop in path.loops}
    for address in tiles:
        if address not in known:
            raise SpecError(f"no loop of the template stands at {address}; loops stand at {sorted(known)}")
    return found


def _retiled(path: Path, tiles: Table[Address, Number]) -> Path:
    """The path with other tiles and the trips that follow from them."""
    extents: dict[str, Number] = {variable: path.extent(variable) for variable in path.einsum.variables}
    loops = []
    for loop in path.loops:
        tile = tiles.get(path.addresses[loop.place], loop.tile)
        loops.append(replace(loop, trips=terms.trips_of(extents[loop.variable], tile), tile=tile))
        extents[loop.variable] = terms.minimum(extents[loop.variable], tile)
    return replace(path, loops=tuple(loops))


def _rebuild(nest: Nest, prefix: Address, table: Table[Address, PathLoop]) -> Nest:
    nodes = []
    for i, node in enumerate(nest):
        address = (*prefix, i)
        if isinstance(node, Loop) and address in table:
            node = replace(node, trips=table[address].trips, tile=table[address].tile)
        elif isinstance(node, Split):
            branches = tuple(_rebuild(branch, (*address, j), table) for j, branch in enumerate(node.branches))
            node = replace(node, branches=branches)
        nodes.append(node)
    return tuple(nodes)


def _sound(
    workload: Workload,
    machine: Machine,
    mapping: Mapping,
    choices: tuple[Path, ...],
    tiles: Table[Address, Ints],
    count: int,
) -> Flags:
    """Which choices are schedules: besides sizes, that depends only on which loops have one trip.

    Raises IllegalMapping with the reasons of the first choice if none is.
    """
    mask = np.ones(count, dtype=np.bool_)
    for fits in _sizes_fit(machine, choices):
        mask = mask & fits
    kind = np.zeros(count, dtype=np.int64)
    for loop in {path.addresses[loop.place]: loop for path in choices for loop in path.loops}.values():
        many = np.broadcast_to(np.asarray(loop.trips) > 1, count)
        kind = np.unique(2 * kind + many, return_inverse=True)[1].reshape(count)
    for one in np.unique(kind[mask]):
        same = mask & (kind == one)
        at = int(np.flatnonzero(same)[0])
        if problems(workload, machine, _row(workload, mapping, tiles, at)):
            mask = mask & ~same
    if not mask.any() and count:
        raise IllegalMapping(problems(workload, machine, _row(workload, mapping, tiles, 0)))
    return mask


def _row(workload: Workload, mapping: Mapping, tiles: Table[Address, Ints], at: int) -> Mapping:
    return retile(workload, mapping, {address: int(tile[at]) for address, tile in tiles.items()})


def _sizes_fit(machine: Machine, choices: tuple[Path, ...]) -> Iterator[Number]:
    """Conditions on sizes: extent 1 at every leaf, no more instances than an axis has, one number of trips per loop."""
    trips: dict[Address, Number] = {}
    for path in choices:
        used: dict[str, Number] = {}
        for loop in path.loops:
            yield trips.setdefault(path.addresses[loop.place], loop.trips) == loop.trips
            if loop.axis is not None:
                used[loop.axis] = used.get(loop.axis, 1) * loop.trips
        for axis, instances in used.items():
            yield instances <= machine.axes[axis].size
        for variable in path.einsum.variables:
            cuts = path.cuts(variable, len(path.nodes), lambda loop: 0)
            yield terms.largest(path.extent(variable), cuts) == 1

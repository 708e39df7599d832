"""PRICE, many at a time: all tile choices of one template, from one walk of its tree.

Comes in: workload, machine, a template (a mapping whose loops stand) and arrays of tiles for some of its loops. Goes
out: energy, latency, occupancy and legality of every choice, as NumPy arrays. Nothing is counted here: `template`
records the walk of `evaluate`, and what was recorded is run on all choices, in NumPy or compiled.

Numbers: where no count can pass 2**53 everything is computed in 64-bit floats, which are exact there; up to 2**63 the
walk itself is done on int64 arrays; templates that may count more are refused.
"""

from __future__ import annotations

from collections.abc import Mapping as Table

import numpy as np

from ...dataclass import dataclass
from ...errors import IllegalMapping, SpecError
from ...machine.levels import Machine
from ...mapping.extents import Address
from ...mapping.tree import Mapping
from ...workload.einsum import Workload
from .program import EXACT
from .retile import retile
from .template import Flags, Floats, Ints, template

__all__ = ["Arrays", "price_many", "retile"]

CHUNK = 2**16  # choices whose outputs are kept as floats at a time
COMPILED_FROM = 2**25  # choices from which compiling costs less than it saves


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


def price_many(
    workload: Workload,
    machine: Machine,
    mapping: Mapping,
    tiles: Table[Address, Ints],
    *,
    compiled: bool | None = None,
) -> Arrays:
    """The prices of all choices of tiles for the loops of `mapping` that `tiles` names by address.

    tiles: address of a loop (`extents.addressed_paths`) -> int array [n], one tile per choice. All other loops keep
    their tile; trips follow as ceil(extent / tile) everywhere. Row i prices `retile(workload, mapping, tiles at i)`.
    compiled: whether machine code is made of the template; by default the number of choices decides.
    Raises SpecError for ranks with windows, for arrays that do not fit and for counts beyond 64 bits, IllegalMapping if
    no choice is a schedule.
    """
    columns, count = _columns(tiles)
    asked = template(workload, machine, mapping, tuple(tiles))
    energy, latency, legal = np.empty(count), np.empty(count), np.empty(count, np.bool_)
    occupied = {name: np.empty(count, np.int64) for name in asked.memories}
    found: list[Floats | Ints] = [energy, latency, *occupied.values()]
    scratch = np.empty((asked.columns, min(CHUNK, count)))
    schedules = 0
    for start in range(0, count, CHUNK):
        part = [column[start : start + CHUNK] for column in columns]
        stop = start + len(part[0])
        rows = list(scratch[:, : stop - start])
        asked.price(part, rows, count >= COMPILED_FROM if compiled is None else compiled)
        for result, row in zip(found, rows, strict=False):
            np.copyto(result[start:stop], row, casting="unsafe")
        fits, room, *kinds = rows[len(found) :]
        sound = asked.sound(part, fits != 0, kinds)
        schedules += int(np.count_nonzero(sound))
        np.logical_and(sound, room, out=legal[start:stop])
    if count and not schedules:
        raise IllegalMapping(asked.complaints(columns, 0))
    return Arrays(energy, latency, occupied, legal)


def _columns(tiles: Table[Address, Ints]) -> tuple[list[Ints], int]:
    """The tiles as contiguous arrays of one length, and the length."""
    columns = [np.ascontiguousarray(tile, dtype=np.int64) for tile in tiles.values()]
    shapes = {column.shape for column in columns}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise SpecError(f"the tiles of all loops need one common length, not {sorted(shapes)}")
    count = len(columns[0])
    if count and any(column.min() < 1 for column in columns):
        raise SpecError("a tile needs at least 1")
    if count and any(column.max() > EXACT for column in columns):
        columns = [np.minimum(column, EXACT) for column in columns]  # larger than every extent, and exact in a float
    return columns, count

"""A mapping with open tiles: its analysis, recorded once, and which choices of tiles make it a schedule.

Comes in: workload, machine, a mapping, the loops whose tiles are open. Goes out: a `Template` that prices many choices.
The walk is that of `evaluate`, with symbols where it has ints; `program` records what it does with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import lru_cache, partial, reduce
from math import prod
from operator import and_

import numpy as np
from numpy.typing import NDArray

from ...dataclass import dataclass
from ...errors import SpecError
from ...machine.levels import Machine
from ...mapping.extents import Address
from ...mapping.legality.structure import problems
from ...mapping.tree import Mapping
from ...workload.einsum import Workload
from ..evaluate import price
from ..formulas import terms
from ..formulas.terms import Number
from ..room.occupancy import occupancy, slots
from ..traffic.accesses import links
from ..traffic.paths import Path
from .compiled import kernel
from .program import EXACT, Program, record
from .retile import plain_paths, retile, retiled_paths

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
WORD = 48  # loops whose flags share one number, exact in a float
TABLE_BITS = 16  # loops up to which verdicts stand in a table


@dataclass(frozen=True)
class Template:
    """What a mapping with open tiles costs, as programs of these tiles.

    addresses: the open loops. memories: those that store something. following: addresses of all loops whose trips
    depend on open tiles. prices: energy, latency, occupancies, do the sizes fit, are the memories large enough, and the
    kind of the choice (one bit for each following loop: has it more than one trip?); None where floats do not hold
    every count exactly. verdicts: by kind, whether it is a schedule.
    """

    workload: Workload
    machine: Machine
    mapping: Mapping
    addresses: tuple[Address, ...]
    memories: tuple[str, ...]
    following: tuple[Address, ...]
    prices: Program | None
    verdicts: dict[tuple[int, ...], bool] = field(default_factory=dict, compare=False)

    @property
    def columns(self) -> int:
        """How many numbers `price` gives for each choice."""
        return 4 + len(self.memories) + -(-len(self.following) // WORD)

    def price(self, tiles: Sequence[Ints], results: Sequence[Floats], compiled: bool) -> None:
        """Fill one array for each output of `prices`; compiled: by machine code, where floats are exact."""
        if self.prices is None:  # the walk itself on int64 arrays
            walked = _prices(self.workload, self.machine, self.mapping, self.addresses, self.following, tiles)
            for result, value in zip(results, walked, strict=True):
                result[:] = value
        elif compiled:
            kernel(self.prices)(*tiles, *results)
        else:
            self.prices.run(tiles, results)

    def sound(self, tiles: Sequence[Ints], fits: Flags, kinds: Sequence[Floats]) -> Flags:
        """Which choices are schedules: besides sizes, that depends only on which loops have one trip."""
        at = np.flatnonzero(fits)
        if not len(at):
            return fits
        if len(self.following) <= TABLE_BITS:
            kind = kinds[0].astype(np.int64)
            table = np.zeros(2 ** len(self.following), np.bool_)
            for one in np.flatnonzero(np.bincount(kind[at], minlength=len(table))):
                known = (int(one),) in self.verdicts
                table[one] = self.verdict((int(one),), tiles, 0 if known else int(np.argmax(fits & (kind == one))))
            return np.asarray(fits & table[kind])
        rows, first, which = np.unique(np.stack(kinds)[:, at], axis=1, return_index=True, return_inverse=True)
        verdicts = [self.verdict(tuple(map(int, row)), tiles, int(at[i])) for row, i in zip(rows.T, first, strict=True)]
        sound = np.zeros_like(fits)
        sound[at] = np.array(verdicts)[which.reshape(-1)]
        return sound

    def verdict(self, kind: tuple[int, ...], tiles: Sequence[Ints], at: int) -> bool:
        """True if choices of this kind are schedules; choice `at` is one of the kind."""
        if kind not in self.verdicts:
            self.verdicts[kind] = not self.complaints(tiles, at)
        return self.verdicts[kind]

    def complaints(self, tiles: Sequence[Ints], at: int) -> tuple[str, ...]:
        """Why choice `at` is no schedule, capacity aside."""
        row = {address: int(tile[at]) for address, tile in zip(self.addresses, tiles, strict=True)}
        return problems(self.workload, self.machine, retile(self.workload, self.mapping, row))


@lru_cache(maxsize=64)
def template(workload: Workload, machine: Machine, mapping: Mapping, addresses: tuple[Address, ...]) -> Template:
    """The template of a mapping in which the loops at `addresses` are open.

    Raises SpecError for what `retile` refuses, and if counts may pass 64 bits.
    """
    plain = plain_paths(workload, mapping, addresses)
    most = largest_count(workload, machine, plain)
    if most >= 2**63:
        raise SpecError(f"counts of this template may reach {float(most):.3g}: more than 64-bit integers hold")
    following = _following(plain, addresses)

    walk = partial(_prices, workload, machine, mapping, addresses, following)
    stored = tuple(o.memory for o in occupancy(workload, machine, plain))
    recorded = record(len(addresses), walk) if most <= EXACT else None
    return Template(workload, machine, mapping, addresses, stored, following, recorded)


def largest_count(workload: Workload, machine: Machine, plain: tuple[Path, ...]) -> int:
    """A bound on every count of any choice of tiles, in bits, operations or instances.

    A visit of a tile and a value that it covers belong to a point of the Einsum's iteration space each, so no link
    moves more values than the space has points (`terms.visits` and `terms.covered` never exceed their extent), and
    every link has at most four moves, and two more through each toll. A tile is no larger than the space either. Trips
    on one axis are multiplied.
    """
    points = sum(prod(path.extent(v) for v in path.einsum.variables) for path in plain)
    width = max(
        way.bits(workload, path.einsum.name, tensor)
        for path in plain
        for tensor in path.einsum.tensors
        for way in machine.ways
    )
    copies = max((slots(machine.memory(s.memory), s, plain) for path in plain for s in path.stores), default=1)
    moves = (4 + 2 * len(machine.tolls)) * len(links(workload, machine, plain))
    moved = moves * points * width * copies * workload.repeat
    spread = max((prod(p.extent(loop.variable) for loop in p.loops if loop.axis is not None) for p in plain), default=1)
    return max(moved, spread)


def _following(plain: tuple[Path, ...], addresses: Sequence[Address]) -> tuple[Address, ...]:
    """Addresses of the loops whose trips depend on an open tile: it, and those further in on the same variable."""
    found: dict[Address, None] = {}
    for path in plain:
        for loops in path.by_variable.values():
            places = [path.addresses[loop.place] for loop in loops]
            first = next((i for i, address in enumerate(places) if address in addresses), len(places))
            found.update(dict.fromkeys(places[first:]))
    return tuple(found)


def _prices(
    workload: Workload,
    machine: Machine,
    mapping: Mapping,
    addresses: Sequence[Address],
    following: Sequence[Address],
    tiles: Sequence[Number],
) -> list[Number]:
    """The outputs of `Template.prices`, from the walk of `evaluate`."""
    choices = retiled_paths(workload, mapping, dict(zip(addresses, tiles, strict=True)))
    occupied = occupancy(workload, machine, choices)
    cost = price(workload, machine, choices, "einsum", occupied)
    fits: Number = reduce(and_, _sizes_fit(machine, choices), True)
    room: Number = reduce(and_, (o.bits <= o.size for o in occupied if o.size is not None), True)
    trips = {path.addresses[loop.place]: loop.trips for path in choices for loop in path.loops}
    many = [(trips[address] > 1) * 2 ** (i % WORD) for i, address in enumerate(following)]
    kinds = [sum(many[i : i + WORD]) for i in range(0, len(many), WORD)]
    return [cost.energy, cost.latency, *(o.bits for o in occupied), fits, room, *kinds]


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

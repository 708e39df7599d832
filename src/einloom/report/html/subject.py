"""What every picture of the report asks of a result: tensors with their looks, leaves in program order, live tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...cost.occupancy import Tile, tiles
from ...cost.paths import Path, paths
from ...mapping.extents import Address
from ...result import Result
from ..text import bits, joules, seconds
from .given import Given, given
from .markup import Html, el
from .palette import look

ALL_AT_ONCE, WINDOW = 16, 12


@dataclass(frozen=True)
class Subject:
    """A result, and what follows from its mapping without a search."""

    result: Result

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """Every tensor once; what is shared between Einsums comes first and so gets the plainest looks."""
        workload = self.result.workload
        return tuple(dict.fromkeys((*workload.intermediates, *(t.name for t in workload.tensors))))

    @cached_property
    def number(self) -> dict[str, int]:
        return {tensor: i for i, tensor in enumerate(self.tensors)}

    def look(self, tensor: str) -> str:
        return look(self.number[tensor])

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        return paths(self.result.workload, self.result.mapping)

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        return tiles(self.result.workload, self.result.machine, self.paths)

    @cached_property
    def tile_at(self) -> dict[tuple[Address, str], Tile]:
        return {(tile.store.address, tile.store.tensor): tile for tile in self.tiles}

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Einsum names in program order."""
        return tuple(path.einsum.name for path in self.paths)

    def alive(self, tile: Tile) -> tuple[int, int]:
        """First and last leaf, in program order, at which the tile is alive: its users, and what a loop adds around."""
        key = (tile.store.address, tile.store.tensor)
        if key not in self._lives:
            near = range(len(self.paths)) if tile.stays else tile.below
            first, last = tile.users[0].order, tile.users[-1].order
            while first > near.start and tile.alive(self.paths[first - 1], {}):
                first -= 1
            while last < near.stop - 1 and tile.alive(self.paths[last + 1], {}):
                last += 1
            self._lives[key] = (first, last)
        return self._lives[key]

    @cached_property
    def _lives(self) -> dict[tuple[Address, str], tuple[int, int]]:
        return {}

    @cached_property
    def windows(self) -> tuple[range, ...]:
        """The leaves in runs that one picture can show."""
        count = len(self.leaves)
        if count <= ALL_AT_ONCE:
            return (range(count),)
        return tuple(range(start, min(start + WINDOW, count)) for start in range(0, count, WINDOW))

    @cached_property
    def given(self) -> tuple[Given, ...]:
        return tuple(given(self.result))

    @cached_property
    def outermost(self) -> str:
        return self.result.machine.memories[0].name

    @cached_property
    def backing(self) -> dict[str, str]:
        """Tensor -> memory of its outermost store."""
        table: dict[str, str] = {}
        for path in self.paths:
            for store in path.stores:
                table.setdefault(store.tensor, store.memory)
        return table

    @cached_property
    def shallowest(self) -> int:
        """Depth of the first store on chip that holds what Einsums share; deeper groups are inner ones."""
        shared = self.result.workload.intermediates
        found = [t.store.place for t in self.tiles if t.store.memory != self.outermost and t.store.tensor in shared]
        return min(found, default=0)

    def chip(self, tensor: str, *more: object, tag: str = "span", **attributes: object) -> Html:
        """A label for a tensor: swatch and name; lights up with the tensor."""
        inside = (el("i", class_=f"swatch {self.look(tensor)}"), el("span", tensor, class_="word"), *more)
        return el(tag, *inside, **{"class_": "chip", "data_t": self.number[tensor], **attributes})


def pretty(text: str) -> str:
    """A number with unit, with the micro sign."""
    value, _, unit = text.rpartition(" ")
    return f"{value} µ{unit[1:]}" if len(unit) > 1 and unit[0] == "u" else text


def energy(value: float, digits: int = 4) -> str:
    return pretty(joules(value, digits))


def time(value: float, digits: int = 4) -> str:
    return pretty(seconds(value, digits))


def size(value: int) -> str:
    return bits(value)

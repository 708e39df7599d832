"""ALL schedules: the name and limits of a mapspace, as data. Definitions: docs/mapspace.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .limits.data import UNLIMITED, Limits

Concurrent = Literal["none", "unit", "shared", "any", "axis", "everywhere"]
LARGEST_GROUP = 4
SPACES = ("ffm", "ragged")
TILES = {"ffm": "perfect tiles", "ragged": "tiles of any size, of which the inner ones divide the outer ones"}
PLACES: dict[Concurrent, tuple[str, ...]] = {
    "none": (),
    "unit": ("unit",),
    "shared": ("shared",),
    "any": ("unit", "shared"),
    "axis": ("axis",),
    "everywhere": ("unit", "shared", "axis"),
}
CONCURRENT: tuple[Concurrent, ...] = tuple(PLACES)
TITLES = {"unit": "@ unit", "axis": "@ AXIS in shares of a quarter"}


@dataclass(frozen=True, slots=True)
class Mapspace:
    """A named set of mappings.

    name: ``ffm``, or ``ragged`` with uneven tiles (rule 2). max_fused_loops: at most this many temporal loops of one
    Einsum stand above its lowest backing store that is not in the outermost memory; None means no limit. limits: what
    else a user asks (rule 12). title: what the user calls this choice of limits. concurrent: where groups of Einsums
    may run at the same time (rule 13): nowhere, ``@ unit``, ``shared``, on either, ``@ AXIS``, or on all three.
    max_group: most Einsums of one group.
    """

    name: str = "ffm"
    max_fused_loops: int | None = None
    limits: Limits = UNLIMITED
    title: str | None = None
    concurrent: Concurrent = "none"
    max_group: int = LARGEST_GROUP

    @property
    def places(self) -> tuple[str, ...]:
        """Where a pipelined split may run, the stricter place first; ``axis`` stands for any axis of the machine."""
        return PLACES[self.concurrent]

    def describe(self) -> str:
        """One line that names the space and its limits, as certificates print it."""
        limit = "any number of" if self.max_fused_loops is None else f"at most {self.max_fused_loops}"
        loops = "loop" if self.max_fused_loops == 1 else "loops"
        line = (
            f"{self.name}: {TILES[self.name]}, one loop per rank variable between two stores, sequential splits in "
            f"program order, no recomputation, {limit} fused {loops}"
        )
        if self.places:
            where = " or ".join(TITLES.get(place, place) for place in self.places)
            line = f"{line}, groups of at most {self.max_group} Einsums pipelined {where}"
        return f"{line}; with {self.limits}" if self.limits else line

"""ALL schedules: the name and limits of a mapspace as data, and what a search may ask of one. See docs/mapspace.md.

`Mapspace` says which set of mappings is meant; a `Space` is that set for one workload and machine. Spaces by name:
`registry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Literal, Protocol

from ..dataclass import dataclass
from ..mapping.extents import Address
from ..mapping.tree import Mapping
from ..reading.plugins import known, names_of
from .limits.data import UNLIMITED, Limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Concurrent = Literal["none", "unit", "shared", "any", "axis", "everywhere"]
Order = Literal["program", "free"]
Stores = Literal["own", "shared"]
GROUP = "einloom.spaces"
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
ORDERS: dict[Order, str] = {
    "program": "sequential splits in program order",
    "free": "sequential splits in any order of the Einsums that their data allows",
}
STORE_ORDER = "stores in the order of the machine's memories, "
STORES: tuple[Stores, ...] = ("own", "shared")
FUSED_ONCE = " and among fused loops"  # descriptions of 28 November 2026 and before lack it
TITLES = {"unit": "@ unit", "axis": "@ AXIS in shares of a quarter"}


def space_names() -> tuple[str, ...]:
    """The names of all mapspaces, those that ship first."""
    return names_of(GROUP, SPACES)


def known_space(name: str) -> str:
    """`name`, if there is such a space. Raises SpecError with a suggestion for any other."""
    return known(GROUP, "mapspace", name, SPACES)


@dataclass(frozen=True, slots=True)
class Mapspace:
    """A named set of mappings.

    name: ``ffm``, or ``ragged`` with uneven tiles (rule 2). max_fused_loops: at most this many temporal loops of one
    Einsum stand above its lowest backing store that is not in the outermost memory; None means no limit. limits: what
    else a user asks (rule 12). title: what the user calls this choice of limits. concurrent: where groups of Einsums
    may run at the same time (rule 13): nowhere, ``@ unit``, ``shared``, on either, ``@ AXIS``, or on all three.
    max_group: most Einsums of one group. order: in which the Einsums stand (rule 1), ``program`` or ``free``. stores:
    whether those that are not their tensor's backing store serve one Einsum, or may serve several (rule 8).
    max_fused_loops_per_rank_variable: how often the fused loops of an Einsum may cut one rank (rule 4).
    """

    name: str = "ffm"
    max_fused_loops: int | None = None
    limits: Limits = UNLIMITED
    title: str | None = None
    concurrent: Concurrent = "none"
    max_group: int = LARGEST_GROUP
    order: Order = "program"
    stores: Stores = "own"
    max_fused_loops_per_rank_variable: int = 1

    @property
    def places(self) -> tuple[str, ...]:
        """Where a pipelined split may run, the stricter place first; ``axis`` stands for any axis of the machine."""
        return PLACES[self.concurrent]

    @property
    def shown(self) -> str:
        """As `describe`, with what people look for: its title, and the order of stores (rule 3)."""
        line = self._line(STORE_ORDER if self.name in SPACES else "")
        return line if self.title is None else f"{self.title}, in {line}"

    def describe(self) -> str:
        """One line that names the space and its limits, as certificates say it."""
        return self._line("")

    def _line(self, order: str) -> str:
        limit = "any number of" if self.max_fused_loops is None else f"at most {self.max_fused_loops}"
        loops = "loop" if self.max_fused_loops == 1 else "loops"
        tiles = TILES.get(self.name, "tiles of its own")
        again = self.max_fused_loops_per_rank_variable
        fused = FUSED_ONCE if again == 1 else f", at most {again} among fused loops"
        stores = "stores that may serve several readers, " if self.stores == "shared" else ""
        line = (
            f"{self.name}: {tiles}, one loop per rank variable between two stores{fused}, {ORDERS[self.order]}, "
            f"{order}{stores}no recomputation, {limit} fused {loops}"
        )
        if self.places:
            where = " or ".join(TITLES.get(place, place) for place in self.places)
            line = f"{line}, groups of at most {self.max_group} Einsums pipelined {where}"
        return f"{line}; with {self.limits}" if self.limits else line


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A mapping without its tile sizes: a tree, and the addresses of the loops whose tiles are open."""

    mapping: Mapping
    loops: tuple[Address, ...]


class Space(Protocol):
    """The mappings of one workload on one machine within a mapspace.

    A tree is *inside* if it keeps the space's rules; it is *legal* if it also is a schedule and fits the memories.
    """

    @property
    def mapspace(self) -> Mapspace:
        """The data that the space is made from."""

    def outside(self, tree: Mapping) -> tuple[str, ...]:
        """Every rule of the space that a legal `tree` breaks; of a tree that is not legal the answer means nothing."""

    def contains(self, tree: Mapping) -> bool:
        """True if `tree` is legal and inside."""

    def trees(self) -> Iterator[Mapping]:
        """Every well-formed tree inside, whether it fits the memories or not; for tiny problems."""

    def sample(self, rng: Random) -> Mapping | None:
        """A legal tree inside, drawn at random; None if a good number of draws gave none."""

    def neighbours(self, tree: Mapping, rng: Random) -> Iterator[Mapping]:
        """Legal trees inside that differ from `tree` in one step, each once, in random order."""

    def skeleton(self, tree: Mapping) -> Skeleton:
        """The skeleton of `tree`, with every loop open."""

    def tree(self, skeleton: Skeleton, tiles: Sequence[int] | NDArray[np.int64]) -> Mapping:
        """The mapping that one row of tiles makes of a skeleton."""

    def tilings(self, skeleton: Skeleton) -> Iterator[NDArray[np.int64]]:
        """All tiles of the skeleton's open loops that the rules admit: blocks of rows, each int64 [n, k]."""

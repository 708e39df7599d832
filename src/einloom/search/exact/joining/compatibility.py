"""What the next Einsum must match: the open loops, the live tensors, and the Einsums that run at the same time.

Partial cascades of the same Einsums compete exactly if their `Compatibility` and the tiles of their open loops are
equal (`join`).
"""

from __future__ import annotations

from typing import Literal

from ....dataclass import dataclass
from ..fusion.serving import NOTHING, Served
from ..fusion.templates import SplitConstraint
from .lending import Loan, Rank


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """A tensor that a later Einsum still needs: its memory, the loops above it, and the rank that each open loop
    iterates.

    ranks: one entry per open loop since its producer; None where the loop does not iterate a rank of it alone.
    Equal tiles are equal cuts of equal extents only, so the extent belongs to it.
    """

    tensor: str
    memory: int
    depth: int
    ranks: tuple[Rank | None, ...]


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """Einsums that run at the same time, while more may come.

    members: their positions, in the order in which they run. outer: loops that the first shares with the Einsum before
    the group. units: the members' compute units, where these must differ. made: (tensor, memory of its store) written
    by the members so far, memory None where loops stand between its store and the split. cut: the axis that they share
    out, by number, and its instances left.
    """

    members: tuple[int, ...]
    outer: int
    units: tuple[str, ...] = ()
    made: tuple[tuple[str, int | None], ...] = ()
    cut: tuple[int, int] | None = None


Opened = OpenGroup | Literal[False] | None  # the group after an Einsum; None: there is none; False: it may not run here
Axes = tuple[str | None, ...]  # of the open loops; None: temporal
Stored = tuple[int, tuple[Rank | None, ...], Axes]  # a tensor's memory, and ranks and axes of the loops above it


@dataclass(frozen=True, slots=True)
class Compatibility:
    """What the next Einsum must match: the open loops' axes (None: temporal), the live tensors, and the group of
    Einsums that is open, if some run at the same time.

    splits: how many loops stand above each split that the next Einsum is below. asked: what the Einsums so far ask of
    the splits to come. Both are known only if some Einsum asks for anything. served: what own stores ask of the Einsums
    to come. loans: stores for several readers that are in use. entered: how the tensor that enters a segment is stored,
    once that is known (`segments`).
    """

    axes: tuple[str | None, ...]
    live: tuple[LiveTensor, ...]
    group: OpenGroup | None = None
    splits: frozenset[int] = frozenset()
    asked: frozenset[SplitConstraint] = frozenset()
    served: Served = NOTHING
    loans: frozenset[Loan] = frozenset()
    entered: Stored | None = None

    def temporal(self, depth: int) -> int:
        return sum(axis is None for axis in self.axes[:depth])

    @property
    def depth(self) -> int:
        return self.temporal(len(self.axes))

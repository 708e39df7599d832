"""Rows of the tables: parallel arrays with their history, so that a mapping can be read back from any row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .skyline import FloatArray, IntArray

PEND = 1 << 32
FAR = 1 << 60
NEAR = 1 << 61
ABSORBED = 1 << 62
LEAF = -1


@dataclass(eq=False)
class Rows:
    """Parallel arrays, one entry per row.

    x: extents per class below the next loop. cost: totals per column. occupied: bits per limited memory. pending: 0, or
    class * PEND + trips of the loop that must be the next one to touch the sliding tensor, plus FAR if it stands above
    the next fanout, NEAR if below it (neither where that makes no difference). `action` made these rows from
    `sources` (row `row` of source number `source`): ("leaf",), ("loops", class or None), ("store", memory, tensor),
    ("cross", memory), ("same",). open: stores whose moves are not charged yet, because no loop that their tensor
    depends on stands above them so far and a store of a memory further out does (bit memory * tensors + tensor);
    fresh: likewise, before such a store is placed.
    """

    x: IntArray
    cost: FloatArray
    occupied: IntArray
    pending: IntArray
    open: IntArray
    fresh: IntArray
    action: tuple[object, ...]
    sources: tuple[Rows, ...] = ()
    source: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    row: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Rows:
        """The chosen rows, with their history."""
        return Rows(
            self.x[index],
            self.cost[index],
            self.occupied[index],
            self.pending[index],
            self.open[index],
            self.fresh[index],
            self.action,
            self.sources,
            self.source[index],
            self.row[index],
        )

    def derived(self, index: NDArray[np.int64], action: tuple[object, ...], **changes: NDArray[Any]) -> Rows:
        """New rows made from the chosen ones by `action`; arrays that change are given."""
        arrays = {name: getattr(self, name) for name in ("x", "cost", "occupied", "pending", "open", "fresh")}
        chosen = {name: changes[name] if name in changes else array[index] for name, array in arrays.items()}
        return Rows(**chosen, action=action, sources=(self,), source=np.zeros(len(index), np.int32), row=index)


def wrapped(rows: Rows) -> Rows:
    """The same rows as a source of their own, so that a union remembers where each came from."""
    return rows.derived(np.arange(len(rows)), ("same",))


def union(parts: list[Rows]) -> Rows:
    """All rows of several blocks made by the same action, histories kept."""
    if len(parts) == 1:
        return parts[0]
    sources: list[Rows] = []
    shifted = []
    for part in parts:
        shifted.append(part.source + len(sources))
        sources.extend(part.sources)
    return Rows(
        np.concatenate([p.x for p in parts]),
        np.concatenate([p.cost for p in parts]),
        np.concatenate([p.occupied for p in parts]),
        np.concatenate([p.pending for p in parts]),
        np.concatenate([p.open for p in parts]),
        np.concatenate([p.fresh for p in parts]),
        parts[0].action,
        tuple(sources),
        np.concatenate(shifted).astype(np.int32),
        np.concatenate([p.row for p in parts]),
    )

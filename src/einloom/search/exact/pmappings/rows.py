"""Rows of the tables: parallel arrays with their history, so that a mapping can be read back from any row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....dataclass import dataclass
from ..numerics.pareto import FloatArray, IntArray

LEAF = -1
# columns of `marks`
OPEN, FRESH, ABSORBED, CONTEXT, SPREAD, PLACED, TOP, TARGET = range(8)
# and three more where a tensor with windows is followed along its sliding loop
NEXT, TRIPS, SIDE = range(8, 11)
PROMISE = slice(NEXT, SIDE + 1)
RIMS = SIDE + 1  # from here on, where tiles need not divide: `Levels.rim`
ANYWHERE, FAR, NEAR = range(3)  # of SIDE: above the next fanout, below it, or there is none


@dataclass(eq=False)
class Backpointers:
    """What a mapping needs of rows: extents, marks, and which row of which source each was made from by `action`.

    Actions: ("leaf",); ("loops", class), one loop, the innermost of its kind; ("loops", None), any loops; ("store",
    memory), a store of tensor TOP above any loops; ("cross", memory), the spatial loops directly below a memory's
    temporal ones; ("same",).
    """

    x: IntArray
    marks: IntArray
    action: tuple[object, ...]
    sources: tuple[Backpointers, ...]
    source: NDArray[np.int32]
    row: NDArray[np.int32]

    def take(self, index: NDArray[Any]) -> Backpointers:
        """The chosen rows."""
        x, marks = self.x.take(index, axis=0), self.marks.take(index, axis=0)
        return Backpointers(x, marks, self.action, self.sources, self.source.take(index), self.row.take(index))


@dataclass(eq=False)
class Rows:
    """Parallel arrays, one entry per row, and their trail.

    cost: totals per column. occupied: bits per limited memory. The trail's x: extents per class below the next loop.
    Its marks:

    * OPEN: links (bits) whose moves are not charged yet, because no loop that their tensor depends on stands above the
      store so far and a store of a memory further out does; ABSORBED: 1 if some loop stands above an open store
      already; FRESH: like OPEN, before the store of the memory further out is placed;
    * CONTEXT: number of what stands above (`contexts.py`);
    * SPREAD: number of the spatial choice, or of the first that agrees with it on all fanouts still to come once
      nothing is open;
    * PLACED: tensors (bits) whose store of the present memory is placed; TOP: tensor of the topmost store, or LEAF;
      TARGET: tensor of the store that comes next;
    * NEXT, TRIPS, SIDE: the promise of a store that slides: 1 + the class of the loop that must be the next one to
      touch the sliding tensor (0: no promise), its trips, and on which side of the next fanout it stands.
    """

    cost: FloatArray
    occupied: IntArray
    trail: Backpointers

    @property
    def x(self) -> IntArray:
        return self.trail.x

    @property
    def marks(self) -> IntArray:
        return self.trail.marks

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, index: NDArray[Any]) -> Rows:
        """The chosen rows, with their history."""
        return Rows(self.cost.take(index, axis=0), self.occupied.take(index, axis=0), self.trail.take(index))

    def derived(
        self,
        index: NDArray[Any],
        action: tuple[object, ...],
        x: IntArray | None = None,
        cost: FloatArray | None = None,
        occupied: IntArray | None = None,
        **marks: NDArray[Any] | int,
    ) -> Rows:
        """New rows made from the chosen ones by `action`; arrays that change are given, marks by their names."""
        new = self.marks.take(index, axis=0)
        for name, values in marks.items():
            new[:, MARK[name]] = values
        return Rows(
            self.cost.take(index, axis=0) if cost is None else cost,
            self.occupied.take(index, axis=0) if occupied is None else occupied,
            Backpointers(
                self.x.take(index, axis=0) if x is None else x,
                new,
                action,
                (self.trail,),
                np.zeros(len(index), np.int32),
                index.astype(np.int32),
            ),
        )


MARK: dict[str, int | slice] = {
    "open": OPEN,
    "fresh": FRESH,
    "absorbed": ABSORBED,
    "context": CONTEXT,
    "spread": SPREAD,
    "placed": PLACED,
    "top": TOP,
    "target": TARGET,
    "promise": PROMISE,
}


def promises(promise: IntArray, trips: IntArray, mine: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], ...]:
    """Masks of rows: (without a promise, in which loops touch the sliding tensor, in which the promised one is first).

    promise: [n, 3]. trips: [n, classes] of the loops that follow. mine: classes that index the sliding tensor.
    """
    free = promise[:, 0] == 0
    touched = (trips[:, mine] > 1).any(axis=1)
    first = trips[np.arange(len(trips)), np.maximum(promise[:, 0] - 1, 0)] == promise[:, 1]
    return np.asarray(free), np.asarray(touched), first & (promise[:, 2] != FAR)


def wrapped(rows: Rows, width: int = 0) -> Rows:
    """The same rows as a source of their own, so that a union remembers where each came from. width: of the marks, at
    least; what rows lack is 0, as in rows without open stores."""
    more = max(0, width - rows.marks.shape[1])
    trail = Backpointers(
        rows.x,
        np.pad(rows.marks, ((0, 0), (0, more))) if more else rows.marks,
        ("same",),
        (rows.trail,),
        np.zeros(len(rows), np.int32),
        np.arange(len(rows), dtype=np.int32),
    )
    return Rows(rows.cost, rows.occupied, trail)


def union(parts: list[Rows], pause: Callable[[], None] = lambda: None) -> Rows:
    """All rows of several blocks, histories kept; blocks made by different actions are wrapped. pause: asked before
    each column whether to go on."""
    if len(parts) == 1:
        return parts[0]
    if len({part.trail.action for part in parts}) > 1:
        parts = [wrapped(part) for part in parts]
    sources: list[Backpointers] = []
    shifted = []
    for part in parts:
        shifted.append(part.trail.source + np.int32(len(sources)))
        sources.extend(part.trail.sources)

    def joined(column: Callable[[Rows], NDArray[Any]]) -> NDArray[Any]:
        pause()
        return np.concatenate([column(part) for part in parts])

    return Rows(
        joined(lambda part: part.cost),
        joined(lambda part: part.occupied),
        Backpointers(
            joined(lambda part: part.x),
            joined(lambda part: part.marks),
            parts[0].trail.action,
            tuple(sources),
            np.concatenate(shifted),
            joined(lambda part: part.trail.row),
        ),
    )

"""What windows add to rows of trips: the values that all tiles of a tensor have together, and those of one tile.

Comes in: the steps of a path, which of them are open loops, and rows of trips for these. Goes out: a factor for each
row. A factor is a product over ranks that are read through windows, and depends on the few loops over their variables:
so it is asked once for each choice of their trips, and looked up for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod

import numpy as np

from ...cost.traffic.even import TensorOnPath
from ...cost.traffic.uneven import Step
from ...cost.traffic.windowed import WindowPaths, WindowRank
from ...dataclass import dataclass
from ...mapspace.ffm.encoding.facts import Facts
from ...mapspace.ffm.encoding.rooms import window_positions
from ...workload.einsum import Index
from .bursts import Floats, Ints

Choice = tuple[int, ...]
WIDEST = 2**62  # choices are numbered by one integer below this


def looked_up(choices: Ints, ask: Callable[[Choice], float]) -> Floats:
    """What `ask` says of each row of choices [rows, columns], asked once for each that there is."""
    most = choices.max(axis=0, initial=0) + 1
    if prod(most.tolist()) < WIDEST:
        weights = np.concatenate([[1], np.cumprod(most)])[:-1]
        _, first, which = np.unique(choices @ weights, return_index=True, return_inverse=True)
    else:
        _, first, which = np.unique(choices, axis=0, return_index=True, return_inverse=True)
    found = np.array([ask(tuple(row)) for row in choices[first].tolist()], dtype=np.float64)
    return np.asarray(found[which.reshape(-1)])


@dataclass(frozen=True, slots=True)
class LinkWindows:
    """The values of a tensor in all tiles at one end of a link, over those without open loops.

    above: the steps above the tile, from the outside in; columns: the column of each, -1 if it stands. keeps: whether a
    store holds the tile, so that windows may slide there. uncut: variables of whose ranks padding counts, too.
    """

    paths: WindowPaths
    tensor: TensorOnPath
    above: tuple[Step, ...]
    columns: tuple[int, ...]
    keeps: bool
    uncut: frozenset[str] = frozenset()

    def factors(self, trips: Ints) -> Floats:
        """A factor for each row."""
        slides = self._slides(trips) if self.keeps else np.full(len(trips), -1)
        found = np.ones(len(trips))
        for rank in (self.paths.reached(rank, self.uncut) for rank in self.paths.ranks[self.tensor.name]):
            mine = {v for v, _ in rank.terms}
            places = [at for at, step in enumerate(self.above) if step[0] in ("for", "par") and step[-2] in mine]
            open_loops = [at for at in places if self.columns[at] >= 0]
            slid = np.where(np.isin(slides, places), slides, -1) + 1
            choices = np.column_stack([trips[:, [self.columns[at] for at in open_loops]], slid])
            found *= looked_up(choices, partial(self._relative, rank, open_loops))
        return found

    def _relative(self, rank: WindowRank, open_loops: list[int], choice: Choice) -> float:
        """Positions of the rank where these loops have these trips, over those where they have none. choice: the trips,
        and 1 + the place of the loop over which windows slide."""
        chosen = dict(zip(open_loops, choice, strict=False))
        steps = tuple([(*s[:-1], chosen[at]) if at in chosen else s for at, s in enumerate(self.above)])
        bare = tuple([s for at, s in enumerate(self.above) if self.columns[at] < 0])
        whole = self.paths.positions(rank, bare, None)
        return self.paths.positions(rank, steps, choice[-1] - 1 if choice[-1] else None) / whole if whole else 1.0

    def _slides(self, trips: Ints) -> Ints:
        """Place of the loop over which windows slide in each row, -1 for none: as `windowed` finds it on one path."""
        found, waiting = np.full(len(trips), -1), np.ones(len(trips), dtype=bool)
        for at in range(len(self.above) - 1, -1, -1):
            step = self.above[at]
            if step[0] == "split":
                break
            if step[0] == "for" and step[1] in self.tensor.variables:
                here = waiting & (trips[:, self.columns[at]] > 1)
                found[here], waiting = at, waiting & ~here
        return found


@dataclass(frozen=True, slots=True)
class TileWindows:
    """The positions that one tile has along the ranks that are read through windows. ranks: index and declared size.

    whole: extents of their variables without open loops; columns: those of the open loops that divide each.
    """

    facts: Facts
    ranks: tuple[tuple[Index, int], ...]
    whole: Mapping[str, int]
    columns: Mapping[str, list[int]]

    def factors(self, trips: Ints) -> Floats:
        """A factor for each row."""
        found = np.ones(len(trips))
        for index, size in self.ranks:
            left = [self.whole[v] // trips[:, self.columns[v]].prod(axis=1) for v in index.variables]
            extents = np.array(left, dtype=np.int64).reshape(len(left), len(trips)).T  # no column where it is constant
            found *= looked_up(extents, partial(self._held, index, size))
        return found

    def _held(self, index: Index, size: int, extents: Choice) -> float:
        return float(window_positions(self.facts, index, size, dict(zip(index.variables, extents, strict=True))))

"""The price of one path whose Einsum reads windows, where every loop cuts evenly.

Padding is no value. Where a padded rank is spread over more instances than reach padding, one reaches none: it has
windows that are not cut, and is the busiest.

Of a tensor with windows the tiles overlap, leave gaps or end at the declared shape, so that all of them together have
other values than the tensor. That number is a product over ranks, and a rank is counted by `formulas/windows` from the
loops on its own variables alone: once for all paths that have these loops in this order. All else is as in `even`.

Comes in: an Einsum and the steps of its path, as `EvenPaths` takes them. Goes out: the same `PathCost`.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from ...machine.levels import Link, Machine
from ...workload.einsum import Workload
from ...workload.padding import padding_reach
from ..formulas import windows
from ..formulas.terms import LoopCut
from .even import EvenPaths, TensorOnPath, even_counts
from .uneven import Counts, Step

Chain = tuple[tuple[int, int, int], ...]  # (number among the loops of the rank, trips, tile) of the loops of a variable


class WindowRank(NamedTuple):
    """A rank reached by windows. terms: (variable, coefficient) each; size: as declared."""

    terms: tuple[tuple[str, int], ...]
    constant: int
    size: int


class WindowPaths(EvenPaths):
    """Prices paths of one Einsum.

    ranks: those reached by windows, by tensor. plain: values of the other ranks. reach: variables of windows that reach
    beyond the declared shape, and how many of their positions do; instances along these differ.
    """

    def __init__(self, workload: Workload, machine: Machine, einsum: str) -> None:
        super().__init__(workload, machine, einsum)
        self.ranks = {access.tensor: self._windows(access.tensor) for access in self.einsum.inputs}
        slid = {name: {v for rank in ranks for v, _ in rank.terms} for name, ranks in self.ranks.items()}
        variables = {one.name: one.variables for one in self.tensors}
        self.plain = {name: prod(self.extents[v] for v in variables[name] - slid[name]) for name in slid}
        self.reach = padding_reach(workload, einsum)

    @staticmethod
    def able(workload: Workload, machine: Machine, einsum: str) -> bool:
        """True if what is written has plain ranks and is no part of a tensor, nothing is read by a view, and the
        machine has neither tolls nor links."""
        one = workload.einsum(einsum)
        plain = all(index.simple for index in one.output.indices) and one.output.tensor not in workload.parted
        ways = not machine.tolls and not any(isinstance(memory, Link) for memory in machine.memories)
        return plain and ways and one.kind != "copy" and not any(access.view for access in one.accesses)

    def takes(self, steps: tuple[Step, ...], filled: frozenset[tuple[int, str]]) -> bool:
        """True if the path cuts evenly, leaves an instance that reaches no padding where it spreads a padded rank, and
        pays for all of its stores: what several readers need together is no product."""
        return not steps[-1][2] and not filled and not any(1 < n <= self.reach[v] for v, n in self._apart(steps))

    def spread(self, above: tuple[Step, ...]) -> frozenset[str]:
        """Variables of padded ranks that spatial loops cut among these steps: of their ranks the busiest instance below
        reaches no padding."""
        return frozenset(v for v, n in self._apart(above) if n > 1)

    def _apart(self, steps: tuple[Step, ...]) -> list[tuple[str, int]]:
        """(variable, instances) of the spatial loops over padded ranks."""
        return [(step[2], step[3]) for step in steps if step[0] == "par" and step[2] in self.reach]

    def crossed(
        self, steps: tuple[Step, ...], one: TensorOnPath, parent: int, child: int | None
    ) -> tuple[Counts, Counts]:
        """As of `EvenPaths`; the busiest instance of a side below spatial loops over a padded rank reaches none."""
        sides = list(super().crossed(steps, one, parent, child))
        for side, place in enumerate((parent, child)):
            spread = self.spread(steps[: parent if place is None else place])
            if spread and self.ranks.get(one.name):
                values = self.values(steps, one, child, spread)
                sides[side] = (sides[side][0], even_counts(steps, one, values, parent, child)[side][1], 0, 0)
        return sides[0], sides[1]

    def values(
        self, steps: tuple[Step, ...], one: TensorOnPath, child: int | None, uncut: frozenset[str] = frozenset()
    ) -> int:
        """As of `EvenPaths`, of a tensor's windows without what a sliding loop directly above keeps. uncut: variables
        of whose ranks padding is counted too."""
        ranks = self.ranks.get(one.name, ())
        if not ranks:
            return one.values
        slides = None if child is None else _slides(steps, one, child)
        stop, found = len(steps) if child is None else child, self.plain[one.name]
        for rank in ranks:
            found *= self.positions(self.reached(rank, uncut), steps[:stop], slides)
        return found

    def _windows(self, name: str) -> tuple[WindowRank, ...]:
        access = self.einsum.access(name)
        indices = zip(access.indices, self.workload.shape(access), strict=True)
        return tuple(WindowRank(index.terms, index.constant, size) for index, size in indices if not index.simple)

    def reached(self, rank: WindowRank, uncut: frozenset[str]) -> WindowRank:
        """The rank; with all that its windows reach, padding too, if it has one of these variables."""
        if uncut.isdisjoint(v for v, _ in rank.terms):
            return rank
        return WindowRank(rank.terms, 0, 1 + sum(coefficient * (self.extents[v] - 1) for v, coefficient in rank.terms))

    def positions(self, rank: WindowRank, above: tuple[Step, ...], slides: int | None) -> int:
        """Positions of the rank that the tiles below some steps have. slides: place of the loop that keeps overlaps."""
        chains: dict[str, list[tuple[int, int, int]]] = {v: [] for v, _ in rank.terms}
        left, number, slid = dict(self.extents), 0, None
        for place, step in enumerate(above):
            if step[0] in ("for", "par") and step[-2] in chains:
                variable, trips = step[-2:]
                left[variable] //= trips
                chains[variable].append((number, trips, left[variable]))
                slid = number if place == slides else slid
                number += 1
        terms = tuple([(coefficient, self.extents[v], tuple(chains[v])) for v, coefficient in rank.terms])
        return _moved(terms, rank.constant, rank.size, slid)


def _slides(steps: tuple[Step, ...], one: TensorOnPath, child: int) -> int | None:
    """Place of the temporal loop over which windows slide: the first that the tensor has, if loops that it lacks alone
    are between it and the store."""
    for place in range(child - 1, -1, -1):
        step = steps[place]
        if step[0] == "split":
            return None
        if step[0] == "for" and step[1] in one.variables and step[2] > 1:
            return place
    return None


@lru_cache(maxsize=1 << 16)
def _moved(terms: tuple[tuple[int, int, Chain], ...], constant: int, size: int, slides: int | None) -> int:
    """As `windows.moved`, by the numbers of loops instead of their places on a path."""
    chains = tuple(
        (coefficient, extent, tuple([(n, LoopCut(tile, trips=trips)) for n, trips, tile in chain]))
        for coefficient, extent, chain in terms
    )
    return int(windows.moved_each((windows.RankUse(chains, constant),), size, slides, {}, 0))

"""Spatial choices of one Einsum: how many instances of every axis each class of rank variables takes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cache, cached_property, lru_cache
from itertools import starmap
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....dataclass import dataclass
from ....mapspace.divisors import divisors
from ....once import once_each
from ....workload.padding import ReadRank, reaching
from ..numerics.pareto import IntArray
from ..numerics.uneven import smallest_tiles, tile_list
from .classes import AxisSignature, EinsumClass, TensorSignature, UnitOption
from .holds import Placement, backing, backings_of
from .runs import Keep, Row, Runs, SpatialChoice, watched


@dataclass(frozen=True)
class RankClasses:
    """Rank variables merged where that is exact: same relevance to every tensor, plain ranks only.

    members: variables of each class (dimension); extents: product of their extents. checkpoint: asked, while spatial
    choices are listed, whether to go on.
    """

    signature: EinsumClass
    checkpoint: Callable[[], None] = field(default=lambda: None, compare=False)

    @cached_property
    def counted(self) -> dict[tuple[object, ...], int]:
        """What was counted of windows, by what and tile: filled by `traffic.py`, the same for every spatial choice."""
        return {}

    @cached_property
    def remembered(self) -> dict[object, Any]:
        """What does not depend on limits, by key: the same in every attempt, filled by those who ask for it."""
        return {}

    @cached_property
    def shared(self) -> dict[object, Any]:
        """What does not depend on which spatial choices are looked at either, by key."""
        return {}

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        s = self.signature
        groups: dict[object, list[int]] = {}
        complicated = frozenset().union(*(t.complex_variables for t in s.tensors))
        for v in range(len(s.extents)):
            relevance = tuple(v in t.variables for t in s.tensors)
            merges = s.merge and v not in complicated and v not in s.alone and v not in s.uneven
            key: object = relevance if merges else v
            groups.setdefault(key, []).append(v)
        return tuple(tuple(group) for group in groups.values())

    @cached_property
    def extents(self) -> tuple[int, ...]:
        return tuple(prod(self.signature.extents[v] for v in group) for group in self.members)

    @cached_property
    def of(self) -> dict[int, int]:
        """Variable -> class."""
        return {v: d for d, group in enumerate(self.members) for v in group}

    @cached_property
    def uneven(self) -> tuple[bool, ...]:
        """Per class: need its tiles not divide?"""
        return tuple(any(v in self.signature.uneven for v in group) for group in self.members)

    @cached_property
    def windows(self) -> tuple[bool, ...]:
        """Per class: may a spatial loop, its outermost, cut it unevenly, and no other loop?"""
        return tuple(any(v in self.signature.windows for v in group) for group in self.members)

    @cached_property
    def loose(self) -> tuple[bool, ...]:
        """Per class: may tiles below the fused loops, of as many trips at least, not divide theirs? (A relaxation.)"""
        s = self.signature
        free = {"loose": s.tied, "integer": s.uneven}.get(s.tiling, frozenset())
        return tuple(any(v in free for v in group) for group in self.members)

    @property
    def integer(self) -> bool:
        """True if no uneven tile need divide another: the relaxation of the space `integer`."""
        return self.signature.tiling == "integer"

    def listed(self, d: int) -> tuple[int, ...] | None:
        """The tiles that a class may have; None: the smallest multiples of what stands below."""
        if d in self.pinned:
            return tile_list(self.extents[d], "every")
        tiling = self.signature.tiling
        tied = tiling == "coarse" or any(v in self.signature.tied for v in self.members[d])
        return tile_list(self.extents[d], tiling) if tied and tiling not in ("loose", "integer") else None

    @cached_property
    def pinned(self) -> frozenset[int]:
        """Classes whose extents the mapspace limits in some tile: their loops may not be moved across stores."""
        return frozenset(self.of[v] for _, _, v, _ in self.signature.tiles)

    @cached_property
    def relevance(self) -> tuple[tuple[bool, ...], ...]:
        """Per tensor and class: does any variable of the class index the tensor?"""
        return tuple(tuple(group[0] in t.variables for group in self.members) for t in self.signature.tensors)

    @cached_property
    def halos(self) -> tuple[tuple[int, ...], ...]:
        """Per tensor the classes whose windows may be cut unevenly."""
        every = [d for d, window in enumerate(self.windows) if window]
        return tuple(
            tuple(d for d in every if not t.complex_variables.isdisjoint(self.members[d]))
            for t in self.signature.tensors
        )

    @cached_property
    def padded(self) -> dict[int, int]:
        """As the function of this name says."""
        return padded(self.signature)

    @cached_property
    def beyond(self) -> tuple[tuple[int, ...], ...]:
        """Per tensor the ranks whose windows reach outside the declared shape."""
        extents = self.signature.extents
        every = (enumerate(read_ranks(tensor)) for tensor in self.signature.tensors)
        return tuple(tuple(r for r, rank in ranks if any(rank.outside(extents))) for ranks in every)

    @cached_property
    def plain(self) -> tuple[tuple[bool, ...], ...]:
        """Per tensor and class: does the class index the tensor alone on its ranks?"""
        return tuple(
            tuple(all(t.simple_rank(v) is not None for v in group) for group in self.members)
            for t in self.signature.tensors
        )

    def relevant(self, tensor: int, dimension: int) -> bool:
        """True if any variable of the class indexes the tensor."""
        return self.relevance[tensor][dimension]

    @cached_property
    def _spreads(self) -> dict[UnitOption, tuple[SpatialChoice, ...]]:
        uneven = any(self.uneven)
        return {option: tuple(_every_spread(self, option, uneven)) for option in self.signature.units}

    def spreads(self, option: UnitOption) -> tuple[SpatialChoice, ...]:
        """Every spatial choice on one unit's path: for each visible axis the instances that each class takes.

        Rules: the product on an axis is at most its size, classes relevant to a barred tensor are not spread, those of
        padded ranks over more instances than reach padding, and of the choices on `use: full` axes only those with the
        largest product stay (copies are exempt).
        """
        return self._spreads[option]

    def number(self, option: UnitOption) -> int:
        """How many spatial choices a unit has; mostly known without a list of them."""
        return _number(self, option)

    def within(self, option: UnitOption, keep: Keep, most: float = inf) -> tuple[SpatialChoice, ...]:
        """The spatial choices of which no beginning is left out by `keep`, found axis by axis, as `spreads` has them.
        All of them where they are listed otherwise. Raises TooManyChoices if more than `most` are kept, or memory is
        not left for so many."""
        runs = self.even(option)
        if runs is None:
            return self.spreads(option)
        return tuple(runs.within(self.extents, keep, most))

    @once_each
    def even(self, option: UnitOption) -> Runs | None:
        """Runs of axes on which all spatial choices of a unit are listed one by one, if there are such."""
        return None if any(self.uneven) else _even_runs(self, option)

    @once_each
    def instances(self, option: UnitOption) -> IntArray:
        """The instances of every spatial choice [choices, axes, classes]."""
        spreads = self.spreads(option)
        axes = self.signature.visible(option.fanouts)
        return np.array(spreads, np.int64).reshape(len(spreads), len(axes), len(self.members))

    @once_each
    def fewer(self, option: UnitOption) -> dict[SpatialChoice, SpatialChoice]:
        """For each spatial choice, per group of `like_axes` and class, how many instances are fewer for sure than those
        that have work in a mapping with this choice (docs/model/integer-tiles.md).

        One axis: one less than it takes. Several: the next smaller number that goes with the other classes' numbers,
        whatever stands further in.
        """
        return _fewer(self, option)

    def undivided(self, option: UnitOption, memory: int) -> NDArray[np.bool_]:
        """Mask of the spatial choices without loops above a memory."""
        return self._untaken(option, range(option.above[memory]), tuple(range(len(self.members))))

    @once_each
    def _untaken(self, option: UnitOption, fanouts: range, dims: tuple[int, ...]) -> NDArray[np.bool_]:
        """Mask of the spatial choices in which none of these classes takes more than one instance of these fanouts."""
        axes = self.signature.visible(option.fanouts)
        upper = [i for i, axis in enumerate(axes) if axis.fanout in fanouts]
        spreads = watched(self.spreads(option), self.checkpoint)
        return np.array([all(spread[i][d] == 1 for i in upper for d in dims) for spread in spreads], bool)

    def behind(self, option: UnitOption, held: Placement) -> int:
        """Of a choice of stores all that `suited` asks: the fanouts above which a copy has its spatial loops."""
        if not self.signature.copy:
            return option.fanouts
        tensors = enumerate(self.signature.tensors)
        return max(option.above[tensor.home if tensor.housed else backing(held, t)] for t, tensor in tensors)

    def suited(self, option: UnitOption, behind: int) -> NDArray[np.bool_]:
        """Mask of the spatial choices that a choice of stores goes with, if it is so far `behind` fanouts.

        A copy has spatial loops only above a backing store behind their fanout (rule 10). What is housed behind a
        fanout must be complete there: an output has no loop above its home that it reduces, nothing persistent has any.
        """
        every, tensors = tuple(range(len(self.members))), self.signature.tensors
        good = np.ones(len(self.spreads(option)), bool)
        if self.signature.copy:
            good &= self._untaken(option, range(behind, option.fanouts), every)
        for t, tensor in enumerate(tensors):
            if tensor.housed and (tensor.output or tensor.persistent):
                dims = tuple(d for d in every if tensor.persistent or not self.relevant(t, d))
                good &= self._untaken(option, range(option.above[tensor.home]), dims)
        return good


@dataclass(frozen=True)
class FewSpreads(RankClasses):
    """Rank classes of which few spatial choices are looked at. every: those of which they are taken."""

    few: Mapping[UnitOption, tuple[SpatialChoice, ...]] = field(default_factory=dict, compare=False)
    every: RankClasses | None = field(default=None, compare=False)

    @cached_property
    def shared(self) -> dict[object, Any]:
        return {} if self.every is None else self.every.shared

    @cached_property
    def _spreads(self) -> dict[UnitOption, tuple[SpatialChoice, ...]]:
        return dict(self.few)

    def number(self, option: UnitOption) -> int:
        """How many are looked at."""
        return len(self.few[option])


@lru_cache(maxsize=4096)
def _number(classes: RankClasses, option: UnitOption) -> int:
    """As `RankClasses.number`. Attempts at one problem ask anew."""
    runs = classes.even(option)
    return len(classes.spreads(option)) if runs is None else runs.number(classes.extents)


@lru_cache(maxsize=4096)
def _every_spread(classes: RankClasses, option: UnitOption, uneven: bool = False) -> tuple[SpatialChoice, ...]:
    """All spatial choices of a unit. uneven: of classes that may be cut unevenly, too."""
    s = classes.signature
    axes = s.visible(option.fanouts)
    if s.copy and not _backs_behind_fanouts(s, option):
        return (tuple((1,) * len(classes.members) for _ in axes),)
    shares = Shares(classes, option, uneven)
    takes = [[shares.allowed(axis, d) for d in range(len(classes.members))] for axis in axes]

    @cache
    def choices(i: int, left: Row) -> list[tuple[Row, Row]]:
        """(row, what is left after it) on axis number `i`."""
        classes.checkpoint()
        rows = shares.rows(axes[i], left, takes[i])
        return [(row, tuple(map(shares.rest, left, row, classes.uneven, classes.windows))) for row in rows]

    if uneven:
        return _apart(classes, option, list(_busy(classes, option, choices)))
    if (even := classes.even(option)) is not None:
        return tuple(even.listed(classes.extents))
    runs, _ = _on_runs(classes, option)
    return _apart(classes, option, runs.listed(classes.extents))


def _on_runs(classes: RankClasses, option: UnitOption) -> tuple[Runs, int]:
    """Runs of neighbouring like axes of a unit, for even choices; and how many groups of like axes there are."""
    s, shares = classes.signature, Shares(classes, option, uneven=False)
    axes = s.visible(option.fanouts)

    def whole(i: int) -> list[Row]:
        """The rows of an axis, those that take little of the first ranks first."""
        takes = [shares.allowed(axes[i], d) for d in range(len(classes.members))]
        rows = shares.rows(axes[i], classes.extents, takes)
        return sorted(rows, key=lambda row: [row[d] for d in s.order]) if s.swaps else rows

    def counts(i: int) -> bool:
        return axes[i].full and not s.copy

    groups = [[i] for i in range(len(axes))] if s.copy else like_axes(s, option, axes)
    runs, deepest = _runs(groups), _deepest(s, option)
    reach = lambda r: _reach(classes) if axes[runs[r][0]].fanout < deepest else ()  # noqa: E731
    return Runs(runs, whole, counts, reach, classes.checkpoint), len(groups)


def _even_runs(classes: RankClasses, option: UnitOption) -> Runs | None:
    """The same where every choice on them is one of `_every_spread`: None for copies that have no spatial loops, and
    where like axes are no neighbours."""
    if classes.signature.copy and not _backs_behind_fanouts(classes.signature, option):
        return None
    runs, groups = _on_runs(classes, option)
    return runs if len(runs.runs) == groups else None


def _runs(groups: list[list[int]]) -> list[tuple[int, ...]]:
    """Neighbouring axes of one group each, in the order of the axes."""
    group = {i: g for g, members in enumerate(groups) for i in members}
    found: list[tuple[int, ...]] = []
    for i in sorted(group):
        if found and group[found[-1][-1]] == group[i]:
            found[-1] = (*found[-1], i)
        else:
            found.append((i,))
    return found


@dataclass(frozen=True)
class Shares:
    """What the classes may take of one axis after the other. uneven: of classes that may be cut unevenly, too."""

    classes: RankClasses
    option: UnitOption
    uneven: bool

    def allowed(self, axis: AxisSignature, d: int) -> tuple[int, ...]:
        """What class d may take of an axis, as far as the axis alone tells."""
        classes, s = self.classes, self.classes.signature
        share = [numbers for v, numbers in axis.shares if v in classes.members[d] and not s.copy]
        whole = not any(classes.relevant(t, d) for t in axis.barred)
        reach = max(classes.padded.get(v, 0) for v in classes.members[d])
        every = divisors(classes.extents[d]) if whole else (1,)
        if whole and self.uneven and classes.windows[d] and not reach:
            every = tuple(sorted({*every, *smallest_tiles(classes.extents[d])}))
        elif whole and self.uneven and classes.uneven[d]:
            every = _uneven_instances(classes, self.option, axis, d)
        fits = (z for z in every if z <= axis.size and (z == 1 or z > reach))
        return tuple(z for z in fits if all(numbers.allow(z) for numbers in share))

    def rows(self, axis: AxisSignature, left: tuple[int, ...], takes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Every choice on one axis of what is left of each class."""
        s, fits = self.classes.signature, self._fits
        found: list[tuple[tuple[int, ...], int]] = [((), axis.size)]
        for d, (n, take) in enumerate(zip(left, takes, strict=True)):
            found = [((*row, z), room // z) for row, room in found for z in take if z <= room and fits(d, n, z)]
        return [row for row, _ in found if s.copy or all(total.allow(prod(row)) for total in axis.totals)]

    def rest(self, n: int, z: int, cut: bool, window: bool) -> int:
        """What an instance may have left: its share; with any tiles one more than the largest with z - 1 full ones; of
        windows that are cut unevenly nothing, because no further spatial loop may cut them."""
        if self.uneven and window and n % z:
            return 1
        return 1 + (n - 1) // (z - 1) if self.uneven and self.classes.integer and cut and z > 1 else -(-n // z)

    def _fits(self, d: int, n: int, z: int) -> bool:
        if self.uneven and self.classes.windows[d]:
            return z <= n and (n % z == 0 or n == self.classes.extents[d])
        return z <= n if self.uneven else n % z == 0


def _uneven_instances(classes: RankClasses, option: UnitOption, axis: AxisSignature, d: int) -> tuple[int, ...]:
    """The instances of an axis that a class may take if its tiles need not divide.

    The least number for each number of passes suffices (docs/model/pruning.md), but not where a partner must take as
    many, where the mapspace speaks of numbers, or where sums stay in the instances that each has begun.
    """
    s, extent = classes.signature, classes.extents[d]
    deepest = _deepest(s, option)
    sums = any(t.output and i not in axis.joined and not classes.relevant(i, d) for i, t in enumerate(s.tensors))
    partners = s.tiling == "every" and any(v in s.tied for v in classes.members[d])
    if partners or axis.fanout < deepest or axis.shares or axis.totals or sums or s.copy:
        return tuple(range(1, min(extent, axis.size) + 1))
    return tile_list(extent, s.tiling) if s.tiling == "coarse" else smallest_tiles(extent)


def most_work(classes: RankClasses, option: UnitOption) -> int:
    """The most iterations that the busiest instance of the full-use axes may have (rule 9 where tiles need not divide):
    those of the best even choice."""
    axes = classes.signature.visible(option.fanouts)
    full = [i for i, axis in enumerate(axes) if axis.full and not classes.signature.copy]
    even = _every_spread(classes, option)
    return prod(classes.extents) // max((prod(prod(spread[i]) for i in full) for spread in even), default=1)


def _busy(
    classes: RankClasses, option: UnitOption, choices: Callable[[int, Row], list[tuple[Row, Row]]]
) -> Iterator[SpatialChoice]:
    """The uneven choices in which the busiest instance of the full-use axes does no more than in the best even one, or
    than alone where limits allow no even one; where windows are cut unevenly, than in the best with such windows
    (rule 9)."""
    axes = classes.signature.visible(option.fanouts)
    full = [i for i, axis in enumerate(axes) if axis.full and not classes.signature.copy]
    most = most_work(classes, option)
    filled = _least_work(classes, axes, choices) if any(classes.windows) and full else most
    reach = [prod(axes[j].size for j in full if j > i) for i in range(len(axes))]

    def work(rows: SpatialChoice) -> int:
        taken = [[row[d] for i, row in enumerate(rows) if i in full] for d in range(len(classes.extents))]
        return prod(-(-extent // prod(n)) for extent, n in zip(classes.extents, taken, strict=True))

    def cut(rows: SpatialChoice) -> bool:
        """True if some window is cut unevenly."""
        every = zip(classes.windows, classes.extents, zip(*rows, strict=True), strict=True)
        return any(window and extent % prod(n) for window, extent, n in every)

    found: list[tuple[SpatialChoice, tuple[int, ...]]] = [((), classes.extents)]
    for i in range(len(axes)):
        found = [
            ((*rows, row), after)
            for rows, left in watched(found, classes.checkpoint)
            for row, after in choices(i, left)
            if not full or work((*rows, row)) <= (filled if cut((*rows, row)) else most) * reach[i]
        ]
    yield from (spread for spread, _ in found)


def _least_work(
    classes: RankClasses, axes: list[AxisSignature], choices: Callable[[int, Row], list[tuple[Row, Row]]]
) -> int:
    """The least iterations that the busiest instance of the full-use axes may have, of choices that cut nothing but
    windows unevenly."""
    found = {(classes.extents, (1,) * len(classes.extents))}
    for i, axis in enumerate(axes):
        found = {
            (after, tuple(n * z for n, z in zip(taken, row, strict=True)) if axis.full else taken)
            for left, taken in watched(found, classes.checkpoint)
            for row, after in choices(i, left)
            if all(window or n % z == 0 for window, n, z in zip(classes.windows, left, row, strict=True))
        }
    works = (prod(-(-n // z) for n, z in zip(classes.extents, taken, strict=True)) for _, taken in found)
    return min(works, default=prod(classes.extents))


def _apart(classes: RankClasses, option: UnitOption, spreads: list[SpatialChoice]) -> tuple[SpatialChoice, ...]:
    """One of all spatial choices that differ only in which of several like axes of a fanout takes what.

    Like axes join the same tensors under the same limits, so prices see what they take together. A partner asks which
    axis a rank is on where a memory behind the fanout backs a tensor that others access: there only axes that may
    change places in all Einsums are alike, and all choose the same, the first in `order`; or the first that has more
    instances on each axis than positions reach padding, if a partner asks for that (rule 11): one for each `reach`.
    """
    s, axes = classes.signature, classes.signature.visible(option.fanouts)
    groups, deepest = like_axes(s, option, axes), _deepest(s, option)
    if len(groups) == len(axes):
        return tuple(spreads)
    reach, told = _reach(classes), [group for group in groups if axes[group[0]].fanout < deepest] if s.reach else []

    def step(one: tuple[int, ...], n: int) -> int:
        return bisect_left(one, n) if n > 1 else len(one)

    once: dict[object, SpatialChoice] = {}
    for spread in watched(spreads, classes.checkpoint):
        least = tuple(min(step(one, spread[i][d]) for i in group) for group in told for d, one in enumerate(reach))
        once.setdefault((together(spread, groups), least), spread)
    return tuple(once.values())


def _reach(classes: RankClasses) -> tuple[tuple[int, ...], ...]:
    """`EinsumClass.reach`, by class."""
    reach = classes.signature.reach
    return tuple(tuple(sorted({n for v in group for n in reach[v]})) for group in classes.members) if reach else ()


def like_axes(s: EinsumClass, option: UnitOption, axes: list[AxisSignature]) -> list[list[int]]:
    """Groups of axes whose loops may change places: `_apart` says when."""
    deepest, swaps = _deepest(s, option), s.swaps or range(len(axes))
    marks = [
        (axis.fanout, replace(axis, size=0)) if axis.fanout >= deepest else (axis.fanout, swaps[i])
        for i, axis in enumerate(axes)
    ]
    return [[i for i, mark in enumerate(marks) if mark == one] for one in dict.fromkeys(marks)]


def _deepest(s: EinsumClass, option: UnitOption) -> int:
    """Fanouts above the innermost memory that backs what Einsums share in some choice of stores."""
    backings = backings_of(option.held, len(s.tensors))
    return max((option.above[m] for t in s.fusable for m in backings[t]), default=0)


def together(spread: SpatialChoice, groups: list[list[int]]) -> SpatialChoice:
    """Instances that each class takes of each group of axes."""
    return tuple(tuple(map(prod, zip(*(spread[i] for i in group), strict=True))) for group in groups)


def _fewer(classes: RankClasses, option: UnitOption) -> dict[SpatialChoice, SpatialChoice]:
    axes = classes.signature.visible(option.fanouts)
    groups = like_axes(classes.signature, option, axes)
    fanouts = [axes[group[0]].fanout for group in groups]
    every = {spread: together(spread, groups) for spread in classes.spreads(option)}
    places = [(g, d) for g, group in enumerate(groups) if len(group) > 1 for d in range(len(classes.members))]
    least: dict[tuple[object, ...], int] = {}
    keys: dict[tuple[SpatialChoice, int, int], tuple[object, ...]] = {}
    for g, d in places:
        sizes: dict[tuple[object, ...], list[int]] = {}
        alike = {}
        for spread, taken in watched(every.items(), classes.checkpoint):
            others = tuple((*row[:d], 0, *row[d + 1 :]) if i == g else row for i, row in enumerate(taken))
            alike[spread] = others
            sizes.setdefault(others, []).append(taken[g][d])
        for spread, others in alike.items():
            mine = every[spread][g][d]
            smaller = max((n for n in sizes[others] if n < mine), default=0)
            upper = tuple(row for row, fanout in zip(every[spread], fanouts, strict=True) if fanout <= fanouts[g])
            key = keys[spread, g, d] = (g, d, upper)
            least[key] = min(least.get(key, smaller), smaller)
    return {
        spread: tuple(
            tuple(least[keys[spread, g, d]] if (spread, g, d) in keys else n - 1 for d, n in enumerate(row))
            for g, row in enumerate(taken)
        )
        for spread, taken in every.items()
    }


def _backs_behind_fanouts(s: EinsumClass, option: UnitOption) -> bool:
    """True if in some choice of stores a memory behind a fanout backs something."""
    homes = (tensor.home for tensor in s.tensors if tensor.housed)
    backs = (m for memories in backings_of(option.held, len(s.tensors)) for m in memories)
    return any(option.above[m] for m in (*homes, *backs))


def padded(s: EinsumClass) -> dict[int, int]:
    """Variables of ranks whose windows reach outside the declared shape, and how many of their positions do."""
    return reaching((rank for tensor in s.tensors for rank in read_ranks(tensor)), s.extents)


def read_ranks(tensor: TensorSignature) -> Iterator[ReadRank]:
    """The ranks of a tensor."""
    return starmap(ReadRank, zip(tensor.ranks, tensor.constants, tensor.shape, strict=True))

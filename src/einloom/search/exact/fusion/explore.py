"""Rows of one Einsum: every undominated pmapping, with the fused loops above its shared tensors spelled out.

Comes in: a class of Einsums and its tables. Goes out: `PmappingGroup`s. A group has one template (fused loops in order,
where each shared tensor is stored) and one row per choice of tiles and of everything that stays inside the Einsum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....dataclass import dataclass
from ....once import once_each
from ..einsums.classes import UnitOption
from ..einsums.holds import Placement, backing
from ..einsums.placement import StoreContexts, links
from ..einsums.runs import SpatialChoice, watched
from ..einsums.spatial import RankClasses
from ..model import Setting
from ..numerics.divisibility import Lattice
from ..numerics.narrow import every
from ..numerics.pareto import FloatArray, IntArray, pack, pareto
from ..numerics.row_table import RowTable
from ..numerics.uneven import ceil
from ..pmappings.backpointers import Compactor
from ..pmappings.expand import Expansion
from ..pmappings.levels import Levels, Room
from ..pmappings.prune import Pruner, weighed
from ..pmappings.rows import CONTEXT, PLACED, SPREAD, Backpointers, Rows, union, wrapped
from ..pmappings.sweep import closed, relaxed, sweep
from ..prices.columns import LinkPrices
from ..prices.traffic import Prices, accepted
from .floors import Floors
from .match import Below
from .screening import Bits, Screen, in_any_order
from .templates import FusedTemplate, OwnStore, Shape, Stacker
from .tilings import LARGE, Tilings, TilingsByLoops

Allowed = dict[Shape, IntArray]
Wanted = dict[str | None, NDArray[np.bool_]]  # unit -> mask of its choices [stores, spatial]
Stacks = dict[tuple[object, ...], tuple[tuple[FusedTemplate, tuple[OwnStore, ...]], ...]]
DIVED = 4  # spatial choices per choice of stores that a dive looks at, where tiles need not divide
SMALL, REMEMBERED = 1 << 16, 1 << 17  # numbers of levels that are remembered, of one and of all of an Einsum
MANY = 4096  # rows of a block that are worth reducing before the blocks of one structure come together
SPARE = 2  # pairs of stores and of spatial loops that are looked at together, for one that is wanted


@once_each
def keeps_tiles(classes: RankClasses, held: Placement, fused: frozenset[int]) -> bool:
    """True if own stores in the last memory of `held`, which backs nothing, may stay as they are in all iterations of
    some fused loop: each tensor lacks its variable."""
    tensors, extents = classes.signature.tensors, classes.signature.extents
    backed = [t for t in classes.signature.fusable if backing(held, t) > 0]
    looped = frozenset(v for t in backed for v in tensors[t].variables if extents[v] > 1)
    return bool(fused and backed) and all(looped - tensors[t].variables for t in fused)


def spread_between(classes: RankClasses, option: UnitOption, held: Placement, upper: SpatialChoice) -> bool:
    """True if a spatial loop stands between the last memory of `held` and those that back what is shared. upper: the
    instances above it."""
    key = "between", option, held
    if key not in classes.remembered:
        signature = classes.signature
        inner = option.above[max((backing(held, t) for t in signature.fusable), default=0)]
        axes = signature.visible(option.above[len(held) - 1])
        classes.remembered[key] = [i for i, axis in enumerate(axes) if axis.fanout >= inner]
    return any(n > 1 for i in classes.remembered[key] for n in upper[i])


def keeps(classes: RankClasses, memory: int, wanted: Wanted) -> bool:
    """True if own stores in a memory further in than all that back something may keep their tiles above a split, by
    some choice of stores and spatial loops that is wanted."""
    for option in classes.signature.units:
        mask = wanted.get(option.unit)
        for number, held in enumerate(option.held):
            if len(held) <= memory:
                continue
            first = held[: memory + 1]
            if any(keeps_tiles(classes, first, frozenset({t})) for t in held[memory]):
                free = _free_between(classes, option, first)
                if (free if mask is None else free & mask[number]).any():
                    return True
    return False


def _alike(keys: IntArray) -> list[IntArray]:
    """The numbers of the rows by key."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(keys[order][1:] != keys[order][:-1]) + 1)


def _gathered(wanted: NDArray[np.bool_], some: IntArray) -> Iterator[IntArray]:
    """Spatial choices by the stores that they go with: few more pairs of both are looked at than are wanted."""
    mine, union, pairs, count = list[IntArray](), np.zeros(len(wanted), bool), 0, 0
    for part in _alike(pack(wanted[:, some].T.astype(np.int64))):
        stores = wanted[:, some[part[0]]]
        alone = len(part) * int(stores.sum())
        if mine and int((union | stores).sum()) * (count + len(part)) > SPARE * (pairs + alone):
            yield np.concatenate(mine)
            mine, union, pairs, count = [], np.zeros(len(wanted), bool), 0, 0
        mine.append(some[part])
        union, pairs, count = union | stores, pairs + alone, count + len(part)
    yield np.concatenate(mine)


@once_each
def _free_between(classes: RankClasses, option: UnitOption, held: Placement) -> NDArray[np.bool_]:
    """Mask of the spatial choices without a loop as in `spread_between`."""
    visible = classes.signature.visible(option.fanouts)
    above = [i for i, axis in enumerate(visible) if axis.fanout < option.above[len(held) - 1]]
    uppers = (tuple(spread[i] for i in above) for spread in classes.spreads(option))
    return np.array([not spread_between(classes, option, held, upper) for upper in uppers], bool)


def numbered(tiles: IntArray, shape: Shape, sizes: tuple[int, ...]) -> IntArray:
    """One integer per choice of tiles of the loops above a tensor; its rank sizes are the radices.

    Loops above a lent tensor may lack it (rank None): then their tiles do not count.
    """
    total = np.zeros(len(tiles), np.int64)
    for column, (rank, _) in enumerate(shape[1]):
        if rank is not None:
            total = total * (sizes[rank] + 1) + tiles[:, column]
    return total


@dataclass(frozen=True)
class Origin:
    """How a group's rows were made: unit, own stores in the fused part, and what remains. links: by source of the
    remainder; which spatial choice, the leaf's rows know."""

    option: UnitOption
    own: tuple[OwnStore, ...]
    remainder: Backpointers
    links: tuple[LinkPrices, ...]


@dataclass(eq=False)
class PmappingGroup(RowTable):
    """Rows with one template. tiles: [n, loops], below each fused loop. cost: [n, objective columns]. own: [n, tracked
    memories, depth + 1] bits of own stores by the number of temporal loops above them, the last for everything local to
    the Einsum. Row `remainder` of variant number `variant` holds the rest."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("tiles", "cost", "own", "variant", "remainder")
    structure: FusedTemplate
    tiles: IntArray
    cost: FloatArray
    own: IntArray
    variant: IntArray
    remainder: IntArray
    variants: tuple[Origin, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.cost)


@dataclass(frozen=True)
class Remainder:
    """What stays inside the Einsum below a fused part: rows of one context, and what knows their prices."""

    levels: Levels
    choice: int
    below: Below
    links: tuple[LinkPrices, ...]


# memory, held down to it, instances above it, own fused stores, classes that are spread again (`LinkPrices.further`)
Place = tuple[int, Placement, SpatialChoice, frozenset[int], tuple[int, ...]]


class Explorer:
    """All blocks (groups of pmappings) of one signature (class of Einsums).

    allowed: for tensors whose other users are explored already, how those store them. stacks: the fused parts met so
    far; explorers whose signatures differ in the sizes of axes only may share them. wanted: per unit the choices of
    stores and of spatial loops [stores, spatial] that some partner can go along with; without, all. counterparts: per
    shared tensor the keys of the relaxation's rows (`bounds/relaxed_rows.py`).
    """

    def __init__(self, setting: Setting, classes: RankClasses, limits: FloatArray, counts: dict[str, int]) -> None:
        self.setting = setting
        self.classes = classes
        self.signature = classes.signature
        self.limits = limits
        self.counts = counts
        self.checkpoint = classes.checkpoint
        self.allowed: dict[int, Allowed] = {}
        self.counterparts: dict[int, Allowed] = {}
        self.found: dict[FusedTemplate, list[PmappingGroup]] = {}
        self._lattice = Lattice(classes.extents, classes.uneven, classes.loose)
        self._grids = TilingsByLoops(classes)
        self.floors = Floors(setting, classes)
        self.wanted: Wanted = {}
        self.stacks: Stacks = {}
        self._bits: Bits = {}

    def blocks(self) -> list[PmappingGroup]:
        """The blocks, each reduced to its undominated rows."""
        for option in self.signature.units:
            places: dict[Place, list[tuple[Expansion, int, Rows]]] = {}
            for expansion in self._batches(option, fused=True):
                self.checkpoint()
                for place, choice, rows in self._remainders(option, expansion):
                    places.setdefault(place, []).append((expansion, choice, rows))
            known: dict[tuple[int, ...], Remainder] = {}
            for place, parts in places.items():
                self.checkpoint()
                same = tuple(id(rows) for _, _, rows in parts)
                if same not in known:
                    known[same] = self._united(parts, place[0])
                self._group(option, place, known[same])
        return self._compact([b for parts in self.found.values() if len(b := self._asked(parts))])

    def _asked(self, parts: list[PmappingGroup]) -> PmappingGroup:
        """The parts as one block; if they are large, after a question whether to go on."""
        if sum(map(len, parts)) > MANY:
            self.checkpoint()
        return self._reduce(parts)

    @staticmethod
    def _compact(blocks: list[PmappingGroup]) -> list[PmappingGroup]:
        """The same blocks, without the histories of rows that are in none of them."""
        chosen = [[np.flatnonzero(b.variant == v) for v in range(len(b.variants))] for b in blocks]
        compactor = Compactor(
            (variant.remainder, block.remainder[rows])
            for block, numbers in zip(blocks, chosen, strict=True)
            for variant, rows in zip(block.variants, numbers, strict=True)
        )
        for block, numbers in zip(blocks, chosen, strict=True):
            for variant, rows in zip(block.variants, numbers, strict=True):
                block.remainder[rows] = compactor.rows(variant.remainder, block.remainder[rows])
            block.variants = tuple(replace(v, remainder=compactor.trail(v.remainder)) for v in block.variants)
        return blocks

    def relaxed(self) -> Iterator[Rows]:
        """For every choice of unit, stores and spatial loops, the rows that hold all stores but backing ones, anywhere.

        The rows fit the memories without their shared tensors and stand below no fused loop: a relaxation.
        """
        for option in self.signature.units:
            for expansion in self._batches(option, fused=False):
                self.checkpoint()
                yield relaxed(expansion)

    # ---- rows below fused parts -----------------------------------------------------------------------------------

    def _batches(self, option: UnitOption, fused: bool) -> Iterator[Expansion]:
        """Expansions for the choices that can stay within the limits: one for all, if nothing asks for several."""
        spreads = self.classes.spreads(option)
        if not spreads:
            return
        numbers, good = self._good(option)
        left = len(option.held) * len(spreads) - int(good.sum())
        self.counts["choices of stores"] = self.counts.get("choices of stores", 0) + left
        room = Room(self.setting.capacities[: len(option.above)], self.setting.tracked)
        rules = self.setting.rules
        for mine, suited in self._suited(option):
            mine, at = np.intersect1d(mine, numbers, assume_unique=True, return_indices=True)[::2]
            wanted = good[at] & suited
            kept = np.flatnonzero(wanted.any(axis=0))
            for chosen in self._together(option, wanted, kept):
                self.checkpoint()
                helds = tuple(option.held[i] for i in mine[wanted[:, chosen].any(axis=1)])
                if helds:
                    for some in (helds,) if len(links(helds)) <= 60 else ((held,) for held in helds):
                        levels = self._levels(option, chosen, some, room, fused)
                        yield Expansion(levels, Pruner(levels, self.limits, rules, self.counts))

    def _together(self, option: UnitOption, wanted: NDArray[np.bool_], kept: IntArray) -> Iterator[IntArray]:
        """Spatial choices whose rows are made together: all of them; where a window is followed along its loops those
        that spread its variables alike above every memory, and go with much the same stores."""
        followed = [tensor for tensor in self.signature.tensors if tensor.slides] if self.setting.rules.sliding else []
        if not followed or len(kept) < 2:
            yield kept
            return
        if any((*self.classes.uneven, *self.classes.windows)):
            yield from np.split(kept, len(kept))
            return
        dims = sorted({self.classes.of[v] for tensor in followed for v in tensor.complex_variables})
        spreads = self.classes.instances(option)[kept][:, :, dims]
        axes = [axis.fanout for axis in self.signature.visible(option.fanouts)]
        above = [spreads[:, [fanout < top for fanout in axes]].prod(axis=1) for top in (*option.above, option.fanouts)]
        for alike in _alike(pack(np.concatenate(above, axis=1))):
            yield from _gathered(wanted, kept[alike])

    @once_each
    def _good(self, option: UnitOption) -> tuple[IntArray, NDArray[np.bool_]]:
        """(numbers of choices of stores, mask of their spatial choices) that can stay within the limits."""
        wanted, numbers = self.wanted.get(option.unit), np.arange(len(option.held))
        if self.setting.rules.limits:
            numbers = np.flatnonzero(every(self.floors.promised(option) <= self.limits))
        width, kept, rows = len(self.classes.spreads(option)), list[int](), list[NDArray[np.bool_]]()
        for i in numbers.tolist():
            row = np.ones(width, bool) if wanted is None else wanted[i].copy()
            if self.setting.rules.limits and row.any():
                self._within_limits(option, option.held[i], row)
            if row.any():
                kept.append(i)
                rows.append(row)
        return np.array(kept, np.int64), np.array(rows, bool).reshape(len(rows), width)

    def _within_limits(self, option: UnitOption, held: Placement, good: NDArray[np.bool_]) -> None:
        """Strike out the spatial choices with which a choice of stores costs more than the limits."""
        self.checkpoint()
        good &= every(self.floors.of(option, held) <= self.limits)
        kept = np.flatnonzero(good)
        if self.floors.closer and len(kept):
            good[kept] = every(self.floors.close(option, held, kept) <= self.limits)
        if self.setting.rules.heuristic and any(self.classes.uneven):
            good &= self._promising(option, held, good)

    @property
    def choices(self) -> int:
        """How many of them can stay within the limits."""
        return sum(int(self._good(option)[1].sum()) for option in self.signature.units)

    def spread(self) -> int:
        """How many spatial choices can stay within the limits."""
        return sum(int(self._good(option)[1].any(axis=0).sum()) for option in self.signature.units)

    def _levels(
        self, option: UnitOption, chosen: IntArray, helds: tuple[Placement, ...], room: Room, fused: bool
    ) -> Levels:
        """The levels of some choices of stores and spatial loops; the last small ones are remembered with the classes,
        as they depend on no limit."""
        setting, classes = self.setting, self.classes
        asked = id(setting.machine), setting.columns, setting.slots, setting.rules.deferral
        key = asked, option, chosen.tobytes(), helds, room, fused
        known: dict[object, Levels] = classes.remembered.setdefault("levels", {})
        if key in known:
            return known[key]
        spreads = classes.spreads(option)
        prices = Prices(self.floors.links(option, tuple(spreads[i] for i in chosen)), setting.slots)
        levels = Levels(prices, helds, room, fused, setting.rules.deferral)
        if levels.size <= SMALL:
            if sum(one.size for one in known.values()) + levels.size > REMEMBERED:
                known.clear()
            known[key] = levels
        return levels

    def _promising(self, option: UnitOption, held: Placement, good: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the few good spatial choices with the least floors: enough for a dive."""
        if int(good.sum()) <= DIVED:
            return good
        values = np.where(good, weighed(self.floors.of(option, held), self.limits)[:, 0], np.inf)
        return np.asarray(values <= np.partition(values, DIVED - 1)[DIVED - 1])

    def _suited(self, option: UnitOption) -> Iterator[tuple[IntArray, NDArray[np.bool_]]]:
        """Numbers of choices of stores that go with the same spatial choices, and the mask of these."""
        every = np.arange(len(option.held))
        if not self.signature.copy and not any(tensor.housed for tensor in self.signature.tensors):
            yield every, np.ones(len(self.classes.spreads(option)), bool)
            return
        behind = np.array([self.classes.behind(option, held) for held in option.held])
        numbers = np.unique(behind)
        masks = np.array([self.classes.suited(option, int(number)) for number in numbers])
        for mask in np.unique(masks, axis=0):
            yield every[np.isin(behind, numbers[(masks == mask).all(axis=1)])], mask

    def _remainders(self, option: UnitOption, expansion: Expansion) -> Iterator[tuple[Place, int, Rows]]:
        """For every place of a fused part, the complete rows below it."""
        contexts, memories = expansion.levels.contexts, range(expansion.levels.memories)
        ends = {memory: found for memory in memories if (found := self._ends(contexts, memory))}
        table = sweep(expansion, min(ends)) if ends else None
        for memory, prefixes in ends.items():
            assert table is not None
            levels = contexts.levels[memory]
            rows = union(table.levels[memory]) if memory else table.bases[0]
            rows = rows.take(np.flatnonzero(np.isin(rows.marks[:, CONTEXT], list(prefixes))))
            if not len(rows):
                continue
            rows = closed(expansion, rows, memory)
            for (context, choice, placed), part in _split(rows):
                own = levels[context].own if memory else frozenset()
                fused = frozenset(t for t in own if not placed >> t & 1)
                upper = expansion.prices.links.upper(choice, option.above[memory])
                further = expansion.prices.links.further[memory][choice]
                backs = not memory or levels[context].backs
                for prefix in prefixes[context]:
                    if backs or self._may_keep(option, prefix, upper, fused):
                        roomy = self._beside(expansion.levels, part, (memory, prefix, upper, fused, further))
                        if len(roomy):
                            yield (memory, prefix, upper, fused, further), choice, roomy

    def _beside(self, levels: Levels, rows: Rows, place: Place) -> Rows:
        """The rows with room beside what the fused part stores; the rows themselves, if all have."""
        memory, held, upper, fused, _ = place
        good, extents = np.ones(len(rows), bool), None
        for m in range(1, memory + 1):
            backed = frozenset(t for t in self.signature.fusable if backing(held, t) == m)
            own = [(t, False) for t in (fused if m == memory else held[m] - backed)]
            stores = [(t, b) for t, b in own + [(t, True) for t in backed] if not self.signature.tensors[t].parts]
            if stores and m in levels.limited and m in self.setting.tracked:
                extents = self._least_extents(rows.x, held, upper) if extents is None else extents
                taken = rows.occupied[:, levels.limited.index(m)].copy()
                for t, backs in stores:
                    taken += levels.prices.tile_bits(t, extents, m, backs)
                good &= taken <= levels.capacity(m)
        if good.all():
            return rows
        self.counts["capacity"] = self.counts.get("capacity", 0) + int((~good).sum())
        return rows.take(np.flatnonzero(good))

    def _least_extents(self, x: IntArray, held: Placement, upper: SpatialChoice) -> IntArray:
        """Extents of tiles in a fused part above rows of extents x, no more than any has there: no smaller than the
        rows', and whole but for spatial loops where no tensor that is backed lets loops pass. Variables of windows have
        one element, as windows need not be wider where a tile is larger."""
        tensors, members = self.signature.tensors, self.classes.members
        backed = [tensors[t] for t in self.signature.fusable if tensors[t].intermediate and backing(held, t) > 0]
        sliding = {v for tensor in tensors for v in tensor.complex_variables}
        x = x.copy()
        for d, variables in enumerate(members):
            if sliding & set(variables):
                x[:, d] = 1
            elif all(tensor.fused_rank(v) is None for tensor in backed for v in variables):
                x[:, d] = np.maximum(x[:, d], self.classes.extents[d] // prod(row[d] for row in upper))
        return x

    def _may_keep(self, option: UnitOption, held: Placement, upper: SpatialChoice, fused: frozenset[int]) -> bool:
        """True if own stores in the last memory of `held`, which backs nothing, may keep their tiles above a split."""
        return keeps_tiles(self.classes, held, fused) and not spread_between(self.classes, option, held, upper)

    @staticmethod
    def _ends(contexts: StoreContexts, memory: int) -> dict[int, list[Placement]]:
        """The levels of a memory (of the outermost one the bases) above which a fused part may begin: those with a
        backing store, or with own stores that may keep their tiles above a split.

        By number; each with the choices of held tensors down to it that meet it.
        """
        prefixes: dict[int, list[Placement]] = {}
        for prefix, number in (contexts.level_of if memory else contexts.base_of).items():
            if len(prefix) == memory + 1:
                prefixes.setdefault(number, []).append(prefix)
        levels = contexts.levels[memory]
        backing = {n: found for n, found in prefixes.items() if not memory or levels[n].backs or levels[n].own}
        inside = {n: levels[n].inside if memory else n for n in backing}
        return {n: found for n, found in backing.items() if contexts.wanted(memory, inside[n])}

    def _united(self, parts: list[tuple[Expansion, int, Rows]], memory: int) -> Remainder:
        expansion, choice, first = parts[0]
        pruner = expansion.pruner
        coming = pruner.coming(first, memory)  # all rows of a place meet the same fused parts
        coming = None if coming is None else coming.first()
        width = max(rows.marks.shape[1] for _, _, rows in parts)  # not every spatial choice cuts windows unevenly
        rows = union([wrapped(rows, width) for _, _, rows in parts])
        if len(parts) > 1:
            rows = pruner.front(rows, (), coming)
        if len(rows) > MANY:
            self.checkpoint()
        below = Below(pruner, self._lattice, rows, coming)
        return Remainder(expansion.levels, choice, below, tuple(e.prices.links for e, _, _ in parts))

    def _group(self, option: UnitOption, place: Place, remainder: Remainder) -> None:
        memory, held, upper, fused, _ = place
        spread_over = tuple(tuple(n > 1 for n in row) for row in upper)
        key = option.above, option.fanouts, memory, held, fused, spread_over
        if key not in self.stacks:
            self.stacks[key] = self._stacked(option, place)
        screen = Screen(self.classes, remainder.levels, remainder.choice, held, self._bits)
        spare = self.limits - remainder.below.least if self.setting.rules.limits else None
        empty: set[tuple[object, ...]] = set()
        for structure, own in watched(self.stacks[key], self.checkpoint):
            if screen.may_fit(structure, own) and (spare is None or screen.within(spare, structure, own)):
                like = in_any_order(structure, own)
                if like not in empty and not self._fill(structure, own, option, held, remainder):
                    empty.add(like)

    def _stacked(self, option: UnitOption, place: Place) -> tuple[tuple[FusedTemplate, tuple[OwnStore, ...]], ...]:
        """The structures of a fused part: the same for all spatial choices over the same classes."""
        memory, held, upper, fused, _ = place
        rules = self.setting.rules
        stacker = Stacker(
            classes=self.classes,
            option=option,
            held=held,
            spread=upper,
            memory=memory,
            fused=fused,
            max_fused_loops=self.setting.max_fused_loops,
            per_rank=self.setting.per_rank,
            lowering=self._lowering if rules.lowering and not rules.checked else frozenset(),
            welcome={t: frozenset(keys) for t, keys in self.allowed.items()},
        )
        return tuple(watched(stacker.structures(), self.checkpoint))

    @property
    def _lowering(self) -> frozenset[int]:
        """The memories whose own stores may as well stand below a loop that moves their tile as above it."""
        return frozenset(range(len(self.setting.slots)))

    # ---- rows ---------------------------------------------------------------------------------------------------

    def _fill(
        self,
        structure: FusedTemplate,
        own: tuple[OwnStore, ...],
        option: UnitOption,
        held: Placement,
        remainder: Remainder,
    ) -> bool:
        """Add the rows of a structure; False if it has none for a reason that no order of its loops changes."""
        levels, below, prices = remainder.levels, remainder.below, remainder.levels.prices
        self.checkpoint()  # where ranks are cut several times a grid is filtered from one that is much larger
        grid = self._grids.of(structure.loops, prices.links.spreads[remainder.choice], below.suited)
        size = len(grid)
        if size > LARGE:
            self.checkpoint()
            grid = grid.take(np.flatnonzero(self._wanted(structure, grid)))
        index = np.flatnonzero(self._wanted(structure, grid))
        refused = len(index) < size
        if len(index):
            index = index[self._room(levels, structure, own, grid)[index]]
        if not len(index):
            return refused
        fixed, twice = np.zeros((len(index), len(self.setting.columns))), np.zeros(len(index), bool)
        for s in own:
            parent = max((m for m in range(s.memory) if s.tensor in held[m]), default=None)
            if parent is not None:
                if not s.joins:
                    fixed += grid.moves(prices, remainder.choice, s, parent)[index]
                twice |= grid.again(prices, remainder.choice, s)[index]
        index, fixed = index[~twice], fixed[~twice]
        if self.setting.rules.limits:
            index, fixed = self._within(fixed + below.least, index, fixed)
        if not len(index):
            return refused
        which, rows = below.match(grid.below(len(structure.loops))[index])
        cost = below.rows.cost[rows] + fixed[which]
        if self.setting.rules.limits:
            which, rows, cost = self._within(cost, which, rows, cost)
        if not len(which):
            return refused
        which = index[which]
        variant = Origin(option, own, below.rows.trail, remainder.links)
        block = PmappingGroup(
            structure,
            grid.tiles[which],
            self._settled(cost, structure, variant),
            self._reserved(levels, structure, own, grid, below, which, rows),
            np.zeros(len(which), np.int64),
            rows,
            (variant,),
        )
        self.found.setdefault(structure, []).append(block if len(block) < MANY else self._reduce([block]))
        return True

    def _within(self, cost: FloatArray, *parts: NDArray[Any]) -> list[NDArray[Any]]:
        """The entries of some arrays whose cost is within the limits."""
        kept = np.flatnonzero(every(cost <= self.limits))
        self.counts["slack"] = self.counts.get("slack", 0) + len(cost) - len(kept)
        return [part[kept] for part in parts]

    def _settled(self, cost: FloatArray, structure: FusedTemplate, variant: Origin) -> FloatArray:
        """The columns by which complete rows compete and are joined."""
        return self.setting.settled(cost)

    def _wanted(self, structure: FusedTemplate, grid: Tilings) -> NDArray[np.bool_]:
        """Mask of the tiles that every other user of the shared tensors has."""
        good = np.ones(len(grid), bool)
        for t, keys in self.allowed.items():
            shape = structure.shape(t, self.signature.ranks[t])
            if shape[1]:
                make = partial(self._known, grid.tiles, t, shape, keys[shape])
                good = good & np.asarray(grid.once(("wanted", t, shape[0], len(shape[1])), make), bool)
        for t, keys in self.counterparts.items():
            shape = structure.shape(t, self.signature.ranks[t])
            if shape not in keys:
                good = np.zeros(len(grid), bool)
            elif shape[1]:
                make = partial(self._represented, grid, structure, t, shape, keys[shape])
                good = good & np.asarray(grid.once(("represented", t, shape[0], len(shape[1])), make), bool)
        if self.counterparts and not good.all():
            self.counts["relaxed rows"] = self.counts.get("relaxed rows", 0) + int((~good).sum())
        return good

    def _represented(
        self, grid: Tilings, structure: FusedTemplate, tensor: int, shape: Shape, known: IntArray
    ) -> NDArray[np.bool_]:
        """Mask of the tiles whose smallest ones of as many trips are known."""
        extents = np.array([self.signature.extents[loop.variable] for loop in structure.loops[: len(shape[1])]])
        return self._known(ceil(extents, ceil(extents, grid.tiles[:, : len(shape[1])])), tensor, shape, known)

    def _known(self, tiles: IntArray, tensor: int, shape: Shape, known: IntArray) -> NDArray[np.bool_]:
        """Mask of the tiles that are known."""
        numbers = numbered(tiles, shape, self.signature.tensors[tensor].shape)
        return np.asarray(known[np.minimum(np.searchsorted(known, numbers), len(known) - 1)] == numbers)

    def _room(
        self, levels: Levels, structure: FusedTemplate, own: tuple[OwnStore, ...], grid: Tilings
    ) -> NDArray[np.bool_]:
        """Mask of the tiles whose backed tiles and own stores alone fit each memory and keep the mapspace's limits."""
        good = np.ones(len(grid), bool)
        filled: dict[int, IntArray] = {}
        met = frozenset((s.tensor, s.memory) for s in own if s.joins)  # as wide as their first reader has them
        stores = [*structure.backings, *((s.tensor, s.memory, s.depth) for s in own)]
        for i, (t, m, depth) in enumerate(stores):
            if m in levels.limited and (t, m) not in met:
                bits = grid.bits(levels.prices, t, m, depth, i < len(structure.backings))
                filled[m] = filled[m] + bits if m in filled else bits
            if self.classes.pinned:
                good &= levels.prices.allowed(m, t, grid.below(depth))
        for t, v, numbers in self.signature.loops:
            for above in (d for b, m, d in structure.backings if b == t and m):
                mine = [i for i, x in enumerate(structure.loops[:above]) if x.variable == v and x.axis is None]
                good &= accepted(numbers, grid.trips[:, mine].prod(axis=1, initial=1))
        for m, bits in filled.items():
            good &= bits <= levels.capacity(m)
        return good

    def _reserved(
        self,
        levels: Levels,
        structure: FusedTemplate,
        own: tuple[OwnStore, ...],
        grid: Tilings,
        below: Below,
        which: IntArray,
        rows: IntArray,
    ) -> IntArray:
        """Bits that own stores reserve per tracked memory and number of temporal loops above them; the last for all
        that is local to the Einsum."""
        tracked = self.setting.tracked
        reserved = np.zeros((len(which), len(tracked), structure.depth + 1), np.int64)
        if 0 in tracked:
            whole = np.array([self.classes.extents], np.int64)
            alone = [t for t, tensor in enumerate(self.signature.tensors) if not (tensor.shared or tensor.home)]
            reserved[:, tracked.index(0), 0] += sum(int(levels.prices.tile_bits(t, whole, 0, True)[0]) for t in alone)
        for s in own:
            if s.memory in tracked and not s.part:
                bits = grid.bits(levels.prices, s.tensor, s.memory, s.depth, False)
                alive = structure.temporal(s.over[0] if s.over else s.depth)
                reserved[:, tracked.index(s.memory), alive] += bits[which]
        for i, m in enumerate(tracked):
            if m in levels.limited:
                reserved[:, i, -1] += below.rows.occupied[rows, levels.limited.index(m)]
        return reserved

    def _reduce(self, parts: list[PmappingGroup]) -> PmappingGroup:
        """One block of all parts, without rows that another with the same tiles beats."""
        block = parts[0] if len(parts) == 1 else PmappingGroup.united(parts, "variant", "variants")
        if not self.setting.rules.dominance or len(block) < 2:
            return block
        return block.take(pareto(block.tiles, block.cost, block.own.reshape(len(block), -1)))


def _split(rows: Rows) -> Iterator[tuple[tuple[int, int, int], Rows]]:
    """Rows by (context, spatial choice, stores placed)."""
    marks = rows.marks[:, [CONTEXT, SPREAD, PLACED]]
    for part in _alike(pack(marks)):
        if len(part):
            context, choice, placed = (int(n) for n in marks[part[0]])
            yield (context, choice, placed), rows.take(part)

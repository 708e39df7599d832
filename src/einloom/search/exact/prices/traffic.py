"""What a store moves and holds when it is placed at given extents, for whole arrays of rows.

Comes in: link prices, extents per class, and for each row its tensor and spatial choice. Goes out: elements moved, bits
occupied. Plain ranks are products of `cost.formulas.terms`; windows are listed by `cost.formulas.windows`, once for
each distinct tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from itertools import product
from math import prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ....cost.formulas import terms, windows
from ....cost.formulas.places import Step, inside, ways
from ....mapspace.divisors import divisors
from ....mapspace.limits.data import Numbers
from ....once import once_each
from ..einsums.spatial import RankClasses
from ..numerics.multiples import ragged_ranges
from ..numerics.narrow import multiplied, slices
from ..numerics.pareto import FloatArray, IntArray, pack
from ..numerics.uneven import balanced, ceil, filled, largest_tile, met, smallest_tiles
from .columns import LinkCharge, LinkPrices

Slide = tuple[int, int, int]
Counted = tuple[str, int, int, Slide | None, tuple[int, ...]]
FEW = 8  # values that are quicker compared one by one


def accepted(numbers: Numbers, found: IntArray) -> NDArray[np.bool_]:
    """Mask of the numbers that are allowed."""
    if len(numbers.values) > FEW:
        return np.asarray(np.isin(found, numbers.values))
    if numbers.values:
        return np.asarray(np.logical_or.reduce([found == value for value in numbers.values]))
    least, most = numbers.bounds
    return np.asarray((found >= least) & (found <= most))


Share = tuple[tuple[Step, ...], IntArray]  # steps to all of a variable that an instance has; how far each one's are off


def even_shares(extent: int, instances: int) -> list[Share]:
    """What each of so many instances may have of a variable, for every number of temporal trips outside them."""
    found: list[Share] = []
    for trips in divisors(extent // instances):
        tile = extent // trips // instances
        found.append((((1, tile), (extent // trips, trips)), np.arange(instances) * tile))
    return found


def _shares(extent: int, instances: int) -> list[list[Share]]:
    """Kinds of instances of a variable, each with what they may have: one that is cut evenly, else the last apart."""
    if extent % instances == 0:
        return [even_shares(extent, instances)]
    tile = -(-extent // instances)
    full, last = np.arange(instances - 1) * tile, np.array([(instances - 1) * tile])
    return [[(((1, tile),), full)], [(((1, extent - (instances - 1) * tile),), last)]]


def _distinct(codes: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """(the codes that occur, ascending; the place of each row's among them). most: codes are below it."""
    if most > len(codes):
        return np.unique(codes, return_inverse=True)
    found = np.flatnonzero(np.bincount(codes))
    place = np.zeros(most, np.int64)
    place[found] = np.arange(len(found))
    return found, place[codes]


class Prices:
    """Prices of moves and room of tiles of one Einsum under many spatial choices. slots: tiles' room per memory (2 if
    double-buffered)."""

    def __init__(self, links: LinkPrices, slots: tuple[int, ...]) -> None:
        self.links = links
        self.classes: RankClasses = links.classes
        self.slots = slots
        self.whole = np.array(self.classes.extents, np.int64)
        self.relevant = np.array(self.classes.relevance, bool).reshape(len(self.classes.relevance), len(self.whole))
        self.uneven = np.array(self.classes.uneven, bool)

    @property
    def width(self) -> int:
        """How many columns a price has."""
        return len(self.links.columns)

    def visits(self, tensor: IntArray | int, x: IntArray, spread: IntArray, memory: int | None) -> IntArray:
        """Temporal visits that re-read the tensor: product over the classes that it lacks.

        x: extents where the first loop that counts stands, at `memory` (None: the leaf).
        """
        instances = self.links.instances[self.links.place(memory)][spread]
        if self.uneven.any():
            trips = terms.trips_of(terms.trips_of(self.whole, instances), x)
        else:
            trips = terms.perfect_trips(self.whole, x, instances)
        return multiplied(np.where(self.relevant[tensor], 1, trips))

    def allowed(self, memory: int, tensor: IntArray | int, x: IntArray) -> NDArray[np.bool_]:
        """Mask of tiles of the tensors (one for all rows or one each) in `memory` that the mapspace allows."""
        good = np.ones(len(x), bool)
        for m, t, v, sizes in self.classes.signature.tiles:
            if m == memory:
                good &= ~np.equal(tensor, t) | accepted(sizes, x[:, self.classes.of[v]])
        return good

    def again(
        self, memory: int, tensor: IntArray | int, x: IntArray, spread: IntArray, at: int | None = None
    ) -> NDArray[np.bool_]:
        """Mask of tiles that come to the memory more than once where the mapspace forbids that, as in `moved`."""
        asked = np.zeros(len(x), bool)
        for m, t in self.classes.signature.once:
            if m == memory:
                asked |= np.equal(tensor, t)
        if not asked.any():
            return asked
        return asked & (self.visits(tensor, x, spread, memory if at is None else at) > 1)

    @cached_property
    def sliding(self) -> int | None:
        """The tensor with windows that is followed along its sliding loop, if there is one."""
        return next((t for t, tensor in enumerate(self.classes.signature.tensors) if tensor.slides), None)

    def elements(self, tensor: int) -> int:
        """Product of the extents of all variables that index the tensor: its elements if every rank is plain."""
        signature = self.classes.signature
        return prod(signature.extents[v] for rank in signature.tensors[tensor].ranks for v, _ in rank)

    @cached_property
    def every_elements(self) -> IntArray:
        """`elements` of each tensor."""
        return np.array([self.elements(t) for t in range(len(self.classes.signature.tensors))], np.int64)

    @cached_property
    def compound(self) -> tuple[int, ...]:
        """The tensors with a rank that is not one plain variable."""
        tensors = self.classes.signature.tensors
        return tuple(t for t, s in enumerate(tensors) if not all(s.simple(r) for r in range(len(s.ranks))))

    def moved(
        self,
        tensor: IntArray | int,
        x: IntArray,
        spread: IntArray,
        memory: int | None,
        slide: Slide | None = None,
        at: int | None = None,
    ) -> IntArray:
        """Elements of the tensors that their visits move, over all instances of their own classes.

        tensor: one for all rows or one each. slide: next loop of the sliding tensor (class, trips, instances inside).
        at: the memory at which the first loop that counts stands, if the store keeps its tile up to there.
        """
        total = self.visits(tensor, x, spread, memory if at is None else at)
        below = self._at_store(x, spread, memory, at)
        windowed = [t for t in self.compound if np.any(np.equal(tensor, t))]
        if not windowed:
            return np.asarray(total * self.every_elements[tensor])
        factor = np.broadcast_to(self.every_elements[tensor], len(x)).copy()
        for t in windowed:
            mine = np.flatnonzero(np.broadcast_to(np.equal(tensor, t), len(x)))
            factor[mine] = self._pieces(t, below[mine], slide)
        return np.asarray(total * factor)

    def more(
        self,
        tensor: int,
        x: IntArray,
        spread: IntArray,
        memory: int | None,
        slide: Slide | None = None,
        at: int | None = None,
    ) -> IntArray | None:
        """Elements besides those of `moved` that count in each column [rows, columns]: of padded ranks that are spread
        the busiest instance is one that reaches no padding. None: nowhere."""
        busier = self.links.busier(tensor)
        codes = None if busier is None else busier[spread]
        if codes is None or not codes.any():
            return None
        below = self._at_store(x, spread, memory, at)
        visits = self.visits(tensor, x, spread, memory if at is None else at)
        found, clipped = np.zeros_like(codes), self._pieces(tensor, below, slide)
        for code in np.unique(codes[codes > 0]).tolist():
            besides = visits * (self._pieces(tensor, below, slide, whole=code) - clipped)
            found += np.where(codes == code, besides[:, None], 0)
        return found

    @cached_property
    def padded(self) -> tuple[int, ...]:
        """The tensors of which instances have more or less to move, for padding."""
        return tuple(t for t in range(len(self.relevant)) if self.links.busier(t) is not None)

    def _at_store(self, x: IntArray, spread: IntArray, memory: int | None, at: int | None) -> IntArray:
        """Extents at the store, given those at `at` with only spatial loops and loops it lacks in between."""
        if at is None or at == memory:
            return x
        instances = self.links.instances
        return ceil(x, instances[self.links.place(memory)][spread] // instances[at][spread])

    def pieces(self, tensor: int, x: IntArray, slide: Slide | None = None) -> IntArray:
        """Elements of all tiles of a tensor at extents x, visits apart."""
        if tensor in self.compound:
            return self._pieces(tensor, x, slide)
        return np.full(len(x), self.elements(tensor), np.int64)

    def of_busiest(
        self, part: LinkCharge, tensor: int, pieces: IntArray, x: IntArray, spread: IntArray, slide: Slide | None
    ) -> IntArray:
        """`pieces`, such that the mean over instances is what the busiest one has, where windows are cut unevenly or
        are padded."""
        dims = list(self.classes.halos[tensor])
        if not part.busiest or not (dims or self.classes.beyond[tensor]):
            return pieces
        instances, whole = self.links.between(0, part.top)[:, dims], self.whole[dims]
        uneven, codes = whole % instances > 0, self.links.unpadded(tensor, part.top)
        shares, found = np.where(uneven, terms.trips_of(whole, instances), whole), pieces.copy()
        kinds = np.concatenate([shares, codes[:, None]], axis=1)
        for kind in np.unique(kinds[np.unique(spread)], axis=0):
            rows, share, code = np.flatnonzero((kinds[spread] == kind).all(axis=1)), kind[:-1], int(kind[-1])
            if code or (share != whole).any():
                mine = dict(zip(dims, share.tolist(), strict=True))
                found[rows] = self._pieces(tensor, x[rows], slide, mine, code)
        return np.asarray(found * np.where(uneven, instances, 1).prod(axis=1)[spread])

    def _pieces(
        self,
        tensor: int,
        x: IntArray,
        slide: Slide | None,
        shares: Mapping[int, int] = MappingProxyType({}),
        whole: int = 0,
    ) -> IntArray:
        """Elements of a tensor with windows over all tiles, visits apart. shares: what there is of some classes.
        whole: a bit for each of `RankClasses.beyond` whose windows are not cut at the declared shape."""
        signature = self.classes.signature.tensors[tensor]
        beyond = self.classes.beyond[tensor]
        total = np.ones(len(x), np.int64)
        for rank, expression in enumerate(signature.ranks):
            if signature.simple(rank):
                total = total * self.classes.signature.extents[expression[0][0]]
            else:
                mine = tuple(shares.get(self.classes.of[v], self.classes.signature.extents[v]) for v, _ in expression)
                uncut = rank in beyond and bool(whole >> beyond.index(rank) & 1)
                count = partial(self._window_sum, mine, uncut)
                total = total * self._by_window(("uncut" if uncut else "moved", tensor, rank, slide, mine), x, count)
        return total

    def _by_window(self, what: Counted, x: IntArray, count: Callable[..., int]) -> IntArray:
        """`count` of a window rank for every row; equal extents are computed once, and remembered with the classes."""
        _, tensor, rank, slide, _ = what
        expression = self.classes.signature.tensors[tensor].ranks[rank]
        dims = [self.classes.of[v] for v, _ in expression]
        shape = tuple(int(self.whole[d]) + 1 for d in dims)
        codes = np.ravel_multi_index(tuple(x[:, d] for d in dims), shape) if dims else np.zeros(len(x), np.int64)
        which, inverse = _distinct(codes, prod(shape))
        known, found = self.classes.counted, np.zeros(len(which), np.int64)
        for i, code in enumerate(which):
            row = tuple(map(int, np.unravel_index(code, shape)))
            if (what, row) not in known:
                self.classes.checkpoint()
                known[what, row] = count(tensor, rank, row, slide)
            found[i] = known[what, row]
        return np.asarray(found[inverse])

    def _window_sum(
        self,
        extents: tuple[int, ...],
        uncut: bool,
        tensor: int,
        rank: int,
        tiles: tuple[int, ...],
        slide: Slide | None,
    ) -> int:
        signature = self.classes.signature.tensors[tensor]
        chains = []
        sliding_place = None
        for k, ((v, coefficient), extent, tile) in enumerate(zip(signature.ranks[rank], extents, tiles, strict=True)):
            d = self.classes.of[v]
            chain = []
            if slide is not None and d == slide[0]:
                step = tile * slide[2]
                chain.append((2 * k, terms.LoopCut(step * slide[1], trips=-(-extent // (step * slide[1])))))
                chain.append((100, terms.LoopCut(step, trips=slide[1])))
                sliding_place = 100
                chain.append((101 + k, terms.LoopCut(tile, trips=-(-step // tile))))
            else:
                chain.append((2 * k, terms.LoopCut(tile, trips=-(-extent // tile))))
            chains.append((coefficient, extent, tuple(chain)))
        if uncut:
            use = windows.RankUse(tuple(chains), 0)
            return windows.moved((use,), 1 + sum(c * (n - 1) for c, n, _ in chains), sliding_place)
        use = windows.RankUse(tuple(chains), signature.constants[rank])
        return windows.moved((use,), signature.shape[rank], sliding_place)

    def tile_bits(self, tensor: IntArray | int, x: IntArray, memory: int, backing: bool = False) -> IntArray:
        """Bits that a tile occupies in one instance of the memory. tensor: one for all rows or one each.

        backing: it is the tile of a backing store, as wide as the tensor's first user has it.
        """
        if isinstance(tensor, int):
            return self._tile_bits(tensor, x, memory, backing)
        total = np.zeros(len(x), np.int64)
        for t in range(len(self.relevant)):
            mine = np.flatnonzero(tensor == t)
            if len(mine):
                total[mine] = self._tile_bits(t, x.take(mine, axis=0), memory, backing)
        return total

    @cached_property
    def _factors(self) -> tuple[tuple[int, ...], ...]:
        """Per tensor the classes whose extents multiply to a tile's elements, windows apart."""
        found = []
        for signature in self.classes.signature.tensors:
            plain = [self.classes.of[e[0][0]] for r, e in enumerate(signature.ranks) if signature.simple(r)]
            merged = {d for d in plain if len(self.classes.members[d]) > 1}
            found.append((*(d for d in plain if d not in merged), *sorted(merged)))
        return tuple(found)

    def _tile_bits(self, tensor: int, x: IntArray, memory: int, backing: bool) -> IntArray:
        signature = self.classes.signature.tensors[tensor]
        first = backing or (signature.housed and signature.home == memory)
        width = signature.backed[memory] if first else signature.bits[memory]
        total = np.full(len(x), width * self.slots[memory], np.int64)
        for d in self._factors[tensor]:
            total *= x[:, d]
        if tensor in self.compound:
            for rank in range(len(signature.ranks)):
                if not signature.simple(rank):
                    total *= self._by_window(("widest", tensor, rank, None, ()), x, self._widest)
        return total

    def _widest(self, tensor: int, rank: int, tiles: tuple[int, ...], _: Slide | None) -> int:
        signature = self.classes.signature.tensors[tensor]
        reach, size, steps = 1, signature.shape[rank], []
        for (v, coefficient), tile in zip(signature.ranks[rank], tiles, strict=True):
            reach += coefficient * (tile - 1)
            steps.append((coefficient * tile, -(-self.classes.signature.extents[v] // tile)))
        starts = signature.constants[rank] + np.flatnonzero(ways(steps))
        return int(np.maximum(np.minimum(starts + reach, size) - np.maximum(starts, 0), 0).max())

    def inside(self, d: int, memory: int) -> int:
        """Instances along class d between a store and the nearest temporal loop above, those of the fanouts above it,
        under the first spatial choice."""
        here = self.links.above[memory]
        outer = max((self.links.above[m] for m in range(memory) if self.links.above[m] < here), default=here)
        if outer == here:
            return 1
        m = self.links.above.index(outer)
        return int(self.links.instances[memory][0, d] // self.links.instances[m][0, d])

    def together(self, tensor: int, parent: int, child: int) -> tuple[FloatArray, FloatArray]:
        """(price per element, cost of first results that are not read back); with uneven tiles, as if no instance
        shared anything."""
        if not self.uneven.any():
            return self.links.link(tensor, parent, child)
        parts, skipped = self.links.parts(tensor, parent, child)
        return sum((part.price for part in parts), np.zeros_like(skipped)), skipped

    def charged(
        self,
        place: tuple[int, int, int | None],
        x: IntArray,
        spread: IntArray,
        slide: Slide | None = None,
        at: int | None = None,
        rims: IntArray | None = None,
    ) -> FloatArray:
        """What a store (tensor, its parent's memory, its own; None: the leaf) at extents x costs [rows, columns].

        at: as in `moved`. rims: as `Levels.rim` says [rows, memories, classes].
        """
        tensor, parent, child = place
        if not self.uneven.any():
            price, skipped = self.links.link(tensor, parent, child)
            moved = self.moved(tensor, x, spread, child, slide, at)[:, None]
            more = self.more(tensor, x, spread, child, slide, at)
            moved = moved if more is None else moved + more
            return np.asarray(moved * price[spread] - self.elements(tensor) * skipped[spread])
        parts, skipped = self.links.parts(tensor, parent, child)
        pieces = self.pieces(tensor, self._at_store(x, spread, child, at), slide)
        cost = -self.elements(tensor) * skipped[spread]
        for part in parts:
            mine = self.of_busiest(part, tensor, pieces, self._at_store(x, spread, child, at), spread, slide)
            count = mine.astype(np.float64)
            for d in np.flatnonzero(~self.relevant[tensor]).tolist():
                count = count * self._entries(part, d, x[:, d], spread, child, at, rims)
            cost = cost + part.amount(count, self.elements(tensor), spread)[:, None] * part.price[spread]
        return np.asarray(cost)

    def _entries(
        self,
        part: LinkCharge,
        d: int,
        x: IntArray,
        spread: IntArray,
        child: int | None,
        at: int | None,
        rims: IntArray | None,
    ) -> IntArray:
        """How often loops over a class that the tensor lacks enter its tile, of the instances that count apart."""
        if at is None or at == child or child is None:
            return np.asarray(terms.trips_of(part.share(self.whole, d, 0, self.links.fanouts)[spread], x))
        # deferral: the tile stays over the loops up to `at`, below which spatial loops share what is left
        top, pricing = self.links.above[at], self.links
        if self.classes.integer and self.uneven[d]:  # the first tile at `at` is full; at least one entry for each other
            first = pricing.beginning(part, d, top, pricing.above[child])[spread]
            return np.asarray(terms.trips_of(part.share(self.whole, d, 0, top)[spread], x) + first - 1)
        cuts = [terms.LoopCut(x)]
        for memory in range(at, child):
            axes = pricing.crossing(pricing.above[memory], pricing.above[memory + 1], d)
            if not any((row > 1).any() for _, _, row in axes):
                continue
            assert rims is not None
            tile = np.maximum(rims[:, memory, d], 1)
            tiles = []
            for fanout, joined, row in reversed(axes):
                tiles.append((tile, part.counts_once(fanout, joined)))
                tile = tile * row[spread]
            cuts.append(terms.LoopCut(tile, once=1))
            cuts += [terms.LoopCut(one, once=int(flag)) for one, flag in reversed(tiles)]
        return np.asarray(terms.visits(part.share(self.whole, d, 0, top)[spread], tuple(cuts)))

    def shared_out(
        self, x: IntArray, spread: IntArray, d: int, memory: int, below: int
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """Extents of class d above the spatial loops between a memory and what is below; and which of them rule 2 of
        `ragged` allows: balanced, and no further spatial loop where they cut unevenly."""
        pricing, extent = self.links, int(self.whole[d])
        top = pricing.above[memory]
        outer = [row for _, _, row in pricing.crossing(0, top, d)]
        axes = [row for _, _, row in pricing.crossing(top, below, d)]
        every = pricing.instances[-1][spread, d]
        good, tile = np.ones(len(x), bool), x
        for i in reversed(range(len(axes))):
            n = axes[i][spread]
            for share in met(extent, [*outer, *axes[:i]], len(axes[i])):
                good &= (n == 1) | balanced(share[spread], n, tile)
            grown = tile * n
            over = (n > 1) & (grown > extent)
            good &= ~over | ((terms.trips_of(extent, tile) == n) & (every == n))
            tile = np.minimum(grown, extent)
        room = terms.trips_of(extent, pricing.instances[memory][spread, d])
        return tile, good & (room % tile == 0 if self.classes.windows[d] else tile <= room)

    def spanned(self, x: IntArray, spread: IntArray, d: int, memory: int, below: int) -> tuple[IntArray, IntArray]:
        """As `shared_out`, where tiles need not divide: (extents above, place of the row each belongs to), of every
        number of tiles of the class the least extent that so many instances may share."""
        extent, tiles = int(self.whole[d]), np.array(smallest_tiles(int(self.whole[d])), np.int64)
        low, other, high = (n[spread] for n in self.links.piled(self.links.above[memory], below, d))
        least = np.where(x > 1, np.minimum(low * x, other * (x - 1)), low * x) + 1
        least = np.where(high > 1, least, x)
        most = np.where(high > 1, np.minimum(high * largest_tile(extent, x), extent), x)
        first = np.searchsorted(tiles, ceil(extent, ceil(extent, np.minimum(least, extent))))
        last = np.searchsorted(tiles, ceil(extent, ceil(extent, np.minimum(most, extent))))
        widest = self.links.widest[memory][spread, d]
        row, within = ragged_ranges(np.where(least <= np.minimum(most, widest), last - first + 1, 0))
        lanes, idle = (one[spread, d][row] for one in self.links.idle[memory])
        above = filled(extent, np.maximum(tiles[first[row] + within], least[row]), lanes, idle)
        good = above <= widest[row]
        return above[good], row[good]

    def least(self, tensor: int, parent: int, child: int) -> FloatArray:
        """The least cost of a store, per choice: every element that is accessed moves once; nothing where another
        Einsum may have filled it."""
        if parent == 0 and self.classes.signature.tensors[tensor].joins:
            return np.zeros((len(self.links.spreads), len(self.links.columns)))
        if self.uneven.any():
            return self._least_uneven(tensor, parent, child)
        price, skipped = self.links.link(tensor, parent, child)
        if tensor not in self.compound:
            return np.asarray(self.elements(tensor) * (price - skipped))
        if self.classes.signature.tensors[tensor].output:
            return np.zeros_like(price)
        return np.asarray(self.accessed(tensor, child)[:, None] * price)

    def _least_uneven(self, tensor: int, parent: int, child: int) -> FloatArray:
        """The same where tiles need not divide: of the largest tile that an instance may have."""
        parts, skipped = self.links.parts(tensor, parent, child)
        if tensor in self.compound and self.classes.signature.tensors[tensor].output:
            return np.zeros_like(skipped)
        elements: IntArray | int = self.accessed(tensor, child) if tensor in self.compound else self.elements(tensor)
        cost, every = -self.elements(tensor) * skipped, np.arange(len(skipped))
        for part in parts:
            count = np.broadcast_to(elements, len(every)).astype(np.float64)
            for _, entries in self.least_entries(part, tensor, child):
                count = count * entries
            cost = cost + part.amount(count, self.elements(tensor), every)[:, None] * part.price
        return np.asarray(cost)

    def least_entries(self, part: LinkCharge, tensor: int, child: int) -> Iterator[tuple[int, IntArray]]:
        """Per class that the tensor lacks and choice how often its loops enter a tile in `child` at least, where tiles
        need not divide: the largest tile that an instance may have."""
        spread = np.arange(len(part.price))
        x = terms.trips_of(self.whole, self.links.instances[child])
        if self.classes.integer:
            x = np.where(self.uneven, np.maximum(self.links.widest[child], 1), x)
        for d in np.flatnonzero(~self.relevant[tensor]).tolist():
            entries = self._entries(part, d, x[:, d], spread, child, None, None)
            if self.classes.integer and self.uneven[d]:  # a tile may be kept
                entries = np.minimum(entries, self.links.beginning(part, d, 0, self.links.above[child]))
            yield d, entries

    def accessed(self, tensor: int, child: int) -> IntArray:
        """Per choice at least how many elements of the tensor reach a memory, over all instances.

        Each instance behind the outermost fanout gets every element that its own share of the iterations accesses; the
        windows of neighbours overlap.
        """
        return self._accessed(tensor, min(1, self.links.above[child]))

    @once_each
    def _accessed(self, tensor: int, behind: int) -> IntArray:
        rows = self.links.between(0, behind)
        _, first, inverse = np.unique(pack(rows), return_index=True, return_inverse=True)
        ranks = range(len(self.classes.signature.tensors[tensor].ranks))
        every = [prod(self._reached(tensor, r, row) for r in ranks) for row in rows[first]]
        return np.array(every, np.int64)[inverse.reshape(-1)]

    def _reached(self, tensor: int, rank: int, spread: IntArray) -> int:
        """The least sum over instances of the distinct places of a rank that each accesses.

        A variable may be iterated in any number of temporal trips outside its spatial ones: of a place of its own in
        each trip, whichever is the least. Where it is cut unevenly the spatial loop is the outermost, and the last
        instance has less. Those at either rim of a padded rank have less than others, or nothing.
        """
        signature = self.classes.signature.tensors[tensor]
        if signature.simple(rank):
            return self.classes.signature.extents[signature.ranks[rank][0][0]]  # each place is one instance's alone
        taken = tuple(int(spread[self.classes.of[v]]) for v, _ in signature.ranks[rank])
        key = (("reached", tensor, rank, None), taken)
        if key not in self.classes.counted:
            self.classes.checkpoint()
            extents = [self.classes.signature.extents[v] for v, _ in signature.ranks[rank]]
            total = 0
            for kinds in product(*map(_shares, extents, taken)):
                found: list[Share] = [((), np.array([signature.constants[rank]]))]
                for (_, c), every in zip(signature.ranks[rank], kinds, strict=True):
                    found = [
                        ((*steps, *((c * stride, n) for stride, n in mine)), (off[:, None] + c * far).reshape(-1))
                        for steps, off in found
                        for mine, far in every
                    ]
                total += min(inside(*one, signature.shape[rank]) for one in found)
            self.classes.counted[key] = total
        return self.classes.counted[key]

    @once_each
    def leaf_cost(self, inner: tuple[int, ...]) -> FloatArray:
        """Operations and the traffic of the innermost stores, per choice: `inner` is the memory of each tensor's."""
        cost = self.links.compute.copy()
        copied = self.links.copied(inner[1], inner[0]) if self.classes.signature.copy else None
        for mine in slices(len(cost)):
            self.classes.checkpoint()
            spread = np.arange(len(cost))[mine]
            x = np.ones((len(spread), len(self.whole)), np.int64)
            if copied is not None:
                read, write = (amount[mine] for amount in copied)
                come, go = self.moved(1, x, spread, None), self.moved(0, x, spread, None)
                cost[mine] += read * come[:, None] + write * go[:, None]
                continue
            for t, memory in enumerate(inner):
                cost[mine] += self.charged((t, memory, None), x, spread)
        return cost

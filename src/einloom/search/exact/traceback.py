"""From chosen rows back to one mapping tree.

Comes in: for every Einsum a block and a row of it, and how many loops each neighbouring pair shares. Goes out: the
tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping as Table
from math import gcd, prod

import numpy as np

from ...dataclass import dataclass
from ...machine.levels import Machine
from ...mapping.tree import Compute, Loop, Mapping, Node, Split, Store
from ...workload.einsum import Einsum, Workload
from .einsums.runs import SpatialChoice
from .fusion.explore import PmappingGroup
from .pmappings.rows import NEXT, SPREAD, TOP, Backpointers
from .prices.columns import LinkPrices

Where = tuple[str, tuple[int, ...]]
SHARED = ""  # instead of an Einsum's name, with memory 0: the backing store of a tensor, of which there is one
Made = tuple[str, int, str]  # a store that stands in the tree already: whose it is, memory, tensor


@dataclass(frozen=True)
class Piece:
    """One Einsum's part: fused loops (variable, trips, tile, axis), stores by depth (memory, tensor, own?), the nodes
    below.

    kept: the own stores (depth, memory, tensor) that keep their tile over the loops above, so above splits. lent:
    stores for several readers (depth, memory, tensor, the Einsum's part in it).
    """

    einsum: str
    loops: tuple[tuple[str, int, int, str | None], ...]
    stores: tuple[tuple[int, int, str, bool], ...]
    below: tuple[Node, ...]
    kept: frozenset[tuple[int, int, str]] = frozenset()
    lent: tuple[tuple[int, int, str, str], ...] = ()


def piece(workload: Workload, machine: Machine, position: int, block: PmappingGroup, row: int) -> Piece:
    """Spell out one row of a block. stores: (depth, memory, tensor, own)."""
    einsum = workload.einsums[position]
    names, variables = einsum.tensors, einsum.variables
    variant = block.variants[block.variant[row]]
    remainder = int(block.remainder[row])
    links = variant.links[variant.remainder.source[remainder]]
    axis_names = tuple(machine.axes)
    structure = block.structure
    left = {v: workload.extents[v] for v in variables}
    loops = []
    for loop, tile in zip(structure.loops, block.tiles[row].tolist(), strict=True):
        v, axis = variables[loop.variable], None if loop.axis is None else axis_names[loop.axis]
        loops.append((v, -(-left[v] // tile), tile, axis))
        left[v] = tile
    stores = tuple((depth, m, names[t], False) for t, m, depth in structure.backings)
    stores += tuple((s.depth, s.memory, names[s.tensor], True) for s in variant.own if not s.part)
    boundary = [prod(left[variables[v]] for v in members) for members in links.classes.members]
    spread = links.spreads[_choice(variant.remainder, remainder)]
    unwinder = _Unwinder(machine, einsum, left, links, spread)
    below = unwinder.nodes(variant.remainder, remainder, boundary)
    kept = frozenset((s.depth, s.memory, names[s.tensor]) for s in variant.own if s.over)
    lent = tuple((s.depth, s.memory, names[s.tensor], s.part) for s in variant.own if s.part)
    return Piece(einsum.name, tuple(loops), stores, (*below, Compute(einsum.name, variant.option.unit)), kept, lent)


def _choice(rows: Backpointers, row: int) -> int:
    """Number of the spatial choice that a row was made for."""
    while rows.sources:
        rows, row = rows.sources[rows.source[row]], int(rows.row[row])
    return int(rows.marks[row, SPREAD])


def _promised(rows: Backpointers, row: int) -> int | None:
    """The class whose loop must come next on the sliding tensor, if there is one."""
    promised = int(rows.marks[row, NEXT]) if rows.marks.shape[1] > NEXT else 0
    return promised - 1 if promised else None


@dataclass
class _Unwinder:
    machine: Machine
    einsum: Einsum
    left: dict[str, int]
    links: LinkPrices
    spread: SpatialChoice

    def nodes(self, rows: Backpointers, row: int, boundary: list[int]) -> list[Node]:
        """The nodes from a boundary down to the leaf."""
        found: list[Node] = []
        whole = dict(self.left)
        found += self._block(boundary, rows.x[row], _promised(rows, row))
        while rows.action[0] != "leaf":
            source, previous = rows.sources[rows.source[row]], int(rows.row[row])
            if rows.action[0] == "store":
                memory = rows.action[1]
                assert isinstance(memory, int)
                found.append(Store(self.machine.memories[memory].name, (self.einsum.tensors[rows.marks[row, TOP]],)))
                found += self._block(list(rows.x[row]), source.x[previous], _promised(source, previous))
            elif rows.action[0] == "loops":
                inner = rows.action[1] if isinstance(rows.action[1], int) else _promised(source, previous)
                found += self._block(list(rows.x[row]), source.x[previous], inner)
            elif rows.action[0] == "cross":
                found += self._spatial(rows.action[1], source.x[previous])
            rows, row = source, previous
        found += self._block(list(rows.x[row]), np.ones_like(rows.x[row]), None)
        return self._merged(found, whole)

    def _merged(self, nodes: list[Node], extents: dict[str, int]) -> list[Node]:
        """The nodes with one temporal loop of a variable between two stores (rule 4): the inner one of two takes all.

        A row whose charge was put off may end with one more loop outside of that over which a store keeps its tile. The
        store keeps it over both, so the cost is no more. extents: above the nodes.
        """
        found: list[Node] = []
        above: dict[str, int] = {}
        for node in nodes:
            if isinstance(node, Loop):
                v = str(node.variable(self.einsum.name))
                before, extents[v] = extents[v], node.tile or extents[v] // node.trips
                twice = self._same(found, v) if node.axis is None else None
                if twice is not None:
                    found = [other for other in found if other is not twice]
                    trips = -(-above[v] // extents[v])
                    node = Loop(node.binds, trips, node.tile)
                else:
                    above[v] = before
            found.append(node)
        return found

    def _same(self, nodes: list[Node], variable: str) -> Loop | None:
        """The last temporal loop of the variable, if only such loops stand behind it."""
        for node in reversed(nodes):
            if not isinstance(node, Loop) or node.axis is not None:
                return None
            if node.variable(self.einsum.name) == variable:
                return node
        return None

    def _take(self, d: int, trips: int, tile: int) -> list[tuple[str, int, int | None]]:
        """Share the trips of a class out to its variables: (variable, trips, tile)."""
        shared: list[tuple[str, int, int | None]] = []
        if self.links.classes.uneven[d]:
            chosen = next(v for v in self.links.classes.members[d] if v in self.links.classes.signature.uneven)
            self.left[self.einsum.variables[chosen]] = tile
            return [(self.einsum.variables[chosen], trips, tile)]
        for v in self.links.classes.members[d]:
            name = self.einsum.variables[v]
            n = gcd(trips, self.left[name])
            if n > 1:
                shared.append((name, n, None))
                self.left[name] //= n
                trips //= n
        assert trips == 1, "a class takes more than its variables have"
        return shared

    def _block(self, above: list[int] | np.ndarray, below: np.ndarray, inner: int | None) -> list[Node]:
        """The loops between two extents, that of class `inner` the innermost."""
        trips = [-(-int(a) // int(b)) for a, b in zip(above, below, strict=True)]
        tiles = [int(b) for b in below]
        order = list(range(len(trips)))
        if inner is not None:
            order.remove(inner)
            order.append(inner)
        return [
            Loop(((self.einsum.name, v),), n, tile)
            for d in order
            if trips[d] > 1
            for v, n, tile in self._take(d, trips[d], tiles[d])
        ]

    def _spatial(self, memory: object, inner: np.ndarray) -> list[Node]:
        """The spatial loops directly below a memory's temporal ones, above extents `inner`."""
        links, names = self.links, tuple(self.machine.axes)
        assert isinstance(memory, int)
        bottom = links.above[memory + 1] if memory + 1 < len(links.above) else links.fanouts
        found: list[Node] = []
        axes = [(i, a) for i, a in enumerate(self.links.classes.signature.axes) if a.fanout < links.fanouts]
        crossed = [
            (i, row)
            for (i, axis), row in zip(axes, self.spread, strict=True)
            if links.above[memory] <= axis.fanout < bottom
        ]
        for at, (i, row) in enumerate(crossed):
            for d, n in enumerate(row):
                if n > 1:
                    tile = int(inner[d]) * prod(int(further[d]) for _, further in crossed[at + 1 :])
                    taken = self._take(d, int(n), tile)
                    found += [Loop(((self.einsum.name, v),), k, size, names[i]) for v, k, size in taken]
        return found


def tree(
    workload: Workload,
    machine: Machine,
    pieces: list[Piece],
    shared: list[int],
    groups: Table[tuple[int, int], Where],
    away: frozenset[str],
) -> Mapping:
    """The mapping: shared[i] loops are common to Einsum i and the next.

    groups: (first, last) Einsum of those that run at the same time -> where, and the shares of
    an axis. away: inputs and outputs of the cascade whose home is an inner memory.
    """
    outer = machine.memories[0].name
    on_chip = away | {t for p in pieces for _, m, t, own in p.stores if not own and m > 0}
    top = tuple(t.name for t in workload.tensors if t.name not in on_chip)
    builder = _TreeBuilder(workload, machine, pieces, shared, groups, _lenders(pieces))
    nest = builder.group(0, len(pieces) - 1, 0, set())
    return Mapping((Store(outer, top), *nest) if top else tuple(nest))


def _lenders(pieces: list[Piece]) -> list[tuple[tuple[int, Made], ...]]:
    """Per piece its stores for several readers: the loops above, and the store by the Einsum that fills it."""
    filled: dict[str, str] = {}
    found = []
    for p in pieces:
        filled.update({t: p.einsum for _, _, t, part in p.lent if part == "fills"})
        found.append(tuple((depth, (filled[t], m, t)) for depth, m, t, _ in p.lent))
    return found


@dataclass
class _TreeBuilder:
    workload: Workload
    machine: Machine
    pieces: list[Piece]
    shared: list[int]
    groups: Table[tuple[int, int], Where]
    lent: list[tuple[tuple[int, Made], ...]]

    def group(self, low: int, high: int, depth: int, done: set[Made]) -> list[Node]:
        """Nodes of Einsums low..high below their first `depth` common loops."""
        if low == high:
            return self._single(low, depth, done)
        cuts = [i for i in range(low, high) if self.shared[i] <= depth]
        if not cuts:
            stores = self._stores(low, high, depth, done, own=True)
            lead = self.pieces[low].loops[depth]
            binds = tuple((p.einsum, p.loops[depth][0]) for p in self.pieces[low : high + 1])
            loop = Loop(binds, *lead[1:])
            return [*stores, loop, *self.group(low, high, depth + 1, done)]
        starts = [low, *(i + 1 for i in cuts)]
        ends = [*cuts, high]
        used = Counter(t for a, b in zip(starts, ends, strict=True) for t in self._used(a, b))
        spanning = {t for t in self._tensors(low, high, depth) if used[t] > 1}
        across = Counter(x for a, b in zip(starts, ends, strict=True) for x in self._lenders(a, b, depth))
        wide = {made for made, branches in across.items() if branches > 1}
        stores = self._stores(low, high, depth, done, own=False, only=spanning, wide=wide)
        branches = tuple(tuple(self.group(a, b, depth, done)) for a, b in zip(starts, ends, strict=True))
        group = self.groups.get((low, high))
        return [*stores, Split("sequential", branches) if group is None else Split("pipelined", branches, *group)]

    def _single(self, i: int, depth: int, done: set[Made]) -> list[Node]:
        nodes: list[Node] = []
        p = self.pieces[i]
        for d in range(depth, len(p.loops) + 1):
            nodes += self._stores(i, i, d, done, own=True)
            if d < len(p.loops):
                v, trips, tile, axis = p.loops[d]
                nodes.append(Loop(((p.einsum, v),), trips, tile, axis))
        return [*nodes, *p.below]

    def _lenders(self, low: int, high: int, depth: int) -> set[Made]:
        """The stores for several readers at `depth` of some Einsums."""
        return {made for mine in self.lent[low : high + 1] for d, made in mine if d == depth}

    def _used(self, low: int, high: int) -> set[str]:
        """The tensors of some Einsums."""
        return {t for p in self.pieces[low : high + 1] for t in self.workload.einsum(p.einsum).tensors}

    def _tensors(self, low: int, high: int, depth: int) -> set[str]:
        """Shared on-chip tensors stored at `depth` in this group."""
        return {t for p in self.pieces[low : high + 1] for d, m, t, own in p.stores if d == depth and not own and m > 0}

    def _stores(
        self,
        low: int,
        high: int,
        depth: int,
        done: set[Made],
        own: bool,
        only: set[str] | None = None,
        wide: set[Made] | None = None,
    ) -> list[Node]:
        """Stores at `depth` not made yet. own: also those of one Einsum; else only those that keep their tile or cannot
        stand below these or a backing store of `only` that the Einsum uses, because their memory is further out. wide:
        of the stores for several readers only these."""
        found: dict[int, list[str]] = {}
        for made in sorted(self._lenders(low, high, depth) - done):
            if wide is None or made in wide:
                done.add(made)
                found.setdefault(made[1], []).append(made[2])
        for p in self.pieces[low : high + 1]:
            backs = (m for d, m, t, mine in p.stores if d == depth and not mine and only is not None and t in only)
            inner = max((*backs, *(m for d, m, _ in p.kept if d == depth)), default=0)
            for d, m, t, mine in p.stores:
                if d != depth or (mine and not own and m >= inner and (d, m, t) not in p.kept):
                    continue
                if mine:
                    if (p.einsum, m, t) not in done:
                        done.add((p.einsum, m, t))
                        found.setdefault(m, []).append(t)
                elif m > 0 and (SHARED, 0, t) not in done and (only is None or t in only):
                    done.add((SHARED, 0, t))
                    found.setdefault(m, []).append(t)
        return [Store(self.machine.memories[m].name, tuple(dict.fromkeys(ts))) for m, ts in sorted(found.items())]

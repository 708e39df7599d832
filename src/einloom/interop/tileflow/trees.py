"""TileFlow's tree of tiles and scopes as a mapping, and what the mapping does not say of it (`Layout`).

A temporal tile becomes a store of the tensors that live at its level, with its loops below; a spatial tile becomes
spatial loops. A tensor lives at and below the least common ancestor of those who use it, so an intermediate tensor has
no store above the scope that its users part in. einloom wants one store there: it stands right above the split, in the
level that the branches begin at. Where all branches begin with the same spatial tile, that tile is taken above the
split, and what the branches hand on stays in the memory below it. `Sharing` keeps what its branches hold: their first
stores stand above the split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from collections.abc import Mapping as Table
from math import prod

from ...dataclass import dataclass
from ...mapping.extents import Address
from ...mapping.tree import Compute, Loop, Mapping, Nest, Split, SplitKind, Store
from ...mapping.tree import Node as TreeNode
from ...workload.einsum import Workload
from .architecture import Architecture, axis_name
from .nodes import CONCURRENT, Direction, Kind, Node, Op, Scope, TileNode, first_level, operators_below, tiles_below
from .operators import OperatorProblem

Uses = dict[Direction, int]


@dataclass(frozen=True, slots=True)
class TileAt:
    """A temporal tile on the path of one Einsum: the place of its first loop, its memory, and how TileFlow reports it.

    tensors: those that live there and do not bypass it.
    """

    place: int
    memory: str
    tensors: frozenset[str]
    profile: bool


@dataclass(frozen=True)
class TreeLayout:
    """What TileFlow's tree says and the mapping does not.

    tiles: the temporal tiles on every Einsum's path, outermost first. scopes: what a split was. passed: (store, tensor)
    of every store that TileFlow does not have: its tensor is handed on between the branches below. accumulated: tensors
    that are read before they are written. order: tensors as the data spaces list them.
    dimensions: TileFlow's name -> rank variable. root: the tree itself.
    """

    tiles: Table[str, tuple[TileAt, ...]]
    scopes: Table[Address, Kind]
    passed: frozenset[tuple[Address, str]]
    accumulated: frozenset[str]
    order: tuple[str, ...]
    dimensions: Table[str, str]
    root: Node


def mapping_from(
    root: Node, problem: OperatorProblem, architecture: Architecture, notes: list[str]
) -> tuple[Mapping, TreeLayout]:
    """The mapping, and its layout. SpecError where a loop iterates over no operator below it."""
    builder = _Builder(problem, architecture, notes)
    nest = builder.nest(root, _Above((), 0, frozenset()))
    tiles = {name: tuple(found) for name, found in builder.tiles.items()}
    passed = frozenset(builder.passed)
    layout = TreeLayout(tiles, builder.scopes, passed, problem.accumulated, problem.order, problem.variables, root)
    return Mapping(nest), layout


@dataclass(frozen=True, slots=True)
class _Above:
    """Where a nest stands: its address, how many nodes a path has above it, (memory, tensor) of the stores above."""

    prefix: Address
    depth: int
    stored: frozenset[tuple[str, str]]


class _Builder:
    def __init__(self, problem: OperatorProblem, architecture: Architecture, notes: list[str]) -> None:
        self.problem, self.architecture, self.notes = problem, architecture, notes
        self.workload: Workload = problem.workload
        self.order = {tensor.name: i for i, tensor in enumerate(self.workload.tensors)}
        self.tiles: dict[str, list[TileAt]] = {einsum.name: [] for einsum in self.workload.einsums}
        self.scopes: dict[Address, Kind] = {}
        self.passed: set[tuple[Address, str]] = set()

    def nest(self, node: Node, above: _Above) -> Nest:
        """The nodes of `node` down to the split or leaf that ends them."""
        made: list[TreeNode] = []
        stored = above.stored
        while isinstance(node, TileNode):
            if node.spatial:
                made.extend(self.spatial(node))
            else:
                held = living(self.workload, operators_below(node)) - set(node.bypass)
                new = {tensor for tensor in held if (node.target, tensor) not in stored}
                if new:
                    made.append(self.store(node.target, new))
                    stored = stored | {(node.target, tensor) for tensor in new}
                for name in operators_below(node):
                    mine = frozenset(held & set(self.workload.einsum(name).tensors))
                    self.tiles[name].append(TileAt(above.depth + len(made), node.target, mine, node.profile))
                made.extend(self.temporal(node))
            node = node.child
        if isinstance(node, Op):
            return (*made, Compute(node.name, self.architecture.compute.name))
        here = _Above(above.prefix, above.depth, stored)
        return (*made, *self.scope(node, here, len(made)))

    def scope(self, scope: Scope, above: _Above, before: int) -> Nest:
        """The nodes of a scope that stands `before` nodes below the start of its nest."""
        children, hoisted = self.hoisted(scope)
        made: list[TreeNode] = list(hoisted)
        memory = first_level(children[0])
        handed = {t for t in self.handed(children) if not any(tensor == t for _, tensor in above.stored)}
        firsts = [tile for child in children for tile in _firsts(child)]
        tiles = [tile for tile in firsts if not tile.spatial]
        whole = len(tiles) == len(firsts)
        kept = set(handed)
        if scope.kind == "sharing" and whole:
            for tile in tiles:
                kept |= living(self.workload, operators_below(tile)) - set(tile.bypass)
        kept = {tensor for tensor in kept if (memory, tensor) not in above.stored}
        stored = above.stored
        if kept:
            address = (*above.prefix, before + len(made))
            for tensor in handed:
                users = [tile for tile in tiles if tensor in touched(self.workload, operators_below(tile))]
                if not whole or scope.kind in CONCURRENT or any(tensor in tile.bypass for tile in users):
                    self.passed.add((address, tensor))
            made.append(self.store(memory, kept))
            stored = stored | {(memory, tensor) for tensor in kept}
        address = (*above.prefix, before + len(made))
        self.scopes[address] = scope.kind
        depth = above.depth + before + len(made) + 1
        branches = tuple(self.nest(child, _Above((*address, i), depth, stored)) for i, child in enumerate(children))
        return (*made, self.split(scope, children, branches))

    def split(self, scope: Scope, children: tuple[Node, ...], branches: tuple[Nest, ...]) -> Split:
        if scope.kind not in CONCURRENT:
            return Split("sequential", branches)
        kind: SplitKind = "pipelined"
        if scope.kind == "parallel":
            if self.depends(children):
                self.notes.append(
                    "a Parallel scope whose branches depend on each other is read as a pipeline: what runs at the "
                    "same time may not read what is not written yet"
                )
            else:
                kind = "parallel"
        direction = self.direction(children)
        inner = self.architecture.inner(first_level(children[0]))
        shares = tuple(self.uses(child)[direction] for child in children)
        return Split(kind, branches, axis_name(inner.name, direction), shares)

    # Where tensors live

    def handed(self, children: tuple[Node, ...]) -> set[str]:
        """Tensors that more than one branch accesses."""
        seen = Counter(tensor for child in children for tensor in touched(self.workload, operators_below(child)))
        return {tensor for tensor, count in seen.items() if count > 1}

    def depends(self, children: tuple[Node, ...]) -> bool:
        return any(
            producer in set(operators_below(child))
            and not set(self.workload.consumers[tensor]) <= set(operators_below(child))
            for tensor, producer in self.workload.producers.items()
            for child in children
            if any(set(self.workload.consumers[tensor]) & set(operators_below(other)) for other in children)
        )

    def store(self, memory: str, tensors: set[str]) -> Store:
        return Store(memory, tuple(sorted(tensors, key=self.order.__getitem__)))

    # Loops

    def temporal(self, tile: TileNode) -> list[Loop]:
        return [self.loop(tile, dimension, trips, None) for dimension, trips in tile.loops if trips > 1]

    def spatial(self, tile: TileNode) -> list[Loop]:
        inner = self.architecture.inner(tile.target).name
        return [
            self.loop(tile, dimension, trips, axis_name(inner, direction))
            for (dimension, trips), direction in zip(tile.loops, tile.along, strict=True)
            if trips > 1
        ]

    def loop(self, tile: TileNode, dimension: str, trips: int, axis: str | None) -> Loop:
        variable = self.problem.variables[dimension]
        below = operators_below(tile)
        binds = tuple((name, variable) for name in below if variable in self.workload.einsum(name).variables)
        if not binds:
            raise tile.place.error(f"a loop over {dimension}, which none of {', '.join(below)} has")
        return Loop(binds, trips, None, axis)

    def hoisted(self, scope: Scope) -> tuple[tuple[Node, ...], list[Loop]]:
        """The branches without the spatial tile that all of them begin with, and its loops."""
        tile = _leading(scope)
        if tile is None:
            return scope.children, []
        names = operators_below(scope)
        loops = self.spatial(TileNode(tile.target, tile.loops, scope, tile.place, tile.along, True))
        if any(len(loop.binds) != len(names) for loop in loops):
            return scope.children, []
        return tuple(_without_leading(child) for child in scope.children), loops

    # Instances

    def uses(self, node: Node) -> Uses:
        """Instances in X and Y of the fanout below its first level that `node` takes."""
        if isinstance(node, Op):
            return {"X": 1, "Y": 1}
        if isinstance(node, TileNode):
            same = not isinstance(node.child, Op) and first_level(node.child) == node.target
            inside: Uses = self.uses(node.child) if same else {"X": 1, "Y": 1}
            if not node.spatial:
                return inside
            return {
                d: inside[d] * prod(n for (_, n), along in zip(node.loops, node.along, strict=True) if along == d)
                for d in inside
            }
        parts = [self.uses(child) for child in node.children]
        together: Uses = {d: max(part[d] for part in parts) for d in parts[0]}
        if node.kind in CONCURRENT:
            direction = self.direction(node.children)
            together[direction] = sum(part[direction] for part in parts)
        return together

    def direction(self, children: tuple[Node, ...]) -> Direction:
        """The axis that concurrent branches share out: X if they fit side by side in it, else Y if there, else X."""
        inner = self.architecture.inner(first_level(children[0]))
        outer = next(s for s in self.architecture.storages if s.name == first_level(children[0]))
        room: Uses = {"X": inner.x // outer.x, "Y": inner.y // outer.y}
        parts = [self.uses(child) for child in children]

        def fits(direction: Direction, other: Direction) -> bool:
            return sum(p[direction] for p in parts) <= room[direction] and all(p[other] <= room[other] for p in parts)

        return "Y" if not fits("X", "Y") and fits("Y", "X") else "X"


def _leading(node: Node) -> TileNode | None:
    """The spatial tile that `node`, or every branch of a scope that takes turns, begins with."""
    if isinstance(node, TileNode):
        return node if node.spatial else None
    if isinstance(node, Op) or node.kind in CONCURRENT:
        return None
    found = [_leading(child) for child in node.children]
    same = found[0] is not None and all(tile is not None and _spread(tile) == _spread(found[0]) for tile in found)
    return found[0] if same else None


def _without_leading(node: Node) -> Node:
    """`node` without its leading spatial tile."""
    if isinstance(node, Scope):
        return Scope(node.kind, tuple(_without_leading(child) for child in node.children), node.place)
    assert isinstance(node, TileNode)
    return node.child


def _firsts(node: Node) -> list[TileNode]:
    """The outermost tiles at or below `node`, one for each branch."""
    if isinstance(node, Scope):
        return [tile for child in node.children for tile in _firsts(child)]
    return [node] if isinstance(node, TileNode) else []


def _spread(tile: TileNode) -> tuple[object, ...]:
    """What a spatial tile does."""
    return tuple(
        (*loop, along) for loop, along in zip(tile.loops, tile.along, strict=True) if loop[1] > 1
    ), tile.multicast


def multicast_of(root: Node, architecture: Architecture) -> dict[str, bool]:
    """Level -> whether the spatial tiles that spread over its instances multicast.

    SpecError if two tiles over one fanout differ: multicast belongs to the machine here.
    """
    found: dict[str, bool] = {}
    for tile in tiles_below(root):
        if not tile.spatial or all(trips == 1 for _, trips in tile.loops):
            continue
        name = architecture.inner(tile.target).name
        if found.setdefault(name, tile.multicast) != tile.multicast:
            raise tile.place.error(f"multicast differs between the spatial tiles of {tile.target}; the machine has one")
    return found


def touched(workload: Workload, below: Collection[str]) -> set[str]:
    """Tensors that these Einsums access."""
    return {tensor for name in below for tensor in workload.einsum(name).tensors}


def living(workload: Workload, below: Collection[str]) -> set[str]:
    """Tensors that live at a tile above these Einsums: touched there, and used or wanted outside of it too."""
    return {
        tensor
        for tensor in touched(workload, below)
        if not {workload.producers.get(tensor), *workload.consumers[tensor]} <= set(below)
        or tensor in workload.outputs
        or tensor in workload.inputs
    }

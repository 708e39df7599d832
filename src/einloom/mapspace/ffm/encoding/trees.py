"""From states to trees and back."""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import replace

from ....mapping.extents import Trail, addressed_paths, tile_of
from ....mapping.legality.concurrency import concurrent
from ....mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store, einsums_below
from .facts import Facts
from .state import Frame, Group, Lent, Own, Raised, Segment, SharedLoop, State, block_of, branch_items, frame_of, tidy


def decode(facts: Facts, state: State) -> Mapping:
    """The tree of a state, in normal form if the state is."""
    frame = frame_of(facts, state)
    names = [tensor.name for tensor in facts.workload.tensors if frame.home(tensor.name) == 0]
    nest = _Builder(facts, state, frame).nest(0, facts.count - 1, 0)
    return Mapping((Store(facts.memories[0].name, tuple(names)), *nest) if names else nest)


class _Builder:
    def __init__(self, facts: Facts, state: State, frame: Frame) -> None:
        self.facts, self.state, self.frame = facts, state, frame
        self.placed = [frame.placed(i, own.raised) for i, own in enumerate(state.owns)]

    def nest(self, first: int, last: int, level: int) -> Nest:
        """The Einsums from `first` to `last` below their `level` outermost shared loops."""
        nodes = self.stores(first, last, level, False)
        if first == last:
            return (*nodes, *self.own(first))
        parts, i = [], first
        while i <= last:
            part = self.frame.run(i, level + 1)
            parts.append(part)
            i = part[1] + 1
        if len(parts) == 1:
            return (*nodes, self.loop(first, last, level), *self.nest(first, last, level + 1))
        branches = tuple(self.branch(*part, level) for part in parts)
        group = next((one for one in self.state.groups if one[:2] == (first, last)), None)
        if group is not None and len(parts) == last - first + 1:
            return (*nodes, Split("pipelined", branches, *group[2:]))
        return (*nodes, Split("sequential", branches))

    def branch(self, first: int, last: int, level: int) -> Nest:
        if first == last:
            return self.own(first)
        nodes = self.stores(first, last, level, True)
        return (*nodes, self.loop(first, last, level), *self.nest(first, last, level + 1))

    def loop(self, first: int, last: int, level: int) -> Loop:
        variable, trips, axis = self.state.shared[first][level]
        binds = tuple((self.facts.einsums[i].name, self.state.shared[i][level][0]) for i in range(first, last + 1))
        cover = dict(self.state.owns[first].covers).get(variable)
        outermost = all(v != variable for v, _, _ in self.state.shared[first][:level])
        tile = _tile(self.facts, variable, trips, cover) if outermost else None
        return Loop(binds, trips, tile, axis)

    def stores(self, first: int, last: int, level: int, below: bool) -> list[Node]:
        found = {one for placed in self.placed[first : last + 1] for one in placed.get((level, below), ())}
        return [Store(self.facts.memories[m].name, tensors) for _, m, tensors in block_of(self.facts, list(found))]

    def own(self, i: int) -> Nest:
        own = self.state.owns[i]
        above = {v for v, _, _ in self.state.shared[i]}
        covers = tuple(one for one in own.covers if one[0] not in above)
        return nodes_of(self.facts, i, (*branch_items(self.facts, own, i), ("leaf", own.unit, covers)))


def _tile(facts: Facts, variable: str, trips: int, cover: int | None) -> int | None:
    """The tile of an outermost loop, as a normal form writes it: None if it follows from the trips."""
    extent = facts.extents[variable]
    tile = None if cover is None else cover // trips
    return None if tile == -(-extent // trips) else tile


def nodes_of(facts: Facts, i: int, items: tuple[tuple[object, ...], ...]) -> Nest:
    """The nodes of a path of Einsum i, each loop bound to it alone; what follows a split is its only branch."""
    name, nodes = facts.einsums[i].name, list[Node]()
    covers = dict(items[-1][2])  # type: ignore[call-overload]
    for at, item in enumerate(items):
        match item:
            case ("store", int(memory), tuple(tensors)):
                nodes.append(Store(facts.memories[memory].name, tensors))
            case ("for" | "par", *axis, str(variable), int(trips)):
                tile = _tile(facts, variable, trips, covers.pop(variable, None))
                nodes.append(Loop(((name, variable),), trips, tile, str(axis[0]) if axis else None))
            case ("split",):
                rest = (*items[at + 1 : -1], (*items[-1][:2], tuple(covers.items())))
                return (*nodes, Split("sequential", (nodes_of(facts, i, rest),)))
            case ("leaf", unit, _):
                nodes.append(Compute(name, None if unit is None else str(unit)))
    return tuple(nodes)


def encode(facts: Facts, tree: Mapping) -> State | None:
    """The state of a tree in normal form; None for a tree that states do not write: branches of several Einsums that
    run at the same time, and uneven tiles below another loop over the same variable.

    Trees that mean the same have one state: loops of other variables may stand above or below an array without a store
    that cuts a window unevenly."""
    paths = addressed_paths(tree.nest)
    if set(paths) != {e.name for e in facts.einsums}:
        return None
    facts = facts.in_order(facts.named(facts.index[name] for name in tree.einsums))
    groups = _groups(facts, paths)
    if groups is None:
        return None
    homes, depths = [0] * len(facts.floating), [0] * len(facts.floating)
    seen: dict[str, tuple[int, ...]] = {}
    parts = [_parsed(facts, i, paths[e.name], homes, depths, seen) for i, e in enumerate(facts.einsums)]
    if any(own is None for _, own in parts):
        return None
    owns = tuple(own for _, own in parts if own is not None)
    shared = tuple(shared for shared, _ in parts)
    state = State(tuple(homes), tuple(depths), shared, owns, facts.sequence, (), groups)
    return _with_lent(facts, state) if facts.lendable else state


def _groups(facts: Facts, paths: Table[str, Trail]) -> tuple[Group, ...] | None:
    """The pipelines of single Einsums in a tree; None if other Einsums run at the same time."""
    found = set[Group]()
    for trail in paths.values():
        for _, node in trail:
            if isinstance(node, Split) and concurrent(node):
                names = einsums_below((node,))
                if node.kind != "pipelined" or len(names) != len(node.branches) or node.where is None:
                    return None
                found.add((facts.index[names[0]], facts.index[names[-1]], node.where, node.shares))
    return tuple(sorted(found))


def _with_lent(facts: Facts, state: State) -> State:
    """The state in which a store further out that several Einsums read is one store, not one of each."""
    frame, lent, owns = frame_of(facts, state), set[Lent](), list[Own]()
    for i, own in enumerate(state.owns):
        mine = []
        for m, t, level, below in own.raised:
            served = frame.served((m, t, level, below, i))
            if len(served) > 1:
                lent.add((m, t, level, below, served[0]))
            else:
                mine.append((m, t, level, below))
        owns.append(replace(own, raised=tuple(mine)))
    return replace(state, owns=tuple(owns), lent=tuple(sorted(lent)), known={}) if lent else state


def _parsed(
    facts: Facts,
    i: int,
    trail: Trail,
    homes: list[int],
    depths: list[int],
    seen: dict[str, tuple[int, ...]],
) -> tuple[tuple[SharedLoop, ...], Own | None]:
    """The shared loops and the privates on one path, if states write its tiles; homes and depths of its tensors are
    entered."""
    last = max((at for at, (_, node) in enumerate(trail) if isinstance(node, Split)), default=-1)
    loops_above = 0
    shared: list[SharedLoop] = []
    raised: list[Raised] = []
    stores: list[tuple[int, str]] = []
    segments: list[Segment] = []
    waiting: list[tuple[str, int]] = []
    spatial: list[tuple[str, str, int]] = []
    unit: str | None = None
    name, parted = facts.einsums[i].name, False
    for at, (address, node) in enumerate(trail):
        if isinstance(node, Split):
            parted = True
        elif isinstance(node, Loop):
            v, parted = str(node.variable(name)), parted and at > last
            if at < last:
                shared.append((v, node.trips, node.axis))
                loops_above += 1
            elif node.axis is None:
                waiting.append((v, node.trips))
            else:
                spatial.append((node.axis, v, node.trips))
        elif isinstance(node, Compute):
            unit = node.unit
        else:
            m = facts.number[node.memory]
            for tensor in (t for t in node.tensors if t in facts.tensors[i]):
                if tensor in facts.floats and seen.setdefault(tensor, address) == address:
                    homes[facts.floats[tensor]], depths[facts.floats[tensor]] = m, loops_above if m > 0 else 0
                elif m > 0 and at < last:
                    raised.append((m, tensor, loops_above, parted))
                elif m > 0:
                    stores.append((m, tensor))
                    segments.append(tuple(waiting))
                    waiting = []
    covers = _covers(facts, i, trail)
    if covers is None:
        return tuple(shared), None
    own = Own(unit, tuple(stores), (*segments, tuple(waiting)), tuple(spatial), tuple(raised), covers)
    return tuple(shared), tidy(facts, own)


def _covers(facts: Facts, i: int, trail: Trail) -> Segment | None:
    """What the loops of the variables that are cut unevenly cover; None if one below another loop is cut so."""
    left, found = dict(facts.full[i]), dict[str, int]()
    for _, node in trail:
        v = node.variable(facts.einsums[i].name) if isinstance(node, Loop) else None
        if isinstance(node, Loop) and v is not None:
            tile = tile_of(node, left[v])
            if v not in found:
                found[v] = node.trips * tile
            elif node.trips * tile != left[v]:
                return None
            left[v] = tile
    return tuple((v, cover) for v, cover in sorted(found.items()) if cover != facts.extents[v])

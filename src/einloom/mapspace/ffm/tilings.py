"""Other tiles for one tree of `ffm`: all perfect ones of a skeleton, and those that are one step away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...mapping.extents import Address, addressed_paths, rewritten
from ...mapping.tree import Loop, Mapping, Nest, Node, Split
from ...workload.einsum import Workload
from ..divisors import primes
from ..space import Skeleton

Binds = tuple[tuple[str, str], ...]


def rows(workload: Workload, skeleton: Skeleton) -> Iterator[tuple[int, ...]]:
    """The tiles of all loops of a skeleton, in the order of its addresses, for every perfect choice of trips.

    Temporal loops take every number of trips from 2 up with which, for each Einsum and rank variable, the trips of all
    its loops multiply to the extent; spatial loops keep theirs.
    """
    loops = loops_of(skeleton.mapping)
    places = [(address, loops[address]) for address in skeleton.loops]
    last = {bind: i for i, (_, loop) in enumerate(places) for bind in loop.binds}
    extents = {(e.name, v): workload.extents[v] for e in workload.einsums for v in e.variables}

    def choose(i: int, left: dict[tuple[str, str], int], tiles: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if i == len(places):
            yield tiles
            return
        loop = places[i][1]
        rest = left[loop.binds[0]]
        for trips in (loop.trips,) if loop.axis is not None else range(2, rest + 1):
            if all(left[bind] % trips == 0 for bind in loop.binds):
                below = {**left, **{bind: left[bind] // trips for bind in loop.binds}}
                if all(below[bind] == 1 for bind in loop.binds if last[bind] == i):
                    yield from choose(i + 1, below, (*tiles, rest // trips))

    yield from choose(0, extents, ())


def retiled(workload: Workload, skeleton: Skeleton, tiles: Sequence[int]) -> Mapping:
    """The tree of a skeleton with these tiles of its open loops, which divide what they cut."""
    loops = loops_of(skeleton.mapping)
    given = dict(zip(skeleton.loops, tiles, strict=True))
    left = {(e.name, v): workload.extents[v] for e in workload.einsums for v in e.variables}
    trips = {}
    for address in sorted(loops):
        extent = left[loops[address].binds[0]]
        trips[address] = extent // given[address] if address in given else loops[address].trips
        left.update({bind: left[bind] // trips[address] for bind in loops[address].binds})
    return _rebuilt(skeleton.mapping, trips, {})


def neighbouring(tree: Mapping) -> Iterator[Mapping]:
    """Trees in which one prime of the trips of a temporal loop has gone to another temporal loop with the same binds.

    The other loop may be new: it is written directly above a store (or the leaf) of the same nest, if no loop with
    these binds stands between the stores around it. Many are illegal.
    """
    loops = {address: loop for address, loop in loops_of(tree).items() if loop.axis is None}
    for source, loop in loops.items():
        for prime in primes(loop.trips):
            for target, other in loops.items():
                if target != source and _beside(target, source) and set(other.binds) == set(loop.binds):
                    yield _rebuilt(tree, {source: loop.trips // prime, target: other.trips * prime}, {})
            for place in _gaps(tree, source, loop.binds):
                yield _rebuilt(tree, {source: loop.trips // prime}, {place: Loop(loop.binds, prime)})


def loops_of(tree: Mapping) -> dict[Address, Loop]:
    """Address of every loop -> the loop."""
    paths = addressed_paths(tree.nest).values()
    return {address: node for steps in paths for address, node in steps if isinstance(node, Loop)}


def _beside(one: Address, other: Address) -> bool:
    """True if one of the two nodes stands on the other's path."""
    short, long = sorted((one, other), key=len)
    return long[: len(short) - 1] == short[:-1]


def _gaps(tree: Mapping, source: Address, binds: Binds) -> Iterator[Address]:
    """Where a new loop may be written in the nest of `source`: before a store, or at the end of the temporal loops."""
    place, bound = None, False
    for i, node in enumerate(_nest_at(tree.nest, source[:-1])):
        if isinstance(node, Loop) and node.axis is None:
            bound = bound or set(node.binds) == set(binds)
            continue
        place = i if place is None else place
        if not isinstance(node, Loop):
            if not bound:
                yield (*source[:-1], place)
            place, bound = None, False


def _nest_at(nest: Nest, prefix: Address) -> Nest:
    while prefix:
        split = nest[prefix[0]]
        assert isinstance(split, Split)
        nest, prefix = split.branches[prefix[1]], prefix[2:]
    return nest


def _rebuilt(tree: Mapping, trips: dict[Address, int], new: dict[Address, Loop]) -> Mapping:
    """The tree with other trips for some loops, and new loops before some nodes; tiles are those that follow."""

    def made(address: Address, node: Node) -> Nest:
        if isinstance(node, Loop):
            node = replace(node, trips=trips.get(address, node.trips), tile=None)
        return (new[address], node) if address in new else (node,)

    return Mapping(rewritten(tree.nest, made))

"""When tiles are alive: the leaves of each store, and the peak of every memory instance."""

from __future__ import annotations

from collections.abc import Iterator

from ..mapping.tree import Loop, Nest, Split, einsums_below
from .plan import Coords, OccupancyMoment, Site, Turn, Visit

Live = tuple[Site, Visit, bool]


def always_alive(below: Nest, users: tuple[str, ...]) -> frozenset[str]:
    """Leaves below a store at which its tile is alive whether or not elements of it are kept.

    From the first to the last leaf that touches it, and every leaf of a split that a temporal loop separates from the
    store and that one of its users belongs to.
    """
    order = einsums_below(below)
    touched = [i for i, name in enumerate(order) if name in users]
    alive = set(order[touched[0] : touched[-1] + 1])
    for split in _under_loops(below, False):
        inside = set(einsums_below((split,)))
        if inside & set(users):
            alive |= inside
    return frozenset(alive)


def _under_loops(nest: Nest, looped: bool) -> Iterator[Split]:
    for node in nest:
        if isinstance(node, Loop):
            looped = looped or (node.axis is None and node.trips > 1)
        elif isinstance(node, Split):
            if looped:
                yield node
            for branch in node.branches:
                yield from _under_loops(branch, looped)


class Peaks:
    """Adds up live tiles at every moment; those that hang on what is kept are settled at the end."""

    def __init__(self) -> None:
        self._open: dict[tuple[Turn, ...], dict[tuple[Live, ...], None]] = {}
        self._peak: dict[str, int] = {}
        self._hanging: list[tuple[str, int, tuple[Visit, ...]]] = []
        self._persistent: dict[Site, int] = {}

    def at(self, moment: OccupancyMoment, coords: Coords) -> None:
        """Record what one spatial instance holds when it reaches the moment's leaf."""
        live: list[Live] = []
        for site in moment.sites:
            held = site.held.get(coords[: site.depth])
            if held is None or held.visit is None:
                continue
            if site.persistent:
                self._persistent[site] = max(self._persistent.get(site, 0), held.visit.bits)
            else:
                live.append((site, held.visit, moment.einsum in site.alive))
        if moment.turns:
            self._open.setdefault(moment.turns, {})[tuple(live)] = None
        else:
            self._alone(live)

    def _alone(self, live: list[Live]) -> None:
        """A moment of one leaf alone: tiles add up now, those that hang on what is kept at the end."""
        sure: dict[str, int] = {}
        hanging: dict[str, list[Visit]] = {}
        for site, visit, certain in live:
            if certain:
                sure[site.memory] = sure.get(site.memory, 0) + visit.bits
            else:
                hanging.setdefault(site.memory, []).append(visit)
        for memory in {*sure, *hanging}:
            bits = sure.get(memory, 0)
            if memory in hanging:
                self._hanging.append((memory, bits, tuple(hanging[memory])))
            self._peak[memory] = max(self._peak.get(memory, 0), bits)

    def totals(self, repeat: int) -> dict[str, int]:
        """Largest number of bits alive in one instance of each memory, persistent tensors counted `repeat` times."""
        peak = dict(self._peak)
        for memory, bits, visits in self._hanging:
            peak[memory] = max(peak.get(memory, 0), bits + sum(visit.bits for visit in visits if visit.kept))
        memories = {site.memory for kinds in self._open.values() for live in kinds for site, _, _ in live}
        moments = [(turns, live) for turns, kinds in self._open.items() for live in kinds]
        for memory in memories:
            peak[memory] = max(peak.get(memory, 0), _together(memory, moments, 0))
        for site, bits in self._persistent.items():
            peak[site.memory] = peak.get(site.memory, 0) + bits * repeat
        return peak


def _together(memory: str, moments: list[tuple[tuple[Turn, ...], tuple[Live, ...]]], depth: int) -> int:
    """Most bits in `memory` below the first `depth` concurrent splits, branches being at any moments of their own.

    Tiles above a split: each at the largest that any moment in the split sees. Tiles in the branches: the sum of each
    branch's most, or the most of one branch where every branch has instances of its own.
    """
    most = 0
    splits: dict[int, list[tuple[tuple[Turn, ...], tuple[Live, ...]]]] = {}
    for turns, live in moments:
        if len(turns) > depth:
            splits.setdefault(turns[depth].split, []).append((turns, live))
        else:
            most = max(most, sum(_bits(entry) for entry in live if _counts(entry[0], memory, depth)))
    for inside in splits.values():
        above: dict[Site, int] = {}
        for _, live in inside:
            for entry in live:
                if _counts(entry[0], memory, depth):
                    above[entry[0]] = max(above.get(entry[0], 0), _bits(entry))
        numbers = {turns[depth].branch for turns, _ in inside}
        each = [_together(memory, [m for m in inside if m[0][depth].branch == n], depth + 1) for n in numbers]
        private = memory in inside[0][0][depth].private
        most = max(most, sum(above.values()) + (max(each) if private else sum(each)))
    return most


def _counts(site: Site, memory: str, depth: int) -> bool:
    return site.memory == memory and site.nesting == depth


def _bits(entry: Live) -> int:
    _, visit, certain = entry
    return visit.bits if certain or visit.kept else 0

"""When tiles are alive: the leaves of each store, and the peak of every memory instance."""

from __future__ import annotations

from collections.abc import Iterator

from ..mapping.tree import Loop, Nest, Split, einsums_below
from .plan import Coords, Moment, Site, Visit


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
        self._peak: dict[str, int] = {}
        self._open: list[tuple[str, int, tuple[Visit, ...]]] = []
        self._persistent: dict[Site, int] = {}

    def at(self, moment: Moment, coords: Coords) -> None:
        """Record what one spatial instance holds when it reaches the moment's leaf."""
        sure: dict[str, int] = {}
        hanging: dict[str, list[Visit]] = {}
        for site in moment.sites:
            held = site.held.get(coords[: site.depth])
            if held is None or held.visit is None:
                continue
            if site.persistent:
                self._persistent[site] = max(self._persistent.get(site, 0), held.visit.bits)
            elif moment.einsum in site.alive:
                sure[site.memory] = sure.get(site.memory, 0) + held.visit.bits
            else:
                hanging.setdefault(site.memory, []).append(held.visit)
        for memory in {*sure, *hanging}:
            bits = sure.get(memory, 0)
            if memory in hanging:
                self._open.append((memory, bits, tuple(hanging[memory])))
            self._peak[memory] = max(self._peak.get(memory, 0), bits)

    def totals(self, repeat: int) -> dict[str, int]:
        """Largest number of bits alive in one instance of each memory, persistent tensors counted `repeat` times."""
        peak = dict(self._peak)
        for memory, bits, visits in self._open:
            peak[memory] = max(peak.get(memory, 0), bits + sum(visit.bits for visit in visits if visit.kept))
        for site, bits in self._persistent.items():
            peak[site.memory] = peak.get(site.memory, 0) + bits * repeat
        return peak

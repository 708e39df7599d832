"""What stores hold and how values move between them: visits, fills, write-ups and emptying, element by element.

Partial results are never copied: an unfinished value that is read back leaves the store above, so the parts of one
element that lie around always add up to what was computed, each part once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ..dataclass import dataclass
from .plan import Coords, Element, Gate, Held, Range, Site, Visit
from .reference import combine

Counter = dict[Coords, int]


@dataclass(slots=True)
class Lane:
    """One spatial instance on its way through the tree: where it is, its ranges by place, Einsums without work."""

    coords: Coords
    ranges: list[Range]
    dead: int = 0


class Observer:
    """Told what stores do, right after they did it; this one does not care."""

    def opened(self, site: Site) -> None:
        """A store has a new tile."""

    def filled(self, site: Site) -> None:
        """The new tile has been read from the store above."""

    def emptied(self, site: Site) -> None:
        """Something of a tile has been written to the store above."""

    def entered(self, key: Hashable) -> None:
        """What comes now may not begin before all that came under this key the last time is over."""

    def left(self) -> None:
        """The end of what `entered` began."""


class Stores:
    """All stores of a run. inputs: what is there from the start, by tensor and element. reductions: how the partial
    results of an Einsum combine. made: the tensors that Einsums write.

    counters: (Einsum, site or toll, action) -> values per spatial instance. results: elements of produced tensors that
    left their outermost store. once: read-backs of unfinished values are performed but not counted.
    """

    def __init__(
        self, inputs: dict[str, dict[Element, int]], reductions: dict[str, str], made: Iterable[str], once: bool
    ) -> None:
        self.observer = Observer()
        self.inputs, self.reductions, self.once = inputs, reductions, once
        self.counters: dict[tuple[str, Site | Gate, str], Counter] = {}
        self.results: dict[str, dict[Element, tuple[int | None, int]]] = {name: {} for name in made}
        self.reasons: dict[str, None] = {}

    def counter(self, einsum: str, site: Site | Gate, action: str) -> Counter:
        return self.counters.setdefault((einsum, site, action), {})

    def count(self, einsum: str, site: Site | Gate, action: str, coords: Coords) -> None:
        """One value more of an instance."""
        counter = self.counter(einsum, site, action)
        counter[coords] = counter.get(coords, 0) + 1

    def passed(self, einsum: str, gate: Gate, way: str, coords: Coords) -> None:
        """A value of an instance goes through its instance of a toll."""
        self.count(einsum, gate, way, tuple(coords[i] for i in gate.own))

    def reason(self, kind: str, text: str) -> None:
        self.reasons[f"{kind}: {text}"] = None

    def visit(self, site: Site, lanes: Sequence[Lane], step: tuple[int, ...]) -> None:
        """Visit `site` in all spatial instances of one step: let go what is not kept, then read what is missing."""
        outer = step[: site.cut]
        leaving: dict[Coords, set[Element]] = {}
        arriving: list[tuple[Lane, Held, set[Element]]] = []
        for lane in lanes:
            tile = site.wanted(lane.ranges, lane.dead)
            if tile is None:
                continue
            held = site.held.setdefault(lane.coords, Held())
            known = held.outer == outer
            before, held.outer = held.tile, outer
            if known and before == tile and held.window:
                if held.visit is not None:
                    held.visit.kept = True
                held.visit = Visit(len(held.window) * site.width)
                continue
            held.tile = tile
            wanted = site.elements(tile)
            stay = wanted & held.window.keys() if known else set()
            if held.visit is not None:
                held.visit.kept = bool(stay)
            held.visit = Visit(len(wanted) * site.width)
            if len(stay) < len(held.window):
                leaving[lane.coords] = held.window.keys() - stay
            arriving.append((lane, held, wanted - stay))
        self.empty(site, leaving)
        asked: set[tuple[Gate | None, Coords, Element]] = set()
        if arriving:
            self.observer.opened(site)
        for lane, held, wanted in arriving:
            self._fill(site, lane.coords, held, wanted, step, asked)
        if arriving:
            self.observer.filled(site)

    def _fill(
        self,
        site: Site,
        coords: Coords,
        held: Held,
        wanted: set[Element],
        step: tuple[int, ...],
        asked: set[tuple[Gate | None, Coords, Element]],
    ) -> None:
        held.window.update(dict.fromkeys(wanted, step))
        if site.parent is None:
            self._begin(site, held, wanted)
            return
        parent_coords = coords[: site.parent.depth]
        parent = site.parent.held.get(parent_coords) or Held()
        apart = tuple(coords[i] for i in site.read_by)
        reads = self.counter(site.payer, site.parent, "read")
        writes = self.counter(site.payer, site, "write")
        for element in wanted:
            cell = parent.cells.get(element)
            complete = cell is not None and cell[1] == site.needed.at(element)
            if not complete and site.produced and element not in held.seen:
                held.seen.add(element)
                continue
            held.seen.add(element)
            if cell is not None:
                held.cells[element] = cell
                if not complete:
                    del parent.cells[element]
            if not complete and not site.produced:
                self._unreadable(site, element, cell)
            if complete or not self.once:
                writes[coords] = writes.get(coords, 0) + 1
                if (None, apart, element) not in asked:
                    asked.add((None, apart, element))
                    reads[parent_coords] = reads.get(parent_coords, 0) + 1
                for gate in (g for g in site.gates if g.down is not None):
                    here = (gate, tuple(coords[i] for i in gate.down or ()), element)
                    if here not in asked:
                        asked.add(here)
                        self.passed(site.payer, gate, "down", coords)

    def _begin(self, site: Site, held: Held, wanted: Iterable[Element]) -> None:
        """An outermost store reads nothing: inputs are there, results are not."""
        source = self.inputs.get(site.tensor)
        if source is not None:
            held.cells.update({element: (source[element], 0) for element in wanted if element in source})

    def _unreadable(self, site: Site, element: Element, cell: tuple[int | None, int] | None) -> None:
        what = f"{site.tensor}{list(element)} in {site.parent.memory if site.parent else site.memory}"
        if cell is not None:
            self.reason(
                "unfinished", f"{site.payer} needs {what} after {cell[1]} of {site.needed.at(element)} operations"
            )
        elif element in self.results.get(site.tensor, {}):
            self.reason("recomputation", f"{site.payer} needs {what} again after its store dropped it")
        else:
            self.reason("missing", f"{site.payer} needs {what}, which is not there")

    def empty(self, site: Site, leaving: dict[Coords, set[Element]]) -> None:
        """Let `leaving` go, from the inside out: modified elements are written up, all others are dropped."""
        if not leaving:
            return
        for child in site.children:
            inner = {}
            for coords, held in child.held.items():
                gone = leaving.get(coords[: site.depth])
                if gone and held.window:
                    both = held.window.keys() & gone
                    if both:
                        inner[coords] = both
            self.empty(child, inner)
        for coords, gone in leaving.items():
            held = site.held[coords]
            for element in gone:
                entered = held.window.pop(element)
                cell = held.cells.pop(element, None)
                changed = element in held.changed
                held.changed.discard(element)
                if cell is None or not (site.produced or changed):
                    continue
                if site.parent is None:
                    self._finish(site, element, cell)
                elif changed or cell[1] != site.needed.at(element):
                    self._hand_up(site, site.parent, coords, element, entered, cell, changed)
        self.observer.emptied(site)

    def _hand_up(
        self,
        site: Site,
        parent: Site,
        coords: Coords,
        element: Element,
        entered: tuple[int, ...],
        cell: tuple[int | None, int],
        changed: bool,
    ) -> None:
        parent_coords = coords[: parent.depth]
        above = parent.held[parent_coords]
        if element not in above.window:
            what = f"{site.tensor}{list(element)}"
            self.reason("lost", f"{what} leaves {site.memory}, but is not in the tile of {parent.memory}")
            return
        value, done = above.cells.get(element, (None, 0))
        writer = site.producer or site.payer
        above.cells[element] = (combine(self.reductions[writer], value, cell[0]), done + cell[1])
        if not changed:
            return
        above.changed.add(element)
        self.count(writer, site, "read", coords)
        for gate in (g for g in site.gates if g.up is not None):
            here = (gate, element, entered, tuple(coords[i] for i in gate.up or ()))
            if here not in site.passed:
                site.passed.add(here)
                self.passed(writer, gate, "up", coords)
        key = (element, entered, tuple(coords[i] for i in site.write_by))
        if key not in site.sent and not parent.link:
            site.sent.add(key)
            self.count(writer, parent, "write", parent_coords)

    def _finish(self, site: Site, element: Element, cell: tuple[int | None, int]) -> None:
        """An element leaves its outermost store: results are delivered, unfinished ones are lost."""
        if cell[1] == site.needed.at(element):
            self.results[site.tensor].setdefault(element, cell)
        else:
            self.reason(
                "unfinished",
                f"{site.tensor}{list(element)} leaves its outermost store after {cell[1]} of "
                f"{site.needed.at(element)} operations",
            )

    def empty_all(self, sites: Iterable[Site]) -> None:
        """Empty `sites` and everything inside them: the end of a branch, or of the run."""
        for site in sites:
            self.empty(site, {coords: set(held.window) for coords, held in site.held.items() if held.window})
            for held in site.held.values():
                held.outer = None
                held.visit = None

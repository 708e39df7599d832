"""What TileFlow counts differently from einloom, as named rules over einloom's own tree.

`counts` walks the links of a mapping (cost/accesses) and counts what crosses them, under a set of rules. Under no rule
these are einloom's own numbers; under all of them TileFlow's. A rule's effect is the difference that it makes when it
joins those before it in `RULES`. cost/ knows nothing of this.

Reads and updates are those of one instance in use, fills those of all instances, as TileFlow reports them:

    read    what a memory sends down, and (einloom) what it reads of itself to write results up
    update  results that arrive from below
    fill    what arrives from above (TileFlow averages it over all instances; over a link it reports an instance in use)
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from functools import cached_property
from typing import Literal

from ...cost.formulas import terms
from ...cost.formulas.terms import Number
from ...cost.traffic.accesses import StoreLink, links
from ...cost.traffic.paths import Path, PathStore, paths
from ...dataclass import dataclass
from ...errors import IllegalMapping, SpecError
from ...machine.levels import Machine
from ...mapping.legality.structure import problems
from ...workload.einsum import Workload
from .nodes import Kind
from .read import Imported
from .siblings import left_behind, offset
from .trees import TileAt, TreeLayout

What = Literal["read", "update", "fill"]
Key = tuple[str, str, str, What]
"""Einsum, memory, tensor, what."""
Counts = dict[Key, int]


@dataclass(frozen=True, slots=True)
class TileFlowRule:
    """A way in which TileFlow means something else. touches: ``counts`` or ``cycles``."""

    name: str
    says: str
    touches: Literal["counts", "cycles"] = "counts"


RULES = (
    TileFlowRule(
        "first-read", "results that are accumulated are read on every visit, also before anything was written"
    ),
    TileFlowRule("silent-drain", "a memory does not read its own copy when it writes results up"),
    TileFlowRule(
        "pipeline-evicts", "a pipelined scope forgets what its branches hold with every token, as a sequential one"
    ),
    TileFlowRule(
        "sharing-keeps", "a sharing scope keeps what stands below it, also where its branches spread differently"
    ),
    TileFlowRule("cold-restart", "a tile forgets what its children hold whenever it starts again"),
    TileFlowRule(
        "sibling-finds", "a branch of a sequential scope finds what the one before it left in the same instances"
    ),
    TileFlowRule(
        "handed-on", "what branches hand on passes without a memory above: over a link if both hold equal tiles"
    ),
    TileFlowRule(
        "hidden-tile", "profile: False hides a tile; its parent reports what it sends to the tile on its own level"
    ),
    TileFlowRule("busy", "memories are busy with TileFlow's counts", "cycles"),
    TileFlowRule("no-drain", "a pipeline neither fills nor drains", "cycles"),
    TileFlowRule(
        "per-group", "each group of equal steps is slowed down by itself, and its cycles are rounded up", "cycles"
    ),
)
COUNT_RULES = tuple(rule.name for rule in RULES if rule.touches == "counts")


@dataclass(frozen=True)
class Case:
    """An imported mapping that is structurally legal, with the paths and links of einloom's analysis."""

    workload: Workload
    machine: Machine
    layout: TreeLayout
    clock: float
    paths: tuple[Path, ...]

    @staticmethod
    def of(found: Imported) -> Case:
        """Raises SpecError without a mapping or with windows (convolutions), IllegalMapping with every reason."""
        if found.workload is None or found.machine is None or found.mapping is None or found.layout is None:
            raise SpecError("counts need an architecture, a problem and a mapping")
        if reasons := problems(found.workload, found.machine, found.mapping):
            raise IllegalMapping(reasons)
        plain = all(i.simple for e in found.workload.einsums for a in e.accesses for i in a.indices)
        if not plain:
            raise SpecError("TileFlow's counts are compared for plain indices only; a rank here is indexed by a sum")
        return Case(found.workload, found.machine, found.layout, found.clock, paths(found.workload, found.mapping))

    @cached_property
    def links(self) -> tuple[StoreLink, ...]:
        return links(self.workload, self.machine, self.paths)


@dataclass(eq=False)
class RuledLink(StoreLink):
    """A link under rules: what it keeps, and what it reads back."""

    rules: frozenset[str]
    layout: TreeLayout
    all_paths: tuple[Path, ...]
    start: int

    @staticmethod
    def of(link: StoreLink, case: Case, rules: frozenset[str], child: PathStore | None, start: int) -> RuledLink:
        """`link` with another child on its way down. start: place of the first loop of the parent's tile."""
        fields = (link.workload, link.machine, link.path, link.tensor, link.parent, child, link.users, link.written)
        return RuledLink(*fields, rules, case.layout, case.paths, start)

    @cached_property
    def edge(self) -> int:
        """Loops further out than this place find nothing kept."""
        found = [self.start] if "cold-restart" in self.rules and self.child is not None else []
        for place, kind in scopes_on(self.path, self.layout):
            evicts = kind == "sequential" or (kind == "sharing" and "sharing-keeps" not in self.rules)
            evicts = evicts or (kind == "pipelined" and "pipeline-evicts" in self.rules)
            if evicts and place < self.place:
                found.append(place)
        return max(found, default=-1)

    @cached_property
    def found(self) -> Fraction:
        """The part of an input that need not come, because the branch before left it."""
        if "sibling-finds" not in self.rules or self.written or self.child is None:
            return Fraction(0)
        return left_behind(self.all_paths, self.layout, self.path, self.tensor, self.child.memory)

    def crossing(self, *, at_parent: bool, one: bool) -> Number:
        """Values that cross, of one instance at that side or of all."""
        return self.moved(at_parent=at_parent, picks={} if one else None) * (1 - self.found)

    def read_back(self, *, at_parent: bool, one: bool) -> Number:
        """Values of a result that go down again."""
        crossing = self.crossing(at_parent=at_parent, one=one)
        if "first-read" in self.rules:
            return crossing if self.tensor in self.layout.accumulated else 0
        return terms.refills(crossing, self.moved(at_parent=at_parent, picks={} if one else None, fresh=True))


def scopes_on(path: Path, layout: TreeLayout) -> tuple[tuple[int, Kind], ...]:
    """(place, kind) of every scope on the path."""
    places = (*path.splits, *(fork.place for fork in path.forks))
    return tuple((place, layout.scopes[path.addresses[place]]) for place in places)


def counts(case: Case, rules: Collection[str] = ()) -> Counts:
    """Values read, updated and filled, for every Einsum, memory and tensor, under `rules`."""
    chosen = frozenset(rules)
    table: Counts = {}
    for link in case.links:
        _below(case, link, chosen, table)
        if link.child is not None:
            _above(case, link, chosen, table)
    return table


def effects(case: Case) -> tuple[tuple[TileFlowRule, Counts], ...]:
    """The difference that every rule about counts makes when it joins those before it."""
    found: list[tuple[TileFlowRule, Counts]] = []
    before, chosen = counts(case), []
    for rule in RULES:
        if rule.touches == "counts":
            chosen.append(rule.name)
            after = counts(case, chosen)
            change = {k: after.get(k, 0) - before.get(k, 0) for k in {*before, *after}}
            found.append((rule, {k: n for k, n in change.items() if n}))
            before = after
    return tuple(found)


def tiles_for(case: Case, link: StoreLink) -> tuple[TileAt, ...]:
    """The tiles of the link's parent memory between parent and child at which the tensor lives, outermost first."""
    tiles = case.layout.tiles[link.path.einsum.name]
    memory, place = link.parent.memory, link.place
    return tuple(t for t in tiles if t.memory == memory and t.place <= place and link.tensor in t.tensors)


def _start(case: Case, link: StoreLink) -> int:
    """Place of the first loop of the innermost tile that sends to the child."""
    return max((tile.place for tile in tiles_for(case, link)), default=link.parent.place)


def _below(case: Case, link: StoreLink, rules: frozenset[str], table: Counts) -> None:
    """What the parent sends down and gets back."""
    address = (link.parent.address, link.tensor)
    if "handed-on" in rules and address in case.layout.passed:
        return
    memory = link.parent.memory
    for part, tile in _parts(case, link, rules):
        if "hidden-tile" in rules and tile is not None and not tile.profile:
            continue
        _send(part, memory, table)
        if part.child is not None and part.child.memory == memory and "hidden-tile" in rules:
            _fill(part, memory, table, case, part.child.place)


def _fill(part: RuledLink, memory: str, table: Counts, case: Case, place: int) -> None:
    """A tile on its parent's own level that is not hidden is filled there."""
    tiles = case.layout.tiles[part.path.einsum.name]
    if next(t for t in tiles if t.place == place and t.memory == memory).profile:
        moved = (
            part.read_back(at_parent=False, one=False) if part.written else part.crossing(at_parent=False, one=False)
        )
        _add(table, (part.path.einsum.name, memory, part.tensor, "fill"), moved)


def _parts(case: Case, link: StoreLink, rules: frozenset[str]) -> list[tuple[RuledLink, TileAt | None]]:
    """The link, or (where a tile on the parent's own level stands between) one link for each of the steps."""
    tiles = tiles_for(case, link)
    if "hidden-tile" not in rules or len(tiles) < 2:
        return [(RuledLink.of(link, case, rules, link.child, _start(case, link)), tiles[0] if tiles else None)]
    found: list[tuple[RuledLink, TileAt | None]] = []
    for tile, following in zip(tiles, (*tiles[1:], None), strict=True):
        child = link.child
        if following is not None:
            child = PathStore(following.place, link.parent.memory, link.tensor, (-1, following.place))
        found.append((RuledLink.of(link, case, rules, child, tile.place), tile))
    return found


def _send(part: RuledLink, memory: str, table: Counts) -> None:
    einsum = part.path.einsum.name
    crossing = part.crossing(at_parent=True, one=True)
    if part.written:
        _add(table, (einsum, memory, part.tensor, "update"), crossing)
        crossing = part.read_back(at_parent=True, one=True)
    _add(table, (einsum, memory, part.tensor, "read"), crossing)


def _above(case: Case, link: StoreLink, rules: frozenset[str], table: Counts) -> None:
    """What the child gets from above, and reads of itself to write results up."""
    assert link.child is not None
    ruled = RuledLink.of(link, case, rules, link.child, _start(case, link))
    einsum, memory = link.path.einsum.name, link.child.memory
    fill = ruled.read_back(at_parent=False, one=False) if link.written else ruled.crossing(at_parent=False, one=False)
    drain = ruled.crossing(at_parent=False, one=True) if link.written else 0
    silent = "silent-drain" in rules
    if "handed-on" in rules and (link.parent.address, link.tensor) in case.layout.passed:
        linked = any(_over_link(case, link, other) for other in _ends(case, link))
        silent = not linked
        fill = ruled.crossing(at_parent=False, one=True) * case.machine.instances(memory) if linked else 0
        fill = 0 if link.written else fill
    _add(table, (einsum, memory, link.tensor, "fill"), fill)
    if not silent:
        _add(table, (einsum, memory, link.tensor, "read"), drain)


def _ends(case: Case, link: StoreLink) -> list[StoreLink]:
    """The links from a handed-on tensor's store to the other side: to its readers, or to its writer."""
    address = link.parent.address
    mine = [e for e in case.links if e.parent.address == address and e.tensor == link.tensor and e.child is not None]
    return [end for end in mine if end.written != link.written]


def _over_link(case: Case, link: StoreLink, other: StoreLink) -> bool:
    """True if writer and reader hold equal tiles, spread in the same way, in different instances."""
    kinds = [kind for place, kind in scopes_on(link.path, case.layout) if place > link.parent.place]
    apart = offset(link.path, link.place) != offset(other.path, other.place)
    return apart and kinds[0] != "parallel" and _tile(link) == _tile(other)


def _tile(link: StoreLink) -> tuple[object, ...]:
    """The child's memory, its tile rank by rank, and the spatial loops over it."""
    path = link.path
    variables = link.access.variables
    sizes = tuple(terms.largest(path.extent(v), path.cuts(v, link.place, lambda loop: 0)) for v in variables)
    spread = tuple(
        (variables.index(loop.variable), loop.trips, loop.axis)
        for loop in path.loops
        if loop.axis is not None and link.parent.place < loop.place < link.place and loop.variable in variables
    )
    return (None if link.child is None else link.child.memory, sizes, spread)


def _add(table: Counts, key: Key, count: Number) -> None:
    if count:
        table[key] = table.get(key, 0) + int(count)

"""A mapping tree made ready to run: every name resolved to a place, every store to a site, no size multiplied.

`compile.py` builds these; `execute.py` walks them. A *place* is the number of one (Einsum, rank variable) pair; the
ranges that a spatial instance works on are a list of half-open intervals indexed by place.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from itertools import product

from ..dataclass import dataclass

Range = tuple[int, int]
Sides = tuple[tuple[int, ...], ...]
Element = tuple[int, ...]
Coords = tuple[int, ...]
Places = tuple[tuple[str, frozenset[int]], ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """One index expression of one access, and the declared size of the rank it indexes.

    written: as an output's, where a sum reaches each position once and leaves the gaps alone.
    """

    terms: tuple[tuple[int, int], ...]
    constant: int
    size: int
    written: bool = False

    def interval(self, ranges: Sequence[Range]) -> Range:
        """First and one past the last position reached, gaps included, cut at the declared shape."""
        low = high = self.constant
        for place, coefficient in self.terms:
            start, stop = ranges[place]
            low += coefficient * start
            high += coefficient * (stop - 1)
        return max(low, 0), min(high + 1, self.size)

    def positions(self, ranges: Sequence[Range]) -> tuple[int, ...]:
        """Every position that is reached, in order, without the gaps."""
        points = product(*(range(*ranges[place]) for place, _ in self.terms))
        factors = [coefficient for _, coefficient in self.terms]
        reached = (self.constant + sum(c * x for c, x in zip(factors, point, strict=True)) for point in points)
        return tuple(sorted(reached))

    def position(self, ranges: Sequence[Range]) -> int:
        """The position at a single point."""
        return self.constant + sum(coefficient * ranges[place][0] for place, coefficient in self.terms)


@dataclass(frozen=True, slots=True)
class Reshape:
    """Elements of a view as elements of its tensor: those at the same place in row-major order."""

    view: tuple[int, ...]
    tensor: tuple[int, ...]

    def of(self, element: Element) -> Element:
        place = 0
        for position, size in zip(element, self.view, strict=True):
            place = place * size + position
        found = []
        for size in reversed(self.tensor):
            place, position = divmod(place, size)
            found.append(position)
        return tuple(reversed(found))


@dataclass(frozen=True, slots=True)
class Need:
    """How far into a producer's rank one consumer reaches: coefficient * (its end - 1) + reach + 1, within size."""

    place: int
    coefficient: int
    reach: int
    size: int

    def end(self, consumer_end: int) -> int:
        return min(self.coefficient * (consumer_end - 1) + self.reach + 1, self.size)


@dataclass(frozen=True, slots=True)
class PlaceCut:
    """What a loop does to one place: cut it in pieces of `tile`, or follow the `needs` of later consumers."""

    place: int
    einsum_bit: int
    tile: int
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Needed:
    """Operations that complete one element of a tensor: `each`, or by element where it is written in parts."""

    each: int
    of: Mapping[Element, int] | None = None

    def at(self, element: Element) -> int:
        return self.each if self.of is None else self.of.get(element, 0)


@dataclass(slots=True)
class LoopPlan:
    """A loop; `cuts` lists consumers before the producers that follow them."""

    trips: int
    axis: str | None
    cuts: tuple[PlaceCut, ...]
    mask: int

    def step(self, ranges: Sequence[Range], i: int) -> list[tuple[PlaceCut, Range]]:
        """The range of every bound place in iteration `i`."""
        now: dict[int, int] = {}
        before: dict[int, int] = {}
        found = []
        for cut in self.cuts:
            low, high = ranges[cut.place]
            if cut.needs:
                end = max(need.end(now[need.place]) for need in cut.needs)
                start = low if i == 0 else max(need.end(before[need.place]) for need in cut.needs)
                start, end = min(max(start, low), high), min(max(end, low), high)
            else:
                start, end = min(low + i * cut.tile, high), min(low + (i + 1) * cut.tile, high)
            now[cut.place], before[cut.place] = end, start
            found.append((cut, (start, end)))
        return found


@dataclass(slots=True, eq=False)
class Visit:
    """One visit of a store instance: bits its tile occupies, and whether any element of it is kept into the next."""

    bits: int
    kept: bool = False


@dataclass(slots=True)
class Held:
    """What one spatial instance of a store holds of one tensor.

    window: elements of the current tile, with the step in which each entered. cells: the values that are here, each
    with the number of operations already in it (0 for cascade inputs). changed: elements modified since they entered.
    seen: elements that have ever been in the tile. outer: iteration of the loops further out than the sliding loop.
    """

    window: dict[Element, tuple[int, ...]] = field(default_factory=dict)
    cells: dict[Element, tuple[int | None, int]] = field(default_factory=dict)
    changed: set[Element] = field(default_factory=set)
    seen: set[Element] = field(default_factory=set)
    outer: tuple[int, ...] | None = None
    tile: Sides | None = None
    visit: Visit | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A branch of a concurrent split: number of the split, of the branch; levels that are private to the branch."""

    split: int
    branch: int
    private: frozenset[str]


@dataclass(slots=True, eq=False)
class Gate:
    """One toll, as what one tensor of a site or an operand passes. memory: its name, as a counter's.

    own: numbers of the spatial loops above that tell its instances apart; spatial: their axes and trips. down, up:
    coordinates that tell apart what passes that way, None where nothing is charged. where: as a site's.
    """

    memory: str
    tensor: str
    own: tuple[int, ...]
    spatial: tuple[tuple[str, int], ...]
    down: tuple[int, ...] | None
    up: tuple[int, ...] | None
    turns: tuple[Turn, ...] = ()
    where: Places = ()


@dataclass(slots=True, eq=False)
class Site:
    """One tensor of one store node.

    users: Einsums below that access the tensor, in program order, each with its bit and its index expressions.
    producer: the first Einsum that writes the tensor, if one is among them. needed: operations that complete an
    element, for each that some Einsum writes (others are there from the start).
    parent: the nearest store of the tensor above. depth: spatial loops above. cut: temporal loops above that are
    further out than the sliding loop. read_by, write_by: coordinates that tell requests apart at the parent (all others
    are multicast, or added on the way). spatial: axis and trips of the spatial loops above. width: bits per element.
    alive: leaves at which the tile is alive whatever happens; at the other leaves below only if an element is kept.
    turns: the branches of concurrent splits that it is in. slots: tiles that it has room for. loops: temporal loops of
    more than one trip above. link: a link, which holds nothing; who writes to it is not charged. gates: tolls on the
    way from the parent; passed: what went up through them, as `sent` says of the parent. where: per axis that some
    split shares out, the positions along it of the instances here. view: the ranks under which its only user reads the
    tensor, if they are not its own; all: per rank its two ends if it is held whole, None if not, where several users
    see the tensor under several ranks.
    """

    memory: str
    tensor: str
    users: tuple[tuple[str, int, tuple[Expression, ...]], ...]
    producer: str | None
    parent: Site | None
    depth: int
    cut: int
    read_by: tuple[int, ...]
    write_by: tuple[int, ...]
    spatial: tuple[tuple[str, int], ...]
    width: int
    needed: Needed
    alive: frozenset[str]
    persistent: bool
    turns: tuple[Turn, ...] = ()
    slots: int = 1
    loops: int = 0
    link: bool = False
    gates: tuple[Gate, ...] = ()
    where: Places = ()
    view: Reshape | None = None
    all: tuple[Range | None, ...] | None = None
    children: list[Site] = field(default_factory=list)
    held: dict[Coords, Held] = field(default_factory=dict)
    sent: set[tuple[Element, tuple[int, ...], Coords]] = field(default_factory=set)
    passed: set[tuple[Gate, Element, tuple[int, ...], Coords]] = field(default_factory=set)

    @property
    def nesting(self) -> int:
        """Concurrent splits above."""
        return len(self.turns)

    @property
    def produced(self) -> bool:
        return self.producer is not None

    @property
    def payer(self) -> str:
        """The Einsum that fills are charged to: the first below that accesses the tensor."""
        return self.users[0][0]

    @property
    def written_alone(self) -> bool:
        """True if one Einsum uses the store, to write a tensor in parts."""
        return len(self.users) == 1 and any(expression.written for expression in self.users[0][2])

    def wanted(self, ranges: Sequence[Range], dead: int) -> Sides | None:
        """The tile: per rank two ends, or the positions that its only writer reaches; None if none has work."""
        if not self.written_alone:
            return self.tile(ranges, dead)
        _, bit, expressions = self.users[0]
        return None if dead & bit else tuple(expression.positions(ranges) for expression in expressions)

    def elements(self, sides: Sides) -> set[Element]:
        """The elements of a tile."""
        found = set(product(*sides)) if self.written_alone else elements(sides)
        return found if self.view is None else set(map(self.view.of, found))

    def tile(self, ranges: Sequence[Range], dead: int) -> tuple[Range, ...] | None:
        """Per rank the hull of what the Einsums with work need; None if none has work."""
        boxes = []
        idle = True
        for _, bit, expressions in self.users:
            if dead & bit:
                continue
            idle = False
            box = [expression.interval(ranges) for expression in expressions]
            if all(low < high for low, high in box):
                boxes.append(box)
        if idle:
            return None
        if not boxes:
            return ((0, 0),)
        if self.all is not None:
            boxes = [[side or box[rank] for rank, side in enumerate(self.all)] for box in boxes]
        by_rank = zip(*boxes, strict=True)
        return tuple((min(low for low, _ in sides), max(high for _, high in sides)) for sides in by_rank)


def elements(tile: Sides) -> set[Element]:
    """The elements of a box of half-open intervals."""
    return set(product(*(range(low, high) for low, high in tile)))


@dataclass(slots=True)
class StorePlan:
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """One access at a leaf: its expressions, the innermost site, and the coordinates that tell requests apart there.

    gates: the tolls on the way from there. view: the ranks of its expressions, if they are not the tensor's own.
    """

    tensor: str
    expressions: tuple[Expression, ...]
    site: Site
    apart: tuple[int, ...]
    gates: tuple[Gate, ...] = ()
    view: Reshape | None = None


@dataclass(slots=True)
class LeafPlan:
    """A compute leaf; `places` are its Einsum's variables. free: a copy inside one memory, where nothing moves.

    inputs: one for each operand; a tensor that is several operands is one and the same object. where: as a site's.
    """

    einsum: str
    unit: str | None
    places: tuple[int, ...]
    inputs: tuple[Operand, ...]
    output: Operand
    kind: str
    function: str
    reduction: str
    free: bool
    spatial: tuple[tuple[str, int], ...]
    turns: tuple[Turn, ...] = ()
    where: Places = ()
    seen: set[tuple[Coords, Element]] = field(default_factory=set)
    done: set[tuple[int, ...]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class OccupancyMoment:
    """The point after the last store above a leaf, where live tiles are added up; `sites` are those on its path.

    turns: the branches of concurrent splits that the leaf is in, outermost first.
    """

    einsum: str
    sites: tuple[Site, ...]
    turns: tuple[Turn, ...] = ()


@dataclass(slots=True)
class NestPlan:
    """A nest; mask: the Einsums in it; tops: sites in it whose parent is outside."""

    nodes: list[NodePlan]
    mask: int
    tops: tuple[Site, ...]


@dataclass(slots=True)
class SplitPlan:
    """A split; concurrent: its end empties nothing, except (`handed`, per branch) results that later branches read.

    walled: per branch that contains branches at the same time, a key: all under the key is over before it is entered
    again. One for all branches of a sequential split; none for a pipeline that is flat in another one.
    """

    branches: tuple[NestPlan, ...]
    concurrent: bool = False
    handed: tuple[tuple[Site, ...], ...] = ()
    walled: tuple[Hashable, ...] = ()


NodePlan = StorePlan | LoopPlan | LeafPlan | OccupancyMoment | SplitPlan


@dataclass(frozen=True, slots=True)
class Exchange:
    """`reader` reads what `writer` put in a store above a pipelined split with `depth` temporal loops above it.

    waits: the store has no room for all tokens, so the writer is held up by the reader.
    """

    site: Site
    writer: str
    reader: str
    depth: int
    waits: bool


@dataclass(slots=True)
class Plan:
    """The whole tree: root nest, starting ranges, all sites and leaves, and why it cannot run, if it cannot."""

    root: NestPlan
    ranges: list[Range]
    sites: list[Site]
    leaves: list[LeafPlan]
    reasons: list[str]
    exchanges: list[Exchange] = field(default_factory=list)

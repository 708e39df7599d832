"""How many values every store reads and writes: the tree walk.

Comes in: the paths of a well-formed mapping. Goes out: `Move` records, one for each (Einsum, memory, tensor, action)
and link, in values, over all instances or for one instance. A link joins a store to the next store of its tensor above
(or the leaf to its innermost stores); what crosses it is a product of per-rank counts from `terms` and `windows`. What
crosses it passes the tolls that the machine lists between its two ends.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from ...dataclass import dataclass
from ...machine.levels import Axis, Link, Machine, Toll
from ...once import cached_property
from ...workload.einsum import Workload
from ...workload.selectors import select
from ..breakdown import ActionName
from ..formulas import terms, windows
from ..formulas.terms import Number
from .boxes import Shared
from .paths import Path, PathLoop, PathStore, Retention, all_plain

Picks = dict[int, Number]  # place of a spatial loop -> the instance that counts, or an array of instances


class Move(NamedTuple):
    """Values that `einsum` reads from or writes to `memory`, or that pass the toll of that name down or up.

    count: over all instances, or of one instance. width: bits of one value there.
    """

    einsum: str
    memory: str
    tensor: str
    action: ActionName
    count: Number
    width: int


class _Product(NamedTuple):
    """What crosses a link as far as all pieces are equal, in closed form, and what has to be counted besides.

    whole: there is nothing besides. ranks, others: ranks whose pieces are not all equal, or complex, and such variables
    that the tensor lacks. fresh, every: values of the even ranks, times the temporal loops that fetch them anew; with
    the first pieces of the loops that the tensor lacks alone, or all. spatial: (loop, is it on a rank?, do its
    instances count once above?). sides: what `spread` found.
    """

    whole: bool
    ranks: list[int]
    others: list[str]
    fresh: int
    every: int
    spatial: list[tuple[PathLoop, bool, bool]]
    sides: dict[tuple[bool, str | None], tuple[int, int, int]]

    def of(self, link: StoreLink, at_parent: bool, toll: Toll | None, busiest: bool, fresh: bool) -> int:
        """The closed factor at one side of the link, or at a toll; arguments as of `StoreLink.moved`."""
        values = self.fresh if fresh else self.every
        if not self.spatial:
            return values
        every, below, parts = self.spread(link, at_parent, toll)
        found: int = terms.evenly_crossed(values, *((below, parts) if busiest else (every, 1)))
        return found

    def shares(self, link: StoreLink) -> tuple[int, ...]:
        """Of each of the link's moves over all instances, what one instance does: all do as much."""
        every = moves(link)
        if not self.spatial:
            return tuple([move.count for move in every])
        parts = {link.parent.memory: self.spread(link, True, None)}
        if link.child is not None:
            parts[link.child.memory] = self.spread(link, False, None)
        for toll in link.tolls if link.machine.tolls else ():
            parts[toll.name] = self.spread(link, True, toll)
        found = []
        for _, name, _, _, count, _ in every:
            others, below, apart = parts[name]
            found.append(terms.evenly_crossed(count, below, others * apart))
        return tuple(found)

    def spread(self, link: StoreLink, at_parent: bool, toll: Toll | None) -> tuple[int, int, int]:
        """(instances that need the same values at a side, those of them below one instance there, instances there that
        have different values)."""
        side = (at_parent, None if toll is None else toll.name)
        if side not in self.sides:
            self.sides[side] = self._spread(link, at_parent, toll)
        return self.sides[side]

    def _spread(self, link: StoreLink, at_parent: bool, toll: Toll | None) -> tuple[int, int, int]:
        every = below = parts = 1
        stop = link.parent.place if at_parent else link.place
        for loop, inside, once in self.spatial:
            above = loop.place < stop if toll is None else loop.place in link.above(at_parent, toll)
            if inside:
                parts *= loop.trips if above else 1
            elif above:
                every *= loop.trips
            elif not (at_parent and once):
                every, below = every * loop.trips, below * loop.trips
        return every, below, parts


@dataclass(eq=False)  # not frozen: that takes three times as long to make, and a tree has a link for every store
class StoreLink:
    """A store (or the leaf, child None) and the next store of its tensor above, seen from the path it is charged to.

    users: paths of all Einsums below the child that access the tensor. written: the charged Einsum writes the tensor.
    relevant: places of the loops on which the tile depends, for any of the users. known: what `moves` found, by picked
    instance.
    """

    workload: Workload
    machine: Machine
    path: Path
    tensor: str
    parent: PathStore
    child: PathStore | None
    users: tuple[Path, ...]
    written: bool

    def __post_init__(self) -> None:
        self.place = len(self.path.nodes) if self.child is None else self.child.place
        self.access = self.path.einsum.access(self.tensor)
        self.relevant = moving(self.users, self.tensor)
        self.known: dict[tuple[tuple[int, int], ...] | None, tuple[Move, ...]] = {}

    @cached_property
    def first(self) -> tuple[Number, ...]:
        """Of each of its moves the values of the first instance."""
        if self.path.spatial and self.product.whole and self.reader is None:
            return self.product.shares(self)
        return tuple([move.count for move in moves(self, {})])

    @cached_property
    def widths(self) -> tuple[int, int]:
        """Bits of one value in the parent's memory, and in the child's (0 for the leaf)."""
        asked, memory = (self.workload, self.path.einsum.name, self.tensor), self.machine.memory
        upper = memory(self.parent.memory).bits(*asked)
        return upper, 0 if self.child is None else memory(self.child.memory).bits(*asked)

    @cached_property
    def reader(self) -> StoreLink | None:
        """The same way as the first reader below goes it, if readers below the child see windows of what is written."""
        if self.child is None or not self.written or len(self.users) == 1:
            return None
        readers = tuple(user for user in self.users if self.tensor != user.einsum.output.tensor)
        ranks = range(len(self.access.indices))
        if not any(r.complex_rank(r.einsum.access(self.tensor), i) for r in readers for i in ranks):
            return None
        return StoreLink(
            self.workload, self.machine, readers[0], self.tensor, self.parent, self.child, self.users, False
        )

    @cached_property
    def unlike(self) -> Shared | None:
        """The users' boxes, if a loop above moves them in different ways: then ranks are no factors."""
        if self.child is None or self.written or (self.place, self.tensor) not in self.path.unlike:
            return None
        shape = self.workload.shape(self.access)
        ranks = range(len(shape))
        users = tuple((u, tuple(rank_use(u, self.tensor, r, self.place, {}, None) for r in ranks)) for u in self.users)
        return Shared(users, shape, self.place)

    @cached_property
    def axes(self) -> Table[int, Axis]:
        return {loop.place: self.machine.axes[loop.axis] for loop in self.path.loops if loop.axis is not None}

    @cached_property
    def edge(self) -> int:
        """Place of the innermost sequential split above the child: loops further out find nothing that is kept."""
        return split_above(self.path, self.place)

    @cached_property
    def retention(self) -> Retention:
        """What the child keeps of its tile: see `retention`. The leaf keeps nothing."""
        return ({}, None) if self.child is None else retention(self.path, self.place, self.relevant, self.edge)

    @cached_property
    def tolls(self) -> tuple[Toll, ...]:
        """The tolls that the machine lists between the two ends of the link; those of a copy stand on its input's."""
        if not self.machine.tolls:
            return ()
        place = self.machine.position
        if self.child is not None:
            ends = [place[self.parent.memory], place[self.child.memory]]
        elif self.path.leaf.unit is not None:
            ends = [place[self.parent.memory], place[self.path.leaf.unit]]
        elif self.written:
            return ()
        else:
            ends = [place[self.path.holders(access.tensor)[-1].memory] for access in self.path.einsum.accesses]
        return tuple(toll for toll in self.machine.tolls if min(ends) < place[toll.name] < max(ends))

    @cached_property
    def _sides(self) -> dict[tuple[bool, str | None], frozenset[int]]:
        """What `above` found."""
        return {}

    def above(self, at_parent: bool, toll: Toll | None) -> frozenset[int]:
        """Places of the spatial loops above the parent, the child or the toll: they count in each instance."""
        key = (at_parent, toll.name if toll is not None else None)
        if key not in self._sides:
            self._sides[key] = frozenset(place for place in self.axes if self._apart(place, at_parent, toll))
        return self._sides[key]

    def _apart(self, place: int, at_parent: bool, toll: Toll | None) -> bool:
        if toll is None:
            return place < (self.parent.place if at_parent else self.place)
        return self.machine.position[self.axes[place].name] < self.machine.position[toll.name]

    def _once(self, above: frozenset[int], combine: bool, busiest: bool, fresh: bool) -> dict[int, Number]:
        """Which loops on the way to the child count one piece only.

        above: places of the spatial loops above the side at which we count. combine: other spatial loops that the
        tensor lacks count once where their axis multicasts (or reduces) it. busiest: spatial loops in `above` count the
        picked instance only. fresh: temporal loops that the tensor lacks count their first piece only.
        """
        flags: dict[int, Number] = {}
        keeps = self.retention[0]
        for loop in self.path.loops:
            if loop.axis is None:
                flags[loop.place] = (fresh or keeps.get(loop.place, 0)) if loop.place not in self.relevant else 0
            elif loop.place in above:
                flags[loop.place] = int(busiest)
            elif combine and loop.place not in self.relevant:
                flags[loop.place] = int(self._joined(self.axes[loop.place]))
            else:
                flags[loop.place] = 0
        return flags

    def _joined(self, axis: Axis) -> bool:
        """True if instances along the axis that ask for the same values, or add to them, count once above."""
        above = self.machine.memory(self.parent.memory)
        if isinstance(above, Link) and not self.written:
            return above.multicast
        which = axis.reduce if self.written else axis.multicast
        return self.tensor in select(which, self.workload, self.path.einsum.name)

    def moved(
        self, *, at_parent: bool = True, picks: Picks | None, fresh: bool = False, toll: Toll | None = None
    ) -> Number:
        """Values that cross the link, counted at one side, or at a toll on the way: over all instances, or (`picks`)
        of one instance there, or of many at once."""
        if self.product.whole:
            return self.product.of(self, at_parent, toll, picks is not None, fresh)
        return prod(self.factors(at_parent=at_parent, picks=picks, fresh=fresh, toll=toll))

    def factors(
        self, *, at_parent: bool = True, picks: Picks | None, fresh: bool = False, toll: Toll | None = None
    ) -> list[Number]:
        """Numbers whose product is `moved`; each depends on few of the loops."""
        product = self.product
        closed = product.of(self, at_parent, toll, picks is not None, fresh)
        if product.whole:
            return [closed]
        above = self.above(at_parent, toll)
        flags = self._once(above, at_parent, picks is not None, fresh)
        picks = None if picks is None else {place: i for place, i in picks.items() if place in above}
        if self.unlike is not None:
            return [self._together(self.unlike, flags, picks or {})]
        found: list[Number] = [closed]
        sliding = None if self.written else self.retention[1]
        found.extend([self._rank(rank, flags, picks, sliding) for rank in product.ranks])
        found.extend([self._variable(variable, flags, picks, whole=False) for variable in product.others])
        return found

    @cached_property
    def product(self) -> _Product:
        path, variables = self.path, self.access.variables
        ranks: list[int] = []
        even = path.even
        if not path.busy or not all_plain(self.users):
            indices = enumerate(self.access.indices)
            ranks = [rank for rank, index in indices if self._complex(rank) or not even.issuperset(index.variables)]
            even = even.difference(*(self.access.indices[rank].variables for rank in ranks))
        others = [] if path.busy else [v for v in path.einsum.variables if v not in variables and v not in path.even]
        extents = self.workload.extents
        values = prod([extents[v] for v in variables if v in even])
        keeps, relevant, place = self.retention[0], self.relevant, self.place
        again = always = 1
        spatial: list[tuple[PathLoop, bool, bool]] = []
        for loop in path.loops:
            at, variable, trips, _, _, axis = loop
            if at >= place:
                break
            if variable not in even:
                continue
            inside = variable in variables
            if axis is not None:
                once = not inside and at not in relevant and self._joined(self.machine.axes[axis])
                spatial.append((loop, inside, once))
            elif not inside and not keeps.get(at, 0):
                again *= trips
                if at in relevant:
                    always *= trips
        fresh, every = terms.evenly_crossed(values, always, 1), terms.evenly_crossed(values, again, 1)
        return _Product(not ranks and not others and self.unlike is None, ranks, others, fresh, every, spatial, {})

    def _complex(self, rank: int) -> bool:
        """True if some user's windows of the rank overlap, leave gaps, are clipped or follow from consumers."""
        users = (self.path,) if self.written or self.child is None else self.users
        return any(u.complex_rank(u.einsum.access(self.tensor), rank) for u in users if not u.plain)

    def _together(self, unlike: Shared, flags: dict[int, Number], picks: Picks) -> Number:
        """As `moved`, with the boxes that all users need together."""
        keeps, sliding = self.retention
        keeping = {place for place, kept in keeps.items() if kept} | ({sliding} if sliding is not None else set())
        loops = {loop.place: loop for user in self.users for loop in user.loops if loop.place < self.place}
        one = {at for at in loops if flags[at] and at not in keeping}
        trips = {at: loop.trips for at, loop in sorted(loops.items()) if at not in one}
        return unlike.moved(trips, keeping, {at: picks.get(at, 0) for at in one}, _axes(picks))

    def _rank(self, rank: int, flags: dict[int, Number], picks: Picks | None, sliding: int | None) -> Number:
        index = self.access.indices[rank]
        if not self._complex(rank):
            return prod([self._variable(variable, flags, picks, whole=True) for variable in index.variables])
        users = (self.path,) if self.written or self.child is None else self.users
        size, many = self.workload.shape(self.access)[rank], _axes(picks)
        if not many:
            uses = tuple(rank_use(user, self.tensor, rank, self.place, flags, picks) for user in users)
            return windows.moved(uses, size, sliding)
        uses = tuple(rank_use(user, self.tensor, rank, self.place, flags, None) for user in users)
        return windows.moved_each(uses, size, sliding, picks or {}, many)

    def _variable(self, variable: str, flags: dict[int, Number], picks: Picks | None, *, whole: bool) -> Number:
        """Pieces of a variable, or (`whole`) the sum of their extents."""
        extent, many = self.path.extent(variable), _axes(picks)
        if many:
            loops = [loop for loop in self.path.by_variable[variable] if loop.place < self.place]
            chain = tuple([(loop.place, loop.cut(flags[loop.place])) for loop in loops])
            return windows.pieces(extent, chain, whole, picks or {}, many)
        cuts = self.path.cuts(variable, self.place, lambda loop: flags[loop.place], picks)
        return terms.covered(extent, cuts) if whole else terms.visits(extent, cuts)


def _axes(picks: Picks | None) -> int:
    """How many axes the arrays of many picks have; 0 for one pick."""
    return max((one.ndim for one in picks.values() if isinstance(one, np.ndarray)), default=0) if picks else 0


def moving(users: tuple[Path, ...], tensor: str) -> frozenset[int]:
    """Places of the loops that move a tensor's tile, for any of its users."""
    if len(users) == 1:
        return users[0].moving[tensor]
    return frozenset().union(*[user.moving[tensor] for user in users])


def split_above(path: Path, place: int) -> int:
    """Place of the innermost sequential split above a place; -1 if there is none."""
    return max([split for split in path.splits if split < place], default=-1)


def retention(path: Path, place: int, relevant: frozenset[int], edge: int) -> Retention:
    """(per temporal loop that the tensor lacks, a flag: is the tile kept over it; place of the sliding loop).

    Walks outwards from the store at `place`: loops that the tensor lacks, directly above, keep the tile; the first that
    it depends on slides; a sequential split (`edge`), or anything further out, forgets.
    """
    key = (place, relevant, edge)
    if key not in path.retentions:
        path.retentions[key] = _retention(path, *key)
    return path.retentions[key]


def _retention(path: Path, place: int, relevant: frozenset[int], edge: int) -> Retention:
    keeps: dict[int, Number] = {}
    sliding: int | None = None
    still: Number = True
    for loop in reversed(path.loops):
        if loop.axis is not None or loop.place >= place:
            continue
        if loop.place < edge:
            still = False
        if loop.place not in relevant:
            keeps[loop.place] = still
        elif not isinstance(loop.trips, int):
            still = still & (loop.trips == 1)
        elif loop.trips > 1:
            sliding = loop.place if isinstance(still, bool) and still else sliding
            still = False
    return keeps, sliding


def rank_use(
    path: Path, tensor: str, rank: int, place: int, flags: Table[int, Number], picks: Picks | None
) -> windows.RankUse:
    """How the Einsum of `path` reaches a rank of `tensor` below the loops above `place`."""
    index = path.einsum.access(tensor).indices[rank]
    chains = []
    for variable, coefficient in index.terms:
        loops = [loop for loop in path.by_variable[variable] if loop.place < place]
        chain = tuple(
            (loop.place, loop.cut(flags.get(loop.place, 0), picks.get(loop.place, 0) if picks else 0)) for loop in loops
        )
        chains.append((coefficient, path.extent(variable), chain))
    return windows.RankUse(tuple(chains), index.constant)


def by_tensor(all_paths: tuple[Path, ...]) -> dict[str, list[Path]]:
    """Tensor -> the paths of the Einsums that access it, in program order."""
    table: dict[str, list[Path]] = {}
    for path in all_paths:
        for tensor in path.einsum.tensors:
            table.setdefault(tensor, []).append(path)
    return table


def links(workload: Workload, machine: Machine, all_paths: tuple[Path, ...]) -> tuple[StoreLink, ...]:
    """Every link of the mapping, each once, charged to the first Einsum below that accesses the tensor."""
    found: list[StoreLink] = []
    seen: set[tuple[tuple[int, ...], str]] = set()
    touching = by_tensor(all_paths)
    for path in all_paths:
        for access in path.einsum.accesses:
            written = access.tensor == path.einsum.output.tensor
            holders = path.holders(access.tensor)
            for parent, child in pairwise(holders):
                users: tuple[Path, ...] = (path,)
                if child.place < path.parting:
                    if (child.address, access.tensor) in seen:
                        continue
                    seen.add((child.address, access.tensor))
                    users = tuple([p for p in touching[access.tensor] if p.holds(child)])
                found.append(StoreLink(workload, machine, path, access.tensor, parent, child, users, written))
            found.append(StoreLink(workload, machine, path, access.tensor, holders[-1], None, (path,), written))
    return tuple(found)


def moves(link: StoreLink, picks: Picks | None = None) -> tuple[Move, ...]:
    """What a link costs at both ends, in values; with `picks`, of the picked instance at each end."""
    if picks is not None and not link.path.spatial:
        picks = None  # there is one instance, and it does everything
    if picks and _axes(picks):
        return tuple(_moves(link, picks))
    key = None if picks is None else tuple(picks.items())
    found = link.known.get(key)
    if found is None:
        found = link.known[key] = tuple(_moves(link, picks))
    return found


def counts(link: StoreLink, picks: Picks) -> tuple[Number, ...]:
    """Of each of the link's `moves` the values of the picked instance."""
    return tuple([move.count for move in moves(link, picks)]) if picks else link.first


def _moves(link: StoreLink, picks: Picks | None) -> list[Move]:
    einsum, tensor = link.path.einsum.name, link.tensor
    parent, child = link.parent.memory, None if link.child is None else link.child.memory
    if link.path.einsum.kind == "copy" and child is None and _copy_in_place(link):
        return []
    upper, lower = link.widths
    found: list[Move] = []
    if not link.written:
        found.append(Move(einsum, parent, tensor, "read", link.moved(at_parent=True, picks=picks), upper))
        if child is not None:
            found.append(Move(einsum, child, tensor, "write", link.moved(at_parent=False, picks=picks), lower))
    elif isinstance(link.machine.memory(parent), Link):  # nothing stays there: readers pay for the way
        assert child is not None
        found.append(Move(einsum, child, tensor, "read", link.moved(at_parent=False, picks=picks), lower))
    else:
        up = link.moved(at_parent=True, picks=picks)
        found.append(Move(einsum, parent, tensor, "write", up, upper))
        found.append(Move(einsum, parent, tensor, "read", _read_back(link, up, picks), upper))
        if child is not None:
            out = link.moved(at_parent=False, picks=picks)
            found.append(Move(einsum, child, tensor, "read", out, lower))
            found.append(Move(einsum, child, tensor, "write", _read_back(link, out, picks, at_parent=False), lower))
    return [*found, *_passes(link, picks)] if link.machine.tolls else found


def _read_back(
    link: StoreLink, out: Number, picks: Picks | None, *, at_parent: bool = True, toll: Toll | None = None
) -> Number:
    """Of `out` values that go up, those that come down again: partial sums to add to, and halos of consumers."""
    halo = _halo(link, at_parent=at_parent, picks=picks, toll=toll)
    if link.machine.partial_sums != "read-modify-write" and link.child is not None:
        return halo
    return terms.refills(out, link.moved(at_parent=at_parent, picks=picks, fresh=True, toll=toll)) + halo


def _passes(link: StoreLink, picks: Picks | None) -> list[Move]:
    """What the tolls on the way charge."""
    einsum, tensor = link.path.einsum, link.tensor
    found: list[Move] = []
    for toll in link.tolls:
        width = toll.bits(link.workload, einsum.name, tensor)
        down, up = toll.charges(link.workload, einsum.name, tensor)
        if einsum.kind == "copy" and link.child is None:
            inwards = link.machine.position[link.parent.memory] < link.machine.position[toll.name]
            if down if inwards else up:
                way: ActionName = "down" if inwards else "up"
                found.append(Move(einsum.name, toll.name, tensor, way, link.moved(picks=picks, toll=toll), width))
            continue
        if not (down or (up and link.written)):
            continue
        crossed = link.moved(picks=picks, toll=toll)
        if not link.written:
            found.append(Move(einsum.name, toll.name, tensor, "down", crossed, width))
            continue
        if up:
            found.append(Move(einsum.name, toll.name, tensor, "up", crossed, width))
        if down and not isinstance(link.machine.memory(link.parent.memory), Link):
            found.append(
                Move(einsum.name, toll.name, tensor, "down", _read_back(link, crossed, picks, toll=toll), width)
            )
    return found


def _copy_in_place(link: StoreLink) -> bool:
    """True if a copy's input and output have their innermost store in the same memory: then nothing moves."""
    e = link.path.einsum
    return len({link.path.holders(access.tensor)[-1].memory for access in e.accesses}) == 1


def _halo(link: StoreLink, *, at_parent: bool, picks: Picks | None, toll: Toll | None = None) -> Number:
    """Elements computed earlier that consumers below a shared inner store read again: its windows less what is new."""
    if link.reader is None:
        return 0
    seen, new = (one.moved(at_parent=at_parent, picks=picks, toll=toll) for one in (link.reader, link))
    return seen - new


def operations(path: Path, picks: Picks | None = None) -> Number:
    """Operations of an Einsum: all of them, or (`picks`) those of one instance of its compute unit, or of many."""
    if path.einsum.kind == "copy":
        return 0
    return prod(operation_factors(path, picks))


def operation_factors(path: Path, picks: Picks | None) -> list[Number]:
    """Numbers whose product is `operations`; each depends on the loops of one variable."""
    many = _axes(picks)
    if path.busy and not many:
        return [prod([loop.trips for loop in path.loops if picks is None or loop.axis is None])]

    def once(loop: PathLoop) -> Number:
        return int(picks is not None and loop.axis is not None)

    if many:
        chains = {v: tuple([(n.place, n.cut(once(n))) for n in path.by_variable[v]]) for v in path.einsum.variables}
        return [windows.pieces(path.extent(v), chain, False, picks or {}, many) for v, chain in chains.items()]
    even = [loop.trips for loop in path.loops if loop.variable in path.even and not once(loop)]
    others = [v for v in path.einsum.variables if v not in path.even]
    cuts = {v: path.cuts(v, len(path.nodes), once, picks) for v in others}
    return [prod(even), *(terms.visits(path.extent(v), cuts[v]) for v in others)]


def instance_choices(path: Path, mine: tuple[StoreLink, ...]) -> Picks:
    """The instances that may be the busiest, for every spatial loop along which they differ in more than a ragged edge.

    Along each such loop the pieces fall into few classes: those in which no factor of any count changes, whatever the
    pieces of the other loops are. Only the first piece of each class is asked; a loop of one class is left out. The
    arrays have an axis for every loop, in the order of the path, so the first busiest instance of all is the first
    among these.
    """
    loops = {loop.place: loop.trips for loop in path.complex_axes}
    if not loops:
        return {}
    picks: Picks = dict(windows.axes(loops))
    found = [*operation_factors(path, picks)]
    for link in (*mine, *(one.reader for one in mine if one.reader is not None)):
        for fresh in (False, True) if link.written else (False,):
            for side in (True, False) if link.child is not None else (True,):
                found.extend(link.factors(at_parent=side, picks=picks, fresh=fresh))
            for toll in link.tolls:
                found.extend(link.factors(picks=picks, fresh=fresh, toll=toll))
    return dict(zip(loops, windows.representatives(list(loops.values()), found), strict=True))

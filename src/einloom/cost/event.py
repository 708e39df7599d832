"""Event time by a recurrence: every transfer and every tile of work, one after the other on its engine.

Comes in: a mapping of plain ranks. Goes out: seconds, in time linear in the number of operations. Every branch of a
concurrent split (and the tree outside them) is a process that loads, works and writes back in turns; transfers of
stores with several slots have engines of their own. For each operation, in tree order,

    start = max(end of the one before on its engine, end of what it reads, release of the slot that it writes)
    end   = start + setup + transfer or work

Where a memory lets parts through, a part crosses it in one transfer from end to end: what a store below asks for comes
from the next memory above that keeps whole tiles, and a part that is finished goes up to it.

Processes do not wait for each other's ports, so this is what happens without contention, and with the busiest
component's total a lower bound of what happens with it. docs/model/bindings.md, "Time in events".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from math import prod

from ..dataclass import dataclass
from ..errors import IllegalMapping, SpecError
from ..machine.levels import ComputeUnit, Machine
from ..mapping.extents import Address
from ..mapping.tree import Loop, Mapping, Store
from ..once import once_each
from ..workload.einsum import Workload
from ..workload.selectors import select
from .evaluate import legality, price
from .formulas.components import component_time
from .room.occupancy import exchanges, slots
from .time.schedule import Schedule, SplitNest, part
from .traffic import visits
from .traffic.accesses import StoreLink, links
from .traffic.paths import Path, PathStore, not_plain, paths

MOST_OPERATIONS = 20_000
Process = tuple[tuple[Address, int], ...]
Span = tuple[float, float]
Indices = dict[int, int]
Seconds = dict[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class EventTime:
    """seconds: of the whole run. operations: how many there were. roofline: seconds of the busiest component."""

    seconds: float
    operations: int
    roofline: float


def event_time(workload: Workload, machine: Machine, mapping: Mapping) -> EventTime:
    """The event time of a legal mapping. Raises IllegalMapping with every reason, SpecError for ranks with windows."""
    reasons = legality(workload, machine, mapping)
    if reasons:
        raise IllegalMapping(reasons)
    found = paths(workload, mapping)
    if reason := not_plain(found):
        raise SpecError(f"event time needs plain ranks; {reason}")
    run = _Run(machine, found, links(workload, machine, found))
    run.walk(part(found), 0, {})
    plan = Schedule.of(machine, found, price(workload, machine, found, "einsum", ()).busy)
    seconds = max((machine.startup + run.end) * workload.repeat, plan.latency("floor"))
    return EventTime(seconds, run.operations, plan.roofline)


def event_seconds(workload: Workload, machine: Machine, mapping: Mapping) -> float | None:
    """The event time of a legal mapping in seconds; None with windows, or with too many operations."""
    found = paths(workload, mapping)
    if not_plain(found) or sum(map(_most, found)) > MOST_OPERATIONS:
        return None
    return event_time(workload, machine, mapping).seconds


def _most(path: Path) -> int:
    """No fewer operations than the path has: every store loads and drains, and the leaf works, in each iteration."""
    inner = max(store.place for store in path.stores)
    trips: list[int] = [loop.trips for loop in path.loops if loop.axis is None and loop.place < inner]
    return prod(trips) * (1 + 2 * len(path.stores))


@dataclass(eq=False)
class _Site:
    """A stored tile in time. ready: when its content can be read. dirty: when its last change was done.

    link: to the store above, None for a backing store. whole: from the store to itself: its tiles. uses: (start, end)
    of the last use, tile by tile. handed: a pipeline exchanges the tile, and the hand-over says when there is room.
    keeps: places of the loops over which the tile stays. through: a store below has its parts as they come, and hands
    finished ones up. come: the parts that are there (by the iterations that lead to them), with when they came. left:
    the tile has been written back.
    """

    store: PathStore
    link: StoreLink | None
    whole: StoreLink
    process: Process
    slots: int
    release: str
    handed: bool
    keeps: tuple[int, ...]
    through: bool = False
    ready: float = 0.0
    dirty: float = 0.0
    uses: list[Span] = field(default_factory=list)
    come: dict[tuple[int, ...], float] = field(default_factory=dict)
    left: bool = False

    def open(self) -> None:
        """A new tile takes the place of the one `slots` before."""
        self.uses.append((0.0, 0.0))
        self.ready = self.dirty = self.room()
        self.come = {}
        self.left = False

    def room(self) -> float:
        """When the slot of the current tile is free."""
        if self.handed or len(self.uses) <= self.slots:
            return 0.0
        return self.uses[-1 - self.slots][0 if self.release == "start" else 1]

    def use(self, span: Span) -> None:
        start, end = self.uses[-1]
        self.uses[-1] = (max(start, span[0]), max(end, span[1]))


@dataclass(eq=False)
class _Leaf:
    """Where an Einsum is computed. stays: operands of which a new tile takes the unit's setup; tiles: the last ones."""

    unit: ComputeUnit | None
    process: Process
    inputs: tuple[_Site, ...]
    output: _Site
    stays: tuple[_Site, ...]
    tiles: tuple[int, ...] = ()


@dataclass
class _Burst:
    """Work of one Einsum during which no tile comes or goes: its components work all the while, as one operation.

    busy: seconds of each component so far. start: when it began, after the unit's setup.
    """

    order: int
    start: float
    busy: Seconds

    def more(self, busy: Seconds) -> Span:
        """When it begins and ends with some more work."""
        self.busy = {name: self.busy.get(name, 0.0) + busy.get(name, 0.0) for name in {**self.busy, **busy}}
        return self.start, self.start + max(self.busy.values(), default=0.0)


@dataclass
class _Handover:
    """The writer's process waits for the reader's: its token for the end of the one `slots` before. ends: by token."""

    site: _Site
    writer: Process
    reader: Process
    place: int
    ends: dict[tuple[int, ...], Span] = field(default_factory=dict)
    tokens: list[tuple[int, ...]] = field(default_factory=list)

    def token(self, indices: Indices) -> tuple[int, ...]:
        return tuple(i for place, i in sorted(indices.items()) if place < self.place)

    def room(self, indices: Indices) -> float:
        """When the writer may go on with its token."""
        token = self.token(indices)
        if not self.tokens or self.tokens[-1] != token:
            self.tokens.append(token)
        if len(self.tokens) <= self.site.slots:
            return 0.0
        return self.ends.get(self.tokens[-1 - self.site.slots], (0.0, 0.0))[0 if self.site.release == "start" else 1]

    def done(self, indices: Indices, span: Span) -> None:
        """The reader did something for its token."""
        before = self.ends.get(self.token(indices), span)
        self.ends[self.token(indices)] = (max(before[0], span[0]), max(before[1], span[1]))


class _Run:
    """The walk over the tree: emits operations in order, each with its start and end."""

    def __init__(self, machine: Machine, all_paths: tuple[Path, ...], all_links: tuple[StoreLink, ...]) -> None:
        self.machine = machine
        self.engines: dict[object, float] = {}
        self.end, self.operations = 0.0, 0
        self.begin = 0.0
        self.latest: list[float] = []
        self.over: dict[tuple[Address, int], float] = {}
        self.leaves = {p.einsum.name: [n for n in all_links if n.child is None and n.path is p] for p in all_paths}
        inner = {(link.child.address, link.tensor): link for link in all_links if link.child is not None}
        outer = {(link.parent.address, link.tensor) for link in inner.values()}
        self.ends: dict[tuple[Address, Address, str], StoreLink] = {}
        self.crossings: dict[tuple[object, ...], float | None] = {}
        self.works: dict[tuple[object, ...], Seconds | None] = {}
        self.burst: _Burst | None = None
        self.empty: dict[tuple[object, ...], bool] = {}
        self.sites: dict[tuple[Address, str], _Site] = {}
        self.handovers: list[_Handover] = []
        for path in all_paths:
            for store in path.stores:
                key = (store.address, store.tensor)
                users = tuple(p for p in all_paths if store.tensor in p.einsum.tensors and p.holds(store))
                if key not in self.sites and users:
                    memory, handed = machine.memory(store.memory), tuple(exchanges(store, users))
                    room, process = slots(memory, store, users), _process(path, store.place)
                    whole = StoreLink(path.workload, machine, users[0], store.tensor, store, store, users, False)
                    keeps = visits.kept_places(whole)
                    through = memory.through and key in inner and key in outer
                    link, release = inner.get(key), memory.release
                    site = _Site(store, link, whole, process, room, release, bool(handed), keeps, through)
                    self.sites[key] = site
                    self.handovers.extend(_handover(site, users, reader) for reader, _ in handed)
        self.threaded = {site.process for site in self.sites.values() if site.slots > 1 and site.link is not None}

    def walk(self, part: SplitNest, at: int, indices: Indices) -> None:
        """Everything below the first `at` nodes of the paths of `part`; indices: iteration of each temporal loop."""
        path = part.paths[0]
        if part.split is None and at > max(store.place for store in path.stores):
            self._work(path, at, indices)
        elif at == part.place:
            self._branches(part, at, indices)
        elif isinstance(node := path.nodes[at], Loop) and node.axis is None:
            for i in range(node.trips):
                self.walk(part, at + 1, {**indices, at: i})
        else:
            keys = [(path.addresses[at], tensor) for tensor in (node.tensors if isinstance(node, Store) else ())]
            mine = [self.sites[key] for key in keys if key in self.sites]
            for site in mine:
                self._enter(site, indices)
            self.walk(part, at + 1, indices)
            for site in mine:
                self._leave(site, indices)

    def _branches(self, part: SplitNest, at: int, indices: Indices) -> None:
        """The branches of a split; all under the key of a walled one is over before it is entered again."""
        for branch, key in zip(part.branches, part.walled, strict=True):
            with self._round((part.paths[0].addresses[at], key)) if key is not None else nullcontext():
                self.walk(branch, at + 1, indices)
            for path in branch.paths:
                self._finish(path, at, indices)

    def _finish(self, path: Path, at: int, indices: Indices) -> None:
        """An Einsum's branch is over: write back what it is the last to change, while other branches still read it."""
        for store in reversed(path.stores):
            if store.place < at and store.tensor == path.einsum.output.tensor:
                between = (loop for loop in path.loops if loop.axis is None and store.place < loop.place < at)
                if any(indices.get(loop.place, 0) + 1 < loop.trips for loop in between):
                    return
                self._leave(self.sites[store.address, store.tensor], indices)

    @contextmanager
    def _round(self, key: tuple[Address, int]) -> Iterator[None]:
        """What is inside begins when everything of the round before at this split is over."""
        outer, self.begin = self.begin, max(self.begin, self.over.get(key, 0.0))
        self.latest.append(self.begin)
        self.burst = None
        yield
        self.burst = None
        latest = self.latest.pop()
        self.over[key], self.begin = latest, outer
        if self.latest:
            self.latest[-1] = max(self.latest[-1], latest)

    def _enter(self, site: _Site, indices: Indices) -> None:
        link = site.link
        if any(indices.get(place) for place in site.keeps) or self._empty(site, indices):
            return
        site.open()
        self.burst = None
        if link is None or (link.written and not self._reads_back(link, indices)):
            return
        if site.through and not link.written:
            return  # its parts come with those who ask for them
        tops = [self.sites[link.parent.address, link.tensor]]
        while (top := tops[-1]).through and top.link is not None and not top.link.written:
            if _part(top, link, indices) in top.come:
                break
            tops.append(self.sites[top.link.parent.address, link.tensor])
        ready = max(site.room(), tops[-1].come.get(_part(tops[-1], link, indices), tops[-1].ready))
        span = self._transfer(site, tops, indices, "load", max(ready, *(top.room() for top in tops[:-1]), 0.0))
        if span is None:
            return
        site.ready = site.dirty = span[1]
        for top in tops[:-1]:
            top.come[_part(top, link, indices)] = span[1]

    def _empty(self, site: _Site, indices: Indices) -> bool:
        """True if a ragged loop leaves nothing for the tile of this iteration: it takes no slot."""
        uneven = self._uneven(site.whole.path, site.store.place, indices)
        key = (site.store.address, site.store.tensor, uneven)
        if uneven and key not in self.empty:
            inside = {place: i for place, i in indices.items() if place < site.store.place}
            self.empty[key] = not visits.moved(site.whole, at_parent=False, stop=site.store.place, indices=inside)
        return bool(uneven) and self.empty[key]

    def _reads_back(self, link: StoreLink, indices: Indices) -> bool:
        return self.machine.partial_sums != "once" and visits.repeated(link, link.place, indices)

    def _leave(self, site: _Site, indices: Indices) -> None:
        link = site.link
        if link is None or not link.written or site.left:
            return
        trips = {loop.place: loop.trips for loop in link.path.loops}
        if any(indices.get(place, 0) + 1 < trips[place] for place in site.keeps):
            return
        site.left = True
        finished = _finished(link, indices)
        if site.through and finished:
            return  # its parts went up as they were handed
        tops = [self.sites[link.parent.address, link.tensor]]
        while finished and (top := tops[-1]).through and top.link is not None:
            tops.append(self.sites[top.link.parent.address, link.tensor])
        ready = max(site.dirty, *(top.room() for top in tops))
        span = self._transfer(site, tops, indices, "store", ready)
        if span is None:
            return
        for top in tops:
            top.ready, top.dirty = max(top.ready, span[1]), max(top.dirty, span[1])

    def _transfer(self, site: _Site, tops: list[_Site], indices: Indices, kind: str, ready: float) -> Span | None:
        """One transfer between a store and the last of `tops`, through those before it. None if nothing moves."""
        seconds = setup = 0.0
        inside = {**indices, **dict.fromkeys(site.keeps, 0)}
        for i, top in enumerate(tops):
            found = self._crossing(site, tops[i - 1] if i else site, top, kind, inside)
            if found is None:
                return None
            seconds = max(seconds, found)
            if i == 0 or kind == "store" or not tops[i - 1].come:
                setup += self.machine.memory(top.store.memory).setup
        engine: object = (site.process, kind) if site.slots > 1 else site.process
        if site.slots > 1 and kind == "load" and not seconds + setup:
            engine = (site.process, kind, self.operations)  # what takes no time waits for nobody
        touched = (tuple(tops), None) if kind == "load" else ((), tops[-1])
        span = self._emit(site.process, engine, seconds + setup, ready, indices, *touched)
        for one in (site, *tops):
            one.use(span)
        return span

    def _crossing(self, site: _Site, low: _Site, top: _Site, kind: str, indices: Indices) -> float | None:
        """Seconds that the part of `site` takes from `top` to `low`, the next site below, or back; None if empty."""
        assert site.link is not None
        key = (site.store.address, top.store.address, site.store.tensor)
        if key not in self.ends:
            self.ends[key] = replace(site.link, parent=top.store)
        link = self.ends[key]
        known = (*key, kind, self._uneven(link.path, link.place, indices))
        if known not in self.crossings:
            above, below = self.machine.memory(top.store.memory), self.machine.memory(low.store.memory)
            up, down = (
                visits.moved(link, at_parent=side, stop=link.place, indices=indices)
                * memory.bits(link.workload, link.path.einsum.name, link.tensor)
                for memory, side in ((above, True), (below, False))
            )
            times = (
                (component_time(above, up, 0), component_time(below, 0, down))
                if kind == "load"
                else (component_time(below, down, 0), component_time(above, 0, up))
            )
            tolls = self._tolls(link, kind, indices)
            self.crossings[known] = max(*(time or 0.0 for time in times), tolls) if up else None
        return self.crossings[known]

    def _tolls(self, link: StoreLink, kind: str, indices: Indices) -> float:
        """Seconds of the slowest toll on the way."""
        einsum, slowest = link.path.einsum.name, 0.0
        for toll in link.tolls:
            down, up = toll.charges(link.workload, einsum, link.tensor)
            if down if kind == "load" else up:
                values = visits.moved(link, at_parent=True, stop=link.place, indices=indices, toll=toll)
                bits = values * toll.bits(link.workload, einsum, link.tensor)
                slowest = max(slowest, component_time(toll, bits, 0) or 0.0)
        return slowest

    def _uneven(self, path: Path, stop: int, indices: Indices) -> tuple[int, ...]:
        """Iterations of the loops above `stop` on which the sizes of tiles depend: none where all tiles are equal."""
        return tuple(indices.get(place, 0) for place in self._ragged(path) if place < stop)

    @once_each
    def _ragged(self, path: Path) -> tuple[int, ...]:
        """Places of the loops of every variable that some loop cuts unevenly."""
        places: list[int] = []
        for variable, loops in path.by_variable.items():
            extent, uneven = path.extent(variable), False
            for loop in loops:
                uneven = uneven or extent != loop.tile * loop.trips
                extent = loop.tile
            places.extend(loop.place for loop in loops if uneven)
        return tuple(sorted(places))

    def _work(self, path: Path, at: int, indices: Indices) -> None:
        first = tuple(visits.repeated(link, at, indices) for link in self.leaves[path.einsum.name] if link.written)
        known = (path.order, first, self._uneven(path, at, indices))
        if known not in self.works:
            self.works[known] = self._working(path, at, indices)
        busy = self.works[known]
        if busy is None:
            return
        leaf = self._leaf(path)
        if self.burst is not None and self.burst.order == path.order:
            span = self.burst.more(busy)
            self._done(leaf.process, leaf.process, span, indices, leaf.inputs)
        else:
            ready = max(site.ready for site in (*leaf.inputs, leaf.output))
            tiles = tuple(len(site.uses) for site in leaf.stays)
            setup = 0.0 if leaf.unit is None or tiles == leaf.tiles else leaf.unit.setup
            leaf.tiles = tiles
            seconds = max(busy.values(), default=0.0) + setup
            span = self._emit(leaf.process, leaf.process, seconds, ready, indices, leaf.inputs, leaf.output)
            self.burst = _Burst(path.order, span[0] + setup, busy)
        for site in (*leaf.inputs, leaf.output):
            site.use(span)
        leaf.output.ready = leaf.output.dirty = max(leaf.output.dirty, span[1])

    @once_each
    def _leaf(self, path: Path) -> _Leaf:
        unit = None if path.leaf.unit is None else self.machine.unit(path.leaf.unit)
        touched = [
            (link.written, self.sites[link.parent.address, link.tensor]) for link in self.leaves[path.einsum.name]
        ]
        output = next(site for written, site in touched if written)
        inputs = tuple(site for written, site in touched if not written)
        named = select(unit.stationary, path.workload, path.einsum.name) if unit is not None else ()
        stays = tuple(site for _, site in touched if site.store.tensor in named) or (*inputs, output)
        return _Leaf(unit, _process(path, len(path.nodes)), inputs, output, stays)

    def _working(self, path: Path, at: int, indices: Indices) -> Seconds | None:
        """Seconds of the unit, of the ports of the innermost stores and of tolls; None if there is nothing to do."""
        done = visits.operations(path, at, indices)
        if not done:
            return None
        unit, busy = self._leaf(path).unit, Seconds()
        if unit is not None and unit.throughput is not None:
            busy[unit.name, ""] = done / unit.throughput
        load: dict[str, list[int]] = {}
        for link in self.leaves[path.einsum.name]:
            width = self.machine.memory(link.parent.memory).bits(link.workload, path.einsum.name, link.tensor)
            for i, values in enumerate(visits.operands(link, at, indices)):
                load.setdefault(link.parent.memory, [0, 0])[i] += values * width
        for name, (read, written) in load.items():
            memory = self.machine.memory(name)
            ports = {"": (read, written)} if memory.ports == "shared" else {"read": (read, 0), "write": (0, written)}
            for port, bits in ports.items():
                busy[name, port] = component_time(memory, *bits) or 0.0
        for toll in self.machine.tolls:
            through = sum(
                visits.passed(link, toll, at, indices) * toll.bits(link.workload, path.einsum.name, link.tensor)
                for link in self.leaves[path.einsum.name]
                if toll in link.tolls
            )
            busy[toll.name, ""] = component_time(toll, through, 0) or 0.0
        return busy

    def _emit(
        self,
        process: Process,
        engine: object,
        seconds: float,
        ready: float,
        indices: Indices,
        reads: tuple[_Site, ...],
        writes: _Site | None,
    ) -> Span:
        """Put an operation on its engine; returns its start and end."""
        start = max(self.engines.get(engine, 0.0), ready, self.begin)
        alone = process not in self.threaded
        for handover in self.handovers:
            if handover.writer == process and (alone or handover.site is writes):
                start = max(start, handover.room(indices))
        span = (start, start + seconds)
        self._done(process, engine, span, indices, reads)
        self.operations += 1
        self.burst = None
        return span

    def _done(self, process: Process, engine: object, span: Span, indices: Indices, reads: tuple[_Site, ...]) -> None:
        """An operation takes its engine until it ends."""
        alone = process not in self.threaded
        for handover in self.handovers:
            if handover.reader == process and (alone or handover.site in reads):
                handover.done(indices, span)
        self.engines[engine] = span[1]
        self.end = max(self.end, span[1])
        if self.latest:
            self.latest[-1] = max(self.latest[-1], span[1])


def _part(top: _Site, link: StoreLink, indices: Indices) -> tuple[int, ...]:
    """Which part of a store's tile a link of a store below asks for: iterations of the loops between that cut it."""
    variables = set(link.access.variables)
    between = (loop for loop in link.path.loops if top.store.place < loop.place < link.place and loop.axis is None)
    return tuple(indices.get(loop.place, 0) for loop in between if loop.variable in variables)


def _finished(link: StoreLink, indices: Indices) -> bool:
    """True if every loop above the link's store that its tensor lacks is in its last iteration: all is added up."""
    variables = set(link.access.variables)
    above = (loop for loop in link.path.loops if loop.place < link.place and loop.axis is None)
    return all(indices.get(loop.place, 0) + 1 == loop.trips for loop in above if loop.variable not in variables)


def _process(path: Path, place: int) -> Process:
    """The branches of concurrent splits that a node of the path is in."""
    return tuple((fork.address, fork.branch) for fork in path.forks if fork.place < place)


def _handover(site: _Site, users: tuple[Path, ...], reader: Path) -> _Handover:
    writer = next(user for user in users if user.einsum.output.tensor == site.store.tensor)
    place = max(f.place for f in writer.forks if any(f.address == g.address for g in reader.forks))
    return _Handover(site, _process(writer, len(writer.nodes)), _process(reader, len(reader.nodes)), place)

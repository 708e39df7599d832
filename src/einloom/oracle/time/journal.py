"""From an execution to timed operations: who moved or computed what, what it waited for, and on which components.

A *process* is a branch of concurrent splits (the tree outside them is one, too). It does one thing after the other; the
transfers of a store with several slots are done by engines of their own, one that loads and one that writes back. An
operation waits for the data that it reads and for room where it writes: a store's n-th tile needs the slot of its
(n - slots)-th. A pipeline's writer waits for its reader: token by token if each does all by itself, else tile by tile.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import field
from itertools import product

from ...dataclass import dataclass
from ...machine.levels import Machine, Toll
from ...workload.einsum import Workload
from ...workload.selectors import select
from ..execute import Execution
from ..plan import Coords, Exchange, Gate, LeafPlan, Places, Plan, Site, Turn
from ..stores import Observer
from .events import Operation, Timeline, execute

Process = tuple[tuple[int, int], ...]
Component = tuple[str, str, tuple[frozenset[int], ...]]


@dataclass(slots=True)
class JournalEntry:
    """One operation as it was seen. kind: load, work or store. time: iterations of the temporal loops around it.

    busy: seconds per component, which is a name, a port and where its instances are. last: for a store, the entry after
    which it belongs. writes: the store written to.
    """

    kind: str
    process: Process
    engine: Hashable
    time: tuple[int, ...]
    busy: dict[Component, float]
    setup: float
    after: set[int]
    begun: set[int] = field(default_factory=set)
    last: int | None = None
    reads: frozenset[Site] = frozenset()
    writes: Site | None = None
    einsum: str = ""

    @property
    def duration(self) -> float:
        return max(self.busy.values(), default=0.0) + self.setup


class Journal(Observer):
    """Watches an execution; `timeline` says when everything happens."""

    def __init__(self, workload: Workload, machine: Machine, plan: Plan, execution: Execution) -> None:
        self.workload, self.machine, self.plan, self.execution = workload, machine, plan, execution
        self.entries: list[JournalEntry] = []
        self.counted: dict[tuple[str, Site | Gate, str], dict[Coords, int]] = {}
        self.ready: dict[Site, set[int]] = {}
        self.uses: dict[Site, list[set[int]]] = {}
        self.dirty: dict[Site, set[int]] = {}
        self.handing = {e.site for e in plan.exchanges if e.waits}
        self.threaded = {_process(site.turns) for site in plan.sites if site.slots > 1 and site.parent is not None}
        self.chunk: LeafPlan | None = None
        self.held: dict[str, tuple[int, ...]] = {}
        self.inside: list[tuple[Hashable, int, int | None]] = []
        self.walls: dict[Hashable, int] = {}
        execution.stores.observer = self
        execution.worked = self._worked

    # -- what is seen ------------------------------------------------------------------------------------------

    def opened(self, site: Site) -> None:
        self.chunk = None
        self.uses.setdefault(site, []).append(set())
        self.ready[site] = set(self._room(site))

    def filled(self, site: Site) -> None:
        busy = self._busy()
        if site.parent is None or busy is None:
            return
        after = self.ready.get(site.parent, set()) | self.ready[site]
        entry = self._entry("load", site, busy, after, self.machine.memory(site.parent.memory).setup)
        self.entries[entry].reads = frozenset((site.parent,))
        self.ready[site] = {entry}
        self._use(site, entry)
        self._use(site.parent, entry)

    def emptied(self, site: Site) -> None:
        busy = self._busy()
        if site.parent is None or busy is None:
            return
        causes = self.dirty.pop(site, set()) or set(self.uses[site][-1])
        after = causes | (self._room(site.parent) if site.parent not in self.handing else set())
        entry = self._entry("store", site, busy, after, self.machine.memory(site.parent.memory).setup)
        seen = self.entries[entry]
        seen.last, seen.writes, seen.einsum = max(causes, default=None), site.parent, site.producer or site.payer
        seen.time = self.entries[seen.last].time if seen.last is not None else seen.time
        self._use(site, entry)
        self._use(site.parent, entry)
        self.ready.setdefault(site.parent, set()).add(entry)
        self.dirty.setdefault(site.parent, set()).add(entry)

    def _worked(self, leaf: LeafPlan) -> None:
        busy = self._busy() or {}
        if leaf.unit is not None:
            unit = self.machine.unit(leaf.unit)
            if unit.throughput is not None:
                busy[self._component(leaf.unit, "", leaf.where)] = 1 / unit.throughput
        if self.chunk is leaf:
            own = self.entries[-1].busy
            for component, seconds in busy.items():
                own[component] = own.get(component, 0.0) + seconds
            return
        sites = [operand.site for operand in (*leaf.inputs, leaf.output)]
        process = _process(leaf.turns)
        after = set().union(*(self.ready.get(site, set()) for site in sites))
        setup = self._setup(leaf)
        entry = JournalEntry(
            "work", process, process, tuple(self.execution.time), busy, setup, after, einsum=leaf.einsum
        )
        entry.reads, entry.writes = frozenset(operand.site for operand in leaf.inputs), leaf.output.site
        self.entries.append(entry)
        self.chunk = leaf
        number = len(self.entries) - 1
        for site in sites:
            self._use(site, number)
        self.ready.setdefault(leaf.output.site, set()).add(number)
        self.dirty.setdefault(leaf.output.site, set()).add(number)

    def _setup(self, leaf: LeafPlan) -> float:
        """Seconds before work on new tiles: of the stationary tensors, if there are some, else of any operand."""
        if leaf.unit is None:
            return 0.0
        unit = self.machine.unit(leaf.unit)
        stays = select(unit.stationary, self.workload, leaf.einsum)
        operands = (*leaf.inputs, leaf.output)
        sites = [o.site for o in operands if o.tensor in stays] or [o.site for o in operands]
        tiles = tuple(len(self.uses.get(site, ())) for site in sites)
        before, self.held[leaf.einsum] = self.held.get(leaf.einsum), tiles
        return 0.0 if tiles == before else unit.setup

    def entered(self, key: Hashable) -> None:
        self.chunk = None
        self.inside.append((key, len(self.entries), self.walls.get(key)))

    def left(self) -> None:
        """A wall: an operation of no time after everything since `entered`, and before everything in the next round."""
        key, first, before = self.inside.pop()
        for entry in self.entries[first:]:
            if before is not None and (entry.last is None or entry.last > before):
                entry.after.add(before)
        after = set(range(first, len(self.entries))) | ({before} if before is not None else set())
        self.entries.append(JournalEntry("wall", (), ("wall", key), tuple(self.execution.time), {}, 0.0, after))
        self.walls[key] = len(self.entries) - 1
        self.chunk = None

    # -- how it is written down --------------------------------------------------------------------------------

    def _entry(self, kind: str, site: Site, busy: dict[Component, float], after: set[int], setup: float) -> int:
        process = _process(site.turns)
        engine: Hashable = (process, kind) if site.slots > 1 else process
        if site.slots > 1 and kind == "load" and not setup + sum(busy.values()):
            engine = (process, kind, len(self.entries))  # what takes no time waits for nobody
        self.entries.append(JournalEntry(kind, process, engine, tuple(self.execution.time), busy, setup, set(after)))
        self.chunk = None
        return len(self.entries) - 1

    def _use(self, site: Site, entry: int) -> None:
        tiles = self.uses.setdefault(site, [set()])
        tiles[-1].add(entry)

    def _room(self, site: Site) -> set[int]:
        """The entries that used the slot of the store's current tile before."""
        tiles = self.uses.get(site, [])
        return set(tiles[-1 - site.slots]) if len(tiles) > site.slots and site not in self.handing else set()

    def _busy(self) -> dict[Component, float] | None:
        """Seconds per component of everything counted since the last time; None if nothing was."""
        bits: dict[tuple[str, str, Places], dict[tuple[Hashable, ...], int]] = {}
        for key, counter in self.execution.stores.counters.items():
            einsum, site, action = key
            before = self.counted.setdefault(key, {})
            width = self.machine.way(site.memory).bits(self.workload, einsum, site.tensor)
            for coords, count in counter.items():
                if count != before.get(coords, 0):
                    table = bits.setdefault((site.memory, action, site.where), {})
                    instance = (site.spatial, coords)
                    table[instance] = table.get(instance, 0) + (count - before.get(coords, 0)) * width
                    before[coords] = count
        if not bits:
            return None
        busy: dict[Component, float] = {}
        for (name, action, where), table in bits.items():
            way = self.machine.way(name)
            if isinstance(way, Toll):
                throughput, port = way.throughput, ""
            else:
                throughput = way.read_throughput if action == "read" else way.write_throughput
                port = "" if way.ports == "shared" else action
            if throughput is not None:
                component = self._component(name, port, where)
                busy[component] = busy.get(component, 0.0) + max(table.values()) / throughput
        return busy

    def _component(self, name: str, port: str, where: Places) -> Component:
        """A port of a component at the instances of it that are at work: one of those inside of a shared-out axis."""
        place = self.machine.position
        return name, port, tuple(positions for axis, positions in where if place[axis] < place[name])

    # -- when it happens ---------------------------------------------------------------------------------------

    def timeline(self) -> tuple[Timeline, bool]:
        """(when everything happens, are all tokens of every process alike?)."""
        for exchange in self.plan.exchanges:
            if exchange.waits:
                self._hold_up(exchange)
        order = sorted(range(len(self.entries)), key=self._place)
        groups: list[list[int]] = []
        last: dict[Hashable, int] = {}
        worked = -1  # the last group of work so far
        for i in order:
            entry = self.entries[i]
            worked = len(groups) if entry.kind == "work" else worked
            before = last.get(entry.engine)
            if before is not None and before > worked and self._one_burst(groups[before], i):
                groups[before].append(i)
            else:
                last[entry.engine] = len(groups)
                groups.append([i])
        number = {i: n for n, group in enumerate(groups) for i in group}
        ranks = {process: n for n, process in enumerate(sorted({entry.process for entry in self.entries}))}
        operations = []
        for n, group in enumerate(groups):
            members = [self.entries[i] for i in group]
            held = {one for entry in members for part, seconds in entry.busy.items() if seconds for one in _ports(part)}
            after = {number[j] for entry in members for j in entry.after} - {n}
            begun = {number[j] for entry in members for j in entry.begun} - {n}
            total = sum(entry.duration for entry in members)
            rank = ranks[members[0].process]
            operations.append(Operation(members[0].engine, total, tuple(held), after, begun, rank))
        return execute(operations), self._uniform()

    def _place(self, i: int) -> tuple[int, int, int]:
        """Loads and works where they were seen, a store right after the last operation on its tile."""
        last = self.entries[i].last
        return (i, 0, i) if last is None else (max(self._place(last)[0], 0), 1, i)

    def _one_burst(self, group: list[int], i: int) -> bool:
        """Loads of one process, one after the other from the same place with no work between them, are one transfer."""
        first, entry = self.entries[group[0]], self.entries[i]
        same = first.kind == entry.kind == "load" and first.busy.keys() == entry.busy.keys() and bool(entry.busy)
        return same and first.time == entry.time and all(j < group[0] for j in entry.after)

    def _hold_up(self, exchange: Exchange) -> None:
        """The writer's token t waits until the reader is done with token t - slots."""
        writers = self._tokens(exchange, exchange.writer, "store")
        readers = self._tokens(exchange, exchange.reader, "load")
        memory = self.machine.memory(exchange.site.memory)
        tokens = [token for token in writers if token in readers]
        for token, earlier in zip(tokens[exchange.site.slots :], tokens, strict=False):
            entry = self.entries[writers[token][0]]
            (entry.begun if memory.release == "start" else entry.after).add(readers[earlier][1])

    def _tokens(self, exchange: Exchange, einsum: str, kind: str) -> dict[tuple[int, ...], tuple[int, int]]:
        """Token -> first and last entry: of the process, or with engines of their own, of the transfers that touch."""
        turns = next(leaf.turns for leaf in self.plan.leaves if leaf.einsum == einsum)
        process = _process(turns)
        found: dict[tuple[int, ...], tuple[int, int]] = {}
        for i in sorted(range(len(self.entries)), key=self._place):
            entry = self.entries[i]
            touches = entry.writes is exchange.site if kind == "store" else exchange.site in entry.reads
            if entry.process == process and (touches or process not in self.threaded):
                token = entry.time[: exchange.depth]
                found[token] = (found[token][0] if token in found else i, i)
        return found

    def _uniform(self) -> bool:
        """True if every process does the same work in every iteration of its loops."""
        totals: dict[tuple[Process, tuple[int, ...]], float] = {}
        depth = min((exchange.depth for exchange in self.plan.exchanges), default=0)
        for entry in self.entries:
            if entry.process:
                key = (entry.process, entry.time[:depth])
                totals[key] = totals.get(key, 0.0) + entry.duration
        return all(len({t for (p, _), t in totals.items() if p == process}) == 1 for process, _ in totals)


def _ports(component: Component) -> Iterator[Hashable]:
    """The port at every instance; all of them are held together, for as long as the busiest takes."""
    name, port, where = component
    return ((name, port, at) for at in product(*where))


def _process(turns: tuple[Turn, ...]) -> Process:
    return tuple((turn.split, turn.branch) for turn in turns)

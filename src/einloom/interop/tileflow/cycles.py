"""TileFlow's cycles, group of equal steps by group, and the rules that lead from einloom's latency to them.

A temporal tile runs its child once from the cold for every time that it starts, and once per step of each of its loops
(the loops inside having wrapped around). All equal steps are one group. A level slows a group down where its words take
longer than what runs below, and the group's cycles are rounded up: cycles = ceil(below / min(1, bandwidth / (words /
below))), in floating point as Timeloop computes it. Sequential and sharing scopes add their branches up, parallel and
pipelined ones take the longest. Sources: research facts of TileFlow's code (1.3 to 1.5), checked against its outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from math import ceil, prod

from ...cost.evaluate import price
from ...cost.formulas import terms
from ...cost.formulas.components import component_time
from ...cost.time.schedule import Schedule
from ...cost.traffic.paths import Path
from ...dataclass import dataclass
from ...machine.levels import Memory
from ...workload.selectors import select
from .nodes import CONCURRENT, Node, Op, Scope, TileNode, operators_below
from .rules import COUNT_RULES, RULES, Case, Counts, TileFlowRule, counts
from .siblings import left_behind

Words = dict[str, int]
Group = frozenset[str] | None
"""The dimensions that a step changes; None for a start from the cold."""


def einloom_cycles(case: Case) -> float:
    """einloom's latency under rule ``tile``, in cycles of the case's clock."""
    return float(price(case.workload, case.machine, case.paths, "tile", ()).latency) * case.clock


def cycle_effects(case: Case) -> tuple[tuple[TileFlowRule, float], ...]:
    """What every rule about cycles adds when it joins those before it."""
    schedule = Schedule.of(case.machine, case.paths, _busy(case, counts(case, COUNT_RULES)))
    after = {
        "busy": schedule.latency("tile") * case.clock,
        "no-drain": schedule.latency("floor") * case.clock,
        "per-group": float(tileflow_cycles(case)),
    }
    before = einloom_cycles(case)
    found: list[tuple[TileFlowRule, float]] = []
    for rule in (rule for rule in RULES if rule.touches == "cycles"):
        found.append((rule, after[rule.name] - before))
        before = after[rule.name]
    return tuple(found)


def _busy(case: Case, found: Counts) -> list[tuple[str, str, float]]:
    """(Einsum, component, seconds): memories by `found`, compute units as einloom has them."""
    table: dict[tuple[str, str], list[float]] = {}
    for (einsum, name, tensor, what), count in found.items():
        bits = count * case.machine.memory(name).bits(case.workload, einsum, tensor)
        entry = table.setdefault((einsum, name), [0.0, 0.0])
        entry[what != "read"] += bits / case.machine.instances(name) if what == "fill" else bits
    busy: list[tuple[str, str, float]] = []
    for (einsum, name), (read, written) in table.items():
        seconds = component_time(case.machine.memory(name), read, written)
        if seconds is not None:
            busy.append((einsum, name, seconds))
    units = {unit.name for unit in case.machine.units}
    whole = price(case.workload, case.machine, case.paths, "tile", ()).busy
    return [*busy, *(entry for entry in whole if entry[1] in units)]


def tileflow_cycles(case: Case) -> int:
    """The cycles that TileFlow reports for the case."""
    return _Walk(case).start(case.layout.root)


def groups(tile: TileNode) -> Iterator[tuple[Group, int]]:
    """(dimensions that change, how often per run of the tile) of every group of equal steps of a temporal tile."""
    yield None, 1
    started = 1
    for i, (_, trips) in enumerate(tile.loops):
        if trips > 1:
            yield frozenset(d for d, n in tile.loops[i:] if n > 1), started * (trips - 1)
            started *= trips


def slowed(memory: Memory, cycles: int, reads: list[float], writes: list[float], bits: int, clock: float) -> int:
    """Cycles after the level has moved its words: reads and writes over bandwidths of their own, or over one.

    reads, writes: words of every tensor. What they ask for is added tensor by tensor, as Timeloop adds it, because the
    last bit decides what is rounded up.
    """
    slow = 1.0
    asked = [(memory.read_throughput, reads), (memory.write_throughput, writes)]
    if memory.ports == "shared":
        asked = [(memory.read_throughput, reads + writes)]
    for throughput, words in asked:
        wanted = sum((word / cycles for word in words), 0.0)
        if throughput is not None and wanted:
            slow = min(slow, throughput / bits / clock / wanted)
    return ceil(cycles / slow)


@dataclass(frozen=True, slots=True)
class _Below:
    """Cycles of what runs below a level, and the words of each tensor that the level sends down and takes back."""

    cycles: int = 0
    reads: Words = field(default_factory=dict)
    updates: Words = field(default_factory=dict)

    def plus(self, other: _Below, concurrent: bool = False) -> _Below:
        cycles = max(self.cycles, other.cycles) if concurrent else self.cycles + other.cycles
        return _Below(cycles, _added(self.reads, other.reads), _added(self.updates, other.updates))


def _added(one: Words, other: Words) -> Words:
    return {tensor: one.get(tensor, 0) + other.get(tensor, 0) for tensor in {**one, **other}}


class _Walk:
    """Walks TileFlow's tree. level: how many temporal tiles stand above; epochs: how often a node runs in its group."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.paths = {path.einsum.name: path for path in case.paths}
        self.variables = {v: k for k, v in case.layout.dimensions.items()}

    def start(self, node: Node) -> int:
        if isinstance(node, Scope):
            parts = [self.start(child) for child in node.children]
            return max(parts) if node.kind in CONCURRENT else sum(parts)
        assert isinstance(node, TileNode)
        return self.tile(node, 0, 1, {})

    def tile(self, node: TileNode, level: int, epochs: int, filled: Words) -> int:
        """Cycles of `epochs` runs of a temporal tile that gets the words `filled` in them."""
        below = _Below()
        for group, times in groups(node):
            below = below.plus(self.below(node.child, level, epochs * times, group))
        memory = self.case.machine.memory(node.target)
        first = self.paths[operators_below(node)[0]].einsum
        bits = memory.bits(self.case.workload, first.name, first.output.tensor)
        writes = _added(filled, below.updates)
        order = self.case.layout.order
        words = [[float(table[tensor]) for tensor in order if tensor in table] for table in (below.reads, writes)]
        return slowed(memory, below.cycles, words[0], words[1], bits, self.case.clock)

    def below(self, node: Node, level: int, epochs: int, group: Group) -> _Below:
        if isinstance(node, Scope):
            total = _Below()
            inner = None if node.kind in ("sequential", "pipelined") else group
            for child in node.children:
                total = total.plus(self.below(child, level, epochs, inner), node.kind in CONCURRENT)
            return total
        if isinstance(node, Op):
            return self.operator(node, epochs)
        if node.spatial:
            return self.below(node.child, level, epochs, group)
        reads: Words = {}
        updates: Words = {}
        filled: Words = {}
        for tensor, path in self.moving(node, level + 1, group).items():
            size, spread = self.words(path, tensor, level)
            written = tensor == path.einsum.output.tensor
            down = not written or tensor in self.case.layout.accumulated
            if tensor in self.case.layout.tiles[path.einsum.name][level].tensors:
                if not written:
                    size = int(size * (1 - left_behind(self.case.paths, self.case.layout, path, tensor, node.target)))
                reads[tensor] = epochs * size * spread * down
                updates[tensor] = epochs * size * spread * written
                filled[tensor] = epochs * size * down
        return _Below(self.tile(node, level + 1, epochs, filled), reads, updates)

    def operator(self, node: Op, epochs: int) -> _Below:
        """One cycle for every point; each operand is read, and the result, too, where it is accumulated."""
        einsum = self.paths[node.name].einsum
        output = einsum.output.tensor
        read = {t for t in einsum.tensors if t != output or t in self.case.layout.accumulated}
        return _Below(epochs, dict.fromkeys(read, epochs), {output: epochs})

    def moving(self, tile: TileNode, level: int, group: Group) -> dict[str, Path]:
        """The tensors that the tile gets anew in a step of `group`, each with a path that has it."""
        found: dict[str, Path] = {}
        for name in operators_below(tile):
            path = self.paths[name]
            for tensor in self.case.layout.tiles[name][level].tensors:
                mine = {self.variables[v] for v in path.einsum.access(tensor).variables}
                if group is None or mine & group:
                    found.setdefault(tensor, path)
        return found

    def words(self, path: Path, tensor: str, level: int) -> tuple[int, int]:
        """(words of the tensor in one tile below `level`, how many of them the level sends to its instances)."""
        above, here = self.case.layout.tiles[path.einsum.name][level : level + 2]
        access = path.einsum.access(tensor)
        size = prod(terms.largest(path.extent(v), path.cuts(v, here.place, lambda loop: 0)) for v in access.variables)
        spread = 1
        for loop in path.loops:
            if loop.axis is not None and above.place <= loop.place < here.place:
                axis = self.case.machine.axes[loop.axis]
                which = axis.reduce if tensor == path.einsum.output.tensor else axis.multicast
                joined = tensor in select(which, self.case.workload, path.einsum.name)
                spread *= 1 if joined and loop.variable not in access.variables else loop.trips
        return size, spread

"""Random mapping trees of any workload on any machine, mostly legal: uneven tiles, stores anywhere, loops in any order.

The trees obey the structural rules (zones between fanouts, outer memories before inner ones, no loop above a split that
leaves an Einsum below it unbound), the rest is left to chance.
"""

from __future__ import annotations

from dataclasses import field
from random import Random

from ..dataclass import dataclass
from ..machine.levels import Axis, Fanout, Link, Machine, Memory
from ..mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store
from ..oracle.compile import Compiler
from ..oracle.contexts import Contexts
from ..workload.einsum import Workload


@dataclass
class Trunk:
    """Where growth stands: zone of the machine, memories that hold each tensor here, instances used per axis, ties."""

    zone: int = 0
    ties: tuple[dict[str, str], ...] = ()
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Trunk:
        return Trunk(self.zone, self.ties, dict(self.held), dict(self.used))


class TreeGrower:
    """Grows one tree from the root: stores, loops and splits by the dice, then all loops that are left.

    Every Einsum runs on the machine's last unit.
    """

    def __init__(self, rng: Random, workload: Workload, machine: Machine) -> None:
        self.rng, self.workload, self.machine = rng, workload, machine
        self.unit = machine.units[-1].name
        self.zones: list[list[Memory]] = [[]]
        self.fanouts: list[Fanout] = []
        for level in machine.levels:
            if isinstance(level, Memory) and not isinstance(level, Link):
                self.zones[-1].append(level)
            elif isinstance(level, Fanout):
                self.fanouts.append(level)
                self.zones.append([])
        self.compiler = Compiler(workload, machine, Mapping(()))
        self.backing = self._backings()

    def _backings(self) -> dict[str, str]:
        """Memory of every tensor's outermost store: the first one, except for intermediates and persistent tensors."""
        first = self.machine.memories[0].name
        zone = [memory.name for memory in self.zones[0]]
        inner = set(self.workload.intermediates) - set(self.workload.ends)
        table = {}
        for tensor in self.workload.tensors:
            choices = zone if tensor.name in inner else zone[:2] if tensor.persistent else [first]
            table[tensor.name] = self.rng.choice(choices) if self.rng.random() < 0.7 else first
        return table

    def mapping(self) -> Mapping:
        names = tuple(einsum.name for einsum in self.workload.einsums)
        parts = [names[a:b] for a in range(len(names)) for b in range(a + 2, len(names) + 1)]
        ties = [Loop(binds, 1) for part in parts for binds in self._all_ties(part)]
        contexts = Contexts(tuple(ties), self.compiler.place, self.compiler.ranges)
        late = set(self.workload.intermediates) - set(self.workload.ends) if self.rng.random() < 0.8 else set()
        late -= {tensor.name for tensor in self.workload.tensors if tensor.persistent}
        now = [t.name for t in self.workload.tensors if t.name not in late]
        nodes: list[Node] = []
        trunk = Trunk()
        for memory in self.machine.memories:
            here = [name for name in now if self.backing[name] == memory.name]
            self.rng.shuffle(here)
            cut = self.rng.choice((0, len(here)))
            for part in (here[:cut], here[cut:]):
                if part:
                    nodes.append(Store(memory.name, tuple(part)))
                    trunk.held.update(dict.fromkeys(part, (memory.name,)))
        return Mapping((*nodes, *self._grow(names, trunk, contexts)))

    def _grow(self, names: tuple[str, ...], trunk: Trunk, contexts: Contexts) -> Nest:
        if len(names) == 1:
            return self._branch(names[0], trunk, contexts)
        nodes: list[Node] = []
        for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3))):
            self._shared_loop(names, trunk, contexts, nodes, None)
            self._stores(names, trunk, nodes, 0.12)
        if trunk.zone < len(self.fanouts) and self.zones[trunk.zone + 1] and self.rng.random() < 0.2:
            for axis in self.fanouts[trunk.zone].axes:
                self._shared_loop(names, trunk, contexts, nodes, axis)
            trunk.zone += 1
            self._back(names, trunk, nodes)
            self._stores(names, trunk, nodes, 0.15)
        self._back(names, trunk, nodes)
        self._stores(names, trunk, nodes, 0.1)
        cut = sorted(self.rng.sample(range(1, len(names)), self.rng.choice((1, len(names) - 1))))
        groups = [names[a:b] for a, b in zip([0, *cut], [*cut, len(names)], strict=True)]
        branches = tuple(self._grow(group, trunk.copy(), contexts.copy()) for group in groups)
        return (*nodes, Split("sequential", branches))

    def _back(self, names: tuple[str, ...], trunk: Trunk, nodes: list[Node]) -> None:
        """Give every tensor that is still unheld its outermost store, here if it leaves this nest's branches."""
        for tensor in self.workload.tensors:
            if tensor.name not in trunk.held and self._users(names, tensor.name):
                zone = [memory.name for memory in self.zones[trunk.zone]] if trunk.zone else []
                memory = self.rng.choice([self.backing[tensor.name], *zone] if not trunk.zone else zone or [""])
                if memory:
                    nodes.append(Store(memory, (tensor.name,)))
                    trunk.held[tensor.name] = (memory,)

    def _users(self, names: tuple[str, ...], tensor: str) -> tuple[str, ...]:
        return tuple(name for name in names if tensor in self.workload.einsum(name).tensors)

    def _stores(self, names: tuple[str, ...], trunk: Trunk, nodes: list[Node], chance: float) -> None:
        """Stores of this zone's memories, each tensor only below where it is held already."""
        for memory in self.zones[trunk.zone]:
            for tensor in self.workload.tensors:
                held = trunk.held.get(tensor.name)
                if held is None or not self._users(names, tensor.name) or self.rng.random() > chance:
                    continue
                if self.machine.position[held[-1]] < self.machine.position[memory.name]:
                    nodes.append(Store(memory.name, (tensor.name,)))
                    trunk.held[tensor.name] = (*held, memory.name)

    # -- loops -------------------------------------------------------------------------------------------------

    def _all_ties(self, names: tuple[str, ...]) -> list[tuple[tuple[str, str], ...]]:
        last = self.workload.einsum(names[-1])
        found = (self._tie(names, (last.name, variable)) for variable in last.variables)
        return [binds for binds in found if binds]

    def _tie(self, names: tuple[str, ...], start: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        """Binds of a loop that iterates `start` and, through shared tensors, all other Einsums; () if it cannot."""
        bound = dict([start])
        for _ in names:
            for name in reversed(names):
                if name in bound:
                    continue
                for other in list(bound):
                    variable = self._partner(name, other, bound[other])
                    if variable:
                        bound[name] = variable
                        break
        return tuple((name, bound[name]) for name in names) if len(bound) == len(names) else ()

    def _partner(self, name: str, other: str, variable: str) -> str | None:
        mine, theirs = self.workload.einsum(name), self.workload.einsum(other)
        for access in theirs.accesses:
            shared = access.tensor in self.workload.intermediates and access.tensor in mine.tensors
            rank = access.rank_of(variable)
            if not shared or rank is None or access.tensor == theirs.output.tensor:
                continue
            if access.tensor in self.workload.viewed and not self.workload.tied(access.tensor, rank):
                continue
            if mine.access(access.tensor).indices[rank].variables:
                return mine.access(access.tensor).indices[rank].variables[0]
        return None

    def _shared_loop(
        self, names: tuple[str, ...], trunk: Trunk, contexts: Contexts, nodes: list[Node], axis: Axis | None
    ) -> None:
        binds = self._all_ties(names)
        if not binds:
            return
        chosen = self.rng.choice(binds)
        extent = contexts.extent(self.compiler.place[chosen[-1]])
        free = [pair for pair in chosen if not self.compiler.needs(pair[0], dict(chosen), names)]
        if any(contexts.extent(self.compiler.place[pair]) != extent for pair in free):
            return
        tie = dict(chosen)
        for other in trunk.ties:
            same = {name for name in tie if other.get(name, tie[name]) == tie[name]}
            if same and same != set(tie):
                return
        trunk.ties = (*trunk.ties, tie)
        self._loop(chosen, extent, trunk, contexts, nodes, axis)

    def _loop(
        self,
        binds: tuple[tuple[str, str], ...],
        extent: int,
        trunk: Trunk,
        contexts: Contexts,
        nodes: list[Node],
        axis: Axis | None = None,
        final: bool = False,
    ) -> None:
        if extent <= 1 and self.rng.random() > 0.05:
            return
        tile = 1 if final and self.rng.random() < 0.7 else self.rng.randint(1, max(extent - 1, 1))
        if self.rng.random() < 0.04:
            tile = extent
        if axis is not None:
            room = axis.size // trunk.used.get(axis.name, 1)
            if room < 2:
                return
            tile = max(tile, -(-extent // room))
        trips = -(-extent // tile)
        if axis is not None:
            trunk.used[axis.name] = trunk.used.get(axis.name, 1) * trips
        short = -(-extent // trips) == tile and self.rng.random() < 0.5
        loop = Loop(binds, trips, None if short else tile, axis.name if axis is not None else None)
        nodes.append(loop)
        self.compiler.loop(loop, tuple(name for name, _ in binds), contexts)

    # -- one Einsum --------------------------------------------------------------------------------------------

    def _branch(self, name: str, trunk: Trunk, contexts: Contexts) -> Nest:
        nodes: list[Node] = []
        einsum = self.workload.einsum(name)
        self._back((name,), trunk, nodes)

        def extent(variable: str) -> int:
            return contexts.extent(self.compiler.place[name, variable])

        while True:
            for _ in range(self.rng.choice((0, 1, 1, 2)) if einsum.variables else 0):
                variable = self.rng.choice(einsum.variables)
                self._loop(((name, variable),), extent(variable), trunk, contexts, nodes)
                self._stores((name,), trunk, nodes, 0.3)
            self._stores((name,), trunk, nodes, 0.25)
            if trunk.zone >= len(self.fanouts):
                break
            for axis in self.fanouts[trunk.zone].axes:
                if einsum.variables and self.rng.random() < 0.8:
                    open_ = [v for v in einsum.variables if extent(v) > 1] or list(einsum.variables)
                    variable = self.rng.choice([v for v in open_ if v in einsum.reduced] * 2 + open_)
                    self._loop(((name, variable),), extent(variable), trunk, contexts, nodes, axis)
            trunk.zone += 1
        left = [variable for variable in einsum.variables if extent(variable) > 1]
        while left:
            self.rng.shuffle(left)
            self._loop(((name, left[0]),), extent(left[0]), trunk, contexts, nodes, final=True)
            self._stores((name,), trunk, nodes, 0.1)
            left = [variable for variable in einsum.variables if extent(variable) > 1]
        nodes.append(Compute(name, None if einsum.kind == "copy" else self.unit))
        return tuple(nodes)

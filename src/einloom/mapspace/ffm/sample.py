"""Random trees of the space `ffm`, built from the root down, a simple way: Einsums alone or in fused pairs.

Most draws keep the rules; capacity and full-use axes are left to chance, and to care: the more careful a draw, the
smaller its tiles. `Ffm.sample` draws until a tree is a legal member.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from random import Random

from ...machine.levels import Fanout, Machine, Memory
from ...mapping.legality.placement import outermost_home, visible_memories
from ...mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store
from ...workload.einsum import Einsum, Workload
from ..limits.data import Limits
from .rules import allowed_instances, padded_variables

MOST_SPREADS = 5000  # spatial choices of one Einsum that are looked at
Spread = tuple[tuple[str, str, int], ...]


@dataclass
class _Draw:
    """One draw: the source of chance, how careful it is (0 to 1), and the tensors that it fuses."""

    rng: Random
    care: float
    fused: set[str]


@dataclass
class _Above:
    """What stands above an Einsum's own nest: the extents that are left, the fused tensor, and where it is backed."""

    left: dict[str, int]
    fused: str | None = None
    home: int = 0


class Sampler:
    """Draws trees of one workload on one machine."""

    def __init__(self, workload: Workload, machine: Machine, limits: Limits) -> None:
        self.workload, self.machine, self.limits = workload, machine, limits
        fanouts = [i for i, level in enumerate(machine.levels) if isinstance(level, Fanout)]
        first = fanouts[0] if fanouts else len(machine.levels)
        self.homes = [m for m in machine.memories[1:] if machine.position[m.name] < first]
        self.spreads: dict[tuple[str, str, tuple[int, ...]], list[Spread]] = {}

    def draw(self, rng: Random, care: float) -> Mapping:
        """A tree that may be illegal. care: from 0 to 1, how small its tiles are and how little it fuses."""
        draw = _Draw(rng, care, set())
        fuse = rng.random() * (1 - care)
        einsums, nests, i = self.workload.einsums, [], 0
        while i < len(einsums):
            tensor = self._between(i)
            if tensor is not None and self.homes and rng.random() < fuse:
                nests.append(self._pair(draw, einsums[i], einsums[i + 1], tensor))
                i += 2
            else:
                nests.append(self._alone(draw, einsums[i], _Above(self._extents(einsums[i]))))
                i += 1
        outer = self.machine.memories[0].name
        backed = tuple(t.name for t in self.workload.tensors if self._outermost(t.name, draw.fused))
        below: Nest = nests[0] if len(nests) == 1 else (Split("sequential", tuple(nests)),)
        return Mapping((Store(outer, backed), *below) if backed else below)

    def _extents(self, einsum: Einsum) -> dict[str, int]:
        return {v: self.workload.extents[v] for v in einsum.variables}

    def _between(self, i: int) -> str | None:
        """The intermediate that Einsum i writes and the next one alone reads."""
        if i + 1 >= len(self.workload.einsums):
            return None
        tensor = self.workload.einsums[i].output.tensor
        alone = self.workload.consumers.get(tensor, ()) == (self.workload.einsums[i + 1].name,)
        return tensor if alone and tensor in self.workload.intermediates else None

    def _outermost(self, tensor: str, fused: set[str]) -> bool:
        users = [e.name for e in self.workload.einsums if tensor in e.tensors]
        home = outermost_home(self.workload, self.machine, users[0], tensor) if users else None
        return home == self.machine.memories[0].name and tensor not in fused

    def _pair(self, draw: _Draw, producer: Einsum, consumer: Einsum, tensor: str) -> Nest:
        """Two Einsums under shared loops, with the tensor between them backed below these."""
        written = producer.access(tensor).indices
        read = consumer.access(tensor).indices
        one, two = self._extents(producer), self._extents(consumer)
        loops = []
        for mine, theirs in zip(written, read, strict=True):
            if not (mine.simple and theirs.simple):
                continue
            a, b = next(iter(mine.variables)), next(iter(theirs.variables))
            trips = draw.rng.choice([n for n in range(1, one[a] + 1) if one[a] % n == 0 and two[b] % n == 0])
            if trips > 1:
                loops.append(Loop(((producer.name, a), (consumer.name, b)), trips))
                one[a], two[b] = one[a] // trips, two[b] // trips
        draw.rng.shuffle(loops)
        draw.fused.add(tensor)
        home = draw.rng.choice(self.homes)
        place = self.machine.position[home.name]
        branches = tuple(
            self._alone(draw, einsum, _Above(left, tensor, place))
            for einsum, left in ((producer, one), (consumer, two))
        )
        return (*loops, Store(home.name, (tensor,)), Split("sequential", branches))

    def _alone(self, draw: _Draw, einsum: Einsum, above: _Above) -> Nest:
        """The nest of one Einsum: its own stores with loops between them, spatial loops, and the leaf."""
        units = [unit.name for unit in self.machine.units_for(einsum)]
        unit = draw.rng.choice(units) if units and einsum.kind != "copy" else None
        left = dict(above.left)
        spread = self._spread(draw, einsum, unit, left)
        for _, variable, trips in spread:
            left[variable] //= trips
        nodes: list[Node] = []
        reach = -1
        for memory, tensors in self._stores(draw, einsum, unit, above):
            place = self.machine.position[memory]
            nodes += self._temporal(draw, einsum, left, last=False)
            nodes += self._spatial(einsum, spread, reach, place)
            nodes.append(Store(memory, tensors))
            reach = place
        nodes += self._temporal(draw, einsum, left, last=True)
        nodes += self._spatial(einsum, spread, reach, len(self.machine.levels))
        return (*nodes, Compute(einsum.name, unit))

    def _stores(
        self, draw: _Draw, einsum: Einsum, unit: str | None, above: _Above
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Own stores from the outside in: what each memory must hold, and some of what it may."""
        seen = {tensor for tensor in einsum.tensors if tensor != above.fused}
        for memory in visible_memories(self.machine, unit)[1:]:
            if self.machine.position[memory.name] < above.home:
                continue
            here = above.fused if self.machine.position[memory.name] == above.home else None
            chosen = self._held(draw, memory, einsum, seen, here)
            seen |= {here} if here else set()
            draw.rng.shuffle(chosen)
            cut = draw.rng.randint(1, len(chosen)) if chosen and draw.rng.random() < 0.3 else len(chosen)
            for part in (chosen[:cut], chosen[cut:]):
                if part:
                    yield memory.name, tuple(part)

    def _held(self, draw: _Draw, memory: Memory, einsum: Einsum, seen: set[str], here: str | None) -> list[str]:
        must = self.machine.must_hold(memory, self.workload, einsum.name, seen)
        may = self.machine.may_hold(memory, self.workload, einsum.name, seen)
        mine = sorted(set(einsum.tensors) & may - {here})
        return [t for t in mine if t in must or draw.rng.random() < 0.5]

    def _temporal(self, draw: _Draw, einsum: Einsum, left: dict[str, int], last: bool) -> list[Node]:
        """Temporal loops for some of what is left of every variable; for all of it at the end, or with care."""
        variables = list(einsum.variables)
        draw.rng.shuffle(variables)
        loops: list[Node] = []
        for v in variables:
            trips = left[v]
            if not last and draw.rng.random() >= draw.care:
                trips = draw.rng.choice([n for n in range(1, left[v] + 1) if left[v] % n == 0])
            if trips > 1:
                loops.append(Loop(((einsum.name, v),), trips))
                left[v] //= trips
        return loops

    def _spatial(self, einsum: Einsum, spread: Spread, start: int, stop: int) -> list[Node]:
        """The spatial loops over axes that are listed between two levels."""
        place = self.machine.position
        mine = [one for one in spread if start < place[one[0]] < stop]
        return [Loop(((einsum.name, v),), trips, None, axis) for axis, v, trips in mine]

    def _spread(self, draw: _Draw, einsum: Einsum, unit: str | None, left: dict[str, int]) -> Spread:
        """Instances per axis and variable; of full-use axes only choices that use the most."""
        if unit is None:
            return ()
        key = (einsum.name, unit, tuple(left.values()))
        if key not in self.spreads:
            self.spreads[key] = self._fullest(draw.rng, einsum, unit, left)
        return draw.rng.choice(self.spreads[key])

    def _fullest(self, rng: Random, einsum: Einsum, unit: str, left: dict[str, int]) -> list[Spread]:
        place, padded = self.machine.position, padded_variables(self.workload, einsum.name)
        found: list[Spread] = [()]
        axes = [axis for axis in self.machine.axes.values() if place[axis.name] < place[unit]]
        for axis in axes:
            for v in einsum.variables:
                takes = allowed_instances(self.workload, einsum.name, self.limits, axis, v, padded)
                grown = []
                for spread in found:
                    used = prod(n for a, _, n in spread if a == axis.name)
                    rest = left[v] // prod(n for _, w, n in spread if w == v)
                    fits = [n for n in takes if used * n <= axis.size and rest % n == 0]
                    grown += [(*spread, (axis.name, v, n)) if n > 1 else spread for n in fits]
                found = rng.sample(grown, MOST_SPREADS) if len(grown) > MOST_SPREADS else grown
        full = {axis.name for axis in axes if axis.use == "full"}
        products = [prod(n for a, _, n in spread if a in full) for spread in found]
        most = max(products, default=1)
        return [spread for spread, used in zip(found, products, strict=True) if used == most] or [()]

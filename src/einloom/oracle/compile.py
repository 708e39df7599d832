"""From mapping to plan: resolves every name of a tree, and says why a tree has no meaning.

Workload, machine and mapping come in; a `Plan` goes out. Only structure is decided here (which store is above which,
which loop slides, which producer follows which consumer); nothing is counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import field, replace
from math import prod

from ..dataclass import dataclass
from ..machine.levels import Fanout, Link, Machine, Memory, Toll
from ..mapping.tree import Compute, Loop, Mapping, Nest, Split, Store, einsums_below
from ..workload.einsum import Access, Workload
from ..workload.selectors import select
from .branches import (
    at_once,
    branch_reasons,
    first_of_shares,
    flat,
    private_levels,
    shared_out,
    stages_apart,
    taken,
)
from .contexts import Contexts
from .lifetime import always_alive
from .plan import (
    Exchange,
    Expression,
    Gate,
    LeafPlan,
    LoopPlan,
    Need,
    Needed,
    NestPlan,
    NodePlan,
    OccupancyMoment,
    Operand,
    PlaceCut,
    Places,
    Plan,
    Range,
    Reshape,
    Site,
    SplitPlan,
    StorePlan,
    Turn,
)
from .reference import written_elements


@dataclass(frozen=True)
class _Above:
    """What stands above a node: loops (outermost first; also as plans), innermost site per tensor, sites, branches.

    where: per axis that some split shares out, the positions of the instances at work here.
    """

    temporal: tuple[Loop, ...] = ()
    spatial: tuple[Loop, ...] = ()
    plans: tuple[LoopPlan, ...] = ()
    innermost: dict[str, Site] = field(default_factory=dict)
    sites: tuple[Site, ...] = ()
    turns: tuple[Turn, ...] = ()
    where: Places = ()

    def moved(self, axis: str | None, offsets: Collection[int]) -> _Above:
        """The same with every instance along `axis` once for each of `offsets`, so far from where it was."""
        where = tuple(
            (name, frozenset(p + step for p in places for step in offsets) if name == axis else places)
            for name, places in self.where
        )
        return replace(self, where=where)

    @property
    def steps(self) -> int:
        """Temporal loops of more than one trip."""
        return sum(loop.trips > 1 for loop in self.temporal)

    @property
    def memories(self) -> set[str]:
        return {site.memory for site in self.sites}


class Compiler:
    """Builds the plan of one mapping; `reasons` collects what is wrong with its structure."""

    def __init__(self, workload: Workload, machine: Machine, mapping: Mapping) -> None:
        self.workload, self.machine, self.mapping = workload, machine, mapping
        self.reasons: list[str] = []
        self.sites: list[Site] = []
        self.leaves: list[LeafPlan] = []
        self.splits = 0
        self.exchanges: list[Exchange] = []
        self.bit = {einsum.name: 1 << i for i, einsum in enumerate(workload.einsums)}
        self.pairs = [(einsum.name, v) for einsum in workload.einsums for v in einsum.variables]
        self.place = {pair: i for i, pair in enumerate(self.pairs)}
        self.ranges = [(0, workload.extents[v]) for _, v in self.pairs]

    def plan(self) -> Plan:
        order = self.mapping.einsums
        for einsum in self.workload.einsums:
            if order.count(einsum.name) != 1:
                self.reasons.append(f"structure: Einsum {einsum.name} has {order.count(einsum.name)} leaves, needs 1")
            if einsum.output.tensor in self.workload.parted:
                points = prod(self.workload.extents[v] for v in einsum.output.variables)
                if len(written_elements(self.workload, einsum.name)) < points:
                    self.reasons.append(f"not simulated: {einsum.name} writes some element more than once")
            if einsum.reduction == "online_softmax":
                self.reasons.append(f"not simulated: online softmax in {einsum.name}")
        unknown = sorted(set(order) - set(self.bit))
        self.reasons.extend(f"structure: no Einsum is called {name}" for name in unknown)
        root = NestPlan([], 0, ())
        if not self.reasons:
            contexts = Contexts(self.mapping.nest, self.place, self.ranges)
            cut = sorted(shared_out(self.mapping.nest).intersection(self.machine.axes))
            where = tuple((axis, frozenset((0,))) for axis in cut)
            root = self._nest(self.mapping.nest, _Above(where=where), contexts)
        return Plan(root, self.ranges, self.sites, self.leaves, self.reasons, self.exchanges)

    def _nest(self, nest: Nest, above: _Above, contexts: Contexts) -> NestPlan:
        nodes: list[NodePlan] = []
        below = einsums_below(nest)
        outside = set(map(id, self.sites))
        last_store = max((i for i, node in enumerate(nest) if isinstance(node, Store)), default=-1)
        if not nest or not isinstance(nest[-1], Split | Compute):
            self.reasons.append("structure: a nest must end with a split or a compute")
            return NestPlan([], 0, ())
        for i, node in enumerate(nest):
            if i == last_store + 1 and isinstance(nest[-1], Compute):
                held = tuple(site for site in above.sites if not site.link)
                nodes.append(OccupancyMoment(nest[-1].einsum, held, above.turns))
            if isinstance(node, Store):
                sites, above = self._store(node, nest[i + 1 :], above)
                nodes.append(StorePlan(sites))
            elif isinstance(node, Loop):
                plan = self.loop(node, einsums_below(nest[i + 1 :]), contexts)
                self._check_guides(plan, above)
                nodes.append(plan)
                above = replace(
                    above,
                    temporal=(*above.temporal, *([node] if node.axis is None else [])),
                    spatial=(*above.spatial, *([node] if node.axis is not None else [])),
                    plans=(*above.plans, plan),
                )
                if node.axis is not None:
                    apart = taken(nest[i + 1 :], node.axis)
                    above = above.moved(node.axis, range(0, node.trips * apart, apart))
            elif i != len(nest) - 1:
                self.reasons.append("structure: a split or a compute must end its nest")
            elif isinstance(node, Split):
                nodes.append(self._split(node, above, contexts))
            else:
                leaf = self._leaf(node, above, contexts)
                if leaf is not None:
                    nodes.append(leaf)
                    self.leaves.append(leaf)
        tops = tuple(s for s in self.sites if id(s) not in outside and (s.parent is None or id(s.parent) in outside))
        return NestPlan(nodes, sum(self.bit[name] for name in below), tops)

    def _split(self, split: Split, above: _Above, contexts: Contexts) -> SplitPlan:
        if split.kind == "sequential":
            plans = [self._nest(b, above, contexts.copy()) for b in split.branches]
            self.splits += 1
            key = self.splits if any(at_once(branch) for branch in split.branches) else None
            return SplitPlan(tuple(plans), walled=(key,) * len(plans))
        self.splits += 1
        number = self.splits
        self.reasons.extend(branch_reasons(self.workload, self.machine, split, above.memories))
        private = private_levels(self.machine, split)
        plans, handed = [], []
        pipelined = split.kind == "pipelined"
        first = first_of_shares(split)
        for i, branch in enumerate(split.branches):
            turn = Turn(number, i, private)
            inside = replace(above, turns=(*above.turns, turn)).moved(split.where, (first[i],))
            plans.append(self._nest(branch, inside, contexts.copy()))
            later = {e for after in split.branches[i + 1 :] for e in einsums_below(after)}
            read = {a.tensor for e in later & set(self.bit) for a in self.workload.einsum(e).inputs}
            if pipelined:
                self.exchanges.extend(self._exchanges(branch, later, above))
            handed.append(tuple(site for site in plans[-1].tops if site.produced and site.tensor in read))
        walled = tuple(
            (number, i) if at_once(branch) and not (pipelined and flat(branch)) else None
            for i, branch in enumerate(split.branches)
        )
        return SplitPlan(tuple(plans), True, tuple(handed), walled)

    def _exchanges(self, branch: Nest, later: set[str], above: _Above) -> Iterator[Exchange]:
        for writer in set(einsums_below(branch)) & set(self.bit):
            tensor = self.workload.einsum(writer).output.tensor
            for reader in self.workload.consumers.get(tensor, ()):
                site = above.innermost.get(tensor)
                if reader in later and site is not None:
                    yield Exchange(site, writer, reader, len(above.temporal), site.loops == above.steps)

    # -- loops -------------------------------------------------------------------------------------------------

    def loop(self, loop: Loop, einsums: tuple[str, ...], contexts: Contexts) -> LoopPlan:
        """The plan of `loop` above the leaves of `einsums`; `contexts` goes below it."""
        bound = dict(loop.binds)
        if len(bound) != len(loop.binds):
            self.reasons.append("structure: a loop binds two variables of one Einsum")
        cuts: list[PlaceCut] = []
        for einsum in reversed(einsums):
            if einsum not in bound:
                continue
            place = self.place.get((einsum, bound[einsum]))
            if place is None:
                self.reasons.append(f"structure: {einsum} has no variable {bound[einsum]}")
                continue
            needs = self.needs(einsum, bound, einsums, once=loop.trips == 1)
            extent = contexts.extent(place)
            tile = loop.tile or -(-extent // loop.trips)
            if not needs and loop.trips != -(-extent // tile):
                self.reasons.append(
                    f"trips: {einsum}.{bound[einsum]} of extent {extent} in tiles of {tile} takes "
                    f"{-(-extent // tile)} trips, not {loop.trips}"
                )
            cuts.append(PlaceCut(place, self.bit[einsum], tile, needs))
        self.reasons.extend(f"structure: a loop binds {e}, which is not below it" for e in bound if e not in einsums)
        if loop.axis is not None and loop.axis not in self.machine.axes:
            self.reasons.append(f"structure: no fanout axis is called {loop.axis}")
        plan = LoopPlan(loop.trips, loop.axis, tuple(cuts), sum(self.bit[name] for name in einsums))
        contexts.advance(plan)
        return plan

    def _check_guides(self, plan: LoopPlan, above: _Above) -> None:
        """A producer's variable may follow only one variable of each consumer: two of them have no common order."""
        for cut in plan.cuts:
            guides = {self.pairs[need.place][0]: self.pairs[need.place][1] for need in cut.needs}
            outer = [c for p in above.plans if p.trips > 1 and plan.trips > 1 for c in p.cuts if c.place == cut.place]
            for consumer, variable in (self.pairs[need.place] for c in outer for need in c.needs):
                if guides.get(consumer, variable) != variable:
                    name, own = self.pairs[cut.place]
                    self.reasons.append(
                        f"not simulated: {name}.{own} follows {consumer}.{variable} in one loop and "
                        f"{consumer}.{guides[consumer]} in another inside it"
                    )

    def needs(
        self, einsum: str, bound: dict[str, str], einsums: tuple[str, ...], once: bool = False
    ) -> tuple[Need, ...]:
        """The later consumers below a loop that the bound variable of `einsum` must follow. once: the loop makes one
        trip, in which nobody follows a part of anything."""
        output = self.workload.einsum(einsum).output
        variable = bound[einsum]
        rank = output.rank_of(variable)
        if rank is None:
            return ()
        needs = []
        for name in einsums[einsums.index(einsum) + 1 :]:
            consumer = self.workload.einsum(name)
            if name not in bound or all(a.tensor != output.tensor for a in consumer.inputs):
                continue
            access = consumer.access(output.tensor)
            if output.tensor in self.workload.viewed and not self.workload.tied(output.tensor, rank):
                if bound[name] in access.variables and not once:
                    self.reasons.append(f"not simulated: {einsum} follows {name} across a view, {access}")
                continue
            index, size = access.indices[rank], self.workload.tensor(output.tensor).shape[rank]
            if bound[name] not in index.variables:
                continue
            if not self.workload.tied(output.tensor, rank):
                if not once:
                    self.reasons.append(
                        f"not simulated: {einsum} follows {name} through {output.indices[rank]}, a part"
                    )
                continue
            others = sum(c * (self.workload.extents[v] - 1) for v, c in index.terms if v != bound[name])
            coefficient = dict(index.terms)[bound[name]]
            needs.append(Need(self.place[name, bound[name]], coefficient, others + index.constant, size))
        return tuple(needs)

    # -- stores ------------------------------------------------------------------------------------------------

    def _store(self, store: Store, below: Nest, above: _Above) -> tuple[tuple[Site, ...], _Above]:
        if store.memory not in {memory.name for memory in self.machine.memories}:
            self.reasons.append(f"not simulated: {store.memory} is no memory of this machine")
            return (), above
        self._check_fanouts(store.memory, above)
        sites = []
        for tensor in store.tensors:
            users = tuple(e for e in einsums_below(below) if tensor in self.workload.einsum(e).tensors)
            if not users:
                self.reasons.append(f"structure: no Einsum below the store of {tensor} in {store.memory} accesses it")
                continue
            site = self._site(store, tensor, users, below, above)
            if site.parent is not None:
                site.parent.children.append(site)
                outer = site.parent.memory
                if self.machine.position[outer] > self.machine.position[store.memory]:
                    self.reasons.append(f"structure: {tensor} in {store.memory} stands below its store in {outer}")
            sites.append(site)
        self.sites.extend(sites)
        innermost = {**above.innermost, **{site.tensor: site for site in sites}}
        return tuple(sites), replace(above, innermost=innermost, sites=(*above.sites, *sites))

    def _site(self, store: Store, tensor: str, users: tuple[str, ...], below: Nest, above: _Above) -> Site:
        name = store.memory
        memory = self.machine.memory(name)
        parent = above.innermost.get(tensor)
        producer = self._writer(tensor, users)
        depth = parent.depth if parent else 0
        over = self.machine.memory(parent.memory) if parent else None
        data = self.workload.tensor(tensor)
        width = memory.bits(self.workload, users[0], tensor)
        room = self._slots(store, tensor, self.workload.producers.get(tensor), below)
        return Site(
            memory=name,
            tensor=tensor,
            users=tuple((u, self.bit[u], self._expressions(u, self.workload.einsum(u).access(tensor))) for u in users),
            producer=producer,
            parent=parent,
            depth=len(above.spatial),
            cut=self._sliding(tensor, users, above.temporal),
            read_by=self._apart(tensor, users, users[0], above.spatial, range(depth), over),
            write_by=self._apart(tensor, users, producer or users[0], above.spatial, range(depth)),
            spatial=tuple((loop.axis or "", loop.trips) for loop in above.spatial),
            width=width * room,
            needed=self._needed(tensor),
            alive=always_alive(below, users),
            persistent=data.persistent and parent is None,
            turns=above.turns,
            slots=room,
            loops=above.steps,
            link=isinstance(memory, Link),
            gates=self._gates(parent.memory, name, tensor, users, above, over) if parent else (),
            where=above.where,
            view=self._reshape(self.workload.einsum(users[0]).access(tensor)) if len(users) == 1 else None,
            all=self._whole(tensor) if len(users) > 1 and tensor in self.workload.viewed else None,
        )

    def _whole(self, tensor: str) -> tuple[Range | None, ...]:
        """The ends of the ranks along which a tensor with views is held whole; None for the others."""
        shape = self.workload.tensor(tensor).shape
        return tuple(None if self.workload.tied(tensor, rank) else (0, n) for rank, n in enumerate(shape))

    def _reshape(self, access: Access) -> Reshape | None:
        """The way from the ranks of an access to those of its tensor; None if they are the same."""
        tensor = self.workload.tensor(access.tensor)
        return Reshape(self.workload.shape(access), tensor.shape) if access.view else None

    def _gates(
        self, outer: str, inner: str, tensor: str, users: tuple[str, ...], above: _Above, over: Memory | None = None
    ) -> tuple[Gate, ...]:
        """The tolls between two levels, as the users' values of the tensor pass them."""
        first, last = sorted((self.machine.position[outer], self.machine.position[inner]))
        writer = self._writer(tensor, users)
        found = []
        for toll in (toll for toll in self.machine.tolls if first < self.machine.position[toll.name] < last):
            down = toll.charges(self.workload, users[0], tensor)[0]
            up = writer is not None and toll.charges(self.workload, writer, tensor)[1]
            own = self._own(toll, above.spatial)
            by = [
                self._apart(tensor, users, user, above.spatial, own, over if user != writer else None)
                for user in (users[0], writer or users[0])
            ]
            axes = tuple((above.spatial[i].axis or "", above.spatial[i].trips) for i in own)
            ways = (by[0] if down else None, by[1] if up else None)
            found.append(Gate(toll.name, tensor, own, axes, *ways, above.turns, above.where))
        return tuple(found)

    def _own(self, toll: Toll, spatial: tuple[Loop, ...]) -> tuple[int, ...]:
        """The spatial loops over fanouts listed before the toll."""
        place = self.machine.position
        axes = ((i, loop.axis) for i, loop in enumerate(spatial) if loop.axis in self.machine.axes)
        return tuple(i for i, axis in axes if axis is not None and place[axis] < place[toll.name])

    def _slots(self, store: Store, tensor: str, producer: str | None, below: Nest) -> int:
        """Tiles that a store has room for."""
        if store.slots is not None:
            return store.slots
        consumers = self.workload.consumers.get(tensor, ())
        apart = stages_apart(below, tensor, producer, consumers) if producer is not None else 0
        return max(self.machine.memory(store.memory).capacity_share(), 1 + apart)

    def _writer(self, tensor: str, users: tuple[str, ...]) -> str | None:
        """The first of the users that writes the tensor."""
        return next((user for user in users if user in self.workload.writers.get(tensor, ())), None)

    def _needed(self, tensor: str) -> Needed:
        """Operations that complete the elements of a tensor (0 for what is there from the start)."""
        counts = {
            name: prod(self.workload.extents[v] for v in self.workload.einsum(name).reduced)
            for name in self.workload.writers.get(tensor, ())
        }
        if tensor not in self.workload.parted:
            return Needed(next(iter(counts.values()), 0))
        return Needed(0, {e: n for name, n in counts.items() for e in written_elements(self.workload, name)})

    def _depends(self, loop: Loop, tensor: str, users: tuple[str, ...]) -> bool:
        return any(loop.variable(user) in self.workload.einsum(user).access(tensor).variables for user in users)

    def _sliding(self, tensor: str, users: tuple[str, ...], temporal: tuple[Loop, ...]) -> int:
        """Temporal loops further out than the sliding loop (0 if there is none: nothing is ever forgotten)."""
        for i in reversed(range(len(temporal))):
            if temporal[i].trips > 1 and self._depends(temporal[i], tensor, users):
                return i
        return 0

    def _apart(
        self,
        tensor: str,
        users: tuple[str, ...],
        payer: str,
        spatial: tuple[Loop, ...],
        outside: Collection[int],
        over: Memory | None = None,
    ) -> tuple[int, ...]:
        """Coordinates that distinguish requests at the next store above, or at a toll on the way: `outside` are the
        spatial loops above that.

        over: the memory or the link of that store, if it is known.
        """
        writes = payer in self.workload.writers.get(tensor, ())
        kept = []
        for i in range(len(spatial)):
            axis = self.machine.axes.get(spatial[i].axis or "")
            shared = axis is not None and tensor in select(
                axis.reduce if writes else axis.multicast, self.workload, payer
            )
            shared = over.multicast if isinstance(over, Link) and not writes else shared
            if i in outside or self._depends(spatial[i], tensor, users) or not shared:
                kept.append(i)
        return tuple(kept)

    def _expressions(self, einsum: str, access: Access) -> tuple[Expression, ...]:
        shape = self.workload.shape(access)
        part = access.tensor in self.workload.parted and einsum in self.workload.writers.get(access.tensor, ())
        return tuple(
            Expression(tuple((self.place[einsum, v], c) for v, c in index.terms), index.constant, size, part)
            for index, size in zip(access.indices, shape, strict=True)
        )

    def _carried(self, einsum: str, source: Operand, target: str, above: _Above) -> tuple[Gate, ...]:
        """The tolls that a copy's values pass, all one way, from the input's store to the output's."""
        place = self.machine.position
        inwards = place[source.site.memory] < place[target]
        found = []
        for gate in self._gates(source.site.memory, target, source.tensor, (einsum,), above):
            toll = next(toll for toll in self.machine.tolls if toll.name == gate.memory)
            up = toll.charges(self.workload, einsum, source.tensor)[1]
            by = self._apart(source.tensor, (einsum,), einsum, above.spatial, gate.own)
            found.append(replace(gate, down=gate.down if inwards else None, up=by if up and not inwards else None))
        return tuple(found)

    # -- fanouts -----------------------------------------------------------------------------------------------

    def _check_fanouts(self, level: str, above: _Above) -> None:
        """A level stands below spatial loops over the fanouts listed before it, and over no other."""
        before = self.machine.levels[: self.machine.position[level]]
        private = {axis.name for fanout in before if isinstance(fanout, Fanout) for axis in fanout.axes}
        for loop in above.spatial:
            if loop.axis not in private:
                self.reasons.append(f"fanout: {level} stands below a spatial loop over {loop.axis}, listed after it")
        for name, axis in self.machine.axes.items():
            used = prod(loop.trips for loop in above.spatial if loop.axis == name)
            if used > axis.size:
                self.reasons.append(f"fanout: {used} instances of axis {name} are used, it has {axis.size}")

    def _leaf(self, node: Compute, above: _Above, contexts: Contexts) -> LeafPlan | None:
        einsum = self.workload.einsum(node.einsum)
        places = tuple(self.place[node.einsum, v] for v in einsum.variables)
        for variable, place in zip(einsum.variables, places, strict=True):
            if contexts.extent(place) > 1:
                self.reasons.append(
                    f"structure: {node.einsum}.{variable} has extent {contexts.extent(place)} at the leaf, not 1"
                )
        missing = [tensor for tensor in einsum.tensors if tensor not in above.innermost]
        self.reasons.extend(f"structure: {tensor} is stored nowhere above {node.einsum}" for tensor in missing)
        if (node.unit is None) != (einsum.kind == "copy"):
            self.reasons.append(f"structure: {node.einsum} needs {'no' if node.unit else 'a'} compute unit")
        elif node.unit is not None:
            self._check_fanouts(node.unit, above)
        if missing:
            return None

        def operand(access: Access) -> Operand:
            site = above.innermost[access.tensor]
            apart = self._apart(access.tensor, (node.einsum,), node.einsum, above.spatial, range(site.depth))
            gates = (
                () if node.unit is None else self._gates(site.memory, node.unit, access.tensor, (node.einsum,), above)
            )
            expressions = self._expressions(node.einsum, access)
            return Operand(access.tensor, expressions, site, apart, gates, self._reshape(access))

        output = operand(einsum.output)
        read = {access.tensor: operand(access) for access in einsum.inputs}
        inputs = tuple(read[access.tensor] for access in einsum.inputs)
        if node.unit is None:
            inputs = (replace(inputs[0], gates=self._carried(node.einsum, inputs[0], output.site.memory, above)),)
        return LeafPlan(
            einsum=node.einsum,
            unit=node.unit,
            places=places,
            inputs=inputs,
            output=output,
            kind=einsum.kind,
            function=einsum.function or "identity",
            reduction=einsum.reduction,
            free=einsum.kind == "copy" and inputs[0].site.memory == output.site.memory,
            spatial=tuple((loop.axis or "", loop.trips) for loop in above.spatial),
            turns=above.turns,
            where=above.where,
        )

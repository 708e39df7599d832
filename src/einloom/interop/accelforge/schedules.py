"""An AccelForge mapping as a `Mapping`.

``mapping.nodes`` comes in as a located view, a tree of stores, loops and sequential splits goes out. A ``tile_shape``
is the extent below the loop, as here. Three things are written so that they mean the same here: AccelForge counts the
occupancy of a store that does not back its tensor as if it stood below the loops that follow and move its tile
(`lowered`); such a store above a split serves each Einsum anew (`separated`); and the backing store that two branches
share is written in both (`hoisted`). Nodes of the kind ``Toll`` say what follows from the machine here (`check_tolls`).
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from copy import deepcopy
from dataclasses import replace

from ...errors import nearest
from ...machine.levels import Machine
from ...mapping.extents import addressed_paths
from ...mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store, leaves
from ...reading.located import Located
from ...workload.einsum import Workload
from .expressions import Value, whole
from .scopes import texts
from .tagged import TAG

NODES = ("Storage", "Temporal", "Spatial", "Compute", "Sequential", "Pipeline", "Nested", "Toll", "Reservation")
BRANCHES = ("Sequential", "Pipeline")


class ScheduleReader:
    """Reads the section ``mapping`` for one workload and one machine."""

    def __init__(
        self, workload: Workload, machine: Machine, variables: Table[str, Value], remainder: Table[str, object]
    ) -> None:
        self.workload, self.machine, self.variables = workload, machine, variables
        self.paid: set[tuple[str, str, str]] = set()
        """(Einsum, toll, tensor) of every node of the kind ``Toll``."""
        self.names = {key: texts(remainder, key) for key in ("components", "axes", "variables")}

    def read(self, view: Located) -> Mapping:
        """The mapping; raises SpecError with the place of what cannot be read or carried over."""
        nodes = view.require("nodes")
        view.finish()
        extents = {e.name: {v: self.workload.extents[v] for v in e.variables} for e in self.workload.einsums}
        nest = self.nest(nodes.items(), nodes, extents)
        found = Mapping(hoisted(lowered(separated(nest, self.workload), self.workload)))
        self.check_tolls(found, nodes)
        return found

    def nest(self, items: list[Located], place: Located, extents: dict[str, dict[str, int]]) -> Nest:
        """The nodes of one branch; `extents` says what is left of every variable of every Einsum above them."""
        if not items:
            raise place.error("an empty branch")
        below = self.einsums(items)
        nodes: list[Node] = []
        for i, item in enumerate(items):
            tag = item.require(TAG)
            kind = tag.choice(NODES)
            last = i == len(items) - 1
            if last is not (kind in ("Compute", *BRANCHES)) and kind != "Nested":
                raise tag.error("a branch ends with a Compute or a Sequential, and with nothing else")
            match kind:
                case "Storage":
                    nodes += self.stores(item, below)
                case "Toll":
                    self.toll(item, below)
                case "Temporal" | "Spatial":
                    nodes += self.loop(item, kind == "Spatial", below, extents)
                case "Compute":
                    nodes.append(self.compute(item))
                case "Sequential":
                    inner = item.require("nodes")
                    item.finish()
                    branches = [self.nest(*self.branch(part), deepcopy(extents)) for part in inner.items()]
                    nodes.append(Split("sequential", tuple(branches)))
                case "Nested" if last:
                    nodes += self.nest(*self.branch(item), extents)
                case "Pipeline":
                    raise tag.error("AccelForge prices a Pipeline like a Sequential; say Sequential if that is meant")
                case _:
                    raise tag.error(f"a {kind} has no counterpart in a mapping here")
        return tuple(nodes)

    def branch(self, view: Located) -> tuple[list[Located], Located]:
        """The nodes of a branch, a ``Nested`` opened."""
        if view.require(TAG).text() != "Nested":
            return [view], view
        inner = view.require("nodes")
        view.finish()
        return inner.items(), inner

    def einsums(self, items: list[Located]) -> tuple[str, ...]:
        """Names of the Einsums computed in these nodes."""
        found: list[str] = []
        for item in items:
            kind = item.require(TAG).text()
            if kind == "Compute":
                found.append(self.known_einsum(item.require("einsum")))
            elif kind in (*BRANCHES, "Nested"):
                found += self.einsums(item.require("nodes").items())
        return tuple(found)

    def stores(self, view: Located, below: tuple[str, ...]) -> list[Node]:
        component = view.require("component")
        memory = self.known(component, "components", [m.name for m in self.machine.memories], "memory")
        names = view.require("tensors")
        for key in ("persistent", "uneven_fanout"):
            if (field := view.get(key)) is not None and field.boolean():
                raise field.error(f"{key} has no counterpart in a mapping here")
        view.finish()
        known = [tensor.name for tensor in self.workload.tensors]
        for name in names.names():
            if name not in known:
                raise names.error(f"the workload has no tensor {name!r}", nearest(name, known))
        used = {t for e in self.workload.einsums if e.name in below for t in e.tensors}
        return [Store(memory, (name,)) for name in names.names() if name in used]

    def toll(self, view: Located, below: tuple[str, ...]) -> None:
        """Note what a toll charges; where it stands follows from the machine."""
        name = self.known(view.require("component"), "components", [t.name for t in self.machine.tolls], "toll")
        toll = next(t for t in self.machine.tolls if t.name == name)
        for tensor in (names := view.require("tensors")).names():
            users = [e for e in self.workload.einsums if e.name in below and tensor in e.tensors]
            if not any(any(toll.charges(self.workload, e.name, tensor)) for e in users):
                raise names.error(f"{name} charges no {tensor!r} here")
            self.paid |= {(e.name, name, tensor) for e in users}
        view.get("persistent")
        view.finish()

    def check_tolls(self, mapping: Mapping, place: Located) -> None:
        """Raise SpecError if the mapping leaves out a toll that is paid here, where all that passes is charged."""
        place_of = self.machine.position
        for name, steps in addressed_paths(mapping.nest).items():
            einsum, leaf = self.workload.einsum(name), steps[-1][1]
            if not isinstance(leaf, Compute) or leaf.unit is None:
                continue
            for toll in (t for t in self.machine.tolls if place_of[t.name] < place_of[leaf.unit]):
                above = {m.name for m in self.machine.memories if place_of[m.name] < place_of[toll.name]}
                stored = {t for _, n in steps if isinstance(n, Store) and n.memory in above for t in n.tensors}
                for tensor in (t for t in einsum.tensors if t in stored and (name, toll.name, t) not in self.paid):
                    down, up = toll.charges(self.workload, name, tensor)
                    if down or (up and tensor == einsum.output.tensor):
                        raise place.error(f"{tensor} of {name} passes {toll.name}, which the mapping leaves out")

    def loop(
        self, view: Located, spatial: bool, below: tuple[str, ...], extents: dict[str, dict[str, int]]
    ) -> list[Node]:
        ranks, shape = view.require("rank_variable"), view.require("tile_shape")
        axis = None
        if spatial:
            axis = self.known(view.require("name"), "axes", list(self.machine.axes), "axis")
            view.get("component")
        if (first := view.get("initial_tile_shape")) is not None:
            raise first.error("initial_tile_shape has no counterpart here: halos follow from the index expressions")
        view.finish()
        tile = whole(shape, self.variables)
        names = {self.names["variables"].get(name, name) for name in ranks.names()}
        binds = [(e, v) for e in below if e in extents for v in extents[e] if v in names]
        if not binds:
            raise ranks.error(f"no Einsum below has the rank variable {', '.join(sorted(names))}")
        if len({e for e, _ in binds}) < len(binds):
            raise ranks.error("the loop would step two rank variables of one Einsum")
        trips = {-(-extents[e][v] // tile) for e, v in binds}
        if len(trips) > 1:
            raise shape.error("the Einsums below would need different numbers of trips")
        for einsum, variable in binds:
            extents[einsum][variable] = min(tile, extents[einsum][variable])
        count = trips.pop()
        return [] if count == 1 and not spatial else [Loop(tuple(binds), count, tile, axis)]

    def compute(self, view: Located) -> Compute:
        name = self.known_einsum(view.require("einsum"))
        unit = self.known(view.require("component"), "components", [u.name for u in self.machine.units], "compute unit")
        view.finish()
        return Compute(name, None if self.workload.einsum(name).kind == "copy" else unit)

    def known_einsum(self, view: Located) -> str:
        """The name of an Einsum of the workload."""
        known = [e.name for e in self.workload.einsums]
        if (name := view.name()) not in known:
            raise view.error(f"the workload has no Einsum {name!r}", nearest(name, known))
        return name

    def known(self, view: Located, table: str, names: list[str], what: str) -> str:
        """The name of a component of the machine."""
        written = view.name()
        name = self.names[table].get(written, written)
        if name not in names:
            raise view.error(f"machine {self.machine.name} has no {what} {written!r}", nearest(written, names))
        return name


def separated(nest: Nest, workload: Workload, held: frozenset[str] = frozenset()) -> Nest:
    """The nest with each non-backing store right above a split in every branch that uses it, where several do.

    AccelForge analyses each Einsum alone: what a producer left there is fetched again by its consumer.
    """
    found: list[Node] = []
    again: list[Store] = []  # the stores that end `found` so far and are not the first of their tensor
    for node in nest:
        if isinstance(node, Store):
            again = [*again, node] if held & set(node.tensors) else []
            held |= set(node.tensors)
        elif isinstance(node, Split):
            uses = [_used(branch, workload) for branch in node.branches]
            moved = [s for s in again if sum(s.tensors[0] in used for used in uses) > 1]
            found = [other for other in found if other not in moved]
            branches = [
                (*(s for s in moved if s.tensors[0] in used), *branch)
                for branch, used in zip(node.branches, uses, strict=True)
            ]
            node = replace(node, branches=tuple(separated(branch, workload, held) for branch in branches))
        else:
            again = []
        found.append(node)
    return tuple(found)


def _used(nest: Nest, workload: Workload) -> frozenset[str]:
    """The tensors that the Einsums below access."""
    return frozenset(t for leaf in leaves(nest) for t in workload.einsum(leaf.einsum).tensors)


def lowered(nest: Nest, workload: Workload, held: frozenset[str] = frozenset()) -> Nest:
    """The nest with every store that does not back its tensor below the loops that AccelForge counts it under.

    Those are the temporal loops that follow at once: any number over variables that alone index a rank of the tensor,
    and at most one over a variable inside a sum. A loop that the tensor lacks, a spatial loop and a store end it.
    """
    nodes = list(nest)
    found: list[Node] = []
    while nodes:
        node = nodes.pop(0)
        if isinstance(node, Split):
            found.append(replace(node, branches=tuple(lowered(b, workload, held) for b in node.branches)))
        elif isinstance(node, Store) and node.tensors[0] in held:
            below = tuple(leaf.einsum for leaf in leaves(tuple(nodes)))
            count = _depth(node.tensors[0], nodes, below, workload)
            found += nodes[:count]
            found.append(node)
            del nodes[:count]
        else:
            if isinstance(node, Store):
                held |= set(node.tensors)
            found.append(node)
    return tuple(found)


def hoisted(nest: Nest, held: frozenset[str] = frozenset()) -> Nest:
    """The nest with the common backing store of a tensor above the split whose branches each declare it.

    AccelForge writes it into every branch that uses the tensor, before the branch's loops; here it stands once.
    """
    found: list[Node] = []
    for node in nest:
        if isinstance(node, Store):
            held |= set(node.tensors)
        if isinstance(node, Split):
            heads = [_leading(branch) for branch in node.branches]
            every = [store for head in heads for store in head]
            common = [
                store for store in dict.fromkeys(every) if every.count(store) > 1 and not held & set(store.tensors)
            ]
            found += common
            held |= {tensor for store in common for tensor in store.tensors}
            rest = [
                tuple(n for i, n in enumerate(branch) if i >= len(head) or n not in common)
                for branch, head in zip(node.branches, heads, strict=True)
            ]
            node = replace(node, branches=tuple(hoisted(branch, held) for branch in rest))
        found.append(node)
    return tuple(found)


def _leading(branch: Nest) -> tuple[Store, ...]:
    """The stores before the first other node."""
    found: list[Store] = []
    for node in branch:
        if not isinstance(node, Store):
            break
        found.append(node)
    return tuple(found)


def _depth(tensor: str, nodes: list[Node], below: tuple[str, ...], workload: Workload) -> int:
    """How many of the following nodes a store of `tensor` is lowered through."""
    windows = 0
    for i, node in enumerate(nodes):
        if not isinstance(node, Loop) or node.axis is not None:
            return i
        for einsum in below:
            if tensor not in workload.einsum(einsum).tensors:
                continue
            variable, access = node.variable(einsum), workload.einsum(einsum).access(tensor)
            rank = None if variable is None else access.rank_of(variable)
            if rank is None:
                return i
            if len(access.indices[rank].terms) != 1:
                windows += 1
                if windows > 1:
                    return i
    return len(nodes)

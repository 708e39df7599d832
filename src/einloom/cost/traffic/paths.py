"""The way from the root of a mapping to one leaf: its loops, stores and splits in order, for the analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import NamedTuple

from ...dataclass import dataclass
from ...mapping.analysed import Analysed
from ...mapping.extents import Address, tile_of
from ...mapping.legality.concurrency import concurrent
from ...mapping.tree import Compute, Mapping, Node, Split, Store
from ...once import cached_property
from ...workload.einsum import Access, Einsum, Workload
from ...workload.parts import not_whole
from ..formulas import terms
from ..formulas.terms import LoopCut, Number
from ..formulas.windows import Choice, piece

Flag = Callable[["PathLoop"], Number]
Retention = tuple[dict[int, Number], int | None]


class PathLoop(NamedTuple):
    """A loop on the path: `place` on the path, the variable it iterates, its tile and, if derived, its piece ends."""

    place: int
    variable: str
    trips: Number
    tile: Number
    ends: tuple[int, ...] | None
    axis: str | None

    def cut(self, once: Number, pick: int = 0) -> LoopCut:
        return LoopCut(self.tile, self.ends, once, pick, self.trips)


class PathStore(NamedTuple):
    """A store on the path, for one tensor; `address` is equal for the same node seen from different leaves.

    slots: tiles that it holds in turns, if the tree says so.
    """

    place: int
    memory: str
    tensor: str
    address: Address
    slots: int | None = None


@dataclass(frozen=True, slots=True)
class Fork:
    """A concurrent split on the path, and the number of the branch that the path takes."""

    place: int
    address: Address
    split: Split
    branch: int


@dataclass(eq=False)
class Path:
    """The path of one Einsum: its loops and stores from the outside in, and where sequential splits stand.

    stores: those of the tensors that the Einsum accesses. forks: the concurrent splits, which end the life of nothing.
    unlike: (place, tensor) of the stores whose users a loop above moves in different ways, or not all of them.
    """

    workload: Workload
    einsum: Einsum
    nodes: tuple[Node, ...]
    addresses: tuple[Address, ...]
    loops: tuple[PathLoop, ...]
    stores: tuple[PathStore, ...]
    splits: tuple[int, ...]
    leaf: Compute
    order: int
    forks: tuple[Fork, ...] = ()
    unlike: frozenset[tuple[int, str]] = frozenset()

    @cached_property
    def by_variable(self) -> dict[str, tuple[PathLoop, ...]]:
        table: dict[str, list[PathLoop]] = {v: [] for v in self.einsum.variables}
        for loop in self.loops:
            table[loop.variable].append(loop)
        return {v: tuple(loops) for v, loops in table.items()}

    @cached_property
    def spatial(self) -> tuple[PathLoop, ...]:
        return tuple([loop for loop in self.loops if loop.axis is not None])

    def extent(self, variable: str) -> int:
        return self.workload.extents[variable]

    def cuts(self, variable: str, place: int, once: Flag, picks: dict[int, int] | None = None) -> tuple[LoopCut, ...]:
        """The cuts of `variable` by the loops above `place`; `once` decides which count their first piece only."""
        return tuple(
            loop.cut(once(loop), picks.get(loop.place, 0) if picks else 0)
            for loop in self.by_variable[variable]
            if loop.place < place
        )

    @cached_property
    def derived(self) -> frozenset[str]:
        """Variables with a loop whose pieces follow from consumers."""
        return frozenset([loop.variable for loop in self.loops if loop.ends is not None])

    def holders(self, tensor: str) -> tuple[PathStore, ...]:
        """The stores of `tensor` on the path, outermost first."""
        return self._holders.get(tensor, ())

    @cached_property
    def _holders(self) -> dict[str, tuple[PathStore, ...]]:
        return {tensor: tuple([s for s in self.stores if s.tensor == tensor]) for tensor in self.einsum.tensors}

    @cached_property
    def moving(self) -> dict[str, frozenset[int]]:
        """Tensor of the Einsum -> places of the loops that move its tile: those on its variables."""
        loops = self.loops
        variables = ((access.tensor, access.variables) for access in self.einsum.accesses)
        return {tensor: frozenset([n.place for n in loops if n.variable in mine]) for tensor, mine in variables}

    @cached_property
    def retentions(self) -> dict[tuple[int, frozenset[int], int], Retention]:
        """What `accesses.retention` found: stores are asked for their price and for their room."""
        return {}

    @cached_property
    def parting(self) -> int:
        """Place of the innermost split; -1 without one. What stands further in serves no other Einsum."""
        return max([*self.splits, *[fork.place for fork in self.forks]], default=-1)

    def holds(self, store: PathStore) -> bool:
        """True if the node of `store` is on this path."""
        return store.place < len(self.addresses) and self.addresses[store.place] == store.address

    @cached_property
    def even(self) -> frozenset[str]:
        """Variables of which every loop cuts what it meets into equal pieces: then none is empty. None with arrays."""
        extents = self.workload.extents
        left = {v: extents[v] for v in self.einsum.variables}
        uneven = set()
        for _, variable, trips, tile, ends, _ in self.loops:
            if not (isinstance(trips, int) and isinstance(tile, int)):
                return frozenset()
            if ends is not None or tile * trips != left[variable]:
                uneven.add(variable)
            left[variable] = tile
        return frozenset(left.keys() - uneven)

    @cached_property
    def narrowed(self) -> dict[str, tuple[tuple[int, Number], ...]]:
        """Variable -> (place of each loop on it, extent of the largest tile below that)."""
        found: dict[str, list[tuple[int, Number]]] = {v: [] for v in self.einsum.variables}
        for loop in self.loops:
            known = found[loop.variable]
            extent = known[-1][1] if known else self.extent(loop.variable)
            known.append((loop.place, terms.largest(extent, (loop,))))
        return {v: tuple(cuts) for v, cuts in found.items()}

    @cached_property
    def busy(self) -> bool:
        """True if the Einsum is known to have work in every iteration: all its pieces are equal."""
        return len(self.even) == len(self.einsum.variables)

    def works(self, choice: Choice, stop: int) -> Number:
        """True if the Einsum has work below the loops above `stop`: no piece named by `choice` is empty."""
        return reduce(and_, self.working(choice, stop), True)

    def working(self, choice: Choice, stop: int) -> list[Number]:
        """For each variable that `choice` names a loop of: is its piece not empty?"""
        if self.busy:
            return []
        chains = {
            variable: tuple([(loop.place, loop.cut(0)) for loop in loops if loop.place < stop])
            for variable, loops in self.by_variable.items()
            if any(loop.place in choice for loop in loops)
        }
        return [piece(self.extent(variable), chain, choice)[1] > 0 for variable, chain in chains.items()]

    def shares(self, other: Path, place: int) -> bool:
        """True if the node at `place` of the path of `other` is on this path, too."""
        return self.addresses[place : place + 1] == other.addresses[place : place + 1]

    def complex_rank(self, access: Access, rank: int) -> bool:
        """True if the rank's windows overlap, leave gaps, are clipped or follow from consumers: no closed product.

        What is written is each position once: a product of the extents of all variables (docs/model/parts.md).
        """
        index = access.indices[rank]
        if index.simple or access is self.einsum.output:
            return not self.derived.isdisjoint(index.variables)
        return True

    @cached_property
    def complex_variables(self) -> frozenset[str]:
        return self.derived | self.einsum.windowed

    @cached_property
    def plain(self) -> bool:
        """True if no rank that the Einsum accesses is complex, and it does not write a part of a tensor."""
        return not self.derived and self.einsum.windowless and self.einsum.output.tensor not in self.workload.parted

    @cached_property
    def complex_axes(self) -> tuple[PathLoop, ...]:
        """Spatial loops along which instances may differ in more than a ragged edge."""
        if self.plain and not self.unlike:
            return ()
        lowest = max((place for place, _ in self.unlike), default=-1)
        return tuple(n for n in self.spatial if n.place < lowest or n.variable in self.complex_variables)


def all_plain(users: tuple[Path, ...]) -> bool:
    """True if every user of a tensor is plain."""
    return users[0].plain if len(users) == 1 else all(user.plain for user in users)


def paths(workload: Workload, mapping: Mapping) -> tuple[Path, ...]:
    """The path of every Einsum in program order. The mapping must be well formed."""
    return paths_of(Analysed(workload, mapping))


def paths_of(tree: Analysed) -> tuple[Path, ...]:
    """As `paths`, of a tree that others ask about, too."""
    held: dict[Address, frozenset[str]] = {}
    found = tuple(_path(tree, einsum, order, held) for order, einsum in enumerate(tree.trails))
    unlike = unlike_stores(found)
    return tuple(replace(p, unlike=unlike[p.order]) if p.order in unlike else p for p in found) if unlike else found


def unlike_stores(found: tuple[Path, ...], *, every: bool = False) -> dict[int, frozenset[tuple[int, str]]]:
    """`Path.unlike` by the paths' orders, for those that have some. every: loops of one trip count like others."""
    users: dict[tuple[Address, int, str], list[Path]] = {}
    for path in found:
        for place, _, tensor, address, _ in path.stores:
            if place < path.parting:
                users.setdefault((address, place, tensor), []).append(path)
    table: dict[int, frozenset[tuple[int, str]]] = {}
    for (_, place, tensor), sharing in users.items():
        if len(sharing) > 1 and len({_ways(p, tensor, place, every) for p in sharing}) > 1:
            for path in sharing:
                table[path.order] = table.get(path.order, frozenset()) | {(place, tensor)}
    return table


def _ways(path: Path, tensor: str, place: int, every: bool) -> tuple[object, ...]:
    """How each loop above `place` moves a tensor's tile: the rank that it iterates, else how it cuts what it does."""
    access = path.einsum.access(tensor)
    found: list[object] = []
    extents: dict[str, Number] = {}
    for loop in path.loops:
        if loop.place >= place:
            break
        rank = access.rank_of(loop.variable)
        extent = extents.get(loop.variable, path.extent(loop.variable))
        if every or loop.trips > 1:
            found.append((loop.place, rank) if rank is not None else (loop.place, extent, loop.tile, loop.ends))
        extents[loop.variable] = loop.tile
    return tuple(found)


def not_plain(all_paths: tuple[Path, ...]) -> str | None:
    """Why products of closed forms do not hold for some tensor; None if they do for all."""
    for path in all_paths:
        for tensor in path.einsum.tensors:
            if tensor in path.workload.parted:
                return f"{tensor} {not_whole(path.workload, tensor)}"
        for variable in sorted(path.complex_variables):
            return f"{path.einsum.name}.{variable} is in a window or follows one"
        for place, tensor in sorted(path.unlike):
            node = path.nodes[place]
            assert isinstance(node, Store)
            return f"the Einsums that use {tensor} in {node.memory} need different parts of it in each iteration"
    return None


def _path(tree: Analysed, name: str, order: int, held: dict[Address, frozenset[str]]) -> Path:
    """held: the tensors of every store met so far, which may be many more than the Einsum's."""
    workload, trail, nodes = tree.workload, tree.trails[name], tree.paths[name]
    leaf = nodes[-1]
    assert isinstance(leaf, Compute)
    einsum = workload.einsum(name)
    stores: list[PathStore] = []
    splits: list[int] = []
    forks: list[Fork] = []
    for place, (address, node) in enumerate(trail):
        if isinstance(node, Store):
            if address not in held:
                held[address] = frozenset(node.tensors)
            mine = (tensor for tensor in einsum.tensors if tensor in held[address])
            stores.extend([PathStore(place, node.memory, tensor, address, node.slots) for tensor in mine])
        elif isinstance(node, Split) and concurrent(node):
            forks.append(Fork(place, address, node, trail[place + 1][0][len(address)]))
        elif isinstance(node, Split):
            splits.append(place)
    addresses = tuple([address for address, _ in trail])
    ways = (tuple(_path_loops(tree, name)), tuple(stores), tuple(splits))
    return Path(workload, einsum, nodes, addresses, *ways, leaf, order, tuple(forks))


def _path_loops(tree: Analysed, name: str) -> Iterator[PathLoop]:
    cuts = tree.cuts
    for place, loop, variable, extent in tree.extents(name)[0]:
        yield PathLoop(place, variable, loop.trips, tile_of(loop, extent), cuts.get((name, place)), loop.axis)

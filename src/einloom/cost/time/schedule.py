"""How long the whole tree takes, from how long every Einsum keeps every component busy.

Comes in: the paths and, for each, the busy seconds of its components over one run. Goes out: roofline and latency under
a rule. One recursion; the rules differ only at a sequential split (docs/model/bindings.md and latency.md):

- a leaf takes as long as its busiest component;
- branches that run at the same time take as long as the longest of them, or as the busiest component that they share;
  a pipeline fills and drains once per run of tokens;
- branches one after the other: rule ``einsum`` adds them up. Rule ``tile`` adds what each does below the split; what
  stands above the split (memories with a store there) may overlap, and is busy for the sum.

roofline <= floor <= tile <= einsum, because all of this is monotone. No execution is faster than ``floor``, which is
``tile`` without filling and draining: a stage that may fetch what it needs for itself before its first token comes can
be a little faster than the filling term says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Table

from ...dataclass import dataclass
from ...machine.levels import Machine
from ...mapping.legality.concurrency import axis_of, concurrent, has_concurrent, instances_used, shares, stages
from ...mapping.tree import Loop, Node, Split, Store
from ...once import cached_property
from ..formulas.pipeline import Edge, drain_time, full_tokens
from ..formulas.terms import Number, minimum, visits
from ..room.occupancy import exchanges, slots
from ..traffic.paths import Path

Busy = dict[str, float]


@dataclass(frozen=True)
class SplitNest:
    """A nest of the tree: the paths of its leaves, and the split that parts them with its place and its branches."""

    paths: tuple[Path, ...]
    split: Split | None
    place: int
    branches: tuple[SplitNest, ...]

    @cached_property
    def walled(self) -> tuple[int | None, ...]:
        """Per branch a key, None for most: all under a key is over before it is entered again.

        So it is with a pipeline inside a stage with loops of its own, and with pipelines one after the other.
        """
        assert self.split is not None
        forked = [has_concurrent(branch) for branch in self.split.branches]
        if not concurrent(self.split):
            return (0 if any(forked) else None,) * len(forked)
        whole = [self.split.kind == "parallel" or branch in self.stages for branch in self.branches]
        return tuple(i if fork and one else None for i, (fork, one) in enumerate(zip(forked, whole, strict=True)))

    @cached_property
    def above(self) -> frozenset[str]:
        """Memories with a store above the split."""
        return frozenset(node.memory for node in self.paths[0].nodes[: self.place] if isinstance(node, Store))

    @cached_property
    def stages(self) -> tuple[SplitNest, ...]:
        """The branches of a pipeline; one that is a pipeline without a loop between counts as its stages."""
        assert self.split is not None
        path_of = {path.einsum.name: path for path in self.paths}
        return tuple(part(tuple(path_of[einsum] for einsum in stage)) for stage in stages(self.split))


def part(paths: tuple[Path, ...]) -> SplitNest:
    """The tree above `paths`, which are all those below one node, in program order."""
    first, last = paths[0], paths[-1]
    if len(paths) == 1:
        return SplitNest(paths, None, len(first.nodes), ())
    place = sum(1 for a, b in zip(first.addresses, last.addresses, strict=False) if a == b) - 1
    split = first.nodes[place]
    assert isinstance(split, Split)
    groups: dict[int, list[Path]] = {}
    for path in paths:
        groups.setdefault(path.addresses[place + 1][len(path.addresses[place])], []).append(path)
    return SplitNest(paths, split, place, tuple(part(tuple(group)) for group in groups.values()))


@dataclass(frozen=True)
class Schedule:
    """A tree with busy seconds per Einsum and component, of one run of the cascade."""

    machine: Machine
    root: SplitNest
    times: Table[str, Busy]

    @staticmethod
    def of(machine: Machine, paths: tuple[Path, ...], busy: Iterable[tuple[str, str, float]]) -> Schedule:
        """The schedule of all paths of a tree; busy: (Einsum, component, seconds)."""
        times: dict[str, Busy] = {path.einsum.name: {} for path in paths}
        for einsum, component, seconds in busy:
            times[einsum][component] = seconds
        return Schedule(machine, part(paths), times)

    @property
    def roofline(self) -> float:
        """Seconds of the busiest component instance."""
        return max(self.busy(self.root).values(), default=0.0)

    def latency(self, rule: str) -> float:
        """Seconds of one run under ``einsum`` or ``tile``, or ``floor``: ``tile`` without filling and draining."""
        return self._latency(self.root, rule, frozenset())

    def busy(self, part: SplitNest) -> Busy:
        """Seconds per component of its busiest instance below `part`: Einsums that meet on one instance add up."""
        each: dict[str, Busy] = {}
        for path in part.paths:
            for component, seconds in self.times[path.einsum.name].items():
                each.setdefault(component, {})[path.einsum.name] = seconds
        return {component: self._most(component, seconds) for component, seconds in each.items()}

    def _most(self, component: str, seconds: Busy) -> float:
        """Seconds of the busiest instance. seconds: of every Einsum that uses the component."""
        together = self._meetings(component)
        if together is None:
            return sum(seconds.values())
        return max(sum(t for einsum, t in seconds.items() if einsum in meeting) for meeting in together)

    def _meetings(self, component: str) -> frozenset[frozenset[str]] | None:
        """The sets of Einsums that meet on an instance of the component; None if all do on one."""
        place = self.machine.position
        cut = tuple(axis for axis in self._shared_out if place[axis] < place[component])
        if cut and cut not in self._known:
            self._known[cut] = meetings(self.root.paths, cut)
        return self._known[cut] if cut else None

    @cached_property
    def _shared_out(self) -> tuple[str, ...]:
        """The axes of which some branch has a share only."""
        axes = (axis_of(fork.split) for path in self.root.paths for fork in path.forks)
        return tuple(sorted({axis for axis in axes if axis is not None}))

    @cached_property
    def _known(self) -> dict[tuple[str, ...], frozenset[frozenset[str]]]:
        """What `meetings` found, by the axes."""
        return {}

    def _latency(self, part: SplitNest, rule: str, without: frozenset[str]) -> float:
        """Seconds of `part` over the whole run, as if the components in `without` took no time."""
        busiest = max((t for name, t in self.busy(part).items() if name not in without), default=0.0)
        if part.split is None:
            return busiest
        if not concurrent(part.split):
            if rule == "einsum":
                return sum(self._latency(branch, rule, without) for branch in part.branches)
            inner = without | part.above | (self._ahead if rule == "floor" else frozenset())
            overlapping = [t for name, t in self.busy(part).items() if name in inner and name not in without]
            return max(sum(self._latency(branch, rule, inner) for branch in part.branches), *overlapping, 0.0)
        each = [self._latency(branch, rule, without) for branch in part.branches]
        if part.split.kind == "parallel" or rule == "floor":
            return max(*each, busiest)
        return self._pipeline(part, rule, without, busiest)

    @cached_property
    def _ahead(self) -> frozenset[str]:
        """What may move tiles of a branch before the branch begins, or after it ends: memories with a store of several
        slots, and the tolls on the way to them."""
        stores = [node for path in self.root.paths for node in path.nodes if isinstance(node, Store)]
        several = {s.memory for s in stores if (s.slots or self.machine.memory(s.memory).capacity_share()) > 1}
        last = max((self.machine.position[name] for name in several), default=-1)
        return frozenset(several) | {
            toll.name for toll in self.machine.tolls if self.machine.position[toll.name] < last
        }

    def _pipeline(self, part: SplitNest, rule: str, without: frozenset[str], busiest: float) -> float:
        """The time of a drain is proportional to its stages' times, so all drains together are had from their sums."""
        tokens = flow(self.machine, part)
        times = [self._latency(stage, rule, without) for stage in part.stages]
        drain = drain_time(times, edges(self.machine, part), tokens, busiest)
        return max(float(drain / tokens), busiest, *times)


def meetings(all_paths: tuple[Path, ...], axes: tuple[str, ...]) -> frozenset[frozenset[str]]:
    """The sets of Einsums that work on the same instances along all of `axes`, without those inside of another.

    An Einsum keeps every instance that it uses busy for as long as its busiest: a branch's instances work together.
    """
    found = frozenset((frozenset(path.einsum.name for path in all_paths),))
    for axis in axes:
        there: dict[int, set[str]] = {}
        for path in all_paths:
            for position in positions(path, axis):
                there.setdefault(position, set()).add(path.einsum.name)
        found = frozenset(whole & some for whole in found for some in map(frozenset, there.values()))
        found = frozenset(one for one in found if not any(one < other for other in found))
    return found


def positions(path: Path, axis: str) -> frozenset[int]:
    """The instances along an axis that the Einsum of `path` uses, counted from the first.

    A loop goes over neighbouring groups of instances, each as large as what the nest below it takes; the shares of a
    split lie next to each other in the order of its branches.
    """
    branches = {fork.place: fork.branch for fork in path.forks if axis_of(fork.split) == axis}
    found = {0}
    for place, node in enumerate(path.nodes):
        if isinstance(node, Loop) and node.axis == axis:
            group = instances_used(_rest(path.nodes, place), axis)
            found = {group * i + inside for i in range(node.trips) for inside in found}
        elif isinstance(node, Split) and place in branches:
            first = sum(shares(node)[: branches[place]])
            found = {first + before for before in found}
    return frozenset(found)


def _rest(nodes: tuple[Node, ...], place: int) -> tuple[Node, ...]:
    """The nodes of the nest behind the one at `place` of a path."""
    end = next((i for i in range(place, len(nodes)) if isinstance(nodes[i], Split)), len(nodes) - 1)
    return nodes[place + 1 : end + 1]


def edges(machine: Machine, part: SplitNest) -> tuple[Edge, ...]:
    """Who hands a tile to whom between the stages of a pipeline, and in how many slots."""
    number = {path.einsum.name: i for i, stage in enumerate(part.stages) for path in stage.paths}
    found: list[Edge] = []
    for producer in part.paths:
        tensor = producer.einsum.output.tensor
        readers = [p for p in part.paths if any(access.tensor == tensor for access in p.einsum.inputs)]
        for reader in readers:
            if number[reader.einsum.name] == number[producer.einsum.name]:
                continue
            shared = [store for store in producer.holders(tensor) if reader.holds(store)]
            users = tuple(p for p in part.paths if tensor in p.einsum.tensors and p.holds(shared[-1]))
            waits = any(user is reader for user, _ in exchanges(shared[-1], users))
            room = slots(machine.memory(shared[-1].memory), shared[-1], users) if waits else None
            found.append(Edge(number[producer.einsum.name], number[reader.einsum.name], room))
    return tuple(found)


def flow(machine: Machine, part: SplitNest) -> Number:
    """Full tokens between two drains of a pipeline: as many as its loops would make if none left a smaller one.

    Going up from the split, a temporal loop feeds the pipeline unless a store between them that has one slot changes
    its tile with the loop, or another split comes first. Tiles that the stages exchange are not asked: slots are their
    limit.
    """
    waiting: set[str] = set()
    border = 0
    for place, node in reversed(tuple(enumerate(part.paths[0].nodes[: part.place]))):
        if isinstance(node, Store):
            waiting |= {tensor for tensor in node.tensors if _single(machine, part, node, tensor)}
        temporal = isinstance(node, Loop) and node.axis is None
        if isinstance(node, Split) or (temporal and any(_moves(part, node, tensor) for tensor in waiting)):
            border = place + 1
            break
    return min(full_tokens(_chains(path, border, part.place)) for path in part.paths)


def _chains(path: Path, border: int, stop: int) -> Iterator[tuple[Number, Number, Number]]:
    """(extent, token, drains) of the temporal loops of a path that stand before `stop`; those before `border` drain."""
    spread = lambda loop: int(loop.axis is not None)  # noqa: E731
    plain = {loop.place for loop in path.loops if loop.variable not in path.derived}
    for place, node in enumerate(path.nodes[:stop]):
        if isinstance(node, Loop) and node.axis is None and place not in plain:
            yield node.trips, 1, node.trips if place < border else 1
    for variable, loops in path.by_variable.items():
        extent = path.extent(variable)
        for loop in (loop for loop in loops if loop.place < stop and loop.place in plain):
            tile = minimum(extent, loop.tile)
            if loop.axis is None:
                yield extent, tile, 1
            extent = tile
        if variable not in path.derived:
            yield 1, 1, visits(path.extent(variable), path.cuts(variable, border, spread))


def _single(machine: Machine, part: SplitNest, node: Store, tensor: str) -> bool:
    """True if the store has one slot for the tensor, and no stages exchange it there."""
    for path in part.paths:
        for store in path.holders(tensor):
            if path.nodes[store.place] is node:
                users = tuple(p for p in part.paths if tensor in p.einsum.tensors)
                return not any(exchanges(store, users)) and slots(machine.memory(store.memory), store, users) == 1
    return False


def _moves(part: SplitNest, node: Node, tensor: str) -> bool:
    """True if the node is a loop with which the tile of `tensor` changes."""
    if not isinstance(node, Loop) or node.trips == 1:
        return False
    users = [path.einsum for path in part.paths if tensor in path.einsum.tensors]
    return any(node.variable(einsum.name) in einsum.access(tensor).variables for einsum in users)

"""ONE walk of a tree: paths, loops, shared nodes and where every iteration of a loop ends; whoever asks reads here.

Comes in: a workload and a mapping. Goes out: an `Analysed` tree for legality, occupancy and price. It computes what it
is asked for, once.

A producer under a loop that it shares with its consumers computes, in each iteration, the elements that they need and
that were not computed before: first the tile with its halo, then one stride, and in the last iteration what is left.
For the loop ``for E0.p, E1.p in 4 tile 2`` over T[p] = E0 and a consumer that reads T[p+r] with |r| = 3, E0's p ends at
4, 6, 8, 10: `Analysed.cuts` says ``{("E0", 0): (4, 6, 8, 10)}`` and nothing of E1, whose p is cut plainly: 2, 4, 6, 8.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping as Table
from itertools import product

from ..dataclass import dataclass
from ..once import cached_property, once_each
from ..workload.einsum import Index, Workload
from .extents import Cuts, Trail, addressed_paths, tile_below, tile_of
from .tree import Loop, Mapping, Node, Store

Windows = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


class Analysed:
    """A mapping of a workload, walked once. Leaves of Einsums that the workload lacks have no place in it."""

    def __init__(self, workload: Workload, mapping: Mapping) -> None:
        self.workload, self.mapping = workload, mapping
        self._ends: Cuts = {}

    @cached_property
    def trails(self) -> dict[str, Trail]:
        """For each Einsum the nodes from the root to its leaf, each with its address in the tree."""
        known = self.workload.names
        return {e: steps for e, steps in addressed_paths(self.mapping.nest).items() if e in known}

    @cached_property
    def paths(self) -> dict[str, tuple[Node, ...]]:
        """For each Einsum the nodes from the root to its leaf."""
        return {einsum: tuple([node for _, node in steps]) for einsum, steps in self.trails.items()}

    @cached_property
    def loops(self) -> dict[str, tuple[tuple[int, Loop, str | None], ...]]:
        """For each Einsum all loops on its path: index there, the loop, the Einsum's variable that it iterates."""
        return {
            einsum: tuple([(i, n, n.variable(einsum)) for i, n in enumerate(nodes) if isinstance(n, Loop)])
            for einsum, nodes in self.paths.items()
        }

    @cached_property
    def stores(self) -> dict[str, tuple[tuple[int, Store], ...]]:
        """For each Einsum all stores on its path, with their index there."""
        return {
            e: tuple([(i, n) for i, n in enumerate(nodes) if isinstance(n, Store)]) for e, nodes in self.paths.items()
        }

    @cached_property
    def _chains(self) -> dict[str, dict[str, list[int]]]:
        """Einsum -> variable -> indices of the loops on it, outermost first."""
        found: dict[str, dict[str, list[int]]] = {}
        for einsum, loops in self.loops.items():
            mine = found[einsum] = {}
            for i, _, variable in loops:
                if variable is not None:
                    mine.setdefault(variable, []).append(i)
        return found

    def chain(self, einsum: str, variable: str, stop: int) -> list[int]:
        """Indices up to and including `stop` of the loops of `einsum` on `variable`."""
        places = self._chains[einsum].get(variable, [])
        return places[: bisect_right(places, stop)]

    def several(self, einsum: str, stop: int | None = None) -> list[tuple[int, Loop, str | None]]:
        """The loops of more than one trip among the first `stop` nodes of the path, as in `loops`."""
        return [one for one in self.loops[einsum] if one[1].trips > 1 and (stop is None or one[0] < stop)]

    @once_each
    def shared(self, first: str, second: str) -> int:
        """Number of leading nodes that the paths of two Einsums share (the split where they part included)."""
        trails = zip(self.trails[first], self.trails[second], strict=False)
        return sum(address == other for (address, _), (other, _) in trails)

    def below(self, einsum: str) -> tuple[Table[str, int], ...]:
        """For each node of the path the extents of the Einsum's variables in the largest tile below it."""
        extents = {v: self.workload.extents[v] for v in self.workload.einsum(einsum).variables}
        found: list[Table[str, int]] = []
        for i, node in enumerate(self.paths[einsum]):
            v = node.variable(einsum) if isinstance(node, Loop) else None
            if isinstance(node, Loop) and v in extents:
                extents = {**extents, v: tile_below(node, extents[v], self.cuts.get((einsum, i)))}
            found.append(extents)
        return tuple(found)

    def extents(self, einsum: str) -> tuple[list[tuple[int, Loop, str, int]], dict[str, int]]:
        """(for each loop that iterates a variable its index, itself, the variable and its extent in the largest tile
        above; the extents of all variables at the leaf). The same extents as in `below`."""
        known, cuts = self.workload.extents, self.cuts
        extents = {v: known[v] for v in self.workload.einsum(einsum).variables}
        found: list[tuple[int, Loop, str, int]] = []
        for i, loop, v in self.loops[einsum]:
            if v is not None:
                found.append((i, loop, v, extents[v]))
                extents[v] = tile_below(loop, extents[v], cuts.get((einsum, i)) if cuts else None)
        return found, extents

    @cached_property
    def cuts(self) -> Cuts:
        """Ends of every iteration of every loop that does not cut its variable plainly.

        Key: (Einsum, index of the loop in its path). Value: the exclusive end positions, absolute in the variable's
        range, one for each iteration of this loop within all iterations of the outer loops of the same variable (so the
        length is the product of the trips of the Einsum's loops on that variable, this one included; an iteration that
        ends where the one before it ended is empty). Loops without an entry are plain: tiles of `tile_of`, the last
        ones cut at the end. The producer's iterations together cover its variable exactly once.
        """
        derived = self._derived
        return {
            (einsum, i): self._ends_of(einsum, v, i)
            for einsum, loops in self.loops.items()
            if derived[einsum]
            for i, _, v in loops
            if v in derived[einsum] and i >= derived[einsum][v]
        }

    @once_each
    def windows(self, producer: str, i: int) -> Windows:
        """What consumers read of the rank that a shared loop ties to `producer`, iteration by iteration.

        i: index of the loop in the path of `producer`. For each consumer below the loop: its name and (start, end) for
        each iteration, in the order of `cuts`; positions beyond the tensor's edges (padding) may occur.
        """
        variable = self._iterated[producer][i]
        chain = self.chain(producer, variable, i)
        return tuple((tie.consumer, tuple(self._spans(tie, chain))) for tie in self._needs(producer, variable, i))

    @cached_property
    def _iterated(self) -> dict[str, dict[int, str]]:
        """Einsum -> index of a loop -> the Einsum's variable that it iterates."""
        return {e: {i: v for i, _, v in loops if v is not None} for e, loops in self.loops.items()}

    @cached_property
    def _ties(self) -> dict[tuple[str, str], tuple[_Tie, ...]]:
        """(producer, variable) -> the consumers that a shared loop on it may tie to the producer."""
        found: dict[tuple[str, str], tuple[_Tie, ...]] = {}
        for einsum, chains in self._chains.items():
            output = self.workload.einsum(einsum).output
            consumers = [c for c in self.workload.consumers[output.tensor] if c in self._chains]
            parting = max([self.shared(einsum, c) for c in consumers], default=0)
            for variable, mine in chains.items():
                rank = output.rank_of(variable) if mine[0] < parting else None
                if rank is not None and self.workload.tied(output.tensor, rank):
                    ties = (self._tie(einsum, variable, mine, c, rank) for c in consumers)
                    found[einsum, variable] = tuple(tie for tie in ties if tie.stop > mine[0])
        return found

    def _tie(self, producer: str, variable: str, mine: list[int], consumer: str, rank: int) -> _Tie:
        index = self.workload.einsum(consumer).access(self.workload.einsum(producer).output.tensor).indices[rank]
        theirs = self._chains[consumer]
        own = set(mine)
        strays = [i for w in index.variables for i in theirs.get(w, ()) if i not in own]
        stop = min([self.shared(producer, consumer), *strays])
        first = index.variables[0] if index.simple else None
        extents = self.workload.extents
        alike = 0
        if first is not None and extents[first] == extents.get(variable):
            alike = min([stop, *own.symmetric_difference(theirs.get(first, ()))])
        return _Tie(consumer, index, stop, alike)

    def _needs(self, producer: str, variable: str, i: int) -> list[_Tie]:
        """The consumers below the loop that it ties to the producer."""
        ties = self._ties.get((producer, variable), ())
        return [t for t in ties if i < t.stop and self._iterated[t.consumer].get(i) in t.index.variables]

    @cached_property
    def _derived(self) -> dict[str, dict[str, int]]:
        """Einsum -> variable -> index of the first loop that does not cut it plainly; none further in does."""
        found: dict[str, dict[str, int]] = {einsum: {} for einsum in self.loops}
        if not any(self._ties.values()):
            return found
        for einsum in reversed([e.name for e in self.workload.einsums if e.name in found]):  # consumers first
            for variable, places in self._chains[einsum].items():
                for i in places if self._ties.get((einsum, variable)) else ():
                    if not all(self._plain(tie, i, found) for tie in self._needs(einsum, variable, i)):
                        found[einsum][variable] = i
                        break
        return found

    def _plain(self, tie: _Tie, i: int, derived: dict[str, dict[str, int]]) -> bool:
        """True if the loop at `i` cuts the tied rank for the consumer as it would cut it for the producer alone."""
        return i < tie.alike and i < derived[tie.consumer].get(tie.index.variables[0], i + 1)

    def _ends_of(self, einsum: str, variable: str, i: int) -> tuple[int, ...]:
        """Absolute ends of all iterations of the loop, over all iterations of the outer loops of its variable."""
        if (einsum, i) not in self._ends:
            chain = self.chain(einsum, variable, i)
            known = next((k for k in reversed(range(len(chain))) if (einsum, chain[k]) in self._ends), -1)
            for k in range(known + 1, len(chain)):
                self._ends[einsum, chain[k]] = self._cut(einsum, variable, chain[: k + 1])
        return self._ends[einsum, i]

    def _cut(self, einsum: str, variable: str, chain: list[int]) -> tuple[int, ...]:
        """Ends of all iterations of the last loop of `chain`; those of the loops before it are known."""
        i = chain[-1]
        loop = self.paths[einsum][i]
        assert isinstance(loop, Loop)
        outer = self._ends[einsum, chain[-2]] if len(chain) > 1 else (self.workload.extents.get(variable, 1),)
        ties = self._needs(einsum, variable, i) if i >= self._derived[einsum].get(variable, i + 1) else []
        reaches = [[end for _, end in self._spans(tie, chain)] for tie in ties]
        needed = [max(reach) for reach in zip(*reaches, strict=True)] if ties else None
        tile = tile_of(loop, max(e - s for s, e in zip((0, *outer), outer, strict=False)))
        ends: list[int] = []
        start = 0
        for n, stop in enumerate(outer):
            done = start
            for k in range(loop.trips):
                if needed is None:
                    done = min(start + (k + 1) * tile, stop)
                elif k == loop.trips - 1:
                    done = stop
                else:
                    done = max(done, min(needed[n * loop.trips + k], stop))
                ends.append(done)
            start = stop
        return tuple(ends)

    def _spans(self, tie: _Tie, chain: list[int]) -> list[tuple[int, int]]:
        """First and one past the last position of the tied rank in each iteration of the loops in `chain`, in order.

        An empty iteration of a variable of the consumer leaves the window where the one before it ended.
        """
        nodes, index = self.paths[tie.consumer], tie.index
        trips = {j: node.trips for j in chain if isinstance(node := nodes[j], Loop)}
        chains = {w: self.chain(tie.consumer, w, chain[-1]) for w in index.variables}
        ends = {
            w: self._ends_of(tie.consumer, w, c[-1]) if c else (self.workload.extents[w],) for w, c in chains.items()
        }
        found = []
        for steps in product(*(range(trips[j]) for j in chain)):
            at = dict(zip(chain, steps, strict=True))
            start, end = index.constant, 1 + index.constant
            for w, coefficient in index.terms:
                flat = 0
                for j in chains[w]:
                    flat = flat * trips[j] + at[j]
                first = ends[w][flat - 1] if flat else 0
                start += coefficient * first
                end += coefficient * (ends[w][flat] - 1)
            found.append((start, end))
        return found


@dataclass(frozen=True, slots=True)
class _Tie:
    """A consumer that reads the rank of a producer's variable. index: of that rank; stop: from this index in the paths
    on no loop ties the two; alike: up to this one the same loops iterate the variable and the consumer's only one."""

    consumer: str
    index: Index
    stop: int
    alike: int

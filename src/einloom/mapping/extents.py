"""How far every loop has come: where each iteration of a loop ends, also for producers under shared loops.

Comes in: a workload and a mapping. Goes out: `derived_cuts`, the loops that are *not* cut plainly (into equal tiles
with a ragged edge), with the end of every iteration, and `largest_extents`, the full tiles below every node of a path.

A producer under a loop that it shares with its consumers computes, in each iteration, the elements that they need and
that were not computed before: first the tile with its halo, then one stride, and in the last iteration what is left.
For the loop ``for E0.p, E1.p in 4 tile 2`` over T[p] = E0 and a consumer that reads T[p+r] with |r| = 3, E0's p ends at
4, 6, 8, 10: ``derived_cuts`` says ``{("E0", 0): (4, 6, 8, 10)}`` and nothing of E1, whose p is cut plainly: 2, 4, 6, 8.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from itertools import product

from ..workload.einsum import Index, Workload
from .tree import Compute, Loop, Mapping, Nest, Node, Split

Address = tuple[int, ...]
Trail = tuple[tuple[Address, Node], ...]
Cuts = dict[tuple[str, int], tuple[int, ...]]


def addressed_paths(nest: Nest) -> dict[str, Trail]:
    """For each Einsum the nodes from the root to its leaf, each with its address in the tree.

    Two Einsums share a node exactly if the addresses are equal; nodes that merely look alike have different ones.
    The last leaf wins where an Einsum has several.
    """
    found: dict[str, Trail] = {}

    def walk(nodes: Nest, prefix: Address, above: Trail) -> None:
        for i, node in enumerate(nodes):
            address = (*prefix, i)
            above = (*above, (address, node))
            if isinstance(node, Compute):
                found[node.einsum] = above
            elif isinstance(node, Split):
                for j, branch in enumerate(node.branches):
                    walk(branch, (*address, j), above)

    walk(nest, (), ())
    return found


def shared_length(first: Trail, second: Trail) -> int:
    """Number of leading nodes that two paths have in common (the split where they part included)."""
    count = 0
    for (a, _), (b, _) in zip(first, second, strict=False):
        if a != b:
            break
        count += 1
    return count


def tile_of(loop: Loop, extent: int) -> int:
    """The extent of a variable below `loop` when it is `extent` above."""
    return loop.tile if loop.tile is not None else -(-extent // max(1, loop.trips))


def windows(
    workload: Workload, mapping: Mapping, producer: str, i: int
) -> tuple[tuple[str, tuple[tuple[int, int], ...]], ...]:
    """What consumers read of the rank that a shared loop ties to `producer`, iteration by iteration.

    i: index of the loop in the path of `producer`. For each consumer below the loop: its name and (start, end) for each
    iteration, in the order of `derived_cuts`; positions beyond the tensor's edges (padding) may occur.
    """
    derivation = _Derivation(workload, mapping)
    chain = derivation.chain(producer, derivation.variable(producer, i), i)
    return tuple(
        (consumer, tuple(derivation.windows(consumer, index, chain)))
        for consumer, index in derivation.needs(producer, i)
    )


def derived_cuts(workload: Workload, mapping: Mapping) -> Cuts:
    """Ends of every iteration of every loop that does not cut its variable plainly.

    Key: (Einsum, index of the loop in `tree.path` of that Einsum). Value: the exclusive end positions, absolute in the
    variable's range, one for each iteration of this loop within all iterations of the outer loops of the same variable
    (so the length is the product of the trips of the Einsum's loops on that variable, this one included; an iteration
    that ends where the one before it ended is empty). Loops without an entry are plain: tiles of `tile_of`, the last
    ones cut at the end. The producer's iterations together cover its variable exactly once.
    """
    derivation = _Derivation(workload, mapping)
    return {
        (einsum, i): derivation.ends(einsum, i)
        for einsum, steps in derivation.paths.items()
        for i, (_, node) in enumerate(steps)
        if isinstance(node, Loop) and node.variable(einsum) is not None and derivation.derived(einsum, i)
    }


def largest_extents(workload: Workload, mapping: Mapping, cuts: Cuts, einsum: str) -> tuple[Table[str, int], ...]:
    """For each node of the path of `einsum`: the extents of its variables in the largest tile below that node."""
    return extents_along(workload, addressed_paths(mapping.nest)[einsum], cuts, einsum)


def extents_along(workload: Workload, steps: Trail, cuts: Cuts, einsum: str) -> tuple[Table[str, int], ...]:
    """For each node of `steps`, the path of `einsum`: the extents of its variables in the largest tile below it."""
    extents = {v: workload.extents[v] for v in workload.einsum(einsum).variables}
    below: list[Table[str, int]] = []
    for i, (_, node) in enumerate(steps):
        v = node.variable(einsum) if isinstance(node, Loop) else None
        if isinstance(node, Loop) and v in extents:
            ends = cuts.get((einsum, i))
            if ends is None:
                extents = {**extents, v: min(extents[v], tile_of(node, extents[v]))}
            else:
                extents = {**extents, v: max(e - s for s, e in zip((0, *ends), ends, strict=False))}
        below.append(extents)
    return tuple(below)


class _Derivation:
    """Ends of iterations, each computed once, consumers before their producers."""

    def __init__(self, workload: Workload, mapping: Mapping) -> None:
        self.workload = workload
        known = {e.name for e in workload.einsums}
        self.paths = {e: steps for e, steps in addressed_paths(mapping.nest).items() if e in known}
        self._ends: Cuts = {}
        self._derived: dict[tuple[str, int], bool] = {}

    def loop(self, einsum: str, i: int) -> Loop:
        node = self.paths[einsum][i][1]
        assert isinstance(node, Loop)
        return node

    def chain(self, einsum: str, variable: str, stop: int) -> list[int]:
        """Positions up to and including `stop` of the loops of `einsum` on `variable`."""
        steps = self.paths[einsum][: stop + 1]
        return [i for i, (_, n) in enumerate(steps) if isinstance(n, Loop) and n.variable(einsum) == variable]

    def variable(self, einsum: str, i: int) -> str:
        v = self.loop(einsum, i).variable(einsum)
        assert v is not None
        return v

    def derived(self, einsum: str, i: int) -> bool:
        """True if the loop does not cut its variable of `einsum` plainly."""
        key = (einsum, i)
        if key not in self._derived:
            v = self.variable(einsum, i)
            mine = self.chain(einsum, v, i)
            outer_derived = any(self.derived(einsum, j) for j in mine[:-1])
            self._derived[key] = outer_derived or any(
                not (
                    index.simple
                    and self.chain(consumer, index.variables[0], i) == mine
                    and not self.derived(consumer, i)
                    and self.workload.extents[index.variables[0]] == self.workload.extents.get(v)
                )
                for consumer, index in self.needs(einsum, i)
            )
        return self._derived[key]

    def needs(self, einsum: str, i: int) -> list[tuple[str, Index]]:
        """The consumers below the loop that it ties to the producer `einsum`, each with its index of the tied rank."""
        output = self.workload.einsum(einsum).output
        v = self.variable(einsum, i)
        rank = output.rank_of(v)
        if rank is None or not output.indices[rank].simple:
            return []
        tied = []
        mine = self.chain(einsum, v, i)
        for consumer in self.workload.consumers[output.tensor]:
            if consumer not in self.paths or shared_length(self.paths[einsum], self.paths[consumer]) <= i:
                continue
            index = self.workload.einsum(consumer).access(output.tensor).indices[rank]
            if self.loop(einsum, i).variable(consumer) not in index.variables:
                continue
            if all(set(self.chain(consumer, w, i)) <= set(mine) for w in index.variables):
                tied.append((consumer, index))
        return tied

    def ends(self, einsum: str, i: int) -> tuple[int, ...]:
        """Absolute ends of all iterations of the loop, over all iterations of the outer loops of its variable."""
        key = (einsum, i)
        if key not in self._ends:
            self._ends[key] = self._compute(einsum, i)
        return self._ends[key]

    def _compute(self, einsum: str, i: int) -> tuple[int, ...]:
        loop, v = self.loop(einsum, i), self.variable(einsum, i)
        chain = self.chain(einsum, v, i)
        outer = self.ends(einsum, chain[-2]) if len(chain) > 1 else (self.workload.extents.get(v, 1),)
        needed = self._needed(einsum, chain) if self.derived(einsum, i) and self.needs(einsum, i) else None
        largest = max(e - s for s, e in zip((0, *outer), outer, strict=False))
        tile = tile_of(loop, largest)
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

    def _needed(self, einsum: str, chain: list[int]) -> list[int]:
        """How far the consumers read in each iteration of the loops in `chain`, in order."""
        reaches = [
            [end for _, end in self.windows(consumer, index, chain)]
            for consumer, index in self.needs(einsum, chain[-1])
        ]
        return [max(reach) for reach in zip(*reaches, strict=True)]

    def windows(self, consumer: str, index: Index, chain: list[int]) -> list[tuple[int, int]]:
        """First and one past the last position of `index` in each iteration of the loops in `chain`, in order.

        An empty iteration of a variable of the consumer leaves the window where the one before it ended.
        """
        trips = {j: self.loop(consumer, j).trips for j in chain}
        chains = {w: self.chain(consumer, w, chain[-1]) for w in index.variables}
        ends = {w: self.ends(consumer, c[-1]) if c else (self.workload.extents[w],) for w, c in chains.items()}
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

"""The rules of `ffm` read a second time: docs/mapspace.md over nothing but the tree, the workload and the machine.

Written from the page, not from `einloom.mapspace.ffm.rules`; for sequential trees that are well-formed, without limits
(rules 5, 12 and 13 are not read again: the first is part of being well-formed). Slow and plain on purpose.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

from einloom.machine.levels import ComputeUnit, Machine
from einloom.mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store
from einloom.workload.einsum import Access, Einsum, Workload
from einloom.workload.selectors import select

Place = tuple[int, ...]


class Path:
    """What one Einsum sees: every node from the root to its leaf, with its place in the tree."""

    def __init__(self, workload: Workload, einsum: Einsum, steps: list[tuple[Place, Node]]) -> None:
        self.workload, self.einsum, self.steps = workload, einsum, steps
        self.uses = {access.tensor: access for access in einsum.accesses}
        self.backing: dict[str, int] = {}
        for i, (_, node) in enumerate(steps):
            for tensor in self.own(node):
                self.backing.setdefault(tensor, i)

    def own(self, node: Node) -> list[str]:
        """The tensors of the Einsum in a store."""
        return [t for t in node.tensors if t in self.uses] if isinstance(node, Store) else []

    def loops(self, stop: int | None = None) -> list[Loop]:
        return [node for _, node in self.steps[:stop] if isinstance(node, Loop)]

    def blocks(self) -> list[list[Loop]]:
        """The loops before, between and after the stores of the Einsum's own tensors."""
        found: list[list[Loop]] = [[]]
        for _, node in self.steps:
            if self.own(node):
                found.append([])
            elif isinstance(node, Loop):
                found[-1].append(node)
        return found


class Reading:
    """`broken` is the set of the numbers of the rules that a tree breaks."""

    def __init__(
        self, workload: Workload, machine: Machine, most_fused: int | None, mapping: Mapping, again: int = 1
    ) -> None:
        self.workload, self.machine, self.most_fused, self.again = workload, machine, most_fused, again
        self.order = {level.name: i for i, level in enumerate(machine.levels)}
        for i, level in enumerate(machine.levels):
            self.order.update({axis.name: i for axis in getattr(level, "axes", ())})
        self.outermost = machine.memories[0].name
        self.paths: list[Path] = []
        self.splits: list[tuple[list[tuple[Place, Loop]], list[list[str]]]] = []
        self._walk(mapping.nest, (), [])
        self.written = {e.output.tensor for e in workload.einsums}
        self.read = {a.tensor for e in workload.einsums for a in e.inputs}
        self.broken = {number for number, holds in self._rules() if not holds}

    def _walk(self, nest: Nest, prefix: Place, above: list[tuple[Place, Node]]) -> None:
        for i, node in enumerate(nest):
            above = [*above, ((*prefix, i), node)]
            if isinstance(node, Compute):
                self.paths.append(Path(self.workload, self.workload.einsum(node.einsum), above))
            elif isinstance(node, Split):
                before = len(self.paths)
                ends = []
                for j, branch in enumerate(node.branches):
                    self._walk(branch, (*prefix, i, j), above)
                    ends.append(len(self.paths))
                names = [path.einsum.name for path in self.paths]
                parts = [names[a:b] for a, b in zip([before, *ends], ends, strict=False)]
                self.splits.append(([(p, n) for p, n in above if isinstance(n, Loop)], parts))

    def _rules(self) -> list[tuple[int, bool]]:
        names = [path.einsum.name for path in self.paths]
        found = [(1, names == [e.name for e in self.workload.einsums])]
        for path in self.paths:
            found += [
                (2, self.perfect(path)),
                (3, self.hierarchical(path)),
                (4, self.one_loop(path)),
                (6, self.no_recomputation(path) and self.lent_alike(path)),
                (8, self.own_stores(path)),
                (9, self.few_fused(path) and self.full(path)),
                (10, path.einsum.kind != "copy" or self.copies(path)),
                (11, self.windows(path)),
            ]
        found += [(7, self.fused_for_a_reason(loops, parts)) for loops, parts in self.splits]
        return found

    def perfect(self, path: Path) -> bool:
        extent = dict(self.workload.extents)
        for loop in path.loops():
            v = loop.variable(path.einsum.name)
            if loop.trips < 2:
                return False
            if v is not None:
                tile = -(-extent[v] // loop.trips) if loop.tile is None else loop.tile
                if tile * loop.trips != extent[v]:
                    return False
                extent[v] = tile
        return True

    def hierarchical(self, path: Path) -> bool:
        own = [self.order[n.memory] for _, n in path.steps if isinstance(n, Store) and path.own(n)]
        top = [isinstance(n, Store) and n.memory == self.outermost for _, n in path.steps]
        if own != sorted(own) or not all(top[: sum(top)]):
            return False
        for i, (_, node) in enumerate(path.steps):
            if isinstance(node, Loop) and node.axis is not None:
                before = [self.order[n.memory] for _, n in path.steps[:i] if isinstance(n, Store) and path.own(n)]
                after = [self.order[n.memory] for _, n in path.steps[i:] if isinstance(n, Store) and path.own(n)]
                if any(p > self.order[node.axis] for p in before) or any(p < self.order[node.axis] for p in after):
                    return False
        return all(self.ordered(block, last=i == len(path.blocks()) - 1) for i, block in enumerate(path.blocks()))

    def ordered(self, block: list[Loop], last: bool) -> bool:
        """Temporal loops, then spatial ones by fanout; temporal ones again only if nothing but the leaf follows."""
        spatial = [i for i, loop in enumerate(block) if loop.axis is not None]
        if not spatial:
            return True
        places = [self.order[loop.axis] for loop in block if loop.axis is not None]
        together = spatial == list(range(spatial[0], spatial[-1] + 1))
        return together and places == sorted(places) and (last or spatial[-1] == len(block) - 1)

    def one_loop(self, path: Path) -> bool:
        name = path.einsum.name
        spatial = [(loop.variable(name), loop.axis) for loop in path.loops() if loop.axis and loop.variable(name)]
        blocks = [[loop.variable(name) for loop in block if not loop.axis] for block in path.blocks()]
        bound = [[v for v in block if v is not None] for block in blocks]
        fused = [v for loop in self.fused(path) if (v := loop.variable(name)) is not None]
        few = all(fused.count(v) <= self.again for v in fused)
        return few and len(spatial) == len(set(spatial)) and all(len(each) == len(set(each)) for each in bound)

    def no_recomputation(self, path: Path) -> bool:
        for tensor, i in path.backing.items():
            if tensor in self.written & self.read and self.memory(path, i) != self.outermost:
                for loop in path.loops(i):
                    v = loop.variable(path.einsum.name)
                    if v is not None and alone(path.uses[tensor], v) in (None, "window"):
                        return False
        return True

    def lent_alike(self, path: Path) -> bool:
        """A store that backs an input in an inner memory for several Einsums: loops above index it alike for all."""
        for tensor, i in path.backing.items():
            if tensor in self.written or self.memory(path, i) == self.outermost:
                continue
            first = next(e for e in self.workload.einsums if tensor in [a.tensor for a in e.accesses])
            for loop in path.loops(i):
                ranks = {
                    alone(e.access(tensor), loop.variable(e.name)) for e in (first, path.einsum) if first != path.einsum
                }
                if loop.trips > 1 and (len(ranks) > 1 or "window" in ranks):
                    return False
        return True

    def memory(self, path: Path, i: int) -> str:
        node = path.steps[i][1]
        assert isinstance(node, Store)
        return node.memory

    def fused_for_a_reason(self, loops: list[tuple[Place, Loop]], parts: list[list[str]]) -> bool:
        at = {path.einsum.name: i for i, path in enumerate(self.paths)}
        for place, _ in loops:
            below = [path for path in self.paths if place in [p for p, _ in path.steps]]
            held = {
                tensor
                for path in below
                for tensor, i in path.backing.items()
                if tensor in self.written & self.read and i > [p for p, _ in path.steps].index(place)
            }
            if not all(held & path.uses.keys() for path in below):
                return False
            for first, second in pairwise(parts):
                if not any(self.passes(tensor, at, at[first[-1]], at[second[0]]) for tensor in held):
                    return False
        return True

    def passes(self, tensor: str, at: dict[str, int], before: int, after: int) -> bool:
        """Is the tensor written at `before` or earlier, and read at `after` or later?"""
        writers = [at[e.name] for e in self.workload.einsums if e.output.tensor == tensor]
        readers = [at[e.name] for e in self.workload.einsums if tensor in [a.tensor for a in e.inputs]]
        return min(writers) <= before and max(readers) >= after

    def own_stores(self, path: Path) -> bool:
        for i, (place, node) in enumerate(path.steps):
            for tensor in path.own(node):
                served = [p for p in self.paths if tensor in p.uses and place in [at for at, _ in p.steps]]
                if path.backing[tensor] != i and len(served) > 1:
                    return False
        return True

    def few_fused(self, path: Path) -> bool:
        return self.most_fused is None or len(self.fused(path)) <= self.most_fused

    def fused(self, path: Path) -> list[Loop]:
        """Temporal loops above the lowest backing store of an intermediate that is not in the outermost memory."""
        inner = [
            i
            for t, i in path.backing.items()
            if t in self.written & self.read and self.memory(path, i) != self.outermost
        ]
        return [loop for loop in path.loops(max(inner, default=0)) if loop.axis is None]

    def full(self, path: Path) -> bool:
        leaf = path.steps[-1][1]
        assert isinstance(leaf, Compute)
        if leaf.unit is None or path.einsum.kind == "copy":
            return True
        axes = [a for a in self.machine.axes.values() if a.use == "full" and self.order[a.name] < self.order[leaf.unit]]
        padded = self.padded(path.einsum)
        choices = []
        for v in path.einsum.variables:
            own: list[list[int]] = []
            for axis in axes:
                tensors = select(axis.only_irrelevant_to, self.workload, path.einsum.name)
                barred = any(v in path.uses[t].variables for t in tensors)
                least = len(padded.get(v, ())) + 1
                own.append([1] if barred else [1, *range(max(2, least), axis.size + 1)])
            choices.append([c for c in product(*own) if self.workload.extents[v] % prod(c) == 0])
        used = [
            [prod(column) for column in zip(*choice, strict=True)] for choice in product(*choices) if choice and axes
        ]
        fitting = [u for u in used if all(n <= axis.size for n, axis in zip(u, axes, strict=True))]
        names = {axis.name for axis in self.machine.axes.values() if axis.use == "full"}
        mine = prod(loop.trips for loop in path.loops() if loop.axis in names)
        return mine >= max((prod(u) for u in fitting), default=1)

    def copies(self, path: Path) -> bool:
        levels = self.machine.levels
        unit = next((i for i, level in enumerate(levels) if isinstance(level, ComputeUnit)), len(levels))
        if any(self.order[n.memory] > unit for _, n in path.steps if isinstance(n, Store) and path.own(n)):
            return False
        for i, (_, node) in enumerate(path.steps):
            if isinstance(node, Loop) and node.axis is not None:
                inner = [j for j in path.backing.values() if j > i]
                if not any(self.order[self.memory(path, j)] > self.order[node.axis] for j in inner):
                    return False
        return True

    def padded(self, einsum: Einsum) -> dict[str, set[int]]:
        """Variable -> its positions at which some window reaches outside."""
        found: dict[str, set[int]] = {}
        for access in einsum.accesses:
            for index, size in zip(access.indices, self.workload.shape(access), strict=True):
                extents = [self.workload.extents[v] for v in index.variables]
                for at in product(*map(range, extents)):
                    place = index.constant + sum(k * n for (_, k), n in zip(index.terms, at, strict=True))
                    if not 0 <= place < size:
                        for v, n in zip(index.variables, at, strict=True):
                            found.setdefault(v, set()).add(n)
        return found

    def windows(self, path: Path) -> bool:
        padded, name = self.padded(path.einsum), path.einsum.name
        spread = [loop for loop in path.loops() if loop.axis is not None and loop.trips > 1]
        if any(loop.trips <= len(padded.get(str(loop.variable(name)), ())) for loop in spread):
            return False
        for i, (_, node) in enumerate(path.steps):
            split_below = any(isinstance(n, Split) for _, n in path.steps[i:])
            for tensor in path.own(node):
                sliding = {v for index in path.uses[tensor].indices if len(index.terms) > 1 for v in index.variables}
                moved = any(loop.variable(name) in sliding for loop in path.loops(i))
                if split_below and moved and path.backing[tensor] != i:
                    return False
        return True


def alone(access: Access, variable: str | None) -> int | str | None:
    """The rank that a variable indexes alone; "window": a rank that is more than the variable; None: none."""
    for rank, index in enumerate(access.indices):
        if variable is not None and variable in index.variables:
            return rank if index.terms == ((variable, 1),) and not index.constant else "window"
    return None

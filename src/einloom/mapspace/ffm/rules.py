"""The spaces `ffm` and `ragged`, rule by rule: why a legal tree is not in one.

Definition and numbers of the rules: docs/mapspace.md.

Every rule speaks of the *path* of an Einsum: the loops above its leaf and the stores there that hold its own tensors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping as Table
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from math import prod
from types import MappingProxyType

from ...machine.levels import Axis, Machine
from ...mapping.analysed import Analysed
from ...mapping.extents import Address, tile_of
from ...mapping.legality.concurrency import concurrent
from ...mapping.legality.placement import visible_memories
from ...mapping.tree import Compute, Loop, Mapping, Nest, Split, Store, describe, einsums_below
from ...workload.einsum import Access, Workload
from ...workload.orders import reordered
from ...workload.padding import padding_reach
from ...workload.parts import not_whole
from ...workload.selectors import select
from ..divisors import divisors_up_to
from ..limits.checks import share_allowed, total_allowed, unmet
from ..limits.data import UNLIMITED, Limits
from ..space import Mapspace
from .concurrency import group_reasons, splits
from .full_use import least_iterations
from .ragged import busiest, chains, done_by_busiest, ragged_reasons, spread_windows
from .shares import axes_left

WHOLE: Table[str, int] = MappingProxyType({})
WINDOW = -1


def outside(workload: Workload, machine: Machine, mapspace: Mapspace, mapping: Mapping) -> tuple[str, ...]:
    """Every reason why a well-formed `mapping` is not in the space; empty if it is in it.

    The answer is undefined for a tree with structural problems (`legality.structure.problems`).
    """
    if mapspace.order == "free":
        workload = reordered(workload, mapping.einsums)
    tree = _Tree(workload, machine, mapspace, mapping)
    reasons: list[str] = []
    if mapping.einsums != tuple(e.name for e in workload.einsums):
        reasons.append(f"rule 1: the leaves stand in the order {', '.join(mapping.einsums)}, not in program order")
    rules = (
        _tiled,
        _hierarchical,
        _block_order,
        _one_loop,
        _one_fused,
        _no_recomputation,
        _parts,
        _lent,
        _own_stores,
        _limits,
        _copies,
        _windows,
        _asked,
    )
    for einsum in tree.trails:
        for rule in rules:
            reasons.extend(rule(tree, einsum))
    reasons.extend(_fusion(tree))
    reasons.extend(group_reasons(workload, machine, mapspace, mapping.nest))
    return tuple(dict.fromkeys(reasons))


def most_fused_loops(workload: Workload, machine: Machine, mapspace: Mapspace, mapping: Mapping) -> int:
    """The number of fused loops of the Einsum that has most of them, as rule 9 counts."""
    tree = _Tree(workload, machine, mapspace, mapping)
    return max(len(_fused_loops(tree, einsum)) for einsum in tree.trails)


def full_use(
    workload: Workload,
    machine: Machine,
    einsum: str,
    unit: str,
    limits: Limits = UNLIMITED,
    left: Table[str, int] = WHOLE,
) -> int:
    """The largest product of used instances over the ``use: full`` axes that `einsum` can reach on `unit`.

    Over all perfect choices: each axis takes a factor of each rank variable that `only_irrelevant_to` lets it take, the
    factors of one variable together divide its extent, those on one axis fit its size and `limits`. 1 if there is no
    such axis, or no such choice. left: instances of the axes of which the Einsum has a share only.
    """
    every = prod(workload.extents[v] for v in workload.einsum(einsum).variables)
    return every // least_work(workload, machine, einsum, unit, limits, left, windows=False)


def least_work(
    workload: Workload,
    machine: Machine,
    einsum: str,
    unit: str,
    limits: Limits = UNLIMITED,
    left: Table[str, int] = WHOLE,
    windows: bool = True,
) -> int:
    """The least iterations of `einsum` in the busiest instance of the ``use: full`` axes above `unit`, over the choices
    of `full_use`. windows: and those in which one spatial loop cuts a window unevenly."""
    stop = machine.position[unit]
    asked = {limit.axis for limit in limits.axes}
    axes = [
        replace(a, size=left.get(a.name, a.size))
        for a in machine.axes.values()
        if (a.use == "full" or a.name in asked) and machine.position[a.name] < stop
    ]
    padded = padding_reach(workload, einsum)
    spread = spread_windows(workload, einsum) if windows else frozenset[str]()
    takes = tuple(
        (
            workload.extents[v],
            tuple(allowed_instances(workload, einsum, limits, a, v, padded, v in spread) for a in axes),
        )
        for v in workload.einsum(einsum).variables
    )
    totals = tuple(
        tuple(n for n in range(1, a.size + 1) if total_allowed(limits, einsum, a.name, n)) if a.name in asked else None
        for a in axes
    )
    full = tuple(i for i, a in enumerate(axes) if a.use == "full")
    return least_iterations(tuple(a.size for a in axes), full, takes, totals)


def allowed_instances(
    workload: Workload,
    einsum: str,
    limits: Limits,
    axis: Axis,
    variable: str,
    padded: Table[str, int],
    uneven: bool = False,
) -> tuple[int, ...]:
    """The instances of an axis that a rank variable may take. padded: positions that reach padding, as `padding_reach`
    has them; uneven: those, too, that cut it into unequal tiles."""
    e = workload.einsum(einsum)
    barred = (e.access(t) for t in select(axis.only_irrelevant_to, workload, einsum))
    whole = all(variable not in access.variables for access in barred)
    extent, reach = workload.extents[variable], padded.get(variable, 0)
    every = divisors_up_to(extent, axis.size) if whole else (1,)
    if whole and uneven and not reach:
        every = tuple(n for n in range(1, min(extent, axis.size) + 1) if -(-extent // -(-extent // n)) == n)
    every = tuple(n for n in every if n == 1 or n > reach)
    return tuple(n for n in every if share_allowed(limits, einsum, axis.name, variable, n))


class _Tree(Analysed):
    """A mapping, walked once, with its machine and the space that it may be in."""

    def __init__(self, workload: Workload, machine: Machine, mapspace: Mapspace, mapping: Mapping) -> None:
        super().__init__(workload, mapping)
        self.machine, self.mapspace = machine, mapspace
        self._orders: dict[int, dict[str, int]] = {}

    @cached_property
    def beneath(self) -> dict[Address, list[str]]:
        """Address of a node -> the Einsums below it."""
        found: dict[Address, list[str]] = {}
        for einsum, steps in self.trails.items():
            for address, _ in steps:
                found.setdefault(address, []).append(einsum)
        return found

    @cached_property
    def first(self) -> dict[str, str]:
        """Tensor -> the first Einsum that accesses it."""
        return {t: einsum for einsum in reversed(self.trails) for t in self.workload.einsum(einsum).tensors}

    def mine(self, einsum: str, store: Store) -> tuple[str, ...]:
        """Tensors of `einsum` in a store, in the store's order."""
        order = self._order(store)
        return tuple(sorted((t for t in self.workload.einsum(einsum).tensors if t in order), key=order.__getitem__))

    def _order(self, store: Store) -> dict[str, int]:
        """Places of the tensors in a store (there may be very many in the outermost one)."""
        if id(store) not in self._orders:
            self._orders[id(store)] = {t: i for i, t in enumerate(store.tensors)}
        return self._orders[id(store)]

    def place(self, name: str) -> int:
        return self.machine.position[name]

    @property
    def outermost(self) -> str:
        return self.machine.memories[0].name

    def backings(self, einsum: str) -> dict[str, int]:
        """Tensor of `einsum` -> index of its backing store in the path."""
        found: dict[str, int] = {}
        for i, store in self.stores[einsum]:
            for tensor in self.mine(einsum, store):
                found.setdefault(tensor, i)
        return found

    def memory(self, einsum: str, i: int) -> str:
        node = self.paths[einsum][i]
        assert isinstance(node, Store)
        return node.memory


def _tiled(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 2, as the space has it."""
    if tree.mapspace.name in ("ragged", "integer"):
        integer = tree.mapspace.name == "integer"
        return ragged_reasons(tree, einsum, integer)
    return _perfect(tree, einsum)


def _perfect(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 2: every loop has two trips or more and cuts evenly."""
    extents = {i: extent for i, _, _, extent in tree.extents(einsum)[0]}
    for i, loop, v in tree.loops[einsum]:
        if loop.trips < 2:
            yield f"rule 2: '{describe(loop)}' has fewer than 2 trips"
        elif (einsum, i) in tree.cuts:
            yield f"rule 2: '{describe(loop)}' cuts {einsum}.{v} unevenly, as its consumers need it"
        elif v is not None and loop.trips * tile_of(loop, extents[i]) != extents[i]:
            yield f"rule 2: '{describe(loop)}' cuts {einsum}.{v} of extent {extents[i]} unevenly"


def _hierarchical(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 3 for memories: stores go inwards, and those of the outermost memory stand above all else."""
    stores = [store for _, store in tree.stores[einsum] if tree.mine(einsum, store)]
    for outer, inner in pairwise(stores):
        if tree.place(outer.memory) > tree.place(inner.memory):
            yield f"rule 3: on the path of {einsum}, store {inner.memory} stands below store {outer.memory}"
    top = True
    for node in tree.paths[einsum]:
        if isinstance(node, Store) and node.memory == tree.outermost and not top:
            yield f"rule 3: a store of {node.memory} stands below a loop, a split or another memory's store"
        top = top and isinstance(node, Store) and node.memory == tree.outermost


def _block_order(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 3 for loops: between two stores temporal ones come first, then spatial ones, fanout by fanout."""
    spatial: Loop | None = None
    after: Loop | None = None
    for node in tree.paths[einsum]:
        if isinstance(node, Store) and tree.mine(einsum, node):
            if after is not None and spatial is not None:
                yield f"rule 3: '{describe(after)}' stands between '{describe(spatial)}' and store {node.memory}"
            spatial = after = None
        elif isinstance(node, Loop) and node.axis is None:
            after = node if spatial is not None else None
        elif isinstance(node, Loop) and node.axis is not None:
            if after is not None and spatial is not None:
                yield f"rule 3: '{describe(after)}' stands between '{describe(spatial)}' and '{describe(node)}'"
            if spatial is not None and spatial.axis is not None and tree.place(spatial.axis) > tree.place(node.axis):
                yield f"rule 3: '{describe(node)}' stands below '{describe(spatial)}', whose fanout is further in"
            spatial = node


def _one_loop(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 4: one temporal loop per variable between two stores, one spatial loop per variable and axis."""
    temporal: set[str] = set()
    spatial: set[tuple[str, str]] = set()
    for node in tree.paths[einsum]:
        if isinstance(node, Store) and tree.mine(einsum, node):
            temporal = set()
        elif isinstance(node, Loop):
            v = node.variable(einsum)
            if v is None:
                continue
            if node.axis is None:
                if v in temporal:
                    yield f"rule 4: {einsum} has two temporal loops of {v} between two stores"
                temporal.add(v)
            else:
                if (v, node.axis) in spatial:
                    yield f"rule 4: {einsum} has two spatial loops of {v} on {node.axis}"
                spatial.add((v, node.axis))


def _one_fused(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 4: one fused loop per variable, or as many as the mapspace says."""
    most = tree.mapspace.max_fused_loops_per_rank_variable
    found = Counter(v for node in _fused_loops(tree, einsum) if (v := node.variable(einsum)) is not None)
    for v, times in sorted(found.items()):
        if times > most:
            yield f"rule 4: {einsum} has {times} fused loops of {v}, at most {most} are allowed"


def _fused_loops(tree: _Tree, einsum: str) -> list[Loop]:
    """The temporal loops above the lowest backing store of an intermediate outside the outermost memory."""
    backings = tree.backings(einsum).items()
    inner = [i for t, i in backings if t in tree.workload.intermediates and tree.memory(einsum, i) != tree.outermost]
    lowest = max(inner, default=0)
    return [loop for i, loop, _ in tree.loops[einsum] if i < lowest and loop.axis is None]


def _no_recomputation(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 6: every loop above the backing store of an intermediate iterates a rank of it."""
    e = tree.workload.einsum(einsum)
    for tensor, i in tree.backings(einsum).items():
        if tensor not in tree.workload.intermediates or tree.memory(einsum, i) == tree.outermost:
            continue
        for at, node, v in tree.loops[einsum]:
            if at > i or v is None:
                continue
            rank = e.access(tensor).rank_of(v)
            if rank is None or not e.access(tensor).indices[rank].simple or not tree.workload.tied(tensor, rank):
                yield (
                    f"rule 6: '{describe(node)}' stands above the backing store of {tensor}, which {einsum}.{v} does "
                    "not index alone"
                )


def _parts(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 6 for Einsums that write parts of one tensor: loops that they share iterate the same whole rank of it."""
    mine = tree.workload.einsum(einsum).output
    if mine.tensor not in tree.workload.parted:
        return
    for other in tree.workload.writers[mine.tensor]:
        theirs = tree.workload.einsum(other).output
        for (address, node), (also, _) in zip(tree.trails[einsum], tree.trails[other], strict=False):
            if address != also or other == einsum:
                break
            if isinstance(node, Loop) and node.trips > 1:
                ranks = [a.rank_of(node.variable(e) or "") for a, e in ((mine, einsum), (theirs, other))]
                if ranks[0] != ranks[1] or ranks[0] is None or not tree.workload.tied(mine.tensor, ranks[0]):
                    yield (
                        f"rule 6: '{describe(node)}' stands above {einsum} and {other}, which write parts of "
                        f"{mine.tensor}, and iterates no whole rank of it"
                    )


def _lent(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 6 for an input of the cascade that an inner memory backs for several Einsums."""
    e = tree.workload.einsum(einsum)
    for tensor, i in tree.backings(einsum).items():
        first = tree.first[tensor]
        if tensor in tree.workload.producers or first == einsum or tree.memory(einsum, i) == tree.outermost:
            continue
        theirs = tree.workload.einsum(first).access(tensor)
        for _, node, v in tree.several(einsum, i):
            if tensor in tree.workload.viewed:
                yield (
                    f"rule 6: '{describe(node)}' stands above the backing store of {tensor}, which "
                    f"{not_whole(tree.workload, tensor)}"
                )
            else:
                ranks = {_alone(e.access(tensor), v), _alone(theirs, node.variable(first))}
                if len(ranks) > 1 or WINDOW in ranks:
                    yield (
                        f"rule 6: '{describe(node)}' stands above the backing store of {tensor}, which {first} and "
                        f"{einsum} do not index alike there"
                    )


def _alone(access: Access, variable: str | None) -> int | None:
    """The rank that a variable indexes alone; None: none; WINDOW: a rank that is no plain variable."""
    rank = None if variable is None else access.rank_of(variable)
    return rank if rank is None or access.indices[rank].simple else WINDOW


def _own_stores(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 8: who may use a store that is not the backing store of its tensor."""
    backings = tree.backings(einsum)
    for i, node in tree.stores[einsum]:
        for tensor in tree.mine(einsum, node):
            if backings[tensor] == i:
                continue
            served = [e for e in tree.beneath[tree.trails[einsum][i][0]] if tensor in tree.workload.einsum(e).tensors]
            if len(served) > 1 and (why := _unshared(tree, einsum, tensor, i, served)) is not None:
                yield f"rule 8: the store of {tensor} in {node.memory} serves {', '.join(served)}, {why}"


def _unshared(tree: _Tree, einsum: str, tensor: str, i: int, served: list[str]) -> str | None:
    """Why the store of a tensor at `i` of the path, not its backing store, may not serve `einsum` among others; None if
    it may."""
    if tree.mapspace.stores == "own":
        return "not one Einsum"
    steps, first = tree.paths[einsum], tree.backings(einsum)[tensor]
    mine, theirs = (tree.workload.einsum(name).access(tensor) for name in (einsum, served[0]))
    if not set(tree.workload.writers.get(tensor, ())).isdisjoint(served) or tree.workload.einsum(einsum).kind == "copy":
        return "one of which writes or copies it"
    if tree.workload.tensor(tensor).persistent or tensor in tree.workload.parted:
        return "but it is persistent, written in parts or read under other ranks"
    if not _plainly(tree.workload, mine, theirs):
        return f"but {served[0]} and {einsum} do not index it plainly and alike"
    between = (n for n in steps[first + 1 : i] if isinstance(n, Store))
    if tree.memory(einsum, first) != tree.outermost or any(tensor in tree.mine(einsum, n) for n in between):
        return f"but it is not next to a backing store in {tree.outermost}"
    if tree.machine.memory(tree.memory(einsum, i)).capacity_share() > 1 and _at_once(steps[i:]):
        return f"but it holds tiles in turns, and {einsum} runs at the same time as others"
    loops = [n for n in steps[:i] if isinstance(n, Loop)]
    for loop in loops:
        if _alone(mine, loop.variable(einsum)) != _alone(theirs, loop.variable(served[0])):
            return f"but {served[0]} and {einsum} do not index it alike by '{describe(loop)}'"
    inner = next((n for n in reversed(loops) if n.axis is None), None)
    if inner is not None and _alone(mine, inner.variable(einsum)) is None:
        return f"but '{describe(inner)}', the innermost temporal loop above it, does not move it"
    if (other := _beside(tree, einsum, i)) is not None:
        return f"but a store of {other} stands between the same loops"
    if not any(
        _reaches(tree, einsum, i, j) for t, j in tree.backings(einsum).items() if t in tree.workload.intermediates
    ):
        return f"but {einsum} accesses no intermediate that an inner memory backs there or further in"
    return None


def _at_once(steps: Nest) -> bool:
    """True if branches of a split on a path run at the same time."""
    return any(isinstance(node, Split) and concurrent(node) for node in steps)


def _beside(tree: _Tree, einsum: str, i: int) -> str | None:
    """Another inner memory with a store between the store at `i` of a path and the loop above it, or with a backing
    store between it and the loop below."""
    steps, backings = tree.paths[einsum], set(tree.backings(einsum).values())
    for way, backing in ((range(i - 1, -1, -1), False), (range(i + 1, len(steps)), True)):
        for j in way:
            node = steps[j]
            if isinstance(node, Loop):
                break
            counts = isinstance(node, Store) and tree.mine(einsum, node) and (not backing or j in backings)
            if counts and (name := tree.memory(einsum, j)) not in (tree.outermost, tree.memory(einsum, i)):
                return name
    return None


def _plainly(workload: Workload, one: Access, other: Access) -> bool:
    """True if every rank of the tensor is one variable of its own in both accesses, of equal extents."""
    ways = []
    for access in (one, other):
        if not all(index.simple for index in access.indices) or len(set(access.variables)) < len(access.indices):
            return False
        ways.append([workload.extents[index.variables[0]] for index in access.indices])
    return ways[0] == ways[1]


def _reaches(tree: _Tree, einsum: str, i: int, j: int) -> bool:
    """True if the store at `j` of a path, not in the outermost memory, stands below the one at `i` or in one block with
    it, in its memory or one further in."""
    mine, other = tree.memory(einsum, i), tree.memory(einsum, j)
    if other == tree.outermost or tree.place(other) < tree.place(mine):
        return False
    return j > i or all(isinstance(node, Store) for node in tree.paths[einsum][j:i])


def _limits(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 9: the number of fused loops, and the use of axes that ask for all of it."""
    fused, limit = len(_fused_loops(tree, einsum)), tree.mapspace.max_fused_loops
    if limit is not None and fused > limit:
        yield f"rule 9: {einsum} has {fused} fused loops, at most {limit} are allowed"
    leaf = tree.paths[einsum][-1]
    if not isinstance(leaf, Compute) or leaf.unit is None or tree.workload.einsum(einsum).kind == "copy":
        return
    full = {axis.name for axis in tree.machine.axes.values() if axis.use == "full"}
    used = prod(loop.trips for _, loop, _ in tree.loops[einsum] if loop.axis in full)
    left = axes_left(tree.trails[einsum])
    most = full_use(tree.workload, tree.machine, einsum, leaf.unit, tree.mapspace.limits, left)
    if tree.mapspace.name in ("ragged", "integer"):
        extents = {v: tree.workload.extents[v] for v in tree.workload.einsum(einsum).variables}
        doing = busiest if tree.mapspace.name == "ragged" else done_by_busiest
        found = chains(tree, einsum)
        work, least = doing(extents, found, full), prod(extents.values()) // most
        window = tree.workload.einsum(einsum).windowed
        if any(cut.uneven for v in window for cut in found.get(v, ())):
            least = least_work(tree.workload, tree.machine, einsum, leaf.unit, tree.mapspace.limits, left)
        if work > least:
            yield (
                f"rule 9: an instance of the full-use axes on {leaf.unit} does up to {work} iterations of {einsum}, "
                f"{least} are possible"
            )
    elif used < most:
        yield f"rule 9: {einsum} uses {used} instances of the full-use axes on {leaf.unit}, it could use {most}"


def _copies(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 10: which memories and loops a copy may have."""
    if tree.workload.einsum(einsum).kind != "copy":
        return
    seen = {memory.name for memory in visible_memories(tree.machine, None)}
    for _, store in tree.stores[einsum]:
        if tree.mine(einsum, store) and store.memory not in seen:
            yield f"rule 10: the copy {einsum} stores in {store.memory}, which is listed after the first compute unit"
    backings = set(tree.backings(einsum).values())
    for i, loop, _ in tree.loops[einsum]:
        if loop.axis is not None:
            place = tree.place(loop.axis)
            if not any(j > i and tree.place(tree.memory(einsum, j)) > place for j in backings):
                yield f"rule 10: '{describe(loop)}' on the path of the copy {einsum} stands above no backing store"


def _windows(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 11: an instance on every axis reaches no padding, and no own store above a split slides along a loop."""
    steps = tree.paths[einsum]
    padded = padding_reach(tree.workload, einsum)
    splits = [i for i, node in enumerate(steps) if isinstance(node, Split)]
    backings = tree.backings(einsum)
    for i, node in enumerate(steps):
        if isinstance(node, Loop) and node.axis is not None:
            variable = node.variable(einsum)
            reach = 0 if variable is None else padded.get(variable, 0)
            if 1 < node.trips <= reach:
                needs = f"{reach} of its positions reach padding, it needs more instances"
                yield f"rule 11: '{describe(node)}' spreads {variable} of {einsum}; {needs}"
        if not isinstance(node, Store) or not splits or i > splits[-1]:
            continue
        for tensor in tree.mine(einsum, node):
            if backings.get(tensor) == i:
                continue
            indices = tree.workload.einsum(einsum).access(tensor).indices
            compound = {v for index in indices if len(index.terms) > 1 for v in index.variables}
            for above in steps[:i]:
                if isinstance(above, Loop) and above.variable(einsum) in compound:
                    where = f"the store of {tensor} in {node.memory}"
                    yield f"rule 11: {where} stands above a split and below a loop of its window"


def _asked(tree: _Tree, einsum: str) -> Iterator[str]:
    """Rule 12: what the mapspace's limits ask."""
    if tree.mapspace.limits:
        limits, path = tree.mapspace.limits, tree.paths[einsum]
        yield from unmet(tree.workload, tree.machine, limits, einsum, path, tree.below(einsum))


def _fusion(tree: _Tree) -> Iterator[str]:
    """Rule 7, for every loop above every split."""
    for _, split, above in splits(tree.mapping.nest):
        for address, node in above:
            if isinstance(node, Loop):
                yield from _fused_for_a_reason(tree, address, node, split)


def _fused_for_a_reason(tree: _Tree, address: Address, loop: Loop, split: Split) -> Iterator[str]:
    """Rule 7 for one loop: an intermediate passes between neighbouring branches below it."""
    order = tree.workload.position
    below = tree.beneath[address]
    stored: set[str] = set()
    for einsum in below:
        at = next(i for i, (a, _) in enumerate(tree.trails[einsum]) if a == address)
        stored |= {t for t, i in tree.backings(einsum).items() if i > at and t in tree.workload.intermediates}
    for einsum in below:
        if not stored & set(tree.workload.einsum(einsum).tensors):
            yield f"rule 7: {einsum} under '{describe(loop)}' accesses no intermediate that is backed below the loop"
    spans = [
        (order[tree.workload.producers[t]], max(order[c] for c in tree.workload.consumers[t])) for t in sorted(stored)
    ]
    for first, second in pairwise(split.branches):
        before, after = order[einsums_below(first)[-1]], order[einsums_below(second)[0]]
        if not any(start <= before and stop >= after for start, stop in spans):
            yield (
                f"rule 7: '{describe(loop)}' fuses {einsums_below(first)[-1]} and {einsums_below(second)[0]}, but no "
                "intermediate that is backed below it passes between them"
            )

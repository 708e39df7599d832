"""Who needs what when: loops against extents, producers against consumers, windows against what stores keep."""

from __future__ import annotations

from collections.abc import Iterator

from ...workload.parts import not_whole
from ..analysed import Analysed
from ..extents import tile_of
from ..tree import Loop, Split, Store, describe
from .concurrency import concurrent
from .parts import part_problems
from .reason import Reason

LARGEST_CHAIN = 1_000_000


def dependence_problems(tree: Analysed) -> Iterator[Reason]:
    """Reasons about extents, fusion, unfinished reductions and recomputation. The tree's layout must be sound."""
    oversized = tuple(_oversized_chains(tree))
    if oversized:
        yield from oversized
        return
    for einsum in tree.paths:
        yield from _extent_problems(tree, einsum)
        yield from _repeated(tree, einsum)
    for tensor in tree.workload.parted:
        yield from part_problems(tree, tensor)
    for tensor in (t.name for t in tree.workload.tensors if t.name in tree.workload.producers):
        for producer in tree.workload.writers[tensor]:
            yield from _producer_problems(tree, tensor, producer)


def _producer_problems(tree: Analysed, tensor: str, producer: str) -> Iterator[Reason]:
    """Reasons about what one Einsum writes of a tensor, and those who read it."""
    yield from _unfinished_in_store(tree, tensor, producer)
    for consumer in tree.workload.consumers[tensor]:
        yield from _untied(tree, tensor, producer, consumer)
    dropped = tuple(_dropped(tree, tensor, producer))
    yield from dropped
    if not dropped:  # else that is the reason why two of the loops have no common order
        for consumer in tree.workload.consumers[tensor]:
            yield from _two_guides(tree, tensor, producer, consumer)


def _backing(tree: Analysed, einsum: str, tensor: str) -> int | None:
    """Index of the backing store of `tensor` in the path of `einsum`."""
    return next((i for i, n in enumerate(tree.paths[einsum]) if isinstance(n, Store) and tensor in n.tensors), None)


def _fault(tree: Analysed, producer: str, consumer: str, tensor: str, i: int) -> str:
    """What becomes of the overlap between iterations of the loop at `i`; empty if nothing bad does."""
    loop = tree.paths[producer][i]
    assert isinstance(loop, Loop)
    if loop.axis is None:
        return "dropped between iterations"
    shared = tree.shared(producer, consumer)
    if any(isinstance(node, Store) and tensor in node.tensors for node in tree.paths[producer][i:shared]):
        return "held by other instances"
    variable = loop.variable(producer)
    later = (j for j, n, v in tree.several(producer, shared) if n.axis is None and v == variable)
    return "computed in later steps by other instances" if any(j > i for j in later) else ""


def _oversized_chains(tree: Analysed) -> Iterator[Reason]:
    """Chains of loops too long to reason about; a legal one has about as many trips as its variable values."""
    most = max(LARGEST_CHAIN, 16 * max(tree.workload.extents.values(), default=1))
    for einsum in tree.paths:
        trips = dict.fromkeys(tree.workload.einsum(einsum).variables, 1)
        last: dict[str, Loop] = {}
        for _, loop, v in tree.several(einsum):
            if v in trips:
                trips[v] *= loop.trips
                last[v] = loop
        for variable, count in trips.items():
            if count > most:
                size = tree.workload.extents[variable]
                words = f"{einsum}: the loops of {variable} make {count} trips, it has {size} values"
                yield Reason(words, last[variable])


def _extent_problems(tree: Analysed, einsum: str) -> Iterator[Reason]:
    """Trips fit extents and tiles, and every variable reaches extent 1 at the leaf."""
    loops, left = tree.extents(einsum)
    cuts = tree.cuts
    for i, node, v, extent in loops:
        if cuts and (einsum, i) in cuts and tree.windows(einsum, i):
            continue  # what is derived from the consumers: the loop's numbers speak of them
        tile = tile_of(node, extent)
        if node.trips != -(-extent // tile):
            yield Reason(
                f"{einsum}: '{describe(node)}': {v} has extent {extent} here, so tiles of {tile} need "
                f"{-(-extent // tile)} trips, not {node.trips}",
                node,
            )
    for v, extent in left.items():
        if extent != 1:
            last = next((loop for _, loop, u, _ in loops[::-1] if u == v), tree.paths[einsum][-1])
            yield Reason(f"{einsum}: {v} still has extent {extent} at the leaf; loops must bring it to 1", last)


def _repeated(tree: Analysed, einsum: str) -> Iterator[Reason]:
    for _, loop, v in tree.several(einsum):
        if v is None:
            said = f"runs {loop.trips} times under '{describe(loop)}', which does not bind it"
            yield Reason(f"recomputation: Einsum {einsum} {said}", loop)


def _untied(tree: Analysed, tensor: str, producer: str, consumer: str) -> Iterator[Reason]:
    """Loops that producer and consumer share must iterate the same rank of the tensor, for both alike."""
    output = tree.workload.einsum(producer).output
    access = tree.workload.einsum(consumer).access(tensor)
    for _, loop, u in tree.several(producer, tree.shared(producer, consumer)):
        v = loop.variable(consumer)
        if u is None or v is None:
            continue
        rank = output.rank_of(u)
        said = f"'{describe(loop)}' stands above {producer} and {consumer}, which reads {tensor}"
        if rank is None:
            yield Reason(f"unfinished reduction: {said}, but {producer} still reduces {u} there", loop)
        elif tensor in tree.workload.viewed and not tree.workload.tied(tensor, rank):
            why = not_whole(tree.workload, tensor)
            yield Reason(f"{said}; {tensor} {why}, which do not have its rank {rank} in common", loop)
        elif not tree.workload.tied(tensor, rank):
            part = f"{producer} writes only a part of its rank {rank}, at {output.indices[rank]}"
            yield Reason(f"{said}, but {part}", loop)
        elif v not in access.indices[rank].variables:
            other = access.rank_of(v)
            where = f"rank {other}" if other is not None else "no rank"
            yield Reason(f"{said}: {producer}.{u} indexes its rank {rank}, {consumer}.{v} {where} of it", loop)


def _two_guides(tree: Analysed, tensor: str, producer: str, consumer: str) -> Iterator[Reason]:
    """A producer's variable may follow only one variable of a consumer: two of them have no common order."""
    output = tree.workload.einsum(producer).output
    guides: dict[str, str] = {}
    for _, loop, u in tree.several(producer, tree.shared(producer, consumer)):
        v = loop.variable(consumer)
        if u is None or v is None or output.rank_of(u) is None:
            continue
        first = guides.setdefault(u, v)
        if first != v:
            yield Reason(
                f"'{describe(loop)}': {producer}.{u} follows {consumer}.{v} here and {consumer}.{first} in a loop "
                f"further out; it may follow only one variable of {consumer}",
                loop,
            )


def _unfinished_in_store(tree: Analysed, tensor: str, producer: str) -> Iterator[Reason]:
    """A backing store drops partial results between steps of a loop that its producer reduces.

    Unless the loop is temporal, and neither a temporal loop of the tensor's own ranks nor a split whose branches run
    one after the other stands between it and the store: then the store keeps its tile.
    """
    backing = _backing(tree, producer, tensor)
    store = None if backing is None else tree.paths[producer][backing]
    if not isinstance(store, Store):
        return
    kept = tree.workload.einsum(producer).output.variables
    forgets = False
    for node in reversed(tree.paths[producer][:backing]):
        forgets = forgets or (isinstance(node, Split) and not concurrent(node))
        if not isinstance(node, Loop) or node.trips == 1:
            continue
        loop, u = node, node.variable(producer)
        if u in kept:
            forgets = forgets or loop.axis is None
        elif u is not None and (forgets or loop.axis is not None):
            yield Reason(
                f"unfinished reduction: '{describe(loop)}' stands above the backing store of {tensor} in "
                f"{store.memory}, but {producer} reduces {u}",
                loop,
            )


def _dropped(tree: Analysed, tensor: str, producer: str) -> Iterator[Reason]:
    """Elements that a consumer needs again after the backing store dropped them, or that another instance has.

    Of the temporal loops above the backing store only the innermost keeps the overlap with the window before (one trip
    does not count). Across the instances of a shared spatial loop an overlap is lost if a store that producer and
    consumer share stands below the loop (instances exchange nothing), and comes too late if a shared temporal loop of
    the same variable does (another instance computes it in a later step).
    """
    if not tree.cuts:
        return
    backing = _backing(tree, producer, tensor) or 0
    sliding = max((i for i, loop, _ in tree.several(producer, backing) if loop.axis is None), default=None)
    for i, loop, _ in tree.several(producer):
        if i == sliding or (producer, i) not in tree.cuts or (loop.axis is None and i > backing):
            continue
        for consumer, spans in tree.windows(producer, i):
            most = _overlap(tree.cuts[producer, i], spans, loop.trips)
            fault = _fault(tree, producer, consumer, tensor, i)
            if most and fault:
                yield Reason(
                    f"recomputation: {consumer} needs {most} positions of {tensor} again that were {fault} of "
                    f"'{describe(loop)}' above its store",
                    loop,
                )


def _overlap(ends: tuple[int, ...], spans: tuple[tuple[int, int], ...], trips: int) -> int:
    """The most positions that one step of the innermost loop reads again, of those computed before that step."""
    steps = (n for n in range(1, len(spans)) if n % trips and spans[n][1] > spans[n][0])
    return max((0, *(ends[n - 1] - max(spans[n][0], 0) for n in steps)))

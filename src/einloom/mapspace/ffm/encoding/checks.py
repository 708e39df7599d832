"""Why a state is no tree of the space, by the name of a rule: of the skeleton as a whole, and path by path.

Numbers of rules: docs/mapspace.md. What a search proposes is counted under these names when it is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from math import prod

from ....mapping.extents import tile_of
from ....mapping.tree import Loop, Nest, Node, Split
from ...limits.checks import unmet
from .covers import Chain, busiest_work, uneven_fault
from .facts import Facts
from .group_rules import group_fault, whole_fault
from .lent_stores import lent_fault, lent_path_fault
from .state import Frame, Item, State, Word, backings_of, frame_of, path_of, products
from .trees import nodes_of

_NOTHING = frozenset[str]()


def fault(facts: Facts, state: State) -> str | None:
    """The first rule that the state breaks, capacity excepted; None if it keeps all."""
    found = skeleton_fault(facts, state)
    if found is not None:
        return found
    found = next((one for i in range(facts.count) if (one := path_fault(facts, state, i))), None)
    return found or whole_fault(facts, state)


def skeleton_fault(facts: Facts, state: State) -> str | None:
    """The first rule that what the Einsums share breaks."""
    if "skeleton" not in state.known:
        state.known["skeleton"] = next(_skeleton(facts, state, frame_of(facts, state)), None)
    found = state.known["skeleton"]
    return found if isinstance(found, str) else None


def path_fault(facts: Facts, state: State, i: int) -> str | None:
    """The first rule that the path of Einsum i breaks."""
    if state.owns[i].raised or state.lent:
        found = next(_raised(facts, state, frame_of(facts, state), i), None) or lent_path_fault(facts, state, i)
        if found is not None:
            return found
    mine = path_of(facts, state, i)
    if mine not in facts.judged:
        facts.judged[mine] = next(_path(facts.within(frame_of(facts, state).left_of(i)), i, mine.word), None)
    return facts.judged[mine]


def _skeleton(facts: Facts, state: State, frame: Frame) -> Iterator[str]:
    if not facts.orderly:
        yield "order"
    if any(len(loops) != length for loops, length in zip(state.shared, frame.lengths, strict=True)):
        yield "shared loops"
        return
    for number, tensor in enumerate(facts.floating):
        home, depth = state.homes[number], state.depths[number]
        if home not in tensor.homes:
            yield "home"
        shares = min(frame.cuts[tensor.users[0] : tensor.users[-1]], default=0)
        if depth > (shares if home > 0 else 0) or (depth and tensor.persistent):
            yield "depth"
        if not tensor.fuses:
            yield from _lent(facts, state, tensor.name, tensor.users, depth)
    yield from filter(None, (lent_fault(facts, state, frame, one) for one in state.lent))
    for group in state.groups:
        lone = sum(other[0] == group[0] for other in state.groups) == 1
        yield from filter(None, (group_fault(facts, frame, state.shared, group, lone),))
    yield from _shared(facts, state, frame)
    if facts.limits.loops:
        yield from _limited(facts, state, frame)
    yield from _alike_tiles(facts, state, frame)
    yield from _ties(facts, state, frame)


def _shared(facts: Facts, state: State, frame: Frame) -> Iterator[str]:
    """Neighbours agree in trips and axis, and each has a reason to share the loop (rule 7)."""
    for boundary, shares in enumerate(frame.cuts):
        left, right = state.shared[boundary], state.shared[boundary + 1]
        for level in range(shares):
            if left[level][1:] != right[level][1:]:
                yield "shared loops"
    for i, loops in enumerate(state.shared):
        if loops:
            deepest = max((depth for n, depth, _ in frame.backings[i] if facts.floating[n].fuses), default=0)
            if deepest < len(loops):
                yield "fusion without a reason"
        if any(n < 2 for _, n, _ in loops):
            yield "one trip"


def _limited(facts: Facts, state: State, frame: Frame) -> Iterator[str]:
    """Fused loops above backing stores have trips that limits allow (rule 12); no privates mend that."""
    for i, loops in enumerate(state.shared):
        for number, depth, _ in frame.backings[i]:
            tensor = facts.floating[number]
            trips = products((v, n) for v, n, axis in loops[:depth] if axis is None)
            if tensor.fuses and not all(facts.loop_allowed(i, tensor.name, v, n) for v, n in trips.items()):
                yield "limits of the mapspace"


def _alike_tiles(facts: Facts, state: State, frame: Frame) -> Iterator[str]:
    """A shared loop that cuts unevenly cuts whole variables of equal extents, for all into the same tiles."""
    if not any(own.covers for own in state.owns):
        return
    for boundary, shares in enumerate(frame.cuts):
        for level in range(shares):
            cuts = []
            for i in (boundary, boundary + 1):
                v = state.shared[i][level][0]
                whole = all(w != v for w, _, _ in state.shared[i][:level])
                cover = dict(state.owns[i].covers).get(v, facts.extents[v])
                cuts.append((facts.extents[v], cover) if whole else None)
            if any(cut is not None and cut[0] != cut[1] for cut in cuts) and cuts[0] != cuts[1]:
                yield "uneven cut"


def _ties(facts: Facts, state: State, frame: Frame) -> Iterator[str]:
    """Shared loops iterate one rank of every tensor that passes below them, for both sides alike (rules 2 and 6)."""
    for producer, consumer, tensor in facts.ties:
        shares = min(frame.cuts[producer:consumer], default=0)
        for mine, theirs in zip(state.shared[producer][:shares], state.shared[consumer][:shares], strict=True):
            rank = facts.simple_rank(producer, tensor, mine[0])
            if rank is None or facts.simple_rank(consumer, tensor, theirs[0]) != rank:
                yield "loop not of the tensor"
            elif facts.extents[mine[0]] != facts.extents[theirs[0]]:
                yield "uneven cut"


def _lent(facts: Facts, state: State, tensor: str, users: tuple[int, ...], depth: int) -> Iterator[str]:
    for level in range(depth):
        ranks = set()
        for i in users:
            variable = state.shared[i][level][0]
            rank = facts.simple_rank(i, tensor, variable)
            ranks.add(-1 if rank is None and facts.einsums[i].access(tensor).rank_of(variable) is not None else rank)
        if len(ranks) > 1 or -1 in ranks:
            yield "loop not of the tensor"


def _raised(facts: Facts, state: State, frame: Frame, i: int) -> Iterator[str]:
    """Own stores further out stand at places that exist and serve one Einsum (rules 8 and 11)."""
    compound = facts.compound[i]
    for _, tensor, level, below in state.owns[i].raised:
        if not frame.stands(i, level, below):
            yield "place of a store"
            return
        first, last = frame.run(i, level + below)
        if any(tensor in facts.tensors[j] for j in range(first, last + 1) if j != i):
            yield "store of several Einsums"
        windows = compound.get(tensor, frozenset())
        if any(v in windows for v, _, _ in state.shared[i][:level]):
            yield "window above a split"


def _path(facts: Facts, i: int, mine: Word) -> Iterator[str]:
    unit = mine[-1][1]
    assert unit is None or isinstance(unit, str)
    if unit not in facts.units[i]:
        yield "unit"
    yield from _trips(facts, i, mine)
    yield from filter(None, (_stores_fault(facts, i, mine, unit),))
    yield from _order(facts, mine)
    yield from _anchored(facts, i, mine)
    yield from _one_loop(mine)
    yield from filter(None, (_spatial_fault(facts, i, mine, unit),))
    yield from _fused(facts, i, mine)
    yield from _parts(facts, i, mine)
    if facts.limits and _breaks_limits(facts, i, mine):
        yield "limits of the mapspace"


def _breaks_limits(facts: Facts, i: int, mine: Word) -> bool:
    """True if a path breaks a limit, found once for all paths that differ in nothing that limits speak of."""
    seen = mine if facts.limits_of_loops else tuple([item for item in mine if item[0] not in ("for", "split")])
    key = facts.label[i], seen
    if key not in facts.unlimited:
        path = _flat(facts, i, mine)
        broken = unmet(facts.workload, facts.machine, facts.limits, facts.einsums[i].name, *path)
        facts.unlimited[key] = next(broken, None) is None
    return not facts.unlimited[key]


def _trips(facts: Facts, i: int, mine: Word) -> Iterator[str]:
    found, covers = dict.fromkeys(facts.einsums[i].variables, 1), dict(mine[-1][2])
    for item in mine:
        if item[0] == "for" or item[0] == "par":
            found[item[-2]] *= item[-1]
            if item[-1] < 2:
                yield "one trip"
    if found != (facts.full[i] | covers if covers else facts.full[i]):
        yield "trips"
    elif covers and not facts.ragged:
        yield "uneven tile"
    elif covers:
        chains = chains_of(mine)
        for v, cover in covers.items():
            why = uneven_fault(facts, i, v, cover, chains.get(v, []))
            if why is not None:
                yield why


def chains_of(mine: Word) -> dict[str, Chain]:
    """Variable -> (axis, trips) of its loops on a path, outermost first."""
    found: dict[str, Chain] = {}
    for item in mine:
        if item[0] == "for" or item[0] == "par":
            found.setdefault(item[-2], []).append((item[1] if item[0] == "par" else None, item[-1]))
    return found


def _stores_fault(facts: Facts, i: int, mine: Word, unit: str | None) -> str | None:
    """The first rule that the stores of a path break, whatever its loops are, found once."""
    key = facts.label[i], unit, tuple([item for item in mine if item[0] == "store"])
    if key not in facts.stored:
        facts.stored[key] = next(_stores(facts, i, mine, unit), None)
    return facts.stored[key]


def _stores(facts: Facts, i: int, mine: Word, unit: str | None) -> Iterator[str]:
    held = [_NOTHING] * len(facts.memories)
    seen = facts.visible(unit)
    reach = 0
    for item in mine:
        if item[0] == "store":
            memory, tensors = item[1], item[2]
            if memory < reach:
                yield "memory order"
            reach = max(reach, memory)
            if not held[memory].isdisjoint(tensors):
                yield "stored twice"
            held[memory] = held[memory].union(tensors)
    if any(mine_held and m not in seen for m, mine_held in enumerate(held)):
        yield "memory not seen"
    if _NOTHING.union(*held) != facts.tensors[i]:
        yield "tensor without a store"
    elif not facts.holds(i, unit, tuple(held)):
        yield "must and may"
    if not facts.unbacked.isdisjoint(facts.tensors[i]):
        yield "home"
    for tensor, home in facts.fixed.items():
        if tensor in facts.tensors[i] and next((m for m, h in enumerate(held) if tensor in h), home) != home:
            yield "home"


def _order(facts: Facts, mine: Word) -> Iterator[str]:
    """Stores and spatial loops inwards, temporal loops above the spatial ones of a block (rule 3)."""
    stores, axes, block, after = -1, -1, -1, False
    for item in mine:
        if item[0] == "store":
            place = facts.place[item[1]]
            if place < axes:
                yield "store below its fanout"
            if after:
                yield "block order"
            stores, block, after = max(stores, place), -1, False
        elif item[0] == "for":
            after = after or block >= 0
        elif item[0] == "par":
            place = facts.axis_place[item[1]]
            if place < stores:
                yield "store above its fanout"
            if after or place < block:
                yield "block order"
            axes, block = max(axes, place), place


def _anchored(facts: Facts, i: int, mine: Word) -> Iterator[str]:
    """No loop stands above the backing store of a persistent tensor (rule 5)."""
    for tensor in facts.anchored.keys() & facts.tensors[i]:
        above = takewhile(lambda item, tensor=tensor: item[0] != "store" or tensor not in item[2], mine)  # type: ignore[misc]
        if any(item[0] in ("for", "par") for item in above):
            yield "loop above a persistent tensor"


def _one_loop(mine: Word) -> Iterator[str]:
    temporal: set[object] = set()
    spatial: set[Item] = set()
    for item in mine:
        if item[0] == "store":
            temporal = set()
        elif item[0] == "for":
            if item[1] in temporal:
                yield "two loops"
            temporal.add(item[1])
        elif item[0] == "par":
            if item[1:3] in spatial:
                yield "two loops"
            spatial.add(item[1:3])


def _spatial_fault(facts: Facts, i: int, mine: Word, unit: str | None) -> str | None:
    """The first rule that the spatial loops of a path break: on a unit whatever else it has, and so found once."""
    if unit is None:
        return next(_spatial(facts, i, mine, unit), None)
    key = facts.label[i], unit, tuple([item for item in mine if item[0] == "par"]), mine[-1][2]
    if key not in facts.spread_over:
        facts.spread_over[key] = next(_spatial(facts, i, mine, unit), None)
    return facts.spread_over[key]


def _spatial(facts: Facts, i: int, mine: Word, unit: str | None) -> Iterator[str]:
    """Sizes, use and limits of axes (rule 9), padded ranks (rule 11), copies (rule 10)."""
    used: dict[str, int] = {}
    for at, item in enumerate(mine):
        if item[0] == "par":
            _, axis, variable, trips = item
            used[axis] = used.get(axis, 1) * trips
            if trips not in facts.takes(i, axis, variable):
                yield "instances of a variable"
            if unit is None and not _backs_below(facts, i, mine, at, axis):
                yield "copy"
    if any(n > facts.machine.axes[axis].size for axis, n in used.items()):
        yield "size of an axis"
    if unit is None:
        return
    axes = facts.axes_of(i, unit)
    if any(axis not in axes for axis in used):
        yield "axis below the unit"
    full = [axis for axis in axes if facts.machine.axes[axis].use == "full"]
    if facts.ragged and full:
        windows = any(v in facts.windows(i) for v, _ in mine[-1][2])
        if busiest_work(facts, i, chains_of(mine), full) > facts.least_work(i, unit, windows):
            yield "full use"
    elif prod(used.get(axis, 1) for axis in full) < facts.most(i, unit):
        yield "full use"
    if any(not facts.total_allowed(i, axis, used.get(axis, 1)) for axis in axes):
        yield "limits of the mapspace"


def _backs_below(facts: Facts, i: int, mine: Word, at: int, axis: str) -> bool:
    """True if a backing store inside the axis stands below."""
    inside = facts.axis_place[axis]
    return any(new and place > at and facts.place[memory] > inside for place, memory, new in backings_of(mine))


def _parts(facts: Facts, i: int, mine: Word) -> Iterator[str]:
    """Above the backing store of a tensor in parts or with views loops iterate whole ranks only (rule 6)."""
    for tensor in facts.workload.parted.keys() & facts.tensors[i]:
        for item in mine:
            if item[0] == "store" and tensor in item[2]:
                break
            if item[0] in ("for", "par") and facts.simple_rank(i, tensor, item[-2]) is None:
                yield "loop not of the tensor"


def _fused(facts: Facts, i: int, mine: Word) -> Iterator[str]:
    """At most so many fused loops (rule 9), and of each variable (rule 4)."""
    most, again = facts.mapspace.max_fused_loops, facts.mapspace.max_fused_loops_per_rank_variable
    between = facts.workload.intermediates
    inner = (at for at, memory, new in backings_of(mine) if memory > 0 and not new.isdisjoint(between))
    loops = [item[1] for item in mine[: max(inner, default=0)] if item[0] == "for"]
    if most is not None and len(loops) > most:
        yield "fused loops"
    if max(Counter(loops).values(), default=0) > again:
        yield "fused loops of a rank"


def _flat(facts: Facts, i: int, mine: Word) -> tuple[tuple[Node, ...], list[dict[str, int]]]:
    """The nodes of a path in a row, and the extents below each."""
    nodes: list[Node] = []
    nest: Nest = nodes_of(facts, i, mine)
    while nest:
        nodes += nest
        last = nest[-1]
        nest = last.branches[0] if isinstance(last, Split) else ()
    extents = dict(facts.full[i])
    below = []
    for node in nodes:
        if isinstance(node, Loop):
            v = node.binds[0][1]
            extents = {**extents, v: tile_of(node, extents[v])}
        below.append(extents)
    return tuple(nodes), below

"""What a problem may have: each dimension by name, told from the problem itself and not from how it was drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, permutations
from typing import Any

from ...machine.levels import ALL, NOTHING, Link, Machine, Memory
from ...mapspace.space import Mapspace
from ...problem import keeps_time
from ...problem.selections import machine_selectors
from ...workload.einsum import Einsum, Index, Workload
from ...workload.orders import several_orders
from ...workload.selectors import select

UNEQUAL = 1000
"""One Einsum touches so many times the bits of another."""


def _indices(w: Workload) -> Iterator[Index]:
    for einsum in w.einsums:
        for access in einsum.inputs:
            yield from access.indices


def _padded(w: Workload) -> bool:
    return any(
        index.constant < 0 or index.constant + index.extent(w.extents) > size
        for einsum in w.einsums
        for access in einsum.inputs
        for size, index in zip(w.shape(access), access.indices, strict=True)
        if index.terms and not index.simple
    )


def _shared_readers(w: Workload) -> set[bool]:
    """For a tensor that two Einsums read which also have an intermediate in common, and each rank of the intermediate
    that one variable indexes in both: is the tensor indexed by it too (in both), or in neither of them?"""
    found: set[bool] = set()
    for first, second in combinations(w.einsums, 2):
        read = {a.tensor for a in first.inputs} & {a.tensor for a in second.inputs}
        links = set(w.intermediates) - w.viewed
        between = [t for t in w.intermediates if t in links and t in first.tensors and t in second.tensors]
        for tensor, over in ((t, o) for t in read for o in between if o != t):
            mine, theirs = first.access(over).indices, second.access(over).indices
            for one, other in zip(mine, theirs, strict=True):
                if one.simple and other.simple and w.extents[one.variables[0]] > 1:
                    has = {
                        one.variables[0] in first.access(tensor).variables,
                        other.variables[0] in second.access(tensor).variables,
                    }
                    if len(has) == 1:
                        found |= has
    return found


def _parts(w: Workload) -> Iterator[str]:
    """The tensors that are written in parts."""
    for tensor, names in w.writers.items():
        indices = [index for name in names for index in w.einsum(name).output.indices]
        if len(names) > 1 or w.tensor(tensor).initial or not all(index.simple for index in indices):
            yield tensor


def _reshaped(w: Workload) -> Iterator[str]:
    """The tensors that have views of other sizes than 1 than their own."""
    for view in w.views:
        if [n for n in view.shape if n > 1] != [n for n in w.tensor(view.tensor).shape if n > 1]:
            yield view.tensor


def _unequal(w: Workload) -> bool:
    touched = [sum(w.tensor(t).size * w.tensor(t).bits for t in e.tensors) for e in w.einsums]
    return max(touched) >= UNEQUAL * min(touched)


def _inner(m: Machine) -> tuple[Memory, ...]:
    return tuple(memory for memory in m.memories[1:] if not isinstance(memory, Link))


def _widths(w: Workload, m: Machine) -> tuple[set[str], set[str]]:
    """Names in the selectors of widths: tensors, and words."""
    tensors = {t.name for t in w.tensors}
    named = {n for way in m.ways for which, _ in way.widths for n in which.names}
    return named & tensors, named - tensors


def _energies(m: Machine) -> list[float]:
    memories = [x for memory in m.memories for x in (memory.read_energy, memory.write_energy, memory.leakage)]
    units = [x for unit in m.units for x in (unit.energy, unit.leakage)]
    return [*memories, *units, *(x for toll in m.tolls for x in (toll.energy, toll.leakage))]


def apart(w: Workload) -> Iterator[tuple[str, str, bool]]:
    """(intermediate, another operand of an Einsum that uses it, does each of its users read that operand?) where the
    operand lacks a variable that indexes the intermediate, so that a loop over it leaves the operand's tile alone."""
    for between in w.intermediates:
        users = [w.einsum(name) for name in (w.producers[between], *w.consumers[between])]
        for user in users:
            looped = {v for v in user.access(between).variables if w.extents[v] > 1}
            for access in user.inputs:
                if access.tensor != between and looped - set(access.variables):
                    yield between, access.tensor, all(access.tensor in other.tensors for other in users)


def _wider(w: Workload, m: Machine) -> bool:
    """May an inner memory hold an intermediate that a consumer meets wider there than the producer?"""
    return any(
        memory.bits(w, w.producers[t], t) < memory.bits(w, user, t) and t in select(memory.may, w, w.producers[t])
        for memory in _inner(m)
        for t in w.intermediates
        for user in w.consumers[t]
    )


def _over_readers(w: Workload, m: Machine) -> bool:
    """May an inner memory hold what two Einsums read and an intermediate between them, over whose loops it stays?"""
    return any(
        {between, read} <= select(memory.may, w, w.producers[between]) & select(memory.may, w, w.consumers[between][0])
        and between in select(memory.backs, w, w.producers[between])
        for between, read, everywhere in apart(w)
        if everywhere
        for memory in _inner(m)
    )


def _further_in(w: Workload, m: Machine) -> bool:
    """May a memory behind one that can back an intermediate hold what stays over its loops, and nothing shared?"""
    inner = _inner(m)
    return any(
        _backs(w, outer, between, user) and read in select(memory.may, w, user) and not _backs(w, memory, between, user)
        for between, read, _ in apart(w)
        for user in (w.producers[between], *w.consumers[between])
        if read in w.einsum(user).tensors
        for i, outer in enumerate(inner)
        for memory in inner[i + 1 :]
    )


def _fused(w: Workload, between: str) -> Iterator[tuple[Einsum, Einsum, str, str]]:
    """(producer, consumer, the variable of each) for the ranks of an intermediate that both index by a variable."""
    producer = w.einsum(w.producers[between])
    for consumer in map(w.einsum, w.consumers[between]):
        for one, other in zip(producer.access(between).indices, consumer.access(between).indices, strict=True):
            if one.simple and other.simple and w.extents[one.variables[0]] > 1:
                yield producer, consumer, one.variables[0], other.variables[0]


def fused_twice(w: Workload) -> Iterator[str]:
    """The intermediates of one consumer that two loops can be fused over."""
    for between in w.intermediates:
        if between not in w.viewed and len(w.consumers[between]) == 1 and len(list(_fused(w, between))) > 1:
            yield between


def turned(w: Workload) -> Iterator[str]:
    """The intermediates of one consumer that two loops can be fused over, whose order is not the same for producer and
    consumer."""
    for between in fused_twice(w):
        ranks = list(_fused(w, between))
        mine = sorted(ranks, key=lambda rank: rank[0].variables.index(rank[2]))
        theirs = sorted(ranks, key=lambda rank: rank[1].variables.index(rank[3]))
        if mine != theirs:
            yield between


def partly_written(w: Workload) -> Iterator[str]:
    """The tensors with a rank of several values of which some Einsum writes only a part."""
    for tensor in _parts(w):
        if any(size > 1 and not w.tied(tensor, rank) for rank, size in enumerate(w.tensor(tensor).shape)):
            yield tensor


def written_widely(w: Workload) -> Iterator[str]:
    """The intermediates of which some Einsum writes a part by an index of several variables."""
    for tensor in _parts(w):
        written = (index for name in w.writers[tensor] for index in w.einsum(name).output.indices)
        if w.consumers[tensor] and any(len(index.terms) > 1 for index in written):
            yield tensor


def kept_over(w: Workload) -> Iterator[tuple[str, str, str]]:
    """(intermediate, tensor of its producer, tensor of a consumer) where both lack the variable of a rank of the
    intermediate, so that a fused loop over it leaves the tiles of both alone."""
    for between in w.intermediates:
        for producer, consumer, mine, theirs in _fused(w, between) if between not in w.viewed else ():
            for one in producer.accesses:
                for other in consumer.accesses:
                    if mine not in one.variables and theirs not in other.variables and one.tensor != other.tensor:
                        yield between, one.tensor, other.tensor


def _backs(w: Workload, memory: Memory, tensor: str, user: str) -> bool:
    """May it back a tensor for this Einsum?"""
    return tensor in select(memory.may, w, user) & select(memory.backs, w, user)


def _backing(w: Workload, memory: Memory, between: str) -> bool:
    return all(_backs(w, memory, between, user) for user in (w.producers[between], *w.consumers[between]))


def _behind_idle(w: Workload, m: Machine) -> bool:
    """May a memory back an intermediate that two loops can be fused over, behind a fanout and another memory that may
    not hold it?"""
    return any(
        m.instances(outside.name) > 1
        and not any(between in select(outside.may, w, user) for user in (w.producers[between], *w.consumers[between]))
        and _backing(w, inside, between)
        for between in fused_twice(w)
        for outside, inside in combinations(_inner(m), 2)
    )


def _turned_on_an_axis(w: Workload, m: Machine) -> bool:
    """May a memory back one of `turned` behind an axis that two loops fit on?"""
    return any(
        _backing(w, memory, between)
        for between in turned(w)
        for memory in _inner(m)
        if any(axis.size >= 4 and m.position[name] < m.position[memory.name] for name, axis in m.axes.items())
    )


def _part_housed(w: Workload, m: Machine) -> bool:
    """May an inner memory, and not the outermost one, back a tensor of `partly_written` for whoever uses it?"""
    return any(
        not any(_backs(w, m.memories[0], tensor, user) for user in users)
        and any(all(_backs(w, memory, tensor, user) for user in users) for memory in _inner(m))
        for tensor in partly_written(w)
        for users in [(*w.writers[tensor], *w.consumers[tensor])]
    )


def _part_behind(w: Workload, m: Machine) -> bool:
    """May a memory behind a fanout back one of `written_widely` for whoever uses it?"""
    return any(
        m.instances(memory.name) > 1 and all(_backs(w, memory, tensor, user) for user in users)
        for tensor in written_widely(w)
        for users in [(*w.writers[tensor], *w.consumers[tensor])]
        for memory in _inner(m)
    )


def _kept_above(w: Workload, m: Machine) -> bool:
    """May an inner memory hold two of `kept_over`, back nothing, and stand outside one that backs the intermediate?"""
    return any(
        one in select(outside.may, w, w.producers[between])
        and any(other in select(outside.may, w, user) for user in w.consumers[between])
        and not _backing(w, outside, between)
        and _backing(w, inside, between)
        for between, one, other in kept_over(w)
        for outside, inside in combinations(_inner(m), 2)
    )


def crossed(w: Workload) -> Iterator[tuple[str, str]]:
    """Pairs of tensors of an Einsum each of which lacks a variable that indexes the other."""
    for einsum in w.einsums:
        for one, other in permutations(einsum.accesses, 2):
            mine, theirs = ({v for v in a.variables if w.extents[v] > 1} for a in (one, other))
            if one.tensor != other.tensor and mine - theirs and theirs - mine:
                yield one.tensor, other.tensor


FITTING: dict[str, Callable[[Workload], Iterable[Any]]] = {
    "wider for a consumer": lambda w: w.intermediates,
    "store over two readers": lambda w: ((between, read) for between, read, everywhere in apart(w) if everywhere),
    "store behind what backs": apart,
    "backed behind an idle memory": fused_twice,
    "own stores above what is backed": kept_over,
    "memories for different tensors": crossed,
    "turned on an axis": turned,
    "part housed inside": partly_written,
    "part behind a fanout": written_widely,
    "home by role": lambda w: (t for t in w.outputs if w.consumers[t]),
    "copy held behind a fanout": lambda w: (e for e in w.einsums if e.kind == "copy"),
}
"""What of a workload each dimension that it shares with the machine can be about; without any it cannot have it."""


def _divided(w: Workload, m: Machine) -> bool:
    """May a small memory hold one of `crossed` and not the other, which a memory further in may hold?"""
    return any(
        one in held and other not in held and other in select(inside.may, w, e.name)
        for one, other in crossed(w)
        for e in w.einsums
        if {one, other} <= {*e.tensors}
        for outside, inside in combinations(_inner(m), 2)
        if outside.size is not None and (held := select(outside.may, w, e.name))
    )


def _housed_by_role(w: Workload, m: Machine) -> bool:
    """Does the outermost memory back an output for its writer and not for one of its readers, or the reverse?"""
    outer = m.memories[0]
    return any(
        _backs(w, outer, t, w.producers[t]) != _backs(w, outer, t, user) for t in w.outputs for user in w.consumers[t]
    )


def _copied_behind(w: Workload, m: Machine) -> bool:
    """Must a memory behind a fanout hold a tensor of a copy?"""
    return any(
        m.instances(memory.name) > 1 and select(memory.must, w, e.name)
        for e in w.einsums
        if e.kind == "copy"
        for memory in _inner(m)
    )


def several_readers(w: Workload) -> bool:
    """Is there a tensor that several Einsums read?"""
    return any(len(w.consumers[t.name]) > 1 for t in w.tensors)


Test = Callable[[Workload, Machine, Mapspace], bool]
TESTS: dict[str, Test] = {
    "scalar": lambda w, m, s: any(not t.shape for t in w.tensors),
    "constant index": lambda w, m, s: any(not i.variables for i in _indices(w)),
    "window": lambda w, m, s: any(len(i.terms) > 1 for i in _indices(w)),
    "padding": lambda w, m, s: _padded(w),
    "repeated operand": lambda w, m, s: any(len({a.tensor for a in e.inputs}) < len(e.inputs) for e in w.einsums),
    "readers with the fused rank": lambda w, m, s: True in _shared_readers(w),
    "readers without it": lambda w, m, s: False in _shared_readers(w),
    "read output": lambda w, m, s: any(w.consumers[t] for t in w.outputs),
    "persistent input": lambda w, m, s: any(t.persistent and t.name in w.inputs for t in w.tensors),
    "persistent result": lambda w, m, s: any(t.persistent and t.name in w.producers for t in w.tensors),
    "repeat": lambda w, m, s: w.repeat > 1,
    "copy": lambda w, m, s: any(e.kind == "copy" for e in w.einsums),
    "copies only": lambda w, m, s: all(e.kind == "copy" for e in w.einsums),
    "maximum": lambda w, m, s: any(e.reduction == "max" for e in w.einsums),
    "parts": lambda w, m, s: any(_parts(w)),
    "parts read": lambda w, m, s: any(w.consumers[t] and t not in w.ends for t in _parts(w)),
    "views": lambda w, m, s: any(_reshaped(w)),
    "views between": lambda w, m, s: any(t in w.producers and t not in w.ends for t in _reshaped(w)),
    "unequal Einsums": lambda w, m, s: _unequal(w),
    "one memory": lambda w, m, s: not _inner(m),
    "four or five memories": lambda w, m, s: len(_inner(m)) >= 3,
    "must": lambda w, m, s: any(x.must != NOTHING for x in _inner(m)),
    "may": lambda w, m, s: any(x.may != ALL for x in _inner(m)),
    "backs": lambda w, m, s: any(x.backs != ALL for x in _inner(m)),
    "limited outermost memory": lambda w, m, s: (m.memories[0].may, m.memories[0].backs) != (ALL, ALL),
    "small outermost memory": lambda w, m, s: m.memories[0].size is not None,
    "widths by role": lambda w, m, s: bool(_widths(w, m)[1]),
    "widths by tensor": lambda w, m, s: bool(_widths(w, m)[0]),
    "fanout": lambda w, m, s: bool(m.axes),
    "two axes": lambda w, m, s: len(m.axes) > 1,
    "barred axis": lambda w, m, s: any(a.only_irrelevant_to != NOTHING for a in m.axes.values()),
    "partial multicast": lambda w, m, s: any((a.multicast, a.reduce) != (ALL, ALL) for a in m.axes.values()),
    "full use": lambda w, m, s: any(a.use == "full" for a in m.axes.values()),
    "several units": lambda w, m, s: len(m.units) > 1,
    "toll": lambda w, m, s: bool(m.tolls),
    "link": lambda w, m, s: any(isinstance(memory, Link) for memory in m.memories),
    "non-integer energies": lambda w, m, s: any(x != int(x) for x in _energies(m)),
    "nothing costs": lambda w, m, s: not any(_energies(m)),
    "leakage": lambda w, m, s: any(x.leakage for x in m.components),
    "double buffer": lambda w, m, s: any(x.capacity_share() > 1 for x in m.memories),
    "no time": lambda w, m, s: not keeps_time(m),
    "wider for a consumer": lambda w, m, s: _wider(w, m),
    "store over two readers": lambda w, m, s: _over_readers(w, m),
    "store behind what backs": lambda w, m, s: _further_in(w, m),
    "backed behind an idle memory": lambda w, m, s: _behind_idle(w, m),
    "own stores above what is backed": lambda w, m, s: _kept_above(w, m),
    "memories for different tensors": lambda w, m, s: _divided(w, m),
    "turned on an axis": lambda w, m, s: _turned_on_an_axis(w, m),
    "part housed inside": lambda w, m, s: _part_housed(w, m),
    "part behind a fanout": lambda w, m, s: _part_behind(w, m),
    "home by role": lambda w, m, s: _housed_by_role(w, m),
    "copy held behind a fanout": lambda w, m, s: _copied_behind(w, m),
    "once": lambda w, m, s: m.partial_sums == "once",
    "unheld": lambda w, m, s: any("unheld" in which.names for _, which in machine_selectors(m)),
    "keep or bypass": lambda w, m, s: any(x.rule != "once" for x in s.limits.holds),
    "fetched once": lambda w, m, s: any(x.rule == "once" for x in s.limits.holds),
    "fusion limit": lambda w, m, s: bool(s.limits.backs),
    "loop limit": lambda w, m, s: bool(s.limits.loops),
    "tile limit": lambda w, m, s: bool(s.limits.tiles),
    "axis limit": lambda w, m, s: bool(s.limits.axes),
    "uneven tiles": lambda w, m, s: s.name == "ragged",
    "free order": lambda w, m, s: s.order == "free" and several_orders(w),
    "shared stores": lambda w, m, s: s.stores == "shared" and several_readers(w),
    "fewer fused loops": lambda w, m, s: s.max_fused_loops is not None,
    "groups": lambda w, m, s: bool({"unit", "shared"} & set(s.places)),
    "shares": lambda w, m, s: "axis" in s.places,
    "fused again": lambda w, m, s: s.max_fused_loops_per_rank_variable > 1,
}
DIMENSIONS = tuple(TESTS)
LATEST = ("backed behind an idle memory", "own stores above what is backed", "memories for different tensors")
LAST = ("turned on an axis", "part housed inside")
BEHIND = ("part behind a fanout",)
DICE = {
    "later": ("views", "views between"),
    "latest": LATEST,
    "last": LAST,
    "levels": ("fused again",),
    "behind": BEHIND,
}
LATER = tuple(name for names in DICE.values() for name in names)
"""Dimensions that came when seeds were known for what they draw: by `DICE` of their own, on top of a pair of others."""
COMBINED = (
    ("uneven tiles", "groups"),
    ("uneven tiles", "shares"),
    ("uneven tiles", "shared stores"),
    ("free order", "shared stores"),
    ("free order", "groups"),
    ("free order", "shares"),
    ("shared stores", "groups"),
    ("shared stores", "shares"),
)
"""Pairs that came later still: a seed with one of them may have the other as well, by dice of its own."""
PARTED = (
    ("one memory", "home by role"),
    ("copies only", "readers with the fused rank"),
    *((name, other) for name in LATEST for other in ("groups", "shares")),
)
"""Pairs that were taken for impossible when seeds were first drawn: those seeds do not ask for them."""
_NEVER: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "copies only",
        ("repeated operand", "constant index", "window", "padding"),
        "a copy has one operand, indexed plainly",
    ),
    ("copies only", ("readers without it",), "a copy has the same variables on both sides"),
    ("copies only", ("maximum",), "a copy reduces nothing"),
    ("one memory", ("four or five memories",), "one is not four"),
    ("one memory", ("must", "may", "backs"), "they are those of inner memories"),
    (
        "copies only",
        (
            *("store over two readers", "store behind what backs"),
            *("own stores above what is backed", "memories for different tensors"),
        ),
        "a copy has the same variables on both sides",
    ),
    (
        "one memory",
        (
            "wider for a consumer",
            "store over two readers",
            "store behind what backs",
            "copy held behind a fanout",
            *(*LATEST, *LAST, *BEHIND),
        ),
        "they speak of inner memories",
    ),
    *(
        (
            name,
            ("groups", "shares"),
            "exact searches no groups where a tensor is written in parts or has views",
        )
        for name in ("parts", "parts read", "views", "views between", "part housed inside", *BEHIND)
    ),
    ("nothing costs", ("non-integer energies", "leakage"), "nothing is no cost"),
)


def dimensions_of(workload: Workload, machine: Machine, mapspace: Mapspace) -> frozenset[str]:
    """The dimensions that a problem has."""
    return frozenset(name for name, has in TESTS.items() if has(workload, machine, mapspace))


def impossible(one: str, other: str) -> str | None:
    """Why no problem has both of these dimensions, or None."""
    for name, others, why in _NEVER:
        if (name == one and other in others) or (name == other and one in others):
            return why
    return None


def parted(one: str, other: str) -> bool:
    """True if no problem has both of these dimensions, or seeds below `drawing.TOWARDS` do not ask for both."""
    return impossible(one, other) is not None or (one, other) in PARTED or (other, one) in PARTED


def apart_at_first(one: str, other: str) -> bool:
    """True if seeds are not drawn for both of these: they are parted, or `COMBINED`."""
    return parted(one, other) or (one, other) in COMBINED or (other, one) in COMBINED


def pairs() -> list[tuple[str, str]]:
    """Every pair of dimensions that seeds are drawn for, `LATER` and `COMBINED` left out."""
    among = [name for name in DIMENSIONS if name not in LATER]
    return [(one, other) for one, other in combinations(among, 2) if not apart_at_first(one, other)]


def possible_pairs() -> list[tuple[str, str]]:
    """Every pair of dimensions that a problem may have."""
    return [(one, other) for one, other in combinations(DIMENSIONS, 2) if impossible(one, other) is None]


def impossible_pairs() -> list[tuple[str, str]]:
    """Every pair of dimensions that no problem has, the one that the reason speaks of first."""
    return [(name, other) for name, others, _ in _NEVER for other in others]

"""The form that DAT gives a tree before its integer program: loops over every rank, a block of every tensor.

Fused Einsums share a loop over every rank of what passes between them; a rank that is not cut has a loop of one trip.
Every tensor has a block in every memory that may hold it, which stays over the innermost loops that it lacks. So the
program decides what is cut, the tree only what is fused and in which order. A loop of one trip is none in einloom: it
goes when the trips are known.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random

from ...mapspace.divisors import primes
from ...mapspace.ffm.encoding import NoProposal, State
from ...mapspace.ffm.encoding.checks import path_fault
from ...mapspace.ffm.encoding.facts import Facts
from ...mapspace.ffm.encoding.moves import raised_at, removed
from ...mapspace.ffm.encoding.privates import slots_for
from ...mapspace.ffm.encoding.skeletons import SkeletonDraft
from ...mapspace.ffm.encoding.state import frame_of, tidy


def in_blocks(facts: Facts, state: State, rng: Random) -> State:
    """The state with all loops, stores and places of stores of DAT's form, as far as the rules allow."""
    for number in sorted(range(len(state.homes)), key=lambda n: -state.depths[n]):
        if state.homes[number] > 0 and state.depths[number] > 0:
            state = _over_every_rank(facts, state, number, rng)
    for i in range(facts.count):
        for memory, tensor in facts.owns(i, state.owns[i].unit):
            state = _with_block(facts, state, i, memory, tensor)
    return state


def _over_every_rank(facts: Facts, state: State, number: int, rng: Random) -> State:
    """A fused tensor's loops, with one more for every rank of it that has none."""
    tensor = facts.floating[number]
    user = tensor.users[0]
    have = state.shared[user][: state.depths[number]]
    loops = [(facts.simple_rank(user, tensor.name, v), n, axis) for v, n, axis in have]
    for rank, size in enumerate(facts.workload.tensor(tensor.name).shape):
        ready = all(facts.variable_at(i, tensor.name, rank) for i in tensor.users)
        if ready and size > 1 and all(rank != one for one, _, _ in loops):
            loops.insert(rng.randint(0, len(loops)), (rank, primes(size)[0], None))
    known = [(rank, n, axis) for rank, n, axis in loops if rank is not None]
    if len(known) < len(loops) or len(loops) == len(have):
        return state
    draft = SkeletonDraft(facts, state)
    try:
        draft.fuse(number, state.homes[number], known)
        return draft.settled(rng)
    except NoProposal:
        return state


def _with_block(facts: Facts, state: State, i: int, memory: int, tensor: str) -> State:
    """The state with an own store of the tensor, above the innermost shared loops that the tensor lacks."""
    own, loops = state.owns[i], state.shared[i]
    if (memory, tensor) in {one[:2] for one in own.raised}:
        return state
    if (memory, tensor) not in own.stores:
        at = sum(m <= memory for m, _ in own.stores)
        stores = (*own.stores[:at], (memory, tensor), *own.stores[at:])
        segments = (*own.segments[: at + 1], (), *own.segments[at + 1 :])
        found = state.with_own(i, tidy(facts, replace(own, stores=stores, segments=segments)))
        if path_fault(facts, found, i):
            return state
        state = found
    level = len(loops)
    while level and loops[level - 1][0] not in facts.relevant[i][tensor]:
        level -= 1
    slots = [slot for slot in slots_for(facts, state, i, memory, tensor) if level <= slot[0] < len(loops)]
    if slots:
        with suppress(NoProposal):
            return raised_at(facts, state, i, state.owns[i].stores.index((memory, tensor)), min(slots))
    return state


def without_ones(facts: Facts, state: State) -> State:
    """The state without shared loops of one trip; what is backed below one stands below one loop less."""
    for level in reversed(range(max(map(len, state.shared), default=0))):
        for first, last in frame_of(facts, state).runs(level):
            if state.shared[first][level][1] == 1:
                draft = SkeletonDraft(facts, state)
                removed(facts, state, draft, first, last, level)
                shared = tuple(map(tuple, draft.shared))
                homes, depths, lent = tuple(draft.homes), tuple(draft.depths), tuple(draft.lent)
                state = State(homes, depths, shared, tuple(draft.owns), state.sequence, lent, tuple(draft.groups))
    return state

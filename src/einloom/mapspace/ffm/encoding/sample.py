"""States at random: unfused first, then fused tensor by tensor, then mended until everything fits its memory."""

from __future__ import annotations

from contextlib import suppress
from random import Random

from .alike import alike, copied
from .checks import path_fault
from .demands import demanded
from .facts import Facts
from .group_rules import whole_fault
from .grouping import regroup
from .lending import lend
from .moves import bring_home, eased, spatial_ranks
from .privates import drawn
from .rooms import overflow, overfull
from .skeletons import NoProposal, Rank, SkeletonDraft, unfused_state
from .spreads import NETWORK
from .state import State

MENDS = 60  # steps of `fitted` before it gives up
MENDED = 6  # so many for each Einsum, if that is more: in small scratchpads every one has to be mended
TRIED = 12  # tensors of a network that may be fused in a draw: each takes as long as all Einsums need to agree anew
GOALS = (1.0, 0.5, 0.25, 0.125)  # parts of a memory that a shared tile may take


def plain(facts: Facts, rng: Random) -> State | None:
    """Nothing fused that need not be, privates at random; None if some Einsum has no privates."""
    state = unfused_state(facts)
    for i in range(facts.count):
        found = drawn(facts, state, i, rng)
        if found is None:
            return None
        state = found
    return state


def joined(facts: Facts, rng: Random) -> State | None:
    """Nothing fused but what has to be, below spatial loops over the axes above its memory; None if this draw is none.

    Where such an axis is in full use, a store inside it has to stand below its loop, so those Einsums share it.
    """
    draft = SkeletonDraft(facts, unfused_state(facts))
    inner = (n for n, one in enumerate(facts.floating) if one.fuses and min(one.homes, default=0) > 0)
    loops: list[Rank] = []
    end = -1
    for number in sorted(inner, key=lambda n: facts.floating[n].users):
        tensor = facts.floating[number]
        if tensor.users[0] > end:  # of those that follow on, one tensor says what all their Einsums share
            loops = spatial_ranks(facts, number, min(tensor.homes), rng)
            draft.fuse(number, min(tensor.homes), loops)
        draft.depths[number] = len(loops)
        end = max(end, tensor.users[-1])
    try:
        state: State | None = draft.settled(rng) if end >= 0 else None
    except NoProposal:
        return None
    for i in range(facts.count):
        if state is not None and path_fault(facts, state, i):
            state = drawn(facts, state, i, rng)
    return state


def unfused(facts: Facts, rng: Random) -> State | None:
    """Nothing fused that need not be, and the same privates at random for Einsums that are alike, which fit; None if
    this draw gave none."""
    state: State | None = unfused_state(facts)
    for group in alike(facts):
        done: set[int] = set()
        for i in group:
            if state is not None and i not in done:
                before = state
                state = _alone(facts, before, i, rng)
                state = None if state is None else copied(facts, state, group, i)
                done |= {i, *(j for j in group if state is not None and state.owns[j] is not before.owns[j])}
    return None if state is None else fitted(facts, state, rng)


def _alone(facts: Facts, state: State, i: int, rng: Random) -> State | None:
    """The state with privates of Einsum i at random, changed until they fit."""
    found = drawn(facts, state, i, rng)
    for _ in range(MENDS):
        memory = None if found is None else overfull(facts, found, i)
        if found is None or memory is None:
            return found
        try:
            found = eased(facts, found, memory, i, rng)
        except NoProposal:
            continue
    return None


def sampled(facts: Facts, rng: Random, fuse: float | None = None) -> State | None:
    """A state that keeps the rules and fits; None if this draw gave none. fuse: how many tensors are tried."""
    network = facts.count > NETWORK
    state = demanded(facts, rng) if facts.demanded else None
    known = set() if state is None else set(facts.demanded)
    state = state or (unfused(facts, rng) if network else plain(facts, rng)) or joined(facts, rng)
    if state is None:
        return None
    keen = rng.random() if fuse is None else fuse
    numbers = range(len(facts.floating))
    tried = rng.sample(numbers, min(TRIED, len(numbers))) if network else numbers
    for number, tensor in enumerate(facts.floating):
        homes = [home for home in tensor.homes if home > 0]
        if homes and number not in known and ((number in tried and rng.random() < keen) or min(tensor.homes) > 0):
            try:
                state = bring_home(facts, state, number, rng.choice(homes), rng.choice(GOALS), rng)
            except NoProposal:
                continue
    for _ in facts.lendable:
        if rng.random() < keen:
            with suppress(NoProposal):
                state = lend(facts, state, rng)
    if facts.mapspace.places:
        for _ in range(2):
            with suppress(NoProposal):
                state = regroup(facts, state, rng) if rng.random() < keen else state
    return fitted(facts, state, rng)


def fitted(facts: Facts, state: State, rng: Random, steps: int | None = None) -> State | None:
    """The state changed step by step until all tiles fit; None if so many steps did not do."""
    for _ in range(max(MENDS, MENDED * facts.count) if steps is None else steps):
        over = overflow(facts, state)
        if over is None:
            return state
        try:
            found = eased(facts, state, *over, rng)
        except NoProposal:
            continue
        state = state if whole_fault(facts, found) else found
    return None

"""Other orders of the Einsums, where the space has them: `order: free` (docs/mapspace.md).

Comes in: a state. Goes out: one with the same skeleton and privates, as far as they keep the rules in the new order.
"""

from __future__ import annotations

from random import Random

from .facts import Facts
from .skeletons import NoProposal, SkeletonDraft, chosen
from .state import State, frame_of


def in_sequence(facts: Facts, state: State, places: list[int], rng: Random) -> tuple[Facts, State]:
    """The state with the Einsums of these places, in this order, and its tables. Raises NoProposal."""
    other = facts.in_order(facts.named(facts.label[i] for i in places))
    if not other.orderly:
        raise NoProposal("order")
    shared, owns = tuple(state.shared[i] for i in places), tuple(state.owns[i] for i in places)
    lent = tuple((*one[:4], places.index(one[4])) for one in state.lent)
    groups = (
        (places.index(first), places.index(last), where, given)
        for first, last, where, given in state.groups
        if [places.index(i) for i in range(first, last + 1)]
        == list(range(places.index(first), places.index(first) + last - first + 1))
    )
    turned = State(state.homes, state.depths, shared, owns, other.sequence, lent, tuple(sorted(groups)))
    return other, SkeletonDraft(other, turned, sound=False).settled(rng)


def moved(facts: Facts, state: State, rng: Random) -> State:
    """Einsums run earlier or later, as far as data allow: one, or all that share its outermost loop."""
    frame, first = frame_of(facts, state), rng.randrange(facts.count)
    first, last = frame.run(first, 1) if rng.random() < 0.6 else (first, first)
    low, high = first, last
    while low > 0 and not any(facts.before(low - 1, i) for i in range(first, last + 1)):
        low -= 1
    while high < facts.count - 1 and not any(facts.before(i, high + 1) for i in range(first, last + 1)):
        high += 1
    places = [at for at in range(low, high - (last - first) + 1) if at != first]
    at, some = chosen(places, rng), list(range(first, last + 1))
    rest = [i for i in range(facts.count) if not first <= i <= last]
    return in_sequence(facts, state, [*rest[:at], *some, *rest[at:]], rng)[1]


def gathered(facts: Facts, state: State, number: int, rng: Random) -> tuple[Facts, State]:
    """The state in which no Einsum stands between those of a floating tensor but what data ask for, and its tables.

    What one of them waits for stands before them, all else behind. Raises NoProposal.
    """
    users = facts.floating[number].users
    first, last = users[0], users[-1]
    early, middle, late = list[int](), list[int](), list[int]()
    for i in range(first, last + 1):
        needed = any(facts.before(i, user) for user in users)
        needs = any(facts.before(user, i) for user in users)
        (middle if i in users or (needed and needs) else early if needed else late).append(i)
    if not early and not late:
        return facts, state
    places = [*range(first), *early, *middle, *late, *range(last + 1, facts.count)]
    return in_sequence(facts, state, places, rng)

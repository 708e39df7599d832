"""Moves of stores for several readers, where the space has them: one comes, goes, or stands elsewhere."""

from __future__ import annotations

from random import Random

from .facts import Facts
from .lent_stores import lent_fault
from .skeletons import NoProposal, SkeletonDraft, raise_for
from .state import Lent, State, frame_of, replaced


def lend(facts: Facts, state: State, rng: Random) -> State:
    """A store for several Einsums comes, goes, or stands elsewhere. Raises NoProposal."""
    draft = SkeletonDraft(facts, state)
    if state.lent and rng.random() < 0.4:
        draft.lent.remove(rng.choice(state.lent))
        return draft.settled(rng)
    tensor = rng.choice(list(facts.lendable))
    i = rng.choice(list(facts.lendable[tensor]))
    frame = frame_of(facts, state)
    places = frame.places(i)
    memories = [m for m, t in facts.owns(i, state.owns[i].unit) if t == tensor]
    if not places or not memories:
        raise NoProposal("place of a store")
    memory, place = rng.choice(memories), rng.choice(places)
    new = (memory, tensor, *place, min(frame.served((memory, tensor, *place, i))))
    raise_for(lent_fault(facts, state, frame, new))
    return with_lent(facts, state, draft, new, rng)


def with_lent(facts: Facts, state: State, draft: SkeletonDraft, new: Lent, rng: Random) -> State:
    """The state with one store for several Einsums more, instead of their own in that memory and further out."""
    served = frame_of(facts, state).served(new)
    overlap = [one for one in draft.lent if one[1] == new[1] and set(frame_of(facts, state).served(one)) & set(served)]
    draft.lent = [*(one for one in draft.lent if one not in overlap), new]
    for i in served:
        own = draft.owns[i]
        raised = tuple(one for one in own.raised if one[1] != new[1] or one[0] > new[0])
        draft.owns[i] = replaced(own, raised=raised)
    return draft.settled(rng)

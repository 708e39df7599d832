"""Stores for several readers: rule 8 of `stores: shared` (docs/mapspace.md), for states.

Comes in: a state. Goes out: why a store for several Einsums in it is none of the space.
"""

from __future__ import annotations

from .facts import Facts
from .state import Frame, Lent, State, Word, backings_of, frame_of, word


def lent_fault(facts: Facts, state: State, frame: Frame, one: Lent) -> str | None:
    """The rule that a store for several Einsums breaks by where it stands; None if none."""
    memory, tensor, level, below, first = one
    if facts.mapspace.stores != "shared" or tensor not in facts.lendable:
        return "store of several Einsums"
    if not frame.stands(first, level, below):
        return "place of a store"
    served = frame.served(one)
    if len(served) < 2 or served[0] != first:
        return "place of a store"
    kinds = facts.lendable[tensor]
    if any(i not in kinds or kinds[i] != kinds[first] for i in served):
        return "store of several Einsums"
    if memory == 0 or (tensor in facts.floats and state.homes[facts.floats[tensor]] > 0):
        return "store of several Einsums"
    ranks = [[facts.simple_rank(i, tensor, v) for v, _, _ in state.shared[i][:level]] for i in served]
    temporal = [rank for rank, (_, _, axis) in zip(ranks[0], state.shared[first], strict=False) if axis is None]
    if any(other != ranks[0] for other in ranks) or (temporal and temporal[-1] is None):
        return "loop not of the tensor"
    return None


def lent_path_fault(facts: Facts, state: State, i: int) -> str | None:
    """The rule that the stores for several Einsums on the path of Einsum i break there; None if none."""
    lents = frame_of(facts, state).lents[i]
    mine = word(facts, state, i) if lents else ()
    for memory, tensor, *_ in lents:
        if sum(t == tensor for _, t, *_ in lents) > 1:
            return "store of several Einsums"
        at = next(at for at, item in enumerate(mine) if item[:2] == ("store", memory) and tensor in item[2])
        if _beside(mine, at, memory) or not _fused(facts, mine, at, memory):
            return "store of several Einsums"
    return None


def _beside(mine: Word, at: int, memory: int) -> bool:
    """True if a store of another inner memory stands between the one at this place and the loop above, or a backing
    store of one between it and the loop below."""
    backed = {at: new for at, _, new in backings_of(mine)}
    for places, backing in ((range(at - 1, -1, -1), False), (range(at + 1, len(mine)), True)):
        for j in places:
            if mine[j][0] in ("for", "par"):
                break
            if mine[j][0] == "store" and mine[j][1] not in (0, memory) and (not backing or backed[j]):
                return True
    return False


def _fused(facts: Facts, mine: Word, at: int, memory: int) -> bool:
    """True if an intermediate is backed below, or in one block with the store, in its memory or further in."""
    return any(
        inner > 0 and facts.place[inner] >= facts.place[memory] and all(item[0] == "store" for item in mine[j:at])
        for j, inner, new in backings_of(mine)
        if not new.isdisjoint(facts.workload.intermediates)
    )


def keeps_rules(facts: Facts, state: State, one: Lent) -> bool:
    """True if a store for several Einsums may stand where it does."""
    frame = frame_of(facts, state)
    return lent_fault(facts, state, frame, one) is None and all(
        lent_path_fault(facts, state, i) is None for i in frame.served(one)
    )

"""Moves of groups, where Einsums may run at the same time: one comes, goes, or runs elsewhere."""

from __future__ import annotations

from random import Random

from ..shares import every_share
from .facts import Facts
from .group_rules import whole_fault
from .skeletons import NoProposal, SkeletonDraft, chosen, raise_for, tile_loops
from .state import Frame, State, frame_of, replaced

FUSED = 0.3  # of new groups bring a tensor home, too


def regroup(facts: Facts, state: State, rng: Random) -> State:
    """A group comes, goes, or runs on something else, with the privates mended. Raises NoProposal."""
    draft = SkeletonDraft(facts, state)
    if state.groups and rng.random() < 0.4:
        draft.groups.remove(rng.choice(state.groups))
        return _whole(facts, draft.settled(rng))
    if facts.floating and rng.random() < FUSED:
        first, last = _fused(facts, draft, rng)
    else:
        first, last = chosen(_runs(frame_of(facts, state), facts.mapspace.max_group), rng, "place of a group")
    where, shares = rng.choice(facts.mapspace.places), tuple[int, ...]()
    if where == "axis":
        options = [
            (axis.name, given)
            for axis in facts.axes
            for given in every_share(axis.size, last - first + 1)
            if all(given)
        ]
        where, shares = chosen(options, rng, "shares")
    group = first, last, where, shares
    draft.groups = [*(one for one in draft.groups if one[0] != first), group]
    if where == "unit":
        _on_units(facts, draft, first, last, rng)
    found = draft.settled(rng)
    if group not in found.groups:
        raise NoProposal("group")
    return _whole(facts, found)


def _fused(facts: Facts, draft: SkeletonDraft, rng: Random) -> tuple[int, int]:
    """First and last Einsum of a tensor that the draft brings home below new loops. Where an axis in full use leaves no
    trips for these, they are there only for Einsums that have a share of it."""
    number = rng.randrange(len(facts.floating))
    tensor = facts.floating[number]
    homes = [home for home in tensor.homes if home]
    memory = chosen(homes, rng)
    size = facts.memories[memory].size
    goal = rng.choice((1.0, 8.0, 64.0, 4096.0)) if size is None else size * rng.choice((1.0, 0.5, 0.25, 0.0))
    loops = tile_loops(facts, number, memory, [], goal, {}, rng)
    draft.fuse(number, memory, loops[: rng.randint(1, max(1, len(loops)))])
    return tensor.users[0], tensor.users[-1]


def _whole(facts: Facts, state: State) -> State:
    raise_for(whole_fault(facts, state))
    return state


def _runs(frame: Frame, most: int) -> list[tuple[int, int]]:
    """The runs of at most so many Einsums that part all at once below a loop."""
    found = []
    for first, level in enumerate(frame.cuts):
        start, end = frame.run(first, level)
        if level and start == first and end - first < most and set(frame.cuts[first:end]) == {level}:
            found.append((first, end))
    return found


def _on_units(facts: Facts, draft: SkeletonDraft, first: int, last: int, rng: Random) -> None:
    """Every Einsum on a unit of its own; copies need none."""
    taken = set[str | None]()
    for i in range(first, last + 1):
        free = [unit for unit in facts.units[i] if unit is None or unit not in taken]
        unit = chosen(free, rng, "unit")
        taken.add(unit)
        if unit != draft.owns[i].unit:
            draft.owns[i] = replaced(draft.owns[i], unit=unit)

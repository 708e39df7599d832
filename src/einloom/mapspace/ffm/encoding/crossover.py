"""Crossover: the part of one state before a boundary that neither fuses across, and the part of another behind it."""

from __future__ import annotations

from random import Random

from .checks import fault
from .facts import Facts
from .skeletons import raise_for
from .state import State, frame_of


def crossed(facts: Facts, one: State, other: State, rng: Random) -> State:
    """A state with something of both. Without a boundary that both leave open, with the same Einsums before it, those
    with equal shared loops exchange their privates. Raises NoProposal with the rule that the child breaks."""
    mine, theirs = facts.in_order(one.sequence), facts.in_order(other.sequence)
    free = [
        b
        for b in range(facts.count - 1)
        if _open(mine, one, b) and _open(theirs, other, b) and set(mine.label[: b + 1]) == set(theirs.label[: b + 1])
    ]
    if free:
        child = _joined(mine, one, theirs, other, rng.choice(free))
    else:
        child, place = one, {label: i for i, label in enumerate(theirs.label)}
        for i, label in enumerate(mine.label):
            if one.shared[i] == other.shared[place[label]] and rng.random() < 0.5:
                child = child.with_own(i, other.owns[place[label]])
    raise_for(fault(facts.in_order(child.sequence), child))
    return child


def _open(facts: Facts, state: State, boundary: int) -> bool:
    """True if no loop and no tensor at home in an inner memory crosses the boundary."""
    frame = frame_of(facts, state)
    if any(served[0] <= boundary < served[-1] for served in map(frame.served, state.lent)):
        return False
    return frame.cuts[boundary] == 0 and not any(
        home > 0 and tensor.users[0] <= boundary < tensor.users[-1]
        for tensor, home in zip(facts.floating, state.homes, strict=True)
    )


def _joined(facts: Facts, one: State, theirs: Facts, other: State, boundary: int) -> State:
    """The Einsums up to the boundary of one state, those behind it of the other."""
    sides = [one if tensor.users[0] <= boundary else other for tensor in facts.floating]
    cut = boundary + 1
    return State(
        tuple(side.homes[n] for n, side in enumerate(sides)),
        tuple(side.depths[n] for n, side in enumerate(sides)),
        one.shared[:cut] + other.shared[cut:],
        one.owns[:cut] + other.owns[cut:],
        facts.named(facts.label[:cut] + theirs.label[cut:]),
        tuple(sorted([s for s in one.lent if s[4] <= boundary] + [s for s in other.lent if s[4] > boundary])),
        tuple(sorted([g for g in one.groups if g[0] <= boundary] + [g for g in other.groups if g[0] > boundary])),
    )

"""Crossover: the part of one state before a boundary that neither fuses across, and the part of another behind it."""

from __future__ import annotations

from random import Random

from .checks import fault
from .facts import Facts
from .skeletons import NoProposal
from .state import State, frame_of


def crossed(facts: Facts, one: State, other: State, rng: Random) -> State:
    """A state with something of both. Without a boundary that both leave open, Einsums with equal shared loops
    exchange their privates. Raises NoProposal with the rule that the child breaks."""
    free = [b for b in range(facts.count - 1) if _open(facts, one, b) and _open(facts, other, b)]
    if free:
        child = _joined(facts, one, other, rng.choice(free))
    else:
        child = one
        for i in range(facts.count):
            if one.shared[i] == other.shared[i] and rng.random() < 0.5:
                child = child.with_own(i, other.owns[i])
    why = fault(facts, child)
    if why is not None:
        raise NoProposal(why)
    return child


def _open(facts: Facts, state: State, boundary: int) -> bool:
    """True if no loop and no tensor at home in an inner memory crosses the boundary."""
    return frame_of(facts, state).cuts[boundary] == 0 and not any(
        home > 0 and tensor.users[0] <= boundary < tensor.users[-1]
        for tensor, home in zip(facts.floating, state.homes, strict=True)
    )


def _joined(facts: Facts, one: State, other: State, boundary: int) -> State:
    """The Einsums up to the boundary of one state, those behind it of the other."""
    sides = [one if tensor.users[0] <= boundary else other for tensor in facts.floating]
    cut = boundary + 1
    return State(
        tuple(side.homes[n] for n, side in enumerate(sides)),
        tuple(side.depths[n] for n, side in enumerate(sides)),
        one.shared[:cut] + other.shared[cut:],
        one.owns[:cut] + other.owns[cut:],
    )

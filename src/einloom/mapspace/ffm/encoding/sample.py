"""States at random: unfused first, then fused tensor by tensor, then mended until everything fits its memory."""

from __future__ import annotations

from random import Random

from .facts import Facts
from .moves import bring_home, eased
from .privates import drawn
from .rooms import overflow
from .skeletons import NoProposal
from .state import Own, State

MENDS = 60  # steps of `fitted` before it gives up
GOALS = (1.0, 0.5, 0.25, 0.125)  # parts of a memory that a shared tile may take


def plain(facts: Facts, rng: Random) -> State | None:
    """Nothing fused that need not be, privates at random; None if some Einsum has no privates."""
    homes = tuple(min(tensor.homes, default=0) for tensor in facts.floating)
    nothing = tuple(Own(units[0] if units else None) for units in facts.units)
    state = State(homes, (0,) * len(homes), ((),) * facts.count, nothing)
    for i in range(facts.count):
        found = drawn(facts, state, i, rng)
        if found is None:
            return None
        state = found
    return state


def sampled(facts: Facts, rng: Random, fuse: float | None = None) -> State | None:
    """A state that keeps the rules and fits; None if this draw gave none. fuse: how many tensors are tried."""
    state = plain(facts, rng)
    if state is None:
        return None
    keen = rng.random() if fuse is None else fuse
    for number, tensor in enumerate(facts.floating):
        homes = [home for home in tensor.homes if home > 0]
        if homes and (rng.random() < keen or min(tensor.homes) > 0):
            try:
                state = bring_home(facts, state, number, rng.choice(homes), rng.choice(GOALS), rng)
            except NoProposal:
                continue
    return fitted(facts, state, rng)


def fitted(facts: Facts, state: State, rng: Random, steps: int = MENDS) -> State | None:
    """The state changed step by step until all tiles fit; None if some steps did not do."""
    for _ in range(steps):
        over = overflow(facts, state)
        if over is None:
            return state
        try:
            state = eased(facts, state, *over, rng)
        except NoProposal:
            continue
    return None

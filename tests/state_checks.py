"""What must be true of states and of the trees that they write: legal, inside, weighed and priced alike, reached."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest

from einloom.cost.evaluate import legality, price
from einloom.cost.room.occupancy import occupancy
from einloom.cost.traffic.even import EvenPaths
from einloom.cost.traffic.paths import paths
from einloom.mapping.normal import normal_form
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.encoding import Encoding, NoProposal, State
from einloom.mapspace.ffm.encoding.rooms import loads
from einloom.mapspace.ffm.encoding.state import word
from einloom.mapspace.ffm.encoding.trees import nodes_of
from einloom.mapspace.ffm.rules import outside


def agrees(encoding: Encoding, state: State) -> None:
    """A state that keeps the rules, and its tree, are the same to legality, the space, memories and `evaluate`."""
    w, m = encoding.workload, encoding.machine
    tree = encoding.decode(state)
    assert tree == normal_form(tree, w) and encoding.encode(tree) == state
    assert outside(w, m, encoding.mapspace, tree) == ()
    assert encoding.fits(state) == (legality(w, m, tree) == ())
    held = {one.memory: one.bits for one in occupancy(w, m, paths(w, tree))}
    for memory, row in zip(m.memories, loads(encoding.facts, state), strict=True):
        assert memory.size is None or max(row) == held.get(memory.name, 0)
    priced_alike(encoding, state)


def priced_alike(encoding: Encoding, state: State) -> None:
    """One path alone costs what it costs in its tree, by the walk and in closed form."""
    w, m = encoding.workload, encoding.machine
    whole = price(w, m, paths(w, encoding.decode(state)), "einsum", ())
    for i, einsum in enumerate(w.einsums):
        mine = word(encoding.facts, state, i)
        one = price(w, m, paths(w, Mapping(nodes_of(encoding.facts, i, mine))), "einsum", ())
        energy = sum(a.energy for a in whole.actions if a.einsum == einsum.name)
        assert (one.energy, one.latency) == pytest.approx((energy, dict(whole.einsum_latency)[einsum.name]), rel=1e-12)
        if EvenPaths.able(w, m, einsum.name):
            even = EvenPaths(w, m, einsum.name).cost(mine)
            assert (even.energy, even.latency) == pytest.approx((one.energy, one.latency), rel=1e-12)
            assert even.traffic == tuple(one.traffic(memory.name) for memory in m.memories)


def reached(encoding: Encoding, most: int, steps: int = 40_000) -> set[State]:
    """The states that draws and moves come to, until there are so many."""
    rng, seen = Random(0), list[State]()
    known = set[State]()
    for _ in range(steps):
        state = rng.choice(seen) if seen and rng.random() < 0.98 else encoding.sample(rng)
        if state is None:
            continue
        try:
            found: Collection[State] = {state, encoding.propose(state, rng)}
        except NoProposal:
            found = {state}
        seen += sorted(set(found) - known, key=repr)
        known |= set(found)
        if len(known) >= most:
            break
    return known

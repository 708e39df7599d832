"""What must be true of states and of the trees that they write: legal, inside, weighed and priced alike, reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import islice
from random import Random

import pytest

from einloom.cost.evaluate import legality, price
from einloom.cost.room.occupancy import occupancy
from einloom.cost.traffic.even import EvenPaths
from einloom.cost.traffic.paths import paths
from einloom.cost.traffic.windowed import WindowPaths
from einloom.mapping.normal import normal_form
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.encoding import Encoding, NoProposal, State
from einloom.mapspace.ffm.encoding.rooms import loads
from einloom.mapspace.ffm.encoding.state import path_of
from einloom.mapspace.ffm.encoding.trees import nodes_of
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.testing.problems.drawing import Wanted, draw_with
from einloom.testing.problems.files import Read


def agrees(encoding: Encoding, state: State) -> None:
    """A state that keeps the rules, and its tree, are the same to legality, the space, memories and `evaluate`."""
    w, m = encoding.workload, encoding.machine
    tree = encoding.decode(state)
    assert tree == normal_form(tree, w) and encoding.encode(tree) == state
    assert outside(w, m, encoding.mapspace, tree) == ()
    assert encoding.fits(state) == (legality(w, m, tree) == ())
    if state.groups:
        return
    held = {one.memory: one.bits for one in occupancy(w, m, paths(w, tree))}
    for memory, row in zip(m.memories, loads(encoding.of(state), state), strict=True):
        assert memory.size is None or max(row) == held.get(memory.name, 0)
    priced_alike(encoding, state)


def priced_alike(encoding: Encoding, state: State) -> None:
    """One path alone costs what it costs in its tree, by the walk and in closed form."""
    w, m, facts = encoding.workload, encoding.machine, encoding.of(state)
    whole = price(w, m, paths(w, encoding.decode(state)), "einsum", ())
    for i, einsum in enumerate(facts.einsums):
        path, mine = path_of(facts, state, i), [action for action in whole.actions if action.einsum == einsum.name]
        value = sum(action.energy for action in mine), dict(whole.einsum_latency)[einsum.name]
        bits = tuple(sum(a.bits for a in mine if a.component == memory.name) for memory in m.memories)
        if not path.filled:
            one = price(w, m, paths(w, Mapping(nodes_of(facts, i, path.word))), "einsum", ())
            assert (one.energy, one.latency) == pytest.approx(value, rel=1e-12)
            assert tuple(one.traffic(memory.name) for memory in m.memories) == bits
        for closed in (EvenPaths, WindowPaths):
            if closed.able(w, m, einsum.name) and closed(w, m, einsum.name).takes(path.word, path.filled):
                one = closed(w, m, einsum.name).cost(path.word, path.filled)
                assert (one.energy, one.latency) == pytest.approx(value, rel=1e-12)
                assert one.traffic == bits


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


def crossed(encoding: Encoding, rng: Random, pairs: int) -> Iterator[tuple[State, State, State]]:
    """(one, other, their child in the space) of random pairs of states; those without a child are left out."""
    for _ in range(pairs):
        one, other = encoding.sample(rng), encoding.sample(rng)
        assert one is not None and other is not None
        try:
            child = encoding.cross(one, other, rng)
        except NoProposal:
            continue
        assert outside(encoding.workload, encoding.machine, encoding.mapspace, encoding.decode(child)) == ()
        yield one, other, child


def random_reads(dimension: str, seeds: range, unlike: Counter[str]) -> Iterator[tuple[int, Read]]:
    """Problems of the generators with a dimension, in sequential trees."""
    for seed in seeds:
        drawn = draw_with(Wanted((dimension,)), seed)
        read = None if drawn is None else drawn.files.read
        if drawn is None or read is None or read[2].concurrent != "none":
            unlike["left out"] += 1
        elif dimension in drawn.has:
            yield seed, read


def look(seed: int, read: Read, seen: Counter[str]) -> None:
    """Compare states with 40 trees of the enumeration, and with what some draws and moves come to."""
    workload, machine, _ = read
    encoding, rng = Encoding(*read), Random(seed)
    seen["problems"] += 1
    for tree in islice(enumerate_trees(*read), 40):
        state = encoding.encode(tree)
        assert state is not None and encoding.fault(state) == (
            "capacity" if legality(workload, machine, tree) else None
        )
        agrees(encoding, state)
        seen["trees"] += 1
        seen["uneven"] += any(own.covers for own in state.owns)
    for _ in range(3):
        state = encoding.sample(rng)
        for _ in range(0 if state is None else 4):
            assert state is not None
            agrees(encoding, state)
            seen["states"] += 1
            seen["in another order"] += bool(state.sequence)
            seen["shared"] += bool(state.lent)
            try:
                state = encoding.propose(state, rng)
            except NoProposal as rule:
                seen["refused"] += bool(str(rule))

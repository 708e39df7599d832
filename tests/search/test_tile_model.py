"""The model of tiles of `gradient` and `dat`: at a state's own tiles it says what the tree costs and holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from random import Random

import numpy as np
import pytest

from einloom.cost.evaluate import evaluate, legality
from einloom.errors import SpecError
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.ffm.encoding import NoProposal, State
from einloom.mapspace.ffm.encoding.rooms import loads
from einloom.mapspace.ffm.encoding.state import KnownPath, path_of
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem, keeps_time
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics import tile_model
from einloom.search.heuristics.points import Points
from einloom.search.heuristics.tile_model import TileModel
from einloom.testing.problems.drawing import draw
from einloom.workload.build import build_workload
from sharing import sharing_problem, sharing_trees
from tiny_groups import group_problem
from tiny_shares import share_problem

Case = tuple[Points, State]


def listed(cases: Callable[[range], Iterator[Case]]) -> Callable[[range], tuple[Case, ...]]:
    """The cases of some seeds, made once."""
    return cache(lambda seeds: tuple(cases(seeds)))


def halves(count: int) -> pytest.MarkDecorator:
    """Half of so many seeds, and with the slow tests all."""
    half, whole = range(count // 2), range(count)
    return pytest.mark.parametrize("seeds", [half, pytest.param(whole, marks=pytest.mark.slow)], ids=["half", "all"])


def points_of(asked: Problem) -> Points:
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    return Points(asked, space, Evaluator(asked, space))


@listed
def drawn(seeds: range) -> Iterator[Case]:
    """States of random problems, most with fused tensors, none with a store for several or a group."""
    for seed in seeds:
        points, rng = points_of(Problem(*draw(seed).files.read, Objective("energy"))), Random(seed)
        try:
            state = points.encoding.sample(rng) if TileModel.able(points) else None
        except SpecError:
            continue
        for _ in range(6):
            if state is not None and points.encoding.fault(state) is None and not points.facts.ragged:
                yield points, state
            try:
                state = state and points.encoding.propose(state, rng, 0.6)
            except NoProposal:
                continue


@listed
def lending(seeds: range) -> Iterator[Case]:
    """States in which a store serves several Einsums."""
    for seed in seeds:
        asked = sharing_problem(seed)
        points = points_of(replace(asked, objective=Objective("energy")))
        for tree in islice(sharing_trees(asked, 100), 30 if TileModel.able(points) else 0):
            state = points.encoding.encode(tree)
            assert state is not None and state.lent
            if points.encoding.fault(state) is None:
                yield points, state


def weighted() -> Problem:
    """Two products, whose weights may stay in the buffer while tokens pass."""
    workload = build_workload("weighted", ("T[m] = X[m] * V[k]", "Z[m] = T[m] * W[k]"), {"m": 4, "k": 2}, bits=8)
    outer, buffer = Memory("DRAM", None, 10.0, 12.0), Memory("GLB", None, 1.0, 1.0)
    machine = Machine("tiny", (outer, buffer, ComputeUnit("MAC", 1.0, 0.5)))
    return Problem(workload, machine, Mapspace(concurrent="shared"), Objective("energy"))


@listed
def grouped(seeds: range) -> Iterator[Case]:
    """States in which Einsums run at the same time."""
    problems = (make(seed) for seed in seeds for make in (group_problem, share_problem))
    for seed, asked in enumerate((weighted(), *problems)):
        points, rng = points_of(replace(asked, objective=Objective("energy"))), Random(seed)
        try:
            state = points.encoding.sample(rng) if TileModel.able(points) else None
        except SpecError:
            continue
        for _ in range(150 if state else 0):
            assert state is not None
            try:
                state = points.encoding.propose(state, rng, 0.6)
            except NoProposal:
                continue
            tree = points.encoding.decode(state)
            if state.groups and not legality(points.problem.workload, points.problem.machine, tree):
                yield points, state


def compared(cases: Iterable[Case]) -> Counter[str]:
    """How often energy, latency and room of the model are those of the tree, above, or below."""
    seen = Counter[str]()
    for points, state in cases:
        asked, model = points.problem, TileModel(points, state)
        at = np.append(model.coordinates(), 1.0)
        cost = evaluate(asked.workload, asked.machine, points.encoding.decode(state))
        said = [[sum(f * 2 ** float(row @ at) for f, row in one) for one in some] for some in model.times]
        latency = sum(max(some, default=0.0) for some in said)
        energy = sum(f * 2 ** float(row @ at) for f, row in model.energy)
        counted = [("energy", energy, cost.energy - model.leak * cost.latency)]
        counted += [("latency", latency, cost.latency)] if keeps_time(asked.machine) else []
        for name, mine, right in counted:
            close = mine == pytest.approx(right, rel=1e-9)
            seen[name, "equal" if close else "above" if mine > right else "below"] += 1
        if not state.groups:
            rows = zip(points.facts.memories, loads(points.encoding.of(state), state), strict=True)
            bits = sorted((memory.size, most) for memory, row in rows if memory.size for most in row if most)
            held = [(size, round(sum(f * 2 ** float(row @ at) for f, row in tiles), 6)) for size, tiles in model.rooms]
            seen["room", "equal" if sorted(held) == bits else "off"] += 1
    return seen


@halves(40)
def test_it_says_what_the_tree_costs_and_holds(seeds: range) -> None:
    """But for loops of one trip, which may only add."""
    seen = compared(drawn(seeds))
    assert not seen["energy", "below"] and not seen["latency", "below"] and not seen["room", "off"]
    assert seen["energy", "equal"] > 0.9 * seen["room", "equal"] > 2 * len(seeds) < seen["latency", "equal"]


@halves(6)
def test_it_speaks_of_stores_that_serve_several_einsums(seeds: range) -> None:
    """The first of them pays for what comes; the tile is alive in all of them."""
    seen = compared(lending(seeds))
    assert not seen["energy", "below"] and not seen["latency", "below"] and not seen["room", "off"]
    assert seen["energy", "equal"] > 0.9 * seen["room", "equal"] > 5 * len(seeds) // 3


@halves(12)
def test_it_speaks_of_einsums_that_run_at_the_same_time(seeds: range) -> None:
    """A loop of one trip may add; what a pipeline takes to fill is left out."""
    seen = compared(grouped(seeds))
    assert not seen["energy", "below"] and not seen["latency", "above"]
    assert seen["energy", "equal"] > 50 * len(seeds) // 12 and seen["latency", "equal"] > 10 * len(seeds) // 12


def test_a_tile_that_every_reader_pays_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_model, "path_of", lambda facts, state, i: KnownPath(path_of(facts, state, i).word))
    assert compared(lending(range(3)))["energy", "above"] > 2

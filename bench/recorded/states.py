"""Questions to what methods without a proof work with: states of mappings, and the first mappings of a search."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from einloom.cost.evaluate import evaluate, legality
from einloom.mapping.text import print_mapping
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.encoding import NoProposal, State
from einloom.mapspace.registry import space_for
from einloom.problem import Budget, Objective
from einloom.search.evaluator import Evaluator
from einloom.search.first import FirstMappings
from einloom.search.heuristics.points import INFINITE, Points
from einloom.search.heuristics.rows import TripRows
from einloom.search.method import Watcher
from einloom.testing.problems.claims import same

from .subjects import Subject

DRAWN, STEPS, PRICED = 4, 150, 10
"""States that a walk starts from, its steps, and those after which a state is priced."""
ANNEALED, PROPOSED, SWAPPED = 6, 120, 8
"""States whose privates machine code changes, its proposals for an Einsum, and rows of trips that it prices."""
PIECES = 60
"""Of the work on first mappings: draws, and proposals for Einsums."""


def walk(subject: Subject) -> dict[str, Any]:
    """Where moves, crossovers and mendings of states lead from a seed: what was refused and how often, the states met
    as a digest of their trees, the last tree; and states that say of themselves what their trees do not."""
    about, rng = subject.all_trees, Random(subject.seed)
    space = space_for(about.workload, about.machine, about.mapspace)
    encoding, seen, met, wrong = space.encoding, hashlib.sha256(), Counter[str](), list[str]()
    asked = subject.problem(Objective("energy"))
    points = Points(asked, space, Evaluator(asked, space, Budget(), Watcher()))
    people = [state for _ in range(DRAWN) if (state := encoding.sample(rng)) is not None]
    met["drawn"] = len(people)
    for step in range(STEPS if people else 0):
        state = people[step % len(people)]
        try:
            if step % 8 == 7:
                state = encoding.cross(state, rng.choice(people), rng)
            else:
                state = encoding.propose(state, rng, (0.0, 0.3, 1.0)[step % 3])
        except NoProposal as rule:
            met[f"no proposal: {rule}"] += 1
            continue
        fault, tree = encoding.fault(state), encoding.decode(state)
        met[f"fault: {fault}"] += 1
        seen.update(print_mapping(tree, about.workload).encode())
        if step % 3 == 0 and (fault is None) != space.contains(tree):
            wrong.append(print_mapping(tree, about.workload))
        if step % PRICED == 0 and fault is None and not _priced_alike(points, state, tree):
            wrong.append(f"its price: {print_mapping(tree, about.workload)}")
        if fault is not None:
            mended = encoding.fitted(state, rng, 6)
            met["mended" if mended else "not mended"] += 1
            state = mended or people[step % len(people)]
        people[step % len(people)] = state
    last = [print_mapping(encoding.decode(state), about.workload) for state in people[:1]]
    return {"met": dict(sorted(met.items())), "trees": seen.hexdigest()[:16], "last": last, "wrong": wrong}


def annealed(subject: Subject) -> dict[str, Any]:
    """Where machine code, run as the Python that it is made from, leads the privates of some states; what it says of
    rows of trips; and prices that are not those of the trees."""
    about, rng = subject.all_trees, Random(subject.seed)
    goal = next((one for one in subject.objectives if one.name != "pareto"), Objective("energy"))
    asked = subject.problem(goal)
    space = space_for(about.workload, about.machine, about.mapspace)
    encoding, found, wrong = space.encoding, list[Any](), list[str]()
    points = Points(asked, space, Evaluator(asked, space, Budget(), Watcher()))
    drawn = [state for _ in range(2 * DRAWN) if points.additive and (state := encoding.sample(rng)) is not None]
    with interpreted():
        for state in drawn[:ANNEALED]:
            for i in range(encoding.of(state).count):
                if points.value(state) < INFINITE and points.bursts.able(state, i):
                    rest = points.sums(state, {i})
                    done = points.bursts.run(state, i, rest, PROPOSED, 10**9, 0.05, rng)
                    ends = [(done.value, done.state), (done.best_value, done.best)]
                    texts = [print_mapping(encoding.decode(one), about.workload) for _, one in ends]
                    digest = hashlib.sha256("".join(texts).encode()).hexdigest()[:16]
                    found.append([i, done.legal, done.overfull, done.refused, done.value, done.best_value, digest])
                    pairs = zip(ends, texts, strict=True)
                    wrong += [text for (value, one), text in pairs if not same(value, points.apart(one))]
            if TripRows.able(points, state):
                rows = TripRows(points, state)
                prices = rows.price(_swapped(rows, rng)).tolist()
                found.append(["rows", *prices])
                if points.value(state) < INFINITE and not same(prices[0], points.value(state)):
                    wrong.append(f"its row: {print_mapping(encoding.decode(state), about.workload)}")
    return {"found": found, "wrong": wrong}


def _swapped(rows: TripRows, rng: Random) -> NDArray[np.int64]:
    """The row of the state, and rows in which two loops of one variable have changed trips."""
    found = np.tile(rows.trips, (SWAPPED, 1))
    for row in found[1:]:
        a = rng.randrange(max(1, len(row)))
        like = [
            n
            for n, one in enumerate(rows.loops)
            if (one.einsum, one.variable) == (rows.loops[a].einsum, rows.loops[a].variable)
        ]
        if like:
            b = rng.choice(like)
            row[a], row[b] = row[b], row[a]
    return found


@contextmanager
def interpreted() -> Iterator[None]:
    """Every function of the kernels runs as Python."""
    import pytest

    from kernels import interpret  # of the tests, which the command puts on the path

    with pytest.MonkeyPatch.context() as patched:
        interpret(patched)
        yield


def _priced_alike(points: Points, state: State, tree: Mapping) -> bool:
    """True if the Einsums of a state cost together what its tree does, or the tree is not legal."""
    asked = points.problem
    if legality(asked.workload, asked.machine, tree):
        return True
    cost = evaluate(asked.workload, asked.machine, tree)
    return all(map(same, points.sums(state)[:2], (cost.energy, cost.latency)))


def first_mappings(subject: Subject) -> dict[str, Any]:
    """Which mappings are drawn, and what is made of them, before a search has one: the value after each better one."""
    goal = next((one for one in subject.objectives if one.name != "pareto"), Objective("energy"))
    drawing, values = FirstMappings(subject.problem(goal), Watcher()), list[list[float]]()
    for piece in range(PIECES):
        drawing.work(0.0)
        best = drawing.draw()
        if best is not None and (not values or drawing.value < values[-1][1]):
            values.append([piece, drawing.value])
    return {"values": values, "mapping": None if best is None else print_mapping(best, subject.all_trees.workload)}
